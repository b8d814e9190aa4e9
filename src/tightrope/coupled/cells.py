"""Cells: parts of the region cut by planes, each with rows, coordinates and an interior point.

A child adds side·normal·x ≤ side·offset; with lifted coordinates planes cut a free parameter, and McCormick
rows of its box are added. Row numbers: region, cuts from the root on, McCormick rows of the last box.

*Frames.* x = centre + axes·y with y in conv(points) for every x of the cell: the cones of the claimed
simplices cover all directions (`tightrope.regions.polytope`), and a_i·(centre + axes·y_k) ≥ b_i for their
rows, with points pushed outward. Cones are proved in z = (x − middle)/half, half a power of two: no rounding.
*Expressions* are f(x) = middle + gradient·y ± fuzz for all |y| ≤ radius.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from tightrope.coupled.chain import Affine
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.linear_program import LinearStatus, proves_empty
from tightrope.numerics.rounding import error_factor, product_error, up
from tightrope.regions.halfspaces import Halfspaces, ScaledHalfspaces
from tightrope.regions.polytope import MOST_DIMENSIONS, EnclosingVertices, Polytope, enclosing_vertices
from tightrope.regions.tightening import coordinate_boxes, coordinate_envelopes
from tightrope.regions.walk import LazyProgram, deepest_point
from tightrope.statistics.coordinates import AffineFunctions, Coordinates

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
    """Σ multiplier·row contradicts the box (Farkas); without rows, bounds of a product contradict it."""

    rows: OffsetArray
    multipliers: FloatArray


@dataclass(frozen=True, eq=False)
class Shape:
    """A cell: the rows that bound it, its box, and its frame, or the proof that it is empty.

    `rows` carry the frame's points (all rows without a frame), `cuts` are the planes on the path from the
    root. Without frame and proof only the parent's bound is known.
    """

    rows: Rows
    lower: FloatArray
    upper: FloatArray
    cuts: Rows
    frame: Frame | None
    emptiness: Emptiness | None = None
    reduced: bool = False


_WHOLE: WeakKeyDictionary[Polytope, Shape] = WeakKeyDictionary()


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

    polytope: Polytope | None = None

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
            polytope,
        )

    @property
    def whole(self) -> Shape:
        """The whole region; found once for every polytope."""
        if self.polytope is None:
            return self.root()
        if self.polytope not in _WHOLE:
            _WHOLE[self.polytope] = self.root()
        return _WHOLE[self.polytope]

    @property
    def free(self) -> int:
        """How many of the first coordinates are free parameters."""
        return len(self.coordinates.free)

    @property
    def is_lifted(self) -> bool:
        return self.coordinates.is_lifted

    def root(self) -> Shape:
        """The whole region."""
        enclosure = (
            frame_of(self._rows, self.interior, self.upper - self.lower)
            if len(self.lower) <= MOST_DIMENSIONS
            else None
        )
        return self._shape(self._rows, self.lower, self.upper, self._nothing, enclosure)

    def root_along(self, directions: FloatArray) -> Shape:
        """The whole region without most of its rows, where it has too many vertices."""
        span = self.upper - self.lower
        enclosure = self._along(
            self._rows, self._nothing, self.lower, self.upper, self.interior, span, directions
        )
        shape = self._shape(self._rows, self.lower, self.upper, self._nothing, enclosure)
        return replace(shape, reduced=True)

    def child(self, parent: Shape, split: Split, directions: FloatArray) -> Shape:
        """The part of a cell on one side of a plane; `directions` matter most where rows must be left out."""
        normal, offset = split.row
        number = np.array([len(self.bound) + len(parent.cuts.bound)])
        cuts = parent.cuts.with_rows(normal[None, :], np.array([offset]), number)
        if not self.is_lifted:
            rows = parent.rows.with_rows(normal[None, :], np.array([offset]), number)
            inside, span = self._inside(parent, split)
            enclosure, reduced = None, parent.reduced
            if inside is not None and not reduced:
                enclosure = frame_of(rows, inside, span)
            if inside is not None and enclosure is None:
                every, reduced = self._rows.with_rows(cuts.matrix, cuts.bound, cuts.number), True
                enclosure = self._along(every, rows, parent.lower, parent.upper, inside, span, directions)
            shape = self._shape(rows, parent.lower, parent.upper, cuts, enclosure)
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
        """A cell of lifted coordinates: McCormick rows of its box, an inner point or the proof of none."""
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
        enclosure, reduced = None, parent.reduced
        if depth > _SMALLEST_DEPTH:
            inside = scaled.to_x(np.clip(point, -1.0, 1.0))
            rows = parent.rows.take(parent.rows.number < len(self.bound))
            rows = rows.with_rows(cuts.matrix, cuts.bound, cuts.number)
            rows = rows.with_rows(envelopes.matrix, envelopes.bound, envelopes.number)
            if not reduced:
                enclosure = frame_of(rows, inside, upper - lower)
            if enclosure is None:
                reduced = True
                enclosure = self._along(every, rows, lower, upper, inside, upper - lower, directions)
        return replace(self._shape(every, lower, upper, cuts, enclosure), reduced=reduced)

    @property
    def _rows(self) -> Rows:
        return Rows(self.matrix, self.bound, np.arange(len(self.bound)))

    @property
    def _nothing(self) -> Rows:
        return Rows(self.matrix[:0], self.bound[:0], np.zeros(0, np.int64))

    @staticmethod
    def _shape(
        rows: Rows, lower: FloatArray, upper: FloatArray, cuts: Rows, enclosure: tuple[Frame, Rows] | None
    ) -> Shape:
        frame, facets = (None, rows) if enclosure is None else enclosure
        return Shape(facets, lower, upper, cuts, frame)

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
        """A frame of few rows: `first` if that works, the box, all cuts, and what bounds the directions."""
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
        wanted: list[int] = []
        for direction in directions if best is not None else ():
            for aim in (direction * scaled.half, -direction * scaled.half):
                outcome = program.maximise(aim / max(float(np.abs(aim).max()), 1e-300))
                if outcome.status is LinearStatus.OPTIMAL:
                    share = outcome.multipliers / max(float(outcome.multipliers.sum()), 1e-300)
                    order = np.argsort(-share)[: np.count_nonzero(share > _SMALLEST_SHARE)]
                    wanted += program.loaded[order].tolist()
        wanted = [row for row in dict.fromkeys(wanted) if row not in chosen]
        every = frame_of(rows.take([*chosen, *wanted]), inside, span) if len(wanted) > 1 else None
        for row in wanted if every is None else ():  # one by one, as far as there are few enough vertices
            if time.perf_counter() > self.deadline:
                break
            candidate = frame_of(rows.take([*chosen, row]), inside, span)
            if candidate is not None:
                best, chosen = candidate, [*chosen, row]
        return every or best

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


def affine_at(functions: AffineFunctions, centre: FloatArray, axes: FloatArray, radius: float) -> Affine:
    """The functions in y; `axes` may have no column at all: then everything is a number."""
    middle = functions.at(centre)
    gradient = np.ascontiguousarray(functions.linear @ axes)
    steepness = np.linalg.norm(gradient, axis=1) * (1.0 + 1e-12)
    steepness = np.maximum(steepness, np.abs(gradient).max(axis=1, initial=0.0))  # where squares underflow
    terms = error_factor(len(centre) + 4)
    extent = np.abs(functions.constant) + np.abs(functions.linear) @ np.abs(centre)
    variation = np.linalg.norm(np.abs(functions.linear) @ np.abs(axes), axis=1) * radius
    fuzz = (functions.slack + terms * (extent + variation)) * (1.0 + 1e-9)
    return Affine(middle, gradient, steepness, fuzz, radius)


MOST_POINTS = 20_000
_PUSHES = (1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
_ROUNDS = 200
_AFRESH = 50


@dataclass(frozen=True, eq=False)
class Rows:
    """{ x : matrix·x ≤ bound }; `number` are the rows' positions in the numbering of the whole cell."""

    matrix: FloatArray
    bound: FloatArray
    number: OffsetArray

    def take(self, rows: OffsetArray | BoolArray | list[int]) -> Rows:
        return Rows(self.matrix[rows], self.bound[rows], self.number[rows])

    def with_rows(self, matrix: FloatArray, bound: FloatArray, number: OffsetArray) -> Rows:
        return Rows(
            np.concatenate([self.matrix, matrix]),
            np.concatenate([self.bound, bound]),
            np.concatenate([self.number, number]),
        )


@dataclass(frozen=True, eq=False)
class Frame:
    """See the module. `simplices[k]` are the numbers of the rows that point k was made of, and
    neighbours[k, j] is the point that shares all of them but the j-th. `radius` ≥ ‖points[k]‖."""

    centre: FloatArray
    axes: FloatArray
    points: FloatArray
    radius: float
    simplices: IndexArray
    neighbours: IndexArray

    def to_x(self, y: FloatArray) -> FloatArray:
        """Points in the region's coordinates, in plain float64."""
        return self.centre + y @ self.axes.T


def frame_of(rows: Rows, interior: FloatArray, span: FloatArray) -> tuple[Frame, Rows] | None:
    """The frame of a bounded cell around an interior point, and the rows that carry its points; `span` is
    about the extent of the cell in every coordinate.

    None where the cell is too flat, has too many vertices, or the proof does not succeed.
    """
    half = np.ldexp(1.0, np.frexp(np.maximum(0.5 * span, 1e-280))[1])
    matrix = rows.matrix * half
    bound = up(rows.bound - rows.matrix @ interior) + product_error(rows.matrix, interior[:, None])[:, 0]
    largest = np.abs(matrix).max(axis=1, initial=0.0)
    factor = np.ldexp(1.0, -np.frexp(np.where(largest > 0.0, largest, 1.0))[1])
    hull = enclosing_vertices(matrix * factor[:, None], up(bound) * factor, np.zeros(len(half)), MOST_POINTS)
    if hull is None:
        return None
    middle, shape = _ellipsoid(hull.points)
    if not np.all(np.isfinite(shape)):
        return None
    try:
        y = np.linalg.solve(shape, (hull.points - middle).T).T
    except np.linalg.LinAlgError:
        return None
    centre = interior + half * middle
    axes = half[:, None] * shape
    inside = y.mean(axis=0)
    facets = rows.take(hull.facets)
    for push in _PUSHES:
        points = inside + (1.0 + push) * (y - inside)
        if _encloses(rows, hull, centre, axes, points):
            radius = float(np.linalg.norm(points, axis=1).max()) * (1.0 + 1e-12)
            simplices = rows.number[hull.simplices].astype(np.int32)
            frame = Frame(centre, axes, points, radius, simplices, hull.neighbours.astype(np.int32))
            return frame, facets
    return None


def _ellipsoid(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(centre, shape) with points ⊂ centre + shape·(unit ball), of nearly the smallest volume."""
    count, size = points.shape
    if size == 1:
        low, high = float(points.min()), float(points.max())
        return np.array([0.5 * (low + high)]), np.array([[0.5 * (high - low)]])
    lifted = np.column_stack([points, np.ones(count)])
    weight = np.full(count, 1.0 / count)
    for round_ in range(_ROUNDS):
        if round_ % _AFRESH == 0:
            moment = (lifted * weight[:, None]).T @ lifted
            try:
                inverse = np.linalg.inv(moment)
            except np.linalg.LinAlgError:
                break
            distance = np.einsum("ki,ki->k", lifted @ inverse, lifted)
        far = int(distance.argmax())
        excess = float(distance[far])
        if excess <= (size + 1) * 1.01:
            break
        step = (excess - size - 1.0) / ((size + 1.0) * (excess - 1.0))
        weight *= 1.0 - step
        weight[far] += step
        # The moment changes by a rank of one, and so does its inverse.
        towards = inverse @ lifted[far]
        share = step / (1.0 - step + step * excess)
        distance = (distance - share * (lifted @ towards) ** 2) / (1.0 - step)
        inverse = (inverse - share * np.outer(towards, towards)) / (1.0 - step)
    centre = weight @ points
    spread = points - centre
    covariance = (spread * weight[:, None]).T @ spread * size
    value, vector = np.linalg.eigh(covariance)
    shape = vector * np.sqrt(np.maximum(value, 1e-300))
    y = np.linalg.solve(shape, spread.T)
    return centre, shape * float(np.linalg.norm(y, axis=0).max())


def _encloses(
    rows: Rows, hull: EnclosingVertices, centre: FloatArray, axes: FloatArray, points: FloatArray
) -> bool:
    """Whether a_i·(centre + axes·y_k) ≥ b_i for all rows of all simplices, whatever was rounded."""
    moved = rows.matrix @ axes
    size = rows.matrix.shape[1]
    own, right = moved[hull.simplices], rows.bound[hull.simplices]
    shift = (rows.matrix @ centre)[hull.simplices]
    value = shift + (own @ points[:, :, None])[:, :, 0]
    extent = (np.abs(rows.matrix) @ np.abs(centre))[hull.simplices]
    reach = (np.abs(rows.matrix) @ np.abs(axes))[hull.simplices]
    extent += (reach @ np.abs(points)[:, :, None])[:, :, 0] + np.abs(right)
    return bool(np.all(value - error_factor(2 * size + 8) * extent >= right))
