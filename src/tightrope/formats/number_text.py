"""Numbers in model files: `0.25`, `1e-3`, `3/10`; exactly, or as the nearest double.

Python's own `float` and `Fraction` accept more than the formats do (`nan`, `1_000`, digits of other
scripts), and an exponent such as 1e999999999 would keep them busy for hours.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_LONGEST = 4000
"""Characters, and decimal exponent, of the longest number read."""


def exact_number(text: str) -> Fraction:
    """The rational a decimal or a quotient of two decimals stands for; ValueError says what is wrong."""
    numerator, slash, denominator = text.strip().partition("/")
    value = _decimal(numerator)
    if not slash:
        return value
    divisor = _decimal(denominator)
    if divisor == 0:
        raise ValueError("division by 0")
    return value / divisor


def nearest_double(text: str) -> float:
    """The double nearest to the number; ValueError where it is beyond the doubles."""
    stripped = text.strip()
    try:
        value = float(stripped) if _DECIMAL.fullmatch(stripped) else float(exact_number(stripped))
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError("too large for a double")
    return value


def decimal_text(value: float) -> str:
    """The shortest decimal that is read back as this double; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _decimal(text: str) -> Fraction:
    stripped = text.strip()
    match = _DECIMAL.fullmatch(stripped)
    if match is None or len(stripped) > _LONGEST or abs(int(match.group(1) or 0)) > _LONGEST:
        raise ValueError("not a number")
    return Fraction(stripped)
