"""What data say about each expression and each parameter alone: the share seen, with an interval around it.

The intervals are the beta-binomial confidence sequence of every event, δ shared by all of them, so they hold
all at once, for any policy and at every moment of looking (`tightrope.statistics.estimates`); those of the
parameters are the box around the polytope that they cut out of the domain, which holds whenever they do. The
point estimates are shares, and maximum likelihood for parameters: no guarantee is attached to a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.data.counts import Counts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.regions.bounds import parameter_box
from tightrope.regions.event_polytope import polytope_region
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import EventIntervals, IntervalMethod, event_intervals
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes

MOST_PARAMETERS = 64
"""Beyond so many parameters a box takes longer than a description may."""


@dataclass(frozen=True)
class ExpressionEstimate:
    """An expression's outcome was seen so many times in so many visits."""

    expression: str
    seen: int
    visits: int
    lower: float
    upper: float

    @property
    def estimate(self) -> float | None:
        return self.seen / self.visits if self.visits else None

    def to_json(self) -> dict[str, object]:
        return {
            "expression": self.expression,
            "seen": self.seen,
            "visits": self.visits,
            "estimate": self.estimate,
            "lower": self.lower,
            "upper": self.upper,
        }


@dataclass(frozen=True)
class ParameterEstimate:
    """The likeliest value, and the interval of values that the data leave."""

    parameter: str
    estimate: float
    lower: float
    upper: float

    def to_json(self) -> dict[str, object]:
        return {
            "parameter": self.parameter,
            "estimate": self.estimate,
            "lower": self.lower,
            "upper": self.upper,
        }


@dataclass(frozen=True)
class PointEstimates:
    """`conflict` names observations that contradict each other under the model, where no parameter fits."""

    expressions: tuple[ExpressionEstimate, ...]
    parameters: tuple[ParameterEstimate, ...]
    ledger: ConfidenceBudget
    conflict: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What the intervals are worth, in words."""
        level = f"{1 - self.ledger.delta:g}"
        if self.ledger.holds:
            return f"all at once with confidence {level}, at any time of looking (anytime-valid)"
        return f"confidence {level} in name only (nominal): outcomes are missing from the data"

    @property
    def short(self) -> str:
        """The same in a few words."""
        kind = "anytime-valid" if self.ledger.holds else "nominal: outcomes are missing"
        return f"at confidence {1 - self.ledger.delta:g} ({kind})"

    def to_json(self) -> dict[str, object]:
        return {
            "expressions": [entry.to_json() for entry in self.expressions],
            "parameters": [entry.to_json() for entry in self.parameters],
            "conflict": list(self.conflict),
            "ledger": self.ledger.to_json(),
            "label": self.label,
        }


def estimate_points(model: ParametricMDP, counts: Counts, delta: float) -> PointEstimates:
    """The estimates of all expressions that are not constant, and of all parameters."""
    outcomes = Outcomes.of(model)
    intervals = event_intervals(model, counts, delta, IntervalMethod.BETA_BINOMIAL, outcomes=outcomes)
    expressions = tuple(_expression(intervals, event) for event in range(len(intervals.events)))
    parameters: tuple[ParameterEstimate, ...] = ()
    conflict: tuple[str, ...] = ()
    if 0 < len(model.parameters.names) <= MOST_PARAMETERS:
        region = polytope_region(intervals)
        if region.emptiness.is_empty:
            found = region.emptiness.conflict
            conflict = found.texts if found is not None else ("no parameter of the domain fits",)
        else:
            lower, upper = parameter_box(region)
            likeliest = _likeliest(model, outcomes, counts)
            rows = zip(model.parameters.names, likeliest, lower, upper, strict=True)
            parameters = tuple(ParameterEstimate(n, float(t), float(a), float(b)) for n, t, a, b in rows)
    return PointEstimates(expressions, parameters, intervals.ledger, conflict)


def _expression(intervals: EventIntervals, event: int) -> ExpressionEstimate:
    names = intervals.events.outcomes.model.parameters.names
    return ExpressionEstimate(
        intervals.events.function(event).text(names),
        int(intervals.successes[event]),
        int(intervals.trials[event]),
        float(intervals.lower[event]),
        float(intervals.upper[event]),
    )


def _likeliest(model: ParametricMDP, outcomes: Outcomes, counts: Counts) -> FloatArray:
    """The smoothed maximum of the likelihood within the domain, one value per parameter."""
    coordinates = Coordinates.of(model.expressions, model.parameters)
    maximiser = LikelihoodMaximiser.of(coordinates, coordinates.functions(model.expressions))
    seen: OffsetArray = outcomes.pooled(counts)
    size = len(model.expressions)
    weight = np.bincount(outcomes.expression, weights=seen, minlength=size).astype(np.float64)
    free = [Fraction(float(t)) for t in maximiser.estimate(weight * ~model.expressions.is_constant)]
    return np.array([float(polynomial.evaluate(free)) for polynomial in coordinates.substitution])
