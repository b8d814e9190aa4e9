"""The chain behind the sets of a parametric model, link by link: counts, statistics, region, bounds, sets.

Everything a statement rests on is derived here from the problem alone: that every choice sums to 1, events
and how many share δ, successes and trials, coordinates, batches, pilot and plug-ins, rows, boxes and bounds.
Hints are intervals, which are proved or refused, and names of rows and bases, of which bad ones prove less.

With probability at least 1 − δ, if the data were collected as `assumes` says and the model is right, all
statistical statements hold together (1). Then the true parameters satisfy every row of the region (2), and
every expression lies within what is proved of it (3). So the true operator of a policy lies between nature's
best and worst over the bounds, or over the region where bases are given, and vectors that are inductive
against all of them bound its value (4, `tightrope.certificate.game.theorem`). Coupled bounds follow from the
same region (5, `tightrope.certificate.coupled.check`). Without data the region is the domain, and nothing is
random. What only one kind of statement, set or proof needs is loaded where it is met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.claim import Certificate
from tightrope.certificate.game.nature import Boxes
from tightrope.certificate.hints import RegionHints
from tightrope.certificate.numbers import Arithmetic
from tightrope.certificate.problem import Problem
from tightrope.certificate.region.coordinates import Box, Space
from tightrope.certificate.region.duality import BasisTable, Rows
from tightrope.certificate.region.polynomials import is_constant
from tightrope.certificate.region.projection import Bounds, prove_by_bases, shrunk_box
from tightrope.certificate.region.projection import Ends as ProvedEnds
from tightrope.certificate.region.rows import Ends, Origin, Sources, Writer
from tightrope.certificate.statistics.outcomes import Outcomes, totals
from tightrope.certificate.statistics.statements import Setting, Statements
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from tightrope.certificate.coupled.check import CoupledCheck
    from tightrope.certificate.coupled.hints import CoupledHints
    from tightrope.certificate.coupled.values import Ends as ValueEnds
    from tightrope.certificate.statistics.intervals import Events


@dataclass(frozen=True, eq=False)
class Projection:
    """Links 2 and 3: rows of the region, the box that follows from them, and bounds of expressions, or of
    transitions where these share δ."""

    check: Check
    writer: Writer
    box: Box
    rows: Rows | None
    bounds: Bounds
    lower: FloatArray
    upper: FloatArray


class Learned:
    """The links one after the other, each a value that follows from the problem and hints."""

    def __init__(self, certificate: Certificate, n: Arithmetic, known: Statements | None = None):
        """`known`: the statements of the same problem and policies, where these were derived before."""
        problem, hints = certificate.problem, certificate.learned
        assert problem.polynomial is not None and problem.domain is not None
        assert problem.expression is not None and hints is not None
        self.certificate, self.n, self.problem, self.hints = certificate, n, problem, hints
        self.data, self.expression, self.polynomials = problem.data, problem.expression, problem.polynomial
        self.is_untied = self.data is not None and self.data.is_untied
        self.used: list[int] = np.unique(self.expression).tolist()
        if problem.denominator is None:
            self.space = Space(problem.domain, [self.polynomials[e] for e in self.used])
        else:
            from tightrope.certificate.region.quotients import QuotientSpace

            self.space = QuotientSpace(problem, [self.polynomials[e] for e in self.used])
        self.constant = np.array([is_constant(p) for p in self.polynomials])
        if known is not None:
            self.statements = known

    @cached_property
    def outcomes(self) -> Outcomes:
        size = self.problem.graph.transitions
        counts = np.zeros(size, dtype=np.int64)
        if self.data is not None:
            counts = totals(self.data, np.arange(size), size)
        return Outcomes.of(self.problem, counts)

    @cached_property
    def setting(self) -> Setting:
        known = self.problem, self.polynomials, self.expression
        return Setting(self.n, *known, self.space, self.outcomes)

    @cached_property
    def events(self) -> Events:
        from tightrope.certificate.statistics.intervals import Events

        paired = self.data is not None and self.data.shared_by == "events"
        return Events(self.setting, paired)

    def checks(self) -> list[Check]:
        """Links 1 to 3."""
        checks = [self.distributions(), self.statements.check]
        return [*checks, self.projection.check] if all(check.passed for check in checks) else checks

    def distributions(self) -> Check:
        name, wrong = "probabilities of every choice sum to 1", self.outcomes.unbalanced(self.setting)
        if wrong is not None:
            return Check(name, False, f"expressions {wrong[:20]} do not sum to 1")
        known = [self.polynomials[e].get((), Fraction(0)) for e in self.used if self.constant[e]]
        if not all(0 <= value <= 1 for value in known):
            return Check(name, False, "a number among them is no probability")
        return Check(name, True, f"{len(self.outcomes.start) - 1} groups of choices, in rationals")

    @cached_property
    def statements(self) -> Statements:
        """Link 1: of probabilities, and of rewards whose costs were seen."""
        data, delta = self.data, Fraction(0 if self.data is None else self.data.delta)
        if data is None or data.costs is None:
            return self._of_counts(delta)
        from tightrope.certificate.statistics.costs import prove_costs, share_of_costs

        part = share_of_costs(data, bool(self.constant[self.used].all()))
        found = self._of_counts(delta * (1 - part))
        return prove_costs(self.setting, data.costs, self.hints, delta * part, found)

    def _of_counts(self, delta: Fraction) -> Statements:
        """Of probabilities, from the counts."""
        data, hints, region = self.data, self.hints, self.hints.region
        if (hints.lower is not None) != (data is not None and data.has_intervals):
            raise ValueError("intervals do not fit the method")
        betted = data is not None and data.method == "slab"
        if (region is not None and self.is_untied) or (hints.slab and not betted):
            raise ValueError("the region does not fit the statement")
        if data is None:
            words = "the bounds hold for every instantiation in the domain"
            return Statements(Check("no data", True, words))
        about = self.setting
        if hints.lower is not None and hints.upper is not None:
            from tightrope.certificate.statistics.intervals import prove_events, prove_transitions

            ends = hints.lower, hints.upper
            if data.is_untied:
                return prove_transitions(about, data, ends, delta)
            return prove_events(about, data.method, self.events, ends, delta)
        if data.method == "slab":
            from tightrope.certificate.statistics.slab import prove_bets

            return prove_bets(about, data, self.certificate.claims)
        if data.method == "weissman":
            from tightrope.certificate.statistics.balls import Balls

            balls = Balls(about, delta)
            words = f"{balls.statements} balls, δ = {float(delta):g}"
            return Statements(Check("L1 balls are those of the model", True, words), {Origin.L1: balls})
        if data.method == "likelihood":
            from tightrope.certificate.statistics.likelihood import Likelihood

            likelihood = Likelihood(about, data, delta)
            words = f"{data.batches} batches, a pilot of {likelihood.pilot}, δ = {float(delta):g}"
            check = Check("every batch is predicted by those before it", True, words)
            return Statements(check, {Origin.CUT: likelihood}, planned=likelihood.planned)
        from tightrope.certificate.statistics.ellipsoid import Ellipsoid

        ellipsoid = Ellipsoid(about, delta)
        words = f"{self.space.size} coordinates, β = {float(ellipsoid.beta):.6f}, δ = {float(delta):g}"
        check = Check("the ellipsoid follows from the counts", True, words)
        return Statements(check, {Origin.TANGENT: ellipsoid}, support=ellipsoid)

    @cached_property
    def sources(self) -> Sources:
        """What rows are written from, a slab's stages included: each rests on those before it."""
        sources, slab = self.statements.sources, self.statements.slab
        for stage in self.hints.slab:
            assert slab is not None
            slab = slab.narrowed(*self.project(stage.region, sources).bounds.doubles(self.used), stage)
            sources = {**sources, Origin.SLAB: slab}
        return sources

    @cached_property
    def projection(self) -> Projection:
        return self.project(self.hints.region)

    def writer(self, region: RegionHints | None, sources: Sources | None = None) -> Writer:
        """Who writes the rows that hints about a region name."""
        points = np.zeros((0, self.space.size)) if region is None else region.point
        if points.shape[1] != self.space.size:
            raise ValueError("the region does not fit the coordinates")
        return Writer(self.n, self.space, self.sources if sources is None else sources, points)

    def project(self, region: RegionHints | None, sources: Sources | None = None) -> Projection:
        """Links 2 and 3, with these hints about the region."""
        writer = self.writer(region, sources)
        space, box, rows, stages = self.space, self.space.start_box(), None, 0
        bases: ProvedEnds = {}
        if region is not None:
            early = region.row[region.row[:, 0] != Origin.EXPRESSION]
            if not np.array_equal(early, region.row[: len(early)]):
                raise ValueError("rows that rest on proved bounds come last")
            stages = len(region.box_basis) // (2 * space.size)
            box = shrunk_box(writer, early, region)
            rows = writer.rows(early, box)
            bases = prove_by_bases(rows, space, self.polynomials, region)
        bounds = self.bounds(bases, box if stages else None)
        lower, upper = self._derive(bounds)
        if region is not None:
            writer = self.knowing(writer, lower, upper)
            rows = writer.rows(region.row, box)
        words = f"{len(self.used)} expressions, {len(bases)} ends from bases, {stages} stages"
        check = Check("bounds of expressions are derived", True, words)
        return Projection(check, writer, box, rows, bounds, lower, upper)

    def bounds(self, bases: ProvedEnds, box: Box | None) -> Bounds:
        """What events say of expressions, with what follows from bases and within a box."""
        ends, links = (self.hints.lower, self.hints.upper), self.statements.links
        return Bounds(self.space, self.polynomials, links, ends, bases, box)

    def knowing(self, writer: Writer, lower: FloatArray, upper: FloatArray) -> Writer:
        """The writer with rows from these bounds of the expressions that are used."""
        met = np.isin(np.arange(len(self.polynomials)), self.used)
        known = [p if met[e] else None for e, p in enumerate(self.polynomials)]
        return writer.and_from(Origin.EXPRESSION, Ends(self.space, known, lower, upper))

    def _derive(self, bounds: Bounds) -> tuple[FloatArray, FloatArray]:
        """The bounds of every expression, or of every transition where these share δ."""
        lower, upper = bounds.doubles(self.used)
        constant, least = self.constant, self.problem.assumed_support
        if self.is_untied:
            assert self.hints.lower is not None and self.hints.upper is not None
            lower, upper, constant = (of[self.expression] for of in (lower, upper, constant))
            lower = np.where(constant, lower, np.maximum(lower, self.hints.lower))
            upper = np.where(constant, upper, np.minimum(upper, self.hints.upper))
        if least is not None:
            lower = np.where(constant, lower, np.maximum(lower, np.minimum(least, upper)))
        return lower, upper

    def model_boxes(self) -> Boxes:
        """The bounds of transitions, around the one true distribution of every choice."""
        graph, n = self.problem.graph, self.n
        label = np.arange(graph.transitions) if self.is_untied else self.expression
        single, found = np.ones(graph.choices, dtype=np.bool_), self.projection
        ends = n.array(found.lower), n.array(found.upper)
        return Boxes(n, graph.transition_start, graph.successor, label, *ends, single)

    def boxes(self, boxes: Boxes, number: int, upward: bool) -> Boxes:
        """Link 4: the sets against which an end of claim `number` is checked, within `boxes`."""
        region, found = self.hints.region, self.projection
        vectors = self.certificate.values[number]
        basis = vectors.upper_basis if upward else vectors.lower_basis
        if basis is None or basis.max(initial=-1) < 0:
            return boxes
        if region is None or found.rows is None or self.problem.denominator is not None:
            raise ValueError("bases of choices without a region, or of quotients")
        from tightrope.certificate.region.nature import RegionBoxes

        support = self.statements.support
        if support is None:
            if basis.max(initial=-1) >= len(region.choice_basis):
                raise ValueError("bases of choices that are not there")
            support = BasisTable(found.rows, region.choice_basis)
        return RegionBoxes.of(boxes, self.space, self.polynomials, found.rows.reach, support, basis)

    @cached_property
    def reward_ends(self) -> tuple[FloatArray, FloatArray] | None:
        """What every choice earns at least, and at most, where rewards have parameters: a value is monotone
        in them, so that its lower bound follows from the least rewards and its upper one from the largest."""
        from tightrope.certificate.region.rewards import reward_ends

        earned = self.problem.objective.earned
        return None if earned is None else reward_ends(self.projection.bounds, earned)

    def priced(self, problem: Problem, upward: bool) -> Problem:
        """The problem with rewards at their end for a bound."""
        if problem.objective.earned is None or self.reward_ends is None:
            return problem
        asked = replace(problem.objective, reward=self.reward_ends[upward], earned=None)
        return replace(problem, objective=asked)

    def coupled(self, number: int, ends: ValueEnds) -> tuple[list[Check], ValueEnds]:
        """Link 5: coupled proofs about claim `number`, whose vectors prove `ends`, and what follows."""
        checks: list[Check] = []
        for hints in self.hints.coupled:
            if hints.claim == number:
                found, ends = self.coupled_check(hints).checks(ends)
                checks += found
        return checks, ends

    def coupled_check(self, hints: CoupledHints) -> CoupledCheck:
        """The check of one proof, once the region's rows and box are known."""
        if self.hints.region is None:
            raise ValueError("a coupled proof without a region")
        if self.problem.objective.earned is not None or self.problem.denominator is not None:
            raise ValueError("a coupled proof about rewards with parameters, or quotients")
        from tightrope.certificate.coupled.check import CoupledCheck

        about = self.certificate.claims[hints.claim], self.certificate.values[hints.claim]
        return CoupledCheck(self.problem, self.projection.writer, self.projection.box, hints, *about)
