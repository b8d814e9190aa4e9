"""The range of a quadratic over the hull of points: bounds from finitely many numbers.

W(y) = V + b·y + yᵀHy. With y = Σ λ_k Y_k, λ ≥ 0, Σλ = 1,

    W(y) = Σ_kl λ_k λ_l B_kl,    B_kl = V + ½ b·(Y_k + Y_l) + Y_kᵀ H Y_l         (Bernstein coefficients)

so that min B ≤ W ≤ max B on the hull. The diagonal are the values at the points; where the extreme
coefficient is one of these, it is the extreme value. For many points there is a rule that looks at each once:
for any point p and β ≥ 0 such that H + βI is positive semidefinite, W + β|y−p|² is convex and not below W, so
W is at most its largest value at the points; below, the same with −H. It is exact where p itself is the
maximum.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import error_factor

MOST_PAIRED = 3000
_CHUNK = 2**21


def range_over_hull(
    constant: float, slope: FloatArray, curvature: FloatArray, points: FloatArray
) -> tuple[float, float]:
    """Safe bounds of the quadratic over conv(points); `curvature` is empty for an affine function."""
    linear = points @ slope
    radius = float(np.linalg.norm(points, axis=1).max(initial=0.0))
    size = len(slope)
    bent = float(np.linalg.norm(curvature)) * radius**2
    extent = abs(constant) + float(np.linalg.norm(slope)) * radius + bent
    error = error_factor(2 * size * size + 20) * extent * 4.0 + 1e-300
    if curvature.size == 0:
        low, high = float(linear.min()), float(linear.max())
    else:
        low, high = _convex(linear, curvature, points)
        if len(points) <= MOST_PAIRED:
            low_pairs, high_pairs = _pairs(linear, curvature, points)
            low, high = max(low, low_pairs), min(high, high_pairs)
    return constant + low - error, constant + high + error


def _pairs(linear: FloatArray, curvature: FloatArray, points: FloatArray) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    bent = points @ curvature
    step = max(1, _CHUNK // len(points))
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        table = bent[part] @ points.T
        table += 0.5 * linear[part, None]
        table += 0.5 * linear
        low, high = min(low, float(table.min())), max(high, float(table.max()))
    return low, high


def _convex(linear: FloatArray, curvature: FloatArray, points: FloatArray) -> tuple[float, float]:
    spectrum = np.linalg.eigvalsh(curvature)
    spare = 1e-12 * float(np.linalg.norm(curvature))
    values = linear + np.einsum("ki,ij,kj->k", points, curvature, points)
    concave, convex = max(spare - float(spectrum[0]), 0.0), max(spare + float(spectrum[-1]), 0.0)
    top, bottom = points[int(values.argmax())], points[int(values.argmin())]
    high = values + concave * ((points - top) ** 2).sum(axis=1)
    low = values - convex * ((points - bottom) ** 2).sum(axis=1)
    return float(low.min()), float(high.max())
