"""Outward rounding of float64 computations, and exact comparison of sums with 1.

One operation in round-to-nearest is off by at most half a unit in the last place, so `down` and `up` enclose
its exact result. A sum of n products, in any order and with or without fused operations, is off by at most
γ(n)·Σ|aᵢ||bᵢ| with γ(n) = n·u/(1 − n·u), u = 2⁻⁵³ (Higham, *Accuracy and Stability of Numerical Algorithms*,
§3.1). `product_error` bounds this for a matrix product; `_SPARE` covers the rounding of the bound itself for
up to 10⁹ terms, `_TINY` the absolute error of underflow.

*Sums near 1* decide what nature may do. Knuth's two-sum (total + term = new + error, exactly) shows whether a
sum was exact. Other sums are *distilled*: two-sums run along the terms until nothing changes. Then each term
is at most half a unit in the last place of the next, so the last one has the sign of the whole sum, and is
its nearest float64 up to one unit. Additions of float64 neither underflow nor, with terms within [−1, 1],
overflow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import overload

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.jit import inlined, kernel

UNIT = 2.0**-53
"""The unit roundoff u of float64."""

_SPARE = 1.0 + 1e-6
_TINY = 1e-300


@overload
def down(value: float) -> float: ...
@overload
def down(value: FloatArray) -> FloatArray: ...
def down(value: float | FloatArray) -> float | FloatArray:
    """The next double below: a lower bound of whatever was rounded to `value`."""
    result = np.nextafter(value, -np.inf)
    return float(result) if np.ndim(value) == 0 else result


@overload
def up(value: float) -> float: ...
@overload
def up(value: FloatArray) -> FloatArray: ...
def up(value: float | FloatArray) -> float | FloatArray:
    """The next double above: an upper bound of whatever was rounded to `value`."""
    return -down(-value)


def round_up(value: Fraction | float) -> float:
    """The least double that is not below a number."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def difference(high: float, low: float) -> float:
    """The least double that is not below high − low: exactly this where it is one; ∞ for ∞ − ∞."""
    if math.isfinite(nearest := high - low):
        return round_up(Fraction(high) - Fraction(low))
    return math.inf if math.isnan(nearest) else nearest


def error_factor(terms: int) -> float:
    """γ(terms), rounded up: the relative error of a sum of that many products."""
    return _SPARE * terms * UNIT / (1.0 - terms * UNIT)


def product_error(left: FloatArray, right: FloatArray, extra_terms: int = 0) -> FloatArray:
    """Bound on the error of `left @ right`; `extra_terms` more roundings a product are allowed for.

    Exact inputs are assumed; for inputs that carry a relative error of k·u each, add
    `error_factor(2 * k) * |left| @ |right|`.
    """
    terms = left.shape[-1] + 2 + extra_terms
    magnitude: FloatArray = np.abs(left) @ np.abs(right)
    error: FloatArray = error_factor(terms) * magnitude + terms * _TINY
    return error


def largest_over_box(coefficients: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Upper bounds of r·x over the box lower ≤ x ≤ upper, one for each row r of `coefficients`."""
    best = np.maximum(coefficients * lower, coefficients * upper)
    size = np.abs(best).sum(axis=-1)
    terms = best.shape[-1] + 2
    total: FloatArray = best.sum(axis=-1) + (error_factor(terms) * size + terms * _TINY)
    return up(total)


SUM_UNIT = 2.0**-52


@inlined
def add(total: float, exact: bool, term: float) -> tuple[float, bool]:
    """total + term, and whether this sum is exact if `total` was."""
    new = total + term
    back = new - total
    return new, exact & (((total - (new - back)) + (term - back)) == 0.0)


@kernel
def distil(head: float, terms: FloatArray, size: int) -> float:
    """head + Σ terms[:size], of the right sign (0 only if it is 0); the terms are overwritten."""
    moved = size > 0
    top = head
    while moved:
        moved = False
        below = head
        for i in range(size):
            top = terms[i] + below
            back = top - terms[i]
            error = (terms[i] - (top - back)) + (below - back)
            moved |= top != terms[i]
            if i > 0:
                terms[i - 1] = error
            else:
                head = error
            terms[i] = below = top
    return top
