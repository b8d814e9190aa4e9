"""Timings: seconds per phase, for every kind of sets, each as if it had been computed alone."""

from __future__ import annotations

from matplotlib.axes import Axes

from tightrope.io.results import ResultDocument
from tightrope.report.picture import Picture, Table
from tightrope.report.style import PHASES, legend_below, name_axes, tell


def phases_of(run: ResultDocument) -> list[str]:
    """The phases in the order in which they ran."""
    return list(dict.fromkeys(phase for _, outcome in run.shown for phase in outcome.seconds))


def draw_timings(run: ResultDocument, axes: Axes) -> None:
    """Stacked bars."""
    rows = range(len(run.shown))
    tips = [
        [f"{label}: {sum(outcome.seconds.values()):.3g} s"]
        + [f"{phase} {outcome.seconds.get(phase, 0.0):.3g} s" for phase in phases_of(run)]
        for label, outcome in run.shown
    ]
    done = [0.0] * len(rows)
    for i, phase in enumerate(phases_of(run)):
        seconds = [outcome.seconds.get(phase, 0.0) for _, outcome in run.shown]
        bars = axes.barh(rows, seconds, 0.6, left=done, color=PHASES[i % len(PHASES)], label=phase)
        for bar, lines in zip(bars, tips, strict=True):
            tell(bar, *lines)
        done = [a + b for a, b in zip(done, seconds, strict=True)]
    axes.set_yticks(rows, [label for label, _ in run.shown])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(False, axis="y")
    name_axes(axes, "time (seconds)", "")
    legend_below(axes)


def _words(run: ResultDocument) -> str:
    totals = ", ".join(f"{label} {sum(o.seconds.values()):.3g} s" for label, o in run.shown)
    return f"Seconds by phase. In total: {totals}"


def _table(run: ResultDocument) -> Table:
    phases = phases_of(run)
    rows = [
        (label, *(f"{o.seconds.get(p, 0.0):.3g}" for p in phases), f"{sum(o.seconds.values()):.3g}")
        for label, o in run.shown
    ]
    return Table("Numbers: seconds", ("sets", *phases, "total"), rows)


TIMINGS = Picture(
    "timings",
    "Timings",
    draw_timings,
    lambda run: 1.1 + 0.26 * len(run.shown),
    _words,
    _table,
    lambda run: "Wall-clock seconds per phase, each kind of sets as if computed alone, without the build.",
)
