"""The tree of cells of a coupled value, cut down to the nodes whose own bounds carry the answer.

A bound of a node holds in all cells below it. For each end of the answer every branch is followed from the
root until a node's own bound reaches it; what lies below is not needed. Nodes are numbered as in
certificates: split i divides a node into 2i + 1 (below the plane) and 2i + 2 (above it).
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.coupled import Cell, CoupledValue
from tightrope.numerics.arrays import FloatArray

_SPARE = 1e-10

Path = tuple[tuple[int, int], ...]
"""The cuts that lead to a node, from the root: (split, side), side 0 below the plane."""


@dataclass(frozen=True, eq=False)
class PrunedTree:
    """`splits`: (node divided, normal, offset); `nodes`: (number, index of the cell) of those with proofs."""

    splits: tuple[tuple[int, FloatArray, float], ...]
    nodes: tuple[tuple[int, int], ...]
    path: dict[int, Path]

    @staticmethod
    def of(value: CoupledValue) -> PrunedTree:
        cells = value.cells
        wanted = _carriers(cells)
        above: set[int] = set()
        for cell in wanted:
            while (cell := cells[cell].parent) >= 0:
                above.add(cell)
        number: dict[int, int] = {0: 0}
        path: dict[int, Path] = {0: ()}
        splits: list[tuple[int, FloatArray, float]] = []
        queue = [0]
        for cell in queue:
            children = cells[cell].children
            if cell not in above or children is None:
                continue
            for child in children:
                cut = cells[child].split
                assert cut is not None
                side = 0 if cut.side > 0 else 1
                number[child] = 2 * len(splits) + 1 + side
                path[number[child]] = (*path[number[cell]], (len(splits), side))
                queue.append(child)
            first = cells[children[0]].split
            assert first is not None
            splits.append((number[cell], first.normal, first.offset))
        return PrunedTree(tuple(splits), tuple((number[cell], cell) for cell in sorted(wanted)), path)


def _carriers(cells: tuple[Cell, ...]) -> set[int]:
    """Nodes whose own bounds, or whose emptiness, carry one of the two ends."""
    wanted: set[int] = set()
    for own in ([cell.own_lower for cell in cells], [-cell.own_upper for cell in cells]):
        answer = _answer(own, cells)
        enough = answer - _SPARE * max(abs(answer), 1e-300)
        stack = [0]
        while stack:
            cell = stack.pop()
            node = cells[cell]
            if node.emptiness is not None or (node.has_model and own[cell] >= enough):
                wanted.add(cell)
            elif node.children is not None:
                stack += node.children
    return wanted


def _answer(own: list[float], cells: tuple[Cell, ...]) -> float:
    """The least over the leaves of the best bound on their way from the root."""
    best = list(own)
    least = float("inf")
    for cell, node in enumerate(cells):
        if node.parent >= 0:
            best[cell] = max(best[cell], best[node.parent])
        if node.children is None and node.emptiness is None:
            least = min(least, best[cell])
    return least
