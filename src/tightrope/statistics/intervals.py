"""Confidence intervals for one probability from K successes in N visits, and L1 balls for distributions.

Clopper–Pearson, Hoeffding and L1 balls hold at a number of visits fixed in advance, and fail where that is a
stopping time. The beta-binomial confidence sequence is time-uniform: it holds under adaptive sampling and any
stopping rule. No approximate interval (Wald, Wilson) is offered. Every end point is returned only after its
tail was checked with a margin for rounding. Proofs: docs/proofs/statistics.md.
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
    """Move points towards `end` in doubling steps until their tails are below the level."""
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


def complement(lower: FloatArray | float, upper: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Bounds on 1 − p from those on p, rounded outward, within [0, 1]."""
    least, most = np.nextafter(1.0 - np.asarray(upper), -1.0), np.nextafter(1.0 - np.asarray(lower), 2.0)
    return np.maximum(least, 0.0), np.minimum(most, 1.0)


def weissman_radius(outcomes: OffsetArray, trials: OffsetArray, gamma: float) -> FloatArray:
    """The radius at level 1 − gamma for each (outcomes ≥ 2, draws), rounded up, at most 2."""
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
    return over_distinct_counts(
        lambda k, n, level: interval_of_evidence(k, n, log_beta_binomial(k, n), level),
        successes,
        trials,
        gamma,
    )


def log_beta_binomial(successes: OffsetArray, trials: OffsetArray) -> FloatArray:
    """log of ∫ q^K (1−q)^(n−K) dBeta(a, b)(q)."""
    from scipy.special import betaln

    k, n = successes.astype(np.float64), trials.astype(np.float64)
    result: FloatArray = betaln(k + PRIOR, n - k + PRIOR) - betaln(PRIOR, PRIOR)
    return result


def interval_of_evidence(
    successes: OffsetArray, trials: OffsetArray, log_q: FloatArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """All p with p^K (1−p)^(n−K) > γ·q, q what some predictor gave: holds at all times (Ville)."""
    k, n = successes.astype(np.float64), trials.astype(np.float64)
    limit: FloatArray = np.log(1.0 / gamma) - log_q + _error(k, n)
    rate = k / np.maximum(n, 1.0)
    lower, upper = np.empty(len(n)), np.empty(len(n))
    outside(k, n, limit, rate, 0.0, lower)
    outside(k, n, limit, rate, 1.0, upper)
    return lower, upper


def unseen_mass(draws: int, distinct: int, gamma: float) -> float:
    """Bound the probability of all unseen outcomes after `draws` of `distinct` ones, time-uniformly.

    >>> round(unseen_mass(12, 1, 0.05), 3), unseen_mass(2, 2, 0.05)
    (0.285, 1.0)
    """
    if draws <= distinct:
        return 1.0
    level = down(2.0 * gamma / (distinct * (distinct + 1.0)))
    return float(clopper_pearson(np.array([distinct - 1]), np.array([draws - 1]), level)[1][0])


def open_intervals(seen: OffsetArray, gamma: float, others: int = 0) -> tuple[FloatArray, FloatArray]:
    """Bound the named outcomes of a row, and (last) all others, of which a log has `others` draws."""
    lower, upper = np.zeros(len(seen) + 1), np.ones(len(seen) + 1)
    draws, named = int(seen.sum()) + others, np.flatnonzero(seen)
    if not draws:
        return lower, upper
    upper[: len(seen) + (not others)] = unseen_mass(draws, len(named) + others, gamma / 2.0)
    visits = np.full(len(named), draws)
    log_q = log_beta_binomial(seen[named], visits)
    level = gamma / 2.0 * (1.0 - 1e-9)  # the error that is allowed for below is that of one draw less
    lower[named], upper[named] = interval_of_evidence(seen[named] - 1, visits - 1, log_q, level)
    return lower, upper


def _error(k: FloatArray, n: FloatArray) -> FloatArray:
    """32 units of the largest number that enters: more than the rounding of the terms compared."""
    return 32.0 * 2.0**-53 * ((n + 2.0) * np.log(n + 2.0) + 40.0 * n + 64.0)


def edge(inner: float, outer: float, is_outside: Callable[[float], bool]) -> float:
    """A point proved outside, next to the end of the interval."""
    for _ in range(200):
        middle = 0.5 * (inner + outer)
        if middle in (inner, outer):
            break
        if is_outside(middle):
            outer = middle
        else:
            inner = middle
    return outer
