"""Safe bounds of expressions over a box: of polynomials as they are, of quotients f/g by those of f and g.

With Bernstein coefficients a_i of f and b_i of g of the same degrees, all b_i of one sign, f/g is at
every point a mean of the a_i/b_i with weights b_i·B_i/g ≥ 0, so that min a_i/b_i ≤ f/g ≤ max a_i/b_i.
Where f and g are of degree 1 in every parameter the coefficients are values at corners and the bounds are
attained: a quotient of affine functions is monotone along every edge. Numerators and denominators that
share their parameters are evaluated together.

Safe bounds of polynomials over a box, for all of a table at once.

An affine function takes its extremes term by term, a multilinear one at corners of the box; both
are exact up to rounding. With repeated factors the Bernstein coefficients on the box enclose the
range: safe, and tight enough that a product of affine probabilities stays within [0, 1]. (Each of
its coefficients is an average of products of the factors' values at corners.)

Rounding: a sum of n products of float64 numbers, each within relative error (1+u)^k of what it
stands for, is off by at most γ(n+k+2)·Σ|terms|, γ(m) = m·u/(1−m·u), u = 2⁻⁵³ (Higham, ch. 3). The
bounds are widened by that much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import comb, prod

import numpy as np

from tightrope.model.expressions import NO_DENOMINATORS, Expressions, Point
from tightrope.model.polynomial import Monomial, monomial_order
from tightrope.model.polynomial_array import PolynomialArray
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.remember import remember
from tightrope.numerics.rounding import down, up

_UNIT = 2.0**-53
MOST_CONTROL_POINTS = 2**12
LARGEST_DEGREE = 128
"""Of one parameter: the table of control points takes time that grows with its third power."""


def polynomial_ranges(expressions: Expressions, lower: Point, upper: Point) -> tuple[FloatArray, FloatArray]:
    """(low, high) with low ≤ f(θ) ≤ high for every polynomial f and every θ in the box."""
    low_point = np.array([float(x) for x in expressions.checked_point(lower)])
    high_point = np.array([float(x) for x in expressions.checked_point(upper)])
    low, high = _term_by_term(expressions, low_point, high_point)
    for rows, variables in _by_variables(expressions, np.flatnonzero(expressions.degrees >= 2)):
        degrees = _degrees_in(expressions, rows, variables)
        if max(degrees) > LARGEST_DEGREE or prod(degree + 1 for degree in degrees) > MOST_CONTROL_POINTS:
            continue
        least, most = _at_control_points(expressions, rows, variables, degrees, low_point, high_point)
        low[rows] = np.maximum(low[rows], least)
        high[rows] = np.minimum(high[rows], most)
    return low, high


def _slack(expressions: Expressions, for_a_factor: int = 2) -> FloatArray:
    """γ for each row: terms, the product's factors, the roundings of coefficient and point."""
    operations = np.diff(expressions.row_start) + for_a_factor * expressions.degrees + 4
    scaled = operations * _UNIT
    slack: FloatArray = 1.01 * scaled / (1 - scaled)
    return slack


def _row_sums(expressions: Expressions, terms: FloatArray) -> FloatArray:
    sums = np.zeros(len(expressions))
    filled = np.flatnonzero(np.diff(expressions.row_start))
    if len(filled):
        sums[filled] = np.add.reduceat(terms, expressions.row_start[filled])
    return sums


def _term_by_term(
    expressions: Expressions, low_point: FloatArray, high_point: FloatArray
) -> tuple[FloatArray, FloatArray]:
    monomial_low = np.ones(len(expressions.monomials))
    monomial_high = np.ones(len(expressions.monomials))
    for m, monomial in enumerate(expressions.monomials):
        for parameter, exponent in monomial:
            a, b = low_point[parameter] ** exponent, high_point[parameter] ** exponent
            if exponent % 2 == 0:
                straddles = low_point[parameter] < 0 < high_point[parameter]
                a, b = (0.0 if straddles else min(a, b)), max(a, b)
            products = (monomial_low[m] * a, monomial_low[m] * b, monomial_high[m] * a, monomial_high[m] * b)
            monomial_low[m], monomial_high[m] = min(products), max(products)
    coefficient = expressions.float_coefficient
    first = coefficient * monomial_low[expressions.monomial]
    second = coefficient * monomial_high[expressions.monomial]
    size = _row_sums(expressions, np.maximum(np.abs(first), np.abs(second)))
    error = _slack(expressions) * size
    return (
        _row_sums(expressions, np.minimum(first, second)) - error,
        _row_sums(expressions, np.maximum(first, second)) + error,
    )


def _by_variables(expressions: Expressions, rows: OffsetArray) -> list[tuple[OffsetArray, tuple[int, ...]]]:
    """Rows grouped by the set of parameters that occur in them."""
    if len(rows) == 0:
        return []
    occurs = np.zeros((len(expressions), len(expressions.parameter_names)), dtype=np.bool_)
    for parameter in range(occurs.shape[1]):
        with_it = expressions.exponents[expressions.monomial, parameter] > 0
        occurs[expressions.row_of_term[with_it], parameter] = True
    group = np.zeros(len(rows), dtype=np.int64)
    for byte in np.packbits(occurs[rows], axis=1).T:
        _, group = np.unique(group * 256 + byte, return_inverse=True)
    first = np.unique(group, return_index=True)[1]
    return [
        (rows[group == k], tuple(np.flatnonzero(occurs[rows[example]]).tolist()))
        for k, example in enumerate(first.tolist())
    ]


def _degrees_in(expressions: Expressions, rows: OffsetArray, variables: tuple[int, ...]) -> list[int]:
    """The largest exponent of each of the variables in these rows."""
    in_rows = np.zeros(len(expressions), dtype=np.bool_)
    in_rows[rows] = True
    used = np.unique(expressions.monomial[in_rows[expressions.row_of_term]])
    return [int(expressions.exponents[used, v].max()) for v in variables]


def _at_control_points(
    expressions: Expressions,
    rows: OffsetArray,
    variables: tuple[int, ...],
    degrees: list[int],
    low_point: FloatArray,
    high_point: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest Bernstein coefficient on the box (corners, where all degrees are 1)."""
    low = np.full(len(rows), np.inf)
    high = np.full(len(rows), -np.inf)
    for value, error in control_points(expressions, rows, variables, degrees, low_point, high_point):
        low = np.minimum(low, value - error)
        high = np.maximum(high, value + error)
    return low, high


def control_points(
    expressions: Expressions,
    rows: OffsetArray,
    variables: tuple[int, ...],
    degrees: list[int],
    low_point: FloatArray,
    high_point: FloatArray,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The Bernstein coefficients of all rows on the box, one index after the other, and their errors."""
    image = expressions.image()[rows]
    magnitude = abs(image)
    # A power costs its factors and their rounding twice over, a weight, a product and a sum.
    slack = _slack(expressions, for_a_factor=7)[rows]
    signed = [_controls(d, low_point[v], high_point[v]) for d, v in zip(degrees, variables, strict=True)]
    absolute = [
        _controls(d, abs(low_point[v]), abs(high_point[v])) for d, v in zip(degrees, variables, strict=True)
    ]
    exponents = [np.minimum(expressions.exponents[:, v], d) for d, v in zip(degrees, variables, strict=True)]
    for index in product(*(range(d + 1) for d in degrees)):
        monomials = np.ones(len(expressions.monomials))
        sizes = np.ones(len(expressions.monomials))
        for k, exponent, values, bounds in zip(index, exponents, signed, absolute, strict=True):
            monomials *= values[k, exponent]
            sizes *= bounds[k, exponent]
        yield image @ monomials, slack * (magnitude @ sizes)


def _controls(degree: int, low: float, high: float) -> FloatArray:
    """[k, e]: the k-th Bernstein coefficient on [low, high] of x^e, written with the given degree.

    It is the mean of all products of e out of `degree` numbers, k of them `high`, the others `low`.
    """
    table = np.zeros((degree + 1, degree + 1))
    for k, e in product(range(degree + 1), repeat=2):
        for j in range(max(0, e - (degree - k)), min(k, e) + 1):
            weight = comb(k, j) * comb(degree - k, e - j) / comb(degree, e)
            table[k, e] += weight * high**j * low ** (e - j)
    return table


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
