"""Coordinates in which every expression is affine.

Two exact steps lead from parameters θ to coordinates x:

* Equalities of the domain (Σθ = 1, fixed parameters) are solved by Gaussian elimination over the rationals;
  the remaining free parameters span the affine hull of the domain.
* Every monomial of degree ≥ 2 becomes a coordinate of its own, built by a chain of products of two earlier
  coordinates (paper, Appendix "Linear relaxations": z₁ = θ₁θ₂, z₂ = z₁θ₃, …; squares are products of a
  coordinate with itself). The products are kept so that McCormick envelopes can be written down.

An expression is then f(θ) = constant + linear·x. Its float64 image carries `slack`: on the whole domain
the float affine function differs from f by at most that much (coefficients are rounded once; |x| is
bounded by the box).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.model.expressions import Expressions
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Monomial, Polynomial, monomial_order
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.numerics.remember import remembered
from tightrope.numerics.rounding import down, error_factor, up
from tightrope.statistics.equalities import solve_equalities


@dataclass(frozen=True, eq=False, repr=False)
class AffineFunctions(Record):
    """n functions x ↦ constant + linear·x ± slack."""

    linear: FloatArray
    constant: FloatArray
    slack: FloatArray

    def __len__(self) -> int:
        return len(self.constant)

    def take(self, index: IndexArray | OffsetArray | BoolArray) -> AffineFunctions:
        """A selection (an index array or a mask)."""
        return AffineFunctions(self.linear[index], self.constant[index], self.slack[index])


@dataclass(frozen=True, eq=False, repr=False)
class Coordinates(Record):
    """Coordinate j is monomials[j], a monomial over the free parameters (numbered by position in `free`).

    The first len(free) coordinates are the free parameters themselves; coordinate len(free) + j is the
    product of coordinates products[j]. `lower` and `upper` enclose every coordinate over the box of the
    domain.
    """

    parameters: Parameters
    free: tuple[int, ...]
    substitution: tuple[Polynomial, ...]
    monomials: tuple[Monomial, ...]
    products: tuple[tuple[int, int], ...]
    lower: FloatArray
    upper: FloatArray

    @staticmethod
    @remembered
    def of(expressions: Expressions, parameters: Parameters, eliminate: bool = True) -> Coordinates:
        """Coordinates for a table; without elimination all parameters stay and equalities become rows."""
        if eliminate:
            free, substitution = solve_equalities(parameters)
        else:
            free = tuple(range(len(parameters)))
            substitution = tuple(Polynomial.variable(i) for i in free)
        wanted: set[Monomial] = set()
        for monomial in expressions.monomials:
            wanted.update(_substituted(monomial, substitution).terms)
        singles = [((position, 1),) for position in range(len(free))]
        chain = _prefixes(wanted)
        monomials: tuple[Monomial, ...] = (*singles, *chain)
        number = {monomial: j for j, monomial in enumerate(monomials)}
        products = tuple((number[left], number[right]) for left, right in map(_split, chain))
        lower, upper = _boxes([(parameters.lower[i], parameters.upper[i]) for i in free], products)
        return Coordinates(parameters, free, substitution, monomials, products, lower, upper)

    @property
    def size(self) -> int:
        return len(self.monomials)

    @property
    def is_lifted(self) -> bool:
        return len(self.products) > 0

    @property
    def names(self) -> tuple[str, ...]:
        """How each coordinate reads: `p`, `p*q`, `q^2`."""
        free_names = [self.parameters.names[i] for i in self.free]
        return tuple(Polynomial({m: Fraction(1)}).text(free_names) for m in self.monomials)

    @remembered
    def functions(self, expressions: Expressions) -> AffineFunctions:
        """All expressions of a table as affine functions of the coordinates."""
        table, image = self._table(expressions), expressions.image()
        linear = np.asarray(image @ table)
        magnitude = np.asarray(abs(image) @ np.abs(table))
        terms = int(np.diff(expressions.row_start).max(initial=1)) + 4
        reach = np.append(np.maximum(np.abs(self.lower), np.abs(self.upper)), 1.0)
        slack = up(error_factor(terms) * (magnitude @ reach) * (1.0 + error_factor(len(reach) + 4)))
        return AffineFunctions(linear[:, :-1], linear[:, -1], slack)

    @remembered
    def affine_among(self, expressions: Expressions) -> tuple[OffsetArray, AffineFunctions]:
        """Which expressions of any table are affine in these coordinates, and those as functions of them."""
        number = {*self.monomials, ()}
        index: list[int] = []
        forms: list[Polynomial] = []
        for row in range(len(expressions)):
            form = Polynomial({})
            for monomial, coefficient in expressions.polynomial(row).terms.items():
                form = form + _substituted(monomial, self.substitution) * Polynomial.constant(coefficient)
            if number.issuperset(form.terms):
                index.append(row)
                forms.append(form)
        return np.array(index, dtype=np.int64), self._affine(forms)

    @remembered
    def linear_errors(self, expressions: Expressions) -> FloatArray:
        """How far each linear coefficient of `functions` may be from the exact one."""
        magnitude = np.asarray(abs(expressions.image()) @ np.abs(self._table(expressions)))
        terms = int(np.diff(expressions.row_start).max(initial=1)) + 4
        return up(error_factor(terms) * magnitude[:, :-1] * (1.0 + 1e-12)) * (magnitude[:, :-1] > 0.0)

    def _table(self, expressions: Expressions) -> FloatArray:
        """The monomials of a table as affine functions of the coordinates, the constant last."""
        number = {monomial: j for j, monomial in enumerate(self.monomials)}
        table = np.zeros((len(expressions.monomials), self.size + 1))
        for row, monomial in enumerate(expressions.monomials):
            for term, coefficient in _substituted(monomial, self.substitution).terms.items():
                table[row, number[term] if term else self.size] = float(coefficient)
        return table

    @remembered
    def parameter_functions(self) -> AffineFunctions:
        """The original parameters, eliminated ones included, as affine functions of the coordinates."""
        return self._affine(list(self.substitution))

    @remembered
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
        columns: list[FloatArray] = [theta[:, i] for i in self.free]
        for left, right in self.products:
            columns.append(columns[left] * columns[right])
        return np.stack(columns, axis=1) if columns else np.zeros((len(theta), 0))

    def lift_exact(self, theta: Sequence[Fraction]) -> list[Fraction]:
        """The coordinates of one point, exactly."""
        values = [Fraction(theta[i]) for i in self.free]
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


def _substituted(monomial: Monomial, substitution: Sequence[Polynomial]) -> Polynomial:
    result = Polynomial.constant(1)
    for index, exponent in monomial:
        result = result * substitution[index] ** exponent
    return result


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
    return (
        np.array([_float_down(low) for low, _ in intervals]),
        np.array([_float_up(high) for _, high in intervals]),
    )


def _float_down(value: Fraction) -> float:
    nearest = float(value)
    return nearest if nearest <= value else down(nearest)


def _float_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if nearest >= value else up(nearest)
