"""Rows a·x ≤ b that hold at the true coordinates, written down from their origins.

The certificate does not carry rows, it names them; they are worked out here from the data. A name is
(origin, index, part):

* DOMAIN    parameter `index` within its bounds (part 0 upper, 1 lower), or constraint `index` − parameters
            (part 1: the other side of an equality).
* EVENT     event `index` is at most its upper bound (part 0), at least its lower one (part 1).
* ENVELOPE  product `index`, z = x·y in the current box: parts 0 to 3 are McCormick's (x − x̲)(y − y̲) ≥ 0,
            (x̄ − x)(ȳ − y) ≥ 0, (x̄ − x)(y − y̲) ≥ 0, (x − x̲)(ȳ − y) ≥ 0; part 4 is (x − m)² ≥ 0 for a
            square, m the middle.
* CUT       the likelihood's tangent at point `index` (`tightrope.certificate.likelihood_check`).
* L1        choice `index`, the set of outcomes in the bits of `part`: P(A) ≤ observed share + ε/2, with
            Weissman's ε for all visits to choices of that signature (`tightrope.certificate.balls`).
* TANGENT   the ellipsoid in the direction that the file lists as cut point `index`
            (`tightrope.certificate.ellipsoid_check`).
* EXPRESSION expression `index` is at most the least upper bound of its transitions (part 0), at least the
            largest lower one (part 1). Only for what comes after these bounds were proved.
* SPLIT     split `index` of a tree of cells, part 0 the half-space below it, part 1 the one above
            (`tightrope.certificate.coupled_cells`).

All are rational but for logarithms and roots, which are rounded to the safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction
from typing import Protocol

import numpy as np

from tightrope.certificate.inner import EPSILON, Extended
from tightrope.certificate.learning import Data, Table
from tightrope.certificate.polynomials import Polynomial, scaled
from tightrope.certificate.space import Box, Space
from tightrope.certificate.support_check import Rows, extended

Row = tuple[list[Fraction], Fraction]


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
    """Whoever can write down rows of an origin of its own."""

    def row(self, index: int, part: int) -> Row: ...


class RowWriter:
    """Writes rows from names."""

    def __init__(
        self,
        data: Data,
        space: Space,
        polynomials: Sequence[Polynomial],
        others: dict[Origin, Source] | None = None,
    ):
        self.data, self.space, self.polynomials = data, space, polynomials
        self.others = {} if others is None else others
        self._known: dict[tuple[int, int, int], Row] = {}
        self._images: dict[tuple[int, int, int], Extended] = {}

    def rows(self, names: Table, box: Box) -> Rows:
        """The named rows in the given box, in longdouble, bounds raised by what rounding may hide."""
        reach = extended([max(abs(a), abs(b)) for a, b in zip(*box, strict=True)])
        table = np.zeros((len(names), self.space.size + 1), dtype=np.longdouble)
        for number, (origin, index, part) in enumerate(names.tolist()):
            table[number] = self._rounded(origin, index, part, box)
        matrix, bound = table[:, :-1], table[:, -1]
        bound = bound + EPSILON * (2 * np.abs(bound) + 2 * (np.abs(matrix) * reach).sum(axis=1) * (1 + 1e-6))
        return Rows(matrix, bound, _down(extended(box[0])), _up(extended(box[1])))

    def _rounded(self, origin: int, index: int, part: int, box: Box) -> Extended:
        """A row with its bound in longdouble; only those of envelopes depend on the box."""
        if origin == Origin.ENVELOPE:
            linear, bound = self.row(origin, index, part, box)
            return extended([*linear, bound])
        name = (origin, index, part)
        if name not in self._images:
            linear, bound = self.row(origin, index, part, box)
            self._images[name] = extended([*linear, bound])
        return self._images[name]

    def row(self, origin: int, index: int, part: int, box: Box) -> Row:
        if origin == Origin.ENVELOPE:
            return self._envelope(index, part, box)
        name = (origin, index, part)
        if name not in self._known:
            if origin == Origin.DOMAIN:
                self._known[name] = self._domain(index, part)
            elif origin == Origin.EVENT:
                self._known[name] = self._event(index, part)
            else:
                self._known[name] = self.others[Origin(origin)].row(index, part)
        return self._known[name]

    def _domain(self, index: int, part: int) -> Row:
        space = self.space
        if not 0 <= index < space.parameters + len(space.constraints) or part not in (0, 1):
            raise ValueError("no such row of the domain")
        if index < space.parameters:
            linear, constant = space.parameter(index)
            bound = space.upper[index] if part == 0 else space.lower[index]
        else:
            coefficients, bound, is_equality = space.constraints[index - space.parameters]
            if part == 1 and not is_equality:
                raise ValueError("an inequality has one side")
            polynomial: Polynomial = {((i, 1),): c for i, c in enumerate(coefficients) if c}
            linear, constant = space.affine(polynomial)
        return (linear, bound - constant) if part == 0 else ([-a for a in linear], constant - bound)

    def _event(self, index: int, part: int) -> Row:
        data = self.data
        assert data.event_expression is not None and data.event_multiplicity is not None
        assert data.event_lower is not None and data.event_upper is not None
        if not 0 <= index < len(data.event_expression) or part not in (0, 1):
            raise ValueError("no such event")
        polynomial = self.polynomials[int(data.event_expression[index])]
        linear, constant = self.space.affine(scaled(polynomial, int(data.event_multiplicity[index])))
        if part == 0:
            return linear, Fraction(float(data.event_upper[index])) - constant
        return [-a for a in linear], constant - Fraction(float(data.event_lower[index]))

    def _envelope(self, index: int, part: int, box: Box) -> Row:
        if not 0 <= index < len(self.space.products):
            raise ValueError("no such product")
        x, y = self.space.products[index]
        z = self.space.size - len(self.space.products) + index
        linear = [Fraction(0)] * self.space.size
        (a, b), (c, d) = (box[0][x], box[1][x]), (box[0][y], box[1][y])
        if part == 4:
            if x != y:
                raise ValueError("a tangent in the middle is for squares")
            middle = (a + b) / 2
            linear[z] = Fraction(-1)
            linear[x] = 2 * middle
            return linear, middle * middle
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


class ExpressionEnds:
    """Rows from bounds of expressions that were proved before."""

    def __init__(
        self, used: Table, space: Space, polynomials: Sequence[Polynomial], ends: tuple[Table, Table]
    ):
        self.space, self.polynomials, self.ends = space, polynomials, ends
        self.used = np.zeros(len(polynomials), dtype=np.bool_)
        self.used[used] = True

    def row(self, index: int, part: int) -> Row:
        if not 0 <= index < len(self.used) or not self.used[index] or part not in (0, 1):
            raise ValueError("no such expression")
        linear, constant = self.space.affine(self.polynomials[index])
        if part == 0:
            return linear, Fraction(float(self.ends[1][index])) - constant
        return [-a for a in linear], constant - Fraction(float(self.ends[0][index]))


def _up(values: Extended) -> Extended:
    return np.asarray(values + 2 * EPSILON * np.abs(values))


def _down(values: Extended) -> Extended:
    return np.asarray(values - 2 * EPSILON * np.abs(values))
