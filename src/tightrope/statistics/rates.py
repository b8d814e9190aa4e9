"""Confidence sequences for rates: for one Poisson intensity, and for all that share parameters together.

Likelihood ratios of counting processes, mixed over intensities with weights fixed in advance, are nonnegative
supermartingales at the true rates, so the sets hold time-uniformly. When observation begins, pauses and ends
may depend on the past; sojourns that are cut off count their time and no event. Rates that are multiples of
each other pool events and exposures. Each end of an interval is a point proved outside, with allowance for
rounding (`_error`). Proofs: docs/proofs/statistics.md (Brémaud 1981, VI.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lgamma, log

import numpy as np
from scipy.special import gammaln, logsumexp

from tightrope.model.continuous import ParametricCTMC
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import ranges_over_box
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.statistics.intervals import edge

SHAPE = 0.5
"""a of the mixing distribution; its mean a/b is a rate in the middle of the domain."""


@dataclass(frozen=True, eq=False, repr=False)
class RateClasses(Record):
    """Unknown rates up to a factor: expression e is factor[e] times class of_expression[e]; −1: constant."""

    base: tuple[Polynomial, ...]
    of_expression: IndexArray
    factor: tuple[Fraction, ...]

    @staticmethod
    def of(model: ParametricCTMC) -> RateClasses:
        table = model.expressions
        number_of: dict[Polynomial, int] = {}
        number: IndexArray = np.full(len(table), -1, dtype=np.int32)
        factor = [Fraction(1)] * len(table)
        for e in range(len(table)):
            polynomial = table.polynomial(e)
            if polynomial.is_constant:
                continue
            leading = max(polynomial.terms, key=lambda monomial: (len(monomial), monomial))
            scale = abs(polynomial.terms[leading])
            base = Polynomial({m: c / scale for m, c in polynomial.terms.items()})
            number[e] = number_of.setdefault(base, len(number_of))
            factor[e] = scale
        return RateClasses(tuple(number_of), number, tuple(factor))

    def __len__(self) -> int:
        return len(self.base)


@dataclass(frozen=True, eq=False, repr=False)
class RateEvents(Record):
    """How often each class was seen, over which exposure, and the interval of its rate."""

    classes: RateClasses
    events: OffsetArray
    exposure: FloatArray
    lower: FloatArray
    upper: FloatArray
    gamma: float


def estimate_rates(model: ParametricCTMC, jumps: OffsetArray, waited: FloatArray, delta: float) -> RateEvents:
    """Time-uniform intervals of all unknown rates, with probability at least 1 − delta together."""
    classes = RateClasses.of(model)
    events, exposure = pooled(model, classes, jumps, waited)
    gamma = delta / max(1, len(classes))
    middle = middles_of(model, classes)
    pairs = [gamma_of(int(k), float(t), m, gamma) for k, t, m in zip(events, exposure, middle, strict=True)]
    lower = np.array([low for low, _ in pairs])
    upper = np.array([high for _, high in pairs])
    return RateEvents(classes, events, exposure, lower, upper, gamma)


def pooled(
    model: ParametricCTMC, classes: RateClasses, jumps: OffsetArray, waited: FloatArray
) -> tuple[OffsetArray, FloatArray]:
    """Events and exposures of all classes."""
    owner = model.structure.transition_choice
    counted: BoolArray = model.successor != owner
    expression = model.expression[counted]
    number = classes.of_expression[expression]
    known = number >= 0
    factor = np.array([float(f) for f in classes.factor])[expression[known]]
    size = len(classes)
    events = np.bincount(number[known], weights=jumps[counted][known], minlength=size).astype(np.int64)
    exposure = np.bincount(number[known], weights=factor * waited[owner[counted][known]], minlength=size)
    return events, exposure.astype(np.float64)


def gamma_of(events: int, exposure: float, middle: float, gamma: float) -> tuple[float, float]:
    """Time-uniform bounds of a rate whose mixing distribution has this mean."""
    return gamma_poisson(events, exposure, SHAPE / middle, gamma)


def gamma_poisson(events: int, exposure: float, scale: float, gamma: float) -> tuple[float, float]:
    """Time-uniform bounds of a rate; `scale` is b of the mixing distribution, in units of exposure."""
    if exposure <= 0:
        return 0.0, inf
    mixture = (
        SHAPE * log(scale) + lgamma(SHAPE + events) - lgamma(SHAPE) - (SHAPE + events) * log(scale + exposure)
    )
    limit = log(1.0 / gamma) - mixture
    slack = _error(events, exposure, scale)
    best = events / exposure

    def is_outside(rate: float) -> bool:
        if rate <= 0:
            return events > 0
        first, second = rate * exposure, events * log(rate)
        return first - second > limit + slack + 1e-12 * (abs(first) + abs(second))

    lower = 0.0
    if events > 0:
        inner, outer = best, best
        while outer > 1e-300 and not is_outside(outer):
            outer /= 2
        lower = edge(inner, outer, is_outside) if is_outside(outer) else 0.0
    outer = max(best, 1.0 / exposure)
    while not is_outside(outer):
        outer *= 2
    return lower, edge(best, outer, is_outside)


def _error(events: int, exposure: float, scale: float) -> float:
    """More than the rounding of the terms compared, and of exposures that were added up in float64."""
    size = (events + 2.0) * (abs(log(scale + exposure)) + abs(log(scale)) + log(events + 2.0) + 4.0)
    return 64.0 * 2.0**-53 * size + 1e-12 * (events + 1.0)


def middles_of(model: ParametricCTMC, classes: RateClasses) -> FloatArray:
    """A rate in the middle of the domain for every class: the mean of its mixing distribution."""
    parameters = model.parameters
    low, high = ranges_over_box(model.expressions, parameters.lower, parameters.upper)
    result = np.ones(len(classes))
    for e in range(len(model.expressions)):
        if (number := int(classes.of_expression[e])) >= 0:
            least, most = (max(float(x) / float(classes.factor[e]), 0.0) for x in (low[e], high[e]))
            result[number] = max((least * most) ** 0.5 if least > 0 else most / 100.0, 1e-300)
    return result


def texts_of(classes: RateClasses, names: Sequence[str]) -> tuple[str, ...]:
    """The classes as a reader writes them."""
    return tuple(base.text(tuple(names)) for base in classes.base)


MOST_PARAMETERS = 6
"""Beyond, corners of cells are too many, and the mixture is the one of classes."""

OF_PARAMETERS = 0.9
"""The part of the mixture that is over parameters."""

_CELLS = (200, 64, 24, 12, 8, 5)
"""Per coordinate, for so many parameters."""

_REACH = (5.0, 5.0, 4.5, 4.0, 3.5, 3.0)
"""In standard deviations."""

_ROUNDING = 1e-11
_SMALLEST = 1e-6
"""Of the range of a parameter that may be 0: below, its density does not grow any more."""


@dataclass(frozen=True, eq=False)
class RateLikelihood:
    """ℓ for affine classes g(θ) = slope·θ + constant over the box lower ≤ θ ≤ upper."""

    slope: FloatArray
    constant: FloatArray
    events: FloatArray
    exposure: FloatArray
    lower: FloatArray
    upper: FloatArray

    def rates(self, points: FloatArray) -> FloatArray:
        return points @ self.slope.T + self.constant

    def at(self, points: FloatArray) -> FloatArray:
        """ℓ at points [n, parameters]; −∞ where a rate is negative, or 0 though events were seen."""
        rates = self.rates(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(self.events > 0, self.events * np.log(rates), 0.0) - rates * self.exposure
        wrong = (rates < 0) | ((rates <= 0) & (self.events > 0))
        return np.where(wrong.any(axis=1), -np.inf, terms.sum(axis=1))

    def error(self, rates: FloatArray) -> float:
        """More than the rounding of ℓ at these rates, and of exposures that were added up in float64."""
        size = np.abs(self.events * np.log(np.maximum(rates, 1e-300))) + np.abs(rates) * self.exposure
        return float(_ROUNDING * (1.0 + self.events.sum() + size.sum()))

    def slopes(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient, and minus the Hessian."""
        rates = np.maximum(self.rates(point[None])[0], 1e-300)
        gradient = (self.events / rates - self.exposure) @ self.slope
        weight = self.events / rates**2
        return gradient, (self.slope.T * weight) @ self.slope

    def estimate(self) -> FloatArray:
        """About where ℓ is largest on the box, by Newton steps that stay in it."""
        width = self.upper - self.lower
        least = self.lower + _SMALLEST * np.minimum(width, 1.0)
        point: FloatArray = np.sqrt(np.maximum(least, 1e-12) * np.maximum(self.upper, 1e-12))
        point = np.clip(np.where(self.lower < 0, self.lower + 0.5 * width, point), least, self.upper)
        best = self.at(point[None])[0]
        for _ in range(200):
            gradient, curvature = self.slopes(point)
            free = ~(((point <= least) & (gradient < 0)) | ((point >= self.upper) & (gradient > 0)))
            if not free.any():
                break
            damped = curvature[np.ix_(free, free)] + np.diag(
                np.abs(gradient[free]) / np.maximum(width[free], 1e-12)
            )
            step = np.zeros_like(point)
            step[free] = np.linalg.solve(damped + 1e-12 * np.eye(int(free.sum())), gradient[free])
            size, gained = 1.0, False
            while size > 1e-10:
                tried = np.clip(point + size * step, least, self.upper)
                value = self.at(tried[None])[0]
                if value > best:
                    gained = value > best + 1e-12 * abs(best)
                    point, best = tried, value
                    break
                size /= 2
            if not gained:
                break
        return point

    def mixes_parameters(self) -> bool:
        """Which mixture; the model says so, never the data."""
        free = int((self.upper > self.lower).sum())
        return 0 < free <= MOST_PARAMETERS and free < len(self.events)

    def log_mixture(self, middle: FloatArray, centre: FloatArray) -> float:
        """A lower bound of the log of the mixture; `middle` are rates in the middle of the domain."""
        by_class = self._over_classes(middle)
        if not self.mixes_parameters():
            return by_class
        by_parameter = max(self._over_cells(centre, turned) for turned in (True, False))
        return float(np.logaddexp(log(OF_PARAMETERS) + by_parameter, log(1 - OF_PARAMETERS) + by_class))

    def _over_classes(self, middle: FloatArray) -> float:
        """Gamma components, in closed form."""
        scale = SHAPE / middle
        terms = (
            SHAPE * np.log(scale)
            + gammaln(SHAPE + self.events)
            - gammaln(SHAPE)
            - (SHAPE + self.events) * np.log(scale + self.exposure)
        )
        return float(terms.sum() - _ROUNDING * (1.0 + np.abs(terms).sum() + self.events.sum()))

    def _over_cells(self, centre: FloatArray, turned: bool) -> float:
        """Σ over cells of a grid, along the axes of the curvature or of the parameters."""
        free = np.flatnonzero(self.upper > self.lower)
        size = len(free)
        gradient, curvature = self.slopes(centre)
        curvature = curvature[np.ix_(free, free)] + np.diag(np.maximum(-gradient[free], 0.0) ** 2)
        curvature += np.diag((12.0 / (self.upper - self.lower)[free]) ** 2)
        spread = np.linalg.inv(curvature)
        if turned:
            variance, axes = np.linalg.eigh(spread)
        else:
            variance, axes = np.diag(spread), np.eye(size)
        deviation = np.sqrt(np.maximum(variance, 1e-300))
        low, high = -_REACH[size - 1] * np.ones(size), _REACH[size - 1] * np.ones(size)
        if not turned:
            low = np.maximum(low, (self.lower - centre)[free] / deviation)
            high = np.minimum(high, (self.upper - centre)[free] / deviation)
        count = _CELLS[size - 1]
        ticks = [np.linspace(low[k], high[k], count + 1) * deviation[k] for k in range(size)]
        steps = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1)
        points = np.tile(centre, (steps.size // size, 1))
        points[:, free] += steps.reshape(-1, size) @ axes.T
        inside = ((points >= self.lower) & (points <= self.upper)).all(axis=1)
        shape = (count + 1,) * size
        value = np.where(inside, self.at(points), -np.inf).reshape(shape)
        with np.errstate(invalid="ignore"):
            for axis in range(size):
                value = 0.5 * (_before(value, axis) + _after(value, axis))
        total = value
        for k in free:
            largest = points[:, k].reshape(shape)
            for axis in range(size):
                largest = np.maximum(_before(largest, axis), _after(largest, axis))
            total = total + self._log_density(int(k), largest)
        volume = float(np.sum(np.log((high - low) / count * deviation)))
        with np.errstate(invalid="ignore"):
            evidence = float(logsumexp(total.ravel())) + volume
        return evidence - self.error(self.rates(centre[None])[0]) - 1e-9 if np.isfinite(evidence) else -np.inf

    def _log_density(self, k: int, values: FloatArray) -> FloatArray:
        """Of the mixing measure: falls in θ, or is constant where θ may be negative."""
        low, width = self.lower[k], self.upper[k] - self.lower[k]
        if low < 0:
            return np.full(values.shape, -log(width))
        start = low if low > 0 else _SMALLEST * width
        total = log(log((width + start) / start))
        density: FloatArray = -np.log(np.maximum(values - low, 0.0) + start) - total
        return density


def _before(values: FloatArray, axis: int) -> FloatArray:
    return np.take(values, range(values.shape[axis] - 1), axis)


def _after(values: FloatArray, axis: int) -> FloatArray:
    return np.take(values, range(1, values.shape[axis]), axis)
