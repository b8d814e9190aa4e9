"""Do the bounds of every expression contain its true value, given that the statistics hold?

Each end follows from one of these:

* f is a number, or the end is 0 or 1, or it was assumed (the smallest probability of what can happen);
* an event's interval: f = g/m or f = (1 − g)/m;
* a basis of the region (`tightrope.certificate.region.duality`);
* the range of f over the domain's box, or over the region's box where it was shrunk.

The region's box is shrunk in stages: every new bound follows from a basis of the rows in the old box, from
the old box, or from the new bounds of a product's factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.certificate.hints import RegionHints
from tightrope.certificate.problem import Polynomial
from tightrope.certificate.region.coordinates import Box, Space
from tightrope.certificate.region.duality import Rows, upper_bounds
from tightrope.certificate.region.polynomials import Interval, is_constant, polynomial_range, product_range
from tightrope.certificate.region.rows import Writer
from tightrope.numerics.arrays import FloatArray

Links = Mapping[int, Sequence[tuple[int, int, bool]]]
"""For every expression the events (number, multiplicity, flipped) that speak of it."""

Ends = dict[tuple[int, int], Fraction]
"""Proved bounds by (expression, side); side 1 is the upper one."""


def shrunk_box(writer: Writer, names: Any, hints: RegionHints) -> tuple[Box, str | None]:
    """The region's box after all stages, and what is wrong with one of them."""
    n, space = writer.n, writer.space
    box = space.start_box()
    directions = n.zeros((2 * space.size, space.size))
    for j in range(space.size):
        directions[2 * j, j], directions[2 * j + 1, j] = 1, -1
    for stage in range(len(hints.box_lower)):
        best = n.fractions(upper_bounds(writer.rows(names, box), directions, hints.box_basis[stage]))
        claimed = _exact_list(hints.box_lower[stage]), _exact_list(hints.box_upper[stage])
        for j in range(space.size):
            low, high = max(-best[2 * j + 1], box[0][j]), min(best[2 * j], box[1][j])
            if j >= len(space.free):
                left, right = space.products[j - len(space.free)]
                factors = [(claimed[0][i], claimed[1][i]) for i in (left, right)]
                least, most = product_range(factors[0], factors[1], left == right)
                low, high = max(low, least), min(high, most)
            if claimed[0][j] > low or claimed[1][j] < high:
                return box, f"stage {stage}: the box of coordinate {j} does not follow"
        box = claimed
    return box, None


def _exact_list(values: FloatArray) -> list[Fraction]:
    return [Fraction(value) for value in values.tolist()]


def proved_by_bases(rows: Rows, space: Space, polynomials: list[Polynomial], hints: RegionHints) -> Ends:
    """The bounds that the listed bases prove."""
    n, ends = rows.n, Ends()
    names = list(zip(hints.bound_expression.tolist(), hints.bound_side.tolist(), strict=True))
    if any(e >= len(polynomials) for e, _ in names):
        raise ValueError("a bound of an expression that is not there")
    forms = [space.affine(polynomials[e]) for e, _ in names]
    if not forms:
        return ends
    directions = n.array(
        [[a if side else -a for a in form] for (form, _), (_, side) in zip(forms, names, strict=True)]
    )
    best = upper_bounds(rows, directions, hints.bound_basis)
    best = best + 4 * n.epsilon * (np.abs(directions) * rows.reach).sum(axis=1)
    for name, (_, constant), value in zip(names, forms, n.fractions(best), strict=True):
        end = constant + (value if name[1] else -value)
        known = ends.get(name, end)
        ends[name] = min(known, end) if name[1] else max(known, end)
    return ends


class Bounds:
    """What is proved of the ends of expressions; `bases` and `box` are added when they are known."""

    def __init__(
        self, space: Space, polynomials: list[Polynomial], links: Links, lower: Any = (), upper: Any = ()
    ):
        self.space, self.polynomials, self.links = space, polynomials, links
        self.event_lower, self.event_upper = lower, upper
        self.bases: Ends = {}
        self.box: Box | None = None
        self._ranges: dict[int, Interval] = {}

    def holds(self, expression: int, side: int, end: Fraction, without_region: bool = False) -> bool:
        """Whether the true value of the expression is on the right side of this end."""
        ways = (self.plainly, self._by_event) if without_region else self._ways
        found = (proved for way in ways if (proved := way(expression, side)) is not None)
        return any(proved <= end if side else end <= proved for proved in found)

    def proved(self, expression: int, side: int) -> Fraction:
        """The best end that is proved."""
        found = [proved for way in self._ways if (proved := way(expression, side)) is not None]
        best: Fraction = min(found) if side else max(found)
        return best

    @property
    def _ways(self) -> Any:
        return self.plainly, self._by_event, lambda e, side: self.bases.get((e, side)), self._by_range

    def plainly(self, expression: int, side: int) -> Fraction | None:
        polynomial = self.polynomials[expression]
        return polynomial.get((), Fraction(0)) if is_constant(polynomial) else Fraction(side)

    def _by_range(self, expression: int, side: int) -> Fraction:
        if expression not in self._ranges:
            polynomial, domain = self.polynomials[expression], self.space.domain
            low, high = polynomial_range(polynomial, domain.lower, domain.upper)
            if self.box is not None:
                least, most = polynomial_range(self.space.in_free(polynomial), *self.box)
                low, high = max(low, least), min(high, most)
            self._ranges[expression] = low, high
        return self._ranges[expression][side]

    def _by_event(self, expression: int, side: int) -> Fraction | None:
        found: list[Fraction] = []
        for event, times, flipped in self.links.get(expression, ()):
            ends = Fraction(float(self.event_lower[event])), Fraction(float(self.event_upper[event]))
            found.append((1 - ends[1 - side] if flipped else ends[side]) / times)
        if not found:
            return None
        return min(found) if side else max(found)
