"""What all plots share: a frame with axes, a legend, a table of the numbers, and the figure around them.

Plots are drawn for a width of 480 units and scale with the page; on a phone the style sheet enlarges text.
Every figure has a table of its numbers, for readers who do not see the picture and for copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tightrope.report.markup import Child, Markup, join, tag
from tightrope.report.scale import Axis

WIDTH = 480.0


@dataclass(frozen=True)
class Key:
    """An entry of a legend: a mark (bar, area, line, dash, dot, ring) in a colour class, and its meaning."""

    mark: str
    colour: str
    text: str


def x_axis(axis: Axis, top: float, bottom: float, label: str, ticks: int = 5) -> Markup:
    """Vertical grid lines with their values below, and the label with its unit."""
    parts: list[Child] = []
    for value, text in axis.ticks(ticks):
        x = axis(value)
        parts.append(tag("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        parts.append(tag("text", text, class_="tick", x=x, y=bottom + 18, text_anchor="middle"))
    middle = (axis.start + axis.stop) / 2
    parts.append(tag("text", label, class_="label", x=middle, y=bottom + 40, text_anchor="middle"))
    return join(*parts)


def y_axis(axis: Axis, left: float, right: float, label: str, ticks: int = 5) -> Markup:
    """Horizontal grid lines with their values on the left, and the label turned."""
    parts: list[Child] = []
    for value, text in axis.ticks(ticks):
        y = axis(value)
        parts.append(tag("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
        parts.append(tag("text", text, class_="tick", x=left - 6, y=y + 4, text_anchor="end"))
    middle = (axis.start + axis.stop) / 2
    turned = f"translate(14 {middle:.1f}) rotate(-90)"
    parts.append(tag("text", label, class_="label", transform=turned, text_anchor="middle"))
    return join(*parts)


def row(tip: Sequence[str], *children: Child) -> Markup:
    """Marks that belong together and can be pointed at or tabbed to; `tip` is what they tell."""
    words = ", ".join(tip)
    return tag("g", *children, data_tip="\n".join(tip), tabindex="0", role="img", aria_label=words)


def drawing(height: float, label: str, *children: Child, has_rows: bool = False, **attributes: str) -> Markup:
    """The picture itself; `label` is what a screen reader says, before the rows if there are any."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="group" if has_rows else "img",
        aria_label=label,
        **attributes,
    )


def legend(keys: Iterable[Key]) -> Markup:
    """The keys in a row that wraps."""
    return tag("ul", *(tag("li", _swatch(key), key.text) for key in keys), class_="legend")


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], caption: str) -> Markup:
    """Numbers behind a picture, folded away."""
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    header = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    inner = tag("table", tag("thead", header), tag("tbody", *body))
    scroll = tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)
    return tag("details", tag("summary", caption), scroll)


def figure(name: str, title: str, *children: Child, caption: str | None = None, wide: bool = False) -> Markup:
    """A titled figure; `name` is its id."""
    return tag(
        "figure",
        tag("h2", title),
        *children,
        tag("figcaption", caption) if caption else None,
        id=name,
        class_="wide" if wide else None,
    )


def _swatch(key: Key) -> Markup:
    match key.mark:
        case "bar":
            inner = tag("rect", class_="fill", x=1, y=4, width=18, height=6, rx=2)
        case "area":
            inner = tag("rect", class_="area", x=1, y=1, width=18, height=12)
        case "line":
            inner = tag("line", class_="stroke", x1=10, x2=10, y1=0, y2=14)
        case "dash":
            inner = tag("rect", class_="outline", x=1, y=1, width=18, height=12)
        case "ring":
            inner = tag("circle", class_="ring", cx=10, cy=7, r=4.5)
        case _:
            inner = tag("circle", class_="fill", cx=10, cy=7, r=4.5)
    return tag("svg", inner, class_=f"swatch {key.colour}", viewBox="0 0 20 14", aria_hidden="true")
