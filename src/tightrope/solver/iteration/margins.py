"""How far from an approximate solution bounds can be verified: the solution of one linear system.

Let x approximate a block's solution with residual at most r·ref, and w solve w = ref + W·w, W the
transitions within the block under the choices frozen at x. Then x − d·w and x + d·w, d > r, are a lower and
an upper bound as long as the choices that are best there are nearly those at x:
Φ(x − d·w) ≥ x − r·ref − d·W·w = x − d·w + (d − r)·ref. w is the expected number of steps left in the block,
each weighed by ref, and a rough solution from below will do: what is needed is w − W·w ≥ (r/d)·ref, and
that the bounds are verified afterwards, which they are. Where sweeps take too long one factorisation solves
the system.
"""

from __future__ import annotations

from tightrope.solver.iteration.backend import BlockBackend, GroupVector, StateVector
from tightrope.solver.kernels.frozen import LARGEST_FACTORISATION

ROUGHLY = 0.3
"""Largest change of the last sweep, as a part of ref."""

FIRST_CHANGE = 0.05
"""Change at which the size of w is looked at for the first time."""


def find_margins(
    block: BlockBackend, values: StateVector, reference: GroupVector, most: int
) -> tuple[GroupVector | None, int]:
    """(w, sweeps used) for the choices kept at `values`; None where neither `most` sweeps nor a factorisation
    find it: the choices may never leave the block. Without any sweep it is factorised whatever its size.
    """
    if block.is_stuck or not bool((reference > 0.0).all()):
        return None, 0
    used, tolerance = 0, FIRST_CHANGE
    found = block.xp.zeros(block.groups)
    while used < most:
        found, done, change = block.count_steps(values, found, reference, most - used, tolerance)
        used += done
        needed = ROUGHLY / float((found / reference).max())
        if change <= needed:
            return found, used
        tolerance = needed
    if most == 0 or block.groups <= LARGEST_FACTORISATION:
        return block.factorise_steps(values, reference), used + 1
    return None, used
