"""One block solved to a verified two-sided bound.

Let x be the block's solution for given boundary values. For a small shift d > 0 the solution of x = Φ(x)
− d lies below it and satisfies Φ(x) ≥ x + d: an approximation of it whose residual is less than d is
therefore *verifiably* a lower bound (L ≤ Φ(L)), and likewise x = Φ(x) + d from above. The distance
between the two is d times the expected number of steps in the block, so d starts from the precision asked
for and is made smaller until the bounds are close enough. It is proportional to x itself if the precision
is relative. A large d can tempt a player to linger where that costs next to nothing; then the shifted
equations converge slowly, and d is made smaller as well.

Large blocks are first tried with `margins`: one approximate solution, and a distance from it that is as good
as proved before it is verified. Where that fails the shifted equations decide.

The approximations come from modified policy iteration: a robust sweep, then sweeps with the choices
frozen, or one sparse factorisation where sweeps are slow. What is verified is Φ with all rounding errors
on the safe side; how the vectors were found plays no part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.solver.answered import answered_sweeps
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.frozen import LARGEST_FACTORISATION, frozen_sweeps, smallest_around
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
    def _is_game(self) -> bool:
        """Whether agent and nature both have something to decide, and disagree."""
        opposed = self.system.agent_maximises != self.system.nature_maximises
        return opposed and self.kernel.lower is not self.kernel.upper

    @cached_property
    def _smallest_shift(self) -> float:
        """Twice what rounding can add to a backup of intervals (`tightrope.solver.pouring`)."""
        if not isinstance(self.kernel, IntervalKernel):
            return SMALLEST_SHIFT
        return float(self._longest_choices.max(initial=1) + 8) * 2.0**-50

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
        lead = block.member[block.group_start[:-1]]
        middle = self._first_guess(block, lower, lead, distance)
        rows = Rows.room_for(self._longest_choices, block)
        best_lower = np.full(len(block), self.system.floor)
        best_upper = np.full(len(block), self.system.ceiling)
        still = np.zeros(len(block))
        found = self._with_margins(block, lower, upper, middle, budget, rows)
        if found is not None:
            best_lower, best_upper, middle, is_best = found
            gap = float(width(best_lower, best_upper, self.relative, self._unit(middle)).max())
            if gap <= budget or is_best:
                if gap > budget:
                    self.meter.stopped = self.meter.stopped or Status.PRECISION_LIMIT
                self.meter.largest = self._unit(middle)
                _assign(block, lower, best_lower)
                _assign(block, upper, best_upper)
                return
        shift, closeness = budget * FIRST_SHIFT, CLOSENESS
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
                self.meter.stopped = self.meter.stopped or Status.PRECISION_LIMIT
                break
            below = above = still
            factor = 1 / 16
            if settled and holds:
                factor = min(0.5, max(0.5 * budget / gap, 1e-4))
                below, above = factor * (middle - low), factor * (high - middle)
            elif settled:
                factor, closeness = 0.5, closeness / 2
            shift = max(shift * factor, self._smallest_shift)
        _assign(block, lower, best_lower)
        _assign(block, upper, best_upper)

    def _with_margins(
        self, block: Block, lower: FloatArray, upper: FloatArray, start: FloatArray, budget: float, rows: Rows
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool] | None:
        """Bounds that stand off one approximate solution by its margins, as far as they are verified, that
        solution, and whether float64 allows for nothing closer; None where there are no margins or a limit
        was met.
        """
        lead, still = block.member[block.group_start[:-1]], np.zeros(len(block))
        scratch = self.meter.zeros(self.kernel.structure.states)
        shift = budget * FIRST_SHIFT
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
        low = np.maximum(middle - shift * away, self.system.floor)
        if fitting < shift and self.system.floor >= 0.0:
            low = middle * (middle / (middle + shift * away))
        high = np.minimum(middle + shift * away, self.system.ceiling)
        _assign(block, lower, low)
        _assign(block, upper, high)
        if not self._holds(block, lower, False):
            low = np.full(len(block), self.system.floor)
        if not self._holds(block, upper, True):
            high = np.full(len(block), self.system.ceiling)
        return low, high, middle, fitting < shift or not settled

    def _first_guess(
        self, block: Block, values: FloatArray, lead: IndexArray, distance: IndexArray
    ) -> FloatArray:
        """Where to look from: what lies around the block, and for rewards what the way there may cost, or
        values that were given where they are finite.
        """
        guess = np.full(len(block), self._around(block, values))
        if self.equations.meaning is Meaning.REWARD and self.system.unit == 0:
            guess += distance * self._step(block)
        given = self.meter.start
        if given is not None and len(given) == len(values):
            guess = np.where(np.isfinite(given[lead]), given[lead], guess)
        bounded: FloatArray = np.clip(guess, self.system.floor, self.system.ceiling)
        return bounded

    def _around(self, block: Block, values: FloatArray) -> float:
        """The smallest finite value next to the block, 0 where there is none: where to start from."""
        structure, place = self.kernel.structure, self.meter.place
        place[block.member] = 0
        found = smallest_around(
            structure.choice_start,
            structure.transition_start,
            structure.successor,
            block.member,
            place,
            values,
        )
        place[block.member] = -1
        return found if np.isfinite(found) else 0.0

    def _step(self, block: Block) -> float:
        """Twice the mean reward of the block's choices: a guess at what it costs to come one step closer."""
        structure, reward = self.kernel.structure, self.system.reward
        ends = structure.choice_start[block.member], structure.choice_start[block.member + 1]
        total = np.concatenate([np.zeros(1), np.cumsum(reward)])
        return 2.0 * float(np.sum(total[ends[1]] - total[ends[0]]) / np.sum(ends[1] - ends[0]))

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
            if pure > 0:
                pure -= 1
                continue
            if factorise and meter.iterations - start > meter.patience:
                meter.iterations += 1
                if policies.evaluate(block, rows, shift, values, unit, tolerance):
                    meter.patience = 0
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
        kernel = self.kernel
        if self._is_game and isinstance(kernel, IntervalKernel):
            return answered_sweeps(kernel, self._bounded, block, rows, shift, values, unit, most, goal)
        return frozen_sweeps(self._bounded, block, rows, shift, values, unit, most, goal)


def _assign(block: Block, values: FloatArray, of_groups: FloatArray) -> None:
    values[block.member] = np.repeat(of_groups, np.diff(block.group_start))
