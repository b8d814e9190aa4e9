"""What episodes returned beside the model: scores, intervals, intersections, contradictions."""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from benchmark_script import run_benchmark
from effort import repeats
from tightrope.cli.result_display import outcome_facts, value_of
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved, meet, observe
from tightrope.learning.pipeline import Pipeline
from tightrope.monitoring.episode_scores import Episodes, PathRules
from tightrope.report.statement import statement
from tightrope.statistics.returns import Tally, frequency_interval, lower_mean, mean_interval

PATHS = [[0, 1, 2], [0, 3], [0, 1, 0, 1, 2], [0, 1, 0], [0, 1, 0, 3], [1, 2], [0, 1, 2, 2, 2]]


def walk() -> tr.ParametricMDP:
    """0 → 1 → 2 (goal), back, or into 3 (lost); every step before costs 1."""
    parameters = tr.Parameters.box(p=("0.2", "0.8"))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: p, 3: 1 - p}), (1, "", {2: p, 0: 1 - p}), (2, "", {2: 1}), (3, "", {3: 1})]
    return tr.build_from_rows(
        rows,
        parameters,
        labels={"goal": [2], "lost": [3], "end": [2, 3], "none": []},
        state_rewards={"steps": [1, 1, 0, 0]},
        valuations={"s": [0, 1, 2, 3]},
    )


def simulated(model: tr.ParametricMDP, p: float, episodes: int, seed: int) -> Counts:
    return tr.Simulator(model.instantiate(p=p), model_hash=model.hash()).episodes(episodes, seed=seed)


def rules_of(model: tr.ParametricMDP, text: str) -> PathRules:
    problem = tr.Problem(model, text)
    return PathRules.of(model.structure, problem.objective, np.ones(model.choices, dtype=np.bool_))


def play(model: tr.ParametricMDP, log: list[list[int]]) -> Episodes:
    """Paths of states as episodes."""
    structure = model.structure
    row, previous, episode = [], [], []
    for number, path in enumerate(log):
        for place, (one, following) in enumerate(pairwise(path)):
            choice = int(structure.choice_start[one])
            span = range(int(structure.transition_start[choice]), int(structure.transition_start[choice + 1]))
            row.append(next(t for t in span if structure.successor[t] == following))
            previous.append(len(row) - 2 if place else -1)
            episode.append(number)
    arrays = [np.array(column, dtype=np.int32) for column in (row, previous, episode)]
    return Episodes.of(structure, *arrays, len(log))


@pytest.mark.parametrize(
    "text, low, high",
    [
        ('P=? [ F "goal" ]', [1, 0, 1, 0, 0, 1], [1, 0, 1, 1, 0, 1]),
        ('P=? [ F<=2 "goal" ]', [1, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1]),
        ('P=? [ F<=3 "goal" ]', [1, 0, 0, 0, 0, 1], [1, 0, 0, 1, 0, 1]),
        ("P=? [ X (s=1) ]", [1, 0, 1, 1, 1, 1], [1, 0, 1, 1, 1, 1]),
        ('R{"steps"}=? [ C<=3 ]', [2, 1, 3, 3, 3, 2], [2, 1, 3, 3, 3, 2]),
        ('R{"steps"}=? [ C<=4 ]', [2, 1, 4, 3, 3, 2], [2, 1, 4, 4, 3, 2]),
        ('R{"steps"}=? [ F "end" ]', [2, 1, 4, 3, 3, 2], [2, 1, 4, math.inf, 3, 2]),
        ('R{"steps"}=? [ C ]', [2, 1, 4, 3, 3, 2], [2, 1, 4, math.inf, 3, 2]),
        ('R{"steps"}=? [ Cdiscount=0.5 ]', [1.5, 1, 1.875, 1.75, 1.75, 1.5], [1.5, 1, 1.875, 2, 1.75, 1.5]),
    ],
)
def test_episodes_are_scored_between_what_they_can_still_bring(
    text: str, low: list[float], high: list[float]
) -> None:
    model = walk()
    rules, log = rules_of(model, text), play(model, PATHS)
    scores = rules.score(log, np.ones(model.choices))
    assert log.elsewhere == 1 and not rules.at_once
    np.testing.assert_allclose(scores.low, low, atol=1e-8)
    np.testing.assert_allclose(scores.high, high, atol=1e-8)
    assert np.all(scores.low <= np.array(low) + 1e-8) and np.all(scores.high >= np.array(high) - 1e-8)


def test_what_no_episode_can_show_is_not_observed() -> None:
    model = walk()
    counts = simulated(model, 0.5, 50, seed=1)
    for text, words in (
        ('P=? [ F "none" ]', "decided before the first step"),
        ('R{"steps"}=? [ F "goal" ]', "never reaches the end of rewards"),
        ('S=? [ "goal" ]', "long-run averages"),
    ):
        seen = observe(tr.Problem(model, text), counts, 0.01)
        assert isinstance(seen, Unobserved) and words in seen.reason
    table = tr.Simulator(model.instantiate(p=0.5), model_hash=model.hash()).generative(50, seed=1)
    seen = observe(tr.Problem(model, 'P=? [ F "goal" ]'), table, 0.01)
    assert isinstance(seen, Unobserved) and "counts" in seen.reason


def test_a_gap_and_interleaved_episodes() -> None:
    model = walk()
    transition = np.array([0, 0, 3, 1, 2], dtype=np.int32)
    # episode 0: 0→1, 1→0, then a gap, 0→3; episode 1: 0→1, 1→2, between them
    previous = np.array([-1, -1, 0, -1, 1], dtype=np.int32)
    episode = np.array([0, 1, 0, 0, 1], dtype=np.int32)
    log = Episodes.of(model.structure, transition, previous, episode, 3)
    scores = rules_of(model, 'P=? [ F "goal" ]').score(log, np.ones(model.choices))
    assert scores.low.tolist() == [0, 1, 0] and scores.high.tolist() == [1, 1, 1]


@pytest.mark.parametrize("gamma", [0.05, 0.001])
def test_returns_are_bounded_about_as_closely_as_frequencies(gamma: float) -> None:
    random = np.random.default_rng(3)
    values = (random.random(2000) < 0.3).astype(np.float64)
    successes = int(values.sum())
    low, high, method = frequency_interval(successes, 2000 - successes, 2000, gamma, planned=True)
    assert method == "clopper-pearson"
    least, most = mean_interval(Tally.of(values), Tally.of(1 - values), (0.0, 1.0), gamma, 2000)
    assert least < low < 0.3 < high < most
    assert most - least < (1.75 if gamma > 0.01 else 1.4) * (high - low)
    wider = frequency_interval(successes, 1900 - successes, 2000, gamma, planned=True)
    assert wider[0] == low and wider[1] > high


def test_lower_bounds_need_no_upper_limit_and_hold_at_all_times() -> None:
    random = np.random.default_rng(5)
    missed, deviation = 0, 0.0
    for _ in range(repeats(36)):
        values = random.exponential(2.0, 200)
        looks = [lower_mean(Tally.of(values[:n]), 0.1, None) for n in (20, 200)]
        missed += max(looks) > 2.0
        deviation += 2.0 - looks[-1]
    assert missed <= repeats(6) and deviation / repeats(36) < 0.6  # at a rate of .5: 1 in 50 runs would pass


def test_the_answer_of_a_chain_is_what_model_and_outcomes_allow() -> None:
    model = walk()
    problem = tr.Problem(model, 'P=? [ F "goal" ]')
    counts = simulated(model, 0.6, 800, seed=2)
    both = tr.learn(problem, counts, delta=0.01)
    seen = both.outcomes
    assert isinstance(seen, ObservedOutcomes) and seen.model is not None and seen.method == "clopper-pearson"
    assert seen.episodes == seen.decided == 800 == seen.successes + seen.failures
    assert both.interval.lower == max(seen.interval.lower, seen.model.lower)
    assert both.interval.upper == min(seen.interval.upper, seen.model.upper)
    assert 0.6**2 / (1 - 0.6 * 0.4) in both.interval
    assert both.ledger.delta == 0.01 and both.ledger.of_outcomes == seen.delta
    assert both.sets.ledger.delta == pytest.approx(0.01 - seen.delta, rel=1e-12)
    assert both.verdict.word.value == "proved"
    assert [one for one in both.assumptions if one.name == "episodes"]
    record = both.to_json()["outcomes"]
    assert record["observed"] and record["successes"] == seen.successes and record["contradiction"] is None
    alone = tr.learn(problem, counts, delta=0.01, outcomes="none")
    assert alone.outcomes is None and alone.ledger.of_outcomes == 0.0
    assert both.interval.width <= 1.1 * min(alone.interval.width, seen.interval.width)


def test_a_wrong_model_is_contradicted_and_the_outcomes_hold() -> None:
    """The log comes to the goal at the third try, always; the model has one parameter for both steps."""
    model = walk()
    problem = tr.Problem(model, 'P=? [ F "goal" ]')
    data = [[(0, "", 1), (1, "", 0), (0, "", 1), (1, "", 0), (0, "", 1), (1, "", 2)]] * 200
    result = tr.learn(problem, data, delta=0.01, sets="tied")
    seen = result.outcomes
    assert isinstance(seen, ObservedOutcomes) and seen.model is not None
    assert result.verdict.word.value == "contradicted"
    assert 1.0 in seen.interval and seen.model.upper < seen.interval.lower
    assert result.interval == seen.interval and "contradict" in (seen.contradiction or "")
    assert result.guarantee <= result.optimistic_value


def untied_walk(p: float, q: float, episodes: int, seed: int) -> Counts:
    """A log of a walk whose second step has a probability of its own, counted for the model that ties it."""
    parameters = tr.Parameters.box(p=("0.2", "0.8"), q=("0.2", "0.8"))
    one, two = parameters.symbols()
    rows = [(0, "", {1: one, 3: 1 - one}), (1, "", {2: two, 0: 1 - two}), (2, "", {2: 1}), (3, "", {3: 1})]
    real = tr.build_from_rows(rows, parameters, labels={"goal": [2]}).instantiate(p=p, q=q)
    return tr.Simulator(real, model_hash=walk().hash()).episodes(episodes, seed=seed)


def test_a_refuted_model_adds_nothing_to_what_episodes_returned(tmp_path: Path) -> None:
    """The test of the model refutes it, although its interval and that of the outcomes overlap."""
    counts = untied_walk(0.75, 0.5, 300, seed=1)
    result = tr.learn(tr.Problem(walk(), 'P=? [ F "goal" ]'), counts, delta=0.05)
    seen = result.outcomes
    assert result.verdict.word.value == "contradicted" and isinstance(seen, ObservedOutcomes)
    assert seen.model is not None and seen.contradiction is None
    assert seen.interval.lower < seen.model.upper < seen.interval.upper  # so an intersection would be shorter
    assert result.interval == seen.interval and result.guarantee == seen.interval.lower
    assert value_of(result).startswith(f"none; under the contradicted model {seen.model} (")
    assert result.optimistic_value == seen.interval.upper
    record = result.to_json()
    ends = {"lower": seen.interval.lower, "upper": seen.interval.upper}
    assert record["robust_policy"] == ends and record["outcomes"]["interval"] == ends
    saved = tr.load_result(result.save(tmp_path / "result", source="none.prism"))
    assert saved.interval == seen.interval
    answer = statement(saved.document).answer
    assert str(seen.interval.upper)[:6] in answer and str(seen.model.upper)[:6] not in answer
    lines = dict(outcome_facts(result))
    assert "refute" in lines[""] and str(seen.model.upper)[:6] not in lines[""]


def test_parts_that_hardly_meet_are_a_warning() -> None:
    far = ObservedOutcomes(tr.Interval(0.4, 0.6), 0.01, 100, 100, 50, 50, "clopper-pearson", "the chain")
    both, seen = meet(tr.Interval(0.1, 0.42), far)
    assert both == tr.Interval(0.4, 0.42) and seen.contradiction is None
    assert seen.tension is not None and "hardly meet" in seen.tension
    for near in (tr.Interval(0.1, 0.55), tr.Interval(0.1, 0.9), tr.Interval(0.45, 0.5)):
        assert meet(near, far)[1].tension is None
    alone, seen = meet(tr.Interval(0.1, 0.42), far, refuted=True)
    assert alone == far.interval and seen.tension is None and seen.alone


def test_a_temporal_formula_is_observed_in_the_product() -> None:
    model = walk()
    with warnings.catch_warnings(action="ignore"):
        problem = tr.Problem(model, 'P=? [ (F (s=1 & (X (s=0)))) & (F "goal") ]')
        result = tr.learn(problem, simulated(model, 0.6, 500, seed=4), delta=0.01)
    seen, truth = result.outcomes, 0.36 * 0.24 / (1 - 0.24)  # at least one way back, then the goal
    assert isinstance(seen, ObservedOutcomes) and seen.decided == 500
    assert truth in result.interval and truth in seen.interval


def slot_machines() -> tr.ParametricMDP:
    rows = [(0, "a", {1: P, 2: 1 - P}), (0, "b", {1: Q, 2: 1 - Q}), (1, "", {1: 1}), (2, "", {2: 1})]
    return tr.build_from_rows(rows, UNIT, labels={"won": [1]})


UNIT = tr.Parameters.box(p=("0.05", "0.95"), q=("0.05", "0.95"))
P, Q = UNIT.symbols()


def test_a_policy_is_observed_where_the_log_was_collected_by_it() -> None:
    model = slot_machines()
    problem = tr.Problem(model, 'Pmax=? [ F "won" ]')
    policy = tr.Policy(model, [0.5, 0.5, 1.0, 1.0])
    truth = model.instantiate(p=0.4, q=0.8)
    uniform = tr.Simulator(truth, model_hash=model.hash()).episodes(1000, seed=3)
    assert isinstance(tr.learn(problem, uniform).outcomes, Unobserved)
    plain = tr.learn(problem, uniform, delta=0.01, outcomes="none")
    assert tr.learn(problem, uniform, delta=0.01).interval == plain.interval
    result = tr.learn(problem, uniform, delta=0.01, policy=policy)
    assert isinstance(result.outcomes, ObservedOutcomes) and result.outcomes.successes is not None
    assert result.value is not None and 0.6 in result.value.interval
    assert result.robust.interval.width > 0
    first = tr.Policy(model, [1.0, 0.0, 1.0, 1.0])
    assert isinstance(observe(problem, uniform, 0.01, policy=first), Unobserved)
    weighed = observe(problem, uniform, 0.01, policy=first, behaviour="uniform")
    assert isinstance(weighed, ObservedOutcomes) and weighed.method == "betting"
    assert 0.4 in weighed.interval and weighed.interval.width < 0.3
    own = tr.Simulator(truth, first, model_hash=model.hash()).episodes(400, seed=3)
    assert isinstance(observe(problem, own, 0.01, policy=first), ObservedOutcomes)
    assert isinstance(observe(problem, own, 0.01, policy=policy), Unobserved)
    unnamed = replace(uniform, design=replace(uniform.design, followed=None))
    with pytest.raises(tr.InputError, match="stated behaviour never takes"):
        observe(problem, unnamed, 0.01, policy=first, behaviour=first)


@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_episodes_of_a_policy_with_a_memory_are_not_those_of_a_formula_with_another() -> None:
    """Neither a stated behaviour (it ended in IndexError) nor a log that names the policy."""
    model = tr.build_from_rows(
        [(s, a, {1 - s: p, s: 1 - p}) for s in (0, 1) for a, p in (("a", P), ("b", Q))],
        UNIT,
        labels={"one": [1], "zero": [0]},
    )
    problem = tr.Problem(model, 'Pmax=? [ (F "one") & (F (G "zero")) ]')
    turns = tr.Policy(model, tr.FiniteMemoryChoices([0, 1, 0, 1], [0, 0, 1, 1], [0, 2, 1, 3], [1, 1, 0, 0]))
    simulator = tr.Simulator(model.instantiate(p=0.4, q=0.6), model_hash=model.hash(), cap=9)
    uniform = simulator.episodes(20, seed=1)
    named = replace(uniform, design=replace(uniform.design, followed=turns.digest))
    for log, behaviour in ((uniform, "uniform"), (named, None)):
        result = tr.learn(problem, log, policy=turns, behaviour=behaviour)
        assert result.outcomes is not None and "one of its own" in result.outcomes.text


def test_a_behaviour_that_the_choices_of_the_log_refute_is_refused() -> None:
    """Nine of ten choices are the first machine: that was not the uniform policy."""
    model = slot_machines()
    policy, first = (tr.Policy(model, [p, 1.0 - p, 1.0, 1.0]) for p in (0.9, 1.0))
    simulator = tr.Simulator(model.instantiate(p=0.4, q=0.6), policy, model_hash=model.hash())
    many, few = (simulator.episodes(number, seed=3) for number in (200, 5))
    many, few = (replace(log, design=replace(log.design, followed=None)) for log in (many, few))
    problem = tr.Problem(model, 'Pmax=? [ F "won" ]')
    assert isinstance(observe(problem, many, 0.01, policy=first, behaviour=policy), ObservedOutcomes)
    assert isinstance(observe(problem, few, 0.01, policy=first, behaviour="uniform"), ObservedOutcomes)
    with pytest.raises(tr.InputError, match="choices in the log refute the stated behaviour"):
        observe(problem, many, 0.01, policy=first, behaviour="uniform")


def test_a_stated_range_of_returns_that_paths_leave_is_refused() -> None:
    model = walk()
    problem = tr.Problem(model, 'R{"steps"}=? [ F "end" ]')
    counts = simulated(model, 0.5, 600, seed=6)
    seen = observe(problem, counts, 0.01)
    assert isinstance(seen, ObservedOutcomes) and seen.interval.upper == math.inf
    assert 1.0 < seen.interval.lower < 2.0
    with pytest.raises(tr.InputError, match="returns at most 60: paths return without limit"):
        observe(problem, counts, 0.01, return_range=(0, 60))
    with pytest.raises(tr.InputError, match=r"returns at least 1\.5: a path returns 1"):
        tr.learn(problem, counts, return_range=(1.5, 60))
    parameters = tr.Parameters.box(q=("0", "0.01"))
    (q,) = parameters.symbols()
    rows = [(0, "", {1: q, 2: 1 - q}), (1, "", {2: 1}), (2, "", {2: 1})]
    jackpot = tr.build_from_rows(rows, parameters, labels={"end": [2]}, state_rewards={"r": [10, 100000, 0]})
    rules = rules_of(jackpot, 'R=? [ F "end" ]')
    with pytest.raises(tr.InputError, match="returns at most 11: a path returns 100010"):
        rules.refuse_range((0, 11))
    rules.refuse_range((0, 100010))


def test_a_stated_behaviour_is_not_another_one_than_the_data_name() -> None:
    model = slot_machines()
    problem, first = tr.Problem(model, 'Pmax=? [ F "won" ]'), tr.Policy(model, [1.0, 0.0, 1.0, 1.0])
    truth = model.instantiate(p=0.4, q=0.8)
    own = tr.Simulator(truth, first, model_hash=model.hash()).episodes(400, seed=3)
    other = tr.Policy(model, [0.0, 1.0, 1.0, 1.0])
    for wrong in ("uniform", other):
        with pytest.raises(tr.InputError, match="record another policy"):
            observe(problem, own, 0.01, policy=first, behaviour=wrong)
    assert isinstance(observe(problem, own, 0.01, policy=first, behaviour=first), ObservedOutcomes)
    uniform = tr.Simulator(truth, model_hash=model.hash()).episodes(400, seed=3)
    with pytest.raises(tr.InputError, match="record another policy"):
        tr.learn(problem, uniform, policy=first, behaviour=first)


def log_of(paths: list[list[int]], **words: Any) -> Counts:
    """Episodes as a log that says nothing of how it was collected."""
    steps = [(i, a, b) for i, path in enumerate(paths) for a, b in pairwise(path)]
    columns = dict(zip(("episode", "s", "s'"), map(list, zip(*steps, strict=True)), strict=True))
    return tr.read_data(pa.table(columns), walk(), **words).counts


def test_a_number_of_episodes_that_was_planned_and_reached_has_clopper_pearson_intervals() -> None:
    problem = tr.Problem(walk(), 'P=? [ F "goal" ]')
    paths = [[0, 1, 2]] * 11 + [[0, 3]] * 9
    for plan in (20, 19, 21, None):
        counts = log_of(paths, planned_episodes=plan)
        assert counts.design.kind is SamplingKind.ADAPTIVE
        seen = observe(problem, counts, 0.05)
        assert isinstance(seen, ObservedOutcomes)
        assert (*seen.interval, seen.method) == frequency_interval(11, 9, 20, 0.05, plan == 20)
        assert ("fixed in advance" in seen.assumption.why) == (plan == 20)
    counts = log_of(paths, planned_episodes=20, ends="complete")
    planned = tr.learn(problem, counts, delta=0.05, outcomes="only")
    assert planned.verdict.word.value == "proved" and planned.seen is not None
    assert planned.seen.method == "clopper-pearson"
    more = log_of(paths[:12], planned_episodes=12) + log_of(paths[12:], planned_episodes=8)
    later = observe(problem, more, 0.05)  # the second part may have been added after a look at the first
    assert isinstance(later, ObservedOutcomes) and later.method == "beta-binomial"


def test_planned_outcomes_miss_as_rarely_as_they_say() -> None:
    """Of 4,000 logs of 15 episodes at δ = 0.1; those that came out alike are read once."""
    problem, truth = tr.Problem(walk(), 'P=? [ F "goal" ]'), 0.6**2 / (1 - 0.6 * 0.4)
    drawn, often = np.unique(np.random.default_rng(5).binomial(15, truth, 4000), return_counts=True)
    missed = {"clopper-pearson": 0, "beta-binomial": 0}
    for successes, number in zip(drawn.tolist(), often.tolist(), strict=True):
        paths = [[0, 1, 2]] * successes + [[0, 3]] * (15 - successes)
        for plan in (15, None):
            seen = observe(problem, log_of(paths, planned_episodes=plan), 0.1)
            assert isinstance(seen, ObservedOutcomes)
            missed[seen.method] += 0 if truth in seen.interval else number
    assert missed["beta-binomial"] < missed["clopper-pearson"] <= 0.1 * 4000


def test_options_are_refused_where_they_mean_nothing() -> None:
    with pytest.raises(tr.InputError, match="leaves them out"):
        tr.LearnOptions(outcomes="none", behaviour="uniform")
    with pytest.raises(tr.InputError, match="outcomes"):
        tr.LearnOptions(outcomes="sometimes")
    assert SamplingDesign(SamplingKind.TRAJECTORIES, followed="uniform").to_json()["followed"] == "uniform"


def test_outcomes_alone_have_all_of_delta_and_use_nothing_the_model_says_of_probabilities() -> None:
    model = walk()
    problem = tr.Problem(model, 'P=? [ F "goal" ]')
    counts = simulated(model, 0.6, 800, seed=2)
    result = tr.learn(problem, counts, delta=0.01, outcomes="only")
    seen = observe(problem, counts, 0.01)
    assert isinstance(seen, ObservedOutcomes) and result.interval == seen.interval
    assert result.ledger.delta == result.ledger.of_outcomes == 0.01 and result.verdict.word.value == "proved"
    assert [one.name for one in result.assumptions if one.name in ("episodes", "ends of episodes")]
    with pytest.raises(tr.InputError, match="no outcomes to learn from alone"):
        tr.learn(tr.Problem(model, 'S=? [ "goal" ]'), counts, outcomes="only")
    formula = tr.Problem(model, 'P=? [ (F "goal") & (G s>=0) ]')
    alone = "alone: the policy would need a memory"
    with pytest.warns(match="the path is read as"), pytest.raises(tr.InputError, match=alone):
        tr.learn(formula, counts, policy=tr.Policy.uniform(model), outcomes="only")


def test_outcomes_alone_are_refuted_by_episodes_that_are_no_draws_and_by_no_other_misfit() -> None:
    model, draw = walk(), np.random.default_rng(3)
    problem, goal, lost = tr.Problem(model, 'P=? [ F "goal" ]'), [0, 1, 2], [0, 3]
    drawn = [goal if won else lost for won in draw.random(400) < 0.5]
    untied = [lost if draw.random() < 0.7 else [0, 1] * int(draw.geometric(0.9)) + [2] for _ in range(800)]
    kinds = {"drawn": drawn, "untied": untied, "twice": drawn + drawn}
    kinds["later"] = [goal] * 60 + drawn[:140] + [lost] * 200
    words = {}
    for name, paths in kinds.items():
        result = tr.learn(problem, log_of(paths), delta=0.05, outcomes="only")
        words[name] = result.verdict.word.value
    refuted = "contradicted"
    assert words == {"drawn": "proved", "untied": "proved", "twice": refuted, "later": refuted}
    assert tr.learn(problem, log_of(untied), delta=0.05).verdict.word.value == refuted


@pytest.mark.long
def test_the_benchmark_of_widths_and_coverage() -> None:
    done = run_benchmark("outcome_widths.py", "--smoke")
    assert done.returncode == 0, done.stdout
    assert "the model is wrong: outcomes wrong" in done.stdout


def test_delta_is_split_once_before_outcomes_are_looked_at() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    problem = tr.build_from_rows(rows, parameters, labels={"heads": [1]}).problem('P=? [ F "heads" ]')
    counts = tr.read_data([[(0, "", 1)]] * 30 + [[(0, "", 2)]] * 10, problem.model, ends="complete").counts
    chain = Pipeline.start(problem, counts, 0.01, options=tr.LearnOptions())
    split = chain.split
    assert 0.0 < split.of_outcomes < 0.01
    assert split.of_outcomes + split.of_probabilities == pytest.approx(0.01, rel=1e-12)
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.of_outcomes = 0.0
    ledger = chain.result(tr.LearnOptions()).ledger
    assert (ledger.delta, ledger.of_outcomes) == (0.01, split.of_outcomes)
    alone = Pipeline.start(problem, counts, 0.01, options=tr.LearnOptions(outcomes="none")).split
    assert (alone.of_outcomes, alone.of_probabilities, alone.observation) == (0.0, 0.01, None)
