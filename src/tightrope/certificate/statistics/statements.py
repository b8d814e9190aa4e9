"""Link 1 of a learned result: what the data say of the true parameters, and what that is said about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tightrope.certificate.format.fields import Polynomials
from tightrope.certificate.numbers import Arithmetic
from tightrope.certificate.problem import Problem
from tightrope.certificate.region.coordinates import Space
from tightrope.certificate.region.duality import Support
from tightrope.certificate.region.projection import Links
from tightrope.certificate.region.rows import Sources
from tightrope.certificate.statistics.outcomes import Ints, Outcomes
from tightrope.certificate.verdict import Check

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


@dataclass(frozen=True, eq=False)
class Statements:
    """What holds of the true parameters, as a check and as what rows are written from.

    `links`: the events that speak of each expression. `support`: an ellipsoid bounds directions by itself.
    `slab`: the bets whose rows are written in stages. `planned`: a likelihood's pilot follows from a plan.
    """

    check: Check
    sources: Sources = field(default_factory=dict)
    links: Links = field(default_factory=dict)
    support: Support | None = None
    slab: Slab | None = None
    planned: bool = False
