"""Nature's problem over a region: p = f(x) at every choice, bounded by weak duality.

Σ_j f_j = 1, so p·v = v_0 + Σ_j δ_j·f_j(x) with δ_j = v_j − v_0: a linear function of the coordinates x, whose
largest value over the region a basis bounds (`tightrope.certificate.region.duality`), or the closed form of
an ellipsoid (`tightrope.certificate.statistics.ellipsoid`). The transitions' bounds hold as well, and the
better of the two counts. Only a maximum from above and a minimum from below are improved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from tightrope.certificate.game.nature import Boxes, Vector
from tightrope.certificate.numbers import Numbers
from tightrope.certificate.region.duality import BasisTable, Support
from tightrope.numerics.arrays import OffsetArray

if TYPE_CHECKING:
    from tightrope.certificate.learned import Learned


@dataclass(frozen=True, eq=False)
class RegionBoxes(Boxes):
    """Boxes by expression, and at choices with a basis (≥ 0) also the region: expression e is linear[e]·x +
    constant[e], of size at most extent[e].
    """

    linear: Numbers
    constant: Numbers
    extent: Numbers
    support: Support
    basis: OffsetArray

    @staticmethod
    def of(boxes: Boxes, link: Learned, basis: OffsetArray) -> RegionBoxes:
        """With the region of a learned result at choices that have a basis."""
        n, rows, region, support = boxes.n, link.projection.rows, link.hints.region, link.statements.support
        if rows is None or region is None or link.problem.denominator is not None:
            raise ValueError("bases of choices without a region, or of quotients")
        if support is None and basis.max() >= len(region.choice_basis):
            raise ValueError("bases of choices that are not there")
        joint = np.unique(boxes.label[np.repeat(basis >= 0, np.diff(boxes.transition_start))])
        linear, constant = n.zeros((len(link.polynomials), rows.size)), n.zeros(len(link.polynomials))
        linear[joint], constant[joint] = link.space.table(n, [link.polynomials[e] for e in joint.tolist()])
        extent = np.abs(linear) @ rows.reach + np.abs(constant)
        support = support or BasisTable(rows, region.choice_basis)
        return RegionBoxes(
            **vars(boxes), linear=linear, constant=constant, extent=extent, support=support, basis=basis
        )

    def only(self, choices: OffsetArray) -> Self:
        return replace(super().only(choices), basis=self.basis[choices])

    def bound(self, values: Vector, maximise: bool, upward: bool) -> Vector:
        result = super().bound(values, maximise, upward)
        if maximise != upward:
            return result
        for rows, table, _ in self.blocks():
            joint = self.basis[rows] >= 0
            part, bound = rows[joint], self._over_region(values, rows[joint], table[joint], maximise)
            usable = ~np.any(values.infinite[self.successor[table[joint]]], axis=1)
            part, bound, known = part[usable], bound[usable], result.number[part[usable]]
            result.number[part] = np.minimum(known, bound) if maximise else np.maximum(known, -bound)
        return result

    def _over_region(
        self, values: Vector, choices: OffsetArray, table: OffsetArray, maximise: bool
    ) -> Numbers:
        """Upper bounds of ±p·v at these choices, where all values are finite."""
        n, k, e, v = self.n, table.shape[1], self.label[table], values.number[self.successor[table]]
        number = v if maximise else -v
        delta = number - number[:, :1]
        direction = np.einsum("nk,nkd->nd", delta, self.linear[e])
        level = number[:, 0] + (delta * self.constant[e]).sum(axis=1)
        size = (np.abs(delta) * self.extent[e]).sum(axis=1)
        error = (k + 8) * n.epsilon * (2 * size + np.abs(number[:, 0]) * (size > 0))
        bound = level + self.support.upper_bounds(direction, self.basis[choices])
        result: Numbers = bound + error + 4 * n.epsilon * np.abs(bound) * (size > 0)
        return result
