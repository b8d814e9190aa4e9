"""Outward rounding: how a float64 computation becomes a bound on the real number it approximates.

One operation in round-to-nearest is off by at most half a unit in the last place, so `down` and `up`
enclose its exact result. A sum of n products, in any order and with or without fused operations,
is off by at most γ(n)·Σ|aᵢ||bᵢ| with γ(n) = n·u/(1 − n·u), u = 2⁻⁵³ (Higham, *Accuracy and Stability of
Numerical Algorithms*, §3.1). `product` returns a matrix product with that error bound; the bound itself
is computed in floating point and therefore taken a little too large (`_SPARE` covers its own rounding
for up to 10⁹ terms, `_TINY` the absolute error of underflow).
"""

from __future__ import annotations

from typing import overload

import numpy as np

from tightrope.numerics.arrays import FloatArray

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
    result = np.nextafter(value, np.inf)
    return float(result) if np.ndim(value) == 0 else result


def error_factor(terms: int) -> float:
    """γ(terms), rounded up: the relative error of a sum of that many products."""
    return _SPARE * terms * UNIT / (1.0 - terms * UNIT)


def product(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`left @ right` and a bound on the absolute error of each of its entries.

    Exact inputs are assumed; for inputs that carry a relative error of k·u each, add
    `error_factor(2 * k) * |left| @ |right|`.
    """
    value: FloatArray = left @ right
    return value, product_error(left, right)


def product_error(left: FloatArray, right: FloatArray, extra_terms: int = 0) -> FloatArray:
    """Bound on the error of `left @ right`; `extra_terms` more roundings a product are allowed for."""
    terms = left.shape[-1] + 2 + extra_terms
    magnitude: FloatArray = np.abs(left) @ np.abs(right)
    error: FloatArray = error_factor(terms) * magnitude + terms * _TINY
    return error


def outward(value: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """[value − error, value + error], itself rounded outward."""
    return down(value - error), up(value + error)


def largest_over_box(coefficients: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Upper bounds of r·x over the box lower ≤ x ≤ upper, one for each row r of `coefficients`."""
    best = np.maximum(coefficients * lower, coefficients * upper)
    size = np.abs(best).sum(axis=-1)
    terms = best.shape[-1] + 2
    total: FloatArray = best.sum(axis=-1) + (error_factor(terms) * size + terms * _TINY)
    return up(total)
