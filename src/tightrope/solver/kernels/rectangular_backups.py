"""Bellman backups of rectangular sets: the loops of `solver.kernels.backups`, another inner problem.

What they take is in `tightrope.ambiguity.records`; `table_rows` are the rows of the region.
"""

from __future__ import annotations

import numpy as np

from tightrope.ambiguity.records import ModelArrays, NatureArrays
from tightrope.ambiguity.rectangular_inner import inner, inner_safely
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import CLOSED, EXIT, BlockArrays, Rows, SystemArrays
from tightrope.solver.kernels.backups import best_exit, safe_step


@kernel
def sweep_groups(
    nature: NatureArrays,
    system: SystemArrays,
    block: BlockArrays,
    rows: Rows,
    values: FloatArray,
    shift: FloatArray,
    unit: float,
) -> float:
    """See `Kernel.sweep`. A row is written whenever a choice is better than those before it."""
    model, scratch, region = nature
    choice_start, transition_start, successor, lower, upper, _ = model
    order, key, mass = scratch
    expression, affine, joint, table_rows, reach, ball, _ = region.shape
    vertex_of, vertex, link, table, used = region.pool
    q, work = region.direction, region.work
    reward, discount, mode, leader, agent_maximises, nature_maximises, floor, ceiling, _ = system
    group_start, member, _, _ = block
    row_start, row_end, column, weight, self_weight, row_reward, row_choice = rows[:7]
    residual = 0.0
    for g in range(len(group_start) - 1):
        best = -np.inf if agent_maximises else np.inf
        taken = -1
        home = leader[member[group_start[g]]]
        for m in range(group_start[g], group_start[g + 1]):
            s = member[m]
            for c in range(choice_start[s], choice_start[s + 1]):
                if mode[c] == CLOSED:
                    continue
                first, last = transition_start[c], transition_start[c + 1]
                offset = -1
                if mode[c] == EXIT:
                    offset = best_exit(first, last, successor, upper, values, nature_maximises, leader, home)
                    if offset < 0:
                        continue
                    x = values[successor[first + offset]]
                else:
                    x = inner(
                        c,
                        first,
                        last,
                        successor,
                        lower,
                        upper,
                        values,
                        nature_maximises,
                        expression,
                        affine,
                        joint,
                        vertex_of,
                        table_rows,
                        reach,
                        vertex,
                        link,
                        table,
                        used,
                        ball,
                        order,
                        key,
                        mass,
                        q,
                        work,
                    )
                scale = discount[c] if len(discount) > 0 else 1.0
                earned = reward[c] if len(reward) > 0 else 0.0
                x = x * scale + earned
                if taken >= 0 and not (x > best if agent_maximises else x < best):
                    continue
                best, taken = x, c
                end = row_start[g]
                inside = 0.0
                if offset >= 0:
                    column[end] = successor[first + offset]
                    weight[end] = scale
                    end += 1
                else:
                    for i in range(last - first):
                        if mass[i] > 0.0:
                            if leader[successor[first + i]] == home:
                                inside += mass[i]
                            else:
                                column[end] = successor[first + i]
                                weight[end] = scale * mass[i]
                                end += 1
                row_end[g] = end
                self_weight[g] = scale * inside
                row_reward[g] = earned
        row_choice[g] = taken
        old = values[member[group_start[g]]]
        new = min(max(best + shift[g], floor), ceiling)
        if new != old:
            change = abs(new - old) / max(abs(new), unit)
            residual = max(residual, change) if change == change else np.inf
            for m in range(group_start[g], group_start[g + 1]):
                values[member[m]] = new
    return residual


@kernel
def backward_pass(
    nature: NatureArrays,
    system: SystemArrays,
    states: IndexArray,
    low: FloatArray,
    high: FloatArray,
    policy: OffsetArray,
) -> None:
    """See `Kernel.backward`."""
    model, scratch, region = nature
    choice_start, transition_start, successor, lower, upper, _ = model
    order, key, mass = scratch
    expression, affine, joint, table_rows, reach, ball, _ = region.shape
    vertex_of, vertex, link, table, used = region.pool
    q, work = region.direction, region.work
    reward, discount, mode, _, agent_maximises, nature_maximises, floor, ceiling, slack = system
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    best = np.empty(2)
    for s in states:
        best[0] = -np.inf if agent_maximises else np.inf
        best[1] = best[0]
        attained = 0 if agent_maximises else 1
        taken = -1
        for c in range(choice_start[s], choice_start[s + 1]):
            if mode[c] == CLOSED:
                continue
            for side in range(2):
                upward = side == 1
                x = inner_safely(
                    c,
                    transition_start[c],
                    transition_start[c + 1],
                    successor,
                    lower,
                    upper,
                    high if upward else low,
                    nature_maximises,
                    upward,
                    expression,
                    affine,
                    joint,
                    vertex_of,
                    table_rows,
                    reach,
                    vertex,
                    link,
                    table,
                    used,
                    ball,
                    order,
                    key,
                    mass,
                    q,
                    work,
                )
                x = safe_step(x, reward[c] if rewarded else 0.0, discount[c] if discounted else 1.0, upward)
                better = x > best[side] if agent_maximises else x < best[side]
                if side == attained and (taken < 0 or better):
                    taken = c
                if better:
                    best[side] = x
        if slack > 0.0 and best[0] < best[1]:
            if np.isfinite(best[0]):
                best[0] = max(best[0] - slack * abs(best[0]), floor)
            if np.isfinite(best[1]):
                best[1] = min(best[1] + slack * abs(best[1]), ceiling)
        low[s], high[s], policy[s] = best[0], best[1], taken


@kernel
def safe_values(
    nature: NatureArrays,
    system: SystemArrays,
    values: FloatArray,
    upward: bool,
    choices: OffsetArray,
    out: FloatArray,
) -> None:
    """out[i] = Φ_c(values) for c = choices[i], rounded to the side of `upward`."""
    model, scratch, region = nature
    _, transition_start, successor, lower, upper, _ = model
    order, key, mass = scratch
    expression, affine, joint, table_rows, reach, ball, _ = region.shape
    vertex_of, vertex, link, table, used = region.pool
    q, work = region.direction, region.work
    reward, discount, nature_maximises = system.reward, system.discount, system.nature_maximises
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    for i in range(len(choices)):
        c = choices[i]
        x = inner_safely(
            c,
            transition_start[c],
            transition_start[c + 1],
            successor,
            lower,
            upper,
            values,
            nature_maximises,
            upward,
            expression,
            affine,
            joint,
            vertex_of,
            table_rows,
            reach,
            vertex,
            link,
            table,
            used,
            ball,
            order,
            key,
            mass,
            q,
            work,
        )
        out[i] = safe_step(x, reward[c] if rewarded else 0.0, discount[c] if discounted else 1.0, upward)


@kernel
def exit_values(
    model: ModelArrays,
    system: SystemArrays,
    values: FloatArray,
    upward: bool,
    choices: OffsetArray,
    home: IndexArray,
    nothing: float,
    out: FloatArray,
) -> None:
    """Overwrite the values of choices that are left out, and of those at which nature picks its way out."""
    transition_start, successor, upper = model.transition_start, model.successor, model.upper
    reward, discount, mode, leader, _, nature_maximises = system[:6]
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    for i in range(len(choices)):
        c = choices[i]
        if mode[c] == CLOSED:
            out[i] = nothing
        elif mode[c] == EXIT:
            first, last = transition_start[c], transition_start[c + 1]
            offset = best_exit(first, last, successor, upper, values, nature_maximises, leader, home[i])
            out[i] = nothing
            if offset >= 0:
                out[i] = safe_step(
                    values[successor[first + offset]],
                    reward[c] if rewarded else 0.0,
                    discount[c] if discounted else 1.0,
                    upward,
                )


@kernel
def answers(
    nature: NatureArrays,
    values: FloatArray,
    maximise: bool,
    out: FloatArray,
) -> None:
    """See `Kernel.answer`."""
    model, scratch, region = nature
    _, transition_start, successor, lower, upper, _ = model
    order, key, mass = scratch
    expression, affine, joint, table_rows, reach, ball, _ = region.shape
    vertex_of, vertex, link, table, used = region.pool
    q, work = region.direction, region.work
    for c in range(len(transition_start) - 1):
        first, last = transition_start[c], transition_start[c + 1]
        inner(
            c,
            first,
            last,
            successor,
            lower,
            upper,
            values,
            maximise,
            expression,
            affine,
            joint,
            vertex_of,
            table_rows,
            reach,
            vertex,
            link,
            table,
            used,
            ball,
            order,
            key,
            mass,
            q,
            work,
        )
        for i in range(last - first):
            out[first + i] = mass[i]
