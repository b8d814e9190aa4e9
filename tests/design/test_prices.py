"""Exploration by cost and within a bound on something bad: oracles against brute force, certified online.

Also of `design/more_of_same.py`.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.data.design import SamplingKind
from tightrope.data.simulator import Simulator
from tightrope.design.directions import Information
from tightrope.design.episodes import Episodes
from tightrope.design.exploration import Explore, Safety
from tightrope.design.oracle import Bounded, Cost, best_episodes, careful, entering, price_oracle
from tightrope.learning.online.learner import OnlineLearner
from tightrope.regions.bounds import parameter_box

POINT = np.array([0.3, 0.6])
BAD = np.array([False, False, False, False, True, False])


@pytest.fixture(scope="module")
def walk() -> Any:
    """Two parameters over a few layers; 4 is bad, 5 is good, and "b" is safer than "a" nearly everywhere."""
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.1, 0.9))
    p, q = parameters.symbols()
    rows = [
        (0, "a", {1: p, 2: 1 - p}),
        (0, "b", {1: q, 2: 1 - q}),
        (1, "a", {3: p, 4: 1 - p}),
        (1, "b", {3: q, 5: 1 - q}),
        (2, "a", {3: q, 4: 1 - q}),
        (2, "b", {5: 1}),
        (3, "a", {4: p, 5: 1 - p}),
        (3, "b", {5: 1}),
        (4, "", {4: 1}),
        (5, "", {5: 1}),
    ]
    return tr.build_from_rows(rows, parameters, labels={"good": [5], "crash": [4], "three": [3]})


@pytest.fixture(scope="module")
def setting(walk: Any) -> Any:
    information = Information.at(walk, POINT)
    episodes = Episodes.of(information, BAD)
    bad = entering(walk.structure, information.probability[walk.expression], BAD)
    return information, episodes, bad


def occupancies(walk: Any, episodes: Episodes) -> list[Any]:
    spans = [range(*walk.choice_start[s : s + 2].tolist()) for s in range(walk.states)]
    found = (tr.Policy.of_choices(walk.structure, np.array(c)) for c in itertools.product(*spans))
    return [episodes.occupancy(policy) for policy in found]


@pytest.mark.parametrize("seed", range(2))
def test_the_best_rate_is_that_of_the_best_policy(walk: Any, setting: Any, seed: int) -> None:
    reward = np.random.default_rng(seed).random(walk.choices)
    cost = Cost(0.5, 0.1, (("a", 0.7),))
    price = cost.per_choice(walk.structure)
    answer = price_oracle(best_episodes(setting[1]), cost, walk.structure)(reward)
    best = max(float(o @ reward) / (0.5 + float(o @ price)) for o in occupancies(walk, setting[1]))
    assert answer.value == pytest.approx(best, rel=1e-9)
    assert best <= answer.upper <= best * (1 + 1e-4)
    assert answer.atom.cost == pytest.approx(0.5 + float(answer.atom.occupancy @ price))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("most", [0.05, 0.2, 0.4])
def test_the_best_within_a_bound_is_the_linear_program(
    walk: Any, setting: Any, seed: int, most: float
) -> None:
    """Over mixtures of all deterministic policies: maximise the reward with at most so much of the bad."""
    from scipy.optimize import linprog

    reward = np.random.default_rng(seed).random(walk.choices)
    bad = setting[2]
    every = occupancies(walk, setting[1])
    lp = linprog(
        [-float(o @ reward) for o in every],
        A_ub=[[float(o @ bad) for o in every]],
        b_ub=[most],
        A_eq=[[1.0] * len(every)],
        b_eq=[1.0],
    )
    answer = Bounded(best_episodes(setting[1]), bad, most)(reward)
    assert float(answer.atom.occupancy @ bad) <= most * (1 + 1e-12)
    assert answer.value == pytest.approx(-lp.fun, rel=1e-7)
    assert -lp.fun <= answer.upper * (1 + 1e-12) and answer.upper <= -lp.fun * (1 + 1e-4)
    assert sum(share for share, _ in answer.atom.parts) == pytest.approx(1.0)


def test_a_bound_that_no_policy_keeps_is_refused(walk: Any, setting: Any) -> None:
    harsh = setting[2] + 0.5
    with pytest.raises(tr.InputError, match=r"ends badly with probability .* at least"):
        Bounded(best_episodes(setting[1]), harsh, 0.1)(np.ones(walk.choices))


def test_ties_go_to_the_safer_policy(walk: Any, setting: Any) -> None:
    nothing = np.zeros(walk.choices)
    assert float(best_episodes(setting[1])(nothing).atom.occupancy @ setting[2]) > 0.1
    assert float(careful(best_episodes(setting[1]), setting[2])(nothing).atom.occupancy @ setting[2]) == 0.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("episode", "is not understood"),
        ("minutes=3", "is not understood"),
        ("episode=1,episode=2", "given twice"),
        ("episode=-1", "none may be negative"),
        ("episode=0", "all prices are 0"),
        ("step=nan", "is not understood"),
        ("prices.json", "not a file of prices"),
        ("none.json", "^cannot read none.json"),
    ],
)
def test_wrong_costs_are_refused(
    given: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.json").write_text('{"hour": 3}')
    with pytest.raises(tr.InputError, match=words):
        Cost.parse(given)


def test_prices_come_from_a_text_or_a_file(tmp_path: Path, walk: Any) -> None:
    assert Cost.parse("step=0.5, episode=2") == Cost(2.0, 0.5)
    path = tmp_path / "prices.json"
    path.write_text('{"episode": 1, "actions": {"a": 0.25}}')
    found = Cost.parse(str(path))
    assert found == Cost(1.0, 0.0, (("a", 0.25),))
    names = [walk.structure.action_name(c) for c in range(walk.choices)]
    assert found.per_choice(walk.structure).tolist() == [0.25 * (name == "a") for name in names]
    path.write_text('{"actions": {"jump": 1}}')
    with pytest.raises(tr.InputError, match="'jump', which the model does not have"):
        Cost.parse(str(path)).per_choice(walk.structure)


GOAL = 'Pmax=? [ F "good" ]'


def pilot(walk: Any, episodes: int) -> tr.Counts:
    truth = Simulator(walk.instantiate([0.6, 0.5]), None, None, 50, walk.hash(), threads=1)
    return truth.episodes(episodes, 3)


def learner(walk: Any, **asked: Any) -> OnlineLearner:
    asked = {"region": "likelihood", "sets": "expression", "delta": 0.05, **asked}
    return tr.online(walk.problem(GOAL), **asked)


@pytest.mark.parametrize("most", [0.05, 0.2])
def test_exploration_keeps_its_certified_bound_everywhere_in_the_region(walk: Any, most: float) -> None:
    online = learner(walk, explore=Explore("designed", avoid='"crash"', at_most=most), data=pilot(walk, 400))
    online.update()
    found = online.last_design
    assert found is not None and found.certified is not None and found.certified <= most
    safety = Safety.of(walk, '"crash"', most, BAD)
    region = online.result().region
    assert region is not None
    low, high = parameter_box(region)  # over which expression sets allow every point
    for point in itertools.product(*np.linspace(low, high, 5).T.tolist()):
        at = tr.Problem(walk.instantiate(list(point)), safety.objective)
        assert tr.solve(at, policy=online.policy()).lower[0] <= found.certified + 1e-9


def test_exploration_that_cannot_be_certified_is_refused_in_words(walk: Any) -> None:
    online = learner(walk, explore=Explore("designed", avoid='"crash"', at_most=0.001))
    online.update()  # "b" leads nowhere bad
    found = online.last_design
    assert found is not None and found.certified is not None and found.certified <= 0.001
    rows = [(0, "go", {1: walk.parameters.symbols()[0], 2: 1 - walk.parameters.symbols()[0]})]
    rows += [(1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, walk.parameters, labels={"crash": [1], "good": [2]})
    forced = tr.online(
        model.problem(GOAL), explore=Explore("designed", avoid='"crash"', at_most=0.3), sets="tied"
    )
    with pytest.raises(tr.CannotCertify, match="the safest policy is certified at 1\n"):
        forced.update()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"way": "designed", "avoid": '"crash"'}, "requires `at_most`"),
        ({"way": "robust", "cost": "step=1"}, "requires designed exploration"),
        ({"way": "uniform", "avoid": '"crash"', "at_most": 0.1}, "requires designed exploration"),
    ],
)
def test_what_only_designs_can_do_is_refused_of_others(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(tr.InputError, match=words):
        Explore(**asked)


@pytest.mark.parametrize("text", ['<=3 "crash"', 'F "crash"', '"nowhere"', '"crash" ] | [ "goal"', ""])
def test_only_formulas_of_states_are_avoided(walk: Any, text: str) -> None:
    """Spliced into a path, the first would be read as a step bound and the bound forgotten."""
    with pytest.raises(tr.InputError, match="no formula of states"):
        Safety.of(walk, text, 0.3, np.zeros(walk.states, np.bool_))


def test_states_to_avoid_must_be_avoidable(walk: Any) -> None:
    with pytest.raises(tr.InputError, match="not a probability between 0 and 1"):
        Safety.of(walk, '"crash"', 1.5, BAD)
    with pytest.raises(tr.InputError, match="holds in the initial state"):
        Safety.of(walk, "true", 0.5, BAD)
    with pytest.raises(tr.InputError, match="holds nowhere"):
        Safety.of(walk, "false", 0.5, BAD)


def test_a_run_that_begins_with_data_goes_on_from_them(walk: Any) -> None:
    data = pilot(walk, 100)
    online = learner(walk, data=data, explore="designed")
    assert online.episodes == 100 and online.data.steps == data.steps
    again = online.data.counts()
    assert np.array_equal(again.transition, data.transition) and again.batches == data.batches
    assert again.design.kind is SamplingKind.ADAPTIVE and again.design.episodes == 100
    update = online.update()
    online.observe([(0, "a", 1), (1, "b", 5)])
    assert update.episode == 100 and online.episodes == 101
    assert online.data.counts().design.steps == data.steps + 2
    other = tr.build_from_rows([(0, "a", {0: 1})])
    with pytest.raises(tr.InputError, match="another model"):
        learner(walk, data=tr.Simulator(other.instantiate([]), model_hash=other.hash()).episodes(3, 1))


THREE = 'Pmax=? [ F "three" ]'


@pytest.mark.costly("test_a_plan_keeps_out_of_what_is_to_be_avoided")
def test_a_plan_by_steps_takes_fewer_of_them(walk: Any) -> None:
    words: dict[str, Any] = {"gap": 0.05, "region": "likelihood", "sets": "expression", "delta": 0.05}
    data = pilot(walk, 200)
    by_episode = tr.plan(walk.problem(THREE), data, **words)
    by_step = tr.plan(walk.problem(THREE), data, cost="step=1", **words)
    assert by_step.designed is not None and by_episode.designed is not None
    assert by_step.designed.total_steps <= by_episode.designed.total_steps * 1.01
    assert by_step.designed.total_cost == pytest.approx(by_step.designed.total_steps)
    assert by_episode.designed.total_cost == by_episode.designed.episodes


def test_a_plan_keeps_out_of_what_is_to_be_avoided(walk: Any) -> None:
    words: dict[str, Any] = {"gap": 0.05, "region": "likelihood", "sets": "expression", "delta": 0.05}
    found = tr.plan(walk.problem(THREE), pilot(walk, 200), avoid='"crash"', at_most=0.1, **words)
    made = found.exploration
    assert made is not None and made.certified is not None and made.certified <= 0.1
    stop = np.array([False, False, False, True, False, False])  # where the question is decided
    truth = tr.Problem(walk.instantiate([0.6, 0.5]), Safety.of(walk, '"crash"', 0.1, stop).objective)
    assert tr.solve(truth, policy=made.policy).lower[0] <= made.certified
    assert found.to_json()["design"]["certified"] == made.certified
    drawn = sum(
        share * tr.solve(truth, policy=one).lower[0]
        for share, one in zip(made.shares, made.policies, strict=True)
    )
    assert made.certified_drawn is not None and drawn <= made.certified_drawn <= 0.1


def test_policies_drawn_per_episode_are_certified_together(walk: Any) -> None:
    """Nature does its worst against each; those that depend on the step are followed to the cap."""
    stop = np.zeros(6, dtype=np.bool_)
    safety = Safety.of(walk, '"crash"', 0.5, stop)
    sets = tr.learn(walk.problem(THREE), pilot(walk, 200), region="likelihood", sets="expression").sets
    first = walk.choice_start[:-1].copy()  # "a" everywhere
    bold, safe = tr.Policy.of_choices(walk, first), tr.Policy.of_choices(walk, first + (np.arange(6) < 4))
    alone = [safety.certified(sets, policy)[0] for policy in (bold, safe)]
    both = safety.certified_drawn(sets, [(0.25, bold), (0.75, safe)], None)
    assert both == pytest.approx(0.25 * alone[0] + 0.75 * alone[1], rel=1e-3)
    information = Information.at(walk, POINT)
    capped = Episodes.of(information, BAD, 2)
    bad = entering(walk.structure, information.probability[walk.expression], BAD)
    risky = best_episodes(capped)(bad).atom.parts[0][1]
    assert risky.depends_on_step
    cut = safety.certified_drawn(sets, [(1.0, risky)], 2)
    assert 0.0 < cut <= max(alone) + 1e-3 and cut < safety.certified_drawn(sets, [(1.0, bold)], None) + 1e-3


@pytest.mark.costly("design/test_draws.py::test_a_table_is_read_back_and_sampled_as_planned")
def test_planned_draws_are_drawn_and_narrow_the_gap(
    walk: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tightrope.data.collection import read_draws

    words: dict[str, Any] = {"region": "likelihood", "sets": "expression", "delta": 0.05}
    data = pilot(walk, 200)
    found = tr.plan(walk.problem(THREE), data, gap=0.05, generative=True, **words)
    assert found.unit == "draws" and found.draws is not None and found.exploration is None
    even = next(one for one in found.strategies if one.name == "even")
    assert found.episodes <= even.episodes * 1.12  # a tenth of the draws is even in any case
    assert int(found.draws.draws.sum()) == found.next_episodes
    found.save(tmp_path / "plan")
    planned = read_draws(tmp_path / "plan" / "draws.json", walk)
    assert planned.draws.tolist() == found.draws.draws.tolist() and planned.planned_from is not None
    simulator = Simulator(walk.instantiate([0.6, 0.5]), None, None, 50, walk.hash(), threads=1)
    drawn = simulator.generative(planned.per_choice, 7)
    gap = tr.learn(walk.problem(THREE), data + drawn, **words).robust.interval.width
    assert gap <= 1.3 * 0.05
    with pytest.raises(tr.InputError, match="about episodes"):
        tr.plan(walk.problem(THREE), data, gap=0.05, generative=True, cost="step=1", **words)
