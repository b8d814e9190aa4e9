"""Sums over all pairs of points of a cell in whole numbers: `--exact` where they are too many for rationals.

Numbers become whole multiples of powers of two, off by what is said; whatever is then added and multiplied is
exact, and what they were off by is added to the bounds.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from tightrope.certificate.numbers import RATIONAL, Numbers

_LIMB = 27
_BLOCK = 1 << 20


def range_of_pairs(low_half: Numbers, high_half: Numbers, first: Numbers, second: Numbers) -> tuple[Any, Any]:
    """Bounds of half_k + half_l + first_k·second_l over all pairs, which are symmetric in k and l.

    `first` and `second` are rounded to 53 bits below their largest entry, to units 2^−e and 2^−f: products of
    d entries are off by at most d·(2⁵³ + 1)·2^−(e+f). They are a·b = h·2⁵⁴ + m·2²⁷ + l by halves of 27 bits,
    for which 64 bits suffice (d ≤ 400). The sum is taken in units u, 2⁶⁰ of which are more than it can be: so
    three parts and two halves are each rounded down by less than u.
    """
    size = first.shape[1]
    one, other = _exponent(first), _exponent(second)
    scale = 2 * _LIMB - 1
    e, f = scale - one, scale - other
    largest = [2 * np.abs(half).max() for half in (low_half, high_half)]
    total = _exponent(np.array([*largest, size * RATIONAL.array([Fraction(2) ** (one + other)])[0]]))
    shift = total + 1 - 60 + e + f
    a, b = (
        whole_multiples(part, bits, Fraction(1, 2)).astype(np.int64)
        for part, bits in ((first, e), (second, f))
    )
    low, high = (whole_multiples(half, 59 - total).astype(np.int64) for half in (low_half, high_half))
    high_a, low_a, high_b, low_b = a >> _LIMB, a & _MASK, b >> _LIMB, b & _MASK
    ends = []
    step = max(1, _BLOCK // len(a))
    for begin in range(0, len(a), step):
        rows = slice(begin, begin + step)
        table = _shifted(high_a[rows] @ high_b[begin:].T, shift - 2 * _LIMB)
        table += _shifted(high_a[rows] @ low_b[begin:].T + low_a[rows] @ high_b[begin:].T, shift - _LIMB)
        table += _shifted(low_a[rows] @ low_b[begin:].T, shift)
        least = (table + low[rows, None] + low[begin:]).min()
        ends.append((int(least), int((table + high[rows, None] + high[begin:]).max()) + 5))
    unit, error = Fraction(2) ** (total - 59), size * (2**scale + 1) * Fraction(2) ** -(e + f)
    lower, upper = min(end for end, _ in ends) * unit - error, max(end for _, end in ends) * unit + error
    return tuple(RATIONAL.array([lower, upper]))


_MASK = (1 << _LIMB) - 1


def _exponent(array: Numbers) -> int:
    """e such that every entry is below 2^e in absolute value."""
    largest = max((abs(value) for value in RATIONAL.fractions(array)), default=Fraction(0))
    return largest.numerator.bit_length() - largest.denominator.bit_length() + 1


def whole_multiples(array: Numbers, bits: int, more: Fraction = Fraction(0)) -> Any:
    """The numbers in units of 2^−bits, and so much `more`, rounded down, as Python's integers."""
    unit = Fraction(2) ** bits
    whole = np.empty(array.size, dtype=object)
    whole[:] = [floor(value * unit + more) for value in RATIONAL.fractions(array)]
    return whole.reshape(array.shape)


def _shifted(table: Any, bits: int) -> Any:
    """The numbers divided by 2^bits, rounded down."""
    return table >> bits if bits >= 0 else table << -bits
