"""The beta-binomial confidence sequence: an interval for a probability that holds at all times at once.

For outcomes that are Bernoulli(p) given the past, the mixture likelihood ratio

    M_n(p) = ∫ q^K (1−q)^(n−K) dBeta(a, b)(q) / (p^K (1−p)^(n−K)) = B(K+a, n−K+b) / (B(a,b) p^K (1−p)^(n−K))

is a non-negative martingale with mean 1 at the true p, whatever rule decides when the next visit happens.
Ville's inequality gives P(∃ n: M_n(p) ≥ 1/γ) ≤ γ, so { p : M_n(p) < 1/γ } contains the true p at all
visits n together with probability at least 1 − γ: under adaptive sampling and any data-dependent stopping
(Robbins 1970; METHODS §2). a = b = ½ is fixed in advance.

−K log p − (n−K) log(1−p) is convex in p, so the set is an interval around K/n. Each end is found by bisection
between 0 or 1 and K/n that keeps one point at which the function was found above the limit, and that point is
returned: a wrong last digit of a logarithm moves the limit, never the logic, and the limit allows for the
rounding of the logarithms and of the beta function (`_error`). N = 0 gives [0, 1].
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.statistics.intervals import over_distinct_counts

_STEPS = 56


@kernel
def outside(
    k: FloatArray, n: FloatArray, limit: FloatArray, rate: FloatArray, end: float, out: FloatArray
) -> None:
    """A point between `end` (0 or 1) and the set for each (k, n), its limit and its empirical rate k/n."""
    for i in range(len(k)):
        successes, failures = k[i], n[i] - k[i]
        outer, inner = end, rate[i]
        if (successes if end == 0.0 else failures) > 0.0:
            for _ in range(_STEPS):
                middle = 0.5 * (outer + inner)
                value = 0.0
                if successes > 0.0:
                    value -= successes * math.log(middle)
                if failures > 0.0:
                    value -= failures * math.log1p(-middle)
                if value > limit[i]:
                    outer = middle
                else:
                    inner = middle
        out[i] = outer


PRIOR = 0.5
"""a = b of the mixing distribution."""


def beta_binomial(successes: OffsetArray, trials: OffsetArray, gamma: float) -> tuple[FloatArray, FloatArray]:
    """Time-uniform bounds, one pair for each (successes, trials)."""
    return over_distinct_counts(_beta_binomial, successes, trials, gamma)


def _beta_binomial(
    successes: OffsetArray, trials: OffsetArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    k, n = successes.astype(np.float64), trials.astype(np.float64)
    limit = _limit(k, n, gamma)
    rate = k / np.maximum(n, 1.0)
    lower, upper = np.empty(len(n)), np.empty(len(n))
    outside(k, n, limit, rate, 0.0, lower)
    outside(k, n, limit, rate, 1.0, upper)
    return lower, upper


def _limit(k: FloatArray, n: FloatArray, gamma: float) -> FloatArray:
    """An upper bound on what −K log p − (n−K) log(1−p) may be inside the set, evaluation error included."""
    from scipy.special import betaln

    mixture = betaln(k + PRIOR, n - k + PRIOR) - betaln(PRIOR, PRIOR)
    limit: FloatArray = np.log(1.0 / gamma) - mixture + _error(k, n)
    return limit


def _error(k: FloatArray, n: FloatArray) -> FloatArray:
    """More than the rounding of the terms compared: 32 units of the largest number that enters them.

    The log-beta function may be computed from three log-gamma values, the largest of which is
    below (n+2)·log(n+2); the logarithms of p contribute less than n·745 only where p is denormal, and
    p is either 0 or 1 exactly, or at least 2⁻⁵⁷.
    """
    return 32.0 * 2.0**-53 * ((n + 2.0) * np.log(n + 2.0) + 40.0 * n + 64.0)
