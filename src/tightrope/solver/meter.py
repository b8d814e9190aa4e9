"""What a solve has used up, when it has to stop, and what its blocks share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.solver.solution import Status

PATIENCE = 1500
"""Most sweeps after which a block that can be factorised is."""


@dataclass
class Meter:
    """Iterations used and when to stop."""

    iterations: int = 0
    most_iterations: int = 1_000_000
    deadline: float = float("inf")
    stopped: Status | None = None
    largest: float = 0.0
    patience: int = PATIENCE
    place: IndexArray = field(default_factory=lambda: np.zeros(0, np.int32))
    scratch: FloatArray = field(default_factory=lambda: np.zeros(0))
    start: FloatArray | None = None

    def zeros(self, size: int) -> FloatArray:
        """A vector of zeros that is lent out: whoever writes to it puts the zeros back."""
        if len(self.scratch) != size:
            self.scratch = np.zeros(size)
        return self.scratch

    def exhausted(self) -> bool:
        if self.stopped is None:
            if self.iterations >= self.most_iterations:
                self.stopped = Status.ITERATION_LIMIT
            elif time.perf_counter() > self.deadline:
                self.stopped = Status.TIME_LIMIT
        return self.stopped in (Status.ITERATION_LIMIT, Status.TIME_LIMIT)
