"""From counts to intervals: every event, or every transition alone, at a shared level of confidence.

`event_intervals` spends δ on the events of the model (`tightrope.statistics.events`), γ = δ/#events each,
so that by the union bound all intervals hold together with probability at least 1 − δ (paper, Theorem 1).
`transition_intervals` is the baseline before tying: one event a non-constant transition, its own visits only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import down
from tightrope.numerics.text import interval_text
from tightrope.statistics.confidence_sequence import beta_binomial
from tightrope.statistics.events import Budget, Events, constant_values
from tightrope.statistics.intervals import clopper_pearson, hoeffding
from tightrope.statistics.ledger import Assumption, Ledger, assumed_of
from tightrope.statistics.outcomes import Outcomes, check_counts


class IntervalMethod(Enum):
    """The intervals on offer; see `Assumption` for when each is valid.

    >>> [one.value for one in IntervalMethod]
    ['clopper-pearson', 'hoeffding', 'beta-binomial']
    """

    CLOPPER_PEARSON = "clopper-pearson"
    HOEFFDING = "hoeffding"
    BETA_BINOMIAL = "beta-binomial"

    @property
    def assumption(self) -> Assumption:
        if self is IntervalMethod.BETA_BINOMIAL:
            return Assumption.ADAPTIVE_ANYTIME
        return Assumption.FIXED_DESIGN

    def interval(
        self, successes: OffsetArray, trials: OffsetArray, gamma: float
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds at level 1 − gamma for each (successes, trials)."""
        if self is IntervalMethod.CLOPPER_PEARSON:
            return clopper_pearson(successes, trials, gamma)
        if self is IntervalMethod.HOEFFDING:
            return hoeffding(successes, trials, gamma)
        return beta_binomial(successes, trials, gamma)


@dataclass(frozen=True, eq=False, repr=False)
class EventIntervals(Record):
    """lower ≤ probability ≤ upper for every event, all at once with the confidence of the ledger."""

    events: Events
    successes: OffsetArray
    trials: OffsetArray
    lower: FloatArray
    upper: FloatArray
    ledger: Ledger

    def expression_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The tied intervals P_I: bounds on every expression of the model."""
        return self.events.expression_intervals(self.lower, self.upper)

    def describe(self, event: int) -> str:
        return (
            f"{self.events.name(event)}: seen {self.successes[event]} times in {self.trials[event]} visits, "
            f"so in {interval_text(self.lower[event], self.upper[event], 6)}"
        )


@dataclass(frozen=True, eq=False)
class TransitionIntervals:
    """Bounds on every transition's probability, each learned alone."""

    lower: FloatArray
    upper: FloatArray
    ledger: Ledger


def event_intervals(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    method: IntervalMethod = IntervalMethod.CLOPPER_PEARSON,
    budget: Budget = Budget.TIED,
    outcomes: Outcomes | None = None,
    known: EventIntervals | None = None,
) -> EventIntervals:
    """The tied intervals; `outcomes` may be passed where they are already known.

    Where data grow, `known` are the intervals of the last look at them: those of events that were not met
    since are kept.
    """
    check_delta(delta)
    outcomes = outcomes or Outcomes.of(model)
    events = Events.tie(outcomes, budget)
    successes, trials = events.tally(outcomes.pooled(counts))
    gamma = share(delta, len(events))
    lower, upper = _intervals(successes, trials, gamma, method, events, known)
    assumed = assumed_of(method.assumption, counts.design, tied=True)
    ledger = Ledger(delta, len(events), gamma, method.value, budget.value, method.assumption, assumed)
    return EventIntervals(events, successes, trials, lower, upper, ledger)


def _intervals(
    successes: OffsetArray,
    trials: OffsetArray,
    gamma: float,
    method: IntervalMethod,
    events: Events,
    known: EventIntervals | None,
) -> tuple[FloatArray, FloatArray]:
    """Bounds of all events, computed where `known` does not have them."""
    lower, upper = np.zeros(len(events)), np.ones(len(events))
    unknown = trials > 0
    if known is not None and known.events is events and known.ledger.is_like(gamma, method.value):
        lower, upper = known.lower.copy(), known.upper.copy()
        unknown = (successes != known.successes) | (trials != known.trials)
    if unknown.any():
        lower[unknown], upper[unknown] = method.interval(successes[unknown], trials[unknown], gamma)
    return lower, upper


def transition_intervals(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    method: IntervalMethod = IntervalMethod.CLOPPER_PEARSON,
) -> TransitionIntervals:
    """The untied intervals: each non-constant transition from its own choice's visits."""
    check_delta(delta)
    check_counts(model, counts)
    table = model.expressions
    unknown = np.flatnonzero(~table.is_constant[model.expression])
    gamma = share(delta, len(unknown))
    known_lower, known_upper = np.zeros(len(table)), np.ones(len(table))
    constant, value_lower, value_upper = constant_values(table)
    known_lower[constant], known_upper[constant] = value_lower, value_upper
    lower, upper = known_lower[model.expression], known_upper[model.expression]
    trials = np.repeat(counts.visits, np.diff(model.transition_start))[unknown]
    low, high = method.interval(counts.transition[unknown], trials, gamma)
    lower[unknown], upper[unknown] = low, high
    assumed = assumed_of(method.assumption, counts.design, tied=False)
    ledger = Ledger(delta, len(unknown), gamma, method.value, "untied", method.assumption, assumed)
    return TransitionIntervals(lower, upper, ledger)


def check_delta(delta: float) -> None:
    if isinstance(delta, bool) or not isinstance(delta, int | float):
        raise InputError(f"`delta` is {delta!r}, not a number", hint="e.g. `delta=0.001`")
    if not 0.0 < delta < 1.0:
        raise InputError(
            f"`delta` is {delta:g}, but a confidence level 1 − delta needs 0 < delta < 1",
            hint="e.g. `delta=0.001`",
        )


def share(delta: float, events: int) -> float:
    """δ split evenly, rounded down so that the shares never add up to more than δ."""
    return down(delta / events) if events > 1 else delta
