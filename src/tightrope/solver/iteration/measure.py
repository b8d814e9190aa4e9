"""What a precision is relative to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tightrope.solver.equations.system import System
from tightrope.solver.iteration.backend import GroupVector
from tightrope.solver.iteration.budget import Progress


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
