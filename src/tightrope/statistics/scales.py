"""Bets of several sizes at once, for data whose amount nobody planned.

A bet's size is best for one amount of data. With bets tuned to amounts N·4^j, j = 0, ±1, ±2, …, and weights
w_0 = ½, w_j = 1/(4|j|(|j|+1)), which sum to 1, the mixture E = Σ_j w_j·exp Λ_j is again a nonnegative
supermartingale from at most 1 at the truth, so with probability at least 1 − α it stays below 1/α. By
Jensen's inequality, for any shares π on the scales,

    E(θ) < 1/α   implies   Σ_j π_j·Λ_j(θ) < log(1/α) + Σ_j π_j·log(π_j/w_j),

and any shares may be chosen after looking: each gives a valid half-space. Those in proportion to
w_j·exp Λ_j at the point that binds are the best. Leaving scales out of the sum only lowers E, which is sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray

BASE = 4096.0
"""N where nothing was planned, in visits."""

_LOW, _HIGH = -4, 7
"""Scales from 16 to 67 million visits; the weights of the others are given away."""

_BELOW, _ABOVE = -7, 2
"""Scales around a plan, from a 16,384th of it to 16 times as much."""

_PARTS = 1024.0
"""Shares are whole numbers of these, so that they sum to 1 exactly."""


@dataclass(frozen=True)
class Scale:
    """Bets for this amount of data, with this weight; `amount` is that of the plan where there is one."""

    amount: float
    weight: float


def scales(planned: float | None, middle: float | None = None) -> tuple[Scale, ...]:
    """One scale where the amount was planned, else all that share the stake, around `middle` where known."""
    if planned is not None:
        return (Scale(planned, 1.0),)
    if middle is not None:
        return tuple(Scale(middle * 4.0**j, _weight(j)) for j in range(_BELOW, _ABOVE + 1))
    return tuple(Scale(BASE * 4.0**j, _weight(j)) for j in range(_LOW, _HIGH + 1))


def _weight(j: int) -> float:
    return 0.5 if j == 0 else 1.0 / (4.0 * abs(j) * (abs(j) + 1.0))


def best_shares(every: tuple[Scale, ...], wealth: FloatArray) -> FloatArray:
    """π nearly in proportion to w·exp Λ; shares that hardly count are none."""
    log = np.log([scale.weight for scale in every]) + wealth
    share = np.exp(log - log.max())
    share /= share.sum()
    parts = np.floor(share * _PARTS)
    parts[int(share.argmax())] += _PARTS - parts.sum()
    result: FloatArray = parts / _PARTS
    return result


def allowance(every: tuple[Scale, ...], share: FloatArray) -> float:
    """Σ π·log(π/w), which the shares cost, rounded up."""
    terms = [
        float(part) * math.log(float(part) / scale.weight)
        for part, scale in zip(share, every, strict=True)
        if part > 0.0
    ]
    return math.fsum(terms) + 1e-12 * (1.0 + math.fsum(abs(term) for term in terms))
