"""The best that the model can say of the data: an upper bound on the likelihood over the whole domain.

ℓ(x) = Σ count·log f(x) is concave in the coordinates, so a tangent bounds it: ℓ(x) ≤ b + g·x. For any λ ≥ 0
and rows A·x ≤ c of the domain g·x ≤ λ·c + Σ_j max over the box of (g − Aᵀλ)_j·x_j. x̂ maximises ℓ plus a log
barrier of weight μ, and λ_i = μ/(c_i − A_i·x̂), so that the bound exceeds the maximum by μ per row.

Predictions are logarithms of probabilities at an estimate, rounded down; any point of the domain that was
known before is sound. Estimates of all parameters, or of one alone, are renewed by damped Newton steps from
the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tightrope.io.results import Moved
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, invert
from tightrope.numerics.jit import kernel
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.regions.likelihood import LogLikelihood
from tightrope.regions.tightening import coordinate_envelopes
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.search.smoothed_likelihood import SMOOTHING, SmoothedLikelihood

HOPELESS = -1e250
"""Below the logarithm of any positive probability, and finite however often it is added."""


def log_chances_of(fit: BestFit, points: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Which points [n, free] lie in the domain, and a lower bound on log f per expression, a row for each."""
    functions = fit.functions
    inside, x = fit.are_well_inside(points), fit.coordinates.lift_free(points)
    size = np.abs(x) @ np.abs(functions.linear).T + np.abs(functions.constant)
    value = x @ functions.linear.T + functions.constant
    value = value - functions.slack - error_factor(3 * x.shape[1] + 6) * size
    if fit.coordinates.denominators:
        value = value - 1.01 * fit.coordinates.reciprocal_error(points)[:, None] * size
    logs = np.log(np.where(value > 0.0, value, 1.0))
    result: FloatArray = np.where(value > 0.0, logs - 4.0 * UNIT * np.abs(logs), HOPELESS)
    result[~inside] = HOPELESS
    return inside, result


BARRIER = 1e-4
"""The weight μ of the barrier: what the bound gives away per row of the domain, in nats."""

_CLOSE = 1e-14
_NEARBY = 1e-5


@dataclass(frozen=True, eq=False)
class BestFit:
    """Bounds the likelihood of counts per expression over the domain of a model."""

    coordinates: Coordinates
    functions: AffineFunctions
    maximiser: LikelihoodMaximiser
    """Finds parameters in the domain itself, for predictions."""
    informative: FloatArray
    """1 for expressions that depend on the parameters, 0 for constants."""

    @staticmethod
    def of(model: ParametricMDP) -> BestFit:
        outcomes = Outcomes.of(model)
        depends = np.abs(outcomes.functions.linear).max(axis=1, initial=0.0) > 0.0
        fields = outcomes.coordinates, outcomes.functions, outcomes.maximiser
        return BestFit(*fields, depends.astype(np.float64))

    @cached_property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """All rows A·x ≤ c of the domain: constraints, envelopes of products, and the box."""
        box = self.coordinates
        matrix, bound, _ = box.domain_rows()
        products, product_bound = coordinate_envelopes(box, box.lower, box.upper)
        eye = np.eye(box.size)
        rows = np.concatenate([matrix, products, eye, -eye])
        return rows, np.concatenate([bound, product_bound, box.upper, -box.lower])

    @cached_property
    def whole(self) -> list[_Slice]:
        """All coordinates, products and reciprocals among them, in blocks where they fall apart."""
        if self.maximiser.blocks:
            return self.parts
        linear, constant = self.functions.linear, self.functions.constant
        search = SmoothedLikelihood((), linear, constant, *self.rows)
        return [_Slice.of(np.arange(self.coordinates.size), np.arange(len(linear)), search)]

    @cached_property
    def parts(self) -> list[_Slice]:
        """The free parameters, in blocks where they fall apart."""
        blocks, fit = self.maximiser.blocks, self.maximiser
        if not blocks:
            free, every = np.arange(len(self.coordinates.free)), np.arange(len(self.functions))
            return [_Slice.of(free, every, fit.search)]
        pairs = zip(blocks, fit.parts, strict=True)
        return [_Slice.of(block.columns, block.rows[0], part) for block, part in pairs]

    def are_well_inside(self, points: FloatArray) -> BoolArray:
        """Which free parameters [n, free] lie in the domain, by a margin that rounding cannot make up."""
        free = points.shape[1]
        lower, upper = self.coordinates.lower[:free], self.coordinates.upper[:free]
        rows, bound, _ = self.coordinates.domain_rows()
        rows = rows[:, :free]
        size = np.abs(points) @ np.abs(rows).T + np.abs(bound)
        within = np.all((lower < points) & (points < upper), axis=1)
        room = np.all(points @ rows.T < bound - 1e-10 * (1.0 + size), axis=1)
        result: BoolArray = np.asarray(within & room, dtype=np.bool_)
        return result

    @cached_property
    def centre(self) -> FloatArray:
        """A point well inside the domain, products moved off their envelopes: any search may start there."""
        point = self.maximiser.lifted(self.maximiser.start)
        (rows, bound), middle = self.rows, point.copy()
        if np.all(bound - rows @ point > 1e-9):
            return point
        for j in range(len(self.coordinates.free), len(point)):
            own = np.flatnonzero((rows[:, j] != 0.0) & ~np.any(rows[:, j + 1 :] != 0.0, axis=1))
            ends, above = (bound[own] - rows[own, :j] @ middle[:j]) / rows[own, j], rows[own, j] > 0.0
            middle[j] = 0.5 * (ends[~above].max(initial=-np.inf) + ends[above].min(initial=np.inf))
        for share in (0.5, 0.1, 0.01, 0.001):
            moved = point + share * (middle - point)
            if np.all(self.functions.at(moved) >= 0.0):
                return moved
        return point

    def search(
        self, weight: FloatArray, start: FloatArray | None = None, slope: FloatArray | None = None
    ) -> FloatArray:
        """Coordinates near the maximum of the likelihood (plus slope·x), strictly inside."""
        x, how = self.inside(start), (BARRIER, _CLOSE, _NEARBY)
        _climb_parts(self.whole, weight * self.informative, x, (0, len(x)), how, slope)
        return x

    def inside(self, x: FloatArray | None) -> FloatArray:
        """A copy of this point if it lies strictly inside, else of the centre."""
        rows, bound = self.rows
        if x is None or np.any(bound - rows @ x <= 1e-14) or np.any(self.functions.at(x) <= 0.0):
            x = self.centre
        return x.copy()

    def upper(
        self, weight: FloatArray, x: FloatArray, tilt: FloatArray | None = None, level: float = 0.0
    ) -> float:
        """An upper bound on the log-likelihood (with `tilt`: plus level + Σ tilt·f) over the domain, tight at
        x."""
        box = self.coordinates
        rows, bound = self.rows
        likelihood = LogLikelihood(self.functions, weight, 0.0)
        minus, intercept = likelihood.cut(x, box.lower, box.upper)
        gradient, steepness = -minus, np.abs(minus)
        if tilt is not None:
            linear, constant = self.functions.linear, self.functions.constant
            gradient, steepness = gradient + tilt @ linear, steepness + tilt @ np.abs(linear)
            most = float(tilt @ (np.abs(constant) + self.functions.slack))
            intercept += level + float(tilt @ constant) + float(tilt @ self.functions.slack)
            intercept += error_factor(len(tilt) + 8) * (most + abs(level) + abs(intercept))
        price = BARRIER / np.maximum(bound - rows @ x, 1e-300)
        rest = gradient - price @ rows
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        slack = 4.0 * np.finfo(float).eps if tilt is None else error_factor(len(tilt) + 8)
        fuzz = product_error(price[None, :], rows, 4)[0] + slack * steepness
        largest = np.maximum(rest * box.lower, rest * box.upper)
        spread = float(np.abs(largest).sum() + price @ np.abs(bound)) * (len(bound) + box.size + 8) * 2.0**-52
        total = intercept + float(price @ bound) + float(largest.sum()) + float(fuzz @ reach) * (1.0 + 1e-9)
        return up(total + spread + 4.0 * np.finfo(float).eps * abs(intercept))


_STEPS = 80
_NEARLY_THERE = 1e-3
"""What is left to gain, in nats, at which an estimate is good enough."""


def refit(
    fit: BestFit, weight: FloatArray, points: FloatArray, first: OffsetArray, last: OffsetArray
) -> None:
    """Move points[b, k] towards the estimate for weight[b], in the parameters first[k] to last[k] only."""
    roughly = (SMOOTHING, _NEARLY_THERE, _NEARLY_THERE)
    for row in range(len(points)):
        for kind, moved in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            _climb_parts(fit.parts, weight[row] * fit.informative, points[row, kind], moved, roughly)


class _Slice(NamedTuple):
    """Some coordinates, the expressions that depend on them, what `climb` takes of these, and the faces."""

    own: OffsetArray
    expression: OffsetArray
    functions: tuple[FloatArray, FloatArray, OffsetArray, FloatArray]
    faces: tuple[FloatArray, FloatArray]

    @staticmethod
    def of(own: OffsetArray, expression: OffsetArray, search: SmoothedLikelihood) -> _Slice:
        bottoms = enumerate(search.denominators)
        terms = [np.r_[k, coefficient, power] for k, each in bottoms for coefficient, power in each]
        products = np.array(search.products, dtype=np.int64).reshape(-1, 2)
        functions = search.linear, search.constant, products, np.array(terms).reshape(-1, 2 + len(own))
        return _Slice(own, expression, functions, (search.faces, search.bounds))


def _climb_parts(
    parts: Sequence[_Slice],
    weight: FloatArray,
    t: FloatArray,
    moved: tuple[int, int],
    how: tuple[float, float, float],
    slope: FloatArray | None = None,
) -> None:
    """`climb` in all parts, one after the other, in those coordinates that are moved."""
    slope = np.zeros(len(t)) if slope is None else slope
    for own, expression, (linear, constant, products, bottoms), faces in parts:
        first, last = moved if len(own) == len(t) else np.searchsorted(own, moved).tolist()
        if first < last:
            count, part = weight[expression], t[own]
            used = np.flatnonzero(count > 0.0)
            functions = linear[used], constant[used], products, bottoms
            climb(functions, faces, (count[used], slope[own]), part, (first, last), how)
            t[own] = part


@kernel
def climb(
    functions: tuple[FloatArray, FloatArray, OffsetArray, FloatArray],
    domain: tuple[FloatArray, FloatArray],
    weights: tuple[FloatArray, FloatArray],
    t: FloatArray,
    moved: tuple[int, int],
    how: tuple[float, float, float],
) -> None:
    """Newton's method for Σ count·log f + slope·x in t[first:last], in place; `how`: barrier's weight, gain
    at the end, gain below rounding."""
    linear, constant, products, bottoms = functions
    count, tilt = weights
    faces, bounds = domain
    first, last = moved
    barrier, close, little = how
    size, width = len(t), last - first
    x = np.empty(linear.shape[1])
    slope_of = np.zeros((linear.shape[1], width))
    gradient, bend, slope = np.empty(width), np.empty((width, width)), np.empty(width)
    step, inverse = np.empty(width), np.empty((width, width))
    trial = t.copy()
    value = _objective(functions, domain, weights, t, x, barrier)
    if value == -np.inf:
        return
    for _ in range(_STEPS):
        _lift(t, products, bottoms, x)
        slope_of[:] = 0.0
        for i in range(width):
            slope_of[first + i, i] = 1.0
        _add_reciprocals(t, bottoms, x, first, slope_of)
        behind = len(x) - len(products)
        for j in range(len(products)):
            left, right = products[j]
            for i in range(width):
                slope_of[behind + j, i] = slope_of[left, i] * x[right] + slope_of[right, i] * x[left]
        for i in range(width):
            gradient[i] = 0.0
            for c in range(size):
                gradient[i] += tilt[c] * slope_of[c, i]
        bend[:] = 0.0
        for e in range(len(count)):
            if count[e] > 0.0:
                chance = constant[e]
                slope[:] = 0.0
                for c in range(len(x)):
                    if linear[e, c] != 0.0:
                        chance += linear[e, c] * x[c]
                        for i in range(width):
                            slope[i] += linear[e, c] * slope_of[c, i]
                _add(gradient, bend, slope, count[e] / chance, count[e] / (chance * chance))
        for row in range(len(bounds)):
            room = bounds[row]
            for c in range(size):
                room -= faces[row, c] * t[c]
            for i in range(width):
                slope[i] = faces[row, first + i]
            _add(gradient, bend, slope, -barrier / room, barrier / (room * room))
        if invert(bend, inverse) == 0.0:
            return
        rise = 0.0
        for i in range(width):
            step[i] = 0.0
            for j in range(width):
                step[i] += inverse[i, j] * gradient[j]
            rise += gradient[i] * step[i]
        if not 0.0 < rise < np.inf:
            return
        length = 1.0
        while True:
            for i in range(width):
                trial[first + i] = t[first + i] + length * step[i]
            reached = _objective(functions, domain, weights, trial, x, barrier)
            if reached >= value + 0.1 * length * rise or (rise <= little and reached > -np.inf):
                break
            length *= 0.5
            if length < 1e-9:
                return
        for c in range(size):
            t[c] = trial[c]
        value = reached
        if rise <= close:
            return


@kernel
def _add(gradient: FloatArray, bend: FloatArray, slope: FloatArray, pull: float, curve: float) -> None:
    for i in range(len(slope)):
        if slope[i] != 0.0:
            gradient[i] += pull * slope[i]
            for j in range(len(slope)):
                bend[i, j] += curve * slope[i] * slope[j]


@kernel
def _lift(t: FloatArray, products: OffsetArray, bottoms: FloatArray, x: FloatArray) -> None:
    for c in range(len(t)):
        x[c] = t[c]
    behind = len(x) - len(products)
    x[len(t) : behind] = 0.0
    for row in range(len(bottoms)):
        term = bottoms[row, 1]
        for c in range(len(t)):
            term *= t[c] ** bottoms[row, 2 + c]
        x[len(t) + int(bottoms[row, 0])] += term
    for k in range(len(t), behind):
        x[k] = 1.0 / x[k] if x[k] != 0.0 else np.inf
    for j in range(len(products)):
        x[behind + j] = x[products[j, 0]] * x[products[j, 1]]


@kernel
def _add_reciprocals(
    t: FloatArray, bottoms: FloatArray, x: FloatArray, first: int, slope_of: FloatArray
) -> None:
    """The derivatives of all 1/g: −g'/g²."""
    for row in range(len(bottoms)):
        place = len(t) + int(bottoms[row, 0])
        for i in range(slope_of.shape[1]):
            power = bottoms[row, 2 + first + i]
            if power > 0.0:
                term = bottoms[row, 1] * power
                for c in range(len(t)):
                    term *= t[c] ** (bottoms[row, 2 + c] - (1.0 if c == first + i else 0.0))
                slope_of[place, i] -= term * x[place] * x[place]


@kernel
def _objective(
    functions: tuple[FloatArray, FloatArray, OffsetArray, FloatArray],
    domain: tuple[FloatArray, FloatArray],
    weights: tuple[FloatArray, FloatArray],
    t: FloatArray,
    x: FloatArray,
    barrier: float,
) -> float:
    linear, constant, products, bottoms = functions
    faces, bounds = domain
    count, tilt = weights
    total = 0.0
    for c in range(len(t)):
        total += tilt[c] * t[c]
    for row in range(len(bounds)):
        room = bounds[row]
        for c in range(len(t)):
            room -= faces[row, c] * t[c]
        if room <= 1e-13 * (1.0 + abs(bounds[row])):
            return -np.inf
        total += barrier * np.log(room)
    _lift(t, products, bottoms, x)
    for e in range(len(count)):
        if count[e] > 0.0:
            chance = constant[e]
            for c in range(len(x)):
                chance += linear[e, c] * x[c]
            if chance <= 0.0:
                return -np.inf
            total += count[e] * np.log(chance)
    return total


def moved_parameters(
    fit: BestFit, names: Sequence[str], past: FloatArray, since: FloatArray
) -> tuple[Moved, ...]:
    """Free parameters before and after a change, in standard errors moved, most first."""
    before = fit.maximiser.estimate(past * fit.informative)
    after = fit.maximiser.estimate(since * fit.informative, before)
    spread = _covariance(fit, past, before) + _covariance(fit, since, after)
    rows = []
    for place, index in enumerate(fit.coordinates.free):
        errors = float(after[place] - before[place]) / math.sqrt(spread[place, place])
        rows.append(Moved(names[index], float(before[place]), float(after[place]), errors))
    return tuple(sorted(rows, key=lambda row: -abs(row.standard_errors)))


def _covariance(fit: BestFit, seen: FloatArray, point: FloatArray) -> FloatArray:
    """The inverse of the information about the free parameters, with a little added where there is none."""
    used = np.flatnonzero(seen * fit.informative > 0.0)
    x = fit.maximiser.lifted(point)
    chance = fit.functions.linear[used] @ x + fit.functions.constant[used]
    slope = fit.functions.linear[used] @ fit.maximiser.jacobian(point)
    slope *= (np.sqrt(seen[used]) / chance)[:, None]
    width = fit.coordinates.upper[: len(point)] - fit.coordinates.lower[: len(point)]
    information = slope.T @ slope + np.diag(1.0 / np.maximum(width, 1e-12) ** 2)
    return np.linalg.inv(information).astype(np.float64, copy=False)
