"""Numbers in model files: `0.25`, `1e-3`, `3/10`; exactly, or as the nearest double.

Python's own `float` and `Fraction` accept more than the formats do (`nan`, `1_000`, digits of other
scripts), and an exponent such as 1e999999999 would keep them busy for hours.

Probabilities and rewards that are numbers or intervals of numbers.

Each distinct text is understood once and gets a small integer (`code`); the model is made of all of
them at the end. Decimals become the nearest doubles; the bounds of exact rational intervals, where
they are no doubles, are rounded outwards so that nothing is lost.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import IndexArray
from tightrope.numerics.rationals import RationalArray

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


class NumberValues:
    """Doubles and intervals; `value_type` None lets the values decide."""

    def __init__(self, value_type: str | None):
        self.value_type = value_type
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.has_intervals = value_type in ("double-interval", "rational-interval")

    def code(self, text: str) -> int:
        if text.startswith("["):
            if self.value_type not in (None, "double-interval", "rational-interval"):
                raise ValueError(f"an interval in a model of value type {self.value_type}")
            low, high = split_interval(text)
            self.has_intervals = True
        else:
            low = high = text
        if self.value_type == "rational-interval":
            lower, upper = _round_outwards(exact_number(low), exact_number(high))
        else:
            lower, upper = nearest_double(low), nearest_double(high)
        if text.startswith("[") and lower <= 1:
            upper = min(upper, 1.0)  # Storm adds up intervals of merged successors beyond 1
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def reward(self, text: str) -> float:
        if not text.startswith("["):
            return nearest_double(text)
        low, high = split_interval(text)
        if exact_number(low) != exact_number(high):
            raise ValueError("a reward known only up to an interval is not supported")
        return nearest_double(low)

    def model(self, structure: Structure, codes: IndexArray) -> MDP | IntervalMDP:
        lower = np.array(self.lower, dtype=np.float64)[codes]
        if not self.has_intervals:
            return MDP(structure, lower)
        return IntervalMDP(structure, lower, np.array(self.upper, dtype=np.float64)[codes])


def split_interval(text: str) -> tuple[str, str]:
    """The two ends of `[0.1, 0.3]`, as texts."""
    inner = text.strip()
    low, comma, high = inner.removeprefix("[").removesuffix("]").partition(",")
    if not inner.startswith("[") or not inner.endswith("]") or not comma:
        raise ValueError("an interval such as [0.1, 0.3] expected")
    return low, high


def _round_outwards(low: Fraction, high: Fraction) -> tuple[float, float]:
    try:
        return (
            float(RationalArray.from_fractions([low]).to_float_down()[0]),
            float(RationalArray.from_fractions([high]).to_float_up()[0]),
        )
    except OverflowError as error:
        raise ValueError("too large for a double") from error
