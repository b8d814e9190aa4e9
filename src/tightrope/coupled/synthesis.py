"""`find_coupled_policy`: a policy that is good over the coupled set, and a bound on its distance from the
best.

The best policy over P_U is NP-hard to find, but any policy's coupled interval is a guarantee, and for every
parameter vector v of the region

    max over policies of min over v' of V(policy, v')  ≤  max over policies of V(policy, v)  =  V*(v)

(weak duality). The first candidate is the robust policy over the rectangular sets, each next one is optimal
where the last was worst, until one repeats or the bounds meet. The guarantee is certified; the limit is that
of an instantiation which satisfies the region's rows up to a relative 10⁻⁹. Minimisation mirrors this.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from tightrope.ambiguity.sets import Sets
from tightrope.coupled.ball import golden_section
from tightrope.coupled.result import CoupledValue, Witness, extent_of
from tightrope.coupled.value import (
    DEFAULT_GAP,
    CoupledLimits,
    against,
    bound_coupled_value,
    functions_of,
    rectangular_solutions,
    require_region,
    solve_at,
)
from tightrope.errors import InputError
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Record
from tightrope.regions.polytope import Polytope
from tightrope.solver.solve import operator_of, solve
from tightrope.statistics.coordinates import AffineFunctions

MOST_CANDIDATES = 6
_SECTIONS = 4


@dataclass(frozen=True, eq=False, repr=False)
class Candidate(Record):
    """A policy that was tried: where it comes from, and what it guarantees over the coupled set."""

    origin: str
    policy: Policy
    guarantee: float


@dataclass(frozen=True, eq=False, repr=False)
class CoupledSynthesis(Record):
    """The best candidate, its certified interval and guarantee, and a `limit` on any policy's guarantee."""

    policy: Policy
    value: CoupledValue
    guarantee: float
    limit: float
    candidates: tuple[Candidate, ...]
    seconds: float = field(compare=False)

    @property
    def optimality_gap(self) -> float:
        """How much more than `guarantee` any policy could guarantee at most."""
        return abs(self.limit - self.guarantee)


def find_coupled_policy(
    sets: Sets,
    objective: Objective,
    *,
    gap: float = DEFAULT_GAP,
    limits: CoupledLimits | None = None,
    precision: float = 1e-9,
    robust: Policy | None = None,
    more: Sequence[Policy] = (),
) -> CoupledSynthesis:
    """A policy for the coupled set within `limits`; `robust` is the rectangular one, `more` are tried."""
    begin = time.perf_counter()
    limits = limits or CoupledLimits()
    polytope = require_region(sets)
    if objective.kind is not ObjectiveKind.NEXT and (objective.is_bounded or objective.lower_steps):
        raise InputError(
            "coupled sets support policies that depend on the state alone, and the optimal policy of a "
            "step-bounded property depends on the step",
            hint="give a policy, or use rectangular sets",
        )
    kernel = operator_of(sets)
    if robust is None:
        opposed = against(objective, sets, objective.agent.opposite)
        robust = solve(kernel, opposed, precision=precision, threads=1).policy
    optimum = Optimum(sets, objective, precision, polytope)
    maximises = objective.maximises
    limit = np.inf if maximises else -np.inf
    tried: list[Candidate] = []
    values: list[CoupledValue] = []
    worst_points: list[Witness] = []
    cells = limits.cells

    def bound(origin: str, policy: Policy, left: float) -> CoupledValue:
        value = bound_coupled_value(
            sets,
            objective,
            policy,
            gap=gap,
            limits=replace(limits, seconds=max(left, 0.0), cells=max(cells, 1)),
            rectangular=rectangular_solutions(sets, objective, policy, precision, kernel),
        )
        tried.append(Candidate(origin, policy, value.lower if maximises else value.upper))
        values.append(value)
        return value

    def best() -> int:
        """The place of the best candidate, the first if there are several."""
        return max(range(len(tried)), key=lambda i: tried[i].guarantee if maximises else -tried[i].guarantee)

    origin, policy = "robust over the rectangular sets", robust
    while True:
        left = begin + limits.seconds - time.perf_counter()
        value = bound(origin, policy, left)
        cells -= len(value.cells)
        worst = value.lowest if maximises else value.highest
        if worst is None:
            break
        worst_points.append(worst)
        value_there, there = optimum.at(worst.x)
        limit = min(limit, value_there) if maximises else max(limit, value_there)
        repeated = any(there == candidate.policy for candidate in tried)
        first = tried[best()].guarantee
        extent = extent_of(values[best()].lower, values[best()].upper)
        close = limit == first or abs(limit - first) <= gap * extent
        if close or left <= 0.0 or cells <= 0:
            break
        if repeated or len(tried) == MOST_CANDIDATES:
            limit = optimum.between([point.theta for point in worst_points], limit)
            break
        origin, policy = f"optimal where candidate {len(tried)} is worst", there
    for policy in more:
        left = begin + limits.seconds - time.perf_counter()
        if left <= 0.0 or cells <= 0:
            break
        first = tried[best()].guarantee
        if any(policy == candidate.policy for candidate in tried):
            continue
        there_too = (optimum.at(point.x, policy)[0] for point in worst_points)
        if any(end <= first if maximises else end >= first for end in there_too):
            continue  # no guarantee is better than the value at a point
        cells -= len(bound("given", policy, left).cells)
    place = best()
    chosen = tried[place]
    return CoupledSynthesis(
        chosen.policy, values[place], chosen.guarantee, limit, tuple(tried), time.perf_counter() - begin
    )


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimal value at single instantiations: what no guarantee can exceed."""

    sets: Sets
    objective: Objective
    precision: float
    polytope: Polytope

    @cached_property
    def functions(self) -> AffineFunctions:
        return functions_of(self.polytope.coordinates, self.sets.model, self.objective)

    def at(self, x: FloatArray, policy: Policy | None = None) -> tuple[float, Policy]:
        """The value at coordinates x, optimal or of a policy, on the side that cannot be beaten."""
        solution = solve_at(self.sets.model, self.objective, self.functions, policy, self.precision, x)
        end = solution.upper if self.objective.maximises else solution.lower
        return float(end[self.sets.model.initial]), solution.policy

    def between(self, points: list[FloatArray], limit: float) -> float:
        """A better limit between worst points of candidates, as V* is lower there (golden section)."""
        sign = 1.0 if self.objective.maximises else -1.0
        for other in points[:-1]:
            _, value = golden_section(partial(self._evaluate_between, points[-1], other), 0.0, 1.0, _SECTIONS)
            limit = sign * min(sign * limit, value)
        return limit

    def _evaluate_between(self, start: FloatArray, end: FloatArray, share: float) -> float:
        """±V* at a point between two others; ∞ where it is not in the region."""
        theta = start + share * (end - start)
        if not self.polytope.contains(theta.tolist()):
            return np.inf
        value, _ = self.at(self.polytope.coordinates.lift(theta[None, :])[0])
        return value if self.objective.maximises else -value
