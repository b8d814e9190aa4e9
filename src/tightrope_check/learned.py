"""The chain from counts to sets of a parametric model: counts, statistics, region, bounds, sets.

Everything that a statement uses is derived here from the problem alone. Hints are intervals, which are proved
or refused, and names of rows and bases; bad hints prove less.

With probability at least 1 − δ, if the data were collected as `assumes` says and the model is right, all
statistical statements hold simultaneously (1). Then the true parameters satisfy every row of the region (2),
and every expression lies within its proved bounds (3). So the true operator of a policy lies between nature's
best and worst over the bounds, or over the region where bases are given, and inductive vectors bound its
value (4, `tightrope_check.checker`). Coupled bounds follow from the same region (5,
`tightrope_check.coupled`). Without data the region is the domain, and nothing is random.

*Rows* a·x ≤ b hold at the true coordinates. They are written in rationals from their names (origin, index,
part); logarithms and roots are rounded to the safe side. `certificate-format.md` has the formulas.

* DOMAIN: parameter `index` within its bounds (part 0 upper, 1 lower), or constraint `index` − parameters
  (part 1: the other side of an equality).
* EVENT: event `index` is at most its upper bound (part 0), at least its lower one (part 1). EXPRESSION: the
  same of an expression, after its bounds were proved. COST: the same of a reward with observed costs.
* ENVELOPE: McCormick's rows of product `index` in the current box, parts 0 to 3; part 4 for squares.
* CUT: the likelihood's tangent at the file's point `index`. TANGENT: the ellipsoid's in that direction.
* L1: choice `index`, the set of outcomes in the bits of `part`.
* SLAB: stage `index` of a slab, the side that is `part` among those that are bet on.
* SPLIT: split `index` of a tree of cells, part 0 the half-space below it, part 1 the one above.

*Weak duality* (README) bounds directions: a bad basis gives a worse bound, never a wrong one.

*Expressions.* Each end of an expression f is the best of: f itself where it is a number, 0 or 1 otherwise; an
event's interval, f = g/m or f = (1 − g)/m; what a basis proves; and the range of f over the domain's box and
the shrunk box of the region. The box is shrunk in stages, by bases of rows in the old box and by products of
factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tightrope_check.arrays import FloatArray, Indices, Number, OffsetArray
from tightrope_check.budget import hold, spend, spend_on, spend_sums, spend_terms
from tightrope_check.coordinates import ONE, ZERO, Box, Interval, Row, Space, Terms, add, is_constant
from tightrope_check.evidence import METHODS, RegionHints
from tightrope_check.fields import Polynomial, Polynomials
from tightrope_check.nature import Boxes, signs_of_sums
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers
from tightrope_check.problem import Certificate, CertifiedProblem
from tightrope_check.verdict import Check, Contradiction

if TYPE_CHECKING:
    from tightrope_check.statistics.outcomes import ChoiceKinds, SeenOutcomes

_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class RowSystem:
    """{ x : matrix·x ≤ bound }; rows 2j and 2j + 1 are x_j ≤ upper_j and −x_j ≤ −lower_j, the box."""

    n: Arithmetic
    matrix: Numbers
    bound: Numbers

    @staticmethod
    def of(box: Box, rows: list[Numbers]) -> RowSystem:
        """Rows are (a, b), all rational."""
        (lower, upper), size = map(RATIONAL.array, box), len(box[0])
        table, order = RATIONAL.zeros((2 * size + len(rows), size + 1)), np.arange(size)
        table[2 * order, order], table[2 * order + 1, order] = RATIONAL.array([1, -1])
        table[2 * order, size], table[2 * order + 1, size] = upper, -lower
        table[2 * size :] = np.array(rows, dtype=object).reshape(-1, size + 1)
        return RowSystem(RATIONAL, table[:, :-1], table[:, -1])

    def within(self, n: Arithmetic) -> RowSystem:
        """The same in an arithmetic: bounds are raised by what rounding the entries may hide in the box."""
        if n.exact:
            return self
        spend_sums("rows of the region", 4 * self.size, self.matrix.tolist(), 64)
        near = n.array(self.matrix)
        n.require_finite(near)
        missed = np.abs(self.matrix - RATIONAL.array(near)) @ self.reach
        bound = RATIONAL.up(self.bound + missed)
        n.require_finite(bound)
        return RowSystem(n, near, bound)

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def upper(self) -> Numbers:
        return self.bound[0 : 2 * self.size : 2]

    @property
    def lower(self) -> Numbers:
        return -self.bound[1 : 2 * self.size : 2]

    @property
    def reach(self) -> Numbers:
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def table(self, basis: Indices) -> BasisTable:
        return BasisTable(self, basis)

    def bound_by(self, matrix: Numbers, bound: Numbers, directions: Numbers, multipliers: Numbers) -> Numbers:
        """y·b + max over the box of (g − y·A)·x, rounded up; y = multipliers[i] ≥ 0 for rows matrix[i]."""
        n, terms = self.n, multipliers.shape[1] + self.size
        rest, paid = directions - _times(multipliers, matrix), multipliers * bound
        over_box = np.maximum(rest * self.lower, rest * self.upper)
        total: Numbers = paid.sum(axis=1) + over_box.sum(axis=1)
        if n.exact:
            return total
        missed = n.error(terms + 8, np.abs(directions) + _times(multipliers, np.abs(matrix)))
        spread = np.abs(paid).sum(axis=1) + np.abs(over_box).sum(axis=1)
        total = total + 2 * (missed * self.reach).sum(axis=1) + n.error(2 * terms + 16, spread)
        return np.where(np.isfinite(total), total, np.inf)


def is_empty(rows: RowSystem, bases: Indices) -> bool:
    """Whether no x satisfies all rows, in rationals.

    The mean of the vertices of a proof's bases lies inside, as a rule. Else, with x = lower + u, rows that
    ask for less than nothing of u ≥ 0 are swapped with coordinates that can help, the first ones each time,
    until no row asks (u = 0 of what is left is a point) or nothing helps one that does (there is none).
    """
    size, matrix, bound = rows.size, RATIONAL.array(rows.matrix), RATIONAL.array(rows.bound)
    inverse = approximate_inverses(RATIONAL.floats(matrix)[bases])
    corners = np.einsum("nij,nj->ni", inverse, RATIONAL.floats(bound)[bases])
    middle = corners.sum(axis=0) / max(len(bases), 1)
    spend_on("points of the region", matrix.size, RATIONAL, matrix)
    if np.isfinite(middle).all() and np.all(matrix @ RATIONAL.array(middle) <= bound):
        return False
    table = np.column_stack([matrix, bound + matrix @ bound[1 : 2 * size : 2]])
    swapped, left = np.arange(size, size + len(table)), np.arange(size)
    while len(short := np.flatnonzero(table[:, -1] < 0)):
        row = short[np.argmin(swapped[short])]
        helping = np.flatnonzero(table[row, :-1] < 0)
        if len(helping) == 0:
            return True
        spend_on("points of the region", 2 * table.size, RATIONAL, table)
        column = helping[np.argmin(left[helping])]
        factor, new = table[:, column].copy(), table[row] / table[row, column]
        new[column] = 1 / table[row, column]
        table[:, column] = 0
        table = table - np.outer(factor, new)
        table[row] = new
        swapped[row], left[column] = left[column], swapped[row]
    return False


class BasisTable:
    """Bases with their approximate inverses, each used for many directions."""

    def __init__(self, rows: RowSystem, basis: Indices):
        if basis.ndim != 2 or basis.shape[1] != rows.size or np.any(basis >= len(rows.bound)):
            raise ValueError("a basis does not fit the region's rows")
        self.rows, self.n, self.basis = rows, rows.n, basis
        hold("bases of the region", 24 * basis.size * rows.size)
        spend("bases of the region", basis.size * rows.size * (1 + rows.size // 16))
        self.matrix, self.bound = rows.matrix[basis], rows.bound[basis]
        self.inverse = approximate_inverses(self.n.floats(rows.matrix)[basis])

    def within(self, n: Arithmetic) -> BasisTable:
        """The same bases in another arithmetic."""
        return BasisTable(self.rows.within(n), self.basis)

    def upper_bounds(self, directions: Numbers, which: Indices) -> Numbers:
        """Upper bounds of directions·x, direction i by basis which[i]."""
        count = max(1, _BLOCK // self.rows.size**2)
        if len(which) > count:
            parts = [slice(i, i + count) for i in range(0, len(which), count)]
            return np.concatenate([self.upper_bounds(directions[one], which[one]) for one in parts])
        spend_on("bounds by bases", 8 * directions.size * self.rows.size, self.n, self.rows.matrix)
        n, matrix, inverse = self.n, self.matrix[which], self.inverse[which]
        multipliers = n.array(_finite(_times(n.floats(directions), inverse)))
        rest = n.floats(directions - _times(multipliers, matrix))
        multipliers = np.maximum(multipliers + n.array(_finite(_times(rest, inverse))), 0)
        best = self.rows.bound_by(matrix, self.bound[which], directions, multipliers)
        return best if n.exact else np.where(np.any(directions != 0, axis=1), best, 0)


def upper_bounds(rows: RowSystem, directions: Numbers, basis: Indices) -> Numbers:
    """Upper bounds of directions·x, one basis each."""
    bases, which = np.unique(basis, axis=0, return_inverse=True)
    return BasisTable(rows, bases).upper_bounds(directions, which.reshape(-1))


def _times(vectors: Numbers, matrices: Numbers) -> Numbers:
    """Σ_i vectors[n, i]·matrices[n, i, j], one after the other."""
    result: Numbers = vectors[:, 0, None] * matrices[:, 0]
    for i in range(1, vectors.shape[1]):
        result = result + vectors[:, i, None] * matrices[:, i]
    return result


def _finite(steps: FloatArray) -> FloatArray:
    return np.where(np.isfinite(steps), steps, 0.0)


def approximate_inverses(matrix: FloatArray) -> FloatArray:
    """Approximate inverses, zeros where there is none: by elimination with the largest pivots, in plain steps
    that are the same on every machine."""
    (count, size), result = matrix.shape[:2], np.zeros(matrix.shape)
    step = max(1, _BLOCK // max(size * size, 1))
    for first in range(0, count, step):
        part = matrix[first : first + step]
        every, work = np.arange(len(part)), np.concatenate([part, np.zeros(part.shape)], axis=2)
        work[:, np.arange(size), size + np.arange(size)] = 1.0
        with np.errstate(all="ignore"):
            for j in range(size):
                pivot = j + np.argmax(np.abs(work[:, j:, j]), axis=1)
                chosen = work[every, pivot]
                work[every, pivot] = work[:, j]
                work[:, j] = chosen / chosen[:, j, None]
                factor = work[:, :, j].copy()
                factor[:, j] = 0.0
                work -= factor[:, :, None] * work[:, j, None]
        sound = np.all(np.isfinite(work), axis=(1, 2))
        result[first : first + step][sound] = work[sound][:, :, size:]
    return result


RowOrigin = IntEnum("RowOrigin", "DOMAIN EVENT ENVELOPE CUT L1 EXPRESSION TANGENT SPLIT SLAB COST", start=0)


class RowSource(Protocol):
    """Whoever can write down the rows of an origin, tangents at the file's points; a name that means nothing
    is a ValueError."""

    def row(self, index: int, part: int, points: FloatArray) -> Row: ...


Sources = Mapping[RowOrigin, RowSource]


class RowWriter:
    """Writes rows from names, sources and the file's points. What does not depend on the box is kept."""

    def __init__(self, space: Space, sources: Sources, points: FloatArray):
        self.space, self.points = space, points
        self.sources: Sources = {RowOrigin.DOMAIN: space, **sources}
        self._known: dict[tuple[int, int, int], Numbers] = {}

    def and_from(self, origin: RowOrigin, source: RowSource) -> RowWriter:
        """A writer that knows one more origin."""
        result = RowWriter(self.space, {**self.sources, origin: source}, self.points)
        result._known.update(self._known)
        return result

    def rows(self, names: Indices, box: Box) -> RowSystem:
        """The named rows in the given box, after its faces."""
        hold("rows of the region", 32 * (len(names) + 2 * self.space.size) * (self.space.size + 1))
        spend_terms("rows of the region", 2 * len(names), box[0], box[1])
        return RowSystem.of(box, [self._numbers(tuple(name), box) for name in names.tolist()])

    def _numbers(self, name: tuple[int, int, int], box: Box) -> Numbers:
        if name in self._known:
            return self._known[name]
        origin, index, part = name
        if origin == RowOrigin.ENVELOPE:
            linear, bound = self._envelope(index, part, box)
            spend("rows of the region", 20 * len(linear))
            return RATIONAL.array([*linear, bound])
        if origin not in self.sources:
            raise ValueError(f"rows of origin {origin} where there are none")
        linear, bound = self.sources[RowOrigin(origin)].row(index, part, self.points)
        spend_terms("rows of the region", len(linear), linear, (bound,))
        self._known[name] = RATIONAL.array([*linear, bound])
        return self._known[name]

    def _envelope(self, index: int, part: int, box: Box) -> Row:
        space = self.space
        if index >= len(space.products) or part > 4:
            raise ValueError("no such product")
        x, y = space.products[index]
        (a, b), (c, d), linear = (box[0][x], box[1][x]), (box[0][y], box[1][y]), [ZERO] * space.size
        if part == 4 and x != y:
            raise ValueError("a tangent in the middle is for squares")
        # ∓(x − s)(y − t) ≤ 0
        middle = (a + b) / 2
        s, t, sign = [(a, c, -1), (b, d, -1), (b, c, 1), (a, d, 1), (middle, middle, -1)][part]
        linear[len(space.free) + index] += sign
        linear[x] -= sign * t
        linear[y] -= sign * s
        return linear, -sign * s * t


class IntervalRows:
    """Rows from bounds of polynomials: of events, or of expressions whose bounds were proved before."""

    def __init__(
        self, space: Space, polynomials: Sequence[Polynomial | None], lower: FloatArray, upper: FloatArray
    ):
        self.space, self.polynomials, self.lower, self.upper = space, polynomials, lower, upper

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        polynomial = self.polynomials[index] if index < len(self.polynomials) and part in (0, 1) else None
        if polynomial is None:
            raise ValueError("no such event or expression")
        end = Fraction(float((self.lower if part else self.upper)[index]))
        linear, constant = self.space.form(polynomial, end)  # at most 0, or at least
        return ([-a for a in linear], constant) if part else (linear, -constant)


@dataclass(frozen=True, eq=False)
class Statements:
    """What holds of the true parameters, as a check and as what rows are written from.

    `ends`: what events say of expressions. `support`: an ellipsoid bounds directions by itself, with the
    methods of `BasisTable`.
    `slab`: the bets whose rows are written in stages. `planned`: a likelihood's pilot follows from a plan.
    """

    check: Check
    sources: Sources = field(default_factory=dict)
    ends: Mapping[tuple[int, int], Fraction] = field(default_factory=dict)
    support: Any = None
    slab: Any = None
    planned: bool = False


def point_of(points: FloatArray, index: int, part: int) -> FloatArray:
    """The point that a tangent's name means."""
    if not 0 <= index < len(points) or part != 0:
        raise ValueError("no such tangent")
    return np.asarray(points[index])


ProvedEnds = dict[tuple[int, int], Fraction]
"""Proved bounds by (expression, side); side 1 is the upper one."""


def shrunk_box(writer: RowWriter, names: OffsetArray, hints: RegionHints) -> Box:
    """The region's box after all stages, no smaller than the file wants it."""
    (lower, upper), size = writer.space.start_box(), writer.space.size
    for basis in hints.box_basis.reshape(-1, 2 * size, size):
        lower, upper = next_box(writer, names, (lower, upper), basis)
    if any(a > b for a, b in zip(lower, upper, strict=True)):
        raise Contradiction("nothing is left of the box of parameters")
    if hints.box_lower is not None and hints.box_upper is not None:
        lower = [min(a, Fraction(b)) for a, b in zip(lower, hints.box_lower.tolist(), strict=True)]
        upper = [max(a, Fraction(b)) for a, b in zip(upper, hints.box_upper.tolist(), strict=True)]
    return lower, upper


def next_box(writer: RowWriter, names: OffsetArray, box: Box, basis: OffsetArray) -> Box:
    """The box after one more stage, in doubles where it became smaller."""
    rows = writer.rows(names, box)
    best = RATIONAL.up(upper_bounds(rows, rows.matrix[: 2 * rows.size], basis)).tolist()
    lower = [max(-Fraction(new), old) for new, old in zip(best[1::2], box[0], strict=True)]
    upper = [min(Fraction(new), old) for new, old in zip(best[::2], box[1], strict=True)]
    return writer.space.with_products(lower, upper)


def prove_by_bases(rows: RowSystem, space: Space, polynomials: Polynomials, hints: RegionHints) -> ProvedEnds:
    """The bounds that the listed bases prove."""
    ends = ProvedEnds()
    names = list(zip(hints.bound_expression.tolist(), hints.bound_side.tolist(), strict=True))
    if any(e >= len(polynomials) for e, _ in names):
        raise ValueError("a bound of an expression that is not there")
    near = [ZERO] * len(names) if hints.bound_near is None else [Fraction(c) for c in hints.bound_near]
    forms = [space.form(polynomials[e], c) for (e, _), c in zip(names, near, strict=True)]
    signed = [[a if side else -a for a in form] for (form, _), (_, side) in zip(forms, names, strict=True)]
    directions = RATIONAL.array(signed).reshape(len(signed), space.size)
    best = RATIONAL.fractions(upper_bounds(rows, directions, hints.bound_basis))
    for name, (_, constant), value, c in zip(names, forms, best, near, strict=True):
        rest = constant + (value if name[1] else -value)
        end = space.end(polynomials[name[0]], c, rest, name[1])
        known = ends.get(name, end)
        ends[name] = min(known, end) if name[1] else max(known, end)
    return ends


@dataclass(frozen=True, eq=False)
class ExpressionEnds:
    """What is proved of the ends of expressions: by events, by bases of a region, within its box."""

    space: Space
    polynomials: Polynomials
    events: Mapping[tuple[int, int], Fraction]
    bases: ProvedEnds
    box: Box | None
    over_domain: dict[tuple[int, bool], Interval]

    def doubles(self, used: Sequence[int], rewards: bool = False) -> tuple[FloatArray, FloatArray]:
        """(lower, upper) of the expressions that are used, rounded outward; [0, 1] of all others."""
        lower, upper = np.zeros(len(self.polynomials)), np.ones(len(self.polynomials))
        ends = [self.ends(e, rewards) for e in used]
        lower[used] = RATIONAL.down(np.array([low for low, _ in ends]))
        upper[used] = RATIONAL.up(np.array([high for _, high in ends]))
        return lower, upper

    def ends(self, expression: int, is_reward: bool = False) -> Interval:
        """The best that is proved; of a reward, which is no probability, by bases and its ranges."""
        polynomial, name, domain = self.polynomials[expression], (expression, is_reward), self.space.domain
        if name not in self.over_domain:  # the same at every stage
            self.over_domain[name] = self.space.range(polynomial, (domain.lower, domain.upper), is_reward)
        known = [self.over_domain[name], _named(self.bases, expression)]
        if not is_reward:
            known.append(self.without_region(expression))
        if self.box is not None:
            known.append(self.space.range(polynomial, self.box, is_reward, self.space.in_free))
        return max(low for low, _ in known), min(high for _, high in known)

    def without_region(self, expression: int) -> Interval:
        """What is plain, and what events say."""
        polynomial, (low, high) = self.polynomials[expression], _named(self.events, expression)
        value = polynomial.get((), ZERO)
        plain = (value, value) if is_constant(polynomial) else (ZERO, ONE)
        return max(low, plain[0]), min(high, plain[1])


def _named(ends: Mapping[tuple[int, int], Fraction], expression: int) -> tuple[Number, Number]:
    return ends.get((expression, 0), -inf), ends.get((expression, 1), inf)


@dataclass(frozen=True, eq=False)
class ProjectedRegion:
    """Links 2 and 3: rows of the region, the box that follows from them, and bounds of expressions, or of
    transitions where these share δ."""

    check: Check
    writer: RowWriter
    box: Box
    rows: RowSystem | None
    bounds: ExpressionEnds
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
        self.is_untied = self.data is not None and self.data.shared_by == "transitions"
        self.used: list[int] = np.unique(self.expression).tolist()
        self.unknown = np.array([not is_constant(p) for p in self.polynomials], dtype=np.bool_)
        if problem.denominator is None:
            self.space = Space(problem.domain, [self.polynomials[e] for e in self.used])
        else:
            from tightrope_check.quotients import QuotientSpace

            self.space = QuotientSpace(problem, [self.polynomials[e] for e in self.used])
        self._ranges: dict[tuple[int, bool], Interval] = {}
        self.forms: dict[tuple[bool, bytes], dict[str, Numbers]] = {}
        if known is not None:
            self.statements = known

    @cached_property
    def outcomes(self) -> SeenOutcomes:
        """What was seen of every choice's outcomes."""
        from tightrope_check.statistics.outcomes import SeenOutcomes

        assert self.data is not None
        size = self.problem.graph.transitions
        return SeenOutcomes.of(self.kinds, self.data.totals(np.arange(size), size))

    @cached_property
    def kinds(self) -> ChoiceKinds:
        """Which choices have the same outcomes."""
        from tightrope_check.statistics.outcomes import ChoiceKinds

        return ChoiceKinds.of(self.problem.graph, self.expression)

    def checks(self) -> list[Check]:
        """Links 1 to 3."""
        checks = [self.distributions(), self.statements.check]
        return [*checks, self.projection.check] if all(check.passed for check in checks) else checks

    def distributions(self) -> Check:
        """Do the probabilities of every choice sum to 1, as functions?"""
        name, kinds = "probabilities of every choice sum to 1", self.kinds
        if not all(0 <= self.polynomials[e].get((), 0) <= 1 for e in self.used if not self.unknown[e]):
            return Check(name, False, "a number among them is not a probability")
        spend("outcomes of choices", 1000 + 20 * len(self.expression))
        ones = np.unique(kinds.of_choice, return_index=True)[1]
        for first, last in zip(kinds.start[ones].tolist(), kinds.start[ones + 1].tolist(), strict=True):
            group = kinds.expression[first:last].tolist()
            total: Terms = {}
            for e, times in zip(group, kinds.multiplicity[first:last].tolist(), strict=True):
                total = add(total, self.polynomials[e], times)
            if self.space.complement(total):
                return Check(name, False, f"expressions {group[:20]} do not sum to 1")
        return Check(name, True, f"{len(ones)} groups of choices, in rationals")

    @cached_property
    def statements(self) -> Statements:
        """Link 1: of probabilities, and of rewards whose costs were seen."""
        data, delta = self.data, Fraction(0 if self.data is None else self.data.delta)
        if data is None or data.costs is None:
            return self._of_counts(delta)
        statements: Statements = _method("costs").prove(self, delta, self._of_counts)
        return statements

    def _of_counts(self, delta: Fraction) -> Statements:
        """Of probabilities, from the counts."""
        data, hints = self.data, self.hints
        if (hints.lower is not None) != (data is not None and data.has_intervals):
            raise ValueError("intervals do not fit the method")
        method = None if data is None else data.method
        bets = data is not None and data.bets
        if (hints.region is not None and self.is_untied) or (hints.slab and not bets):
            raise ValueError("the region does not fit the statement")
        if hints.pilot_share is not None and (method is None or not METHODS[method].ordered):
            raise ValueError("shares of pilots where there are none")
        if data is None:
            words = "the bounds hold for every instantiation in the domain"
            return Statements(Check("no data", True, words))
        statements: Statements = _method(METHODS[data.method].module).prove(self, delta)
        return statements

    @cached_property
    def sources(self) -> Sources:
        """What rows are written from, a slab's stages included: each rests on those before it."""
        sources, slab = self.statements.sources, self.statements.slab
        for stage in self.hints.slab:
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
                raise ValueError("rows that depend on proved bounds come last")
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

    def bounds(self, bases: ProvedEnds, box: Box | None) -> ExpressionEnds:
        """What events say of expressions, with what follows from bases and within a box."""
        return ExpressionEnds(self.space, self.polynomials, self.statements.ends, bases, box, self._ranges)

    def _derive(self, bounds: ExpressionEnds) -> tuple[FloatArray, FloatArray]:
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
        if self.problem.misfit is None:
            return boxes
        from tightrope_check.misfit import widened

        return widened(self, boxes)

    def boxes(self, boxes: Boxes, number: int, upward: bool) -> Boxes:
        """Link 4: the sets against which an end of claim `number` is checked, within `boxes`."""
        vectors = self.certificate.values[number]
        basis = vectors.upper_basis if upward else vectors.lower_basis
        if basis is None or basis.max(initial=-1) < 0:
            return boxes
        from tightrope_check.rectangular import RegionBoxes

        return RegionBoxes.of(boxes, self, basis)

    def priced(self, problem: CertifiedProblem, upward: bool) -> CertifiedProblem:
        """The problem with rewards at their end for a bound, where they have parameters."""
        return problem if problem.objective.earned is None else _method("costs").priced(self, problem, upward)


def _method(module: str) -> Any:
    """A way to make statements of data, loaded where it is met."""
    return import_module(f"tightrope_check.statistics.{module}")
