"""`learn`: from a parametric model and counts to a robust policy and its certified interval.

    counts ──statistics──▶ event intervals, region ──▶ sets ──solve──▶ policies and values

With probability at least 1 − δ the true parameters lie in the region, hence the true model in the
sets, hence for every policy its true value between the certified ends (paper, Theorem 1). An empty
region has missed the truth whatever it is, so falling back to tied sets then costs no confidence:
the error event is already counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.options import Decisions, LearnOptions, decide
from tightrope.learning.result import Interval, LearningResult, PolicyValue, widths_of
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.region.bounds import parameter_box
from tightrope.region.build import build_region, polytope_region
from tightrope.region.region import Region, RegionKind
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.kernel import Kernel
from tightrope.solver.solution import Solution
from tightrope.solver.solve import Limits, solve
from tightrope.statistics.estimates import EventIntervals, event_intervals
from tightrope.statistics.outcomes import Outcomes
from tightrope.uncertainty import sets as uncertainty
from tightrope.uncertainty.sets import Sets, SetsKind

Progress = Callable[[str], None]
"""Called with the name of each phase as it begins."""


def learn(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    objective: Objective,
    *,
    options: LearnOptions | None = None,
    policy: OffsetArray | FloatArray | None = None,
    progress: Progress | None = None,
) -> LearningResult:
    """The certified interval of a given `policy` and of the robust policy, from counts at level 1 − delta.

    `policy` is an integer array (the index of a choice a state) or a float array (one probability a
    choice). Raises `CannotCertify` for an empty region where `options.fallback` is off.
    """
    options = options or LearnOptions()
    if counts.model_hash != model.hash():
        raise InputError(
            "the counts belong to another model (their model hash differs)",
            hint="count transitions of this model: same file, constants and domain",
        )
    decisions = decide(model, counts, options)
    clock = _Clock(progress)
    with clock.phase("statistics"):
        outcomes = Outcomes.of(model)
        outcomes.check(counts)
        intervals = _intervals(model, counts, delta, options, decisions, outcomes)
    with clock.phase("region"):
        region, verdict = _region(model, counts, delta, options, decisions, outcomes, intervals)
    with clock.phase("sets"):
        chosen = _sets(model, counts, delta, options, decisions, region, intervals, verdict, outcomes)
        box = parameter_box(region) if region is not None and verdict is None else None
    with clock.phase("solve"):
        solver = _PolicySolver(kernel_of(chosen), objective, options)
        robust = solver.robust()
        optimistic = solver.optimistic()
        value = None if policy is None else solver.evaluate(policy)
    notes = (*chosen.notes, *(region.notes if region is not None else ()), *solver.notes)
    return LearningResult(
        model=model,
        objective=objective,
        decisions=decisions,
        sets=chosen,
        region=region,
        intervals=intervals,
        ledger=chosen.ledger,
        value=value,
        robust=robust,
        optimistic=optimistic,
        widths=widths_of(model, chosen, box),
        verdict=verdict,
        fallback=verdict is not None,
        seconds=clock.seconds,
        notes=notes,
    )


def kernel_of(sets: Sets) -> Kernel:
    """The kernel that solves over these sets."""
    if sets.kind is SetsKind.RECTANGULAR:
        from tightrope.solver.rectangular_kernel import RectangularKernel

        return RectangularKernel.of(sets)
    return IntervalKernel.of(sets.interval_model())


class _Clock:
    """Seconds by phase."""

    def __init__(self, progress: Progress | None):
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if self._progress is not None:
            self._progress(name)
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin


def _intervals(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    options: LearnOptions,
    decisions: Decisions,
    outcomes: Outcomes,
) -> EventIntervals | None:
    """The event intervals where tied sets or the polytope are built from them."""
    needed = decisions.sets is SetsKind.TIED or decisions.region is RegionKind.POLYTOPE
    if not needed:
        return None
    return event_intervals(model, counts, delta, decisions.interval, options.budget, outcomes)


def _region(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    options: LearnOptions,
    decisions: Decisions,
    outcomes: Outcomes,
    intervals: EventIntervals | None,
) -> tuple[Region | None, str | None]:
    """The region, and words about it where it is empty."""
    if decisions.region is None:
        return None, None
    region: Region
    if decisions.region is RegionKind.POLYTOPE and intervals is not None:
        region = polytope_region(intervals)
    else:
        region_options = decisions.region_options(options)
        region = build_region(decisions.region, model, counts, delta, region_options, outcomes)
    emptiness = region.emptiness
    if not emptiness.is_empty:
        return region, None
    verdict = emptiness.text(delta)
    if not options.fallback:
        raise CannotCertify(verdict)
    return region, verdict


def _sets(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    options: LearnOptions,
    decisions: Decisions,
    region: Region | None,
    intervals: EventIntervals | None,
    verdict: str | None,
    outcomes: Outcomes,
) -> Sets:
    if decisions.sets is SetsKind.UNTIED:
        return uncertainty.untied(model, counts, delta, decisions.interval)
    if decisions.sets is SetsKind.TIED or verdict is not None or region is None:
        if intervals is None:
            intervals = event_intervals(model, counts, delta, decisions.interval, options.budget, outcomes)
        return uncertainty.tied(intervals)
    within = None if intervals is None else intervals.expression_bounds()
    if decisions.sets is SetsKind.PARAMETER:
        if options.intersect and within is None:
            raise InputError(
                "--intersect meets the tied intervals, and only the polytope region is built from them",
                hint="use --region polytope, or leave --intersect out",
            )
        return uncertainty.parameter(region, model, within if options.intersect else None)
    if decisions.sets is SetsKind.EXPRESSION:
        return uncertainty.expression(region, model, within)
    return uncertainty.rectangular(region, model, within)


class _PolicySolver:
    """Solves over one kernel: robust, optimistic, and a given policy's two ends."""

    def __init__(self, kernel: Kernel, objective: Objective, options: LearnOptions):
        self.kernel, self.objective, self.options = kernel, objective, options
        self.limits = Limits(seconds=options.seconds)
        self.notes: tuple[str, ...] = ()

    def robust(self) -> PolicyValue:
        """The policy with the best guarantee; the far end of its interval from a second solve."""
        agent = self.objective.agent
        guarantee = self._solve(agent.opposite)
        if self.objective.is_bounded or self.objective.lower_steps:
            self.notes = (
                "the robust policy of a step-bounded question depends on the step; the far end of its "
                "interval is that of any policy",
            )
            return _joined(guarantee.policy, guarantee, self._solve(agent), self.kernel.structure.initial)
        far = self._solve(agent, guarantee.policy)
        return _joined(guarantee.policy, guarantee, far, self.kernel.structure.initial)

    def optimistic(self) -> Solution:
        return self._solve(self.objective.agent)

    def evaluate(self, policy: OffsetArray | FloatArray) -> PolicyValue:
        ends = self._solve(Direction.MIN, policy), self._solve(Direction.MAX, policy)
        return _joined(policy, *ends, self.kernel.structure.initial)

    def _solve(self, nature: Direction, policy: OffsetArray | FloatArray | None = None) -> Solution:
        return solve(
            self.kernel,
            replace(self.objective, nature=nature),
            policy=policy,
            precision=self.options.precision,
            assume_support=self.options.assume_support,
            limits=self.limits,
        )


def _joined(
    policy: OffsetArray | FloatArray, first: Solution, second: Solution, initial: int
) -> PolicyValue:
    """Both ends: the smaller lower bound and the larger upper bound of the two solves."""
    low, high = (first, second) if first.lower[initial] <= second.lower[initial] else (second, first)
    interval = Interval(
        float(min(first.lower[initial], second.lower[initial])),
        float(max(first.upper[initial], second.upper[initial])),
    )
    return PolicyValue(policy, interval, (low, high))
