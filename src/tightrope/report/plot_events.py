"""Which data bind: the observed events with their intervals, and those that hold the region in place.

An event is what is counted together, a class of transitions with one probability expression. Those that bind
come first. Where the region is made of all observations together (likelihood, ellipsoid) none binds
alone; then the events with the most observations are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.report.frame import WIDTH, Key, drawing, figure, legend, table, x_axis
from tightrope.report.markup import Child, Markup, tag
from tightrope.report.reading import ObservedEvent, Run, Span
from tightrope.report.scale import Axis, interval_text, span_of

SHOWN = 24
ROW = 26.0
LEFT = 150.0
LONGEST = 17


@dataclass(frozen=True)
class EventRow:
    """An event to show: its side if it binds, and the bounds that its expression has in the end."""

    event: ObservedEvent
    side: str | None
    final: Span | None


def event_rows(run: Run, most: int = SHOWN) -> list[EventRow]:
    """Binding events first, then by the number of observations."""
    sides = {bound.event: bound.side for bound in run.main.binding}
    ordered = sorted(run.events, key=lambda e: (e.event not in sides, -e.trials, e.event))
    place = {text: i for i, text in enumerate(run.expressions)}
    final = run.main.bounds
    return [
        EventRow(event, sides.get(event.event), final[place[event.text]] if event.text in place else None)
        for event in ordered[:most]
    ]


def events_figure(run: Run) -> Markup:
    """The events as rows, or words where a run kept none."""
    remark = _remark(run)
    rows = event_rows(run)
    if not rows:
        return figure("binding", "Which data bind", tag("p", remark), _named(run))
    ends = [end for row in rows for end in (row.event.interval.lower, row.event.interval.upper)]
    axis = Axis(*span_of(ends), LEFT, WIDTH - 14)
    bottom = 8 + ROW * len(rows)
    keys = [Key("bar", "c-event", "event")]
    if any(row.side for row in rows):
        keys = [Key("bar", "c-binding", "event that binds"), Key("bar", "c-event", "other event")]
    keys += [
        Key("bar", "c-final", f"its bounds in {run.main.label} sets"),
        Key("dot", "c-ink", "frequency seen"),
    ]
    of = (
        f"{len(rows)} of {run.events_total} events" if run.events_total > len(rows) else f"{len(rows)} events"
    )
    return figure(
        "binding",
        "Which data bind",
        legend(keys),
        drawing(
            bottom + 48,
            f"Intervals of {of}. {remark}",
            x_axis(axis, 4, bottom, "probability of the event", 4),
            *(_row(row, axis, 8 + ROW * (i + 0.5)) for i, row in enumerate(rows)),
        ),
        _named(run),
        table(
            ("event", "seen", "of", "interval", "final bounds", "binds"), map(_cells, rows), f"Numbers: {of}"
        ),
        caption=remark,
    )


def _remark(run: Run) -> str:
    main = run.main
    if main.binding_total:
        return f"{main.binding_total} events hold the region in place: more data about these, and it shrinks."
    if main.region is None or main.verdict is not None:
        return f"{main.label} sets use every event by itself; there is no region that an event could bind."
    return f"The {main.region} region is made of all observations together; no single event binds." + (
        " The events with the most observations are shown." if run.events else ""
    )


def _row(row: EventRow, axis: Axis, y: float) -> Markup:
    event = row.event
    tip = [event.text, f"seen {event.successes:,} of {event.trials:,}"]
    tip.append(f"interval {interval_text(event.interval.lower, event.interval.upper)}")
    marks: list[Child] = [_bar(event.interval, axis, y, 10, "c-binding" if row.side else "c-event")]
    if row.final is not None:
        marks.append(_bar(row.final, axis, y, 4, "c-final"))
        tip.append(f"final bounds {interval_text(row.final.lower, row.final.upper)}")
    if row.side:
        tip.append(f"binds with its {row.side} end")
    if event.trials:
        marks.append(tag("circle", class_="fill c-ink", cx=axis(event.successes / event.trials), cy=y, r=3))
    text = event.text if len(event.text) <= LONGEST else event.text[: LONGEST - 1] + "…"
    label = tag("text", text, class_="row small", x=LEFT - 8, y=y + 4, text_anchor="end")
    hit = tag("rect", class_="hit", x=0, y=y - ROW / 2, width=WIDTH, height=ROW)
    return tag("g", hit, label, *marks, data_tip="\n".join(tip))


def _bar(span: Span, axis: Axis, y: float, height: float, colour: str) -> Markup:
    left, right = axis(span.lower), axis(span.upper)
    return tag(
        "rect",
        class_=f"fill {colour}",
        x=left,
        y=y - height / 2,
        width=max(right - left, 1.5),
        height=height,
        rx=2,
    )


def _cells(row: EventRow) -> tuple[str, ...]:
    event = row.event
    return (
        event.text,
        f"{event.successes:,}",
        f"{event.trials:,}",
        interval_text(event.interval.lower, event.interval.upper),
        interval_text(row.final.lower, row.final.upper) if row.final else "–",
        row.side or "–",
    )


def _named(run: Run) -> Markup | None:
    """The binding events in the words of the learner."""
    if not run.main.binding:
        return None
    rows = [(bound.text, bound.side) for bound in run.main.binding]
    return table(("event", "binds with"), rows, f"The {run.main.binding_total} events that bind")
