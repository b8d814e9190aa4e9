"""The chain behind the sets of a parametric model, link by link: counts, statistics, region, bounds, sets.

Everything a statement rests on is derived here from the problem alone: that every choice sums to 1, events
and how many share δ, successes and trials, coordinates, batches, pilot and plug-ins, rows, boxes and bounds.
Hints are intervals, which are proved or refused, and names of rows and bases, of which bad ones prove less.

What was seen is counted again from batches. An *outcome* of a choice is a group of m transitions with one
expression f; it has the probability m·f. Choices with the same outcomes draw from one distribution, so their
counts are added up, outcome by outcome. Counts are at most 2⁵⁰ together (the door sees to that): sums of them
are exact, also in doubles.

With probability at least 1 − δ, if the data were collected as `assumes` says and the model is right, all
statistical statements hold together (1). Then the true parameters satisfy every row of the region (2), and
every expression lies within what is proved of it (3). So the true operator of a policy lies between nature's
best and worst over the bounds, or over the region where bases are given, and vectors that are inductive
against all of them bound its value (4, `tightrope.certificate.theorem`). Coupled bounds follow from the same
region (5, `tightrope.certificate.coupled`). Without data the region is the domain, and nothing is random.
What only one kind of statement, set or proof needs is loaded where it is met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.certificate.budget import spend
from tightrope.certificate.coordinates import Box, Interval, Space, Terms, add, is_constant
from tightrope.certificate.evidence import METHODS, Data, RegionHints
from tightrope.certificate.nature import Boxes, signs_of_sums
from tightrope.certificate.numbers import Arithmetic
from tightrope.certificate.problem import Certificate, CertifiedProblem
from tightrope.certificate.rows import (
    ExpressionBounds,
    IntervalRows,
    ProvedEnds,
    RowOrigin,
    RowSystem,
    RowWriter,
    Sources,
    Statements,
    is_empty,
    prove_by_bases,
    shrunk_box,
)
from tightrope.certificate.verdict import Check, Contradiction
from tightrope.numerics.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class ProjectedRegion:
    """Links 2 and 3: rows of the region, the box that follows from them, and bounds of expressions, or of
    transitions where these share δ."""

    check: Check
    writer: RowWriter
    box: Box
    rows: RowSystem | None
    bounds: ExpressionBounds
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
        self.unknown = np.array([not is_constant(p) for p in self.polynomials], dtype=np.bool_)
        if problem.denominator is None:
            self.space = Space(problem.domain, [self.polynomials[e] for e in self.used])
        else:
            from tightrope.certificate.quotients import QuotientSpace

            self.space = QuotientSpace(problem, [self.polynomials[e] for e in self.used])
        self._ranges: dict[tuple[int, bool], Interval] = {}
        self.forms: dict[tuple[bool, bytes], dict[str, Any]] = {}
        if known is not None:
            self.statements = known

    @cached_property
    def outcomes(self) -> SeenOutcomes:
        size = self.problem.graph.transitions
        counts = np.zeros(size, dtype=np.int64)
        if self.data is not None:
            counts = totals(self.data, np.arange(size), size)
        return SeenOutcomes.of(self.problem, counts)

    def checks(self) -> list[Check]:
        """Links 1 to 3."""
        checks = [self.distributions(), self.statements.check]
        return [*checks, self.projection.check] if all(check.passed for check in checks) else checks

    def distributions(self) -> Check:
        """Do the probabilities of every choice sum to 1, as functions?"""
        of, name = self.outcomes, "probabilities of every choice sum to 1"
        members: list[list[int]] = np.stack([of.expression, of.multiplicity], axis=1).tolist()
        if not all(0 <= self.polynomials[e].get((), 0) <= 1 for e, _ in members if not self.unknown[e]):
            return Check(name, False, "a number among them is no probability")
        for a, b in pairwise(of.start.tolist()):
            total: Terms = {}
            for e, m in members[a:b]:
                total = add(total, self.polynomials[e], m)
            if self.space.complement(total):
                return Check(name, False, f"expressions {[e for e, _ in members[a:b]][:20]} do not sum to 1")
        return Check(name, True, f"{len(of.start) - 1} groups of choices, in rationals")

    @cached_property
    def statements(self) -> Statements:
        """Link 1: of probabilities, and of rewards whose costs were seen."""
        data, delta = self.data, Fraction(0 if self.data is None else self.data.delta)
        if data is None or data.costs is None:
            return self._of_counts(delta)
        from tightrope.certificate.statistics.costs import prove_costs, share_of_costs

        part = share_of_costs(data, not self.unknown[self.used].any())
        of_counts = self._of_counts(delta * (1 - part))
        return prove_costs(self, data.costs, delta * part, of_counts)

    def _of_counts(self, delta: Fraction) -> Statements:
        """Of probabilities, from the counts."""
        data, hints = self.data, self.hints
        if (hints.lower is not None) != (data is not None and data.has_intervals):
            raise ValueError("intervals do not fit the method")
        betted = data is not None and data.method == "slab"
        if (hints.region is not None and self.is_untied) or (hints.slab and not betted):
            raise ValueError("the region does not fit the statement")
        if hints.pilot_share is not None and (data is None or not METHODS[data.method].ordered):
            raise ValueError("shares of pilots where there are none")
        if data is None:
            words = "the bounds hold for every instantiation in the domain"
            return Statements(Check("no data", True, words))
        module = import_module(f"tightrope.certificate.statistics.{METHODS[data.method].module}")
        statements: Statements = module.prove(self, delta)
        return statements

    @cached_property
    def sources(self) -> Sources:
        """What rows are written from, a slab's stages included: each rests on those before it."""
        sources, slab = self.statements.sources, self.statements.slab
        for stage in self.hints.slab:
            assert slab is not None
            slab = slab.narrowed(*self.project(stage.region, sources).bounds.doubles(self.used), stage)
            sources = {**sources, RowOrigin.SLAB: slab}
        return sources

    @cached_property
    def projection(self) -> ProjectedRegion:
        projected, region = self.project(self.hints.region), self.hints.region
        if region is not None and projected.rows is not None:
            last = region.box_basis[-2 * self.space.size :]
            bases = np.concatenate([region.bound_basis, region.choice_basis, last])
            if is_empty(projected.rows, bases):
                raise Contradiction("no parameters satisfy all rows of the region")
        return projected

    def writer(self, region: RegionHints | None, sources: Sources | None = None) -> RowWriter:
        """Who writes the rows that hints about a region name."""
        points = np.zeros((0, self.space.size)) if region is None else region.point
        if points.shape[1] != self.space.size:
            raise ValueError("the region does not fit the coordinates")
        return RowWriter(self.space, self.sources if sources is None else sources, points)

    def project(self, region: RegionHints | None, sources: Sources | None = None) -> ProjectedRegion:
        """Links 2 and 3, with these hints about the region."""
        writer, box, rows = self.writer(region, sources), self.space.start_box(), None
        bases, stages = ProvedEnds(), 0
        if region is not None:
            early = region.row[region.row[:, 0] != RowOrigin.EXPRESSION]
            if not np.array_equal(early, region.row[: len(early)]):
                raise ValueError("rows that rest on proved bounds come last")
            stages = len(region.box_basis) // (2 * self.space.size)
            box = shrunk_box(writer, early, region)
            rows = writer.rows(early, box)
            bases = prove_by_bases(rows, self.space, self.polynomials, region)
        bounds = self.bounds(bases, box if stages else None)
        lower, upper = self._derive(bounds)
        if np.any(lower > upper):
            raise Contradiction(f"no probability is left at {int((lower > upper).sum())} of them")
        if region is not None:
            met = dict.fromkeys(self.used)
            known = [p if e in met else None for e, p in enumerate(self.polynomials)]
            writer = writer.and_from(RowOrigin.EXPRESSION, IntervalRows(self.space, known, lower, upper))
            rows = writer.rows(region.row, box)
        words = f"{len(self.used)} expressions, {len(bases)} ends from bases, {stages} stages"
        check = Check("bounds of expressions are derived", True, words)
        return ProjectedRegion(check, writer, box, rows, bounds, lower, upper)

    def bounds(self, bases: ProvedEnds, box: Box | None) -> ExpressionBounds:
        """What events say of expressions, with what follows from bases and within a box."""
        return ExpressionBounds(self.space, self.polynomials, self.statements.ends, bases, box, self._ranges)

    def _derive(self, bounds: ExpressionBounds) -> tuple[FloatArray, FloatArray]:
        """The bounds of every expression, or of every transition where these share δ."""
        lower, upper = bounds.doubles(self.used)
        unknown, least = self.unknown, self.problem.assumed_support
        if self.is_untied:
            assert self.hints.lower is not None and self.hints.upper is not None
            lower, upper = lower[self.expression], upper[self.expression]
            unknown = unknown[self.expression]
            lower = np.where(unknown, np.maximum(lower, self.hints.lower), lower)
            upper = np.where(unknown, np.minimum(upper, self.hints.upper), upper)
        if least is not None:
            lower = np.where(unknown, np.maximum(lower, np.minimum(least, upper)), lower)
        return lower, upper

    def model_boxes(self) -> Boxes:
        """The bounds of transitions, around the one true distribution of every choice."""
        graph, n = self.problem.graph, self.n
        label = np.arange(graph.transitions) if self.is_untied else self.expression
        single, projected = np.ones(graph.choices, dtype=np.bool_), self.projection
        ends = n.array(projected.lower), n.array(projected.upper)
        boxes = Boxes(n, graph.transition_start, graph.successor, label, *ends, single)
        for _, table, _ in boxes.blocks():
            least, most = boxes.rows(table)
            if np.any(signs_of_sums(n, least) > 0) or np.any(signs_of_sums(n, most) < 0):
                raise Contradiction("no distribution is left at a choice")
        return boxes

    def boxes(self, boxes: Boxes, number: int, upward: bool) -> Boxes:
        """Link 4: the sets against which an end of claim `number` is checked, within `boxes`."""
        vectors = self.certificate.values[number]
        basis = vectors.upper_basis if upward else vectors.lower_basis
        if basis is None or basis.max(initial=-1) < 0:
            return boxes
        from tightrope.certificate.rectangular import RegionBoxes

        return RegionBoxes.of(boxes, self, basis)

    @cached_property
    def reward_ends(self) -> tuple[FloatArray, FloatArray] | None:
        """What every choice earns at least, and at most, where rewards have parameters: a value is monotone
        in them, so that its lower bound follows from the least rewards and its upper one from the largest."""
        earned = self.problem.objective.earned
        if earned is None:
            return None
        low, high = self.projection.bounds.doubles(np.unique(earned).tolist(), rewards=True)
        if np.any(low > high):
            raise Contradiction("no reward is left of an expression")
        return low[earned], high[earned]

    def priced(self, problem: CertifiedProblem, upward: bool) -> CertifiedProblem:
        """The problem with rewards at their end for a bound."""
        if problem.objective.earned is None or self.reward_ends is None:
            return problem
        objective = replace(problem.objective, reward=self.reward_ends[upward], earned=None)
        return replace(problem, objective=objective)


Ints = npt.NDArray[np.int64]


def totals(data: Data, labels: Ints, size: int, first: int = 0, last: int | None = None) -> Ints:
    """How often each label was seen in the batches from `first` to before `last`; labels are transitions'."""
    ends = data.batch_start[first], data.batch_start[data.batches if last is None else last]
    seen, count = data.batch_transition[ends[0] : ends[1]], data.batch_count[ends[0] : ends[1]]
    return np.bincount(labels[seen], count, size).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SeenOutcomes:
    """Outcome o of group owner[o] has probability multiplicity[o]·f, f = expression[o], and was seen[o].

    Outcomes of group k are start[k] to start[k+1]; `visits` are those of groups, `of_choice` the group of
    every choice.
    """

    start: Ints
    expression: Ints
    multiplicity: Ints
    seen: Ints
    of_choice: Ints

    @property
    def owner(self) -> Ints:
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def visits(self) -> Ints:
        return np.add.reduceat(self.seen, self.start[:-1])

    @staticmethod
    def of(problem: CertifiedProblem, counts: Ints) -> SeenOutcomes:
        graph, expression_of = problem.graph, problem.expression
        assert expression_of is not None
        choice = np.repeat(np.arange(graph.choices), np.diff(graph.transition_start))
        order = np.lexsort((expression_of, choice))
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (np.diff(choice) != 0) | (np.diff(expression_of[order]) != 0)
        first = np.flatnonzero(new)
        expression, seen = expression_of[order[first]], np.add.reduceat(counts[order], first)
        multiplicity = np.diff(np.append(first, len(order)))
        start = np.searchsorted(choice[first], np.arange(graph.choices + 1))
        of_choice, groups, parts = np.zeros(graph.choices, dtype=np.int64), 0, []
        for k in np.unique(np.diff(start)).tolist():
            choices = np.flatnonzero(np.diff(start) == k)
            spend("outcomes of choices", 1000 + len(start) // 8 + 10 * k * len(choices))
            table = start[choices][:, None] + np.arange(k)
            same = _number_rows(np.concatenate([expression[table], multiplicity[table]], axis=1))
            one = np.zeros(int(same.max()) + 1, dtype=np.int64)
            one[same] = np.arange(len(same))
            pooled = np.zeros((len(one), k), dtype=np.int64)
            np.add.at(pooled, same, seen[table])
            of_choice[choices], groups = groups + same, groups + len(one)
            own = table[one].reshape(-1)
            parts.append((np.full(len(one), k), expression[own], multiplicity[own], pooled.reshape(-1)))
        width, named, times, pooled = (np.concatenate(part) for part in zip(*parts, strict=True))
        return SeenOutcomes(np.concatenate([[0], np.cumsum(width)]), named, times, pooled, of_choice)


def _number_rows(table: Ints) -> Ints:
    """A number for every row, the same for equal rows."""
    number = np.zeros(len(table), dtype=np.int64)
    radix = int(table.max(initial=0)) + 1
    for column in table.T:
        number = number * radix + column
        number = np.searchsorted(np.unique(number), number)
    return number
