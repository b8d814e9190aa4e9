"""Cells of a region: what bounds them, and points whose convex hull contains them.

A cell is the region met with the half-spaces of its path in the tree of splits. Its rows are named like those
of the region; SPLIT rows are the half-spaces of the path, and McCormick's envelopes are written down in the
cell's own box: the region's box met with the splits along free coordinates, and with the range of every
product.

*Covering.* Let simplices of rows be given, as many rows in each as there are coordinates, such that the rows
of each are independent and every face of every simplex (all its rows but one) belongs to exactly one other
simplex, whose additional row has a negative weight at the missing row when written as a combination of the
simplex's rows. Then the cones spanned by the simplices' rows cover all directions: walk from inside a cone
towards any direction, avoiding faces of codimension two; the last point covered would lie inside a face that
another cone continues on the other side.

*Hull.* If point p_k satisfies a_i·p_k ≥ b_i for all rows i of simplex k, then for x in the cell and a
direction g = Σ λ_i a_i of that cone, λ ≥ 0, g·x ≤ Σ λ_i b_i ≤ g·p_k. All directions are covered, so x lies in
the hull of the points.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tightrope.certificate.old_coupled import CoupledProof, Table
from tightrope.certificate.inner import EPSILON, Extended
from tightrope.certificate.region_rows import Origin, Row, RowWriter
from tightrope.certificate.space import Box, Space, product_range
from tightrope.certificate.support_check import Rows, weak_duality


class Splits:
    """The half-spaces of a tree of cells, as rows."""

    def __init__(self, proof: CoupledProof):
        self.direction = [[Fraction(float(v)) for v in row] for row in proof.split_direction]
        self.value = [Fraction(float(v)) for v in proof.split_value]

    def row(self, index: int, part: int) -> Row:
        if not 0 <= index < len(self.value) or part not in (0, 1):
            raise ValueError("no such split")
        if part == 0:
            return self.direction[index], self.value[index]
        return [-a for a in self.direction[index]], -self.value[index]


class Cells:
    """The cells that a proof speaks of."""

    def __init__(self, proof: CoupledProof, writer: RowWriter, region_box: Box):
        self.proof, self.region_box, self.space = proof, region_box, writer.space
        self.splits = Splits(proof)
        self.writer = RowWriter(
            writer.data, writer.space, writer.polynomials, {**writer.others, Origin.SPLIT: self.splits}
        )

    def rows(self, number: int) -> Rows:
        """The rows of proof `number`, which may name only what holds in its cell."""
        return self.rows_at(int(self.proof.node[number]), self.proof.rows_of(number))

    def rows_at(self, node: int, names: Table) -> Rows:
        """These rows in the cell of a node."""
        path = self.proof.path(node)
        allowed = set(path)
        for origin, index, part in names.tolist():
            if origin == Origin.SPLIT and (index, part) not in allowed:
                raise ValueError("a split that does not lead to its cell")
        return self.writer.rows(names, self.box(path))

    def box(self, path: list[tuple[int, int]]) -> Box:
        """The box of a cell: from splits along one free coordinate, and the ranges of products."""
        lower, upper = list(self.region_box[0]), list(self.region_box[1])
        for split, side in path:
            along = [j for j, a in enumerate(self.splits.direction[split]) if a]
            if len(along) != 1 or along[0] >= len(self.space.free):
                continue
            j, a = along[0], self.splits.direction[split][along[0]]
            end = self.splits.value[split] / a
            if (side == 0) == (a > 0):
                upper[j] = min(upper[j], end)
            else:
                lower[j] = max(lower[j], end)
        return _with_products(self.space, lower, upper)

    def is_empty(self, number: int) -> bool:
        """Whether Σ multiplier·row contradicts the box: an upper bound of 0 over the cell is negative."""
        rows = self.rows(number)
        begin, end = (int(self.proof.row_start[number + i]) for i in (0, 1))
        weights = self.proof.multiplier[begin:end].astype(np.longdouble)[None, :]
        nothing = np.zeros((1, rows.size), dtype=np.longdouble)
        return bool(weak_duality(rows, rows.matrix[None], rows.bound[None], nothing, weights)[0] < 0)


def _with_products(space: Space, lower: list[Fraction], upper: list[Fraction]) -> Box:
    first = space.size - len(space.products)
    for number, (left, right) in enumerate(space.products):
        z = first + number
        low, high = product_range(
            (min(lower[left], upper[left]), upper[left]),
            (min(lower[right], upper[right]), upper[right]),
            left == right,
        )
        lower[z], upper[z] = max(lower[z], low), min(upper[z], high)
    return lower, upper


def hull_misfit(rows: Rows, simplices: Table, points: Extended, reach: Extended) -> str | None:
    """Why the hull of the points need not contain the cell, or None.

    Points are coordinates x, each off by at most (coordinates + 2)·ε·reach.
    """
    count, size = simplices.shape
    if count != len(points) or count <= size:
        return "too few simplices, or not one a point"
    matrix, bound = rows.full()
    place = rows.positions(simplices)
    if np.any(np.diff(np.sort(place, axis=1), axis=1) == 0):
        return "a simplex names a row twice"
    scale = np.maximum(np.abs(rows.upper - rows.lower), np.longdouble(1e-300))
    length = np.maximum(np.abs(matrix * scale).sum(axis=1, keepdims=True), np.finfo(np.longdouble).tiny)
    # Rows in units of the box, each of length 1: that only helps the inverses.
    unit = (matrix * scale) / length
    beyond = np.einsum("kij,kj->ki", matrix[place], points) - bound[place]
    rounding = np.einsum("kij,kj->ki", np.abs(matrix[place]), reach) + np.abs(bound[place])
    if not np.all(beyond >= 4 * (size + 2) * EPSILON * rounding):
        return "a point lies on the wrong side of a row of its simplex"
    return _covering_misfit(unit, place)


def _covering_misfit(matrix: Extended, simplices: Table) -> str | None:
    """Why the cones of the simplices need not cover all directions, or None.

    `matrix` is the rows up to a positive factor a row and a positive factor a column, each off by a few ε.
    """
    size = simplices.shape[1]
    rough = matrix[simplices].astype(np.float64)
    try:
        inverse = np.linalg.inv(rough)
    except np.linalg.LinAlgError:
        return "the rows of a simplex are dependent"
    defect = np.abs(np.eye(size) - rough @ inverse).sum(axis=2).max(axis=1)
    margin = 2.0**-48 * size
    defect += margin * (np.abs(rough) @ np.abs(inverse)).sum(axis=2).max(axis=1)
    if not np.all(defect < 0.01):
        return "the rows of a simplex are dependent"
    other, newcomer = _neighbours(simplices)
    if other is None or newcomer is None:
        return "a face of a simplex does not belong to exactly two"
    far = matrix[newcomer].astype(np.float64)
    weight = np.einsum("kij,kji->ki", far, inverse)
    # far·A⁻¹ = far·R·(1 − E)⁻¹ with E = 1 − A·R: off by at most ‖far·R‖₁·defect/(1 − defect).
    spread = np.abs(np.einsum("kij,kjm->kim", far, inverse)).sum(axis=2)
    error = 2 * spread * defect[:, None]
    error += 2 * margin * np.einsum("kij,kjm->kim", np.abs(far), np.abs(inverse)).max(axis=2)
    if not np.all(weight + error < 0):
        return "two simplices lie on the same side of their common face"
    return None


def _neighbours(
    simplices: Table,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | tuple[None, None]:
    """[simplex, i]: the simplex across the face without row i, and its additional row."""
    count, size = simplices.shape
    order = np.sort(simplices, axis=1)
    faces = np.stack([np.delete(order, i, axis=1) for i in range(size)], axis=1).reshape(count * size, -1)
    dropped = order.reshape(-1)
    if size == 1:
        group = np.zeros(count, dtype=np.int64)
    else:
        _, group = np.unique(faces, axis=0, return_inverse=True)
        group = group.reshape(-1)
    if np.any(np.bincount(group) != 2):
        return None, None
    place = np.argsort(group, kind="stable").reshape(-1, 2)
    partner = np.empty(count * size, dtype=np.int64)
    partner[place[:, 0]], partner[place[:, 1]] = place[:, 1], place[:, 0]
    if np.any(dropped == dropped[partner]):
        return None, None
    # From the order of sorted rows back to that of the simplices' own rows.
    rank = np.argsort(np.argsort(simplices, axis=1), axis=1)
    index = rank + size * np.arange(count)[:, None]
    return (partner // size)[index], dropped[partner][index]
