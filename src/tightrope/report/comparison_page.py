"""A comparison as one HTML page: the sentence for the wall, differences, both policies side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment

from tightrope import __version__
from tightrope.numerics.text import interval_text
from tightrope.report.page import asset, content_rules

MOST_STATES = 500
"""Rows of the table of states."""


def comparison_page(facts: Any, headline: str, about: Mapping[str, str]) -> str:
    """The whole document; `facts` is what `compare` and `improve` answer."""
    style = asset("page.css")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)

    def interval(one: Any) -> str:
        return interval_text(one.lower, one.upper, 5)

    changes = [
        (one.state, one.today, one.new, f"{one.visits:,}", "" if one.share is None else f"{one.share:.1%}")
        for one in facts.changes[:MOST_STATES]
    ]
    return environment.from_string(asset("comparison.html")).render(
        version=__version__,
        style=style,
        rules=content_rules(style),
        facts=facts,
        headline=headline,
        candidates=[(one.name, interval(one.difference), interval(one.separate)) for one in facts.candidates],
        kept=[(one.text, interval(one.interval), one.holds) for one in facts.kept],
        changes=changes,
        more=len(facts.changes) - len(changes),
        about={**about, "confidence": f"{1 - facts.delta:.10g}"},
    )
