"""What a number that a user writes in Python means: one rule, wherever one is taken.

| written | is |
|---|---|
| `Fraction(1, 3)`, `3`, `"1/3"`, `"0.3"`, `Decimal("0.3")` | exactly that |
| `0.3`, `np.float64(0.3)`, `np.float32(0.3)` | the decimal it prints as: 3/10 |
| `1/3`, `2/7`, `np.float64(1)/3` | the fraction it was computed as: 1/3, 2/7 |

A float holds a rational that hardly anybody meant. One that prints with at most 15 digits was written as a
decimal: every such decimal has its own float, so that is what it stands for. One with more digits was
computed. If the simplest fraction within half a unit of its last place has a denominator of at most a
million, it is that fraction: about one random float in ten thousand has such a neighbour by chance. Otherwise
it is the decimal that it prints as, all 16 or 17 digits of it. Half a unit is measured in the number's own
precision, so a `float32` is read as its author saw it.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.errors import InputError

Number = int | Fraction | float | str | Decimal
"""A number as users write it."""

WRITTEN_DIGITS = 15
"""A decimal of so many digits survives the way into a float and back."""

LARGEST_DENOMINATOR = 10**6
"""Of a fraction that a computed float is taken for."""


def exact(value: Number) -> Fraction:
    """The rational that a number stands for.

    >>> exact(0.3), exact("0.3"), exact(1 / 3), exact(2 / 7)
    (Fraction(3, 10), Fraction(3, 10), Fraction(1, 3), Fraction(2, 7))
    >>> exact(0.1 + 0.2) == Fraction("0.30000000000000004")
    True
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | np.bool_):
        raise InputError(f"{value} is not a number")
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        return _of_float(value)
    try:
        return Fraction(value)
    except ZeroDivisionError:
        raise InputError(f"{value!r} divides by zero") from None
    except (ValueError, OverflowError):
        raise InputError(
            f"{str(value)!r} is not a number", hint="write 0.3, '3/10' or Fraction(3, 10)"
        ) from None
    except TypeError:
        raise InputError(
            f"{_show(value)} is not a number", hint="write 0.3, '3/10' or Fraction(3, 10)"
        ) from None


def exact_argument(value: Number, argument: str) -> Fraction:
    """The same, with the name of the argument in the error."""
    try:
        return exact(value)
    except InputError as error:
        raise InputError(f"{argument}: {error.message}", hint=error.hint) from None


def number_text(value: Number | bool, argument: str) -> str:
    """A number or a truth value as PRISM writes it, exactly."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(exact_argument(value, argument))


def _of_float(value: float | np.floating[Any]) -> Fraction:
    if not math.isfinite(value):
        raise InputError(f"{float(value)} is not a finite number")
    text = repr(value.item()) if isinstance(value, np.float64) else _digits(value)
    decimal = Fraction(text)
    digits = len(Decimal(text).normalize().as_tuple().digits)
    if not isinstance(value, float) or digits > WRITTEN_DIGITS:
        simplest = _simplest_near(value)
        if simplest.denominator <= LARGEST_DENOMINATOR:
            return simplest
    return decimal


def _digits(value: float | np.floating[Any]) -> str:
    """The shortest decimal that is read back as this number."""
    if isinstance(value, float):
        return repr(value)
    return np.format_float_scientific(value, unique=True)


def _simplest_near(value: float | np.floating[Any]) -> Fraction:
    """The fraction with the smallest denominator within half a unit in the last place of the float."""
    centre = Fraction(float(value))
    half = Fraction(float(np.spacing(np.abs(value)))) / 2
    if centre < 0:
        return -_simplest_between(-centre - half, -centre + half)
    return _simplest_between(max(centre - half, Fraction(0)), centre + half)


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator in [low, high], 0 ≤ low: down the Stern–Brocot tree."""
    whole = math.floor(low)
    if whole == low:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest_between(1 / (high - whole), 1 / (low - whole))


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
