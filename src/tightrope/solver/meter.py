"""What a solve has used up, when it has to stop, and what its blocks share."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.solver.frozen import LARGEST_FACTORISATION
from tightrope.solver.solution import Status

PATIENCE = 1500
"""Most sweeps after which a block that can be factorised is."""

LITTLE_FILL = 8.0
"""Entries of the factors per entry of the equations up to which large blocks are factorised, too."""


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
    fill: float = 0.0
    filled_groups: int = 0

    def note_fill(self, groups: int, fill: float) -> None:
        """A block of so many groups has been factorised, with `fill` entries of the factors per entry."""
        if groups >= self.filled_groups:
            self.fill, self.filled_groups = fill, groups

    def _expected_fill(self, groups: int) -> float:
        """What the largest block factorised so far says of one of so many groups: fill grows with size, on a
        grid about with its square root. Infinite where nothing is known.
        """
        if self.filled_groups == 0:
            return float("inf")
        return self.fill * math.sqrt(max(1.0, groups / self.filled_groups))

    def may_factorise(self, groups: int) -> bool:
        if groups <= LARGEST_FACTORISATION:
            return True
        return groups <= 10 * LARGEST_FACTORISATION and self._expected_fill(groups) <= LITTLE_FILL

    def patience_for(self, groups: int) -> int:
        """Sweeps after which a block is factorised: fewer where factors are known to be cheap. One with fill
        f costs about 2f² sweeps.
        """
        most = min(PATIENCE, groups // 20 + 60)
        return int(min(most, 60 + 4 * self._expected_fill(groups) ** 2))

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
