"""The best that the model can say of the data: an upper bound on the likelihood over the whole domain.

A test of the model divides by the largest likelihood that any parameters reach, so what it divides by must
not be too small. With every expression affine in the coordinates x, ℓ(x) = Σ count·log f(x) is concave, and
its tangent at any point x̂ bounds it from above: ℓ(x) ≤ b + g·x on the box (`LogLikelihood.cut`, with all
rounding on the safe side). For any λ ≥ 0 and the rows A·x ≤ c of the domain,

    g·x = λ·(A·x) + (g − Aᵀλ)·x ≤ λ·c + Σ_j max over the box of (g − Aᵀλ)_j·x_j.

x̂ maximises ℓ plus a log barrier of weight μ, where g = Aᵀλ for λ_i = μ/(c_i − A_i·x̂), so that the bound
exceeds the maximum by μ per row. Products of parameters are separate coordinates within McCormick's
envelopes, which only raises the bound. Wherever Newton's method ends, the bound holds.

Predictions of the model: logarithms of probabilities at an estimate, rounded down.

Any point of the domain is a sound estimate, as long as it was known before what it predicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.refit import climb
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.rounding import UNIT, error_factor, product_error, up
from tightrope.regions.envelopes import coordinate_envelopes
from tightrope.regions.tangent_cuts import LogLikelihood
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser

HOPELESS = -1e250
"""Below the logarithm of any positive probability, and finite however often it is added."""


def log_chances(fit: BestFit, point: FloatArray) -> FloatArray | None:
    """A lower bound on log f per expression at the free parameters `point`; None outside the domain."""
    inside, found = log_chances_of(fit, point[None, :])
    return found[0] if inside[0] else None


def log_chances_of(fit: BestFit, points: FloatArray) -> tuple[BoolArray, FloatArray]:
    """The same at many points [n, free]: which of them lie in the domain, and one row for each that does."""
    functions = fit.functions
    inside, x = fit.are_well_inside(points), fit.lift(points)
    size = np.abs(x) @ np.abs(functions.linear).T + np.abs(functions.constant)
    value = x @ functions.linear.T + functions.constant
    value = value - functions.slack - error_factor(3 * x.shape[1] + 6) * size
    if fit.coordinates.denominators:
        value = value - 1.01 * fit.coordinates.reciprocal_error(points)[:, None] * size
    logs = np.log(np.where(value > 0.0, value, 1.0))
    found: FloatArray = np.where(value > 0.0, logs - 4.0 * UNIT * np.abs(logs), HOPELESS)
    found[~inside] = HOPELESS
    return inside, found


BARRIER = 1e-4
"""The weight μ of the barrier: what the bound gives away per row of the domain, in nats."""

_CLOSE = 1e-14
_NEARBY = 1e-5
_NEARLY_ALL = 0.99


@dataclass(frozen=True, eq=False)
class BestFit:
    """Bounds the likelihood of counts per expression over the domain of a model."""

    coordinates: Coordinates
    functions: AffineFunctions

    @staticmethod
    def of(model: ParametricMDP) -> BestFit:
        coordinates = Coordinates.of(model.expressions, model.parameters)
        return BestFit(coordinates, coordinates.functions(model.expressions))

    @cached_property
    def maximiser(self) -> LikelihoodMaximiser:
        """Finds parameters in the domain itself, for predictions."""
        return LikelihoodMaximiser.of(self.coordinates, self.functions)

    @cached_property
    def bottoms(self) -> FloatArray:
        """The terms of all denominators: number, coefficient, exponents of the free parameters."""
        rows = []
        for k, g in enumerate(self.coordinates.denominators):
            for monomial, coefficient in g.terms.items():
                row = np.zeros(2 + len(self.coordinates.free))
                row[:2] = k, float(coefficient)
                for index, exponent in monomial:
                    row[2 + index] = exponent
                rows.append(row)
        return np.array(rows).reshape(len(rows), 2 + len(self.coordinates.free))

    @cached_property
    def informative(self) -> FloatArray:
        """1 for expressions that depend on the parameters, 0 for constants."""
        found: FloatArray = (np.abs(self.functions.linear).max(axis=1, initial=0.0) > 0.0).astype(np.float64)
        return found

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
    def _free_rows(self) -> tuple[FloatArray, FloatArray]:
        """The rows of the domain beside the box, in the free parameters."""
        rows, bound, _ = self.coordinates.domain_rows()
        return rows[:, : len(self.coordinates.free)], bound

    def are_well_inside(self, points: FloatArray) -> BoolArray:
        """Which free parameters [n, free] lie in the domain, by a margin that rounding cannot make up."""
        free = points.shape[1]
        lower, upper = self.coordinates.lower[:free], self.coordinates.upper[:free]
        rows, bound = self._free_rows
        size = np.abs(points) @ np.abs(rows).T + np.abs(bound)
        within = np.all((lower < points) & (points < upper), axis=1)
        room = np.all(points @ rows.T < bound - 1e-10 * (1.0 + size), axis=1)
        found: BoolArray = np.asarray(within & room, dtype=np.bool_)
        return found

    def lift(self, points: FloatArray) -> FloatArray:
        """All coordinates [n, size] at free parameters [n, free], in plain float64."""
        return self.coordinates.lift_free(points)

    @cached_property
    def centre(self) -> FloatArray:
        """A point well inside the domain, from which any search may start."""
        return self.maximiser.lifted(self.maximiser.start)

    def search(self, weight: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Coordinates near the maximum of the likelihood, strictly inside."""
        used = np.flatnonzero(weight * self.informative > 0.0)
        linear, constant, count = self.functions.linear[used], self.functions.constant[used], weight[used]
        rows, bound = self.rows
        x = self.centre if start is None or not self._is_inside(start, linear, constant) else start
        x = x.copy()
        # Products and reciprocals are coordinates here.
        functions = linear, constant, np.empty((0, 2), dtype=np.int64), np.empty((0, 2 + len(x)))
        climb(functions, (rows, bound), count, x, (0, len(x)), (BARRIER, _CLOSE, _NEARBY))
        return x

    def upper(
        self, weight: FloatArray, x: FloatArray, tilt: FloatArray | None = None, level: float = 0.0
    ) -> float:
        """An upper bound on the log-likelihood of these counts over the domain, tight where x is best.

        With `tilt`: on the log-likelihood plus level + Σ tilt·f over the expressions f, for tilt ≥ 0.
        """
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

    def _is_inside(self, x: FloatArray, linear: FloatArray, constant: FloatArray) -> bool:
        rows, bound = self.rows
        return bool(np.all(bound - rows @ x > 1e-14) and np.all(linear @ x + constant > 0.0))


def solve_step(matrix: FloatArray, right: FloatArray) -> FloatArray:
    try:
        found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return found.astype(np.float64, copy=False)


def longest_step(chance: FloatArray, slope: FloatArray, room: FloatArray, narrowing: FloatArray) -> float:
    """The part of a step, at most all of it, that stays inside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(slope < 0.0, -chance / slope, np.inf).min(initial=np.inf)
        second = np.where(narrowing > 0.0, room / narrowing, np.inf).min(initial=np.inf)
    return min(1.0, _NEARLY_ALL * float(min(first, second)))
