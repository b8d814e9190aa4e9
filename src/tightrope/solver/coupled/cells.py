"""Cells: the region cut by planes, each with rows, a frame and an interior point.

The root is the region itself: the rows of its system, then its box as rows +x ≤ upper, −x ≤ −lower. A child
adds the row of the plane that cut it from its parent: side·normal·x ≤ side·offset. For lifted coordinates
(products of parameters) planes are x_i = offset with x_i a free parameter, and a child may also use the
McCormick rows of its smaller box: [lower, upper] of the free parameters by the cuts, of the products by
interval arithmetic (`tightrope.region.envelopes`). Points of the true set satisfy all of these.

Rows are numbered: those of the region first, then the cuts of the path from the root, then the McCormick rows
of the last box.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearStatus, proves_empty
from tightrope.region.envelopes import envelope_rows, product_boxes
from tightrope.region.halfspaces import Halfspaces, ScaledHalfspaces
from tightrope.region.lazy_program import LazyProgram, deepest_point
from tightrope.region.polytope import Polytope
from tightrope.region.vertices import MOST_DIMENSIONS
from tightrope.solver.coupled.frame import Frame, Rows, frame_of

MOST_BOX_DIMENSIONS = 12
"""Beyond that even a box has too many vertices."""

_SMALLEST_DEPTH = 1e-9


@dataclass(frozen=True, eq=False)
class Split:
    """side·normal·x ≤ side·offset, side = ±1."""

    normal: FloatArray
    offset: float
    side: float

    @property
    def row(self) -> tuple[FloatArray, float]:
        return self.side * self.normal, self.side * self.offset


@dataclass(frozen=True, eq=False)
class Emptiness:
    """Σ multiplier·row contradicts the box of the cell: no point satisfies all rows (Farkas)."""

    rows: OffsetArray
    multipliers: FloatArray


@dataclass(frozen=True, eq=False)
class Shape:
    """What a cell is: the rows that bound it, its box, and its frame, or the proof that it is empty.

    `cuts` counts the planes on the path from the root. Without frame and proof nothing is known of the cell
    but what is known of its parent.
    """

    rows: Rows
    lower: FloatArray
    upper: FloatArray
    cuts: int
    frame: Frame | None
    emptiness: Emptiness | None = None


@dataclass(frozen=True, eq=False)
class Region:
    """The region's rows in order, and how its coordinates are made."""

    matrix: FloatArray
    bound: FloatArray
    lower: FloatArray
    upper: FloatArray
    interior: FloatArray
    free: int
    products: tuple[tuple[int, int], ...]

    @staticmethod
    def of(polytope: Polytope) -> Region:
        system = polytope.system
        eye = np.eye(system.size)
        witness = polytope.emptiness.witness
        assert witness is not None
        return Region(
            np.concatenate([system.matrix, eye, -eye]),
            np.concatenate([system.bound, system.upper, -system.lower]),
            system.lower,
            system.upper,
            witness,
            len(polytope.coordinates.free),
            polytope.coordinates.products,
        )

    def root(self) -> Shape:
        """The whole region."""
        rows = Rows(self.matrix, self.bound, np.arange(len(self.bound)))
        found = frame_of(rows, self.interior) if len(self.lower) <= MOST_DIMENSIONS else None
        frame, kept = (None, rows) if found is None else found
        return Shape(kept, self.lower, self.upper, 0, frame)

    def root_along(self, directions: FloatArray) -> Shape:
        """The region without most of its rows, for one with too many vertices: its box and the rows that
        bound these directions. Leaving rows out only enlarges it.
        """
        size = len(self.lower)
        if size > MOST_BOX_DIMENSIONS:
            return self.root()
        others = len(self.bound) - 2 * size
        nothing = np.zeros(others, np.int32)
        system = Halfspaces(
            self.matrix[:others], self.bound[:others], nothing, nothing, self.lower, self.upper
        )
        scaled = ScaledHalfspaces.of(system)
        program = LazyProgram(scaled)
        chosen = set(range(others, len(self.bound)))
        best: tuple[Frame, Rows] | None = None
        for direction in [np.zeros(size), *directions]:
            for aim in (direction * scaled.half, -direction * scaled.half):
                outcome = program.maximise(aim / max(float(np.abs(aim).max()), 1e-300))
                if outcome.status is LinearStatus.OPTIMAL:
                    binding = np.flatnonzero(outcome.multipliers > 0.0)
                    chosen.update(program.loaded[binding].tolist())
            keep = np.array(sorted(chosen), dtype=np.int64)
            found = frame_of(Rows(self.matrix[keep], self.bound[keep], keep), self.interior)
            if found is None:
                break
            best = found
        frame, kept = (
            (None, Rows(self.matrix, self.bound, np.arange(len(self.bound)))) if best is None else best
        )
        return Shape(kept, self.lower, self.upper, 0, frame)

    def child(self, parent: Shape, split: Split) -> Shape:
        """The part of a cell on one side of a plane."""
        normal, offset = split.row
        number = np.array([len(self.bound) + parent.cuts])
        ours = parent.rows.number < len(self.bound) + parent.cuts
        rows = Rows(parent.rows.matrix[ours], parent.rows.bound[ours], parent.rows.number[ours])
        rows = rows.with_rows(normal[None, :], np.array([offset]), number)
        lower, upper = parent.lower, parent.upper
        if not self.products:
            return self._framed(rows, lower, upper, parent, self._inside(parent, split))
        lower, upper = lower.copy(), upper.copy()
        at = int(np.flatnonzero(split.normal)[0])
        if split.side > 0:
            upper[at] = min(upper[at], split.offset)
        else:
            lower[at] = max(lower[at], split.offset)
        lower, upper = product_boxes(self.products, lower, upper)
        extra, bound = envelope_rows(self.products, lower, upper)
        first = len(self.bound) + parent.cuts + 1
        rows = rows.with_rows(extra, bound, first + np.arange(len(bound)))
        if np.any(lower > upper):
            return Shape(rows, lower, upper, parent.cuts + 1, None)
        nothing = np.zeros(len(rows.bound), np.int32)
        system = Halfspaces(rows.matrix, rows.bound, nothing, nothing, lower, upper)
        scaled = ScaledHalfspaces.of(system)
        status, point, depth, used, multipliers = deepest_point(scaled)
        ones = np.ones(len(lower))
        if (depth < 0.0 or status is LinearStatus.INFEASIBLE) and proves_empty(
            scaled.matrix[used], scaled.bound[used], -ones, ones, multipliers
        ):
            proof = Emptiness(rows.number[used], multipliers / scaled.factor[used])
            return Shape(rows, lower, upper, parent.cuts + 1, None, proof)
        inside = scaled.to_x(np.clip(point, -1.0, 1.0)) if depth > _SMALLEST_DEPTH else None
        return self._framed(rows, lower, upper, parent, inside)

    def _framed(
        self, rows: Rows, lower: FloatArray, upper: FloatArray, parent: Shape, inside: FloatArray | None
    ) -> Shape:
        found = None if inside is None else frame_of(rows, inside)
        frame, kept = (None, rows) if found is None else found
        return Shape(kept, lower, upper, parent.cuts + 1, frame)

    def _inside(self, parent: Shape, split: Split) -> FloatArray | None:
        """The middle of the parent's points on this side; its centre lies on the plane."""
        assert parent.frame is not None
        points = parent.frame.to_x(parent.frame.points)
        distance = split.side * (points @ split.normal - split.offset)
        there = distance < 0.0
        if not there.any():
            return None
        result: FloatArray = 0.5 * (points[there].mean(axis=0) + parent.frame.centre)
        return result
