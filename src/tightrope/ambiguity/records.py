"""What compiled loops take of a model, and the room they need for one choice, as records.

A loop takes records and unpacks them where it begins. The steps inside it take single arrays: whenever a
record is handed on, numba counts a reference for each array in it, which took grids 1.5 times as long and
acyclic models five times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.ambiguity.o_maximization import OrderArray
from tightrope.ambiguity.rectangular_inner import find_or_add
from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray

MOST_VERTICES = 300_000
POOL_BYTES = 2**28


class ModelArrays(NamedTuple):
    """Choices, transitions and `lower ≤ p ≤ upper`; `plain`: both bounds are the same array."""

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    lower: FloatArray
    upper: FloatArray
    plain: bool


class Scratch(NamedTuple):
    """`order[first:last]`: the offsets of a choice's successors as they were sorted last; `key` and `mass`
    are as long as the longest choice.
    """

    order: OrderArray
    key: FloatArray
    mass: FloatArray


class Shape(NamedTuple):
    """What nature's problem needs of a region, made by `solver.nature.region_shape`; packed as `vertex_walk`
    and `rectangular_inner` say.

    `joint[c]`: choice c goes beyond its intervals. `basis`: the rows of the first vertex of a polytope.
    """

    expression: IndexArray
    affine: FloatArray
    joint: BoolArray
    rows: FloatArray
    reach: FloatArray
    ball: FloatArray
    basis: IndexArray

    def open_pool(self, capacity: int | None = None) -> VertexPool:
        """A pool that knows the first vertex; its memory is touched only as it fills."""
        size = len(self.reach)
        most = int(min(MOST_VERTICES, POOL_BYTES // (8 * size * (size + 3)))) if len(self.rows) else 1
        room = most if capacity is None else capacity
        pool = VertexPool(
            np.full(len(self.joint), -1, np.int32),
            np.empty((room, size * (size + 1) + 1)),
            np.empty((room, 2 * size), np.int32),
            np.full(1 << (2 * room - 1).bit_length(), -1, np.int32),
            np.zeros(3, np.int64),
        )
        if len(self.rows):
            stored = pool.vertex, pool.link, pool.table, pool.used
            if len(self.basis) < size or find_or_add(self.rows, *stored, self.basis) != 0:
                raise CannotCertify("no vertex of the region could be computed in float64")
        return pool


class VertexPool(NamedTuple):
    """Vertices met so far (`solver.nature.vertex_walk`); `vertex_of[c]`: where choice c was last optimal,
    −1 at first.
    """

    vertex_of: IndexArray
    vertex: FloatArray
    link: IndexArray
    table: IndexArray
    used: OffsetArray


class RegionArrays(NamedTuple):
    """The region of rectangular sets, the vertices met so far, and room for one direction."""

    shape: Shape
    pool: VertexPool
    direction: FloatArray
    work: FloatArray


class NatureArrays(NamedTuple):
    """All of it: what loops over rectangular sets take."""

    model: ModelArrays
    scratch: Scratch
    region: RegionArrays
