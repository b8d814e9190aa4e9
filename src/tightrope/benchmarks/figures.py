"""Numbers of tables as text: few digits, and intervals rounded outward, for they are guarantees.

>>> interval_text(14.54321, 65.30001)
'[14.54, 65.31]'
>>> gap_text(0.05432), gap_text(127.351), gap_text(float("inf"))
('0.054', '127', '∞')
>>> seconds_text(0.01234), seconds_text(44.95), seconds_text(4464.2)
('0.012', '45.0', '4464')
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

INFINITY = "∞"
NOTHING = "–"

LARGE = 1e6
"""From here on numbers are written with a power of ten."""


def bound_text(value: float, upward: bool, digits: int = 4) -> str:
    """A bound in so many significant digits (and at most as many after the point), rounded outward."""
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return INFINITY if value > 0 else f"-{INFINITY}"
    exact = Decimal(value)
    direction = ROUND_CEILING if upward else ROUND_FLOOR
    if abs(value) >= LARGE:
        mantissa = exact.scaleb(-exact.adjusted()).quantize(Decimal("0.01"), direction)
        return f"{mantissa}e{exact.adjusted()}"
    places = digits if exact == 0 else min(digits, max(0, digits - 1 - exact.adjusted()))
    rounded = exact.quantize(Decimal(1).scaleb(-places), direction)
    text = format(rounded, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def interval_text(lower: float, upper: float) -> str:
    return f"[{bound_text(lower, False)}, {bound_text(upper, True)}]"


def gap_text(value: float) -> str:
    """A relative gap in about three significant digits."""
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return INFINITY
    if value >= LARGE:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return seconds_text(value)


def seconds_text(value: float) -> str:
    if math.isnan(value):
        return NOTHING
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.9995 else f"{value:.3f}"


def memory_text(value: int | None) -> str:
    """Bytes in MiB."""
    return NOTHING if value is None else f"{value / (1 << 20):.0f}"


def print_figure(value: Decimal | None) -> str:
    """A figure as the paper prints it."""
    return NOTHING if value is None else format(value, "f")
