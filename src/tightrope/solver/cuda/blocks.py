"""The states that no graph decides, solved on a device to a verified two-sided bound.

The plan is that of `tightrope.solver.blocks`, which says why it is sound: an approximate solution, margins
from it that make both bounds inductive, their verification with safe rounding; where that fails, the shifted
equations x = Φ(x) ∓ d with smaller and smaller d. What differs is how approximations are found. All states
move at once, from one vector to the next, so a result does not depend on the scheduling of threads. Between
two robust sweeps the agent's choices stay as they were, and only theirs are backed up; nature still answers
anew in each of them, which costs nothing beside the memory it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.solver.blocks import CLOSENESS, FIRST_SHIFT, MARGIN_PART, SMALLEST_SHIFT
from tightrope.solver.cuda.factorise import Factoriser
from tightrope.solver.cuda.kernel import CudaKernel
from tightrope.solver.margins import ROUGHLY
from tightrope.solver.meter import PATIENCE, Meter
from tightrope.solver.solution import Status
from tightrope.solver.system import System

FROZEN_SWEEPS = 24
"""Sweeps with frozen choices between two robust ones; even."""

MARGIN_SWEEPS = 16
"""Sweeps between two looks at how far margins have come."""


class DeviceBlock:
    """The equations of the active states of one system; vectors are the device's, over all states."""

    def __init__(
        self, kernel: CudaKernel, system: System, active: BoolArray, relative: bool, meter: Meter
    ) -> None:
        self.kernel, self.system, self.relative, self.meter = kernel, system, relative, meter
        self.model, self.device = kernel.model, kernel.device
        self.equations = self.model.system(system, active)
        xp = self.xp = self.device.xp
        self.active = self.device.upload(active)
        states = kernel.structure.states
        self.taken = xp.full(states, -1, np.int32)
        self.change = xp.zeros(1, np.uint64)
        self.spare = xp.zeros(states)
        self.lean = "false"
        self.factoriser = Factoriser(kernel, system, active) if Factoriser.pays(active) else None
        self.patience = PATIENCE

    def solve(self, lower: FloatArray, upper: FloatArray, budget: float) -> None:
        """Bounds of the active states within `budget` of each other, else what was verified."""
        if self.equations.lean and not np.isinf(lower).any() and not np.isinf(upper).any():
            self.lean = "true"
        xp, floor, ceiling = self.xp, self.system.floor, self.system.ceiling
        below, above = self.device.upload(lower), self.device.upload(upper)
        low, high = xp.where(self.active, floor, below), xp.where(self.active, ceiling, above)
        start = xp.where(self.active, self._first_guess(lower, upper), below)
        found = self._with_margins(start, above, budget)
        if found is not None:
            low, high, middle = found
            if self._gap(low, high, middle) <= budget:
                self._give(low, high, lower, upper, middle)
                return
            start = middle
        low, high = self._shifted(start, below, above, low, high, budget)
        self._give(low, high, lower, upper, start)

    def _first_guess(self, lower: FloatArray, upper: FloatArray) -> Any:
        """The smallest value that is settled, or values that were given, where they are finite."""
        settled = lower[(lower == upper) & np.isfinite(lower)]
        guess, given = float(settled.min(initial=0.0)), self.meter.start
        if given is None or len(given) != len(lower):
            return min(max(guess, self.system.floor), self.system.ceiling)
        finite = np.where(np.isfinite(given), given, guess)
        return self.device.upload(np.clip(finite, self.system.floor, self.system.ceiling))

    def _give(self, low: Any, high: Any, lower: FloatArray, upper: FloatArray, middle: Any) -> None:
        self.meter.largest = self._unit(middle)
        lower[:], upper[:] = self.device.download(low), self.device.download(high)

    def _with_margins(self, start: Any, above: Any, budget: float) -> tuple[Any, Any, Any] | None:
        """See `BlockSolver._with_margins`."""
        xp = self.xp
        shift = budget * FIRST_SHIFT
        before = self.meter.iterations
        middle = self._converge(start, None, self._tolerance(shift * CLOSENESS, start))
        if middle is None:
            return None
        reference = self._reference(middle)
        most = max(2 * (self.meter.iterations - before), 100)
        away = self._margins(middle, reference, most)
        if away is None:
            return None
        fitting = MARGIN_PART * budget / float(xp.where(self.active, away / reference, 0.0).max())
        if fitting < shift:
            shift = max(fitting, SMALLEST_SHIFT)
            middle = self._converge(middle, None, self._tolerance(shift * CLOSENESS, middle))
            if middle is None:
                return None
        low = xp.where(self.active, xp.maximum(middle - shift * away, self.system.floor), middle)
        high = xp.where(self.active, xp.minimum(middle + shift * away, self.system.ceiling), above)
        if not self._holds(low, False):
            low = xp.where(self.active, self.system.floor, low)
        if not self._holds(high, True):
            high = xp.where(self.active, self.system.ceiling, high)
        return low, high, middle

    def _shifted(
        self, middle: Any, below: Any, above: Any, low: Any, high: Any, budget: float
    ) -> tuple[Any, Any]:
        """See `BlockSolver.solve`: x = Φ(x) ∓ d, d made smaller until both bounds hold and are close."""
        xp, meter = self.xp, self.meter
        shift, closeness = budget * FIRST_SHIFT, CLOSENESS
        patience = 2 * meter.iterations  # as slow as the equations that were not shifted
        down = up = None
        while True:
            before = meter.iterations
            centre = self._converge(
                xp.where(self.active, middle, below), None, self._tolerance(shift * closeness, middle)
            )
            if centre is None:
                break
            middle = centre
            patience = max(patience, 2 * (meter.iterations - before) + 400)
            allowed = patience if shift > SMALLEST_SHIFT else None
            step = shift * self._reference(middle)
            tolerance = self._tolerance(shift * closeness, middle)
            first = middle if down is None else xp.where(self.active, middle - down, below)
            under = self._converge(first, -step, tolerance, allowed)
            over = None
            if under is not None:
                away = self._apart(middle, under) if up is None else up
                first = xp.minimum(middle + away, self.system.ceiling)
                over = self._converge(xp.where(self.active, first, above), step, tolerance, allowed)
            if meter.exhausted():
                break
            settled = under is not None and over is not None
            holds = False
            if settled:
                low_holds, high_holds = self._holds(under, False), self._holds(over, True)
                if low_holds:
                    low = xp.maximum(low, under)
                if high_holds:
                    high = xp.where(self.active, xp.minimum(high, over), above)
                gap = self._gap(low, high, middle)
                if gap <= budget:
                    break
                holds = low_holds and high_holds
            if shift <= SMALLEST_SHIFT:
                meter.stopped = meter.stopped or Status.PRECISION_LIMIT
                break
            down = up = None
            factor = 1 / 16
            if settled and holds:
                factor = min(0.5, max(0.5 * budget / gap, 1e-4))
                down, up = factor * self._apart(middle, under), factor * self._apart(over, middle)
            elif settled:
                factor, closeness = 0.5, closeness / 2
            shift = max(shift * factor, SMALLEST_SHIFT)
        return low, high

    # --- iteration -------------------------------------------------------------------------

    def _converge(self, x: Any, shift: Any, tolerance: float, allowed: int | None = None) -> Any:
        """Iterate x ← Φ(x) + shift until a robust sweep changes nothing by more than `tolerance`,
        relatively; None where limits end it before.
        """
        meter, start = self.meter, self.meter.iterations
        closest, in_vain, pure, burst, waiting = 0.5, 0, 0, 8, 0
        unit = 1e-300 if self.relative else 1.0
        x, y = x.copy(), x.copy()
        frozen: Callable[[], None] | None = None
        while not meter.exhausted() and (allowed is None or meter.iterations - start < allowed):
            if self.system.unit > 0:
                unit = max(unit, self._unit(x))
            change = self._sweep(x, y, shift, unit, frozen=False, measure=True)
            x[...] = y
            meter.iterations += 1
            if self.model.expanded():
                frozen = None
                continue
            if change <= tolerance:
                return x
            in_vain = 0 if change < 0.9 * closest else in_vain + 1
            closest = min(closest, change)
            if in_vain >= 40:
                in_vain, pure, burst = 0, burst, 2 * burst
            impatient = self.factoriser is not None and meter.iterations - start > max(self.patience, waiting)
            if pure > 0 and not (
                impatient and self.patience == PATIENCE
            ):  # bursts must not keep it from trying
                pure -= 1
                continue
            if impatient:
                if self._factorised(x, shift):
                    if self.patience == PATIENCE:
                        in_vain, pure, burst, waiting, self.patience = 0, 0, 8, 0, FROZEN_SWEEPS
                    continue
                waiting = 2 * (meter.iterations - start)  # see `Rounds.converge`
            if frozen is None:
                frozen = self.device.record(partial(self._frozen_pairs, x, y, shift))
            frozen()
            meter.iterations += FROZEN_SWEEPS
        return None

    def _factorised(self, x: Any, shift: Any) -> bool:
        """Solve with the choices frozen where that is possible."""
        if self.factoriser is None:
            return False
        self.meter.iterations += 1
        taken, values = self.device.download(self.taken), self.device.download(x)
        extra = np.zeros(len(values)) if shift is None else self.device.download(shift)
        solution = self.factoriser.solved(taken, values, extra, True)
        if solution is None:
            return False
        x[...] = self.device.upload(solution)
        return True

    def _frozen_pairs(self, x: Any, y: Any, shift: Any) -> None:
        """An even number of sweeps with frozen choices, the last of them into x."""
        for _ in range(FROZEN_SWEEPS // 2):
            self._sweep(x, y, shift, 1.0, frozen=True, measure=False)
            self._sweep(y, x, shift, 1.0, frozen=True, measure=False)

    def _sweep(self, x: Any, y: Any, shift: Any, unit: float, *, frozen: bool, measure: bool) -> float:
        groups = self.equations.groups
        direct = measure and groups is None
        if measure:
            self.change[:] = 0
        arguments = [x, y, shift, self.taken, self.change if direct else None, np.float64(unit)]
        flags = f",{'true' if frozen else 'false'},{self.lean}"
        self.model.each("sweep", self.equations, arguments, flags)
        if groups is not None:
            self._join(y, None if frozen else self.taken, False)
            if measure:
                arguments = [np.int64(len(x)), self.equations.active, x, y, np.float64(unit), self.change]
                self.model.launch("largest_change", arguments)
        return self._measured() if measure else 0.0

    def _join(self, values: Any, keep: Any, by_keep: bool) -> None:
        assert self.equations.groups is not None
        start, member = self.equations.groups
        best = np.bool_(self.system.agent_maximises)
        arguments = [np.int64(len(start) - 1), start, member, values, keep, best, np.bool_(by_keep)]
        self.model.launch("join", arguments)

    def _measured(self) -> float:
        bits = self.device.download(self.change)
        return float(bits.view(np.float64)[0])

    def _margins(self, x: Any, reference: Any, most: int) -> Any:
        """See `tightrope.solver.margins`; None where `most` sweeps do not suffice."""
        xp = self.xp
        if not bool((~self.active | (reference > 0)).all()):
            return None
        w, out = xp.zeros(len(x)), xp.zeros(len(x))
        used = 0
        while used < most:
            for _ in range(MARGIN_SWEEPS):
                self.change[:] = 0
                self.model.each("margin", self.equations, [x, w, out, reference, self.taken, self.change])
                if self.equations.groups is not None:
                    self._join(out, self.taken, True)
                w, out = out, w
            used += MARGIN_SWEEPS
            largest = float(xp.where(self.active, w / reference, 0.0).max())
            if self._measured() <= ROUGHLY / max(largest, 1e-300):
                self.meter.iterations += used
                return w
        self.meter.iterations += used
        if self.factoriser is None:
            return None
        taken, values = self.device.download(self.taken), self.device.download(x)
        solution = self.factoriser.solved(taken, values, self.device.download(reference), False)
        return None if solution is None else self.device.upload(solution)

    def _holds(self, values: Any, upward: bool) -> bool:
        """Whether the values are verifiably an upper (a lower) bound, given those around them."""
        while True:
            self.model.each("safe_states", self.equations, [values, np.bool_(upward), self.spare])
            if not self.model.expanded():
                break
        if self.equations.groups is not None:
            self._join(self.spare, None, False)
        good = self.spare <= values if upward else self.spare >= values
        return bool((good | ~self.active).all())

    # --- measures, as in BlockSolver ---------------------------------------------------------

    def _gap(self, low: Any, high: Any, middle: Any) -> float:
        xp = self.xp
        apart = self.active & (low != high)
        gap = xp.where(apart, high, 0.0) - xp.where(apart, low, 0.0)
        if self.relative:
            scale = xp.maximum(xp.abs(high), xp.abs(low))
            unit = self._unit(middle)
            if unit > 0:
                scale = xp.full(len(gap), max(unit, float(xp.where(xp.isfinite(scale), scale, 0.0).max())))
            gap = xp.where((scale > 0) & xp.isfinite(scale), gap / xp.where(scale > 0, scale, 1.0), gap)
        return float(gap.max())

    def _apart(self, more: Any, less: Any) -> Any:
        """more − less at the active states, 0 elsewhere, where both may be infinite."""
        return self.xp.where(self.active, more, 0.0) - self.xp.where(self.active, less, 0.0)

    def _tolerance(self, residual: float, values: Any) -> float:
        return residual if self.relative else residual / max(1.0, self._largest(values))

    def _reference(self, values: Any) -> Any:
        if not self.relative:
            return self.xp.ones(len(values))
        if self.system.unit > 0:
            return self.xp.full(len(values), self._unit(values))
        return self.xp.where(self.active, self.xp.abs(values), 1.0)

    def _unit(self, values: Any) -> float:
        if self.system.unit <= 0:
            return 0.0
        return max(self.meter.largest, self.system.unit, self._largest(values))

    def _largest(self, values: Any) -> float:
        return float(self.xp.where(self.active, self.xp.abs(values), 0.0).max())
