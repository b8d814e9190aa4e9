"""Safe bounds of expressions over a box: of polynomials as they are, of quotients f/g by those of f and g.

With Bernstein coefficients a_i of f and b_i of g of the same degrees, all b_i of one sign, f/g is at
every point a mean of the a_i/b_i with weights b_i·B_i/g ≥ 0, so that min a_i/b_i ≤ f/g ≤ max a_i/b_i.
Where f and g are of degree 1 in every parameter the coefficients are values at corners and the bounds are
attained: a quotient of affine functions is monotone along every edge. Numerators and denominators that
share their parameters are evaluated together.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tightrope.model.expressions import NO_DENOMINATORS, Expressions, Point
from tightrope.model.polynomial import Monomial, monomial_order
from tightrope.model.polynomial_array import PolynomialArray
from tightrope.model.polynomial_ranges import (
    LARGEST_DEGREE,
    MOST_CONTROL_POINTS,
    control_points,
    polynomial_ranges,
)
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.remember import remember
from tightrope.numerics.rounding import down, up


def ranges_over_box(expressions: Expressions, lower: Point, upper: Point) -> tuple[FloatArray, FloatArray]:
    """(low, high) with low ≤ f(θ) ≤ high for every expression f and every θ in the box; infinite where a
    denominator may vanish.
    """
    if not expressions.denominators:
        return polynomial_ranges(expressions, lower, upper)
    tops, bottoms = numerators(expressions), denominators(expressions)
    low, high = polynomial_ranges(tops, lower, upper)
    rational = np.flatnonzero(expressions.is_rational)
    low[rational], high[rational] = -np.inf, np.inf
    low_point = np.array([float(x) for x in expressions.checked_point(lower)])
    high_point = np.array([float(x) for x in expressions.checked_point(upper)])
    for rows, variables, degrees in _together(expressions, rational):
        bottom_rows = expressions.denominator_of[rows].astype(np.int64)
        if max(degrees) > LARGEST_DEGREE or prod(degree + 1 for degree in degrees) > MOST_CONTROL_POINTS:
            continue
        box = variables, degrees, low_point, high_point
        least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
        sign: FloatArray = np.zeros(len(rows))
        usable = np.ones(len(rows), dtype=np.bool_)
        pairs = zip(control_points(tops, rows, *box), control_points(bottoms, bottom_rows, *box), strict=True)
        for (a, a_error), (b, b_error) in pairs:
            near = np.abs(b) - b_error
            usable &= (near > 0.0) & ((sign == 0.0) | (sign == np.sign(b)))
            sign = np.sign(b)
            near = np.where(near > 0.0, near, 1.0)
            far = np.abs(b) + b_error
            signed = a * sign
            first, last = signed - a_error, signed + a_error
            least = np.minimum(least, down(first / np.where(first < 0.0, down(near), up(far))))
            most = np.maximum(most, up(last / np.where(last > 0.0, down(near), up(far))))
        low[rows] = np.where(usable, down(least), -np.inf)
        high[rows] = np.where(usable, up(most), np.inf)
    return low, high


@remember
def numerators(expressions: Expressions) -> Expressions:
    """The numerators of all rows, polynomials as they are."""
    size = len(expressions.parameter_names)
    tops = [m[:-1] if m and m[-1][0] >= size else m for m in expressions.monomials]
    listed = sorted(set(tops), key=monomial_order)
    number = {m: j for j, m in enumerate(listed)}
    place = np.array([number[m] for m in tops], dtype=np.int32)
    # Within a row all monomials have the same reciprocal or none, and their order stays.
    monomial = place[expressions.monomial]
    return replace(expressions, monomials=tuple(listed), monomial=monomial, denominators=NO_DENOMINATORS)


@remember
def denominators(expressions: Expressions) -> Expressions:
    """The denominators of the table, a row each."""
    return table_of(expressions.parameter_names, expressions.denominators.array)


def table_of(names: tuple[str, ...], polynomials: PolynomialArray) -> Expressions:
    """A table with just these rows, equal ones included."""
    listed: list[Monomial] = sorted(polynomials.terms, key=monomial_order)
    columns = [polynomials.terms[monomial] for monomial in listed]
    rows = [np.flatnonzero(np.not_equal(column.numerator, 0)) for column in columns]
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    row_start: OffsetArray = np.zeros(len(polynomials) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=len(polynomials)), out=row_start[1:])
    coefficient = RationalArray.concatenate([c.take(r) for c, r in zip(columns, rows, strict=True)])
    monomial = np.repeat(np.arange(len(listed), dtype=np.int32), [len(r) for r in rows])
    return Expressions(names, tuple(listed), row_start, monomial[order], coefficient.take(order))


def _together(
    expressions: Expressions, rows: OffsetArray
) -> list[tuple[OffsetArray, tuple[int, ...], list[int]]]:
    """Rows grouped by the degrees of their parameters in numerator or denominator: (rows, parameters that
    occur, their degrees)."""
    of_row = np.maximum(
        _degrees(numerators(expressions))[rows],
        _degrees(denominators(expressions))[expressions.denominator_of[rows]],
    )
    distinct, group = np.unique(of_row, axis=0, return_inverse=True)
    found = []
    for k, degrees in enumerate(distinct.tolist()):
        variables = tuple(v for v, degree in enumerate(degrees) if degree)
        found.append((rows[group.reshape(-1) == k], variables, [degrees[v] for v in variables]))
    return found


def _degrees(table: Expressions) -> OffsetArray:
    """[row, parameter]: the largest exponent."""
    degrees: OffsetArray = np.zeros((len(table), len(table.parameter_names)), dtype=np.int64)
    np.maximum.at(degrees, table.row_of_term, table.exponents[table.monomial])
    return degrees
