"""One Gauss–Seidel sweep over an interval or ordinary model, agent and nature both free: fast, in place,
without error bounds, and it leaves the choices it took behind as sparse rows.

`tightrope.solver.kernels.backups` has the backups with error bounds, on which proofs rest.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.few_successors import FEW, pour_few
from tightrope.ambiguity.pouring import mean, pour, pour_again, pour_row
from tightrope.ambiguity.records import ModelArrays, Scratch
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import inlined, kernel
from tightrope.solver.equations.system import CLOSED, EXIT, BlockArrays, Rows, SystemArrays
from tightrope.solver.kernels.backups import best_exit


@inlined
def still_best(
    start: int, swing: int, end: int, column: IndexArray, values: FloatArray, maximise: bool
) -> bool:
    """Whether a row in the order of pouring is still nature's best answer (`Rows`)."""
    pivot = values[np.uint32(column[swing])]
    result = True
    for i in range(np.uint64(start), np.uint64(swing)):
        y = values[np.uint32(column[i])]
        result &= y >= pivot if maximise else y <= pivot
    for i in range(np.uint64(swing + 1), np.uint64(end)):
        y = values[np.uint32(column[i])]
        result &= y <= pivot if maximise else y >= pivot
    return result


@kernel
def sweep_groups(
    model: ModelArrays,
    scratch: Scratch,
    system: SystemArrays,
    block: BlockArrays,
    rows: Rows,
    values: FloatArray,
    shift: FloatArray,
    unit: float,
) -> float:
    """See `Kernel.sweep`."""
    choice_start, transition_start, successor, lower, upper, plain = model
    order, key, _ = scratch
    reward, discount, mode, leader, agent_maximises, nature_maximises, floor, ceiling, _ = system
    group_start, member, visit, backwards = block
    row_start, row_end, column, weight, self_weight, row_reward, row_choice, row_swing = rows[:8]
    row_low, row_room = rows.low, rows.room
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    residual = 0.0
    groups = len(group_start) - 1
    for i in range(groups):
        g = groups - 1 - i if backwards else i
        if len(visit) > 0:
            g = visit[g]
        best = -np.inf if agent_maximises else np.inf
        taken = -1
        home = leader[member[group_start[g]]]
        for m in range(group_start[g], group_start[g + 1]):
            s = member[m]
            for c in range(choice_start[s], choice_start[s + 1]):
                if mode[c] == CLOSED:
                    continue
                first, last = transition_start[c], transition_start[c + 1]
                if mode[c] == EXIT:
                    offset = best_exit(first, last, successor, upper, values, nature_maximises, leader, home)
                    if offset < 0:
                        continue
                    x = values[successor[first + offset]]
                elif plain:
                    x = mean(first, last, successor, lower, values)
                else:
                    x = np.inf
                    if last - first <= FEW:
                        x = pour_few(first, last, successor, lower, upper, values, nature_maximises)
                    if not abs(x) < np.inf:
                        x = pour(first, last, successor, lower, upper, values, nature_maximises, order, key)
                if discounted:
                    x *= discount[c]
                if rewarded:
                    x += reward[c]
                if taken < 0 or (x > best if agent_maximises else x < best):
                    best, taken = x, c
        # the row of the choice taken
        first, last = transition_start[taken], transition_start[taken + 1]
        scale = discount[taken] if discounted else 1.0
        keep = taken == row_choice[g] and row_swing[g] >= 0
        if keep:
            keep = still_best(row_start[g], row_swing[g], row_end[g], column, values, nature_maximises)
        row_choice[g] = taken
        if keep:
            pass
        elif mode[taken] == EXIT:
            offset = best_exit(first, last, successor, upper, values, nature_maximises, leader, home)
            column[row_start[g]] = successor[first + offset]
            weight[row_start[g]] = scale
            row_end[g], row_swing[g], self_weight[g] = row_start[g] + 1, -1, 0.0
        elif len(row_low) > 0:
            end = np.uint64(row_start[g])
            for t in range(np.uint64(first), np.uint64(last)):
                if upper[t] > 0.0:
                    column[end], row_low[end], row_room[end] = successor[t], lower[t], upper[t] - lower[t]
                    end += np.uint64(1)
            row_end[g], row_swing[g], self_weight[g] = pour_again(
                np.uint64(row_start[g]),
                end,
                column,
                weight,
                row_low,
                row_room,
                values,
                nature_maximises,
                leader,
                home,
                scale,
            )
        else:
            row_end[g], row_swing[g], self_weight[g] = pour_row(
                first,
                last,
                successor,
                lower,
                upper,
                plain,
                values,
                nature_maximises,
                order,
                key,
                leader,
                home,
                scale,
                row_start[g],
                column,
                weight,
            )
        row_reward[g] = reward[taken] if rewarded else 0.0
        old = values[member[group_start[g]]]
        new = min(max(best + shift[g], floor), ceiling)
        if new != old:
            scale = max(abs(new), unit)
            if not abs(new - old) <= residual * scale:  # also where an infinity is involved
                residual = abs(new - old) / scale if np.isfinite(new - old) and scale < np.inf else np.inf
            for m in range(group_start[g], group_start[g + 1]):
                values[member[m]] = new
    return residual
