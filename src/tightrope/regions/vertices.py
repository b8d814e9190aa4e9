"""Vertices of a polytope by Qhull, with a proof that they enclose it.

Qhull intersects half-spaces in floating point; neither its vertices nor their completeness can be taken on
trust. What it returns is used as a claim: a list of simplices I (sets of d rows) with, for each, d
neighbours that share all rows but one. The claim is then proved.

*Covering lemma.* Let finitely many simplicial cones cone(a_i : i ∈ I) be given such that each is
full-dimensional and every facet of each is shared with another cone of the list on the other side of it.
Then the cones cover ℝᵈ. (Walk along a generic segment from inside a cone to a point that is not covered,
avoiding faces of codimension 2: the last covered point lies inside a facet of some cone, and the neighbour
covers what comes next.)

*Enclosure.* For x with a_i·x ≤ b_i and a direction g ∈ cone(a_i : i ∈ I), g = Σλ_i a_i with λ ≥ 0 and
g·x ≤ Σλ_i b_i = g·v_I where v_I solves a_i·v = b_i on I. As the cones cover all directions, the polytope
lies in the convex hull of the v_I.

All conditions are checked with error bounds in float64: with R ≈ A_I⁻¹ and ε = ‖1 − A_I R‖_∞ < 1, A_I is
regular, entries of a_n A_I⁻¹ are off by at most ‖a_n R‖₁ ε/(1−ε), and ‖v_I − ṽ‖_∞ ≤ ‖R‖_∞ ‖b_I − A_I
ṽ‖_∞/(1−ε). The largest of the last is `error`: the polytope lies in the convex hull of the float vertices,
widened by it in every coordinate.

Where more than d facets meet in a vertex the cones are flat and the check fails; then bounds are raised by
tiny different amounts (which only enlarges the polytope) and Qhull is asked again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up

MOST_DIMENSIONS = 7
_PERTURBATIONS = (0.0, 1e-11, 1e-9, 1e-7)


@dataclass(frozen=True, eq=False, repr=False)
class EnclosingVertices(Record):
    """{ y : matrix·y ≤ bound } ⊆ conv(points) + [−error, error]ᵈ; `facets` are the rows that carry a
    vertex. Point k is where the rows simplices[k] meet; neighbours[k, j] shares all of them but the j-th.
    """

    points: FloatArray
    error: float
    facets: OffsetArray
    simplices: OffsetArray
    neighbours: OffsetArray


def enclosing_vertices(
    matrix: FloatArray, bound: FloatArray, interior: FloatArray, most: int
) -> EnclosingVertices | None:
    """Vertices of the bounded polytope matrix·y ≤ bound around an interior point.

    None where the proof does not succeed or there would be more than `most` of them.
    """
    shift = matrix @ interior
    distance = up(up(bound - shift) + product_error(matrix, interior[:, None])[:, 0])
    if np.any(bound - shift <= 0.0):
        return None
    spread = np.random.default_rng(7).random(len(bound))
    for size in _PERTURBATIONS:
        raised = distance * (1.0 + size * (0.5 + spread)) if size else distance
        raised = up(raised)
        found = _in_one_dimension(matrix, raised) if matrix.shape[1] == 1 else _by_hull(matrix, raised, most)
        if isinstance(found, EnclosingVertices):
            error = found.error + 2.0 * UNIT * float(np.abs(found.points).max() + np.abs(interior).max())
            return replace(found, points=found.points + interior, error=error)
        if found == "many":
            return None
    return None


def _in_one_dimension(matrix: FloatArray, bound: FloatArray) -> EnclosingVertices:
    column = matrix[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(column != 0.0, bound / column, np.nan)
    above = np.where(column > 0.0, ratio, np.inf)
    below = np.where(column < 0.0, ratio, -np.inf)
    facets = np.array([int(below.argmax()), int(above.argmin())])
    points = ratio[facets][:, None]
    error = 2.0 * UNIT * float(np.abs(points).max())
    return EnclosingVertices(points, error, facets, facets[:, None], np.array([[1], [0]]))


def _by_hull(matrix: FloatArray, bound: FloatArray, most: int) -> EnclosingVertices | str:
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(matrix / bound[:, None], qhull_options="Qt Qx" if matrix.shape[1] > 4 else "Qt")
    except QhullError:
        return "failed"
    if len(hull.simplices) > most:
        return "many"
    return prove_vertices(matrix, bound, hull.simplices, hull.neighbors)


def prove_vertices(
    matrix: FloatArray, bound: FloatArray, simplices: OffsetArray, neighbours: OffsetArray
) -> EnclosingVertices | str:
    """The vertices of the claimed simplices, if their cones provably cover all directions, else "failed"."""
    count, size = simplices.shape
    if count == 0 or neighbours.min() < 0:
        return "failed"
    rows, right = matrix[simplices], bound[simplices]
    try:
        inverse = np.linalg.inv(rows)
    except np.linalg.LinAlgError:
        return "failed"
    rounding = error_factor(size + 2)
    norm = np.abs(inverse).sum(axis=2).max(axis=1)
    defect = np.abs(np.eye(size) - rows @ inverse).sum(axis=2).max(axis=1)
    defect += 2.0 * rounding * (np.abs(rows) @ np.abs(inverse)).sum(axis=2).max(axis=1)
    if not np.all(defect < 1e-3):
        return "failed"
    growth = defect / (1.0 - defect) * (1.0 + 1e-9)

    # Neighbour k of a simplex must have all its rows but the k-th, and its other row on the far side.
    # Rows of a simplex differ (it is regular), so sums name the newcomer, and sorted rows show it is one.
    across = simplices[neighbours].astype(np.int64)
    newcomer = across.sum(axis=2) - simplices.sum(axis=1, dtype=np.int64)[:, None] + simplices
    claimed = np.repeat(simplices[:, None, :].astype(np.int64), size, axis=1)
    claimed[:, np.arange(size), np.arange(size)] = newcomer
    across.sort(axis=2)
    claimed.sort(axis=2)
    if not np.array_equal(across, claimed) or np.any(newcomer[:, :, None] == simplices[:, None, :]):
        return "failed"
    weights = matrix[newcomer] @ inverse
    error = np.abs(weights).sum(axis=2) * growth[:, None]
    error += 2.0 * rounding * (np.abs(matrix[newcomer]) @ np.abs(inverse)).max(axis=2)
    own = np.diagonal(weights, axis1=1, axis2=2)
    if not np.all(own + error < 0.0):
        return "failed"

    points = (inverse @ right[:, :, None])[:, :, 0]
    residual = np.abs(right - (rows @ points[:, :, None])[:, :, 0])
    residual += 2.0 * rounding * ((np.abs(rows) @ np.abs(points)[:, :, None])[:, :, 0] + np.abs(right))
    off = norm * residual.max(axis=1) / (1.0 - defect) * (1.0 + 1e-9)
    if not np.all(np.isfinite(off)) or float(off.max()) > 1e-6:
        return "failed"
    return EnclosingVertices(points, float(off.max()), np.unique(simplices), simplices, neighbours)
