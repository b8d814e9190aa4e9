"""Which data bind: the observed events with their intervals, and those that hold the region in place.

An event is what is counted together, a class of transitions with one probability expression. Those that bind
come first. Where the region is made of all observations together (likelihood, ellipsoid) none binds
alone; then the events with the most observations are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tightrope.io.results import Interval, ObservedEvent, ResultDocument
from tightrope.report.picture import Picture, Table, interval_text, shorten, span_of
from tightrope.report.style import FAINT, INK, SETS, TRUTH, legend_below, name_axes, plain, tell

SHOWN = 24
LONGEST = 15


@dataclass(frozen=True)
class EventRow:
    """An event to show: its side if it binds, and the bounds that its expression has in the end."""

    event: ObservedEvent
    side: str | None
    final: Interval | None


def event_rows(run: ResultDocument, most: int = SHOWN) -> list[EventRow]:
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
    tips = [_tip(row) for row in rows]
    colours = [TRUTH if row.side else FAINT for row in rows]
    _bars(axes, [row.event.interval for row in rows], 0.7, colours, tips)
    _bars(axes, [row.final for row in rows], 0.28, [SETS["rectangular"]] * len(rows), tips)
    for at, row in enumerate(rows):
        if row.event.trials:
            dot = Line2D([row.event.successes / row.event.trials], [at], ls="", marker=".", color=INK, ms=5)
            tell(axes.add_line(dot), *tips[at])
    ends = [end for row in rows for end in (row.event.interval.lower, row.event.interval.upper)]
    axes.set_xlim(*span_of(ends))
    axes.set_yticks(range(len(rows)), [plain(shorten(row.event.text, LONGEST)) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(False, axis="y")
    name_axes(axes, "probability of the event", "")
    keys: list[Patch | Line2D] = [Patch(color=FAINT, label="event")]
    if any(row.side for row in rows):
        keys = [Patch(color=TRUTH, label="binding event"), Patch(color=FAINT, label="other event")]
    keys.append(Patch(color=SETS["rectangular"], label="bounds in the end"))
    keys.append(Line2D([], [], ls="", marker=".", color=INK, label="frequency seen"))
    legend_below(axes, keys)


def _bars(
    axes: Axes,
    spans: Sequence[Interval | None],
    height: float,
    colours: Sequence[str],
    tips: Sequence[Sequence[str]],
) -> None:
    """A bar in every row that has a span."""
    at = [i for i, span in enumerate(spans) if span is not None]
    found = [span for span in spans if span is not None]
    paint = [colours[i] for i in at]
    bars = axes.barh(
        at,
        [span.width for span in found],
        height,
        left=[span.lower for span in found],
        color=paint,
        edgecolor=paint,
        lw=0.4,
    )
    for i, bar in zip(at, bars, strict=True):
        tell(bar, *tips[i])


def binding_remark(run: ResultDocument) -> str:
    """Which events bind, in a sentence."""
    main = run.main
    if main.binding.total:
        return f"{main.binding.total} events hold the region in place: more data about these, and it shrinks."
    if main.region is None or main.contradiction is not None:
        return f"{main.label} sets use every event by itself; there is no region that an event could bind."
    return f"The {main.region} region is made of all observations together; no single event binds." + (
        " The events with the most observations are shown." if run.observed else ""
    )


def binding_table(run: ResultDocument) -> Table | None:
    """The binding events in the words of the learner."""
    found = run.main.binding
    if not found.events:
        return None
    rows = [(bound.text, bound.side) for bound in found.events]
    return Table(f"The {found.total} events that bind", ("event", "binds with"), rows)


def _tip(row: EventRow) -> list[str]:
    event = row.event
    lines = [event.text, f"seen {event.successes:,} of {event.trials:,}"]
    lines.append(f"interval {interval_text(event.interval.lower, event.interval.upper)}")
    if row.final is not None:
        lines.append(f"final bounds {interval_text(row.final.lower, row.final.upper)}")
    if row.side:
        lines.append(f"binds with its {row.side} end")
    return lines


def _count(run: ResultDocument) -> str:
    shown, total = len(event_rows(run)), 0 if run.events is None else run.events.total
    return f"{shown} of {total} events" if total > shown else f"{shown} events"


def _table(run: ResultDocument) -> Table:
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
    return Table(
        f"Numbers: {_count(run)}", ("event", "seen", "of", "interval", "final bounds", "binds"), rows
    )


EVENTS = Picture(
    "binding",
    "Which data bind",
    draw_events,
    lambda run: 1.1 + 0.19 * len(event_rows(run)),
    lambda run: f"Intervals of {_count(run)}. {binding_remark(run)}",
    _table,
    binding_remark,
    lambda run: bool(run.observed),
)
