"""Logarithms and roots as rationals on a side of the true ones, by integers: no C library is believed."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import inf, isqrt, lcm
from typing import Any

import numpy as np

from tightrope.certificate.numbers import (
    RATIONAL,
    Arithmetic,
    Numbers,
    OutOfRange,
    dyadic,
    parts_of,
    quick,
    scaled,
)

_POINT = 160
"""Bits after the point, in which logarithms are worked out."""


def root_up(n: Arithmetic, array: Numbers) -> Numbers:
    """Not below the square roots; float64's are correctly rounded."""
    if n.exact:
        return n.each(array, _root_up, True)
    n.require_finite(array)
    root: Numbers = np.sqrt(np.maximum(array, 0))
    return np.where(root > 0, np.nextafter(root, np.inf), root)


def log_up(array: Numbers) -> Numbers:
    """Not below the logarithms of positive rationals, by at most 2⁻¹²⁰."""
    return RATIONAL.each(array, lambda top, bottom: log_ratio(top, bottom, True), True)


def log_down(array: Numbers) -> Numbers:
    """Not above them."""
    return RATIONAL.each(array, lambda top, bottom: log_ratio(top, bottom, False), False)


def log_below(level: Fraction) -> Any:
    """A number not above log(level), in few bits."""
    return quick(float(RATIONAL.down(log_down(RATIONAL.array([level])))[0]))


def log_ratio(top: int, bottom: int, upward: bool) -> tuple[int, int]:
    """log(x·2^−s) = log(x/c) + log(c) − s·log(2), 1/2 ≤ x ≤ 2, where c = i/1024 is next to x."""
    if top <= 0:
        raise OutOfRange
    if top == bottom:
        return 0, 1
    s = bottom.bit_length() - top.bit_length()
    x = scaled(top, bottom, s + _POINT, upward)
    i = x >> (_POINT - 10)
    c = i << (_POINT - 10)
    value = 2 * _atanh(x - c, x + c) + _log_grid(i) - s * _log_grid(2048)
    doubt = 256 * (2 + abs(s))
    value = -(-(value + doubt) >> (_POINT - 128)) if upward else (value - doubt) >> (_POINT - 128)
    return value, 1 << 128


def log_units(array: Numbers, upward: bool) -> Numbers:
    """Logarithms of positive numbers in units of 2⁻¹²⁸, as integers on a side: within 2⁻⁵⁸, but quickly.

    A double is m·2^e, 1/2 ≤ m < 1, and c = i/1024 is next to m: its logarithm is e·log(2) + log(c) +
    2·atanh(z), z = (m − c)/(m + c). m − c is exact and |z| ≤ 2⁻¹¹: in float64 z is off by at most 2u
    relatively, and four terms of the series give 2·atanh(z) ≤ 2⁻¹⁰ within 2⁻⁶⁰. Of a rational q next to a
    double v, 1 − v/q ≤ log(q/v) ≤ q/v − 1.
    """
    near = RATIONAL.floats(array) if array.dtype == object else array
    if not np.all((near > 0) & (near < inf)):
        exact = [log_ratio(*parts_of(value), upward)[0] for value in array.reshape(-1).tolist()]
        return np.array(exact, dtype=object).reshape(array.shape)
    mantissa, exponent = np.frexp(near)
    i = np.rint(1024 * mantissa).astype(np.int64)
    z = (mantissa - i / 1024) / (mantissa + i / 1024)
    square = z * z
    rest = 2 * z * (1 + square * (1 / 3 + square * (1 / 5 + square / 7)))
    units = np.rint(np.ldexp(rest, 72)).astype(np.int64).astype(object) << 56
    units = units + exponent.astype(object) * _log_units(2048)
    units = units + np.array([*map(_log_units, i.reshape(-1).tolist())], dtype=object).reshape(i.shape)
    if array.dtype == object:
        pairs = zip(array.reshape(-1).tolist(), near.reshape(-1).tolist(), strict=True)
        units = units + np.array([_log_off(q, v, upward) for q, v in pairs], dtype=object).reshape(
            array.shape
        )
    result: Numbers = units + (1 << 70) if upward else units - (1 << 70)
    return result


def _log_off(value: Any, near: float, upward: bool) -> int:
    """log(value/near) in units, on a side."""
    (a, b), (c, d) = parts_of(value), near.as_integer_ratio()
    return -(((c * b - a * d) << 128) // (c * b)) if upward else ((a * d - c * b) << 128) // (a * d)


def over_common(array: Numbers) -> tuple[Numbers, int]:
    """Integers in the place of numbers, and the denominator that they have in common."""
    parts = [parts_of(value) for value in array.reshape(-1).tolist()]
    common = lcm(*{bottom for _, bottom in parts})
    return np.array([a * (common // b) for a, b in parts], dtype=object).reshape(array.shape), common


def of_units(units: int) -> Any:
    """A number of units of 2⁻¹²⁸, as a rational."""
    return quick(Fraction(units, 1 << 128))


@cache
def _log_units(i: int) -> int:
    return _log_grid(i) >> (_POINT - 128)


@cache
def _log_grid(i: int) -> int:
    """log(i/1024) within 256 units of 2^−_POINT, for 512 ≤ i ≤ 2048."""
    value = 2 * _atanh(abs(i - 1024), i + 1024)
    return value if i >= 1024 else -value


def _atanh(top: int, bottom: int) -> int:
    """atanh(z) = z + z³/3 + z⁵/5 + … for 0 ≤ z = top/bottom ≤ 1/3, less at most 128 units of 2^−_POINT.

    z² ≤ 1/9: there are at most 52 terms before they are below a unit, each less than 2 units too small, and
    all others together are below 2 units.
    """
    power = total = (top << _POINT) // bottom
    square, k = power * power >> _POINT, 1
    while power:
        power, k = power * square >> _POINT, k + 2
        total += power // k
    return total


def _root_up(top: int, bottom: int) -> tuple[int, int]:
    if top <= 0:
        return 0, 1
    half = (256 - top.bit_length() + bottom.bit_length()) // 2
    return dyadic(isqrt(scaled(top, bottom, 2 * half, True) - 1) + 1, half)
