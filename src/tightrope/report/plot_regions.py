"""Parameter regions: their boxes, and their shadows on every pair of parameters.

A panel shows the polygons around the regions' shadows with their boxes, on the range that the regions leave
open; the page's script reads the coordinates under the pointer. Where a model has a single parameter
there is no pair, and the boxes say it all.
"""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.report.frame import WIDTH, Key, drawing, figure, legend, row, table, x_axis, y_axis
from tightrope.report.markup import Child, Markup, tag
from tightrope.report.reading import Point, RegionShape, Run
from tightrope.report.scale import Axis, interval_text, number, span_of

SHOWN = 6
"""Panels shown at once; the others can be unfolded."""

ROW = 34.0
LEFT = 110.0
PANEL = 400.0
EDGE = 92.0
"""Height of a panel, and the room left of it for values and the label."""


def regions_figure(run: Run) -> Markup | None:
    """Panels for all pairs, or None where no region has a shadow."""
    pairs = list(dict.fromkeys(pair for region in run.regions for pair in region.polygons))
    if not pairs:
        return None
    panels = [_panel(run, x, y) for x, y in pairs]
    more: Markup | None = None
    if len(panels) > SHOWN:
        rest = tag("div", *panels[SHOWN:], class_="panels")
        more = tag("details", tag("summary", f"{len(panels) - SHOWN} more pairs"), rest)
    return figure(
        "regions",
        "Parameter regions, pair by pair",
        legend(_keys(run)),
        tag("div", *panels[:SHOWN], class_="panels"),
        more,
        caption="Outer polygons around the shadow of each region: the true parameters lie inside with the "
        "confidence of its ledger. Point at a panel to read coordinates.",
        wide=True,
    )


def boxes_figure(run: Run) -> Markup | None:
    """The interval of every parameter in every region, within its domain."""
    regions = [region for region in run.regions if region.box]
    if not regions:
        return None
    names = [name for name in run.parameters if any(name in region.box for region in regions)]
    axis = Axis(0.0, 1.0, LEFT, WIDTH - 14)
    bottom = 8 + ROW * len(names)
    rows = [_box_row(run, regions, name, axis, 8 + ROW * (i + 0.5)) for i, name in enumerate(names)]
    keys = [Key("bar", f"r-{region.kind}", region.kind) for region in regions]
    if run.truth:
        keys.append(Key("line", "c-truth", "true value"))
    shown = [
        (
            name,
            interval_text(run.parameters[name].lower, run.parameters[name].upper),
            *(interval_text(r.box[name].lower, r.box[name].upper) if name in r.box else "–" for r in regions),
            number(run.truth[name]) if name in run.truth else "–",
        )
        for name in names
    ]
    return figure(
        "parameters",
        "What is known about each parameter",
        legend(keys),
        drawing(
            bottom + 48,
            "Intervals of the parameters: " + "; ".join(f"{row[0]} {row[2]} of {row[1]}" for row in shown),
            x_axis(axis, 4, bottom, "place in the domain (0 lowest, 1 highest)"),
            *rows,
            has_rows=True,
        ),
        table(("parameter", "domain", *(r.kind for r in regions), "true"), shown, "Numbers: parameters"),
        caption="A full row means that the data leave this parameter open by itself; combinations of "
        "parameters may still be known well.",
    )


def _box_row(run: Run, regions: Sequence[RegionShape], name: str, axis: Axis, y: float) -> Markup:
    domain = run.parameters[name]
    scale = domain.width or 1.0
    height = min(12.0, 24.0 / len(regions))
    marks: list[Child] = []
    tip = [f"{name}: domain {interval_text(domain.lower, domain.upper)}"]
    for i, region in enumerate(regions):
        if name not in region.box:
            continue
        span = region.box[name]
        left, right = axis((span.lower - domain.lower) / scale), axis((span.upper - domain.lower) / scale)
        top = y + height * (i - len(regions) / 2)
        marks.append(
            tag(
                "rect",
                class_=f"fill r-{region.kind}",
                x=left,
                y=top + 0.5,
                width=max(right - left, 2.0),
                height=height - 1,
            )
        )
        tip.append(f"{region.kind} {interval_text(span.lower, span.upper)}")
    if name in run.truth:
        x = axis((run.truth[name] - domain.lower) / scale)
        marks.append(tag("line", class_="stroke c-truth", x1=x, x2=x, y1=y - 14, y2=y + 14))
        tip.append(f"true value {number(run.truth[name])}")
    hit = tag("rect", class_="hit", x=0, y=y - ROW / 2, width=WIDTH, height=ROW)
    label = tag("text", name, class_="row", x=LEFT - 8, y=y + 4, text_anchor="end")
    return row(tip, hit, label, *marks)


def panel_range(run: Run, pair: tuple[str, str], which: int) -> tuple[float, float]:
    """The range of one axis: all shadows and the true value."""
    ends = [p[which] for region in run.regions for p in region.polygons.get(pair, ())]
    name = pair[which]
    ends += [end for r in run.regions if name in r.box for end in (r.box[name].lower, r.box[name].upper)]
    if name in run.truth:
        ends.append(run.truth[name])
    return span_of(ends)


def _panel(run: Run, x_name: str, y_name: str) -> Markup:
    pair = (x_name, y_name)
    x = Axis(*panel_range(run, pair, 0), EDGE, WIDTH - 14)
    y = Axis(*panel_range(run, pair, 1), PANEL - 52, 8)
    marks: list[Child] = []
    for region in run.regions:
        if x_name in region.box and y_name in region.box:
            marks.append(_rectangle(region, pair, x, y))
        if pair in region.polygons:
            shape = _path(region.polygons[pair], x, y)
            marks.append(tag("path", class_=f"area r-{region.kind}", d=shape, data_region=region.kind))
    if x_name in run.truth and y_name in run.truth:
        at = (x(run.truth[x_name]), y(run.truth[y_name]))
        marks.append(tag("circle", class_="fill c-truth halo", cx=at[0], cy=at[1], r=5))
    kinds = ", ".join(region.kind for region in run.regions if pair in region.polygons)
    return tag(
        "div",
        drawing(
            PANEL,
            f"Shadow of the regions ({kinds}) on {x_name} and {y_name}",
            x_axis(x, 8, PANEL - 52, f"{x_name} (no unit)", 4),
            y_axis(y, EDGE, WIDTH - 14, f"{y_name} (no unit)"),
            *marks,
            tag("g", class_="cross"),
            class_="panel",
            data_x=f"{x_name}|{x.low!r}|{x.high!r}|{x.start!r}|{x.stop!r}",
            data_y=f"{y_name}|{y.low!r}|{y.high!r}|{y.start!r}|{y.stop!r}",
        ),
    )


def _rectangle(region: RegionShape, pair: tuple[str, str], x: Axis, y: Axis) -> Markup:
    across, up = region.box[pair[0]], region.box[pair[1]]
    left, right, low, high = x(across.lower), x(across.upper), y(up.lower), y(up.upper)
    return tag(
        "rect", class_=f"outline r-{region.kind}", x=left, y=high, width=right - left, height=low - high
    )


def _path(polygon: Sequence[Point], x: Axis, y: Axis) -> str:
    """The polygon in units of the picture; corners closer than a twentieth of a unit are one."""
    corners: list[str] = []
    for point in polygon:
        text = f"{x(point[0]):.1f} {y(point[1]):.1f}"
        if not corners or corners[-1] != text:
            corners.append(text)
    return "M" + "L".join(corners) + "Z"


def _keys(run: Run) -> list[Key]:
    keys = []
    for region in run.regions:
        if region.polygons:
            how = "exact set" if region.relaxation == "exact" else "outer enclosure"
            keys.append(Key("area", f"r-{region.kind}", f"{region.kind} ({how})"))
            keys.append(Key("dash", f"r-{region.kind}", f"box of the {region.kind}"))
    if run.truth:
        keys.append(Key("dot", "c-truth", "true point"))
    return keys
