"""Shields: prices in exact rationals, the bound against the worst agent and nature, refusals.

The worst agent takes any allowed choice, the worst nature any vertex of its sets; both look at everything.
"""

from __future__ import annotations

import base64
import copy
import json
import pickle
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from exact_reference import TinyModel, random_model, vertices
from tightrope.errors import InputError
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure
from tightrope.shield import Shield
from tightrope.solver.solve import solve

STATES = 4


def tiny(seed: int) -> TinyModel:
    return random_model(np.random.default_rng(seed), STATES, most_choices=3)


def until(agent: Direction, **more: Any) -> Objective:
    nature = Direction.MIN if agent is Direction.MAX else Direction.MAX
    return Objective(ObjectiveKind.UNTIL, agent, nature, target=np.arange(STATES) == STATES - 1, **more)


def costs(agent: Direction, model: TinyModel, kind: ObjectiveKind, **more: Any) -> Objective:
    nature = Direction.MIN if agent is Direction.MAX else Direction.MAX
    reward = RewardStructure(None, np.arange(model.structure.choices) % 3 / 4.0)
    return Objective(kind, agent, nature, reward=reward, **more)


OBJECTIVES = {
    "reach": lambda model: until(Direction.MAX),
    "avoid": lambda model: until(Direction.MIN),
    "until": lambda model: until(Direction.MAX, allowed=np.arange(STATES) != 1),
    "reach within 3": lambda model: until(Direction.MAX, upper_steps=3),
    "avoid within 3": lambda model: until(Direction.MIN, upper_steps=3),
    "reach in 2 to 4": lambda model: until(Direction.MAX, lower_steps=2, upper_steps=4),
    "cumulative": lambda model: costs(Direction.MIN, model, ObjectiveKind.CUMULATIVE, upper_steps=3),
    "discounted": lambda model: costs(Direction.MAX, model, ObjectiveKind.DISCOUNTED, discount=0.75),
}


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("seed", range(12))
def test_no_choice_costs_more_than_its_price_in_exact_rationals(seed: int, name: str) -> None:
    model = tiny(seed)
    objective = OBJECTIVES[name](model)
    table = Shield.of(solve(model.model(), objective), slack=0.0).table
    sign = 1 if table.facts.maximises else -1
    reward = Fraction(0)
    rows = len(table.value) // STATES
    value, price = table.value.reshape(rows, -1), table.price.reshape(rows, -1)
    settled, fallback = table.ranking.reshape(rows, -1) < 0, table.fallback.choice.reshape(rows, -1)
    for row in range(rows):
        following = value[min(row + 1, rows - 1)]
        for state, choices in enumerate(model.choices):
            if settled[row, state]:
                continue
            prices = price[row, table.structure.choice_start[state] :]
            for number, (choice, own) in enumerate(zip(choices, prices.tolist(), strict=False)):
                at = int(table.structure.choice_start[state]) + number
                if objective.reward is not None:
                    reward = Fraction(float(objective.reward.per_choice(table.structure)[at]))
                worst = min(
                    sign * (reward + Fraction(objective.discount or 1) * after)
                    for after in (
                        sum((p * Fraction(float(following[t])) for t, p in vertex), Fraction(0))
                        for vertex in vertices(choice)
                    )
                )
                assert worst >= sign * Fraction(float(value[row, state])) - Fraction(own)
            assert prices[int(fallback[row, state]) - int(table.structure.choice_start[state])] < 1e-9


def worst_success(
    model: TinyModel, shield: Shield, state: int, depth: int, memo: dict[Any, Fraction]
) -> Fraction:
    """The least probability of the target (the largest, for a minimising agent) over all agents and natures;
    what is not reached within `depth` steps is not counted."""
    key = (state, shield.slack, shield.patience, shield._here, shield.is_committed, depth)
    if key in memo:
        return memo[key]
    target = STATES - 1
    if state == target:
        return Fraction(1)
    sign = 1 if shield.table.facts.maximises else -1
    if depth == 0:
        return Fraction(0)
    results = []
    for action in shield.allowed(state):
        after = copy.copy(shield)
        after.take(state, action)
        choice = model.choices[state][int(action) if action != "" else 0]
        for vertex in vertices(choice):
            parts = (p * worst_success(model, copy.copy(after), t, depth - 1, memo) for t, p in vertex)
            results.append(sum(parts, Fraction(0)))
    memo[key] = result = sign * min(sign * one for one in results)
    return result


@pytest.mark.parametrize("slack", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(10))
def test_no_agent_is_less_safe_than_promised(seed: int, slack: float) -> None:
    model = tiny(seed)
    shield = Shield.of(solve(model.model(), until(Direction.MIN)), slack=slack)
    promise = shield.promise
    assert promise == pytest.approx(min(1.0, float(shield.table.value[0]) + slack))
    assert worst_success(model, shield, 0, 6, {}) <= Fraction(promise)


@pytest.mark.parametrize("slack", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(10))
def test_no_agent_misses_the_target_more_often_than_promised(seed: int, slack: float) -> None:
    model = tiny(seed)
    shield = Shield.of(solve(model.model(), until(Direction.MAX, upper_steps=4)), slack=slack)
    assert worst_success(model, shield, 0, 4, {}) >= Fraction(shield.promise)


def test_an_agent_that_waits_is_stopped_when_its_patience_is_used_up() -> None:
    rows = [(0, "wait", {0: 1}), (0, "go", {1: 0.9, 2: 0.1}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, labels={"goal": [1]})
    solution = tr.solve(model, 'Pmax=? [ F "goal" ]')
    shield = Shield.of(solution, slack=0.0, patience=5)
    for _ in range(6):
        assert shield.allowed(0)["wait"] == 0.0
        shield.take(0, "wait")
    assert shield.allowed(0) == {"go": 0.0} and shield.is_committed
    with pytest.raises(InputError, match="only the fallback policy acts"):
        shield.take(0, "wait")
    shield.take(0, "go")
    assert shield.allowed(1) == {"": 0.0} and shield.promise == 1.0


def example(slack: float = 0.15) -> Shield:
    rows = [(0, "safe", {1: 0.9, 2: 0.1}), (0, "fast", {1: 0.8, 2: 0.2})]
    model = tr.build_from_rows([*rows, (1, "", {0: 1}), (2, "", {2: 1})], labels={"crash": [2]})
    return Shield.of(tr.solve(model, 'Pmin=? [ F<=3 "crash" ]'), slack=slack)


def test_prices_are_paid_and_what_is_too_expensive_is_refused() -> None:
    shield = example()
    assert shield.allowed(0) == {"safe": 0.0, "fast": pytest.approx(0.09)}
    before = shield.promise
    shield.take(0, "fast")
    assert before <= shield.promise == pytest.approx(before) and shield.slack == pytest.approx(0.06)
    shield.take(1, "")
    assert list(shield.allowed(0)) == ["safe"]
    with pytest.raises(InputError, match=r"does not allow 'fast' in state 0: its price is 0\.1"):
        shield.take(0, "fast")
    assert shield.slack == pytest.approx(0.06) and shield.fallback(0) == "safe"
    shield.start()
    assert shield.slack == 0.15 and "fast" in shield.allowed(0)


def test_copies_and_pickles_go_on_independently() -> None:
    shield = example()
    shield.take(0, "fast")
    for other in (copy.copy(shield), pickle.loads(pickle.dumps(shield))):
        other.take(1, "")
        assert list(other.allowed(0)) == ["safe"] and list(copy.copy(shield).allowed(1)) == [""]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: example(-0.1), "the slack is -0.1"),
        (lambda: example(float("nan")), "the slack is nan"),
        (lambda: example().allowed("elsewhere"), "does not know the state"),
        (lambda: example().take(0, "fly"), "the action 'fly' is not enabled"),
    ],
)
def test_wrong_calls_are_refused_in_words(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_step_that_the_model_does_not_have_ends_the_guarantee_in_words() -> None:
    shield = example()
    shield.take(0, "safe")
    with pytest.raises(InputError, match=r"(?s)cannot be in state 0 after 'safe', so .*fallback is 'safe'"):
        shield.allowed(0)


def test_a_learned_shield_holds_its_promise_for_a_random_and_a_greedy_agent() -> None:
    bench = tr.benchmark("rover(6,6)")
    truth = bench.at_truth.model
    data = tr.Simulator(truth, model_hash=bench.model.hash()).episodes(2000, seed=3)
    result = tr.learn(bench.problem, data, delta=0.1)
    for slack in (0.0, 0.05):
        shield = result.shield(slack=slack)
        assert shield.promise == pytest.approx(result.robust.solutions[0].lower[0] - slack, abs=1e-9)
        for pick in (partial(np.random.default_rng(5).choice), lambda offered: offered[-1]):
            successes = run_episodes(truth, result, shield, pick, 300)
            assert successes / 300 >= shield.start().promise - 0.09


def run_episodes(truth: Any, result: Any, shield: Shield, pick: Any, episodes: int) -> int:
    """Successes of an agent that picks among the allowed actions, sorted by price."""
    rng, s = np.random.default_rng(17), truth.structure
    objective, successes = result.problem.objective, 0
    for _ in range(episodes):
        state = s.initial
        shield.start()
        for _ in range(10_000):
            if objective.target[state] or (objective.allowed is not None and not objective.allowed[state]):
                break
            offered = sorted(shield.allowed(state).items(), key=lambda entry: entry[1])
            action = pick([name for name, _ in offered])
            shield.take(state, action)
            choice = shield._by
            first, last = s.transition_start[choice : choice + 2]
            state = int(rng.choice(s.successor[first:last], p=truth.probability[first:last]))
        successes += bool(objective.target[state])
    return successes


def test_temporal_formulas_are_followed_with_their_memory(tmp_path: Path) -> None:
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    rows = [
        (0, "a", {1: p, 3: 1 - p}),
        (0, "b", {2: 1}),
        (1, "", {0: 1}),
        (2, "on", {0: 1}),
        (2, "stop", {4: 1}),
        (3, "", {3: 1}),
        (4, "", {4: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"first": [1], "end": [4]})
    problem = tr.Problem(model, 'Pmax=? [ (F "first") & (F "end") ]')
    data = [[(0, "a", 1)]] * 90 + [[(0, "a", 3)]] * 10
    with pytest.warns(tr.ReadingWarning, match="the path is read as"):
        result = tr.learn(problem, data, delta=0.1)
    result.shield(slack=0.0).save(tmp_path / "shield.json")
    shield = Shield.load(tmp_path / "shield.json")
    assert shield.promise == pytest.approx(result.robust.solutions[0].lower[0])
    shield.take(0, "b")
    assert list(shield.allowed(2)) == ["on"]  # to stop before "first" would lose the formula
    shield.take(2, "on")
    shield.take(0, "a")
    shield.take(1, "")
    shield.take(0, "b")
    assert list(shield.allowed(2)) == ["on", "stop"]


def test_a_formula_about_all_time_is_left_to_the_fallback_once_it_is_won() -> None:
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    rows = [(0, "try", {1: p, 2: 1 - p}), (1, "left", {1: 1}), (1, "right", {3: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows([*rows, (3, "", {1: 1})], parameters, labels={"a": [3]})
    with pytest.warns(tr.ReadingWarning, match="the path is read as"):
        result = tr.learn(
            tr.Problem(model, 'Pmax=? [ G (F "a") ]'), [[(0, "try", 1)]] * 9 + [[(0, "try", 2)]], delta=0.1
        )
    shield = result.shield(slack=0.5)
    shield.take(0, "try")
    state, visits = 1, 0
    for _ in range(12):  # "left" for ever would lose
        (action,) = shield.allowed(state)
        assert shield.is_committed and action == shield.fallback(state)
        shield.take(state, action)
        state = {"left": 1, "right": 3, "": 1}[str(action)]
        visits += state == 3
    assert visits >= 3


def test_a_file_runs_without_the_model(tmp_path: Path) -> None:
    shield = example()
    shield.save(tmp_path / "shield.json")
    again = Shield.load(tmp_path / "shield.json")
    assert again.promise == shield.promise and again.allowed(0) == shield.allowed(0)
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "shield.json").read_text()
    document = json.loads((tmp_path / "shield.json").read_text())
    answer = again.describe()
    assert (answer.free_states, answer.removed, answer.states) == (1, [], 3) and "promise" not in document


def forge(document: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    *path, last = place.split(".")
    inner = document
    for key in path:
        inner = inner[key]
    inner[last] = value
    return document


@pytest.mark.parametrize(
    "place, value, message",
    [
        ("slack", -0.1, "the slack is -0.1"),
        ("patience", -1, "the patience is -1"),
        ("version", 3, "version 3"),
        ("format", "tightrope policy", "not a 'tightrope shield'"),
        ("verdict", "certain", "Invalid enum value"),
        ("arrays.price", "AAAAAAAAAAAA", "an array is missing or damaged"),
        ("arrays.price", "AA=A", "base64"),
        ("arrays.price", ["<f8", [4, -4], ""], "Expected `?'?bytes"),
        ("arrays.value", None, "arrays"),
        ("arrays", {}, "an array is missing or damaged, 'choice_start'"),
        ("arrays.variable/x", "AAAAAAAAAAA=", "variable 'x' has 1 entries for 3 states"),
        ("arrays.variable/x", "AAAA" * 3, "an array is missing or damaged"),
        ("arrays.initial_states", "BwAAAA==", "the initial state is 7"),
        ("arrays.successor", "AAAAAAAAAAA=", "transition_start must rise from 0 to 2"),
        ("arrays.choice", "AAAAAA==", "as many states as memories"),
        ("arrays.choice", "AAAAAAAAAAA=", "as many states as memories"),
        ("arrays.value", "AAAAAAAAAAA=", "do not fit the rows"),
        ("arrays.ranking", "", "do not fit the rows"),
        ("arrays.price", "AAAAAAAAAAA=", "do not fit the rows"),
        ("arrays.state", "", "as many states as memories"),
    ],
)
def test_forged_files_are_refused(tmp_path: Path, place: str, value: Any, message: str) -> None:
    path = tmp_path / "shield.json"
    example().save(path)
    path.write_text(json.dumps(forge(json.loads(path.read_text()), place, value)))
    with pytest.raises(InputError, match=message):
        Shield.load(path)


def test_a_price_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shield.json"
    for wrong in (-1.0, float("nan")):
        example().save(path)
        document = json.loads(path.read_text())
        price = np.frombuffer(base64.b64decode(document["arrays"]["price"])).copy()
        price[0] = wrong
        document["arrays"]["price"] = base64.b64encode(price.tobytes()).decode()
        path.write_text(json.dumps(document))
        with pytest.raises(InputError, match="a price is not at least 0"):
            Shield.load(path)


@pytest.mark.parametrize(
    "name, place, value, message",
    [
        ("memory", 11, 2**30, "pairs of memory and state are too many for a shield"),
        ("memory", 11, 0, "two rows for one state and memory"),
        ("following", 0, 4, "a memory that has no row"),
        ("state", 0, 3, "a state that the model does not have"),
        ("choice", 0, 2, "the policy takes choice 2 in state 0"),
    ],
)
def test_rows_that_are_none_are_refused(
    tmp_path: Path, name: str, place: int, value: int, message: str
) -> None:
    path = tmp_path / "shield.json"
    example().save(path)
    document = json.loads(path.read_text())
    array = np.frombuffer(base64.b64decode(document["arrays"][name]), "<i4").copy()
    array[place] = value
    document["arrays"][name] = base64.b64encode(array.tobytes()).decode()
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        Shield.load(path)


def test_actions_that_are_numbers_and_actions_that_repeat_are_told_apart() -> None:
    rows = [(0, "1", {1: 1}), (0, "a", {2: 1}), (0, "a", {3: 1}), *((s, "", {s: 1}) for s in (1, 2, 3))]
    model = tr.build_from_rows(rows, labels={"bad": [2, 3]})
    shield = Shield.of(tr.solve(model, 'Pmin=? [ F "bad" ]'), slack=0.0)
    assert shield.allowed(0) == {0: 0.0} and shield.fallback(0) == 0
    with pytest.raises(InputError, match="does not allow 1 in state 0"):
        shield.take(0, 1)
    with pytest.raises(InputError, match="the action"):
        shield.take(0, [1])


def test_a_bound_with_a_kind_nature_makes_no_shield() -> None:
    rows = [(0, "a", {1: (0.2, 0.8), 2: (0.2, 0.8)}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, labels={"goal": [1]})
    assert Shield.of(tr.solve(model, 'Pmaxmin=? [ F "goal" ]'), slack=0.0).promise <= 0.2
    with pytest.raises(InputError, match="nature helps the agent"):
        Shield.of(tr.solve(model, 'Pmaxmax=? [ F "goal" ]'), slack=0.0)


def test_several_initial_states_have_the_worst_promise(tmp_path: Path) -> None:
    text = """mdp
        module m
          s : [0..3];
          [] s = 0 -> 0.9 : (s' = 2) + 0.1 : (s' = 3);
          [] s = 1 -> 0.5 : (s' = 2) + 0.5 : (s' = 3);
          [] s > 1 -> true;
        endmodule
        init s < 2 endinit
        label "goal" = s = 2;"""
    (tmp_path / "several.prism").write_text(text)
    model = tr.load(tmp_path / "several.prism")
    shield = Shield.of(tr.solve(model, 'Pmax=? [ F "goal" ]'), slack=0.0)
    assert len(shield.table.structure.initial_states) == 2
    assert shield.promise == pytest.approx(0.5)


def test_a_learned_shield_says_what_it_has_seen_and_a_contradicted_one_is_refused(tmp_path: Path) -> None:
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    rows = [(0, "try", {1: p, 2: 1 - p}), (1, "again", {3: p, 2: 1 - p}), (2, "", {2: 1}), (3, "", {3: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [3]})
    problem = model.problem('Pmax=? [ F "goal" ]')
    fitting = [[(0, "try", 1), (1, "again", 3)]] * 30 + [[(0, "try", 2)]] * 20
    result = tr.learn(problem, fitting, delta=0.1)
    result.shield(slack=0.0).save(tmp_path / "shield.json")
    made_from = Shield.load(tmp_path / "shield.json").table.facts.made_from
    assert made_from == result.robust.policy.made_from.text()
    refuted = [[(0, "try", 1), (1, "again", 2)]] * 300 + [[(0, "try", 2)]] * 10
    with pytest.raises(tr.CannotCertify, match="contradict"):
        tr.learn(problem, refuted, delta=0.1).shield(slack=0.0)
