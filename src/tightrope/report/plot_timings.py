"""Timings: seconds a phase, for every kind of sets, each as if it had been computed alone."""

from __future__ import annotations

from tightrope.report.frame import WIDTH, Key, drawing, figure, legend, row, table, x_axis
from tightrope.report.markup import Child, Markup, tag
from tightrope.report.reading import Outcome, Run
from tightrope.report.scale import Axis

LEFT = 118.0
ROW = 34.0


def phases_of(run: Run) -> list[str]:
    """The phases in the order in which they ran."""
    return list(dict.fromkeys(phase for outcome in run.outcomes for phase in outcome.seconds))


def timings_figure(run: Run) -> Markup:
    """Stacked bars."""
    phases = phases_of(run)
    most = max((sum(outcome.seconds.values()) for outcome in run.outcomes), default=0.0)
    axis = Axis(0.0, most * 1.04 or 1.0, LEFT, WIDTH - 14)
    bottom = 8 + ROW * len(run.outcomes)
    rows = [_row(outcome, phases, axis, 8 + ROW * (i + 0.5)) for i, outcome in enumerate(run.outcomes)]
    totals = ", ".join(f"{o.label} {sum(o.seconds.values()):.3g} s" for o in run.outcomes)
    body = [
        (o.label, *(f"{o.seconds.get(p, 0.0):.3g}" for p in phases), f"{sum(o.seconds.values()):.3g}")
        for o in run.outcomes
    ]
    return figure(
        "timings",
        "Timings",
        legend(Key("bar", f"p-{i % 6}", phase) for i, phase in enumerate(phases)),
        drawing(
            bottom + 48,
            f"Seconds by phase. In total: {totals}",
            x_axis(axis, 4, bottom, "time (seconds)"),
            *rows,
            has_rows=True,
        ),
        table(("sets", *phases, "total"), body, "Numbers: seconds"),
        caption="Wall-clock seconds a phase, each kind of sets as if computed alone, without the build.",
    )


def _row(outcome: Outcome, phases: list[str], axis: Axis, y: float) -> Markup:
    marks: list[Child] = []
    done = 0.0
    for i, phase in enumerate(phases):
        seconds = outcome.seconds.get(phase, 0.0)
        left, right = axis(done), axis(done + seconds)
        marks.append(
            tag("rect", class_=f"fill p-{i % 6}", x=left, y=y - 9, width=max(right - left, 0.0), height=18)
        )
        done += seconds
    tip = [f"{outcome.label}: {done:.3g} s"]
    tip += [f"{phase} {outcome.seconds.get(phase, 0.0):.3g} s" for phase in phases]
    hit = tag("rect", class_="hit", x=0, y=y - ROW / 2, width=WIDTH, height=ROW)
    label = tag("text", outcome.label, class_="row", x=LEFT - 8, y=y + 4, text_anchor="end")
    return row(tip, hit, label, *marks)
