"""Mixtures of supermartingales by Jensen's inequality: shares that are chosen after looking, and their price.

Let M_1, M_2, … be nonnegative supermartingales from at most 1 at the truth, and w_j > 0 weights that were
fixed in advance and sum to at most 1. Then Σ_j w_j·M_j is one, too, and stays below 1/α with probability at
least 1 − α. The logarithm is concave, so for any shares π ≥ 0 with Σ_j π_j = 1

    log Σ_j w_j·M_j ≥ Σ_j π_j·log M_j − Σ_j π_j·log(π_j/w_j),

whatever π is and however it was found: a parameter at which Σ_j π_j·log M_j reaches log(1/α) + KL(π‖w) may be
left out. Shares in proportion to w_j·M_j make it an equality; one M_j alone has the price log(1/w_j).
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import FloatArray

PARTS = 1024
"""Shares are whole numbers of these parts, so that they are exact and sum to 1."""


def best_shares(weight: FloatArray, wealth: FloatArray) -> FloatArray:
    """π nearly in proportion to w·exp(wealth); shares that hardly count are none."""
    log = np.log(weight) + wealth
    share = np.exp(log - log.max())
    share /= share.sum()
    parts = np.floor(share * PARTS)
    parts[int(share.argmax())] += PARTS - parts.sum()
    result: FloatArray = parts / PARTS
    return result


def price_of_shares(weight: FloatArray, share: FloatArray) -> float:
    """KL(π‖w) = Σ π·log(π/w), rounded up."""
    terms = [
        part * math.log(part / one)
        for part, one in zip(share.tolist(), weight.tolist(), strict=True)
        if part > 0.0
    ]
    return math.fsum(terms) + 1e-12 * (1.0 + math.fsum(abs(term) for term in terms))
