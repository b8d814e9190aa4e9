"""From a solution to the certificate that the independent checker re-verifies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.certificate import problem as certified
from tightrope.certificate.problem import Certificate, Claim, Problem, ValueHints
from tightrope.errors import InputError
from tightrope.model.mdp import FactoredRows
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.model.policy_choices import TimeVaryingChoices
from tightrope.numerics.arrays import OffsetArray
from tightrope.solver.kernels.factored_kernel import FactoredKernel
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve


def to_certificate(
    problem: Problem, solution: Solution, policy: Policy | None = None, about: Mapping[str, Any] | None = None
) -> Certificate:
    """The certificate of a solution of this problem; `policy` is the one given to the solve.

    The problem is that of the model itself (`tightrope.certify.problem`): what the solver made of it on the
    way, the checker makes again. The model that was solved is the one whose value can be proved (`provable`
    there).
    """
    initial = problem.graph.initial
    bounds = float(solution.lower[initial]), float(solution.upper[initial])
    claim = to_claim("value" if policy is None else "given policy", bounds, policy, problem.objective)
    if isinstance(solution.kernel, FactoredKernel):
        claim = _lift_claim(claim, solution.kernel.rows)
    return Certificate(problem, (claim,), (value_hints(solution, policy),), about=to_words(about or {}))


def to_claim(
    name: str, bounds: tuple[float, float], policy: Policy | None, objective: certified.Objective
) -> Claim:
    """Bounds at the initial state, within the quantity's own range, of a policy or of the best one."""
    least, most = objective.range
    bounds = max(bounds[0], least), min(bounds[1], most)
    if policy is None:
        return Claim(name, "free", *bounds)
    if policy.steps is not None:
        choice, earlier = choices_by_step(policy.steps, objective)
        return Claim(name, "fixed", *bounds, choice=choice, earlier=earlier)
    if policy.is_deterministic:
        return Claim(name, "fixed", *bounds, choice=policy.choice)
    return Claim(name, "randomised", *bounds, weight=policy.probability)


def refuse_steps(policy: Policy | None, objective: Objective) -> None:
    """Refuse a policy that changes with the step where no certificate can follow it."""
    if policy is None or policy.steps is None or objective.is_bounded:
        return
    if policy.steps.horizon > objective.lower_steps:
        raise InputError(
            "the given policy depends on the step, and where steps are not bounded certificates are about "
            "policies that take one choice per state",
            hint="leave the certificate or the policy out, or ask for a bounded number of steps",
        )


def choices_by_step(
    steps: TimeVaryingChoices, objective: certified.Objective
) -> tuple[OffsetArray, OffsetArray]:
    """The choices at the last step that counts, and those of earlier steps as claims list them: (step, state,
    choice), the last step first, none that says nothing new."""
    last = objective.lower_steps if objective.steps is None else max(objective.steps - 1, 0)
    owner = np.repeat(np.arange(steps.states), np.diff(steps.start))
    ends = np.flatnonzero((np.diff(owner) == 0) & (steps.step[1:] <= last) & (np.diff(steps.choice) != 0))
    rows = np.stack([steps.step[ends + 1] - 1, owner[ends], steps.choice[ends]], axis=1)
    return steps.at(last), rows[np.argsort(-rows[:, 0], kind="stable")].astype(np.int64)


def _lift_claim(claim: Claim, rows: FactoredRows) -> Claim:
    """A claim about the game that independent factors make."""
    choice, weight = claim.choice, claim.weight
    return replace(
        claim,
        choice=None if choice is None else rows.lift_choices(choice),
        weight=None if weight is None else rows.lift_weights(weight),
    )


def value_hints(solution: Solution, policy: Policy | None = None, high: Solution | None = None) -> ValueHints:
    """The vectors of a solution, the upper ones of `high` where it is given; the witness of a free agent."""
    if solution.objective.is_bounded:
        return ValueHints()
    if (game := solution.game) is not None:
        witness = None if policy is not None else game.choice.astype(np.int64)
        return ValueHints(game.lower, game.upper, game.ranking.astype(np.int64), witness=witness)
    tail = tail_of(solution, policy)
    above = tail if high is None else tail_of(high, policy)
    discounted = solution.objective.discount is not None
    return ValueHints(
        lower=tail.fixpoint_lower,
        upper=above.fixpoint_upper,
        lower_ranking=None if discounted else tail.ranking.astype(np.int64),
        upper_ranking=None if discounted or above is tail else above.ranking.astype(np.int64),
        witness=None if policy is not None else tail.choice.astype(np.int64),
    )


def to_words(about: Mapping[str, Any]) -> dict[str, str]:
    """What a file says of itself, as texts."""
    return {name: _text(value) for name, value in about.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)[:4096]


def tail_of(solution: Solution, policy: Policy | None) -> Solution:
    """What an unbounded `F>=k` comes to after k steps; the solution itself for anything else."""
    objective = solution.objective
    if objective.lower_steps == 0 or objective.upper_steps is not None:
        return solution
    if policy is not None and policy.steps is not None:
        policy = policy.at(objective.lower_steps)
    return solve(
        solution.kernel,
        replace(objective, lower_steps=0),
        policy=policy,
        precision=solution.precision,
        relative=solution.relative,
    )
