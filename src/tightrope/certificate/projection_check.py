"""Do the bounds of every transition contain its true probability, given that the statistics hold?

The bounds of all transitions with one expression f have to contain f at the true parameters. Each end follows
from one of these, tried in this order:

* f is a number, or the end is 0 or 1;
* an event's interval: f = g/m or f = (1 − g)/m;
* a basis of the region (`tightrope.certificate.support_check`);
* the range of f over the domain's box, or over the region's box where it was shrunk.

The region's box is shrunk in stages: every new bound follows from a basis of the rows in the old box, from
the old box, or from the new bounds of a product's factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from tightrope.certificate.events_check import outcomes
from tightrope.certificate.inner import EPSILON, as_fraction
from tightrope.certificate.learning import Data, RegionProof
from tightrope.certificate.polynomials import (
    Key,
    Polynomial,
    complement,
    is_constant,
    key,
    scaled,
    substituted,
)
from tightrope.certificate.region_rows import RowWriter
from tightrope.certificate.signatures import Signatures
from tightrope.certificate.space import Box, Space, polynomial_range, product_range
from tightrope.certificate.support_check import (
    Rows,
    exact_upper_bound,
    extended,
    upper_bounds,
)
from tightrope.numerics.arrays import FloatArray

Link = tuple[int, int, bool]
"""(event, multiplicity, flipped)."""

Way = Callable[[int, int], Fraction | None]
"""What is proved of an end of an expression in one way."""

Ends = dict[tuple[int, int], Fraction]
"""Proved bounds by (expression, side); side 1 is the upper one."""


def shrunk_box(writer: RowWriter, proof: RegionProof, exactly: bool) -> tuple[Box, str | None]:
    """The region's box after all stages, and what is wrong with one of them."""
    space = writer.space
    box = space.start_box()
    directions = np.zeros((2 * space.size, space.size), dtype=np.longdouble)
    for j in range(space.size):
        directions[2 * j, j], directions[2 * j + 1, j] = 1, -1
    for stage in range(len(proof.box_lower)):
        claimed = [
            [Fraction(float(v)) for v in proof.box_lower[stage]],
            [Fraction(float(v)) for v in proof.box_upper[stage]],
        ]
        rows = writer.rows(proof.row, box)
        if exactly:
            best = [
                exact_upper_bound(rows, [as_fraction(v) for v in g], b)
                for g, b in zip(directions, proof.box_basis[stage].tolist(), strict=True)
            ]
        else:
            best = [as_fraction(v) for v in upper_bounds(rows, directions, proof.box_basis[stage])]
        for j in range(space.size):
            high = min(best[2 * j], box[1][j])
            low = max(-best[2 * j + 1], box[0][j])
            product = j - (space.size - len(space.products))
            if product >= 0:
                left, right = space.products[product]
                least, most = product_range(
                    (claimed[0][left], claimed[1][left]),
                    (claimed[0][right], claimed[1][right]),
                    left == right,
                )
                low, high = max(low, least), min(high, most)
            if claimed[0][j] > low or claimed[1][j] < high:
                return box, f"stage {stage}: the box of coordinate {j} does not follow"
        box = (claimed[0], claimed[1])
    return box, None


def proved_by_bases(
    rows: Rows, space: Space, polynomials: list[Polynomial], proof: RegionProof, exactly: bool
) -> Ends:
    """The bounds that the listed bases prove."""
    ends: Ends = {}
    count = len(proof.bound_expression)
    if count == 0:
        return ends
    sign = np.where(proof.bound_side == 1, 1, -1)
    form_of = {e: space.affine(polynomials[e]) for e in set(proof.bound_expression.tolist())}
    forms = [form_of[e] for e in proof.bound_expression.tolist()]
    reach = np.maximum(np.abs(rows.lower), np.abs(rows.upper))
    directions = np.array([extended(a) for a, _ in forms], dtype=np.longdouble) * sign[:, None]
    if exactly:
        best = [
            exact_upper_bound(rows, [int(s) * a for a in form], b)
            for s, (form, _), b in zip(sign, forms, proof.bound_basis.tolist(), strict=True)
        ]
    else:
        rounded = upper_bounds(rows, directions, proof.bound_basis)
        rounded = rounded + 2 * EPSILON * (np.abs(directions) * reach).sum(axis=1)
        best = [as_fraction(v) for v in rounded]
    for i in range(count):
        value = int(sign[i]) * best[i] + forms[i][1]
        name = (int(proof.bound_expression[i]), int(proof.bound_side[i]))
        known = ends.get(name)
        better = known is None or (value < known if name[1] else value > known)
        if better:
            ends[name] = value
    return ends


def event_links(data: Data, signatures: Signatures, polynomials: list[Polynomial]) -> dict[int, list[Link]]:
    """Which events speak of an expression."""
    assert data.event_expression is not None and data.event_multiplicity is not None
    events = [
        scaled(polynomials[int(e)], int(m))
        for e, m in zip(data.event_expression, data.event_multiplicity, strict=True)
    ]
    direct: dict[Key, int] = {key(event): i for i, event in enumerate(events)}
    opposite: dict[Key, int] = {key(complement(event)): i for i, event in enumerate(events)}
    _, expression, multiplicity, _ = outcomes(signatures.start, signatures.expression, signatures.counts)
    pairs = np.unique(np.stack([expression, multiplicity], axis=1), axis=0)
    links: dict[int, list[Link]] = {}
    for e, m in pairs.tolist():
        if is_constant(polynomials[e]):
            continue
        name = key(scaled(polynomials[e], m))
        if name in direct:
            links.setdefault(e, []).append((direct[name], m, False))
        if name in opposite:
            links.setdefault(e, []).append((opposite[name], m, True))
    return links


class Bounds:
    """Which ends of expressions are proved."""

    def __init__(self, data: Data, space: Space, polynomials: list[Polynomial], links: dict[int, list[Link]]):
        self.data, self.space, self.polynomials, self.links = data, space, polynomials, links
        self.bases: Ends = {}
        self.box: Box | None = None
        self._ranges: dict[int, tuple[Fraction, Fraction]] = {}

    def holds(self, expression: int, side: int, end: float) -> bool:
        """Whether the true value of the expression is on the right side of this end."""
        ways = (self._plainly, self._by_event, self._by_basis, self._by_range)
        return self._reached(ways, expression, side, end)

    def given(self, expression: int, side: int, end: float) -> bool:
        """Whether this end follows without the region: it is plain, or an event's."""
        return self._reached((self._plainly, self._by_event), expression, side, end)

    @staticmethod
    def _reached(ways: Sequence[Way], expression: int, side: int, end: float) -> bool:
        value = Fraction(end)
        return any(
            proved is not None and (proved <= value if side else value <= proved)
            for proved in (way(expression, side) for way in ways)
        )

    def proved(self, expression: int, side: int) -> Fraction:
        """The best end that is proved."""
        ways = (self._plainly, self._by_event, self._by_basis, self._by_range)
        found = [proved for way in ways if (proved := way(expression, side)) is not None]
        return min(found) if side else max(found)

    def _plainly(self, expression: int, side: int) -> Fraction | None:
        polynomial = self.polynomials[expression]
        if is_constant(polynomial):
            return polynomial.get((), Fraction(0))
        if side:
            return Fraction(1)
        return Fraction(self.data.assumed_support or 0)

    def _by_basis(self, expression: int, side: int) -> Fraction | None:
        return self.bases.get((expression, side))

    def _by_range(self, expression: int, side: int) -> Fraction | None:
        if expression not in self._ranges:
            polynomial = self.polynomials[expression]
            low, high = polynomial_range(polynomial, self.space.lower, self.space.upper)
            if self.box is not None:
                inside = substituted(polynomial, self.space.substitution)
                least, most = polynomial_range(inside, *self.box)
                low, high = max(low, least), min(high, most)
            self._ranges[expression] = low, high
        return self._ranges[expression][side]

    def _by_event(self, expression: int, side: int) -> Fraction | None:
        lower, upper = self.data.event_lower, self.data.event_upper
        found: list[Fraction] = []
        for event, times, flipped in self.links.get(expression, ()):
            assert lower is not None and upper is not None
            low, high = Fraction(float(lower[event])), Fraction(float(upper[event]))
            if flipped:
                low, high = 1 - high, 1 - low
            found.append((high if side else low) / times)
        if not found:
            return None
        return min(found) if side else max(found)


def needed_ends(
    data: Data, lower: FloatArray, upper: FloatArray, count: int
) -> tuple[FloatArray, FloatArray]:
    """For every expression the largest lower and the smallest upper bound of its transitions."""
    low, high = np.zeros(count), np.ones(count)
    np.maximum.at(low, data.expression, lower)
    np.minimum.at(high, data.expression, upper)
    return low, high
