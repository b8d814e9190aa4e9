"""Cells: the region cut by planes, each with rows, a frame and an interior point.

The root is the region itself: the rows of its system, then its box as rows +x ≤ upper, −x ≤ −lower. A child
adds the row of the plane that cut it from its parent: side·normal·x ≤ side·offset. For lifted coordinates
(products of parameters) planes are x_i = offset with x_i a free parameter, and a child may also use the
McCormick rows of its smaller box: [lower, upper] of the free parameters by the cuts, of the products by
interval arithmetic (`tightrope.regions.envelopes`). Points of the true set satisfy all of these.

Rows are numbered: those of the region first, then the cuts of the path from the root, then the McCormick rows
of the last box.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from tightrope.coupled.frame import Frame, Rows, frame_of
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearStatus, proves_empty
from tightrope.regions.envelopes import coordinate_boxes, coordinate_envelopes
from tightrope.regions.halfspaces import Halfspaces, ScaledHalfspaces
from tightrope.regions.lazy_program import LazyProgram, deepest_point
from tightrope.regions.polytope import Polytope
from tightrope.regions.vertices import MOST_DIMENSIONS
from tightrope.statistics.coordinates import Coordinates

MOST_BOX_DIMENSIONS = 12
"""Beyond that even a box has too many vertices."""

_SMALLEST_DEPTH = 1e-9
_SMALLEST_SHARE = 1e-4


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
    """Σ multiplier·row contradicts the box of the cell: no point satisfies all rows (Farkas). Without any row
    the box contradicts itself: a product of two bounds lies outside the bounds of the product.
    """

    rows: OffsetArray
    multipliers: FloatArray


@dataclass(frozen=True, eq=False)
class Shape:
    """What a cell is: the rows that bound it, its box, and its frame, or the proof that it is empty.

    `rows` are those that carry the frame's points (all of them without a frame), `cuts` those of the planes
    on the path from the root. Without frame and proof nothing is known of the cell but what is known of its
    parent.
    """

    rows: Rows
    lower: FloatArray
    upper: FloatArray
    cuts: Rows
    frame: Frame | None
    emptiness: Emptiness | None = None
    reduced: bool = False


@dataclass(frozen=True, eq=False)
class Region:
    """The region's rows in order, and how its coordinates are made."""

    matrix: FloatArray
    bound: FloatArray
    lower: FloatArray
    upper: FloatArray
    interior: FloatArray
    coordinates: Coordinates
    deadline: float = float("inf")
    """No further rows are tried for a cell after this moment of `time.perf_counter`."""

    @staticmethod
    def of(polytope: Polytope, deadline: float = float("inf")) -> Region:
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
            polytope.coordinates,
            deadline,
        )

    @property
    def free(self) -> int:
        """How many of the first coordinates are free parameters."""
        return len(self.coordinates.free)

    @property
    def is_lifted(self) -> bool:
        return self.coordinates.is_lifted

    def root(self) -> Shape:
        """The whole region."""
        found = (
            frame_of(self._rows, self.interior, self.upper - self.lower)
            if len(self.lower) <= MOST_DIMENSIONS
            else None
        )
        return self._shape(self._rows, self.lower, self.upper, self._nothing, found)

    def root_along(self, directions: FloatArray) -> Shape:
        """The whole region without most of its rows, where it has too many vertices."""
        span = self.upper - self.lower
        found = self._along(
            self._rows, self._nothing, self.lower, self.upper, self.interior, span, directions
        )
        shape = self._shape(self._rows, self.lower, self.upper, self._nothing, found)
        return replace(shape, reduced=True)

    def child(self, parent: Shape, split: Split, directions: FloatArray) -> Shape:
        """The part of a cell on one side of a plane; `directions` matter most where rows must be left out."""
        normal, offset = split.row
        number = np.array([len(self.bound) + len(parent.cuts.bound)])
        cuts = parent.cuts.with_rows(normal[None, :], np.array([offset]), number)
        if not self.is_lifted:
            rows = parent.rows.with_rows(normal[None, :], np.array([offset]), number)
            inside, span = self._inside(parent, split)
            found, reduced = None, parent.reduced
            if inside is not None and not reduced:
                found = frame_of(rows, inside, span)
            if inside is not None and found is None:
                every, reduced = self._rows.with_rows(cuts.matrix, cuts.bound, cuts.number), True
                found = self._along(every, rows, parent.lower, parent.upper, inside, span, directions)
            shape = self._shape(rows, parent.lower, parent.upper, cuts, found)
            return replace(shape, reduced=reduced)
        lower, upper = parent.lower.copy(), parent.upper.copy()
        at = int(np.flatnonzero(split.normal)[0])
        if split.side > 0:
            upper[at] = min(upper[at], split.offset)
        else:
            lower[at] = max(lower[at], split.offset)
        return self._relax_child(parent, cuts, *coordinate_boxes(self.coordinates, lower, upper), directions)

    def _relax_child(
        self, parent: Shape, cuts: Rows, lower: FloatArray, upper: FloatArray, directions: FloatArray
    ) -> Shape:
        """A cell of lifted coordinates: the McCormick rows of its own box, and an inner point by linear
        programming, or the proof that there is none.
        """
        first = len(self.bound) + len(cuts.bound)
        envelope, bound = coordinate_envelopes(self.coordinates, lower, upper)
        envelopes = Rows(envelope, bound, first + np.arange(len(bound)))
        every = self._rows.with_rows(cuts.matrix, cuts.bound, cuts.number)
        every = every.with_rows(envelopes.matrix, envelopes.bound, envelopes.number)
        if np.any(lower > upper):
            return Shape(every, lower, upper, cuts, None, Emptiness(np.zeros(0, np.int64), np.zeros(0)))
        scaled = _scale(every, lower, upper)
        status, point, depth, used, multipliers = deepest_point(scaled)
        ones = np.ones(len(lower))
        if (depth < 0.0 or status is LinearStatus.INFEASIBLE) and proves_empty(
            scaled.matrix[used], scaled.bound[used], -ones, ones, multipliers
        ):
            proof = Emptiness(every.number[used], multipliers / scaled.factor[used])
            return Shape(every, lower, upper, cuts, None, proof)
        found, reduced = None, parent.reduced
        if depth > _SMALLEST_DEPTH:
            inside = scaled.to_x(np.clip(point, -1.0, 1.0))
            rows = parent.rows.take(parent.rows.number < len(self.bound))
            rows = rows.with_rows(cuts.matrix, cuts.bound, cuts.number)
            rows = rows.with_rows(envelopes.matrix, envelopes.bound, envelopes.number)
            if not reduced:
                found = frame_of(rows, inside, upper - lower)
            if found is None:
                reduced = True
                found = self._along(every, rows, lower, upper, inside, upper - lower, directions)
        return replace(self._shape(every, lower, upper, cuts, found), reduced=reduced)

    @property
    def _rows(self) -> Rows:
        return Rows(self.matrix, self.bound, np.arange(len(self.bound)))

    @property
    def _nothing(self) -> Rows:
        return Rows(self.matrix[:0], self.bound[:0], np.zeros(0, np.int64))

    @staticmethod
    def _shape(
        rows: Rows, lower: FloatArray, upper: FloatArray, cuts: Rows, found: tuple[Frame, Rows] | None
    ) -> Shape:
        frame, kept = (None, rows) if found is None else found
        return Shape(kept, lower, upper, cuts, frame)

    def _along(
        self,
        rows: Rows,
        first: Rows,
        lower: FloatArray,
        upper: FloatArray,
        inside: FloatArray,
        span: FloatArray,
        directions: FloatArray,
    ) -> tuple[Frame, Rows] | None:
        """A frame of few of the rows: those in `first` (if that works), the region's box, all cuts, and those
        that bound the directions, each where it does no harm. Leaving rows out only enlarges the cell.
        """
        size = len(lower)
        if size > MOST_BOX_DIMENSIONS:
            return None
        scaled = _scale(rows, lower, upper)
        program = LazyProgram(scaled)
        chosen = [*range(len(self.bound) - 2 * size, len(self.bound))]
        chosen += np.flatnonzero(rows.number >= len(self.bound)).tolist()
        more = sorted({*chosen, *np.flatnonzero(np.isin(rows.number, first.number)).tolist()})
        best = frame_of(rows.take(more), inside, span)
        if best is None:
            best = frame_of(rows.take(chosen), inside, span)
        else:
            chosen = more
        for direction in directions if best is not None else ():
            for aim in (direction * scaled.half, -direction * scaled.half):
                outcome = program.maximise(aim / max(float(np.abs(aim).max()), 1e-300))
                if outcome.status is not LinearStatus.OPTIMAL:
                    continue
                share = outcome.multipliers / max(float(outcome.multipliers.sum()), 1e-300)
                order = np.argsort(-share)[: np.count_nonzero(share > _SMALLEST_SHARE)]
                for row in program.loaded[order].tolist():
                    if time.perf_counter() > self.deadline:
                        return best
                    found = None if row in chosen else frame_of(rows.take([*chosen, row]), inside, span)
                    if found is not None:
                        best = found
                        chosen.append(row)
        return best

    def _inside(self, parent: Shape, split: Split) -> tuple[FloatArray | None, FloatArray]:
        """The middle of the parent's points on this side (its centre lies on the plane), and their extent."""
        assert parent.frame is not None
        points = parent.frame.to_x(parent.frame.points)
        there = points[split.side * (points @ split.normal - split.offset) < 0.0]
        if len(there) == 0:
            return None, parent.upper - parent.lower
        inside: FloatArray = 0.5 * (there.mean(axis=0) + parent.frame.centre)
        return inside, np.abs(there - inside).max(axis=0)


def _scale(rows: Rows, lower: FloatArray, upper: FloatArray) -> ScaledHalfspaces:
    nothing = np.zeros(len(rows.bound), np.int32)
    return ScaledHalfspaces.of(Halfspaces(rows.matrix, rows.bound, nothing, nothing, lower, upper))
