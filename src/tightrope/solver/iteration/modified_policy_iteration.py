"""Modified policy iteration on a block: robust sweeps, each followed by cheap ones with choices kept, or by
policy iteration with sparse factorisations where those are slow.

What comes out is an approximate solution, and no proof rests on it: `solver.iteration.blocks`
verifies bounds around it.

Policy iteration by sparse factorisation, for blocks in which sweeps are slow.

The agent's choices are evaluated exactly: nature's answers frozen, one linear system solved, nature asked
again, until it has nothing to change. Between two such evaluations the agent improves: Hoffman and Karp's
method, and how far values have to travel plays no part in it: with hardly any data an expected reward may be
10¹⁰, which sweeps would approach by one step at a time.

Equations of choices that never stop have no solution. Where the agent minimises a reward until a target and
has come to such choices, because everything unknown looks cheap from below, it starts again from choices that
make progress whatever nature does; from there improvement keeps to such choices.

What a precision is relative to.

How far from an approximate solution bounds can be verified: the solution of one linear system.

Let x approximate a block's solution with residual at most r·ref, and w solve w = ref + W·w, W the
transitions within the block under the choices frozen at x. Then x − d·w and x + d·w, d > r, are a lower and
an upper bound as long as the choices that are best there are nearly those at x:
Φ(x − d·w) ≥ x − r·ref − d·W·w = x − d·w + (d − r)·ref. w is the expected number of steps left in the block,
each weighed by ref, and a rough solution from below will do: what is needed is w − W·w ≥ (r/d)·ref, and
that the bounds are verified afterwards, which they are. Where sweeps take too long one factorisation solves
the system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tightrope.solver.bellman.fixed_choices import LARGEST_FACTORISATION
from tightrope.solver.equations.system import Equations, Meaning, System
from tightrope.solver.iteration.backend import BlockBackend, GroupVector, StateVector
from tightrope.solver.iteration.budget import Progress

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
class ModifiedPolicyIteration:
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


MOST_ANSWERS = 20
"""How often nature is asked again while the agent's choices stay."""


@dataclass(frozen=True, eq=False)
class PolicyIteration:
    """Evaluation of the agent's choices that a block has kept."""

    block: BlockBackend
    equations: Equations
    progress: Progress
    nature_has_choices: bool

    def evaluate(self, values: StateVector, shift: GroupVector, unit: float, tolerance: float) -> bool:
        """Store the values of the choices kept against nature; False where they have none."""
        block = self.block
        for _ in range(MOST_ANSWERS):
            fill = block.factorise(values, shift)
            if fill <= 0:
                return False
            self.progress.note_fill(block.groups, fill)
            if not self.nature_has_choices or block.answer(values, shift, unit) <= tolerance:
                break
        return True

    def start_again(self, values: StateVector, shift: GroupVector, unit: float, tolerance: float) -> bool:
        """Like `evaluate`, for choices that make progress; False where there are none, or values so large
        that float64 does not carry their equations.
        """
        policy = self.block.find_progress(values)
        if policy is None:
            return False
        self.block.adopt(policy, values, shift, unit)
        return self.evaluate(values, shift, unit, tolerance)

    @property
    def can_start_again(self) -> bool:
        """Whether progress is the agent's alone, against nature."""
        owns = self.equations.agent_owns and not self.equations.nature_owns
        return owns and self.equations.meaning is Meaning.REWARD


@dataclass(frozen=True, eq=False)
class Measure:
    """How changes, residuals and distances of a system's values are measured; `xp` is the module of their
    arrays.
    """

    system: System
    is_relative: bool
    progress: Progress
    xp: Any

    def tolerance(self, residual: float, values: GroupVector) -> float:
        """The relative change that stands for a residual in the measure asked for."""
        return residual if self.is_relative else residual / max(1.0, self._largest(values))

    def reference(self, values: GroupVector) -> GroupVector:
        """What the precision is measured against."""
        if not self.is_relative:
            return self.xp.ones(len(values))
        if self.system.unit > 0:
            return self.xp.full(len(values), self.unit(values))
        return self.xp.abs(values)

    def unit(self, values: GroupVector) -> float:
        """What signed values are measured against: the largest of unit, blocks before and `values`; 0 for
        others.
        """
        if self.system.unit <= 0:
            return 0.0
        return max(self.progress.largest, self.system.unit, self._largest(values))

    def gap(self, lower: GroupVector, upper: GroupVector, unit: float) -> float:
        """The largest distance of two bounds (`tightrope.solver.solution.width`)."""
        xp = self.xp
        apart = lower != upper
        gap = xp.where(apart, upper, 0.0) - xp.where(apart, lower, 0.0)
        if self.is_relative:
            scale = xp.maximum(xp.abs(upper), xp.abs(lower))
            is_finite = xp.isfinite(scale)
            if unit > 0:
                scale = xp.where(is_finite, max(unit, float(xp.where(is_finite, scale, 0.0).max())), scale)
            usable = (scale > 0) & is_finite
            gap = xp.where(usable, gap / xp.where(usable, scale, 1.0), gap)
        return float(gap.max())

    def _largest(self, values: GroupVector) -> float:
        return float(self.xp.abs(values).max())


ROUGHLY = 0.3
"""Largest change of the last sweep, as a part of ref."""

FIRST_CHANGE = 0.05
"""Change at which the size of w is looked at for the first time."""


def find_margins(
    block: BlockBackend, values: StateVector, reference: GroupVector, most: int
) -> tuple[GroupVector | None, int]:
    """(w, sweeps used) for the choices kept at `values`; None where neither `most` sweeps nor a factorisation
    find it: the choices may never leave the block. Without any sweep it is factorised whatever its size.
    """
    if block.is_stuck or not bool((reference > 0.0).all()):
        return None, 0
    used, tolerance = 0, FIRST_CHANGE
    found = block.xp.zeros(block.groups)
    while used < most:
        found, done, change = block.count_steps(values, found, reference, most - used, tolerance)
        used += done
        needed = ROUGHLY / float((found / reference).max())
        if change <= needed:
            return found, used
        tolerance = needed
    if most == 0 or block.groups <= LARGEST_FACTORISATION:
        return block.factorise_steps(values, reference), used + 1
    return None, used
