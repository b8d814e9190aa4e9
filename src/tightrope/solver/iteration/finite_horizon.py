"""Step-bounded objectives: one safe backup per step, both bounds rounded outward.

Agent and nature may decide anew in every step. The recorded decisions attain the agent's bound.

    P [ allowed U^[a,b] target ]   b − a backups with the target absorbing, then a in which it is not
    P [ X target ]                 one backup of the target's indicator
    R [ C<=k ]                     k backups of 0; R [ I=k ] of the state rewards, earning nothing on the way

*Leaps* take many steps at once where the bounds grow alike in each period of steps, or by classes, and end no
further apart than rounding would have driven them (docs/proofs/values.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.policy_file import TimeVaryingChoices, TimeVaryingRecorder
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.bellman.operator import Backups
from tightrope.solver.equations.system import System, best_choices, first_choices
from tightrope.solver.solution import Fixpoint, Progress

LEAST_TIMES = 8
"""A leap over fewer periods is not worth what it widens."""

MOST_PERIOD = 256
"""Steps up to which growth by classes is looked for."""

MOST_LOST = 0.1
"""Part of the precision that a leap may lose where decisions or classes differ."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Who chooses: the agent, unless `weights` (of a randomised policy, per choice) or `steps` do."""

    weights: FloatArray | None = None
    steps: TimeVaryingChoices | None = None


@dataclass(frozen=True, eq=False)
class Tail:
    """What a play comes to from step `step` on, and the choices made then (None where none count)."""

    bounds: tuple[FloatArray, FloatArray]
    step: int
    policy: OffsetArray | None = None


def back_up_steps(
    kernel: Backups,
    system: System,
    objective: Objective,
    rule: Rule,
    progress: Progress,
    tail: Tail | None = None,
) -> Fixpoint:
    """Bounds after all counted steps and the agent's decisions; `tail` follows if steps are unbounded."""
    states = system.structure.states
    if objective.kind is ObjectiveKind.CUMULATIVE:
        assert objective.upper_steps is not None
        last = np.zeros(states) if objective.terminal is None else objective.terminal
        end = Tail((last, last), objective.upper_steps)
        return _Backwards(kernel, system, rule, progress, end).take(end.step, Edge(), leaping=True).fixpoint()
    assert objective.target is not None
    goal = objective.target.astype(np.float64)
    if objective.kind is ObjectiveKind.NEXT:
        end = Tail((goal, goal), 1)
        return _Backwards(kernel, system, rule, progress, end).take(1, Edge()).fixpoint()
    barred = None if objective.allowed is None else ~objective.allowed
    if tail is None:
        assert objective.upper_steps is not None
        tail = Tail((goal, goal), objective.upper_steps)
    walk = _Backwards(kernel, system, rule, progress, tail)
    walk.take(tail.step - objective.lower_steps, Edge(objective.target, barred))
    return walk.take(objective.lower_steps, Edge(None, barred)).fixpoint()


@dataclass(frozen=True, eq=False)
class Edge:
    """States that are not backed up: `held` ones are worth 1, `barred` ones that are not held 0."""

    held: BoolArray | None = None
    barred: BoolArray | None = None

    def put(self, values: FloatArray) -> None:
        if self.barred is not None:
            values[self.barred] = 0.0
        if self.held is not None:
            values[self.held] = 1.0


class _Backwards:
    """Bounds that go back one step after the other, with the decisions that lead there."""

    def __init__(self, kernel: Backups, system: System, rule: Rule, progress: Progress, tail: Tail):
        self.kernel, self.system, self.rule, self.progress = kernel, system, rule, progress
        self.lower, self.upper = tail.bounds
        self.record = None if tail.policy is None else TimeVaryingRecorder(tail.policy, tail.step)
        self.step = tail.step
        self.stopped = False
        self.changed = tail.step
        """The earliest step whose decision differs from the next one's."""
        self.summed: FloatArray | None = None
        """What choices came to, summed over the steps since a leap may begin."""
        self.tried = tail.step
        self.choices: Iterator[OffsetArray] | None = (
            None if rule.steps is None else rule.steps.backwards(tail.step)
        )

    def take(self, steps: int, edge: Edge, leaping: bool = False) -> _Backwards:
        """`steps` backups, each followed by the edge's values; without an edge they may be leapt over."""
        target = self.step - steps
        before, span = (self.step, self.lower, self.upper), 1
        while self.step > target:
            if self.stopped or self.progress.is_exhausted:
                self.stopped = True
                break
            if self._back(edge) and self.choices is None:
                break  # a fixpoint: further steps change nothing
            if leaping and self.choices is None:
                self._leap(target, *before)
                if before[0] - self.step >= span:
                    before, span = (self.step, self.lower, self.upper), 2 * span
                    self.summed = None
        self.step = target
        if self.record is not None:
            self.record.step = target
        return self

    def _back(self, edge: Edge) -> bool:
        """One step back; whether it changed nothing."""
        system = self.system
        low = self.kernel.safe_choices(system, self.lower, False)
        high = self.kernel.safe_choices(system, self.upper, True)
        self.progress.iterations += 1
        fixed = None if self.choices is None else next(self.choices)
        later = None if self.record is None else self.record.current
        new_lower, by_lower = _over_choices(system, low, self.rule.weights, False, fixed, later)
        new_upper, by_upper = _over_choices(system, high, self.rule.weights, True, fixed, later)
        self._decide(by_lower if system.agent_maximises else by_upper)
        own = low if system.agent_maximises else high
        self.summed = own if self.summed is None else self.summed + own
        for values in (new_lower, new_upper):
            edge.put(values)
        same = np.array_equal(new_lower, self.lower) and np.array_equal(new_upper, self.upper)
        self.lower, self.upper = new_lower, new_upper
        return same

    def _leap(self, target: int, begin: int, lower: FloatArray, upper: FloatArray) -> None:
        """As many steps at once as leave less than those from `begin` on, where the bounds were others."""
        period, left, record = begin - self.step, self.step - target, self.record
        times = left // period
        if times < LEAST_TIMES or record is None or self.tried == begin:
            return
        system, starts, ends = self.system, (lower, upper), (self.lower, self.upper)
        growth = [end - start for end, start in zip(ends, starts, strict=True)]
        least, most = float(np.min(growth[0])), float(np.max(growth[1]))
        size = float(np.max(np.abs(ends))) + times * max(abs(least), abs(most))
        lost = (left + 8) * 2.0**-50 * size
        is_alike = times * (most - least) <= lost
        is_plain = self.kernel.lower is self.kernel.upper and len(system.discount) == 0
        if not (size < np.inf and (is_alike or (is_plain and period <= MOST_PERIOD))):
            return
        own, policy, short = int(not system.agent_maximises), record.current, [0.0, 0.0]
        if is_alike:
            growth = [np.full(len(lower), least), np.full(len(upper), most)]
        else:
            short[1 - own] = self._stray(growth[1 - own], system.enabled, not own)
            if not period * short[1 - own] * times**2 <= self.progress.precision * size:
                return
        if self.changed < begin - 1:
            self.tried = begin
            policy, values = self._best_together(), starts[own]
            for _ in range(period):
                values = self.kernel.safe_choices(system, values, bool(own))[policy]
                self.progress.iterations += 1
            grown = values - starts[own]
            if is_alike:
                grown = np.full(len(grown), grown.max() if own else grown.min())
            growth[own] = grown
        behind = (growth[own] - (ends[own] - starts[own])) * (-1.0 if own else 1.0)
        used = [system.enabled, system.enabled]
        if self.rule.weights is None:
            used[own] = np.zeros(len(system.enabled), np.bool_)
            used[own][policy] = True
        if not is_alike:
            short[own] = self._stray(growth[own], used[own], bool(own))
        sums = times * (times + 1) / 2
        wider = [period * each * sums for each in short]
        wider[own] += max(float(behind.max()), 0.0)
        still = [self._still((growth[end] == 0.0) & (ends[end] == starts[end]), used[end]) for end in (0, 1)]
        new_lower = lower + (times + 1) * growth[0] - (wider[0] + lost)
        new_upper = upper + (times + 1) * growth[1] + (wider[1] + lost)
        floor = 0.0 if system.smallest_reward >= 0.0 and lower.min() >= 0.0 else system.floor
        new_lower = np.maximum(np.where(still[0], self.lower, new_lower), floor)
        new_upper = np.minimum(np.where(still[1], self.upper, new_upper), system.ceiling)
        if not (is_alike and policy is record.current):
            scale = np.maximum(np.abs(new_lower), np.abs(new_upper))
            scale = np.full(len(scale), scale.max()) if system.unit > 0 else scale
            if not np.all(new_upper - new_lower <= MOST_LOST * self.progress.precision * scale):
                return
        self.lower, self.upper = new_lower, new_upper
        if policy is not record.current:
            record.before(policy)
            self.changed = self.step - 1
        self.step -= times * period
        record.step = self.step

    def _stray(self, growth: FloatArray, used: BoolArray, upward: bool) -> float:
        """By how much the growth after one of these choices exceeds that before it, or falls short of it."""
        system = self.system
        bare = replace(system, reward=np.zeros(0), unit=0.0)
        after = self.kernel.safe_choices(bare, growth, upward)
        before = growth[system.structure.choice_state]
        beyond = after - before if upward else before - after
        return max(float(np.max(beyond, where=used, initial=0.0)), 0.0)

    def _still(self, still: BoolArray, used: BoolArray) -> BoolArray:
        """States of these that the choices used do not lead out of."""
        structure = self.system.structure
        while True:
            leaves = np.logical_or.reduceat(~still[structure.successor], structure.transition_start[:-1])
            stays = still & ~np.logical_or.reduceat(leaves & used, structure.choice_start[:-1])
            if np.array_equal(stays, still):
                return still
            still = stays

    def _best_together(self) -> OffsetArray:
        """In every state the choice that was best over the steps that were summed."""
        assert self.summed is not None
        return _over_choices(self.system, self.summed, None, False)[1]

    def _decide(self, policy: OffsetArray) -> None:
        self.step -= 1
        if self.record is None:
            self.record = TimeVaryingRecorder(policy, self.step)
            self.changed = self.step
        else:
            if not np.array_equal(policy, self.record.current):
                self.changed = self.step
            self.record.before(policy)

    def fixpoint(self) -> Fixpoint:
        system = self.system
        first = first_choices(system.structure, system.enabled)
        record = self.record or TimeVaryingRecorder(first, 0)
        steps = record.result() if self.rule.steps is None else self.rule.steps
        lower, upper = self.lower, self.upper
        if self.stopped:
            lower, upper = np.full(len(lower), system.floor), np.full(len(upper), system.ceiling)
        ranking = np.zeros(len(lower), np.int64)
        return Fixpoint(lower, upper, steps.first.copy(), ranking, system.unit, steps)


def _over_choices(
    system: System,
    each: FloatArray,
    weights: FloatArray | None,
    upward: bool,
    fixed: OffsetArray | None = None,
    later: OffsetArray | None = None,
) -> tuple[FloatArray, OffsetArray]:
    """The agent's optimum over the choices of each state, or its weighted sum rounded outward; the value of
    the `fixed` choices where there are some. Of several best choices the one of the step `later` is kept."""
    structure = system.structure
    start = structure.choice_start[:-1]
    if fixed is not None:
        return each[fixed], fixed
    if weights is not None:
        return weigh(each, weights, start, np.diff(structure.choice_start), upward), start.copy()
    best, policy = best_choices(system, each)
    policy = np.where(policy < 0, start, policy)
    if later is not None:
        policy = np.where(system.enabled[later] & (each[later] == best), later, policy)
    return best, policy


def weigh(
    each: FloatArray, weights: FloatArray, start: OffsetArray, count: OffsetArray, upward: bool
) -> FloatArray:
    """Σ weights·each over the choices of every state, rounded outward, within the range of what is summed."""
    used = weights > 0
    terms = np.zeros(len(each))
    np.multiply(weights, each, out=terms, where=used)
    total = np.add.reduceat(terms, start)
    error = np.where(np.isfinite(total), (count + 6) * 2.0**-52 * np.add.reduceat(np.abs(terms), start), 0.0)
    smallest = np.minimum.reduceat(np.where(used, each, np.inf), start)
    largest = np.maximum.reduceat(np.where(used, each, -np.inf), start)
    result: FloatArray = np.minimum(total + error, largest) if upward else np.maximum(total - error, smallest)
    return np.where(smallest == largest, smallest, result)
