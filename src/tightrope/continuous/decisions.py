"""Time-bounded values of Markov automata, with certified bounds on both sides.

Events of a Poisson process with rate Λ, at least every exit rate E, move a waiting state with probability
E/Λ; immediate choices are made between events. Who knows the number of events beforehand is at least as good
as any policy, who only counts them at most optimal (Butkova, Hatefi, Hermanns, Krčál, 2015). Where choices
depend on the time left, `TimeSlices` follows a policy per slice and adds a bound on all advantages over it
(docs/proofs/values.md). Immediate states that can go on for ever (Zeno) are refused. All numbers are
nonnegative, so rounding is a known relative error.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.continuous.poisson import PoissonWeights, poisson_weights
from tightrope.continuous.transient import Pair, TimeHorizon, bounds_of
from tightrope.errors import InputError
from tightrope.model.continuous import MarkovAutomaton
from tightrope.model.graph.components import maximal_end_components, strongly_connected_components
from tightrope.model.graph.qualitative import positive
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, offsets, ranges
from tightrope.numerics.jit import kernel, stop_interpreting
from tightrope.numerics.rounding import down, error_factor, up

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ABOVE = 1.125
_EXTRA = 40
"""Roundings of a backup beside one for every transition: those of shares, moves, stays and given numbers."""
_MOST_SWEEPS = 2000
_POINTS = 8
"""Of a slice, at which advantages are looked at."""
_SHORTEST = 1e-7
"""Events that a slice has on average at least: it is taken as it is."""
_MOST_NUMBERS = 4_000_000
"""Entries of the table of a slice."""


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
    bonus: FloatArray
    """Of immediate states, at every visit."""


class Shares(NamedTuple):
    """Weights by the number of events k: of the end, of states that stand still, and of the result."""

    end: FloatArray
    worth: FloatArray
    total: FloatArray

    @staticmethod
    def informed(total: FloatArray) -> Shares:
        """Who is told the number of events."""
        end = np.zeros(len(total))
        end[0] = 1.0
        return Shares(end, np.ones(len(total)), total)

    @staticmethod
    def counting(total: FloatArray) -> Shares:
        """Who counts events."""
        return Shares(total[::-1].copy(), np.cumsum(total[::-1]), Shares.informed(total).end[::-1].copy())


@kernel
def run_events(
    model: EventSteps,
    ends: FloatArray,
    shares: Shares,
    maximise: bool,
    side: tuple[bool, FloatArray],
    most_sweeps: int,
    table: FloatArray,
) -> tuple[FloatArray, int]:
    """Σ_k total[k]·x_k, x_k = end[k]·ends + T x_{k−1}, and sweeps; `table` takes x_0, x_1, …

    `side`: whether circles are swept from below, and how far above the states behind them they begin.
    """
    choice_start, transition_start, successor, probability, waiting, move, immediate, still, worth, bonus = (
        model
    )
    end_share, worth_share, share = shares
    is_lower, above = side
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
        least, most = np.inf, 0.0
        for s in still:
            least, most = min(least, after[s]), max(most, after[s])
        for s in waiting:
            least, most = min(least, after[s]), max(most, after[s])
        for s in immediate:
            after[s] = least if is_lower else most + above[s]
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
                best += bonus[s]
                change = max(change, abs(best - after[s]))
                after[s] = best
            if change <= 1e-17 * most:
                break
        if share[k] != 0.0:
            for s in range(states):
                total[s] += share[k] * after[s]
        if k < len(table):
            table[k] = after
        now, after = after, now
    return total, sweeps


@kernel
def levels_of(model: EventSteps) -> int:
    """How many immediate states a value passes in one sweep, at most."""
    level = np.zeros(len(model.worth), np.int64)
    for s in model.immediate:
        behind = 0
        for t in range(
            model.transition_start[model.choice_start[s]], model.transition_start[model.choice_start[s + 1]]
        ):
            behind = max(behind, level[model.successor[t]])
        level[s] = behind + 1
    return int(level.max())


@dataclass(frozen=True)
class EventHorizon(TimeHorizon):
    """`slack`: how far bounds may move apart in a slice (∞: one will do); `events`: as a factor."""

    events: int = 1
    slack: float = np.inf


def refuse_zeno(automaton: MarkovAutomaton, within: BoolArray | None = None) -> None:
    """Refuse an automaton in which choices can go on for ever while no time passes."""
    inside = ~automaton.is_markovian if within is None else within & ~automaton.is_markovian
    circles = maximal_end_components(Support.of(automaton.untimed), within=inside)
    if circles.count:
        state = automaton.structure.state_name(int(np.argmax(circles.component >= 0)))
        raise InputError(
            f"in state {state} choices can be made forever while no time passes (a Zeno run), so "
            "questions about time have no meaning",
            hint="let absorbing states wait: <> done -> 1 : true;",
        )


def expect_optimally(
    automaton: MarkovAutomaton, active: BoolArray, worth: FloatArray, values: FloatArray, horizon: TimeHorizon
) -> tuple[Pair, int]:
    """Bounds on the optimal E[f(X_t)] for every state, and the number of events.

    States that are not `active` keep their `worth`; f is `values` on active waiting ones. Both are
    nonnegative.
    """
    stop_interpreting()
    waits = automaton.is_markovian
    earning = np.where(active, np.where(waits, values, 0.0), worth) > 0
    graph, best = Support.of(automaton.untimed), horizon.maximise
    moving = active & positive(graph, earning, (best, True), within=active).states
    worth, active = np.where(active & ~moving, 0.0, worth), moving
    if not active.any():
        return (worth, worth), 0
    refuse_zeno(automaton, active)
    events, slack = (horizon.events, horizon.slack) if isinstance(horizon, EventHorizon) else (1, np.inf)
    model, rate, circles = _uniformise(automaton, active, worth, events)
    levels = int(levels_of(model)) if len(model.immediate) else 0
    visits = _visits(automaton, model.immediate) if circles else np.full(len(worth), float(levels))
    ends = np.where(active & waits, values, 0.0)
    peak = float(max(worth[~active].max(initial=0.0), ends.max(initial=0.0)))
    most = _MOST_SWEEPS if circles else 1
    steps = TimeSlices(automaton, model, active & waits, rate, levels, most, visits, horizon, peak, {})
    if visits is None or slack == np.inf:
        return steps.advance((ends, ends), horizon.time)
    pair, number, left, size = (ends, ends), 0, horizon.time, horizon.time
    while left > 0:
        size = min(size, left)
        later, gained, more = steps.follow(pair, size)
        number += more
        if gained > slack and rate * size > _SHORTEST and monotonic() < horizon.deadline:
            size /= 2
            continue
        if gained == np.inf:  # too large a slice for a table, and no time for smaller ones
            later, more = steps.advance(pair, size)
            number += more
        pair, left = later, left - size
        size *= 2 if gained < slack / 8 else 1
    return pair, number


@dataclass(frozen=True, eq=False)
class TimeSlices:
    """How bounds move back over slices of time; `waiting` states move, and no number is above `peak`.

    `levels` that values pass in each of at most so many `sweeps` of immediate states; `visits`: the most that
    a policy expects before time passes.
    """

    automaton: MarkovAutomaton
    model: EventSteps
    waiting: BoolArray
    rate: Fraction
    levels: int
    sweeps: int
    visits: FloatArray | None
    horizon: TimeHorizon
    peak: float
    shares: dict[Fraction, tuple[FloatArray, PoissonWeights]]
    """By time: weights of 0, 1, … events, and how far they are from probabilities."""

    def advance(self, pair: Pair, time: Fraction) -> tuple[Pair, int]:
        """By who counts events and who is told their number."""
        exact, weights = self._shares(time)
        maximise = self.horizon.maximise
        low, _ = self._bound(self.model, pair, time, Shares.counting(exact) if maximise else None, True)
        high, _ = self._bound(self.model, pair, time, None if maximise else Shares.counting(exact), False)
        return self._still(low, high), 2 * weights.last

    def follow(self, pair: Pair, time: Fraction) -> tuple[Pair, float, int]:
        """By one policy, with advantages over it where all policies count: (bounds, gained, events)."""
        exact, weights = self._shares(time)
        states, maximise = len(self.waiting), self.horizon.maximise
        if len(exact) * states > _MOST_NUMBERS and len(exact) > 100:
            return pair, np.inf, 0
        typical, _ = self._bound(self.model, pair, time / 2, None, maximise)
        choice = self._best(typical)
        policy, table = self._only(choice), np.zeros((len(exact) + 2, states))
        shares = Shares.informed(np.append(exact, (0.0, 0.0)))
        low, fewer = self._bound(policy, pair, time, shares, True, None if maximise else table)
        high, more = self._bound(policy, pair, time, shares, False, table if maximise else None)
        bonus = self._advantages(table, self._relative(len(table), max(fewer, more)), choice, time)
        gained = self._gained(bonus, time) if bonus.any() else bonus
        low, high = (low, up(high + gained)) if maximise else (np.maximum(down(low - gained), 0.0), high)
        return self._still(low, high), float(gained[self.waiting].max(initial=0.0)), 3 * weights.last

    def _advantages(
        self, table: FloatArray, relative: float, choice: OffsetArray, time: Fraction
    ) -> FloatArray:
        """A bound on any choice's gain over the policy's; `table`: with 0, 1, … events left."""
        structure, result = self.automaton.structure, np.zeros(len(self.waiting))
        several = np.zeros(structure.states, np.bool_)
        several[self.model.immediate] = np.diff(structure.choice_start)[self.model.immediate] > 1
        others = np.flatnonzero(several[structure.choice_state])
        others = others[choice[structure.choice_state[others]] != others]
        if not len(others):
            return result
        state = structure.choice_state[others]
        worth, own = (self._backup[others] @ table.T).T, table[:, state]
        more = worth - own if self.horizon.maximise else own - worth
        step, beyond = float(self.rate * time) / _POINTS, self._shares(time)[1].right
        bend = np.abs(np.diff(more, 2, axis=0)).max(axis=0) + 8 * relative * (worth + own).max(axis=0)
        largest = np.full(len(others), -np.inf)
        for point in range(_POINTS + 1):
            exact, weights = self._shares(time * point / _POINTS)
            error = 2 * relative + weights.error + (weights.high_total / weights.low_total - 1)
            there = np.append(exact, np.zeros(len(table)))[: len(table)] / weights.low_total
            outside = 2 * (weights.left + weights.right + beyond) * self.peak
            largest = np.maximum(largest, there @ more + 1.1 * error * (there @ (worth + own)) + outside)
        largest += (bend + 2 * outside) * step**2 / 8
        np.maximum.at(result, state, largest * (1 + 1e-12))
        return result

    def _shares(self, time: Fraction) -> tuple[FloatArray, PoissonWeights]:
        if time not in self.shares:
            weights = poisson_weights(self.rate * time, self.horizon.tail)
            exact = np.zeros(weights.last + 1)
            exact[weights.first :] = weights.weight
            self.shares[time] = exact, weights
        return self.shares[time]

    def _bound(
        self,
        model: EventSteps,
        pair: Pair,
        time: Fraction,
        shares: Shares | None,
        is_lower: bool,
        table: FloatArray | None = None,
    ) -> tuple[FloatArray, int]:
        """One end of what `pair` is worth a slice before, and sweeps; without shares events are known."""
        exact, weights = self._shares(time)
        shares, side = shares or Shares.informed(exact), (is_lower, np.zeros(len(self.waiting)))
        ends = np.where(self.waiting, pair[not is_lower], 0.0)
        table = np.zeros((0, len(ends))) if table is None else table
        result, sweeps = run_events(model, ends, shares, self.horizon.maximise, side, self.sweeps, table)
        relative = self._relative(len(shares.end), sweeps)
        outside = (weights.left + weights.right) * self.peak
        return bounds_of(result, relative, 0.0, outside, weights)[not is_lower], sweeps

    def _gained(self, bonus: FloatArray, time: Fraction) -> FloatArray:
        """The most that a bonus at every visit comes to in a slice."""
        assert self.visits is not None
        exact, weights = self._shares(time)
        zero, number = np.zeros(len(bonus)), len(exact)
        paid = self.model._replace(bonus=bonus, worth=zero)
        shares, side = Shares.informed(exact), (False, float(bonus.max()) * self.visits)
        table = np.zeros((0, len(bonus)))
        result, sweeps = run_events(paid, zero, shares, True, side, self.sweeps, table)
        events = weights.excess + number * (weights.left + weights.right)
        outside = float(bonus.max()) * float(self.visits.max()) * events
        return bounds_of(result, self._relative(number, sweeps), 0.0, outside, weights)[1]

    def _relative(self, number: int, sweeps: int) -> float:
        """The relative error of so many events."""
        length = int(np.diff(self.model.transition_start).max()) + _EXTRA
        rounds = number + sweeps * self.levels
        return error_factor(rounds * length + number + 8)

    def _still(self, low: FloatArray, high: FloatArray) -> Pair:
        still = self.model.still
        low[still] = high[still] = self.model.worth[still]
        return low, np.maximum(low, np.minimum(high, self.peak))

    @cached_property
    def _backup(self) -> csr_array:
        """What values are worth behind every choice, as a matrix."""
        return self.automaton.structure.matrix(self.automaton.probability)

    def _best(self, values: FloatArray) -> OffsetArray:
        """The choice of every state that looks best."""
        structure = self.automaton.structure
        worth = self._backup @ values * (1.0 if self.horizon.maximise else -1.0)
        best = np.maximum.reduceat(worth, structure.choice_start[:-1])
        reaching = np.flatnonzero(worth == best[structure.choice_state])
        return reaching[np.unique(structure.choice_state[reaching], return_index=True)[1]]

    def _only(self, choice: OffsetArray) -> EventSteps:
        """The model under a policy."""
        structure = self.automaton.structure
        transitions, _ = ranges(structure.transition_start, choice)
        start = offsets(np.diff(structure.transition_start)[choice])
        return self.model._replace(
            choice_start=np.arange(structure.states + 1),
            transition_start=start,
            successor=self.model.successor[transitions],
            probability=self.model.probability[transitions],
        )


def _visits(automaton: MarkovAutomaton, immediate: OffsetArray) -> FloatArray | None:
    """A bound w ≥ 1 + max_c Σ p_c·w on visits of immediate states before time passes; None: too many."""
    structure, visits = automaton.structure, np.zeros(automaton.states)
    for _ in range(_MOST_SWEEPS):
        after = automaton.probability * visits[structure.successor]
        behind = np.add.reduceat(after, structure.transition_start[:-1])
        more = 1 + np.maximum.reduceat(behind, structure.choice_start[:-1])[immediate]
        change = float((more - visits[immediate]).max())
        visits[immediate] = more
        if change <= 0.005:  # w − max Σ p·w ≥ 1 − 0.005 before the factor
            return visits * 1.01
    return None


def _uniformise(
    automaton: MarkovAutomaton, active: BoolArray, worth: FloatArray, events: int
) -> tuple[EventSteps, Fraction, bool]:
    """The model, its rate, and whether immediate states lie in circles."""
    structure, waits = automaton.structure, automaton.is_markovian
    fastest = float(automaton.exit_rate[active & waits].max(initial=0.0)) or 1.0
    rate = fastest * _ABOVE * events
    chosen = active & ~waits
    components = strongly_connected_components(Support.of(automaton.untimed), expand=chosen)
    order = components.order.astype(np.int64)  # what lies behind a state comes before it
    model = EventSteps(
        structure.choice_start.astype(np.int64),
        structure.transition_start.astype(np.int64),
        structure.successor.astype(np.int64),
        automaton.probability.copy(),
        np.flatnonzero(active & waits),
        automaton.exit_rate / rate,
        order[chosen[order]],
        np.flatnonzero(~active),
        worth.copy(),
        np.zeros(structure.states),
    )
    return model, Fraction(rate), not components.is_acyclic
