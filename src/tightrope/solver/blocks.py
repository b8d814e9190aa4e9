"""One block solved to a verified two-sided bound.

Let x be the block's solution for given boundary values. For a small shift d > 0 the solution of x = Φ(x)
− d lies below it and satisfies Φ(x) ≥ x + d: an approximation of it whose residual is less than d is
therefore *verifiably* a lower bound (L ≤ Φ(L)), and likewise x = Φ(x) + d from above. The distance
between the two is d times the expected number of steps in the block, so d starts from the precision asked
for and is made smaller until the bounds are close enough. It is proportional to x itself if the precision
is relative. A large d can tempt a player to linger where that costs next to nothing; then the shifted
equations converge slowly, and d is made smaller as well.

Large blocks are first tried with `margins`: one approximate solution, and a distance from it that is as good
as proved before it is verified. Where that fails the shifted equations decide. Where float64 carries no
bounds as close as asked for, wider ones are verified: a limit of precision never costs more than it must.

The approximations come from modified policy iteration: a robust sweep, then sweeps with the choices
frozen, or one sparse factorisation where sweeps are slow. What is verified is Φ with all rounding errors
on the safe side; how the vectors were found plays no part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.model.graph.support import SUM_UNIT, Support
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.answered import answered_sweeps
from tightrope.solver.backups import STEP_ERROR
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.first_guess import first_guess
from tightrope.solver.frozen import LARGEST_FACTORISATION, frozen_sweeps
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.kernel import Kernel
from tightrope.solver.layers import layers
from tightrope.solver.margins import margins
from tightrope.solver.meter import PATIENCE, Meter
from tightrope.solver.policy_iteration import PolicyIteration
from tightrope.solver.solution import Status, width
from tightrope.solver.system import Block, Rows, System, longest_choices

FIRST_SHIFT = 1 / 4096
"""The first shift, as a part of the precision."""

SMALLEST_SHIFT = 1e-13
"""Relative shift below which rounding errors of one backup are of the same size, whatever the kernel."""

CLOSENESS = 0.25
"""Residual, as a part of the shift, at which an approximation is good enough to be verified."""

FROZEN_SWEEPS = 16
"""Sweeps with frozen choices between two robust ones."""

FROZEN_GOAL = 0.1
"""Change of the robust sweep, as a part, at which frozen sweeps stop."""

MARGIN_PART = 0.4
"""Each side's margin, as a part of the precision asked for."""

LARGEST = 1e300
"""Where iterates are cut off."""

MOST_BURST = 256
"""Length of a burst of robust sweeps after which policy iteration that gets no closer is at its end."""

RELAXED = 100.0
"""Factor by which the goal is relaxed where float64 does not carry it."""

COARSEST = 0.01
"""The widest goal there is use in."""

IN_VAIN = 12
"""Rounds without getting closer after which robust sweeps are left to themselves for a while."""


@dataclass(frozen=True, eq=False)
class BlockSolver:
    """Solves blocks of one system with one kernel; bounds are read from and written to vectors over all
    states.
    """

    kernel: Kernel
    support: Support
    equations: Equations
    system: System
    relative: bool
    meter: Meter

    @cached_property
    def _longest_choices(self) -> OffsetArray:
        """Once for all blocks: a model of many must not pay for its size in each."""
        return longest_choices(self.kernel.structure)

    @cached_property
    def _answers(self) -> bool:
        """Whether nature answers anew while the agent's choices are frozen: where both have something to
        decide and disagree, and answers are cheap.
        """
        opposed = self.system.agent_maximises != self.system.nature_maximises
        return opposed and isinstance(self.kernel, IntervalKernel) and not self.kernel.is_plain

    @cached_property
    def _smallest_shift(self) -> float:
        """What rounding adds to a backup of intervals (`tightrope.solver.pouring`), and a little more."""
        kernel, system = self.kernel, self.system
        if not isinstance(kernel, IntervalKernel):
            return SMALLEST_SHIFT
        error = float(self._longest_choices.max(initial=1) + 6) * SUM_UNIT * (1 if kernel.is_plain else 2)
        return 1.0625 * error + (STEP_ERROR if len(system.reward) or len(system.discount) else 0.0)

    @cached_property
    def _policies(self) -> PolicyIteration:
        return PolicyIteration(self.kernel, self.support, self.equations, self._bounded, self.meter.place)

    @cached_property
    def _bounded(self) -> System:
        """The system to iterate on: nothing within a block becomes infinite."""
        return replace(self.system, ceiling=min(self.system.ceiling, LARGEST))

    def solve(
        self, block: Block, lower: FloatArray, upper: FloatArray, budget: float, *, connected: bool = False
    ) -> None:
        """Bounds of the block within `budget` of each other; without success what was verified, else
        floor and ceiling.

        A block that is `connected`, one component, is put into an order of its own (`layers`)."""
        distance = np.zeros(len(block), np.int32)
        if connected:
            is_reach = self.equations.meaning is Meaning.REACH
            ordered = layers(self.support, block, lower, self.meter.place, is_reach)
            block, distance = ordered.block, ordered.distance
        self.meter.patience = min(PATIENCE, len(block) // 20 + 60)
        middle = first_guess(self.equations, self.system, block, lower, distance, self.meter)
        best_lower = np.full(len(block), self.system.floor)
        best_upper = np.full(len(block), self.system.ceiling)
        rows = Rows.room_for(self._longest_choices, block, with_bounds=self._answers)
        goal = budget
        while True:
            low, high, middle, is_closest = self._refine(block, lower, upper, middle, goal, rows)
            best_lower, best_upper = np.maximum(best_lower, low), np.minimum(best_upper, high)
            gap = float(width(best_lower, best_upper, self.relative, self._unit(middle)).max())
            if gap <= budget or self.meter.exhausted():
                break
            self.meter.stopped = self.meter.stopped or Status.PRECISION_LIMIT
            goal *= RELAXED
            if is_closest or gap <= goal or goal > COARSEST:
                break
        _assign(block, lower, best_lower)
        _assign(block, upper, best_upper)

    def _refine(
        self,
        block: Block,
        lower: FloatArray,
        upper: FloatArray,
        middle: FloatArray,
        budget: float,
        rows: Rows,
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """The best bounds found on the way to `budget`, what they lie around, and whether float64 allows for
        nothing closer.
        """
        lead = block.member[block.group_start[:-1]]
        best_lower = np.full(len(block), self.system.floor)
        best_upper = np.full(len(block), self.system.ceiling)
        still = np.zeros(len(block))
        found = self._with_margins(block, lower, upper, middle, budget, rows)
        if found is not None:
            best_lower, best_upper, middle, is_best = found
            gap = float(width(best_lower, best_upper, self.relative, self._unit(middle)).max())
            if gap <= budget or is_best:
                self.meter.largest = self._unit(middle)
                return best_lower, best_upper, middle, is_best
        shift, closeness = max(budget * FIRST_SHIFT, self._smallest_shift), CLOSENESS
        below = above = still  # last distances of the bounds from the middle
        patience = 0
        while True:
            _assign(block, lower, middle)
            before = self.meter.iterations
            tolerance = self._tolerance(shift * closeness, middle)
            if not self._converge(block, lower, still, tolerance, rows, 10 * patience or None):
                break
            patience = max(patience, self.meter.iterations - before + 100)
            allowed = patience if shift > self._smallest_shift else 4 * patience
            middle = lower[lead]
            step = shift * self._reference(middle)
            tolerance = self._tolerance(shift * closeness, middle)
            _assign(block, lower, middle - below)
            settled = self._converge(block, lower, -step, tolerance, rows, allowed)
            low = lower[lead]
            if settled:
                _assign(
                    block,
                    upper,
                    np.minimum(middle + np.where(above > 0, above, middle - low), self.system.ceiling),
                )
                settled = self._converge(block, upper, step, tolerance, rows, allowed)
            if self.meter.exhausted():
                break
            if settled:
                high = upper[lead]
                low_holds, high_holds = self._holds(block, lower, False), self._holds(block, upper, True)
                best_lower = np.maximum(best_lower, low) if low_holds else best_lower
                best_upper = np.minimum(best_upper, high) if high_holds else best_upper
                gap = float(width(best_lower, best_upper, self.relative, self._unit(middle)).max())
                if gap <= budget:
                    self.meter.largest = self._unit(middle)
                    break
                holds = low_holds and high_holds
            if shift <= self._smallest_shift:
                break
            below = above = still
            factor = 1 / 16
            if settled and holds:
                factor = min(0.5, max(0.5 * budget / gap, 1e-4))
                below, above = factor * (middle - low), factor * (high - middle)
            elif settled:
                factor, closeness = 0.5, closeness / 2
            shift = max(shift * factor, self._smallest_shift)
        return best_lower, best_upper, middle, False

    def _with_margins(
        self, block: Block, lower: FloatArray, upper: FloatArray, start: FloatArray, budget: float, rows: Rows
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool] | None:
        """Bounds that stand off one approximate solution by its margins, as far as they are verified, that
        solution, and whether float64 allows for nothing closer; None where there are no margins or a limit
        was met.
        """
        lead, still = block.member[block.group_start[:-1]], np.zeros(len(block))
        scratch = self.meter.zeros(self.kernel.structure.states)
        shift = max(budget * FIRST_SHIFT, self._smallest_shift)
        _assign(block, lower, start)
        before = self.meter.iterations
        settled = self._converge(block, lower, still, self._tolerance(shift * CLOSENESS, start), rows)
        middle = lower[lead]
        if self.meter.exhausted():
            return None
        reference = self._reference(middle)
        most = max(2 * (self.meter.iterations - before), 100)
        if len(block) <= LARGEST_FACTORISATION:
            most = min(most, 60 + len(block) // 10)
        away, used = margins(self.system, block, rows, reference, scratch, self.meter.place, most)
        self.meter.iterations += used
        if away is None:
            return None
        fitting = MARGIN_PART * budget / float((away / reference).max())
        if fitting < shift:
            shift = max(fitting, self._smallest_shift)
            allowed = 4 * (self.meter.iterations - before) + 200
            self._converge(block, lower, still, self._tolerance(shift * CLOSENESS, middle), rows, allowed)
            middle = lower[lead]
        is_hard = fitting < 8 * self._smallest_shift or not settled
        farthest = 1.0 / float((away / reference).max()) if is_hard else fitting
        low, below = self._standing_off(block, lower, middle, away, shift, farthest, upward=False)
        high, above = self._standing_off(block, upper, middle, away, shift, farthest, upward=True)
        step, allowed = shift * reference, self.meter.iterations - before + 100
        tolerance = self._tolerance(shift * CLOSENESS, middle)
        if not below <= farthest:  # nature gains by what margins add: the shifted equations are next to them
            _assign(block, lower, np.maximum(middle - shift * away, self.system.floor))
            if self._converge(block, lower, -step, tolerance, rows, allowed) and self._holds(
                block, lower, False
            ):
                low, below = lower[lead], shift
        if not above <= farthest:
            _assign(block, upper, np.minimum(middle + shift * away, self.system.ceiling))
            if self._converge(block, upper, step, tolerance, rows, allowed) and self._holds(block, upper, True):
                high, above = upper[lead], shift
        is_closest = fitting < self._smallest_shift or not settled
        return low, high, middle, is_closest and max(below, above) <= farthest

    def _standing_off(
        self,
        block: Block,
        values: FloatArray,
        middle: FloatArray,
        away: FloatArray,
        shift: float,
        farthest: float,
        *,
        upward: bool,
    ) -> tuple[FloatArray, float]:
        """The closest verified bound that stands off `middle` by a multiple of `away`: `shift` or, as often
        as need be, half as much again, up to `farthest`. With the multiple; else ceiling or floor, and ∞.
        """
        floor, ceiling = self.system.floor, self.system.ceiling
        while True:
            distance = shift * away
            if upward:
                bound = np.minimum(middle + distance, ceiling)
            elif floor >= 0.0:
                bound = np.where(
                    distance > 0.5 * middle, middle * (middle / (middle + distance)), middle - distance
                )
            else:
                bound = np.maximum(middle - distance, floor)
            _assign(block, values, bound)
            if self._holds(block, values, upward):
                return bound, shift
            shift *= 1.5
            if not shift <= farthest:
                return np.full(len(block), ceiling if upward else floor), np.inf

    def _holds(self, block: Block, values: FloatArray, upward: bool) -> bool:
        """Whether the values are verifiably an upper (a lower) bound, given those around the block."""
        backed = np.empty(len(block))
        self.kernel.safe(self.system, block, values, upward, backed)
        own = values[block.member[block.group_start[:-1]]]
        return bool(np.all(backed <= own if upward else backed >= own))

    def _tolerance(self, residual: float, values: FloatArray) -> float:
        """The relative change that stands for a residual in the measure asked for."""
        if self.relative:
            return residual
        return residual / max(1.0, float(np.abs(values).max(initial=0.0)))

    def _reference(self, values: FloatArray) -> FloatArray:
        """What the precision is measured against."""
        if not self.relative:
            return np.ones(len(values))
        return np.full(len(values), self._unit(values)) if self.system.unit > 0 else np.abs(values)

    def _unit(self, values: FloatArray) -> float:
        """What signed values are measured against: the largest of unit, blocks before and `values`; 0 for
        others.
        """
        if self.system.unit <= 0:
            return 0.0
        return max(self.meter.largest, self.system.unit, float(np.abs(values).max(initial=0.0)))

    def _converge(
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
        system, meter, policies = self._bounded, self.meter, self._policies
        start = meter.iterations
        closest, in_vain, pure, burst = 0.5, 0, 0, 8
        there_and_back, turn, restarts = (block, replace(block, backwards=True)), 0, 0
        unit = 1e-300 if self.relative else 1.0
        factorise = len(block) <= LARGEST_FACTORISATION
        while not meter.exhausted() and (allowed is None or meter.iterations - start < allowed):
            if system.unit > 0:
                unit = max(unit, self._unit(values[block.member]))
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
            impatient = factorise and meter.iterations - start > meter.patience
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
                factorise = False
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
        if self._answers:
            return answered_sweeps(self._bounded, block, rows, shift, values, unit, most, goal)
        return frozen_sweeps(self._bounded, block, rows, shift, values, unit, most, goal)


def _assign(block: Block, values: FloatArray, of_groups: FloatArray) -> None:
    values[block.member] = np.repeat(of_groups, np.diff(block.group_start))
