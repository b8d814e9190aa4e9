"""Cells of a region: what bounds them, and points whose convex hull contains them (`docs/trust.md`).

A cell is the region met with the half-spaces of its path in the tree of splits. Its rows are named like those
of the region; SPLIT rows are the half-spaces of the path, and McCormick's envelopes are written down in the
cell's own box. Simplices of rows, each face of which belongs to exactly one other simplex on its other side,
span cones that cover all directions. If point p_k satisfies a_i·p_k ≥ b_i for all rows i of simplex k, then
for x in the cell and a direction g = Σ λ_i a_i of that cone, g·x ≤ Σ λ_i b_i ≤ g·p_k: x is in the hull.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.certificate.budget import hold, spend, spend_on
from tightrope.certificate.coupled.hints import CoupledHints
from tightrope.certificate.coupled.models import is_tame, rounding
from tightrope.certificate.numbers import RATIONAL, Arithmetic
from tightrope.certificate.region.coordinates import Box, Row
from tightrope.certificate.region.duality import Rows, approximate_inverses
from tightrope.certificate.region.rows import Origin, Writer
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray


class Cells:
    """The cells that a proof speaks of; also the source of SPLIT rows."""

    def __init__(self, hints: CoupledHints, writer: Writer, region_box: Box):
        self.hints, self.space, self.region_box = hints, writer.space, region_box
        hold("splits", 150 * hints.split_direction.size, kept=True)
        spend("splits", 20 * hints.split_direction.size)
        self.direction = [[Fraction(v) for v in row] for row in hints.split_direction.tolist()]
        self.value = [Fraction(v) for v in hints.split_value.tolist()]
        self.writer = writer.and_from(Origin.SPLIT, self)

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        if part == 0:
            return self.direction[index], self.value[index]
        return [-a for a in self.direction[index]], -self.value[index]

    def rows(self, node: int, names: Any) -> Rows:
        """These rows in the cell of a node, which may name only what holds there."""
        path = self.hints.path(node)
        spend(
            "cells", (150 + 4 * self.space.size) * len(path) + len(path) * len(names) // 2 + 20 * len(names)
        )
        for origin, index, part in names.tolist():
            if origin == Origin.SPLIT and (index, part) not in path:
                raise ValueError("a split that does not lead to its cell")
        return self.writer.rows(names, self.box(path))

    def box(self, path: list[tuple[int, int]]) -> Box:
        """From splits along one free coordinate, and the ranges of products."""
        lower, upper = list(self.region_box[0]), list(self.region_box[1])
        for split, side in path:
            along = [j for j, a in enumerate(self.direction[split]) if a]
            if len(along) == 1 and along[0] < len(self.space.free):
                j, a = along[0], self.direction[split][along[0]]
                end = self.value[split] / a
                if (side == 0) == (a > 0):
                    upper[j] = min(upper[j], end)
                else:
                    lower[j] = max(lower[j], end)
        return self.space.with_products(lower, upper)

    def is_empty(self, proof: int) -> bool:
        """Whether Σ multiplier·row contradicts the box: an upper bound of 0 over the cell is negative."""
        rows = self.rows(int(self.hints.node[proof]), self.hints.rows_of(proof))
        own = slice(2 * rows.size, None)
        span = slice(int(self.hints.row_start[proof]), int(self.hints.row_start[proof + 1]))
        weights = RATIONAL.array(self.hints.multiplier[span])[None, :]
        nothing = RATIONAL.zeros((1, rows.size))
        return bool(rows.bound_by(rows.matrix[None, own], rows.bound[None, own], nothing, weights)[0] < 0)


def unproved(n: Arithmetic, count: int, holds: Callable[[Arithmetic, OffsetArray], BoolArray]) -> OffsetArray:
    """Which of so many statements do not hold: what an arithmetic leaves open, rationals decide."""
    left = np.arange(count)
    for one in (n,) if n.exact else (n, RATIONAL):
        left = left[~holds(one, left)] if len(left) else left
    return left


def hull_misfit(
    n: Arithmetic,
    rows: Rows,
    simplices: OffsetArray,
    points: FloatArray,
    centre: FloatArray,
    axes: FloatArray,
) -> str | None:
    """Why the hull of the points centre + axes·y need not contain the cell, or None."""
    count, size = simplices.shape
    hold("simplices of a cell", 24 * count * size * size)
    spend("simplices of a cell", count * size * size * (4 + size // 2))
    spend("faces of simplices", 10 * count * size * (size + 4))
    if count <= size or np.any(simplices >= len(rows.bound)):
        return "too few simplices, or rows that are not there"
    simplices, order = np.sort(simplices, axis=1), np.arange(size)
    newcomer = _newcomers(simplices)
    if newcomer is None:
        return "a face of a simplex does not belong to exactly two"
    scale = _power(RATIONAL.floats(rows.upper - rows.lower))
    length = _power(np.abs(RATIONAL.floats(rows.matrix) * scale).sum(axis=1, keepdims=True))
    even = rows.matrix * (RATIONAL.array(scale) / RATIONAL.array(length))
    inverse = approximate_inverses(RATIONAL.floats(even)[simplices])

    def beyond(n: Arithmetic, which: OffsetArray) -> BoolArray:
        """Where a point lies on the far side of all rows of its simplex."""
        spend_on("simplices of a cell", len(which) * size * size, n, rows.matrix)
        matrix, bound = (n.array(part)[simplices[which]] for part in (rows.matrix, rows.bound))
        x, along, y = n.array(centre), n.array(axes), n.array(points[which])
        place, reach = x + y @ along.T, np.abs(x) + np.abs(y) @ np.abs(along).T
        excess = np.einsum("kij,kj->ki", matrix, place) - bound
        rounded = np.einsum("kij,kj->ki", np.abs(matrix), reach) + np.abs(bound)
        sure = excess >= rounding(n, 4 * size + 16, rounded)
        result: BoolArray = np.all(sure, axis=1) & is_tame(n, place, reach, matrix, bound)
        return result

    def covers(n: Arithmetic, which: OffsetArray) -> BoolArray:
        """Where rows are independent, and all faces have another simplex on their other side.

        With an approximate inverse R of a simplex's rows A and E = 1 − A·R, ‖E‖ < 1, a row is the combination
        row·A⁻¹ = row·R·(1 − E)⁻¹, off row·R by at most ‖row·R‖₁·‖E‖/(1 − ‖E‖). Rows and columns are scaled by
        powers of two first, which changes no sign.
        """
        spend_on("simplices of a cell", 2 * len(which) * size**3, n, rows.matrix)
        matrix, near = n.array(even), n.array(inverse[which])
        own, other = matrix[simplices[which]], matrix[newcomer[which]]
        missed = rounding(n, size + 16, np.abs(own) @ np.abs(near))
        worst = (np.abs(n.array(np.eye(size)) - own @ near) + missed).sum(axis=2).max(axis=1)
        far = other @ near  # [simplex, i, j]: the newcomer across face i, its weight at row j
        missed = rounding(n, size + 16, np.abs(other) @ np.abs(near)) + n.zeros(far.shape)
        spread = 2 * (np.abs(far) + missed).sum(axis=2)
        off = spread * worst[:, None] + rounding(n, 4, spread) + missed.max(axis=2)
        sure = far[:, order, order] + off < 0
        result: BoolArray = (64 * worst < 1) & np.all(sure, axis=1) & is_tame(n, own, other, near)
        return result

    if len(unproved(n, count, beyond)):
        return "a point lies on the wrong side of a row of its simplex"
    if len(unproved(n, count, covers)):
        return "the rows of a simplex are dependent, or two lie on the same side of their common face"
    return None


def _power(sizes: FloatArray) -> FloatArray:
    """Powers of two near some sizes."""
    result: FloatArray = np.ldexp(1.0, np.frexp(np.maximum(sizes, 1e-300))[1] - 1)
    return result


def _newcomers(simplices: OffsetArray) -> OffsetArray | None:
    """[simplex, i]: the additional row of the one other simplex that has the face without row i; rows of
    simplices rise."""
    faces: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for k, simplex in enumerate(simplices.tolist()):
        for i in range(len(simplex)):
            faces.setdefault((*simplex[:i], *simplex[i + 1 :]), []).append((k, i))
    if any(len(pair) != 2 for pair in faces.values()):
        return None
    one, other = (tuple(np.array([pair[side] for pair in faces.values()]).T) for side in (0, 1))
    result = np.empty_like(simplices)
    result[one], result[other] = simplices[other], simplices[one]
    return result
