"""What a precision is relative to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.solver.meter import Meter
from tightrope.solver.system import System


@dataclass(frozen=True, eq=False)
class Measure:
    """How changes, residuals and distances of a system's values are measured."""

    system: System
    relative: bool
    meter: Meter

    def tolerance(self, residual: float, values: FloatArray) -> float:
        """The relative change that stands for a residual in the measure asked for."""
        if self.relative:
            return residual
        return residual / max(1.0, float(np.abs(values).max(initial=0.0)))

    def reference(self, values: FloatArray) -> FloatArray:
        """What the precision is measured against."""
        if not self.relative:
            return np.ones(len(values))
        return np.full(len(values), self.unit(values)) if self.system.unit > 0 else np.abs(values)

    def unit(self, values: FloatArray) -> float:
        """What signed values are measured against: the largest of unit, blocks before and `values`; 0 for
        others.
        """
        if self.system.unit <= 0:
            return 0.0
        return max(self.meter.largest, self.system.unit, float(np.abs(values).max(initial=0.0)))
