"""Balls in χ² distance around the observed distribution of every signature, tightest where it is rare.

D(P̂, P) = Σ_o (P̂_o − P_o)²/max(P̂_o, P_o) is at most 2·(log(1/γ) + log L̂ − log L̄)/N time-uniformly with
probability at least 1 − γ, L̄ the likelihood under Dirichlet(½, …, ½). Rows bound sets of outcomes. Pooling
and the split of δ are as in `tightrope.regions.l1`. Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import up
from tightrope.regions.l1 import DistributionBalls
from tightrope.statistics.confidence_budget import Assumption

_SPARE = 1e-9
"""Relative: logarithms of Γ, and all sums, are off by far less."""

_STEPS = 60


class ChiSquareBalls(DistributionBalls):
    """Every signature's distribution within a ball in χ² distance, at all times."""

    value = "chi2"
    method = "χ² balls"
    assumption = Assumption.ADAPTIVE_ANYTIME

    def excess(self, seen: FloatArray, sets: FloatArray, gamma: float) -> FloatArray:
        total = seen.sum(axis=1)
        a = seen @ sets.T / total[:, None]
        radius = np.broadcast_to(chi2_radius(seen, gamma)[:, None], a.shape)
        low, high = a.copy(), np.ones_like(a)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            with np.errstate(divide="ignore", invalid="ignore"):
                away = (middle - a) ** 2 * (1.0 / middle + 1.0 / (1.0 - a))
            is_outside = away > radius
            low, high = np.where(is_outside, low, middle), np.where(is_outside, middle, high)
        return up(np.where(a < 1.0, (high - a) * (1.0 + _SPARE), 0.0))


def chi2_radius(seen: FloatArray, gamma: float) -> FloatArray:
    """r for counts [signatures, outcomes], rounded up.

    >>> chi2_radius(np.array([[30.0, 70.0]]), 0.05).round(3)
    array([0.111])
    """
    total, k = seen.sum(axis=1), seen.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(seen > 0.0, seen * np.log(seen / total[:, None]), 0.0)
    pieces = (
        np.full(len(seen), math.log(1.0 / gamma)),
        terms.sum(axis=1),
        gammaln(total + 0.5 * k),
        -gammaln(seen + 0.5).sum(axis=1),
        np.full(len(seen), k * math.lgamma(0.5) - math.lgamma(0.5 * k)),
    )
    size = np.sum([np.abs(piece) for piece in pieces], axis=0) + np.abs(gammaln(seen + 0.5)).sum(axis=1)
    radius: FloatArray = 2.0 * (np.sum(pieces, axis=0) + 1e-12 * size) / total * (1.0 + _SPARE)
    return up(radius)


CHI2 = ChiSquareBalls()
