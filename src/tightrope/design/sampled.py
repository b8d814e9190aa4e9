"""What regions made of event intervals, balls or least squares will be like: from counts that are drawn.

Such a region is a function of counts, and intersections of many intervals are narrower than one interval
around each mean, so a few data sets are drawn: parameters from the normal distribution around the estimate
that the data so far leave, and for every signature a multinomial draw of as many visits as are expected,
added to the counts so far. The region of each is built as `learn` builds it, and the
width of what matters measured over it. The mean is the forecast, and its edges are two standard deviations
of the draws away. Draws are seeded: the same data give the same forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.design.directions import Directions
from tightrope.design.forecast import DEVIATIONS, MOST_EPISODES, Gap
from tightrope.design.information import Information
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.regions.region import Region
from tightrope.statistics.outcomes import Outcomes

DRAWS = 4
RATIO = 4.0
"""Between two numbers of episodes for which regions are built; gaps in between are interpolated."""

LEAST_SPREAD = 0.15
"""Relative: the edges of a forecast are at least so far from it."""

_SEED = 20


class SampledCurve:
    """The gap against more episodes, all with this occupancy."""

    def __init__(
        self,
        information: Information,
        directions: Directions,
        counts: Counts,
        build: Callable[[Counts], Region],
        occupancy: FloatArray,
    ):
        self.information, self.directions, self.counts, self.build = information, directions, counts, build
        model = information.model
        self.outcomes = Outcomes.of(model)
        signatures = model.signatures
        self.visits = np.bincount(signatures.of_choice, weights=occupancy, minlength=len(signatures))
        self.place = np.unique(self.outcomes.of_transition, return_index=True)
        self._known: dict[int, Gap] = {}
        self._points = [self._draw_point(draw) for draw in range(DRAWS)]

    def __call__(self, episodes: float) -> Gap:
        """The gap after so many more episodes."""
        if episodes < 1.0:
            return self._at(-1)
        step = min(math.log(episodes) / math.log(RATIO), math.log(2.0 * MOST_EPISODES) / math.log(RATIO))
        below = math.floor(step)
        low, high, share = self._at(below), self._at(below + 1), step - below
        return Gap(
            *(a ** (1.0 - share) * b**share if a > 0 and b > 0 else a for a, b in zip(low, high, strict=True))
        )

    def edge(self, episodes: float, which: int) -> float:
        """One of the three numbers."""
        return self(episodes)[which]

    def _at(self, step: int) -> Gap:
        if step not in self._known:
            more = 0.0 if step < 0 else RATIO**step
            widths = [self._width(more, draw) for draw in range(DRAWS if more else 1)]
            middle = float(np.mean(widths))
            spread = max(DEVIATIONS * float(np.std(widths)) / max(middle, 1e-300), LEAST_SPREAD)
            self._known[step] = Gap(middle, middle / (1.0 + spread), middle * (1.0 + spread))
        return self._known[step]

    def _width(self, episodes: float, draw: int) -> float:
        """Σ w·(largest − smallest) over the region of drawn counts."""
        region = self.build(self._draw(episodes, draw))
        vector = np.zeros((len(self.directions), region.coordinates.size))
        vector[:, : self.information.size] = self.directions.vector
        if region.emptiness.is_empty:
            return 0.0
        lower, upper = region.support(vector)
        return float(self.directions.weight @ np.maximum(upper - lower, 0.0))

    def _draw_point(self, draw: int) -> Information:
        """Parameters that are likely after the data so far, within the domain; mirrored for every second
        draw.
        """
        information, outcomes = self.information, self.outcomes
        seen = outcomes.pooled(self.counts)
        weight = np.bincount(outcomes.expression, weights=seen, minlength=len(information.probability))
        known = information.of_counts(weight.astype(np.float64) * ~information.model.expressions.is_constant)
        values, basis = np.linalg.eigh(known + information.smoothing)
        rng = np.random.default_rng([_SEED, draw // 2])
        step = basis @ (rng.normal(size=len(values)) / np.sqrt(np.maximum(values, 1e-300)))
        step = step if draw % 2 else -step
        return Information.at(information.model, information.point + 0.99 * information.room(step) * step)

    def _draw(self, episodes: float, draw: int) -> Counts:
        seen = np.zeros(len(self.counts.transition), np.int64)
        rng = np.random.default_rng([_SEED, draw, round(episodes)])
        outcomes, where = self.outcomes, np.zeros(len(self.outcomes), np.int64)
        where[self.place[0]] = self.place[1]
        share = self._points[draw].probability[outcomes.expression] * outcomes.multiplicity
        visits: OffsetArray = np.rint(self.visits * episodes).astype(np.int64)
        for width in np.unique(outcomes.width).tolist():
            chosen = np.flatnonzero((outcomes.width == width) & (visits > 0))
            if not len(chosen):
                continue
            cells = outcomes.start[chosen][:, None] + np.arange(width)
            chance = share[cells]
            drawn = rng.multinomial(visits[chosen], chance / chance.sum(axis=1, keepdims=True))
            seen[where[cells]] += drawn
        total = self.counts.transition + seen
        design = SamplingDesign(SamplingKind.ADAPTIVE, None, int(total.sum()), self.counts.design.repeats)
        return Counts(total, self.counts.transition_start, design, self.counts.model_hash)
