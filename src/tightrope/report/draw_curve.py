"""The Pareto curve of two objectives: what policies attain, and what none can.

Dots are policies, the line between them what mixtures of two neighbours attain; the shaded band reaches to
the lines that no policy crosses. Axes carry the objectives as they were asked, each in its unit: a
probability, or what a reward counts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tightrope.errors import InputError, check_type, describe
from tightrope.io.output import OutputFile
from tightrope.logic.model_checking import Answer
from tightrope.logic.multi_objective import Achieved
from tightrope.numerics.arrays import FloatArray
from tightrope.report.figures import save_figure
from tightrope.report.style import GREY, INK, PAPER, SETS, WIDTH, legend_below, name_axes

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


def plot_curve(answer: Answer, ax: Axes | None = None) -> Axes:
    """The Pareto curve of an answer to `multi(…)` with two objectives, in new axes or in those given.

    >>> import tightrope as tr
    >>> rows = [(0, "x", {1: 1}), (0, "y", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, labels={"a": [1], "b": [2]})
    >>> axes = tr.plot_curve(tr.solve(model, 'multi(Pmax=? [ F "a" ], Pmax=? [ F "b" ])'))
    >>> axes.get_xlabel()
    'Pmax=? [ F "a" ]  (probability)'
    """
    check_type("answer", answer, Answer, "an answer of tr.solve")
    achieved = require_curve(answer)
    if ax is None:
        from matplotlib import pyplot

        with PAPER.style():
            ax = pyplot.figure(figsize=(WIDTH, HEIGHT), layout="constrained").subplots()
    if not isinstance(ax, Axes):
        raise InputError(f"`ax` is {describe(ax)}, not matplotlib's Axes")
    with PAPER.style():
        draw_curve(achieved, ax)
    return ax


def write_curve(answer: Answer, target: OutputFile) -> Path:
    """The curve as a file that was claimed: .pdf, .png or .svg."""
    achieved = require_curve(answer)
    with PAPER.style():
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        draw_curve(achieved, figure.subplots())
    target.check()
    return save_figure(figure, target.path)


def _front(points: FloatArray) -> list[int]:
    """The corners of the hull of all points towards large values, from left to right."""
    order = np.lexsort((points[:, 1], points[:, 0]))[::-1]
    found: list[int] = []
    for index in order.tolist():
        if found and points[index, 1] <= points[found[-1], 1]:
            continue
        while len(found) > 1 and _is_below(points[found[-1]], points[found[-2]], points[index]):
            found.pop()
        found.append(index)
    return found[::-1]


def _is_below(middle: FloatArray, one: FloatArray, other: FloatArray) -> bool:
    a, b = other - one, middle - one
    return bool(a[0] * b[1] - a[1] * b[0] >= 0)


def _ceiling(achieved: Achieved, turn: FloatArray, across: FloatArray) -> FloatArray:
    """The least of all lines that no policy crosses; probabilities to be small are turned as 1 − P there."""
    offset = np.where((turn < 0) & np.array(achieved.probabilities), 1.0, 0.0)
    useful = (achieved.weights[:, 1] > 0) & np.isfinite(achieved.limits)
    weights, limits = achieved.weights[useful], achieved.limits[useful]
    lines = (limits[:, None] - weights[:, :1] * (across + offset[0])) / weights[:, 1:]
    found: FloatArray = lines.min(axis=0, initial=np.inf) - offset[1]
    return found


def _label(achieved: Achieved, number: int) -> str:
    unit = "probability" if achieved.probabilities[number] else "total reward"
    return f"{achieved.objectives[number]}  ({unit})"
