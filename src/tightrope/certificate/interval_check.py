"""Is [lower, upper] an interval of the stated method for K successes in N trials, or a wider one?

* clopper-pearson  P(Bin(N, lower) ≥ K) ≤ γ/2 and P(Bin(N, upper) ≤ K) ≤ γ/2. Both tails are monotone, so
  every p outside the interval has a tail below γ/2 as well.
* hoeffding        the ends are at least √(log(2/γ)/(2N)) away from K/N.
* beta-binomial    at both ends the mixture's likelihood ratio is at least 1/γ; it is convex in log p around
  K/N, so it is at least that beyond them.

0 and 1 are always fine. The tails come with error bounds (`tightrope.certificate.binomial`) or, for
`exactly` and N small enough, from sums of integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tightrope.certificate.binomial import mixture_evidence, tail_above, tail_below
from tightrope.certificate.inner import EPSILON, Extended
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

METHODS = ("clopper-pearson", "hoeffding", "beta-binomial")
MOST_EXACT_TRIALS = 1000
_BLOCK = 1 << 16


def unproved(
    method: str,
    successes: OffsetArray,
    trials: OffsetArray,
    gamma: float,
    lower: FloatArray,
    upper: FloatArray,
    exactly: bool = False,
) -> BoolArray:
    """Where the interval does not follow from the counts at level 1 − gamma."""
    wrong = np.zeros(len(trials), dtype=np.bool_)
    fits = (successes >= 0) & (successes <= trials) & (lower >= 0) & (lower <= upper) & (upper <= 1)
    wrong |= ~fits
    for bound, ends, upward in ((lower, lower <= 0, False), (upper, upper >= 1, True)):
        rows = np.flatnonzero(fits & ~ends)
        k, n, p = successes[rows], trials[rows], bound[rows]
        if exactly:
            small = n <= MOST_EXACT_TRIALS
            for i in np.flatnonzero(small).tolist():
                ok = _holds_exactly(method, int(k[i]), int(n[i]), gamma, Fraction(float(p[i])), upward)
                wrong[rows[i]] |= not ok
            rows, k, n, p = rows[~small], k[~small], n[~small], p[~small]
        key = np.stack([k.astype(np.float64), n.astype(np.float64), p])
        _, first, inverse = np.unique(key, axis=1, return_index=True, return_inverse=True)
        holds = np.zeros(len(first), dtype=np.bool_)
        for start in range(0, len(first), _BLOCK):
            part = first[start : start + _BLOCK]
            holds[start : start + _BLOCK] = _holds(method, k[part], n[part], gamma, p[part], upward)
        wrong[rows] |= ~holds[inverse.reshape(-1)]
    return wrong


def _holds(
    method: str, k: OffsetArray, n: OffsetArray, gamma: float, bound: FloatArray, upward: bool
) -> BoolArray:
    """The condition at an end that is neither 0 nor 1."""
    p: Extended = bound.astype(np.longdouble)
    beyond: BoolArray = (k < n) & (n * p > k) if upward else (k > 0) & (n * p < k)
    result = np.zeros(len(k), dtype=np.bool_)
    rows = np.flatnonzero(beyond)
    k, n, p = k[rows], n[rows], p[rows]
    if method == "clopper-pearson":
        tail = tail_below(k, n, p) if upward else tail_above(k, n, p)
        result[rows] = tail <= np.longdouble(gamma) / 2
    elif method == "beta-binomial":
        result[rows] = mixture_evidence(k, n, p) >= _log_inverse(gamma)
    else:
        distance = np.abs(k - n * p) - 2 * EPSILON * (k + n * p)
        needed = n * (_log_inverse(gamma) + np.log(np.longdouble(2))) * (1 + 8 * EPSILON)
        result[rows] = (distance > 0) & (2 * distance**2 * (1 - 8 * EPSILON) >= needed)
    return result


def _log_inverse(level: float) -> np.longdouble:
    """An upper bound on log(1/level)."""
    value = -np.log(np.longdouble(level))
    return np.longdouble(value + 4 * EPSILON * abs(value))


def radius_holds(radius: float, outcomes: int, trials: int, gamma: float) -> bool:
    """Whether an L1 ball of this radius has Weissman's level: (2ᵏ − 2)·exp(−N·ε²/2) ≤ γ."""
    if radius >= 2:
        return True
    sets = np.log(np.longdouble(2**outcomes - 2))
    needed = (sets * (1 + 4 * EPSILON) + _log_inverse(gamma)) * (1 + 8 * EPSILON)
    return bool(trials * np.longdouble(radius) ** 2 / 2 * (1 - 8 * EPSILON) >= needed)


def _holds_exactly(method: str, k: int, n: int, gamma: float, p: Fraction, upward: bool) -> bool:
    if (k >= n or n * p <= k) if upward else (k <= 0 or n * p >= k):
        return False
    level = Fraction(gamma)
    if method == "clopper-pearson":
        return (binomial_tail(n - k, n, 1 - p) if upward else binomial_tail(k, n, p)) <= level / 2
    if method == "beta-binomial":
        mixture = Fraction(math.comb(2 * k, k) * math.comb(2 * (n - k), n - k), 4**n * math.comb(n, k))
        return mixture * level >= p**k * (1 - p) ** (n - k)
    log_two = Fraction(math.nextafter(math.log(2), 1))
    return 2 * (k - n * p) ** 2 >= n * (Fraction(float(_log_inverse(gamma)) * (1 + 2**-50)) + log_two)


def binomial_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(Bin(n, p) ≥ k), exactly: Horner's scheme in integers.

    >>> binomial_tail(6, 6, Fraction(1, 2))
    Fraction(1, 64)
    """
    hit, bottom = p.numerator, p.denominator
    miss = bottom - hit
    total, coefficient, power = 0, 1, 1
    for j in range(n, k - 1, -1):  # Σ C(n, j)·hit^(j−k)·miss^(n−j)
        total = total * hit + coefficient * power
        power *= miss
        coefficient = coefficient * j // (n - j + 1)
    return Fraction(total * hit**k, bottom**n)
