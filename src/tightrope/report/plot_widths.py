"""Widths per expression: before the data, and after them in every kind of sets."""

from __future__ import annotations

import numpy as np

from tightrope.report.before import ranges_before_data
from tightrope.report.frame import WIDTH, Key, drawing, figure, legend, table, x_axis, y_axis
from tightrope.report.markup import Child, Markup, tag
from tightrope.report.reading import Run
from tightrope.report.scale import Axis, interval_text, number

SHOWN = 120
HEIGHT = 300.0
LEFT = 70.0


def ranking(run: Run) -> list[int]:
    """The expressions to show, by their width in the main outcome, widest first; thinned out evenly."""
    widths = np.array([span.width for span in run.main.bounds])
    order = np.argsort(-widths, kind="stable")
    if len(order) > SHOWN:
        order = order[np.linspace(0, len(order) - 1, SHOWN).astype(np.int64)]
    return [int(i) for i in order]


def widths_figure(run: Run) -> Markup | None:
    """One column an expression; None where all probabilities are known."""
    shown = ranking(run)
    if not shown:
        return None
    before = ranges_before_data(run, shown)
    bottom = HEIGHT - 50
    across = Axis(0.5, len(shown) + 0.5, LEFT, WIDTH - 12)
    highest = max([span.width for span in before] + [o.bounds[i].width for o in run.outcomes for i in shown])
    up = Axis(0.0, highest * 1.04 or 1.0, bottom, 10)
    step = (across.stop - across.start) / len(shown)
    columns = []
    rows = []
    for rank, (i, start) in enumerate(zip(shown, before, strict=True), 1):
        x = across(rank)
        text = run.expressions[i]
        tip = [_short(text, 90), f"before the data {interval_text(start.lower, start.upper)}"]
        last = run.main.bounds[i]
        marks: list[Child] = [
            tag("line", class_="drop", x1=x, x2=x, y1=up(start.width), y2=up(last.width)),
            tag(
                "line",
                class_="before",
                x1=x - step * 0.4,
                x2=x + step * 0.4,
                y1=up(start.width),
                y2=up(start.width),
            ),
        ]
        for outcome in run.outcomes:
            span = outcome.bounds[i]
            tip.append(f"{outcome.label} {interval_text(span.lower, span.upper)}")
            size = min(max(step * 0.3, 1.4), 5.0)
            marks.append(tag("circle", class_=f"fill s-{outcome.sets}", cx=x, cy=up(span.width), r=size))
        hit = tag("rect", class_="hit", x=x - step / 2, y=10, width=step, height=bottom - 10)
        columns.append(tag("g", hit, *marks, data_tip="\n".join(tip)))
        widths = [number(outcome.bounds[i].width, 4) for outcome in run.outcomes]
        rows.append((text, number(start.width, 4), *widths))
    keys = [Key("bar", "c-before", "before the data (range over the domain)")]
    keys += [Key("dot", f"s-{outcome.sets}", outcome.label) for outcome in run.outcomes]
    of = f" of {run.expressions_total}" if run.expressions_total > len(shown) else ""
    mean = {o.label: sum(o.bounds[i].width for i in shown) / len(shown) for o in run.outcomes}
    start_mean = sum(span.width for span in before) / len(shown)
    picture = drawing(
        HEIGHT,
        f"Widths of {len(shown)}{of} expressions. Mean before the data {number(start_mean, 3)}, after "
        + ", ".join(f"{label} {number(value, 3)}" for label, value in mean.items()),
        x_axis(across, 10, bottom, "expression (rank by final width)", 5),
        y_axis(up, LEFT, WIDTH - 12, "width (probability)"),
        *columns,
    )
    return figure(
        "widths",
        "Widths per expression, before and after",
        legend(keys),
        picture,
        table(("expression", "before", *(o.label for o in run.outcomes)), rows, "Numbers: widths"),
        caption=f"{len(shown)}{of} distinct unknown probabilities, widest first. Each dot is the width that "
        "one kind of sets leaves.",
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
