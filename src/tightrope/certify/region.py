"""The part of a certificate about a region: names of rows and events, boxes, bases.

Names of rows follow from the origins that `tightrope.regions.halfspaces` records; `EventMap` maps events to
those that the checker derives. Rows are written by the checker's own writer, bases are found over them by
linear programs, and only rows that some basis uses are kept. So nothing depends on how the solver numbered or
rounded its rows. All of this is float64 that no guarantee uses: the checker computes the multipliers itself
(`tightrope_check.learned`).

*Slabs.* The checker derives the bets. Points near which each row shall be tight and shares of the scales are
the result's; bounds of the expressions are proved again, stage by stage.

*Ellipsoids* are named by the directions of their tangents. Tangents along the coordinates bound the box, and
the tangent in a bound's own direction proves it, beside rows of the domain and McCormick's.

*Rectangular sets.* The extreme of Σ f_k(x)·v(s_k) at a choice is that of a linear function of x, which an
optimal basis proves. *Quotients*: f/g is bounded by f − c·g (`tightrope_check.quotients`).

*Bases* come from the dual simplex method, from the faces of the box that the direction points to; every basis
on the way proves a bound. The direction is tilted slightly against cycling.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.certify.problem import to_graph, to_polynomials
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.answers import LearnedAnswer
from tightrope.learning.result import LearningResult
from tightrope.logic.product_problem import ProductLift
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.ranges import denominators
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rounding import down, up
from tightrope.regions.ellipsoid import Ellipsoid
from tightrope.regions.halfspaces import Origin
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import has_proof, region_kind
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.estimates import EventIntervals
from tightrope_check.coordinates import Box, Space, add, key, polynomial_range
from tightrope_check.evidence import RegionHints
from tightrope_check.learned import ExpressionEnds, Learned, ProjectedRegion, RowSystem, next_box, shrunk_box
from tightrope_check.learned import RowOrigin as Kind
from tightrope_check.nature import Graph
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate, Claim, ValueHints
from tightrope_check.statistics.intervals import EventCounts
from tightrope_check.statistics.slab import SlabHints

_EXTRA_ROUNDS = 2
_MOST_ROUNDS = 60


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


def write_rows(link: Learned, proof: RegionHints) -> RowSystem:
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
    link: Learned, bounds: ExpressionEnds, wanted: Wanted, without_region: bool = False
) -> list[tuple[int, int]]:
    """(expression, side) of the bounds that the checker does not derive; side 1 is the upper one."""
    missing = []
    least = link.problem.assumed_support
    for e in link.used:
        low, high = (Fraction(float(bound[e])) for bound in wanted)
        assumed = least is not None and link.unknown[e] and low <= min(Fraction(least), high)
        proved = bounds.without_region(e) if without_region else bounds.ends(e)
        missing += [(e, 0)] if proved[0] < low and not assumed else []
        missing += [(e, 1)] if proved[1] > high else []
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
    the region's, and so are the bases that its results rest on. More rounds follow while they gain something
    and the box is not within that one.
    """
    size, writer = link.space.size, link.writer(proof)
    box: Box = link.space.start_box()
    directions = np.zeros((2 * size, size))
    for j in range(size):
        directions[2 * j, j], directions[2 * j + 1, j] = 1.0, -1.0
    bases: list[OffsetArray] = []
    for number in range(rounds if wanted is None else _MOST_ROUNDS):
        basis = BasisFinder(writer.rows(proof.row, box)).find(directions)
        smaller = next_box(writer, proof.row, box, basis)
        if any(low > high for low, high in zip(*smaller, strict=True)):
            break
        bases.append(basis)
        before, box = box, smaller
        is_last = (wanted is None or number + 1 >= rounds) and not _shrunk(before, box)
        if is_last or (wanted is not None and contains(wanted, box)):
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


def contains(outer: Wanted, box: Box) -> bool:
    """Whether a box is within another one."""
    low, high = outer
    return all(a <= b for a, b in zip(low.tolist(), box[0], strict=True)) and all(
        a >= b for a, b in zip(high.tolist(), box[1], strict=True)
    )


def prove_choices(
    link: Learned, projected: ProjectedRegion, draft: Certificate, result: LearningResult
) -> Certificate:
    """The draft with bases for the choices of rectangular sets, over the rows of what was found and the
    bounds that cut into them."""
    assert draft.learned is not None and draft.learned.region is not None
    proof, data = draft.learned.region, draft.problem.data
    if data is not None and data.method == "ellipsoid":  # in closed form at every choice
        joint = np.where(np.diff(result.model.transition_start) >= 3, 0, -1)
        hints = [replace(one, lower_basis=joint, upper_basis=joint) for one in draft.values]
        return replace(draft, values=tuple(hints))
    assert projected.rows is not None and result.region is not None
    constant = np.asarray(result.model.expressions.is_constant)
    functions = result.region.coordinates.functions(result.model.expressions)
    choices = Choices(
        to_graph(result.model.structure), result.model.expression.astype(np.int64), functions, constant
    )
    rows = projected.rows
    if result.region.coordinates.is_lifted:
        proof = with_expression_rows(proof, rows, choices, projected.lower, projected.upper)
        rows = projected.writer.rows(proof.row, projected.box)
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


def prove_slab(
    link: Learned, draft: Certificate, region: Polytope, events: EventMap | None
) -> tuple[Certificate, Learned]:
    """The draft with all stages, and the links that know them."""
    assert draft.learned is not None and region.slab is not None
    coordinates, slab, statements = region.coordinates, region.slab, link.statements
    points = np.zeros((0, coordinates.size)) if region.cut_points is None else region.cut_points
    pilots = draft.learned.pilot_share
    whole = 1 if pilots is None else int(pilots.sum())  # the checker's evidence is multiplied by it
    cuts = range(len(points))  # also those that rows of the slab have made idle since
    common: list[Name] = [*domain_names(coordinates), *((int(Kind.CUT), i, 0) for i in cuts)]
    for origin, event in slab.events:
        assert events is not None
        common.append((int(Kind.EVENT), *events.name(event, int(origin == Origin.EVENT_LOWER))))
    unknown = [(e, side) for e in link.used if link.unknown[e] for side in (0, 1)]
    forms = {e: [float(a) for a in link.space.affine(link.polynomials[e])[0]] for e, _ in unknown}
    directions = np.array([forms[e] if side else [-a for a in forms[e]] for e, side in unknown])
    stages: list[SlabHints] = []
    earlier: list[Name] = []
    for number, made in enumerate(slab.rows):
        names = [*common, *earlier, *envelope_names(coordinates)]
        proof = name_rows(link, coordinates, names, points)
        if coordinates.is_lifted:
            proof = shrink_box(link, proof, region.tightening.rounds)
        rows = write_rows(link, proof)
        bases = BasisFinder(rows).find(directions.reshape(-1, rows.size))
        stages.append(
            SlabHints(
                region=drop_unused(with_bases(proof, unknown, bases)),
                point=np.array([row.point for row in made]).reshape(-1, coordinates.size),
                share=np.array([np.rint(1024 * row.share) for row in made], dtype=np.int64).reshape(
                    -1, len(slab.every)
                ),
                side=np.array([slab.sides.index(row.side) for row in made], dtype=np.int64),
                guard=np.array([row.guard / whole for row in made], dtype=np.float64),
            )
        )
        earlier += [(int(Kind.SLAB), number, place) for place in range(len(made))]
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


Name = tuple[int, int, int]


class EventMap:
    """Event e of a result is event number[e] of the checker, or where flipped[e] its opposite."""

    def __init__(self, intervals: EventIntervals, link: Learned):
        data = link.problem.data
        certified = EventCounts(link, data is not None and data.shared_by == "events")
        events = intervals.events
        direct = {key(polynomial): i for i, polynomial in enumerate(certified.polynomials)}
        pairs = zip(events.expression.tolist(), events.multiplicity.tolist(), strict=True)
        own = [add({}, link.polynomials[e], m) for e, m in pairs]
        opposite = [key(link.space.complement(terms)) for terms in own]
        place = [direct.get(key(terms), -1) for terms in own]
        self.flipped = np.array([i < 0 for i in place], dtype=np.bool_)
        self.number = [i if i >= 0 else direct[other] for i, other in zip(place, opposite, strict=True)]
        self.intervals, self.size = intervals, len(certified.polynomials)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The intervals in the checker's order."""
        lower, upper = np.zeros(self.size), np.ones(self.size)
        low, high = self.intervals.lower, self.intervals.upper
        lower[self.number] = np.where(self.flipped, np.maximum(down(1.0 - high), 0.0), low)
        upper[self.number] = np.where(self.flipped, np.minimum(up(1.0 - low), 1.0), high)
        return lower, upper

    def name(self, event: int, part: int) -> tuple[int, int]:
        """(event, part) of the checker's row for a bound of an event here; part 1 is the lower one."""
        return self.number[event], 1 - part if self.flipped[event] else part


def domain_names(coordinates: Coordinates) -> list[Name]:
    """The names of `Coordinates.domain_rows`, in its order."""
    parameters = coordinates.parameters
    names: list[Name] = []
    for i in range(len(parameters)):
        if i not in coordinates.free and not coordinates.substitution[i].is_constant:
            names += [(Kind.DOMAIN, i, 0), (Kind.DOMAIN, i, 1)]
    for j, constraint in enumerate(parameters.constraints):
        involved = [coordinates.substitution[i] * c for i, c in enumerate(constraint.coefficients) if c]
        total = sum(involved[1:], start=involved[0]) if involved else None
        if total is None or total.is_constant:
            continue
        names.append((Kind.DOMAIN, len(parameters) + j, 0))
        if constraint.is_equality:
            names.append((Kind.DOMAIN, len(parameters) + j, 1))
    return names


def envelope_names(coordinates: Coordinates | Space) -> list[Name]:
    """All McCormick rows of all products."""
    return [
        (Kind.ENVELOPE, j, part)
        for j, (x, y) in enumerate(coordinates.products)
        for part in range(5 if x == y else 4)
    ]


def row_names(
    result: LearningResult, region: Polytope, events: EventMap | None
) -> tuple[list[Name | None], FloatArray]:
    """The name of every row of the region's system (None where it has none), and the points of its cuts."""
    coordinates, system = region.coordinates, region.system
    domain = domain_names(coordinates)
    envelopes: list[Name] = []
    for j, (x, y) in enumerate(coordinates.products):
        envelopes += [(Kind.ENVELOPE, j, part) for part in ((0, 4, 1, 2) if x == y else (0, 1, 2, 3))]
    _, example = np.unique(result.model.signatures.of_choice, return_index=True)
    if isinstance(result.problem.lift, ProductLift):  # certificates number the choices of the model
        example = result.problem.lift.product.choice[example]
    names: list[Name | None] = []
    for origin, index, part in zip(
        system.origin.tolist(), system.index.tolist(), system.parts.tolist(), strict=True
    ):
        name: Name | None = None
        if origin == Origin.DOMAIN:
            name = domain[index]
        elif origin in (Origin.EVENT_UPPER, Origin.EVENT_LOWER):
            assert events is not None
            name = (Kind.EVENT, *events.name(index, int(origin == Origin.EVENT_LOWER)))
        elif origin == Origin.ENVELOPE:
            name = envelopes[index] if index < len(envelopes) else None  # products with reciprocals
        elif origin in (Origin.COST_UPPER, Origin.COST_LOWER):
            name = (Kind.COST, index, int(origin == Origin.COST_LOWER))
        elif origin == Origin.CUT:
            name = (Kind.CUT, index, 0)
        elif origin == Origin.SLAB:
            name = (Kind.SLAB, index, part)
        elif origin == Origin.L1 and part > 0:
            name = (Kind.L1, int(example[index]), part)
        names.append(name)
    return names, np.zeros((0, coordinates.size)) if region.cut_points is None else region.cut_points


MOST_CUTS = 2000
"""Bounds of expressions that become rows: those that cut deepest, in relation to their width."""

_DEEP = 1e-9
_FEWEST = 3
"""With fewer unknown successors the intervals of a choice with Σp = 1 say everything."""


@dataclass(frozen=True, eq=False)
class Choices:
    """What directions are made of: successors, the expression of every transition, expressions in x."""

    graph: Graph
    expression: OffsetArray
    functions: AffineFunctions
    constant: BoolArray

    def of_claim(self, claim: Claim) -> OffsetArray:
        """The choices of a claim's policy that the region says more about than intervals."""
        unknown = ~self.constant[self.expression]
        joint = np.add.reduceat(unknown.astype(np.int64), self.graph.transition_start[:-1]) >= _FEWEST
        used = np.ones(self.graph.choices, dtype=np.bool_)
        if claim.weight is not None:
            used = claim.weight > 0
        elif claim.choice is not None:
            used = np.zeros(self.graph.choices, dtype=np.bool_)
            used[claim.choice] = True
        return np.flatnonzero(joint & used)

    def directions(self, choices: OffsetArray, vector: FloatArray) -> tuple[OffsetArray, FloatArray]:
        """(choices whose successors have finite values, the slope of Σ f_k·v(s_k) at each)."""
        start, linear = self.graph.transition_start, self.functions.linear
        length = np.diff(start)[choices]
        slope, finite = np.zeros((len(choices), linear.shape[1])), np.zeros(len(choices), dtype=np.bool_)
        for k in np.unique(length).tolist():
            at = np.flatnonzero(length == k)
            table = start[choices[at]][:, None] + np.arange(k)
            value = vector[self.graph.successor[table]]
            finite[at] = np.all(np.isfinite(value), axis=1)
            value = np.where(finite[at][:, None], value, 0.0)
            difference = value - value[:, :1]
            slope[at] = np.einsum("nk,nkd->nd", difference, linear[self.expression[table]])
        return choices[finite], slope[finite]


def find_choice_bases(
    rows: RowSystem, choices: Choices, claims: Sequence[Claim], values: Sequence[ValueHints]
) -> tuple[OffsetArray, list[ValueHints]]:
    """(distinct bases, the hints of every claim with a basis for each of its joint choices)."""
    directions: list[tuple[int, bool, OffsetArray, FloatArray]] = []
    for i, (claim, hints) in enumerate(zip(claims, values, strict=True)):
        used = choices.of_claim(claim)
        for upward, vector in ((False, hints.lower), (True, hints.upper)):
            if vector is not None:
                at, slope = choices.directions(used, vector)
                directions.append((i, upward, at, slope if upward else -slope))
    none = np.zeros((0, rows.size))
    bases = BasisFinder(rows).find(np.concatenate([none, *(slope for *_, slope in directions)]))
    distinct, number = np.unique(np.sort(bases, axis=1), axis=0, return_inverse=True)
    proved, first = list(values), 0
    for i, upward, at, slope in directions:
        basis = np.full(choices.graph.choices, -1, dtype=np.int64)
        basis[at] = number.reshape(-1)[first : first + len(slope)]
        first += len(slope)
        proved[i] = replace(proved[i], upper_basis=basis) if upward else replace(proved[i], lower_basis=basis)
    return distinct.astype(np.int64), proved


def with_expression_rows(
    proof: RegionHints, rows: RowSystem, choices: Choices, lower: FloatArray, upper: FloatArray
) -> RegionHints:
    """The proof with rows for the bounds of expressions that the region exceeds."""
    used = np.unique(choices.expression)
    at = used[~choices.constant[used]]
    functions = choices.functions.take(at)
    finder = BasisFinder(rows)
    high = finder.largest(functions.linear) + functions.constant
    low = functions.constant - finder.largest(-functions.linear)
    width = np.maximum(upper[at] - lower[at], 1e-12)
    depth = np.concatenate([(high - upper[at]) / width, (lower[at] - low) / width])
    deepest = np.argsort(-depth, kind="stable")[:MOST_CUTS]
    deepest = np.sort(deepest[depth[deepest] > _DEEP])
    part = (deepest >= len(at)).astype(np.int64)
    kind = np.full(len(deepest), int(Kind.EXPRESSION))
    cuts = np.stack([kind, at[deepest - part * len(at)], part], axis=1)
    return replace(proof, row=np.concatenate([proof.row, cuts]).astype(np.int64))


def refuse_uncertified(model: ParametricMDP, region: RegionKind | None = None) -> None:
    """What certificates do not hold: regions that the checker does not know, and denominators that it does
    not prove to be positive. None stands for a region that is not decided yet."""
    if region is not None and not has_proof(region):
        raise InputError(
            f"certificates do not cover the region {region.value}: the checker knows no proof of it",
            hint='leave the certificate out, or use `region="polytope"` or likelihood',
        )
    table = model.expressions
    if not table.denominators:
        return
    for k, g in enumerate(to_polynomials(denominators(table))):
        try:
            least, most = polynomial_range(g, model.parameters.lower, model.parameters.upper, True)
        except ValueError:
            least = most = Fraction(0)
        if least <= 0 <= most:
            name = table.denominators[k].text(model.parameters.names)
            raise InputError(
                f"the denominator {name} is not 0 on the domain, but certificates need that on the whole box "
                "of the parameters",
                hint="narrow the box with `params`, or leave the certificate out",
            )


def goes_by_intervals(model: ParametricMDP, sets: SetsKind | None, region: RegionKind | None) -> bool:
    """Whether a certificate is over the polytope of single intervals although the result is over another
    region, or couples values: where probabilities are quotients, the checker has no other proof."""
    other = region is not None and not region.certifies_quotients
    return bool(model.expressions.denominators) and (other or sets is SetsKind.COUPLED)


def region_for(model: ParametricMDP, result: LearningResult | LearnedAnswer) -> RegionKind | None:
    """The region of a certificate about more than a policy without memory, so one without bets."""
    region = result.decisions.region
    if region is not None and region.bets:
        if result.decisions.needs_bets and result.options.region is not None:
            raise InputError(
                "a slab bets on the value of a policy without memory, which this certificate is not about",
                hint="leave the certificate out, or take --region polytope",
            )
        region = region_kind("likelihood")
    return region_kind("polytope") if goes_by_intervals(model, None, region) else region


def direct(link: Learned, ends: list[tuple[int, int]], wanted: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The directions in which ends (expression, side) are proved; side 1 is the upper one."""
    rows = []
    for (e, side), near in zip(ends, place_near(ends, wanted).tolist(), strict=True):
        linear, _ = link.space.form(link.polynomials[e], Fraction(near))
        rows.append([float(a if side else -a) for a in linear])
    return np.array(rows, dtype=np.float64).reshape(-1, link.space.size)


def place_near(ends: list[tuple[int, int]], wanted: tuple[FloatArray, FloatArray]) -> FloatArray:
    """c of f − c·g for every end: what is wanted."""
    return np.array([float(wanted[side][e]) for e, side in ends], dtype=np.float64)


_VIOLATED = 1e-15
_MOST_STEPS = 400
_TILT = 1e-7
_NEGLIGIBLE = 1e-13
"""Multipliers this little below 0, relatively, are rounding: the checker cuts them at 0 and pays for it."""

_PARALLEL = 1e-11


class BasisFinder:
    """Optimal bases for many directions over one system."""

    def __init__(self, rows: RowSystem):
        self.size = rows.size
        lower, upper = RATIONAL.floats(rows.lower), RATIONAL.floats(rows.upper)
        self.centre, self.half = (lower + upper) / 2, np.maximum((upper - lower) / 2, 1e-200)
        scaled = RATIONAL.floats(rows.matrix) * self.half
        norm = np.maximum(np.abs(scaled).max(axis=1, initial=0), 1e-300)
        self.matrix = scaled / norm[:, None]
        self.bound = RATIONAL.floats(rows.bound - rows.matrix @ RATIONAL.array(self.centre)) / norm
        self.tilt = _TILT * (0.5 + np.random.default_rng(11).random(self.size))

    def find(self, directions: FloatArray) -> OffsetArray:
        """A basis for each direction: one that was found serves all others that it is optimal for."""
        goals = directions * self.half
        bases = np.zeros(directions.shape, dtype=np.int64)
        left: OffsetArray = np.arange(len(directions) if self.size else 0)
        while len(left):
            basis = self._search(goals[left[0]])
            multipliers = goals[left] @ np.linalg.inv(self.matrix[basis])
            small = _NEGLIGIBLE * np.abs(multipliers).max(axis=1, initial=0.0, keepdims=True)
            served = np.all(multipliers >= -small, axis=1)
            served[0] = True
            bases[left[served]] = basis
            left = left[~served]
        return bases

    def find_each(self, directions: FloatArray, common: int, own: OffsetArray) -> OffsetArray:
        """A basis for each direction over the first `common` rows and one row of its own (−1: none)."""
        bases = np.zeros(directions.shape, dtype=np.int64)
        shared = np.arange(common)
        for i, (goal, row) in enumerate(zip(directions * self.half, own.tolist(), strict=True)):
            rows = np.append(shared, row) if row >= 0 else shared
            part = copy(self)
            part.matrix, part.bound = self.matrix[rows], self.bound[rows]
            bases[i] = rows[part._search(goal)]
        return bases

    def largest(self, directions: FloatArray) -> FloatArray:
        """The largest value of each direction over the system, in plain float64."""
        bases = self.find(directions)
        distinct, which = np.unique(bases, axis=0, return_inverse=True)
        points = np.linalg.solve(self.matrix[distinct], self.bound[distinct][:, :, None])[:, :, 0]
        x = self.centre + self.half * points
        values: FloatArray = np.einsum("nd,nd->n", directions, x[which.reshape(-1)])
        return values

    def _search(self, goal: FloatArray) -> OffsetArray:
        basis: OffsetArray = 2 * np.arange(self.size) + (goal < 0.0)
        tilt = np.abs(goal).max(initial=0.0) * np.where(goal < 0.0, -self.tilt, self.tilt)
        return self._climb(self._descend(basis, goal + tilt), goal)

    def _descend(self, basis: OffsetArray, goal: FloatArray) -> OffsetArray:
        """The dual simplex method: from a basis with multipliers ≥ 0 to one whose vertex violates no row."""
        for _ in range(_MOST_STEPS):
            inverse = np.linalg.inv(self.matrix[basis])
            point = inverse @ self.bound[basis]
            excess = self.matrix @ point - self.bound
            excess[basis] = 0.0
            entering = int(np.argmax(excess))
            if not excess[entering] > _VIOLATED * (1.0 + float(np.abs(point).max(initial=0.0))):
                break
            multipliers = np.maximum(goal @ inverse, 0.0)
            share = self.matrix[entering] @ inverse
            leaving = _least_ratio(multipliers, share)
            if leaving is None:
                break
            basis = _swap(basis, leaving, entering)
        return basis

    def _climb(self, basis: OffsetArray, goal: FloatArray) -> OffsetArray:
        """The primal simplex method: from a basis whose vertex violates no row to multipliers ≥ 0."""
        for _ in range(_MOST_STEPS):
            inverse = np.linalg.inv(self.matrix[basis])
            multipliers = goal @ inverse
            leaving = int(np.argmin(multipliers))
            if multipliers[leaving] >= -_NEGLIGIBLE * np.abs(multipliers).max(initial=0.0):
                break
            room = np.maximum(self.bound - self.matrix @ (inverse @ self.bound[basis]), 0.0)
            speed = self.matrix @ -inverse[:, leaving]
            speed[basis] = 0.0
            entering = _least_ratio(room, speed)
            if entering is None:
                break
            basis = _swap(basis, leaving, entering)
        return basis


def _least_ratio(top: FloatArray, bottom: FloatArray) -> int | None:
    """Where top/bottom is least among positive bottoms; None where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(bottom > _PARALLEL, top / bottom, np.inf)
    least = int(np.argmin(ratio))
    return least if np.isfinite(ratio[least]) else None


def _swap(basis: OffsetArray, leaving: int, entering: int) -> OffsetArray:
    result = basis.copy()
    result[leaving] = entering
    return result
