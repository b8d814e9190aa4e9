"""Numbers in model files: `0.25`, `1e-3`, `3/10`; exactly, or as the nearest double.

Python's own `float` and `Fraction` accept more than the formats do (`nan`, `1_000`, digits of other
scripts), and an exponent such as 1e999999999 would keep them busy for hours.

Probabilities and rewards that are numbers or intervals of numbers.

Each distinct text is understood once and gets a small integer (`code`); the model is made of all of
them at the end. Decimals become the nearest doubles; the bounds of exact rational intervals, where
they are no doubles, are rounded outwards so that nothing is lost. Which numbers have no double, says
`tightrope.model.door`.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np

from tightrope.model import door
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
LONGEST = 4000
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
    """The double nearest to the number; ValueError where none may stand for it."""
    stripped = text.strip()
    match = _DECIMAL.fullmatch(stripped)
    if match is None:
        return door.double(exact_number(stripped))
    value = float(stripped)
    if not math.isfinite(value):
        raise ValueError("too large for a double")
    if abs(value) < door.TINY and any(digit in "123456789" for digit in re.split("[eE]", stripped)[0]):
        raise ValueError("not 0, but too small for a double, of which the least is 2.3e-308")
    return value


def nearest_bound(text: str) -> float:
    """The same for a bound of an interval."""
    value = nearest_double(text)
    return door.bound(exact_number(text)) if value == 1 else value


def decimal_text(value: float) -> str:
    """The shortest decimal that is read back as this double; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _decimal(text: str) -> Fraction:
    stripped = text.strip()
    match = _DECIMAL.fullmatch(stripped)
    if match is None or len(stripped) > LONGEST or abs(int(match.group(1) or 0)) > LONGEST:
        raise ValueError("not a number")
    return Fraction(stripped)


class NumberValues:
    """Doubles and intervals; `value_type` None lets the values decide."""

    def __init__(self, value_type: str | None):
        self.value_type = value_type
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.texts: list[tuple[str, str]] = []
        self.has_intervals = value_type in ("double-interval", "rational-interval")
        self._exact: dict[int, door.Bounds] = {}

    def code(self, text: str) -> int:
        is_interval = text.startswith("[")
        if is_interval:
            if self.value_type not in (None, "double-interval", "rational-interval"):
                raise ValueError(f"an interval in a model of value type {self.value_type}")
            low, high = split_interval(text)
            self.has_intervals = True
        else:
            low = high = text
        if self.value_type == "rational-interval":
            least, most = exact_number(low), exact_number(high)
            lower, upper = (
                door.bound(least, -math.inf),
                door.bound(min(most, max(least, Fraction(1))), math.inf),
            )
        elif is_interval:
            lower, upper = nearest_bound(low), nearest_bound(high)
        else:
            lower = upper = nearest_double(text)
        if is_interval and lower <= 1:
            upper = min(upper, 1.0)  # Storm adds up intervals of merged successors beyond 1
        self.lower.append(lower)
        self.upper.append(upper)
        self.texts.append((low, high))
        return len(self.lower) - 1

    def exact(self, code: int) -> door.Bounds:
        """The bounds as they are written."""
        if code not in self._exact:
            low, high = (exact_number(text) for text in self.texts[code])
            self._exact[code] = (low, min(high, max(low, Fraction(1))))
        return self._exact[code]

    def bounds(self, start: OffsetArray, codes: IndexArray) -> tuple[FloatArray, FloatArray]:
        """The numbers of all transitions of a model; in one of intervals bounds are settled (`door`)."""
        lower, upper = (np.array(ends, dtype=np.float64)[codes] for ends in (self.lower, self.upper))
        if not self.has_intervals:
            return lower, upper
        for code, value in enumerate(self.lower):
            if value == self.upper[code] == 1 and self.exact(code)[0] != 1 and (codes == code).any():
                index = int(np.argmax(codes == code))
                raise door.NotHeldError("not 1, and the double nearest to it is", index=index)
        return door.settle_rows(start, lower, upper, lambda t: self.exact(int(codes[t])))

    def model(self, structure: Structure, codes: IndexArray) -> MDP | IntervalMDP:
        lower, upper = self.bounds(structure.transition_start, codes)
        return IntervalMDP(structure, lower, upper) if self.has_intervals else MDP(structure, lower)


def reward_text(text: str) -> str:
    """The number of a reward, which may be written as an interval of one."""
    if not text.startswith("["):
        return text
    low, high = split_interval(text)
    if exact_number(low) != exact_number(high):
        raise ValueError("a reward known only up to an interval is not supported")
    return low


def split_interval(text: str) -> tuple[str, str]:
    """The two ends of `[0.1, 0.3]`, as texts."""
    inner = text.strip()
    low, comma, high = inner.removeprefix("[").removesuffix("]").partition(",")
    if not inner.startswith("[") or not inner.endswith("]") or not comma:
        raise ValueError("an interval such as [0.1, 0.3] expected")
    return low, high
