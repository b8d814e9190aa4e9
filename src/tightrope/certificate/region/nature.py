"""Nature's problem over a region: p = f(x) at every choice, bounded by weak duality.

Σ_j f_j = 1, so p·v = v_0 + Σ_j δ_j·f_j(x) with δ_j = v_j − v_0: a linear function of the coordinates x, whose
largest value over the region a basis bounds (`tightrope.certificate.region.duality`), or the closed form of
an ellipsoid (`tightrope.certificate.statistics.ellipsoid`). The transitions' bounds hold as well, and the
better of the two counts. Only a maximum from above and a minimum from below are improved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tightrope.certificate.format.fields import Polynomials
from tightrope.certificate.game.nature import Boxes, Vector
from tightrope.certificate.numbers import Numbers
from tightrope.certificate.region.coordinates import Space
from tightrope.certificate.region.duality import Support
from tightrope.numerics.arrays import BoolArray, OffsetArray

_BLOCK = 1 << 15


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
    def of(
        boxes: Boxes, space: Space, polynomials: Polynomials, reach: Numbers, support: Support,
        basis: OffsetArray,
    ) -> RegionBoxes:  # fmt: skip
        n = boxes.n
        linear, constant = n.zeros((len(polynomials), space.size)), n.zeros(len(polynomials))
        joint = np.repeat(basis >= 0, np.diff(boxes.transition_start))
        for e in np.unique(boxes.label[joint]).tolist():
            form, level = space.affine(polynomials[e])
            linear[e], constant[e] = n.array(form), n.array([level])[0]
        extent = np.abs(linear) @ reach + np.abs(constant)
        return RegionBoxes(
            **vars(boxes), linear=linear, constant=constant, extent=extent, support=support, basis=basis
        )

    def only(self, choices: OffsetArray) -> Self:
        return replace(super().only(choices), basis=self.basis[choices])

    def bound(self, values: Vector, maximise: bool, upward: bool) -> Vector:
        result = super().bound(values, maximise, upward)
        if maximise != upward:
            return result
        length, joint = np.diff(self.transition_start), np.flatnonzero(self.basis >= 0)
        for k in np.unique(length[joint]).tolist():
            rows = joint[length[joint] == k]
            for first in range(0, len(rows), _BLOCK):
                part = rows[first : first + _BLOCK]
                bound, usable = self._over_region(values, part, k, maximise)
                part, bound = part[usable], bound[usable]
                known = result.number[part]
                result.number[part] = np.minimum(known, bound) if maximise else np.maximum(known, -bound)
        return result

    def _over_region(self, values: Vector, choices: Any, k: int, maximise: bool) -> tuple[Numbers, BoolArray]:
        """Upper bounds of ±p·v at these choices, and where all values are finite."""
        n = self.n
        table = self.transition_start[choices][:, None] + np.arange(k)
        v = values.take(self.successor[table])
        usable: BoolArray = ~np.any(v.infinite, axis=1)
        number, e = v.number if maximise else -v.number, self.label[table]
        delta = number - number[:, :1]
        direction = np.einsum("nk,nkd->nd", delta, self.linear[e])
        level = number[:, 0] + (delta * self.constant[e]).sum(axis=1)
        size = (np.abs(delta) * self.extent[e]).sum(axis=1)
        error = (k + 8) * n.epsilon * (2 * size + np.abs(number[:, 0]) * (size > 0))
        bound = level + self.support.upper_bounds(direction, self.basis[choices])
        return bound + error + 4 * n.epsilon * np.abs(bound) * (size > 0), usable
