"""A plan as a document, and as a directory, which appears whole or not at all.

plan.json                   forecasts and the design (`tightrope.io.documents.plan`)
exploration-policy.json     the one randomised policy to explore with
policies/01.json …          the policies that it mixes; their shares are in plan.json
draws.json                  how many draws of which choice, where draws are planned
forecast.pdf .svg .png      gap against episodes
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from tightrope.io.atomic import atomic_write
from tightrope.io.documents.coding import to_text
from tightrope.io.documents.outcome import Span, assumed_facts
from tightrope.io.documents.plan import (
    FILE,
    LABEL,
    CombinationFacts,
    DesignedFacts,
    NextFacts,
    PlanDocument,
    StrategyFacts,
)
from tightrope.io.output_directory import OutputDirectory, claim
from tightrope.io.policy import Policy
from tightrope.io.policy_write import write_policy
from tightrope.learning.shown import write_forecast

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
        verdict=plan.verdict.word,
        why=plan.verdict.why,
        assumptions=assumed_facts(plan.verdict),
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


KIND = "plan"
"""The command that such a directory belongs to."""


def claim_plan(path: Path) -> OutputDirectory:
    """Refuse a place that a plan must not be written to, before anything is computed."""
    return claim(path, KIND)


def write_plan(
    path: Path, plan: Plan, document: PlanDocument | None = None, claimed: OutputDirectory | None = None
) -> list[Path]:
    """Write the directory; the paths of its files."""
    written = document or plan_document(plan)
    with (claimed or claim_plan(path)).filling(FILE) as folder:
        made = plan.exploration
        if made is not None:
            _write(plan, made.policy, folder / POLICY_FILE)
            (folder / "policies").mkdir()
            for number, policy in enumerate(made.policies, start=1):
                _write(plan, policy, folder / "policies" / f"{number:02}.json")
        if plan.draws is not None:
            with atomic_write(folder / DRAWS_FILE) as file:
                file.write(plan.draws.to_text())
        if plan.strategies:
            write_forecast(written, folder)
        with atomic_write(folder / FILE) as file:
            file.write(to_text(written) + "\n")
        names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return [path / name for name in names]


def _write(plan: Plan, policy: Policy, target: Path) -> None:
    with atomic_write(target) as file:
        write_policy(policy, file, plan.problem.model.hash())
