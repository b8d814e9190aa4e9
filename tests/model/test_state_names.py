"""Models built in Python keep their author's states; data, environments and policies find states by them.

Also of `model/states.py`.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import tightrope as tr
from tightrope import Parameters, build_from_function, build_from_rows, load, read_data
from tightrope.cli.app import run
from tightrope.data.steps import count_environment, count_minari
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.structure import NamedStates
from tightrope.problem import Problem

LAST = 4


def walk(called: Callable[[int], Hashable] = int) -> ParametricMDP:
    """A walk from 2 to 0 or 4; the model numbers its states 2, 3, 1, 4, 0 in this order."""
    parameters = Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    position = {called(x): x for x in range(LAST + 1)}

    def successors(state: Any) -> dict[str, dict[Any, Any]]:
        x = position[state]
        if x in (0, LAST):
            return {"stay": {state: 1}}
        far = {"run": {called(x + 1): "1/2", called(x - 1): "1/2"}} if x == 3 else {}
        return {"walk": {called(x + 1): p, called(x - 1): 1 - p}, **far}

    labels = {"home": lambda state: position[state] == LAST}
    model = build_from_function(called(2), successors, parameters, labels=labels)
    assert isinstance(model, ParametricMDP)
    return model


class WalkEnv(gymnasium.Env[Any, Any]):
    """The walk as an environment that shows its position as a number; it always goes up."""

    action_space = gymnasium.spaces.Discrete(3)
    observation_space = gymnasium.spaces.Discrete(LAST + 1)

    def __init__(self, show: Callable[[int], Any] = np.int64):
        self.show = show

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = 2
        return self.show(self.x), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.x += 1
        return self.show(self.x), 0.0, self.x == LAST, False, {}


def seen(model: Any, transition: Any) -> set[tuple[str, str]]:
    """The transitions with a count, by the names of their states."""
    structure = model.structure
    return {
        (
            structure.state_name(int(structure.choice_state[structure.transition_choice[t]])),
            structure.state_name(int(structure.successor[t])),
        )
        for t in np.flatnonzero(transition)
    }


def test_a_model_keeps_the_states_it_was_built_from() -> None:
    model = walk()
    own = model.structure.state_names
    assert own is not None and list(own) == [2, 3, 1, 4, 0]
    assert [own.find(state) for state in (2, np.int64(4), 4.0, 7, "2", [2], {})] == [0, 3, 3, -1, -1, -1, -1]
    assert own.find_numbers(np.array([0, 1, 2, 3, 4, 5, -1])).tolist() == [4, 2, 0, 1, 3, -1, -1]
    assert model.structure.state_name(0) == "2"
    assert walk(lambda x: f"at {x}").structure.state_name(0) == "'at 2'"


def test_rows_are_named_states() -> None:
    model = build_from_rows([(0, "go", {1: 1}), (1, "stay", {1: 1})])
    own = model.structure.state_names
    assert own is not None and own.find(1) == 1 and own.find(2) == -1 and own.are_numbers
    assert own.find_numbers(np.array([1, 2, -1])).tolist() == [1, -1, -1]
    with pytest.raises(InputError, match="3 state names are given for 2 states"):
        build_from_rows([(0, "go", {1: 1}), (1, "stay", {1: 1})], state_names="abc")
    named = build_from_rows([(0, "go", {1: 1}), (1, "stay", {1: 1})], own_states=["a", "b"]).structure
    assert named.own_states is named.state_names and list(named.own_states or ()) == ["a", "b"]


@pytest.mark.parametrize("called", [int, str, lambda x: (x, "square"), lambda x: frozenset([x])])
def test_state_names_survive_pickling_and_leave_the_identity_alone(called: Callable[[int], Hashable]) -> None:
    model = walk(called)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.hash() == model.hash() == walk().hash()
    assert copy.structure.state_names == model.structure.state_names
    assert copy.structure.state_names.find(called(4)) == 3
    assert dict(copy.structure.labels).keys() == dict(model.structure.labels).keys()
    assert hash(copy.structure.state_names) == hash(model.structure.state_names)


def test_a_model_that_was_learned_about_pickles() -> None:
    model = walk()
    learner = tr.online(Problem(model, 'Pmax=? [ F "home" ]'))
    learner.observe([(2, "walk", 3), (3, "run", 4)])
    guarantee = learner.result().guarantee
    copy = pickle.loads(pickle.dumps(model))
    assert copy.hash() == model.hash() and not copy.expression.flags.writeable
    again = tr.online(Problem(copy, 'Pmax=? [ F "home" ]'))
    again.observe([(2, "walk", 3), (3, "run", 4)])
    assert again.result().guarantee == guarantee
    plain = copy.instantiate([Fraction(1, 2)])
    assert pickle.loads(pickle.dumps(plain)).hash() == plain.hash()


def test_equal_states_are_refused() -> None:
    with pytest.raises(InputError, match="two states of the model are equal"):
        NamedStates([1, 2, 1])


# --- environments and recorded data ---------------------------------------------------------


def test_integer_observations_are_user_defined_states() -> None:
    """Read as internal numbers, 2 → 3 → 4 would be the walk 1 → 4 → 0, which the model does not exclude."""
    model = walk()
    counts = count_environment(WalkEnv(), model, 20, seed=1)
    assert seen(model, counts.transition) == {("2", "3"), ("3", "4")}
    assert counts == count_environment(WalkEnv(lambda x: np.array([x])), model, 20, seed=1)
    named = walk(lambda x: f"at {x}")
    counts = count_environment(WalkEnv(lambda x: f"at {x}"), named, 20, seed=1)
    assert seen(named, counts.transition) == {("'at 2'", "'at 3'"), ("'at 3'", "'at 4'")}
    pairs = walk(lambda x: (x, x + 1))
    counts = count_environment(WalkEnv(lambda x: np.array([x, x + 1])), pairs, 20, seed=1)
    assert seen(pairs, counts.transition) == {("(2, 3)", "(3, 4)"), ("(3, 4)", "(4, 5)")}


def test_an_observation_that_is_no_own_state_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        count_environment(WalkEnv(lambda x: x + 10), walk(), 1, seed=1)
    assert caught.value.message == (
        "episode 0, start: the observation 12 is none of the model's named states: 2, 3, 1, 4, 0"
    )
    assert caught.value.hint is not None and "convert_obs" in caught.value.hint


WALK = """
mdp
const double p;
module walk
  x : [0..4] init 2;
  [walk] x>0 & x<4 -> p : (x'=x+1) + 1-p : (x'=x-1);
  [run] x=3 -> 1/2 : (x'=4) + 1/2 : (x'=2);
  [stay] x=0 | x=4 -> true;
endmodule
label "home" = x=4;
"""


def test_integer_observations_without_state_names_are_refused_unless_indices_are_meant(
    tmp_path: Path,
) -> None:
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    model = load(path, params={"p": (0.1, 0.9)})
    with pytest.raises(InputError) as caught:
        count_environment(WalkEnv(), model, 1, seed=1)
    assert caught.value.message == (
        "episode 0, start: the observation 2 does not say which state it is: the model numbers its states in "
        "its own order, and an environment in another. Its variables go by name or as a sequence: (x)"
    )
    assert caught.value.hint == (
        'where it is the model\'s index of the state, say `states="index"`; else turn it into '
        "a state with `convert_obs`"
    )
    counts = count_environment(WalkEnv(lambda x: {"x": x}), model, 5, seed=1)
    assert seen(model, counts.transition) == {("(x=2)", "(x=3)"), ("(x=3)", "(x=4)")}
    index = {int(x): i for i, x in enumerate(model.structure.valuations["x"])}
    stated = count_environment(WalkEnv(index.__getitem__), model, 5, seed=1, states="index")
    assert stated == counts
    with pytest.raises(InputError, match=r"the observation 77 is not a state's index; they are 0\.\.4"):
        count_environment(WalkEnv(lambda x: 77), model, 1, seed=1, states="index")
    with pytest.raises(InputError, match="states are not named by 'number'"):
        count_environment(WalkEnv(), model, 1, seed=1, states="number")


@dataclass
class Episode:
    observations: Any
    actions: Any


class Dataset:
    def iterate_episodes(self) -> Any:
        yield Episode(np.array([2, 3, 4]), np.array([0, 1]))


def test_recorded_integers_are_user_defined_states(tmp_path: Path) -> None:
    model = walk()
    counts = count_minari(Dataset(), model)
    assert seen(model, counts.transition) == {("2", "3"), ("3", "4")}
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    prism = load(path, params={"p": (0.1, 0.9)})
    with pytest.raises(InputError, match="observation 0: the observation 2 does not say which state it is"):
        count_minari(Dataset(), prism)
    with pytest.raises(InputError, match="the model has no transition"):  # to the model, state 2 is x=1
        count_minari(Dataset(), prism, states="index")


def test_an_online_learner_finds_state_names() -> None:
    model = walk()
    learner = tr.online(Problem(model, 'Pmax=? [ F "home" ]'))
    learner.observe([(2, "walk", 3), (3, "run", 4)])
    assert seen(model, learner.data.counts().transition) == {("2", "3"), ("3", "4")}
    by_index = tr.online(Problem(model, 'Pmax=? [ F "home" ]'), states="index")
    by_index.observe([(0, "walk", 1), (1, "run", 3)])
    assert by_index.data.counts() == learner.data.counts()
    with pytest.raises(InputError, match="states are not named by 'foo'"):
        tr.online(Problem(model, 'Pmax=? [ F "home" ]'), states="foo")


# --- logs -----------------------------------------------------------------------------------


def test_numbers_in_a_log_are_user_defined_states(tmp_path: Path) -> None:
    """The column 'state' of a model over positions holds positions, not numbers of the order found."""
    path = tmp_path / "log.csv"
    path.write_text("state,action,next_state\n2,walk,3\n3,run,4\n2,walk,1\n1,walk,0\n")
    model = walk()
    reading = read_data(path, model)
    assert seen(model, reading.counts.transition) == {("2", "3"), ("3", "4"), ("2", "1"), ("1", "0")}
    assert reading.read_as[0].startswith("states as the model's author calls them")
    path.write_text("state,action,next_state\n0,walk,1\n1,run,3\n")
    with pytest.raises(InputError, match="'walk' is not enabled in state 0"):
        read_data(path, model)
    by_index = read_data(path, model, states="index")
    assert seen(model, by_index.counts.transition) == {("2", "3"), ("3", "4")}


def test_numbers_in_a_log_of_a_model_without_state_names_are_refused(tmp_path: Path) -> None:
    path, log = tmp_path / "walk.prism", tmp_path / "log.csv"
    path.write_text(WALK)
    log.write_text("state,action,next_state\n0,walk,1\n")
    with pytest.raises(InputError, match="the column 'state' does not say how it names states") as caught:
        read_data(log, load(path, params={"p": (0.1, 0.9)}))
    assert caught.value.hint is not None and 'states="index"' in caught.value.hint


# --- policies -------------------------------------------------------------------------------


@pytest.mark.parametrize("called", [int, str, lambda x: (x, ("square", x)), lambda x: frozenset([x])])
def test_policies_name_state_names(tmp_path: Path, called: Callable[[int], Hashable]) -> None:
    model = walk(called)
    structure = model.structure
    choice = structure.choice_start[:-1].copy()
    choice[1] += 1  # run where the walk is at 3
    text = io.StringIO()
    Policy.of_choices(structure, choice).write(text, model.hash())
    document = json.loads(text.getvalue())
    (entry,) = document["policy"]
    if isinstance(called(3), frozenset):  # JSON has none
        assert (document["states"], entry[0]) == ("index", 1)
    else:
        assert "states" not in document and entry[0] == json.loads(json.dumps(called(3)))
    path = tmp_path / "policy.json"
    path.write_text(text.getvalue())
    assert Policy(structure, path).choice.tolist() == choice.tolist()


def test_policies_are_asked_by_state_names_and_by_variables(tmp_path: Path) -> None:
    model = walk()
    structure = model.structure
    choice = structure.choice_start[:-1].copy()
    choice[1] += 1  # run where the walk is at 3
    policy = Policy.of_choices(structure, choice)
    assert policy.actions(3) == {"run": 1.0} and policy.actions(np.int64(2)) == {"walk": 1.0}
    assert Policy.uniform(structure).actions(3) == {"walk": 0.5, "run": 0.5}
    with pytest.raises(InputError, match="7 is not a state of the model; its states are 2, 3, 1, 4, 0"):
        policy.actions(7)
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    prism = load(path, params={"p": (0.1, 0.9)}).structure
    uniform = Policy.uniform(prism)
    assert uniform.actions({"x": 3}) == uniform.actions((3,)) == {"walk": 0.5, "run": 0.5}
    for wrong in (3, {"x": 9}, {"y": 3}, (3, 3)):
        with pytest.raises(InputError, match="is not a state of the model; states have values of x"):
            uniform.actions(wrong)
    start = np.array([0, 1, 3, 4, 5, 6])
    choices = np.array([choice[0], choice[1] - 1, choice[1], choice[2], choice[3], choice[4]])
    by_step = Policy(structure, TimeVaryingChoices(start, np.array([0, 0, 2, 0, 0, 0]), choices))
    assert [by_step.actions(3, step) for step in (0, 1, 2, 9)] == [{"walk": 1.0}] * 2 + [{"run": 1.0}] * 2
    with pytest.raises(InputError, match="steps count from 0"):
        by_step.actions(3, -1)


def test_a_policy_for_a_state_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    head = {"format": "tightrope policy", "version": 1}
    path.write_text(json.dumps({**head, "policy": [{"state": 7, "action": "run"}]}))
    with pytest.raises(InputError, match="entry 1: 7 is none of the model's named states: 2, 3, 1, 4, 0"):
        Policy(walk().structure, path)
    # by index, state 1 is the author's 3
    path.write_text(json.dumps({**head, "states": "index", "policy": [{"state": 1, "action": "run"}]}))
    assert Policy(walk().structure, path).choice.tolist()[1] == 2
    path.write_text(json.dumps({**head, "states": "colour", "policy": []}))
    with pytest.raises(InputError, match='"states" can be "index", not "colour"'):
        Policy(walk().structure, path)


# --- the command line -----------------------------------------------------------------------


def test_the_command_line_refuses_and_accepts_indices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "walk.prism").write_text(WALK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tightrope.data.steps.load_named", lambda spec, option: WalkEnv)
    common = ["walk.prism", "--param", "p=0.1:0.9", "--env", "m:E", "--episodes", "3"]
    sampled = ["sample", *common, "-o", "data.csv"]
    assert run(sampled) == 2
    assert "hint: where it is the model's index" in capsys.readouterr().err
    assert not (tmp_path / "data.csv").exists()
    assert run([*sampled, "--states", "index"]) == 2  # state 2 is x=1 to the model: not where it begins
    assert "the model has no transition" in capsys.readouterr().err
    learned = ["online", *common, "--prop", 'Pmax=? [ F "home" ]']
    assert run(learned) == 2
    assert "does not say which state it is" in capsys.readouterr().err
    without = ["online", "walk.prism", "--episodes", "3", "--states", "index"]
    assert run(without) == 2
    assert "--states requires --env" in capsys.readouterr().err
