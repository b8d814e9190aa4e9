"""Smoothed maximum likelihood inside the domain, by damped Newton steps.

maximise Σ K_f·log f(θ) + ½·Σ log(slack of each face of the domain). The second term keeps the estimate
strictly inside the domain, so that no possible outcome gets probability 0 (an expression that is
non-negative on the domain vanishes only on its boundary, up to degenerate polynomials); for a single coin
on [0, 1] it is the Krichevsky–Trofimov estimate (K + ½)/(N + 1). Where it ends up matters for width only:
any point of the domain is a sound plug-in.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.remember import remembered
from tightrope.statistics.coordinates import AffineFunctions, Coordinates

_SMOOTHING = 0.5
_STEPS = 60
_CLOSE = 1e-8


@dataclass(frozen=True, eq=False)
class LikelihoodMaximiser:
    """Finds estimates as free parameters t [len(free)]; lifted coordinates follow from them."""

    coordinates: Coordinates
    functions: AffineFunctions

    @staticmethod
    @remembered
    def of(coordinates: Coordinates, functions: AffineFunctions) -> LikelihoodMaximiser:
        """The one maximiser of these coordinates; it looks for its start once."""
        return LikelihoodMaximiser(coordinates, functions)

    @cached_property
    def faces(self) -> tuple[FloatArray, FloatArray]:
        """Rows a·t ≤ b of the domain in the free parameters, box included; rows without extent are
        dropped.
        """
        size = len(self.coordinates.free)
        matrix, bound, _ = self.coordinates.domain_rows()
        eye = np.eye(size)
        rows = np.concatenate([matrix[:, :size], eye, -eye])
        bounds = np.concatenate([bound, self.coordinates.upper[:size], -self.coordinates.lower[:size]])
        return rows, bounds

    @cached_property
    def start(self) -> FloatArray:
        """The analytic centre of the domain."""
        from tightrope.numerics.linear_program import LinearProgram, LinearStatus

        rows, bounds = self.faces
        size = rows.shape[1]
        norm = np.abs(rows).sum(axis=1)
        reach = float(np.abs(bounds).max(initial=1.0)) + 1.0
        program = LinearProgram(np.full(size + 1, -reach), np.full(size + 1, reach))
        program.add_rows(np.column_stack([rows, norm]), bounds)
        outcome = program.maximise(np.append(np.zeros(size), 1.0))
        middle = 0.5 * (self.coordinates.lower + self.coordinates.upper)[:size]
        deep = outcome.point[:-1] if outcome.status is LinearStatus.OPTIMAL else middle
        if np.all(rows @ deep < bounds):
            return self.estimate(np.zeros(len(self.functions)), deep)
        return deep

    def is_inside(self, t: FloatArray) -> bool:
        """Whether the exact point with these free parameters lies in the domain."""
        exact = [Fraction(float(value)) for value in t]
        theta = [polynomial.evaluate(exact) for polynomial in self.coordinates.substitution]
        return self.coordinates.parameters.contains(theta)

    def lifted(self, t: FloatArray) -> FloatArray:
        """All coordinates at the free parameters t, in plain float64."""
        values = list(t)
        for left, right in self.coordinates.products:
            values.append(values[left] * values[right])
        return np.array(values)

    def estimate(self, weight: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """The smoothed estimate for weights K_f (one an expression of the table)."""
        t = (self.start if start is None else start).copy()
        used = np.flatnonzero(weight > 0.0)
        linear, constant, count = self.functions.linear[used], self.functions.constant[used], weight[used]
        rows, bounds = self.faces
        value = self._objective(t, linear, constant, count, rows, bounds)
        if not np.isfinite(value):
            return t
        for _ in range(_STEPS):
            slope = linear @ self.jacobian(t)
            probability = linear @ self.lifted(t) + constant
            room = bounds - rows @ t
            gradient = slope.T @ (count / probability) - _SMOOTHING * (rows.T @ (1.0 / room))
            bend = (slope * (count / probability**2)[:, None]).T @ slope
            bend += _SMOOTHING * (rows * (1.0 / room**2)[:, None]).T @ rows
            step = np.linalg.lstsq(bend, gradient, rcond=None)[0]
            decrement = float(gradient @ step)
            length = 1.0
            while length > 1e-12:
                trial = t + length * step
                trial_value = self._objective(trial, linear, constant, count, rows, bounds)
                if trial_value >= value + 0.1 * length * decrement or (
                    decrement <= _CLOSE and trial_value > -np.inf
                ):
                    break
                length *= 0.5
            else:
                break
            t, value = trial, trial_value
            if not decrement > _CLOSE:  # the last step: what is left of the way is below rounding
                break
        return t

    def smoothing_at(self, t: FloatArray) -> FloatArray:
        """Minus the Hessian of the smoothing at t."""
        rows, bounds = self.faces
        room = np.maximum(bounds - rows @ t, 1e-150)
        bend: FloatArray = _SMOOTHING * (rows * (1.0 / room**2)[:, None]).T @ rows
        return bend

    def jacobian(self, t: FloatArray) -> FloatArray:
        """∂x/∂t at t."""
        size = len(t)
        rows: list[FloatArray] = list(np.eye(size))
        x = self.lifted(t)
        for left, right in self.coordinates.products:
            rows.append(rows[left] * x[right] + rows[right] * x[left])
        return np.array(rows)

    def _objective(
        self,
        t: FloatArray,
        linear: FloatArray,
        constant: FloatArray,
        count: FloatArray,
        rows: FloatArray,
        bounds: FloatArray,
    ) -> float:
        room = bounds - rows @ t
        probability = linear @ self.lifted(t) + constant
        if np.any(room <= 1e-13 * (1.0 + np.abs(bounds))) or np.any(probability <= 0.0):
            return -np.inf
        return float(count @ np.log(probability) + _SMOOTHING * np.log(room).sum())
