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
* SPLIT       split `index` of a tree of cells, part 0 the half-space below it, part 1 the one above.

All are rational but for logarithms and roots, which are rounded to the safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction
from typing import Any, Protocol

from tightrope.certificate.format.fields import Polynomial
from tightrope.certificate.numbers import Arithmetic
from tightrope.certificate.region.coordinates import Box, Row, Space
from tightrope.certificate.region.duality import Rows
from tightrope.certificate.region.polynomials import ZERO


class Origin(IntEnum):
    DOMAIN = 0
    EVENT = 1
    ENVELOPE = 2
    CUT = 3
    L1 = 4
    EXPRESSION = 5
    TANGENT = 6
    SPLIT = 7


class Source(Protocol):
    """Whoever can write down the rows of an origin; a name that means nothing is a ValueError."""

    def row(self, index: int, part: int) -> Row: ...


class Writer:
    """Writes rows from names; `sources` may be added to."""

    def __init__(self, n: Arithmetic, space: Space, sources: dict[Origin, Source]):
        self.n, self.space, self.sources = n, space, sources
        self._domain = space.domain_rows()
        self._known: dict[tuple[int, int, int], Row] = {}

    def rows(self, names: Any, box: Box) -> Rows:
        """The named rows in the given box, after its faces."""
        return Rows.of(
            self.n, box, [self.row(origin, index, part, box) for origin, index, part in names.tolist()]
        )

    def row(self, origin: int, index: int, part: int, box: Box) -> Row:
        if origin == Origin.ENVELOPE:
            return self._envelope(index, part, box)
        if origin == Origin.EXPRESSION and origin in self.sources:  # what is proved may have become better
            return self.sources[Origin.EXPRESSION].row(index, part)
        name = (origin, index, part)
        if name not in self._known:
            if origin == Origin.DOMAIN:
                self._known[name] = self._of_domain(index, part)
            elif origin in self.sources:
                self._known[name] = self.sources[Origin(origin)].row(index, part)
            else:
                raise ValueError(f"rows of origin {origin} where there are none")
        return self._known[name]

    def _of_domain(self, index: int, part: int) -> Row:
        row = self._domain[2 * index + part] if part in (0, 1) and 2 * index < len(self._domain) else None
        if row is None:
            raise ValueError("no such row of the domain")
        return row

    def _envelope(self, index: int, part: int, box: Box) -> Row:
        space = self.space
        if index >= len(space.products) or part > 4:
            raise ValueError("no such product")
        x, y = space.products[index]
        z = len(space.free) + index
        linear = [ZERO] * space.size
        (a, b), (c, d) = (box[0][x], box[1][x]), (box[0][y], box[1][y])
        if part == 4:
            if x != y:
                raise ValueError("a tangent in the middle is for squares")
            linear[z], linear[x] = Fraction(-1), a + b
            return linear, (a + b) ** 2 / 4
        # sign·z + (slope of x)·x + (slope of y)·y ≤ constant
        sign, of_x, of_y, constant = [
            (-1, c, a, a * c),
            (-1, d, b, b * d),
            (1, -c, -b, -b * c),
            (1, -d, -a, -a * d),
        ][part]
        linear[z] += sign
        linear[x] += of_x
        linear[y] += of_y
        return linear, constant


class Ends:
    """Rows from bounds of polynomials: of events, or of expressions whose bounds were proved before."""

    def __init__(self, space: Space, polynomials: Sequence[Polynomial | None], lower: Any, upper: Any):
        self.space, self.polynomials, self.lower, self.upper = space, polynomials, lower, upper

    def row(self, index: int, part: int) -> Row:
        polynomial = self.polynomials[index] if index < len(self.polynomials) and part in (0, 1) else None
        if polynomial is None:
            raise ValueError("no such event or expression")
        linear, constant = self.space.affine(polynomial)
        if part == 0:
            return linear, Fraction(float(self.upper[index])) - constant
        return [-a for a in linear], constant - Fraction(float(self.lower[index]))
