"""A cell of the region in coordinates of its own: x = centre + axes·y, with y in the hull of known points.

The claim is exact: every x with rows.matrix·x ≤ rows.bound is centre + axes·y (real arithmetic) with y in
conv(points). Its proof is that of `tightrope.regions.vertices`: the cones of the claimed simplices cover all
directions, and every point lies on or beyond the rows of its simplex, a_i·(centre + axes·y_k) ≥ b_i. Points
are pushed outward by a relative 10⁻¹¹, more where the cell is so thin that rounding asks for it, which makes
the second part provable in float64 and costs nothing that matters.

Cones do not change under a linear map, so they are proved in coordinates z = (x − middle)/half with half a
power of two: the rows in z are then the rows in x, without rounding.

The axes come from the ellipsoid of smallest volume around the points (Khachiyan's iteration, in plain
float64): nonlinear terms are bounded on balls, and this one is no larger than it must be.

The expressions of a chain around a centre: f(x) = middle + gradient·y ± fuzz where x = centre + axes·y.

`centre` and `axes` are float64 numbers and x = centre + axes·y holds exactly by definition. `fuzz` covers the
slack of the coordinates' float image and the rounding of middle and gradient for all |y| ≤ radius.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.coupled.rows import Affine
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.rounding import error_factor, product_error, up
from tightrope.regions.vertices import EnclosingVertices, enclosing_vertices
from tightrope.statistics.coordinates import AffineFunctions


def affine_at(functions: AffineFunctions, centre: FloatArray, axes: FloatArray, radius: float) -> Affine:
    """The functions in y; `axes` may have no column at all: then everything is a number."""
    middle = functions.constant + functions.linear @ centre
    gradient = np.ascontiguousarray(functions.linear @ axes)
    steepness = np.linalg.norm(gradient, axis=1) * (1.0 + 1e-12)
    steepness = np.maximum(steepness, np.abs(gradient).max(axis=1, initial=0.0))  # where squares underflow
    terms = error_factor(len(centre) + 4)
    extent = np.abs(functions.constant) + np.abs(functions.linear) @ np.abs(centre)
    swing = np.linalg.norm(np.abs(functions.linear) @ np.abs(axes), axis=1) * radius
    fuzz = (functions.slack + terms * (extent + swing)) * (1.0 + 1e-9)
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
    neighbours[k, j] is the point that shares all of them but the j-th. `radius` ≥ ‖points[k]‖.
    """

    centre: FloatArray
    axes: FloatArray
    points: FloatArray
    radius: float
    simplices: IndexArray
    neighbours: IndexArray

    def to_x(self, y: FloatArray) -> FloatArray:
        """Points in the region's coordinates, in plain float64."""
        result: FloatArray = self.centre + y @ self.axes.T
        return result


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
    found = enclosing_vertices(matrix * factor[:, None], up(bound) * factor, np.zeros(len(half)), MOST_POINTS)
    if found is None:
        return None
    middle, shape = _ellipsoid(found.points)
    if not np.all(np.isfinite(shape)):
        return None
    try:
        y = np.linalg.solve(shape, (found.points - middle).T).T
    except np.linalg.LinAlgError:
        return None
    centre = interior + half * middle
    axes = half[:, None] * shape
    inside = y.mean(axis=0)
    kept = rows.take(found.facets)
    for push in _PUSHES:
        points = inside + (1.0 + push) * (y - inside)
        if _encloses(rows, found, centre, axes, points):
            radius = float(np.linalg.norm(points, axis=1).max()) * (1.0 + 1e-12)
            simplices = rows.number[found.simplices].astype(np.int32)
            frame = Frame(centre, axes, points, radius, simplices, found.neighbours.astype(np.int32))
            return frame, kept
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
    rows: Rows, found: EnclosingVertices, centre: FloatArray, axes: FloatArray, points: FloatArray
) -> bool:
    """Whether a_i·(centre + axes·y_k) ≥ b_i for all rows of all simplices, whatever was rounded."""
    moved = rows.matrix @ axes
    size = rows.matrix.shape[1]
    own, right = moved[found.simplices], rows.bound[found.simplices]
    shift = (rows.matrix @ centre)[found.simplices]
    value = shift + (own @ points[:, :, None])[:, :, 0]
    extent = (np.abs(rows.matrix) @ np.abs(centre))[found.simplices]
    reach = (np.abs(rows.matrix) @ np.abs(axes))[found.simplices]
    extent += (reach @ np.abs(points)[:, :, None])[:, :, 0] + np.abs(right)
    return bool(np.all(value - error_factor(2 * size + 8) * extent >= right))
