"""The report as one self-contained HTML page with inline SVG figures.

A content security policy allows only the page's own style and script, by their hashes; the template
(`page.html`) escapes texts from models and data. So styles written by matplotlib become attributes, and
colours become variables that follow the light or dark scheme. Marks with a text (`style.tell`) get the
attribute that the script shows; identifiers are unique per figure. All figures are readable without the
script except the map of the policy, which it draws over the variables that the reader chooses.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from xml.etree import ElementTree

import numpy as np
from jinja2 import Environment, Template
from markupsafe import Markup
from matplotlib.figure import Figure
from msgspec import UNSET, UnsetType

from tightrope import __version__
from tightrope.errors import shown
from tightrope.io.answers import ComparisonAnswer
from tightrope.io.coding import to_plain
from tightrope.io.results import ResultDocument, in_words, power_text
from tightrope.numerics.text import confidence_text, interval_text
from tightrope.report.draw_fit import EVIDENCE, WORST, evidence_words, fit_of
from tightrope.report.draw_intervals import INTERVALS
from tightrope.report.draw_regions import BOXES, pairs_of, panel_figures, panel_words, region_keys
from tightrope.report.draw_widths import EVENTS, WIDTHS, binding_remark, binding_table
from tightrope.report.policy_map import PolicyMap, draw_policy
from tightrope.report.statement import (
    advice,
    assumption_lines,
    comparison_advice,
    outcome_lines,
    promises,
    quantity,
    statement,
)
from tightrope.report.style import (
    ACTIONS,
    BREAK,
    FAINT,
    GREY,
    GRID,
    INK,
    OPTIMISTIC,
    PAGE,
    PAPER_WHITE,
    SETS,
    TIP,
    TRUTH,
    Picture,
    columns_within,
    named,
    svg_text,
)
from tightrope.report.what_if import WhatIf
from tightrope.verdict import Word

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
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may have."""
REGION = "region:"


def inline_svg(figure: Figure, name: str, words: str, *, coordinates: bool = False) -> Markup:
    """The figure as an accessible `<svg>`; `name` keeps identifiers apart, `coordinates` adds the axes."""
    root = ElementTree.fromstring(NO_XML.sub("\ufffd", svg_text(figure)))
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": shown(words)}
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
            shorter = NUMBER.sub(lambda match: f"{float(match[0]):.1f}", element.attrib[key])
            element.set(key, " ".join(shorter.split()))


def _colour(value: str) -> str:
    return f"var(--{VARIABLES[value]})" if value in VARIABLES else value


def _coordinates(figure: Figure) -> dict[str, str]:
    """Names, ranges and places of the axes: "name|low|high|start|stop", in units of the picture."""
    (axes,) = figure.axes
    box = axes.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    height = figure.get_figheight() * 72
    places = {"x": (box.x0 * 72, box.x1 * 72), "y": (height - box.y0 * 72, height - box.y1 * 72)}
    attributes = {}
    for key, label, limits in (
        ("x", axes.get_xlabel(), axes.get_xlim()),
        ("y", axes.get_ylabel(), axes.get_ylim()),
    ):
        name = label.removesuffix(" (no unit)").replace(r"\$", "$")
        numbers = (float(value) for value in (*limits, *places[key]))
        attributes[f"data-{key}"] = "|".join([name, *map(repr, numbers)])
    return attributes


MOST_ROWS = 60
"""Of a controller, that are shown."""

PANELS = 6
"""Panels of regions that are shown at once; the others can be unfolded."""


@dataclass(frozen=True)
class PagePart:
    """A part of a page that is made elsewhere, and the scripts in it, which may start workers."""

    content: Markup
    scripts: tuple[str, ...] = ()


NOTHING = PagePart(Markup(""))


def page(
    run: ResultDocument, policies: PolicyMap | None, what_if: WhatIf | None = None, head: PagePart = NOTHING
) -> str:
    """The whole document; `what_if` are the values of its slider, `head` stands below its headline."""
    style, script = asset("page.css"), asset("page.js")
    panels = _panels(run)
    fit = fit_of(run)
    findings = [] if fit is None or not fit.is_doubt else [s for s in fit.suspects if s.log_evidence > 0.0]
    contradicted = run.main.judged.word is Word.CONTRADICTED
    tree = None if policies is None else policies.rule()
    rule = tree if isinstance(run.main.tree, UnsetType) else run.main.tree
    rule = None if contradicted or rule is None or rule.tree is None else rule
    return template("page.html").render(
        style=style,
        script=script,
        rules=content_rules(style, script, *head.scripts),
        head=head.content,
        version=run.versions.get("tightrope", ""),
        run=run,
        said=statement(run),
        kinds={outcome.sets for _, outcome in run.shown},
        advice=advice(run, "" if rule is None else rule.sentence()),
        rule=rule,
        promises=[] if contradicted else promises(run),
        differs=_differs(policies) if isinstance(run.main.tree, UnsetType) else "",
        findings=[(one.kind, one.words, power_text(one.log_evidence)) for one in findings],
        evidence=evidence_words(run) if findings else "",
        intervals=_show(INTERVALS, run),
        policies=policies and {"data": _script_data(policies.to_json()), "states": f"{policies.states:,}"},
        what_if=what_if,
        curves=None if what_if is None or not what_if.curves else _curves(run, what_if),
        controller=_controller(run),
        panels=panels,
        pictures=[_show(picture, run) for picture in (EVENTS, EVIDENCE, WORST) if picture.applies(run)],
        details=[_show(picture, run) for picture in (WIDTHS, BOXES) if picture.applies(run)],
        has_events=EVENTS.applies(run),
        contradicted=contradicted,
        remark=binding_remark(run),
        ledger=_ledger(run),
        command=shlex.join(run.command),
        provenance=_provenance(run),
    )


def _show(picture: Picture, run: ResultDocument) -> dict[str, object]:
    """A picture as it stands in the page."""
    tables = [picture.table(run)]
    if picture is EVENTS and (binding := binding_table(run)) is not None:
        tables.insert(0, binding)
    svg = inline_svg(picture.figure(run, PAGE), picture.name, picture.words(run))
    caption = picture.caption(run)
    return {"name": picture.name, "title": picture.title, "svg": svg, "tables": tables, "caption": caption}


def _panels(run: ResultDocument) -> dict[str, object] | None:
    """A panel for each pair of parameters, with one legend; None where no region has a shadow."""
    pairs = pairs_of(run)
    if not pairs:
        return None
    keys = region_keys(run)
    columns = columns_within([str(key.get_label()) for key in keys], 54)
    with PAGE.style():
        keyed = Figure(figsize=(PAGE.width, 0.1 + 0.22 * -(-len(keys) // columns)))
        keyed.legend(
            handles=keys, loc="center", ncols=columns, frameon=False, columnspacing=1.2, handlelength=1.5
        )
    names = ", ".join(str(key.get_label()) for key in keys)
    svgs = [
        inline_svg(figure, f"pair{i}", panel_words(run, pair), coordinates=True)
        for i, (pair, figure) in enumerate(panel_figures(run, PAGE))
    ]
    legend = inline_svg(keyed, "region-keys", f"Legend: {names}")
    return {"legend": legend, "first": svgs[:PANELS], "more": svgs[PANELS:]}


def asset(name: str) -> str:
    """A part of pages: style, script or template."""
    return (files("tightrope.report") / name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Template:
    """A template of pages, compiled once."""
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(asset(name))


def content_rules(style: str, *scripts: str) -> str:
    """A content security policy that allows this style, these scripts and their workers."""
    digests = "".join(f" '{_digest(script)}'" for script in scripts)
    allowed = f"; script-src{digests}; worker-src blob:" if scripts else ""
    return f"default-src 'none'; style-src '{_digest(style)}'{allowed}"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _script_data(facts: object) -> str:
    """What the page's script reads: no text in it can end the element that it stands in."""
    return json.dumps(facts, separators=(",", ":")).replace("<", "\\u003c")


def _curves(run: ResultDocument, what_if: WhatIf) -> dict[str, object]:
    """The values of the slider, and the words around them."""
    bound, proved = run.main.guarantee, run.main.judged.word is Word.PROVED
    facts = {
        "quantity": quantity(run),
        "maximises": run.maximises,
        "guarantee": bound if math.isfinite(bound) and proved else None,
        "curves": [
            {"name": curve.name, "grid": curve.grid, "others": curve.others, "values": curve.values}
            for curve in what_if.curves
        ],
    }
    return {"data": _script_data(facts), "tables": what_if.tables()}


def _differs(policies: PolicyMap | None) -> str:
    """In how many states the robust policy differs from today's."""
    if policies is None or "given" not in policies.policies:
        return ""
    other = policies.policies["robust"] != policies.policies["given"]
    return f"{np.count_nonzero(other):,} of {policies.states:,}"


def _controller(run: ResultDocument) -> tuple[list[list[object]], int] | None:
    """The first rows of the controller that sees observations, and how many more; None without one."""
    written = run.main.files
    if run.file is None or run.main.robust_optimum is UNSET or isinstance(written, UnsetType):
        return None
    file = next((run.file.parent / one for one in written if one.endswith("robust-controller.json")), None)
    if file is None or not file.is_file():
        return None
    rows = json.loads(file.read_text(encoding="utf-8")).get("controller", [])
    return rows[:MOST_ROWS], max(len(rows) - MOST_ROWS, 0)


def _ledger(run: ResultDocument) -> list[tuple[str, list[str]]]:
    """How δ is spent, once for all outcomes that share it; and how the choices were made."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for label, outcome in run.shown:
        groups.setdefault(tuple(outcome.ledger.lines), []).append(label)
    parts = [(", ".join(labels), list(lines)) for lines, labels in groups.items()]
    if seen := outcome_lines(run.main):
        parts.append(("Observed returns, without the model", seen))
    parts.append(("Assumptions and their status", assumption_lines(run.main.assumptions)))
    for title, attribute in (("Choices made", "reasons"), ("Notes", "notes")):
        texts = dict.fromkeys(text for _, outcome in run.shown for text in getattr(outcome, attribute))
        if texts:
            parts.append((title, list(texts)))
    return parts


def _provenance(run: ResultDocument) -> dict[str, str]:
    """What is needed to run it again, and to know that it is the same."""
    data, options = in_words(to_plain(run.data)), in_words(to_plain(run.options))
    return {
        "property": run.question,
        "model": run.model.title,
        "model hash": run.model.hash,
        "domain": run.model.domain,
        "seed": data.get("sampled.seed", "not recorded: the data were not simulated here"),
        **{f"data: {key}": text for key, text in data.items() if key != "sampled.seed"},
        **{f"option: {key}": text for key, text in options.items()},
        "certificate": run.about_certificate.get("digest", "none was written: learn with --certificate FILE"),
        **{f"certificate: {key}": text for key, text in run.about_certificate.items() if key != "digest"},
        **{f"version: {key}": text for key, text in run.versions.items()},
        **{
            f"seconds: {label}": ", ".join(f"{phase} {spent:.2g}" for phase, spent in one.seconds.items())
            for label, one in run.shown
        },
    }


MOST_STATES = 500
"""Rows of the table of states."""


def comparison_page(
    facts: ComparisonAnswer, headline: str, about: Mapping[str, str], policies: PolicyMap | None = None
) -> str:
    """The whole document; `facts` is what `compare` and `improve` answer."""
    style, maps = asset("page.css"), None
    names = {} if isinstance(facts.data.names, UnsetType) else facts.data.names
    policies = None if policies is None else policies.calling(names)
    if policies is not None:
        with PAGE.style():
            figure = Figure(figsize=(PAGE.width, 3.4), layout="constrained")
            for axes, name in zip(figure.subplots(1, 2), policies.policies, strict=True):
                draw_policy(policies, axes, name=name)
                axes.set_title(name)
        maps = inline_svg(figure, "maps", "Both policies by state variables")
    shown = facts.changes[:MOST_STATES]
    return template("comparison.html").render(
        version=__version__,
        style=style,
        rules=content_rules(style),
        facts=facts,
        headline=headline,
        advice=comparison_advice(facts, about["property"]),
        assumptions=assumption_lines(facts.assumptions),
        interval=interval_text,
        changes=[(named(one.state, names), one) for one in shown],
        maps=maps,
        more=len(facts.changes) - len(shown),
        about={**about, "confidence": confidence_text(facts.delta)},
    )
