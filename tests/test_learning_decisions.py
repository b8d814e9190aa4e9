"""Defaults depend on the model and on the sampling design, never on the outcomes, and say why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from learning_cases import case, counts_of
from tightrope import Parameters, build_from_function
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions, decide
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.problem import Problem
from tightrope.region.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.uncertainty.sets import SetsKind


def coin() -> ParametricMDP:
    parameters = Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    successors = {0: {"toss": {1: p, 2: 1 - p}}, 1: {"stay": {1: 1}}, 2: {"stay": {2: 1}}}
    return build_from_function(
        0, lambda state: successors[state], parameters, labels={"heads": lambda state: state == 1}
    )


def coin_counts(
    heads: int, tails: int, kind: SamplingKind = SamplingKind.GENERATIVE_FIXED, repeats: bool = True
) -> Counts:
    model = coin()
    design = SamplingDesign(kind, heads + tails, heads + tails, repeats)
    return Counts(np.array([heads, tails, 0, 0]), model.transition_start, design, model.hash())


def test_defaults_of_the_benchmarks() -> None:
    for name, size in (("betting(8)", 2), ("engagement(3)", 4), ("rover(4,4)", 6), ("parallel(3)", 7)):
        decisions = decide(case(name).model, counts_of(name), LearnOptions())
        assert decisions.sets is SetsKind.RECTANGULAR
        assert decisions.region is RegionKind.LIKELIHOOD
        assert decisions.interval is IntervalMethod.BETA_BINOMIAL
        assert decisions.reasons[0] == f"sets rectangular: {size} coordinates, the tightest sets, and cheap"
        assert decisions.reasons[1].startswith("region likelihood: ")
        assert len(decisions.reasons) == 2


def test_defaults_of_a_single_coin() -> None:
    decisions = decide(coin(), coin_counts(3, 7), LearnOptions())
    assert (decisions.region, decisions.interval) == (RegionKind.POLYTOPE, IntervalMethod.CLOPPER_PEARSON)
    assert decisions.reasons == (
        "sets rectangular: 1 coordinate, the tightest sets, and cheap",
        "region polytope: the counts come without time-ordered batches",
        "interval clopper-pearson: the numbers of visits do not depend on outcomes",
    )


@pytest.mark.parametrize(
    ("kind", "repeats", "sets", "expected"),
    [
        (SamplingKind.GENERATIVE_FIXED, True, SetsKind.TIED, IntervalMethod.CLOPPER_PEARSON),
        (SamplingKind.TRAJECTORIES, True, SetsKind.TIED, IntervalMethod.BETA_BINOMIAL),
        (SamplingKind.TRAJECTORIES, False, SetsKind.TIED, IntervalMethod.BETA_BINOMIAL),
        (SamplingKind.TRAJECTORIES, False, SetsKind.UNTIED, IntervalMethod.CLOPPER_PEARSON),
        (SamplingKind.ADAPTIVE, False, SetsKind.UNTIED, IntervalMethod.BETA_BINOMIAL),
    ],
)
def test_the_interval_follows_from_the_design(
    kind: SamplingKind, repeats: bool, sets: SetsKind, expected: IntervalMethod
) -> None:
    decisions = decide(coin(), coin_counts(3, 7, kind, repeats), LearnOptions(sets=sets))
    assert decisions.interval is expected
    assert decisions.reasons[-1].startswith(f"interval {expected.value}: ")


def test_outcomes_change_no_decision() -> None:
    known = case("betting(8)")
    counts = counts_of("betting(8)")
    assert counts.batches is not None
    nothing = Counts(
        np.zeros_like(counts.transition), counts.transition_start, counts.design, counts.model_hash
    )
    unbatched = Counts(counts.transition, counts.transition_start, counts.design, counts.model_hash)
    other = known.counts(episodes=3000, seed=99)
    chosen = decide(known.model, counts, LearnOptions())
    assert decide(known.model, other, LearnOptions()) == chosen
    assert decide(known.model, nothing, LearnOptions()) == decide(known.model, unbatched, LearnOptions())


def test_a_coin_by_hand() -> None:
    low, high = beta.ppf(0.025, 60, 41), beta.ppf(0.975, 61, 40)
    result = learn(Problem(coin(), 'Pmax=? [ F "heads" ]'), coin_counts(60, 40), delta=0.05)
    assert result.robust.interval.lower == pytest.approx(low, abs=1e-8)
    assert result.robust.interval.upper == pytest.approx(high, abs=1e-8)
    assert result.guarantee == result.robust.interval.lower
    assert result.optimistic_value == pytest.approx(high, abs=1e-8)
    assert result.widths.parameter_lower is not None
    assert result.widths.parameter_lower[0] == pytest.approx(low, abs=1e-8)
    assert result.widths.mean == pytest.approx(high - low, abs=1e-8)
    assert [(event.event, event.side) for event in result.binding.events] == [(0, "lower and upper")]
    assert result.binding.events[0].text.startswith("p (as in ") or "1-p" in result.binding.events[0].text
    minimised = learn(Problem(coin(), 'Pmin=? [ F "heads" ]'), coin_counts(60, 40), delta=0.05)
    assert minimised.guarantee == pytest.approx(high, abs=1e-8)
    complement = learn(Problem(coin(), 'Pmax=? [ G !"heads" ]'), coin_counts(60, 40), delta=0.05)
    assert complement.robust.interval.lower == pytest.approx(1 - high, abs=1e-8)
    assert complement.robust.interval.upper == pytest.approx(1 - low, abs=1e-8)
    assert complement.guarantee == complement.robust.interval.lower
    assert complement.optimistic_value == pytest.approx(1 - low, abs=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "0 < delta < 1"),
        ({"delta": 1.5}, "0 < delta < 1"),
        ({"region": "sphere"}, "`region` is 'sphere', not one of .*"),
        ({"sets": "loose"}, "`sets` is 'loose', not one of .*"),
        ({"objective": 'P>=0.5 [ F "heads" ]'}, "is true or false"),
        ({"objective": 'Pmax=? [ F "tails" ]'}, "tails"),
        ({"region": "likelihood"}, "time-ordered batches"),
    ],
)
def test_wrong_requests(change: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"delta": 0.05, "objective": 'Pmax=? [ F "heads" ]', **change}
    delta, objective = asked.pop("delta"), asked.pop("objective")
    with pytest.raises(InputError, match=message):
        learn(Problem(coin(), objective), coin_counts(3, 7), delta=delta, **asked)


def test_counts_of_another_model_are_refused() -> None:
    other = counts_of("betting(8)")
    with pytest.raises(InputError, match="belong to another model"):
        learn(Problem(coin(), 'Pmax=? [ F "heads" ]'), other, delta=0.05)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"precision": 0.0}, "`precision` is 0.0"),
        ({"assume_support": 1.0}, "`assume_support` is 1.0"),
        ({"seconds": 0.0}, "`seconds` is 0.0"),
    ],
)
def test_wrong_options(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LearnOptions(**fields)
