"""Half-spaces that contain { x : Σ K_f·log f(x) ≥ T }, exactly despite floating point.

log f ≤ log c + f/c − 1 for every c > 0, so any positive numbers c_f give a valid row:

    T ≤ ℓ(x) ≤ Σ K_f (log c_f − 1) + Σ (K_f/c_f)·f(x).

With c_f = f at a boundary point the row is the tangent there. The numbers c_f need not be accurate; only
the arithmetic of the row does, and it is rounded outward: sums of logarithms by exact summation, the
gradient with an error bound that counts on |x − point| within the box. ℓ is concave in the coordinates x
because every f is affine in them.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.statistics.coordinates import AffineFunctions


class LogLikelihood:
    """ℓ(x) = Σ weight·log f(x) over the coordinates, with the level T that bounds the region."""

    def __init__(self, functions: AffineFunctions, weight: FloatArray, level: float):
        used = np.flatnonzero(weight > 0.0)
        chosen = functions.take(used)
        self.linear, self.constant, self.slack = chosen.linear, chosen.constant, chosen.slack
        self.weight = weight[used]
        self.level = level

    def rescale(self, origin: FloatArray, scale: FloatArray) -> LogLikelihood:
        """The same function of y with x = origin + scale·y, in plain float64: for searching, not for
        proving.
        """
        everything = AffineFunctions(self.linear * scale, self.constant + self.linear @ origin, self.slack)
        return LogLikelihood(everything, self.weight, self.level)

    def values(self, points: FloatArray) -> FloatArray:
        """ℓ at points [n, coordinates] in plain float64; −∞ where some f ≤ 0."""
        probability = points @ self.linear.T + self.constant
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(probability > 0.0, np.log(probability), -np.inf)
        return logs @ self.weight

    def curvature(self, x: FloatArray) -> FloatArray:
        """Minus the Hessian of ℓ at x."""
        probability = self.linear @ x + self.constant
        scaled = self.linear * (np.sqrt(self.weight) / probability)[:, None]
        bend: FloatArray = scaled.T @ scaled
        return bend

    def boundary(self, centre: FloatArray, points: FloatArray) -> FloatArray:
        """For each point the t > 0 with ℓ(centre + t·(point − centre)) ≈ T, from just outside; ∞ where
        beyond 10⁶.

        f is affine along the ray, so ℓ is concave in t: Newton from outside would overshoot, bisection in
        t does not.
        """
        start = self.linear @ centre + self.constant
        slope = self.linear @ (points - centre).T
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = np.where(slope < 0.0, -start[:, None] / slope, np.inf).min(axis=0, initial=np.inf)
        low = np.zeros(len(points))
        high = np.minimum(limit, 1e6)
        guess = np.minimum(1.0, 0.5 * high)
        for _ in range(50):
            with np.errstate(divide="ignore", invalid="ignore"):
                value = self.weight @ np.log(start[:, None] + slope * guess)
            inside = value >= self.level
            low, high = np.where(inside, guess, low), np.where(inside, high, guess)
            wide = high > 4.0 * np.maximum(low, 1e-9)
            guess = np.where(wide & (low > 0.0), np.sqrt(low * high), 0.5 * (low + high))
            if np.all(high - low <= 1e-7 * high):
                break
        return np.where((high >= 1e6) & (limit > 1e6), np.inf, 0.5 * (low + high))

    def is_possible(self, point: FloatArray) -> bool:
        """Whether everything seen has a positive probability there, in plain float64: a tangent needs it.

        From few data the region may reach points where a probability vanishes up to rounding.
        """
        return bool(np.all(self.linear @ point + self.constant > 0.0))

    def cut(self, point: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, float]:
        """A row a·x ≤ b that holds on the region within the box: the tangent at `point`, or nearly so."""
        chosen = self.linear @ point + self.constant
        tilt = self.weight / chosen
        gradient = tilt @ self.linear
        reach = np.maximum(np.abs(upper - point), np.abs(lower - point))
        off = product_error(tilt[None, :], self.linear, 3)[0] @ reach
        logs = self.weight * np.log(chosen)
        # Σ tilt·(value at the point − c): zero but for the rounding of c, bounded like the slack.
        size = np.abs(self.linear) @ np.abs(point) + np.abs(self.constant)
        fuzz = float(tilt @ (self.slack + error_factor(len(point) + 4) * size)) * (1.0 + 1e-9)
        room = math.fsum(logs) + 6.0 * UNIT * math.fsum(np.abs(logs)) - self.level
        middle = float(gradient @ point)
        spare = 4.0 * UNIT * (abs(room) + abs(middle)) + error_factor(len(point) + 4) * float(
            np.abs(gradient) @ np.abs(point)
        )
        bound = room - middle + (off + fuzz + spare) * (1.0 + 1e-9)
        return -gradient, up(float(bound))
