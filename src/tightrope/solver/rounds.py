"""Modified policy iteration on a block: robust sweeps, each followed by cheap ones with choices frozen, or by
one sparse factorisation where those are slow.

What comes out is an approximate solution, and nothing here is to be believed: `tightrope.solver.blocks`
verifies bounds around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import FloatArray
from tightrope.solver.answered import answered_sweeps
from tightrope.solver.equations import Equations
from tightrope.solver.frozen import frozen_sweeps
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.kernel import Kernel
from tightrope.solver.measure import Measure
from tightrope.solver.meter import Meter
from tightrope.solver.policy_iteration import PolicyIteration
from tightrope.solver.system import Block, Rows, System

FROZEN_SWEEPS = 16
"""Sweeps with frozen choices between two robust ones."""

FROZEN_GOAL = 0.1
"""Change of the robust sweep, as a part, at which frozen sweeps stop."""

MOST_BURST = 256
"""Length of a burst of robust sweeps after which policy iteration that gets no closer is at its end."""

IN_VAIN = 12
"""Rounds without getting closer after which robust sweeps are left to themselves for a while."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rounds of robust and frozen sweeps over blocks of one system."""

    kernel: Kernel
    support: Support
    equations: Equations
    system: System
    measure: Measure
    meter: Meter

    @cached_property
    def answers(self) -> bool:
        """Whether nature answers anew while the agent's choices are frozen: where both have something to
        decide and disagree, and answers are cheap.
        """
        opposed = self.system.agent_maximises != self.system.nature_maximises
        return opposed and isinstance(self.kernel, IntervalKernel) and not self.kernel.is_plain

    @cached_property
    def _policies(self) -> PolicyIteration:
        return PolicyIteration(self.kernel, self.support, self.equations, self.system, self.meter)

    def converge(
        self,
        block: Block,
        values: FloatArray,
        shift: FloatArray,
        tolerance: float,
        rows: Rows,
        allowed: int | None = None,
    ) -> bool:
        """Iterate x ← Φ(x) + shift until a robust sweep changes nothing by more than `tolerance`, relatively.

        What is solved between robust sweeps need not be what they converge to: nature's answers may be
        frozen, or be no distributions (rectangular sets), and then rounds can run in circles. So where they
        stop getting closer there are bursts of robust sweeps alone, each longer than the last: value
        iteration. False where limits, or `allowed` iterations, end it before."""
        system, meter, policies = self.system, self.meter, self._policies
        start = meter.iterations
        closest, in_vain, pure, burst = 0.5, 0, 0, 8
        there_and_back, turn, restarts = (block, replace(block, backwards=True)), 0, 0
        unit = 1e-300 if self.measure.relative else 1.0
        may_factorise, waiting = meter.may_factorise(len(block)), 0
        while not meter.exhausted() and (allowed is None or meter.iterations - start < allowed):
            if system.unit > 0:
                unit = max(unit, self.measure.unit(values[block.member]))
            policy = rows.choice.copy()
            change = self.kernel.sweep(system, there_and_back[turn], values, shift, unit, rows)
            turn = 1 - turn
            meter.iterations += 1
            if change <= tolerance:
                return True
            in_vain = 0 if change < 0.9 * closest else in_vain + 1
            closest = min(closest, change)
            if in_vain >= IN_VAIN:
                if meter.patience == 0 and burst > MOST_BURST:
                    break
                in_vain, pure, burst = 0, burst, 2 * burst
            impatient = may_factorise and meter.iterations - start > max(meter.patience, waiting)
            if pure > 0 and not (impatient and meter.patience > 0):
                pure -= 1
                continue
            if impatient:
                meter.iterations += 1
                if policies.evaluate(block, rows, shift, values, unit, tolerance):
                    if meter.patience > 0:
                        in_vain, pure, burst, meter.patience = 0, 0, 8, 0
                    continue
                if policies.can_start_again:
                    restarts += 1
                    if restarts > 3 or not policies.start_again(block, rows, shift, values, unit, tolerance):
                        break
                    continue
                waiting = 2 * (meter.iterations - start)  # choices that never stop may be given up later
            goal, most = max(min(change, 1.0) * FROZEN_GOAL, tolerance * 0.2), FROZEN_SWEEPS
            if np.array_equal(policy, rows.choice):
                goal, most = tolerance * 0.2, 4 * FROZEN_SWEEPS
            done, _ = self._under_policy(block, rows, shift, values, unit, most, goal)
            meter.iterations += done
        return False

    def _under_policy(
        self,
        block: Block,
        rows: Rows,
        shift: FloatArray,
        values: FloatArray,
        unit: float,
        most: int,
        goal: float,
    ) -> tuple[int, float]:
        """Sweeps under the agent's choices in `rows`, and nature's best answers where those are cheap."""
        if self.answers:
            return answered_sweeps(self.system, block, rows, shift, values, unit, most, goal)
        return frozen_sweeps(self.system, block, rows, shift, values, unit, most, goal)
