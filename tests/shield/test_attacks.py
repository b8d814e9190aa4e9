"""What could break a shield's promise: waiting, odd patience, actions that are mixed up, forged figures.

The value less the slack is followed in exact rationals through all plays of an agent that takes whatever is
allowed, against every vertex of nature's sets.
"""

from __future__ import annotations

import base64
import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

import tightrope as tr
from exact_reference import TinyModel, random_model, vertices
from tightrope.errors import InputError
from tightrope.logic.product_problem import product_problem
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure
from tightrope.shield import WON, Shield
from tightrope.solver.solve import solve

STATES = 4
MAX, MIN = Direction.MAX, Direction.MIN


def asked(model: TinyModel, kind: ObjectiveKind, agent: Direction, **more: Any) -> Objective:
    reward = RewardStructure(None, np.arange(model.structure.choices) % 3 / 4.0)
    target = np.arange(STATES) == STATES - 1
    if kind in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT, ObjectiveKind.REACH_REWARD):
        more = {"target": target, **more}
    if kind not in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT):
        more = {"reward": reward, **more}
    return Objective(kind, agent, agent.opposite, **more)


KINDS = {
    "reach": lambda model: asked(model, ObjectiveKind.UNTIL, MAX),
    "avoid": lambda model: asked(model, ObjectiveKind.UNTIL, MIN),
    "reach from step 2 on": lambda model: asked(model, ObjectiveKind.UNTIL, MAX, lower_steps=2),
    "until in 1 to 3": lambda model: asked(
        model, ObjectiveKind.UNTIL, MAX, allowed=np.arange(STATES) != 1, lower_steps=1, upper_steps=3
    ),
    "next": lambda model: asked(model, ObjectiveKind.NEXT, MAX),
    "cost of reaching": lambda model: asked(model, ObjectiveKind.REACH_REWARD, MIN),
    "cost of 3 steps": lambda model: asked(model, ObjectiveKind.CUMULATIVE, MIN, upper_steps=3),
    "reward of 3 steps": lambda model: asked(model, ObjectiveKind.CUMULATIVE, MAX, upper_steps=3),
    "discounted cost": lambda model: asked(model, ObjectiveKind.DISCOUNTED, MIN, discount=0.75),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_a_running_episode_never_falls_in_exact_rationals(seed: int, name: str) -> None:
    model = random_model(np.random.default_rng(seed), STATES, most_choices=3)
    objective = KINDS[name](model)
    shield = Shield.of(solve(model.model(), objective), slack=0.3, patience=2)
    assert follow(model, objective, shield, 0, 4) > 0 or held(shield, 0) is None


def held(shield: Shield, state: int) -> Fraction | None:
    """The bound of the episode in its state, for a maximiser; None where it is infinite."""
    shield.allowed(state)
    value, slack = shield._held
    sign = 1 if shield.table.facts.maximises else -1
    return sign * Fraction(value) - Fraction(slack) if np.isfinite(value) else None


def follow(model: TinyModel, objective: Objective, shield: Shield, state: int, depth: int) -> int:
    """All plays of this depth, as long as the agent acts; how many steps were compared."""
    now, compared = held(shield, state), 0
    if depth == 0 or shield.is_decided or shield.is_committed or now is None:
        return 0
    sign = 1 if shield.table.facts.maximises else -1
    for action in shield.allowed(state):
        number = int(action) if action != "" else 0
        after = copy.copy(shield)
        after.take(state, action)
        assert after._held == shield._held  # between choice and outcome
        earned = Fraction(0)
        if objective.reward is not None:
            at = int(shield.table.structure.choice_start[state]) + number
            earned = Fraction(float(objective.reward.per_choice(shield.table.structure)[at]))
        for vertex in vertices(model.choices[state][number]):
            parts = [(p, held(copy.copy(after), there)) for there, p in vertex if p > 0]
            if any(bound is None for _, bound in parts):
                assert sign < 0 or earned >= 0  # an infinite cost is priced as infinite, unless it is now
                assert sign > 0
                continue
            mean = sum((p * bound for p, bound in parts if bound is not None), Fraction(0))
            assert sign * earned + Fraction(objective.discount or 1) * mean >= now
            compared += 1
        for there in {there for vertex in vertices(model.choices[state][number]) for there, _ in vertex}:
            compared += follow(model, objective, copy.copy(after), there, depth - 1)
    return compared


@pytest.mark.parametrize("seed", range(8))
def test_a_won_formula_is_satisfied_by_the_fallback_from_everywhere(seed: int, tmp_path: Path) -> None:
    rng, states = np.random.default_rng(seed), 7
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    rows: list[Any] = []
    for state in range(states):
        for name in ("a", "b")[: int(rng.integers(1, 3))]:
            one, two = (int(n) for n in rng.choice(states, 2, replace=False))
            rows.append((state, name, {one: p, two: 1 - p}))
    x, y = (int(n) for n in rng.choice(np.arange(1, states), 2, replace=False))
    model = tr.build_from_rows(rows, parameters, labels={"x": [x], "y": [y]})
    problem, _ = product_problem(model, tr.Problem(model, 'Pmax=? [ (G (F "x")) & (G (F "y")) ]').query)
    shield = Shield.of(solve(problem.at(p=0.5)), problem, slack=0.2)
    shield.save(tmp_path / "shield.json")
    for table in (shield.table, Shield.load(tmp_path / "shield.json").table):
        own, rows, size = table.structure, table.fallback, len(table.fallback.state)
        first, last = own.transition_start[rows.choice], own.transition_start[rows.choice + 1]
        edges = [
            (row, rows.find(state, memory))
            for row, memory in enumerate(rows.following.tolist())
            for state in own.successor[first[row] : last[row]].tolist()
        ]
        graph = sparse.csr_array((np.ones(len(edges)), np.array(edges).T), (size, size))
        _, component = connected_components(graph, connection="strong")
        ends = {int(component[s]) for s in range(size)} - {
            int(component[s]) for s, t in edges if component[s] != component[t]
        }
        won = set(np.flatnonzero(table.ranking == WON).tolist())
        while more := {t for s, t in edges if s in won} - won:
            won |= more
        for end in ends & {int(component[s]) for s in won}:
            seen = set(rows.state[component == end].tolist())
            assert {x, y} <= seen


def waiting(goal: str = 'Pmax=? [ F "goal" ]') -> Any:
    rows = [(0, "wait", {0: 1}), (0, "go", {1: 0.9, 2: 0.1}), (1, "", {1: 1}), (2, "", {2: 1})]
    return tr.solve(tr.build_from_rows(rows, labels={"goal": [1]}), goal)


@pytest.mark.parametrize("patience", [float("inf"), float("nan"), 2.5, True, "3", -1])
def test_a_patience_that_is_no_number_of_steps_is_refused(patience: Any) -> None:
    with pytest.raises(InputError, match="not a number of steps"):
        Shield.of(waiting(), slack=0.0, patience=patience)


@pytest.mark.parametrize("slack", [True, "0.1", None, float("inf")])
def test_a_slack_that_is_no_number_is_refused(slack: Any) -> None:
    with pytest.raises(InputError, match="slack"):
        Shield.of(waiting(), slack=slack)


def test_saving_loading_and_copying_give_no_more_patience_within_an_episode(tmp_path: Path) -> None:
    shield = Shield.of(waiting(), slack=0.0, patience=3)
    for _ in range(3):
        shield.take(0, "wait")
        shield = copy.deepcopy(shield)
    shield.save(tmp_path / "shield.json")
    assert Shield.load(tmp_path / "shield.json").patience == 3  # another episode
    shield.take(0, "wait")
    assert list(shield.allowed(0)) == ["go"] and shield.is_committed
    with pytest.raises(InputError, match="only the fallback policy acts"):
        copy.copy(shield).take(0, "wait")
    assert copy.copy(shield).is_committed and not shield.fresh().is_committed


def test_an_error_within_an_episode_changes_nothing_and_names_the_fallback() -> None:
    shield = Shield.of(waiting(), slack=0.0, patience=3)
    shield.take(0, "wait")
    for state in ("nowhere", 2):
        with pytest.raises(InputError, match="in state 0 the fallback is 'go'"):
            shield.allowed(state)
    assert shield.patience == 3 and list(shield.allowed(0)) == ["wait", "go"] and shield.patience == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "question", ['R{"cost"}max=? [ S ]', 'LRAmax=? [ "goal" ]', 'Pmax=? [ G (F "goal") ]']
)
def test_answers_without_values_of_one_question_are_refused_in_words(question: str) -> None:
    rows = [(0, "a", {0: 0.5, 1: 0.5}), (1, "", {0: 1})]
    model = tr.build_from_rows(rows, labels={"goal": [1]}, choice_rewards={"cost": [1.0, 2.0]})
    with pytest.raises(InputError, match="averages and other questions have no shields"):
        Shield.of(tr.solve(model, question), slack=0.0)


def test_actions_whose_names_are_the_same_number_are_told_apart() -> None:
    rows = [(0, "01", {1: 1}), (0, "1", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, labels={"bad": [2]})
    shield = Shield.of(tr.solve(model, 'Pmin=? [ F "bad" ]'), slack=0.0)
    assert shield.allowed(0) == {"01": 0.0} and shield.fallback(0) == "01"
    with pytest.raises(InputError, match="does not allow 1 "):
        shield.take(0, 1)


def test_the_fallback_is_free_whatever_a_file_says(tmp_path: Path) -> None:
    path = tmp_path / "shield.json"
    Shield.of(waiting(), slack=0.1).save(path)
    document = json.loads(path.read_text())
    document["arrays"]["price"] = base64.b64encode(np.array([0.5, 0.5, 0.0, 0.0]).tobytes()).decode()
    path.write_text(json.dumps(document))
    shield = Shield.load(path)
    assert shield.allowed(0) == {"go": 0.0} and shield.fallback(0) == "go"


@pytest.mark.parametrize("names", [[{"a": 1}, 2, 3], [None, 1, 2], [[[1]], 1, 2], [0.5, 1, 2], [1, 1, 2]])
def test_states_in_a_file_that_are_none_are_refused(tmp_path: Path, names: Any) -> None:
    path = tmp_path / "shield.json"
    Shield.of(waiting(), slack=0.1).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "state_names": names}))
    with pytest.raises(InputError, match=r"state_names|two states of the model are equal"):
        Shield.load(path)


def test_a_row_of_another_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shield.json"
    Shield.of(waiting(), slack=0.1).save(path)
    document = json.loads(path.read_text())
    document["arrays"]["state"] = base64.b64encode(np.array([0, 2, 1], "<i4").tobytes()).decode()
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="no shield: the policy takes choice 2 in state 2, whose choices"):
        Shield.load(path)


def numbered_rows(names: tuple[str, ...]) -> Any:
    rows = [(0, name, {1 + k: 1}) for k, name in enumerate(names)]
    rows += [(1 + k, "", {1 + k: 1}) for k in range(len(names))]
    return tr.build_from_rows(rows, labels={"bad": list(range(2, 1 + len(names)))})


@pytest.mark.parametrize(
    "names, numbers",
    [
        (("", "", ""), [0, 1, 2]),
        (("a", "", ""), [0, 1, 2]),
        (("b", "a", "b"), [1, 0, 2]),
        (("3", "1"), [3, 1]),
        (("2", "go"), [2, 3]),
        (("01", "1"), [2, 1]),
    ],
)
def test_every_choice_of_a_model_is_an_action_of_its_environment(
    names: tuple[str, ...], numbers: list[int]
) -> None:
    model = numbered_rows(names)
    env = tr.gym.ModelEnv(model)
    for place, number in enumerate(numbers):
        env.reset(seed=1)
        assert sorted(np.flatnonzero(env.action_masks())) == sorted(numbers)
        assert env.step(number)[0] == 1 + place
    shield = Shield.of(tr.solve(model, 'Pmin=? [ F "bad" ]'), slack=0.0)
    guarded = tr.gym.ShieldWrapper(tr.gym.ModelEnv(model), shield)
    for action in range(max(numbers) + 1):  # only the first choice is safe, whatever is asked for
        guarded.reset(seed=1)
        assert np.flatnonzero(guarded.action_masks()).tolist() == [numbers[0]]
        observation, _, _, _, info = guarded.step(action)
        assert observation == 1 and info["shield"]["taken"] == numbers[0] and info["shield"]["promise"] == 0.0


def test_a_number_of_numpy_means_what_the_same_number_means() -> None:
    rows = [(0, "1", {1: 1}), (0, "a", {2: 1}), *((s, "", {s: 1}) for s in (1, 2))]
    shield = Shield.of(
        tr.solve(tr.build_from_rows(rows, labels={"bad": [1]}), 'Pmin=? [ F "bad" ]'), slack=0.0
    )
    assert shield.allowed(0) == {"a": 0.0}
    for one in (1, np.int64(1), np.array(1), "1"):  # the action "1", not the second one
        with pytest.raises(InputError, match="does not allow 1 in state 0"):
            shield.take(0, one)


def test_a_state_that_was_changed_in_its_place_is_another_state(tmp_path: Path) -> None:
    (tmp_path / "m.prism").write_text(
        "mdp module m x : [0..1]; y : [0..1]; [go] true -> (x'=1-x); [stay] true -> true; endmodule "
        'label "odd" = x=1;'
    )
    shield = Shield.of(tr.solve(tr.load(tmp_path / "m.prism"), 'Pmin=? [ F "odd" ]'), slack=0.5)
    here = {"x": 0, "y": 0}
    assert list(shield.allowed(here)) == ["stay"]
    here["x"] = 1  # the agent has acted, and has not said so
    with pytest.raises(InputError, match=r"cannot be in state .* before an action is taken"):
        shield.allowed(here)


@pytest.mark.filterwarnings("ignore")
def test_a_solution_on_a_product_needs_the_problem_of_its_formula() -> None:
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    rows = [(0, "try", {1: p, 2: 1 - p}), (1, "left", {1: 1}), (1, "right", {0: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"a": [1]})
    result = tr.learn(model.problem('Pmax=? [ F (G "a") ]'), [[(0, "try", 1)]] * 9, delta=0.1)
    for solution in (result.robust.solutions[0], tr.solve(result.problem.at(p=0.5))):
        for problem in (None, result.problem.at(p=0.5)):  # once it is won, every choice would be free
            with pytest.raises(InputError, match="a temporal formula needs its problem"):
                Shield.of(solution, problem, slack=0.0)
        assert Shield.of(solution, result.problem, slack=0.0).table.ranking.min() == WON
