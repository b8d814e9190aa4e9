"""Nature's problem over a region: p = f(x) at every choice, bounded by weak duality.

Σ_j f_j = 1, so p·v = v_0 + Σ_j δ_j·f_j(x) with δ_j = v_j − v_0: a linear function of the coordinates x, whose
largest value over the region a basis bounds (`tightrope.certificate.support_check`), or the closed form of an
ellipsoid (`tightrope.certificate.ellipsoid_check`). The transitions' bounds hold as well, and the better of
the two counts. Only the side that a guarantee needs is improved: the upper bound of a maximum, the lower
bound of a minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from tightrope.certificate.inner import EPSILON, Box, Extended, rows_of
from tightrope.certificate.polynomials import Polynomial
from tightrope.certificate.space import Space
from tightrope.certificate.support_check import Indices, Rows, extended
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

_BLOCK = 1 << 15


class Support(Protocol):
    """Whoever bounds directions·x over the region, direction i in the way which[i]."""

    def upper_bounds(self, directions: Extended, which: Indices) -> Extended: ...


@dataclass(frozen=True, eq=False)
class RegionSets(Box):
    """Boxes, and at choices with a basis (≥ 0) also the region. Expression e is linear[e]·x + constant[e]."""

    expression: IndexArray
    linear: Extended
    constant: Extended
    extent: Extended
    support: Support
    basis: IndexArray

    @staticmethod
    def of(
        box: Box,
        expression: IndexArray,
        space: Space,
        polynomials: list[Polynomial],
        rows: Rows,
        support: Support,
        ways: int,
        basis: IndexArray,
    ) -> RegionSets:
        choices = len(box.transition_start) - 1
        fits = basis.dtype.kind in "iu" and basis.shape == (choices,) and basis.min() >= -1
        if not fits or basis.max() >= ways:
            raise ValueError("bases of choices that are not there")
        owner = np.repeat(basis >= 0, np.diff(box.transition_start))
        linear = np.zeros((len(polynomials), space.size), dtype=np.longdouble)
        constant = np.zeros(len(polynomials), dtype=np.longdouble)
        for e in np.unique(expression[owner]).tolist():
            form, level = space.affine(polynomials[e])
            linear[e], constant[e] = extended(form), extended([level])[0]
        reach = np.maximum(np.abs(rows.lower), np.abs(rows.upper))
        extent = np.abs(linear) @ reach + np.abs(constant)
        return RegionSets(
            box.transition_start,
            box.successor,
            box.lower,
            box.upper,
            expression,
            linear,
            constant,
            extent,
            support,
            basis,
        )

    def only(self, choices: OffsetArray) -> Self:
        _, taken = rows_of(self.transition_start, choices)
        expression, basis = self.expression[taken], self.basis[choices]
        return replace(super().only(choices), expression=expression, basis=basis)

    def optimum(self, values: FloatArray, maximise: bool) -> tuple[Extended, Extended]:
        low, high = super().optimum(values, maximise)
        length = np.diff(self.transition_start)
        joint = np.flatnonzero(self.basis >= 0)
        for k in np.unique(length[joint]).tolist():
            rows = joint[length[joint] == k]
            for first in range(0, len(rows), _BLOCK):
                part = rows[first : first + _BLOCK]
                bound, usable = self._bound(values, part, k, maximise)
                part, bound = part[usable], bound[usable]
                if maximise:
                    high[part] = np.minimum(high[part], bound)
                else:
                    low[part] = np.maximum(low[part], -bound)
        return low, high

    def _bound(
        self, values: FloatArray, choices: Indices, k: int, maximise: bool
    ) -> tuple[Extended, Indices]:
        """Upper bounds of ±p·v at these choices, and where all values are finite."""
        table = self.transition_start[choices][:, None] + np.arange(k)
        v = values[self.successor[table]].astype(np.longdouble)
        usable = np.all(np.isfinite(v), axis=1)
        v = np.where(usable[:, None], v if maximise else -v, 0)
        e = self.expression[table]
        start = v[:, 0]
        delta = v - start[:, None]
        direction = np.einsum("nk,nkd->nd", delta, self.linear[e])
        level = start + (delta * self.constant[e]).sum(axis=1)
        size = (np.abs(delta) * self.extent[e]).sum(axis=1)
        error = (k + 8) * EPSILON * (2 * size + np.abs(start) * (size > 0))
        bound = level + self.support.upper_bounds(direction, self.basis[choices])
        return bound + error + 4 * EPSILON * np.abs(bound) * (size > 0), usable
