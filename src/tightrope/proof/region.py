"""The part of a certificate that speaks of a region: row names, boxes, bases.

Rows are written by the checker's own writer, bases are found over them by linear programs, and only rows that
some basis uses are kept.
"""

from __future__ import annotations

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
from tightrope.errors import CannotCertify
from tightrope.learning.result import LearningResult
from tightrope.numerics.arrays import FloatArray
from tightrope.proof.bases import BasisFinder
from tightrope.proof.choices import Choices, find_choice_bases, with_expression_rows
from tightrope.proof.rows import EventMap, Name, domain_names, envelope_names, row_names
from tightrope.region.polytope import Polytope
from tightrope.statistics.coordinates import Coordinates
from tightrope.uncertainty.sets import SetsKind

_EXTRA_ROUNDS = 2


def region_proof(result: LearningResult, draft: Certificate, events: EventMap | None) -> Learned:
    """Boxes and bases for everything that was projected from the region.

    They are handed out in the certificate of the chain of checks that they were made for.
    """
    region = result.region
    assert isinstance(region, Polytope)
    aligned, points = row_names(result, region, events)
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
    return link


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


def with_choice_bases(link: Learned, draft: Certificate, result: LearningResult) -> Certificate:
    """Bases for the choices of rectangular sets, over the region's rows and the bounds that cut into them.

    `link` is the chain of checks of the draft, which has claims and vectors already.
    """
    assert draft.learned is not None and draft.problem.data is not None
    proof, data = draft.learned.region, draft.problem.data
    if proof is None or data.sets != "rectangular" or data.method == "ellipsoid":
        return draft  # an ellipsoid is in closed form at every choice
    assert link.rows is not None and result.region is not None
    constant = np.asarray(result.model.expressions.is_constant)
    functions = result.region.coordinates.functions(result.model.expressions)
    choices = Choices(draft.problem.graph, link.expression, functions, constant)
    if result.region.coordinates.is_lifted:
        bounds = draft.learned.lower, draft.learned.upper
        proof = with_expression_rows(proof, link.rows, choices, *bounds)
    link.show(with_region(draft, proof))
    link.written()
    bases, values = find_choice_bases(link.rows, choices, draft.claims, draft.values)
    return replace(with_region(draft, replace(proof, choice_basis=bases)), values=tuple(values))


def prune(proof: RegionHints) -> RegionHints:
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
