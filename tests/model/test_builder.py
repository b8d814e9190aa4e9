"""Models from elsewhere: arrays of MDP toolboxes, tables of Gymnasium, UMB files, stormpy.

Also of `model/authored.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_array

import tightrope as tr
from same_model import assert_same_model

P = np.array(
    [
        [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]],
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)
"""The second action is available in the middle only."""


def test_dense_sparse_and_named_matrices_are_one_model() -> None:
    dense = tr.from_arrays(P, labels={"end": [2]})
    sparse = tr.from_arrays(
        [csr_array(P[0]), coo_matrix(P[1])], labels={"end": np.array([False, False, True])}
    )
    named = tr.from_arrays({"0": P[0], "1": P[1]}, labels={"end": [2]})
    assert isinstance(dense, tr.MDP)
    assert dense.hash() == sparse.hash() == named.hash()
    assert dense.choice_start.tolist() == [0, 1, 3, 4]
    assert dense.probability.tolist() == [0.5, 0.5, 0.25, 0.75, 1.0, 1.0]
    assert dense.structure.action_name(2) == "1"


def test_rewards_of_states_choices_and_transitions() -> None:
    of_transitions = np.zeros((2, 3, 3))
    of_transitions[0, 1, 2] = 4.0
    given: dict[str, Any] = {
        "states": np.array([1.0, 2.0, 0.0]),
        "choices": np.array([[1.0, 0], [2.0, 5.0], [0, 0]]),
        "transitions": of_transitions,
        "sparse": [csr_array(part) for part in of_transitions],
    }
    found = {}
    for name, R in given.items():
        reward = tr.from_arrays(P, R).rewards["reward"].choice
        assert reward is not None
        found[name] = reward.tolist()
    assert found["states"] == [1, 2, 2, 0]
    assert found["choices"] == [1, 2, 5, 0]
    assert found["transitions"] == found["sparse"] == [0, 3, 0, 0]


def test_entries_with_parameters_make_a_parametric_model() -> None:
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    unknown = P.astype(object)
    unknown[0, 0] = [1 - p, p, 0]
    model = tr.from_arrays(unknown, parameters=parameters, states=["a", "b", "c"], labels={"end": [2]})
    assert isinstance(model, tr.ParametricMDP)
    assert model.instantiate(p=0.5).probability.tolist() == [0.5, 0.5, 0.25, 0.75, 1.0, 1.0]
    assert model.structure.state_name(0) == "'a'"


def test_frozen_lake_as_it_is_and_with_an_unknown_slip() -> None:
    env = gymnasium.make("FrozenLake-v1", map_name="4x4")
    plain = tr.from_gymnasium(env, actions=["left", "down", "right", "up"])
    assert isinstance(plain, tr.MDP)
    assert {name: int(held.sum()) for name, held in plain.labels.items()} == {
        "init": 1,
        "deadlock": 0,
        "terminal": 5,
        "goal": 1,
    }
    solution = tr.solve(plain, 'Pmax=? [ F "goal" ]')
    assert solution.lower[0] == pytest.approx(14 / 17, abs=1e-6), "the value that textbooks give"
    parameters = tr.Parameters.box(p=("1/4", "1/2"))
    (p,) = parameters.symbols()

    def slip(state: int, action: int, outcomes: Any) -> Any:
        return [(1 - p) / 2, p, (1 - p) / 2] if len(outcomes) == 3 else None

    model = tr.from_gymnasium(env, parameters=parameters, probabilities=slip)
    assert isinstance(model, tr.ParametricMDP)
    at = tr.solve(model.problem('Pmax=? [ F "goal" ]').at(p="1/3"))
    assert at.lower[0] == pytest.approx(14 / 17, abs=1e-6)
    env.close()


def test_environments_without_a_table_or_a_first_state_are_refused() -> None:
    with pytest.raises(tr.InputError, match="without a transition table P"):
        tr.from_gymnasium(object())
    taxi = gymnasium.make("Taxi-v4")
    with pytest.raises(tr.InputError, match=r"has 300 initial states, and a model has one"):
        tr.from_gymnasium(taxi)
    assert tr.from_gymnasium(taxi, initial=1).states == 500


def test_umb_files_are_read_back(tmp_path: Path) -> None:
    rows: list[Any] = [(0, "a", {0: (0.25, 0.5), 1: (0.5, 0.75)}), (0, "b", {1: 1}), (1, "a", {1: 1})]
    model = tr.build_from_rows(
        rows,
        labels={"goal !": [1]},
        state_rewards={"steps": [1, 0]},
        choice_rewards={"steps": [1, 2, 0]},
        valuations={"x": [3, -4]},
    )
    assert isinstance(model, tr.IntervalMDP)
    model.save(tmp_path / "m.umb")
    read = tr.load(tmp_path / "m.umb")
    assert isinstance(read, tr.IntervalMDP)
    assert read.hash() == model.hash()
    assert read.valuations["x"].tolist() == [3, -4]
    plain = tr.from_arrays(P)
    assert isinstance(plain, tr.MDP)
    plain.save(tmp_path / "plain.umb")
    assert tr.load(tmp_path / "plain.umb").hash() == plain.hash()


def test_other_files_are_no_umb_files(tmp_path: Path) -> None:
    (tmp_path / "m.umb").write_bytes(b"not an archive")
    with pytest.raises(tr.InputError, match=r"m.umb: this is not a UMB file that umbi reads: "):
        tr.load(tmp_path / "m.umb")
    with pytest.raises(
        tr.InputError, match=r"`params` cannot be used with m.umb: UMB files have no parameters"
    ):
        tr.load(tmp_path / "m.umb", params={"p": (0, 1)})


def test_models_cross_over_to_storm_and_back() -> None:
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows: list[Any] = [(0, "go", {0: 1 - p, 1: p}), (0, "stay", {0: 1}), (1, "go", {1: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"home": [1]})
    storm = tr.to_stormpy(model)
    assert (storm.nr_states, storm.nr_transitions, storm.has_parameters) == (2, 4, True)
    back = tr.load(storm, params={"p": (0.1, 0.9)})
    assert isinstance(back, tr.ParametricMDP)
    assert_same_model(back, model)
    plain, module = tr.from_arrays(P), cast(Any, tr)
    again = tr.load(tr.to_stormpy(plain))
    assert isinstance(again, tr.MDP) and again.successor.tolist() == plain.successor.tolist()
    with pytest.raises(AttributeError, match="no name `from_stormpy`; did you mean `load`"):
        _ = module.from_stormpy
