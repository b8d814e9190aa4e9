"""What is proved of every expression, given that the statistics hold: its least and its largest value.

Each end is the best of these:

* f itself where it is a number, 0 or 1 otherwise;
* an event's interval: f = g/m or f = (1 − g)/m;
* what a basis of the region proves (`tightrope.certificate.region.duality`);
* the range of f over the domain's box, and over the region's box where it was shrunk.

The region's box is shrunk in stages: every new bound is the best of what a basis of the rows in the old box
proves, of the old bound, and of the new bounds of a product's factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tightrope.certificate.format.fields import Polynomials
from tightrope.certificate.hints import RegionHints
from tightrope.certificate.numbers import RATIONAL
from tightrope.certificate.region.coordinates import Box, Space
from tightrope.certificate.region.duality import Rows, upper_bounds
from tightrope.certificate.region.polynomials import ONE, ZERO, Interval, is_constant
from tightrope.certificate.region.rows import Writer
from tightrope.certificate.verdict import Contradiction
from tightrope.numerics.arrays import FloatArray, OffsetArray

Ends = dict[tuple[int, int], Fraction]
"""Proved bounds by (expression, side); side 1 is the upper one."""


def shrunk_box(writer: Writer, names: OffsetArray, hints: RegionHints) -> Box:
    """The region's box after all stages, no smaller than the file wants it."""
    (lower, upper), size = writer.space.start_box(), writer.space.size
    for basis in hints.box_basis.reshape(-1, 2 * size, size):
        lower, upper = next_box(writer, names, (lower, upper), basis)
    if any(a > b for a, b in zip(lower, upper, strict=True)):
        raise Contradiction("nothing is left of the box of parameters")
    if hints.box_lower is not None and hints.box_upper is not None:
        lower = [min(a, Fraction(b)) for a, b in zip(lower, hints.box_lower.tolist(), strict=True)]
        upper = [max(a, Fraction(b)) for a, b in zip(upper, hints.box_upper.tolist(), strict=True)]
    return lower, upper


def next_box(writer: Writer, names: OffsetArray, box: Box, basis: OffsetArray) -> Box:
    """The box after one more stage, in doubles where it became smaller."""
    rows = writer.rows(names, box)
    best = RATIONAL.up(upper_bounds(rows, rows.matrix[: 2 * rows.size], basis)).tolist()
    lower = [max(-Fraction(new), old) for new, old in zip(best[1::2], box[0], strict=True)]
    upper = [min(Fraction(new), old) for new, old in zip(best[::2], box[1], strict=True)]
    return writer.space.with_products(lower, upper)


def prove_by_bases(rows: Rows, space: Space, polynomials: Polynomials, hints: RegionHints) -> Ends:
    """The bounds that the listed bases prove."""
    ends = Ends()
    names = list(zip(hints.bound_expression.tolist(), hints.bound_side.tolist(), strict=True))
    if any(e >= len(polynomials) for e, _ in names):
        raise ValueError("a bound of an expression that is not there")
    near = [ZERO] * len(names) if hints.bound_near is None else [Fraction(c) for c in hints.bound_near]
    forms = [space.form(polynomials[e], c) for (e, _), c in zip(names, near, strict=True)]
    if not forms:
        return ends
    signed = [[a if side else -a for a in form] for (form, _), (_, side) in zip(forms, names, strict=True)]
    best = RATIONAL.fractions(upper_bounds(rows, RATIONAL.array(signed), hints.bound_basis))
    for name, (_, constant), value, c in zip(names, forms, best, near, strict=True):
        rest = constant + (value if name[1] else -value)
        end = space.end(polynomials[name[0]], c, rest, name[1])
        known = ends.get(name, end)
        ends[name] = min(known, end) if name[1] else max(known, end)
    return ends


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is proved of the ends of expressions: by events, by bases of a region, within its box."""

    space: Space
    polynomials: Polynomials
    events: Mapping[tuple[int, int], Fraction]
    bases: Ends
    box: Box | None
    over_domain: dict[tuple[int, bool], Interval] = field(default_factory=dict)
    _ranges: dict[tuple[int, bool], Interval] = field(default_factory=dict)

    def doubles(self, used: Sequence[int], rewards: bool = False) -> tuple[FloatArray, FloatArray]:
        """(lower, upper) of the expressions that are used, rounded outward; [0, 1] of all others."""
        lower, upper = np.zeros(len(self.polynomials)), np.ones(len(self.polynomials))
        lower[used] = -RATIONAL.up(np.array([-self.proved(e, 0, rewards) for e in used]))
        upper[used] = RATIONAL.up(np.array([self.proved(e, 1, rewards) for e in used]))
        return lower, upper

    def proved(self, expression: int, side: int, is_reward: bool = False) -> Fraction:
        """The best end that is proved; of a reward, which is no probability, by bases and its ranges."""
        end = self._range(expression, is_reward)[side]
        found = [end, self.bases[expression, side]] if (expression, side) in self.bases else [end]
        found += [] if is_reward else self.without_region(expression, side)
        return min(found) if side else max(found)

    def without_region(self, expression: int, side: int) -> list[Fraction]:
        """What is plain, and what events say."""
        polynomial = self.polynomials[expression]
        plain = polynomial.get((), ZERO) if is_constant(polynomial) else (ONE if side else ZERO)
        return [plain, self.events[expression, side]] if (expression, side) in self.events else [plain]

    def _range(self, expression: int, is_reward: bool) -> Interval:
        name = expression, is_reward
        if name not in self._ranges:
            polynomial, domain = self.polynomials[expression], self.space.domain
            if name not in self.over_domain:  # the same at every stage
                self.over_domain[name] = self.space.range(polynomial, (domain.lower, domain.upper), is_reward)
            low, high = self.over_domain[name]
            if self.box is not None:
                least, most = self.space.range(polynomial, self.box, is_reward, self.space.in_free)
                low, high = max(low, least), min(high, most)
            self._ranges[name] = low, high
        return self._ranges[name]
