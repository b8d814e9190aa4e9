"""The polytope region: half-spaces in a tightened box, with vertices where the dimension allows.

U = { x : l_e ≤ g_e(x) ≤ u_e for all events e, x in the domain } contains the true coordinates with
probability at least 1 − δ when all event intervals hold together (paper, Theorem 1). The same class
carries the L1 region, the tangent-cut enclosure of the likelihood region and that of the slab: all are
systems of half-spaces.

Support values are safe in either representation: from vertices with their proof of enclosure
(`tightrope.regions.vertices`), from multipliers of linear programs elsewhere
(`tightrope.numerics.linear_program`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.regions.halfspaces import Halfspaces, ScaledHalfspaces
from tightrope.regions.lazy_program import bound_by_programs
from tightrope.regions.region import Emptiness, RegionKind, Relaxation, region_facts, region_title
from tightrope.regions.tightening import Tightened, Tightening
from tightrope.regions.vertices import MOST_DIMENSIONS, EnclosingVertices, enclosing_vertices
from tightrope.regions.walk import bound_by_walks
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.ledger import Ledger
from tightrope.statistics.prequential import Evidence
from tightrope.statistics.slab import Slab

MOST_VERTICES = 60_000
_SMALLEST_DEPTH = 1e-9
_CHUNK = 2**24


@dataclass(frozen=True, eq=False, repr=False)
class Polytope(Record):
    """{ x : system.matrix·x ≤ system.bound } in the box of `system`, which encloses it tightly.

    A likelihood region also keeps its evidence and the points of its cuts: row i of origin `CUT` is the
    tangent at cut_points[system.index[i]]. A slab keeps those of its guard, and the bets.
    """

    kind: RegionKind
    coordinates: Coordinates
    ledger: Ledger
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
        ledger: Ledger,
        tightened: Tightened,
        relaxation: Relaxation,
        most_vertices: int = MOST_VERTICES,
        enclosure: EnclosingVertices | None = None,
    ) -> Polytope:
        """The region of a tightened system; the conflict of an empty one is the caller's to name.

        `enclosure` are its vertices where they are known already."""
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
        """Upper bounds of directions·x by a walk along edges, by linear programs where the walk gets
        stuck.
        """
        scaled = self._scaled
        in_y = directions * scaled.half
        if self.coordinates.size == 0:
            return np.zeros(len(directions))
        best, reached = bound_by_walks(scaled, in_y)
        stuck = np.flatnonzero(~reached)
        if len(stuck):
            best[stuck] = np.minimum(best[stuck], bound_by_programs(scaled, in_y[stuck]))
        rounding = error_factor(3) * np.abs(in_y).sum(axis=1)
        shift = directions @ scaled.centre
        rounding += product_error(directions, scaled.centre[:, None])[:, 0]
        total: FloatArray = up(best + shift) + rounding * (1.0 + 1e-12)
        return up(total)


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
