"""The report of a plan: one page that opens offline, like that of a result (`tightrope.report.page`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment
from msgspec import UnsetType

from tightrope.io.plans import Aim, PlanDocument, StrategyFacts, round_forecast
from tightrope.io.results import in_words, read_verdict
from tightrope.numerics.text import text_above
from tightrope.report.draw_forecast import aim_of, forecast_figure
from tightrope.report.page import asset, content_rules
from tightrope.report.picture import interval_text
from tightrope.report.statement import confidence
from tightrope.report.style import PAGE
from tightrope.report.svg import inline_svg


def plan_page(plan: PlanDocument) -> str:
    """The whole document."""
    style = asset("page.css")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(asset("plan.html")).render(
        style=style,
        rules=content_rules(style),
        plan=plan,
        said=_statement(plan),
        head=_head(plan),
        rows=[_row(plan, one) for one in plan.strategies],
        svg=_svg(plan),
        hangs_on=[(one.combination, f"{one.share:.0%}") for one in plan.directions],
        design=_design(plan),
        provenance=_provenance(plan),
    )


@dataclass(frozen=True)
class _Statement:
    headline: str
    now: str
    asked: str
    next: str | None


def _statement(plan: PlanDocument) -> _Statement:
    unit = plan.unit
    best = next((one for one in plan.strategies if one.name == "designed"), None)
    if best is None or not math.isfinite(best.episodes):
        headline = f"{plan.status[0].upper()}{plan.status[1:]}"
    elif plan.aim == Aim.BUDGET.value:
        headline = f"Gap {best.gap:.3g} to expect from {round_forecast(best.episodes)} more {unit}"
    else:
        headline = f"About {round_forecast(best.episodes)} more {unit}"
    verdict = read_verdict(plan.verdict, plan.assumptions, plan.why)
    found = verdict.headline(
        f"gap {text_above(plan.gap_now, 4)} now", f"with confidence {confidence(plan.delta)}"
    )
    headline = f"{found}. Forecast: {headline[:1].lower()}{headline[1:]}"
    inside = interval_text(plan.interval.lower, plan.interval.upper)
    now = f"value in {inside}, gap {plan.gap_now:.4g}, after {plan.episodes_so_far:,} {unit}"
    asked = f"{aim_of(plan)}, with confidence {confidence(plan.delta)}, for {plan.question}"
    following = None
    if plan.next is not None:
        do = "make the draws of" if unit == "draws" else "explore with"
        following = f"{do} {plan.next.policy}: {plan.next.episodes:,} {unit}, then plan again"
    return _Statement(headline, now, asked, following)


def _head(plan: PlanDocument) -> list[str]:
    what = "gap to expect" if plan.aim == Aim.BUDGET.value else plan.unit
    head = ["collect with", what, "likely"]
    if plan.unit == "draws":
        return head
    return [*head, "steps", "cost"] if _has_prices(plan) else [*head, "steps"]


def _has_prices(plan: PlanDocument) -> bool:
    return any(one.cost != one.episodes for one in plan.strategies)


def _row(plan: PlanDocument, one: StrategyFacts) -> list[str]:
    if plan.aim == Aim.BUDGET.value:
        _, gap, low, high = min(one.curve, key=lambda point: abs(point[0] - plan.asked))
        row = [one.name, f"{gap:.4g}", f"{low:.3g} – {high:.3g}"]
    else:
        row = [one.name, _number(one.episodes), f"{_number(one.low)} – {_number(one.high)}"]
    if plan.unit == "draws":
        return row
    return [*row, _number(one.steps), *([_number(one.cost)] if _has_prices(plan) else [])]


def _number(value: float) -> str:
    return round_forecast(value) if math.isfinite(value) else "beyond 10⁹"


def _svg(plan: PlanDocument) -> Any:
    if not plan.strategies:
        return None
    words = "; ".join(f"{one.name}: {_number(one.episodes)} more {plan.unit}" for one in plan.strategies)
    figure = forecast_figure(plan, PAGE)
    return inline_svg(figure, "forecast", f"Forecast of the gap against {plan.unit}. {words}")


def _design(plan: PlanDocument) -> list[tuple[str, str]]:
    made = plan.design
    if made is None:
        return []
    shares = ", ".join(f"{number:02}: {share:.1%}" for number, share in enumerate(made.shares, start=1))
    facts = [("policies and shares", shares), ("steps per episode", f"{made.steps_per_episode:,.4g}")]
    if math.isfinite(made.optimality):
        lost = f"within {made.optimality:.2%} of the best exploration at the estimate, certified"
        facts.append(("distance from the best", f"{lost} ({made.solves} solves)"))
    if made.loss > 0.0:
        facts.append(
            ("drawn per episode", f"the policies collect {made.loss:.1%} more than the one randomised")
        )
    if not isinstance(made.certified, UnsetType):
        facts.append(("to avoid", f"in at most {text_above(made.certified, 4)} of its episodes, certified"))
    return facts


def _provenance(plan: PlanDocument) -> dict[str, str]:
    data = {} if isinstance(plan.data, UnsetType) else in_words(plan.data)
    return {
        "property": plan.question,
        "model": plan.model,
        "model hash": plan.model_hash,
        "confidence": confidence(plan.delta),
        "region": plan.region,
        "sets": plan.sets,
        **{f"data: {key}": text for key, text in data.items()},
    }
