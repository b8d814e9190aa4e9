"""Where a linear function is largest over the likelihood region: good places for tangent cuts.

max g·x subject to ℓ(x) ≥ T and A·x ≤ b by a barrier method: Newton steps on τ·g·x + log(ℓ(x) − T) + Σ
log(b − A·x) with growing τ. The result is a heuristic in plain float64. A cut there bounds the region in
direction g (together with the domain's rows) up to the barrier's gap, (rows + 1)/τ; the cut itself is what
is proved (`tightrope.region.tangent_cuts`).
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.region.tangent_cuts import LogLikelihood

_GAP = 0.005
_GROWTH = 30.0
_NEWTON = 25


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
    points = np.empty((len(normals), len(centre)))
    for i, normal in enumerate(normals):
        # The half-width of the quadratic region in this direction sets the scale of τ.
        # Without curvature (nothing was seen that depends on it) there is none, and any scale will do.
        reach = 2.0 * depth * float(normal @ np.linalg.lstsq(bend, normal, rcond=None)[0])
        width = np.sqrt(max(reach, 1e-24 * float(normal @ normal), 1e-300))
        points[i] = _climb(likelihood, matrix, bound, centre, normal / width)
    return points


def _climb(
    likelihood: LogLikelihood, matrix: FloatArray, bound: FloatArray, start: FloatArray, normal: FloatArray
) -> FloatArray:
    x = start
    tau = 1.0
    while True:
        for _ in range(_NEWTON):
            moved = _newton(likelihood, matrix, bound, x, tau * normal)
            if moved is None:
                break
            x = moved
        gained = max(float(normal @ (x - start)), 1e-4)
        enough = (len(bound) + 1.0) / (_GAP * gained)
        if tau >= enough:
            return x
        tau = min(tau * _GROWTH, enough)


def _newton(
    likelihood: LogLikelihood, matrix: FloatArray, bound: FloatArray, x: FloatArray, pull: FloatArray
) -> FloatArray | None:
    """One damped step, or None at the optimum."""
    probability = likelihood.linear @ x + likelihood.constant
    room = bound - matrix @ x
    if np.any(probability <= 0.0) or np.any(room <= 0.0):
        return None
    ratio = likelihood.weight / probability
    level = float(likelihood.weight @ np.log(probability)) - likelihood.level
    if level <= 0.0:
        return None
    slope = ratio @ likelihood.linear
    bend = (likelihood.linear * (ratio / probability)[:, None]).T @ likelihood.linear
    gradient = pull + slope / level - (1.0 / room) @ matrix
    curve = bend / level + np.outer(slope, slope) / level**2 + (matrix / (room**2)[:, None]).T @ matrix
    try:
        step = np.linalg.solve(curve, gradient)
    except np.linalg.LinAlgError:
        return None
    decrement = float(gradient @ step)
    if not decrement > 1e-3:
        return None
    along = likelihood.linear @ step
    drop = matrix @ step
    current = float(np.log(level) + np.log(room).sum())
    length = 1.0
    while length > 1e-10:
        moved_probability = probability + length * along
        moved_room = room - length * drop
        if np.all(moved_probability > 0.0) and np.all(moved_room > 0.0):
            moved_level = float(likelihood.weight @ np.log(moved_probability)) - likelihood.level
            if moved_level > 0.0:
                value = float(np.log(moved_level) + np.log(moved_room).sum())
                if value + length * float(pull @ step) >= current + 0.1 * length * decrement:
                    result: FloatArray = x + length * step
                    return result
        length *= 0.5
    return None
