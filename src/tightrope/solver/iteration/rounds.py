"""Modified policy iteration on a block: robust sweeps, each followed by cheap ones with choices kept, or by
policy iteration with sparse factorisations where those are slow.

What comes out is an approximate solution, and no proof rests on it: `solver.iteration.blocks`
verifies bounds around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.solver.equations.system import System
from tightrope.solver.iteration.backend import BlockBackend, GroupVector, StateVector
from tightrope.solver.iteration.budget import Progress
from tightrope.solver.iteration.measure import Measure
from tightrope.solver.iteration.policy_iteration import PolicyIteration

FROZEN_SWEEPS = 16
"""Sweeps with the choices kept between two robust ones; even."""

FROZEN_GOAL = 0.1
"""Change of the robust sweep, as a part, at which sweeps with the choices kept stop."""

FIRST_BURST = 8
"""Robust sweeps in the first burst."""

MOST_BURST = 256
"""Length of a burst of robust sweeps after which policy iteration that gets no closer is at its end."""

IN_VAIN = 12
"""Rounds without getting closer after which robust sweeps are left to themselves for a while."""

CLOSER = 0.9
"""Part of the smallest change so far that counts as getting closer."""

MOST_RESTARTS = 3
"""How often policy iteration may start again from choices that make progress."""


@dataclass(eq=False)
class Rounds:
    """Rounds of sweeps over one block; `patience`: sweeps until it is factorised, 0 once it has been."""

    block: BlockBackend
    system: System
    measure: Measure
    progress: Progress
    policies: PolicyIteration
    patience: int

    def converge(
        self, values: StateVector, shift: GroupVector, tolerance: float, allowed: int | None = None
    ) -> bool:
        """Iterate x ← Φ(x) + shift until a robust sweep changes nothing by more than `tolerance`, relatively.

        What is solved between robust sweeps need not be what they converge to: nature's answers may be
        frozen, or be no distributions (rectangular sets), and then rounds can run in circles. So where they
        stop getting closer there are bursts of robust sweeps alone, each longer than the last: value
        iteration. False where limits, or `allowed` iterations, end it before."""
        block, progress, policies = self.block, self.progress, self.policies
        start = progress.iterations
        closest, in_vain, pure, burst = 0.5, 0, 0, FIRST_BURST
        backwards, restarts = False, 0
        unit = 1e-300 if self.measure.is_relative else 1.0
        may_factorise, waiting = progress.may_factorise(block.groups), 0
        while not progress.is_exhausted and (allowed is None or progress.iterations - start < allowed):
            if self.system.unit > 0:
                unit = max(unit, self.measure.unit(block.take(values)))
            improvement = block.improve(values, shift, unit, backwards)
            change, backwards = improvement.change, not backwards
            progress.iterations += 1
            if change <= tolerance:
                return True
            in_vain = 0 if change < CLOSER * closest else in_vain + 1
            closest = min(closest, change)
            if in_vain >= IN_VAIN:
                if self.patience == 0 and burst > MOST_BURST:
                    break
                in_vain, pure, burst = 0, burst, 2 * burst
            impatient = may_factorise and progress.iterations - start > max(self.patience, waiting)
            if pure > 0 and not (impatient and self.patience > 0):
                pure -= 1
                continue
            if impatient:
                progress.iterations += 1
                if policies.evaluate(values, shift, unit, tolerance):
                    if self.patience > 0:
                        in_vain, pure, burst, self.patience = 0, 0, FIRST_BURST, 0
                    if not policies.nature_has_choices:  # sweeps do not run in circles, and are cheaper
                        waiting = progress.iterations - start + progress.sweeps_per_factorisation
                    continue
                if policies.can_start_again:
                    restarts += 1
                    if restarts > MOST_RESTARTS or not policies.start_again(values, shift, unit, tolerance):
                        break
                    continue
                waiting = 2 * (progress.iterations - start)  # choices that never stop may be given up later
            goal, most = max(min(change, 1.0) * FROZEN_GOAL, tolerance * 0.2), FROZEN_SWEEPS
            if improvement.is_same_policy:
                goal, most = tolerance * 0.2, 4 * FROZEN_SWEEPS
            elif improvement.is_settling:
                most = 4 * FROZEN_SWEEPS
            progress.iterations += block.evaluate(values, shift, unit, most, goal)
        return False
