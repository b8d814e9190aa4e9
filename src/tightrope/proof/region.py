"""The part of a certificate that speaks of a region: row names, boxes, bases.

Rows are written by the checker's own writer, bases are found over them by linear programs, and only rows that
some basis uses are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope.certificate.claim import Certificate
from tightrope.certificate.hints import RegionHints
from tightrope.certificate.learned import Learned
from tightrope.certificate.numbers import LONGDOUBLE
from tightrope.certificate.region.coordinates import Box, Space
from tightrope.certificate.region.duality import upper_bounds
from tightrope.certificate.region.polynomials import product_range
from tightrope.certificate.region.rows import Origin as Kind
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify
from tightrope.learning.result import LearningResult, PolicyValue
from tightrope.model.objective import Direction
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.proof.bases import BasisFinder
from tightrope.proof.rows import EventMap, Name, domain_names, envelope_names, row_names
from tightrope.region.polytope import Polytope
from tightrope.solver.rectangular_kernel import RectangularKernel
from tightrope.solver.solution import Solution
from tightrope.statistics.coordinates import Coordinates
from tightrope.uncertainty.sets import SetsKind

Table = OffsetArray

_EXTRA_ROUNDS = 2
_FACE = -1


def region_proof(
    result: LearningResult, counts: Counts, draft: Certificate, events: EventMap | None
) -> tuple[Learned, list[Name | None]]:
    """Boxes and bases for everything that was projected from the region, and the names of its rows.

    They are handed out with the chain of checks that they were made for.
    """
    region = result.region
    assert isinstance(region, Polytope)
    aligned, points = row_names(result, counts, region, events)
    named = [name for name in aligned if name is not None and name[0] != Kind.ENVELOPE]
    names = list(
        dict.fromkeys([*domain_names(region.coordinates), *named, *envelope_names(region.coordinates)])
    )
    link = started(draft, region.coordinates, names, points)
    lifted = region.coordinates.is_lifted
    if lifted or result.sets.kind is SetsKind.RECTANGULAR:
        rounds = region.tightening.rounds + _EXTRA_ROUNDS if lifted else 1
        with_stages(link, rounds, region.bounding_box)
    link.written()
    prove_ends(link, result, link.unproved(without_region=True))
    return link, _facet_names(region, aligned)


def started(draft: Certificate, coordinates: Coordinates, names: list[Name], points: FloatArray) -> Learned:
    """The chain of checks of a region with these rows, before anything is projected from it."""
    size = coordinates.size
    proof = RegionHints(
        row=np.array(names, dtype=np.int64).reshape(-1, 3),
        point=np.asarray(points, dtype=np.float64),
        box_lower=np.zeros((0, size)),
        box_upper=np.zeros((0, size)),
        box_basis=np.zeros((0, 2 * size, size), dtype=np.int64),
        bound_expression=np.zeros(0, dtype=np.int64),
        bound_side=np.zeros(0, dtype=np.int64),
        bound_basis=np.zeros((0, size), dtype=np.int64),
        choice_basis=np.zeros((0, size), dtype=np.int64),
    )
    link = Learned(with_region(draft, proof), LONGDOUBLE)
    own = link.space.free, link.space.products
    if own != (list(coordinates.free), list(coordinates.products)):
        raise CannotCertify("the region's coordinates are not those that a certificate derives")
    link.statistics()
    return link


def with_region(draft: Certificate, proof: RegionHints) -> Certificate:
    assert draft.learned is not None
    return replace(draft, learned=replace(draft.learned, region=proof))


def region_of(link: Learned) -> RegionHints:
    assert link.hints.region is not None
    return link.hints.region


def show(link: Learned, proof: RegionHints) -> None:
    """The chain with a longer proof."""
    link.show(with_region(link.certificate, proof))


def prove_ends(link: Learned, result: LearningResult, ends: list[tuple[int, int]]) -> None:
    """Bases for these ends (expression, side), over the rows that are written."""
    assert link.rows is not None and result.region is not None
    linear = result.region.coordinates.functions(result.model.expressions).linear
    directions = np.array([linear[e] if side else -linear[e] for e, side in ends])
    proof = replace(
        region_of(link),
        bound_expression=np.array([e for e, _ in ends], dtype=np.int64),
        bound_side=np.array([side for _, side in ends], dtype=np.int64),
        bound_basis=BasisFinder(link.rows).find(directions.reshape(-1, link.space.size)),
    )
    show(link, proof)
    link.written()


def _facet_names(region: Polytope, aligned: list[Name | None]) -> list[Name | None]:
    """Names of the region's facets; faces of its box are (FACE, code, 0)."""
    size = region.coordinates.size
    faces: list[Name | None] = [(_FACE, 2 * j, 0) for j in range(size)]
    faces += [(_FACE, 2 * j + 1, 0) for j in range(size)]
    names = [*aligned, *faces]
    if region.enclosure is None:
        return names
    return [names[i] for i in region.enclosure.facets.tolist()]


def with_stages(link: Learned, rounds: int, wanted: tuple[FloatArray, FloatArray] | None = None) -> None:
    """Bound tightening once more, each round with the bases that prove it.

    Where the region's own box is `wanted`, the last stage claims just that as far as it is proved: rows that
    depend on the box are then the region's, and so are the bases that its results rest on.
    """
    space, proof = link.space, region_of(link)
    size = space.size
    box: Box = space.start_box()
    directions = np.zeros((2 * size, size))
    for j in range(size):
        directions[2 * j, j], directions[2 * j + 1, j] = 1.0, -1.0
    lower, upper, bases = [], [], []
    for stage in range(rounds):
        rows = link.writer.rows(proof.row, box)
        basis = BasisFinder(rows).find(directions)
        best = upper_bounds(rows, directions.astype(np.longdouble), basis)
        best_upper = np.minimum(LONGDOUBLE.up(best[::2]), [_float(v, 1) for v in box[1]])
        best_lower = np.maximum(-LONGDOUBLE.up(best[1::2]), [_float(v, -1) for v in box[0]])
        new = _stage_box(space, best_lower, best_upper, None)
        reached = False
        if wanted is not None:
            outer = _stage_box(space, best_lower, best_upper, wanted)
            reached = np.array_equal(outer, wanted)
            new = outer if reached or stage == rounds - 1 else new
        if np.any(new[0] > new[1]):
            break
        lower.append(new[0])
        upper.append(new[1])
        bases.append(basis)
        if reached:
            break
        box = ([Fraction(float(v)) for v in new[0]], [Fraction(float(v)) for v in new[1]])
    proof = replace(
        proof,
        box_lower=np.array(lower).reshape(-1, size),
        box_upper=np.array(upper).reshape(-1, size),
        box_basis=np.array(bases, dtype=np.int64).reshape(-1, 2 * size, size),
    )
    show(link, proof)


def _stage_box(
    space: Space, lower: FloatArray, upper: FloatArray, wanted: tuple[FloatArray, FloatArray] | None
) -> tuple[FloatArray, FloatArray]:
    """The box that follows from bounds of coordinates and from products; no smaller than what is wanted."""
    low, high = lower.copy(), upper.copy()
    for z in range(space.size):
        if z >= len(space.free):
            left, right = space.products[z - len(space.free)]
            least, most = product_range(
                (Fraction(float(low[left])), Fraction(float(high[left]))),
                (Fraction(float(low[right])), Fraction(float(high[right]))),
                left == right,
            )
            low[z], high[z] = max(low[z], _float(least, -1)), min(high[z], _float(most, 1))
        if wanted is not None:
            low[z], high[z] = min(low[z], wanted[0][z]), max(high[z], wanted[1][z])
    return low, high


def _float(value: Fraction, side: int) -> float:
    nearest = float(value)
    if (nearest < value) if side > 0 else (nearest > value):
        return float(np.nextafter(nearest, side * np.inf))
    return nearest


def with_choice_bases(
    draft: Certificate, aligned: Sequence[Name | None], values: Sequence[PolicyValue]
) -> Certificate:
    """Bases for the choices of rectangular sets, and the region's rows cut down to those in use."""
    assert draft.learned is not None and draft.problem.data is not None
    proof = draft.learned.region
    if proof is None:
        return draft
    if draft.problem.data.method == "ellipsoid":  # in closed form at every choice
        return with_region(draft, _pruned(proof))
    hints = list(draft.values)
    found: list[tuple[int, str, Table, OffsetArray]] = []
    for i, value in enumerate(values):
        for solution in value.solutions:
            if isinstance(solution.kernel, RectangularKernel):
                side = "lower" if solution.objective.nature is Direction.MIN else "upper"
                found.append((i, side, *_choice_bases(solution, solution.kernel, side)))
    if found:
        kernel = next(
            s.kernel for v in values for s in v.solutions if isinstance(s.kernel, RectangularKernel)
        )
        known = [(int(o), int(i), int(p)) for o, i, p in proof.row]
        names, codes = _kernel_names(aligned, kernel, known)
        proof = replace(proof, row=np.array(names, dtype=np.int64).reshape(-1, 3))
        tables = np.concatenate([table for _, _, table, _ in found])
        distinct, number = np.unique(codes[tables], axis=0, return_inverse=True)
        proof = replace(proof, choice_basis=distinct.astype(np.int64))
        start = 0
        for i, side, table, which in found:
            if len(table) == 0:
                continue
            place = number.reshape(-1)[start : start + len(table)]
            start += len(table)
            basis = np.where(which >= 0, place[np.maximum(which, 0)], -1).astype(np.int64)
            if side == "lower":
                hints[i] = replace(hints[i], lower_basis=basis)
            else:
                hints[i] = replace(hints[i], upper_basis=basis)
    return replace(with_region(draft, _pruned(proof)), values=tuple(hints))


def _choice_bases(solution: Solution, kernel: RectangularKernel, side: str) -> tuple[Table, OffsetArray]:
    """(bases by the kernel's rows, which one each choice has) that answer the vector of this end."""
    vector = solution.fixpoint_lower if side == "lower" else solution.fixpoint_upper
    kernel.answer(vector, side == "upper")
    size = len(kernel.shape.reach)
    usable = kernel.shape.joint & (kernel.shape.vertex_of >= 0)
    vertices, which = np.unique(np.where(usable, kernel.shape.vertex_of, -1), return_inverse=True)
    which = which.reshape(-1)
    if len(vertices) and vertices[0] < 0:
        vertices, which = vertices[1:], which - 1
    return kernel.shape.link[vertices, :size].astype(np.int64), which.astype(np.int64)


def _kernel_names(
    aligned: Sequence[Name | None], kernel: RectangularKernel, known: list[Name]
) -> tuple[list[Name], Table]:
    """Names for the rows of a kernel: (all names, the basis code of every row of the kernel)."""
    size = len(kernel.shape.reach)
    names = list(known)
    number = {name: i for i, name in enumerate(names)}
    codes = np.zeros(len(kernel.shape.rows), dtype=np.int64)
    for r, name in enumerate(aligned):
        if name is not None and name[0] == _FACE:
            codes[r] = name[1]
        elif name is not None and name in number:
            codes[r] = 2 * size + number[name]
    count = len(aligned)
    codes[count : count + size] = 2 * np.arange(size)
    codes[count + size : count + 2 * size] = 2 * np.arange(size) + 1
    slopes = kernel.shape.affine[:, 2:]
    slopes = slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300)
    for r in range(count + 2 * size, len(codes)):  # bounds of expressions
        row = kernel.shape.rows[r, :-1]
        match = slopes @ (row / np.linalg.norm(row))
        e = int(np.argmax(np.abs(match)))
        name = (int(Kind.EXPRESSION), e, 0 if match[e] > 0 else 1)
        if name not in number:
            number[name] = len(names)
            names.append(name)
        codes[r] = 2 * size + number[name]
    return names, codes


def _pruned(proof: RegionHints) -> RegionHints:
    """Only the rows and points that some basis uses."""
    faces = 2 * proof.point.shape[1]
    tables = (proof.box_basis, proof.bound_basis, proof.choice_basis)
    used = np.unique(np.concatenate([table[table >= faces].reshape(-1) for table in tables])) - faces
    rank = np.zeros(len(proof.row) + 1, dtype=np.int64)
    rank[used] = np.arange(len(used))
    row = proof.row[used].copy()
    cuts = np.flatnonzero((row[:, 0] == Kind.CUT) | (row[:, 0] == Kind.TANGENT))
    points = proof.point[row[cuts, 1]]
    row[cuts, 1] = np.arange(len(cuts))
    box, bound, choice = (
        np.where(table >= faces, faces + rank[np.maximum(table - faces, 0)], table) for table in tables
    )
    return replace(proof, row=row, point=points, box_basis=box, bound_basis=bound, choice_basis=choice)
