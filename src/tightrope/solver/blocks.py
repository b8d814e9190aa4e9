"""One block solved to a verified two-sided bound.

Let x be the block's solution for given boundary values. For a small shift d > 0 the solution of x = Φ(x) − d lies below it and satisfies
Φ(x) ≥ x + d: an approximation of it whose residual is less than d is therefore *verifiably* a lower bound (L ≤ Φ(L)),
and likewise x = Φ(x) + d from above. The distance between the two is d times the expected number of steps
in the block, so d is chosen from the precision asked for and made smaller until the bounds are close enough. d is taken proportional
to x itself if the precision is relative.

The approximations come from modified policy iteration: a robust sweep, then sweeps with the choices frozen (many more
of them, once the choices have settled), or one sparse factorisation where sweeps are slow. What is verified is Φ with all rounding
errors on the safe side; how the vectors were found plays no part.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.solver.frozen import LARGEST_FACTORISATION, factorised, frozen_sweeps
from tightrope.solver.kernel import Kernel
from tightrope.solver.solution import Status, width
from tightrope.solver.system import Block, Rows, System

SMALLEST_SHIFT = 1e-13
"""Relative shift below which rounding errors of one backup are of the same size."""

PATIENCE = 200
"""Sweeps after which a block that can be factorised is."""


@dataclass
class Meter:
    """Iterations used and when to stop."""

    iterations: int = 0
    most_iterations: int = 1_000_000
    deadline: float = float("inf")
    stopped: Status | None = None
    largest: float = 0.0
    place: IndexArray = field(default_factory=lambda: np.zeros(0, np.int32))

    def exhausted(self) -> bool:
        if self.stopped is None:
            if self.iterations >= self.most_iterations:
                self.stopped = Status.ITERATION_LIMIT
            elif time.perf_counter() > self.deadline:
                self.stopped = Status.TIME_LIMIT
        return self.stopped is not None


@dataclass(frozen=True, eq=False)
class BlockSolver:
    """Solves blocks of one system with one kernel; bounds are read from and written to vectors over all states."""

    kernel: Kernel
    system: System
    relative: bool
    meter: Meter

    def solve(self, block: Block, lower: FloatArray, upper: FloatArray, budget: float) -> bool:
        """Bounds of the block within `budget` of each other. Without success what was verified stays, else floor and ceiling."""
        lead = block.member[block.group_start[:-1]]
        sizes = np.diff(block.group_start)
        rows = Rows.room_for(self.kernel.structure, block)
        out = np.empty(len(block))
        best_lower = np.full(len(block), self.system.floor)
        best_upper = np.full(len(block), self.system.ceiling)
        shift = budget / 32
        closeness = 0.25
        middle = np.full(len(block), np.clip(0.0, self.system.floor, self.system.ceiling))
        low = high = np.empty(0)
        still = np.zeros(len(block))
        while True:
            lower[block.member] = np.repeat(middle, sizes)
            if not self._converge(block, lower, still, shift * closeness, rows):
                break
            middle = lower[lead]
            reference = self._reference(middle)
            step = shift * reference
            tolerance = shift * closeness if self.relative else shift * closeness / max(1.0, np.abs(middle).max())
            if len(low):
                lower[block.member] = np.repeat(low, sizes)
            if not self._converge(block, lower, -step, tolerance, rows):
                break
            self.kernel.safe(self.system, block, lower, False, out)
            low = lower[lead]
            low_holds = bool(np.all(out >= low))
            start = high if len(high) else 2 * middle - low
            upper[block.member] = np.repeat(np.clip(start, self.system.floor, self.system.ceiling), sizes)
            if not self._converge(block, upper, step, tolerance, rows):
                break
            self.kernel.safe(self.system, block, upper, True, out)
            high = upper[lead]
            high_holds = bool(np.all(out <= high))
            if low_holds:
                best_lower = np.maximum(best_lower, low)
            if high_holds:
                best_upper = np.minimum(best_upper, high)
            gap = float(width(best_lower, best_upper, self.relative, self._unit(middle)).max())
            if gap <= budget:
                self.meter.largest = self._unit(middle)
                self._store(block, lower, upper, best_lower, best_upper)
                return True
            if shift <= SMALLEST_SHIFT:
                self.meter.stopped = self.meter.stopped or Status.PRECISION_LIMIT
                break
            if low_holds and high_holds:
                factor = min(0.5, max(0.5 * budget / gap, 1e-4))
                low, high = middle + factor * (low - middle), middle + factor * (high - middle)
            else:
                factor, closeness = 0.5, closeness / 2
                low, high = np.empty(0), np.empty(0)
            shift = max(shift * factor, SMALLEST_SHIFT)
        self._store(block, lower, upper, best_lower, best_upper)
        return False

    def _reference(self, values: FloatArray) -> FloatArray:
        """What the precision is measured against."""
        if not self.relative:
            return np.ones(len(values))
        size = np.abs(values)
        return np.full(len(values), self._unit(values)) if self.system.unit > 0 else size

    def _unit(self, values: FloatArray) -> float:
        """What signed values are measured against: the largest of the unit, the blocks before and `values`; 0 for others."""
        if self.system.unit <= 0:
            return 0.0
        return max(self.meter.largest, self.system.unit, float(np.abs(values).max(initial=0.0)))

    def _store(
        self, block: Block, lower: FloatArray, upper: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        sizes = np.diff(block.group_start)
        lower[block.member] = np.repeat(low, sizes)
        upper[block.member] = np.repeat(high, sizes)

    def _converge(
        self, block: Block, values: FloatArray, shift: FloatArray, tolerance: float, rows: Rows
    ) -> bool:
        """Iterate x ← Φ(x) + shift until one robust sweep changes nothing by more than `tolerance`, relatively.

        With both players' choices frozen at once policy iteration can run in circles (agent and nature chasing each other), so
        where robust sweeps stop getting closer there are fewer frozen ones, in the end none: value iteration."""
        system, meter = self.system, self.meter
        most = 20
        sweeps = 0
        closest, in_vain = np.inf, 0
        factorise = len(block) <= LARGEST_FACTORISATION
        unit = 1e-300 if self.relative else 1.0
        while not meter.exhausted():
            if system.unit > 0:
                unit = max(unit, self._unit(values[block.member]))
            change = self.kernel.sweep(system, block, values, shift, unit, rows)
            meter.iterations += 1
            sweeps += 1
            if change <= tolerance:
                return True
            in_vain = 0 if change < 0.9 * closest else in_vain + 1
            closest = min(closest, change)
            if in_vain >= 4:
                most, in_vain, factorise = most // 4, 0, False
            if factorise and sweeps > PATIENCE:
                meter.iterations += 1
                sweeps += 1
                if factorised(system, block, rows, shift, values, meter.place):
                    continue
                factorise = sweeps < 2 * PATIENCE
            goal = max(min(change, 1.0) * 0.02, tolerance * 0.2)
            done, _ = frozen_sweeps(system, block, rows, shift, values, unit, most, goal)
            meter.iterations += done
            sweeps += done
            if done == most and in_vain == 0:
                most = min(2 * most, 2000)
        return False
