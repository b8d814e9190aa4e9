"""What lies around a block: the smallest value there, to start from, and how wide the bounds are.

That width is the least by which the block's own upper bound exceeds its lower one, however well it is solved.
Let x solve a block for the lower bounds around it. If the upper bounds there are larger by at most h, then
x + h is no less than its own backup with them, as rows sum to at most 1; if they are larger by at most a part
η of themselves, (1 + η)·x is, where no reward is negative. A block that starts from there has only its own
margins to add.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import Block
from tightrope.solver.iteration.backend import Around


def look_around(
    structure: Structure,
    block: Block,
    lower: FloatArray,
    upper: FloatArray,
    is_part: bool,
    place: IndexArray,
) -> Around:
    """`place` is −1 on all states, before and after."""
    place[block.member] = 0
    smallest, distance = _look_around(
        structure.choice_start,
        structure.transition_start,
        structure.successor,
        block.member,
        place,
        lower,
        upper,
        is_part,
    )
    place[block.member] = -1
    return Around(smallest if np.isfinite(smallest) else 0.0, distance, is_part)


@kernel
def _look_around(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    member: IndexArray,
    place: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    is_part: bool,
) -> tuple[float, float]:
    """Of the successors outside the block, whose states have place ≥ 0: the smallest lower bound (inf without
    one) and the largest distance of finite bounds.
    """
    smallest, widest = np.inf, 0.0
    for s in member:
        for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
            u = successor[t]
            if place[u] >= 0:
                continue
            smallest = min(smallest, lower[u])
            if lower[u] < upper[u] and upper[u] < np.inf:
                distance = upper[u] - lower[u]
                if is_part:
                    distance = distance / lower[u] if lower[u] > 0.0 else np.inf
                widest = max(widest, distance)
    return smallest, widest
