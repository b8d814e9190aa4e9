"""Bases of a region that prove bounds best: by linear programs over the rows of a certificate.

Found in float64 and not to be relied on: the checker computes the multipliers itself, and a basis that is
not optimal costs width, never truth (`tightrope.certificate.support_check`).
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.support_check import Rows
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.linear_program import LinearStatus
from tightrope.region.halfspaces import Halfspaces, ScaledHalfspaces
from tightrope.region.lazy_program import LazyProgram

_SMALL = 1e-9


class BasisFinder:
    """Optimal bases for many directions over one system."""

    def __init__(self, rows: Rows):
        count = len(rows.bound)
        nothing = np.zeros(count, np.int32)
        system = Halfspaces(
            rows.matrix.astype(np.float64),
            rows.bound.astype(np.float64),
            nothing,
            nothing,
            rows.lower.astype(np.float64),
            rows.upper.astype(np.float64),
        )
        self.size = rows.size
        self.scaled = ScaledHalfspaces.of(system)
        self.program = LazyProgram(self.scaled)

    def all(self, directions: FloatArray) -> IndexArray:
        """A basis for each direction."""
        found = [self.find(direction) for direction in directions]
        return np.array(found, dtype=np.int32).reshape(-1, self.size)

    def find(self, direction: FloatArray) -> list[int]:
        """The rows that carry the maximum, filled up with faces of the box."""
        in_y = direction * self.scaled.half
        norm = float(np.abs(in_y).max(initial=0.0))
        chosen: list[int] = []
        vectors: list[FloatArray] = []
        rest = in_y
        if norm > 0.0:
            outcome = self.program.maximise(in_y / norm)
            if outcome.status is LinearStatus.OPTIMAL:
                loaded = self.program.loaded[: len(outcome.multipliers)]
                rest = in_y / norm - outcome.multipliers @ self.scaled.matrix[loaded]
                order = np.argsort(-outcome.multipliers)
                for i in order[outcome.multipliers[order] > _SMALL].tolist():
                    self._extend(chosen, vectors, int(loaded[i]), self.scaled.matrix[loaded[i]])
        for j in np.argsort(-np.abs(rest)).tolist():
            face = -1 - 2 * j if rest[j] >= 0.0 else -2 - 2 * j
            self._extend(chosen, vectors, face, np.eye(self.size)[j])
        return chosen

    def _extend(self, chosen: list[int], vectors: list[FloatArray], name: int, row: FloatArray) -> None:
        """Take the row if it is independent of those taken so far."""
        if len(chosen) == self.size:
            return
        left = row / max(float(np.linalg.norm(row)), 1e-300)
        for _ in range(2):
            for vector in vectors:
                left = left - (left @ vector) * vector
        length = float(np.linalg.norm(left))
        if length > 1e-10:
            vectors.append(left / length)
            chosen.append(name)
