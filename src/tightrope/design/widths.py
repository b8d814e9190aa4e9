"""How wide linear functions are over an ellipsoid within the domain.

h(v) = max { v·Δ : Δᵀ·I·Δ ≤ K, point + Δ in the domain }. Away from the domain's faces that is √K·‖v‖_{I⁻¹};
where the ellipsoid sticks out of a face it is a cone program of the dimension of the parameters, solved for
the heaviest directions, the others in proportion. Where a single face decides, the maximum is that of a ball
cut by one half-space, in closed form; only where its maximiser leaves another face Clarabel is asked. By weak
duality, for every λ ≥ 0

    h(v)  ≤  λ·room + √K·‖v − Aᵀλ‖_{I⁻¹},

and the multipliers that Clarabel finds make it an equality up to its tolerance. Without the domain a forecast
from few data is up to twice too wide.
"""

from __future__ import annotations

import numpy as np

from tightrope.design.directions import Directions
from tightrope.design.information import Information
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.cone_program import ConeProgram

MOST_DIRECTIONS = 40
ENOUGH = 0.95
"""Of the whole width: the heaviest directions that make it up stand for all."""

_LEAST = 1e-12
"""Relative eigenvalues below this are no information; the domain bounds what is not known."""


def total_width(
    information: Information,
    directions: Directions,
    matrix: FloatArray,
    level: float,
    centre: FloatArray | None = None,
) -> float:
    """Σ_k w_k·(h(u_k) + h(−u_k)) over {Δᵀ·matrix·Δ ≤ level} within the domain, around a centre (the point
    of the information by default).
    """
    if not len(directions):
        return 0.0
    root = _whitener(information, matrix) * np.sqrt(max(level, 0.0))
    flat = directions.vector @ root
    plain = 2.0 * np.linalg.norm(flat, axis=1)
    rows, bounds = information.maximiser.faces
    faces, room = rows @ root, bounds - rows @ (information.point if centre is None else centre)
    reach = np.linalg.norm(faces, axis=1)
    cutting = reach > room
    if not np.any(cutting):
        return float(directions.weight @ plain)
    size = directions.weight * plain
    order = np.argsort(-size, kind="stable")
    enough = int(np.searchsorted(np.cumsum(size[order]), ENOUGH * size.sum())) + 1
    chosen = order[: min(enough, MOST_DIRECTIONS)]
    ball = _CutBall(faces[cutting] / reach[cutting, None], np.maximum(room[cutting], 0.0) / reach[cutting])
    both = ball.most(flat[chosen]) + ball.most(-flat[chosen])
    cut = float(directions.weight[chosen] @ both)
    share = cut / max(float(size[chosen].sum()), 1e-300)
    return cut + share * (float(size.sum()) - float(size[chosen].sum()))


def _whitener(information: Information, matrix: FloatArray) -> FloatArray:
    """W with W·Wᵀ = matrix⁻¹, in the scale of the domain's box; what is not known is nearly unbounded."""
    coordinates = information.maximiser.coordinates
    size = information.size
    extent = np.maximum((coordinates.upper - coordinates.lower)[:size], 1e-300)
    values, basis = np.linalg.eigh(matrix * np.outer(extent, extent))
    floor = max(_LEAST * float(values.max(initial=0.0)), 1e-9)
    result: FloatArray = extent[:, None] * basis / np.sqrt(np.maximum(values, floor))
    return result


class _CutBall:
    """The unit ball within faces·y ≤ room, whose rows have unit length."""

    def __init__(self, faces: FloatArray, room: FloatArray):
        self.faces, self.room = faces, room
        self._program: ConeProgram | None = None

    def most(self, directions: FloatArray) -> FloatArray:
        """max direction·y, per direction."""
        length = np.linalg.norm(directions, axis=1)
        unit = directions / np.maximum(length, 1e-300)[:, None]
        along = unit @ self.faces.T
        violated = along > self.room
        aside = np.sqrt(np.maximum(1.0 - along**2, 0.0))
        with_one = np.where(
            violated, self.room * along + np.sqrt(np.maximum(1.0 - self.room**2, 0.0)) * aside, 1.0
        )
        face = with_one.argmin(axis=1)
        row = np.arange(len(unit))
        best = with_one[row, face]
        level, cosine = self.room[face], along[row, face]
        rest = (unit - cosine[:, None] * self.faces[face]) / np.maximum(aside[row, face], 1e-300)[:, None]
        point = level[:, None] * self.faces[face] + np.sqrt(np.maximum(1.0 - level**2, 0.0))[:, None] * rest
        settled = ~violated.any(axis=1) | np.all(point @ self.faces.T <= self.room + 1e-9, axis=1)
        for k in np.flatnonzero(~settled).tolist():
            best[k] = min(best[k], self._by_program(unit[k]))
        result: FloatArray = best * length
        return result

    def _by_program(self, direction: FloatArray) -> float:
        if self._program is None:
            size = len(direction)
            self._program = ConeProgram(np.eye(size), np.zeros(size), 1.0, self.faces, self.room)
        multiplier = self._program.multipliers(direction)
        return float(multiplier @ self.room) + float(np.linalg.norm(direction - self.faces.T @ multiplier))
