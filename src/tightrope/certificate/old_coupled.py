"""The part of a certificate that bounds a policy's value over the region itself: one x for the whole run.

Rectangular sets let nature pick other coordinates x at every choice. The proof here is about the value V(x)
of a policy at one x for all choices, for every x of the region. It rests on the guarantee over the sets
(which says where the value is decided, and that it is finite) and adds:

* a tree of cells. Node 0 is the region; split i divides the node split_node[i] by split_direction[i]·x ≤
  split_value[i] (node 2i + 1) and ≥ (node 2i + 2).
* proofs of nodes. Each lists rows that bound its cell, by name, and points whose hull contains it: point k,
  in the proof's frame x = centre + axes·y, belongs to the simplex of as many rows as there are coordinates.
* Taylor models: for every open state s a polynomial W_s(y) = value + slope·y + yᵀ·curve·y with an error e_s,
  such that |V_s(x) − W_s(y)| ≤ e_s in the cell. `curve` holds the entries (j, k), j ≤ k, of symmetric
  matrices.
* occupancies, where the value at one point bounds the cell (`tightrope.certificate.coupled_values`).

For a bounded number of steps the checker makes the steps itself, and models are frames alone.
What is checked, and why it suffices, stands in `tightrope.certificate.coupled_check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

Table = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class CoupledProof:
    """lower ≤ value of guarantee number `guarantee` at the initial state ≤ upper, over the whole region.

    * Proof i is about the cell of node[i]. Its rows are row[row_start[i]:row_start[i+1]] (origin, index,
      part), its points point[point_start[i]:point_start[i+1]], with simplices coded as in
      `tightrope.certificate.support_check.Rows`. A proof without points says that the cell is empty: its
      rows, weighted by `multiplier`, contradict the cell's box.
    * `lower_dual`, `upper_dual`: occupancies used by a proof, −1 for none.
    * `state`: the open states, all that can be met before the value is decided; the arrays of the models are
      [proof, open state, …], and [occupancy, open state] is `dual`.
    """

    guarantee: int
    lower: float
    upper: float
    split_node: OffsetArray
    split_direction: Table
    split_value: FloatArray
    node: OffsetArray
    lower_dual: IndexArray
    upper_dual: IndexArray
    row_start: OffsetArray
    row: Table
    multiplier: FloatArray
    simplex_start: OffsetArray
    simplex: Table
    point_start: OffsetArray
    point: Table
    centre: Table
    axes: Table
    state: OffsetArray
    value: Table
    slope: Table
    curve: Table
    error: Table
    dual: Table

    @property
    def proofs(self) -> int:
        return len(self.node)

    def rows_of(self, proof: int) -> Table:
        """The names of the rows that a proof uses."""
        return np.asarray(self.row[self.row_start[proof] : self.row_start[proof + 1]])

    def simplices_of(self, proof: int) -> Table:
        return np.asarray(self.simplex[self.simplex_start[proof] : self.simplex_start[proof + 1]])

    def points_of(self, proof: int) -> Table:
        return np.asarray(self.point[self.point_start[proof] : self.point_start[proof + 1]])

    def path(self, node: int) -> list[tuple[int, int]]:
        """The splits (number, side) that lead to a node, the last one first; side 0 is ≤, side 1 is ≥."""
        steps = []
        while node > 0:
            split, side = divmod(node - 1, 2)
            steps.append((split, side))
            node = int(self.split_node[split])
        return steps


def packed_size(size: int) -> int:
    """How many entries (j, k), j ≤ k, a symmetric matrix has."""
    return size * (size + 1) // 2


_STARTS = {"row_start": "row", "simplex_start": "simplex", "point_start": "point"}
_WHOLE = {"split_node", "node", "lower_dual", "upper_dual", "row", "simplex", "state", *_STARTS}


def misfit(proof: CoupledProof, size: int, states: int, guarantees: int, by_steps: bool) -> str | None:
    """Why the arrays do not fit together, or None."""
    splits, proofs, opened = len(proof.split_node), proof.proofs, len(proof.state)
    held = 0 if by_steps else proofs
    shapes: dict[str, tuple[int, ...]] = {
        "split_node": (splits,),
        "split_direction": (splits, size),
        "split_value": (splits,),
        "node": (proofs,),
        "lower_dual": (proofs,),
        "upper_dual": (proofs,),
        "row_start": (proofs + 1,),
        "row": (len(proof.row), 3),
        "multiplier": (len(proof.row),),
        "simplex_start": (proofs + 1,),
        "simplex": (len(proof.simplex), size),
        "point_start": (proofs + 1,),
        "point": (len(proof.point), size),
        "centre": (proofs, size),
        "axes": (proofs, size, size),
        "state": (opened,),
        "value": (held, opened),
        "slope": (held, opened, size),
        "curve": (held, opened, packed_size(size)),
        "error": (held, opened),
        "dual": (len(proof.dual), opened),
    }
    for name, shape in shapes.items():
        array = getattr(proof, name)
        whole = name in _WHOLE
        if not isinstance(array, np.ndarray) or array.shape != shape:
            return f"'{name}' does not have the shape {shape}"
        if array.dtype.kind not in "iu" if whole else array.dtype != np.float64:
            return f"'{name}' holds {array.dtype}"
        if not whole and not np.all(np.isfinite(array)):
            return f"'{name}' has an entry that is not finite"
    if type(proof.guarantee) is not int or not 0 <= proof.guarantee < guarantees:
        return "a proof of a guarantee that is not there"
    if not (type(proof.lower) is float and type(proof.upper) is float and size > 0):
        return "the bounds are not numbers, or there are no coordinates"
    for name, of in _STARTS.items():
        start = getattr(proof, name)
        if start[0] != 0 or start[-1] != len(getattr(proof, of)) or np.any(np.diff(start) < 0):
            return f"'{name}' does not fit '{of}'"
    if np.any(proof.multiplier < 0):
        return "a multiplier is negative"
    for dual in (proof.lower_dual, proof.upper_dual):
        if np.any(dual < -1) or np.any(dual >= len(proof.dual)):
            return "an occupancy that is not there"
    if opened and (proof.state[0] < 0 or proof.state[-1] >= states or np.any(np.diff(proof.state) <= 0)):
        return "the open states are not in order"
    return _tree_misfit(proof)


def _tree_misfit(proof: CoupledProof) -> str | None:
    """Each split divides a node that is there already and was not divided before."""
    split_node = proof.split_node
    if np.any(split_node < 0) or np.any(split_node >= 2 * np.arange(len(split_node)) + 1):
        return "a split of a cell that is not there"
    if len(np.unique(split_node)) != len(split_node):
        return "a cell is split twice"
    if np.any(proof.node < 0) or np.any(proof.node > 2 * len(split_node)):
        return "a proof about a cell that is not there"
    return None
