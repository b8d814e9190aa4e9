"""What is decided before looking at the data: which region, which sets, which intervals.

Whatever is left open is decided here from the model and from how the data were sampled, never from
what was seen: a choice made after looking would void the confidence level.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.data.counts import Counts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.region.build import RegionOptions
from tightrope.region.region import RegionKind
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.events import Budget
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.uncertainty.sets import SetsKind

MANY_EXPRESSIONS = 8
"""From so many distinct unknown expressions on the likelihood region is the tighter one."""

MOST_VERTEX_DIMENSIONS = 7
"""Up to here the vertices of a region are enumerated, and rectangular sets cost no linear programs."""


@dataclass(frozen=True)
class LearnOptions:
    """None leaves a choice to `decide`."""

    region: RegionKind | None = None
    sets: SetsKind | None = None
    interval: IntervalMethod | None = None
    budget: Budget = Budget.TIED
    ellipsoid: EllipsoidVersion = EllipsoidVersion.SOUND
    intersect: bool = False
    fallback: bool = True
    precision: float = 1e-6
    assume_support: float | None = None
    seconds: float = float("inf")


@dataclass(frozen=True)
class Decisions:
    """The choices made, each default with its reason in one line."""

    region: RegionKind | None
    sets: SetsKind
    interval: IntervalMethod
    reasons: tuple[str, ...]

    def region_options(self, options: LearnOptions) -> RegionOptions:
        return RegionOptions(interval=self.interval, budget=options.budget, ellipsoid=options.ellipsoid)


def decide(model: ParametricMDP, counts: Counts, options: LearnOptions) -> Decisions:
    """Fill in what `options` leaves open. Reads the model and the sampling design only."""
    reasons: list[str] = []
    unknown = len(model.expressions.nonconstant)
    sets = options.sets
    if sets is None:
        size = Coordinates.of(model.expressions, model.parameters).size
        small = size <= MOST_VERTEX_DIMENSIONS
        sets = SetsKind.RECTANGULAR if small else SetsKind.EXPRESSION
        why = "the tightest sets, and cheap" if small else "vertices would be too many for rectangular sets"
        reasons.append(f"sets {sets.value}: {size} coordinates, {why}")
    region = options.region
    if sets in (SetsKind.UNTIED, SetsKind.TIED):
        region = None
    elif region is None:
        batched = counts.batches is not None and len(counts.batches) > 1
        if batched and unknown >= MANY_EXPRESSIONS:
            region = RegionKind.LIKELIHOOD
            reasons.append(f"region likelihood: time-ordered batches and {unknown} unknown expressions")
        else:
            region = RegionKind.POLYTOPE
            why = "few unknown expressions" if batched else "the counts come without time-ordered batches"
            reasons.append(f"region polytope: {why}")
    interval = options.interval
    if interval is None:
        tied = sets is not SetsKind.UNTIED
        fixed = counts.design.fixed_visits(tied)
        interval = IntervalMethod.CLOPPER_PEARSON if fixed else IntervalMethod.BETA_BINOMIAL
        if region in (None, RegionKind.POLYTOPE):
            why = (
                "visits were fixed in advance"
                if fixed
                else f"valid for {counts.design.kind.value} data, where visits depend on outcomes"
            )
            reasons.append(f"interval {interval.value}: {why}")
    return Decisions(region, sets, interval, tuple(reasons))
