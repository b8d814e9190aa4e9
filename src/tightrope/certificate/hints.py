"""Hints about the sets of a learned result: rows, points and bases, of which bad ones prove less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.certificate.format import fields
from tightrope.numerics.arrays import FloatArray, OffsetArray

if TYPE_CHECKING:
    from tightrope.certificate.coupled.hints import CoupledHints

MOST_CODES = 2**31
MOST_ENTRIES = 5 * 10**7
MOST_WORK = 10**9
MOST_SHARES = 4096
"""Times the counts of `tightrope.certificate.evidence.MOST_COUNTS` they stay within int64."""


@dataclass(frozen=True, eq=False)
class RegionHints:
    """Rows of the region and the bases behind what was projected from it.

    * `row`: (origin, index, part), see `tightrope.certificate.region.rows`; `point`: points of tangents to
      the likelihood, directions of tangents to an ellipsoid.
    * A basis lists as many rows as there are coordinates: 2j is x_j ≤ upper_j, 2j + 1 is x_j ≥ lower_j, then
      those of `row` in their order.
    * `box_basis`: stage by stage, for the upper then the lower end of every coordinate. After the last stage
      the box is made at least as wide as `box_lower`, `box_upper`, where these are given.
    * bound_basis[j] proves a bound of expression bound_expression[j]: the upper one where bound_side[j] is 1.
      Of a quotient f/g it bounds f − c·g, c = bound_near[j]; 0 where these are not given.
    * `choice_basis`: the bases that `lower_basis` and `upper_basis` of a claim's hints refer to.
    """

    row: OffsetArray = fields.integers("rows", "3")
    point: FloatArray = fields.reals("points", "SIZE")
    box_basis: OffsetArray = fields.integers("stages", "SIZE", most=MOST_CODES)
    bound_expression: OffsetArray = fields.integers("bounds", most=MOST_CODES)
    bound_side: OffsetArray = fields.integers("bounds", most=1)
    bound_basis: OffsetArray = fields.integers("bounds", "SIZE", most=MOST_CODES)
    choice_basis: OffsetArray = fields.integers("bases", "SIZE", most=MOST_CODES)
    box_lower: FloatArray | None = fields.reals("SIZE", optional=True)
    box_upper: FloatArray | None = fields.reals("SIZE", optional=True)
    bound_near: FloatArray | None = fields.reals("bounds", optional=True)

    def trouble(self) -> str | None:
        size = self.point.shape[1]
        bases = max(2 * size, len(self.bound_basis), len(self.choice_basis))
        if len(self.row) * size > MOST_ENTRIES or bases * size**2 > MOST_ENTRIES:
            return "there are more rows or bases than this program checks"
        if size == 0 or len(self.box_basis) % (2 * size) != 0:
            return "there are no coordinates, or a stage is not whole"
        if len(self.box_basis) * (len(self.row) + 1) * size > 2 * MOST_WORK:
            return "the box is shrunk in more stages than this program checks"
        return None


@dataclass(frozen=True, eq=False)
class SlabHints:
    """A stage of a slab's rows: `region` proves bounds of expressions, with rows of earlier stages; each side
    that is bet on has a point near which its row shall be tight, and a share for every scale of its bets.
    """

    region: RegionHints = fields.part(RegionHints)
    point: FloatArray = fields.reals("sides", "SIZE")
    share: OffsetArray = fields.integers("sides", "scales", most=2**20)


@dataclass(frozen=True, eq=False)
class LearnedHints:
    """Intervals of events (of transitions, where these share δ), of rewards by their costs, shares of pilots
    of 0, 10, 20, … batches where no plan decides on one, a slab's stages, proofs from a region."""

    lower: FloatArray | None = fields.reals("intervals", least=0.0, most=1.0, optional=True)
    upper: FloatArray | None = fields.reals("intervals", least=0.0, most=1.0, optional=True)
    cost_lower: FloatArray | None = fields.reals("rewards", optional=True)
    cost_upper: FloatArray | None = fields.reals("rewards", optional=True)
    pilot_share: OffsetArray | None = fields.integers("pilots", most=MOST_SHARES, optional=True)
    region: RegionHints | None = fields.part(RegionHints, optional=True)
    coupled: tuple[CoupledHints, ...] = fields.parts("coupled.hints.CoupledHints", 4)
    slab: tuple[SlabHints, ...] = fields.parts(SlabHints, 8)

    def trouble(self) -> str | None:
        if (self.lower is None) != (self.upper is None):
            return "intervals without one of their ends"
        if self.pilot_share is not None and not 0 < self.pilot_share.astype(object).sum() <= MOST_SHARES:
            return "shares of pilots that are none, or too many"
        crossed = self.lower is not None and self.upper is not None and (self.lower > self.upper).any()
        return "an interval whose lower end is above the upper one" if crossed else None
