"""Observed returns of episodes: do they exclude that the mean is at most m?

Y_1, …, Y_n ≥ 0 are lower bounds of the returns of n independent episodes with mean μ. For 0 < f < 1 and m ≥
μ, K_f = Π_i ((1 − f) + f·Y_i/m) is a supermartingale with mean at most 1, and so is Σ_j K_{f_j}/s over s
fractions that are chosen without looking at returns: it ever reaches 1/γ with probability at most γ (Ville).
It falls in m, so that μ > m where it is at least 1/γ at m. Fractions are 15/16 and 2^(−j/2), j = 1, …, 40;
where n was fixed in advance, those between a tenth and ten times √(2·log(1/γ)/n), or 15/16 if there are none.
For any shares π_j that sum to 1, log Σ_j K_j/s ≥ Σ_j π_j·(log K_j − log(s·π_j)), so that logarithms suffice;
shares are guessed in floating point, which costs tightness, never validity.
"""

from __future__ import annotations

from fractions import Fraction
from math import log, sqrt

import numpy as np

from tightrope.certificate.budget import spend
from tightrope.certificate.logarithms import log_ratio
from tightrope.numerics.arrays import FloatArray

_ROOT = Fraction(6369051672525773, 2**52)
FRACTIONS = Fraction(15, 16), *((_ROOT if j % 2 else 1) / Fraction(2 ** ((j + 1) // 2)) for j in range(1, 41))
_UNIT = 1 << 128
_SHARES = 1 << 20


def exceeds(returns: FloatArray, number: int, m: Fraction, gamma: Fraction, planned: bool) -> bool:
    """Whether the mean of `number` returns is above m; `returns` are values above 0 and how often each was
    seen, all others count as 0."""
    if m <= 0 or not len(returns):
        return False
    used = FRACTIONS
    if planned:
        best = sqrt(2.0 * log(1.0 / float(gamma)) / max(number, 1))
        used = tuple(f for f in FRACTIONS if 0.1 * best <= f <= 10.0 * best) or FRACTIONS[:1]
    value, count = returns[:, 0], returns[:, 1].astype(np.int64).tolist()
    rest = number - sum(count)
    sizes = np.array([float(f) for f in used])[:, None]
    guess = np.log1p(sizes * (value / float(m) - 1.0)) @ returns[:, 1] + rest * np.log1p(-sizes[:, 0])
    weight = np.exp(guess - guess.max())
    share = np.floor(weight / weight.sum() * _SHARES).astype(np.int64)
    whole, total = int(share.sum()), 0
    spend("returns", 400 * int(np.count_nonzero(share)) * (len(count) + 2))
    for f, part in zip(used, share.tolist(), strict=True):
        if part:
            logs = [c * _log(1 - f + f * Fraction(y) / m) for y, c in zip(value.tolist(), count, strict=True)]
            own = sum(logs) + rest * _log(1 - f)
            total += part * (own + _log(Fraction(whole, len(used) * part)))
    return total + whole * _log(gamma) >= 0


def _log(x: Fraction) -> int:
    """Not above log x, in units of 2⁻¹²⁸."""
    top, bottom = log_ratio(x.numerator, x.denominator, False)
    return top * (_UNIT // bottom)
