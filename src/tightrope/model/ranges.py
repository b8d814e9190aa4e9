"""Safe bounds of expressions over a box: of polynomials as they are, of quotients f/g by those of f and g.

With Bernstein coefficients a_i of f and b_i of g of the same degrees, all b_i of one sign, f/g is at
every point a mean of the a_i/b_i with weights b_i·B_i/g ≥ 0, so that min a_i/b_i ≤ f/g ≤ max a_i/b_i.
Where f and g are of degree 1 in every parameter the coefficients are values at corners and the bounds are
attained: a quotient of affine functions is monotone along every edge. Numerators and denominators that
share their parameters are evaluated together.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from tightrope.model.expressions import Expressions, Point
from tightrope.model.polynomial import Monomial, Polynomial, monomial_order
from tightrope.model.polynomial_ranges import (
    LARGEST_DEGREE,
    MOST_CONTROL_POINTS,
    control_points,
    polynomial_ranges,
)
from tightrope.numerics.arrays import FloatArray, OffsetArray
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
    for rows, variables in _together(expressions, rational):
        bottom_rows = expressions.denominator_of[rows].astype(np.int64)
        degrees = [_degree(expressions, rows, v) for v in variables]
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
    functions = [expressions.function(e) for e in range(len(expressions))]
    tops = [f if isinstance(f, Polynomial) else f.numerator for f in functions]
    return table_of(expressions.parameter_names, tops)


@remember
def denominators(expressions: Expressions) -> Expressions:
    """The denominators of the table, a row each."""
    return table_of(expressions.parameter_names, list(expressions.denominators))


def table_of(names: tuple[str, ...], polynomials: list[Polynomial]) -> Expressions:
    """A table with just these rows, equal ones included."""
    listed: list[Monomial] = sorted({m for p in polynomials for m in p.terms}, key=monomial_order)
    number = {m: j for j, m in enumerate(listed)}
    rows = [
        sorted((number[m], Fraction(c).numerator, Fraction(c).denominator) for m, c in p.terms.items())
        for p in polynomials
    ]
    return Expressions.from_rows(names, tuple(listed), rows)


def _together(expressions: Expressions, rows: OffsetArray) -> list[tuple[OffsetArray, tuple[int, ...]]]:
    """Rows grouped by the parameters that occur in them and by the degrees of these."""
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for e in rows.tolist():
        variables = expressions.function(e).variables
        degrees = tuple(_degree(expressions, np.array([e]), v) for v in variables)
        groups.setdefault((variables, degrees), []).append(e)
    return [(np.array(members), variables) for (variables, _), members in groups.items()]


def _degree(expressions: Expressions, rows: OffsetArray, variable: int) -> int:
    """The largest exponent of a parameter in numerators or denominators of the first of these rows."""
    top, bottom = numerators(expressions), denominators(expressions)
    row = int(rows[0])
    pairs = (top, row), (bottom, int(expressions.denominator_of[row]))
    return max(
        int(table.exponents[table.monomial[table.row_start[r] : table.row_start[r + 1]], variable].max())
        for table, r in pairs
    )
