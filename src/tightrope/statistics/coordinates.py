"""Coordinates in which every expression is affine, by exact steps.

* Equalities of the domain are solved over the rationals, each for one parameter; at least one stays free.
* Every monomial of degree ≥ 2 is a chain of products of two coordinates (paper, "Linear relaxations"); the
  products are kept for McCormick envelopes.
* The reciprocal of every denominator is a coordinate; the `hinge` times it follows from the others.

An expression is then constant + linear·x. `slack` bounds the error of its float64 image on the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.model.expressions import Expressions
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.polynomial import Monomial, Polynomial, monomial_order
from tightrope.model.ranges import denominator_bounds, denominators, numerators
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import Record, remember
from tightrope.numerics.rounding import error_factor, up


@dataclass(frozen=True, eq=False, repr=False)
class AffineFunctions(Record):
    """n functions x ↦ constant + linear·x ± slack."""

    linear: FloatArray
    constant: FloatArray
    slack: FloatArray

    def __len__(self) -> int:
        return len(self.constant)

    def at(self, x: FloatArray) -> FloatArray:
        """The values at a point x, in plain float64."""
        return self.constant + self.linear @ x

    def chances(self, x: FloatArray) -> FloatArray:
        """The same within [0, 1]."""
        return np.clip(self.at(x), 0.0, 1.0)

    def take(self, index: IndexArray | OffsetArray | BoolArray) -> AffineFunctions:
        """A selection (an index array or a mask)."""
        return AffineFunctions(self.linear[index], self.constant[index], self.slack[index])


@dataclass(frozen=True, eq=False, repr=False)
class Coordinates(Record):
    """Coordinate j is monomials[j], a monomial over the free parameters (numbered by position in `free`).

    The first len(free) coordinates are the free parameters themselves, the next ones the reciprocals of
    `denominators` (polynomials of the free parameters); the last len(products) are products of two
    coordinates each. `lower` and `upper` enclose every coordinate over the box of the domain.
    """

    parameters: Parameters
    free: tuple[int, ...]
    substitution: tuple[Polynomial, ...]
    monomials: tuple[Monomial, ...]
    products: tuple[tuple[int, int], ...]
    lower: FloatArray
    upper: FloatArray
    denominators: tuple[Polynomial, ...] = ()

    @staticmethod
    @remember
    def of(expressions: Expressions, parameters: Parameters, eliminate: bool = True) -> Coordinates:
        """Coordinates for a table; without elimination all parameters stay and equalities become rows."""
        if eliminate:
            free, substitution = solve_equalities(parameters)
        else:
            free = tuple(range(len(parameters)))
            substitution = tuple(Polynomial.variable(i) for i in free)
        given = expressions.denominators
        inner = tuple(_replace(g, substitution) for g in given)
        extended = (*substitution, *(Polynomial.variable(len(free) + k) for k in range(len(given))))
        wanted: set[Monomial] = set()
        for monomial in expressions.monomials:
            wanted.update(_without_hinges(_substitute(monomial, extended), inner, len(free)).terms)
        if given:
            for table in (numerators(expressions), denominators(expressions)):
                for monomial in table.monomials:
                    wanted.update(_substitute(monomial, substitution).terms)
            for k, g in enumerate(inner):
                wanted.update((*m, (len(free) + k, 1)) for m in g.terms if m != hinge(g))
        singles = [((position, 1),) for position in range(len(free) + len(given))]
        chain = _prefixes(wanted)
        monomials: tuple[Monomial, ...] = (*singles, *chain)
        number = {monomial: j for j, monomial in enumerate(monomials)}
        products = tuple((number[left], number[right]) for left, right in map(_split, chain))
        ends = [(parameters.lower[i], parameters.upper[i]) for i in free]
        ends += [(1 / high, 1 / low) for low, high in denominator_bounds(given, parameters)]
        lower, upper = _boxes(ends, products)
        return Coordinates(parameters, free, substitution, monomials, products, lower, upper, inner)

    @property
    def size(self) -> int:
        return len(self.monomials)

    @property
    def is_lifted(self) -> bool:
        return bool(self.products or self.denominators)

    @property
    def names(self) -> tuple[str, ...]:
        """How each coordinate reads: `p`, `p*q`, `q^2`."""
        free_names = [self.parameters.names[i] for i in self.free]
        names = []
        for monomial in self.monomials:
            number = monomial[-1][0] - len(free_names)
            if number < 0:
                names.append(Polynomial({monomial: Fraction(1)}).text(free_names))
            else:
                top = Polynomial({monomial[:-1]: Fraction(1)}).text(free_names)
                names.append(f"{top}/({self.denominators[number].text(free_names)})")
        return tuple(names)

    @property
    def _variables(self) -> tuple[Polynomial, ...]:
        """Parameters and reciprocals as polynomials over the first coordinates."""
        reciprocals = range(len(self.free), len(self.free) + len(self.denominators))
        return (*self.substitution, *(Polynomial.variable(position) for position in reciprocals))

    @remember
    def denominator_functions(self) -> AffineFunctions:
        """The denominators as affine functions of the coordinates."""
        return self._affine(list(self.denominators))

    @remember
    def list_hinges(self) -> tuple[tuple[tuple[int, int], ...], AffineFunctions]:
        """For every denominator the coordinates of its hinge and of its reciprocal, and their product."""
        number = {monomial: j for j, monomial in enumerate(self.monomials)}
        first = len(self.free)
        unknown = [(hinge(g), first + k) for k, g in enumerate(self.denominators) if not g.is_constant]
        pairs = tuple((number[one], reciprocal) for one, reciprocal in unknown)
        products = [
            _without_hinges(Polynomial({(*one, (reciprocal, 1)): Fraction(1)}), self.denominators, first)
            for one, reciprocal in unknown
        ]
        return pairs, self._affine(products)

    @remember
    def functions(self, expressions: Expressions) -> AffineFunctions:
        """All expressions of a table as affine functions of the coordinates."""
        table, image = self._table(expressions), expressions.image()
        linear = np.asarray(image @ table)
        magnitude = np.asarray(abs(image) @ np.abs(table))
        terms = int(np.diff(expressions.row_start).max(initial=1)) + 4
        reach = np.append(np.maximum(np.abs(self.lower), np.abs(self.upper)), 1.0)
        slack = up(error_factor(terms) * (magnitude @ reach) * (1.0 + error_factor(len(reach) + 4)))
        return AffineFunctions(linear[:, :-1], linear[:, -1], slack)

    @remember
    def affine_among(self, expressions: Expressions) -> tuple[OffsetArray, AffineFunctions]:
        """Which expressions of any table are affine in these coordinates, and those as functions of them."""
        number = {*self.monomials, ()}
        index: list[int] = []
        forms: list[Polynomial] = []
        for row in range(len(expressions)):
            form = Polynomial({})
            for monomial, coefficient in expressions.polynomial(row).terms.items():
                form = form + _substitute(monomial, self.substitution) * Polynomial.constant(coefficient)
            if number.issuperset(form.terms):
                index.append(row)
                forms.append(form)
        return np.array(index, dtype=np.int64), self._affine(forms)

    def _table(self, expressions: Expressions) -> FloatArray:
        """The monomials of a table as affine functions of the coordinates, the constant last."""
        number = {monomial: j for j, monomial in enumerate(self.monomials)}
        table = np.zeros((len(expressions.monomials), self.size + 1))
        for row, monomial in enumerate(expressions.monomials):
            inner = _substitute(monomial, self._variables)
            inner = _without_hinges(inner, self.denominators, len(self.free))
            for term, coefficient in inner.terms.items():
                table[row, number[term] if term else self.size] = float(coefficient)
        return table

    @remember
    def parameter_functions(self) -> AffineFunctions:
        """The original parameters, eliminated ones included, as affine functions of the coordinates."""
        return self._affine(list(self.substitution))

    @remember
    def domain_rows(self) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
        """Rows a·x ≤ b of the domain beside the box of the free parameters, with their texts."""
        polynomials: list[Polynomial] = []
        bounds: list[Fraction] = []
        texts: list[str] = []
        for i, (low, high) in enumerate(zip(self.parameters.lower, self.parameters.upper, strict=True)):
            if i in self.free or self.substitution[i].is_constant:
                continue
            name = self.parameters.names[i]
            polynomials += [self.substitution[i], -self.substitution[i]]
            bounds += [high, -low]
            texts += [f"{name} <= {high}", f"{name} >= {low}"]
        for constraint in self.parameters.constraints:
            row = Polynomial({})
            for i, coefficient in enumerate(constraint.coefficients):
                row = row + self.substitution[i] * Polynomial.constant(coefficient)
            if row.is_constant:
                continue
            text = constraint.text(self.parameters.names)
            for side in (1, -1) if constraint.is_equality else (1,):
                polynomials.append(row * Polynomial.constant(side))
                bounds.append(constraint.bound * side)
                texts.append(text)
        functions = self._affine(
            [p - Polynomial.constant(b) for p, b in zip(polynomials, bounds, strict=True)]
        )
        return functions.linear, up(functions.slack - functions.constant), tuple(texts)

    def lift(self, theta: FloatArray) -> FloatArray:
        """The coordinates of points θ [n, d], in plain float64."""
        return self.lift_free(theta[:, list(self.free)])

    def lift_free(self, points: FloatArray) -> FloatArray:
        """The coordinates at free parameters [n, len(free)], in plain float64."""
        columns: list[FloatArray] = list(points.T)
        columns += [1.0 / _values(g, points) for g in self.denominators]
        for left, right in self.products:
            columns.append(columns[left] * columns[right])
        return np.stack(columns, axis=1) if columns else np.zeros((len(points), 0))

    def reciprocal_error(self, points: FloatArray) -> FloatArray:
        """The largest relative error of any reciprocal in `lift_free`, for each of the points."""
        worst = np.zeros(len(points))
        for g in self.denominators:
            size = _values(Polynomial({m: abs(c) for m, c in g.terms.items()}), np.abs(points))
            operations = len(g.terms) + 2 * g.degree + 6
            worst = np.maximum(worst, error_factor(operations) * size / np.abs(_values(g, points)))
        return worst

    def lift_exact(self, theta: Sequence[Fraction]) -> list[Fraction]:
        """The coordinates of one point, exactly."""
        values = [Fraction(theta[i]) for i in self.free]
        values += [1 / g.evaluate(values) for g in self.denominators]
        for left, right in self.products:
            values.append(values[left] * values[right])
        return values

    def parameters_at(self, x: FloatArray) -> FloatArray:
        """θ from coordinates [n, size], in plain float64 (products are ignored)."""
        functions = self.parameter_functions()
        return x @ functions.linear.T + functions.constant

    def _affine(self, polynomials: list[Polynomial]) -> AffineFunctions:
        number = {monomial: j for j, monomial in enumerate(self.monomials)}
        linear = np.zeros((len(polynomials), self.size + 1))
        for row, polynomial in enumerate(polynomials):
            for term, coefficient in polynomial.terms.items():
                linear[row, number[term] if term else self.size] = float(coefficient)
        reach = np.append(np.maximum(np.abs(self.lower), np.abs(self.upper)), 1.0)
        slack = up(error_factor(4) * (np.abs(linear) @ reach) * (1.0 + error_factor(len(reach) + 4)))
        return AffineFunctions(linear[:, :-1], linear[:, -1], slack)


def _substitute(monomial: Monomial, substitution: Sequence[Polynomial]) -> Polynomial:
    result = Polynomial.constant(1)
    for index, exponent in monomial:
        result = result * substitution[index] ** exponent
    return result


def hinge(denominator: Polynomial) -> Monomial:
    """The monomial whose product with the reciprocal follows from the others: 1 where equalities make the
    denominator a constant."""
    candidates = sorted(denominator.terms, key=monomial_order)
    return next((m for m in reversed(candidates) if m and abs(denominator.terms[m]) == 1), candidates[-1])


def _without_hinges(polynomial: Polynomial, denominators: Sequence[Polynomial], first: int) -> Polynomial:
    """The same function, with (1 − Σ c·m·r)/c₀ over the other monomials in place of hinge·r."""
    if not denominators:
        return polynomial
    result = Polynomial({})
    for monomial, coefficient in polynomial.terms.items():
        k = monomial[-1][0] - first if monomial else -1
        if k >= 0 and denominators[k].is_constant:
            result = result + Polynomial({monomial[:-1]: coefficient / denominators[k].evaluate(())})
            continue
        if k < 0 or monomial[:-1] != hinge(denominators[k]):
            result = result + Polynomial({monomial: coefficient})
            continue
        rest = {(*m, monomial[-1]): -c for m, c in denominators[k].terms.items() if m != monomial[:-1]}
        share = coefficient / denominators[k].terms[monomial[:-1]]
        result = result + (Polynomial(rest) + 1) * share
    return result


def _replace(polynomial: Polynomial, substitution: Sequence[Polynomial]) -> Polynomial:
    result = Polynomial({})
    for monomial, coefficient in polynomial.terms.items():
        result = result + _substitute(monomial, substitution) * coefficient
    return result


def _values(polynomial: Polynomial, points: FloatArray) -> FloatArray:
    """A polynomial at points [n, variables], in plain float64."""
    total = np.zeros(len(points))
    for monomial, coefficient in polynomial.terms.items():
        total += float(coefficient) * np.prod([points[:, i] ** e for i, e in monomial], axis=0)
    return total


def _split(monomial: Monomial) -> tuple[Monomial, Monomial]:
    """The monomial without one factor of its last parameter, and that parameter."""
    *head, (index, exponent) = monomial
    rest = (*head, (index, exponent - 1)) if exponent > 1 else tuple(head)
    return rest, ((index, 1),)


def _prefixes(wanted: set[Monomial]) -> list[Monomial]:
    """All monomials of degree ≥ 2 on the chains that lead to the wanted ones, by degree."""
    chain: set[Monomial] = set()
    for monomial in wanted:
        while sum(exponent for _, exponent in monomial) >= 2:
            chain.add(monomial)
            monomial = _split(monomial)[0]
    return sorted(chain, key=monomial_order)


def _boxes(
    bounds: list[tuple[Fraction, Fraction]], products: tuple[tuple[int, int], ...]
) -> tuple[FloatArray, FloatArray]:
    """Outward float bounds of the free parameters and of the chained products (exact interval arithmetic)."""
    intervals = list(bounds)
    for left, right in products:
        (a, b), (c, d) = intervals[left], intervals[right]
        corners = [a * c, a * d, b * c, b * d]
        low = max(min(corners), Fraction(0)) if left == right else min(corners)
        intervals.append((low, max(corners)))
    lower, upper = (RationalArray.from_fractions([ends[side] for ends in intervals]) for side in (0, 1))
    return lower.to_float_down(), upper.to_float_up()


def solve_equalities(parameters: Parameters) -> tuple[tuple[int, ...], tuple[Polynomial, ...]]:
    """The free parameters, and every parameter as an affine polynomial in the free ones (by position)."""
    size = len(parameters)
    equalities = [c for c in parameters.constraints if c.is_equality]
    for i, (low, high) in enumerate(zip(parameters.lower, parameters.upper, strict=True)):
        if low == high:
            unit = tuple(Fraction(int(j == i)) for j in range(size))
            equalities.append(LinearConstraint(unit, low, True))
    solved: dict[int, tuple[list[Fraction], Fraction]] = {}
    for equality in equalities:
        row, bound = list(equality.coefficients), equality.bound
        for pivot, (other, other_bound) in solved.items():
            if factor := row[pivot]:
                row = [a - factor * b for a, b in zip(row, other, strict=True)]
                bound -= factor * other_bound
        candidates = [j for j in range(size) if row[j] != 0]
        if not candidates or len(solved) == size - 1:
            continue
        pivot = candidates[-1]
        lead = row[pivot]
        row, bound = [a / lead for a in row], bound / lead
        for key, (other, other_bound) in list(solved.items()):
            if factor := other[pivot]:
                reduced = [a - factor * b for a, b in zip(other, row, strict=True)]
                solved[key] = (reduced, other_bound - factor * bound)
        solved[pivot] = (row, bound)
    free = tuple(i for i in range(size) if i not in solved)
    position = {i: j for j, i in enumerate(free)}
    substitution: list[Polynomial] = []
    for i in range(size):
        if i in position:
            substitution.append(Polynomial.variable(position[i]))
            continue
        row, bound = solved[i]
        terms: dict[Monomial, Fraction] = {(): bound}
        terms.update({((position[j], 1),): -a for j, a in enumerate(row) if j != i and a != 0})
        substitution.append(Polynomial(terms))
    return free, tuple(substitution)
