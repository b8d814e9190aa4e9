"""The ellipsoid region: closed forms for linear functions, a cone program where the domain cuts it.

The norm of V⁻¹ is bounded from above without trusting a factorisation: gᵀV⁻¹g ≤ 2·g·z − zᵀVz + ‖g −
Vz‖²/floor for any z and floor ≤ the least eigenvalue. In the domain any multipliers λ ≥ 0 of its rows give a
bound (weak duality). Lifted coordinates have the McCormick rows of the ellipsoid's box as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.linear_program import ConeProgram
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.rounding import error_factor, product_error, up
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.region import Emptiness, RegionKind, RegionTask, Relaxation, region_facts, region_title
from tightrope.regions.tightening import coordinate_boxes, coordinate_envelopes
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget, assumed_of
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.least_squares import EllipsoidVersion, LeastSquares, least_squares


@dataclass(frozen=True, eq=False, repr=False)
class Ellipsoid(Record):
    """{ x in the domain : ‖(x − origin)/scale − centre‖_V ≤ radius }; the domain is optional."""

    coordinates: Coordinates
    ledger: ConfidenceBudget
    squares: LeastSquares
    within_domain: bool = True

    @property
    def kind(self) -> RegionKind:
        return ELLIPSOID

    @property
    def relaxation(self) -> Relaxation:
        return Relaxation.OUTER if self.coordinates.is_lifted else Relaxation.EXACT

    def _title_(self) -> str:
        return region_title(self)

    def _facts_(self) -> Facts:
        return region_facts(self)

    @property
    def notes(self) -> tuple[str, ...]:
        cut = "cut by the domain" if self.within_domain else "not cut by the domain"
        return (f"ellipsoid in {self.coordinates.size} coordinates, β = {self.squares.radius:.4g}, {cut}",)

    @property
    def vertices(self) -> FloatArray | None:
        return None

    @property
    def vertex_error(self) -> FloatArray:
        return np.zeros(self.coordinates.size)

    @property
    def facets(self) -> tuple[FloatArray, FloatArray] | None:
        return None

    @cached_property
    def emptiness(self) -> Emptiness:
        """Empty where one row of the domain is violated on the whole ellipsoid."""
        if not self.within_domain:
            return Emptiness(False, self._to_x(self.squares.centre))
        rows = self._rows
        if np.any(-self._bound_in_closed_form(-rows.matrix) > rows.bound):
            return Emptiness(True)
        if np.all(rows.matrix @ self.squares.centre <= rows.bound):
            return Emptiness(False, self._to_x(self.squares.centre))
        return Emptiness(False, None)

    @cached_property
    def bounding_box(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = self.support(np.eye(self.coordinates.size))
        if not self.within_domain:
            return lower, upper
        return np.maximum(lower, self.coordinates.lower), np.minimum(upper, self.coordinates.upper)

    def contains(self, theta: Sequence[Fraction | float]) -> bool:
        exact = [Fraction(value) for value in theta]
        if self.within_domain and not self.coordinates.parameters.contains(exact):
            return False
        x = np.array([float(value) for value in self.coordinates.lift_exact(exact)])
        offset = (x - self.squares.origin) / self.squares.scale - self.squares.centre
        distance = float(np.sqrt(offset @ self.squares.matrix @ offset))
        return distance <= self.squares.radius * (1.0 + 1e-9) + 1e-12

    def support(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.emptiness.is_empty:
            raise CannotCertify("the region is empty: it has no support function")
        return -self._largest(-directions), self._largest(directions)

    def _largest(self, directions: FloatArray) -> FloatArray:
        """Upper bounds of directions·x."""
        in_y = directions * self.squares.scale
        best = self._bound_in_closed_form(in_y)
        if self.within_domain and len(directions):
            multipliers = self._multipliers(in_y)
            used = np.flatnonzero(multipliers.any(axis=1))
            if len(used):
                rows, chosen = self._rows, multipliers[used]
                rest = in_y[used] - chosen @ rows.matrix
                off = product_error(chosen, rows.matrix) + error_factor(2) * (
                    np.abs(rest) + np.abs(in_y[used])
                )
                cut = chosen @ rows.bound + product_error(chosen, rows.bound[:, None])[:, 0]
                cut = up(cut + self._bound_in_closed_form(rest)) + off @ self._domain_reach * (1.0 + 1e-9)
                best[used] = np.minimum(best[used], up(cut))
        shift = directions @ self.squares.origin
        rounding = product_error(directions, self.squares.origin[:, None])[:, 0]
        rounding += error_factor(4) * np.abs(in_y) @ (np.abs(self.squares.centre) + self._reach)
        total: FloatArray = up(best + shift) + rounding
        return up(total)

    def remainders(self, directions: FloatArray) -> FloatArray:
        """What is left of directions for the ellipsoid itself once the domain's rows took their part."""
        scale = self.squares.scale
        in_y = directions * scale
        if self.within_domain and len(directions):
            in_y = in_y - self._multipliers(in_y) @ self._rows.matrix
        return np.where(scale > 1e-100, in_y / scale, directions)

    def _bound_in_closed_form(self, directions: FloatArray) -> FloatArray:
        """Upper bounds of g·y over the ellipsoid alone, for directions in y."""
        matrix = self.squares.matrix
        solved = np.linalg.solve(matrix, directions.T).T.astype(np.float64)
        image = solved @ matrix
        square = 2.0 * (directions * solved).sum(axis=1) - (image * solved).sum(axis=1)
        size = 2.0 * np.abs(directions * solved).sum(axis=1)
        size += ((np.abs(solved) @ np.abs(matrix)) * np.abs(solved)).sum(axis=1)
        residual = np.abs(directions - image) + product_error(solved, matrix, 2)
        square += error_factor(4 * len(matrix) + 8) * size + (residual**2).sum(axis=1) / self.squares.floor
        norm = np.sqrt(np.maximum(square, 0.0)) * (1.0 + 1e-15)
        middle = directions @ self.squares.centre
        middle += product_error(directions, self.squares.centre[:, None])[:, 0]
        total: FloatArray = middle + self.squares.radius * norm * (1.0 + 1e-15)
        return up(total)

    def _multipliers(self, directions: FloatArray) -> FloatArray:
        """Multipliers of the domain's rows, zero where the ellipsoid's own maximiser lies in the domain."""
        rows = self._rows
        result = np.zeros((len(directions), len(rows.bound)))
        solved = np.linalg.solve(self.squares.matrix, directions.T).T
        norm = np.sqrt(np.maximum((solved * directions).sum(axis=1), 1e-300))
        points = self.squares.centre + self.squares.radius * solved / norm[:, None]
        outside = ((points @ rows.matrix.T - rows.bound) > 1e-9).any(axis=1)
        program: ConeProgram | None = None
        for i in np.flatnonzero(outside & (np.abs(directions).max(axis=1, initial=0.0) > 0.0)).tolist():
            if program is None:
                factor = np.linalg.cholesky(self.squares.matrix).T.astype(np.float64)
                program = ConeProgram(
                    factor, self.squares.centre, self.squares.radius, rows.matrix, rows.bound
                )
            size = np.abs(directions[i]).max()
            result[i] = program.multipliers(directions[i] / size) * size
        return result

    @cached_property
    def _reach(self) -> FloatArray:
        """How far the ellipsoid goes in each coordinate of y."""
        return self.squares.radius * np.sqrt(np.diag(np.linalg.inv(self.squares.matrix))) * 1.01

    @cached_property
    def _domain_reach(self) -> FloatArray:
        """How far the domain goes in each coordinate of y."""
        origin, scale = self.squares.origin, self.squares.scale
        reach = np.maximum(np.abs(self.coordinates.lower - origin), np.abs(self.coordinates.upper - origin))
        return reach / scale * (1.0 + 1e-12)

    @cached_property
    def _rows(self) -> ScaledHalfspaces:
        """The domain's rows and its box in y; for lifted coordinates also the envelopes."""
        size = self.coordinates.size
        system = Halfspaces.of_domain(self.coordinates)
        if self.coordinates.is_lifted:
            eye = np.eye(size) * self.squares.scale
            shift = self.squares.origin
            slack = 1e-14 * (np.abs(shift) + self.squares.scale)
            lower = np.maximum(-self._bound_in_closed_form(-eye) + shift - slack, system.lower)
            upper = np.minimum(self._bound_in_closed_form(eye) + shift + slack, system.upper)
            if np.all(lower <= upper):
                lower, upper = coordinate_boxes(self.coordinates, lower, upper)
                rows = coordinate_envelopes(self.coordinates, lower, upper)
                system = system.with_rows(*rows, Origin.ENVELOPE)
        eye = np.eye(size)
        system = system.with_rows(eye, system.upper, Origin.DOMAIN).with_rows(
            -eye, -system.lower, Origin.DOMAIN
        )
        return ScaledHalfspaces.of(system, self.squares.origin, self.squares.scale)

    def _to_x(self, y: FloatArray) -> FloatArray:
        return self.squares.origin + self.squares.scale * y


class LeastSquaresEllipsoid(RegionKind):
    """E: what least squares say of the parameters."""

    value = "ellipsoid"
    has_facets = False
    has_versions = True
    is_compared = True
    certificate = "ellipsoid"

    def build(self, task: RegionTask) -> Ellipsoid:
        """Cut by the domain unless it is the paper's version."""
        version, outcomes, model = task.options.ellipsoid, task.outcomes, task.model
        sound = version is EllipsoidVersion.SOUND
        coordinates = Coordinates.of(model.expressions, model.parameters, eliminate=sound)
        squares = least_squares(coordinates, outcomes, outcomes.pooled(task.counts), task.delta, version)
        assumption = Assumption.ADAPTIVE_ANYTIME if sound else Assumption.NONE
        method = "least squares, R = 1/√2" if sound else "least squares as published, R = 1/2 (unsound)"
        assumed = assumed_of(assumption, task.counts.design, tied=True)
        ledger = ConfidenceBudget(task.delta, 1, task.delta, method, "one ellipsoid", assumption, assumed)
        return Ellipsoid(coordinates, ledger, squares, sound)


ELLIPSOID = LeastSquaresEllipsoid()
