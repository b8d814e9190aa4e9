"""Pictures of a result for users of the library, in their axes or a new pyplot figure.

The small picture for a notebook (interval, guarantee, optimistic value) suits light and dark backgrounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tightrope.errors import InputError, describe
from tightrope.io.answers import PlanDocument
from tightrope.io.results import Interval, ResultDocument
from tightrope.logic.model_checking import Answer
from tightrope.numerics.text import text_above, text_below
from tightrope.report import style
from tightrope.report.curves import HEIGHT as CURVE_HEIGHT
from tightrope.report.curves import Panel, RunCurve, Series, draw_curve, draw_curves, require_curve
from tightrope.report.draw_fit import EVIDENCE, WORST
from tightrope.report.draw_intervals import INTERVALS, interval_keys
from tightrope.report.draw_regions import BOXES, draw_pair, draw_regions, pairs_of, region_keys, regions_size
from tightrope.report.draw_widths import EVENTS, WIDTHS
from tightrope.report.plan_page import HEIGHT, draw_forecast
from tightrope.report.policy_map import PolicyMap, draw_policy
from tightrope.report.statement import statement

Updates = str | PathLike[str] | Iterable[object]


def plot_intervals(run: ResultDocument, ax: Axes | None, reference: float | None = None) -> Axes:
    """The intervals under the answer in words; the axis reaches to the reference, where there is one."""
    if reference is not None and (isinstance(reference, bool) or not isinstance(reference, int | float)):
        raise InputError(f"`reference` is {describe(reference)}, not a number")
    axes = _draw(INTERVALS, run, ax)
    axes.set_title(style.plain(statement(run).headline), fontsize=style.PAPER.type_size + 1, loc="left")
    if reference is not None:
        with style.PAPER.style():
            axes.axvline(reference, color=style.GREY, lw=1.2, ls="--")
            low, high = axes.get_xlim()
            room = 0.04 * (max(high, reference) - min(low, reference))
            axes.set_xlim(min(low, reference - room), max(high, reference + room))
            key = Line2D([], [], color=style.GREY, ls="--", label=f"reference {style.number(reference)}")
            style.legend_below(axes, [*interval_keys(run), key])
    return axes


def plot_widths(run: ResultDocument, ax: Axes | None) -> Axes:
    return _draw(WIDTHS, run, ax, "no probability of the model is unknown")


def plot_events(run: ResultDocument, ax: Axes | None) -> Axes:
    return _draw(
        EVENTS, run, ax, "the result kept no events: its region is made of all observations together"
    )


def plot_fit(run: ResultDocument, ax: Axes | None) -> Axes:
    return _draw(EVIDENCE, run, ax, "there were no data, or the model was not tested with them")


def plot_observed(run: ResultDocument, ax: Axes | None) -> Axes:
    return _draw(WORST, run, ax, "there were no data, or the model was not tested with them")


def plot_regions(run: ResultDocument, x: str | None, y: str | None, ax: Axes | None) -> Figure:
    """All pairs of parameters, or one; the boxes of all parameters where no region has a shadow."""
    pairs = pairs_of(run)
    if x is not None or y is not None:
        chosen = [pair for pair in pairs if {x, y} - {None} <= set(pair)]
        if not chosen:
            listed = "; ".join(f"{a}, {b}" for a, b in pairs) or "none"
            raise InputError(f"there is no region over x={x!r} and y={y!r}", hint=f"pairs are: {listed}")
        pairs = chosen
    if not pairs:
        missing = "the sets of this result have no region of parameters"
        return style.root_figure(_draw(BOXES, run, ax, missing))
    if ax is None and len(pairs) > 1:
        figure = _new_figure(regions_size(run))
        with style.PAPER.style():
            draw_regions(run, figure)
        return figure
    axes = _axes(ax, (3.6, 3.6))
    with style.PAPER.style():
        draw_pair(run, axes, pairs[0])
        style.legend_below(axes, region_keys(run))
    return style.root_figure(axes)


def plot_policy(
    policies: PolicyMap | None, x: str | None, y: str | None, which: str, ax: Axes | None
) -> Axes:
    if policies is None:
        raise InputError("there is no policy to draw: no state has more than one choice")
    axes = _axes(ax, (style.WIDTH * 0.75, style.WIDTH * 0.62))
    with style.PAPER.style():
        draw_policy(policies, axes, x, y, which)
    return axes


def plot_curve(
    data: Answer | Updates, ax: Axes | None = None, *, title: str = "", value: str = "value", sets: str = ""
) -> Figure:
    """Draw a learning curve, or the Pareto curve of an answer to `multi(…)` with two objectives.

    Parameters
    ----------
    data : Answer, updates or path
        An answer of `tr.solve`; or updates of an `OnlineLearner`, records of `tightrope online --json`, or
        the directory (or its `records.jsonl`) of `tightrope online -o`.
    ax : Axes
        Where to draw a Pareto curve; by default a new figure.
    title, value, sets : str
        Title, label of the values and name of the sets.

    Returns
    -------
    Figure
        A learning curve shows performance if the true parameters are known, and runtimes below.

    >>> import tightrope as tr
    >>> learner = tr.online(tr.benchmark("betting(5)").problem, delta=0.01, sets="tied")
    >>> figure = tr.plot_curve([learner.update()])
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['value', 'total time [s]']
    """
    if isinstance(data, Answer):
        achieved = require_curve(data)
        axes = _axes(ax, (style.WIDTH, CURVE_HEIGHT))
        with style.PAPER.style():
            draw_curve(achieved, axes)
        return style.root_figure(axes)
    curve = RunCurve.of(_records(data))
    figure = _new_figure((style.WIDTH, 4.0))
    with style.PAPER.style():
        draw_curves([Panel(title, value, [Series(sets or "guarantee", [curve])])], figure)
    return figure


def plot_forecast(plan: PlanDocument, ax: Axes | None) -> Axes:
    """Gap against episodes, one line per way to collect them."""
    if not plan.strategies:
        raise InputError(f"there is nothing to draw: {plan.status}")
    axes = _axes(ax, (style.WIDTH, HEIGHT))
    with style.PAPER.style():
        draw_forecast(plan, axes)
        style.legend_below(axes)
    return axes


def _draw(picture: style.Picture, run: ResultDocument, ax: Axes | None, missing: str = "") -> Axes:
    if not picture.applies(run):
        raise InputError(f"there is nothing to draw: {missing}")
    axes = _axes(ax, (style.WIDTH, picture.height(run)))
    with style.PAPER.style():
        picture.draw(run, axes)
    return axes


def _new_figure(size: tuple[float, float]) -> Figure:
    """A figure of pyplot's; the first one loads the backend outside of our settings."""
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained", facecolor=style.PAPER.background)


def _axes(given: Axes | None, size: tuple[float, float]) -> Axes:
    """The user's own axes, or new ones."""
    if given is None:
        figure = _new_figure(size)
        with style.PAPER.style():
            given = figure.subplots()
    if not isinstance(given, Axes):
        raise InputError(f"`ax` is {describe(given)}, not matplotlib's Axes")
    return given


def _records(given: Updates) -> list[Mapping[str, object]]:
    """Updates as records, whatever they come from."""
    if isinstance(given, str | PathLike):
        from tightrope.io.results import RECORDS

        place = Path(given)
        file = place / RECORDS if place.is_dir() else place
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines]
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read records from {file}: {error}") from error
    if not isinstance(given, Iterable):
        raise InputError("`data` are neither updates nor records of a run, a path, or an answer of tr.solve")
    rows: list[Mapping[str, object]] = []
    elapsed = 0.0
    for entry in given:
        if not isinstance(entry, Mapping) and not hasattr(entry, "to_json"):
            raise InputError(f"`data` hold {describe(entry)}, which is not an update of a run")
        record = dict(entry) if isinstance(entry, Mapping) else dict(entry.to_json())
        elapsed += float(record["seconds"])
        rows.append({"performance": None, "elapsed": elapsed, **record})
    if not rows:
        raise InputError("`data` are empty: there is no update to draw")
    return rows


SIZE = (3.1, 0.85)
SMALL = style.Medium(SIZE[0], 8.0, "none")
SOFT = "#888888"


def small_figure(interval: Interval, guarantee: float, optimistic: float) -> str:
    """The picture as SVG, to be put into HTML as it is."""
    known = [v for v in (interval.lower, interval.upper, optimistic) if math.isfinite(v)]
    low, high = style.span_of(known, margin=0.12)
    with SMALL.style(), matplotlib.rc_context({"text.color": SOFT}):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        colour = style.SETS["rectangular"]
        left, right = max(interval.lower, low), min(interval.upper, high)
        axes.barh(0, right - left, 0.5, left=left, color=colour, edgecolor=colour)
        if low <= guarantee <= high:
            axes.plot([guarantee] * 2, [-0.45, 0.45], color=SOFT, lw=1.6)
        if low <= optimistic <= high:
            axes.plot(optimistic, 0, "o", mfc=style.PAPER_WHITE, mec=style.OPTIMISTIC, ms=5, mew=1.4)
        axes.set_xlim(low, high)
        axes.set_ylim(-0.6, 0.6)
        axes.set_yticks([])
        axes.grid(False)
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_color(style.GREY)
        axes.tick_params(colors=SOFT)
        axes.locator_params(axis="x", nbins=5)
        text = style.svg_text(figure)
    drawn = text[text.index("<svg") :]
    head, _, rest = drawn.partition("<metadata>")
    drawn = head + rest.partition("</metadata>")[2]
    words = f"interval from {text_below(interval.lower)} to {text_above(interval.upper)}"
    words += f", at best {style.number(optimistic)}"
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1).strip()
