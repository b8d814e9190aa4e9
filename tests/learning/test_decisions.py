"""Defaults depend on the model and on the sampling design, never on the outcomes, and say why."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from threading import get_ident
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from learning_cases import case, counts_of
from tightrope import Interval, Parameters, Simulator, build_from_function, build_from_rows
from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.design.exploration import online
from tightrope.errors import InputError
from tightrope.learning.bet_policy import why_no_bets
from tightrope.learning.learn import learn, learn_all
from tightrope.learning.options import LearnOptions, decide
from tightrope.learning.policy_solver import PolicySolver, PolicyValue
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.problem import Problem
from tightrope.regions.registry import region_kind
from tightrope.solver.solution import Solution
from tightrope.statistics.estimates import IntervalMethod


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
        assert decisions.region == region_kind("likelihood")
        assert decisions.interval is IntervalMethod.BETA_BINOMIAL
        assert (
            decisions.reasons[0]
            == f"sets rectangular: {size} coordinates, few enough for sets over the region at every choice"
        )
        assert decisions.reasons[1].startswith("region likelihood: ")
        assert len(decisions.reasons) == 2


def test_slabs_are_the_default_over_coupled_sets_of_other_commands() -> None:
    known, counts = case("betting(8)"), counts_of("betting(8)")
    coupled = LearnOptions(sets=SetsKind.COUPLED)
    found = decide(known.model, counts, coupled, None)
    assert found.region == region_kind("slab")
    why = "region slab: a value over coupled sets depends on one direction, so bets are effective"
    assert found.reasons == (why,)
    design = counts.design
    growing = replace(counts, design=replace(design, kind=SamplingKind.ADAPTIVE, anytime=True))
    unplanned = replace(counts, design=replace(design, kind=SamplingKind.ADAPTIVE, planned=None))
    for data in (growing, unplanned):
        assert decide(known.model, data, coupled, None).reasons == (why,)
    for options, no_bets, why in (
        (coupled, "of this", "of this"),
        (LearnOptions(), None, "over rectangular sets it may lose width"),
    ):
        found = decide(known.model, counts, options, no_bets)
        assert found.region == region_kind("likelihood")
        assert found.reasons[-1].endswith(f"batched in time; no slab, since {why}")


def test_what_a_default_may_bet_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A given policy may have been chosen by looking at the data, and then bets on it would be worthless."""
    known, counts = case("betting(8)"), counts_of("betting(8)")
    model, objective, given = known.model, known.objective, known.policy
    assert why_no_bets(model, objective) is None
    unplanned = "it was not planned to bet on the given policy"
    assert why_no_bets(model, objective, given, counts.design) == unplanned
    assert why_no_bets(model, objective, given, replace(counts.design, bet_on=(given.digest,))) is None
    bounded, late = (
        replace(case("aircraft(8,4)").objective, **{f"{end}_steps": 5}) for end in ("upper", "lower")
    )
    assert why_no_bets(case("aircraft(8,4)").model, bounded) is None
    assert why_no_bets(case("aircraft(8,4)").model, late) == "the policy depends on the step"
    monkeypatch.setattr("tightrope.learning.bet_policy.MOST_CYCLIC", 10)
    assert why_no_bets(model, objective) is None  # no cycles
    words = "the model has cycles and more than 10 states"
    assert why_no_bets(case("glider(5,5)").model, case("glider(5,5)").objective) == words


def test_the_default_is_joint_over_all_sets_of_learn() -> None:
    known, counts = case("betting(4)"), counts_of("betting(4)")
    for sets in ("coupled", "rectangular", "expression", None):
        for policy in (None, known.policy):
            made = learn(known.problem, counts, delta=0.01, sets=sets, policy=policy, effort="quick")
            assert made.decisions.region == region_kind("joint")
            assert made.region is not None and made.region.slab is not None and not made.region.slab.given
    both = learn_all(known.problem, counts, delta=0.01, kinds=["rectangular", "coupled"])
    assert {result.decisions.region for result in both.values()} == {region_kind("likelihood")}
    for planned in (None, 50):
        learner = online(known.problem, sets="coupled", planned_episodes=planned)
        assert learner.decisions.region == region_kind("slab")
    assert online(known.problem).decisions.region == region_kind("likelihood")


def test_kinds_of_sets_that_are_solved_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads give the bits of one, where each kind has one."""
    known, counts = case("betting(4)"), counts_of("betting(4)")
    alone = learn_all(known.problem, counts, delta=0.01, threads=1)
    monkeypatch.setattr("tightrope.learning.pipeline.LEAST_TRANSITIONS", 0)
    used, solve_both = set[int](), PolicySolver.solve_both

    def watched(solver: PolicySolver, *beside: Callable[[], None]) -> tuple[PolicyValue, Solution]:
        used.add(get_ident())
        return solve_both(solver, *beside)

    monkeypatch.setattr(PolicySolver, "solve_both", watched)
    together = learn_all(known.problem, counts, delta=0.01, threads=2)
    assert len(used) == 2
    assert list(together) == list(alone) and len(alone) == 6
    for kind, result in together.items():
        assert result.robust.interval == alone[kind].robust.interval
        assert result.optimistic.upper.tolist() == alone[kind].optimistic.upper.tolist()
        assert result.options.threads == 2


def test_defaults_of_a_single_coin() -> None:
    decisions = decide(coin(), coin_counts(3, 7), LearnOptions())
    assert (decisions.region, decisions.interval) == (region_kind("polytope"), IntervalMethod.CLOPPER_PEARSON)
    assert decisions.reasons == (
        "sets rectangular: 1 coordinate, few enough for sets over the region at every choice",
        "region polytope: the counts have no batches in time order",
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


def attempts() -> tuple[Problem, Counts]:
    """32 attempts in a row, and the log of ten episodes."""
    parameters, last = Parameters.box(p=(0.01, 0.999), q=(0.01, 0.999)), 32
    p, q = parameters.symbols()
    rows = [(0, "", {1: q, last + 1: 1 - q}), *((s, "", {s + 1: p, 0: 1 - p}) for s in range(1, last))]
    rows += [(last, "", {last: 1}), (last + 1, "", {last + 1: 1})]
    model = build_from_rows(rows, parameters, labels={"ok": [last + 1]})
    data = Simulator(model.instantiate(p=0.9, q=0.9), model_hash=model.hash()).episodes(10, seed=2)
    return Problem(model, 'P=? [ F "ok" ]'), data


def test_coupled_sets_are_not_tried_where_corners_attain_the_interval() -> None:
    """To first order 32 attempts in a row promise an interval 1.65 times narrower. At two corners of the
    region the value is what the rectangular interval says, so there is nothing to gain."""
    result = learn(*attempts(), delta=0.1, outcomes="none")
    assert (
        not result.tried
        and "sets not coupled: the gain is too small (forecast width 100%)" in result.decisions.reasons[-1]
    )
    assert result.interval.lower == pytest.approx(0.11361, abs=1e-4)


def test_an_interval_without_width_has_no_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.learning.coupling._forecast", lambda *given: 0.0)
    result = learn(*attempts(), delta=0.1, outcomes="none")
    assert "sets not coupled: the gain is too small (no forecast)" in result.decisions.reasons[-1]


@pytest.mark.parametrize(
    "question",
    ['Smax=? [ "crash" ]', 'multi(Pmax=? [ F "target" ], P>=0 [ F "crash" ])', 'P>=0 [ F "crash" ] & true'],
)
def test_questions_without_one_objective_have_defaults(question: str) -> None:
    """Where many unknown expressions and an order in time lead to a region that could bet on a value."""
    given = case("rover(4,4)")
    problem, data = given.model.problem(question), Simulator(given.truth, model_hash=given.model.hash())
    result = learn(problem, data.episodes(100, seed=1))
    assert result.decisions.region == region_kind("joint") and result.verdict.is_proved
    assert "a likelihood (no slab" in " ".join(result.decisions.reasons)
    with pytest.raises(InputError, match=r"a slab \(betting region\) cannot be used"):
        learn(problem, data.episodes(100, seed=1), region="slab")


@pytest.mark.parametrize(
    ("ends", "claim"), [((3, 3), "is 3"), ((math.inf, math.inf), "is infinite"), ((1 / 3, 1 / 3), "in [")]
)
def test_claims_of_points_are_exact(ends: tuple[float, float], claim: str) -> None:
    given = case("rover(4,4)")
    data = Simulator(given.truth, model_hash=given.model.hash()).episodes(20, seed=1)
    answer = learn(given.model.problem('filter(max, Pmax=? [ F "target" ], "target")'), data, sets="tied")
    changed = replace(answer, interval=Interval.of(*ends), guarantee=None)
    assert changed.claim.startswith(claim)
