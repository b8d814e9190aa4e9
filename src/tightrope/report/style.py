"""Style of pictures: colours, small type, thin lines, a legend below every plot, and texts of marks.

One function draws a picture for paper (PDF, PNG, SVG, the library) and for the page, where it is narrower
with larger type. `tightrope.report.page` maps the colours to the page's light and dark scheme. A `Picture`
has a description in words and a table of its numbers; bounds are rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tightrope.atomic import atomic_path
from tightrope.errors import shown
from tightrope.io.output import FIGURE_METADATA
from tightrope.io.results import ResultDocument

WIDTH = 6.2
"""Inches: the text width of most papers in one column."""

LABELS = 0.5
"""Inches that the ticks and the label of an axis take."""

GREY = "#6b7280"
FAINT = "#c7c7c7"
INK = "#000000"
PAPER_WHITE = "#ffffff"
GRID = "#e5e5e5"
SETS = {
    "untied": GREY,
    "tied": "#a65a00",
    "parameter": "#7a3f9d",
    "expression": "#0a7d55",
    "rectangular": "#0b63b0",
    "coupled": "#19a3b1",
}
REGIONS = {
    "polytope": "#0a7d55",
    "l1": "#a65a00",
    "ellipsoid": "#7a3f9d",
    "likelihood": "#0b63b0",
    "slab": "#b3003c",
}
TRUTH = "#c2185b"
OPTIMISTIC = "#8a6d00"
ACTIONS = ("#3b82c4", "#e08a1e", "#2a9d6f", "#b04fb5", "#c8453b", "#7c8795", "#8d7a1d", "#19a3b1")
PHASES = ("#7c8795", "#2a9d6f", "#e08a1e", "#3b82c4", "#b04fb5", "#19a3b1")

TIP = "tip:"
"""How the id of a mark begins that tells something: the lines follow."""

BREAK = "\u2028"
"""Between two lines of an id: XML keeps no other line break in an attribute."""


@dataclass(frozen=True)
class Medium:
    """Where a picture is shown: its width in inches and the size of its type in points."""

    width: float
    type_size: float
    background: str = "white"

    def style(self) -> AbstractContextManager[None]:
        """Matplotlib's settings while a picture is drawn or saved; global ones are left as they are."""
        settings: dict[Any, Any] = {
            "font.size": self.type_size,
            "figure.facecolor": self.background,
            "axes.facecolor": self.background,
            "axes.linewidth": 0.6,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.labelsize": self.type_size,
            "xtick.labelsize": self.type_size,
            "ytick.labelsize": self.type_size,
            "grid.color": GRID,
            "grid.linewidth": 0.6,
            "legend.fontsize": self.type_size * 0.95,
            "pdf.fonttype": 42,
            "svg.hashsalt": "tightrope",
        }
        return matplotlib.rc_context(settings)


PAPER = Medium(WIDTH, 8.0)
PAGE = Medium(4.7, 10.5, "none")


def tell(artist: Artist, *lines: str) -> None:
    """What a mark tells when it is pointed at in a page."""
    artist.set_gid(TIP + BREAK.join(shown(line) for line in lines))


def plain(text: str) -> str:
    """Names of models as they are: a dollar sign begins no formula, and no control character is drawn."""
    return shown(text, "\t\n").replace("$", r"\$")


def name_axes(axes: Axes, x: str, y: str) -> None:
    """Labels; parameters and variables keep their names as they are."""
    axes.set_xlabel(plain(x))
    axes.set_ylabel(plain(y))


def root_figure(axes: Axes) -> Figure:
    """The figure that the axes are in, whatever lies between."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def legend_below(axes: Axes, keys: Sequence[Patch | Line2D] | None = None) -> None:
    """A legend under the plot, from the keys given or from the labels of what was drawn, as wide as fits."""
    handles = list(keys) if keys is not None else axes.get_legend_handles_labels()[0]
    figure = root_figure(axes)
    below = -LABELS / max(figure.get_figheight() * axes.get_position().height, 0.1)
    size = float(matplotlib.rcParams["font.size"])
    beside = max((len(label.get_text()) for label in axes.get_yticklabels()), default=0) + 3
    share = min(axes.get_position().width / 0.75, 1.0)
    room = figure.get_figwidth() * share * 72 / (0.56 * size) - beside
    axes.legend(
        handles=handles,
        ncols=columns_within([str(handle.get_label()) for handle in handles], room),
        loc="upper center",
        bbox_to_anchor=(0.5, below),
        frameon=False,
        columnspacing=1.2,
        handlelength=1.5,
        handletextpad=0.5,
    )


def columns_within(texts: Sequence[str], room: float) -> int:
    """The most columns of a legend that take no more than `room` characters."""
    for columns in range(len(texts), 1, -1):
        parts = np.array_split(np.array([len(text) + 4 for text in texts]), columns)
        if sum(int(part.max()) for part in parts) <= room:
            return columns
    return 1


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
class NumberTable:
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
    table: Callable[[ResultDocument], NumberTable]
    caption: Callable[[ResultDocument], str]
    applies: Callable[[ResultDocument], bool] = lambda run: True

    def figure(self, run: ResultDocument, medium: Medium = PAPER) -> Figure:
        """A new figure, which no global state of matplotlib knows of."""
        with medium.style():
            size = (medium.width, self.height(run) * medium.type_size / PAPER.type_size)
            figure = Figure(figsize=size, layout="constrained")
            self.draw(run, figure.subplots())
        return figure


def save_figure(figure: Figure, target: Path) -> Path:
    """Write a figure whole or not at all, with the mark of ours inside."""
    with PAPER.style(), atomic_path(target) as temporary:
        kind = target.suffix[1:]
        figure.savefig(temporary, format=kind, dpi=150, metadata=FIGURE_METADATA[kind])
    return target
