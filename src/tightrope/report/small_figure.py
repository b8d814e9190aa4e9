"""A small picture of a result for a card in a notebook: its interval, the guarantee, the optimistic value.

It stands on light and dark pages alike: no background, and greys that can be read on both.
"""

from __future__ import annotations

import io
import math
from typing import Any, Protocol

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from tightrope.report.rounding import at_least, at_most, number, span_of
from tightrope.report.style import GREY, OPTIMISTIC, PAPER_WHITE, SETS, Medium

SIZE = (3.1, 0.85)
SMALL = Medium(SIZE[0], 8.0, "none")
SOFT = "#888888"


class _Interval(Protocol):
    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...


class Summarised(Protocol):
    """What the picture needs of a result."""

    @property
    def interval(self) -> Any: ...

    @property
    def guarantee(self) -> float: ...

    @property
    def optimistic_value(self) -> float: ...


def small_figure(result: Summarised) -> str:
    """The picture as SVG, to be put into HTML as it is."""
    interval: _Interval = result.interval
    known = [v for v in (interval.lower, interval.upper, result.optimistic_value) if math.isfinite(v)]
    low, high = span_of(known, margin=0.12)
    with SMALL.style(), matplotlib.rc_context({"svg.fonttype": "none", "text.color": SOFT}):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        colour = SETS["rectangular"]
        left, right = max(interval.lower, low), min(interval.upper, high)
        axes.barh(0, right - left, 0.5, left=left, color=colour, edgecolor=colour)
        if low <= result.guarantee <= high:
            axes.plot([result.guarantee] * 2, [-0.45, 0.45], color=SOFT, lw=1.6)
        if low <= result.optimistic_value <= high:
            axes.plot(result.optimistic_value, 0, "o", mfc=PAPER_WHITE, mec=OPTIMISTIC, ms=5, mew=1.4)
        axes.set_xlim(low, high)
        axes.set_ylim(-0.6, 0.6)
        axes.set_yticks([])
        axes.grid(False)
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_color(GREY)
        axes.tick_params(colors=SOFT)
        axes.locator_params(axis="x", nbins=5)
        stream = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(stream, metadata={"Date": None})
    text = stream.getvalue()
    drawn = text[text.index("<svg") :]
    head, _, rest = drawn.partition("<metadata>")
    drawn = head + rest.partition("</metadata>")[2]
    words = f"interval from {at_least(interval.lower)} to {at_most(interval.upper)}"
    words += f", at best {number(result.optimistic_value)}"
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1).strip()
