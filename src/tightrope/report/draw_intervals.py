"""Value intervals of all sets side by side on one scale."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tightrope.io.results import ResultDocument, StoredOutcome
from tightrope.numerics.text import text_above, text_below
from tightrope.report import style
from tightrope.report.statement import best_case, ends_text, quantity

FAR = 100.0
"""An end so many times the median width away is drawn as an arrow at the edge."""


def draw_intervals(run: ResultDocument, axes: Axes) -> None:
    """One row per kind of sets: the robust policy's interval, a given policy's, the optimistic value."""
    low, high = value_range(run)
    axes.set_xlim(low, high)
    axes.locator_params(axis="x", nbins=5)
    for row, (label, outcome) in enumerate(run.shown):
        both = outcome.value is not None
        colour = style.SETS.get(outcome.sets, style.GREY)
        lines = _tip(run, label, outcome)
        for span, shift, paint in (
            (outcome.robust_policy, -0.17 if both else 0.0, colour),
            (outcome.value, 0.17, style.INK),
        ):
            if span is None:
                continue
            left, right = min(max(span.lower, low), high), max(min(span.upper, high), low)
            (bar,) = axes.barh(
                row + shift,
                right - left,
                0.3 if both else 0.46,
                left=left,
                color=paint,
                edgecolor=paint,
                lw=0.8,
            )
            style.tell(bar, *lines)
            for end, beyond, marker in ((low, span.lower < low, "<"), (high, span.upper > high, ">")):
                if beyond:
                    axes.plot(end, row + shift, marker, color=paint, markersize=6, clip_on=False)
        if low <= outcome.optimistic <= high:
            (ring,) = axes.plot(
                outcome.optimistic, row, "o", mfc=style.PAPER_WHITE, mec=style.OPTIMISTIC, ms=5.5, mew=1.4
            )
            style.tell(ring, *lines)
    axes.set_yticks(range(len(run.shown)), [label for label, _ in run.shown])
    axes.set_ylim(len(run.shown) - 0.4, -0.6)
    axes.grid(False, axis="y")
    if run.true_value is not None:
        line = axes.axvline(run.true_value.lower, color=style.TRUTH, lw=1.2)
        style.tell(line, f"best value at the true parameters: {style.number(run.true_value.lower)}")
    style.name_axes(axes, f"value ({quantity(run)})", "")
    style.legend_below(axes, interval_keys(run))


def interval_keys(run: ResultDocument) -> list[Patch | Line2D]:
    """The legend."""
    keys: list[Patch | Line2D] = [
        Patch(color=style.SETS.get(run.main.sets, style.GREY), label="robust policy")
    ]
    if any(outcome.value for _, outcome in run.shown):
        keys.append(Patch(color=style.INK, label="given policy"))
    ring = Line2D(
        [], [], ls="", marker="o", mfc=style.PAPER_WHITE, mec=style.OPTIMISTIC, label="optimistic value"
    )
    keys.append(ring)
    if run.true_value is not None:
        keys.append(Line2D([], [], color=style.TRUTH, label="best at the true parameters"))
    return keys


def value_range(run: ResultDocument) -> tuple[float, float]:
    """A scale on which the tight intervals can be read; ends far beyond it become arrows."""
    spans = [span for _, o in run.shown for span in (o.robust_policy, o.value) if span is not None]
    widths = sorted(span.width for span in spans if math.isfinite(span.width))
    typical = widths[len(widths) // 2] if widths else 1.0
    near = [span for span in spans if span.width <= FAR * max(typical, 1e-12)]
    ends = [end for span in near for end in (span.lower, span.upper)]
    if run.true_value is not None:
        ends.append(run.true_value.lower)
    return style.span_of(ends)


def _tip(run: ResultDocument, label: str, outcome: StoredOutcome) -> list[str]:
    lines = [label, f"robust policy {ends_text(outcome.robust_policy)}"]
    if outcome.value is not None:
        lines.append(f"given policy {ends_text(outcome.value)}")
    lines.append(f"optimistic {best_case(run, outcome)}")
    lines.append(f"{sum(outcome.seconds.values()):.2g} s, {outcome.relaxation}")
    return lines


def _words(run: ResultDocument) -> str:
    listed = "; ".join(f"{label} {ends_text(outcome.shown)}" for label, outcome in run.shown)
    return f"Intervals of the {quantity(run)} for {len(run.shown)} kinds of sets: {listed}"


def _table(run: ResultDocument) -> style.NumberTable:
    rows = [
        (
            label,
            outcome.region or "–",
            text_below(outcome.robust_policy.lower),
            text_above(outcome.robust_policy.upper),
            style.number(outcome.robust_policy.width, 4),
            ends_text(outcome.value) if outcome.value else "–",
            best_case(run, outcome),
            outcome.verdict.value,
        )
        for label, outcome in run.shown
    ]
    head = ("sets", "region", "lower", "upper", "width", "given policy", "optimistic", "verdict")
    return style.NumberTable("Numbers: value intervals", head, rows)


def _caption(run: ResultDocument) -> str:
    best = "lower" if run.maximises else "upper"
    return (
        f"The {best} end of a robust policy's interval is what it guarantees; no policy does better than the "
        "optimistic value. Each kind of sets has its colour."
    )


INTERVALS = style.Picture(
    "intervals",
    "Value intervals, all sets",
    draw_intervals,
    lambda run: 1.15 + 0.3 * len(run.shown),
    _words,
    _table,
    _caption,
)
