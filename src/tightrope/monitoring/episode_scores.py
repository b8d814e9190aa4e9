"""What every episode of a log returned at least and at most, and how likely it was under another policy.

An objective is decided along a path; what a cut episode may still bring is bounded over the graph alone. Sums
are rounded outward. Episodes are followed from the initial state to the first gap. Weights Π π/b up to a
stopping time give the mean under π from episodes under b. With queues of outcomes per distribution, episodes
of any policy are put together from the steps of a log; they are independent draws of it, and statements for
all numbers of episodes hold at theirs. Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.design import SamplingKind
from tightrope.errors import CannotCertify, InputError
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ParametricReward, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.rounding import down, up

_NEVER = 2**62
_MOST_ROUNDS = 20_000
_MOST_STORED = 4_000_000
_EPS = 2.0**-51
_ROUNDING = 1e-9
"""What sums along a path may be off, by their size."""


@dataclass(frozen=True, eq=False)
class Episodes:
    """Rows of episodes from the initial state up to a gap; `elsewhere` begin in others, `empty` lack rows."""

    transition: OffsetArray
    start: OffsetArray
    step: OffsetArray
    elsewhere: int
    empty: int = 0

    @staticmethod
    def of(
        structure: Structure, transition: IndexArray, previous: IndexArray, episode: IndexArray, episodes: int
    ) -> Episodes:
        """From rows in the order of each episode; `previous` is the row before, −1 where not known."""
        order = np.argsort(episode, kind="stable")
        own, place = episode[order], np.arange(len(order))
        first = np.ones(len(own), dtype=np.bool_)
        first[1:] = own[1:] != own[:-1]
        begin = np.maximum.accumulate(np.where(first, place, 0))
        broken = ~first
        broken[1:] &= previous[order][1:] != order[:-1]
        row = transition[order].astype(np.int64)
        source = structure.choice_state[structure.transition_choice[row]]
        inside = (source == structure.initial)[begin]
        kept = inside & (np.maximum.accumulate(np.where(broken, place, -1)) < begin)
        start = np.flatnonzero(first[kept])
        away = int(np.count_nonzero(first & ~inside))
        empty = episodes - int(np.count_nonzero(first))
        return Episodes(row[kept], start, (place - begin)[kept], away, empty)

    def __len__(self) -> int:
        return len(self.start) + self.empty

    def within(self, base: Structure, product: Structure, copied: OffsetArray) -> Episodes:
        """The same in a product with a memory, whose transitions are copies of those of the base."""
        offset = base.transition_start[base.choice_start[:-1]]
        source = base.choice_state[base.transition_choice].astype(np.int64)
        begin = product.transition_start[product.choice_start[:-1]]
        there = np.full(len(self.transition), -1, dtype=np.int64)
        rows = (self.transition, self.step)
        graph = (offset.astype(np.int64), source, begin.astype(np.int64), copied.astype(np.int64))
        _follow(rows, graph, product.successor.astype(np.int64), product.initial, there)
        kept = there >= 0
        start = np.flatnonzero(self.step[kept] == 0)
        return Episodes(there[kept], start, self.step[kept], self.elsewhere, self.empty)


@kernel
def _follow(
    rows: tuple[OffsetArray, OffsetArray],
    graph: tuple[OffsetArray, OffsetArray, OffsetArray, OffsetArray],
    successor: OffsetArray,
    initial: int,
    there: OffsetArray,
) -> None:
    """The transitions of a product along the episodes of its base; −1 from where it has none."""
    transition, step = rows
    offset, source, begin, copied = graph
    state = -1
    for i in range(len(transition)):
        if step[i] == 0:
            state = initial
        if state < 0:
            continue
        wanted = transition[i]
        place = begin[state] + wanted - offset[source[wanted]]
        if place < 0 or place >= len(copied) or copied[place] != wanted:
            state = -1
            continue
        there[i] = place
        state = successor[place]


@dataclass(frozen=True, eq=False)
class Scores:
    """Per episode: its return is between `low` and `high`, `weight` times as likely under the policy."""

    low: FloatArray
    high: FloatArray
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class PathRules:
    """How paths are scored. `decided[s]` is what is added when s is entered after at least `first` steps,
    `early[s]` before that; NaN where the path goes on. After `last` steps it is over. `rests` bounds what is
    still to come from a state after so many steps, in the value of that moment; `ends` bounds all returns."""

    structure: Structure
    gain: FloatArray
    discount: float
    decided: FloatArray
    early: FloatArray
    first: int
    last: int
    rests: Callable[[OffsetArray, OffsetArray], tuple[FloatArray, FloatArray]]
    ends: tuple[float, float]

    @property
    def at_once(self) -> bool:
        """Whether everything is decided before the first step."""
        initial = self.structure.initial
        worth = self.decided[initial] if self.first <= 0 else self.early[initial]
        return self.last <= 0 or not np.isnan(worth)

    @staticmethod
    def of(structure: Structure, objective: Objective, taken: BoolArray) -> PathRules:
        """For paths of `taken` choices. Refused (`CannotCertify`), with words, where returns do not show."""
        kind, states = objective.kind, structure.states
        nothing = np.full(states, np.nan)
        last = _NEVER if objective.upper_steps is None else objective.upper_steps
        if kind in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT):
            assert objective.target is not None
            target = objective.target
            first = 1 if kind is ObjectiveKind.NEXT else objective.lower_steps
            allowed = np.ones(states, dtype=np.bool_) if objective.allowed is None else objective.allowed
            graph = PathGraph.of(structure, taken, np.zeros(structure.choices))
            may, must = graph.may_and_must(target, allowed)
            early = np.where(may & allowed, np.nan, 0.0)
            decided = np.where(must if last == _NEVER and first == 0 else target, 1.0, early)
            if kind is ObjectiveKind.NEXT:
                last, early, decided = 1, nothing, np.where(target, 1.0, 0.0)
            gain, rests = np.zeros(structure.choices), _constant(np.zeros(states), np.ones(states))
            return PathRules(structure, gain, 1.0, decided, early, first, last, rests, (0.0, 1.0))
        if isinstance(objective.reward, ParametricReward):
            raise CannotCertify("the rewards depend on parameters, so episodes do not show them")
        assert objective.reward is not None
        gain = objective.reward.per_choice(structure)
        graph = PathGraph.of(structure, taken, gain)
        initial = structure.initial
        if kind is ObjectiveKind.CUMULATIVE:
            rests = _finite(graph, last)
            low, high = rests(np.array([initial]), np.array([0]))
            ends = float(low[0]), float(high[0])
            return PathRules(structure, gain, 1.0, nothing, nothing, 0, last, rests, ends)
        if kind is ObjectiveKind.DISCOUNTED:
            assert objective.discount is not None
            low, high = graph.discounted(objective.discount)
            same = np.where(low == high, low, np.nan)
            rests = _constant(low, high)
            ends = float(low[initial]), float(high[initial])
            return PathRules(structure, gain, objective.discount, same, same, 0, last, rests, ends)
        if kind is ObjectiveKind.TOTAL:
            earning = structure.choice_state[taken & (gain != 0.0)]
            target = ~graph.leads_to(np.bincount(earning, minlength=states) > 0)
            worth = np.zeros(states)
        else:
            assert objective.target is not None
            target = objective.target
            worth = np.zeros(states) if objective.terminal is None else np.asarray(objective.terminal)
        graph.refuse_traps(target)
        low, high = graph.until(target, worth)
        decided = np.where(target, worth, np.nan)
        ends = float(low[initial]), float(high[initial])
        return PathRules(structure, gain, 1.0, decided, decided, 0, last, _constant(low, high), ends)

    def rest(self, most: bool) -> FloatArray:
        """What can follow from each state at most, or at least, after however many steps."""
        states = np.arange(self.structure.states)
        if self.last < _NEVER and self.gain.any():  # of which fewer may be left
            worst = max(float(self.gain.max()), 0.0) if most else min(float(self.gain.min()), 0.0)
            return np.full(len(states), self.last * worst)
        return self.rests(states, np.zeros_like(states))[most]

    def refuse_range(self, stated: tuple[float, float]) -> None:
        """Refuse a stated range of returns that paths of the model leave; rounding alone refutes nothing."""
        (low, high), (least, most) = self.ends, stated
        below = low < least and least - low > _ROUNDING * (1.0 + abs(least))
        if below or (high > most and high - most > _ROUNDING * (1.0 + abs(most))):
            end, words = (low, "least") if below else (high, "most")
            paths = f"a path returns {end:g}" if np.isfinite(end) else "paths return without limit"
            raise InputError(
                f"the model refutes that every episode returns at {words} {least if below else most:g}: "
                f"{paths}",
                hint="the range of returns follows from the model: leave `return_range` out",
            )

    def followed(self, log: Episodes) -> tuple[BoolArray, OffsetArray, BoolArray, FloatArray]:
        """(rows until an episode is decided; per episode: its last one, whether it is decided there, what is
        added)."""
        after, successor = log.step + 1, self.structure.successor[log.transition].astype(np.int64)
        worth = np.where(after >= self.first, self.decided[successor], self.early[successor])
        place, rows = np.arange(len(successor)), len(successor)
        stops = ~np.isnan(worth) | (after >= self.last)
        size = np.diff(log.start, append=rows)
        stop = np.minimum.reduceat(np.where(stops, place, rows), log.start)
        end = np.minimum(stop, log.start + size - 1)
        shown, away = stop <= end, self.structure.elsewhere
        if away is not None:  # these states stand for any outcome: nothing is decided there
            shown &= ~(away[0] | away[1])[successor[end]]
        return place <= np.repeat(end, size), end, shown, np.nan_to_num(worth[end])

    def score(self, log: Episodes, ratio: FloatArray) -> Scores:
        """The returns of episodes; `ratio` is how much more likely each choice is under the given policy."""
        structure, start = self.structure, log.start
        choice = structure.transition_choice[log.transition].astype(np.int64)
        unknown = np.full(log.empty, self.ends[0]), np.full(log.empty, self.ends[1]), np.ones(log.empty)
        if len(start) == 0:
            return Scores(*unknown)
        used, end, shown, worth = self.followed(log)
        gain = self.gain[choice] * (1.0 if self.discount == 1.0 else self.discount**log.step)
        total = np.add.reduceat(np.where(used, gain, 0.0), start)
        size_of = np.add.reduceat(np.where(used, np.abs(gain), 0.0), start)
        weight = np.multiply.reduceat(np.where(used, ratio[choice], 1.0), start)
        steps = end - start + 1
        scale = self.discount ** steps.astype(np.float64)
        low, high = self.rests(structure.successor[log.transition[end]].astype(np.int64), steps)
        low, high = np.where(shown, worth, low), np.where(shown, worth, high)
        with np.errstate(invalid="ignore"):
            low, high = total + scale * low, total + scale * high
            exact = (size_of == 0.0) & (self.discount == 1.0)
            slack = np.where(exact, 0.0, (steps + 4) * _EPS * (size_of + np.abs(low)))
            slack_high = np.where(exact, 0.0, (steps + 4) * _EPS * (size_of + np.abs(high)))
        low, high = np.maximum(low - slack, self.ends[0]), np.minimum(high + slack_high, self.ends[1])
        weight = weight * (
            1.0 if np.all(np.isnan(ratio) | (ratio == 1.0) | (ratio == 0.0)) else 1.0 - 2.0**-40
        )
        known = (low, high, weight)
        return Scores(*(np.concatenate(pair) for pair in zip(known, unknown, strict=True)))


def _constant(low: FloatArray, high: FloatArray) -> Callable[..., tuple[FloatArray, FloatArray]]:
    return lambda state, step: (low[state], high[state])


def _finite(graph: PathGraph, last: int) -> Callable[..., tuple[FloatArray, FloatArray]]:
    """What the steps until `last` bring at least and at most: by state where that is not too many numbers."""
    most, least = float(max(graph.gain.max(initial=0.0), 0.0)), float(min(graph.gain.min(initial=0.0), 0.0))
    if last * max(graph.states, len(graph.successor)) > _MOST_STORED:
        return lambda state, step: (down((last - step) * least), up((last - step) * most))
    table = np.zeros((2, last + 1, graph.states))
    for left in range(1, last + 1):
        table[0, left] = down(graph.backup(table[0, left - 1], 1.0, np.minimum))
        table[1, left] = up(graph.backup(table[1, left - 1], 1.0, np.maximum))
    return lambda state, step: (table[0, last - step, state], table[1, last - step, state])


@dataclass(frozen=True, eq=False)
class PathGraph:
    """The transitions of the choices that are taken, by source."""

    states: int
    initial: int
    source: OffsetArray
    successor: OffsetArray
    gain: FloatArray
    begin: OffsetArray
    owner: OffsetArray

    @staticmethod
    def of(structure: Structure, taken: BoolArray, gain: FloatArray) -> PathGraph:
        kept = taken[structure.transition_choice]
        choice = structure.transition_choice[kept]
        source = structure.choice_state[choice].astype(np.int64)
        owner, begin = np.unique(source, return_index=True)
        successor = structure.successor[kept].astype(np.int64)
        return PathGraph(structure.states, structure.initial, source, successor, gain[choice], begin, owner)

    def backup(self, value: FloatArray, rate: float, best: np.ufunc) -> FloatArray:
        """The best of gain + rate·value over the transitions of each state; 0 where none is taken."""
        result = np.zeros(self.states)
        result[self.owner] = best.reduceat(self.gain + rate * value[self.successor], self.begin)
        return result

    def may_and_must(self, target: BoolArray, allowed: BoolArray) -> tuple[BoolArray, BoolArray]:
        """States from which some path, and every path, comes to the target through allowed states."""
        may, must = target.copy(), target.copy()
        known = -1
        while (now := int(np.count_nonzero(may)) + int(np.count_nonzero(must))) != known:
            known = now
            onward = allowed[self.owner]
            may[self.owner[onward & np.logical_or.reduceat(may[self.successor], self.begin)]] = True
            must[self.owner[onward & np.logical_and.reduceat(must[self.successor], self.begin)]] = True
        return may, must

    def leads_to(self, goal: BoolArray) -> BoolArray:
        """States with a path to the goal."""
        return _spread(goal, self.successor, self.source)

    def refuse_traps(self, target: BoolArray) -> None:
        """Where the target may never be reached, the value may be infinite, and no episode shows it."""
        inner = ~target[self.source]
        first = np.arange(self.states) == self.initial
        reached = _spread(first, self.source[inner], self.successor[inner])
        if np.any(reached & ~self.leads_to(target)):
            raise CannotCertify(
                "some path never reaches the end of rewards, so episodes do not show all of them"
            )

    def discounted(self, rate: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on discounted sums from each state on: backups of bounds are bounds."""
        scale = 1.0 / (1.0 - rate)
        low = np.full(self.states, min(float(self.gain.min(initial=0.0)), 0.0) * scale * (1.0 + 1e-12))
        high = np.full(self.states, max(float(self.gain.max(initial=0.0)), 0.0) * scale * (1.0 + 1e-12))
        idle = ~self.leads_to(np.bincount(self.source[self.gain != 0.0], minlength=self.states) > 0)
        rounds = min(int(np.log(1e-9) / np.log(rate)) + 1, _MOST_ROUNDS)
        for _ in range(rounds):
            low, high = (
                down(self.backup(low, rate, np.minimum) - 1e-15 * np.abs(low)),
                up(self.backup(high, rate, np.maximum) + 1e-15 * np.abs(high)),
            )
        return np.where(idle, 0.0, low), np.where(idle, 0.0, high)

    def until(self, target: BoolArray, worth: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on sums until the target; infinite where a cycle may bring ever more."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        inner = ~target[self.source]
        edges = csr_array(
            (np.ones(int(inner.sum())), (self.source[inner], self.successor[inner])),
            shape=(self.states, self.states),
        )
        component = connected_components(edges, directed=True, connection="strong")[1]
        cyclic = inner & (component[self.source] == component[self.successor])
        ends = []
        for sign in (-1.0, 1.0):
            gain = sign * self.gain
            grows: BoolArray = np.zeros(self.states, dtype=np.bool_)
            grows[np.isin(component, component[self.source[cyclic & (gain > 0.0)]])] = True
            value = np.where(target, sign * worth, -np.inf)
            value[grows & ~target] = np.inf
            settled = False
            for _ in range(_MOST_ROUNDS):
                with np.errstate(invalid="ignore"):
                    further = np.full(self.states, -np.inf)
                    sums = gain + value[self.successor]
                    sums = np.where((gain != 0.0) & np.isfinite(sums), up(sums), sums)
                    further[self.owner] = np.maximum.reduceat(sums, self.begin)
                further[target] = sign * worth[target]
                further[grows & ~target] = np.inf
                further = np.where(np.isnan(further), np.inf, further)
                settled = bool(np.array_equal(further, value))
                value = further
                if settled or float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) > 1e300:
                    break
            ends.append(sign * (value if settled else np.where(target, value, np.inf)))
        return ends[0], ends[1]


def _spread(states: BoolArray, tail: OffsetArray, head: OffsetArray) -> BoolArray:
    """These states, and all that paths lead to from them."""
    while True:
        more = states.copy()
        more[head[states[tail]]] = True
        if np.array_equal(more, states):
            return states
        states = more


MOST_STEPS = 10_000
"""An episode is cut after so many."""

_NEGLIGIBLE = 1e-4
"""A discounted one where what is left counts by so much."""


@dataclass(frozen=True, eq=False)
class Queues:
    """Outcomes by distribution: queue q is slot[start[q]:start[q + 1]]; `known` ones are drawn."""

    of_choice: OffsetArray
    start: OffsetArray
    slot: OffsetArray
    known: dict[int, list[float]]

    @staticmethod
    def of(model: ParametricMDP, counts: Counts) -> Queues | None:
        """Those of some data; None where neither rows nor numbers fixed beforehand are known."""
        row, structure = None, model.structure
        if counts.log is not None:
            row = counts.log().transition.astype(np.int64)
        elif counts.design.kind is SamplingKind.GENERATIVE_FIXED:
            row = np.repeat(np.arange(structure.transitions), counts.transition)
            row = np.random.default_rng(0).permutation(row)
        if row is None:
            return None
        choice = structure.transition_choice[row]
        of_choice = model.signatures.of_choice.astype(np.int64)
        owner, place = of_choice[choice], row - structure.transition_start[choice]
        order = np.argsort(owner, kind="stable")
        start = np.searchsorted(owner[order], np.arange(len(model.signatures) + 1))
        constant = model.expressions.is_constant[model.signatures.expression]
        first = model.signatures.start[:-1]
        known = {}
        for q in np.flatnonzero(np.logical_and.reduceat(constant, first)).tolist():
            own = model.signatures.expression[model.signatures.start[q] : model.signatures.start[q + 1]]
            known[q] = [float(model.expressions.polynomial(e).constant_term) for e in own.tolist()]
        return Queues(of_choice, start.astype(np.int64), place[order].astype(np.int64), known)

    def episodes(self, rules: PathRules, policy: FloatArray, base_choice: OffsetArray) -> Episodes:
        """All whole episodes of a policy on the rules' structure, whose choices are copies of the base's."""
        structure, random = rules.structure, np.random.default_rng(0)
        first_choice = structure.choice_start.tolist()
        first_transition = structure.transition_start.tolist()
        successor, queue = structure.successor.tolist(), self.of_choice[base_choice].tolist()
        slot, next_one, end = self.slot.tolist(), self.start[:-1].tolist(), self.start[1:].tolist()
        width = np.diff(structure.transition_start).tolist()
        options = [
            [(c, p) for c, p in zip(range(a, b), policy[a:b].tolist(), strict=True) if p > 0.0]
            for a, b in pairwise(first_choice)
        ]
        goes_on = [np.isnan(rules.early).tolist(), np.isnan(rules.decided).tolist()]
        known = {q: list(enumerate(chances)) for q, chances in self.known.items()}
        last = min(rules.last, MOST_STEPS)
        if rules.discount < 1.0:
            last = min(last, math.ceil(math.log(_NEGLIGIBLE) / math.log(rules.discount)))
        rows: list[int] = []
        starts: list[int] = []
        steps: list[int] = []
        most = int(self.start[-1])
        while len(starts) < most:
            state, step, begin = structure.initial, 0, len(rows)
            while step < last and (step == 0 or goes_on[step >= rules.first][state]):
                possible = options[state]
                choice = possible[0][0] if len(possible) == 1 else _draw(possible, random.random())
                place = 0
                if width[choice] > 1:
                    q = queue[choice]
                    if q in known:
                        place = _draw(known[q], random.random())
                    elif next_one[q] < end[q]:
                        place = slot[next_one[q]]
                        next_one[q] += 1
                    else:
                        return _made(rows[:begin], starts, steps[:begin])
                row = first_transition[choice] + place
                rows.append(row)
                steps.append(step)
                state, step = successor[row], step + 1
            starts.append(begin)
        return _made(rows, starts, steps)


def _draw(possible: list[tuple[int, float]], coin: float) -> int:
    for choice, probability in possible:
        coin -= probability
        if coin < 0.0:
            return choice
    return possible[-1][0]


def _made(rows: list[int], starts: list[int], steps: list[int]) -> Episodes:
    row, start, step = (np.array(one, dtype=np.int64) for one in (rows, starts, steps))
    return Episodes(row, start, step, 0)
