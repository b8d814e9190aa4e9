"""The likelihood of all rates together: a confidence region for parameters that several rates share.

**Theorem.** Let class c of transitions happen with intensity g_c(θ*)·Y_c(t), Y_c known just before t. With
K_c events over the exposure T_c = ∫Y_c the log-likelihood is ℓ(θ) = Σ_c K_c·log g_c(θ) − g_c(θ)·T_c, up to a
term without θ. For any measure π with mass at most 1, fixed in advance, on vectors q ≥ 0 of intensities,

    M_t = ∫ exp( Σ_c K_c·log q_c − q_c·T_c ) dπ(q) / exp ℓ(θ*)

is a non-negative supermartingale with M_0 ≤ 1, so { θ : ℓ(θ) ≥ log ∫… + log δ } contains θ* at all times
together with probability at least 1 − δ, and so does the larger set that a lower bound of the integral gives.

*Proof.* For fixed q the ratio is the product over c of likelihood ratios of counting processes. Between
events it changes by −Σ_c (q_c − g_c)·Y_c·dt times itself, an event of class c multiplies it by q_c/g_c, and
these come at rate g_c·Y_c: the drift is Σ_c ((q_c/g_c − 1)·g_c − (q_c − g_c))·Y_c·dt = 0. So it is a
non-negative local martingale, hence a supermartingale; mixtures stay one (Fubini); Ville's inequality. ∎

The mixture, by the model alone. Where classes outnumber the parameters, 9/10 of it is q = g(θ) for θ with
independent coordinates of density 1/((θ_i − low_i + s_i)·Z_i) on the domain's box, about uniform in log θ_i:
what is paid is about ½·log K for each *parameter*. The other tenth, or all of it where they do not, has
independent Gamma components, as in `rates`: it makes the region empty where no θ of the domain explains the
data.

The integral over θ is bounded from below by a sum over parallelepipeds around the estimate. With affine g the
function ℓ is concave, so on each of them ∫ e^ℓ ≥ volume · exp(mean of ℓ) by Jensen, the mean is at least that
of its corners (Hermite–Hadamard, axis by axis), and the density at least its value at the largest θ_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import gammaln, logsumexp

from tightrope.numerics.arrays import FloatArray
from tightrope.statistics.rates import SHAPE

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
            found = float(logsumexp(total.ravel())) + volume
        return found - self.error(self.rates(centre[None])[0]) - 1e-9 if np.isfinite(found) else -np.inf

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
