"""Values of a chain in continuous time after time t: uniformisation with certified bounds.

Let Λ be at least every exit rate and P = I + Q/Λ for the generator Q. Then E[f(X_t)] = Σ_k w_k·(P^k f) with
w_k = P(N = k), N Poisson with mean Λt, and the reward until t at rate ρ is Σ_k P(N > k)·(P^k ρ)/Λ. The bounds
include the truncated tail (`poisson`) and rounding, a known relative error as all numbers are nonnegative.

With intervals of rates nature picks rates at every step and knows k: (max P)^k f is at least every P₁⋯P_k f.
So the bounds hold for every fixed choice of rates, and for rates that change with time, state and history
(thinning: given the number of events of a Poisson process with rate Λ, the i-th moves the chain by some P_i
within the intervals). In the limit of large Λ they are tight for such rates.

A step is x ← b + stay·x + Σ q·x(successor), all nonnegative, so relative errors stay relative: after n steps
at most γ(n·(d + 4)), d transitions per state. With intervals of rates nature picks one end for every group of
transitions with one rate: low·Σ x(successor) + (high − low)·count·x or high·Σ x(successor), whichever is
larger (or smaller), plus the state's own rest, again nonnegative. Unsigned indices take 40 % off a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from time import monotonic
from typing import NamedTuple

import numpy as np

from tightrope.continuous.poisson import PoissonWeights, poisson_weights
from tightrope.errors import CannotCertify
from tightrope.model.continuous import CTMC, IntervalCTMC
from tightrope.model.graph.components import backward_reachable
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, offsets, ranges
from tightrope.numerics.jit import kernel, stop_interpreting
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.rounding import UNIT, error_factor


class Steps(NamedTuple):
    """A uniformised chain over some states: numbers per unit of the uniform rate."""

    start: OffsetArray
    successor: IndexArray
    weight: FloatArray
    stay: FloatArray
    constant: FloatArray


class RobustSteps(NamedTuple):
    """The same under intervals: group g of a state's transitions has one rate in [low[g], high[g]].

    `gain[g]` is the number of the group's transitions to states worth 1. `stay` is what the highest rates
    leave to the state itself.
    """

    group_start: OffsetArray
    start: OffsetArray
    successor: IndexArray
    size: FloatArray
    low: FloatArray
    high: FloatArray
    gain: FloatArray
    stay: FloatArray


@kernel
def run_steps(chain: Steps, values: FloatArray, shares: FloatArray, total: FloatArray) -> FloatArray:
    """Add shares[k]·(values after k steps) to `total`, for all k; the values after the last step."""
    start, successor, weight, stay, constant = chain
    states = np.uint64(len(stay))
    now, after = values.copy(), np.empty_like(values)
    if shares[0] != 0.0:
        total += shares[0] * now
    for k in range(1, len(shares)):
        share = shares[k]
        first = np.uint64(0)
        for s in range(states):
            value = constant[s] + stay[s] * now[s]
            last = np.uint64(start[s + np.uint64(1)])
            for t in range(first, last):
                value += weight[t] * now[np.uint64(successor[t])]
            first = last
            after[s] = value
            total[s] += share * value
        now, after = after, now
    return now


@kernel
def run_robust_steps(
    chain: RobustSteps, values: FloatArray, shares: FloatArray, total: FloatArray, maximise: bool
) -> FloatArray:
    """The same where nature picks rates at every step, for or against the value."""
    group_start, start, successor, size, low, high, gain, stay = chain
    states = np.uint64(len(stay))
    now, after = values.copy(), np.empty_like(values)
    if shares[0] != 0.0:
        total += shares[0] * now
    for k in range(1, len(shares)):
        share = shares[k]
        for s in range(states):
            own = now[s]
            value = stay[s] * own
            for g in range(np.uint64(group_start[s]), np.uint64(group_start[s + np.uint64(1)])):
                others = gain[g]
                for t in range(np.uint64(start[g]), np.uint64(start[g + np.uint64(1)])):
                    others += now[np.uint64(successor[t])]
                fast = high[g] * others
                slow = low[g] * others + (high[g] - low[g]) * size[g] * own
                if maximise == (fast > slow):
                    value += fast
                else:
                    value += slow
            after[s] = value
            total[s] += share * value
        now, after = after, now
    return now


Pair = tuple[FloatArray, FloatArray]
"""Lower and upper bounds, one for every state."""

_AT_ONCE = 100_000_000
"""Transitions that a compiled call looks at: some tenths of a second."""

_TINY = 1e-280
"""More than underflow can add up to."""

_SPREAD = 1.0 + 2.0**-20
"""The uniform rate of interval chains is so much above their largest exit rate."""


@dataclass(frozen=True, eq=False)
class TransientClock:
    """A chain in which only `active` states move, uniformised; the others keep their worth."""

    rate: Fraction
    active: OffsetArray
    steps: Steps | RobustSteps
    width: int
    """The most numbers that are added up in a step of a state."""

    def run(
        self, values: FloatArray, shares: FloatArray, horizon: TimeHorizon
    ) -> tuple[FloatArray, float, float]:
        """Σ_k shares[k]·(values after k steps), with its relative and absolute errors (per unit).

        Steps are taken some at a time: in between an interrupt is heard, the deadline looked at, and whether
        a step changes anything. Where not a bit changes, no later step does, and the sum is finished at once.
        """
        stop_interpreting()
        total = np.zeros(len(self.active))
        number = len(shares)
        at_once = max(1, _AT_ONCE // (len(self.steps.successor) + len(self.active)))
        for first in range(0, number, at_once):
            if monotonic() > horizon.deadline:
                raise CannotCertify(
                    f"the time limit was reached after {first:,} of {number:,} steps of uniformisation. Try "
                    "increasing the time limit, or a shorter time bound."
                )
            part = shares[max(first - 1, 0) : first + at_once].copy()
            if first:
                part[0] = 0.0  # these values have been counted
            values = self._advance(values, part, total, horizon.maximise)
            rest = first + at_once
            if rest < number and np.array_equal(
                values, self._advance(values, np.zeros(2), np.zeros(len(total)), horizon.maximise)
            ):
                total += float(shares[rest:].sum()) * values
                break
        if isinstance(self.steps, Steps):
            return total, error_factor(number * (self.width + 6) + 4), 0.0
        return total, error_factor(2 * number + 4), number * (4 * self.width + 12) * UNIT * 1.01

    def _advance(
        self, values: FloatArray, shares: FloatArray, total: FloatArray, maximise: bool
    ) -> FloatArray:
        """The values after len(shares) − 1 more steps; `total` grows on the way."""
        chain = self.steps
        if isinstance(chain, Steps):
            return run_steps(chain, values, shares, total)
        return run_robust_steps(chain, values, shares, total, maximise)


def uniformise(chain: CTMC | IntervalCTMC, active: BoolArray, worth: FloatArray) -> TransientClock | None:
    """The chain whose `active` states move and whose others are worth `worth`; None where none is active."""
    members = np.flatnonzero(active)
    if not len(members):
        return None
    if isinstance(chain, CTMC):
        return _uniformise(chain, members, active, worth)
    return _uniformise_robustly(chain, members, active, worth)


def _uniformise(chain: CTMC, members: OffsetArray, active: BoolArray, worth: FloatArray) -> TransientClock:
    signature = chain.signatures.of_choice[members]
    used = np.unique(signature)
    exits = chain.exit_exact.take(used.astype(np.int64))
    rate = Fraction(float(exits.to_float_up().max()))
    left = RationalArray.constant(rate, len(used)) - exits
    stay_of: FloatArray = np.zeros(len(chain.signatures))
    stay_of[used] = (left / RationalArray.constant(rate, len(used))).to_float()
    transition, owner = ranges(chain.transition_start, members)
    weight = chain.rate[transition] / float(rate)
    inside, place = _places(chain, transition, members, active)
    outside = ~inside
    constant = np.bincount(
        owner[outside],
        weights=weight[outside] * worth[chain.successor[transition[outside]]],
        minlength=len(members),
    )
    steps = Steps(
        offsets(np.bincount(owner[inside], minlength=len(members))),
        place[inside],
        np.ascontiguousarray(weight[inside]),
        stay_of[signature],
        constant.astype(np.float64),
    )
    return TransientClock(rate, members, steps, int(np.bincount(owner).max()))


def _uniformise_robustly(
    chain: IntervalCTMC, members: OffsetArray, active: BoolArray, worth: FloatArray
) -> TransientClock:
    transition, owner = ranges(chain.transition_start, members)
    longest = int(np.bincount(owner).max())
    expression = chain.expression[transition]
    order = np.lexsort((expression, owner))
    transition, owner, expression = transition[order], owner[order], expression[order]
    is_first = np.r_[True, (owner[1:] != owner[:-1]) | (expression[1:] != expression[:-1])]
    group = np.cumsum(is_first) - 1
    groups = int(group[-1]) + 1
    size = np.bincount(group, minlength=groups).astype(np.float64)
    of_group, state = expression[is_first], owner[is_first]
    most = np.bincount(state, weights=chain.upper[of_group] * size, minlength=len(members))
    rate = float(most.max()) * _SPREAD * (1 + error_factor(longest + 2)) or 1.0
    inside, place = _places(chain, transition, members, active)
    outside = ~inside
    gain = np.bincount(
        group[outside], weights=worth[chain.successor[transition[outside]]], minlength=groups
    ).astype(np.float64)
    steps = RobustSteps(
        offsets(np.bincount(state, minlength=len(members))),
        offsets(np.bincount(group[inside], minlength=groups)),
        place[inside],
        size,
        chain.lower[of_group] / rate,
        chain.upper[of_group] / rate,
        gain,
        np.maximum(1.0 - most / rate, 0.0),
    )
    return TransientClock(Fraction(rate), members, steps, longest)


def _places(
    chain: CTMC | IntervalCTMC, transition: OffsetArray, members: OffsetArray, active: BoolArray
) -> tuple[BoolArray, IndexArray]:
    """Which transitions lead to active states, and the place of these among the members."""
    place: IndexArray = np.zeros(len(active), dtype=np.int32)
    place[members] = np.arange(len(members), dtype=np.int32)
    successor = chain.successor[transition]
    return active[successor], place[successor]


def _can_earn(chain: CTMC | IntervalCTMC, active: BoolArray, worthy: BoolArray) -> BoolArray:
    """States with a path through active states to a state that is worth something; others are worth 0."""
    possible = np.not_equal(chain.exact.numerator, 0) if isinstance(chain, CTMC) else chain.upper > 0
    happens = possible.astype(np.bool_)[chain.expression]
    numbers = happens.astype(np.float64)
    return backward_reachable(Support(chain.structure, numbers, numbers, happens), worthy, through=active)


@dataclass(frozen=True)
class TimeHorizon:
    """A time, how much of the Poisson probability may be left out, and nature's direction under intervals."""

    time: Fraction
    tail: float
    maximise: bool = True
    deadline: float = inf
    """When to give up, on the clock of `time.monotonic`."""


def expect_at(
    chain: CTMC | IntervalCTMC, active: BoolArray, worth: FloatArray, values: FloatArray, horizon: TimeHorizon
) -> tuple[Pair, int]:
    """Bounds on E[f(X_t)] for every state, and the number of steps.

    States that are not `active` stay where they are and keep their `worth`; f is `values` on active ones.
    Both are nonnegative.
    """
    if horizon.time == 0 or not active.any():
        same = np.where(active, values, worth)
        return (same, same), 0
    moving = active & _can_earn(chain, active, np.where(active, values, worth) > 0)
    worth = np.where(active & ~moving, 0.0, worth)
    active = moving
    clock = uniformise(chain, active, worth)
    if clock is None:
        return (worth, worth), 0
    weights = poisson_weights(clock.rate * horizon.time, horizon.tail)
    shares = np.zeros(weights.last + 1)
    shares[weights.first :] = weights.weight
    result, relative, absolute = clock.run(np.ascontiguousarray(values[clock.active]), shares, horizon)
    peak = float(max(worth[~active].max(initial=0.0), values[active].max(initial=0.0)))
    outside = (weights.left + weights.right) * peak
    return _spread(
        active, worth, bounds_of(result, relative, absolute * peak, outside, weights)
    ), weights.last


def earn_until(chain: CTMC | IntervalCTMC, earned: FloatArray, horizon: TimeHorizon) -> tuple[Pair, int]:
    """Bounds on what is earned until a time at the rates `earned` ≥ 0, for every state."""
    nothing = np.zeros(chain.states)
    active = _can_earn(chain, np.ones(chain.states, np.bool_), earned > 0)
    clock = uniformise(chain, active, nothing)
    if clock is None or horizon.time == 0:
        return (nothing, nothing), 0
    mean = clock.rate * horizon.time
    weights = poisson_weights(mean, horizon.tail / max(1.0, float(mean)))
    more = np.zeros(weights.last + 1)  # of k: the weight of all numbers of events above k
    after = np.cumsum(weights.weight[::-1])[::-1]
    more[: weights.first] = after[0]
    more[weights.first : weights.last] = after[1:]
    result, relative, absolute = clock.run(np.ascontiguousarray(earned[clock.active]), more, horizon)
    rate = float(clock.rate)
    peak = float(earned.max(initial=0.0))
    missing = weights.first * weights.left + (weights.last + 1) * weights.right + weights.excess
    relative += error_factor(len(weights.weight) + 4)
    steps = float(mean) * 1.01 + 1
    low, high = bounds_of(result, relative, absolute * peak * steps, missing * peak * 1.01, weights)
    bounds = low / rate * (1 - 4 * UNIT), high / rate * (1 + 4 * UNIT)
    return _spread(active, nothing, bounds), weights.last


def bounds_of(
    result: FloatArray, relative: float, absolute: float, outside: float, weights: PoissonWeights
) -> Pair:
    """The lower and upper bound of a weighted sum with its errors."""
    error = (relative + weights.error) * 1.01 + 8 * UNIT
    result, most = np.where(np.isfinite(result), result, 0.0), np.where(np.isfinite(result), result, np.inf)
    low = np.maximum(result * ((1 - error) / weights.high_total) - absolute - _TINY, 0.0)
    high = most * ((1 + error) / weights.low_total) + (absolute + outside) * (1 + 8 * UNIT) + _TINY
    return low, high


def _spread(active: BoolArray, worth: FloatArray, result: Pair) -> Pair:
    low, high = worth.copy(), worth.copy()
    low[active], high[active] = result
    return low, high
