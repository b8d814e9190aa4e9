"""Nature's problem over a region: p = f(x) at every choice, bounded by weak duality.

Σ_j f_j = 1, so p·v = v_0 + Σ_j δ_j·f_j(x) with δ_j = v_j − v_0: a linear function of the coordinates x, whose
largest value over the region a basis bounds (`tightrope_check.learned`), or the closed form of
an ellipsoid (`tightrope_check.statistics.ellipsoid`). The transitions' bounds hold as well, and the
better of the two counts. Only a maximum from above and a minimum from below are improved.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tightrope_check.arrays import Number, OffsetArray
from tightrope_check.budget import hold, longest, spend_on, spend_sums
from tightrope_check.nature import BoundVector, Boxes
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers

if TYPE_CHECKING:
    from tightrope_check.learned import Learned, RowSystem


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionBoxes(Boxes):
    """Boxes by expression, and at choices with a basis (≥ 0) also the region: expression e is linear[e]·x +
    constant[e], up to what rounding hides, of size at most extent[e], where the |x_j| sum to at most `reach`.
    """

    link: Learned
    linear: Numbers
    constant: Numbers
    extent: Numbers
    reach: Number
    support: Any
    basis: OffsetArray
    place: OffsetArray

    @staticmethod
    def of(boxes: Boxes, link: Learned, basis: OffsetArray) -> RegionBoxes:
        """With the region of a learned result at choices that have a basis."""
        n, rows, region, support = boxes.n, link.projection.rows, link.hints.region, link.statements.support
        if rows is None or region is None or link.problem.denominator is not None:
            raise ValueError("bases of choices without a region, or of quotients")
        if support is None and basis.max() >= len(region.choice_basis):
            raise ValueError("bases of choices that are not there")
        used, place = np.unique(np.maximum(basis, 0), return_inverse=True)
        support = support.within(n) if support else rows.within(n).table(region.choice_basis[used])
        joint = np.unique(boxes.label[np.repeat(basis >= 0, np.diff(boxes.transition_start))])
        name = n.exact, joint.tobytes()
        if name not in link.forms:
            link.forms[name] = RegionBoxes._forms(n, link, rows, joint)
        own = vars(boxes) | link.forms[name]
        return RegionBoxes(**own, link=link, support=support, basis=basis, place=place.reshape(-1))

    @staticmethod
    def _forms(n: Arithmetic, link: Learned, rows: RowSystem, joint: OffsetArray) -> dict[str, Numbers]:
        """Of these expressions, the same for every claim and end."""
        near = link.space.table(n, [link.polynomials[e] for e in joint.tolist()])
        hold("expressions of choices", 16 * len(link.polynomials) * rows.size)
        held, reach = [RATIONAL.array(part) for part in near], RATIONAL.array(rows.reach)
        spend_sums("expressions of choices", 6 * rows.size, [reach], longest(*(part.flat for part in held)))
        spend_sums("expressions of choices", 6 * rows.size, held[0].tolist(), longest(reach))
        (count, size), total = (len(link.polynomials), rows.size), reach.sum()
        linear, constant, extent = n.zeros((count, size)), n.zeros(count), n.zeros(count)
        linear[joint], constant[joint] = near
        hidden = RATIONAL.array([n.tiny])[0] * (total + 1)
        extent[joint] = n.enclose(abs(held[0]) @ reach + abs(held[1]) + hidden)[1]
        return {"linear": linear, "constant": constant, "extent": extent, "reach": n.enclose([total])[1][0]}

    def only(self, choices: OffsetArray) -> Self:
        return replace(super().only(choices), basis=self.basis[choices], place=self.place[choices])

    def exactly(self, choices: OffsetArray) -> Boxes:
        plain = Boxes(**{one.name: getattr(self, one.name) for one in fields(Boxes)}).exactly(choices)
        return RegionBoxes.of(plain, self.link, self.basis[choices])

    def bound(self, values: BoundVector, maximise: bool, upward: bool) -> BoundVector:
        result = super().bound(values, maximise, upward)
        if maximise != upward:
            return result
        for rows, table, _ in self.blocks():
            joint = (self.basis[rows] >= 0) & ~np.any(values.infinite[self.successor[table]], axis=1)
            part, bound = rows[joint], self._over_region(values, rows[joint], table[joint], maximise)
            known = result.number[part]
            result.number[part] = np.minimum(known, bound) if maximise else np.maximum(known, -bound)
        return result

    def _over_region(
        self, values: BoundVector, choices: OffsetArray, table: OffsetArray, maximise: bool
    ) -> Numbers:
        """Upper bounds of ±p·v at these choices, where all values are finite."""
        n, k, e, v = self.n, table.shape[1], self.label[table], values.number[self.successor[table]]
        hold("expressions of choices", 16 * table.size * self.linear.shape[1])
        spend_on("expressions of choices", 2 * table.size * self.linear.shape[1], n, self.constant[e], v)
        number = v if maximise else -v
        delta = number - number[:, :1]
        direction = np.einsum("nk,nkd->nd", delta, self.linear[e])
        level = number[:, 0] + (delta * self.constant[e]).sum(axis=1)
        bound: Numbers = level + self.support.upper_bounds(direction, self.place[choices])
        if n.exact:
            return bound
        size = (abs(delta) * self.extent[e]).sum(axis=1)
        error = n.error(k + 10, 2 * size + abs(number[:, 0]) + abs(bound))
        return np.asarray(bound + error + (k + 8) * n.tiny * self.reach)
