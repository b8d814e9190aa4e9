"""Gauss–Seidel sweeps with agent and nature free: in place, without error bounds. No proof uses them
(verified backups: `tightrope.solver.bellman.backups`). They leave the choices taken as sparse rows.

There is one sweep for intervals and regions (`sweep_groups`; the compiler drops the branches that a kind of
sets does not take) and one for ordinary models (`sweep_plain`), for speed: a sweep for all takes 1.2 times as
long on these, and one that takes its inner problem as a numba function 1.5 times.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.o_maximization import (
    FEW,
    ModelArrays,
    Row,
    o_maximize,
    o_maximize_again,
    o_maximize_few,
)
from tightrope.ambiguity.rectangular_inner import RegionArrays, inner
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import inlined, kernel
from tightrope.solver.bellman.backups import LoopArrays, best_exit
from tightrope.solver.equations.system import CLOSED, EXIT, BlockArrays, Rows, SystemArrays


@inlined
def still_best(
    start: int, pivot: int, end: int, column: IndexArray, values: FloatArray, maximise: bool
) -> bool:
    """Whether a row in nature's order is still nature's best answer (`Rows`)."""
    pivot_value = values[np.uint32(column[pivot])]
    result = True
    for i in range(np.uint64(start), np.uint64(pivot)):
        y = values[np.uint32(column[i])]
        result &= y >= pivot_value if maximise else y <= pivot_value
    for i in range(np.uint64(pivot + 1), np.uint64(end)):
        y = values[np.uint32(column[i])]
        result &= y <= pivot_value if maximise else y >= pivot_value
    return result


@inlined
def _store(block: BlockArrays, g: int, values: FloatArray, new: float, unit: float, residual: float) -> float:
    """Give a group its new value; the residual, or the relative change where that is larger."""
    group_start, member = block.group_start, block.member
    old = values[member[group_start[g]]]
    if new != old:
        scale = max(abs(new), unit)
        if not abs(new - old) <= residual * scale:  # also where an infinity is involved
            residual = abs(new - old) / scale if np.isfinite(new - old) and scale < np.inf else np.inf
        for m in range(group_start[g], group_start[g + 1]):
            values[member[m]] = new
    return residual


@kernel
def sweep_groups(
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    block: BlockArrays,
    rows: Rows,
    values: FloatArray,
    shift: FloatArray,
    unit: float,
) -> float:
    """See `BellmanOperator.sweep`. Over a region rows are written as choices turn out better."""
    model, scratch = arrays
    choice_start, transition_start, successor, lower, upper, _ = model
    reward, discount, mode, leader, agent_maximises, nature_maximises, floor, ceiling, _ = system
    group_start, member, visit, backwards = block
    row_start, row_end, column, weight, self_weight, row_reward, row_choice, row_pivot, row_low, row_room = (
        rows
    )
    entries = column, weight, row_low, row_room
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    residual = 0.0
    groups = len(group_start) - 1
    for i in range(groups):
        g = groups - 1 - i if backwards else i
        if len(visit) > 0:
            g = visit[g]
        best = -np.inf if agent_maximises else np.inf
        chosen = -1
        home = leader[member[group_start[g]]]
        for m in range(group_start[g], group_start[g + 1]):
            s = member[m]
            for c in range(choice_start[s], choice_start[s + 1]):
                if mode[c] == CLOSED:
                    continue
                first, last = transition_start[c], transition_start[c + 1]
                offset = -1
                if mode[c] == EXIT:
                    offset = best_exit(first, last, model, values, nature_maximises, leader, home)
                    if offset < 0:
                        continue
                    x = values[successor[first + offset]]
                elif region is not None:
                    x = inner(c, Row(first, last, model, values, nature_maximises, scratch), region)
                else:
                    x = np.inf
                    if last - first <= FEW:
                        x = o_maximize_few(first, last, model, values, nature_maximises)
                    if not abs(x) < np.inf:
                        x = o_maximize(Row(first, last, model, values, nature_maximises, scratch))
                if discounted:
                    x *= discount[c]
                if rewarded:
                    x += reward[c]
                if chosen < 0 or (x > best if agent_maximises else x < best):
                    best, chosen = x, c
                    if region is not None and offset < 0:
                        share, end, inside = discount[c] if discounted else 1.0, row_start[g], 0.0
                        for j in range(last - first):
                            if scratch.mass[j] > 0.0:
                                if leader[successor[first + j]] == home:
                                    inside += scratch.mass[j]
                                else:
                                    column[end] = successor[first + j]
                                    weight[end] = share * scratch.mass[j]
                                    end += 1
                        row_end[g], self_weight[g] = end, share * inside
        # the row of the choice taken
        first, last = transition_start[chosen], transition_start[chosen + 1]
        scale = discount[chosen] if discounted else 1.0
        keep = chosen == row_choice[g] and row_pivot[g] >= 0
        if keep:
            keep = still_best(row_start[g], row_pivot[g], row_end[g], column, values, nature_maximises)
        row_choice[g] = chosen
        if keep:
            pass
        elif mode[chosen] == EXIT:
            offset = best_exit(first, last, model, values, nature_maximises, leader, home)
            column[row_start[g]] = successor[first + offset]
            weight[row_start[g]] = scale
            row_end[g], row_pivot[g], self_weight[g] = row_start[g] + 1, -1, 0.0
        elif region is None:
            end = np.uint64(row_start[g])
            for t in range(np.uint64(first), np.uint64(last)):
                if upper[t] > 0.0:
                    column[end], row_low[end], row_room[end] = successor[t], lower[t], upper[t] - lower[t]
                    end += np.uint64(1)
            row_end[g], row_pivot[g], self_weight[g] = o_maximize_again(
                np.uint64(row_start[g]), end, entries, values, nature_maximises, (leader, home, scale)
            )
        row_reward[g] = reward[chosen] if rewarded else 0.0
        new = min(max(best + shift[g], floor), ceiling)
        residual = _store(block, g, values, new, unit, residual)
    return residual


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
    """See `BellmanOperator.sweep`; no choice has the mode `EXIT`."""
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
        best, chosen = -np.inf, -1
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
                if chosen < 0 or sign * x > best:
                    best, chosen = sign * x, c
        if chosen != row_choice[g]:
            row_choice[g] = chosen
            scale = discount[chosen] if discounted else 1.0
            home = leader[member[group_start[g]]]
            end, inside = row_start[g], 0.0
            for t in range(transition_start[chosen], transition_start[chosen + 1]):
                if probability[t] > 0.0:
                    if leader[successor[t]] == home:
                        inside += probability[t]
                    else:
                        column[end], weight[end] = successor[t], scale * probability[t]
                        end += 1
            row_end[g], self_weight[g] = end, scale * inside
            row_reward[g] = reward[chosen] if rewarded else 0.0
        new = min(max(sign * best + shift[g], floor), ceiling)
        residual = _store(block, g, values, new, unit, residual)
    return residual
