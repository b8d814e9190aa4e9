"""A figure of a log: what it says about every expression and parameter, and where its visits went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tightrope.data.counts import ActionCoverage, Coverage
from tightrope.errors import InputError
from tightrope.report.style import ACTIONS, GREY, PAPER, SETS, WIDTH, name_axes, plain, save_figure, shorten

SUFFIXES = (".png", ".svg", ".pdf")
MOST_ROWS = 24
"""Rows of a panel; the widest intervals and the most frequent actions are shown."""

LONGEST = 22
"""Characters of a row's name."""


def check_figure(path: Path) -> None:
    """Refuse a file that no figure can be written to."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"`plot` {path}: a figure ends in {', '.join(SUFFIXES)}", hint=f"such as {path.stem or 'log'}.png"
        )
    if not path.absolute().parent.is_dir():
        raise InputError(f"`plot` {path}: there is no directory {path.absolute().parent}")


def write_log_figure(path: Path, title: str, description: Any) -> None:
    """Draw the description into a file; its ending says which kind."""
    figure = log_figure(title, description)
    save_figure(figure, path)


def log_figure(title: str, description: Any) -> Figure:
    """Intervals above, visits per action below."""
    intervals = _intervals(description.estimates)
    actions = description.coverage.actions[:MOST_ROWS]
    heights = [max(len(intervals), 1) + 1.6, max(len(actions), 1) + 1.6]
    with PAPER.style():
        if not intervals:
            figure = Figure(figsize=(WIDTH, 0.8 + 0.22 * heights[1]), layout="constrained")
            _draw_actions(figure.subplots(), actions, description.coverage)
        else:
            figure = Figure(figsize=(WIDTH, 1.3 + 0.22 * sum(heights)), layout="constrained")
            above, below = figure.subplots(2, 1, height_ratios=heights)
            _draw_intervals(above, intervals)
            _draw_actions(below, actions, description.coverage)
        if description.estimates is not None:
            title += f"\nintervals {description.estimates.short}"
        figure.suptitle(plain(title), fontsize=8.5)
    return figure


_Row = tuple[str, float | None, float, float, bool]


def _intervals(estimates: Any) -> list[_Row]:
    """(name, estimate, lower, upper, is a parameter) of what is shown, parameters first."""
    if estimates is None:
        return []
    rows: list[_Row] = [
        (_short(p.parameter), p.estimate, p.lower, p.upper, True) for p in estimates.parameters
    ]
    others: list[_Row] = [
        (f"{_short(e.expression)} ({e.visits:,})", e.estimate, e.lower, e.upper, False)
        for e in estimates.expressions
        if e.visits
    ]
    others.sort(key=lambda row: row[2] - row[3])
    return (rows + others)[:MOST_ROWS]


def _draw_intervals(axes: Axes, rows: Sequence[_Row]) -> None:
    for place, (_, estimate, lower, upper, is_parameter) in enumerate(rows):
        colour = SETS["rectangular"] if is_parameter else SETS["expression"]
        axes.plot([lower, upper], [place, place], color=colour, lw=3.0, solid_capstyle="butt", alpha=0.55)
        if estimate is not None:
            axes.plot(estimate, place, "o", color=colour, ms=4)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    ends = [end for row in rows for end in row[2:4]]
    axes.set_xlim(min(0.0, *ends), max(1.0, *ends))
    name_axes(axes, "probability, or value of the parameter", "")
    keys = [Line2D([], [], ls="", marker="o", color=GREY, label="estimate")]
    if any(row[4] for row in rows):
        keys.append(Line2D([], [], color=SETS["rectangular"], lw=3, alpha=0.55, label="parameter"))
    keys.append(Line2D([], [], color=SETS["expression"], lw=3, alpha=0.55, label="expression (visits)"))
    axes.legend(handles=keys, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(keys), frameon=False)


def _draw_actions(axes: Axes, actions: Sequence[ActionCoverage], coverage: Coverage) -> None:
    axes.barh(range(len(actions)), [max(a.visits, 0) for a in actions], 0.6, color=ACTIONS[0])
    for place, action in enumerate(actions):
        text = f" {action.visited:,} of {action.choices:,} choices"
        axes.annotate(text, (action.visits, place), va="center", fontsize=7)
    axes.set_yticks(range(len(actions)), [_short(a.action or "unlabelled") for a in actions])
    axes.set_ylim(len(actions) - 0.4, -0.6)
    most = max((a.visits for a in actions), default=0)
    axes.set_xlim(0, max(most, 1) * 1.45)
    name_axes(axes, "visits", "")
    shown = f"{coverage.visited:,} of {coverage.choices:,} choices visited"
    axes.legend(
        handles=[Patch(color=ACTIONS[0], label=shown)], loc="lower left", bbox_to_anchor=(0, 1), frameon=False
    )


def _short(name: str) -> str:
    return plain(shorten(name, LONGEST))
