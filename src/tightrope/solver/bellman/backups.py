"""Bellman backups as loops over plain arrays: Φ rounded to the safe side, for every kind of sets.

`region` is None for ordinary and interval models, whose inner problem is a mean or o-maximization. For
rectangular sets it is the region (`RegionArrays`). The compiler drops the branch that the type of `region`
excludes. A reward and a discount add an error of at most 2⁻⁵⁰·(|reward| + |discounted value|).
"""

from __future__ import annotations

import sys

import numpy as np

from tightrope.ambiguity.o_maximization import (
    UNDERFLOW,
    ModelArrays,
    Row,
    Scratch,
    mean_safely,
    o_maximize_both,
    o_maximize_exactly,
    o_maximize_safely,
    spread_exactly,
)
from tightrope.ambiguity.rectangular_inner import RegionArrays, inner, inner_safely
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import inlined, kernel
from tightrope.solver.equations.system import CLOSED, EXIT, BlockArrays, SystemArrays

STEP_ERROR = 2.0**-50
MOST = sys.float_info.max
"""Sums beyond it are rounded to it where infinity is not the safe side."""

LoopArrays = tuple[ModelArrays, Scratch]
"""What every loop takes: the model, and room for one choice."""


@inlined
def best_exit(
    first: int,
    last: int,
    model: ModelArrays,
    values: FloatArray,
    maximise: bool,
    leader: IndexArray,
    home: int,
) -> int:
    """The offset of the best successor outside the group `home`, −1 if there is none."""
    offset = -1
    best = 0.0
    for t in range(first, last):
        s = model.successor[t]
        if model.upper[t] > 0.0 and leader[s] != home:
            x = values[s] if maximise else -values[s]
            if offset < 0 or x > best:
                offset, best = t - first, x
    return offset


@inlined
def safe_step(x: float, reward: float, discount: float, upward: bool) -> float:
    """reward + discount·x, rounded to the side of `upward`."""
    x *= discount
    if (discount != 1.0 or reward != 0.0) and not np.isinf(x) and not (x == 0.0 and reward == 0.0):
        error = STEP_ERROR * min(abs(reward) + abs(x), MOST) + UNDERFLOW
        x = max(x + reward, -MOST) + error if upward else min(x + reward, MOST) - error
    return x


@inlined
def _safe_value(
    c: int,
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    values: FloatArray,
    upward: bool,
    exactly: bool | None,
) -> float:
    """Nature's answer at a choice, rounded to the side of `upward`; nan where its support is not told."""
    model, scratch = arrays
    first, last = model.transition_start[c], model.transition_start[c + 1]
    row = Row(first, last, model, values, system.nature_maximises, scratch)
    if region is not None:
        x = inner_safely(c, row, upward, region)
    elif model.plain:
        x = mean_safely(first, last, model.successor, model.lower, values, upward)
    else:
        x = o_maximize_safely(row, upward, exactly)
    return x


@kernel
def safe_groups(
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    block: BlockArrays,
    values: FloatArray,
    upward: bool,
    out: FloatArray,
    exactly: bool | None,
) -> bool:
    """See `BellmanOperator.safe`; whether all supports could be told (`o_maximize_safely`)."""
    model = arrays[0]
    choice_start, transition_start, successor = model.choice_start, model.transition_start, model.successor
    reward, discount, mode, leader, agent_maximises, nature_maximises = system[:6]
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    group_start, member, visit, _ = block
    is_clear = True
    for i in range(len(group_start) - 1):
        g = visit[i] if len(visit) > 0 else i
        best = -np.inf if agent_maximises else np.inf
        home = leader[member[group_start[g]]]
        for m in range(group_start[g], group_start[g + 1]):
            s = member[m]
            for c in range(choice_start[s], choice_start[s + 1]):
                if mode[c] == CLOSED:
                    continue
                if mode[c] == EXIT:
                    first, last = transition_start[c], transition_start[c + 1]
                    offset = best_exit(first, last, model, values, nature_maximises, leader, home)
                    if offset < 0:
                        continue
                    x = values[successor[first + offset]]
                else:
                    x = _safe_value(c, arrays, region, system, values, upward, exactly)
                is_clear &= not np.isnan(x)
                x = safe_step(x, reward[c] if rewarded else 0.0, discount[c] if discounted else 1.0, upward)
                best = max(best, x) if agent_maximises else min(best, x)
        out[g] = best
    return is_clear


@inlined
def _safe_values(
    c: int,
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    low: FloatArray,
    high: FloatArray,
    exactly: bool | None,
) -> tuple[float, float]:
    """Nature's answers at a choice to lower values, rounded down, and to upper ones, rounded up."""
    model, scratch = arrays
    first, last = model.transition_start[c], model.transition_start[c + 1]
    one = Row(first, last, model, low, system.nature_maximises, scratch)
    other = Row(first, last, model, high, system.nature_maximises, scratch)
    if region is not None:
        a = inner_safely(c, one, False, region)
        b = inner_safely(c, other, True, region)
    elif last - first == 1:  # which has all of the mass
        to = np.uint32(model.successor[np.uint64(first)])
        a, b = low[to], high[to]
    elif model.plain:
        a = mean_safely(first, last, model.successor, model.lower, low, False)
        b = mean_safely(first, last, model.successor, model.lower, high, True)
    else:
        a, b, is_same = o_maximize_both(one, other)
        if exactly is not None:
            unclear = np.isnan(a)
            if unclear:
                a = o_maximize_exactly(one, False)
        if not is_same or np.isnan(b):
            b = o_maximize_safely(other, True, exactly)
    return a, b


@kernel
def backward_pass(
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    states: IndexArray,
    low: FloatArray,
    high: FloatArray,
    policy: OffsetArray,
    exactly: bool | None,
) -> int:
    """See `BellmanOperator.backward`; how many states were done until supports of one could not be told."""
    choice_start = arrays[0].choice_start
    reward, discount, mode, _, agent_maximises, _, floor, ceiling, slack = system
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    done = 0
    for s in states:
        is_clear = True
        best_low = -np.inf if agent_maximises else np.inf
        best_high = best_low
        chosen = -1
        for c in range(choice_start[s], choice_start[s + 1]):
            if mode[c] == CLOSED:
                continue
            a, b = _safe_values(c, arrays, region, system, low, high, exactly)
            is_clear &= not (np.isnan(a) or np.isnan(b))
            earned, factor = reward[c] if rewarded else 0.0, discount[c] if discounted else 1.0
            a, b = safe_step(a, earned, factor, False), safe_step(b, earned, factor, True)
            if agent_maximises:
                if chosen < 0 or a > best_low:
                    best_low, chosen = a, c
                best_high = max(best_high, b)
            else:
                best_low = min(best_low, a)
                if chosen < 0 or b < best_high:
                    best_high, chosen = b, c
        widens = slack > 0.0
        if region is not None:
            widens = widens and best_low < best_high
        if widens:
            if np.isfinite(best_low):
                best_low = max(best_low - slack * abs(best_low), floor)
            if np.isfinite(best_high):
                best_high = min(best_high + slack * abs(best_high), ceiling)
        if not is_clear:
            break
        low[s], high[s], policy[s] = best_low, best_high, chosen
        done += 1
    return done


@kernel
def safe_choice_values(
    arrays: LoopArrays,
    region: RegionArrays | None,
    system: SystemArrays,
    values: FloatArray,
    upward: bool,
    choices: tuple[int, int],
    out: FloatArray,
    exactly: bool | None,
) -> bool:
    """See `BellmanOperator.safe_choices`; whether all supports could be told (`o_maximize_safely`)."""
    reward, discount = system.reward, system.discount
    rewarded, discounted = len(reward) > 0, len(discount) > 0
    is_clear = True
    for c in range(choices[0], choices[1]):
        x = _safe_value(c, arrays, region, system, values, upward, exactly)
        is_clear &= not np.isnan(x)
        out[c] = safe_step(x, reward[c] if rewarded else 0.0, discount[c] if discounted else 1.0, upward)
    return is_clear


@kernel
def answers(
    arrays: LoopArrays, region: RegionArrays | None, values: FloatArray, maximise: bool, out: FloatArray
) -> None:
    """See `BellmanOperator.answer`."""
    model, scratch = arrays
    transition_start, lower, plain = model.transition_start, model.lower, model.plain
    for c in range(len(transition_start) - 1):
        first, last = transition_start[c], transition_start[c + 1]
        row = Row(first, last, model, values, maximise, scratch)
        if region is not None:
            inner(c, row, region)
        elif not plain:
            spread_exactly(row)
        for i in range(last - first):
            out[first + i] = lower[first + i] if plain and region is None else scratch.mass[i]


@kernel
def optimal(
    model: ModelArrays,
    scratch: Scratch,
    possible: BoolArray,
    values: FloatArray,
    maximise: bool,
    out: BoolArray,
) -> None:
    """See `BellmanOperator.optimal_transitions`: those with mass, and those that tie with the pivot."""
    transition_start, successor, mass = model.transition_start, model.successor, scratch.mass
    for c in range(len(transition_start) - 1):
        first, last = transition_start[c], transition_start[c + 1]
        pivot = spread_exactly(Row(first, last, model, values, maximise, scratch))
        for i in range(last - first):
            tied = pivot >= 0 and values[successor[first + i]] == values[successor[first + pivot]]
            out[first + i] = possible[first + i] and (mass[i] > 0.0 or tied)
