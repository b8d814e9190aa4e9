"""Upper bounds of linear functions over a polytope, from bases: weak duality.

For a direction g and a basis B of as many rows a·x ≤ b as there are coordinates (faces of the box included)
the multipliers y = g·B⁻¹ are searched in float64, improved, and cut at 0. Whatever they are,

    g·x = y·(B x) + (g − y·B)·x ≤ y·b + max over the box of (g − y·B)·x

holds for every x in the polytope, with equality up to rounding for the optimal basis. A basis that is not
one, or not optimal, gives a worse bound, never a wrong one.

Rows are rational, and so is what is derived from them: multipliers are sums of two doubles, found by
operations whose order is fixed, so bounds are the same on every machine. At the choices of a model, which are
many, `within` float64 the same rows bound with their rounding added.
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
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Rows:
    """{ x : matrix·x ≤ bound }; rows 2j and 2j + 1 are x_j ≤ upper_j and −x_j ≤ −lower_j, the box."""

    n: Arithmetic
    matrix: Numbers
    bound: Numbers

    @staticmethod
    def of(box: Box, rows: list[Numbers]) -> Rows:
        """Rows are (a, b), all rational."""
        size = len(box[0])
        table = RATIONAL.zeros((2 * size + len(rows), size + 1))
        lower, upper = RATIONAL.array(box[0]), RATIONAL.array(box[1])
        for j in range(size):
            table[2 * j, j], table[2 * j, size] = RATIONAL.array([1])[0], upper[j]
            table[2 * j + 1, j], table[2 * j + 1, size] = RATIONAL.array([-1])[0], -lower[j]
        if rows:
            table[2 * size :] = np.stack(rows)
        return Rows(RATIONAL, table[:, :-1], table[:, -1])

    def within(self, n: Arithmetic) -> Rows:
        """The same in an arithmetic: bounds are raised by what rounding the entries may hide in the box."""
        if n.exact:
            return self
        spend_on("rows of the region", 4 * self.matrix.size, RATIONAL, self.matrix)
        near = n.array(self.matrix)
        n.require_finite(near)
        missed = np.abs(self.matrix - RATIONAL.array(near)) @ self.reach
        bound = RATIONAL.up(self.bound + missed)
        n.require_finite(bound)
        return Rows(n, near, bound)

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
        n, terms = self.n, multipliers.shape[1] + self.size
        rest, paid = directions - _times(multipliers, matrix), multipliers * bound
        over_box = np.maximum(rest * self.lower, rest * self.upper)
        total: Numbers = paid.sum(axis=1) + over_box.sum(axis=1)
        if n.exact:
            return total
        missed = n.error(terms + 8, np.abs(directions) + _times(multipliers, np.abs(matrix)))
        spread = np.abs(paid).sum(axis=1) + np.abs(over_box).sum(axis=1)
        total = total + 2 * (missed * self.reach).sum(axis=1) + n.error(2 * terms + 16, spread)
        return np.where(np.isfinite(total), total, np.inf)


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
        self.inverse = approximate_inverses(self.n.floats(rows.matrix)[basis])

    def within(self, n: Arithmetic) -> BasisTable:
        """The same bases in another arithmetic."""
        return BasisTable(self.rows.within(n), self.basis)

    def upper_bounds(self, directions: Numbers, which: Indices) -> Numbers:
        """Upper bounds of directions·x, direction i by basis which[i]."""
        count = max(1, _BLOCK // self.rows.size**2)
        if len(which) > count:
            parts = [slice(i, i + count) for i in range(0, len(which), count)]
            return np.concatenate([self.upper_bounds(directions[one], which[one]) for one in parts])
        spend_on("bounds by bases", 8 * directions.size * self.rows.size, self.n, self.rows.matrix)
        n, matrix, inverse = self.n, self.matrix[which], self.inverse[which]
        multipliers = n.array(_finite(_times(n.floats(directions), inverse)))
        rest = n.floats(directions - _times(multipliers, matrix))
        multipliers = np.maximum(multipliers + n.array(_finite(_times(rest, inverse))), 0)
        best = self.rows.bound_by(matrix, self.bound[which], directions, multipliers)
        return best if n.exact else np.where(np.any(directions != 0, axis=1), best, 0)


def upper_bounds(rows: Rows, directions: Numbers, basis: Indices) -> Numbers:
    """Upper bounds of directions·x, one basis each."""
    bases, which = np.unique(basis, axis=0, return_inverse=True)
    return BasisTable(rows, bases).upper_bounds(directions, which.reshape(-1))


def _times(vectors: Numbers, matrices: Numbers) -> Numbers:
    """Σ_i vectors[n, i]·matrices[n, i, j], one after the other."""
    result: Numbers = vectors[:, 0, None] * matrices[:, 0]
    for i in range(1, vectors.shape[1]):
        result = result + vectors[:, i, None] * matrices[:, i]
    return result


def _finite(steps: FloatArray) -> FloatArray:
    return np.where(np.isfinite(steps), steps, 0.0)


def approximate_inverses(matrix: FloatArray) -> FloatArray:
    """Approximate inverses, zeros where there is none: by elimination with the largest pivots, in plain steps
    that are the same on every machine."""
    (count, size), result = matrix.shape[:2], np.zeros(matrix.shape)
    step = max(1, _BLOCK // max(size * size, 1))
    for first in range(0, count, step):
        part = matrix[first : first + step]
        every, work = np.arange(len(part)), np.concatenate([part, np.zeros(part.shape)], axis=2)
        work[:, np.arange(size), size + np.arange(size)] = 1.0
        with np.errstate(all="ignore"):
            for j in range(size):
                pivot = j + np.argmax(np.abs(work[:, j:, j]), axis=1)
                chosen = work[every, pivot]
                work[every, pivot] = work[:, j]
                work[:, j] = chosen / chosen[:, j, None]
                factor = work[:, :, j].copy()
                factor[:, j] = 0.0
                work -= factor[:, :, None] * work[:, j, None]
        sound = np.all(np.isfinite(work), axis=(1, 2))
        result[first : first + step][sound] = work[sound][:, :, size:]
    return result
