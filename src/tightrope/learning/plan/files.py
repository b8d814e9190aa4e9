"""The directory of a plan: it appears whole or not at all.

plan.json                   forecasts and the design (`tightrope.formats.documents.plan`)
exploration-policy.json     the one randomised policy to explore with
policies/01.json …          the policies that it mixes; their shares are in plan.json
draws.json                  how many draws of which choice, where draws are planned
forecast.pdf .svg .png      gap against episodes
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.formats.atomic import atomic_write
from tightrope.formats.documents.coding import to_text
from tightrope.formats.documents.plan import FILE, PlanDocument
from tightrope.formats.output_directory import OutputDirectory, claim
from tightrope.formats.policy import Policy
from tightrope.formats.policy_write import write_policy
from tightrope.learning.plan.document import DRAWS_FILE, POLICY_FILE, plan_document
from tightrope.learning.shown import write_forecast

if TYPE_CHECKING:
    from tightrope.learning.plan.answer import Plan

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
