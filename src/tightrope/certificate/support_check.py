"""Upper bounds of linear functions over a polytope, from bases: weak duality with safe rounding.

For a direction g and a basis B of as many rows as there are coordinates (rows a·x ≤ b, faces of the box
included) the multipliers y = g·B⁻¹ are computed here, improved in longdouble, and cut at 0. Whatever they
are,

    g·x = y·(B x) + (g − y·B)·x ≤ y·b + max over the box of (g − y·B)·x

holds for every x in the polytope, with equality up to rounding for the optimal basis. A basis that is not
one, or not optimal, gives a worse bound, never a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.certificate.inner import EPSILON, Extended, as_fraction

Indices = npt.NDArray[Any]

_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Rows:
    """{ x : matrix·x ≤ bound, lower ≤ x ≤ upper }, longdouble numbers that are exact by definition.

    A basis entry i ≥ 0 is a row, −1 − 2j is x_j ≤ upper_j and −2 − 2j is −x_j ≤ −lower_j.
    """

    matrix: Extended
    bound: Extended
    lower: Extended
    upper: Extended

    @property
    def size(self) -> int:
        return len(self.lower)

    def full(self) -> tuple[Extended, Extended]:
        """All rows and, after them, the faces of the box in the order upper 0, lower 0, upper 1, …"""
        faces = np.zeros((2 * self.size, self.size), dtype=np.longdouble)
        ends = np.zeros(2 * self.size, dtype=np.longdouble)
        for j in range(self.size):
            faces[2 * j, j], faces[2 * j + 1, j] = 1, -1
            ends[2 * j], ends[2 * j + 1] = self.upper[j], -self.lower[j]
        return np.concatenate([self.matrix, faces]), np.concatenate([self.bound, ends])

    def positions(self, basis: Indices) -> Indices:
        """Basis entries as positions in `full`; out of range ones are refused."""
        count = len(self.bound)
        if np.any(basis >= count) or np.any(basis < -2 * self.size):
            raise ValueError("a basis names a row that is not there")
        return np.where(basis >= 0, basis, count - 1 - basis)


def extended(values: list[Fraction]) -> Extended:
    """Rationals in longdouble, off by at most EPSILON relatively (and by nothing where they fit)."""
    high = [float(value) for value in values]
    low = [float(value - Fraction(h)) for value, h in zip(values, high, strict=True)]
    return np.array(high, dtype=np.longdouble) + np.array(low, dtype=np.longdouble)


class BasisTable:
    """Bases with their approximate inverses, each used for many directions."""

    def __init__(self, rows: Rows, basis: Indices):
        if basis.ndim != 2 or basis.shape[1] != rows.size or basis.dtype.kind not in "iu":
            raise ValueError("bases that do not fit the coordinates")
        matrix, bound = rows.full()
        place = rows.positions(basis)
        self.rows = rows
        self.matrix, self.bound = matrix[place], bound[place]
        self.inverse = _inverses(self.matrix)

    def upper_bounds(self, directions: Extended, which: Indices) -> Extended:
        """Upper bounds of directions·x, direction i by basis which[i]."""
        result = np.empty(len(directions), dtype=np.longdouble)
        for start in range(0, len(directions), _BLOCK):
            part = slice(start, start + _BLOCK)
            result[part] = self._bounds(directions[part], which[part])
        return result

    def _bounds(self, directions: Extended, which: Indices) -> Extended:
        matrix, inverse = self.matrix[which], self.inverse[which]
        multipliers = np.zeros(directions.shape, dtype=np.longdouble)
        for _ in range(3):
            rest = directions - np.einsum("ni,nij->nj", multipliers, matrix)
            step = np.einsum("nj,nji->ni", rest.astype(np.float64), inverse)
            multipliers = multipliers + np.where(np.isfinite(step), step, 0)
        return weak_duality(self.rows, matrix, self.bound[which], directions, np.maximum(multipliers, 0))


def upper_bounds(rows: Rows, directions: Extended, basis: Indices) -> Extended:
    """Upper bounds of directions·x, one basis each."""
    return BasisTable(rows, basis).upper_bounds(directions, np.arange(len(basis)))


def _inverses(matrix: Extended) -> npt.NDArray[np.float64]:
    """Approximate inverses; zeros where there is none."""
    rough = matrix.astype(np.float64)
    try:
        return np.asarray(np.linalg.inv(rough), dtype=np.float64)
    except np.linalg.LinAlgError:
        result = np.zeros(rough.shape)
        for i, one in enumerate(rough):
            if np.linalg.matrix_rank(one) == len(one):
                result[i] = np.linalg.inv(one)
        return result


def weak_duality(
    rows: Rows, matrix: Extended, bound: Extended, directions: Extended, multipliers: Extended
) -> Extended:
    """y·b + max over the box of (g − y·A)·x, rounded up; y ≥ 0."""
    size = rows.size
    terms = multipliers.shape[1]
    rest = directions - np.einsum("ni,nij->nj", multipliers, matrix)
    weight = np.abs(directions) + np.einsum("ni,nij->nj", multipliers, np.abs(matrix))
    error = (terms + 4) * EPSILON * weight
    reach = np.maximum(np.abs(rows.lower), np.abs(rows.upper))
    over_box = np.maximum(rest * rows.lower, rest * rows.upper)
    paid = multipliers * bound
    value = paid.sum(axis=1) + over_box.sum(axis=1)
    spread = (np.abs(paid).sum(axis=1) + np.abs(over_box).sum(axis=1)) * (terms + size + 6) * EPSILON
    total: Extended = value + 2 * spread + (error * reach).sum(axis=1) * (1 + 1e-6)
    return total


def exact_upper_bound(rows: Rows, direction: list[Fraction], basis: list[int]) -> Fraction:
    """The bound of one basis in rationals; the box's own where the basis is singular."""
    matrix, bound = rows.full()
    place = rows.positions(np.array(basis)).tolist()
    square = [[as_fraction(value) for value in matrix[i]] for i in place]
    ends = [as_fraction(bound[i]) for i in place]
    multipliers = _solve_transposed(square, direction)
    if multipliers is None:
        multipliers = [Fraction(0)] * len(direction)
    multipliers = [max(value, Fraction(0)) for value in multipliers]
    total = sum((y * b for y, b in zip(multipliers, ends, strict=True)), Fraction(0))
    for j, wanted in enumerate(direction):
        rest = wanted - sum((y * row[j] for y, row in zip(multipliers, square, strict=True)), Fraction(0))
        total += max(rest * as_fraction(rows.lower[j]), rest * as_fraction(rows.upper[j]))
    return total


def _solve_transposed(matrix: list[list[Fraction]], direction: list[Fraction]) -> list[Fraction] | None:
    """y with y·matrix = direction, by elimination; None where the matrix is singular."""
    size = len(direction)
    table = [[matrix[i][j] for i in range(size)] + [direction[j]] for j in range(size)]
    for column in range(size):
        pivot = next((r for r in range(column, size) if table[r][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        lead = table[column][column]
        table[column] = [value / lead for value in table[column]]
        for r in range(size):
            if r != column and (factor := table[r][column]):
                table[r] = [a - factor * b for a, b in zip(table[r], table[column], strict=True)]
    return [table[i][size] for i in range(size)]
