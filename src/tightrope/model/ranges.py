"""Safe bounds of expressions over a box, for all expressions at once.

An affine function takes its extremes term by term, a multilinear one at corners of the box; both
are exact up to rounding. A monomial with a repeated factor is enclosed on its own, which is safe
but wider than the true range.

Rounding: a sum of n products of float64 numbers, each within relative error (1+u)^k of what it
stands for, is off by at most γ(n+k+2)·Σ|terms|, γ(m) = m·u/(1−m·u), u = 2⁻⁵³ (Higham, ch. 3). The
bounds are widened by that much.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray

if TYPE_CHECKING:
    from tightrope.model.expressions import Expressions

_UNIT = 2.0**-53
_MOST_CORNER_VARIABLES = 12


def ranges_over_box(
    expressions: Expressions, lower: Sequence[Fraction], upper: Sequence[Fraction]
) -> tuple[FloatArray, FloatArray]:
    """(low, high) with low ≤ f(θ) ≤ high for every expression f and every θ in the box."""
    low_point = np.array([float(x) for x in lower])
    high_point = np.array([float(x) for x in upper])
    low, high = _term_by_term(expressions, low_point, high_point)
    corners = expressions.is_multilinear & (expressions.degrees >= 2)
    for rows, variables in _by_variables(expressions, np.flatnonzero(corners)):
        if len(variables) > _MOST_CORNER_VARIABLES:
            continue
        corner_low, corner_high = _at_corners(expressions, rows, variables, low_point, high_point)
        low[rows] = np.maximum(low[rows], corner_low)
        high[rows] = np.minimum(high[rows], corner_high)
    return low, high


def _slack(expressions: Expressions) -> FloatArray:
    """γ for each row: terms, the product's factors, the roundings of coefficient and point."""
    operations = np.diff(expressions.row_start) + 2 * expressions.degrees + 4
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
    np.logical_or.at(occurs, expressions.row_of_term, expressions.exponents[expressions.monomial] > 0)
    patterns, inverse = np.unique(occurs[rows], axis=0, return_inverse=True)
    flat = inverse.reshape(-1)
    return [(rows[flat == k], tuple(np.flatnonzero(pattern).tolist())) for k, pattern in enumerate(patterns)]


def _at_corners(
    expressions: Expressions,
    rows: OffsetArray,
    variables: tuple[int, ...],
    low_point: FloatArray,
    high_point: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    image = expressions.image()[rows]
    magnitude = abs(image)
    slack = _slack(expressions)[rows]
    low = np.full(len(rows), np.inf)
    high = np.full(len(rows), -np.inf)
    for corner in range(2 ** len(variables)):
        point = low_point.copy()
        for bit, parameter in enumerate(variables):
            if corner >> bit & 1:
                point[parameter] = high_point[parameter]
        monomials = expressions.monomial_values(point)
        value = image @ monomials
        error = slack * (magnitude @ np.abs(monomials))
        low = np.minimum(low, value - error)
        high = np.maximum(high, value + error)
    return low, high
