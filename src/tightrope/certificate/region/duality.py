"""Upper bounds of linear functions over a polytope, from bases: weak duality.

For a direction g and a basis B of as many rows a·x ≤ b as there are coordinates (faces of the box included)
the multipliers y = g·B⁻¹ are searched in float64, improved, and cut at 0. Whatever they are,

    g·x = y·(B x) + (g − y·B)·x ≤ y·b + max over the box of (g − y·B)·x

holds for every x in the polytope, with equality up to rounding for the optimal basis. A basis that is not
one, or not optimal, gives a worse bound, never a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tightrope.certificate.budget import hold, spend, spend_on
from tightrope.certificate.numbers import RATIONAL, Arithmetic, Numbers
from tightrope.certificate.region.coordinates import Box
from tightrope.numerics.arrays import FloatArray

Indices = npt.NDArray[Any]
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Rows:
    """{ x : matrix·x ≤ bound }; rows 2j and 2j + 1 are x_j ≤ upper_j and −x_j ≤ −lower_j, the box."""

    n: Arithmetic
    matrix: Numbers
    bound: Numbers

    @staticmethod
    def of(n: Arithmetic, box: Box, rows: list[Numbers]) -> Rows:
        """Rows are (a, b). Bounds are raised by what rounding the entries may hide within the box."""
        size = len(box[0])
        table = n.zeros((2 * size + len(rows), size + 1))
        lower, upper = n.array(box[0]), n.array(box[1])
        for j in range(size):
            table[2 * j, j], table[2 * j, size] = 1, upper[j]
            table[2 * j + 1, j], table[2 * j + 1, size] = -1, -lower[j]
        if rows:
            table[2 * size :] = np.stack(rows)
        matrix, bound = table[:, :-1], table[:, -1]
        reach = np.maximum(np.abs(lower), np.abs(upper)) * (1 + 4 * n.epsilon)
        return Rows(n, matrix, bound + n.epsilon * 4 * (np.abs(bound) + (np.abs(matrix) * reach).sum(axis=1)))

    def within(self, n: Arithmetic) -> Rows:
        """The same rows in another arithmetic; what rounding entries may hide in the box is added exactly."""
        if n is self.n:
            return self
        spend_on("rows of the region", 4 * self.matrix.size, RATIONAL, self.matrix)
        exact, bound = RATIONAL.array(self.matrix), RATIONAL.array(self.bound)
        if n.exact:
            return Rows(n, exact, bound)
        matrix, reach = n.array(exact), RATIONAL.array(self.reach)
        return Rows(n, matrix, RATIONAL.up(bound + (abs(exact - RATIONAL.array(matrix)) * reach).sum(axis=1)))

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def upper(self) -> Numbers:
        return self.bound[0 : 2 * self.size : 2]

    @property
    def lower(self) -> Numbers:
        return -self.bound[1 : 2 * self.size : 2]

    @property
    def reach(self) -> Numbers:
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def bound_by(self, matrix: Numbers, bound: Numbers, directions: Numbers, multipliers: Numbers) -> Numbers:
        """y·b + max over the box of (g − y·A)·x, rounded up; y = multipliers[i] ≥ 0 for rows matrix[i]."""
        eps, terms, size = self.n.epsilon, multipliers.shape[1], self.size
        rest = directions - _times(multipliers, matrix)
        error = (terms + 4) * eps * (np.abs(directions) + _times(multipliers, np.abs(matrix)))
        over_box = np.maximum(rest * self.lower, rest * self.upper)
        paid = multipliers * bound
        spread = (np.abs(paid).sum(axis=1) + np.abs(over_box).sum(axis=1)) * (2 * (terms + size + 8)) * eps
        spread = spread + 2 * (error * self.reach).sum(axis=1)
        total: Numbers = paid.sum(axis=1) + over_box.sum(axis=1) + spread
        return total


def is_empty(rows: Rows, bases: Indices) -> bool:
    """Whether no x satisfies all rows, in rationals.

    The mean of the vertices of a proof's bases lies inside, as a rule. Else, with x = lower + u, rows that
    ask for less than nothing of u ≥ 0 are swapped with coordinates that can help, the first ones each time,
    until no row asks (u = 0 of what is left is a point) or nothing helps one that does (there is none).
    """
    size, matrix, bound = rows.size, RATIONAL.array(rows.matrix), RATIONAL.array(rows.bound)
    inverse = approximate_inverses(RATIONAL.floats(matrix)[bases])
    corners = np.einsum("nij,nj->ni", inverse, RATIONAL.floats(bound)[bases])
    middle = corners.sum(axis=0) / max(len(bases), 1)
    spend_on("points of the region", matrix.size, RATIONAL, matrix)
    if np.isfinite(middle).all() and np.all(matrix @ RATIONAL.array(middle) <= bound):
        return False
    table = np.column_stack([matrix, bound + matrix @ bound[1 : 2 * size : 2]])
    swapped, left = np.arange(size, size + len(table)), np.arange(size)
    while len(short := np.flatnonzero(table[:, -1] < 0)):
        row = short[np.argmin(swapped[short])]
        helping = np.flatnonzero(table[row, :-1] < 0)
        if len(helping) == 0:
            return True
        spend_on("points of the region", 2 * table.size, RATIONAL, table)
        column = helping[np.argmin(left[helping])]
        factor, new = table[:, column].copy(), table[row] / table[row, column]
        new[column] = 1 / table[row, column]
        table[:, column] = 0
        table = table - np.outer(factor, new)
        table[row] = new
        swapped[row], left[column] = left[column], swapped[row]
    return False


class Support(Protocol):
    """Whoever bounds directions·x over the region, direction i in the way which[i]."""

    def upper_bounds(self, directions: Numbers, which: Any) -> Numbers: ...

    def within(self, n: Arithmetic) -> Support: ...


class BasisTable:
    """Bases with their approximate inverses, each used for many directions."""

    def __init__(self, rows: Rows, basis: Indices):
        if basis.ndim != 2 or basis.shape[1] != rows.size or np.any(basis >= len(rows.bound)):
            raise ValueError("a basis does not fit the region's rows")
        self.rows, self.n, self.basis = rows, rows.n, basis
        hold("bases of the region", 24 * basis.size * rows.size)
        spend("bases of the region", basis.size * rows.size * (1 + rows.size // 16))
        self.matrix, self.bound = rows.matrix[basis], rows.bound[basis]
        self.inverse = approximate_inverses(self.n.floats(self.matrix))

    def within(self, n: Arithmetic) -> BasisTable:
        """The same bases in another arithmetic."""
        return BasisTable(self.rows.within(n), self.basis)

    def upper_bounds(self, directions: Numbers, which: Indices) -> Numbers:
        """Upper bounds of directions·x, direction i by basis which[i]."""
        count = max(1, _BLOCK // self.rows.size**2)
        if len(which) > count:
            parts = [slice(i, i + count) for i in range(0, len(which), count)]
            return np.concatenate([self.upper_bounds(directions[one], which[one]) for one in parts])
        spend_on("bounds by bases", 10 * directions.size * self.rows.size, self.n, self.rows.matrix)
        matrix, inverse = self.matrix[which], self.inverse[which]
        multipliers = self.n.zeros(directions.shape)
        for _ in range(3):
            rest = self.n.floats(directions - _times(multipliers, matrix))
            step = np.einsum("nj,nji->ni", rest, inverse)
            multipliers = multipliers + self.n.array(np.where(np.isfinite(step), step, 0.0))
        return self.rows.bound_by(matrix, self.bound[which], directions, np.maximum(multipliers, 0))


def upper_bounds(rows: Rows, directions: Numbers, basis: Indices) -> Numbers:
    """Upper bounds of directions·x, one basis each."""
    return BasisTable(rows, basis).upper_bounds(directions, np.arange(len(basis)))


def _times(vectors: Numbers, matrices: Numbers) -> Numbers:
    """Σ_i vectors[n, i]·matrices[n, i, j]."""
    result: Numbers = np.einsum("ni,nij->nj", vectors, matrices)
    return result


def approximate_inverses(matrix: FloatArray) -> FloatArray:
    """Approximate inverses; zeros where there is none."""
    try:
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        result = np.zeros(matrix.shape)
        for i, one in enumerate(matrix):
            if np.linalg.matrix_rank(one) == len(one):
                result[i] = np.linalg.inv(one)
        return result
