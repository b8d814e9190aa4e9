"""Bases of a region that prove bounds best: the dual simplex method over the rows of a certificate.

The search starts with the faces of the box that the direction points to, which prove a bound already, and
swaps in the row that the basis' vertex violates most until none is left; every basis on the way proves a
bound, each no worse than the one before. Directions along a coordinate have multipliers of 0 from the start,
and steps that cost nothing can go round in circles. So the search is for a direction tilted by next to
nothing, into the cone of the first basis, where every step gains; a few steps of the primal simplex method
then lead from that vertex to one that is optimal for the direction itself.

Coordinates are few and rows are hundreds, so plain NumPy does. Found in float64 and not to be relied on: the
checker computes the multipliers itself (`tightrope.certificate.rows`).
"""

from __future__ import annotations

from copy import copy

import numpy as np

from tightrope.certificate.numbers import RATIONAL
from tightrope.certificate.rows import RowSystem
from tightrope.numerics.arrays import FloatArray, OffsetArray

_VIOLATED = 1e-15
_MOST_STEPS = 400
_TILT = 1e-7
_NEGLIGIBLE = 1e-13
"""Multipliers this little below 0, relatively, are rounding: the checker cuts them at 0 and pays for it."""

_PARALLEL = 1e-11


class BasisFinder:
    """Optimal bases for many directions over one system."""

    def __init__(self, rows: RowSystem):
        self.size = rows.size
        lower, upper = RATIONAL.floats(rows.lower), RATIONAL.floats(rows.upper)
        self.centre, self.half = (lower + upper) / 2, np.maximum((upper - lower) / 2, 1e-200)
        scaled = RATIONAL.floats(rows.matrix) * self.half
        norm = np.maximum(np.abs(scaled).max(axis=1, initial=0), 1e-300)
        self.matrix = scaled / norm[:, None]
        self.bound = RATIONAL.floats(rows.bound - rows.matrix @ RATIONAL.array(self.centre)) / norm
        self.tilt = _TILT * (0.5 + np.random.default_rng(11).random(self.size))

    def find(self, directions: FloatArray) -> OffsetArray:
        """A basis for each direction: one that was found serves all others that it is optimal for."""
        goals = directions * self.half
        bases = np.zeros(directions.shape, dtype=np.int64)
        left: OffsetArray = np.arange(len(directions) if self.size else 0)
        while len(left):
            basis = self._search(goals[left[0]])
            multipliers = goals[left] @ np.linalg.inv(self.matrix[basis])
            small = _NEGLIGIBLE * np.abs(multipliers).max(axis=1, initial=0.0, keepdims=True)
            served = np.all(multipliers >= -small, axis=1)
            served[0] = True
            bases[left[served]] = basis
            left = left[~served]
        return bases

    def find_each(self, directions: FloatArray, common: int, own: OffsetArray) -> OffsetArray:
        """A basis for each direction over the first `common` rows and one row of its own (−1: none)."""
        bases = np.zeros(directions.shape, dtype=np.int64)
        shared = np.arange(common)
        for i, (goal, row) in enumerate(zip(directions * self.half, own.tolist(), strict=True)):
            rows = np.append(shared, row) if row >= 0 else shared
            part = copy(self)
            part.matrix, part.bound = self.matrix[rows], self.bound[rows]
            bases[i] = rows[part._search(goal)]
        return bases

    def largest(self, directions: FloatArray) -> FloatArray:
        """The largest value of each direction over the system, in plain float64."""
        bases = self.find(directions)
        distinct, which = np.unique(bases, axis=0, return_inverse=True)
        points = np.linalg.solve(self.matrix[distinct], self.bound[distinct][:, :, None])[:, :, 0]
        x = self.centre + self.half * points
        values: FloatArray = np.einsum("nd,nd->n", directions, x[which.reshape(-1)])
        return values

    def _search(self, goal: FloatArray) -> OffsetArray:
        basis: OffsetArray = 2 * np.arange(self.size) + (goal < 0.0)
        tilt = np.abs(goal).max(initial=0.0) * np.where(goal < 0.0, -self.tilt, self.tilt)
        return self._climb(self._descend(basis, goal + tilt), goal)

    def _descend(self, basis: OffsetArray, goal: FloatArray) -> OffsetArray:
        """The dual simplex method: from a basis with multipliers ≥ 0 to one whose vertex violates no row."""
        for _ in range(_MOST_STEPS):
            inverse = np.linalg.inv(self.matrix[basis])
            point = inverse @ self.bound[basis]
            excess = self.matrix @ point - self.bound
            excess[basis] = 0.0
            entering = int(np.argmax(excess))
            if not excess[entering] > _VIOLATED * (1.0 + float(np.abs(point).max(initial=0.0))):
                break
            multipliers = np.maximum(goal @ inverse, 0.0)
            share = self.matrix[entering] @ inverse
            leaving = _least_ratio(multipliers, share)
            if leaving is None:
                break
            basis = _swap(basis, leaving, entering)
        return basis

    def _climb(self, basis: OffsetArray, goal: FloatArray) -> OffsetArray:
        """The primal simplex method: from a basis whose vertex violates no row to multipliers ≥ 0."""
        for _ in range(_MOST_STEPS):
            inverse = np.linalg.inv(self.matrix[basis])
            multipliers = goal @ inverse
            leaving = int(np.argmin(multipliers))
            if multipliers[leaving] >= -_NEGLIGIBLE * np.abs(multipliers).max(initial=0.0):
                break
            room = np.maximum(self.bound - self.matrix @ (inverse @ self.bound[basis]), 0.0)
            speed = self.matrix @ -inverse[:, leaving]
            speed[basis] = 0.0
            entering = _least_ratio(room, speed)
            if entering is None:
                break
            basis = _swap(basis, leaving, entering)
        return basis


def _least_ratio(top: FloatArray, bottom: FloatArray) -> int | None:
    """Where top/bottom is least among positive bottoms; None where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(bottom > _PARALLEL, top / bottom, np.inf)
    least = int(np.argmin(ratio))
    return least if np.isfinite(ratio[least]) else None


def _swap(basis: OffsetArray, leaving: int, entering: int) -> OffsetArray:
    result = basis.copy()
    result[leaving] = entering
    return result
