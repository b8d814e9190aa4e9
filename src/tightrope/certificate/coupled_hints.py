"""Hints of a coupled proof: a tree of cells, points around each, and models of the value on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.certificate import fields
from tightrope.certificate.fields import MOST_CODES, MOST_ENTRIES, is_offsets
from tightrope.numerics.arrays import FloatArray, OffsetArray

MOST_POINTS = 20_000
MOST_SIZE = 40


@dataclass(frozen=True, eq=False)
class CoupledHints:
    """Bounds of a claim's policy over the region itself: one x for the whole run.

    * A tree of cells. Node 0 is the region; split i divides the node split_node[i] by split_direction[i]·x ≤
      split_value[i] (node 2i + 1) and ≥ (node 2i + 2).
    * Proof i is about the cell of node[i]. Its rows are row[row_start[i]:row_start[i+1]], its points
      point[point_start[i]:point_start[i+1]] in the frame x = centre + axes·y; point k belongs to the simplex
      of rows simplex[k], numbered as in a basis. A proof without points says that the cell is empty: its
      rows, weighted by `multiplier`, contradict the cell's box.
    * Models [proof, open state]: |V_s(x) − value − slope·y − yᵀ·curve·y| ≤ error; `curve` holds the entries
      (j, k), j ≤ k, of symmetric matrices. For a bounded number of steps the checker makes the steps itself.
    * `dual` [occupancy, open state]; `lower_dual`, `upper_dual`: those used by a proof, −1 for none.
    * `state`: the open states, all that can be met before the value is decided.
    """

    claim: int = fields.whole(most=3)
    split_node: OffsetArray = fields.integers("splits", most=MOST_CODES)
    split_direction: FloatArray = fields.reals("splits", "SIZE")
    split_value: FloatArray = fields.reals("splits")
    node: OffsetArray = fields.integers("proofs", most=MOST_CODES)
    lower_dual: OffsetArray = fields.integers("proofs", least=-1, most=MOST_CODES)
    upper_dual: OffsetArray = fields.integers("proofs", least=-1, most=MOST_CODES)
    row_start: OffsetArray = fields.integers("proofs+1")
    row: OffsetArray = fields.integers("rows", "3")
    multiplier: FloatArray = fields.reals("rows", least=0.0)
    point_start: OffsetArray = fields.integers("proofs+1")
    point: FloatArray = fields.reals("points", "SIZE")
    simplex: OffsetArray = fields.integers("points", "SIZE", most=MOST_CODES)
    centre: FloatArray = fields.reals("proofs", "SIZE")
    axes: FloatArray = fields.reals("proofs", "SIZE", "SIZE")
    state: OffsetArray = fields.integers("open", most=MOST_CODES)
    value: FloatArray = fields.reals("models", "open")
    slope: FloatArray = fields.reals("models", "open", "SIZE")
    curve: FloatArray = fields.reals("models", "open", "packed")
    error: FloatArray = fields.reals("models", "open", least=0.0)
    dual: FloatArray = fields.reals("duals", "open")

    def trouble(self) -> str | None:
        splits, size = len(self.split_node), self.point.shape[1]
        if len(self.value) not in (0, len(self.node)) or self.curve.shape[2] != packed_size(size):
            return "models do not fit the proofs"
        for start, of in ((self.row_start, self.row), (self.point_start, self.point)):
            if not is_offsets(start, len(of), rising=False):
                return "rows or points of proofs do not fit"
        points, rows = (int(np.diff(start).max(initial=0)) for start in (self.point_start, self.row_start))
        if points > MOST_POINTS or size > MOST_SIZE or max(points * size, rows) * size > MOST_ENTRIES:
            return "a cell has more points, rows or coordinates than this program checks"
        if max(self.lower_dual.max(initial=-1), self.upper_dual.max(initial=-1)) >= len(self.dual):
            return "an occupancy that is not there"
        if np.any(np.diff(self.state) <= 0):
            return "the open states do not rise"
        if np.any(self.split_node > 2 * np.arange(splits)) or len(np.unique(self.split_node)) != splits:
            return "a split of a cell that is not there, or was split before"
        return "a proof about a cell that is not there" if self.node.max(initial=0) > 2 * splits else None

    def rows_of(self, proof: int) -> Any:
        return self.row[self.row_start[proof] : self.row_start[proof + 1]]

    def points_of(self, proof: int) -> tuple[FloatArray, OffsetArray]:
        """(points, simplices)."""
        span = slice(int(self.point_start[proof]), int(self.point_start[proof + 1]))
        return self.point[span], self.simplex[span]

    def coefficients_of(self, proof: int) -> FloatArray:
        """The models of a proof by coefficients of 1, y_j and y_j·y_k, j ≤ k: entries off the diagonal of
        `curve` stand for two."""
        left, right = np.triu_indices(self.point.shape[1])
        curve = self.curve[proof] * np.where(left == right, 1.0, 2.0)
        return np.concatenate([self.value[proof][:, None], self.slope[proof], curve], axis=1)

    def path(self, node: int) -> list[tuple[int, int]]:
        """The splits (number, side) that lead to a node, the last one first; side 0 is ≤, side 1 is ≥."""
        steps = []
        while node > 0:
            steps.append(divmod(node - 1, 2))
            node = int(self.split_node[steps[-1][0]])
        return steps


def packed_size(size: int) -> int:
    """How many entries (j, k), j ≤ k, a symmetric matrix has."""
    return size * (size + 1) // 2
