"""Numbers as text, rounded to the safe side where they are bounds, and the range that a picture shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

DIGITS = 5


def number(value: float, digits: int = DIGITS) -> str:
    """A number in a few digits."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}g}".replace("-", "−")


def at_least(value: float, digits: int = DIGITS) -> str:
    """A lower bound in a few digits, rounded down: what is shown holds, too."""
    return _round(value, digits, ROUND_FLOOR)


def at_most(value: float, digits: int = DIGITS) -> str:
    """An upper bound in a few digits, rounded up."""
    return _round(value, digits, ROUND_CEILING)


def interval_text(lower: float, upper: float) -> str:
    """[lower, upper], both ends rounded outward."""
    return f"[{at_least(lower)}, {at_most(upper)}]"


def shorten(text: str, most: int) -> str:
    """The text, cut where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def span_of(values: Iterable[float], margin: float = 0.04) -> tuple[float, float]:
    """From the least to the largest finite value, with a margin; never a single point."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    room = (high - low) * margin or max(abs(high), 1e-9) * 0.05
    return low - room, high + room


def _round(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0.0:
        return number(value, digits)
    exact = Decimal(value)
    short = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)
    text = f"{short.normalize():f}" if -5 < short.adjusted() < 9 else f"{short.normalize():e}"
    return text.replace("-", "−")
