"""How wide the bounds around a block are: so far its own upper bound stands off, however well it is solved.

Let x solve a block for the lower bounds around it. If the upper bounds there are larger by at most h, then
x + h is no less than its own backup with them, as rows sum to at most 1; if they are larger by at most a part
η of themselves, (1 + η)·x is, where no reward is negative. A block that starts from there has only its own
margins to add.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.measure import Measure
from tightrope.solver.system import Block


@dataclass(frozen=True)
class Inherited:
    """Largest distance of the bounds around a block, of values as such or as a part of them."""

    distance: float
    is_part: bool

    def over(self, middle: FloatArray) -> FloatArray:
        """By how much an upper bound of the block must exceed the solution for the lower bounds around it."""
        return self.distance * middle if self.is_part else np.full(len(middle), self.distance)


def inherited(
    measure: Measure, block: Block, lower: FloatArray, upper: FloatArray, place: IndexArray
) -> Inherited:
    """What the finite bounds next to the block leave open; `place` is −1 on all states, before and after."""
    system = measure.system
    is_part = measure.relative and system.unit == 0
    place[block.member] = 0
    distance = _widest_around(
        system.structure.choice_start,
        system.structure.transition_start,
        system.structure.successor,
        block.member,
        place,
        lower,
        upper,
        is_part,
    )
    place[block.member] = -1
    return Inherited(distance, is_part)


@kernel
def _widest_around(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    member: IndexArray,
    place: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    is_part: bool,
) -> float:
    """The largest distance of finite bounds of a successor outside the block, whose states have place ≥ 0."""
    widest = 0.0
    for s in member:
        for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
            u = successor[t]
            if place[u] < 0 and lower[u] < upper[u] and upper[u] < np.inf:
                distance = upper[u] - lower[u]
                if is_part:
                    distance = distance / lower[u] if lower[u] > 0.0 else np.inf
                widest = max(widest, distance)
    return widest
