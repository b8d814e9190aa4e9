"""Numbers that help to check the way from a parametric model and its data to sets of distributions.

A wrong one can only make a check fail. Sizes that depend on what the checker derives (events, coordinates)
are compared where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.certificate.format.fields import (
    integers,
    is_offsets,
    part,
    parts,
    reals,
    require_shapes,
    whole,
)
from tightrope.numerics.arrays import FloatArray, OffsetArray

MOST_CODES = 2**31
MOST_POINTS = 20_000
MOST_ENTRIES = 5 * 10**7
MOST_WORK = 10**9


@dataclass(frozen=True, eq=False)
class RegionHints:
    """Rows of the region and the bases behind what was projected from it.

    * `row` [n, 3]: (origin, index, part), see `tightrope.certificate.region.rows`; `point` [m, coordinates]:
      points of tangents to the likelihood, directions of tangents to an ellipsoid.
    * A basis lists as many rows as there are coordinates: 2j is x_j ≤ upper_j, 2j + 1 is x_j ≥ lower_j, then
      those of `row` in their order.
    * Stage i shrinks the box: box_lower[i] and box_upper[i] from the rows and the box before, by box_basis[i]
      (upper then lower of every coordinate).
    * bound_basis[j] proves a bound of expression bound_expression[j]: the upper one where bound_side[j] is 1.
    * `choice_basis`: the bases that `lower_basis` and `upper_basis` of a claim's hints refer to.
    """

    row: OffsetArray = integers(dimensions=2)
    point: FloatArray = reals(dimensions=2)
    box_lower: FloatArray = reals(dimensions=2)
    box_upper: FloatArray = reals(dimensions=2)
    box_basis: OffsetArray = integers(most=MOST_CODES, dimensions=3)
    bound_expression: OffsetArray = integers(most=MOST_CODES)
    bound_side: OffsetArray = integers(most=1)
    bound_basis: OffsetArray = integers(most=MOST_CODES, dimensions=2)
    choice_basis: OffsetArray = integers(most=MOST_CODES, dimensions=2)

    def trouble(self) -> str | None:
        size, stages, bounds = self.point.shape[1], len(self.box_lower), len(self.bound_expression)
        bases = max(2 * size, len(self.bound_basis), len(self.choice_basis))
        if len(self.row) * size > MOST_ENTRIES or bases * size**2 > MOST_ENTRIES:
            return "there are more rows or bases than this program checks"
        if stages * (len(self.row) + 1) * size**2 > MOST_WORK:
            return "the box is shrunk in more stages than this program checks"
        return require_shapes(
            self,
            row=(len(self.row), 3),
            box_lower=(stages, size),
            box_upper=(stages, size),
            box_basis=(stages, 2 * size, size),
            bound_side=(bounds,),
            bound_basis=(bounds, size),
            choice_basis=(len(self.choice_basis), size),
        )


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

    claim: int = whole(0, 3)
    split_node: OffsetArray = integers(most=MOST_CODES)
    split_direction: FloatArray = reals(dimensions=2)
    split_value: FloatArray = reals()
    node: OffsetArray = integers(most=MOST_CODES)
    lower_dual: OffsetArray = integers(-1, MOST_CODES)
    upper_dual: OffsetArray = integers(-1, MOST_CODES)
    row_start: OffsetArray = integers()
    row: OffsetArray = integers(dimensions=2)
    multiplier: FloatArray = reals(0.0)
    point_start: OffsetArray = integers()
    point: FloatArray = reals(dimensions=2)
    simplex: OffsetArray = integers(most=MOST_CODES, dimensions=2)
    centre: FloatArray = reals(dimensions=2)
    axes: FloatArray = reals(dimensions=3)
    state: OffsetArray = integers(most=MOST_CODES)
    value: FloatArray = reals(dimensions=2)
    slope: FloatArray = reals(dimensions=3)
    curve: FloatArray = reals(dimensions=3)
    error: FloatArray = reals(dimensions=2)
    dual: FloatArray = reals(dimensions=2)

    def trouble(self) -> str | None:
        splits, proofs, opened, size = (
            len(self.split_node),
            len(self.node),
            len(self.state),
            self.point.shape[1],
        )
        held = len(self.value)
        trouble = require_shapes(
            self,
            split_direction=(splits, size),
            split_value=(splits,),
            lower_dual=(proofs,),
            upper_dual=(proofs,),
            row=(len(self.multiplier), 3),
            simplex=(len(self.point), size),
            centre=(proofs, size),
            axes=(proofs, size, size),
            value=(held, opened),
            slope=(held, opened, size),
            curve=(held, opened, packed_size(size)),
            error=(held, opened),
            dual=(len(self.dual), opened),
        )
        if trouble or held not in (0, proofs) or size == 0:
            return trouble or "models do not fit the proofs, or there are no coordinates"
        for start, of in ((self.row_start, self.row), (self.point_start, self.point)):
            if len(start) != proofs + 1 or not is_offsets(start, len(of), rising=False):
                return "rows or points of proofs do not fit"
        points, rows = (int(np.diff(start).max(initial=0)) for start in (self.point_start, self.row_start))
        if points > MOST_POINTS or max(points * size, rows) * size > MOST_ENTRIES:
            return "a cell has more points or rows than this program checks"
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

    def path(self, node: int) -> list[tuple[int, int]]:
        """The splits (number, side) that lead to a node, the last one first; side 0 is ≤, side 1 is ≥."""
        steps = []
        while node > 0:
            steps.append(divmod(node - 1, 2))
            node = int(self.split_node[steps[-1][0]])
        return steps


@dataclass(frozen=True, eq=False)
class LearnedHints:
    """Bounds of expressions, or of transitions where the sets are untied; of events; proofs from a region."""

    lower: FloatArray = reals(0.0, 1.0)
    upper: FloatArray = reals(0.0, 1.0)
    event_lower: FloatArray | None = reals(0.0, 1.0, optional=True)
    event_upper: FloatArray | None = reals(0.0, 1.0, optional=True)
    region: RegionHints | None = part(RegionHints, optional=True)
    coupled: tuple[CoupledHints, ...] = parts(CoupledHints, 4)


def packed_size(size: int) -> int:
    """How many entries (j, k), j ≤ k, a symmetric matrix has."""
    return size * (size + 1) // 2
