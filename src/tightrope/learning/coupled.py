"""Coupled values in learning: from the intervals over rectangular sets to those over the region itself.

With the confidence of the ledger the true parameters lie in the region, and the true system uses them at
every choice. So the interval of a policy over all instantiations of the region, one for the whole run,
contains its true value; it is never wider than the interval over rectangular sets, which it starts from.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from tightrope.coupled import (
    CoupledLimits,
    CoupledSynthesis,
    CoupledValue,
    bound_coupled_value,
    find_coupled_policy,
)
from tightrope.learning.policies import PolicySolver, depends_on_step
from tightrope.learning.result import Interval, PolicyValue
from tightrope.model.policy import Policy

COUPLED_SECONDS = 60.0
"""For the search of each coupled value where no time limit is given: what it has found then is certified, and
the status says that it stopped.
"""


class Coupler:
    """Coupled values over the sets, with the limits and the objective of a solver for these."""

    def __init__(self, solver: PolicySolver, gap: float):
        self.solver, self.gap = solver, gap

    def robust(
        self, rectangular: PolicyValue, betted: Policy | None = None
    ) -> tuple[PolicyValue, CoupledSynthesis | None]:
        """The policy with the best coupled guarantee found; the rectangular-robust one is a candidate, and so
        is one that was bet on.
        """
        solver = self.solver
        if depends_on_step(solver.objective):
            solver.notes.append(
                "the robust policy depends on the step, and coupled values are those of policies that do "
                "not: its interval is the one over rectangular sets"
            )
            return rectangular, None
        solver.progress("solve: the robust policy over the coupled set")
        found = find_coupled_policy(
            solver.sets,
            solver.objective,
            gap=self.gap,
            limits=self._limits(),
            robust=rectangular.policy,
            more=[] if betted is None or not betted.is_deterministic else [betted],
        )
        if found.policy != rectangular.policy:
            rectangular = solver.evaluate(found.policy)
        return self._of(rectangular, found.value), found

    def evaluated(self, rectangular: PolicyValue) -> PolicyValue:
        """A given policy's value over the coupled set."""
        solver = self.solver
        if rectangular.policy.depends_on_step:
            solver.notes.append(
                "the given policy depends on the step, and coupled values are those of policies that do "
                "not: its interval is the one over rectangular sets"
            )
            return rectangular
        solver.progress("solve: the given policy over the coupled set")
        found = bound_coupled_value(
            solver.sets,
            solver.objective,
            rectangular.policy,
            gap=self.gap,
            limits=self._limits(),
            rectangular=rectangular.solutions,
        )
        return self._of(rectangular, found)

    def _of(self, rectangular: PolicyValue, value: CoupledValue) -> PolicyValue:
        if value.reason:
            self.solver.notes.append(f"coupled set: {value.status.value}; {value.reason}")
        lower = max(value.lower, rectangular.interval.lower)
        upper = min(value.upper, rectangular.interval.upper)
        return replace(rectangular, interval=Interval(lower, upper), coupled=value)

    def _limits(self) -> CoupledLimits:
        left = self.solver.deadline - time.perf_counter()
        return CoupledLimits(seconds=max(left, 0.0) if math.isfinite(left) else COUPLED_SECONDS)
