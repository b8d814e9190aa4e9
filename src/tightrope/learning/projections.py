"""Shadows of a region on pairs of parameters: outer polygons for pictures, from the support function alone.

For directions u_1, …, u_n around the circle the region lies in every half-plane u_i·θ ≤ h(u_i). Neighbouring
lines meet in the corners of a polygon that contains the shadow and touches it n times. It works for every
kind of region, whatever its shape; corners are plain float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tightrope.formats.documents.result import Projection, RegionShape
from tightrope.numerics.arrays import FloatArray
from tightrope.region.region import Region

DIRECTIONS = 48
MOST_PAIRS = 28
"""Of so many pairs of parameters at most, the first ones."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """The polygon [n, 2] around the region's values of two parameters (indices)."""

    pair: tuple[int, int]
    polygon: FloatArray


def shadows(region: Region, box: tuple[FloatArray, FloatArray]) -> list[Shadow]:
    """A polygon for each pair of parameters that both have a width; none for an empty region."""
    if region.emptiness.is_empty:
        return []
    functions = region.coordinates.parameter_functions()
    centre, half = 0.5 * (box[0] + box[1]), 0.5 * (box[1] - box[0])
    open_ = np.flatnonzero(half > 1e-12)
    pairs = list(combinations(open_.tolist(), 2))[:MOST_PAIRS]
    angle = np.arange(DIRECTIONS) * (2.0 * np.pi / DIRECTIONS)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    result = []
    for pair in pairs:
        # In units of the box, so that a flat shadow gets as many corners as a round one.
        at = list(pair)
        directions = (circle / half[at]) @ functions.linear[at]
        _, reach = region.support(directions)
        reach = reach + (circle / half[at]) @ (functions.constant[at] - centre[at])
        corners = _corners(circle, reach)
        result.append(Shadow(pair, centre[at] + half[at] * corners))
    return result


def region_shape(
    region: Region, names: Sequence[str], box: tuple[FloatArray, FloatArray] | None
) -> RegionShape:
    """A region in the form of a document: the box of its parameters where it has one, and its shadows."""
    ends = {} if box is None else {name: (float(box[0][i]), float(box[1][i])) for i, name in enumerate(names)}
    found = [] if box is None else shadows(region, box)
    return RegionShape(
        kind=region.kind.value,
        relaxation=region.relaxation.value,
        empty=region.emptiness.is_empty,
        notes=list(region.notes),
        box=ends,
        projections=[
            Projection(names[s.pair[0]], names[s.pair[1]], [(float(x), float(y)) for x, y in s.polygon])
            for s in found
        ],
    )


def _corners(circle: FloatArray, reach: FloatArray) -> FloatArray:
    """Where each line u·y = h meets the next one."""
    following, far = np.roll(circle, -1, axis=0), np.roll(reach, -1)
    determinant = circle[:, 0] * following[:, 1] - circle[:, 1] * following[:, 0]
    x = (reach * following[:, 1] - far * circle[:, 1]) / determinant
    y = (far * circle[:, 0] - reach * following[:, 0]) / determinant
    return np.stack([x, y], axis=1)
