"""What learning returns: certified intervals, policies, widths, the ledger and how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tightrope.learning.options import Decisions
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.region.region import Region
from tightrope.solver.solution import Solution
from tightrope.statistics.estimates import EventIntervals
from tightrope.statistics.ledger import Ledger
from tightrope.uncertainty.sets import Sets


@dataclass(frozen=True)
class Interval:
    """lower ≤ value ≤ upper, with the confidence of the ledger."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        return self.upper - self.lower if self.upper != self.lower else 0.0

    def to_json(self) -> dict[str, float]:
        return {"lower": self.lower, "upper": self.upper}


@dataclass(frozen=True, eq=False)
class PolicyValue:
    """A policy (a choice a state, or one probability a choice) and its certified interval.

    `solutions` are the solves behind the two ends, lower end first.
    """

    policy: OffsetArray | FloatArray
    interval: Interval
    solutions: tuple[Solution, Solution]

    @property
    def is_certified(self) -> bool:
        return all(solution.is_certified for solution in self.solutions)


@dataclass(frozen=True, eq=False)
class Widths:
    """How much the data leave open: upper − lower of every expression and of every parameter."""

    expression: FloatArray
    nonconstant: FloatArray
    parameter_lower: FloatArray | None
    parameter_upper: FloatArray | None

    @property
    def mean(self) -> float:
        return float(self.nonconstant.mean()) if len(self.nonconstant) else 0.0

    @property
    def largest(self) -> float:
        return float(self.nonconstant.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class LearningResult:
    """Everything `learn` found out.

    * `value`: the given policy's certified interval; None where no policy was given.
    * `robust`: the policy with the best guarantee, and its interval.
    * `optimistic`: the policy that is best if nature is kind; its value bounds what any policy can reach.
    * `verdict`: words about an empty region, else None; `fallback` says that tied sets were used instead.
    """

    model: ParametricMDP
    objective: Objective
    decisions: Decisions
    sets: Sets
    region: Region | None
    intervals: EventIntervals | None
    ledger: Ledger
    value: PolicyValue | None
    robust: PolicyValue
    optimistic: Solution
    widths: Widths
    verdict: str | None
    fallback: bool
    seconds: dict[str, float]
    notes: tuple[str, ...] = field(default=())

    @property
    def optimistic_value(self) -> float:
        """What a kind nature would allow: no policy does better, with the ledger's confidence."""
        initial = self.model.initial
        lower, upper = self.optimistic.lower[initial], self.optimistic.upper[initial]
        return float(upper if self._maximises else lower)

    @property
    def guarantee(self) -> float:
        """The end of the robust policy's interval that it guarantees."""
        interval = self.robust.interval
        return interval.lower if self._maximises else interval.upper

    @property
    def _maximises(self) -> bool:
        """Whether the agent wants the reported value to be large."""
        return (self.objective.agent.name == "MAX") != self.objective.complement

    @property
    def is_certified(self) -> bool:
        """Whether every solve came as close as was asked."""
        solves = [self.robust.is_certified, self.optimistic.is_certified]
        if self.value is not None:
            solves.append(self.value.is_certified)
        return all(solves)

    def to_json(self) -> dict[str, object]:
        """The keys of `tightrope learn --json`."""
        names = self.model.parameters.names
        low, high = self.widths.parameter_lower, self.widths.parameter_upper
        parameters = (
            {name: [float(low[i]), float(high[i])] for i, name in enumerate(names)}
            if low is not None and high is not None
            else {}
        )
        return {
            "empty": self.verdict is not None,
            "fallback": self.fallback,
            "verdict": self.verdict,
            "region": self.decisions.region.value if self.decisions.region else None,
            "sets": self.sets.kind.value,
            "relaxation": self.sets.relaxation.value,
            "value": self.value.interval.to_json() if self.value else None,
            "robust_policy": self.robust.interval.to_json(),
            "guarantee": self.guarantee,
            "optimistic": self.optimistic_value,
            "widths": {
                "mean": self.widths.mean,
                "max": self.widths.largest,
                "expressions": len(self.widths.nonconstant),
                "parameters": parameters,
            },
            "ledger": self.ledger.to_json(),
            "reasons": list(self.decisions.reasons),
            "notes": list(self.notes),
            "status": "certified" if self.is_certified else "limit reached: the bounds hold but are wider",
            "seconds": {phase: round(seconds, 6) for phase, seconds in self.seconds.items()},
        }


def widths_of(model: ParametricMDP, sets: Sets, box: tuple[FloatArray, FloatArray] | None) -> Widths:
    """Widths of the sets' bounds by expression (the widest transition of each), and of the parameters."""
    width = np.zeros(len(model.expressions))
    np.maximum.at(width, model.expression, sets.upper - sets.lower)
    low, high = box if box is not None else (None, None)
    return Widths(width, width[model.expressions.nonconstant], low, high)
