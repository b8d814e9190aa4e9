"""From a solution to the certificate that the independent checker re-verifies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from tightrope.certificate.certificate import Certificate, Claim, Problem
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve


def to_certificate(
    solution: Solution,
    *,
    policy: FloatArray | OffsetArray | None = None,
    point: tuple[ParametricMDP, Sequence[Fraction]] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Certificate:
    """The certificate of a solution; `policy` as given to the solve.

    `point` says that the model solved is that parametric model at that point: the certificate then
    carries the exact expressions, and the checker evaluates them itself.
    """
    kernel = solution.kernel
    assert isinstance(kernel, IntervalKernel)
    structure = kernel.structure
    return Certificate(_problem(solution, kernel, point), _claim(solution, structure, policy), about or {})


def _problem(
    solution: Solution, kernel: IntervalKernel, point: tuple[ParametricMDP, Sequence[Fraction]] | None
) -> Problem:
    objective, structure = solution.objective, kernel.structure
    sets: dict[str, Any]
    if point is not None:
        model, theta = point
        sets = {"sets": "point", "expression": model.expression, "expressions": _exact(model, theta)}
    elif kernel.is_plain:
        sets = {"sets": "plain", "probability": kernel.lower}
    else:
        sets = {"sets": "interval", "lower": kernel.lower, "upper": kernel.upper}
    return Problem(
        kind=objective.kind.name,
        agent=objective.agent.name,
        nature=objective.nature.name,
        choice_start=structure.choice_start,
        transition_start=structure.transition_start,
        successor=structure.successor,
        initial=structure.initial,
        lower_steps=objective.lower_steps,
        upper_steps=objective.upper_steps,
        discount=objective.discount,
        complement=objective.complement,
        reward=None if objective.reward is None else objective.reward.per_choice(structure),
        target=objective.target,
        allowed=objective.allowed,
        terminal=objective.terminal,
        **sets,
    )


def _claim(solution: Solution, structure: Structure, policy: FloatArray | OffsetArray | None) -> Claim:
    if policy is None:
        kind, weight = "free", None
    elif np.issubdtype(policy.dtype, np.integer):
        kind, weight = "fixed", None
    else:
        kind, weight = "randomised", np.asarray(policy, dtype=np.float64)
    tail = tail_of(solution, policy)
    return Claim(
        lower=solution.fixpoint_lower,
        upper=solution.fixpoint_upper,
        policy_kind=kind,
        policy=None if weight is not None else tail.policy,
        weight=weight,
        ranking=tail.ranking,
        tail_lower=None if tail is solution else tail.fixpoint_lower,
        tail_upper=None if tail is solution else tail.fixpoint_upper,
    )


def tail_of(solution: Solution, policy: FloatArray | OffsetArray | None) -> Solution:
    """What an unbounded `F>=k` comes to after k steps; the solution itself for anything else."""
    objective = solution.objective
    if objective.lower_steps == 0 or objective.upper_steps is not None:
        return solution
    return solve(
        solution.kernel,
        replace(objective, lower_steps=0),
        policy=policy,
        precision=solution.precision,
        relative=solution.relative,
    )


def _exact(model: ParametricMDP, theta: Sequence[Fraction]) -> dict[str, Any]:
    table = model.expressions
    starts = table.row_start.tolist()
    terms = [[int(m), str(c)] for m, c in zip(table.monomial, table.coefficient.to_fractions(), strict=True)]
    return {
        "parameters": list(table.parameter_names),
        "theta": [str(Fraction(value)) for value in theta],
        "monomials": [[list(factor) for factor in monomial] for monomial in table.monomials],
        "rows": [terms[a:b] for a, b in pairwise(starts)],
    }
