"""How far bounds must stand off an approximate solution: once a linear system, then no more iterating.

Let x approximate a block's solution with residual at most r·ref, and w solve w = ref + W·w, W the
transitions within the block under the choices frozen at x. Then x − d·w and x + d·w, d > r, are a lower and
an upper bound as long as the choices that are best there are nearly those at x:
Φ(x − d·w) ≥ x − r·ref − d·W·w = x − d·w + (d − r)·ref. w is the expected number of steps left in the block,
each weighed by ref, and a rough solution from below will do: what is needed is w − W·w ≥ (r/d)·ref, and
that the bounds are verified afterwards, which they are. Where sweeps take too long one factorisation solves
the system.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.solver.frozen import LARGEST_FACTORISATION, factorised, frozen_sweeps
from tightrope.solver.system import Block, Rows, System

ROUGHLY = 0.3
"""Largest change of the last sweep, as a part of ref."""


def margins(
    system: System,
    block: Block,
    rows: Rows,
    reference: FloatArray,
    scratch: FloatArray,
    place: IndexArray,
    most: int,
) -> tuple[FloatArray | None, int]:
    """(w, sweeps used); None where neither `most` sweeps nor a factorisation find it: the choices may never
    leave the block.

    `scratch` is 0 and `place` −1 on all states, before and after.
    """
    if np.any(rows.self_weight >= 1.0) or np.any(reference <= 0.0):
        return None, 0
    lead = block.member[block.group_start[:-1]]
    plain = replace(system, floor=0.0, ceiling=np.inf)
    without_reward = replace(rows, reward=np.zeros(len(block)))
    used, tolerance, result = 0, 0.05, None
    while used < most:
        done, change = frozen_sweeps(
            plain, block, without_reward, reference, scratch, 1e-300, most - used, tolerance
        )
        used += done
        found = scratch[lead]
        needed = ROUGHLY / float((found / reference).max())
        if change <= needed:
            result = found.copy()
            break
        tolerance = needed
    if result is None and len(block) <= LARGEST_FACTORISATION:
        used += 1
        if factorised(plain, block, without_reward, reference, scratch, place):
            result = scratch[lead]
    scratch[block.member] = 0.0
    return result, used
