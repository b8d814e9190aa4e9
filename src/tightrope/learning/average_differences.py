"""`compare` and `improve` of long-run averages: differences by cycles (`tightrope.coupled.average`).

Statistics, region, candidates and ranking are those of `tightrope.learning.differences`; a policy is worth
its average, which one recurrent class has whatever state a play begins in. A policy without a state that
is met again for certain over the whole region has no bounds here, and nothing is claimed of it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tightrope.coupled.average import AverageBounds, Cycle, CycleBounds
from tightrope.coupled.difference import Side
from tightrope.coupled.value import CoupledLimits
from tightrope.errors import CannotCertify, InputError
from tightrope.io.results import Interval
from tightrope.learning.answers import find_reward
from tightrope.learning.differences import Difference, Differences, separate
from tightrope.learning.result import LearningResult
from tightrope.logic.long_run import average_policy, bound_average
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.polytope import Polytope
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve

MOST_CELLS = 8
"""Of the bounds of one policy's cycle, which come in at second order."""

_NOTHING = Interval(-np.inf, np.inf)


class AverageOptimum:
    """The best average at a point, in float64."""

    def __init__(self, table: AverageDifferences):
        self.table = table

    def at(self, x: FloatArray) -> tuple[float, Policy]:
        table = self.table
        model, agent = table.chain.model, table.directions[0]
        point = MDP(model.structure, table.values_at(x)[model.expression])
        precision = max(table.chain.options.precision, 1e-9)

        def solved(part: MDP | IntervalMDP, objective: Objective) -> Solution:
            return solve(part, objective, precision=precision / 4, threads=1)

        choice = average_policy(point, table.reward, (agent, agent), precision, solved)
        best = bound_average(point, table.reward, (agent, agent), precision, solved).bounds
        end = best.upper if agent is Direction.MAX else best.lower
        return float(end[model.initial]), Policy.of_choices(model.structure, choice)


class AverageDifferences(Differences):
    """Differences of long-run averages to one baseline over one region."""

    averages = True

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.reward, self.directions = find_reward(self.problem.query)
        region = self.prepared.sets.region
        self._bounds = None
        if self.prepared.contradiction is None and isinstance(region, Polytope):
            self._bounds = AverageBounds(
                self.chain.model, region, self.reward, self.chain.options.coupled_gap
            )
        self._cycles: dict[str, CycleBounds | None] = {}

    @property
    def maximises(self) -> bool:
        return self.directions[0] is Direction.MAX

    def values_at(self, x: FloatArray) -> FloatArray:
        """The probabilities of all expressions at a point."""
        functions = self.coordinates.functions(self.chain.model.expressions)
        return np.clip(functions.constant + functions.linear @ x, 0.0, 1.0)

    def cut(self, policies: Any) -> None:
        """Regions of many coordinates are left as they are."""

    def cycle(self, policy: Policy) -> CycleBounds | None:
        """The bounds of a policy's cycle, each found once."""
        if policy.structure is not self.chain.model.structure or policy.has_memory or policy.depends_on_step:
            raise InputError(
                "long-run averages are compared of policies that depend on the state alone",
                hint="give policies without a memory and without steps",
            )
        if self._bounds is None:
            return None
        if policy.digest not in self._cycles:
            made = Cycle.of(self.chain.model, policy, self.reward, self.values_at(self.estimate()))
            left = max(self.deadline - time.perf_counter(), 0.0)
            self._cycles[policy.digest] = (
                None if made is None else self._bounds.bounds(made, CoupledLimits(left, MOST_CELLS))
            )
        return self._cycles[policy.digest]

    def side(self, policy: Policy, objective: Objective | None = None) -> Side:
        if objective is not None:
            return super().side(policy, objective)
        assert self._bounds is not None
        known = self.cycle(policy)
        low, high = _NOTHING if known is None else known.average
        return Side(self.chain.model, self._bounds.objective, policy, low, high)

    def difference(
        self,
        name: str,
        policy: Policy,
        baseline: Policy | None = None,
        objective: Objective | None = None,
        wanted: tuple[bool, bool] = (True, True),
        cells: int = CoupledLimits.cells,
        gap: float | None = None,
    ) -> Difference:
        if objective is not None:
            return super().difference(name, policy, baseline, objective, wanted, cells, gap)
        other = self.baseline if baseline is None else baseline
        assert other is not None
        self.chain.progress(f"compare: {name}")
        if policy == other:
            nothing = Interval(0.0, 0.0)
            return Difference(name, policy, nothing, nothing)
        one, two = self.cycle(policy), self.cycle(other)
        if self._bounds is None or one is None or two is None:
            return Difference(name, policy, _NOTHING, _NOTHING)
        apart = separate(*one.average, *two.average)
        left = max(self.deadline - time.perf_counter(), 0.0)
        joint, value = self._bounds.difference(one, two, CoupledLimits(left, cells, wanted))
        both = Interval(max(joint.lower, apart.lower), min(joint.upper, apart.upper))
        return Difference(name, policy, both, apart, value)

    def candidates(self) -> list[tuple[str, Policy]]:
        """The best at the estimate, and the baseline where data are few."""
        if self._bounds is None:
            return []
        return self._mixed([("the best at the estimate", AverageOptimum(self).at(self.estimate())[1])])

    def value_at(self, policy: Policy, x: FloatArray) -> float:
        known = self.cycle(policy)
        return float("nan") if known is None or self._bounds is None else self._bounds.at(known.cycle, x)

    def optimum_over(self) -> Any:
        return None if self._bounds is None else AverageOptimum(self)

    def _gained(self, policy: Policy, usual: Policy) -> FloatArray:
        return np.full(self.chain.model.states, np.nan)

    def as_result(self, policy: Policy) -> LearningResult:
        raise CannotCertify("certificates do not hold differences of long-run averages")
