"""What an exported policy attains: it is evaluated once more, as it will be written, before anybody gets it.

A solve says which policy attains its bound. Here that policy, and nothing else, is given to the solver again:
the value of the model with the policy fixed lies between new verified bounds. They must not contradict the
solve, and on the agent's side the better of both is kept, as both are verified of this policy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.model.objective import Direction
from tightrope.model.policy import Policy
from tightrope.numerics.text import interval_text
from tightrope.solver.solution import Solution, Status
from tightrope.solver.solve import Limits
from tightrope.solver.solve_sets import solve_sets
from tightrope.solver.workspace import Workspace


@dataclass(frozen=True)
class Attained:
    """Verified bounds of a policy's value at the initial state."""

    lower: float
    upper: float
    status: Status


def attained(solution: Solution, policy: Policy, workspace: Workspace | None = None) -> Attained:
    """The value of the policy that the solve found, evaluated on its own over the same model or sets."""
    initial = solution.kernel.structure.initial
    seconds = float("inf") if solution.is_certified else max(solution.seconds, 1.0)
    again = solve_sets(
        solution.kernel,
        solution.objective,
        policy=policy,
        precision=solution.precision,
        relative=solution.relative,
        limits=Limits(seconds=seconds),
        start=np.where(np.isfinite(solution.upper), 0.5 * (solution.lower + solution.upper), 0.0),
        workspace=workspace,
    )
    lower, upper = float(again.lower[initial]), float(again.upper[initial])
    own_lower, own_upper = float(solution.lower[initial]), float(solution.upper[initial])
    maximises = (solution.objective.agent is Direction.MAX) != solution.objective.complement
    if upper < own_lower if maximises else lower > own_upper:
        attained, found = interval_text(lower, upper), interval_text(own_lower, own_upper)
        raise CannotCertify(
            f"the policy attains {attained} and not {found}, as was found: it is not written. "
            "This is a bug in tightrope; please report it"
        )
    if maximises:
        lower = max(lower, own_lower)
    else:
        upper = min(upper, own_upper)
    return Attained(lower, upper, again.initial_status)
