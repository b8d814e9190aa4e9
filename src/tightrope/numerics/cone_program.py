"""A small face of Clarabel: a linear function over an ellipsoid cut by half-spaces.

max g·x over ‖F·(x − c)‖₂ ≤ radius and A·x ≤ b, for many g. Clarabel is an interior-point method in floating
point, so only its multipliers are kept: for every λ ≥ 0, weak duality gives

    g·x  ≤  λ·b + (g − Aᵀλ)·c + radius·‖F⁻ᵀ(g − Aᵀλ)‖₂

on the whole set, and the caller evaluates that with its own rounding. Poor multipliers cost width, never
truth; λ = 0 (what a failed run returns) is the bound of the ellipsoid alone.

A small face of Clarabel and HiGHS: the least weighted sum of norms that adds up to a vector.

    minimise  Σ weight_i·‖z_i‖₂   subject to   Σ F_iᵀ·z_i = c

Its dual is  max c·u  subject to  ‖F_i·u‖₂ ≤ weight_i  for all i, a program with as many variables as c has
entries. Both are solved there: where every F_i is a single row it is linear and HiGHS takes it, otherwise
it is a second-order cone program for Clarabel. The z_i are the multipliers.

Weak duality needs no trust in either solver: for any u, c·u / max_i(‖F_i·u‖/weight_i) is at most the least
sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.linear_program import LinearProgram, LinearStatus


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


RANK = 1e-10
"""Directions in which all F_i together are shorter than this part of the longest count as missing."""


@dataclass(frozen=True, eq=False)
class LeastNorms:
    """The norms ‖z_i‖, and a lower bound on the least Σ weight_i·‖z_i‖ that holds whatever the solver did."""

    norm: FloatArray
    bound: float


def least_norms(factors: Sequence[FloatArray], weight: FloatArray, vector: FloatArray) -> LeastNorms | None:
    """The minimum; None where the rows of the factors do not span the vector, or the solver failed."""
    scale = _whitening(factors)
    scaled = scale.T @ vector
    size = float(np.linalg.norm(vector))
    back = np.linalg.pinv(scale.T) @ scaled
    if size == 0.0 or np.linalg.norm(back - vector) > 1e-7 * size:
        return None
    reduced = [factor @ scale for factor in factors]
    unit = float(np.linalg.norm(scaled))
    single = all(len(factor) == 1 for factor in factors)
    found = (_by_highs if single else _by_clarabel)(reduced, weight, scaled / unit)
    if found is None:
        return None
    norm, dual = found
    reach = max(
        float(np.linalg.norm(factor @ dual)) / cost for factor, cost in zip(reduced, weight, strict=True)
    )
    bound = float(scaled @ dual) / reach if reach > 0.0 else 0.0
    return LeastNorms(norm * unit, max(bound, 0.0))


def _whitening(factors: Sequence[FloatArray]) -> FloatArray:
    """T [d, r] with Σ (F_i·T)ᵀ(F_i·T) = 1, over the directions that any of the F_i sees."""
    stacked = np.concatenate(list(factors))
    _, length, directions = np.linalg.svd(stacked, full_matrices=False)
    seen = length > RANK * length.max(initial=0.0)
    whitening: FloatArray = directions[seen].T / length[seen]
    return whitening


def _by_highs(
    factors: Sequence[FloatArray], weight: FloatArray, vector: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    rows = np.concatenate(list(factors))
    free = np.full(len(vector), np.inf)
    program = LinearProgram(-free, free)
    program.add_rows(np.concatenate([rows, -rows]), np.concatenate([weight, weight]))
    outcome = program.maximise(vector)
    if outcome.status is not LinearStatus.OPTIMAL:
        return None
    plus, minus = np.split(outcome.multipliers, 2)
    return np.abs(plus - minus), outcome.point


def _by_clarabel(
    factors: Sequence[FloatArray], weight: FloatArray, vector: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    import clarabel
    from scipy.sparse import csc_matrix

    size = len(vector)
    lengths = [len(factor) + 1 for factor in factors]
    begin = np.concatenate([[0], np.cumsum(lengths)])
    matrix, right = np.zeros((begin[-1], size)), np.zeros(begin[-1])
    for first, factor, cost in zip(begin[:-1], factors, weight, strict=True):
        matrix[first + 1 : first + 1 + len(factor)] = -factor
        right[first] = cost
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.SecondOrderConeT(length) for length in lengths]
    solver = clarabel.DefaultSolver(
        csc_matrix((size, size)), -vector, csc_matrix(matrix), right, cones, settings
    )
    outcome = solver.solve()
    if outcome.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return None
    multiplier = np.array(outcome.z)
    norm = np.array([np.linalg.norm(multiplier[a + 1 : b]) for a, b in pairwise(begin)])
    return norm, np.array(outcome.x)
