"""Learning curves, and Pareto curves of two objectives.

A learning curve shows the guarantee (dashed) and the policy's true value (solid) over episodes on a
logarithmic axis, runtimes below, one panel per family. Several seeds are drawn as their median, with bands
between the extremes and between the quartiles. Between two updates the last one counts.

A Pareto curve shows policies as dots and mixtures of neighbours as lines. The shaded band reaches to the
lines that no policy crosses. Axes have the objectives' units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import NullFormatter

from tightrope.errors import InputError
from tightrope.io.output import OutputFile
from tightrope.io.results import DomainPart
from tightrope.logic.model_checking import Answer
from tightrope.logic.multi_objective import Achieved
from tightrope.numerics.arrays import FloatArray
from tightrope.report.style import (
    ACTIONS,
    FAINT,
    GREY,
    INK,
    PAPER,
    SETS,
    TRUTH,
    WIDTH,
    legend_below,
    name_axes,
    plain,
    save_figure,
)
from tightrope.solver.solution import FALSE, OPEN, TRUE

POINTS = 240
"""Of a curve, evenly spread over the logarithm of the episodes."""

WIDE = 6.0
"""From such a ratio of the largest to the smallest value on, values are drawn on a logarithmic axis."""

SUFFIXES = ("pdf", "svg", "png")
LIKELIHOOD = "#c2185b"


@dataclass(frozen=True, eq=False)
class RunCurve:
    """The updates of one run as columns; `performance` is NaN where the truth is not known."""

    episode: FloatArray
    guarantee: FloatArray
    performance: FloatArray
    seconds: FloatArray

    @staticmethod
    def of(records: Sequence[Mapping[str, object]]) -> RunCurve:
        """From records, in which infinite numbers are strings."""
        return RunCurve(
            _column(records, "episode"),
            _column(records, "guarantee"),
            _column(records, "performance"),
            _column(records, "elapsed"),
        )


@dataclass(frozen=True, eq=False)
class Series:
    """All runs of one method."""

    name: str
    runs: Sequence[RunCurve]

    @property
    def colour(self) -> str:
        if self.name.endswith("/likelihood"):
            return LIKELIHOOD
        return SETS.get(self.name.partition("/")[0], GREY)


@dataclass(frozen=True, eq=False)
class Panel:
    """One family: a title, what is measured, the optimum where it is known, and the methods."""

    title: str
    value: str
    series: Sequence[Series]
    optimum: float | None = None


def curves(panels: Sequence[Panel]) -> Figure:
    """All panels, two in a row where there are several; runtimes below each."""
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    width = WIDTH if columns == 1 else 1.25 * WIDTH
    with PAPER.style():
        figure = Figure(figsize=(width, 3.5 * rows + 0.5), layout="constrained")
        draw_curves(panels, figure)
    return figure


def draw_curves(panels: Sequence[Panel], figure: Figure | SubFigure) -> None:
    """All panels in a figure, with one legend."""
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    grid = figure.subfigures(rows, columns, squeeze=False)
    for number, part in enumerate(grid.flat):
        if number < len(panels):
            above, below = part.subplots(2, 1, sharex=True, height_ratios=(3, 1))
            draw_panel(panels[number], above, below)
    figure.legend(handles=_keys(panels), loc="outside lower center", ncols=4, frameon=False)


def draw_panel(panel: Panel, above: Axes, below: Axes) -> None:
    """Values above, runtimes below."""
    last = max(float(run.episode[-1]) for series in panel.series for run in series.runs)
    at = np.geomspace(1.0, max(last, 2.0), POINTS)
    shown: list[FloatArray] = []
    for series in panel.series:
        for name, style in (("performance", "-"), ("guarantee", "--")):
            values = _sample([(run.episode, getattr(run, name)) for run in series.runs], at)
            if np.isnan(values).all():
                continue
            _band(above, at, values, series.colour)
            middle = _quantile(values, 0.5)
            above.plot(at, middle, style, color=series.colour, linewidth=1.2)
            shown.append(middle)
        seconds = _sample([(run.episode, run.seconds) for run in series.runs], at)
        _band(below, at, seconds, series.colour)
        below.plot(at, _quantile(seconds, 0.5), color=series.colour, linewidth=1.0)
    if panel.optimum is not None:
        above.axhline(panel.optimum, color=TRUTH, linewidth=0.8, linestyle=":")
        shown.append(np.array([panel.optimum]))
    _scale(above, np.concatenate(shown))
    above.set_title(plain(panel.title), loc="left", fontsize=9)
    above.set_ylabel(panel.value)
    below.set_xscale("log")
    below.set_yscale("log")
    below.set_xlim(1.0, at[-1])
    below.set_xlabel("episodes")
    below.set_ylabel("total time [s]")
    for axes in (above, below):
        axes.yaxis.set_minor_formatter(NullFormatter())


def write_curve(directory: Path, records: Sequence[Mapping[str, object]], about: Mapping[str, str]) -> None:
    """The curve of one run as `learning-curve.pdf`, `.svg` and `.png`."""
    panel = Panel(about["title"], about["value"], [Series(about["sets"], [RunCurve.of(records)])])
    save(curves([panel]), directory / "learning-curve")


def save(figure: Figure, stem: Path) -> list[Path]:
    """The figure in all formats; without dates, so that the same records give the same files."""
    written = []
    for suffix in SUFFIXES:
        written.append(save_figure(figure, stem.with_name(f"{stem.name}.{suffix}")))
    return written


def _column(records: Sequence[Mapping[str, object]], name: str) -> FloatArray:
    values = [record[name] for record in records]
    return np.array([float(one) if isinstance(one, int | float | str) else np.nan for one in values])


def _sample(runs: Sequence[tuple[FloatArray, FloatArray]], at: FloatArray) -> FloatArray:
    """One row per run: its values as of the last update at or before each point."""
    return np.array(
        [values[np.maximum(np.searchsorted(episode, at, side="right") - 1, 0)] for episode, values in runs]
    )


def _quantile(values: FloatArray, share: float) -> FloatArray:
    """A quantile over the runs that is one of the values, so that infinite ones do no harm."""
    ordered = np.sort(values, axis=0)
    chosen: FloatArray = ordered[round(share * (len(values) - 1))]
    return np.where(np.isfinite(chosen), chosen, np.nan)


def _band(axes: Axes, at: FloatArray, values: FloatArray, colour: str) -> None:
    if len(values) < 2:
        return
    for low, high, alpha in ((0.0, 1.0, 0.10), (0.25, 0.75, 0.15)):
        axes.fill_between(
            at, _quantile(values, low), _quantile(values, high), color=colour, alpha=alpha, linewidth=0
        )


def _scale(axes: Axes, values: FloatArray) -> None:
    """Limits around what is drawn as a line; logarithmic where it spans orders of magnitude."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return
    low, high = float(finite.min()), float(finite.max())
    if low > 0 and high / low > WIDE:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.15, high * 1.15)
        return
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    axes.set_ylim(low - margin, high + margin)


def _keys(panels: Sequence[Panel]) -> list[Line2D]:
    names = {series.name: series.colour for panel in panels for series in panel.series}
    keys = [Line2D([], [], color=colour, label=name) for name, colour in names.items()]
    keys.append(Line2D([], [], color="0.2", label="performance"))
    keys.append(Line2D([], [], color="0.2", linestyle="--", label="guarantee"))
    if any(panel.optimum is not None for panel in panels):
        keys.append(Line2D([], [], color=TRUTH, linestyle=":", label="best possible"))
    return keys


HEIGHT = 3.4
_FINE = 201


def require_curve(answer: Answer) -> Achieved:
    """What there is to draw, or the reason why there is none."""
    achieved = answer.achieved
    if achieved is None or achieved.points.shape[1:] != (2,) or not len(achieved.points):
        raise InputError(
            f"there is no curve to draw: {answer.text} does not ask for two objectives",
            hint='multi(Pmax=? [ F "a" ], Rmin=? [ C ]) does',
        )
    return achieved


def draw_curve(achieved: Achieved, axes: Axes) -> None:
    """All of it, in any axes."""
    turn = np.where(achieved.maximised, 1.0, -1.0)
    points = achieved.points * turn
    front = points[_front(points)]
    left, right = float(front[0, 0]), float(front[-1, 0])
    across = np.linspace(left, right, _FINE) if right > left else np.array([left])
    attained = np.interp(across, front[:, 0], front[:, 1])
    beyond = np.maximum(_ceiling(achieved, turn, across), attained)
    colour = SETS["rectangular"]
    x, y = across * turn[0], (attained * turn[1], beyond * turn[1])
    axes.fill_between(x, *y, color=GREY, alpha=0.25, linewidth=0, label="not known")
    axes.plot(x, y[1], color=GREY, lw=0.8, ls="--", label="no policy lies beyond")
    axes.plot(front[:, 0] * turn[0], front[:, 1] * turn[1], color=colour, lw=1.4, label="mixtures attain")
    axes.plot(*achieved.points.T, "o", color=INK, markersize=3.5, label="policies attain")
    name_axes(axes, _label(achieved, 0), _label(achieved, 1))
    legend_below(axes)


def write_pareto_curve(answer: Answer, target: OutputFile) -> Path:
    """The curve as a file that was claimed: .pdf, .png or .svg."""
    achieved = require_curve(answer)
    with PAPER.style():
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        draw_curve(achieved, figure.subplots())
    return save_figure(figure, target.checked())


def write_partition(names: Sequence[str], parts: Sequence[DomainPart], text: str, target: OutputFile) -> Path:
    """The parts of a domain of two parameters as a file that was claimed."""
    if len(names) != 2:
        raise InputError(f"a figure of parts needs two parameters, and the domain has {len(names)}")
    whole = sum(part.volume for part in parts)
    with PAPER.style():
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes, keys = figure.subplots(), []
        colours = {TRUE: ("holds", ACTIONS[2]), FALSE: ("fails", ACTIONS[1]), OPEN: ("open", FAINT)}
        for truth, (label, colour) in colours.items():
            shown = [part for part in parts if part.truth == truth]
            boxes = [
                Rectangle((x.lower, y.lower), x.upper - x.lower, y.upper - y.lower)
                for x, y in (part.box for part in shown)
            ]
            axes.add_collection(PatchCollection(boxes, facecolor=colour, edgecolor=colour, linewidth=0.2))
            share = 100 * sum(part.volume for part in shown) / whole
            keys.append(Patch(facecolor=colour, label=f"{label}: {share:.1f}%"))
        axes.margins(0)
        axes.autoscale_view()
        axes.set_title(plain(text))
        name_axes(axes, *names)
        legend_below(axes, keys)
    return save_figure(figure, target.checked())


def _front(points: FloatArray) -> list[int]:
    """The corners of the hull of all points towards large values, from left to right."""
    order = np.lexsort((points[:, 1], points[:, 0]))[::-1]
    corners: list[int] = []
    for index in order.tolist():
        if corners and points[index, 1] <= points[corners[-1], 1]:
            continue
        while len(corners) > 1 and _is_below(points[corners[-1]], points[corners[-2]], points[index]):
            corners.pop()
        corners.append(index)
    return corners[::-1]


def _is_below(middle: FloatArray, one: FloatArray, other: FloatArray) -> bool:
    a, b = other - one, middle - one
    return bool(a[0] * b[1] - a[1] * b[0] >= 0)


def _ceiling(achieved: Achieved, turn: FloatArray, across: FloatArray) -> FloatArray:
    """The least of all lines that no policy crosses; probabilities to be small are turned as 1 − P there."""
    offset = np.where((turn < 0) & np.array(achieved.probabilities), 1.0, 0.0)
    useful = (achieved.weights[:, 1] > 0) & np.isfinite(achieved.limits)
    weights, limits = achieved.weights[useful], achieved.limits[useful]
    lines = (limits[:, None] - weights[:, :1] * (across + offset[0])) / weights[:, 1:]
    lowest: FloatArray = lines.min(axis=0, initial=np.inf) - offset[1]
    return lowest


def _label(achieved: Achieved, number: int) -> str:
    unit = "probability" if achieved.probabilities[number] else "total reward"
    return f"{achieved.objectives[number]}  ({unit})"
