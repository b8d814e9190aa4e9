"""From counts to sets, stage by stage: each is computed once, timed, and shared by all who need it.

    counts ──statistics──▶ event intervals ──▶ region ──▶ sets

An empty region is a verdict about the model. Whatever the true parameters are, an empty region misses them;
so under the model this happens with probability at most δ, and falling back to tied sets then costs no
further confidence. Where the model is wrong and the region is empty for that reason, the tied sets still
cover the truth with probability at least 1 − δ as long as transitions with the same expression have the same
probability, whatever it is: they use nothing else about the expressions.

Regions that compare parameters with each other are rarely empty even where the model is wrong, and no region
sees that the parameters have changed. So all data are tested apart, at a separate level α
(`tightrope.monitoring.model_fit`). It changes no result and no guarantee rests on it; a model that is
contradicted is a warning.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from tightrope.ambiguity import sets as uncertainty
from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.options import Decisions, LearnOptions
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.model_fit import ModelFit, weigh_fit
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.bounds import parameter_box
from tightrope.regions.build import build_region, polytope_region
from tightrope.regions.costs import with_costs
from tightrope.regions.nearby import Nearby
from tightrope.regions.region import Conflict, Region, RegionKind
from tightrope.statistics.bets import Gradient
from tightrope.statistics.costs import CostIntervals
from tightrope.statistics.estimates import EventIntervals, IntervalMethod, check_delta, event_intervals
from tightrope.statistics.ledger import Ledger
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Predictions
from tightrope.verdict import Verdict

Progress = Callable[[str], None]
"""Called with what begins, in a few words."""

T = TypeVar("T")


class EmptyRegion(CannotCertify):
    """The data contradict the model, and no fallback was wanted.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "a", {0: p, 1: 1 - p}), (0, "b", {0: p / 2, 1: 1 - p / 2}), (1, "", {1: 1})]
    >>> problem = tr.build_from_rows(rows, parameters, labels={"end": [1]}).problem('Pmin=? [ F "end" ]')
    >>> always = [[(0, "a", 0)] * 300 + [(0, "b", 0)] * 300]
    >>> try:
    ...     tr.learn(problem, always, delta=0.01, region="polytope", fallback=False)
    ... except tr.EmptyRegion as error:
    ...     print(error.conflict is not None)
    True
    """

    def __init__(self, contradiction: str, conflict: Conflict | None, ledger: Ledger):
        super().__init__(f"{contradiction}\nhint: leave `fallback=False` out to use tied sets instead")
        self.contradiction = contradiction
        self.conflict = conflict
        self.ledger = ledger

    @property
    def verdict(self) -> Verdict:
        """The data refute the model."""
        return Verdict.of(self.ledger.assumptions, contradicted=self.contradiction)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Sets, and what they were made of.

    `contradiction` are words about an empty region, else None.
    """

    sets: Sets
    region: Region | None
    intervals: EventIntervals | None
    box: tuple[FloatArray, FloatArray] | None
    contradiction: str | None
    seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class _Made:
    value: Any
    seconds: float


def silent(what: str) -> None:
    """Says nothing."""


class Stages:
    """The stages for one model, one data set and one δ.

    Where data grow, `predictions` and `intervals` are those of an earlier look: what they settle is kept.
    `near` says where the region was then. `gradient` is that of the value which a slab bets on.
    """

    def __init__(
        self,
        model: ParametricMDP,
        counts: Counts,
        delta: float,
        options: LearnOptions,
        progress: Progress | None = None,
        predictions: Predictions | None = None,
        intervals: EventIntervals | None = None,
        near: Nearby | None = None,
    ):
        check_delta(delta)
        if counts.model_hash != model.hash():
            raise InputError(
                "the counts belong to another model (their model hash differs)",
                hint="count transitions of this model: same file, constants and domain",
            )
        self.model, self.counts, self.delta, self.options = model, counts, delta, options
        self.progress: Progress = progress or silent
        self.predictions, self.earlier_intervals, self.near = predictions, intervals, near
        self.gradient: Gradient | None = None
        self.costs: CostIntervals | None = None
        self._made: dict[tuple[str, object], _Made] = {}

    @property
    def of_probabilities(self) -> float:
        """The part of δ that is left for probabilities, where observed costs have the other."""
        return self.delta if self.costs is None else self.delta - self.costs.delta

    @cached_property
    def outcomes(self) -> Outcomes:
        outcomes = Outcomes.of(self.model)
        outcomes.check(self.counts)
        return outcomes

    def intervals(self, decisions: Decisions) -> EventIntervals:
        """The intervals of the events, by the method that was decided on."""
        return self._intervals(decisions.interval, {"statistics": 0.0})

    def prepare(
        self, decisions: Decisions, sets_only: bool = False, before_sets: Callable[[], None] | None = None
    ) -> Prepared:
        """The sets that were decided on, or tied ones where their region is empty.

        `sets_only` leaves out what only explains a result: the box of the parameters. `before_sets` is called
        when the region is there; what follows are large arrays, and leaves other threads alone.
        """
        seconds = {"statistics": 0.0, "region": 0.0, "sets": 0.0}
        self._time("statistics", "outcomes", lambda: self.outcomes, seconds)
        intervals = None
        if decisions.follows_from_intervals:
            intervals = self._intervals(decisions.interval, seconds)
        region = self._region(decisions, intervals, seconds)
        contradiction = None
        if region is not None and region.emptiness.is_empty:
            contradiction = region.emptiness.text(self.delta)
            if not self.options.fallback:
                raise EmptyRegion(contradiction, region.emptiness.conflict, region.ledger)
            intervals = self._intervals(decisions.interval, seconds)
        if before_sets is not None:
            before_sets()
        sets = self._sets(decisions, None if contradiction else region, intervals, seconds)
        box = None
        if region is not None and contradiction is None and not sets_only:
            box = self._time("sets", ("box", decisions.region), lambda: parameter_box(region), seconds)
        return Prepared(sets, region, intervals, box, contradiction, seconds)

    def weigh_fit(self) -> tuple[ModelFit, float]:
        """The test of the model, and the seconds it took."""
        seconds = {"fit": 0.0}
        fit = self._time("fit", "fit", lambda: weigh_fit(self.model, self.counts), seconds)
        return fit, seconds["fit"]

    def _intervals(self, method: IntervalMethod, seconds: dict[str, float]) -> EventIntervals:
        return self._time(
            "statistics",
            method,
            lambda: event_intervals(
                self.model,
                self.counts,
                self.of_probabilities,
                method,
                self.options.budget,
                self.outcomes,
                self.earlier_intervals,
            ),
            seconds,
        )

    def _region(
        self,
        decisions: Decisions,
        intervals: EventIntervals | None,
        seconds: dict[str, float],
    ) -> Region | None:
        kind = decisions.region
        if kind is None:
            return None

        def make() -> Region:
            made: Region
            if kind is RegionKind.POLYTOPE and intervals is not None:
                made = polytope_region(intervals, near=self.near)
            else:
                chosen = decisions.region_options(self.options)
                made = build_region(
                    kind,
                    self.model,
                    self.counts,
                    self.of_probabilities,
                    chosen,
                    self.outcomes,
                    self.predictions,
                    self.gradient,
                )
            if self.costs is not None:
                made = with_costs(made, self.costs)
            _ = made.emptiness  # decided here, and timed as a part of building
            return made

        return self._time("region", (kind, decisions.interval), make, seconds)

    def _sets(
        self,
        decisions: Decisions,
        region: Region | None,
        intervals: EventIntervals | None,
        seconds: dict[str, float],
    ) -> Sets:
        model, kind = self.model, decisions.sets
        if kind is SetsKind.COUPLED:  # these start from the rectangular ones
            kind = SetsKind.RECTANGULAR
        intersect = self.options.intersect and kind is SetsKind.PARAMETER

        def make() -> Sets:
            if kind is SetsKind.UNTIED:
                return uncertainty.untied(model, self.counts, self.delta, decisions.interval)
            if region is None:
                assert intervals is not None
                return uncertainty.tied(intervals)
            within = None if intervals is None else intervals.expression_bounds()
            if kind is SetsKind.PARAMETER:
                return uncertainty.parameter(region, model, within if intersect else None)
            if kind is SetsKind.EXPRESSION:
                return uncertainty.expression(region, model, within)
            return uncertainty.rectangular(region, model, within)

        return self._time("sets", (kind, decisions.region, intersect), make, seconds)

    def _time(self, phase: str, key: object, make: Callable[[], T], seconds: dict[str, float]) -> T:
        """Make it, or take what was made before; either way its cost counts as that of the phase."""
        if (phase, key) not in self._made:
            self.progress(phase)
            begin = time.perf_counter()
            value = make()
            self._made[phase, key] = _Made(value, time.perf_counter() - begin)
        made = self._made[phase, key]
        seconds[phase] += made.seconds
        result: T = made.value
        return result
