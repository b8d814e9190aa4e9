"""Intervals of a probability from K successes in N trials.

[lower, upper] is accepted if it is at least as wide as that of the method:

* clopper-pearson: P(Bin(N, lower) ≥ K) ≤ γ/2 and P(Bin(N, upper) ≤ K) ≤ γ/2.
* hoeffding: the ends are at least √(log(2/γ)/(2N)) away from K/N.
* beta-binomial: at both ends the likelihood ratio of the mixture with the Beta(½, ½) distribution is at least
  1/γ; of *named outcomes* at least 1/(γ·p) at an end p (`unseen.py`). That excludes all beyond p as well:
  p^(K−1)·(1−p)^(N−K) has one maximum, and K/N is never excluded.

0 and 1 are always valid, and an upper end is a lower one of the failures. All is computed in whole numbers of
2⁻¹²⁸, rounded to the safe side, by Stirling's and geometric series (`proofs/certificates.md`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import factorial

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import spend
from tightrope_check.logarithms import log_ratio

_SMALL = 33
_TERMS = (1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360)
_SERIES = [Fraction(*term) for term in _TERMS]
UNIT = 1 << 128
_LOG_TWO_PI = 18378770664093454835606594728112352797227 * UNIT // 10**40
"""Rounded down, by less than 2 units."""

_ENOUGH = 10**13
_MOST_TERMS = 100_000


class Intervals:
    """Intervals of one method at one level γ. Logarithms are whole numbers of units, on the safe side."""

    def __init__(self, method: str, gamma: Fraction):
        self.method = method
        self.level = log_ratio(gamma.numerator, gamma.denominator, False)[0]
        self.half = self.level - log_ratio(2, 1, True)[0]

    def unproved(
        self, successes: OffsetArray, trials: OffsetArray, lower: FloatArray, upper: FloatArray
    ) -> BoolArray:
        """Where the interval does not follow from the counts."""
        wrong = ~((successes <= trials) & (lower >= 0) & (lower <= upper) & (upper <= 1))
        for end, trivial, upward in ((lower, lower <= 0, False), (upper, upper >= 1, True)):
            rows = np.flatnonzero(~wrong & ~trivial)
            names = np.stack([successes[rows].astype(np.float64), trials[rows].astype(np.float64), end[rows]])
            _, first, inverse = np.unique(names, axis=1, return_index=True, return_inverse=True)
            part = rows[first]
            spend("intervals from counts", 20 * len(part), 500)
            cases = zip(successes[part].tolist(), trials[part].tolist(), end[part].tolist(), strict=True)
            holds = [self.holds(k, size, p, upward) for k, size, p in cases]
            wrong[rows] |= ~np.array(holds, dtype=np.bool_)[inverse.reshape(-1)]
        return wrong

    def holds(self, k: int, size: int, end: float | Fraction, upward: bool) -> bool:
        """The condition at an end that is neither 0 nor 1: of p = a/b as a lower end."""
        a, b = end.as_integer_ratio()
        own = log_ratio(a, b, False)[0] if self.method == "named outcomes" else 0
        if upward:
            k, a = size - k, b - a
        away = k * b - size * a
        if away <= 0:
            return False
        if self.method == "hoeffding":  # 2·(away/b)² ≥ size·log(2/γ)
            return 2 * away * away * UNIT >= -self.half * size * b * b
        value = _log_point(k, size, a, b)
        if self.method == "clopper-pearson":
            total = self._series(k, size, a, b - a)
            return total is not None and value + log_ratio(total, UNIT, True)[0] <= self.half
        for part in (k, size - k):
            value += 2 * stirling(part, True) - stirling(2 * part, False)
        return own - value >= -self.level

    def _series(self, k: int, size: int, a: int, rest: int) -> int | None:
        """An upper bound of 1 + r + r·r' + … over the ratios of probabilities from k upwards: the ratios are
        below 1 and fall, so what is left is below a geometric series."""
        total = term = UNIT
        for at in range(k, k + _MOST_TERMS):
            top, bottom = (size - at) * a, (at + 1) * rest
            left = term * top
            if left * _ENOUGH <= total * (bottom - top):
                return total - (-left // (bottom - top))
            term = -(-left // bottom)
            total += term
            if at % 64 == 0:
                spend("tails of binomials", 320, 320)
        return None


@lru_cache(maxsize=1 << 16)
def stirling(count: int, upward: bool) -> int:
    """s(n) in units, on a side; its series is off by less than the first term left out, and has its sign."""
    if count < _SMALL:
        return log_ratio(factorial(count), count**count, upward)[0] + count * UNIT
    total = (log_ratio(count, 1, upward)[0] + _LOG_TWO_PI) // 2
    for i, c in enumerate(_SERIES):
        total += c.numerator * UNIT // (c.denominator * count ** (2 * i + 1))
    return total + UNIT // (156 * count**13) + len(_SERIES) + 3 if upward else total


def _log_point(k: int, size: int, a: int, b: int) -> int:
    """Not below log P(Bin(size, a/b) = k), in units."""
    value = stirling(size, True) - stirling(k, False) - stirling(size - k, False)
    for part, share in ((k, a), (size - k, b - a)):
        if part:
            value -= part * log_ratio(part * b, size * share, False)[0]
    return value
