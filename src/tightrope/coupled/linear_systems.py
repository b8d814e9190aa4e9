"""Chains with cycles: sparse LU for the coefficients of a Taylor model, and for its error bound.

Nothing here is trusted. The coefficients are compared with the equations afterwards, and the error bound is
verified (`tightrope.coupled.taylor`); a bad factorisation costs width or the model, never truth.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.coupled.chain import Chain
from tightrope.coupled.rows import Affine, Polynomials
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

_INFLATION = 1.0 + 1e-6
_ROOM = 1e-11


@dataclass(frozen=True, eq=False)
class ErrorSystem:
    """I − P₀ on the rows that are not fixed, factored; `matrix` is P₀ from these rows to all."""

    free: OffsetArray
    matrix: Any
    factor: Any

    @staticmethod
    def of(chain: Chain, affine: Affine) -> ErrorSystem | None:
        """None where the matrix is singular in float64."""
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        free = np.flatnonzero(~chain.fixed)
        matrix = build_matrix(chain, chain.weight * affine.middle[chain.expression])[free]
        inner = (eye_array(len(free), format="csc") - matrix[:, free]).tocsc()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return ErrorSystem(free, matrix, splu(inner))
            except (RuntimeError, Warning):
                return None

    def values(self, right: FloatArray) -> FloatArray:
        """(I − P₀)⁻¹ right, with one step of refinement; right [free, …]."""
        found: FloatArray = self.factor.solve(right)
        inner = self.matrix[:, self.free]
        found += self.factor.solve(right - found + inner @ found)
        return found

    def solve(self, right: FloatArray, guess: FloatArray) -> FloatArray | None:
        """The next candidate c for c ≥ F(c), given F(guess): (I − P₀)⁻¹(F(guess) − P₀·guess), a little
        inflated, with room for the rounding of the check at every row.
        """
        known = right[self.free] - self.matrix @ guess + _ROOM * guess[self.free]
        found = self.factor.solve(known) * _INFLATION
        largest = float(found.max(initial=0.0))
        if not (largest < 1e30 and np.all(found >= -1e-9 * largest)):
            return None
        found = np.maximum(found, known)  # the inverse is at least the identity
        result = np.zeros(len(guess))
        result[self.free] = found
        return result


def build_matrix(chain: Chain, data: FloatArray) -> Any:
    """The entries of the chain as a sparse matrix over all rows."""
    from scipy.sparse import csr_array

    return csr_array((data, chain.successor, chain.row_start), shape=(chain.rows, chain.rows))


def solve_polynomials(chain: Chain, affine: Affine, system: ErrorSystem, bend: int) -> Polynomials:
    """V, b and H by one solve for each column."""
    free, size = system.free, affine.gradient.shape[1]
    fixed: BoolArray = chain.fixed
    constant = np.where(fixed, chain.value, 0.0)
    constant[free] = system.values(chain.reward[free] + system.matrix @ constant)
    weight = chain.weight
    moves = [build_matrix(chain, weight * affine.gradient[chain.expression, j])[free] for j in range(size)]
    slope = np.zeros((chain.rows, size))
    if size:
        slope[free] = system.values(np.column_stack([move @ constant for move in moves]))
    curvature = np.zeros((chain.rows, bend, bend))
    if bend:
        pairs = [(i, j) for i in range(size) for j in range(i, size)]
        right = np.column_stack([0.5 * (moves[i] @ slope[:, j] + moves[j] @ slope[:, i]) for i, j in pairs])
        found = system.values(right)
        for column, (i, j) in enumerate(pairs):
            curvature[free, i, j] = curvature[free, j, i] = found[:, column]
    radius = affine.radius
    extent = np.abs(constant) + radius * np.linalg.norm(slope, axis=1)
    extent += radius**2 * np.linalg.norm(curvature.reshape(chain.rows, -1), axis=1)
    return Polynomials(constant, slope, curvature, extent * (1.0 + 1e-9))
