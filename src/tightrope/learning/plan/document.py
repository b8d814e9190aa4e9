"""A plan as the document `plan.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from tightrope.formats.documents.outcome import Span
from tightrope.formats.documents.plan import (
    LABEL,
    CombinationFacts,
    DesignedFacts,
    NextFacts,
    PlanDocument,
    StrategyFacts,
)

if TYPE_CHECKING:
    from tightrope.learning.plan.answer import Plan, Strategy

POLICY_FILE = "exploration-policy.json"
DRAWS_FILE = "draws.json"


def plan_document(plan: Plan, source: str | None = None) -> PlanDocument:
    """The document; `source` says where the model came from."""
    model, made = plan.problem.model, plan.exploration
    region = plan.decisions.region
    return PlanDocument(
        model=source or f"a model of {model.states:,} states",
        model_hash=model.hash(),
        question=plan.problem.text,
        delta=plan.delta,
        region="" if region is None else region.value,
        sets=plan.decisions.sets.value,
        aim=plan.target.aim.value,
        asked=plan.target.amount,
        relative=plan.target.relative,
        status=plan.status.value,
        label=LABEL,
        interval=Span(plan.interval.lower, plan.interval.upper),
        value=plan.value,
        gap_now=plan.gap_now,
        gap_asked=plan.gap_asked,
        episodes_so_far=plan.episodes_so_far,
        steps_so_far=plan.steps_so_far,
        strategies=[_strategy(one) for one in plan.strategies],
        design=None
        if made is None
        else DesignedFacts(
            optimality=made.optimality,
            solves=made.solves,
            shares=list(made.shares),
            policy=POLICY_FILE,
            steps_per_episode=made.steps,
            loss=made.loss,
            certified=UNSET if made.certified is None else made.certified,
            certified_drawn=UNSET if made.certified_drawn is None else made.certified_drawn,
        ),
        directions=[CombinationFacts(one.text, one.share) for one in plan.hangs_on],
        unidentifiable=list(plan.unidentifiable),
        next=_next(plan),
        notes=list(plan.notes),
        unit=plan.unit,
        draws=UNSET if plan.draws is None else plan.draws.table,
    )


def _next(plan: Plan) -> NextFacts | None:
    if plan.draws is not None:
        return NextFacts(plan.next_episodes, DRAWS_FILE)
    return None if plan.exploration is None else NextFacts(plan.next_episodes, POLICY_FILE)


def _strategy(one: Strategy) -> StrategyFacts:
    finite = min(one.episodes, float(one.points[-1, 0]))
    return StrategyFacts(
        name=one.name,
        episodes=one.episodes,
        low=one.low,
        high=one.high,
        steps=one.total_steps,
        steps_per_episode=one.steps,
        cost=one.total_cost,
        gap=one.curve(finite).expected,
        curve=[(row[0], row[1], row[2], row[3]) for row in one.points.tolist()],
    )
