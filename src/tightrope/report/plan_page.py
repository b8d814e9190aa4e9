"""The report of a plan, a page that opens offline, with the forecast as a figure; and that of an answer.

The figure shows the expected gap over all episodes, one line per strategy, on logarithmic axes. The band is
likely, the dot is what the data certify now, and the dashed line is the aim.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter
from msgspec import UnsetType

from tightrope.io import answers as plans
from tightrope.io.answers import AnswerDocument
from tightrope.io.results import in_words
from tightrope.numerics.text import bounded, confidence_text, interval_text, sure_text, text_above
from tightrope.report.curves import save
from tightrope.report.page import asset, content_rules, inline_svg, template
from tightrope.report.policy_map import PolicyMap
from tightrope.report.statement import answer_advice, assumption_lines
from tightrope.report.style import GREY, INK, PAGE, PAPER, TRUTH, Medium, columns_within, plain
from tightrope.verdict import Word

HEIGHT = 3.3
COLOURS = {
    plans.DESIGNED: "#0b63b0",
    plans.ROBUST: "#0a7d55",
    plans.GIVEN: "#0a7d55",
    plans.OPTIMISTIC: "#a65a00",
    plans.UNIFORM: GREY,
    plans.EVEN: GREY,
}
STEM = "forecast"


def draw_forecast(plan: plans.PlanDocument, axes: Axes) -> None:
    """All of it but the legend, in any axes."""
    begin = max(plan.episodes_so_far, 1)
    for place, strategy in enumerate(plan.strategies):
        _line(strategy, begin, axes, 3.0 - 0.1 * place)
    axes.plot(begin, plan.gap_now, "o", color=INK, markersize=4, label="data so far", zorder=5)
    if plan.gap_asked is not None:
        axes.axhline(plan.gap_asked, color=TRUTH, lw=0.9, ls="--", label=f"asked: {plan.gap_asked:.3g}")
        for strategy in plan.strategies:
            if math.isfinite(strategy.episodes) and strategy.episodes > 0:
                at = begin + strategy.episodes
                axes.plot(
                    at, plan.gap_asked, "|", color=COLOURS.get(strategy.name, GREY), markersize=9, mew=1.4
                )
    elif plan.aim == plans.Aim.BUDGET.value:
        axes.axvline(begin + plan.asked, color=TRUTH, lw=0.9, ls="--", label="with the budget")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"{plan.unit}, those so far included")
    axes.set_ylabel("optimistic − guarantee" if plan.aim == plans.Aim.OPTIMALITY.value else "gap")
    axes.set_title(plain(f"forecast, not a guarantee: {aim_of(plan)}"), loc="left", fontsize=9)


def aim_of(plan: plans.PlanDocument) -> str:
    """What is asked for, in words."""
    return plans.Target(plans.Aim(plan.aim), plan.asked, plan.relative).text


def forecast_figure(plan: plans.PlanDocument, medium: Medium = PAPER) -> Figure:
    """A new figure."""
    with medium.style():
        size = (medium.width, HEIGHT * medium.type_size / PAPER.type_size)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        draw_forecast(plan, axes)
        labels = [str(handle.get_label()) for handle in axes.get_legend_handles_labels()[0]]
        columns = columns_within(labels, 72 * medium.width / (0.56 * medium.type_size))
        figure.legend(
            loc="outside lower center", ncols=columns, frameon=False, columnspacing=1.2, handlelength=1.5
        )
    return figure


def write_forecast(plan: plans.PlanDocument, folder: Path) -> list[Path]:
    """`forecast.pdf`, `.svg` and `.png`."""
    return save(forecast_figure(plan), folder / STEM)


def _line(strategy: plans.StrategyFacts, begin: int, axes: Axes, layer: float) -> None:
    colour = COLOURS.get(strategy.name, GREY)
    more, gap, low, high = np.array(strategy.curve, dtype=np.float64).T
    later = more > 0
    at = begin + more[later]
    needs = f": {plans.round_forecast(strategy.episodes)} more" if math.isfinite(strategy.episodes) else ""
    axes.fill_between(at, low[later], high[later], color=colour, alpha=0.12, linewidth=0)
    width = 1.6 if strategy.name == plans.DESIGNED else 1.0
    axes.plot(
        at, np.asarray(gap[later]), color=colour, lw=width, label=f"{strategy.name}{needs}", zorder=layer
    )


def plan_page(plan: plans.PlanDocument) -> str:
    """The whole document."""
    style = asset("page.css")
    return template("plan.html").render(
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


def answer_page(answer: AnswerDocument, policy: PolicyMap | None = None) -> str:
    """The page of an answer that is no single objective's: what to do, what is known, what it rests on."""
    style, found = asset("page.css"), None if policy is None else policy.rule()
    rule = "" if policy is None else "Use the policy in policy.json."
    under = " under the contradicted model" if answer.judged.word is Word.CONTRADICTED else ""
    spans = [("true value", answer.value), ("the policy", answer.robust_policy)]
    facts = [
        (name + under, interval_text(span.lower, span.upper)) for name, span in spans if span is not None
    ]
    facts += [] if answer.truth is None else [("truth" + under, answer.truth)]
    if answer.optimistic is not None and (own := answer.robust_policy) is not None:
        floor = own.lower == answer.guarantee and (own.lower < own.upper or "min=" not in answer.question)
        facts.append(("any policy" + under, bounded(answer.optimistic, not floor)))
    facts += [
        (name, text) if text else ("note", name)
        for name, _, text in (n.partition(": ") for n in answer.notes)
    ]
    data = {} if isinstance(answer.data, UnsetType) else in_words(answer.data)
    return template("answer.html").render(
        style=style,
        rules=content_rules(style),
        answer=answer,
        advice=answer_advice(answer, rule if found is None else found.sentence()),
        assumptions=[line.partition(": ")[::2] for line in assumption_lines(answer.assumptions)],
        facts=[*facts, *(("confidence", line) for line in answer.ledger.lines)],
        provenance=[
            ("property", answer.question),
            ("model", answer.model),
            ("model hash", answer.model_hash),
            ("sets", f"the hull of {answer.sets} sets"),
            *((f"data: {key}", text) for key, text in data.items()),
        ],
    )


def _statement(plan: plans.PlanDocument) -> dict[str, str | None]:
    unit = plan.unit
    best = next((one for one in plan.strategies if one.name in (plans.DESIGNED, plans.AS_SO_FAR)), None)
    if best is None or not math.isfinite(best.episodes):
        headline = f"{plan.status[0].upper()}{plan.status[1:]}"
    elif plan.aim == plans.Aim.BUDGET.value:
        headline = f"Gap {best.gap:.3g} to expect from {plans.round_forecast(best.episodes)} more {unit}"
    else:
        headline = f"About {plans.round_forecast(best.episodes)} more {unit}"
    verdict = plan.judged
    claim = verdict.headline(f"gap <= {text_above(plan.gap_now)} now", sure_text(plan.delta))
    headline = f"{claim}. Forecast: {headline[:1].lower()}{headline[1:]}"
    inside = interval_text(plan.interval.lower, plan.interval.upper)
    now = f"value in {inside}, gap {plan.gap_now:.4g}, after {plan.episodes_so_far:,} {unit}"
    request = f"{aim_of(plan)}, with confidence {confidence_text(plan.delta)}, for {plan.question}"
    following = None
    if plan.next is not None:
        do = "make the draws of" if unit == "draws" else "explore with"
        following = f"{do} {plan.next.policy}: {plan.next.episodes:,} {unit}, then plan again"
    return {"headline": headline, "now": now, "aim": request, "next": following}


def _head(plan: plans.PlanDocument) -> list[str]:
    what = "gap to expect" if plan.aim == plans.Aim.BUDGET.value else plan.unit
    head = ["collect with", what, "likely"]
    if plan.unit == "draws":
        return head
    return [*head, "steps", "cost"] if _has_prices(plan) else [*head, "steps"]


def _has_prices(plan: plans.PlanDocument) -> bool:
    return any(one.cost != one.episodes for one in plan.strategies)


def _row(plan: plans.PlanDocument, one: plans.StrategyFacts) -> list[str]:
    if plan.aim == plans.Aim.BUDGET.value:
        _, gap, low, high = min(one.curve, key=lambda point: abs(point[0] - plan.asked))
        row = [one.name, f"{gap:.4g}", f"{low:.3g} – {high:.3g}"]
    else:
        row = [one.name, _number(one.episodes), f"{_number(one.low)} – {_number(one.high)}"]
    if plan.unit == "draws":
        return row
    return [*row, _number(one.steps), *([_number(one.cost)] if _has_prices(plan) else [])]


def _number(value: float) -> str:
    return plans.round_forecast(value) if math.isfinite(value) else "beyond 10⁹"


def _svg(plan: plans.PlanDocument) -> object:
    if not plan.strategies:
        return None
    words = "; ".join(f"{one.name}: {_number(one.episodes)} more {plan.unit}" for one in plan.strategies)
    figure = forecast_figure(plan, PAGE)
    return inline_svg(figure, "forecast", f"Forecast of the gap against {plan.unit}. {words}")


def _design(plan: plans.PlanDocument) -> list[tuple[str, str]]:
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


def _provenance(plan: plans.PlanDocument) -> dict[str, str]:
    data = {} if isinstance(plan.data, UnsetType) else in_words(plan.data)
    return {
        "property": plan.question,
        "model": plan.model,
        "model hash": plan.model_hash,
        "confidence": confidence_text(plan.delta),
        "region": plan.region,
        "sets": plan.sets,
        **{f"data: {key}": text for key, text in data.items()},
    }
