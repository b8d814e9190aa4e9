"""Smoothed maximum likelihood within a polytope of parameters, by damped Newton steps in float64.

maximise Σ K_f·log f(t) + ½·Σ log(room to each face). The second term keeps the estimate strictly inside, so
every possible outcome has positive probability; for a coin on [0, 1] it is the Krichevsky–Trofimov estimate
(K + ½)/(N + 1). The estimate depends on the given weights alone, so any point is a valid prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope_check.arrays import FloatArray

SMOOTHING = 0.5
_STEPS = 60
CLOSE = 1e-8


@dataclass(frozen=True, eq=False)
class SmoothedLikelihood:
    """Expressions f = linear·x + constant, where x are the parameters t, the reciprocals of polynomials
    of t and products of earlier coordinates, and the faces a·t ≤ b of the polytope."""

    products: Sequence[tuple[int, ...]]
    linear: FloatArray
    constant: FloatArray
    faces: FloatArray
    bounds: FloatArray
    denominators: Sequence[Sequence[tuple[float, FloatArray]]] = ()
    """The terms of each polynomial: coefficients and exponents of the parameters."""

    def maximise(self, start: FloatArray, weight: FloatArray, close: float = CLOSE) -> FloatArray:
        """The estimate for weights K_f, from a point inside; from any other point that point itself.

        `close` is what a last step may gain, twice over.
        """
        used = np.flatnonzero(weight > 0.0)
        linear, constant, count = self.linear[used], self.constant[used], weight[used]
        t = start.copy()
        value = self._objective(t, linear, constant, count)
        for _ in range(_STEPS if np.isfinite(value) else 0):
            x, jacobian = self.lifted(t)
            slope, probability = linear @ jacobian, linear @ x + constant
            room = self.bounds - self.faces @ t
            gradient = slope.T @ (count / probability) - SMOOTHING * (self.faces.T @ (1.0 / room))
            bend = (slope * (count / probability**2)[:, None]).T @ slope
            bend += SMOOTHING * (self.faces * (1.0 / room**2)[:, None]).T @ self.faces
            step = np.linalg.lstsq(bend, gradient, rcond=None)[0]
            decrement = float(gradient @ step)
            length = 1.0
            while length > 1e-12:
                trial = t + length * step
                reached = self._objective(trial, linear, constant, count)
                if reached >= value + 0.1 * length * decrement or (decrement <= close and reached > -np.inf):
                    break
                length *= 0.5
            else:
                break
            t, value = trial, reached
            if not decrement > close:  # the last step: what is left of the way is below rounding
                break
        return t

    def interior(self, middle: FloatArray) -> FloatArray:
        """A point off all faces: push down, from where it is large, a slack that all faces are given."""
        scale = np.maximum(np.abs(self.faces).max(axis=1, initial=0.0), 1e-300)
        slack = float(((self.faces @ middle - self.bounds) / scale).max(initial=-1.0))
        if slack < 0:
            return middle
        push = np.append(np.zeros(len(middle)), -1.0)[None, :]
        faces, level = np.column_stack([self.faces, -scale]), np.array([2 * slack + 3])
        helper = SmoothedLikelihood((), push, level, faces, self.bounds)
        return helper.maximise(np.append(middle, 1.01 * slack + 1), np.array([1e6 * len(scale)]))[:-1]

    def smoothing(self, t: FloatArray) -> FloatArray:
        """Minus the Hessian of the smoothing at t."""
        room = np.maximum(self.bounds - self.faces @ t, 1e-150)
        return SMOOTHING * (self.faces * (1.0 / room**2)[:, None]).T @ self.faces

    def lifted(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(all coordinates, their derivatives)."""
        values, rows = list(t), list(np.eye(len(t)))
        for terms in self.denominators:
            value, slope = _at(terms, t)
            values.append(1.0 / value)
            rows.append(-slope / value**2)
        for left, right in self.products:
            rows.append(rows[left] * values[right] + rows[right] * values[left])
            values.append(values[left] * values[right])
        return np.array(values), np.array(rows)

    def _objective(self, t: FloatArray, linear: FloatArray, constant: FloatArray, count: FloatArray) -> float:
        room = self.bounds - self.faces @ t
        probability = linear @ self.lifted(t)[0] + constant
        if np.any(room <= 1e-13 * (1.0 + np.abs(self.bounds))) or np.any(probability <= 0.0):
            return -np.inf
        return float(count @ np.log(probability) + SMOOTHING * np.log(room).sum())


def _at(terms: Sequence[tuple[float, FloatArray]], t: FloatArray) -> tuple[float, FloatArray]:
    """A polynomial and its gradient at t."""
    value, slope = 0.0, np.zeros(len(t))
    for coefficient, exponent in terms:
        powers = t**exponent
        value += coefficient * float(powers.prod())
        for i in np.flatnonzero(exponent).tolist():
            rest = float(np.delete(powers, i).prod())
            slope[i] += coefficient * exponent[i] * t[i] ** (exponent[i] - 1) * rest
    return value, slope
