"""Safe bounds of polynomials over a box, for all of a table at once.

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
from itertools import product
from math import comb, prod

import numpy as np

from tightrope.model.expressions import Expressions, Point
from tightrope.numerics.arrays import FloatArray, OffsetArray

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
