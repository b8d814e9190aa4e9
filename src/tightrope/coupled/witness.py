"""Instantiations: points of the true set at which the policy's value is known, the lowest and the highest.

They say how much of a bound is real. No soundness rests on them: a point satisfies the region's rows up to a
relative 10⁻⁹. The value at the point x itself is enclosed rigorously (a Taylor model of order 0). For lifted
coordinates a point is θ with its products, so that it lies on the true set and not in its relaxation alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.coupled.cells import Region
from tightrope.coupled.chain import Chain
from tightrope.coupled.frame import Frame
from tightrope.coupled.taylor import TaylorModel, expand
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.statistics.coordinates import AffineFunctions

_TOLERANCE = 1e-9
_WITHIN = 1.0 - 1e-10
_HALVINGS = 30
_DRAWN = 4000
_CLIMB = 40
_CONSIDERED = 64
_STEPS = (0.1, 0.1, 0.03, 0.03, 0.01, 0.01, 0.003, 0.003, 0.001, 0.001)

Quadratic = tuple[float, FloatArray, FloatArray]
"""(constant, slope, curvature)."""


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
        quadratic = model.at(self.chain.initial)
        for sign in (1.0, -1.0):
            x, promised = self._promising(frame, quadratic, sign)
            known = self.lowest if sign > 0 else self.highest
            if known is None or sign * promised < sign * (known.upper if sign > 0 else known.lower):
                self.evaluate(x)

    def _promising(self, frame: Frame, quadratic: Quadratic, sign: float) -> tuple[FloatArray, float]:
        """A point of the true set where the cell's model is low (sign +1) or high, and what it says there.

        A low point of the whole hull, if it belongs to the true set; else the best of what lies between the
        inner point and the lowest points of the hull, improved by random steps that shrink.
        """
        _, slope, curvature = quadratic
        values = sign * _values(quadratic, frame.points)
        low = _descend(sign * slope, sign * curvature, frame.points, int(values.argmin()))
        aim = self._between(frame.to_x(low[None, :]), np.array([_WITHIN]))
        if self._holds(aim)[0]:
            return aim[0], float(_values(quadratic, low[None, :])[0])
        chosen = np.argsort(values)[:_CONSIDERED]
        x = self._nearest(frame.to_x(np.vstack([low, frame.points[chosen]])))
        inverse = np.linalg.inv(frame.axes).T
        found = sign * _values(quadratic, (x - frame.centre) @ inverse)
        best, least = x[int(found.argmin())], float(found.min())
        draw = np.random.default_rng(29)
        free = self.region.free
        span = self.region.upper[:free] - self.region.lower[:free]
        for shrink in _STEPS:
            theta = best[:free] + shrink * span * draw.standard_normal((_CONSIDERED, free))
            trial = self._lift(theta)
            trial = trial[self._holds(trial)]
            found = sign * _values(quadratic, (trial - frame.centre) @ inverse)
            if len(found) and float(found.min()) < least:
                best, least = trial[int(found.argmin())], float(found.min())
        return best, sign * least

    def _between(self, x: FloatArray, share: FloatArray) -> FloatArray:
        """Points of the true set (but for its rows) that lie a share of the way from the inside to x."""
        assert self.home is not None
        free = self.region.free
        home = self.home[:free]
        return self._lift(home + share[:, None] * (x[:, :free] - home))

    def _nearest(self, x: FloatArray) -> FloatArray:
        """The points of the true set nearest to x on the way from the inside, by bisection."""
        low, high = np.zeros(len(x)), np.full(len(x), _WITHIN)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            holds = self._holds(self._between(x, middle))
            low, high = np.where(holds, middle, low), np.where(holds, high, middle)
        return self._between(x, low)

    def _lift(self, theta: FloatArray) -> FloatArray:
        return self.region.coordinates.lift_free(theta)

    def _holds(self, x: FloatArray) -> BoolArray:
        result: BoolArray = np.all(x @ self.region.matrix.T <= self._allowed, axis=1)
        return result

    def _start(self) -> FloatArray | None:
        """A point of the true set well inside: the region's own, or the best of many drawn ones."""
        region, free = self.region, self.region.free
        if free == 0:
            return region.interior
        own = self._lift(region.interior[None, :free])
        if not region.is_lifted or self._holds(own)[0]:
            home: FloatArray = own[0]
            return home
        draw = np.random.default_rng(17)
        span = region.upper[:free] - region.lower[:free]
        for shrink in (1.0, 0.3, 0.1):
            x = self._lift(own[:, :free] + shrink * span * (draw.random((_DRAWN, free)) - 0.5))
            slack = ((region.bound - x @ region.matrix.T) / np.abs(region.matrix).sum(axis=1)).min(axis=1)
            if float(slack.max()) > 0.0:
                result: FloatArray = x[int(slack.argmax())]
                return result
        return None


def _values(quadratic: Quadratic, y: FloatArray) -> FloatArray:
    constant, slope, curvature = quadratic
    result: FloatArray = constant + y @ slope + np.einsum("ki,ij,kj->k", y, curvature, y)
    return result


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
