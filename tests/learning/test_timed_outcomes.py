"""Outcomes of episodes beside learned rates: reach within a time, cut off, contradicted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.data.exposure import read_exposure
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved
from tightrope.learning.rates import TimedReach, observe_times, timed_reach
from tightrope.statistics.intervals import beta_binomial

PARAMETERS = tr.Parameters.box(a=(0.01, 10), b=(0.01, 10))
A, B = PARAMETERS.symbols()
CHAIN = tr.build_ctmc_from_rows(
    [(0, {1: A, 2: B}), (1, {2: A})],
    PARAMETERS,
    labels={"mid": [1], "end": [2]},
    state_names=["new", "mid", "end"],
)
assert isinstance(CHAIN, tr.ParametricCTMC)
LOG = pa.table(
    {
        "episode": [1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5],
        "time": [0.0, 1, 4, 0, 2, 0, 3, 5, 0, 9, 0, 1],
        "state": ["new", "mid", "end", "new", "end", "new", "mid", "mid", "new", "new", "mid", "mid"],
    }
)


@pytest.mark.parametrize(
    ("text", "won", "lost"),
    [
        ('P=? [ F<=4 "end" ]', 2, 2),
        ('P=? [ F<=8 "end" ]', 2, 1),
        ('P=? [ F "end" ]', 2, 0),
        ('P=? [ F<=2 "mid" ]', 1, 3),
        ('P=? [ F "mid" ]', 2, 1),
        ('P=? [ !"mid" U<=5 "end" ]', 1, 3),
        ('P=? [ G<=2 !"mid" ]', 1, 3),
    ],
)
def test_episodes_are_scored_by_what_they_show(text: str, won: int, lost: int) -> None:
    reach = timed_reach(tr.Problem(CHAIN, text).query)
    assert isinstance(reach, TimedReach)
    seen = observe_times(reach, read_exposure(LOG, CHAIN), CHAIN.structure, 0.1)
    assert isinstance(seen, ObservedOutcomes)
    assert (seen.episodes, seen.elsewhere, seen.successes, seen.failures) == (4, 1, won, lost)
    lower, upper = beta_binomial(np.array([won, 4 - lost]), np.array([4, 4]), 0.1)
    ends = (1 - upper[1], 1 - lower[0]) if reach.complement else (lower[0], upper[1])
    assert np.allclose([seen.interval.lower, seen.interval.upper], ends)


def test_bounds_and_questions_that_episodes_do_not_answer() -> None:
    reach = timed_reach(tr.Problem(CHAIN, 'P=? [ F<=2.5 "end" ]').query)
    assert isinstance(reach, TimedReach) and reach.end == Fraction(5, 2)
    for text in ('P=? [ F[1,2] "end" ]', 'S=? [ "end" ]', 'P=? [ X "mid" ]'):
        assert isinstance(timed_reach(tr.Problem(CHAIN, text).query), Unobserved)


def test_the_value_lies_in_both_parts_and_a_wrong_model_is_contradicted() -> None:
    problem = tr.Problem(CHAIN, 'P=? [ F<=1 "end" ]')
    log = tr.simulate_times(CHAIN.instantiate(a=1, b=0.5), 400, seed=3, time=4)
    result = tr.learn(problem, log, delta=0.05)
    truth = tr.solve(CHAIN.instantiate(a=1, b=0.5), 'P=? [ F<=1 "end" ]').bounds
    assert truth is not None and result.value is not None and isinstance(result.outcomes, ObservedOutcomes)
    assert result.value.lower <= truth[0] <= truth[1] <= result.value.upper
    assert result.verdict.word.value == "proved" and result.ledger.delta == 0.05
    assert result.ledger.of_outcomes == pytest.approx(0.005)
    alone = tr.learn(problem, log, delta=0.05, outcomes="none")
    assert isinstance(alone.outcomes, Unobserved) and alone.ledger.of_outcomes == 0
    rng = np.random.default_rng(1)
    late = 2.0 + 0.1 * rng.random(300)  # never within one unit of time, though the mean says often
    rows = pa.table(
        {
            "episode": np.repeat(np.arange(300), 2),
            "time": np.stack([np.zeros(300), late], axis=1).ravel(),
            "state": ["new", "end"] * 300,
        }
    )
    wrong = tr.learn(problem, rows, delta=0.05)
    assert wrong.verdict.word.value == "contradicted" and "contradict the model" in wrong.verdict.why
    assert wrong.value is not None and wrong.value.upper < 0.05


def test_refuted_rates_add_nothing_to_what_episodes_show() -> None:
    """Sojourns are Weibull, which the test of constant rates finds; both intervals overlap all the same."""
    rng = np.random.default_rng(1)
    jumps = np.cumsum(rng.weibull(2.0, (100, 2)), axis=1)
    rows = pa.table(
        {
            "episode": np.repeat(np.arange(100), 3),
            "time": np.concatenate([np.zeros((100, 1)), jumps], axis=1).ravel(),
            "state": ["new", "mid", "end"] * 100,
        }
    )
    result = tr.learn(tr.Problem(CHAIN, 'P=? [ F<=2 "end" ]'), rows, delta=0.05)
    seen = result.outcomes
    assert result.verdict.word.value == "contradicted" and isinstance(seen, ObservedOutcomes)
    assert seen.model is not None and seen.contradiction is None
    assert seen.interval.lower < seen.model.lower < seen.model.upper < seen.interval.upper
    assert result.interval == seen.interval and seen.alone
    diagnosis = tr.doctor(tr.Problem(CHAIN, 'P=? [ F<=2 "end" ]'), rows, delta=0.05)
    assert diagnosis.value == seen.model, "the model's interval, without what episodes showed"
