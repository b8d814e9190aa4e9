"""Projections of a region: safe bounds on every expression and on every parameter.

P_Λ: the range of each expression over the region (paper, Section 3.1), cut with the event intervals. P_Θ: the
box of the parameters. A quotient f/g, g > 0, is at most c where the largest value of f − c·g is at most 0:
bisection in c, of which every success is a proof (if f − c·g ≤ m ≤ 0 then f/g ≤ c + m/max g).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.data.counts import Counts
from tightrope.model.expressions import Expressions
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import denominators, numerators
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import remember
from tightrope.numerics.rounding import down, error_factor, up
from tightrope.regions.region import Region
from tightrope.statistics.coordinates import AffineFunctions, Coordinates, solve_equalities
from tightrope.statistics.estimates import EventIntervals, constant_values
from tightrope.statistics.outcomes import Outcomes


def function_bounds(region: Region, functions: AffineFunctions) -> tuple[FloatArray, FloatArray]:
    """Safe bounds of affine functions over the region."""
    lower, upper = region.support(functions.linear)
    return (
        down(down(lower + functions.constant) - functions.slack),
        up(up(upper + functions.constant) + functions.slack),
    )


def expression_bounds(
    region: Region, expressions: Expressions, within: tuple[FloatArray, FloatArray] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Bound every expression of the table, within [0, 1] and the given bounds."""
    functions = region.coordinates.functions(expressions)
    lower, upper = np.zeros(len(expressions)), np.ones(len(expressions))
    complement = expressions.complement
    number = np.arange(len(expressions))
    first = (complement < 0) | (number <= complement)
    index = np.flatnonzero(first & ~expressions.is_constant)
    low, high = function_bounds(region, functions.take(index))
    lower[index], upper[index] = np.maximum(low, 0.0), np.minimum(high, 1.0)
    second = np.flatnonzero(~first & ~expressions.is_constant)
    lower[second] = np.maximum(down(1.0 - upper[complement[second]]), 0.0)
    upper[second] = np.minimum(up(1.0 - lower[complement[second]]), 1.0)
    constant, value_lower, value_upper = constant_values(expressions)
    lower[constant], upper[constant] = value_lower, value_upper
    if within is not None:
        lower, upper = np.maximum(lower, within[0]), np.minimum(upper, within[1])
    return lower, upper


def parameter_box(region: Region) -> tuple[FloatArray, FloatArray]:
    """Safe bounds on every original parameter, eliminated ones included."""
    functions = region.coordinates.parameter_functions()
    lower, upper = function_bounds(region, functions)
    domain_lower, domain_upper = domain_box(region.coordinates.parameters)
    return np.maximum(lower, domain_lower), np.minimum(upper, domain_upper)


@remember
def domain_box(parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """The box of the domain, rounded outward."""
    lower, upper = (RationalArray.from_fractions(ends) for ends in (parameters.lower, parameters.upper))
    return lower.to_float_down(), upper.to_float_up()


_STEPS = 16
_CLOSE = 1e-4
"""Of a bound's width: where less than that may be left to gain, the bound stays."""

Rows = tuple[FloatArray, FloatArray]
"""(a, b) of rows a·x ≤ b."""


def quotient_rows(
    coordinates: Coordinates, intervals: EventIntervals, chosen: OffsetArray
) -> tuple[Rows, Rows]:
    """(f − u·g ≤ 0, l·g − f ≤ 0) for the chosen events, whose probabilities are quotients."""
    events = intervals.events
    expressions = events.outcomes.model.expressions
    tops, bottoms = _sides(coordinates, expressions, events.expression[chosen].astype(np.int64))
    times = events.multiplicity[chosen].astype(np.float64)
    above = _combine(coordinates, tops, times, bottoms, -intervals.upper[chosen])
    below = _combine(coordinates, tops, -times, bottoms, intervals.lower[chosen])
    return (above.linear, up(above.slack - above.constant)), (below.linear, up(below.slack - below.constant))


def quotient_bounds(
    region: Region, expressions: Expressions, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of all expressions, those of quotients narrowed over the region."""
    rows = np.flatnonzero(expressions.is_rational).astype(np.int64)
    tops, bottoms = _sides(region.coordinates, expressions, rows)
    least, most = function_bounds(region, bottoms)
    uncertain = np.flatnonzero((least > 0.0) & (lower[rows] < upper[rows]))
    lower, upper = lower.copy(), upper.copy()
    rows, most = rows[uncertain], most[uncertain]
    tops, bottoms = tops.take(uncertain), bottoms.take(uncertain)
    if len(rows):
        upper[rows] = _lower(region, (tops, np.ones(len(rows)), bottoms), most, upper[rows], lower[rows])
        raised = _lower(region, (tops, -np.ones(len(rows)), bottoms), most, -lower[rows], -upper[rows])
        lower[rows] = -raised
    return lower, upper


def _lower(
    region: Region,
    quotients: tuple[AffineFunctions, FloatArray, AffineFunctions],
    most: FloatArray,
    bound: FloatArray,
    other: FloatArray,
) -> FloatArray:
    """Smaller upper bounds of factor·f/g, between lower bounds and upper ones; g ≤ most."""
    tops, factor, bottoms = quotients
    bound, below = bound.copy(), other.copy()
    active, width = np.arange(len(bound)), bound - other
    c = bound.copy()
    for _ in range(_STEPS):
        at = c[active]
        difference = _combine(
            region.coordinates, tops.take(active), factor[active], bottoms.take(active), -at
        )
        _, largest = function_bounds(region, difference)
        step = largest / up(most[active])
        proved = largest <= 0.0
        bound[active] = np.where(proved, np.minimum(bound[active], up(at + up(step))), bound[active])
        below[active] = np.where(proved, below[active], at + step)
        active = active[bound[active] - below[active] > _CLOSE * width[active]]
        if len(active) == 0:
            break
        c[active] = 0.5 * (bound[active] + below[active])
    return bound


def _sides(
    coordinates: Coordinates, expressions: Expressions, rows: OffsetArray
) -> tuple[AffineFunctions, AffineFunctions]:
    """Numerators and denominators of rows as affine functions of the coordinates, with denominators > 0."""
    tops = coordinates.functions(numerators(expressions)).take(rows)
    bottoms = coordinates.functions(denominators(expressions)).take(
        expressions.denominator_of[rows].astype(np.int64)
    )
    sign = np.sign(coordinates.lower[len(coordinates.free) + expressions.denominator_of[rows]])
    return _sign(tops, sign), _sign(bottoms, sign)


def _sign(functions: AffineFunctions, sign: FloatArray) -> AffineFunctions:
    return AffineFunctions(functions.linear * sign[:, None], functions.constant * sign, functions.slack)


def _combine(
    coordinates: Coordinates, left: AffineFunctions, a: FloatArray, right: AffineFunctions, b: FloatArray
) -> AffineFunctions:
    """a·left + b·right, with what rounding adds to the slack."""
    reach = np.maximum(np.abs(coordinates.lower), np.abs(coordinates.upper))
    linear = left.linear * a[:, None] + right.linear * b[:, None]
    size = (np.abs(left.linear * a[:, None]) + np.abs(right.linear * b[:, None])) @ reach
    size += np.abs(left.constant * a) + np.abs(right.constant * b)
    slack = np.abs(a) * left.slack + np.abs(b) * right.slack + error_factor(6) * size
    return AffineFunctions(linear, left.constant * a + right.constant * b, up(slack * (1.0 + 1e-9)))


POINTS, HALVINGS = 13, 14
MOST_TRACKS, MOST_TRACKED = 12, 200_000
"""Parameters, and transitions of a model, of which there are tracks."""
Tracks = dict[str, list[list[float]]]
"""By parameter: free parameters at points of the region, from its least value there to its largest."""


def tracks_in(region: Region | None, model: ParametricMDP, counts: Counts | None) -> Tracks:
    """Find, by parameter, points where it moves across the region and others follow the best fit."""
    if region is None or region.emptiness.is_empty or model.parameters.free:
        return {}
    if model.transitions > MOST_TRACKED:
        return {}
    map_ = _Map(region, *solve_equalities(model.parameters))
    maximiser = Outcomes.of(model).maximiser
    weight = np.zeros(len(model.expressions))
    if counts is not None:
        weight = np.bincount(model.expression, counts.transition, len(weight)).astype(np.float64)
    best, corners = maximiser.estimate(weight), map_.at(region.vertices)
    x, jacobian = maximiser.search.lifted(best)
    slope = maximiser.functions.linear @ jacobian.reshape(-1, len(best))
    expected = np.maximum(maximiser.functions.at(x), 1e-12)
    information = (slope * (weight / expected**2)[:, None]).T @ slope + maximiser.smoothing_at(best)
    spread = np.linalg.pinv(information, hermitian=True)
    if not map_.holds(best):
        best = map_.farthest(map_.centre(corners), best)
    names = model.parameters.names[:MOST_TRACKS]
    tracks = {name: map_.track(i, best, spread, corners) for i, name in enumerate(names)}
    return {name: track for name, track in tracks.items() if len(track) > 1}


@dataclass(frozen=True, eq=False)
class _Map:
    """Free parameters of a model, and whether they lie in a region."""

    region: Region
    free: tuple[int, ...]
    substitution: tuple[Polynomial, ...]

    def holds(self, t: FloatArray) -> bool:
        theta = point_of(self.substitution, t.tolist())
        return self.region.coordinates.parameters.contains(theta) and self.region.contains(theta)

    def at(self, x: FloatArray | None) -> FloatArray:
        """The free parameters at coordinates of the region, a point a row."""
        own = self.region.coordinates
        if x is None:
            return np.zeros((0, len(self.free)))
        slopes = np.stack([_slope(own.substitution[i], len(own.free)) for i in self.free])
        constants = np.array([float(own.substitution[i].constant_term) for i in self.free])
        result: FloatArray = x[:, : len(own.free)] @ slopes.T + constants
        return result

    def centre(self, corners: FloatArray) -> FloatArray:
        """A point of the region, or one that is likely to be."""
        if len(corners):
            middle: FloatArray = corners.mean(axis=0)
            return middle
        found, (low, high) = self.region.emptiness.witness, self.region.bounding_box
        point: FloatArray = self.at((0.5 * (low + high) if found is None else found)[None])[0]
        return point

    def farthest(self, start: FloatArray, end: FloatArray) -> FloatArray:
        """About the last point in the region on the way from `start` to `end`."""
        near, far = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (near + far)
            near, far = (middle, far) if self.holds(start + middle * (end - start)) else (near, middle)
        return start + near * (end - start)

    def track(self, i: int, best: FloatArray, spread: FloatArray, corners: FloatArray) -> list[list[float]]:
        """Points along which parameter `i` rises."""
        parameters, row = self.region.coordinates.parameters, _slope(self.substitution[i], len(self.free))
        if not (rise := float(row @ spread @ row)) > 0.0:
            return []
        way = spread @ row / rise * float(parameters.upper[i] - parameters.lower[i])
        nodes = [best]
        for sign in (-1.0, 1.0):
            edge = self.farthest(best, best + sign * way)
            nodes.append(edge)
            if len(corners):
                nodes.append(self.farthest(edge, corners[int(np.argmax(sign * (corners @ row)))]))
        nodes.sort(key=lambda t: float(row @ t))
        along = [float(row @ t) for t in nodes]
        shown = np.union1d(np.linspace(along[0], along[-1], POINTS), [float(row @ best)])
        points = np.stack([np.interp(shown, along, column) for column in np.array(nodes).T], axis=1)
        return [t.tolist() for t in points if self.holds(t)]


def _slope(affine: Polynomial, size: int) -> FloatArray:
    return np.array([float(affine.terms.get(((j, 1),), 0)) for j in range(size)])


def point_of(substitution: Sequence[Polynomial], t: Sequence[float]) -> tuple[Fraction, ...]:
    """All parameters at the free ones."""
    exact = [Fraction(value) for value in t]
    return tuple(polynomial.evaluate(exact) for polynomial in substitution)
