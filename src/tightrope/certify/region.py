"""The part of a certificate that speaks of a region: row names, boxes, bases.

Rows are written by the checker's own writer, bases are found over them by linear programs, and only rows that
some basis uses are kept.

The stages of a slab's rows: the bounds of expressions that each rests on, with bases that prove them.

The checker derives the bets itself and writes the rows from them, from a point near which each row shall be
tight, from shares of the scales, and from bounds of the expressions, which are proved over the rows of the
guard and of the stages before. Points and shares are the result's; bounds are proved again here, stage by
stage, over rows as the checker writes them.

The part of a certificate that speaks of an ellipsoid: tangents, boxes, bases.

An ellipsoid has no rows, but each of its tangents is one, and the certificate names them by their directions.
Tangents along the coordinates bound the box. For a bound that the domain does not cut, the tangent in its own
direction proves it; where the domain's rows (and McCormick's) have multipliers, what they leave of the
direction does, together with them. A basis over these, and over the rows that all share, proves at least what
the cone program did.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.certificate.coordinates import Box
from tightrope.certificate.evidence import RegionHints, SlabHints
from tightrope.certificate.learned import Learned, Projection
from tightrope.certificate.numbers import FLOAT64
from tightrope.certificate.problem import Certificate
from tightrope.certificate.rows import Bounds, Rows, next_box, shrunk_box
from tightrope.certificate.rows import Origin as Kind
from tightrope.certify.bases import BasisFinder
from tightrope.certify.choices import Choices, find_choice_bases, with_expression_rows
from tightrope.certify.problem import to_graph
from tightrope.certify.quotients import direct, place_near
from tightrope.certify.rows import EventMap, Name, domain_names, envelope_names, row_names
from tightrope.errors import CannotCertify
from tightrope.learning.result import LearningResult
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.regions.ellipsoid import Ellipsoid
from tightrope.regions.polytope import Polytope
from tightrope.statistics.coordinates import Coordinates

_EXTRA_ROUNDS = 2


Wanted = tuple[FloatArray, FloatArray]
"""(lower, upper) of every expression, or of every coordinate, as a result has them."""


def prove_region(
    link: Learned, result: LearningResult, events: EventMap | None, wanted: Wanted
) -> RegionHints:
    """Boxes and bases for everything that was projected from the region."""
    region = result.region
    assert isinstance(region, Polytope)
    divides = link.problem.denominator is not None
    aligned, points = row_names(result, region, events)
    named = [name for name in aligned if name is not None and name[0] != Kind.ENVELOPE]
    names = dict.fromkeys([*domain_names(region.coordinates), *named, *envelope_names(link.space)])
    points = np.zeros((0, link.space.size)) if divides else points
    proof = name_rows(link, region.coordinates, list(names), points)
    lifted = bool(link.space.products)
    if lifted or result.sets.kind is SetsKind.RECTANGULAR:
        rounds = region.tightening.rounds + _EXTRA_ROUNDS if lifted else 1
        proof = shrink_box(link, proof, rounds, None if divides else region.bounding_box)
    ends = open_ends(link, link.bounds({}, None), wanted, without_region=True)
    if divides:
        bases = BasisFinder(write_rows(link, proof)).find(direct(link, ends, wanted))
        return replace(with_bases(proof, ends, bases), bound_near=place_near(ends, wanted))
    linear = dict(enumerate(region.coordinates.functions(result.model.expressions).linear))
    reward = result.objective.reward
    if isinstance(reward, ParametricReward):
        index, earned = region.coordinates.affine_among(reward.expressions)
        for row, direction in zip(index.tolist(), earned.linear, strict=True):
            linear[len(result.model.expressions) + row] = direction
            ends += [(len(result.model.expressions) + row, side) for side in (0, 1) if direction.any()]
    directions = np.array([linear[e] if side else -linear[e] for e, side in ends])
    rows = write_rows(link, proof)
    return with_bases(proof, ends, BasisFinder(rows).find(directions.reshape(-1, rows.size)))


def write_rows(link: Learned, proof: RegionHints) -> Rows:
    """The rows of these hints, in the box that follows from them."""
    writer = link.writer(proof)
    return writer.rows(proof.row, shrunk_box(writer, proof.row, proof))


def name_rows(link: Learned, coordinates: Coordinates, names: list[Name], points: FloatArray) -> RegionHints:
    """Hints with these rows, before anything is projected from them."""
    own, size = (link.space.free, link.space.products), link.space.size
    products = link.space.products if coordinates.denominators else list(coordinates.products)
    if own != (list(coordinates.free), products):
        raise CannotCertify("the region's coordinates are not those that a certificate derives")
    return RegionHints(
        row=np.array(names, dtype=np.int64).reshape(-1, 3),
        point=np.asarray(points, dtype=np.float64),
        box_basis=np.zeros((0, size), dtype=np.int64),
        bound_expression=np.zeros(0, dtype=np.int64),
        bound_side=np.zeros(0, dtype=np.int64),
        bound_basis=np.zeros((0, size), dtype=np.int64),
        choice_basis=np.zeros((0, size), dtype=np.int64),
    )


def with_region(draft: Certificate, proof: RegionHints | None) -> Certificate:
    assert draft.learned is not None
    return replace(draft, learned=replace(draft.learned, region=proof))


def open_ends(
    link: Learned, bounds: Bounds, wanted: Wanted, without_region: bool = False
) -> list[tuple[int, int]]:
    """(expression, side) of the bounds that the checker does not derive; side 1 is the upper one."""
    missing = []
    least = link.problem.assumed_support
    for e in link.used:
        low, high = (Fraction(float(bound[e])) for bound in wanted)
        assumed = least is not None and link.unknown[e] and low <= min(Fraction(least), high)
        for side, end in ((0, low), (1, high)):
            plain = bounds.without_region(e, side)
            proved = (min(plain) if side else max(plain)) if without_region else bounds.proved(e, side)
            if (proved > end) if side else (proved < end and not assumed):
                missing.append((e, side))
    return missing


def with_bases(proof: RegionHints, ends: list[tuple[int, int]], bases: OffsetArray) -> RegionHints:
    """The hints with a basis for each of these ends (expression, side)."""
    return replace(
        proof,
        bound_expression=np.array([e for e, _ in ends], dtype=np.int64),
        bound_side=np.array([side for _, side in ends], dtype=np.int64),
        bound_basis=bases,
    )


def shrink_box(link: Learned, proof: RegionHints, rounds: int, wanted: Wanted | None = None) -> RegionHints:
    """Bound tightening once more, each round with the bases that prove it.

    Where the region's own box is `wanted`, it is left as wide as that: rows that depend on the box are then
    the region's, and so are the bases that its results rest on.
    """
    size, writer = link.space.size, link.writer(proof)
    box: Box = link.space.start_box()
    directions = np.zeros((2 * size, size))
    for j in range(size):
        directions[2 * j, j], directions[2 * j + 1, j] = 1.0, -1.0
    bases: list[OffsetArray] = []
    for _ in range(rounds):
        basis = BasisFinder(writer.rows(proof.row, box)).find(directions)
        smaller = next_box(writer, proof.row, box, basis)
        if any(low > high for low, high in zip(*smaller, strict=True)):
            break
        bases.append(basis)
        before, box = box, smaller
        if _contains(wanted, box) if wanted is not None else not _shrunk(before, box):
            break
    proof = replace(proof, box_basis=np.array(bases, dtype=np.int64).reshape(-1, size))
    if wanted is None:
        return proof
    low, high = (np.array(end, dtype=np.float64) for end in wanted)
    return replace(proof, box_lower=low, box_upper=high)


def _shrunk(before: Box, box: Box) -> bool:
    """Whether some side of the box became shorter by more than a millionth."""
    sides = [[float(high - low) for low, high in zip(*one, strict=True)] for one in (before, box)]
    return any(new < (1 - 1e-6) * old for old, new in zip(*sides, strict=True))


def _contains(outer: Wanted, box: Box) -> bool:
    low, high = outer
    return all(a <= b for a, b in zip(low.tolist(), box[0], strict=True)) and all(
        a >= b for a, b in zip(high.tolist(), box[1], strict=True)
    )


def prove_choices(
    link: Learned, found: Projection, draft: Certificate, result: LearningResult
) -> Certificate:
    """The draft with bases for the choices of rectangular sets, over the rows of what was found and the
    bounds that cut into them."""
    assert draft.learned is not None and draft.learned.region is not None
    proof, data = draft.learned.region, draft.problem.data
    if data is not None and data.method == "ellipsoid":  # in closed form at every choice
        joint = np.where(np.diff(result.model.transition_start) >= 3, 0, -1)
        hints = [replace(one, lower_basis=joint, upper_basis=joint) for one in draft.values]
        return replace(draft, values=tuple(hints))
    assert found.rows is not None and result.region is not None
    constant = np.asarray(result.model.expressions.is_constant)
    functions = result.region.coordinates.functions(result.model.expressions)
    choices = Choices(
        to_graph(result.model.structure), result.model.expression.astype(np.int64), functions, constant
    )
    rows = found.rows
    if result.region.coordinates.is_lifted:
        proof = with_expression_rows(proof, rows, choices, found.lower, found.upper)
        rows = found.writer.rows(proof.row, found.box)
    bases, values = find_choice_bases(rows, choices, draft.claims, draft.values)
    if len(bases) == 0:
        return draft
    return replace(with_region(draft, replace(proof, choice_basis=bases)), values=tuple(values))


def prune(draft: Certificate) -> Certificate:
    """Only the rows and points of the region that some basis uses."""
    assert draft.learned is not None
    proof = draft.learned.region
    return draft if proof is None else with_region(draft, drop_unused(proof))


def drop_unused(proof: RegionHints) -> RegionHints:
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


def prove_slab(link: Learned, draft: Certificate, region: Polytope) -> tuple[Certificate, Learned]:
    """The draft with all stages, and the links that know them."""
    assert draft.learned is not None and region.slab is not None and region.cut_points is not None
    coordinates, slab, statements = region.coordinates, region.slab, link.statements
    sides = max(len(slab.sides), 1)
    cuts = range(len(region.cut_points))  # also those that rows of the slab have made idle since
    common: list[Name] = [*domain_names(coordinates), *((int(Kind.CUT), i, 0) for i in cuts)]
    unknown = [(e, side) for e in link.used if link.unknown[e] for side in (0, 1)]
    forms = {e: [float(a) for a in link.space.affine(link.polynomials[e])[0]] for e, _ in unknown}
    directions = np.array([forms[e] if side else [-a for a in forms[e]] for e, side in unknown])
    stages: list[SlabHints] = []
    for number in range(len(slab.rows) // sides):
        earlier: list[Name] = [(int(Kind.SLAB), s, place) for s in range(number) for place in range(sides)]
        names = [*common, *earlier, *envelope_names(coordinates)]
        proof = name_rows(link, coordinates, names, region.cut_points)
        if coordinates.is_lifted:
            proof = shrink_box(link, proof, region.tightening.rounds)
        rows = write_rows(link, proof)
        bases = BasisFinder(rows).find(directions.reshape(-1, rows.size))
        made = slab.rows[number * sides : (number + 1) * sides]
        stages.append(
            SlabHints(
                region=drop_unused(with_bases(proof, unknown, bases)),
                point=np.array([point for point, _ in made], dtype=np.float64),
                share=np.array([np.rint(1024 * share) for _, share in made], dtype=np.int64),
            )
        )
        draft = replace(draft, learned=replace(draft.learned, slab=tuple(stages)))
        link = Learned(draft, FLOAT64, statements)
    return draft, link


_NOTHING_LEFT = 1e-12


def prove_ellipsoid(link: Learned, result: LearningResult, region: Ellipsoid, wanted: Wanted) -> RegionHints:
    """Tangents, the box and a basis for every bound that was projected from an ellipsoid."""
    coordinates = region.coordinates
    size = coordinates.size
    names = [*domain_names(coordinates), *envelope_names(coordinates)]
    proof = name_rows(link, coordinates, names, np.zeros((0, size)))
    proof = _with_tangents(proof, np.concatenate([np.eye(size), -np.eye(size)]))
    proof = shrink_box(link, proof, 1)
    writer = link.writer(proof)
    wide = open_ends(link, link.bounds({}, shrunk_box(writer, proof.row, proof)), wanted)
    if not wide:
        return proof
    linear = coordinates.functions(result.model.expressions).linear
    directions = np.array([linear[e] if side else -linear[e] for e, side in wide])
    tangents, own = _tangents(region, directions)
    common = 2 * size + len(proof.row)
    proof = _with_tangents(proof, tangents)
    own = np.where(own >= 0, common + own, -1)
    bases = BasisFinder(write_rows(link, proof)).find_each(directions, common, own)
    return with_bases(proof, wide, bases)


def _tangents(region: Ellipsoid, directions: FloatArray) -> tuple[FloatArray, OffsetArray]:
    """(distinct directions of length about 1 in which tangents are wanted, which of them each uses)."""
    left = region.remainders(directions)
    size = np.abs(left).max(axis=1)
    some = size > _NOTHING_LEFT * np.abs(directions).max(axis=1)
    wanted, number = np.unique(left[some] / size[some, None], axis=0, return_inverse=True)
    own = np.full(len(directions), -1, dtype=np.int64)
    own[some] = number.reshape(-1)
    return wanted, own


def _with_tangents(proof: RegionHints, directions: FloatArray) -> RegionHints:
    known = len(proof.point)
    number = np.arange(known, known + len(directions))
    kind = np.full(len(number), int(Kind.TANGENT))
    return replace(
        proof,
        row=np.concatenate([proof.row, np.stack([kind, number, 0 * number], axis=1)]),
        point=np.concatenate([proof.point, directions]),
    )
