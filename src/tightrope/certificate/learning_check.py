"""The chain behind a learned result, link by link: counts, statistics, region, sets, vectors.

With probability at least 1 − δ, if the data were collected as `assumption` says and the model is right, all
statistical statements hold together (1). Then the true parameters satisfy every row of the region (2), every
projected bound (3), and every transition's probability lies within its bounds (4). So the true operator of a
fixed policy lies between nature's best and worst over the bounds, or over the region where bases are given,
and the inductive vectors bound its value (5): see `tightrope.certificate.checker`. Both vectors are checked
against all distributions of the sets, never for one that nature would have to choose: sets may be larger
than they need be. Coupled bounds, where there are any, follow from the same region (6): see
`tightrope.certificate.coupled_check`.

Nothing of the program that made the certificate is used: no statistics, regions, sets or solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.certificate.archive import DAMAGE
from tightrope.certificate.balls import Balls
from tightrope.certificate.certificate import Claim, Problem
from tightrope.certificate.coupled_check import Ground, check_coupled
from tightrope.certificate.ellipsoid_check import Ellipsoid
from tightrope.certificate.exact import prove_side_exactly
from tightrope.certificate.inner import Box
from tightrope.certificate.learning import Guarantee, LearningCertificate
from tightrope.certificate.likelihood_check import LikelihoodCuts
from tightrope.certificate.old_checker import Operator, is_bounded, prove_side
from tightrope.certificate.plug_in_check import plug_in_check
from tightrope.certificate.polynomials import Polynomial, added, is_constant, key, read_polynomials
from tightrope.certificate.projection_check import (
    Bounds,
    Link,
    event_links,
    needed_ends,
    proved_by_bases,
    shrunk_box,
)
from tightrope.certificate.rational import RationalGame
from tightrope.certificate.region_rows import ExpressionEnds, Origin, RowWriter, Source
from tightrope.certificate.region_sets import RegionSets
from tightrope.certificate.sets import box_of, proper_sets
from tightrope.certificate.shape import Check, shape_check, wrong_type
from tightrope.certificate.signatures import Signatures
from tightrope.certificate.space import Space
from tightrope.certificate.statistics_check import budget_check, event_check, transition_check
from tightrope.certificate.support_check import BasisTable, Rows
from tightrope.numerics.arrays import FloatArray, IndexArray

SETS = ("untied", "tied", "parameter", "expression", "rectangular")
WITHOUT_EVENTS = ("weissman", "likelihood", "ellipsoid", "domain")

_MOST_COUNTS = 2.0**50
"""Sums of counts, also over the outcomes of choices, stay far below what int64 holds."""


def verify_learning(certificate: LearningCertificate, exactly: bool = False) -> list[Check]:
    """All links in order; the certificate is valid when all have passed."""
    try:
        return Chain(certificate, exactly).checks()
    except (*DAMAGE, OverflowError, ZeroDivisionError, AssertionError) as error:
        return [Check("shape", False, f"the parts do not fit together: {error}")]


class Chain:
    """The links one after the other; who writes certificates asks it what is still unproved."""

    def __init__(self, certificate: LearningCertificate, exactly: bool = False):
        self.certificate, self.exactly = certificate, exactly
        self.problem, self.data = certificate.problem, certificate.data

        self.links: dict[int, list[Link]] = {}
        self.sources: dict[Origin, Source] = {}
        self.rows: Rows | None = None
        self.ellipsoid: Ellipsoid | None = None
        self.polynomials = read_polynomials(self.data.expressions)
        self.space = Space(self.data.domain, self.data.coordinates)
        self.writer = RowWriter(self.data, self.space, self.polynomials, self.sources)

    def checks(self) -> list[Check]:
        shape = self._shape()
        if not shape.passed:
            return [shape]
        checks = [shape, self.distributions()]
        self.box = box_of(self.problem)
        if self.data.sets == "untied":
            checks += self._untied()
        else:
            checks += [*self.statistics(), *self.projected()]
        checks.append(proper_sets(self.box))
        if all(check.passed for check in checks):
            for guarantee in self.certificate.guarantees:
                checks += self._guarantee(guarantee)
            for proof in self.certificate.coupled:
                checks += check_coupled(self.ground(), proof, self.exactly)
        return checks

    @cached_property
    def signatures(self) -> Signatures:
        return Signatures.of(self.problem.transition_start, self.data.expression, self.data.counts)

    def ground(self) -> Ground:
        """What coupled proofs stand on, once the region's rows and box are known."""
        assert self.certificate.region is not None
        about = self.problem, self.data.expression, self.space, self.polynomials
        return Ground(*about, self.writer, self.region_box, self.certificate.guarantees)

    def unproved(self) -> list[tuple[int, int]]:
        """(expression, side) of the transitions' bounds that do not follow; side 1 is the upper one."""
        return self._failing(self.bounds.holds)

    def open_ends(self) -> list[tuple[int, int]]:
        """(expression, side) of the transitions' bounds that only the region or the domain can prove."""
        return self._failing(self.bounds.given)

    def _failing(self, holds: Callable[[int, int, float], bool]) -> list[tuple[int, int]]:
        low, high = self.ends
        return [
            (e, side)
            for e in np.unique(self.signatures.expression).tolist()
            for side, end in ((0, low[e]), (1, high[e]))
            if not holds(e, side, float(end))
        ]

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        assert self.problem.lower is not None and self.problem.upper is not None
        return needed_ends(self.data, self.problem.lower, self.problem.upper, len(self.polynomials))

    def _shape(self) -> Check:
        problem, data, guarantees = self.problem, self.data, self.certificate.guarantees
        transitions = len(problem.successor)
        trouble = wrong_type(problem)
        if problem.sets != "interval" or data.sets not in SETS:
            trouble = trouble or "unknown kind of sets"
        if data.counts.dtype != np.int64 or data.counts.shape != (transitions,) or data.counts.min() < 0:
            trouble = trouble or "the counts do not fit the transitions"
        elif data.counts.astype(np.float64).sum() > _MOST_COUNTS:
            trouble = trouble or "there are more counts than can be added up"
        if data.expression.dtype.kind not in "iu" or data.expression.shape != (transitions,):
            trouble = trouble or "the expressions do not fit the transitions"
        elif data.expression.min() < 0 or data.expression.max() >= len(self.polynomials):
            trouble = trouble or "an expression's number is out of range"
        if not guarantees:
            trouble = trouble or "nothing is guaranteed"
        for guarantee in guarantees:
            for side in ("lower", "upper"):
                found = shape_check(problem, _claim(problem, guarantee, side))
                if not found.passed:
                    trouble = trouble or f"{guarantee.name}, {side}: {found.detail}"
            if np.any(guarantee.lower > guarantee.upper):
                trouble = trouble or f"{guarantee.name}: a lower bound above the upper one"
        return Check("shape", trouble is None, trouble or "the parts fit together")

    def distributions(self) -> Check:
        """Σ of the expressions of every choice is the polynomial 1."""
        name = "probabilities of every choice sum to 1"
        one = key({(): Fraction(1)})
        examples = {tuple(sorted(row)) for row in self.signatures.rows()}
        for row in sorted(examples):
            total: Polynomial = {}
            for e in row:
                total = added(total, self.polynomials[e])
            if key(total) != one:
                return Check(name, False, f"expressions {list(row)} do not sum to 1")
        return Check(name, True, f"{len(examples)} signatures, in rationals")

    def _untied(self) -> list[Check]:
        problem, data = self.problem, self.data
        assert problem.lower is not None and problem.upper is not None
        bounds = Bounds(data, self.space, self.polynomials, {})
        checks, wrong = transition_check(
            data, problem.transition_start, self.polynomials, problem.lower, problem.upper, self.exactly
        )
        for t in np.flatnonzero(wrong).tolist():
            e = int(data.expression[t])
            wrong[t] = not (
                bounds.holds(e, 0, float(problem.lower[t])) and bounds.holds(e, 1, float(problem.upper[t]))
            )
        unknown = np.array([not is_constant(p) for p in self.polynomials])
        low, high = needed_ends(data, problem.lower, problem.upper, len(self.polynomials))
        known = [e for e in np.unique(data.expression).tolist() if not unknown[e]]
        fits = all(bounds.holds(e, 0, float(low[e])) and bounds.holds(e, 1, float(high[e])) for e in known)
        passed = fits and not wrong.any()
        detail = f"{len(wrong)} transitions by {data.method}"
        if not passed:
            detail = f"fails for {int(wrong.sum())} transitions, first for number {int(np.argmax(wrong))}"
        return [*checks, Check("transitions' bounds follow from their counts", passed, detail)]

    def statistics(self) -> list[Check]:
        """Link 1: budgets, and what the data themselves must satisfy."""
        data = self.data
        self.derive()
        if data.method == "domain":
            if data.delta != 0 or np.any(data.counts):
                raise ValueError("a domain that was learned from data")
            return [Check("no data", True, "the bounds hold for every instantiation in the domain")]
        if data.method == "weissman":
            balls = self.sources[Origin.L1]
            assert isinstance(balls, Balls)
            return [budget_check(data.delta, data.gamma, len(balls.uncertain), "signatures")]
        budget = budget_check(data.delta, data.gamma, 1, "region")
        if data.method == "likelihood":
            cuts, whole = self.sources[Origin.CUT], data.batch_counts
            assert isinstance(cuts, LikelihoodCuts) and whole is not None
            pooled = np.zeros(len(self.polynomials), dtype=np.int64)
            np.add.at(pooled, self.signatures.expression, self.signatures.counts)
            split = bool(np.array_equal(whole.sum(axis=0), pooled))
            words = f"{len(whole)} batches, pilot {data.pilot}, threshold {float(cuts.threshold):.6f}"
            return [
                budget,
                Check("the batches are the counts", split, words),
                plug_in_check(data, self.space, self.polynomials),
            ]
        if self.ellipsoid is not None:
            words = f"{self.space.size} coordinates, β = {float(self.ellipsoid.radius):.6f}"
            return [budget, Check("the ellipsoid follows from the counts", True, words)]
        return event_check(data, self.signatures, self.polynomials, self.exactly)

    def derive(self) -> None:
        """What rows are written from, out of the counts."""
        data, proof = self.data, self.certificate.region
        about = data, self.space, self.polynomials
        if data.method in WITHOUT_EVENTS and data.event_expression is not None:
            raise ValueError("events that no interval was derived for")
        if data.method == "weissman":
            self.sources[Origin.L1] = Balls(*about, self.signatures)
        elif data.method == "likelihood":
            whole = data.batch_counts
            assert whole is not None and proof is not None
            if whole.dtype != np.int64 or whole.ndim != 2 or np.any(whole < 0) or data.pilot < 0:
                raise ValueError("the batches are not counts")
            self.sources[Origin.CUT] = LikelihoodCuts(*about, proof.cut_point)
        elif data.method == "ellipsoid":
            assert proof is not None
            self.ellipsoid = Ellipsoid(*about, self.signatures, proof.cut_point)
            self.sources[Origin.TANGENT] = self.ellipsoid
        elif data.method != "domain":
            self.links = event_links(data, self.signatures, self.polynomials)

    def projected(self) -> list[Check]:
        """Links 2 to 4: rows, boxes, and the bounds of every transition."""
        checks = self.written()
        wrong = self.unproved()
        name = "transitions' bounds contain what was proved of their expressions"
        if wrong:
            words = f"fails for {len(wrong)} ends, first for one of expression {wrong[0][0]}"
        else:
            words = f"{len(self.polynomials)} expressions, {len(self.bounds.bases)} ends from bases"
        return [*checks, Check(name, not wrong, words)]

    def written(self) -> list[Check]:
        """Links 2 and 3: the rows, the box that follows from them, and what bases prove."""
        proof = self.certificate.region
        self.bounds = Bounds(self.data, self.space, self.polynomials, self.links)
        checks = []
        if proof is not None:
            early = proof.row[proof.row[:, 0] != Origin.EXPRESSION]
            if not np.array_equal(early, proof.row[: len(early)]):
                raise ValueError("rows that rest on proved bounds come last")
            box, trouble = shrunk_box(self.writer, replace(proof, row=early), self.exactly)
            words = trouble or f"{len(early)} rows, {len(proof.box_lower)} stages"
            checks.append(Check("the region's box follows from its rows", trouble is None, words))
            self.region_box = box
            rows = self.writer.rows(early, box)
            self.bounds.bases = proved_by_bases(rows, self.space, self.polynomials, proof, self.exactly)
            self.bounds.box = box if len(proof.box_lower) else None
            used = self.signatures.expression
            ends = ExpressionEnds(used, self.space, self.polynomials, self.ends)
            self.sources[Origin.EXPRESSION] = ends
            self.rows = rows if len(early) == len(proof.row) else self.writer.rows(proof.row, box)
        return checks

    def _guarantee(self, guarantee: Guarantee) -> list[Check]:
        checks = []
        for side, nature in (("lower", "MIN"), ("upper", "MAX")):
            problem = replace(self.problem, nature=nature)
            claim = _claim(problem, guarantee, side)
            basis = guarantee.lower_basis if side == "lower" else guarantee.upper_basis
            if self.exactly and basis is None and not self._in_closed_form():
                found = prove_side_exactly(RationalGame(problem, claim), side)
            else:
                found = prove_side(Operator(problem, claim, self._sets(basis)), side)
            checks += [replace(check, name=f"{guarantee.name}: {check.name}") for check in found]
        return checks

    def _in_closed_form(self) -> bool:
        """Whether nature's problem is that of an ellipsoid, which needs no bases."""
        return self.ellipsoid is not None and self.data.sets == "rectangular"

    def _sets(self, basis: IndexArray | None) -> Box:
        proof, data = self.certificate.region, self.data
        about = data.expression, self.space, self.polynomials
        if self._in_closed_form():
            assert self.rows is not None and self.ellipsoid is not None
            joint = np.diff(self.problem.transition_start) >= 3
            return RegionSets.of(self.box, *about, self.rows, self.ellipsoid, 1, joint.astype(np.int32) - 1)
        if basis is None:
            return self.box
        if self.rows is None or proof is None or data.sets != "rectangular":
            raise ValueError("bases without rectangular sets")
        table = BasisTable(self.rows, proof.choice_basis)
        return RegionSets.of(self.box, *about, self.rows, table, len(proof.choice_basis), basis)


def _claim(problem: Problem, guarantee: Guarantee, side: str) -> Claim:
    """One end as a claim; both bounds are the same vector, of which one side is checked."""
    bound = guarantee.lower if side == "lower" else guarantee.upper
    ranking = guarantee.lower_ranking if side == "lower" else guarantee.upper_ranking
    tail = guarantee.lower_tail if side == "lower" else guarantee.upper_tail
    if guarantee.policy_kind == "free" and not is_bounded(problem) and problem.lower_steps == 0:
        raise ValueError("a guarantee without its policy")
    if side == "upper" and ranking is None:
        ranking = np.zeros(len(bound), dtype=np.int64)
    stand_in = np.where(np.isinf(bound), 0.0, bound) if side == "upper" else bound
    return Claim(
        lower=stand_in,
        upper=bound,
        policy_kind=guarantee.policy_kind,
        policy=guarantee.policy,
        weight=guarantee.weight,
        ranking=ranking,
        tail_lower=tail if tail is None or side == "lower" else np.where(np.isinf(tail), 0.0, tail),
        tail_upper=tail,
    )
