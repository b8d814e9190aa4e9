"""A region and a model's expressions prepared for the loop: x = origin + scale·z, f_e ≈ middle_e + slope_e·z.

* `fuzz` of e bounds |f_e − (middle_e + slope_e·z)| for the true z and the rounding in the loop: Σ δ_j f_j is
  off by at most Σ |δ_j|·fuzz_j.
* A polytope gets its box as rows. Lifted coordinates also get the sets' bounds on expressions that the
  relaxation exceeds; these hold of the truth too. Bounds are raised by a few 10⁻¹¹, each differently, against
  degenerate vertices: outward.
* For an ellipsoid ‖z‖_V ≤ β let V ≈ LLᵀ and G ≈ L⁻¹. With ε ≥ ‖GVGᵀ − 1‖, (1−ε)·G⁻¹G⁻ᵀ ≤ V ≤ (1+ε)·G⁻¹G⁻ᵀ, so
  β‖Gq‖/√(1+ε) ≤ max q·z ≤ β‖Gq‖/√(1−ε). Cuts by the domain are left to the intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.ambiguity.rectangular_inner import Shape
from tightrope.ambiguity.sets import Sets
from tightrope.errors import InputError
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.rounding import error_factor, product_error, up
from tightrope.regions.bounds import function_bounds
from tightrope.regions.ellipsoid import Ellipsoid
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces, rows_between
from tightrope.regions.region import Region
from tightrope.statistics.coordinates import AffineFunctions

MOST_CUTS = 500
_PERTURBATION = 1e-11


def joint_choices(sets: Sets) -> BoolArray:
    """Choices with at least three unknown successors; with fewer, intervals with Σp = 1 say everything."""
    signatures = sets.model.signatures
    unknown = ~sets.model.expressions.is_constant[signatures.expression]
    count = np.add.reduceat(unknown.astype(np.int64), signatures.start[:-1])
    return (count >= 3)[signatures.of_choice]


def shape_of(sets: Sets) -> Shape:
    """The shape of rectangular sets over any region."""
    region = sets.region
    assert region is not None
    functions = region.coordinates.functions(sets.model.expressions)
    if isinstance(region, Ellipsoid):
        return _ellipsoid(sets, region, functions)
    if region.facets is None:
        raise InputError(f"a region of kind '{region.kind.value}' has neither facets nor a closed form")
    return _polytope(sets, region, region.facets, functions)


def _polytope(
    sets: Sets, region: Region, facets: tuple[FloatArray, FloatArray], functions: AffineFunctions
) -> Shape:
    lower, upper = region.bounding_box
    witness = region.emptiness.witness
    origin = 0.5 * (lower + upper) if witness is None else np.clip(witness, lower, upper)
    scale = np.maximum(up(0.5 * (upper - lower)), 1e-200)
    matrix, bound = facets
    count, size = len(bound), len(origin)
    unnamed = np.zeros(count, np.int32)
    system = Halfspaces(matrix, bound, unnamed, unnamed, lower, upper)
    system = system.with_rows(np.eye(size), upper, Origin.DOMAIN).with_rows(
        -np.eye(size), -lower, Origin.DOMAIN
    )
    if region.coordinates.is_lifted:
        system = system.with_rows(*_cuts(sets, region, functions), Origin.CUT)
    scaled = ScaledHalfspaces.of(system, origin, scale)
    spread = 0.5 + np.random.default_rng(11).random(len(scaled.bound))
    distance = np.maximum(scaled.bound, 0.0)
    distance = up(distance * (1.0 + _PERTURBATION * spread) + 0.01 * _PERTURBATION * spread)
    reach = up(up(np.maximum(upper - origin, origin - lower)) / scale) * (1.0 + 1e-9) + 1e-9
    frame = _Frame(origin, scale, reach, np.zeros(size))
    affine = _affine(sets, functions, frame)
    rows = np.ascontiguousarray(np.column_stack([scaled.matrix, distance]))
    basis = _first_basis(scaled.matrix, distance)
    nothing = np.zeros((0, 0))
    shape = Shape(sets.model.expression, affine, joint_choices(sets), rows, reach, nothing, basis)
    shape.open_pool(1)
    return shape


def _ellipsoid(sets: Sets, region: Ellipsoid, functions: AffineFunctions) -> Shape:
    squares = region.squares
    size = len(squares.centre)
    shift = squares.scale * squares.centre
    origin = squares.origin + shift
    off = error_factor(3) * (np.abs(squares.origin) + np.abs(shift))
    factor = np.linalg.inv(np.linalg.cholesky(squares.matrix)).astype(np.float64)
    half = factor @ squares.matrix
    product = half @ factor.T
    error = product_error(half, factor.T) + product_error(factor, squares.matrix) @ np.abs(factor.T)
    epsilon = float(np.linalg.norm(np.abs(product - np.eye(size)) + error)) * (1.0 + 1e-9) + 1e-15
    if not epsilon < 0.5:
        raise InputError("the ellipsoid is too flat for float64: its matrix cannot be factored")
    radius = squares.radius / np.sqrt(1.0 - epsilon) * (1.0 + 1e-12)
    inner = squares.radius / np.sqrt(1.0 + epsilon) * (1.0 - 1e-12)
    reach = radius * np.linalg.norm(factor, axis=0) * (1.0 + 1e-9)
    ball = np.vstack([factor, np.full((1, size), radius), np.full((1, size), inner)])
    affine = _affine(sets, functions, _Frame(origin, squares.scale, reach, off))
    nothing, no_rows = np.zeros(0, np.int32), np.zeros((0, size + 1))
    ball = np.ascontiguousarray(ball)
    return Shape(sets.model.expression, affine, joint_choices(sets), no_rows, reach, ball, nothing)


class _Frame(NamedTuple):
    """x = origin + scale·z, |z| ≤ reach; `off` bounds the rounding of `origin` itself, in each coordinate."""

    origin: FloatArray
    scale: FloatArray
    reach: FloatArray
    off: FloatArray


def _affine(sets: Sets, functions: AffineFunctions, frame: _Frame) -> FloatArray:
    """(middle, fuzz, slope …) of every expression."""
    model, size = sets.model, len(frame.origin)
    middle = functions.constant + functions.linear @ frame.origin
    slope = functions.linear * frame.scale
    extent = np.abs(functions.constant) + np.abs(functions.linear) @ np.abs(frame.origin)
    variation = np.abs(slope) @ frame.reach
    fuzz = functions.slack + error_factor(size + 2) * extent + error_factor(2) * variation
    fuzz += np.abs(functions.linear) @ frame.off
    longest = int(np.diff(model.transition_start).max(initial=1))
    fuzz += error_factor(longest + size + 10) * (np.abs(middle) + variation + 1.0)
    fuzz = up(fuzz * (1.0 + 1e-9))
    return np.column_stack([middle, fuzz, slope])


def _cuts(sets: Sets, region: Region, functions: AffineFunctions) -> tuple[FloatArray, FloatArray]:
    """The bounds of the sets as rows, for the expressions that the region exceeds most."""
    model = sets.model
    count = len(model.expressions)
    lower, upper = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(lower, model.expression, sets.lower)
    np.maximum.at(upper, model.expression, sets.upper)
    at = np.flatnonzero((lower <= upper) & ~model.expressions.is_constant)
    low, high = function_bounds(region, functions.take(at))
    beyond = np.concatenate([lower[at] - low, high - upper[at]])
    width = np.tile(np.maximum(upper[at] - lower[at], 1e-12), 2)
    order = np.argsort(-beyond / width, kind="stable")[:MOST_CUTS]
    chosen = order[beyond[order] > 1e-9 * width[order]]
    below, above = chosen[chosen < len(at)], chosen[chosen >= len(at)] - len(at)
    linear, above_bound, below_bound = rows_between(functions.take(at), lower[at], upper[at])
    matrix = np.concatenate([-linear[below], linear[above]])
    return matrix, np.concatenate([below_bound[below], above_bound[above]])


def _first_basis(matrix: FloatArray, bound: FloatArray) -> IndexArray:
    """Rows of a vertex: from 0, which lies inside, to a wall, then along it to the next, d times."""
    size = matrix.shape[1]
    z = np.zeros(size)
    chosen: list[int] = []
    null: npt.NDArray[np.float64] = np.eye(size)
    for _ in range(size):
        direction = null[0]
        best = -1
        for side in (1.0, -1.0):
            slope = side * (matrix @ direction)
            slope[chosen] = 0.0
            blocking = np.flatnonzero(slope > 1e-9)
            if len(blocking) == 0:
                continue
            step = np.maximum(bound[blocking] - matrix[blocking] @ z, 0.0) / slope[blocking]
            best = int(blocking[np.argmin(step)])
            z = z + side * direction * float(step.min())
            break
        if best < 0:
            break
        chosen.append(best)
        null = _null_space(matrix[chosen])
    rows: OffsetArray = np.array(sorted(chosen), dtype=np.int64)
    return rows.astype(np.int32)


def _null_space(rows: FloatArray) -> npt.NDArray[np.float64]:
    _, _, transposed = np.linalg.svd(rows, full_matrices=True)
    return transposed[len(rows) :].astype(np.float64)
