"""`coupled_policy`: a policy with a good guarantee over the coupled set, and how far from the best it can be.

Finding the best policy over P_U is NP-hard, but any policy's coupled interval is a guarantee, and for every
parameter vector v of the region

    max over policies of min over v' of V(policy, v')  ≤  max over policies of V(policy, v)  =  V*(v)

(weak duality): no policy can guarantee more than the optimal value at any one instantiation. Candidates are
the policy that is robust over the rectangular sets, then the one that is optimal where the last candidate was
worst, and so on until a candidate comes back or the two bounds meet. The guarantee is certified; the limit is
that of an instantiation which satisfies the region's rows up to a relative 10⁻⁹. An agent that minimises
mirrors everything.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from tightrope.errors import InputError
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.coupled.result import CoupledValue
from tightrope.solver.coupled.value import (
    DEFAULT_GAP,
    CoupledLimits,
    checked_region,
    coupled_value,
    rectangular_solutions,
)
from tightrope.solver.solve import solve
from tightrope.solver.solve_sets import kernel_of, solve_sets
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.uncertainty.sets import Sets

MOST_CANDIDATES = 6


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy that was tried: where it comes from, and what it guarantees over the coupled set."""

    origin: str
    policy: OffsetArray
    guarantee: float


@dataclass(frozen=True, eq=False)
class CoupledSynthesis:
    """The best candidate: `value` is its certified interval, whose worse end is its `guarantee`.

    No policy guarantees more than `limit` (less, where the agent minimises) over the coupled set.
    """

    policy: OffsetArray
    value: CoupledValue
    guarantee: float
    limit: float
    candidates: tuple[Candidate, ...]
    seconds: float

    @property
    def optimality_gap(self) -> float:
        """How much more than `guarantee` any policy could guarantee at most."""
        return abs(self.limit - self.guarantee)


def coupled_policy(
    sets: Sets,
    objective: Objective,
    *,
    gap: float = DEFAULT_GAP,
    limits: CoupledLimits | None = None,
    precision: float = 1e-9,
    robust: OffsetArray | None = None,
) -> CoupledSynthesis:
    """A policy for the coupled set of a region; `robust` is the rectangular sets' robust policy where it is
    known.

    `limits` are those of all candidates together.
    """
    begin = time.perf_counter()
    limits = limits or CoupledLimits()
    checked_region(sets)
    if objective.kind is not ObjectiveKind.NEXT and (objective.is_bounded or objective.lower_steps):
        raise InputError(
            "the best policy of a step-bounded property depends on the step, and the coupled set is computed "
            "for policies that do not",
            hint="give a policy, or use rectangular sets",
        )
    kernel = kernel_of(sets)
    if robust is None:
        against = replace(objective, nature=objective.agent.opposite)
        robust = solve_sets(kernel, against, precision=precision).policy
    functions = checked_region(sets).coordinates.functions(sets.model.expressions)
    maximises = (objective.agent is Direction.MAX) != objective.complement
    best: Candidate | None = None
    best_value: CoupledValue | None = None
    limit = np.inf if maximises else -np.inf
    tried: list[Candidate] = []
    origin, policy = "robust over the rectangular sets", robust.astype(np.int64)
    while True:
        left = begin + limits.seconds - time.perf_counter()
        value = coupled_value(
            sets,
            objective,
            policy,
            gap=gap,
            limits=replace(limits, seconds=max(left, 0.0)),
            rectangular=rectangular_solutions(kernel, objective, policy, precision),
        )
        guarantee = value.lower if maximises else value.upper
        tried.append(Candidate(origin, policy, guarantee))
        if best is None or best_value is None or _better(guarantee, best.guarantee, maximises):
            best, best_value = tried[-1], value
        worst = value.lowest if maximises else value.highest
        if worst is None:
            break
        optimum, there = _optimal_at(sets, functions, worst.x, objective, precision)
        limit = min(limit, optimum) if maximises else max(limit, optimum)
        repeated = any(np.array_equal(there, candidate.policy) for candidate in tried)
        close = abs(limit - best.guarantee) <= gap * best_value.width
        if repeated or close or len(tried) == MOST_CANDIDATES or left <= 0.0:
            break
        origin, policy = f"optimal where candidate {len(tried)} is worst", there
    return CoupledSynthesis(
        best.policy, best_value, best.guarantee, limit, tuple(tried), time.perf_counter() - begin
    )


def _better(guarantee: float, than: float, maximises: bool) -> bool:
    return guarantee > than if maximises else guarantee < than


def _optimal_at(
    sets: Sets, functions: AffineFunctions, x: FloatArray, objective: Objective, precision: float
) -> tuple[float, OffsetArray]:
    """The optimal value at coordinates x, on the side that cannot be beaten there, and an optimal policy."""
    probability = np.clip(functions.constant + functions.linear @ x, 0.0, 1.0)
    model = MDP(sets.model.structure, probability[sets.model.expression])
    solution = solve(model, objective, precision=precision)
    initial = sets.model.initial
    maximises = (objective.agent is Direction.MAX) != objective.complement
    optimum = float(solution.upper[initial] if maximises else solution.lower[initial])
    return optimum, solution.policy.astype(np.int64)
