"""Link 1 of a learned result: what the data say of the true parameters, and what that is said about."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.format.fields import Polynomials
from tightrope.certificate.numbers import Arithmetic
from tightrope.certificate.problem import Problem
from tightrope.certificate.region.coordinates import Space
from tightrope.certificate.region.duality import Support
from tightrope.certificate.region.polynomials import Terms, add, is_constant
from tightrope.certificate.region.projection import Ends as ProvedEnds
from tightrope.certificate.region.rows import Sources
from tightrope.certificate.statistics.outcomes import Ints, Outcomes
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import BoolArray

if TYPE_CHECKING:
    from tightrope.certificate.statistics.slab import Slab


@dataclass(frozen=True, eq=False)
class Setting:
    """A parametric problem with its coordinates, and what was seen of its outcomes; `expression` is that of
    each transition."""

    n: Arithmetic
    problem: Problem
    polynomials: Polynomials
    expression: Ints
    space: Space
    outcomes: Outcomes

    @cached_property
    def unknown(self) -> BoolArray:
        """Which polynomials are no numbers."""
        return np.array([not is_constant(polynomial) for polynomial in self.polynomials], dtype=np.bool_)

    def distributions(self) -> Check:
        """Do the probabilities of every choice sum to 1, as functions?"""
        of, name = self.outcomes, "probabilities of every choice sum to 1"
        members: list[list[int]] = np.stack([of.expression, of.multiplicity], axis=1).tolist()
        if not all(0 <= self.polynomials[e].get((), 0) <= 1 for e, _ in members if not self.unknown[e]):
            return Check(name, False, "a number among them is no probability")
        for a, b in pairwise(of.start.tolist()):
            total: Terms = {}
            for e, m in members[a:b]:
                total = add(total, self.polynomials[e], m)
            if self.space.complement(total):
                return Check(name, False, f"expressions {[e for e, _ in members[a:b]][:20]} do not sum to 1")
        return Check(name, True, f"{len(of.start) - 1} groups of choices, in rationals")


@dataclass(frozen=True, eq=False)
class Statements:
    """What holds of the true parameters, as a check and as what rows are written from.

    `ends`: what events say of expressions. `support`: an ellipsoid bounds directions by itself.
    `slab`: the bets whose rows are written in stages. `planned`: a likelihood's pilot follows from a plan.
    """

    check: Check
    sources: Sources = field(default_factory=dict)
    ends: ProvedEnds = field(default_factory=dict)
    support: Support | None = None
    slab: Slab | None = None
    planned: bool = False
