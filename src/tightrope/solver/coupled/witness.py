"""Instantiations: points of the true set at which the policy's value is known, the lowest and the highest.

They say how much of a bound is real. No soundness rests on them: a point satisfies the region's rows up to a
relative 10⁻⁹. The value at the point x itself is enclosed rigorously (a Taylor model of order 0). For lifted
coordinates a point is θ with its products, so that it lies on the true set and not in its relaxation alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.solver.coupled.cells import Region
from tightrope.solver.coupled.chain import Chain
from tightrope.solver.coupled.frame import Frame
from tightrope.solver.coupled.taylor import TaylorModel, expand
from tightrope.statistics.coordinates import AffineFunctions

_TOLERANCE = 1e-9
_WITHIN = 1.0 - 1e-10
_HALVINGS = 30
_DRAWN = 4000
_CLIMB = 40


@dataclass(frozen=True, eq=False)
class Point:
    """A point x of the true set and an enclosure of the value there, before `complement`."""

    x: FloatArray
    lower: float
    upper: float


class Search:
    """Keeps the points with the lowest and the highest value met so far."""

    def __init__(self, chain: Chain, functions: AffineFunctions, region: Region):
        self.chain, self.functions, self.region = chain, functions, region
        self.lowest: Point | None = None
        self.highest: Point | None = None
        self._allowed = region.bound + _TOLERANCE * np.abs(region.matrix) @ np.maximum(
            region.upper - region.lower, 1e-300
        )
        self.home = self._start()

    def evaluate(self, x: FloatArray) -> None:
        """The value at x, if it can be enclosed, kept where it is the best."""
        model = expand(self.chain, self.functions, x, np.zeros((len(x), 0)), 0.0, order=0)
        if model is None:
            return
        value, error = float(model.constant[self.chain.initial]), float(model.error[self.chain.initial])
        point = Point(x, value - error, value + error)
        if self.lowest is None or point.upper < self.lowest.upper:
            self.lowest = point
        if self.highest is None or point.lower > self.highest.lower:
            self.highest = point

    def look(self, frame: Frame, model: TaylorModel) -> None:
        """Evaluate where the model of a cell promises something lower or higher than what is known."""
        if self.home is None:
            return
        row = self.chain.initial
        constant, slope = float(model.constant[row]), model.slope[row]
        curvature = model.curvature[row] if model.order == 2 else np.zeros((len(slope), len(slope)))
        values = constant + frame.points @ slope
        values += np.einsum("ki,ij,kj->k", frame.points, curvature, frame.points)
        for sign in (1.0, -1.0):
            best = int((sign * values).argmin())
            y = _descend(sign * slope, sign * curvature, frame.points, best)
            promised = constant + float(slope @ y) + float(y @ curvature @ y)
            known = self.lowest if sign > 0 else self.highest
            if known is None or sign * promised < sign * (known.upper if sign > 0 else known.lower):
                self.evaluate(self._true_point(frame.to_x(y)))

    def _true_point(self, x: FloatArray) -> FloatArray:
        """The point of the true set nearest to x on the way from the inside, by bisection."""
        assert self.home is not None
        free = self.region.free
        home, aim = self.home[:free], x[:free]
        candidate = self._lift(home + _WITHIN * (aim - home))
        if self._holds(candidate):
            return candidate
        low, high = 0.0, _WITHIN
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if self._holds(self._lift(home + middle * (aim - home))):
                low = middle
            else:
                high = middle
        return self._lift(home + low * (aim - home))

    def _lift(self, theta: FloatArray) -> FloatArray:
        values = list(theta)
        for left, right in self.region.products:
            values.append(values[left] * values[right])
        return np.array(values, dtype=np.float64)

    def _holds(self, x: FloatArray) -> bool:
        return bool(np.all(self.region.matrix @ x <= self._allowed))

    def _start(self) -> FloatArray | None:
        """A point of the true set well inside: the region's own, or the best of many drawn ones."""
        region = self.region
        own = self._lift(region.interior[: region.free])
        if not region.products or self._holds(own):
            return own
        draw = np.random.default_rng(17)
        span = region.upper[: region.free] - region.lower[: region.free]
        for shrink in (1.0, 0.3, 0.1):
            theta = own[: region.free] + shrink * span * (draw.random((_DRAWN, region.free)) - 0.5)
            x = np.stack([self._lift(row) for row in theta])
            slack = ((region.bound - x @ region.matrix.T) / np.abs(region.matrix).sum(axis=1)).min(axis=1)
            if float(slack.max()) > 0.0:
                result: FloatArray = x[int(slack.argmax())]
                return result
        return None


def _descend(slope: FloatArray, curvature: FloatArray, points: FloatArray, start: int) -> FloatArray:
    """A low point of the quadratic over the hull: Frank–Wolfe steps from the lowest vertex."""
    y: FloatArray = points[start].copy()
    for _ in range(_CLIMB):
        gradient = slope + 2.0 * curvature @ y
        step = points[int((points @ gradient).argmin())] - y
        down = float(gradient @ step)
        if down >= -1e-15 * (1.0 + abs(float(slope @ y))):
            break
        bend = float(step @ curvature @ step)
        length = 1.0 if bend <= 0.0 else min(1.0, -down / (2.0 * bend))
        y += length * step
    return y
