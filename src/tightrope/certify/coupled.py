"""The part of a certificate that proves coupled bounds: cells, hulls, Taylor models, occupancies.

The tree of cells is that of the result. A bound of a node holds in all cells below it, so every branch is
followed from the root until a node's own bound reaches the answer's end. Split i divides a node into 2i + 1
(below the plane) and 2i + 2 (above it). Hulls are found again over the checker's rows: vertices are pushed
outward slightly. Frames and models are the result's. A cell whose proof fails is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any, TypeAlias

import numpy as np

from tightrope.certify.region import Name, with_region
from tightrope.coupled.cells import Frame, affine_at, frame_of
from tightrope.coupled.cells import Rows as FrameRows
from tightrope.coupled.result import Cell, CoupledValue, VertexProof, occupancy
from tightrope.coupled.taylor import expand
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import round_up
from tightrope_check.coupled import Cells, CoupledHints, hull_misfit, packed_size
from tightrope_check.difference import coupled_check
from tightrope_check.learned import Learned, RowSystem, Statements
from tightrope_check.learned import RowOrigin as Kind
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate, Claim

_SPARE = Fraction(1, 10**12)
_SPARE_DEFECT = 2.0**-42  # so that float64 decides every state: the checker's bounds are a little coarser
MOST_NUMBERS = 100_000_000
"""Models of more numbers than this are not written down: the file would have most of a gigabyte."""


def with_coupled_proofs(
    draft: Certificate,
    aligned: Sequence[Name | None],
    cut_points: FloatArray,
    values: Sequence[CoupledValue | None],
    known: Statements,
) -> Certificate:
    """The certificate with a proof for every claim whose policy has a coupled value with cells.

    `aligned` are the names of the region's rows, and `cut_points` what its CUT rows refer to; `known` are the
    statements of this problem.
    """
    trees = {i: PrunedTree.of(value) for i, value in enumerate(values) if value is not None and value.cells}
    assert draft.learned is not None
    if not trees or draft.learned.region is None:
        return draft
    used = {
        int(row)
        for i, tree in trees.items()
        for _, cell in tree.nodes
        for row in _rows_of(values[i], cell)
        if row < len(aligned)
    }
    names, region = list(aligned), draft.learned.region
    points = list(region.point)
    for row in sorted(used):  # their cuts refer to the certificate's points
        if (name := names[row]) is not None and name[0] == Kind.CUT:
            names[row] = (int(Kind.CUT), len(points), 0)
            points.append(cut_points[name[1]])
    whole = np.array(points, dtype=np.float64).reshape(-1, region.point.shape[1])
    draft = with_region(draft, replace(region, point=whole))
    assert draft.learned is not None
    link = Learned(draft, FLOAT64, known)
    proofs, claims = [], list(draft.claims)
    for i, tree in trees.items():
        value = values[i]
        assert value is not None
        made = _proof(link, names, i, value, tree)
        if made is not None:
            proof, claims[i] = made
            proofs.append(proof)
    return replace(draft, claims=tuple(claims), learned=replace(draft.learned, coupled=tuple(proofs)))


def _rows_of(value: CoupledValue | None, cell: int) -> Iterable[int]:
    """The numbers of the rows that a cell of the result uses."""
    assert value is not None
    node = value.cells[cell]
    if node.frame is not None:
        return [int(row) for row in np.unique(node.frame.simplices)]
    return [] if node.emptiness is None else [int(row) for row in node.emptiness.rows]


_CellProof: TypeAlias = "tuple[int, int, Hull]"
"""The proof of a node by a cell of the result; models and occupancies are the result's."""


def _proof(
    link: Learned, names: Sequence[Name | None], claim: int, value: CoupledValue, tree: PrunedTree
) -> tuple[CoupledHints, Claim] | None:
    """The proof of one claim and the tighter claim; None where nothing is proved or it would be too large."""
    assert value.chain is not None
    size, objective = link.space.size, link.problem.objective
    by_steps = objective.steps is not None
    if objective.lower_steps and not by_steps and not value.chain.phases:
        return None  # unrolled: models would be those of steps
    state, row = _open_states(link, claim, value)
    held = 0 if by_steps else len(state) * len(tree.nodes)
    if held * (2 + size + packed_size(size)) > MOST_NUMBERS:
        return None
    blank = _blank(claim, size, state, tree)
    finder = HullFinder(coupled_check(link, blank).cells, names, tree)
    parts = [
        (node, cell, hull)
        for node, cell in tree.nodes
        if (hull := finder.find(node, value.cells[cell])) is not None
    ]
    proof = _write(blank, parts, value, row, by_steps or objective.lower_steps > 0, by_steps)
    check = coupled_check(link, proof)
    if not check.closed().passed:
        return None
    own = {number: check.own_ends(number) for number in range(len(parts))}
    good = [number for number, ends in own.items() if not isinstance(ends, str)]
    if len(good) < len(parts):
        parts = [parts[number] for number in good]
        proof = _write(blank, parts, value, row, by_steps or objective.lower_steps > 0, by_steps)
    ends = {part[0]: own[number] for part, number in zip(parts, good, strict=True)}
    low, high = check.tree_ends({n: e for n, e in ends.items() if not isinstance(e, str)}, (-inf, inf))
    pair = link.certificate.claims[claim].pair
    tighter = _tighter(link.certificate.claims[claim], low, high, objective.complement and pair is None)
    return (proof, tighter) if parts else None


def _tighter(claim: Claim, low: Fraction | float, high: Fraction | float, complement: bool) -> Claim:
    """The claim met with these bounds at the initial state, and a little more: another machine rounds in
    another order, and shall not have to ask rationals."""
    low, high = (
        end if isinstance(end, float) else end + side * abs(end) * _SPARE
        for end, side in ((low, -1), (high, 1))
    )
    if complement:
        low, high = 1 - high, 1 - low
    return replace(claim, lower=max(claim.lower, -round_up(-low)), upper=min(claim.upper, round_up(high)))


def _open_states(link: Learned, claim: int, value: CoupledValue) -> tuple[OffsetArray, OffsetArray]:
    """The states that models speak of, in order, and their rows in the result's chain. Of a difference the
    states of the second policy are numbered after those of the first."""
    assert value.chain is not None
    chain, certificate = value.chain, link.certificate
    rows = np.flatnonzero(~chain.fixed)
    if link.problem.objective.steps is not None:  # the checker makes the steps, and needs no models
        return rows[:0].astype(np.int64), rows[:0]
    numbers: list[int] = [claim]
    pair = certificate.claims[claim].pair
    if pair is not None:
        numbers = pair.tolist()[::-1] if link.problem.objective.complement else pair.tolist()
        rows = rows[rows < chain.rows - 1]
    count = link.problem.graph.states
    later = 0 if chain.second is None else count * (rows >= chain.second)
    states = chain.state[rows].astype(np.int64) + later
    vectors = [certificate.values[number] for number in numbers]
    if all(one.lower is not None and one.upper is not None for one in vectors):
        lower, upper = (np.concatenate([getattr(one, end) for one in vectors]) for end in ("lower", "upper"))
        undecided = lower[states] != upper[states]
        rows, states = rows[undecided], states[undecided]
    order = np.argsort(states)
    return states[order], rows[order]


def _blank(claim: int, size: int, state: OffsetArray, tree: PrunedTree) -> CoupledHints:
    """The tree without proofs."""
    none = np.zeros(0, dtype=np.int64)
    start = np.zeros(1, dtype=np.int64)
    opened = len(state)
    return CoupledHints(
        claim=claim,
        split_node=np.array([node for node, _, _ in tree.splits], dtype=np.int64),
        split_direction=np.array([normal for _, normal, _ in tree.splits]).reshape(-1, size),
        split_value=np.array([offset for _, _, offset in tree.splits], dtype=np.float64),
        node=none,
        lower_dual=none,
        upper_dual=none,
        row_start=start,
        row=np.zeros((0, 3), dtype=np.int64),
        multiplier=np.zeros(0),
        simplex=np.zeros((0, size), dtype=np.int64),
        point_start=start,
        point=np.zeros((0, size)),
        centre=np.zeros((0, size)),
        axes=np.zeros((0, size, size)),
        state=state,
        value=np.zeros((0, opened)),
        slope=np.zeros((0, opened, size)),
        curve=np.zeros((0, opened, packed_size(size))),
        error=np.zeros((0, opened)),
        dual=np.zeros((0, opened)),
    )


def _write(
    blank: CoupledHints,
    parts: Sequence[_CellProof],
    value: CoupledValue,
    row: OffsetArray,
    without_duals: bool,
    by_steps: bool,
) -> CoupledHints:
    """The proofs of all parts in one."""
    duals: list[FloatArray] = []
    lower_dual, upper_dual = np.full((2, len(parts)), -1, dtype=np.int64)
    for i, (_, number, _) in enumerate(parts):
        cell = value.cells[number]
        for side, proof, best in (
            (lower_dual, cell.low_vertex, cell.own_lower),
            (upper_dual, cell.high_vertex, cell.own_upper),
        ):
            if proof is not None and not without_duals and proof.bound == best:
                eta = _occupancy(value, number, proof, row)
                if eta is not None:
                    side[i] = len(duals)
                    duals.append(eta)
    hulls = [hull for *_, hull in parts]
    models = [] if by_steps else [_model(value, hull, row) for hull in hulls]
    fields: dict[str, Any] = {
        name: np.array([model[i] for model in models]).reshape(len(models), *getattr(blank, name).shape[1:])
        for i, name in enumerate(("value", "slope", "curve", "error"))
    }
    return replace(
        blank,
        node=np.array([node for node, *_ in parts], dtype=np.int64),
        lower_dual=lower_dual,
        upper_dual=upper_dual,
        row_start=_starts([hull.names for hull in hulls]),
        row=np.concatenate([blank.row, *(hull.names for hull in hulls)]),
        multiplier=np.concatenate([blank.multiplier, *(hull.multipliers for hull in hulls)]),
        simplex=np.concatenate([blank.simplex, *(hull.simplices for hull in hulls)]),
        point_start=_starts([hull.points for hull in hulls]),
        point=np.concatenate([blank.point, *(hull.points for hull in hulls)]),
        centre=np.array([hull.centre for hull in hulls]).reshape(-1, blank.centre.shape[1]),
        axes=np.array([hull.axes for hull in hulls]).reshape(-1, *blank.axes.shape[1:]),
        dual=np.array(duals).reshape(len(duals), blank.dual.shape[1]),
        **fields,
    )


def _model(
    value: CoupledValue, hull: Hull, row: OffsetArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(value, slope, curve, error) of the open states on the ball of the hull; nothing for an empty cell."""
    size, count = len(hull.centre), len(row)
    model = None
    if len(hull.points):
        radius = float(np.sqrt((hull.points**2).sum(axis=1).max())) * (1 + 1e-12)
        assert value.chain is not None
        after = replace(value.chain, phases=())  # of all steps, which the checker makes
        model = expand(after, value.functions, hull.centre, hull.axes, radius, spare=_SPARE_DEFECT)
    if model is None:
        return np.zeros(count), np.zeros((count, size)), np.zeros((count, packed_size(size))), np.zeros(count)
    left, right = np.triu_indices(size)
    curve = np.zeros((len(row), packed_size(size)))
    if model.order == 2:
        curve = model.curvature[row][:, left, right]
    return model.constant[row], model.slope[row], curve, model.error[row] * (1 + 1e-9)  # float64 shall do


def _occupancy(value: CoupledValue, cell: int, proof: VertexProof, row: OffsetArray) -> FloatArray | None:
    """The expected visits of the open states at the point of a vertex proof."""
    frame, chain = value.cells[cell].frame, value.chain
    assert frame is not None and chain is not None
    x = frame.to_x(frame.points[proof.point : proof.point + 1])[0]
    eta = occupancy(chain, affine_at(value.functions, x, np.zeros((len(x), 0)), 0.0))
    if eta is not None and chain.second is not None:  # the root stands for the first visits of both
        for part in (slice(0, chain.second), slice(chain.second, chain.rows - 1)):
            eta[part][chain.state[part] == chain.state[-1]] += 1.0
    return None if eta is None else eta[row]


def _starts(parts: Sequence[FloatArray | OffsetArray]) -> OffsetArray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


_SPARE_HULL = 1e-10

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
        enough = answer - _SPARE_HULL * max(abs(answer), 1e-300)
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
        hull = self._vertices(rows, cell.frame)
        if hull is None:
            return None
        simplices, points = hull
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

    def _vertices(self, rows: RowSystem, frame: Frame) -> tuple[OffsetArray, FloatArray] | None:
        """(simplices in the certificate's codes, points in the frame)."""
        number = np.roll(np.arange(len(rows.bound)), -2 * self.size)  # the faces of the box come last
        matrix, bound = RATIONAL.floats(rows.matrix[number]), RATIONAL.floats(rows.bound[number])
        system = FrameRows(matrix, np.nextafter(bound, np.inf), number)
        points = frame.to_x(frame.points)
        vertices = frame_of(system, points.mean(axis=0), np.ptp(points, axis=0))
        if vertices is None:
            return None
        simplices = vertices[0].simplices.astype(np.int64)
        try:
            y = np.linalg.solve(frame.axes, (vertices[0].to_x(vertices[0].points) - frame.centre).T).T
        except np.linalg.LinAlgError:
            return None
        middle = y.mean(axis=0)
        for push in _PUSHES:
            points = middle + (y - middle) * (1 + push)
            if hull_misfit(FLOAT64, rows, simplices, points, frame.centre, frame.axes) is None:
                return simplices, points
        return None
