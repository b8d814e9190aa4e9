"""Estimates that begin anew: all parameters, or one of them alone while the others stay where they are.

maximise Σ K_f·log f(t) + ½·Σ log(room to each face) over the parameters from `first[k]` to `last[k]`, by
damped Newton steps from where the last estimate was (the same as `tightrope.numerics.smoothed_likelihood`
finds, less exactly and many times as fast). Some forty candidates with a few estimates each are renewed
again and again, which is most of what a monitor does. Where an estimate ends up matters for the speed of
detection only: any point of the domain is a sound prediction of what comes after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.smoothed_likelihood import SMOOTHING

if TYPE_CHECKING:
    from tightrope.monitoring.best_fit import BestFit

_STEPS = 80
_CLOSE = 1e-3
"""What is left to gain, in nats, at which an estimate is good enough."""


def estimate(fit: BestFit, weight: FloatArray, start: FloatArray) -> FloatArray:
    """All parameters for the events in `weight`, from `start` on."""
    points = start.copy()[None, None, :]
    refit(fit, weight[None, :], points, np.array([0]), np.array([len(start)]))
    found: FloatArray = points[0, 0]
    return found


def refit(
    fit: BestFit, weight: FloatArray, points: FloatArray, first: OffsetArray, last: OffsetArray
) -> None:
    """Move points[b, k] towards the estimate for weight[b], in the parameters first[k] to last[k] only."""
    functions, maximiser = fit.functions, fit.maximiser
    faces, bounds = maximiser.faces
    products = np.array(fit.coordinates.products, dtype=np.int64).reshape(-1, 2)
    used = np.flatnonzero((weight > 0.0).any(axis=0) & (fit.informative > 0.0))
    linear, constant = functions.linear[used], functions.constant[used]
    count = np.ascontiguousarray(weight[:, used])
    roughly = (SMOOTHING, _CLOSE, _CLOSE)
    for row in range(len(points)):
        for kind in range(len(first)):
            climb(
                (linear, constant, products, fit.bottoms),
                (faces, bounds),
                count[row],
                points[row, kind],
                (int(first[kind]), int(last[kind])),
                roughly,
            )


@kernel
def climb(
    functions: tuple[FloatArray, FloatArray, OffsetArray, FloatArray],
    domain: tuple[FloatArray, FloatArray],
    count: FloatArray,
    t: FloatArray,
    moved: tuple[int, int],
    how: tuple[float, float, float],
) -> None:
    """Newton's method in t[first:last], in place.

    `functions`: the expressions, the products among the coordinates, and the terms of denominators
    (`BestFit.bottoms`), whose reciprocals are coordinates between the parameters and the products.

    `how`: the weight of the barrier, what may be left to gain in the end, in nats, and what is so little that
    rounding hides whether a step gains.
    """
    linear, constant, products, bottoms = functions
    faces, bounds = domain
    first, last = moved
    barrier, close, little = how
    size, width = len(t), last - first
    x = np.empty(linear.shape[1])
    slope_of = np.zeros((linear.shape[1], width))
    gradient, bend, slope = np.empty(width), np.empty((width, width)), np.empty(width)
    step = np.empty(width)
    trial = t.copy()
    value = _objective(functions, domain, count, t, x, barrier)
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
        gradient[:] = 0.0
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
        for i in range(width):
            step[i] = gradient[i]
        _solve(bend, step)
        rise = 0.0
        for i in range(width):
            rise += gradient[i] * step[i]
        if not 0.0 < rise < np.inf:
            return
        length = 1.0
        while True:
            for i in range(width):
                trial[first + i] = t[first + i] + length * step[i]
            reached = _objective(functions, domain, count, trial, x, barrier)
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
def _solve(matrix: FloatArray, right: FloatArray) -> None:
    """matrix⁻¹·right in place of `right`, for a positive definite matrix, by elimination."""
    size = len(right)
    for pivot in range(size):
        for row in range(pivot + 1, size):
            factor = matrix[row, pivot] / matrix[pivot, pivot]
            for column in range(pivot + 1, size):
                matrix[row, column] -= factor * matrix[pivot, column]
            right[row] -= factor * right[pivot]
    for row in range(size - 1, -1, -1):
        for column in range(row + 1, size):
            right[row] -= matrix[row, column] * right[column]
        right[row] /= matrix[row, row]


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
    count: FloatArray,
    t: FloatArray,
    x: FloatArray,
    barrier: float,
) -> float:
    linear, constant, products, bottoms = functions
    faces, bounds = domain
    total = 0.0
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
