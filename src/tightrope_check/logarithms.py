"""Logarithms and roots as rationals on a side of the true ones, by integers: no C library is believed."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import isqrt

import numpy as np

from tightrope_check.arrays import Number
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers, OutOfRange, dyadic, quick, scaled

POINT = 160
"""Bits after the point, in which logarithms are worked out."""


def root_up(n: Arithmetic, array: Numbers) -> Numbers:
    """Not below the square roots; float64's are correctly rounded."""
    if n.exact:
        return RATIONAL.each(array, _root_up)
    n.require_finite(array)
    root: Numbers = np.sqrt(np.maximum(array, 0))
    return np.where(root > 0, np.nextafter(root, np.inf), root)


def log_up(array: Numbers) -> Numbers:
    """Not below the logarithms of positive rationals, by at most 2⁻¹²⁰."""
    return RATIONAL.each(array, lambda top, bottom: log_ratio(top, bottom, True))


def log_down(array: Numbers) -> Numbers:
    """Not above them."""
    return RATIONAL.each(array, lambda top, bottom: log_ratio(top, bottom, False))


def log_below(level: Fraction) -> Number:
    """A number not above log(level), in few bits."""
    return quick(float(RATIONAL.down(log_down(RATIONAL.array([level])))[0]))


def log_ratio(top: int, bottom: int, upward: bool) -> tuple[int, int]:
    """log(x·2^−s) = log(x/c) + log(c) − s·log(2), 1/2 ≤ x ≤ 2, where c = i/1024 is next to x."""
    if top <= 0:
        raise OutOfRange
    if top == bottom:
        return 0, 1
    s = bottom.bit_length() - top.bit_length()
    x = scaled(top, bottom, s + POINT, upward)
    i = x >> (POINT - 10)
    c = i << (POINT - 10)
    value = 2 * _atanh(x - c, x + c) + log_grid(i) - s * log_grid(2048)
    doubt = 256 * (2 + abs(s))
    value = -(-(value + doubt) >> (POINT - 128)) if upward else (value - doubt) >> (POINT - 128)
    return value, 1 << 128


@cache
def log_grid(i: int) -> int:
    """log(i/1024) within 256 units of 2^−POINT, for 512 ≤ i ≤ 2048."""
    value = 2 * _atanh(abs(i - 1024), i + 1024)
    return value if i >= 1024 else -value


def _atanh(top: int, bottom: int) -> int:
    """atanh(z) = z + z³/3 + z⁵/5 + … for 0 ≤ z = top/bottom ≤ 1/3, less at most 128 units of 2^−POINT.

    z² ≤ 1/9: there are at most 52 terms before they are below a unit, each less than 2 units too small, and
    all others together are below 2 units.
    """
    power = total = (top << POINT) // bottom
    square, k = power * power >> POINT, 1
    while power:
        power, k = power * square >> POINT, k + 2
        total += power // k
    return total


def _root_up(top: int, bottom: int) -> tuple[int, int]:
    if top <= 0:
        return 0, 1
    half = (256 - top.bit_length() + bottom.bit_length()) // 2
    return dyadic(isqrt(scaled(top, bottom, 2 * half, True) - 1) + 1, half)
