"""The report as one HTML page that needs nothing else: no network, no files, a few hundred kilobytes at most.

A content security policy allows the page's own style and script, by their hashes, and nothing besides; texts
from models and data are escaped. Pictures are inline SVG, readable without the script except for the policy.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from importlib.resources import files

from tightrope.report.frame import figure
from tightrope.report.markup import Child, Markup, join, tag
from tightrope.report.plot_events import events_figure
from tightrope.report.plot_intervals import intervals_figure
from tightrope.report.plot_regions import boxes_figure, regions_figure
from tightrope.report.plot_timings import timings_figure
from tightrope.report.plot_widths import widths_figure
from tightrope.report.policy_map import PolicyMap
from tightrope.report.reading import Outcome, Run
from tightrope.report.statement import Statement, statement


def page(run: Run, policies: PolicyMap | None) -> str:
    """The whole document."""
    style, script = _asset("page.css"), _asset("page.js")
    rules = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    said = statement(run)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=rules),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"tightrope {run.versions.get('tightrope', '')}"),
        tag("title", f"{said.headline} – {run.model}"),
        tag("style", Markup(style)),
    )
    figures = [
        intervals_figure(run),
        _policy_figure(run, policies),
        regions_figure(run),
        boxes_figure(run),
        widths_figure(run),
        events_figure(run),
        tag("div", timings_figure(run), _ledger(run), class_="stack"),
        _provenance(run),
    ]
    body = tag(
        "body",
        _header(run, said),
        tag("main", *figures),
        tag("footer", f"Written by tightrope {run.versions.get('tightrope', '')} from {run.file.name}."),
        tag("div", id="tip", hidden=True, role="status"),
        tag("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _asset(name: str) -> str:
    return (files("tightrope.report") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header(run: Run, said: Statement) -> Markup:
    facts = [
        (f"{run.sizes['states']:,}", "states"),
        (f"{run.sizes['transitions']:,}", "transitions"),
        (f"{len(run.parameters)}", "unknown parameters"),
        (f"{run.expressions_total:,}", "unknown expressions"),
        (f"{run.steps:,}", "observed steps"),
    ]
    links = (
        ("intervals", "Values"),
        ("policy", "Policy"),
        ("regions", "Regions"),
        ("widths", "Widths"),
        ("binding", "Data"),
        ("ledger", "Ledger"),
        ("provenance", "Provenance"),
    )
    return tag(
        "header",
        tag("p", f"tightrope report · {run.model}", class_="kicker"),
        tag("h1", said.headline),
        tag("p", tag("b", "Question. "), said.question, class_="lead"),
        tag("p", tag("b", "Answer. "), said.answer, class_="lead", id="answer"),
        tag("p", tag("b", "Assumption. "), said.assumption, class_="lead", id="assumption"),
        *(tag("p", caution, class_="caution") for caution in said.cautions),
        tag("ul", *(tag("li", tag("b", value), f" {what}") for value, what in facts), class_="facts"),
        tag("nav", *(tag("a", text, href=f"#{at}") for at, text in links), aria_label="Sections"),
    )


def _policy_figure(run: Run, policies: PolicyMap | None) -> Markup:
    title = f"The policy ({run.main.label} sets)"
    if policies is None:
        words = "The policy files are not beside the result, or no state has more than one choice."
        return figure("policy", title, tag("p", words, class_="note"), wide=True)
    data = json.dumps(policies.to_json(), separators=(",", ":")).replace("<", "\\u003c")
    return figure(
        "policy",
        title,
        tag("div", id="policy-controls", class_="controls"),
        tag("ul", id="policy-legend", class_="legend", aria_label="Actions"),
        tag("svg", id="policy-map", class_="map", role="img", aria_label="The policy as a heat map"),
        tag("noscript", "This picture is drawn by a script, which is switched off."),
        Markup(f'<script type="application/json" id="policy-data">{data}</script>'),
        caption=f"What the policy does in the {policies.states:,} states with a choice to make. A cell "
        "shows the action taken most often among its states; paler cells are mixed, empty ones hold "
        "no such state or nothing to choose.",
        wide=True,
    )


def _ledger(run: Run) -> Markup:
    """How δ is spent, once for all outcomes that share it; and how the choices were made."""
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in run.outcomes:
        groups.setdefault(outcome.ledger.lines, []).append(outcome)
    parts: list[Child] = [tag("h2", "The ledger")]
    for lines, outcomes in groups.items():
        parts.append(tag("h3", ", ".join(outcome.label for outcome in outcomes)))
        parts.append(tag("ul", *(tag("li", line) for line in lines)))
    for title, attribute in (("Choices made", "reasons"), ("Notes", "notes")):
        found = dict.fromkeys(text for outcome in run.outcomes for text in getattr(outcome, attribute))
        if found:
            parts += [tag("h3", title), tag("ul", *(tag("li", text) for text in found))]
    return tag("section", *parts, id="ledger")


def _provenance(run: Run) -> Markup:
    """What is needed to run it again, and to know that it is the same."""
    facts = {
        "property": run.question,
        "model": run.model,
        "model hash": run.model_hash,
        "domain": run.domain,
        "seed": run.data.get("sampled.seed", "not recorded: the data were not simulated here"),
        **{f"data: {key}": text for key, text in run.data.items() if key != "sampled.seed"},
        **{f"option: {key}": text for key, text in run.options.items()},
        "certificate": run.certificate.get("digest", "none was written: learn with --certificate FILE"),
        **{f"certificate: {key}": text for key, text in run.certificate.items() if key != "digest"},
        **{f"version: {key}": text for key, text in run.versions.items()},
    }
    listed = join(*(join(tag("dt", key), tag("dd", tag("code", text))) for key, text in facts.items()))
    return tag(
        "section",
        tag("h2", "Provenance"),
        tag("pre", tag("code", shlex.join(run.command)), id="command"),
        tag("dl", listed),
        id="provenance",
        class_="wide",
    )
