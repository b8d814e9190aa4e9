"""Rewards that are polynomials in the parameters: at points against Storm, over regions, else refused."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import stormpy

import tightrope as tr
from places import TESTS
from same_model import read_jani
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.jani.write import write_jani
from tightrope.model.structure import ParametricReward
from tightrope.prism.load import load_prism_text, read_program

INVENTORY = TESTS / "models" / "rewards" / "inventory.prism"
ASKED = 'R{"cost"}min=? [ F "end" ]'
RANGES = {"d": (0.2, 0.6), "h": (0.1, 0.5)}


@pytest.fixture(scope="module")
def model() -> tr.ParametricMDP:
    found = tr.load(INVENTORY, params=RANGES)
    assert isinstance(found, tr.ParametricMDP)
    return found


@pytest.fixture(scope="module")
def over(model: tr.ParametricMDP) -> Any:
    return tr.solve(model.problem(ASKED), sets="rectangular")


def test_the_polynomials_of_choices(model: tr.ParametricMDP) -> None:
    reward = model.rewards["cost"]
    assert isinstance(reward, ParametricReward)
    texts = [reward.expressions.text(row) for row in reward.expression.tolist()]
    structure = model.structure
    by_name = {
        (structure.state_name(s), structure.action_name(c)): texts[c]
        for c, s in enumerate(structure.choice_state)
    }
    assert by_name["(stock=1,day=0)", "order"] == "h + 1"
    assert by_name["(stock=0,day=1)", "wait"] == "4*d"
    assert by_name["(stock=2,day=6)", ""] == "0"


@pytest.mark.parametrize("point", [(Fraction(2, 5), Fraction(1, 4)), (Fraction(1, 5), Fraction(1, 2))])
def test_values_at_points_against_storm(model: tr.ParametricMDP, point: tuple[Fraction, Fraction]) -> None:
    program = stormpy.parse_prism_program(str(INVENTORY), simplify=False)
    program, _ = stormpy.instantiate_constants(program, f"d={point[0]},h={point[1]}")
    (formula,) = stormpy.parse_properties(ASKED, program)
    storm = stormpy.build_model[stormpy.Rational](program, [formula])
    exact = Fraction(str(stormpy.model_checking(storm, formula)[storm.initial_states[0]]).split()[0])
    found = tr.solve(model.problem(ASKED).at(d=point[0], h=point[1])).at_initial_states
    assert found.lower <= exact <= found.upper and found.upper - found.lower < 1e-5


def test_the_interval_over_the_domain_holds_at_its_points(model: tr.ParametricMDP, over: Any) -> None:
    problem, interval = model.problem(ASKED), over.interval
    ends = []
    for d, h in product((0.2, 0.3, 0.6), (0.1, 0.25, 0.5)):
        value = tr.solve(problem.at(d=d, h=h), policy=over.policy).at_initial_states
        assert interval.lower <= value.upper and value.lower <= interval.upper
        ends.append(value.lower)
    # The costs rise in both parameters, so nature's choices are those of one point: nothing is given away.
    assert interval.lower == pytest.approx(min(ends), rel=1e-5)
    assert interval.upper == pytest.approx(max(ends), rel=1e-5)


def test_learning_narrows_what_probabilities_share(model: tr.ParametricMDP, over: Any) -> None:
    truth = model.instantiate(d=0.4, h=0.25)
    data = tr.Simulator(truth, model_hash=model.hash()).episodes(400, seed=7)
    for sets in ("rectangular", "expression"):
        learned = tr.learn(model.problem(ASKED), data, delta=0.05, sets=sets, region="polytope")
        value = tr.solve(model.problem(ASKED).at(d=0.4, h=0.25), policy=learned.policy).at_initial_states
        assert learned.interval.lower <= value.lower and value.upper <= learned.interval.upper
        assert learned.interval.upper - learned.interval.lower < over.interval.upper - over.interval.lower


def test_what_needs_numbers_is_refused(model: tr.ParametricMDP, tmp_path: Path) -> None:
    problem = model.problem(ASKED)
    truth = model.instantiate(d=0.4, h=0.25)
    data = tr.Simulator(truth, model_hash=model.hash()).episodes(20, seed=7)
    for ask in (
        lambda: tr.learn(problem, data, region="slab"),
        lambda: model.rewards["cost"].per_choice(model.structure),
    ):
        with pytest.raises(InputError, match="the rewards 'cost' depend on parameters"):
            ask()
    assert not list(tmp_path.iterdir())


def test_plans_forecast_rewards_with_parameters(model: tr.ParametricMDP) -> None:
    """The width after 2,000 more episodes lies within the range that 100 forecast."""
    problem = model.problem(ASKED)
    simulated = tr.Simulator(model.instantiate(d=0.4, h=0.25), model_hash=model.hash())
    found = tr.plan(problem, simulated.episodes(100, seed=7), budget=2000, delta=0.05)
    forecast = found.curve(2000)
    came = tr.learn(problem, simulated.episodes(2100, seed=8), delta=0.05).robust.interval.width
    assert forecast.low <= came <= forecast.high < found.gap_now
    assert "no exploration is designed" in found.notes[0]
    with pytest.raises(InputError, match="requires designed exploration"):
        tr.plan(problem, simulated.episodes(100, seed=7), budget=2000, generative=True)


@pytest.fixture(scope="module")
def tense() -> tr.ParametricMDP:
    """Rewards of both signs that rise in h where one state earns and fall where the other does."""
    parameters = tr.Parameters.box(p=(0.1, 0.9), h=(-1, 2))
    p, h = parameters.symbols()
    rows = [(0, "go", {0: p / 2, 1: 1 - p, 2: p / 2}), (1, "x", {1: p / 2, 2: 1 - p / 2}), (2, "", {2: 1})]
    rewards = {"c": [h - p, 1 - h + p, 0]}
    found = tr.build_from_rows(rows, parameters, labels={"end": [2]}, choice_rewards=rewards)
    assert isinstance(found, tr.ParametricMDP)
    return found


@pytest.mark.parametrize(
    ("asked", "words"), [('R{"c"}max=? [ F "end" ]', {}), ('R{"c"}max=? [ C ]', {"discount": 0.9})]
)
def test_one_vector_for_probabilities_and_rewards(
    tense: tr.ParametricMDP, asked: str, words: dict[str, Any]
) -> None:
    problem = tense.problem(asked, **words)
    coupled = tr.solve(problem, sets="coupled").interval
    apart = tr.solve(problem, sets="rectangular").interval
    values = [
        float(tr.solve(problem.at(p=p, h=h)).at_initial_states.lower)
        for p, h in product((0.1, 0.5, 0.9), (-1, 0.5, 2))
    ]
    assert coupled.lower == pytest.approx(min(values), abs=1e-4)
    assert coupled.upper == pytest.approx(max(values), abs=1e-4)
    assert coupled.width < 0.8 * apart.width


def test_coupled_over_a_learned_region_and_with_a_step_bound(tense: tr.ParametricMDP) -> None:
    counts = tr.Simulator(tense.instantiate(p=0.5, h=1), model_hash=tense.hash()).episodes(300, seed=3)
    learned = tr.learn(tense.problem('R{"c"}max=? [ F "end" ]'), counts, delta=0.05, sets="coupled")
    assert learned.robust.coupled is not None
    value = tr.solve(tense.problem('R{"c"}max=? [ F "end" ]').at(p=0.5, h=1)).at_initial_states
    assert learned.interval.lower <= value.lower and value.upper <= learned.interval.upper
    steps = tense.problem('R{"c"}max=? [ C<=3 ]')
    bounded = tr.solve(steps, sets="coupled", policy=[0, 0, 0]).interval
    # One policy: its best and worst values lie at corners of the box, but for a little in between.
    values = [
        float(tr.solve(steps.at(p=p, h=h)).at_initial_states.lower) for p, h in product((0.1, 0.9), (-1, 2))
    ]
    assert bounded.lower <= min(values) <= max(values) <= bounded.upper < max(values) + 0.05


def test_products_that_no_probability_has() -> None:
    parameters = tr.Parameters.box(p=(0.1, 0.9), h=(0, 1))
    p, h = parameters.symbols()
    rows = [(0, "go", {0: p, 1: 1 - p}), (1, "", {1: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"end": [1]}, choice_rewards={"c": [h * h, 0]})
    problem = model.problem('R{"c"}min=? [ F "end" ]')
    assert tr.solve(problem, sets="rectangular").interval.upper == pytest.approx(10, rel=1e-4)
    with pytest.raises(InputError, match=r"the reward h\^2 has a product of parameters that occurs in no"):
        tr.solve(problem, sets="coupled")
    log = [{"state": 0, "action": "go", "next_state": 1, "cost": 0.5, "episode": i} for i in range(9)]
    with pytest.raises(InputError, match=r"the reward h\^2 has a product of parameters that occurs in no"):
        tr.learn(problem, pd.DataFrame(log), cost_range=(0, 1))


def test_rewards_by_successor_and_negative_ones_against_storm(tmp_path: Path) -> None:
    """Storm reads what is written as DRN, where a choice earns the expectation."""
    parameters = tr.Parameters.box(p=(0.1, 0.9), h=(-2, 2))
    p, h = parameters.symbols()
    model = tr.build_from_rows(
        [(0, "a", {0: p, 1: 1 - p}), (0, "b", {1: p, 2: 1 - p}), (1, "c", {2: 1}), (2, "", {2: 1})],
        parameters,
        labels={"end": [2]},
        state_rewards={"c": [-1, h, 0]},
        transition_rewards={"c": [{0: h, 1: 1 - 2 * h}, {1: p * h}, {2: -h}, {}]},
    )
    model.save(tmp_path / "m.drn")
    storm = stormpy.build_model_from_drn[stormpy.RationalFunction](str(tmp_path / "m.drn"))
    variables = {each.name: each for each in storm.collect_all_parameters()}
    asked = 'R{"c"}max=? [ F "end" ]'
    for point in ({"p": Fraction(1, 4), "h": Fraction(3, 2)}, {"p": Fraction(2, 3), "h": Fraction(-1)}):
        exact = {variables[n]: stormpy.RationalFunctionCoefficient(str(v)) for n, v in point.items()}
        earned = [
            float(Fraction(str(r.evaluate(exact)))) for r in storm.reward_models["c"].state_action_rewards
        ]
        plain = model.instantiate(point)
        assert plain.rewards["c"].choice.tolist() == pytest.approx(earned)
        found = tr.solve(model.problem(asked).at(point)).at_initial_states
        q, v = point["p"], point["h"]
        after = v - v
        first = (-1 + q * v + (1 - q) * (1 - 2 * v + after)) / (1 - q)
        second = -1 + q * (q * v + after)
        assert found.lower == pytest.approx(float(max(first, second)), abs=1e-6)


def test_copies_and_identity(model: tr.ParametricMDP) -> None:
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other == model and other.hash() == model.hash()
    text = INVENTORY.read_text()
    changed = load_prism_text(text.replace("h*stock", "2*h*stock"), "m.prism", box="d=0.2:0.6,h=0.1:0.5")
    assert changed.hash() != model.hash() and changed != model


def test_jani_holds_them(model: tr.ParametricMDP, tmp_path: Path) -> None:
    write_jani(read_program(INVENTORY), tmp_path / "m.jani")
    assert read_jani(tmp_path / "m.jani", box="d=0.2:0.6,h=0.1:0.5").hash() == model.hash()


def test_drn_holds_them_and_storm_reads_them(model: tr.ParametricMDP, tmp_path: Path) -> None:
    file = tmp_path / "m.drn"
    model.save(file)
    assert tr.load(file).hash() == model.hash() and tr.load(file).rewards["cost"] == model.rewards["cost"]
    storm = stormpy.build_model_from_drn[stormpy.RationalFunction](str(file))
    variables = {each.name: each for each in storm.collect_all_parameters()}
    point = {
        variables[name]: stormpy.RationalFunctionCoefficient(text)
        for name, text in (("d", "2/5"), ("h", "1/4"))
    }
    theirs = [
        float(Fraction(str(r.evaluate(point)))) for r in storm.reward_models["cost"].state_action_rewards
    ]
    assert theirs == model.rewards["cost"].at((Fraction(2, 5), Fraction(1, 4))).choice.tolist()


def test_drn_adds_what_states_and_choices_earn(tmp_path: Path) -> None:
    text = """@type: MDP
@parameters
p
@reward_models
r s
@nr_states
2
@nr_choices
3
@model
state 0 [p, 1] init
	action a [1/3, 2]
		1 : 1
	action b
		0 : p
		1 : 1-p
state 1
	action a
		1 : 1
"""
    (tmp_path / "m.drn").write_text(text)
    model = tr.load(tmp_path / "m.drn")
    reward, plain = model.rewards["r"], model.rewards["s"]
    assert isinstance(reward, ParametricReward) and not isinstance(plain, ParametricReward)
    assert [reward.expressions.text(row) for row in reward.expression.tolist()] == ["p + 1/3", "p", "0"]
    assert plain.per_choice(model.structure).tolist() == [3.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("1/h", "a reward is not a polynomial in the parameters: division by a parameter"),
        ("h>0.5 ? 1 : 2", "a reward is not a polynomial in the parameters"),
        ("max(h, 1)", "a reward is not a polynomial in the parameters"),
    ],
)
def test_rewards_that_are_no_polynomials(reward: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_prism_text(INVENTORY.read_text().replace("h*stock", reward), "m.prism")


def test_mixed_commands_of_a_chain_earn_their_average() -> None:
    text = "dtmc const double c; module m x:bool; [] !x -> (x'=true); [a] !x -> true; [] x -> true; endmodule"
    reward = load_prism_text(f"{text} rewards [a] true : c; !x : 1/3; endrewards", "m.prism").rewards[""]
    assert isinstance(reward, ParametricReward) and reward.is_mean
    assert [reward.expressions.text(row) for row in reward.expression.tolist()] == ["1/2*c + 1/3", "0"]


def test_choices_of_one_action_in_one_state() -> None:
    """As many choices with the action as there are states, which are not one in each."""
    text = (
        "mdp const double c; module m x:[0..1]; [a] x=0 -> true; [a] x=0 -> (x'=1); [] x=1 -> true; endmodule"
    )
    reward = load_prism_text(f"{text} rewards [a] true : x*c+1; endrewards", "m.prism").rewards[""]
    assert isinstance(reward, ParametricReward)
    assert [reward.expressions.text(row) for row in reward.expression.tolist()] == ["1", "1", "0"]


SUMMED = """mdp const double p; module m x : [0..1] init 0;
[a] x=0 -> p:(x'=1) + 1-p:(x'=0); [b] x=1 -> 1:(x'=0); endmodule
rewards "s" x=1 : 2; [a] true : p; endrewards
"""


@pytest.mark.parametrize("ending", ["prism", "drn", "umb", "tra"])
def test_what_states_earn_at_a_moment_is_no_zero_where_it_was_added_to_what_choices_earn(
    ending: str, tmp_path: Path
) -> None:
    """At p = 0.5 state 1, which earns 2, is reached after a step with probability 0.5."""
    (tmp_path / "m.prism").write_text(SUMMED)
    question, model = 'R{"s"}max=? [ I=1 ]', tr.load(tmp_path / "m.prism")
    whole = tr.solve(tr.load(tmp_path / "m.prism", const={"p": 0.5}), question)
    assert whole.lower[0] <= 1.0 <= whole.upper[0]
    own = model.instantiate({"p": 0.5})
    if ending != "prism":
        paths = str(tmp_path / "m.prism"), str(tmp_path / f"n.{ending}")
        assert run(["export", paths[0], "--at", "p=0.5", "-o", paths[1]]) == 0
        own = tr.load(tmp_path / f"n.{ending}")
    with pytest.raises(tr.InputError, match="what states alone earn is not known"):
        tr.solve(own, question)
    with pytest.raises(tr.InputError, match="what states alone earn is not known"):
        tr.Problem(own, "Rmax=? [ F x=1 ]", terminal_reward="s")


def test_rewards_by_successor_are_added_to_those_of_states() -> None:
    rows = [(0, "a", {0: 0.5, 1: 0.5}), (1, "b", {0: 1})]
    model = tr.build_from_rows(rows, state_rewards={"s": [0, 2]}, transition_rewards={"s": [{1: 3}, {}]})
    with pytest.raises(tr.InputError, match="what states alone earn is not known"):
        tr.solve(model, 'R{"s"}=? [ I=1 ]')
    total = tr.solve(model, 'R{"s"}=? [ C<=2 ]').at_initial_states
    assert total.lower <= 3.25 <= total.upper


@pytest.mark.parametrize("ending", ["drn", "tra", "jani"])
def test_what_states_of_a_chain_earn_at_a_moment_stands_in_files(ending: str, tmp_path: Path) -> None:
    """State 1 earns 3p; at time 1 the chain is there with probability (1 − exp(−1.5)) / 3."""
    text = """ctmc const double p; module m x : [0..1] init 0;
    [a] x=0 -> 0.5:(x'=1); [b] x=1 -> 1:(x'=0); endmodule rewards "r" x=1 : 3*p; [b] true : 7; endrewards"""
    (tmp_path / "m.prism").write_text(text)
    file = str(tmp_path / f"n.{ending}")
    assert run(["export", str(tmp_path / "m.prism"), "--at", "p=1", "-o", file]) == 0
    chain = tr.load(file)
    held = tr.solve(chain, 'R{"r"}=? [ I=1 ]')
    assert held.lower[0] <= 1.0 - math.exp(-1.5) <= held.upper[0]
