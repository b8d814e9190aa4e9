"""The policies of a result as they are written: each with the interval that it attains, computed anew.

The interval of a policy holds its value under every nature in the sets, the true one among them with the
ledger's confidence: nature against the policy gives one end, nature for it the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tightrope.io.results import CertifiedFacts
from tightrope.learning.result import Interval, LearningResult
from tightrope.model.policy import Policy
from tightrope.solver.attained import Attained, attained
from tightrope.solver.solution import Solution, Status
from tightrope.solver.solve_sets import solve_sets
from tightrope.solver.workspace import Workspace


@dataclass(frozen=True, eq=False)
class Exported:
    """A policy, its name, and what is certified of it."""

    name: str
    policy: Policy
    interval: Interval
    status: Status

    def certified(self, result: LearningResult, text: str) -> CertifiedFacts:
        """The entry of the policy's file."""
        ledger = result.ledger
        return CertifiedFacts(
            question=text,
            lower=self.interval.lower,
            upper=self.interval.upper,
            over=f"{result.kind.value} sets",
            confidence=None if ledger.delta == 0 else 1 - ledger.delta,
            holds=ledger.holds,
            status=self.status.name.lower().replace("_", "-"),
        )


def export_policies(result: LearningResult) -> Iterator[Exported]:
    """The robust and the optimistic policy."""
    yield robust_policy(result)
    yield _optimistic(result)


def robust_policy(result: LearningResult) -> Exported:
    """The robust policy; over a domain the one that was asked about."""
    value = result.robust
    policy = value.policy
    if value.coupled is not None or value is result.value:  # computed of this very policy
        status = Status.CERTIFIED if value.is_close else Status.PRECISION_LIMIT
        return Exported("robust", policy, value.interval, status)
    against, beside = value.solutions if result.objective.maximises else value.solutions[::-1]
    again = attained(against, policy, _workspace(result))
    initial = result.model.initial
    if result.objective.maximises:
        interval = Interval(again.lower, float(beside.upper[initial]))
    else:
        interval = Interval(float(beside.lower[initial]), again.upper)
    return Exported("robust", policy, interval, _worst(again.status, beside.status))


def _optimistic(result: LearningResult) -> Exported:
    solution = result.optimistic
    policy = solution.policy
    workspace = _workspace(result)
    kind = attained(solution, policy, workspace)
    against = _against(solution, policy, workspace)
    ends = (against.lower, kind.upper) if result.objective.maximises else (kind.lower, against.upper)
    return Exported("optimistic", policy, Interval(*ends), _worst(kind.status, against.status))


def _workspace(result: LearningResult) -> Workspace:
    return Workspace(result.options.device, result.options.threads)


def _against(solution: Solution, policy: Policy, workspace: Workspace) -> Attained:
    """The optimistic policy where nature is not kind after all."""
    objective = replace(solution.objective, nature=solution.objective.nature.opposite)
    found = solve_sets(
        solution.kernel, objective, policy=policy, precision=solution.precision, workspace=workspace
    )
    initial = solution.kernel.structure.initial
    return Attained(float(found.lower[initial]), float(found.upper[initial]), found.status)


def _worst(*statuses: Status) -> Status:
    return next((status for status in statuses if status is not Status.CERTIFIED), Status.CERTIFIED)
