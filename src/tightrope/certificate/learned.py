"""The chain behind the sets of a parametric model, link by link: counts, statistics, region, bounds, sets.

Everything a statement rests on is derived here from the problem alone: that every choice sums to 1, events
and how many share δ, successes and trials, coordinates, batches, pilot and plug-ins, rows. Hints are numbers
that are proved or refused.

With probability at least 1 − δ, if the data were collected as `assumes` says and the model is right, all
statistical statements hold together (1). Then the true parameters satisfy every row of the region (2), every
projected bound (3), and every transition's probability lies within its bounds (4). So the true operator of a
policy lies between nature's best and worst over the bounds, or over the region where bases are given, and
vectors that are inductive against all of them bound its value (5, `tightrope.certificate.game.theorem`).
Coupled bounds follow from the same region (6, `tightrope.certificate.coupled.check`). Without data the region
is the domain, and nothing is random.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.certificate.claim import Certificate
from tightrope.certificate.coupled.check import CoupledCheck
from tightrope.certificate.coupled.values import Ends as ValueEnds
from tightrope.certificate.game.nature import Boxes
from tightrope.certificate.hints import CoupledHints
from tightrope.certificate.numbers import Arithmetic
from tightrope.certificate.problem import Polynomial
from tightrope.certificate.region.coordinates import Box, Space
from tightrope.certificate.region.duality import BasisTable, Rows
from tightrope.certificate.region.nature import RegionBoxes
from tightrope.certificate.region.polynomials import is_constant
from tightrope.certificate.region.projection import Bounds, proved_by_bases, shrunk_box
from tightrope.certificate.region.rows import Ends, Origin, Source, Writer
from tightrope.certificate.statistics.assumption import assumptions
from tightrope.certificate.statistics.balls import Balls
from tightrope.certificate.statistics.ellipsoid import Ellipsoid
from tightrope.certificate.statistics.intervals import METHODS, Intervals
from tightrope.certificate.statistics.likelihood import Likelihood
from tightrope.certificate.statistics.outcomes import Events, Ints, Outcomes, totals
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import BoolArray


class Learned:
    """The links one after the other; who writes certificates asks it what is still unproved."""

    def __init__(self, certificate: Certificate, n: Arithmetic):
        problem, hints = certificate.problem, certificate.learned
        assert problem.data is not None and problem.table is not None and problem.domain is not None
        assert problem.expression is not None and hints is not None
        self.certificate, self.n, self.problem, self.hints = certificate, n, problem, hints
        self.data, self.expression = problem.data, problem.expression
        self.polynomials: list[Polynomial] = problem.table.polynomials
        self.delta = Fraction(self.data.delta)
        self.space = Space(problem.domain, self.polynomials)
        self.used = np.unique(self.expression).tolist()
        self.sources: dict[Origin, Source] = {}
        self.writer = Writer(n, self.space, self.sources)
        self.rows: Rows | None = None
        self.region_box: Box | None = None
        self.planned = False

    def show(self, certificate: Certificate) -> None:
        """The same problem with other hints about its region: who writes certificates tries several."""
        assert certificate.learned is not None
        self.certificate, self.hints = certificate, certificate.learned
        self._give_points()

    def _give_points(self) -> None:
        region = self.hints.region
        for source in self.sources.values():
            if region is not None and isinstance(source, Likelihood | Ellipsoid):
                source.points = region.point

    @cached_property
    def counts(self) -> Ints:
        """How often each transition was seen."""
        size = self.problem.graph.transitions
        return totals(self.data, np.arange(size), size)

    @cached_property
    def outcomes(self) -> Outcomes:
        return Outcomes.of(self.problem, self.counts)

    @cached_property
    def events(self) -> Events:
        return Events(self.outcomes, self.polynomials, self.data.budget == "tied")

    def checks(self) -> list[Check]:
        """Links 1 to 4."""
        checks = [self.distributions(), *self.statistics()]
        if all(check.passed for check in checks):
            checks += self.projected()
        return checks

    def assumes(self) -> tuple[list[str], bool]:
        """What the statement assumes, and whether its confidence is nominal."""
        return assumptions(self.problem, self.planned)

    def distributions(self) -> Check:
        name, wrong = "probabilities of every choice sum to 1", self.outcomes.unbalanced(self.polynomials)
        if wrong is not None:
            return Check(name, False, f"expressions {wrong[:20]} do not sum to 1")
        return Check(name, True, f"{len(self.outcomes.start) - 1} groups of choices, in rationals")

    def statistics(self) -> list[Check]:
        """Link 1: what holds of the true parameters, from the counts."""
        method, untied = self.data.method, self.data.sets == "untied"
        hints = self.hints
        size = self.problem.graph.transitions if untied else len(self.polynomials)
        if hints.lower.shape != (size,) or hints.upper.shape != (size,):
            raise ValueError("the bounds fit neither expressions nor transitions")
        if (hints.event_lower is not None) != (method in METHODS and not untied):
            raise ValueError("bounds of events do not fit the method")
        if untied and (hints.region is not None or method not in METHODS):
            raise ValueError("untied sets come from intervals alone")
        if hints.region is not None and hints.region.point.shape[1] != self.space.size:
            raise ValueError("the region does not fit the coordinates")
        if method in METHODS:
            return [] if untied else [self._events()]
        about = self.n, self.space, self.polynomials
        if method == "weissman":
            balls = Balls(*about, self.outcomes, self.delta)
            self.sources[Origin.L1] = balls
            words = f"{balls.statements} L1 balls share δ = {self.data.delta:g}"
            return [Check("L1 balls are those of the model", True, words)]
        if method == "likelihood":
            likelihood = Likelihood(*about, self.data)
            likelihood.learn(self.expression)
            self.sources[Origin.CUT], self.planned = likelihood, likelihood.planned
            self._give_points()
            words = f"{self.data.batches} batches, a pilot of {likelihood.pilot}, δ = {self.data.delta:g}"
            return [Check("every batch is predicted by those before it", True, words)]
        if method == "ellipsoid":
            ellipsoid = Ellipsoid(*about, self.outcomes, self.delta)
            self.sources[Origin.TANGENT] = ellipsoid
            self._give_points()
            words = f"{self.space.size} coordinates, β = {float(ellipsoid.beta):.6f}, δ = {self.data.delta:g}"
            return [Check("the ellipsoid follows from the counts", True, words)]
        return [Check("no data", True, "the bounds hold for every instantiation in the domain")]

    def _events(self) -> Check:
        lower, upper, events = self.hints.event_lower, self.hints.event_upper, self.events
        if lower is None or upper is None or not len(lower) == len(upper) == len(events):
            raise ValueError("the bounds of events do not fit the model's events")
        self.sources[Origin.EVENT] = Ends(self.space, events.polynomials, lower, upper)
        intervals = Intervals(self.n, self.data.method, self.delta / max(len(events), 1))
        wrong = intervals.unproved(events.successes, events.trials, lower, upper)
        name = f"events' intervals follow from the counts by {self.data.method}"
        found = Check.everywhere(name, wrong, "event")
        words = f"{len(events)} events share δ = {self.data.delta:g}, {int(events.trials.sum())} trials"
        return replace(found, detail=words) if found.passed else found

    def projected(self) -> list[Check]:
        """Links 2 to 4: rows, boxes, and the bounds of every expression, or every transition."""
        if self.data.sets == "untied":
            return [self._untied()]
        checks = self.written()
        wrong = self.unproved()
        words = f"{len(self.used)} expressions, {len(self.bounds.bases)} ends from bases"
        if wrong:
            words = f"fails for {len(wrong)} ends, first for one of expression {wrong[0][0]}"
        return [*checks, Check("bounds contain what was proved of the expressions", not wrong, words)]

    def written(self) -> list[Check]:
        """Links 2 and 3: the rows, the box that follows from them, and what bases prove."""
        hints, region = self.hints, self.hints.region
        links = self.events.links if Origin.EVENT in self.sources else {}
        self.bounds = Bounds(self.space, self.polynomials, links, hints.event_lower, hints.event_upper)
        if region is None:
            return []
        self._give_points()
        early = region.row[region.row[:, 0] != Origin.EXPRESSION]
        if not np.array_equal(early, region.row[: len(early)]):
            raise ValueError("rows that rest on proved bounds come last")
        self.region_box, trouble = shrunk_box(self.writer, early, region)
        self.rows = self.writer.rows(early, self.region_box)
        self.bounds.bases = proved_by_bases(self.rows, self.space, self.polynomials, region)
        self.bounds.box = self.region_box if len(region.box_lower) else None
        used = set(self.used)
        known = [polynomial if e in used else None for e, polynomial in enumerate(self.polynomials)]
        self.sources[Origin.EXPRESSION] = Ends(self.space, known, hints.lower, hints.upper)
        if len(early) < len(region.row):
            self.rows = self.writer.rows(region.row, self.region_box)
        words = trouble or f"{len(early)} rows, {len(region.box_lower)} stages"
        return [Check("the region's box follows from its rows", trouble is None, words)]

    def unproved(self, without_region: bool = False) -> list[tuple[int, int]]:
        """(expression, side) of the bounds that do not follow; side 1 is the upper one."""
        low, high = self.hints.lower, self.hints.upper
        ends = ((e, side, float(bound[e])) for e in self.used for side, bound in ((0, low), (1, high)))
        return [
            (e, side)
            for e, side, end in ends
            if not (side == 0 and self._is_assumed(e, low[e], high[e]))
            and not self.bounds.holds(e, side, Fraction(end), without_region)
        ]

    def _is_assumed(self, expression: int, low: float, high: float) -> bool:
        """Whether a lower bound is no more than the least probability that was assumed of what can happen."""
        least = self.problem.assumed_support
        return least is not None and not is_constant(self.polynomials[expression]) and low <= min(least, high)

    def _untied(self) -> Check:
        """Transitions' intervals from their own counts; other ends must hold of their expressions."""
        graph, hints, counts = self.problem.graph, self.hints, self.counts
        visits = np.add.reduceat(counts, graph.transition_start[:-1])
        trials = np.repeat(visits, np.diff(graph.transition_start))
        constant = np.array([is_constant(p) for p in self.polynomials])[self.expression]
        unknown = np.flatnonzero(~constant)
        intervals = Intervals(self.n, self.data.method, self.delta / max(len(unknown), 1))
        low, high = hints.lower, hints.upper
        wrong: BoolArray = constant.copy()
        assumed = 0.0 if self.problem.assumed_support is None else self.problem.assumed_support
        proper = np.where(low[unknown] <= np.minimum(assumed, high[unknown]), 0.0, low[unknown])
        wrong[unknown] = intervals.unproved(counts[unknown], trials[unknown], proper, high[unknown])
        bounds = Bounds(self.space, self.polynomials, {})
        ends = np.stack([self.expression[wrong], low[wrong], high[wrong]], axis=1)
        _, first, inverse = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        left = np.flatnonzero(wrong)
        fits = [
            (self._is_assumed(e, low[t], high[t]) or bounds.holds(e, 0, Fraction(float(low[t]))))
            and bounds.holds(e, 1, Fraction(float(high[t])))
            for t, e in zip(left[first].tolist(), self.expression[left[first]].tolist(), strict=True)
        ]
        wrong[left] = ~np.array(fits, dtype=np.bool_)[inverse.reshape(-1)]
        name = f"transitions' intervals follow from their counts by {self.data.method}"
        found = Check.everywhere(name, wrong, "transition")
        return replace(found, detail=f"{len(unknown)} transitions share δ") if found.passed else found

    def boxes(self, number: int, upward: bool) -> Boxes:
        """The sets against which an end of claim `number` is checked."""
        graph, n, region = self.problem.graph, self.n, self.hints.region
        label = np.arange(graph.transitions) if self.data.sets == "untied" else self.expression
        single = np.ones(graph.choices, dtype=np.bool_)  # around the one true distribution
        lower, upper = n.array(self.hints.lower), n.array(self.hints.upper)
        boxes = Boxes(n, graph.transition_start, graph.successor, label, lower, upper, single)
        vectors = self.certificate.values[number]
        basis = vectors.upper_basis if upward else vectors.lower_basis
        ellipsoid = self.sources.get(Origin.TANGENT)
        if self.data.sets != "rectangular" or region is None or self.rows is None:
            if basis is not None:
                raise ValueError("bases without rectangular sets")
            return boxes
        about = self.expression, self.space, self.polynomials, self.rows.reach
        if isinstance(ellipsoid, Ellipsoid):
            joint = np.where(np.diff(graph.transition_start) >= 3, 0, -1)
            return RegionBoxes.of(boxes, *about, ellipsoid, joint)
        if basis is None:
            return boxes
        if basis.max(initial=-1) >= len(region.choice_basis):
            raise ValueError("bases of choices that are not there")
        return RegionBoxes.of(boxes, *about, BasisTable(self.rows, region.choice_basis), basis)

    def coupled(self, number: int, ends: ValueEnds) -> tuple[list[Check], ValueEnds]:
        """Coupled proofs about claim `number`, whose vectors prove `ends`, and what follows with them."""
        checks: list[Check] = []
        for hints in self.hints.coupled:
            if hints.claim == number:
                found, ends = self.coupled_check(hints).checks(ends)
                checks += found
        return checks, ends

    def coupled_check(self, hints: CoupledHints) -> CoupledCheck:
        """The check of one proof, once the region's rows and box are known."""
        if self.region_box is None or hints.claim >= len(self.certificate.claims):
            raise ValueError("a coupled proof without a region, or of no claim")
        about = self.certificate.claims[hints.claim], self.certificate.values[hints.claim]
        return CoupledCheck(self.problem, self.writer, self.region_box, hints, *about)
