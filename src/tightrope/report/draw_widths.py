"""Widths per expression before and after the data, and the active constraints.

Before any data an expression is as wide as its range over the domain, enclosed with outward rounding
(`Expressions.ranges`) and cut to [0, 1]. Active events (classes of transitions with one expression) come
first. Likelihood regions and ellipsoids have none; the events with the most observations are shown instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from tightrope.io.results import Interval, ObservedEvent, ResultDocument
from tightrope.model.expressions import ExpressionTable
from tightrope.model.polynomial import PolynomialSyntaxError, parse_polynomial
from tightrope.model.ranges import ranges_over_box
from tightrope.numerics.text import interval_text
from tightrope.report import style


def ranges_before_data(run: ResultDocument, shown: Sequence[int]) -> list[Interval]:
    """The range of each of the `shown` expressions over the domain; [0, 1] where a text cannot be read."""
    names = list(run.parameters)
    index = {name: i for i, name in enumerate(names)}
    expressions = ExpressionTable(names)
    known: dict[int, int] = {}
    for i in shown:
        try:
            known[i] = expressions.add(parse_polynomial(run.expressions.text[i], index))
        except PolynomialSyntaxError:
            continue
    used = np.array(list(known.values()), dtype=np.int32)
    frozen, renumbered = expressions.freeze(used)
    box = list(run.parameters.values())
    low, high = ranges_over_box(frozen, [span.lower for span in box], [span.upper for span in box])
    place = dict(zip(known, renumbered.tolist(), strict=True))
    return [
        Interval.of(max(float(low[place[i]]), 0.0), min(float(high[place[i]]), 1.0))
        if i in place
        else Interval(0.0, 1.0)
        for i in shown
    ]


SHOWN = 120


def ranking(run: ResultDocument) -> list[int]:
    """The expressions to show, by their width in the main outcome, widest first; thinned out evenly."""
    widths = np.array([span.width for span in run.main.spans])
    order = np.argsort(-widths, kind="stable")
    if len(order) > SHOWN:
        order = order[np.linspace(0, len(order) - 1, SHOWN).astype(np.int64)]
    return [int(i) for i in order]


def before_data(run: ResultDocument) -> list[Interval]:
    """The ranges of the expressions in `ranking` before any data; drawing, words and table share them."""
    if "before_data" not in run.__dict__:
        run.__dict__["before_data"] = ranges_before_data(run, ranking(run))
    ranges: list[Interval] = run.__dict__["before_data"]
    return ranges


def draw_widths(run: ResultDocument, axes: Axes) -> None:
    """One column per expression, a mark per kind of sets."""
    shown = ranking(run)
    before = before_data(run)
    after = {label: outcome.spans for label, outcome in run.shown}
    place = range(1, len(shown) + 1)
    last = run.main.spans
    drops = axes.vlines(
        place, [last[i].width for i in shown], [span.width for span in before], color=style.GREY, lw=0.5
    )
    drops.set_alpha(0.35)
    axes.plot(place, [span.width for span in before], "_", color=style.GREY, ms=4.5, label="before the data")
    for label, outcome in run.shown:
        colour = style.SETS.get(outcome.sets, style.GREY)
        axes.plot(place, [after[label][i].width for i in shown], ".", color=colour, ms=4, label=label)
    axes.set_ylim(bottom=0.0)
    axes.set_xlim(0, len(shown) + 1)
    for at, i, start in zip(place, shown, before, strict=True):
        lines = [style.shorten(run.expressions.text[i], 90)]
        lines.append(f"before the data {interval_text(start.lower, start.upper)}")
        lines += [f"{label} {interval_text(s[i].lower, s[i].upper)}" for label, s in after.items()]
        column = Rectangle((at - 0.5, 0), 1, 1, fill=False, lw=0, transform=axes.get_xaxis_transform())
        style.tell(axes.add_artist(column), *lines)
    style.name_axes(axes, "expression (rank by final width)", "width (probability)")
    style.legend_below(axes)


def _after(run: ResultDocument, shown: list[int]) -> list[tuple[str, list[float]]]:
    """The widths of the shown expressions in every kind of sets."""
    after = ((label, outcome.spans) for label, outcome in run.shown)
    return [(label, [spans[i].width for i in shown]) for label, spans in after]


def _count(run: ResultDocument) -> str:
    shown, total = len(ranking(run)), run.expressions.total
    return f"{shown} of {total}" if total > shown else str(shown)


def _words(run: ResultDocument) -> str:
    shown = ranking(run)
    before = before_data(run)
    start = style.number(sum(span.width for span in before) / len(shown), 3)
    ends = [f"{label} {style.number(sum(widths) / len(shown), 3)}" for label, widths in _after(run, shown)]
    return f"Widths of {_count(run)} expressions. Mean before the data {start}, after {', '.join(ends)}"


def _table(run: ResultDocument) -> style.NumberTable:
    shown = ranking(run)
    columns = [[span.width for span in before_data(run)], *(widths for _, widths in _after(run, shown))]
    rows = [
        (run.expressions.text[i], *(style.number(column[at], 4) for column in columns))
        for at, i in enumerate(shown)
    ]
    return style.NumberTable(
        "Numbers: widths", ("expression", "before", *(label for label, _ in run.shown)), rows
    )


WIDTHS = style.Picture(
    "widths",
    "Widths",
    draw_widths,
    lambda run: 3.0,
    _words,
    _table,
    lambda run: (
        f"{_count(run)} distinct unknown probabilities, widest first. Each dot is the width that one "
        "kind of sets leaves."
    ),
    lambda run: bool(run.expressions.text),
)


SHOWN_EVENTS = 24
LONGEST = 30


@dataclass(frozen=True)
class EventRow:
    """An event to show: its side if it binds, and the bounds that its expression has in the end."""

    event: ObservedEvent
    side: str | None
    final: Interval | None


def event_rows(run: ResultDocument, most: int = SHOWN_EVENTS) -> list[EventRow]:
    """Binding events first, then by the number of observations."""
    sides = {bound.event: bound.side for bound in run.main.binding.events}
    ordered = sorted(run.observed, key=lambda e: (e.event not in sides, -e.trials, e.event))
    place = {text: i for i, text in enumerate(run.expressions.text)}
    final = run.main.spans
    return [
        EventRow(event, sides.get(event.event), final[place[event.text]] if event.text in place else None)
        for event in ordered[:most]
    ]


def draw_events(run: ResultDocument, axes: Axes) -> None:
    """The events as rows."""
    rows = event_rows(run)
    tips = [_event_tip(row) for row in rows]
    colours = [style.TRUTH if row.side else style.FAINT for row in rows]
    _bars(axes, [row.event.interval for row in rows], 0.7, colours, tips)
    _bars(axes, [row.final for row in rows], 0.28, [style.SETS["rectangular"]] * len(rows), tips)
    for at, row in enumerate(rows):
        if row.event.trials:
            dot = Line2D(
                [row.event.successes / row.event.trials], [at], ls="", marker=".", color=style.INK, ms=5
            )
            style.tell(axes.add_line(dot), *tips[at])
    ends = [end for row in rows for end in (row.event.interval.lower, row.event.interval.upper)]
    axes.set_xlim(*style.span_of(ends))
    style.name_rows(axes, range(len(rows)), [row.event.text for row in rows], LONGEST)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(False, axis="y")
    style.name_axes(axes, "probability of the event", "")
    keys: list[Patch | Line2D] = [Patch(color=style.FAINT, label="event")]
    if any(row.side for row in rows):
        keys = [
            Patch(color=style.TRUTH, label="limiting event"),
            Patch(color=style.FAINT, label="other event"),
        ]
    keys.append(Patch(color=style.SETS["rectangular"], label="bounds in the end"))
    keys.append(Line2D([], [], ls="", marker=".", color=style.INK, label="observed frequency"))
    style.legend_below(axes, keys)


def _bars(
    axes: Axes,
    spans: Sequence[Interval | None],
    height: float,
    colours: Sequence[str],
    tips: Sequence[Sequence[str]],
) -> None:
    """A bar in every row that has a span."""
    at = [i for i, span in enumerate(spans) if span is not None]
    drawn = [span for span in spans if span is not None]
    paint = [colours[i] for i in at]
    bars = axes.barh(
        at,
        [span.width for span in drawn],
        height,
        left=[span.lower for span in drawn],
        color=paint,
        edgecolor=paint,
        lw=0.4,
    )
    for i, bar in zip(at, bars, strict=True):
        style.tell(bar, *tips[i])


def binding_remark(run: ResultDocument) -> str:
    """Which events limit the region, in a sentence."""
    main = run.main
    if main.binding.total:
        total, many = main.binding.total, main.binding.total > 1
        who, whom = (f"{total:,} events limit", "them") if many else ("One event limits", "it")
        return f"{who} the region: more data about {whom} would shrink it."
    if main.region is None or main.contradiction is not None:
        return f"With {main.label} sets no data are limiting: each event counts by itself, without a region."
    return f"The {main.region} region depends on all observations; no single event is limiting." + (
        " The events with the most observations are shown." if run.observed else ""
    )


def binding_table(run: ResultDocument) -> style.NumberTable | None:
    """The binding events in the words of the learner."""
    binding = run.main.binding
    if not binding.events:
        return None
    rows = [(bound.text, bound.side) for bound in binding.events]
    return style.NumberTable(f"The {binding.total} limiting events", ("event", "binds with"), rows)


def _event_tip(row: EventRow) -> list[str]:
    event = row.event
    lines = [event.text, f"seen {event.successes:,} of {event.trials:,}"]
    lines.append(f"interval {interval_text(event.interval.lower, event.interval.upper)}")
    if row.final is not None:
        lines.append(f"final bounds {interval_text(row.final.lower, row.final.upper)}")
    if row.side:
        lines.append(f"limiting at its {row.side} end")
    return lines


def _event_count(run: ResultDocument) -> str:
    shown, total = len(event_rows(run)), 0 if run.events is None else run.events.total
    return f"{shown} of {total} events" if total > shown else f"{shown} events"


def _event_table(run: ResultDocument) -> style.NumberTable:
    rows = [
        (
            row.event.text,
            f"{row.event.successes:,}",
            f"{row.event.trials:,}",
            interval_text(row.event.interval.lower, row.event.interval.upper),
            interval_text(row.final.lower, row.final.upper) if row.final else "–",
            row.side or "–",
        )
        for row in event_rows(run)
    ]
    return style.NumberTable(
        f"Numbers: {_event_count(run)}", ("event", "seen", "of", "interval", "final bounds", "binds"), rows
    )


EVENTS = style.Picture(
    "binding",
    "Limiting data",
    draw_events,
    lambda run: 1.1 + 0.19 * len(event_rows(run)),
    lambda run: f"Intervals of {_event_count(run)}. {binding_remark(run)}",
    _event_table,
    binding_remark,
    lambda run: bool(run.observed),
)
