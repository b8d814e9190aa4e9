"""Bounds that no distribution satisfies, mended by widening: rounding is forgiven, contradictions are named.

The bounds of a choice admit a distribution iff lower ≤ upper and Σ lower ≤ 1 ≤ Σ upper. Learned bounds may
miss this in two ways.

* By rounding, where the set is a point or nearly so. The bounds are moved outward by what is missing.
* By contradiction: some interval has missed the truth, which happens with probability at most δ. Nothing is
  known of such a choice then; it falls back to what holds of every parameter of the domain.

Either way the set only grows, so whatever was guaranteed stays guaranteed. Who reads bounds
(`tightrope.model.graph.support`) takes a sum within (k+2)·2⁻⁵² of 1 as 1. That would deny nature a mass that
small, so the lower bounds of a choice with something unknown are made to leave clearly more than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rounding import down, up

ROUNDING = 1e-9
"""Bounds that miss feasibility by no more than this were rounded; by more, they contradict each other."""


@dataclass(frozen=True, eq=False)
class FeasibleBounds:
    """Bounds that admit a distribution everywhere, and the choices at which they contradicted each other."""

    lower: FloatArray
    upper: FloatArray
    contradictory: BoolArray


def feasible(
    start: OffsetArray,
    lower: FloatArray,
    upper: FloatArray,
    known: BoolArray,
    fallback: tuple[FloatArray, FloatArray],
) -> FeasibleBounds:
    """Mend the bounds of the choices start[c]:start[c+1].

    `known` entries are constants, whose bounds are right up to rounding and are not moved; `fallback` holds
    whatever the parameters are.
    """
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    if len(lower) == 0:
        return FeasibleBounds(lower, upper, np.zeros(0, np.bool_))
    size = np.diff(start)
    first = start[:-1]
    crossed = np.maximum(lower - upper, 0.0)
    excess = np.add.reduceat(lower, first) - 1.0
    shortage = 1.0 - np.add.reduceat(upper, first)
    contradictory = np.maximum.reduceat(crossed, first) > ROUNDING
    contradictory |= np.maximum(excess, shortage) > ROUNDING
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    if contradictory.any():
        at = np.repeat(contradictory, size)
        lower = np.where(at, np.clip(fallback[0], 0.0, 1.0), lower)
        upper = np.where(at, np.clip(fallback[1], 0.0, 1.0), upper)
    free = ~known
    some_free = np.logical_or.reduceat(free, first)
    unit = (size + 2) * 2.0**-52
    excess = np.add.reduceat(lower, first) - 1.0
    shortage = 1.0 - np.add.reduceat(upper, first)
    # What the largest unknown entry gives way, twice what rounding can have hidden.
    lowered = np.where(some_free & (excess > -2.0 * unit), np.maximum(excess, 0.0) + 4.0 * unit, 0.0)
    raised = np.where(some_free & (shortage > 0.0), shortage + 4.0 * unit, 0.0)
    lower = _give_way(lower, np.where(free, lower, -1.0), lowered, start, -1.0)
    upper = _give_way(upper, np.where(free, 1.0 - upper, -1.0), raised, start, 1.0)
    return FeasibleBounds(lower, np.maximum(lower, upper), contradictory)


def _give_way(
    bound: FloatArray, room: FloatArray, amount: FloatArray, start: OffsetArray, sign: float
) -> FloatArray:
    """Move the entry with most room of every choice by `amount`; all unknown ones where none has enough."""
    if not np.any(amount > 0.0):
        return bound
    size = np.diff(start)
    most = np.maximum.reduceat(room, start[:-1])
    enough = most >= amount
    chosen = (room >= 0.0) & ((room == np.repeat(most, size)) | ~np.repeat(enough, size))
    chosen &= np.repeat(amount > 0.0, size)
    step = np.repeat(amount, size)
    moved = down(bound - step) if sign < 0.0 else up(bound + step)
    result: FloatArray = np.where(chosen, np.clip(moved, 0.0, 1.0), bound)
    return result
