"""A small face of Clarabel: a linear function over an ellipsoid cut by half-spaces.

max g·x over ‖F·(x − c)‖₂ ≤ radius and A·x ≤ b, for many g. Clarabel is an interior-point method in floating
point, so only its multipliers are kept: for every λ ≥ 0, weak duality gives

    g·x  ≤  λ·b + (g − Aᵀλ)·c + radius·‖F⁻ᵀ(g − Aᵀλ)‖₂

on the whole set, and the caller evaluates that with its own rounding. Poor multipliers cost width, never
truth; λ = 0 (what a failed run returns) is the bound of the ellipsoid alone.
"""

from __future__ import annotations

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray


class ConeProgram:
    """The multipliers of the rows A·x ≤ b at the maximum of g·x over the ellipsoid cut by them."""

    def __init__(
        self, factor: FloatArray, centre: FloatArray, radius: float, matrix: FloatArray, bound: FloatArray
    ):
        try:
            import clarabel
        except ImportError as missing:
            raise InputError(
                "an ellipsoid cut by the domain needs the package 'clarabel', which is missing here",
                hint="pip install clarabel",
            ) from missing
        from scipy.sparse import csc_matrix

        size = len(centre)
        self._rows = len(bound)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False  # keeps every row, so that a new objective can be loaded
        stacked = np.vstack([matrix, np.zeros((1, size)), -factor])
        right = np.concatenate([bound, [radius], -(factor @ centre)])
        cones = [clarabel.NonnegativeConeT(self._rows), clarabel.SecondOrderConeT(size + 1)]
        self._solver = clarabel.DefaultSolver(
            csc_matrix((size, size)), np.zeros(size), csc_matrix(stacked), right, cones, settings
        )
        self._solved = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)

    def multipliers(self, direction: FloatArray) -> FloatArray:
        """λ ≥ 0 for max direction·x; zeros where Clarabel found none."""
        self._solver.update(q=-direction)
        outcome = self._solver.solve()
        if outcome.status not in self._solved:
            return np.zeros(self._rows)
        found = np.array(outcome.z[: self._rows], dtype=np.float64)
        return np.where(np.isfinite(found), np.maximum(found, 0.0), 0.0)
