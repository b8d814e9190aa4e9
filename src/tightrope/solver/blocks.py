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

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.unit_sums import SUM_UNIT
from tightrope.solver.around import Around, look_around
from tightrope.solver.backups import STEP_ERROR
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.first_guess import first_guess
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.kernel import Kernel
from tightrope.solver.layers import layers
from tightrope.solver.margins import margins
from tightrope.solver.measure import Measure
from tightrope.solver.meter import Meter
from tightrope.solver.rounds import Rounds
from tightrope.solver.solution import Status, width
from tightrope.solver.system import Block, Rows, System, longest_choices

FIRST_SHIFT = 1 / 4096
"""The first shift, as a part of the precision."""

SMALLEST_SHIFT = 1e-13
"""Relative shift below which rounding errors of one backup are of the same size, whatever the kernel."""

CLOSENESS = 0.25
"""Residual, as a part of the shift, at which an approximation is good enough to be verified."""

MARGIN_PART = 0.4
"""Each side's margin, as a part of the precision asked for."""

SMALLEST_PART = 1e-5
"""Part of its precision that a block must have to itself, beside what it inherits."""

LARGEST = 1e300
"""Where iterates are cut off."""

RELAXED = 100.0
"""Factor by which the goal is relaxed where float64 does not carry it."""

COARSEST = 0.01
"""The widest goal there is use in."""


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
    def _smallest_shift(self) -> float:
        """What rounding adds to a backup of intervals (`tightrope.solver.pouring`), and a little more."""
        kernel, system = self.kernel, self.system
        if not isinstance(kernel, IntervalKernel):
            return SMALLEST_SHIFT
        error = float(self._longest_choices.max(initial=1) + 6) * SUM_UNIT * (1 if kernel.is_plain else 2)
        return 1.0625 * error + (STEP_ERROR if len(system.reward) or len(system.discount) else 0.0)

    @cached_property
    def _measure(self) -> Measure:
        return Measure(self.system, self.relative, self.meter)

    @cached_property
    def _rounds(self) -> Rounds:
        """On a system in which nothing within a block becomes infinite."""
        bounded = replace(self.system, ceiling=min(self.system.ceiling, LARGEST))
        return Rounds(self.kernel, self.support, self.equations, bounded, self._measure, self.meter)

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
        self.meter.patience = self.meter.patience_for(len(block))
        around = look_around(self._measure, block, lower, upper, self.meter.place)
        middle = first_guess(self.equations, self.system, block, around.smallest, distance, self.meter.start)
        best_lower = np.full(len(block), self.system.floor)
        best_upper = np.full(len(block), self.system.ceiling)
        rows = Rows.room_for(self._longest_choices, block, with_bounds=self._rounds.answers)
        goal = budget
        while True:
            low, high, middle, is_closest = self._refine(block, lower, upper, middle, goal, rows, around)
            best_lower, best_upper = np.maximum(best_lower, low), np.minimum(best_upper, high)
            gap = float(width(best_lower, best_upper, self.relative, self._measure.unit(middle)).max())
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
        around: Around,
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """The best bounds found on the way to `budget`, what they lie around, and whether float64 allows for
        nothing closer.
        """
        lead = block.member[block.group_start[:-1]]
        best_lower = np.full(len(block), self.system.floor)
        best_upper = np.full(len(block), self.system.ceiling)
        still = np.zeros(len(block))
        begin = self.meter.iterations
        found = self._with_margins(block, lower, upper, middle, budget, rows, around)
        if found is not None:
            best_lower, best_upper, middle, is_best = found
            gap = float(width(best_lower, best_upper, self.relative, self._measure.unit(middle)).max())
            if gap <= budget or is_best:
                self.meter.largest = self._measure.unit(middle)
                return best_lower, best_upper, middle, is_best
        shift, closeness = max(budget * FIRST_SHIFT, self._smallest_shift), CLOSENESS
        below = above = still  # last distances of the bounds from the middle
        patience = 0
        while True:
            _assign(block, lower, middle)
            tolerance = self._measure.tolerance(shift * closeness, middle)
            if not self._rounds.converge(block, lower, still, tolerance, rows, 10 * patience or None):
                break
            patience = max(patience, self.meter.iterations - begin + 100)
            begin = self.meter.iterations
            allowed = patience if shift > self._smallest_shift else 4 * patience
            middle = lower[lead]
            step = shift * self._measure.reference(middle)
            tolerance = self._measure.tolerance(shift * closeness, middle)
            _assign(block, lower, middle - below)
            settled = self._rounds.converge(block, lower, -step, tolerance, rows, allowed)
            low = lower[lead]
            if settled:
                _assign(
                    block,
                    upper,
                    np.minimum(middle + np.where(above > 0, above, middle - low), self.system.ceiling),
                )
                settled = self._rounds.converge(block, upper, step, tolerance, rows, allowed)
            if self.meter.exhausted():
                break
            if settled:
                high = upper[lead]
                low_holds, high_holds = self._holds(block, lower, False), self._holds(block, upper, True)
                best_lower = np.maximum(best_lower, low) if low_holds else best_lower
                best_upper = np.minimum(best_upper, high) if high_holds else best_upper
                gap = float(width(best_lower, best_upper, self.relative, self._measure.unit(middle)).max())
                if gap <= budget:
                    self.meter.largest = self._measure.unit(middle)
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
        self,
        block: Block,
        lower: FloatArray,
        upper: FloatArray,
        start: FloatArray,
        budget: float,
        rows: Rows,
        around: Around,
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
        tolerance = self._measure.tolerance(shift * CLOSENESS, start)
        settled = self._rounds.converge(block, lower, still, tolerance, rows)
        middle = lower[lead]
        if self.meter.exhausted():
            return None
        reference = self._measure.reference(middle)
        most = max(2 * (self.meter.iterations - before), 100)
        if self.meter.may_factorise(len(block)):
            most = min(most, 60 + len(block) // 10)
        away, used = margins(self.system, block, rows, reference, scratch, self.meter.place, most)
        self.meter.iterations += used
        if away is None:
            return None
        over, own = self._inherited(around, middle, budget)
        farthest = 1.0 / float((away / reference).max())
        fitting = MARGIN_PART * own * farthest
        if fitting < shift:
            shift = max(fitting, self._smallest_shift)
            allowed = 4 * (self.meter.iterations - before) + 200
            tolerance = self._measure.tolerance(shift * CLOSENESS, middle)
            self._rounds.converge(block, lower, still, tolerance, rows, allowed)
            middle = lower[lead]
        highest = middle + over
        is_hard = fitting < 8 * self._smallest_shift or not settled
        farthest = farthest if is_hard else fitting
        low, below = self._standing_off(block, lower, middle, away, shift, farthest, upward=False)
        high, above = self._standing_off(block, upper, highest, away, shift, farthest, upward=True)
        allowed = self.meter.iterations - before + 100
        if not below <= farthest:
            low, below = self._shifted(block, lower, middle, away, shift, rows, allowed, upward=False)
        if not above <= farthest:
            high, above = self._shifted(block, upper, highest, away, shift, rows, allowed, upward=True)
        is_closest = fitting * (budget / own) < self._smallest_shift or not settled
        return low, high, middle, is_closest and max(below, above) <= farthest

    def _inherited(self, around: Around, middle: FloatArray, budget: float) -> tuple[FloatArray, float]:
        """By how much the upper bound must exceed `middle` in any case, and what of the budget is left then;
        nothing and all of it where that would be too little.
        """
        if around.distance < np.inf:
            over = around.over(middle)
            own = budget - float((over / self._measure.reference(middle)).max())
            if own > SMALLEST_PART * budget:
                return over, own
        return np.zeros(len(middle)), budget

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
        reference = self._measure.reference(middle)
        while True:
            bound = self._off(middle, shift * away, upward)
            _assign(block, values, bound)
            missing = self._missing(block, values, upward)
            worst = float((missing / reference).max())
            if worst <= 0.0:
                return bound, shift
            shift = max(1.5 * shift, shift + 1.5 * worst)  # a step of 1 gains about `reference`
            if not shift <= farthest:
                return self._nothing(block, upward), np.inf

    def _shifted(
        self,
        block: Block,
        values: FloatArray,
        middle: FloatArray,
        away: FloatArray,
        shift: float,
        rows: Rows,
        allowed: int,
        *,
        upward: bool,
    ) -> tuple[FloatArray, float]:
        """Like `_standing_off` where margins fail, since one that answers equally well in the middle gains by
        what they add: from there it is not far to the solution of the shifted equations, which knows.
        """
        _assign(block, values, self._off(middle, shift * away, upward))
        step = shift * self._measure.reference(middle)
        tolerance = self._measure.tolerance(shift * CLOSENESS, middle)
        if self._rounds.converge(
            block, values, step if upward else -step, tolerance, rows, allowed
        ) and self._holds(block, values, upward):
            return values[block.member[block.group_start[:-1]]], shift
        return self._nothing(block, upward), np.inf

    def _off(self, middle: FloatArray, distance: FloatArray, upward: bool) -> FloatArray:
        """`middle` moved by a distance, within what is known; what is positive stays positive."""
        floor, ceiling = self.system.floor, self.system.ceiling
        if upward:
            return np.minimum(middle + distance, ceiling)
        if floor >= 0.0:
            return np.where(
                distance > 0.5 * middle, middle * (middle / (middle + distance)), middle - distance
            )
        return np.maximum(middle - distance, floor)

    def _nothing(self, block: Block, upward: bool) -> FloatArray:
        """What is known without any solving."""
        return np.full(len(block), self.system.ceiling if upward else self.system.floor)

    def _holds(self, block: Block, values: FloatArray, upward: bool) -> bool:
        """Whether the values are verifiably an upper (a lower) bound, given those around the block."""
        return bool(np.all(self._missing(block, values, upward) <= 0.0))

    def _missing(self, block: Block, values: FloatArray, upward: bool) -> FloatArray:
        """By how much the values' backups, safely rounded, are beyond them; nowhere positive: they are an
        upper (a lower) bound.
        """
        backed = np.empty(len(block))
        self.kernel.safe(self.system, block, values, upward, backed)
        own = values[block.member[block.group_start[:-1]]]
        beyond, within = (backed, own) if upward else (own, backed)
        return np.subtract(beyond, within, out=np.zeros(len(block)), where=backed != own)


def _assign(block: Block, values: FloatArray, of_groups: FloatArray) -> None:
    values[block.member] = np.repeat(of_groups, np.diff(block.group_start))
