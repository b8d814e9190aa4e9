"""Intervals for the mean of the returns of independent episodes, without any model.

*Frequencies*: Clopper–Pearson if n was planned, else the beta-binomial sequence; undecided episodes count
against either end. *Returns*: K_f(m) = Π ((1 − f) + f·Y_i/m) is a non-negative supermartingale for m ≥ μ, and
so are mixtures over f (Waudby-Smith and Ramdas 2024); the least m below 1/γ is a time-uniform lower bound. It
rises in each Y_i, which may be partly observed or weighted. Upper bounds are those of b − Y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import freeze_fields
from tightrope.numerics.rounding import down, up
from tightrope.statistics.intervals import beta_binomial, clopper_pearson, edge

CLOPPER_PEARSON, BETA_BINOMIAL, BETTING = "clopper-pearson", "beta-binomial", "betting"

FRACTIONS = (0.9375, *(2.0 ** (-0.5 * j) for j in range(1, 41)))
"""f_j, the part of the capital that is at stake."""

_MOST_DISTINCT = 1 << 14
"""More distinct values than these are rounded down to so many."""

Stakes = tuple[tuple[float, float], ...]  # (fraction, weight) of the bets that are mixed


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct values ≥ 0, and how often each was seen."""

    value: FloatArray
    count: OffsetArray

    def __post_init__(self) -> None:
        freeze_fields(self)

    @staticmethod
    def of(values: FloatArray) -> Tally:
        value, count = np.unique(np.maximum(values, 0.0), return_counts=True)
        if len(value) > _MOST_DISTINCT:
            unit = 2.0 ** math.ceil(math.log2(float(value[-1]) / _MOST_DISTINCT))
            value, count = np.unique(np.floor(np.maximum(values, 0.0) / unit) * unit, return_counts=True)
        return Tally(value, count.astype(np.int64))

    @property
    def number(self) -> int:
        return int(self.count.sum())


def frequency_interval(
    successes: int, failures: int, episodes: int, gamma: float, planned: bool
) -> tuple[float, float, str]:
    """(lower, upper, method) for the probability of success at level 1 − gamma."""
    method = clopper_pearson if planned else beta_binomial
    most = np.array([successes, episodes - failures], dtype=np.int64)
    lower, upper = method(most, np.full(2, episodes, dtype=np.int64), gamma)
    return float(lower[0]), float(upper[1]), CLOPPER_PEARSON if planned else BETA_BINOMIAL


def lower_mean(tally: Tally, gamma: float, planned: int | None, stakes: Stakes = ()) -> float:
    """A lower bound on the mean at level 1 − gamma; 0 where nothing is excluded. `stakes`: other bets."""
    top = float(tally.value.max(initial=0.0))
    if top <= 0.0:
        return 0.0
    scaled, stakes = tally.value / top, stakes or bets(gamma, planned)

    def is_excluded(power: float) -> bool:
        return log_capital(scaled, tally.count, 2.0**power, stakes) >= math.log(1.0 / gamma)

    if not is_excluded(-60.0):
        return 0.0
    mean = float(scaled @ tally.count) / tally.number
    below = edge(min(0.0, math.log2(mean) + 1e-9), -60.0, is_excluded)
    return max(float(down(2.0**below * top * (1.0 - 2.0**-50))), 0.0)


def mean_interval(
    low: Tally, high: Tally, ends: tuple[float, float], gamma: float, planned: int | None
) -> tuple[float, float]:
    """Bounds on the mean of returns within `ends`, from tallies above the lower and below the upper end."""
    a, b = ends
    if not math.isfinite(b):
        return float(down(a + lower_mean(low, gamma, planned))), math.inf
    lower = float(down(a + lower_mean(low, 0.5 * gamma, planned)))
    return max(lower, a), min(float(up(b - lower_mean(high, 0.5 * gamma, planned))), b)


def bets(gamma: float, planned: int | None) -> Stakes:
    """Equal weights on fractions near the best one for `planned` values, or on all."""
    used = FRACTIONS
    if planned is not None:
        best = math.sqrt(2.0 * math.log(1.0 / gamma) / max(planned, 1))
        used = tuple(f for f in FRACTIONS if 0.1 * best <= f <= 10.0 * best) or FRACTIONS[:1]
    return tuple((f, 1.0 / len(used)) for f in used)


def log_capital(value: FloatArray, count: OffsetArray, m: float, stakes: Stakes) -> float:
    """A lower bound on log Σ w_j·K_{f_j}(m)."""
    logs = []
    for fraction, weight in stakes:
        terms = np.log1p(fraction * (value / m - 1.0))
        total = float(terms @ count)
        error = 2.0**-48 * float((np.abs(terms) + 1.0) @ count)
        logs.append(total - error + math.log(weight))
    most = max(logs)
    return most + math.log(sum(math.exp(one - most) for one in logs)) - 1e-12
