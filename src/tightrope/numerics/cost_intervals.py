"""Confidence sequences for the mean behind observed costs, from their sums alone.

A kind of step g costs X with mean α_g·q + β_g given the past, for an unknown number q. Two assumptions:

* `reach` R: |X − mean| ≤ R, as it is for costs within [a, b] with R = b − a;
* `deviation` s: the variance of X given the past is at most s², whatever else it does.

For every λ > 0 the process

    exp Σ_t ( λ·α·ξ_t − c·ξ_t² − d ),   ξ_t = X_t − α·q − β,

is a non-negative supermartingale that begins at 1 when q is true, since exp(u·z − ψ(u)·z²) ≤ 1 + u·z for
z ≥ −1, 0 ≤ u < 1, ψ(u) = −log(1−u) − u (Fan, Grama and Liu 2015), with u = λ|α|R, z = ±ξ/R, c = ψ(u)/R²,
d = 0; and since exp(y − y²/6) ≤ 1 + y + y²/3 for all y (Delyon 2009; Wang and Ramdas 2023), with y = λ·α·ξ,
c = (λα)²/6, d = (λα·s)²/3. λ may depend on the kind of step, which is known before its cost. By Ville's
inequality the process of λ_k ever reaches 1/(w_k·γ/2) with probability at most w_k·γ/2, and Σ w_k ≤ 1. So
outside of what this excludes, and outside of the same for −q, the true q stays at all times together with
probability at least 1 − γ, under any sampling.

The exponent at q depends on the data through their number, their sum and the sum of their squares: a concave
quadratic of q. Left of the estimate it falls in q wherever its peak lies further left, so that a value which
it excludes excludes all between the peak and itself. `lower_end` starts from a bound that is known and moves
it, by every λ_k whose peak lies at or below it, as long as that helps. ψ is replaced by a rational bound from
above and everything is compared in rationals; the logarithms 1/(w_k·γ) are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

SCALES = 26
"""λ_k = λ_0 / 2^k: fine enough for 10¹⁵ costs."""

_PASSES = 8
_UNIT = 2.0**-40


@dataclass(frozen=True)
class Group:
    """Costs of one kind of step, whose mean is slope·q + shift: their number, sum and sum of squares."""

    slope: Fraction
    shift: Fraction
    count: int
    total: Fraction
    square: Fraction

    @property
    def mirrored(self) -> Group:
        """The same costs with the opposite sign, about −q."""
        return Group(self.slope, -self.shift, self.count, -self.total, self.square)


@dataclass(frozen=True)
class Spread:
    """What is assumed of costs: they stay within `reach` of their mean, or `deviation` bounds the standard
    deviation. One of the two."""

    reach: Fraction | None = None
    deviation: Fraction | None = None

    def terms(self, slope: Fraction, scale: int) -> tuple[Fraction, Fraction, Fraction]:
        """(λ·α, c, d) for λ number `scale`; λ·α·reach ≤ 1/2 for the largest slope, which is 1."""
        if self.reach is not None:
            u = abs(slope) / 2 ** (scale + 1)
            excess = u * u / 2 + u**3 / 3 + u**4 / (4 * (1 - u))  # at least −log(1 − u) − u
            return slope / (2 ** (scale + 1) * self.reach), excess / self.reach**2, Fraction(0)
        assert self.deviation is not None
        step = 4 * slope / (2**scale * self.deviation)
        return step, step * step / 6, (step * self.deviation) ** 2 / 3


def interval(
    groups: Sequence[Group], spread: Spread, gamma: Fraction, within: tuple[Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    """(lower, upper) for q, known to lie `within`; slopes are at most 1. Crossed where nothing is left."""
    low, high = within
    lower = lower_end(groups, spread, gamma, low, high)
    upper = -lower_end([group.mirrored for group in groups], spread, gamma, -high, -low)
    return (lower, upper) if low < upper and lower < high else (high, low)


def lower_end(
    groups: Sequence[Group], spread: Spread, gamma: Fraction, low: Fraction, high: Fraction
) -> Fraction:
    """A bound L ≥ low: every q in [low, L) is excluded at level γ/2, and `high` itself where L is that."""
    seen = [group for group in groups if group.count and group.slope]
    if not seen or low >= high:
        return low
    curves = [_curve(seen, spread, scale) for scale in range(SCALES)]
    limits = [log_above(2 * (k + 1) * (k + 2) / gamma) for k in range(SCALES)]
    for _ in range(_PASSES):
        before = low
        for curve, limit in zip(curves, limits, strict=True):
            low = max(low, _exclude(curve, limit, low, high))
        if (low - before) * 1000 <= high - low:
            break
    return low


def log_above(value: Fraction) -> Fraction:
    """A number not below log(value), for value ≥ 1: two logarithms of doubles, with more than their error."""
    nearest = math.log(value.numerator) - math.log(value.denominator)
    return Fraction(nearest + (abs(nearest) + math.log(value.denominator) + 2.0) * _UNIT)


Curve = tuple[Fraction, Fraction, Fraction]


def _curve(groups: Sequence[Group], spread: Spread, scale: int) -> Curve:
    """The exponent a + b·q + c·q² of λ number `scale`."""
    constant = linear = bend = Fraction(0)
    for group in groups:
        step, squared, fixed = spread.terms(group.slope, scale)
        n, alpha, beta = group.count, group.slope, group.shift
        centred = group.total - n * beta
        constant += step * centred - squared * (group.square - 2 * beta * group.total + n * beta * beta)
        constant -= n * fixed
        linear += 2 * squared * alpha * centred - step * n * alpha
        bend -= squared * n * alpha * alpha
    return constant, linear, bend


def _exclude(curve: Curve, limit: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Up to where values from `low` on are excluded by this exponent; `low` where it does not say."""
    constant, linear, bend = curve
    if linear + 2 * bend * low > 0 or constant + (linear + bend * low) * low < limit:
        return low  # it still rises at `low`, or does not exclude it
    if constant + (linear + bend * high) * high >= limit:
        return high
    inside, outside = high, low
    # The root of a concave quadratic by doubles, then a point proved to be excluded close to it.
    middle = (low + high) / 2
    level = constant + (linear + bend * middle) * middle - limit
    slope, half = float(linear + 2 * bend * middle), float(bend)
    root = math.sqrt(max(slope * slope - 4.0 * half * float(level), 0.0))
    guess = middle + Fraction(2.0 * float(level) / (root - slope)) if root > slope else middle
    for step in range(1, 60):
        width = (high - low) / 2 ** (60 - step)
        tried = Fraction(float(guess - width))
        if low < tried < inside and constant + (linear + bend * tried) * tried >= limit:
            outside = tried
            break
    return outside
