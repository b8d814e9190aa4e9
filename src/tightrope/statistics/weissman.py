"""Radii of L1 balls around an empirical distribution (Weissman et al. 2003).

For n independent draws from a distribution P on k outcomes,

    Pr( ‖P̂ − P‖₁ ≥ ε ) ≤ (2ᵏ − 2)·exp(−n·ε²/2),

because ‖P̂ − P‖₁ = 2·max over sets A of outcomes of P̂(A) − P(A), a union over 2ᵏ − 2 sets of Hoeffding's
inequality with deviation ε/2. A statement about a number of draws fixed in advance. Without draws the
radius is 2, the diameter of the simplex.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray


def weissman_radius(outcomes: OffsetArray, trials: OffsetArray, gamma: float) -> FloatArray:
    """The radius at level 1 − gamma for each (number of outcomes ≥ 2, number of draws), rounded up, at
    most 2.
    """
    k = outcomes.astype(np.float64)
    log_sets = k * np.log(2.0) + np.log1p(-np.exp2(1.0 - k))
    radius = np.sqrt(2.0 * (log_sets + np.log(1.0 / gamma)) / np.maximum(trials, 1)) * (1.0 + 1e-13)
    return np.where(trials > 0, np.minimum(radius, 2.0), 2.0)
