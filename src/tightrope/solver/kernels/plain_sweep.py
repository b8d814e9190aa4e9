"""`robust_sweep` for ordinary models: the agent is free, and nature has nothing to decide.

The same Gauss–Seidel sweep with the same results as `sweep_groups`, which spends most of its time on what
ordinary models have no need of. A row is written where the agent's choice has changed and nowhere else: it
depends on nothing but that choice. No proof rests on sweeps.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.records import ModelArrays
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import CLOSED, BlockArrays, Rows, SystemArrays


@kernel
def sweep_plain(
    model: ModelArrays,
    system: SystemArrays,
    block: BlockArrays,
    rows: Rows,
    values: FloatArray,
    shift: FloatArray,
    unit: float,
) -> float:
    """See `Kernel.sweep`; no choice has the mode `EXIT`."""
    choice_start, transition_start, successor, probability, _, _ = model
    reward, discount, mode, leader, agent_maximises, _, floor, ceiling, _ = system
    group_start, member, visit, backwards = block
    row_start, row_end, column, weight, self_weight, row_reward, row_choice = rows[:7]
    rewarded, discounted, is_visited = len(reward) > 0, len(discount) > 0, len(visit) > 0
    groups = len(group_start) - 1
    sign = 1.0 if agent_maximises else -1.0
    residual = 0.0
    for i in range(groups):
        g = groups - 1 - i if backwards else i
        if is_visited:
            g = visit[g]
        best, taken = -np.inf, -1
        for m in range(group_start[g], group_start[g + 1]):
            s = np.uint32(member[m])
            for c in range(choice_start[s], choice_start[s + 1]):
                if mode[c] == CLOSED:
                    continue
                first, last = np.uint64(transition_start[c]), np.uint64(transition_start[c + 1])
                x = probability[first] * values[np.uint32(successor[first])]
                if not probability[first] > 0.0:
                    x = 0.0
                for t in range(first + np.uint64(1), last):
                    if probability[t] > 0.0:
                        x += probability[t] * values[np.uint32(successor[t])]
                if discounted:
                    x *= discount[c]
                if rewarded:
                    x += reward[c]
                if taken < 0 or sign * x > best:
                    best, taken = sign * x, c
        if taken != row_choice[g]:
            row_choice[g] = taken
            scale = discount[taken] if discounted else 1.0
            home = leader[member[group_start[g]]]
            end, inside = row_start[g], 0.0
            for t in range(transition_start[taken], transition_start[taken + 1]):
                if probability[t] > 0.0:
                    if leader[successor[t]] == home:
                        inside += probability[t]
                    else:
                        column[end], weight[end] = successor[t], scale * probability[t]
                        end += 1
            row_end[g], self_weight[g] = end, scale * inside
            row_reward[g] = reward[taken] if rewarded else 0.0
        old = values[member[group_start[g]]]
        new = min(max(sign * best + shift[g], floor), ceiling)
        if new != old:
            scale = max(abs(new), unit)
            if not abs(new - old) <= residual * scale:  # also where an infinity is involved
                residual = abs(new - old) / scale if np.isfinite(new - old) and scale < np.inf else np.inf
            for m in range(group_start[g], group_start[g + 1]):
                values[member[m]] = new
    return residual
