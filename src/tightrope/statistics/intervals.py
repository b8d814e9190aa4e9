"""Confidence intervals for one probability from K successes in N visits.

At a number of visits fixed in advance:

* Clopper–Pearson: [l, u] with P(Bin(N, l) ≥ K) = P(Bin(N, u) ≤ K) = γ/2. Exact coverage ≥ 1 − γ for every
  p.
* Hoeffding: K/N ± √(log(2/γ)/(2N)).

Both are statements about a fixed N (or an N independent of the outcomes). When N is a stopping time they
fail: stopping at 6/6 or 0/6 heads and otherwise at 9 tosses makes the 95 % Clopper–Pearson interval miss
p = ½ with probability 7/128 (METHODS §2). The beta-binomial confidence sequence holds at all
times instead. No approximate interval (Wald, Wilson) is offered: their coverage is below nominal for some p.

Rounding. The tails are SciPy's regularised incomplete beta functions, whose relative error is far below
`_TAIL_MARGIN`; the interval is computed at a level that much smaller, rounded outward, and then checked:
an end point is returned only when the tail evaluated there is below γ/2 with half of the margin to spare,
and is moved outward until it is. N = 0 gives [0, 1].

Of whole distributions: radii of L1 balls around the empirical one (Weissman et al. 2003). For n independent
draws from a distribution P on k outcomes,

    Pr( ‖P̂ − P‖₁ ≥ ε ) ≤ (2ᵏ − 2)·exp(−n·ε²/2),

because ‖P̂ − P‖₁ = 2·max over sets A of outcomes of P̂(A) − P(A), a union over 2ᵏ − 2 sets of Hoeffding's
inequality with deviation ε/2. A statement about a number of draws fixed in advance. Without draws the
radius is 2, the diameter of the simplex.

*The beta-binomial confidence sequence*: an interval for a probability that holds at all times at once. For
outcomes that are Bernoulli(p) given the past, the mixture likelihood ratio

    M_n(p) = ∫ q^K (1−q)^(n−K) dBeta(a, b)(q) / (p^K (1−p)^(n−K)) = B(K+a, n−K+b) / (B(a,b) p^K (1−p)^(n−K))

is a non-negative martingale with mean 1 at the true p, whatever rule decides when the next visit happens.
Ville's inequality gives P(∃ n: M_n(p) ≥ 1/γ) ≤ γ, so { p : M_n(p) < 1/γ } contains the true p at all
visits n together with probability at least 1 − γ: under adaptive sampling and any data-dependent stopping
(Robbins 1970; METHODS §2). a = b = ½ is fixed in advance.

−K log p − (n−K) log(1−p) is convex in p, so the set is an interval around K/n. Each end is found by bisection
between 0 or 1 and K/n that keeps one point at which the function was found above the limit, and that point is
returned: a wrong last digit of a logarithm moves the limit, never the logic, and the limit allows for the
rounding of the logarithms and of the beta function (`_error`). N = 0 gives [0, 1].

*Outcomes that were not known beforehand* (`open_intervals`). The outcomes of a row are draws from one unknown
distribution on an unknown alphabet, and only those that were seen have names. Half of γ each is for two
statements, which hold at all times at once, whatever decides when the next visit happens:

* Names. For an outcome of probability p the ratio M_n(p) above reaches 1/(γp) at some time with probability
  at most γp. The probabilities of all outcomes sum to 1, so with probability at least 1 − γ no outcome,
  seen or not, ever has M_n(p) ≥ 1/(γp): { p : p^(K−1) (1−p)^(n−K) > γ ∫ q^K (1−q)^(n−K) dBeta } holds for all
  names at once, whatever their number. (Intervals at γ/k for the k outcomes that were seen do not: of many
  rare outcomes some are seen once, and have less than any lower bound above 0.)
* The rest. Let m_k be the probability of all outcomes but the first k different ones. Given the order in
  which outcomes show first, the numbers of draws between these times are independent and geometric with
  probabilities m_1 ≥ m_2 ≥ …; so the draws from the first to before outcome k + 1 number at least ν with
  probability at most P(Bin(ν − 1, m_k) ≤ k − 1), for any ν that follows from the order. With u(k, n) such
  that P(Bin(n − 1, u) ≤ k − 1) = γ/(k(k + 1)), and ν the first n at which u(k, n) < m_k, summing over k shows
  that m_k ≤ u(k, n) for all n and k at once with probability at least 1 − γ. No mixture is needed: the number
  of outcomes only grows, so within one k the last n is the worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.rounding import down, up

_TAIL_MARGIN = 1e-9


def clopper_pearson(
    successes: OffsetArray, trials: OffsetArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """Outward-rounded Clopper–Pearson bounds, one pair for each (successes, trials)."""
    return over_distinct_counts(_clopper_pearson, successes, trials, gamma)


def hoeffding(successes: OffsetArray, trials: OffsetArray, gamma: float) -> tuple[FloatArray, FloatArray]:
    """Outward-rounded Hoeffding bounds, cut to [0, 1]."""
    seen = np.maximum(trials, 1).astype(np.float64)
    rate = successes / seen
    radius = np.sqrt(np.log(2.0 / gamma) / (2.0 * seen)) * (1.0 + 1e-14)
    lower = np.maximum(down(rate - radius) - 4e-16, 0.0)
    upper = np.minimum(up(rate + radius) + 4e-16, 1.0)
    return np.where(trials > 0, lower, 0.0), np.where(trials > 0, upper, 1.0)


def _clopper_pearson(
    successes: OffsetArray, trials: OffsetArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.special import betainc, betaincc, betainccinv, betaincinv

    level = 0.5 * gamma
    lower = np.zeros(len(trials))
    upper = np.ones(len(trials))
    some = np.flatnonzero(successes > 0)
    k, n = successes[some].astype(np.float64), trials[some].astype(np.float64)
    start = betaincinv(k, n - k + 1.0, level * (1.0 - _TAIL_MARGIN))
    lower[some] = _until_small(
        start, np.zeros(len(some)), lambda p, i: betainc(k[i], n[i] - k[i] + 1.0, p), level
    )
    rest = np.flatnonzero(successes < trials)
    j, m = successes[rest].astype(np.float64), trials[rest].astype(np.float64)
    start = betainccinv(j + 1.0, m - j, level * (1.0 - _TAIL_MARGIN))
    upper[rest] = _until_small(
        start, np.ones(len(rest)), lambda p, i: betaincc(j[i] + 1.0, m[i] - j[i], p), level
    )
    return lower, upper


def _until_small(
    point: FloatArray, end: FloatArray, tail: Callable[[FloatArray, OffsetArray], FloatArray], level: float
) -> FloatArray:
    """Move each point towards its `end` (0 or 1) until its tail is below the level by half the margin.

    The steps double, so a start that is wrong for whatever reason ends at the trivial bound, never inside.
    """
    result = np.where(end == 0.0, down(point), up(point))
    result = np.where(np.isfinite(result), np.clip(result, 0.0, 1.0), end)
    share = 1e-9
    pending = np.arange(len(result))
    while len(pending):
        values = tail(result[pending], pending)
        small = values <= level * (1.0 - 0.5 * _TAIL_MARGIN)
        pending = pending[~small & (result[pending] != end[pending])]
        if share >= 1.0:
            result[pending] = end[pending]
            break
        nudge = np.where(end == 0.0, result, 1.0 - result)[pending] * share
        result[pending] += np.where(end[pending] == 0.0, -nudge, nudge)
        share *= 2.0
    return result


def over_distinct_counts(
    interval: Callable[[OffsetArray, OffsetArray, float], tuple[FloatArray, FloatArray]],
    successes: OffsetArray,
    trials: OffsetArray,
    gamma: float,
) -> tuple[FloatArray, FloatArray]:
    """Compute each distinct (successes, trials) once: with millions of transitions most pairs repeat."""
    if len(trials) < 1000:
        return interval(successes, trials, gamma)
    order = np.lexsort((successes, trials))
    k, n = successes[order], trials[order]
    first = np.r_[True, (np.diff(k) != 0) | (np.diff(n) != 0)]
    low, high = interval(k[first], n[first], gamma)
    group = np.cumsum(first) - 1
    lower, upper = np.empty(len(trials)), np.empty(len(trials))
    lower[order], upper[order] = low[group], high[group]
    return lower, upper


def weissman_radius(outcomes: OffsetArray, trials: OffsetArray, gamma: float) -> FloatArray:
    """The radius at level 1 − gamma for each (number of outcomes ≥ 2, number of draws), rounded up, at
    most 2.
    """
    k = outcomes.astype(np.float64)
    log_sets = k * np.log(2.0) + np.log1p(-np.exp2(1.0 - k))
    radius = np.sqrt(2.0 * (log_sets + np.log(1.0 / gamma)) / np.maximum(trials, 1)) * (1.0 + 1e-13)
    return np.where(trials > 0, np.minimum(radius, 2.0), 2.0)


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
    return interval_of_evidence(successes, trials, log_beta_binomial(successes, trials), gamma)


def log_beta_binomial(successes: OffsetArray, trials: OffsetArray) -> FloatArray:
    """log of ∫ q^K (1−q)^(n−K) dBeta(a, b)(q)."""
    from scipy.special import betaln

    k, n = successes.astype(np.float64), trials.astype(np.float64)
    result: FloatArray = betaln(k + PRIOR, n - k + PRIOR) - betaln(PRIOR, PRIOR)
    return result


def interval_of_evidence(
    successes: OffsetArray, trials: OffsetArray, log_q: FloatArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """All p with p^K (1−p)^(n−K) > γ·q, where q is what some predictor gave to the same trials: the set
    is an interval that holds at all times (Ville). The limit allows for the error of the evaluation.
    """
    k, n = successes.astype(np.float64), trials.astype(np.float64)
    limit: FloatArray = np.log(1.0 / gamma) - log_q + _error(k, n)
    rate = k / np.maximum(n, 1.0)
    lower, upper = np.empty(len(n)), np.empty(len(n))
    outside(k, n, limit, rate, 0.0, lower)
    outside(k, n, limit, rate, 1.0, upper)
    return lower, upper


def unseen_mass(draws: int, distinct: int, gamma: float) -> float:
    """What all outcomes together have at most that so many draws, of so many different outcomes, did not
    show; at all times at once.

    >>> round(unseen_mass(12, 1, 0.05), 3), unseen_mass(2, 2, 0.05)
    (0.285, 1.0)
    """
    if draws <= distinct:
        return 1.0
    level = down(2.0 * gamma / (distinct * (distinct + 1.0)))
    return float(clopper_pearson(np.array([distinct - 1]), np.array([draws - 1]), level)[1][0])


def open_intervals(seen: OffsetArray, gamma: float) -> tuple[FloatArray, FloatArray]:
    """Bounds on the probabilities of the named outcomes of one row, from how often each was seen, and as the
    last entry on that of all others together."""
    lower, upper = np.zeros(len(seen) + 1), np.ones(len(seen) + 1)
    draws, named = int(seen.sum()), np.flatnonzero(seen)
    if not draws:
        return lower, upper
    upper[:] = unseen_mass(draws, len(named), gamma / 2.0)
    visits = np.full(len(named), draws)
    log_q = log_beta_binomial(seen[named], visits)
    level = gamma / 2.0 * (1.0 - 1e-9)  # the error that is allowed for below is that of one draw less
    lower[named], upper[named] = interval_of_evidence(seen[named] - 1, visits - 1, log_q, level)
    return lower, upper


def _error(k: FloatArray, n: FloatArray) -> FloatArray:
    """More than the rounding of the terms compared: 32 units of the largest number that enters them.

    The log-beta function may be computed from three log-gamma values, the largest of which is
    below (n+2)·log(n+2); the logarithms of p contribute less than n·745 only where p is denormal, and
    p is either 0 or 1 exactly, or at least 2⁻⁵⁷.
    """
    return 32.0 * 2.0**-53 * ((n + 2.0) * np.log(n + 2.0) + 40.0 * n + 64.0)
