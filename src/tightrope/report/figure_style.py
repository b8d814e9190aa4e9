"""How figures look on paper: colours as on the page, small type, thin lines, a legend below every plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

P = ParamSpec("P")
T = TypeVar("T")

WIDTH = 6.2
"""Inches: the text width of most papers in one column."""

LABELS = 0.5
"""Inches that the ticks and the label of an axis take."""

GREY = "#6b7280"
SETS = {
    "untied": GREY,
    "tied": "#a65a00",
    "parameter": "#7a3f9d",
    "expression": "#0a7d55",
    "rectangular": "#0b63b0",
    "coupled": "#19a3b1",
}
REGIONS = {"polytope": "#0a7d55", "l1": "#a65a00", "ellipsoid": "#7a3f9d", "likelihood": "#0b63b0"}
TRUTH = {"truth": "#c2185b", "optimistic": "#8a6d00"}
ACTIONS = ("#3b82c4", "#e08a1e", "#2a9d6f", "#b04fb5", "#c8453b", "#7c8795", "#8d7a1d", "#19a3b1")
PHASES = ("#7c8795", "#2a9d6f", "#e08a1e", "#3b82c4", "#b04fb5", "#19a3b1")

STYLE: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.fontsize": 7.0,
    "pdf.fonttype": 42,
    "svg.hashsalt": "tightrope",
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """The function under this style."""

    @wraps(draw)
    def drawn(*arguments: P.args, **named: P.kwargs) -> T:
        with matplotlib.rc_context(STYLE):
            return draw(*arguments, **named)

    return drawn


def plain_axes(axes: Axes, x: str, y: str) -> None:
    """Labels; parameters and variables keep their names as they are."""
    axes.set_xlabel(x.replace("$", r"\$"))
    axes.set_ylabel(y.replace("$", r"\$"))


def legend_below(axes: Axes, keys: Sequence[Patch | Line2D] | None, most: int = 4) -> None:
    """A legend under the plot, from the keys given or from the labels of what was drawn; `most` in a row."""
    handles = list(keys) if keys is not None else axes.get_legend_handles_labels()[0]
    columns = min(max(len(handles), 1), most)
    figure = axes.get_figure(root=True)
    assert figure is not None
    below = -LABELS / figure.get_figheight()  # a fixed distance, whatever the height
    axes.legend(
        handles=handles, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, below), frameon=False
    )
