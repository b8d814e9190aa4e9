"""Poisson probabilities w_k = e^{-λ} λ^k / k! with rigorous bounds, without an exponential (after Fox and
Glynn).

Weights c_k start from c_m = 1 at the mode m by c_{k+1} = c_k·λ/(k+1) and c_{k-1} = c_k·k/λ: two roundings per
step and one of λ, so c_k has a relative error of at most γ(3·|k − m|). Outside a window first..last ratios of
neighbours fall, so a geometric series bounds each tail:

    Σ_{k>R} c_k ≤ c_{R+1} / (1 − λ/(R+2)),     Σ_{k<L} c_k ≤ c_{L-1} / (1 − (L−1)/λ).

Since Σ w_k = 1, w_k = c_k / Σ c_j, and Σ c_j lies between the sum over the window and that sum plus both
tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import error_factor

LEAST_TAIL = 1e-200
_MOST_TERMS = 50_000_000


@dataclass(frozen=True, eq=False)
class PoissonWeights:
    """Weights of k = first..first+len(weight)−1 with w_k·total = weight[k−first]·(1 ± error), where
    `low_total ≤ total ≤ high_total`. The probability below the window is at most `left`, that above it at
    most `right`, and E[(N − last)⁺] at most `excess`."""

    mean: Fraction
    first: int
    weight: FloatArray
    error: float
    low_total: float
    high_total: float
    left: float
    right: float
    excess: float

    @property
    def last(self) -> int:
        return self.first + len(self.weight) - 1


def poisson_weights(mean: Fraction, tail: float) -> PoissonWeights:
    """Weights around the mode of a Poisson distribution; what they leave out has probability ≤ 2·tail."""
    if mean == 0:
        return PoissonWeights(mean, 0, np.ones(1), 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    mode = int(mean)
    rate = float(mean)
    if mode > _MOST_TERMS:
        raise CannotCertify(
            f"the time bound is about {rate:.3g} times the mean sojourn in the fastest state, more steps "
            "than uniformisation supports"
        )
    above = _run(rate, mode, tail, upwards=True)
    below = _run(rate, mode, tail, upwards=False)[1:]
    weight = np.concatenate([below[::-1], above])
    first, last = mode - len(below), mode + len(above) - 1
    error = error_factor(3 * max(len(above), len(below)) + 3)
    low_total = float(weight.sum()) * (1 - error - error_factor(len(weight)))
    slack = 1 + 2 * error + 1e-12
    ratio = rate / (last + 2) * slack
    beyond = weight[-1] * rate / (last + 1) * slack
    right = beyond / (1 - ratio) * slack
    excess = beyond / (1 - ratio) ** 2 * slack
    left = 0.0
    if first > 0:
        before = weight[0] * first / rate * slack
        left = before / (1 - (first - 1) / rate * slack) * slack if first > 1 else before
    high_total = float(weight.sum()) * (1 + error + error_factor(len(weight))) + left + right
    return PoissonWeights(
        mean,
        first,
        weight,
        error,
        low_total,
        high_total,
        left / low_total * slack,
        right / low_total * slack,
        excess / low_total * slack,
    )


def _run(rate: float, mode: int, tail: float, upwards: bool) -> FloatArray:
    """c_m, c_{m±1}, … until what is left is below `tail`, relative to those within one standard deviation."""
    enough = max(tail, LEAST_TAIL) * max(1.0, 0.6 * rate**0.5)
    result: list[FloatArray] = [np.ones(1)]
    last, k = 1.0, mode
    while True:
        size = int(2 * rate**0.5) + 16
        steps = np.arange(k, k + size) if upwards else np.arange(k, max(k - size, 0), -1)
        if not len(steps):
            break
        ratios = rate / (steps + 1) if upwards else steps / rate
        values: FloatArray = np.float64(last) * np.cumprod(ratios.astype(np.float64))
        here = k + 1 + np.arange(len(steps)) if upwards else k - 1 - np.arange(len(steps))
        ratio = rate / (here + 1) if upwards else here / rate
        done = np.flatnonzero((ratio < 1) & (values * ratio <= enough * (1 - ratio)))
        if len(done):
            result.append(values[: done[0] + 1])
            break
        result.append(values)
        last, k = float(values[-1]), int(here[-1])
        if not upwards and k <= 0:
            break
    return np.concatenate(result)
