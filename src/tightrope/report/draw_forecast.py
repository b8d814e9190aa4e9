"""The forecast of a plan: the gap to expect against all episodes, one line per way to collect them.

Both axes are logarithmic. A band is what is likely; the dot is what the data so far certify, the dashed line
what is asked for. The title says what it is: a forecast.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from tightrope.io.plans import (
    DESIGNED,
    EVEN,
    GIVEN,
    OPTIMISTIC,
    ROBUST,
    UNIFORM,
    Aim,
    PlanDocument,
    StrategyFacts,
    Target,
    round_forecast,
)
from tightrope.report.learning_curve import save
from tightrope.report.style import GREY, INK, PAPER, TRUTH, Medium, columns_within, plain

HEIGHT = 3.3
COLOURS = {
    DESIGNED: "#0b63b0",
    ROBUST: "#0a7d55",
    GIVEN: "#0a7d55",
    OPTIMISTIC: "#a65a00",
    UNIFORM: GREY,
    EVEN: GREY,
}
STEM = "forecast"


def draw_forecast(plan: PlanDocument, axes: Axes) -> None:
    """All of it but the legend, in any axes."""
    begin = max(plan.episodes_so_far, 1)
    for place, strategy in enumerate(plan.strategies):
        _line(strategy, begin, axes, 3.0 - 0.1 * place)
    axes.plot(begin, plan.gap_now, "o", color=INK, markersize=4, label="data so far", zorder=5)
    if plan.gap_asked is not None:
        axes.axhline(plan.gap_asked, color=TRUTH, lw=0.9, ls="--", label=f"asked: {plan.gap_asked:.3g}")
        for strategy in plan.strategies:
            if math.isfinite(strategy.episodes) and strategy.episodes > 0:
                at = begin + strategy.episodes
                axes.plot(
                    at, plan.gap_asked, "|", color=COLOURS.get(strategy.name, GREY), markersize=9, mew=1.4
                )
    elif plan.aim == Aim.BUDGET.value:
        axes.axvline(begin + plan.asked, color=TRUTH, lw=0.9, ls="--", label="with the budget")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"{plan.unit}, those so far included")
    axes.set_ylabel("optimistic − guarantee" if plan.aim == Aim.OPTIMALITY.value else "gap")
    axes.set_title(plain(f"forecast, not a guarantee: {aim_of(plan)}"), loc="left", fontsize=9)


def aim_of(plan: PlanDocument) -> str:
    """What is asked for, in words."""
    return Target(Aim(plan.aim), plan.asked, plan.relative).text


def forecast_figure(plan: PlanDocument, medium: Medium = PAPER) -> Figure:
    """A new figure."""
    with medium.style():
        size = (medium.width, HEIGHT * medium.type_size / PAPER.type_size)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        draw_forecast(plan, axes)
        labels = [str(handle.get_label()) for handle in axes.get_legend_handles_labels()[0]]
        columns = columns_within(labels, 72 * medium.width / (0.56 * medium.type_size))
        figure.legend(
            loc="outside lower center", ncols=columns, frameon=False, columnspacing=1.2, handlelength=1.5
        )
    return figure


def write_forecast(plan: PlanDocument, folder: Path) -> list[Path]:
    """`forecast.pdf`, `.svg` and `.png`."""
    return save(forecast_figure(plan), folder / STEM)


def _line(strategy: StrategyFacts, begin: int, axes: Axes, layer: float) -> None:
    colour = COLOURS.get(strategy.name, GREY)
    more, gap, low, high = np.array(strategy.curve, dtype=np.float64).T
    kept = more > 0
    at = begin + more[kept]
    needs = f": {round_forecast(strategy.episodes)} more" if math.isfinite(strategy.episodes) else ""
    axes.fill_between(at, low[kept], high[kept], color=colour, alpha=0.12, linewidth=0)
    width = 1.6 if strategy.name == DESIGNED else 1.0
    axes.plot(
        at, np.asarray(gap[kept]), color=colour, lw=width, label=f"{strategy.name}{needs}", zorder=layer
    )
