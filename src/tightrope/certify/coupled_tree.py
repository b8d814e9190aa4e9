"""The tree of cells of a coupled value, cut down to the nodes whose own bounds carry the answer.

A bound of a node holds in all cells below it. For each end of the answer every branch is followed from the
root until a node's own bound reaches it; what lies below is not needed. Nodes are numbered as in
certificates: split i divides a node into 2i + 1 (below the plane) and 2i + 2 (above it).

Hulls of cells over the rows that a certificate's checker writes.

A cell of the result names rows of the region by number; here they get the names of the certificate. Vertices
are found over the rows as the checker will see them and then pushed outward by next to nothing, until its own
function says that they enclose the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.certificate.coupled import Cells, hull_misfit
from tightrope.certificate.numbers import FLOAT64, RATIONAL
from tightrope.certificate.rows import Origin as Kind
from tightrope.certificate.rows import Rows
from tightrope.certify.rows import Name
from tightrope.coupled import Cell, CoupledValue
from tightrope.coupled.frame import Frame, frame_of
from tightrope.coupled.frame import Rows as FrameRows
from tightrope.numerics.arrays import FloatArray, OffsetArray

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


_PUSHES = (1e-11, 1e-9, 1e-7)


@dataclass(frozen=True, eq=False)
class Hull:
    """What encloses a cell, in the frame of its model; without points where multipliers show it empty."""

    names: OffsetArray
    multipliers: FloatArray
    simplices: OffsetArray
    points: FloatArray
    centre: FloatArray
    axes: FloatArray


class HullFinder:
    """Hulls of the cells of one tree. `aligned` are the names of the region's rows, its box apart."""

    def __init__(self, cells: Cells, aligned: Sequence[Name | None], tree: PrunedTree):
        self.cells, self.aligned, self.tree = cells, aligned, tree
        self.size = cells.space.size
        self.envelopes = [
            (int(Kind.ENVELOPE), j, part)
            for j, (x, y) in enumerate(cells.space.products)
            for part in ((0, 4, 1, 2) if x == y else (0, 1, 2, 3))
        ]

    def find(self, node: int, cell: Cell) -> Hull | None:
        """The hull of a node's cell, or None where it has no frame or no proof was found."""
        if cell.emptiness is not None:
            return self._empty(node, cell)
        if cell.frame is None or not cell.has_model:
            return None
        numbers = np.unique(cell.frame.simplices).tolist()
        named = [name for row in numbers if (name := self._name(node, row)) is not None]
        names = np.array(list(dict.fromkeys([*named, *self.envelopes])), dtype=np.int64).reshape(-1, 3)
        rows = self.cells.rows(node, names)
        found = self._vertices(rows, cell.frame)
        if found is None:
            return None
        simplices, points = found
        faces = 2 * self.size
        used = np.unique(simplices[simplices >= faces]) - faces
        rank = np.zeros(len(names) + 1, dtype=np.int64)
        rank[used] = np.arange(len(used))
        codes = np.where(simplices >= faces, faces + rank[np.maximum(simplices - faces, 0)], simplices)
        return Hull(names[used], np.zeros(len(used)), codes, points, cell.frame.centre, cell.frame.axes)

    def _name(self, node: int, row: int) -> Name | None:
        """The name of a row of the result's cell; faces of the box need none."""
        first = len(self.aligned)
        if row < first:
            return self.aligned[row]
        row -= first + 2 * self.size
        if row < 0:
            return None
        path = self.tree.path[node]
        if row < len(path):
            return int(Kind.SPLIT), *path[row]
        return self.envelopes[row - len(path)]

    def _empty(self, node: int, cell: Cell) -> Hull | None:
        assert cell.emptiness is not None
        pairs = [
            (name, float(weight))
            for row, weight in zip(cell.emptiness.rows.tolist(), cell.emptiness.multipliers, strict=True)
            if (name := self._name(node, row)) is not None and weight > 0
        ]
        names = np.array([name for name, _ in pairs], dtype=np.int64).reshape(-1, 3)
        nothing = np.zeros((0, self.size))
        centre, axes = np.zeros(self.size), np.zeros((self.size, self.size))
        weights = np.array([weight for _, weight in pairs])
        return Hull(names, weights, nothing.astype(np.int64), nothing, centre, axes)

    def _vertices(self, rows: Rows, frame: Frame) -> tuple[OffsetArray, FloatArray] | None:
        """(simplices in the certificate's codes, points in the frame)."""
        number = np.roll(np.arange(len(rows.bound)), -2 * self.size)  # the faces of the box come last
        matrix, bound = RATIONAL.floats(rows.matrix[number]), RATIONAL.floats(rows.bound[number])
        system = FrameRows(matrix, np.nextafter(bound, np.inf), number)
        points = frame.to_x(frame.points)
        found = frame_of(system, points.mean(axis=0), np.ptp(points, axis=0))
        if found is None:
            return None
        simplices = found[0].simplices.astype(np.int64)
        try:
            y = np.linalg.solve(frame.axes, (found[0].to_x(found[0].points) - frame.centre).T).T
        except np.linalg.LinAlgError:
            return None
        middle = y.mean(axis=0)
        for push in _PUSHES:
            points = middle + (y - middle) * (1 + push)
            if hull_misfit(FLOAT64, rows, simplices, points, frame.centre, frame.axes) is None:
                return simplices, points
        return None
