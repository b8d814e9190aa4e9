"""The polytope of grown data, found from where that of fewer data was: vertices at once, no linear programs.

Bound tightening exists to find the box of a region, and a point inside it, from nothing. Where data grow the
region moves little: an earlier box, somewhat widened, is a good frame to look in, and the mean of the earlier
vertices is a point inside. Vertices within the frame give the new box directly.

*Why the frame may be trusted.* Let R be the convex set of all rows in the box of the domain, F the frame, and
H the proved enclosure of R ∩ F (`tightrope.regions.vertices`). The point that the search starts from lies in
R ∩ F, with room to spare. If H stays strictly away from all faces of F that are not the domain's, then R
lies in F: a point of R outside would be joined to the one inside by a segment in R, which leaves F through
such a face, at a point of R ∩ F that is not in H. So H encloses R. In every other case there is no answer,
and the region is built as if there were no earlier one.

The result is the same set as that of bound tightening, up to the rounding of its box and vertices. Lifted
systems are left alone: their envelopes depend on the way to the box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import UNIT, down, largest_over_box, up
from tightrope.regions.halfspaces import Halfspaces, ScaledHalfspaces
from tightrope.regions.polytope import MOST_VERTICES, Polytope
from tightrope.regions.tightening import Tightened, Tightening
from tightrope.regions.vertices import MOST_DIMENSIONS, EnclosingVertices, enclosing_vertices

_WIDER = 0.25
"""How much of its width the frame exceeds the box of the region by, on each side."""

_FILLED = 0.4
"""The part of a frame that a region fills at least in every coordinate; below there is a new frame."""

_SMALLEST_DEPTH = 1e-3
"""Of the starting point in the frame scaled to [−1, 1]: much more than rounding, and good for Qhull."""


@dataclass(frozen=True, eq=False)
class Nearby:
    """A frame around an earlier region and a point well inside the region."""

    lower: FloatArray
    upper: FloatArray
    interior: FloatArray

    @staticmethod
    def around(region: Polytope, before: Nearby | None) -> Nearby | None:
        """Where to look next: as `before` while that helped and the region fills most of the frame, so that a
        region which has not moved comes out the same; None where vertices are not known.
        """
        vertices, witness = region.vertices, region.emptiness.witness
        if vertices is None or region.coordinates.is_lifted:
            return None
        lower, upper = region.bounding_box
        width = upper - lower
        if before is not None and witness is before.interior:
            domain = region.coordinates
            frame = np.minimum(before.upper, domain.upper) - np.maximum(before.lower, domain.lower)
            if np.all(width >= _FILLED * frame):
                return before
        return Nearby(lower - _WIDER * width, upper + _WIDER * width, vertices.mean(axis=0))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What `restored` needs: a run that goes on later must look from the same place."""
        return {"lower": self.lower, "upper": self.upper, "interior": self.interior}

    @staticmethod
    def restored(state: Mapping[str, npt.NDArray[Any]]) -> Nearby | None:
        return Nearby(state["lower"], state["upper"], state["interior"]) if state else None


def tighten_nearby(base: Halfspaces, near: Nearby) -> tuple[Tightened, EnclosingVertices] | None:
    """`base` in its tightened box with its vertices, as those of an earlier region suggest; or None."""
    if not 0 < base.size <= MOST_DIMENSIONS:
        return None
    lower, upper = np.maximum(base.lower, near.lower), np.minimum(base.upper, near.upper)
    if not np.all(lower < upper):
        return None
    system = base.with_box(lower, upper)
    system = system.take(largest_over_box(system.matrix, lower, upper) > system.bound)
    scaled = ScaledHalfspaces.of(system)
    eye = np.eye(base.size)
    matrix = np.concatenate([scaled.matrix, eye, -eye])
    bound = np.concatenate([scaled.bound, np.ones(2 * base.size)])
    interior = (near.interior - scaled.centre) / scaled.half
    depth = float(np.min((bound - matrix @ interior) / np.abs(matrix).sum(axis=1)))
    if depth < _SMALLEST_DEPTH:
        return None
    found = enclosing_vertices(matrix, bound, interior, MOST_VERTICES)
    if found is None:
        return None
    least, most = found.points.min(axis=0), found.points.max(axis=0)
    away = 1.0 - 2.0 * found.error - 1e-9
    if np.any((upper < base.upper) & (most > away)) or np.any((lower > base.lower) & (least < -away)):
        return None
    reach = np.abs(found.points).max(axis=0) * scaled.half + np.abs(scaled.centre)
    error = up(found.error * scaled.half * (1.0 + 1e-12) + 4.0 * UNIT * reach)
    boxed = system.with_box(
        np.maximum(lower, down(down(scaled.to_x(least)) - error)),
        np.minimum(upper, up(up(scaled.to_x(most)) + error)),
    )
    before, after = (upper - lower).tolist(), (boxed.upper - boxed.lower).tolist()
    report = Tightening(1, True, tuple(before), tuple(after))
    everything = np.arange(len(base))
    return (
        Tightened(boxed, report, near.interior, depth, everything, False),
        _rescale(found, scaled, ScaledHalfspaces.of(boxed)),
    )


def _rescale(found: EnclosingVertices, scaled: ScaledHalfspaces, now: ScaledHalfspaces) -> EnclosingVertices:
    """The vertices in the coordinates of the new box; rows and the box's faces keep their numbers."""
    points = (scaled.to_x(found.points) - now.centre) / now.half
    reach = np.abs(found.points).max(axis=0) * scaled.half + np.abs(scaled.centre) + np.abs(now.centre)
    error = found.error * (scaled.half / now.half) * (1.0 + 1e-9) + 8.0 * UNIT * (reach / now.half)
    return replace(found, points=points, error=float(up(error.max())))
