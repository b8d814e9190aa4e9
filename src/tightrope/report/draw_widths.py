"""Widths per expression: before the data, and after them in every kind of sets.

Before any data an expression is as wide as its range over the domain. The result lists expressions as exact
polynomials in words; they are read back and enclosed over the box of the domain with outward rounding
(`Expressions.ranges`), cut to [0, 1] because they are probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tightrope.io.results import Interval, ResultDocument
from tightrope.io.text import PolynomialSyntaxError, parse_polynomial
from tightrope.model.expressions import ExpressionTable
from tightrope.model.ranges import ranges_over_box
from tightrope.report.picture import Picture, Table, interval_text, number, shorten
from tightrope.report.style import GREY, SETS, legend_below, name_axes, tell


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
        Interval(max(float(low[place[i]]), 0.0), min(float(high[place[i]]), 1.0))
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
        place, [last[i].width for i in shown], [span.width for span in before], color=GREY, lw=0.5
    )
    drops.set_alpha(0.35)
    axes.plot(place, [span.width for span in before], "_", color=GREY, ms=4.5, label="before the data")
    for label, outcome in run.shown:
        colour = SETS.get(outcome.sets, GREY)
        axes.plot(place, [after[label][i].width for i in shown], ".", color=colour, ms=4, label=label)
    axes.set_ylim(bottom=0.0)
    axes.set_xlim(0, len(shown) + 1)
    for at, i, start in zip(place, shown, before, strict=True):
        lines = [shorten(run.expressions.text[i], 90)]
        lines.append(f"before the data {interval_text(start.lower, start.upper)}")
        lines += [f"{label} {interval_text(s[i].lower, s[i].upper)}" for label, s in after.items()]
        column = Rectangle((at - 0.5, 0), 1, 1, fill=False, lw=0, transform=axes.get_xaxis_transform())
        tell(axes.add_artist(column), *lines)
    name_axes(axes, "expression (rank by final width)", "width (probability)")
    legend_below(axes)


def _after(run: ResultDocument, shown: list[int]) -> list[tuple[str, list[float]]]:
    """The widths of the shown expressions in every kind of sets."""
    found = []
    for label, outcome in run.shown:
        spans = outcome.spans
        found.append((label, [spans[i].width for i in shown]))
    return found


def _count(run: ResultDocument) -> str:
    shown, total = len(ranking(run)), run.expressions.total
    return f"{shown} of {total}" if total > shown else str(shown)


def _words(run: ResultDocument) -> str:
    shown = ranking(run)
    before = before_data(run)
    start = number(sum(span.width for span in before) / len(shown), 3)
    ends = [f"{label} {number(sum(widths) / len(shown), 3)}" for label, widths in _after(run, shown)]
    return f"Widths of {_count(run)} expressions. Mean before the data {start}, after {', '.join(ends)}"


def _table(run: ResultDocument) -> Table:
    shown = ranking(run)
    columns = [widths for _, widths in _after(run, shown)]
    before = before_data(run)
    rows = [
        (
            run.expressions.text[i],
            number(before[at].width, 4),
            *(number(column[at], 4) for column in columns),
        )
        for at, i in enumerate(shown)
    ]
    return Table("Numbers: widths", ("expression", "before", *(label for label, _ in run.shown)), rows)


WIDTHS = Picture(
    "widths",
    "Widths per expression, before and after",
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
