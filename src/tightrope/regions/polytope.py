"""The polytope region: half-spaces in a tightened box, with vertices where the dimension allows.

U = { x : l_e ≤ g_e(x) ≤ u_e for all events e, x in the domain } contains the true coordinates with
probability at least 1 − δ when all event intervals hold simultaneously (paper, Theorem 1). The L1 region and
the enclosures of likelihood region and slab are systems of half-spaces, too. Qhull's vertices are a claim: a
covering lemma proves that they enclose the polytope, with error bounds in float64. Elsewhere support values
come from multipliers of linear programs. Proof: docs/proofs/values.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import Block, find_blocks
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.regions.halfspaces import Halfspaces, ScaledHalfspaces
from tightrope.regions.region import Emptiness, RegionKind, Relaxation, region_facts, region_title
from tightrope.regions.tightening import Tightened, Tightening
from tightrope.regions.walk import bound_by_programs, bound_by_walks
from tightrope.statistics.bets import Slab
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.prequential import Evidence

MOST_VERTICES = 60_000
_SMALLEST_DEPTH = 1e-9
_CHUNK = 2**24


@dataclass(frozen=True, eq=False, repr=False)
class Polytope(Record):
    """{ x : matrix·x ≤ bound } in a tight box; row i of `CUT` is the tangent at cut_points[index[i]]."""

    kind: RegionKind
    coordinates: Coordinates
    ledger: ConfidenceBudget
    relaxation: Relaxation
    emptiness: Emptiness
    system: Halfspaces
    tightening: Tightening
    enclosure: EnclosingVertices | None
    remarks: tuple[str, ...] = ()
    evidence: Evidence | None = None
    cut_points: FloatArray | None = None
    slab: Slab | None = None

    @staticmethod
    def of(
        kind: RegionKind,
        coordinates: Coordinates,
        ledger: ConfidenceBudget,
        tightened: Tightened,
        relaxation: Relaxation,
        most_vertices: int = MOST_VERTICES,
        enclosure: EnclosingVertices | None = None,
    ) -> Polytope:
        """The region of a tightened system; `enclosure` are its vertices where they are known."""
        if enclosure is None and not tightened.empty:
            enclosure = _enclosure(tightened, most_vertices)
        witness = None if tightened.empty else tightened.interior
        return Polytope(
            kind,
            coordinates,
            ledger,
            relaxation,
            Emptiness(tightened.empty, witness),
            tightened.system,
            tightened.report,
            enclosure,
        )

    def with_emptiness(self, emptiness: Emptiness) -> Polytope:
        return replace(self, emptiness=emptiness)

    def _title_(self) -> str:
        return region_title(self)

    def _facts_(self) -> Facts:
        return region_facts(self)

    @property
    def notes(self) -> tuple[str, ...]:
        shape = f"{len(self.system)} rows in {self.coordinates.size} coordinates"
        if self.enclosure is not None:
            shape += f", {len(self.enclosure.facets)} facets, {len(self.enclosure.points)} vertices"
        lifted = (self.tightening.text(),) if self.coordinates.is_lifted else ()
        return (shape, *lifted, *self.remarks)

    @property
    def bounding_box(self) -> tuple[FloatArray, FloatArray]:
        return self.system.lower, self.system.upper

    @property
    def vertices(self) -> FloatArray | None:
        return None if self.enclosure is None else self._scaled.to_x(self.enclosure.points)

    @property
    def vertex_error(self) -> FloatArray:
        if self.enclosure is None:
            return np.zeros(self.coordinates.size)
        reach = np.abs(self.enclosure.points).max(axis=0) * self._scaled.half + np.abs(self._scaled.centre)
        error: FloatArray = self.enclosure.error * self._scaled.half * (1.0 + 1e-12) + 4.0 * UNIT * reach
        return up(error)

    @property
    def facets(self) -> tuple[FloatArray, FloatArray]:
        """The rows that carry vertices, the box's included; all rows where the vertices are not known."""
        eye = np.eye(self.coordinates.size)
        matrix = np.concatenate([self.system.matrix, eye, -eye])
        bound = np.concatenate([self.system.bound, self.system.upper, -self.system.lower])
        if self.enclosure is None:
            return matrix, bound
        return matrix[self.enclosure.facets], bound[self.enclosure.facets]

    @cached_property
    def _scaled(self) -> ScaledHalfspaces:
        return ScaledHalfspaces.of(self.system)

    def contains(self, theta: Sequence[Fraction | float]) -> bool:
        """Exact evaluation at the exact point: outside only if some row or the box is violated."""
        if self.emptiness.is_empty:
            return False
        exact = self.coordinates.lift_exact([Fraction(value) for value in theta])
        x = np.array([float(value) for value in exact])
        suspect = np.flatnonzero(
            self.system.matrix @ x - self.system.bound > -1e-9 * (1.0 + np.abs(self.system.bound))
        )
        for row in suspect.tolist():
            value = sum(Fraction(float(a)) * v for a, v in zip(self.system.matrix[row], exact, strict=True))
            if value > Fraction(float(self.system.bound[row])):
                return False
        return all(
            Fraction(float(low)) <= value <= Fraction(float(high))
            for low, value, high in zip(self.system.lower, exact, self.system.upper, strict=True)
        )

    def support(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.emptiness.is_empty:
            raise CannotCertify("the region is empty: it has no support function")
        if len(directions) == 0:
            return np.zeros(0), np.zeros(0)
        if self.enclosure is not None:
            return self._from_vertices(directions)
        return -self._without_vertices(-directions), self._without_vertices(directions)

    def _from_vertices(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        points = self.vertices
        assert points is not None
        lower, upper = np.empty(len(directions)), np.empty(len(directions))
        step = max(1, _CHUNK // len(points))
        transposed = np.ascontiguousarray(points.T)
        for start in range(0, len(directions), step):
            values = directions[start : start + step] @ transposed
            lower[start : start + step] = values.min(axis=1)
            upper[start : start + step] = values.max(axis=1)
        reach = np.abs(points).max(axis=0)
        error = np.abs(directions) @ (self.vertex_error + error_factor(points.shape[1] + 4) * reach)
        error = up(error * (1.0 + 1e-12) + 1e-300)
        return np.nextafter(lower - error, -np.inf), np.nextafter(upper + error, np.inf)

    def _without_vertices(self, directions: FloatArray) -> FloatArray:
        """Bound directions·x from above, by walks along edges or linear programs."""
        scaled = self._scaled
        in_y = directions * scaled.half
        if self.coordinates.size == 0:
            return np.zeros(len(directions))
        best = self._by_blocks(in_y) if self._blocks else _bound(scaled, in_y)
        rounding = error_factor(3) * np.abs(in_y).sum(axis=1)
        shift = directions @ scaled.centre
        rounding += product_error(directions, scaled.centre[:, None])[:, 0]
        total: FloatArray = up(best + shift) + rounding * (1.0 + 1e-12)
        return up(total)

    @cached_property
    def _blocks(self) -> tuple[tuple[Block, ScaledHalfspaces], ...]:
        """The scaled system in parts that share no coordinate; () where it does not fall apart."""
        scaled, own = self._scaled, []
        for block in find_blocks(scaled.matrix):
            rows, columns = block.rows[0], block.columns
            matrix = scaled.matrix[np.ix_(rows, columns)]
            ends = scaled.centre[columns], scaled.half[columns]
            own.append((block, ScaledHalfspaces(matrix, scaled.bound[rows], scaled.factor[rows], *ends)))
        return tuple(own)

    def _by_blocks(self, in_y: FloatArray) -> FloatArray:
        """Bounds over a product: the sums of those over its parts."""
        total, size, terms = np.zeros(len(in_y)), np.zeros(len(in_y)), np.zeros(len(in_y), dtype=np.int64)
        for block, part in self._blocks:
            own = in_y[:, block.columns]
            touched = np.flatnonzero(own.any(axis=1))
            if len(touched):
                most = _bound(part, np.ascontiguousarray(own[touched]))
                total[touched] += most
                size[touched] += np.abs(most)
                terms[touched] += 1
        return up(total + (terms + 2) * 2.0 * UNIT * size)


def _bound(system: ScaledHalfspaces, in_y: FloatArray) -> FloatArray:
    """Safe upper bounds of directions, by walks along edges or linear programs."""
    best, reached = bound_by_walks(system, in_y)
    stuck = np.flatnonzero(~reached)
    if len(stuck):
        best[stuck] = np.minimum(best[stuck], bound_by_programs(system, in_y[stuck])[0])
    return best


def _enclosure(tightened: Tightened, most_vertices: int) -> EnclosingVertices | None:
    """Vertices in the scaled coordinates, where the dimension and the shape allow."""
    size = tightened.system.size
    if most_vertices == 0 or size > MOST_DIMENSIONS or tightened.depth < _SMALLEST_DEPTH:
        return None
    scaled = ScaledHalfspaces.of(tightened.system)
    box = np.vstack([np.eye(size), -np.eye(size)])
    matrix = np.vstack([scaled.matrix, box])
    bound = np.concatenate([scaled.bound, np.ones(2 * size)])
    interior = (tightened.interior - scaled.centre) / scaled.half
    return enclosing_vertices(matrix, bound, interior, most_vertices)


MOST_DIMENSIONS = 7
_PERTURBATIONS = (0.0, 1e-11, 1e-9, 1e-7)


@dataclass(frozen=True, eq=False, repr=False)
class EnclosingVertices(Record):
    """Polytope ⊆ conv(points) + [−error, error]ᵈ; rows simplices[k] meet in point k."""

    points: FloatArray
    error: float
    facets: OffsetArray
    simplices: OffsetArray
    neighbours: OffsetArray


def enclosing_vertices(
    matrix: FloatArray, bound: FloatArray, interior: FloatArray, most: int
) -> EnclosingVertices | None:
    """Vertices around an interior point; None without a proof or with more than `most`."""
    shift = matrix @ interior
    distance = up(up(bound - shift) + product_error(matrix, interior[:, None])[:, 0])
    if np.any(bound - shift <= 0.0):
        return None
    spread = np.random.default_rng(7).random(len(bound))
    for size in _PERTURBATIONS:
        raised = distance * (1.0 + size * (0.5 + spread)) if size else distance
        raised = up(raised)
        hull = _in_one_dimension(matrix, raised) if matrix.shape[1] == 1 else _by_hull(matrix, raised, most)
        if isinstance(hull, EnclosingVertices):
            error = hull.error + 2.0 * UNIT * float(np.abs(hull.points).max() + np.abs(interior).max())
            return replace(hull, points=hull.points + interior, error=error)
        if hull == "many":
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
