"""The online learner: when it updates, that it equals a fresh `learn`, and that its guarantees are kept."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import tightrope
import tightrope as tr
from learning_cases import case
from online_cases import learner, simulator, source, truth, two_coins
from tightrope.ambiguity.sets import SetsKind
from tightrope.data.collection import GrowingCounts, simulate_until_doubled
from tightrope.data.counts import batch_ends
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.learning.online.run import OnlineRun, SimulatedEpisodes, Truth
from tightrope.learning.options import LearnOptions
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.provenance import Overlap
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import own_kinds, region_kind
from tightrope.statistics.confidence_budget import Assumption
from tightrope.statistics.estimates import IntervalMethod

CYCLIC_TOO = (None, region_kind("polytope"))
PROJECTED = (SetsKind.PARAMETER, SetsKind.EXPRESSION, SetsKind.RECTANGULAR)
COMBINATIONS = [
    *((None, kind) for kind in SetsKind if not kind.has_region),
    *((region, kind) for region in own_kinds() if not region.bets for kind in PROJECTED),
]
"""All but those that bet on policies: `test_slab_learning`."""

GOAL = 'Pmax=? [ F "goal" ]'


def test_an_update_is_due_where_a_choice_has_been_taken_as_often_as_before() -> None:
    data = GrowingCounts(two_coins())
    first, second = 0, 2  # heads of either coin
    due = []
    for transition in [first, second, first, first, second, first, first, first, first, second]:
        data.add(np.array([transition]))
        due.append(data.update_is_due)
        if data.update_is_due:
            data.look()
    # visits of (first, second) at updates: (1,0) (1,1) (2,1) (3,2) then 6 of the first
    assert due == [True, True, True, False, True, False, False, True, False, False]
    assert data.counts().visits.tolist()[:2] == [7, 3]
    assert data.counts().batches is not None
    assert data.counts().batches == GrowingCounts.restored(two_coins(), data.state()).counts().batches


def test_resumed_data_remember_the_log_that_they_began_with() -> None:
    problem = case("betting(4)").problem
    log = case("betting(4)").counts(80, seed=3)
    data = GrowingCounts(problem.model)
    data.begin_with(log)
    again = GrowingCounts.restored(problem.model, data.state())
    again.add(np.flatnonzero(log.transition)[:1])
    assert again.counts().provenance.overlap(log.provenance) is Overlap.PART
    third = GrowingCounts.restored(problem.model, again.state())
    assert third.counts().provenance == again.counts().provenance


def test_compiled_episodes_are_those_of_the_simulator_and_stop_where_a_choice_doubles() -> None:
    problem = case("betting(8)")
    policy = Policy.uniform(problem.model.structure)
    walker = simulator(problem)
    data, slow = GrowingCounts(problem.model), GrowingCounts(problem.model)
    ends, expected = [], []
    while data.episodes < 60:
        simulate_until_doubled(walker, policy, 7, data, 60)
        if data.update_is_due:
            ends.append(data.episodes)
            data.look()
    for block in walker.trajectories(60, 7):
        for number in range(60):
            slow.add(block.transition[block.episode == number])
            if slow.update_is_due:
                expected.append(number + 1)
                slow.look()
    assert ends == expected and len(ends) > 5
    assert data.counts() == slow.counts()
    whole = Simulator(walker.mdp, policy, walker.stop, walker.cap, walker.model_hash).episodes(60, 7)
    assert data.counts().batches == whole.batches


def test_portions_do_not_matter() -> None:
    problem = case("glider(5,5)")
    policy = Policy.uniform(problem.model.structure)
    at_once, bit_by_bit = GrowingCounts(problem.model), GrowingCounts(problem.model)
    simulate_until_doubled(simulator(problem), policy, 3, at_once, 1000)
    while not bit_by_bit.update_is_due:
        simulate_until_doubled(simulator(problem), policy, 3, bit_by_bit, bit_by_bit.episodes + 1)
    assert bit_by_bit.episodes == at_once.episodes < 1000
    assert bit_by_bit.counts() == at_once.counts()


@pytest.mark.thinned(7)
@pytest.mark.parametrize(
    ("name", "region", "kind"),
    [
        *(("aircraft(5,3)", region, kind) for region, kind in COMBINATIONS),
        *(("glider(5,5)", region, kind) for region, kind in COMBINATIONS if region in CYCLIC_TOO),
    ],
)
def test_an_incremental_update_is_what_learn_says_of_the_same_counts(
    name: str, region: RegionKind | None, kind: SetsKind
) -> None:
    options = LearnOptions(region=region, sets=kind, precision=1e-10, iterations=2000)
    online = learner(name, **options.words)
    last = list(OnlineRun(online, source(name), 36).records())[-1]
    assert online.last_update is not None and last["update"] > 8
    counts = online.data.counts()
    fresh = learn(case(name).problem, counts, delta=0.001, **options.words)
    assert counts.batches is not None and len(counts.batches) == len(batch_ends(36))
    assert float(last["guarantee"]) == pytest.approx(fresh.guarantee, rel=1e-9)
    assert last["optimistic"] == pytest.approx(fresh.optimistic_value, rel=1e-9)
    assert online.ledger == fresh.ledger
    if fresh.intervals is not None:
        kept = online._intervals  # most of them older than the last update
        assert kept is not None and np.array_equal(kept.lower, fresh.intervals.lower)
        assert np.array_equal(kept.upper, fresh.intervals.upper)
    result = online.result()
    assert result.robust.interval == fresh.robust.interval
    assert np.array_equal(result.sets.lower, fresh.sets.lower)
    assert np.array_equal(result.sets.upper, fresh.sets.upper)
    assert result.decisions == fresh.decisions == online.decisions


def test_coupled_sets_guarantee_more_and_equal_learn_too() -> None:
    name, options = "betting(8)", LearnOptions(region=region_kind("polytope"), sets=SetsKind.COUPLED)
    online = learner(name, **options.words)
    for record in OnlineRun(online, source(name), 6, truth(name)).records():
        assert record["holds"]
    fresh = learn(case(name).problem, online.data.counts(), delta=0.001, **options.words)
    wider = learn(
        case(name).problem, online.data.counts(), delta=0.001, **options.with_sets(SetsKind.RECTANGULAR).words
    )
    assert record["guarantee"] == pytest.approx(fresh.guarantee, rel=1e-9)
    assert record["guarantee"] >= wider.guarantee


def test_learning_finds_the_better_coin_and_says_so() -> None:
    model = two_coins()
    online = tr.online(Problem(model, GOAL), delta=0.05)
    mdp = model.instantiate((0.3, 0.8))
    run = OnlineRun(online, SimulatedEpisodes(Simulator(mdp), 5), 3000, Truth(mdp, online.objective))
    records = list(run.records())
    first, last = records[0], records[-1]
    assert first["guarantee"] == 0.0 and first["optimistic"] == 1.0
    assert last["performance"] == pytest.approx(0.8)
    assert 0.72 < last["guarantee"] < 0.8 < last["optimistic"] < 0.88
    assert all(record["holds"] for record in records)
    visits = online.data.visits
    assert visits[1] > 20 * visits[0] > 0, "optimism tries the worse coin, and leaves it"
    assert online.result().guarantee == pytest.approx(last["guarantee"], rel=1e-9)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("region", "runs"), [(region_kind("polytope"), 12), (region_kind("likelihood"), 3)])
def test_all_guarantees_of_a_run_hold_together(region: RegionKind, runs: int) -> None:
    """Runs at δ = 0.2 of two coins: one with any broken guarantee is a miss."""
    model, delta = two_coins(), 0.2
    mdp = model.instantiate((0.5, 0.55))
    missed = updates = 0
    for seed in range(runs):
        online = tr.online(Problem(model, GOAL), delta=delta, region=region, sets="expression")
        run = OnlineRun(online, SimulatedEpisodes(Simulator(mdp), seed), 25, Truth(mdp, online.objective))
        records = list(run.records())
        updates += len(records)
        missed += any(record["holds"] is False for record in records)
    assert updates > 4 * runs
    assert missed <= delta * runs


def test_time_uniform_methods_are_the_default_and_others_are_labelled() -> None:
    model = two_coins()
    default = tr.online(Problem(model, GOAL))
    default.update()
    assert default.decisions.interval is IntervalMethod.BETA_BINOMIAL
    assert default.ledger is not None and default.ledger.holds
    assert default.ledger.assumption is Assumption.ADAPTIVE_ANYTIME
    asked = tr.online(Problem(model, GOAL), **LearnOptions(interval=IntervalMethod.CLOPPER_PEARSON).words)
    asked.update()
    assert asked.ledger is not None and not asked.ledger.holds
    assert "not" in " ".join(asked.ledger.lines)


def test_a_guarantee_can_be_infinite() -> None:
    online = learner("engagement(3)", sets="tied")
    records = list(OnlineRun(online, source("engagement(3)"), 5, truth("engagement(3)")).records())
    assert float(records[0]["guarantee"]) == math.inf and records[0]["holds"] is True
    assert float(records[0]["width"]) == math.inf
    assert json.dumps(float("inf")) == "Infinity", "which is why journals write it as a string"


def test_episodes_are_observed_in_many_forms() -> None:
    model = two_coins()
    forms = [[(0, "first", 1)], [({"x": 0}, 0, {"x": 1})], [((0,), "first", (1,))], np.array([0]), [0]]
    learners = [tightrope.online(Problem(model, GOAL)) for _ in forms]
    updates = [one.observe(form) for one, form in zip(learners, forms, strict=True)]
    assert all(update is not None and update.episode == 1 and update.steps == 1 for update in updates)
    assert len({one.data.counts().transition.tobytes() for one in learners}) == 1
    assert learners[0].observe([]) is None and learners[0].episodes == 2
    taken = learners[0].policy().choice
    assert taken.shape == (3,) and taken[0] in (0, 1)


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        ([(0, "third", 1)], "'third' is not enabled"),
        ([(0, 2, 1)], "action 2 is not enabled"),
        ([(0, "first", 0)], "no transition"),
        ([(7, "first", 1)], "7 is none of the model's named states: 0, 1, 2"),
        ([(0, "first")], "is not a step"),
        ([17], "there is no transition 17"),
        ([(0, "first", 1), (0, "first", 1)], "begins in state"),
        ([(1, "stay", 1)], "begins in state"),
    ],
)
def test_episodes_that_the_model_excludes_are_refused(episode: list[object], message: str) -> None:
    online = tr.online(Problem(two_coins(), GOAL))
    with pytest.raises(InputError, match=message):
        online.observe(episode)
    assert online.episodes == 0 and online.data.steps == 0


def test_wrong_questions_are_refused() -> None:
    model = two_coins()
    with pytest.raises(InputError, match="delta"):
        tr.online(Problem(model, GOAL), delta=0.0)
    with pytest.raises(InputError, match="sets"):
        tr.online(Problem(model, GOAL), sets="square")
    with pytest.raises(InputError, match="true or false"):
        tr.online(Problem(model, 'P>=0.5 [ F "goal" ]'))
    plain = ParametricMDP(model.structure, *_constant(model))
    with pytest.raises(InputError, match="no parameters"):
        tr.online(Problem(plain, GOAL))


def _constant(model: ParametricMDP) -> tuple[object, ...]:
    from tightrope.model.builder import build_from_function
    from tightrope.model.parameters import Parameters

    same = build_from_function(
        0,
        lambda x: {"first": {1: "1/2", 2: "1/2"}, "second": {1: "1/4", 2: "3/4"}} if x == 0 else {"": {x: 1}},
        Parameters(),
    )
    assert isinstance(same, ParametricMDP)
    return same.expression, same.expressions, same.parameters


@pytest.mark.parametrize("question", ['Pmax=? [ F "won" ]', 'Pmax=? [ (!"lost") U (X "won") ]'])
@pytest.mark.parametrize("depends", [False, True])
@pytest.mark.filterwarnings("ignore:the path is read as")
def test_rows_that_depend_on_earlier_ones_refute_the_model(depends: bool, question: str) -> None:
    """Half of the episodes are won whatever is done; or those after `b`, which the model does not see."""
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "a", {1: 1}), (0, "b", {1: 1}), (1, "go", {2: p, 3: 1 - p}), (2, "", {2: 1}), (3, "", {3: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"won": [2], "lost": [3]})
    learner, rng = tr.online(model.problem(question), delta=0.05, sets="tied"), np.random.default_rng(4)
    for number in range(200):
        action, luck = ("a", "b")[number % 2], rng.random() < 0.5
        won = (action == "b") if depends else luck
        learner.observe([(0, action, 1), (1, "go", 2 if won else 3)])
    word = "contradicted" if depends else "proved"
    assert (learner.verdict.word, learner.result().verdict.word) == (word, word)
    assert (learner.best_guarantee is None) == depends
    restored = tr.online(model.problem(question), delta=0.05, sets="tied")
    restored.restore(learner.state())
    assert restored.verdict == learner.verdict
    told = "tested: model contradicted" if depends else "all rows tested"
    assert told in next(one.why for one in restored.verdict.assumptions if one.name == "model")
