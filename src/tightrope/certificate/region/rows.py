"""Rows a·x ≤ b that hold at the true coordinates, written down from their names (origin, index, part).

* DOMAIN      parameter `index` within its bounds (part 0 upper, 1 lower), or constraint `index` − parameters
              (part 1: the other side of an equality).
* EVENT       event `index` is at most its upper bound (part 0), at least its lower one (part 1).
* ENVELOPE    product `index`, z = x·y in the current box: parts 0 to 3 are McCormick's, (x − x̲)(y − y̲) ≥ 0,
              (x̄ − x)(ȳ − y) ≥ 0, (x̄ − x)(y − y̲) ≥ 0, (x − x̲)(ȳ − y) ≥ 0; part 4 is (x − m)² ≥ 0 for a
              square, m the middle.
* CUT         the likelihood's tangent at the file's point `index`.
* L1          choice `index`, the set of outcomes in the bits of `part`.
* EXPRESSION  as EVENT, of expression `index`: only for what comes after these bounds were proved.
* TANGENT     the ellipsoid in the direction that is the file's point `index`.
* SLAB        stage `index` of a slab, the side that is `part` among those that are bet on.
* COST        as EVENT, of reward `index` among those that costs speak of.
* SPLIT       split `index` of a tree of cells, part 0 the half-space below it, part 1 the one above.

All are rational; logarithms and roots are rationals on the safe side of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from tightrope.certificate.budget import hold, spend, spend_terms
from tightrope.certificate.format.fields import Polynomial
from tightrope.certificate.numbers import RATIONAL, Numbers
from tightrope.certificate.region.coordinates import Box, Row, Space
from tightrope.certificate.region.duality import Rows, Support
from tightrope.certificate.region.polynomials import ZERO
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from tightrope.certificate.statistics.slab import Slab


class Origin(IntEnum):
    DOMAIN = 0
    EVENT = 1
    ENVELOPE = 2
    CUT = 3
    L1 = 4
    EXPRESSION = 5
    TANGENT = 6
    SPLIT = 7
    SLAB = 8
    COST = 9


class Source(Protocol):
    """Whoever can write down the rows of an origin, tangents at the file's points; a name that means nothing
    is a ValueError."""

    def row(self, index: int, part: int, points: FloatArray) -> Row: ...


Sources = Mapping[Origin, Source]


class Writer:
    """Writes rows from names, sources and the file's points. What does not depend on the box is kept."""

    def __init__(self, space: Space, sources: Sources, points: FloatArray):
        self.space, self.points = space, points
        self.sources: Sources = {Origin.DOMAIN: space, **sources}
        self._known: dict[tuple[int, int, int], Numbers] = {}

    def and_from(self, origin: Origin, source: Source) -> Writer:
        """A writer that knows one more origin."""
        result = Writer(self.space, {**self.sources, origin: source}, self.points)
        result._known.update(self._known)
        return result

    def rows(self, names: Any, box: Box) -> Rows:
        """The named rows in the given box, after its faces."""
        hold("rows of the region", 32 * (len(names) + 2 * self.space.size) * (self.space.size + 1))
        spend_terms("rows of the region", 2 * len(names), box[0], box[1])
        return Rows.of(box, [self._numbers(tuple(name), box) for name in names.tolist()])

    def _numbers(self, name: tuple[int, int, int], box: Box) -> Numbers:
        if name in self._known:
            return self._known[name]
        origin, index, part = name
        if origin == Origin.ENVELOPE:
            linear, bound = self._envelope(index, part, box)
            spend("rows of the region", 20 * len(linear))
            return RATIONAL.array([*linear, bound])
        if origin not in self.sources:
            raise ValueError(f"rows of origin {origin} where there are none")
        linear, bound = self.sources[Origin(origin)].row(index, part, self.points)
        spend_terms("rows of the region", len(linear), linear, (bound,))
        self._known[name] = RATIONAL.array([*linear, bound])
        return self._known[name]

    def _envelope(self, index: int, part: int, box: Box) -> Row:
        space = self.space
        if index >= len(space.products) or part > 4:
            raise ValueError("no such product")
        x, y = space.products[index]
        (a, b), (c, d), linear = (box[0][x], box[1][x]), (box[0][y], box[1][y]), [ZERO] * space.size
        if part == 4 and x != y:
            raise ValueError("a tangent in the middle is for squares")
        # ∓(x − s)(y − t) ≤ 0
        middle = (a + b) / 2
        s, t, sign = [(a, c, -1), (b, d, -1), (b, c, 1), (a, d, 1), (middle, middle, -1)][part]
        linear[len(space.free) + index] += sign
        linear[x] -= sign * t
        linear[y] -= sign * s
        return linear, -sign * s * t


class Ends:
    """Rows from bounds of polynomials: of events, or of expressions whose bounds were proved before."""

    def __init__(self, space: Space, polynomials: Sequence[Polynomial | None], lower: Any, upper: Any):
        self.space, self.polynomials, self.lower, self.upper = space, polynomials, lower, upper

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        polynomial = self.polynomials[index] if index < len(self.polynomials) and part in (0, 1) else None
        if polynomial is None:
            raise ValueError("no such event or expression")
        end = Fraction(float((self.lower if part else self.upper)[index]))
        linear, constant = self.space.form(polynomial, end)  # at most 0, or at least
        return ([-a for a in linear], constant) if part else (linear, -constant)


@dataclass(frozen=True, eq=False)
class Statements:
    """What holds of the true parameters, as a check and as what rows are written from.

    `ends`: what events say of expressions. `support`: an ellipsoid bounds directions by itself.
    `slab`: the bets whose rows are written in stages. `planned`: a likelihood's pilot follows from a plan.
    """

    check: Check
    sources: Sources = field(default_factory=dict)
    ends: Mapping[tuple[int, int], Fraction] = field(default_factory=dict)
    support: Support | None = None
    slab: Slab | None = None
    planned: bool = False


def point_of(points: FloatArray, index: int, part: int) -> FloatArray:
    """The point that a tangent's name means."""
    if not 0 <= index < len(points) or part != 0:
        raise ValueError("no such tangent")
    point: FloatArray = points[index]
    return point
