"""A matplotlib figure as SVG inside a page: closed, small, in the page's colours, and readable by machines.

The page allows no styles but its own, so what matplotlib writes as styles becomes attributes; its colours
become the page's variables, which follow the light or dark scheme. Marks that tell something (`style.tell`)
get the attribute that the page's script shows; identifiers are made the figure's own, unused ones go.
"""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from tightrope.report.style import (
    ACTIONS,
    BREAK,
    FAINT,
    GREY,
    GRID,
    INK,
    OPTIMISTIC,
    PAPER_WHITE,
    SETS,
    TIP,
    TRUTH,
)

SPACE = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"

VARIABLES = {
    **{colour: f"a{i}" for i, colour in enumerate(ACTIONS)},
    **{colour: name for name, colour in SETS.items() if name != "coupled"},
    GREY: "untied",
    FAINT: "line",
    INK: "ink",
    PAPER_WHITE: "card",
    GRID: "grid",
    TRUTH: "truth",
    OPTIMISTIC: "optimistic",
}
"""The page's variable for each colour that pictures use."""

NUMBER = re.compile(r"-?\d+\.\d{2,}")
REGION = "region:"


def inline_svg(figure: Figure, name: str, words: str, *, coordinates: bool = False) -> Markup:
    """The figure as an `<svg>` with an accessible name; `name` keeps its identifiers apart from others'.

    With `coordinates` the names and ranges of the axes are added, for the script that reads positions.
    """
    root = _draw(figure)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": words}
    if coordinates:
        root.attrib |= {"class": "panel", **_coordinates(figure)}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{SPACE}metadata", f"{SPACE}style") or _draws_nothing(child):
                parent.remove(child)
    for element in root.iter():
        _clean(element, name)
    if coordinates:
        ElementTree.SubElement(root, f"{SPACE}g", {"class": "cross"})
    for element in root.iter():
        element.tag = element.tag.removeprefix(SPACE)
        if element.tag != "text":
            element.text = element.tail = None
        else:
            element.tail = None
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _draw(figure: Figure) -> ElementTree.Element:
    """What matplotlib writes; straight from its canvas, which lays the figure out once and not twice."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tightrope"}):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(stream, metadata={"Date": None})
    return ElementTree.fromstring(stream.getvalue())


def _draws_nothing(element: ElementTree.Element) -> bool:
    """The transparent background of a figure or of axes."""
    paths = list(element)
    alone = element.tag == f"{SPACE}g" and len(paths) == 1 and paths[0].tag == f"{SPACE}path"
    return alone and paths[0].get("style") == "fill: none" and "patch_" in element.get("id", "")


def _clean(element: ElementTree.Element, name: str) -> None:
    style = element.attrib.pop("style", "")
    for rule in filter(None, (part.strip() for part in style.split(";"))):
        key, _, value = (part.strip() for part in rule.partition(":"))
        if key != "font-family":
            element.set(key, _colour(value) if key in ("fill", "stroke") else value)
    if element.tag == f"{SPACE}text" and element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    identifier = element.attrib.pop("id", "")
    if identifier.startswith(TIP):
        element.set("data-tip", identifier.removeprefix(TIP).replace(BREAK, "\n"))
    elif identifier.startswith(REGION):
        element[0].set("data-region", identifier.removeprefix(REGION))
    elif identifier.startswith("legend_"):
        element.set("class", "legend")
    elif identifier == "truth":
        element.set("class", "truth")
    elif identifier and element.tag != f"{SPACE}g":
        element.set("id", f"{name}-{identifier}")
    if LINK in element.attrib:
        element.set("href", f"#{name}-{element.attrib.pop(LINK)[1:]}")
    if "clip-path" in element.attrib:
        element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{name}-"))
    for key in ("d", "x", "y", "transform"):
        if key in element.attrib:
            shorter = NUMBER.sub(lambda found: f"{float(found[0]):.1f}", element.attrib[key])
            element.set(key, " ".join(shorter.split()))


def _colour(value: str) -> str:
    return f"var(--{VARIABLES[value]})" if value in VARIABLES else value


def _coordinates(figure: Figure) -> dict[str, str]:
    """Names, ranges and places of the axes: "name|low|high|start|stop", in units of the picture."""
    (axes,) = figure.axes
    box = axes.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    height = figure.get_figheight() * 72
    places = {"x": (box.x0 * 72, box.x1 * 72), "y": (height - box.y0 * 72, height - box.y1 * 72)}
    found = {}
    for key, label, limits in (
        ("x", axes.get_xlabel(), axes.get_xlim()),
        ("y", axes.get_ylabel(), axes.get_ylim()),
    ):
        name = label.removesuffix(" (no unit)").replace(r"\$", "$")
        numbers = (float(value) for value in (*limits, *places[key]))
        found[f"data-{key}"] = "|".join([name, *map(repr, numbers)])
    return found
