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

from tightrope.learning.plan.answer import (
    DESIGNED,
    EVEN,
    GIVEN,
    OPTIMISTIC,
    ROBUST,
    UNIFORM,
    Plan,
    Strategy,
    rounded,
)
from tightrope.learning.plan.target import Aim
from tightrope.report.learning_curve import save
from tightrope.report.style import GREY, INK, PAPER, TRUTH, WIDTH, legend_below, plain

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


def draw_forecast(plan: Plan, axes: Axes) -> None:
    """All of it, in any axes."""
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
    elif plan.target.aim is Aim.BUDGET:
        axes.axvline(begin + plan.target.amount, color=TRUTH, lw=0.9, ls="--", label="with the budget")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"{plan.unit}, those so far included")
    axes.set_ylabel("optimistic − guarantee" if plan.target.aim is Aim.OPTIMALITY else "gap")
    axes.set_title(plain(f"forecast, not a guarantee: {plan.target.text}"), loc="left", fontsize=9)
    legend_below(axes)


def forecast_figure(plan: Plan) -> Figure:
    """A figure of its own."""
    with PAPER.style():
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        draw_forecast(plan, figure.subplots())
    return figure


def write_forecast(plan: Plan, folder: Path) -> list[Path]:
    """`forecast.pdf`, `.svg` and `.png`."""
    return save(forecast_figure(plan), folder / STEM)


def _line(strategy: Strategy, begin: int, axes: Axes, layer: float) -> None:
    colour = COLOURS.get(strategy.name, GREY)
    more, gap, low, high = (strategy.points[:, column] for column in range(4))
    kept = more > 0
    at = begin + more[kept]
    needs = f": {rounded(strategy.episodes)} more" if math.isfinite(strategy.episodes) else ""
    axes.fill_between(at, low[kept], high[kept], color=colour, alpha=0.12, linewidth=0)
    width = 1.6 if strategy.name == DESIGNED else 1.0
    axes.plot(
        at, np.asarray(gap[kept]), color=colour, lw=width, label=f"{strategy.name}{needs}", zorder=layer
    )
