"""Value intervals of all sets side by side, on one scale."""

from __future__ import annotations

import math

from tightrope.report.frame import WIDTH, Key, drawing, figure, legend, row, table, x_axis
from tightrope.report.markup import Child, Markup, join, tag
from tightrope.report.reading import Outcome, Run, Span
from tightrope.report.scale import Axis, at_least, at_most, interval_text, number, span_of
from tightrope.report.statement import best_case, quantity

LEFT = 118.0
ROW = 40.0
FAR = 100.0
"""An end so many times the median width away is drawn as an arrow at the edge."""


def intervals_figure(run: Run) -> Markup:
    """One row a kind of sets: the robust policy's interval, a given policy's, the optimistic value."""
    axis = Axis(*value_range(run), LEFT, WIDTH - 14)
    bottom = 10 + ROW * len(run.outcomes)
    rows = [_row(run, outcome, axis, 10 + ROW * (i + 0.5)) for i, outcome in enumerate(run.outcomes)]
    keys = [Key("bar", f"s-{run.main.sets}", "robust policy (a colour for each kind of sets)")]
    truth: Markup | None = None
    if any(outcome.given for outcome in run.outcomes):
        keys.append(Key("bar", "c-given", "given policy"))
    keys.append(Key("ring", "c-optimistic", "optimistic: no policy does better"))
    if run.true_value is not None and axis.shows(run.true_value.lower):
        x = axis(run.true_value.lower)
        tip = f"best value at the true point: {number(run.true_value.lower)}"
        truth = tag("line", class_="stroke c-truth", x1=x, x2=x, y1=4, y2=bottom, data_tip=tip)
        keys.append(Key("line", "c-truth", "best value at the true point"))
    best = "lower" if run.maximises else "upper"
    picture = drawing(
        bottom + 48,
        f"Certified intervals of the {quantity(run)} for {len(run.outcomes)} kinds of sets: "
        + "; ".join(f"{o.label} {interval_text(o.shown.lower, o.shown.upper)}" for o in run.outcomes),
        x_axis(axis, 6, bottom, f"value ({quantity(run)})"),
        *rows,
        truth,
        has_rows=True,
    )
    return figure(
        "intervals",
        "Value intervals, all sets",
        legend(keys),
        picture,
        _table(run),
        caption=f"The {best} end of a robust policy's interval is what it guarantees.",
        wide=True,
    )


def value_range(run: Run) -> tuple[float, float]:
    """A scale on which the tight intervals can be read; ends far beyond it become arrows."""
    spans = [span for o in run.outcomes for span in (o.robust, o.given) if span is not None]
    widths = sorted(span.width for span in spans if math.isfinite(span.width))
    typical = widths[len(widths) // 2] if widths else 1.0
    near = [span for span in spans if span.width <= FAR * max(typical, 1e-12)]
    ends = [end for span in near for end in (span.lower, span.upper)]
    if run.true_value is not None:
        ends.append(run.true_value.lower)
    return span_of(ends)


def _row(run: Run, outcome: Outcome, axis: Axis, y: float) -> Markup:
    tip = [f"{outcome.label}", f"robust policy {interval_text(outcome.robust.lower, outcome.robust.upper)}"]
    marks: list[Child] = []
    both = outcome.given is not None
    marks.append(_bar(outcome.robust, axis, y - (8 if both else 5), f"s-{outcome.sets}"))
    if outcome.given is not None:
        tip.append(f"given policy {interval_text(outcome.given.lower, outcome.given.upper)}")
        marks.append(_bar(outcome.given, axis, y + 3, "c-given"))
    tip.append(f"optimistic {best_case(run, outcome)}")
    if axis.shows(outcome.optimistic):
        marks.append(tag("circle", class_="ring c-optimistic", cx=axis(outcome.optimistic), cy=y, r=4.5))
    tip.append(f"{sum(outcome.seconds.values()):.2g} s, {outcome.relaxation}")
    hit = tag("rect", class_="hit", x=0, y=y - ROW / 2, width=WIDTH, height=ROW)
    name = tag("text", outcome.label, class_="row", x=LEFT - 8, y=y + 4, text_anchor="end")
    return row(tip, hit, name, *marks)


def _bar(span: Span, axis: Axis, y: float, colour: str) -> Markup:
    left, right = axis(span.lower), axis(span.upper)
    if right - left < 2:
        left, right = (left + right) / 2 - 1, (left + right) / 2 + 1
    parts: list[Child] = [tag("rect", class_="fill", x=left, y=y, width=right - left, height=10, rx=2)]
    if span.lower < axis.low:
        parts.append(_arrow(left, y + 5, -1))
    if span.upper > axis.high:
        parts.append(_arrow(right, y + 5, 1))
    return tag("g", join(*parts), class_=colour)


def _arrow(x: float, y: float, way: int) -> Markup:
    shape = f"M{x + 9 * way:.1f} {y:.1f} L{x - way:.1f} {y - 8:.1f} L{x - way:.1f} {y + 8:.1f} Z"
    return tag("path", class_="fill", d=shape)


def _table(run: Run) -> Markup:
    rows = [
        (
            outcome.label,
            outcome.region or "–",
            at_least(outcome.robust.lower),
            at_most(outcome.robust.upper),
            number(outcome.robust.width, 4),
            interval_text(outcome.given.lower, outcome.given.upper) if outcome.given else "–",
            best_case(run, outcome),
            outcome.status,
        )
        for outcome in run.outcomes
    ]
    head = ("sets", "region", "lower", "upper", "width", "given policy", "optimistic", "status")
    return table(head, rows, "Numbers: value intervals")
