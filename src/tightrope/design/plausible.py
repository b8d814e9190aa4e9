"""Where the parameters may be after the data so far, and what a forecast is there.

The estimate is one point; after a short pilot the truth may be elsewhere in the domain, and so will be the
estimates to come. That matters in two ways: the width of a value depends on where it is taken, and a region
is cut by the faces of the domain that are near. From few data the smoothed estimate lies in the middle, where
both are at their widest.

So a few points are drawn from the normal distribution that the data leave, within the domain (hit-and-run;
seeded; mirrored in pairs, so that what is odd cancels): p ∝ exp(−½·Δᵀ·I·Δ) on the domain. If θ is the truth,
the estimate after n more episodes is θ̂ + S_n⁻¹·(n·M)·(θ − θ̂) on average, S_n all information by then with the
smoothing's: it stays where it is at first and goes to θ in the end.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from tightrope.design.information import Information
from tightrope.numerics.arrays import FloatArray

PAIRS = 6
_MOVES = 60
"""Of hit-and-run between two points, times the dimension."""

_SEED = 20
_INSIDE = 0.999
"""Of the way to a face."""


def plausible_points(information: Information, matrix: FloatArray) -> FloatArray:
    """Free parameters that are likely given so much information, inside the domain, one per row."""
    rows, bounds = information.maximiser.faces
    coordinates = information.maximiser.coordinates
    size = information.size
    extent = np.maximum((coordinates.upper - coordinates.lower)[:size], 1e-300)
    values, basis = np.linalg.eigh(matrix * np.outer(extent, extent) + np.eye(size))
    axes = extent[:, None] * basis / np.sqrt(values)
    rng = np.random.default_rng(_SEED)
    point, room = np.zeros(size), bounds - rows @ information.point
    found = []
    for _ in range(PAIRS):
        for _ in range(_MOVES * size):
            point = point + _move(rng, axes @ rng.normal(size=size), point, matrix, rows, room)
        found += [point, -information.room(-point) * point]
    result: FloatArray = information.point + _INSIDE * np.array(found)
    return result


def _move(
    rng: np.random.Generator,
    along: FloatArray,
    point: FloatArray,
    matrix: FloatArray,
    rows: FloatArray,
    room: FloatArray,
) -> FloatArray:
    """A step on the line: a normal variable between the faces."""
    slope, left = rows @ along, np.maximum(room - rows @ point, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = left / np.abs(slope)
    high = float(np.min(reach[slope > 0.0], initial=np.inf))
    low = -float(np.min(reach[slope < 0.0], initial=np.inf))
    curvature = float(along @ matrix @ along)
    if curvature * (high - low) ** 2 < 1e-6:
        anywhere: FloatArray = along * rng.uniform(low, high)
        return anywhere
    middle, deviation = -float(along @ matrix @ point) / curvature, 1.0 / np.sqrt(curvature)
    begin, end = ndtr((low - middle) / deviation), ndtr((high - middle) / deviation)
    step = middle + deviation * float(ndtri(rng.uniform(begin, end)))
    moved: FloatArray = along * min(max(step, low), high)
    return moved
