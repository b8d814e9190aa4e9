"""What learning returns in the corners: wrong models, no data, step bounds, mixed policies, limits.

Also of `learning/answers.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cases.coins import counted, two_coins
from learning_cases import PAPER, case, counts_of
from tightrope import Parameters, build_from_function, build_from_rows
from tightrope.ambiguity.sets import SetsKind
from tightrope.certify.certify import certify
from tightrope.certify.verification import verify
from tightrope.data.counts import Batches, Counts
from tightrope.data.simulator import Simulator
from tightrope.errors import CannotCertify
from tightrope.learning.compare import improve
from tightrope.learning.learn import learn, learn_all
from tightrope.learning.options import LearnOptions
from tightrope.learning.pipeline import EmptyRegion
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import region_kind
from tightrope.solver.solve import solve
from tightrope.verdict import Word

WRONG = (900, 100), (100, 900)
"""Tosses of two coins that the model ties."""


def in_batches(counts: Counts) -> Counts:
    """The same counts in ten equal batches."""
    seen = np.flatnonzero(counts.transition)
    batches = Batches.from_parts([(seen, counts.transition[seen] // 10)] * 10)
    return Counts.from_batches(batches, counts.transition_start, counts.design, counts.model_hash)


@pytest.mark.parametrize("region", [region_kind("polytope"), region_kind("l1")])
@pytest.mark.parametrize("sets", [SetsKind.PARAMETER, SetsKind.EXPRESSION, SetsKind.RECTANGULAR])
def test_an_empty_region_is_a_verdict_and_tied_sets_take_over(region: RegionKind, sets: SetsKind) -> None:
    model = two_coins()
    counts = counted(model, (900, 100), (100, 900))
    result = learn(Problem(model, 'Pmax=? [ F "won" ]'), counts, delta=0.01, region=region, sets=sets)
    assert result.contradiction is not None and result.verdict.word is Word.CONTRADICTED
    assert "no parameters of the domain explain the data at confidence 0.99" in result.contradiction
    assert result.conflict is not None and len(result.conflict.texts) == 2
    assert result.fallback
    assert result.decisions.sets is sets and result.sets.kind is SetsKind.TIED
    tied = learn(Problem(model, 'Pmax=? [ F "won" ]'), counts, delta=0.01, sets="tied")
    assert result.robust.interval == tied.robust.interval
    assert result.ledger == tied.ledger
    assert result.binding.total == 0 and result.widths.parameter_lower is None
    facts = result.to_json()
    assert facts["empty"] is True and facts["fallback"] is True and facts["verdict"] == "contradicted"
    assert facts["conflict"] == list(result.conflict.texts)
    with pytest.raises(EmptyRegion, match="contradict each other") as caught:
        asked = LearnOptions(region=region, sets=sets, fallback=False)
        learn(Problem(model, 'Pmax=? [ F "won" ]'), counts, delta=0.01, **asked.words)
    assert caught.value.exit_code == 1 and caught.value.verdict.word is Word.CONTRADICTED
    assert caught.value.conflict == result.conflict


@pytest.mark.parametrize("region", [region_kind("ellipsoid"), region_kind("likelihood")])
def test_a_region_that_is_not_empty_for_a_wrong_model_is_checked_apart(region: RegionKind) -> None:
    model = two_coins()
    wrong = in_batches(counted(model, (900, 100), (100, 900)))
    result = learn(Problem(model, 'Pmax=? [ F "won" ]'), wrong, delta=0.01, region=region)
    assert result.contradiction is None and result.verdict.word is Word.CONTRADICTED
    assert result.fit is not None and result.fit.verdict == "model contradicted"
    assert result.misfit is not None and "the data contradict the model" in result.misfit
    assert result.to_json()["misfit"] == result.misfit
    right = in_batches(counted(model, (800, 200), (400, 600)))
    assert learn(Problem(model, 'Pmax=? [ F "won" ]'), right, delta=0.01, region=region).misfit is None


@pytest.mark.parametrize(
    "question",
    [
        'R{"wins"}max=? [ S ]',
        'quantile(min k, Pmax>=0.1 [ F<=k "won" ])',
        'multi(Pmax=? [ F "won" ], P>=0 [ F "won" ])',
        'Pmax=? [ F "won" || F true ]',
        'filter(max, Pmax=? [ F "won" ], true)',
    ],
)
def test_every_question_tests_the_model(question: str, tmp_path: Path) -> None:
    parameters = Parameters.box(p=("1/10", "19/20"))
    (p,) = parameters.symbols()
    tosses = {"a": {"won": p, "lost": 1 - p}, "b": {"won": p / 2, "lost": 1 - p / 2}}
    model = build_from_function(
        "start",
        lambda state: tosses if state == "start" else {"stay": {state: 1}},
        parameters,
        labels={"won": lambda state: state == "won"},
        state_rewards={"wins": lambda state: int(state == "won")},
    )
    wrong, right = (in_batches(counted(model, *seen)) for seen in (WRONG, ((800, 200), (400, 600))))
    result = learn(Problem(model, question), wrong, delta=0.01, region="likelihood", sets="expression")
    assert result.contradiction is None and result.verdict.word is Word.CONTRADICTED
    assert result.fit.verdict == "model contradicted" and result.document("m").fit == result.fit
    assert "under the contradicted model" in dict(result.facts())["value"]
    if result.optimistic is not None:
        with pytest.raises(CannotCertify, match="no certificate is written: the data contradict the model"):
            certify(result, tmp_path / "a.cert")
    fine = learn(Problem(model, question), right, delta=0.01, region="likelihood", sets="expression")
    assert fine.fit.misfit is None and fine.verdict.word in (Word.PROVED, Word.LIMIT)


def test_no_certificate_is_valid_for_data_that_refute_the_model(tmp_path: Path) -> None:
    """The counts prove a bound under the model; the user's data refute the model."""
    model, question = two_coins(), 'Pmax=? [ F "won" ]'
    wrong = in_batches(counted(model, *WRONG))
    result = learn(Problem(model, question), wrong, delta=0.01, region="likelihood", sets="expression")
    with pytest.raises(CannotCertify, match="the data contradict the model: e-value"):
        certify(result, tmp_path / "a.cert")
    better = improve(Problem(model, question), wrong, delta=0.01)
    assert better.verdict.word is Word.CONTRADICTED
    with pytest.raises(CannotCertify, match="the data contradict the model: e-value"):
        certify(better, tmp_path / "a.cert")
    forged = replace(result, fit=None)
    certify(forged, tmp_path / "a.cert")
    assert verify(tmp_path / "a.cert", model=model, property=question).word == "proved"
    verdict = verify(tmp_path / "a.cert", model=model, property=question, data=wrong)
    assert verdict.word == "contradicted" and "e-value" in str(verdict.contradicted)


def test_consistent_data_are_no_contradiction() -> None:
    model = two_coins()
    result = learn(
        Problem(model, 'Pmax=? [ F "won" ]'),
        counted(model, (800, 200), (400, 600)),
        delta=0.01,
        region="polytope",
    )
    assert result.contradiction is None and not result.fallback and result.conflict is None
    assert result.verdict.is_proved
    assert 0.8 in result.robust.interval
    assert {event.event for event in result.binding.events} <= {0, 1}
    assert result.binding.total >= 1


def test_without_data_the_whole_domain_is_possible() -> None:
    model = two_coins()
    nothing = counted(model, (0, 0), (0, 0))
    for kind, result in learn_all(Problem(model, 'Pmax=? [ F "won" ]'), nothing, delta=0.01).items():
        assert result.robust.interval.lower == pytest.approx(0.0, abs=1e-9), kind
        assert result.optimistic_value == pytest.approx(1.0, abs=1e-9), kind


def test_expressions_never_seen_can_make_a_cost_infinite() -> None:
    known = case("engagement(3)")
    counts = known.counts(episodes=2, seed=1)
    unseen = learn(known.problem, counts, delta=0.01, sets="tied", policy=known.policy)
    assert unseen.value is not None
    assert unseen.value.interval.upper == math.inf
    assert unseen.value.interval.width == math.inf
    assert unseen.verdict.is_proved
    assumed = LearnOptions(sets=SetsKind.TIED, assume_support=0.2)
    bounded = learn(known.problem, counts, delta=0.01, **assumed.words, policy=known.policy)
    assert bounded.value is not None
    assert math.isfinite(bounded.value.interval.upper)
    assert bounded.value.interval.upper > 10
    assert any("a probability of at least 0.2" in note for note in bounded.notes)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sets", ["tied", "rectangular"])
def test_a_step_bound_makes_the_policy_depend_on_the_step(sets: str) -> None:
    known = case("aircraft(8,4)")
    counts = counts_of("aircraft(8,4)")
    bounded = learn(
        Problem(known.model, 'Pmax=? [ !"collision" U<=8 "goal" ]'),
        counts,
        delta=0.01,
        sets=sets,
        policy=known.policy,
    )
    free = learn(known.problem, counts, delta=0.01, sets=sets, policy=known.policy)
    assert bounded.guarantee == pytest.approx(free.guarantee, rel=1e-5)
    assert bounded.guarantee <= bounded.robust.interval.upper <= bounded.optimistic_value * (1 + 1e-5)
    assert bounded.policy.depends_on_step and not free.policy.depends_on_step
    assert bounded.value is not None and free.value is not None
    assert bounded.value.interval.lower == pytest.approx(free.value.interval.lower, rel=1e-5)
    assert any("depends on the step" in note for note in bounded.notes)
    assert not any("depends on the step" in note for note in free.notes)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sets", ["expression", "rectangular"])
def test_a_randomised_policy_lies_between(sets: str) -> None:
    known = case("aircraft(5,3)")
    uniform = Policy.uniform(known.model)
    counts = counts_of("aircraft(5,3)")
    result = learn(known.problem, counts, delta=0.01, sets=sets, policy=uniform)
    assert result.value is not None
    assert known.value_of(uniform) in result.value.interval
    assert any("randomised" in note for note in result.notes) == (sets == "rectangular")


def test_a_time_limit_is_a_status_and_the_bounds_still_hold() -> None:
    known = case("engagement(2)")
    asked = LearnOptions(sets=SetsKind.EXPRESSION, seconds=1e-9)
    result = learn(known.problem, counts_of("engagement(2)"), delta=0.01, **asked.words)
    assert result.verdict.word.value == "limit"
    assert "time limit" in result.status
    assert known.value_of(result.robust.policy) in result.robust.interval


def test_the_same_data_give_the_same_answer() -> None:
    known = case("betting(8)")
    first, second = (
        learn_all(known.problem, known.counts(500, 7), delta=0.01, policy=known.policy) for _ in range(2)
    )
    for kind in first:
        a, b = first[kind].to_json(), second[kind].to_json()
        assert a.pop("seconds") and b.pop("seconds")
        assert a == b
        assert first[kind].policy == second[kind].policy
        assert np.array_equal(first[kind].sets.lower, second[kind].sets.lower)


def test_more_data_tighten_the_guarantee() -> None:
    known = case("betting(8)")
    few, many = (
        learn(known.problem, known.counts(n, 3), delta=0.01, region=r)
        for r, n in (("likelihood", 100), ("likelihood", 10_000))
    )
    assert many.guarantee > few.guarantee
    assert many.widths.mean < few.widths.mean


def test_a_value_that_is_certain_leaves_nothing_to_forecast() -> None:
    parameters = Parameters.box(p=("0.05", "0.95"), q=("0.05", "0.95"))
    p, q = parameters.symbols()
    rows = [
        (0, "a", {1: p, 0: 1 - p}), (0, "b", {1: q, 3: 1 - q}), (1, "a", {2: p * q, 3: 1 - p * q}),
        (1, "b", {2: q, 1: 1 - q}), (2, "", {2: 1}), (3, "", {3: 1}),
    ]  # fmt: skip
    model = build_from_rows(rows, parameters, labels={"goal": [2]})
    problem, plain = Problem(model, 'Pmax=? [ F "goal" ]'), model.instantiate({"p": 0.6, "q": 0.7})
    patient = solve(plain, problem.objective).policy
    for seed in (3, 9, 11):
        counts = Simulator(plain, None, None, 1000, model.hash(), threads=1).episodes(30, seed)
        result = learn(problem, counts, delta=0.01, policy=patient)
        assert result.value is not None and (result.value.interval.lower, result.guarantee) == (1.0, 1.0)
        assert result.decisions.reasons[-1] == "sets not coupled: the gain is too small (no forecast)"


def test_betting_50_as_published() -> None:
    """BENCHMARKS: tied [14.3-14.9, 64.0-66.9], parameter-wise [25.3-25.9, 28.1-28.7]; V* = 27.011."""
    known = case("betting(50)")
    assert known.optimum == pytest.approx(27.011, abs=5e-4)
    results = learn_all(
        known.problem,
        known.counts(100_000, 1),
        delta=0.001,
        kinds=(SetsKind.TIED, SetsKind.PARAMETER, SetsKind.EXPRESSION),
        region="polytope",
        **PAPER.words,
        policy=known.policy,
    )
    intervals = {kind: result.value.interval for kind, result in results.items() if result.value}
    assert 14.3 <= intervals[SetsKind.TIED].lower <= 14.9
    assert 64.0 <= intervals[SetsKind.TIED].upper <= 66.9
    assert 25.3 <= intervals[SetsKind.PARAMETER].lower <= 25.9
    assert 28.1 <= intervals[SetsKind.PARAMETER].upper <= 28.7
    assert intervals[SetsKind.EXPRESSION].width <= intervals[SetsKind.PARAMETER].width * (1 + 1e-6)
    ledger = results[SetsKind.TIED].ledger
    assert (ledger.events, ledger.budget) == (2612, "paper")
    assert not ledger.holds
