"""Parameter regions: their boxes, and their projections on every pair of parameters.

A panel shows outer polygons of the projections with their boxes, on the range that the regions leave open;
the page shows coordinates under the pointer. A model with a single parameter has boxes alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon, Rectangle

from tightrope.io.results import ResultDocument
from tightrope.numerics.text import interval_text
from tightrope.report import style

Pair = tuple[str, str]

REGION = "region:"
"""How the id of a region's shape begins."""


def pairs_of(run: ResultDocument) -> list[Pair]:
    """Pairs of parameters with a shadow, those first whose shadow leaves the least of the domain."""
    pairs = dict.fromkeys(pair for region in run.regions for pair in region.polygons)
    return sorted(pairs, key=lambda pair: _measure_share_left(run, pair))


def _measure_share_left(run: ResultDocument, pair: Pair) -> float:
    """The area of the smallest shadow, of that of the domain; rounded, so that near ties keep their order."""
    whole = math.prod(run.parameters[name].width or 1.0 for name in pair if name in run.parameters)
    areas = [_area(region.polygons[pair]) for region in run.regions if pair in region.polygons]
    return round(min(areas) / whole, 3) if whole > 0 else 1.0


def _area(corners: Sequence[tuple[float, float]]) -> float:
    """Of a polygon, by the shoelace formula."""
    following = [*corners[1:], *corners[:1]]
    return 0.5 * abs(sum(a * d - b * c for (a, b), (c, d) in zip(corners, following, strict=True)))


def draw_pair(run: ResultDocument, axes: Axes, pair: Pair) -> None:
    """The shadows of all regions on two parameters, without a legend."""
    for region in run.regions:
        colour = style.REGIONS.get(region.kind, style.GREY)
        corners = region.polygons.get(pair)
        if corners is not None:
            axes.add_patch(Polygon(corners, facecolor=colour, alpha=0.18, lw=0))
            outline = Polygon(corners, fill=False, edgecolor=colour, lw=1.2)
            outline.set_gid(REGION + region.kind)
            axes.add_patch(outline)
        if all(name in region.box for name in pair):
            (left, right), (low, high) = (region.box[name] for name in pair)
            frame = Rectangle((left, low), right - left, high - low, fill=False, ec=colour, lw=0.9, ls="--")
            axes.add_patch(frame)
    if all(name in run.true_point for name in pair):
        at = run.true_point[pair[0]], run.true_point[pair[1]]
        (dot,) = axes.plot(*at, "o", color=style.TRUTH, mec=style.PAPER_WHITE, mew=0.8, ms=6)
        dot.set_gid("truth")
    axes.set_xlim(*_range(run, pair, 0))
    axes.set_ylim(*_range(run, pair, 1))
    style.name_axes(axes, f"{pair[0]} (no unit)", f"{pair[1]} (no unit)")


def region_keys(run: ResultDocument) -> list[Patch | Line2D]:
    """The legend of all panels."""
    keys: list[Patch | Line2D] = []
    for region in run.regions:
        if region.polygons:
            how = "exact" if region.relaxation == "exact" else "outer enclosure"
            colour = style.REGIONS.get(region.kind, style.GREY)
            keys.append(Patch(facecolor=colour, alpha=0.4, label=f"{region.kind} ({how})"))
    keys.append(Line2D([], [], color=style.GREY, ls="--", label="its box"))
    if run.true_point:
        keys.append(Line2D([], [], ls="", marker="o", color=style.TRUTH, label="true parameters"))
    return keys


def draw_regions(run: ResultDocument, figure: Figure) -> None:
    """All pairs in a grid, with one legend."""
    pairs = pairs_of(run)
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(pairs) :]:
        axes.set_axis_off()
    for axes, pair in zip(grid, pairs, strict=False):
        draw_pair(run, axes, pair)
    keys = region_keys(run)
    room = figure.get_figwidth() * 72 / 5
    figure.legend(
        handles=keys,
        loc="outside lower center",
        ncols=style.columns_within([str(key.get_label()) for key in keys], room),
        frameon=False,
    )


def regions_size(run: ResultDocument) -> tuple[float, float]:
    """Inches that a grid of all pairs takes on paper."""
    pairs = len(pairs_of(run))
    columns = min(3, pairs)
    return max(2.35 * columns, 3.4), 2.2 * -(-pairs // columns) + 0.5


def regions_figure(run: ResultDocument) -> Figure | None:
    """The grid as a new figure; None where no region has a shadow."""
    if not pairs_of(run):
        return None
    with style.PAPER.style():
        figure = Figure(figsize=regions_size(run), layout="constrained")
        draw_regions(run, figure)
    return figure


def panel_figures(run: ResultDocument, medium: style.Medium) -> Iterator[tuple[Pair, Figure]]:
    """Every pair alone, without a legend, one after the other in the same figure: a page has many panels."""
    with medium.style():
        figure = Figure(figsize=(3.6, 3.1))
        axes = figure.add_axes((0.24, 0.17, 0.74, 0.81))
        axes.locator_params(nbins=5)
    for pair in pairs_of(run):
        with medium.style():
            draw_pair(run, axes, pair)
        yield pair, figure
        for artist in (*axes.patches, *axes.lines):
            artist.remove()


def panel_words(run: ResultDocument, pair: Pair) -> str:
    kinds = ", ".join(region.kind for region in run.regions if pair in region.polygons)
    return f"Projection of the regions ({kinds}) on {pair[0]} and {pair[1]}"


def draw_boxes(run: ResultDocument, axes: Axes) -> None:
    """The interval of every parameter in every region, within its domain."""
    regions = [region for region in run.regions if region.box]
    names = _list_boxed(run)
    height = 0.7 / len(regions)
    for at, name in enumerate(names):
        domain = run.parameters[name]
        scale = domain.width or 1.0
        lines = [f"{name}: domain {interval_text(domain.lower, domain.upper)}"]
        lines += [f"{r.kind} {interval_text(*r.box[name])}" for r in regions if name in r.box]
        if name in run.true_point:
            lines.append(f"true value {style.number(run.true_point[name])}")
            line = axes.vlines(
                (run.true_point[name] - domain.lower) / scale, at - 0.45, at + 0.45, style.TRUTH, lw=1.6
            )
            line.set_zorder(3)
        for i, region in enumerate(regions):
            if name in region.box:
                low, high = ((end - domain.lower) / scale for end in region.box[name])
                colour, y = (
                    style.REGIONS.get(region.kind, style.GREY),
                    at + height * (i - (len(regions) - 1) / 2),
                )
                (bar,) = axes.barh(y, high - low, height * 0.85, left=low, color=colour, ec=colour, lw=0.6)
                style.tell(bar, *lines)
    axes.set_xlim(-0.02, 1.02)
    axes.set_yticks(range(len(names)), [style.plain(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False, axis="y")
    style.name_axes(axes, "place in the domain (0 lowest, 1 highest)", "")
    keys: list[Patch | Line2D] = [
        Patch(color=style.REGIONS.get(r.kind, style.GREY), label=r.kind) for r in regions
    ]
    if run.true_point:
        keys.append(Line2D([], [], color=style.TRUTH, lw=1.6, label="true value"))
    style.legend_below(axes, keys)


def _list_boxed(run: ResultDocument) -> list[str]:
    return [name for name in run.parameters if any(name in region.box for region in run.regions)]


def _range(run: ResultDocument, pair: Pair, which: int) -> tuple[float, float]:
    """The range of one axis: all shadows and the true value."""
    ends = [p[which] for region in run.regions for p in region.polygons.get(pair, ())]
    name = pair[which]
    ends += [end for region in run.regions for end in region.box.get(name, ())]
    if name in run.true_point:
        ends.append(run.true_point[name])
    return style.span_of(ends)


def _rows(run: ResultDocument) -> list[tuple[str, ...]]:
    regions = [region for region in run.regions if region.box]
    return [
        (
            name,
            interval_text(run.parameters[name].lower, run.parameters[name].upper),
            *(interval_text(*region.box[name]) if name in region.box else "–" for region in regions),
            style.number(run.true_point[name]) if name in run.true_point else "–",
        )
        for name in _list_boxed(run)
    ]


def _table(run: ResultDocument) -> style.NumberTable:
    kinds = [region.kind for region in run.regions if region.box]
    return style.NumberTable("Numbers: parameters", ("parameter", "domain", *kinds, "true"), _rows(run))


BOXES = style.Picture(
    "parameters",
    "Parameters",
    draw_boxes,
    lambda run: 1.15 + 0.32 * len(_list_boxed(run)),
    lambda run: "Intervals of the parameters: " + "; ".join(f"{r[0]} {r[2]} of {r[1]}" for r in _rows(run)),
    _table,
    lambda run: (
        "A full row means that the data do not narrow this parameter by itself; combinations of parameters "
        "may be narrower."
    ),
    lambda run: any(region.box for region in run.regions),
)
