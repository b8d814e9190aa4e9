"""Where a linear function is largest over the likelihood region: good places for tangent cuts.

max g·x subject to ℓ(x) ≥ T and A·x ≤ b by a barrier method: Newton steps on τ·g·x + log(ℓ(x) − T) + Σ
log(b − A·x) with growing τ. The result is a heuristic in plain float64. A cut there bounds the region in
direction g (together with the domain's rows) up to the barrier's gap, (rows + 1)/τ; the cut itself is what
is proved (`tightrope.regions.tangent_cuts`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.jit import kernel
from tightrope.regions.tangent_cuts import LogLikelihood

_GAP = 0.005
_GROWTH = 30.0
_NEWTON = 25


class _Search(NamedTuple):
    """Σ weight·log(linear·x + constant) ≥ `least`, matrix·x ≤ bound, and where the search begins."""

    linear: FloatArray
    constant: FloatArray
    weight: FloatArray
    least: float
    matrix: FloatArray
    bound: FloatArray
    start: FloatArray


def support_points(
    likelihood: LogLikelihood, matrix: FloatArray, bound: FloatArray, centre: FloatArray, normals: FloatArray
) -> FloatArray:
    """One point near the maximum for each normal; the rows matrix·x ≤ bound must hold strictly at the
    centre.
    """
    room = bound - matrix @ centre
    depth = float(likelihood.values(centre[None, :])[0]) - likelihood.level
    if depth <= 0.0 or np.any(room <= 0.0):
        return np.zeros((0, len(centre)))
    bend = likelihood.curvature(centre)
    search = _Search(
        np.ascontiguousarray(likelihood.linear),
        np.ascontiguousarray(likelihood.constant),
        np.ascontiguousarray(likelihood.weight),
        float(likelihood.level),
        np.ascontiguousarray(matrix),
        np.ascontiguousarray(bound),
        np.ascontiguousarray(centre),
    )
    points = np.empty((len(normals), len(centre)))
    for i, normal in enumerate(normals):
        # The half-width of the quadratic region in this direction sets the scale of τ.
        # Without curvature (nothing was seen that depends on it) there is none, and any scale will do.
        reach = 2.0 * depth * float(normal @ np.linalg.lstsq(bend, normal, rcond=None)[0])
        width = np.sqrt(max(reach, 1e-24 * float(normal @ normal), 1e-300))
        _climb(search, normal / width, points[i])
    return points


@kernel
def _climb(search: _Search, normal: FloatArray, x: FloatArray) -> None:
    """Follow the barrier's path in the direction `normal`; its end is written to `x`."""
    linear, constant, weight, least, matrix, bound, start = search
    size = len(start)
    for a in range(size):  # assigning whole arrays compiles for seconds
        x[a] = start[a]
    step, gradient = np.empty(size), np.empty(size)
    curve = np.empty((size, size))
    probability, along = np.empty(len(weight)), np.empty(len(weight))
    room, drop = np.empty(len(bound)), np.empty(len(bound))
    tau = 1.0
    while True:
        for _ in range(_NEWTON):
            level = _place(linear, constant, weight, least, x, probability)
            if level <= 0.0 or not _measure_room(matrix, bound, x, room):
                break
            _model(linear, weight, level, matrix, probability, room, gradient, curve)
            for a in range(size):
                gradient[a] += tau * normal[a]
            if not _solve(curve, gradient, step):
                break
            decrement = pull = 0.0
            for a in range(size):
                decrement += gradient[a] * step[a]
                pull += tau * normal[a] * step[a]
            if not decrement > 1e-3:
                break
            for i in range(len(weight)):
                along[i] = 0.0
                for a in range(size):
                    along[i] += linear[i, a] * step[a]
            for i in range(len(bound)):
                drop[i] = 0.0
                for a in range(size):
                    drop[i] += matrix[i, a] * step[a]
            current = _barrier(weight, 0.0, least, probability, along, room, drop)
            length = 1.0
            while length > 1e-10:
                value = _barrier(weight, length, least, probability, along, room, drop)
                if value + length * pull >= current + 0.1 * length * decrement:
                    break
                length *= 0.5
            if length <= 1e-10:
                break
            for a in range(size):
                x[a] += length * step[a]
        gained = 0.0
        for a in range(size):
            gained += normal[a] * (x[a] - start[a])
        enough = (len(bound) + 1.0) / (_GAP * max(gained, 1e-4))
        if tau >= enough:
            return
        tau = min(tau * _GROWTH, enough)


@kernel
def _place(
    linear: FloatArray,
    constant: FloatArray,
    weight: FloatArray,
    least: float,
    x: FloatArray,
    probability: FloatArray,
) -> float:
    """Fill in probabilities at `x`; how far the likelihood is above its least value, 0 where it is not."""
    level = -least
    for i in range(len(weight)):
        value = constant[i]
        for a in range(len(x)):
            value += linear[i, a] * x[a]
        if value <= 0.0:
            return 0.0
        probability[i] = value
        level += weight[i] * math.log(value)
    return level


@kernel
def _measure_room(matrix: FloatArray, bound: FloatArray, x: FloatArray, room: FloatArray) -> bool:
    """Fill in the distances to the rows at `x`; whether it lies inside all of them."""
    for i in range(len(bound)):
        value = bound[i]
        for a in range(len(x)):
            value -= matrix[i, a] * x[a]
        if value <= 0.0:
            return False
        room[i] = value
    return True


@kernel
def _model(
    linear: FloatArray,
    weight: FloatArray,
    level: float,
    matrix: FloatArray,
    probability: FloatArray,
    room: FloatArray,
    gradient: FloatArray,
    curve: FloatArray,
) -> None:
    """Gradient and negative curvature of log(ℓ(x) − T) + Σ log(b − A·x)."""
    size = len(gradient)
    slope = np.zeros(size)
    for a in range(size):
        for b in range(size):
            curve[a, b] = 0.0
    for i in range(len(weight)):
        ratio = weight[i] / probability[i]
        bend = ratio / probability[i] / level
        for a in range(size):
            slope[a] += ratio * linear[i, a]
            for b in range(a + 1):
                curve[a, b] += bend * linear[i, a] * linear[i, b]
    for a in range(size):
        gradient[a] = slope[a] / level
        for b in range(a + 1):
            curve[a, b] += slope[a] * slope[b] / (level * level)
    for i in range(len(room)):
        near = 1.0 / room[i]
        for a in range(size):
            gradient[a] -= near * matrix[i, a]
            for b in range(a + 1):
                curve[a, b] += near * near * matrix[i, a] * matrix[i, b]


@kernel
def _solve(curve: FloatArray, gradient: FloatArray, step: FloatArray) -> bool:
    """curve·step = gradient by Cholesky's method, in the lower triangle of `curve`; False where it has no
    curvature in some direction.
    """
    size = len(gradient)
    for a in range(size):
        for b in range(a + 1):
            value = curve[a, b]
            for c in range(b):
                value -= curve[a, c] * curve[b, c]
            if a > b:
                curve[a, b] = value / curve[b, b]
            elif value > 0.0:
                curve[a, a] = math.sqrt(value)
            else:
                return False
    for a in range(size):
        value = gradient[a]
        for c in range(a):
            value -= curve[a, c] * step[c]
        step[a] = value / curve[a, a]
    for back in range(size):
        a = size - 1 - back
        value = step[a]
        for c in range(a + 1, size):
            value -= curve[c, a] * step[c]
        step[a] = value / curve[a, a]
    return True


@kernel
def _barrier(
    weight: FloatArray,
    length: float,
    least: float,
    probability: FloatArray,
    along: FloatArray,
    room: FloatArray,
    drop: FloatArray,
) -> float:
    """log(ℓ − T) + Σ log(b − A·x) after a step of this length; −∞ outside."""
    level, total = -least, 0.0
    for i in range(len(weight)):
        value = probability[i] + length * along[i]
        if value <= 0.0:
            return -np.inf
        level += weight[i] * math.log(value)
    if level <= 0.0:
        return -np.inf
    for i in range(len(room)):
        value = room[i] - length * drop[i]
        if value <= 0.0:
            return -np.inf
        total += math.log(value)
    return total + math.log(level)
