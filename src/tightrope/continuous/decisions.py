"""Markov automata within a time: optimal values with certified bounds on both sides.

Let Λ be at least every exit rate. Events of a Poisson process with rate Λ move the automaton from waiting
states, a state with exit rate E with probability E/Λ; between events choices are made at once where some are
immediate (maximal progress). How many events N happen until t does not depend on who chooses, and f(X_t)
depends on what happens at the first N events alone. So (Butkova, Hatefi, Hermanns, Krčál, ATVA 2015)

* nobody who sees the clock does better than one who is told N beforehand: Σ_k P(N = k)·(T^k f), with T the
  optimal backup of one event, is at least every maximum and at most every minimum;
* one who sees only how many events there were does no better than the best: with W_{n+1} = 0 and
  W_i = P(N = i)·f + T W_{i+1}, states that keep their worth w at P(N ≥ i)·w, W_0 is at most the maximum and
  at least the minimum.

Both meet for large Λ; without choices they are equal for every Λ. Immediate states are backed up in
topological order; where they form circles, lower values rise from 0 and upper ones fall from the largest
value there is, so that they stay on their sides whenever the iteration is cut off. A set of immediate states
that can be kept to for ever (Zeno) would stop time, and is refused. All numbers are nonnegative: rounding is
a relative error that is known in advance, that of the nearest float64 behind exact numbers included (Λ is
some eighth above the largest exit rate, so that no self-loop is a small difference).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tightrope.continuous.poisson import PoissonWeights, poisson_weights
from tightrope.continuous.transient import Pair, TimeHorizon
from tightrope.errors import InputError
from tightrope.late import dataclass
from tightrope.model.continuous import MarkovAutomaton
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.jit import kernel, stop_interpreting
from tightrope.numerics.rounding import UNIT, error_factor

_ABOVE = 1.125
_EXTRA = 40
"""Roundings of a backup beside one for every transition: those of shares, moves, stays and given numbers."""
_MOST_SWEEPS = 2000
_TINY = 1e-280


class EventSteps(NamedTuple):
    """The uniformised automaton: active waiting states, active immediate ones in order, and the others."""

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: OffsetArray
    probability: FloatArray
    waiting: OffsetArray
    move: FloatArray
    immediate: OffsetArray
    still: OffsetArray
    worth: FloatArray


@kernel
def run_events(
    model: EventSteps,
    ends: FloatArray,
    end_share: FloatArray,
    worth_share: FloatArray,
    share: FloatArray,
    maximise: bool,
    top: float,
    most_sweeps: int,
) -> tuple[FloatArray, int]:
    """Σ_k share[k]·x_k with x_k = end_share[k]·ends + T x_{k−1}, x_{−1} = 0, and the number of sweeps over
    immediate states; states that stand still have worth_share[k]·worth. Circles begin at top·worth_share[k].
    """
    choice_start, transition_start, successor, probability, waiting, move, immediate, still, worth = model
    states = len(ends)
    now, after, total = np.zeros(states), np.zeros(states), np.zeros(states)
    sweeps = 0
    for k in range(len(share)):
        for s in still:
            after[s] = worth_share[k] * worth[s]
        for s in waiting:
            value = 0.0
            first = choice_start[s]
            for t in range(transition_start[first], transition_start[first + 1]):
                value += probability[t] * now[successor[t]]
            after[s] = end_share[k] * ends[s] + move[s] * value + (1.0 - move[s]) * now[s]
        for s in immediate:
            after[s] = top * worth_share[k]
        for _ in range(most_sweeps):
            sweeps += 1
            change = 0.0
            for s in immediate:
                best = -1.0
                for c in range(choice_start[s], choice_start[s + 1]):
                    value = 0.0
                    for t in range(transition_start[c], transition_start[c + 1]):
                        value += probability[t] * after[successor[t]]
                    if best < 0.0 or (value > best) == maximise:
                        best = value
                change = max(change, abs(best - after[s]))
                after[s] = best
            if change <= 1e-17 * worth_share[k]:
                break
        if share[k] != 0.0:
            for s in range(states):
                total[s] += share[k] * after[s]
        now, after = after, now
    return total, sweeps


@dataclass(frozen=True)
class EventHorizon(TimeHorizon):
    """How many times as many events as are needed: more bring the two bounds closer."""

    events: int = 1


def refuse_zeno(automaton: MarkovAutomaton, within: BoolArray | None = None) -> None:
    """Refuse an automaton in which somebody can make choices for ever while no time passes."""
    structure = automaton.structure
    inside = ~automaton.is_markovian
    if within is not None:
        inside &= within
    starts = structure.transition_start[:-1]
    while inside.any():
        stays = np.logical_and.reduceat(inside[structure.successor], starts)
        remaining = inside & np.logical_or.reduceat(stays, structure.choice_start[:-1])
        if (remaining == inside).all():
            state = structure.state_name(int(np.flatnonzero(inside)[0]))
            raise InputError(
                f"in state {state} choices can be made for ever while no time passes (a Zeno run), so "
                "questions about time have no meaning",
                hint="let absorbing states wait: <> done -> 1 : true;",
            )
        inside = remaining


def expect_optimally(
    automaton: MarkovAutomaton,
    active: BoolArray,
    worth: FloatArray,
    values: FloatArray,
    horizon: TimeHorizon,
) -> tuple[Pair, int]:
    """Bounds on the optimal E[f(X_t)] for every state, and the number of events.

    States that are not `active` keep their `worth`; f is `values` on active waiting ones. Both are
    nonnegative.
    """
    stop_interpreting()
    waits, structure = automaton.is_markovian, automaton.structure
    earning = np.where(active, np.where(waits, values, 0.0), worth) > 0
    moving = active & _may_earn(automaton, active, earning, horizon.maximise)
    worth, active = np.where(active & ~moving, 0.0, worth), moving
    if not active.any():
        return (worth, worth), 0
    refuse_zeno(automaton, active)
    model, rate, depth = _uniformise(automaton, active, worth, getattr(horizon, "events", 1))
    weights = poisson_weights(rate * horizon.time, horizon.tail)
    number = weights.last + 1
    exact = np.zeros(number)
    exact[weights.first :] = weights.weight
    later = np.cumsum(exact[::-1])
    single = np.zeros(number)
    single[0] = 1.0
    ends = np.where(active & waits, values, 0.0)
    peak = float(max(worth[~active].max(initial=0.0), ends.max(initial=0.0)))
    most = 1 if depth is not None else _MOST_SWEEPS
    length = int(np.diff(structure.transition_start).max())
    results = []
    for is_informed, is_lower in ((True, not horizon.maximise), (False, horizon.maximise)):
        shares = (
            (single, np.ones(number), exact)
            if is_informed
            else (exact[::-1].copy(), later, single[::-1].copy())
        )
        top = 0.0 if is_lower else peak
        result, sweeps = run_events(model, ends, *shares, horizon.maximise, top, most)
        rounds = number + sweeps * (len(model.immediate) if depth is None else depth)
        results.append(_bound(result, rounds * (length + _EXTRA) + number, peak, weights, is_lower))
    low, high = results if not horizon.maximise else results[::-1]
    low[~active], high[~active] = worth[~active], worth[~active]
    return (low, np.maximum(low, high)), 2 * weights.last


def _bound(
    result: FloatArray, roundings: int, peak: float, weights: PoissonWeights, is_lower: bool
) -> FloatArray:
    error = (error_factor(roundings + 8) + weights.error) * 1.01 + 8 * UNIT
    if is_lower:
        lower: FloatArray = np.maximum(result * ((1 - error) / weights.high_total) - _TINY, 0.0)
        return lower
    outside = (weights.left + weights.right) * peak
    upper: FloatArray = result * ((1 + error) / weights.low_total) + outside * (1 + 8 * UNIT) + _TINY
    return np.minimum(upper, peak)


def _uniformise(
    automaton: MarkovAutomaton, active: BoolArray, worth: FloatArray, events: int
) -> tuple[EventSteps, Fraction, int | None]:
    """The model, its rate, and how deep immediate states lie behind each other; None where in circles."""
    structure, waits = automaton.structure, automaton.is_markovian
    fastest = float(automaton.exit_rate[active & waits].max(initial=0.0)) or 1.0
    rate = fastest * _ABOVE * events
    immediate, depth = _ordered(automaton, active & ~waits)
    model = EventSteps(
        structure.choice_start.astype(np.int64),
        structure.transition_start.astype(np.int64),
        structure.successor.astype(np.int64),
        automaton.probability.copy(),
        np.flatnonzero(active & waits),
        automaton.exit_rate / rate,
        immediate,
        np.flatnonzero(~active),
        worth.copy(),
    )
    return model, Fraction(rate), depth


def _ordered(automaton: MarkovAutomaton, immediate: BoolArray) -> tuple[OffsetArray, int | None]:
    """Immediate states, those behind others first, and how many levels they have."""
    structure = automaton.structure
    owner = structure.choice_state[structure.transition_choice]
    left = immediate.copy()
    levels: list[OffsetArray] = []
    while left.any():
        blocked = np.zeros(structure.states, np.bool_)
        blocked[owner[left[structure.successor]]] = True
        ready = left & ~blocked
        if not ready.any():
            return np.concatenate([*levels, np.flatnonzero(left)]), None
        levels.append(np.flatnonzero(ready))
        left &= ~ready
    return np.concatenate([np.zeros(0, np.int64), *levels]).astype(np.int64), len(levels)


def _may_earn(automaton: MarkovAutomaton, active: BoolArray, worthy: BoolArray, maximise: bool) -> BoolArray:
    """States that are worth more than 0 for who maximises, or minimises: the others are worth 0."""
    structure, happens = automaton.structure, automaton.probability > 0
    starts, over = structure.transition_start[:-1], np.logical_or if maximise else np.logical_and
    result = worthy.copy()
    while True:
        risks = np.logical_or.reduceat(happens & result[structure.successor], starts)
        more = result | (active & over.reduceat(risks, structure.choice_start[:-1]))
        if (more == result).all():
            return result
        result = more
