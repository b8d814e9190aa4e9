"""Binomial tails and the beta mixture, enclosed: what intervals are re-derived with.

Nothing here is taken from a library of special functions. With s(n) = log n! − n·log n + n,

    log P(Bin(n, p) = k) = s(n) − s(k) − s(n−k) − D,   D = k·log(k/(np)) + (n−k)·log((n−k)/(nq)),

where s(0) = 0 and s(n) = ½·log(2πn) + 1/(12n) − 1/(360n³) + …, an alternating series whose error is below
the first term left out. Logarithms of ratios near 1 are taken by log1p of the difference. A tail is the
probability of its first point times 1 + r + r·r' + …, and what is left after some terms is below a
geometric series, since the ratios fall. For the mixture with the Beta(½, ½) distribution,
B(k+½, n−k+½)/π = c(k)·c(n−k)/C(n, k) with c(k) = C(2k, k)/4ᵏ, and log c(k) = s(2k) − 2·s(k).

Arithmetic is NumPy's longdouble; errors are counted in `EPSILON` (logl, log1pl and expl are within two
units in the last place) and added on the safe side. n·p and n·q carry a relative error of 2·EPSILON, which
costs 2·n·EPSILON in D: beyond n ≈ 10⁹ the enclosures become too wide to confirm an interval.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.certificate.inner import EPSILON, Extended
from tightrope.numerics.arrays import OffsetArray

_SMALL = 33
_SERIES = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360)]
_REMAINDER = 1 / 156  # of the next term, 1/(156·n¹³)
_ENOUGH = 1e-13
_MOST_TERMS = 5_000_000


def _small_table() -> Extended:
    values = [np.longdouble(0)]
    for n in range(1, _SMALL):
        factorial = math.factorial(n)
        head = np.longdouble(float(factorial))
        exact = head + np.longdouble(float(factorial - int(head)))
        values.append(np.log(exact) - n * np.log(np.longdouble(n)) + n)
    return np.array(values, dtype=np.longdouble)


_TABLE = _small_table()


def factorial_part(n: OffsetArray) -> tuple[Extended, Extended]:
    """(s(n), a bound on its error)."""
    large = np.maximum(n, _SMALL - 1).astype(np.longdouble)
    value = np.log(2 * np.longdouble(math.pi) * large) / 2
    # π itself is rounded to float64: half of its relative error, 2⁻⁵³/2, is repaired by its known tail.
    value += np.longdouble(1.2246467991473532e-16) / np.longdouble(math.pi) / 2
    for i, (top, bottom) in enumerate(_SERIES):
        value += np.longdouble(top) / np.longdouble(bottom) / large ** (2 * i + 1)
    small = n < _SMALL
    value = np.where(small, _TABLE[np.minimum(n, _SMALL - 1)], value)
    error = np.where(small, 1000 * EPSILON, 16 * EPSILON * (2 + value) + _REMAINDER / large**13)
    return value, np.where(n == 0, 0, error)


def log_probability(k: OffsetArray, n: OffsetArray, p: Extended) -> tuple[Extended, Extended]:
    """(log P(Bin(n, p) = k), a bound on its error) for 0 < p < 1."""
    hits, size, rest = k.astype(np.longdouble), n.astype(np.longdouble), (n - k).astype(np.longdouble)
    expected, unexpected = size * p, size * (1 - p)
    away = hits - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(k > 0, hits * np.log1p(away / expected), 0)
        second = np.where(n > k, rest * np.log1p(-away / unexpected), 0)
    value, error = factorial_part(n)
    for part in (k, n - k):
        other, other_error = factorial_part(part)
        value, error = value - other, error + other_error
    error = error + EPSILON * (8 * size + 8 * (np.abs(first) + np.abs(second)) + 4 * np.abs(value))
    return value - first - second, error


def tail_above(k: OffsetArray, n: OffsetArray, p: Extended) -> Extended:
    """An upper bound on P(Bin(n, p) ≥ k), for 0 < p < 1 and k ≥ 1."""
    return _tail(k, n, p, p / (1 - p), 1)


def tail_below(k: OffsetArray, n: OffsetArray, p: Extended) -> Extended:
    """An upper bound on P(Bin(n, p) ≤ k), for 0 < p < 1 and k < n."""
    return _tail(k, n, p, (1 - p) / p, -1)


def _tail(k: OffsetArray, n: OffsetArray, p: Extended, odds: Extended, step: int) -> Extended:
    """P(X = k)·(1 + r + r·r' + …), the ratios of neighbouring probabilities going up or down from k."""
    log_point, error = log_probability(k, n, p)
    point = np.exp(np.minimum(log_point + error, 0)) * (1 + 8 * EPSILON)
    total = np.ones(len(k), dtype=np.longdouble)
    term = np.ones(len(k), dtype=np.longdouble)
    place = k.astype(np.longdouble)
    size = n.astype(np.longdouble)
    result = np.ones(len(k), dtype=np.longdouble)
    active = np.arange(len(k))
    for done in range(_MOST_TERMS):
        ahead = (size - place) / (place + 1) if step > 0 else place / (size - place + 1)
        ratio = ahead * odds * (1 + 8 * EPSILON)
        with np.errstate(divide="ignore"):
            rest = np.where(ratio < 1, term * ratio / (1 - ratio), np.inf)
        finished = rest <= _ENOUGH * total
        # Ratios fall away from k, so a first one of 1 or more never leads to a bound worth having.
        hopeless = ~(ratio < 1)
        leave = finished | hopeless
        if leave.any():
            sums = (total + rest) * (1 + (16 * done + 64) * EPSILON)
            result[active[finished]] = np.minimum(point[active[finished]] * sums[finished], 1)
            stay = ~leave
            active, total, term, place = active[stay], total[stay], term[stay], place[stay]
            size, odds, ratio = size[stay], odds[stay], ratio[stay]
        if len(active) == 0:
            break
        term = term * ratio
        total = total + term
        place = place + step
    return result


def mixture_evidence(k: OffsetArray, n: OffsetArray, p: Extended) -> Extended:
    """A lower bound on log of the mixture's likelihood ratio against p, for 0 < p < 1."""
    point, error = log_probability(k, n, p)
    value = -point
    for part in (k, n - k):
        twice, twice_error = factorial_part(2 * part)
        once, once_error = factorial_part(part)
        value = value + twice - 2 * once
        error = error + twice_error + 2 * once_error
    return value - error - 8 * EPSILON * np.abs(value)
