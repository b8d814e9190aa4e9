"""Style of pictures: colours, small type, thin lines, a legend below every plot, and texts of marks.

One function draws a picture for paper (PDF, PNG, SVG, the library) and for the page, where it is narrower
with larger type. `tightrope.report.page` maps the colours to the page's light and dark scheme. A `Picture`
has a description in words and a table of its numbers; bounds are rounded to the safe side.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation
from matplotlib.typing import RcKeyType

from tightrope.atomic import atomic_path
from tightrope.errors import shown
from tightrope.io.output import FIGURE_METADATA
from tightrope.io.results import ResultDocument
from tightrope.numerics.text import DIGITS, number_text
from tightrope.rules.states import STATE

WIDTH = 6.2
"""Inches: the text width of most papers in one column."""

LABELS = 0.42
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
        settings: dict[RcKeyType, object] = {
            "font.size": self.type_size,
            "figure.facecolor": self.background,
            "axes.facecolor": self.background,
            "axes.linewidth": 0.6,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.labelsize": self.type_size,
            "axes.formatter.useoffset": False,
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


def name_rows(axes: Axes, places: Sequence[float], names: Sequence[str], most: int) -> None:
    """Label rows; names that are too long lose their middle, and tell it where they are pointed at."""
    axes.set_yticks(places, [plain(shorten(name, most)) for name in names])
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        if len(name) > most:
            tell(label, name)


def root_figure(axes: Axes) -> Figure:
    """The figure that the axes are in, whatever lies between."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def legend_below(axes: Axes, keys: Sequence[Patch | Line2D] | None = None) -> None:
    """A legend under the plot, from the keys given or from the labels of what was drawn, as wide as fits."""
    handles = list(keys) if keys is not None else axes.get_legend_handles_labels()[0]
    figure = root_figure(axes)
    size = float(matplotlib.rcParams["font.size"])
    beside = max((len(label.get_text()) for label in axes.get_yticklabels()), default=0) + 3
    share = min(axes.get_position().width / 0.75, 1.0)
    room = figure.get_figwidth() * share * 72 / (0.56 * size) - beside
    below = ScaledTranslation(0.0, -LABELS * size / PAPER.type_size, figure.dpi_scale_trans)
    axes.legend(
        handles=handles,
        ncols=columns_within([str(handle.get_label()) for handle in handles], room),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + below,
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


def number(value: float, digits: int = DIGITS) -> str:
    """A number in a few digits."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return number_text(value, digits).replace("-", "−")


def shorten(text: str, most: int) -> str:
    """The text, without its middle where it is longer.

    >>> shorten("to wear=2, age=1", 9)
    'to w…ge=1'
    """
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


def named(text: str, names: Mapping[str, Mapping[str, str]]) -> str:
    """A text with values of variables by their names; a state that has one is called by it alone.

    >>> named("run in (state=0), to (wear=2,age=1)", {"wear": {"2": "worn"}, "state": {"0": "new"}})
    'run in new, to (wear=worn,age=1)'
    """

    def name(match: re.Match[str]) -> str:
        whole, variable, value = match.group("whole", "variable", "value")
        if value not in names.get(variable, {}):
            return match[0]
        shown = names[variable][value]
        return shown if whole and variable == STATE else match[0].replace(f"={value}", f"={shown}")

    return re.sub(r"(?P<whole>\()?\b(?P<variable>\w+)=(?P<value>-?\w+)(?(whole)\)?)", name, text)


def span_of(values: Iterable[float], margin: float = 0.04) -> tuple[float, float]:
    """From the least to the largest finite value, with a margin; never a single point."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    size = max(abs(low), abs(high), 1e-9)
    room = (high - low) * margin if high > low else size * 0.05
    room = max(room, 5e-4 * size)  # no axis whose numbers differ in the sixth digit alone
    return low - room, high + room


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


def svg_text(figure: Figure) -> str:
    """What matplotlib writes; straight from its canvas, which lays the figure out once and not twice."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tightrope"}):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(stream, metadata={"Date": None})
    return stream.getvalue()


def save_figure(figure: Figure, target: Path) -> Path:
    """Write a figure whole or not at all, with the mark of ours inside."""
    with PAPER.style(), atomic_path(target) as temporary:
        kind = target.suffix[1:].lower()
        figure.savefig(temporary, format=kind, dpi=150, metadata=FIGURE_METADATA[kind])
    return target
