"""Events and their intervals, from counts: every event, or every transition alone, at a shared level.

An event is a class of outcomes with one probability expression, pooled over all choices; all non-constant
ones share δ by the union bound, visited or not (paper, Theorem 1). The budget `TIED` has g and 1 − g as one
event, `PAPER` every expression. Rows with outcomes elsewhere (`open_intervals`): the r-th row that is visited
for the first time is known before its first outcome and has δ/(r(r + 1)), of which all R take the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.model.expressions import Expressions
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Function
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import Record, remember
from tightrope.numerics.rounding import down, up
from tightrope.numerics.text import interval_text
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget, assumed_of
from tightrope.statistics.intervals import beta_binomial, clopper_pearson, hoeffding, open_intervals
from tightrope.statistics.outcomes import Outcomes, check_counts


class Budget(Enum):
    """How the union bound counts events.

    >>> [one.value for one in Budget]
    ['tied', 'paper']
    """

    TIED = "tied"
    PAPER = "paper"


@dataclass(frozen=True, eq=False, repr=False)
class Events(Record):
    """Event e has probability multiplicity[e]·f for the table's expression f = expression[e].

    Outcome o (of a non-constant expression) is a trial of event of_outcome[o], with success and failure
    swapped where `flipped[o]`; −1 for constants. `counted[o]` is False where another outcome of the same
    visit already is the trial.
    """

    outcomes: Outcomes
    budget: Budget
    expression: IndexArray
    multiplicity: IndexArray
    of_outcome: IndexArray
    flipped: BoolArray
    counted: BoolArray

    @staticmethod
    @remember
    def tie(outcomes: Outcomes, budget: Budget = Budget.TIED) -> Events:
        """The events of a model."""
        table = outcomes.model.expressions
        times = np.int64(outcomes.multiplicity.max(initial=1)) + 1
        pair = outcomes.expression * times + outcomes.multiplicity
        _, first, pair_of = np.unique(pair, return_index=True, return_inverse=True)
        identity, flip = _identities(outcomes, first, budget)
        constant = table.is_constant[outcomes.expression]
        identity_of = identity[pair_of]
        used = np.unique(identity_of[~constant])
        of_outcome = np.where(constant, -1, np.searchsorted(used, identity_of)).astype(np.int32)
        flipped = flip[pair_of]
        number = np.int64(len(used) + 1)
        key = outcomes.signature * number + of_outcome
        # Within a visit prefer the unflipped outcome as the trial.
        order = np.lexsort((flipped, key))
        counted = np.zeros(len(outcomes), dtype=np.bool_)
        counted[order[np.r_[True, np.diff(key[order]) != 0]]] = True
        counted &= ~constant
        # An event is represented by one of its unflipped outcomes.
        representative = np.zeros(len(used), dtype=np.int64)
        direct = np.flatnonzero(~flipped & ~constant)
        representative[of_outcome[direct]] = direct
        return Events(
            outcomes,
            budget,
            outcomes.expression[representative],
            outcomes.multiplicity[representative],
            of_outcome,
            flipped & ~constant,
            counted,
        )

    def __len__(self) -> int:
        return len(self.expression)

    def tally(self, seen: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
        """(successes, trials) of every event, given how often each outcome was seen."""
        visits = self.outcomes.visits(seen)
        index = np.flatnonzero(self.counted)
        trials_of = visits[self.outcomes.signature[index]]
        successes_of = np.where(self.flipped[index], trials_of - seen[index], seen[index])
        event = self.of_outcome[index]
        successes, trials = np.zeros(len(self), dtype=np.int64), np.zeros(len(self), dtype=np.int64)
        np.add.at(successes, event, successes_of)
        np.add.at(trials, event, trials_of)
        return successes, trials

    def function(self, event: int) -> Function:
        base = self.outcomes.model.expressions.function(int(self.expression[event]))
        return base * int(self.multiplicity[event])

    def name(self, event: int) -> str:
        """The event's expression and a choice in which it can be seen."""
        model = self.outcomes.model
        outcome = int(np.flatnonzero(self.of_outcome == event)[0])
        choice = self.outcomes.example_choice(outcome)
        return f"{self.text(event)} (as in {model.structure.choice_name(choice)})"

    def text(self, event: int) -> str:
        model, one = self.outcomes.model, self.multiplicity[event] == 1
        shown = self.function(event).text(model.parameters.names)
        return model.expression_text(int(self.expression[event])) if one else shown

    @cached_property
    def links(self) -> tuple[IndexArray, IndexArray, IndexArray, BoolArray]:
        """Distinct (expression, event, multiplicity, flipped): which events speak of which expression."""
        index = np.flatnonzero(self.of_outcome >= 0)
        columns = self.outcomes.expression, self.of_outcome, self.outcomes.multiplicity, self.flipped
        rows = np.stack([column[index] for column in columns], axis=1).astype(np.int32)
        expression, event, multiplicity, flipped = np.unique(rows, axis=0).T
        return expression, event, multiplicity, flipped.astype(np.bool_)

    def expression_intervals(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The tied intervals P_I: bounds on every expression of the table; constants are exact."""
        table = self.outcomes.model.expressions
        expression, event, multiplicity, flipped = self.links
        low = np.where(flipped, down(1.0 - upper[event]), lower[event])
        high = np.where(flipped, up(1.0 - lower[event]), upper[event])
        several = multiplicity > 1
        low = np.where(several, down(low / multiplicity), low)
        high = np.where(several, up(high / multiplicity), high)
        result_lower, result_upper = np.zeros(len(table)), np.ones(len(table))
        np.maximum.at(result_lower, expression, low)
        np.minimum.at(result_upper, expression, high)
        crossed = result_lower > result_upper
        result_lower[crossed], result_upper[crossed] = result_upper[crossed], result_lower[crossed]
        constant, value_lower, value_upper = constant_values(table)
        result_lower[constant], result_upper[constant] = value_lower, value_upper
        return result_lower, result_upper


@remember
def constant_values(table: Expressions) -> tuple[OffsetArray, FloatArray, FloatArray]:
    """Constant expressions of a table and their values, rounded outward."""
    constant = np.flatnonzero(table.is_constant)
    values = RationalArray.from_fractions([table.polynomial(int(e)).constant_term for e in constant])
    return constant, values.to_float_down(), values.to_float_up()


def _identities(outcomes: Outcomes, pairs: OffsetArray, budget: Budget) -> tuple[OffsetArray, BoolArray]:
    """A number for the event of each (expression, multiplicity), and whether it is the flipped side."""
    table = outcomes.model.expressions
    identity = np.empty(len(pairs), dtype=np.int64)
    complement = np.full(len(pairs), -1, dtype=np.int64)
    beyond: dict[Function, int] = {}
    for position, outcome in enumerate(pairs.tolist()):
        row, times = int(outcomes.expression[outcome]), int(outcomes.multiplicity[outcome])
        if times == 1:
            identity[position] = row
            continue
        function = table.function(row) * times
        known = table.index_of(function)
        identity[position] = (
            known if known is not None else beyond.setdefault(function, len(table) + len(beyond))
        )
    if budget is Budget.PAPER:
        return identity, np.zeros(len(pairs), dtype=np.bool_)
    single = identity < len(table)
    complement[single] = table.complement[identity[single]]
    opposite = {number: 1 - function for function, number in beyond.items()}
    for position in np.flatnonzero(~single).tolist():
        other = opposite[int(identity[position])]
        known = table.index_of(other)
        complement[position] = known if known is not None else beyond.get(other, -1)
    if beyond:
        for position in np.flatnonzero(single & (complement < 0)).tolist():
            complement[position] = beyond.get(1 - table.function(int(identity[position])), -1)
    present = np.isin(complement, identity)
    flip = present & (complement < identity)
    return np.where(flip, complement, identity), flip


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
    ledger: ConfidenceBudget

    def expression_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The tied intervals P_I: bounds on every expression of the model."""
        return self.events.expression_intervals(self.lower, self.upper)

    def describe(self, event: int, domain: tuple[FloatArray, FloatArray] | None = None) -> str:
        """The event and its interval, within what the domain allows; `domain` are ranges of expressions."""
        low, high = float(self.lower[event]), float(self.upper[event])
        if domain is not None:
            times, at = int(self.events.multiplicity[event]), int(self.events.expression[event])
            ends = (round(times * float(end[at]), 12) for end in domain)  # exact ones, rounded outward
            least, most = max(low, next(ends)), min(high, next(ends))
            low, high = (least, most) if least <= most else (low, high)
        seen, trials = int(self.successes[event]), int(self.trials[event])
        return (
            f"{self.events.name(event)}: seen {seen:,} time{'s' * (seen != 1)} in {trials:,} "
            f"visit{'s' * (trials != 1)}, so in {interval_text(low, high, 5)}"
        )


@dataclass(frozen=True, eq=False)
class TransitionIntervals:
    """Bounds on every transition's probability, each learned alone."""

    lower: FloatArray
    upper: FloatArray
    ledger: ConfidenceBudget


def event_intervals(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    method: IntervalMethod = IntervalMethod.CLOPPER_PEARSON,
    budget: Budget = Budget.TIED,
    known: EventIntervals | None = None,
) -> EventIntervals:
    """The tied intervals; of growing data, `known` are those of the last look."""
    outcomes = Outcomes.of(model)
    events = Events.tie(outcomes, budget)
    if len(events):  # else all of δ may be for other parts
        check_delta(delta)
    successes, trials = events.tally(outcomes.pooled(counts))
    rows = open_rows(events)
    closed = len(events) - sum(len(row) for row in rows)
    gamma = share(delta / 2.0 if closed and rows else delta, closed or 1)
    lower, upper = _intervals(successes, trials, gamma, method, events, known)
    name, notes = method.value, tuple[str, ...]()
    if rows:
        visited = [row for row in rows if trials[row[0]] > 0]
        level = down((delta / 2.0 if closed else delta) / (len(visited) * (len(visited) + 1.0) or 1.0))
        for row in rows:
            low, high = open_intervals(successes[row[:-2]], level, int(successes[row[-2:]].sum()))
            lower[row], upper[row] = np.append(low, low[-1]), np.append(high, high[-1])
        name, gamma = (f"{name} and unseen mass", min(gamma, level)) if closed else ("unseen mass", level)
        notes = (f"{len(visited):,} visited rows have {level:.3g} each, for outcomes never seen as well",)
    assumption = method.assumption if closed else Assumption.ADAPTIVE_ANYTIME
    assumed = assumed_of(assumption, counts.design, tied=True)
    ledger = ConfidenceBudget(delta, len(events), gamma, name, budget.value, assumption, assumed, notes)
    return EventIntervals(events, successes, trials, lower, upper, ledger)


@remember
def open_rows(events: Events) -> tuple[IndexArray, ...]:
    """The events of each free distribution with outcomes elsewhere, these two last; others are refused."""
    model = events.outcomes.model
    if model.structure.elsewhere is None:
        return ()
    missed, reached = model.structure.elsewhere
    inside = missed | reached
    leads = inside[model.successor] & ~inside[model.structure.choice_state[model.structure.transition_choice]]
    event = events.of_outcome[events.outcomes.of_transition]
    of_row: dict[int, IndexArray] = {}
    for choice in np.unique(model.structure.transition_choice[leads]).tolist():
        span = slice(*model.transition_start[choice : choice + 2].tolist())
        own, away = event[span], leads[span]
        known = of_row.setdefault(int(own[away][-1]), np.append(own[~away], own[away]))
        flipped = events.flipped[events.outcomes.of_transition[span]].any()
        is_plain = bool(model.free[choice]) and int(away.sum()) == 2 and not flipped
        if not is_plain or sorted(known) != sorted([*own]) or sorted(known[-2:]) != sorted(own[away]):
            raise InputError(
                f"{model.structure.choice_name(choice)} leads elsewhere, and is not a free distribution of "
                "named outcomes and these two",
                hint="write `free` for each outcome, as `tightrope draft` does",
            )
    if len({int(e) for row in of_row.values() for e in row}) < sum(len(row) for row in of_row.values()):
        raise InputError("two rows that lead elsewhere share some outcomes, and not all")
    return tuple(of_row.values())


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
    like = known is not None and (known.ledger.gamma, known.ledger.method) == (gamma, method.value)
    if known is not None and like and known.events is events:
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
    if model.structure.elsewhere is not None:
        raise InputError("untied sets do not hold outcomes elsewhere", hint='use `sets="tied"`')
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
    ledger = ConfidenceBudget(delta, len(unknown), gamma, method.value, "untied", method.assumption, assumed)
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
