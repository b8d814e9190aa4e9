"""A picture of a run: how it is drawn, what is said to those who do not see it, and the numbers behind it.

Numbers are written rounded to the safe side where they are bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tightrope.io.results import ResultDocument
from tightrope.report.style import PAPER, Medium

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


@dataclass(frozen=True)
class Table:
    """Numbers behind a picture."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """`draw` takes any axes; `height` is in inches on paper, `applies` says whether it has something to show.

    `words` are the picture in a sentence, for a screen reader; `caption` says how to read it.
    """

    name: str
    title: str
    draw: Callable[[ResultDocument, Axes], None]
    height: Callable[[ResultDocument], float]
    words: Callable[[ResultDocument], str]
    table: Callable[[ResultDocument], Table]
    caption: Callable[[ResultDocument], str]
    applies: Callable[[ResultDocument], bool] = lambda run: True

    def figure(self, run: ResultDocument, medium: Medium = PAPER) -> Figure:
        """A new figure, which no global state of matplotlib knows of."""
        with medium.style():
            size = (medium.width, self.height(run) * medium.type_size / PAPER.type_size)
            figure = Figure(figsize=size, layout="constrained")
            self.draw(run, figure.subplots())
        return figure
