"""One `Policy`: what it is made of, how it is asked, and that everything takes and gives the same class."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.model.policy import Policy
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.structure import Structure
from tightrope.provenance import of_counts

GOAL = 'Pmax=? [ F "goal" ]'


def grid(own: bool = False) -> tr.ParametricMDP:
    """Two rows of three fields; steps go astray with probability 1 − p."""
    parameters = tr.Parameters.box(p=(0.2, 0.9))
    (p,) = parameters.symbols()

    def moves(state: tuple[int, int]) -> dict[str, dict[tuple[int, int], object]]:
        x, y = state
        if state == (2, 1):
            return {"stay": {state: 1}}
        right, up = (min(x + 1, 2), y), (x, min(y + 1, 1))
        if right == state:
            return {"up": {up: 1}}
        return {"right": {right: p, state: 1 - p}, "up": {up: 1}} if up != state else {"right": {right: 1}}

    built = tr.build_from_function(
        (0, 0),
        moves,
        parameters,
        labels={"goal": lambda s: s == (2, 1), "low": lambda s: s[1] == 0},
        variables=None if own else lambda s: {"x": s[0], "y": s[1]},
    )
    assert isinstance(built, tr.ParametricMDP)
    return built


MODEL = grid()
CHOSEN = {"x=0,y=0": "up", "x=1,y=0": "right"}


def without_state_names(model: tr.ParametricMDP) -> Structure:
    from dataclasses import replace

    return replace(model.structure, state_names=None)


@pytest.mark.parametrize(
    "given",
    [
        CHOSEN,
        {(0, 0): "up", (1, 0): "right"},
        {"(x=0, y=0)": 1, "x=1,y=0": 0},
        {(0, 0): {"up": 1}, (1, 0): {"right": 0.25, 0: 0.75}},
        lambda state: "up" if state[0] == 0 else "right",
        np.array([1 if name == "(x=0,y=0)" else 0 for name in map(MODEL.structure.state_name, range(6))]),
    ],
)
def test_the_same_policy_however_it_is_said(given: object, tmp_path: Path) -> None:
    policy = Policy(MODEL, given)
    assert policy == Policy(MODEL, CHOSEN) and hash(policy) == hash(Policy(MODEL, CHOSEN))
    assert policy.is_deterministic and not policy.depends_on_step
    assert policy["x=0,y=0"] == policy[(0, 0)] == policy[{"x": 0, "y": 0}] == "up"
    policy.save(tmp_path / "policy.json")
    assert Policy(MODEL, tmp_path / "policy.json") == policy
    assert pickle.loads(pickle.dumps(policy)) == copy.deepcopy(policy) == policy
    assert policy != Policy.uniform(MODEL)


def test_states_are_found_by_index_label_and_part_of_a_valuation() -> None:
    plain = without_state_names(MODEL)
    policy = Policy(plain, lambda state: "up" if state["x"] == 0 else "right")
    start = MODEL.structure.initial
    assert policy[start] == policy[np.int64(start)] == "up"
    assert policy["goal"] == "stay" and policy["x=2,y=1"] == "stay"
    with pytest.raises(InputError, match="the label 'low' holds in 3 states, and not in a single one"):
        policy["low"]
    with pytest.raises(InputError, match="2 states have x=0: say y as well"):
        policy["x=0"]
    with pytest.raises(InputError, match=r"\(x=7,y=0\) is not a reachable state"):
        policy["x=7,y=0"]
    for wrong in ("x", "z=1", "x=1,x=1", "here"):
        with pytest.raises(
            InputError, match=f"'{wrong}' is not a state of the model; states have values of x"
        ):
            policy[wrong]
    with pytest.raises(InputError, match=r"77 is not a state's index; they are 0\.\.5"):
        policy[77]
    # what an environment shows is not taken for an index
    with pytest.raises(InputError, match="0 is not a state of the model") as caught:
        policy.act(0)
    assert caught.value.hint is not None and 'states="index"' in caught.value.hint
    assert policy.act(start, states="index") == "up"
    with pytest.raises(InputError, match="is not a state's index"):
        policy.act(6, states="index")


def test_a_number_that_may_be_the_only_variable_is_refused() -> None:
    rows = [(0, "a", {1: 1}), (0, "b", {0: 1}), (1, "", {1: 1})]
    structure = without_state_names(tr.build_from_rows(rows, valuations={"x": [1, 0]}))
    policy = Policy(structure, {"x=1": "b"})
    assert policy["x=1"] == "b"
    with pytest.raises(InputError, match="1 can be the index of a state or its value of x"):
        policy[1]


def test_randomised_policies_say_how_likely_and_draw() -> None:
    policy = Policy(MODEL, {(0, 0): {"up": 0.25, "right": 0.75}, (1, 0): "up"})
    assert policy[(0, 0)] == policy.actions((0, 0)) == {"right": 0.75, "up": 0.25}
    assert not policy.is_deterministic
    drawn = [policy.act((0, 0), rng=rng) for rng in [np.random.default_rng(1)] for _ in range(4000)]
    assert drawn.count("right") / 4000 == pytest.approx(0.75, abs=0.03)
    assert policy.act((0, 0), rng=5) == policy.act((0, 0), rng=5)
    with pytest.raises(InputError, match="a randomised policy does not take one choice per state"):
        _ = policy.choice


def test_policies_by_step_are_asked_with_the_step() -> None:
    first = MODEL.structure.choice_start[:-1]
    two = np.flatnonzero(np.diff(MODEL.structure.choice_start) > 1)[0]
    runs = TimeVaryingChoices(
        np.r_[np.arange(two + 1), np.arange(two + 2, 8)],
        np.insert(np.zeros(6, np.int64), two + 1, 3),
        np.insert(first, two + 1, first[two] + 1),
    )
    policy = Policy(MODEL, runs)
    state = MODEL.structure.state_names[two]
    names = list(MODEL.structure.action_names)
    before, after = (names[MODEL.structure.action_of_choice[first[two] + k]] for k in (0, 1))
    assert policy.depends_on_step and policy.is_deterministic
    assert [policy.act(state, step=step) for step in (0, 2, 3, 90)] == [before, before, after, after]
    assert policy.at(3)[state] == after and policy.at(0) != policy.at(3)
    for ask in (lambda: policy[state], lambda: policy.act(state), lambda: policy.actions(state)):
        with pytest.raises(InputError, match="depends on the step"):
            ask()
    with pytest.raises(InputError, match="steps count from 0, and -1 is before"):
        policy.act(state, step=-1)
    assert policy.to_dataframe()["from_step"].tolist().count(3) == 1
    assert pickle.loads(pickle.dumps(policy)) == policy != Policy.uniform(MODEL)
    assert Policy(MODEL, TimeVaryingChoices.constant(first)) == Policy.of_choices(MODEL.structure, first)


WRONG = [
    ({(0, 0): "up"}, r"says nothing about state \(x=1,y=0\), which has 2 choices \(1 such states\)"),
    ({(0, 0): "up", "x=0,y=0": "up"}, r"\(0, 0\) and 'x=0,y=0' are the same state"),
    ({**CHOSEN, (2, 2): "up"}, r"\(2, 2\) is not a state of the model"),
    ({**CHOSEN, "x=0,y=0": "fly"}, r"the policy: the action 'fly' is not enabled in state \(x=0,y=0\)"),
    ({**CHOSEN, "x=0,y=0": 2}, r"the policy: the action 2 is not enabled in state \(x=0,y=0\)"),
    ({**CHOSEN, "x=0,y=0": True}, "the action True is not enabled"),
    ({**CHOSEN, "x=0,y=0": {"up": 0.5}}, r"probabilities in state \(x=0,y=0\) sum to 0.5, not 1"),
    ({**CHOSEN, "x=0,y=0": {"up": "half"}}, "with 'half': no number"),
    ({**CHOSEN, "x=0,y=0": {"up": -1, "right": 2}}, r"with probability 2, not within \[0, 1\]"),
    (np.zeros(5, np.int64), "names 5 choices for 6 states"),
    (np.full(6, 2), r"takes choice number 2 of state \(x=0,y=0\), whose choices are 0\.\.1"),
    (np.zeros((2, 3)), "a policy cannot be made of a value of the type ndarray"),
    (7, "a policy cannot be made of a value of the type int"),
    (np.ones(3), "has 3 entries for 8 choices"),
    ("nowhere.json", "cannot read the policy"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_wrong_policies_are_refused_in_words(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Policy(MODEL, given)


def test_policies_of_other_models_are_refused() -> None:
    other = tr.build_from_rows([(0, "a", {0: 1})])
    with pytest.raises(InputError, match="is of another model, with 1 states and 1 choices, not 6 and 8"):
        Policy(MODEL, Policy.uniform(other))
    renamed = tr.build_from_rows([(0, "b", {0: 1})])
    with pytest.raises(InputError, match="another model, whose actions have other names"):
        Policy(other, Policy.uniform(renamed))
    mdp = MODEL.instantiate(p=Fraction(1, 2))
    with pytest.raises(InputError, match="another model"):
        tr.Simulator(mdp, Policy.uniform(other))
    assert Policy(grid(), Policy(MODEL, CHOSEN)) == Policy(MODEL, CHOSEN)


def test_what_a_policy_does_at_one_step_was_made_from_the_same_data() -> None:
    model = tr.build_from_rows([(0, "a", {1: 1}), (0, "b", {1: 1}), (1, "", {0: 1})])
    data = of_counts(model.structure, np.ones(model.structure.transitions, np.int64))
    steps = TimeVaryingChoices(np.array([0, 2, 3]), np.array([0, 3, 0]), np.array([0, 1, 2]))
    policy = Policy(model, steps).made(lambda: data)
    assert policy.at(0).made_from is policy.at(3).made_from is data


@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
def test_policies_are_read_back_where_states_share_the_values_of_their_variables(
    names: list[str] | None, tmp_path: Path
) -> None:
    rows = [(s, action, {(s + step) % 3: 1}) for s in range(3) for action, step in (("on", 1), ("back", 2))]
    built = tr.build_from_rows(rows, state_names=names)
    valuations = {"x": np.array([0, 0, 1]), "y": np.array([2, 2, 2])}
    structure = replace(built.structure, valuations=valuations)
    policies = [
        Policy(structure, np.array([1, 0, 1])),
        Policy(structure, np.array([0.25, 0.75, 1.0, 0.0, 0.5, 0.5])),
        Policy(
            structure,
            TimeVaryingChoices(np.array([0, 2, 3, 4]), np.array([0, 3, 0, 0]), np.array([0, 1, 3, 4])),
        ),
        Policy(
            structure,
            tr.FiniteMemoryChoices(
                [0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1], [0, 3, 4, 1, 2, 5], [1, 0, 1, 0, 1, 1]
            ),
        ),
    ]
    for policy in policies:
        policy.save(path := tmp_path / "policy.json")
        assert Policy(structure, path).digest == policy.digest
    written = {
        "format": "tightrope policy",
        "version": 2,
        "variables": ["x", "y"],
        "policy": [[[0, 2], "on", 0]],
    }
    path.write_text(json.dumps(written))
    with pytest.raises(InputError, match="are the values of several states"):
        Policy(structure, path)


def test_policies_are_taken_and_given_everywhere() -> None:
    mdp = MODEL.instantiate(p=Fraction(1, 2))
    best = tr.solve(mdp, GOAL)
    assert isinstance(best.policy, Policy)
    uniform = Policy.uniform(MODEL)
    for given in (best.policy, uniform, CHOSEN, lambda state: "up"):
        assert tr.solve(mdp, GOAL, policy=given).policy == Policy(MODEL, given)
    counts = tr.Simulator(mdp, uniform, model_hash=MODEL.hash(), cap=9).episodes(200, 1)
    for given in (best.policy, uniform, CHOSEN):
        result = tr.learn(MODEL.problem(GOAL), counts, delta=0.1, sets="expression", policy=given)
        assert isinstance(result.policy, Policy)
        assert result.value is not None and result.value.policy == Policy(MODEL, given)
    domain = tr.solve(MODEL.problem(GOAL), sets="expression", policy=CHOSEN)
    assert domain.policy == Policy(MODEL, CHOSEN)
    online = tr.online(MODEL.problem(GOAL), sets="expression")
    policy = online.policy()
    state, episode = (0, 0), []
    while state != (2, 1):  # what a policy says is what the learner observes
        action = policy.act(state)
        follow = (state[0], 1) if action == "up" else (state[0] + 1, state[1])
        episode.append((state, action, follow))
        state = follow
    assert online.observe(episode) is not None and online.episodes == 1


def test_numbers_of_choices_mean_the_same_in_episodes_and_policies() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "7", {0: 1}), (0, "3", {1: 1}), (1, "b", {0: 1}), (1, "a", {0: p, 1: 1 - p})]
    model = tr.build_from_rows(rows, parameters, labels={"there": [1]}, state_names=["s", "t"])
    assert isinstance(model, tr.ParametricMDP)
    policy = Policy(model, {"s": 3, "t": 1})
    assert (policy["s"], policy["t"], policy.act("s"), policy.act("t")) == ("3", "a", 3, "a")
    assert policy.to_arrow().column("choice").to_pylist() == [1, 1]
    learner = tr.online(model.problem('Pmax=? [ F "there" ]'), sets="tied")
    learner.observe([("s", 3, "t"), ("t", 1, "t")])
    taken = np.flatnonzero(learner.data.counts().transition)
    assert model.structure.transition_choice[taken].tolist() == policy.choice.tolist() == [1, 3]
    with pytest.raises(InputError, match="the action 1 is not enabled in state 's'"):
        learner.observe([("s", 1, "t")])


def test_tables_name_states_and_actions() -> None:
    policy = Policy(MODEL, {(0, 0): {"up": 0.25, "right": 0.75}, (1, 0): "right"})
    table = policy.to_arrow()
    assert table.column_names == ["x", "y", "action", "choice", "probability"]
    rows = {(r["x"], r["y"], r["action"]): (r["choice"], r["probability"]) for r in table.to_pylist()}
    assert rows[0, 0, "right"] == (0, 0.75) and rows[0, 0, "up"] == (1, 0.25) and len(rows) == 7
    frame = policy.to_dataframe()
    assert frame.loc[(frame.action == "right") & (frame.y == 0), "probability"].tolist() == [0.75, 1.0]
    own = grid(own=True)
    assert Policy.uniform(own).to_arrow().column("state").to_pylist()[0] == [0, 0]


def test_a_policy_prints_in_a_few_lines() -> None:
    assert repr(Policy(MODEL, CHOSEN)).splitlines() == [
        "Policy of 6 states, 2 with several choices: deterministic",
        "  (x=0,y=0)  up",
        "  (x=1,y=0)  right",
    ]
    many = tr.build_from_rows([(s, a, {s: 1}) for s in range(9) for a in "ab"])
    assert repr(Policy.uniform(many)).splitlines()[-1] == "  …  4 more: policy.to_dataframe()"


def lake() -> tuple[gymnasium.Env, tr.Problem]:
    environment = gymnasium.make("FrozenLake-v1", is_slippery=True)
    return environment, tr.from_gymnasium(environment).problem('Pmax=? [ F<=15 "goal" ]')


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", ["deterministic", "randomised", "by step"])
def test_a_policy_is_the_agent_of_a_gymnasium_loop(kind: str) -> None:
    environment, asked = lake()
    model = asked.model
    policy = tr.solve(asked).policy
    assert policy.depends_on_step
    if kind != "by step":
        policy = policy.at(0)
    if kind == "randomised":
        mixed = 0.8 * policy.probability + 0.2 * Policy.uniform(model).probability
        policy = Policy(model, mixed)
    rng, episodes, reached = np.random.default_rng(3), 250, 0
    state, _ = environment.reset(seed=8)
    for _ in range(episodes):
        for step in range(15):
            state, reward, terminated, _, _ = environment.step(policy.act(state, step=step, rng=rng))
            reached += int(reward)
            if terminated:
                break
        state, _ = environment.reset()
    value = float(tr.solve(asked, policy=policy).lower[0])
    assert reached / episodes == pytest.approx(value, abs=4 * np.sqrt(value * (1 - value) / episodes))
    environment.close()
