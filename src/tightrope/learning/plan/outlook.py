"""What to expect of more data, for the region and the sets that are used.

The gap is made of directions in parameter space (`tightrope.design.directions`); how wide they will be
follows for likelihood regions from the information that is collected (`tightrope.design.forecast`), for the
others from regions of drawn counts (`tightrope.design.sampled`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.design.directions import Directions, expression_directions, find_directions
from tightrope.design.forecast import Curve, Forecast, Past
from tightrope.design.information import Information
from tightrope.design.plausible import plausible_points
from tightrope.design.sampled import SampledCurve
from tightrope.design.stage import Stage
from tightrope.io.policy import Policy
from tightrope.learning.options import LearnOptions
from tightrope.learning.result import LearningResult
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.build import build_region
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Region, RegionKind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.outcomes import Outcomes


class Outlook:
    """One result, and the policies whose intervals count: that of one, or of two the mean (the distance
    between guarantee and best possible value is half of each, to first order).
    """

    def __init__(self, result: LearningResult, counts: Counts, stage: Stage, policies: Sequence[Policy]):
        self.result, self.counts, self.stage, self.policies = result, counts, stage, policies

    def directions(self, information: Information | None = None) -> Directions | None:
        """What the gap is made of, at the estimate or elsewhere; None where a value is infinite there."""
        at = self.stage.information if information is None else information
        found = [self._directions_of(policy, at) for policy in self.policies]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        if len(known) == 1:
            return known[0]
        return Directions.together(*((1.0 / len(known), one) for one in known))

    @cached_property
    def past(self) -> Past | None:
        """The data so far, batch by batch, where the region is made of batches."""
        if self.result.decisions.region is not RegionKind.LIKELIHOOD:
            return None
        region = self.result.region
        evidence = region.evidence if isinstance(region, Polytope) else None
        return Past.of(self.stage.information, self.counts, evidence)

    @cached_property
    def elsewhere(self) -> list[tuple[FloatArray, Directions]]:
        """Where else the parameters may be, and what the gap is made of there."""
        information = self.stage.information
        points = plausible_points(information, self.stage.past - information.smoothing)
        found = ((point, self.directions(Information.at(self.result.model, point))) for point in points)
        return [(point, directions) for point, directions in found if directions is not None]

    def forecaster(self, directions: Directions) -> Callable[[FloatArray], Forecast]:
        """From an occupancy to what to expect of it."""
        information, decisions, past = self.stage.information, self.result.decisions, self.past
        delta = self.result.ledger.delta
        if past is not None:
            return lambda occupancy: Curve(
                information,
                directions,
                past,
                delta,
                information.of_visits(occupancy),
                float(occupancy.sum()),
                self.elsewhere,
            )
        assert decisions.region is not None
        kind, model, outcomes = decisions.region, self.result.model, Outcomes.of(self.result.model)
        asked: LearnOptions = self.result.options
        interval = asked.interval or IntervalMethod.BETA_BINOMIAL
        options = replace(decisions.region_options(asked), interval=interval)

        def build(counts: Counts) -> Region:
            return build_region(kind, model, counts, delta, options, outcomes)

        return lambda occupancy: SampledCurve(information, directions, self.counts, build, occupancy)

    def _directions_of(self, policy: Policy, information: Information) -> Directions | None:
        objective, sets = self.result.problem.objective, self.result.decisions.sets
        if sets is SetsKind.EXPRESSION:
            return expression_directions(information, objective, policy, self.stage.past)
        return find_directions(information, objective, policy, coupled=sets is SetsKind.COUPLED)
