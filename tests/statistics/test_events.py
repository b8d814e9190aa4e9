"""Tying: what counts as one event, how it is tallied, and what the ledger says about it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from region_reference import ONE, coins, counts_of
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.errors import InputError
from tightrope.model.builder import build_from_rows
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.statistics.confidence_budget import Assumption
from tightrope.statistics.estimates import (
    Budget,
    Events,
    IntervalMethod,
    event_intervals,
    share,
    transition_intervals,
)
from tightrope.statistics.outcomes import Outcomes

P = Polynomial.variable(0)
Q = Polynomial.variable(1)


def built(rows: list[tuple[int, str, dict[int, Polynomial]]], *names: str) -> ParametricMDP:
    model = build_from_rows(rows, Parameters.unit_box(names))
    assert isinstance(model, ParametricMDP)
    return model


def tally(model: ParametricMDP, transition: list[int], budget: Budget) -> dict[str, tuple[int, int]]:
    outcomes = Outcomes.of(model)
    events = Events.tie(outcomes, budget)
    seen = outcomes.pooled(counts_of(model, transition, SamplingKind.ADAPTIVE))
    successes, trials = events.tally(seen)
    names = model.parameters.names
    return {events.function(e).text(names): (int(successes[e]), int(trials[e])) for e in range(len(events))}


def test_complements_that_partition_a_choice_are_one_event() -> None:
    model = coins(Parameters.unit_box(("p",)), [P, P])
    assert tally(model, [3, 7, 1, 4, 0, 0], Budget.TIED) == {"p": (4, 15)}
    assert tally(model, [3, 7, 1, 4, 0, 0], Budget.PAPER) == {"p": (4, 15), "1 - p": (11, 15)}


def test_complements_in_different_choices_are_pooled_with_sides_swapped() -> None:
    third = (ONE - P) / 2
    rows = [
        (0, "a", {1: P, 2: third, 0: third}),
        (1, "b", {0: ONE - P, 1: P / 2, 2: P / 2}),
        (2, "c", {2: ONE}),
    ]
    model = built(rows, "p")
    counts = [5, 2, 3, 4, 1, 1, 9]
    # choice a: p seen 5 of 10, {1−p as two halves} not p; choice b: 1−p seen 4 of 6, so p 2 of 6.
    found = tally(model, counts, Budget.TIED)
    assert found["p"] == (7, 16)
    assert set(found) == {"p"}


def test_equal_expressions_in_one_choice_are_one_event_of_their_sum() -> None:
    rows = [(0, "a", {1: P / 4, 2: P / 4, 0: ONE - P / 2}), (1, "b", {1: ONE}), (2, "c", {2: ONE})]
    model = built(rows, "p")
    assert tally(model, [1, 2, 7, 0, 0], Budget.TIED) == {"1 - 1/2*p": (7, 10)}
    intervals = event_intervals(model, counts_of(model, [1, 2, 7, 0, 0], SamplingKind.ADAPTIVE), 0.1)
    quarter = model.expressions.index_of(P / 4)
    lower, upper = intervals.expression_bounds()
    assert upper[quarter] == pytest.approx((1 - intervals.lower[0]) / 2)
    assert lower[quarter] == pytest.approx((1 - intervals.upper[0]) / 2)


def test_an_expression_seen_alone_and_doubled_gets_the_intersection() -> None:
    rows = [
        (0, "a", {1: P / 4, 2: P / 4, 0: ONE - P / 2}),
        (1, "b", {0: P / 4, 1: ONE - P / 4}),
        (2, "c", {2: ONE}),
    ]
    model = built(rows, "p")
    counts = counts_of(model, [30, 29, 41, 30, 70, 0], SamplingKind.ADAPTIVE)
    intervals = event_intervals(model, counts, 0.1)
    quarter = model.expressions.index_of(P / 4)
    lower, upper = intervals.expression_bounds()
    of = {intervals.events.function(e): e for e in range(len(intervals.events))}
    assert set(of) == {P / 4, ONE - P / 2}
    alone, doubled = of[P / 4], of[ONE - P / 2]
    assert lower[quarter] == pytest.approx(
        max(intervals.lower[alone], (1 - intervals.upper[doubled]) / 2), abs=1e-15
    )
    assert upper[quarter] == pytest.approx(
        min(intervals.upper[alone], (1 - intervals.lower[doubled]) / 2), abs=1e-15
    )


def test_contradicting_events_of_one_expression_never_give_an_empty_interval() -> None:
    rows = [
        (0, "a", {1: P / 4, 2: P / 4, 0: ONE - P / 2}),
        (1, "b", {0: P / 4, 1: ONE - P / 4}),
        (2, "c", {2: ONE}),
    ]
    model = built(rows, "p")
    counts = counts_of(model, [10, 10, 980, 400, 600, 0], SamplingKind.ADAPTIVE)
    lower, upper = event_intervals(model, counts, 0.1).expression_bounds()
    assert np.all(lower <= upper)


def test_constants_are_exact_and_free() -> None:
    third = Polynomial.constant(Fraction(1, 3))
    rows = [
        (0, "a", {0: third, 1: third * P, 2: third * (ONE - P) + third}),
        (1, "b", {1: ONE}),
        (2, "c", {2: ONE}),
    ]
    model = built(rows, "p")
    intervals = event_intervals(model, counts_of(model, [0] * 5, SamplingKind.ADAPTIVE), 0.1)
    constant = model.expressions.index_of(third)
    lower, upper = intervals.expression_bounds()
    assert Fraction(float(lower[constant])) <= Fraction(1, 3) <= Fraction(float(upper[constant]))
    assert upper[constant] - lower[constant] < 1e-15
    assert len(intervals.events) == 2 and intervals.ledger.events == 2


def test_unvisited_events_keep_the_unit_interval_and_their_share() -> None:
    model = coins(Parameters.unit_box(("p", "q")), [P, Q])
    intervals = event_intervals(
        model, counts_of(model, [8, 2, 0, 0, 0, 0], SamplingKind.GENERATIVE_FIXED), 0.1
    )
    seen = {intervals.events.function(e).text(("p", "q")): e for e in range(2)}
    assert (intervals.lower[seen["q"]], intervals.upper[seen["q"]]) == (0.0, 1.0)
    assert intervals.ledger.gamma <= 0.05 and intervals.ledger.events == 2
    assert "seen 8 times in 10 visits" in intervals.describe(seen["p"])


def test_untied_transitions_use_only_their_own_visits() -> None:
    model = coins(Parameters.unit_box(("p",)), [P, P])
    counts = counts_of(model, [3, 7, 40, 60, 0, 0], SamplingKind.GENERATIVE_FIXED)
    alone = transition_intervals(model, counts, 0.1)
    assert alone.ledger.events == 4 and alone.ledger.budget == "untied"
    assert alone.upper[2] - alone.lower[2] < alone.upper[0] - alone.lower[0]
    assert (alone.lower[4], alone.upper[4]) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_delta_outside_the_unit_interval_is_refused(delta: float) -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    with pytest.raises(InputError, match="delta"):
        event_intervals(model, counts_of(model, [1, 1, 0, 0], SamplingKind.ADAPTIVE), delta)


def test_counts_of_another_model_are_refused() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    other = coins(Parameters.unit_box(("p",)), [P, P])
    with pytest.raises(InputError, match="transitions"):
        event_intervals(model, counts_of(other, [1, 1, 0, 0, 0, 0], SamplingKind.ADAPTIVE), 0.1)


def test_confidence_budget_says_whether_the_data_fit_the_assumption() -> None:
    model = coins(Parameters.unit_box(("p",)), [P, P])
    for kind, method, holds in (
        (SamplingKind.GENERATIVE_FIXED, IntervalMethod.CLOPPER_PEARSON, True),
        (SamplingKind.TRAJECTORIES, IntervalMethod.CLOPPER_PEARSON, False),
        (SamplingKind.ADAPTIVE, IntervalMethod.HOEFFDING, False),
        (SamplingKind.ADAPTIVE, IntervalMethod.BETA_BINOMIAL, True),
    ):
        ledger = event_intervals(model, counts_of(model, [1] * 6, kind), 0.1, method).ledger
        assert ledger.holds is holds
        assert any("nominal" in line for line in ledger.lines) is not holds
        assert ledger.record().method == method.value
    once = SamplingDesign(SamplingKind.TRAJECTORIES, 10, 20, repeats=False)
    counts = Counts(np.ones(6, dtype=np.int64), model.transition_start, once, model.hash())
    assert transition_intervals(model, counts, 0.1).ledger.holds
    assert transition_intervals(model, counts, 0.1).ledger.assumption is Assumption.FIXED_DESIGN


def test_shares_never_add_up_to_more_than_delta() -> None:
    for events in (1, 3, 7, 1541, 185208):
        assert Fraction(share(0.001, events)) * events <= Fraction(0.001)
