"""What compiled loops take of a model, and the room they need for one choice, as records.

A loop takes records and unpacks them where it begins. The steps inside it take single arrays: whenever a
record is handed on, numba counts a reference for each array in it, which took grids 1.5 times as long and
acyclic models five times.
"""

from __future__ import annotations

from typing import NamedTuple

from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.solver.nature.pouring import OrderArray
from tightrope.solver.nature.region_shape import Shape, VertexPool


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
