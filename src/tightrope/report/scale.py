"""Axes: round ticks, positions, and numbers as text, rounded to the safe side where they are bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

DIGITS = 5


def number(value: float, digits: int = DIGITS) -> str:
    """A number in a few digits."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}g}".replace("-", "−")


def at_least(value: float, digits: int = DIGITS) -> str:
    """A lower bound in a few digits, rounded down: what is shown holds, too."""
    return _rounded(value, digits, ROUND_FLOOR)


def at_most(value: float, digits: int = DIGITS) -> str:
    """An upper bound in a few digits, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def interval_text(lower: float, upper: float) -> str:
    """[lower, upper], both ends rounded outward."""
    return f"[{at_least(lower)}, {at_most(upper)}]"


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0.0:
        return number(value, digits)
    exact = Decimal(value)
    short = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)
    text = f"{short.normalize():f}" if -5 < short.adjusted() < 9 else f"{short.normalize():e}"
    return text.replace("-", "−")


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, drawn between the positions `start` and `stop`."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The position of a value; beyond the ends, that of the end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def shows(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Round values with their texts, `about` so many."""
        step = _step((self.high - self.low) / max(about, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        if decimals > 6 or step >= 1e6:
            return [(k * step, number(k * step, 4)) for k in range(first, last + 1)]
        return [(k * step, f"{k * step:.{decimals}f}".replace("-", "−")) for k in range(first, last + 1)]


def _step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return float(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.75))


def span_of(values: Iterable[float], margin: float = 0.04) -> tuple[float, float]:
    """From the least to the largest finite value, with a margin; never a single point."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    room = (high - low) * margin or max(abs(high), 1e-9) * 0.05
    return low - room, high + room
