"""Sweeps with the agent's choices frozen and nature free to answer anew: policy evaluation against nature.

With both players' choices frozen, solving what is left and then improving both can run in circles, each
player answering the other. With the agent's frozen alone it cannot: this is the agent's policy iteration, and
what lies between two improvements is nature's own problem, whose value is one number per state.

An answer of nature in an interval model stays its best as long as no successor that is filled up has become
worse for it than the swing, and none that is not better (`solver.nature.pouring`). So a row in the order
of pouring (`Rows.swing`) is evaluated and tested in one go, and poured again on the spot if it is not the
best any more, from the bounds it carries along: going back to the model would cost more than all the rest.
Every update is therefore one of a monotone operator: values that start on one side of their own backups stay
there, and no value that an outdated answer has made too high misleads the agent.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.pouring import pour_again
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import Block, BlockArrays, Rows, System, SystemArrays


def sweep_answered(
    system: System,
    block: Block,
    rows: Rows,
    shift: FloatArray,
    values: FloatArray,
    unit: float,
    most: int,
    tolerance: float,
) -> tuple[int, float]:
    """Up to `most` Gauss–Seidel sweeps under the agent's choices in `rows`, whose answers are kept nature's
    best; fewer once the relative change is within `tolerance`: (sweeps, last change).
    """
    return _sweep_answers(system.arrays, block.arrays, rows, shift, values, unit, most, tolerance)


@kernel
def _sweep_answers(
    system: SystemArrays,
    block: BlockArrays,
    rows: Rows,
    shift: FloatArray,
    values: FloatArray,
    unit: float,
    most: int,
    tolerance: float,
) -> tuple[int, float]:
    _, discount, _, leader, _, nature_maximises, floor, ceiling, _ = system
    group_start, member, _, _ = block
    row_start, row_end, column, weight, self_weight, reward, choice, row_swing = rows[:8]
    row_low, row_room = rows.low, rows.room
    groups = len(group_start) - 1
    is_lone = len(member) == groups  # every group one state: one array less to read
    change = 0.0
    done = 0
    for _ in range(most):
        change = 0.0
        for g in range(groups):
            s = np.uint32(member[g if is_lone else group_start[g]])
            start, end = np.uint64(row_start[g]), np.uint64(row_end[g])
            x = 0.0
            if row_swing[g] < 0:
                for i in range(start, end):
                    x += weight[i] * values[np.uint32(column[i])]
            else:
                swing = np.uint64(row_swing[g])
                pivot = values[np.uint32(column[swing])]
                wrong = 0.0  # one loop of a length that is easily foreseen, whatever the swing
                for i in range(start, end):
                    y = values[np.uint32(column[i])]
                    x += weight[i] * y
                    ahead = y - pivot
                    wrong = max(wrong, ahead if (i < swing) != nature_maximises else -ahead)
                if wrong > 0.0:
                    c = choice[g]
                    row_end[g], row_swing[g], self_weight[g] = pour_again(
                        start,
                        end,
                        column,
                        weight,
                        row_low,
                        row_room,
                        values,
                        nature_maximises,
                        leader,
                        leader[s],
                        discount[c] if len(discount) > 0 else 1.0,
                    )
                    x = 0.0
                    for i in range(start, np.uint64(row_end[g])):
                        x += weight[i] * values[np.uint32(column[i])]
            x += reward[g] + shift[g]
            if self_weight[g] > 0.0:
                if self_weight[g] >= 1.0:
                    continue
                x /= 1.0 - self_weight[g]
            x = min(max(x, floor), ceiling)
            old = values[s]
            if x != old:
                scale = max(abs(x), unit)
                if abs(x - old) > change * scale:  # rarely true, and divisions are slow
                    change = abs(x - old) / scale
                values[s] = x
                if not is_lone:
                    for m in range(group_start[g] + 1, group_start[g + 1]):
                        values[member[m]] = x
        done += 1
        if change <= tolerance:
            break
    return done, change
