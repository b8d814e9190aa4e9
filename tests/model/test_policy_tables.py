"""Policies and their JSON files.

Also of `model/policy_file.py`.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.model.builder import build_from_rows
from tightrope.model.policy import Policy
from tightrope.model.structure import Structure

ROWS = [
    (0, "go", {1: 1}),
    (0, "wait", {0: 1}),
    (1, "go", {2: 1}),
    (1, "go", {0: 1}),
    (2, "", {2: 1}),
]


def structure(variables: bool = True) -> Structure:
    """State 0 has two actions, state 1 one action twice, state 2 a single choice."""
    valuations = {"x": [3, 4, 5], "up": [True, False, True]} if variables else None
    return build_from_rows(ROWS, valuations=valuations).structure


def text_of(policy: Policy) -> str:
    stream = io.StringIO()
    policy.write(stream, "abc")
    return stream.getvalue()


def read(tmp_path: Path, document: object, of: Structure | None = None) -> Policy:
    path = tmp_path / "policy.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return Policy(of or structure(), path)


def wrapped(*records: object) -> dict[str, object]:
    return {"format": "tightrope policy", "version": 1, "model": None, "policy": list(records)}


@pytest.mark.parametrize("variables", [True, False])
@pytest.mark.parametrize("probability", [[1, 0, 0, 1, 1], [0.25, 0.75, 1, 0, 1], [0.1, 0.9, 1 / 3, 2 / 3, 1]])
def test_a_policy_survives_its_file(tmp_path: Path, variables: bool, probability: list[float]) -> None:
    here = structure(variables)
    policy = Policy(here, np.array(probability, dtype=np.float64))
    again = read(tmp_path, text_of(policy), here)
    assert again.probability.tolist() == policy.probability.tolist()
    assert again.is_deterministic == policy.is_deterministic


def test_what_a_file_looks_like() -> None:
    policy = Policy(structure(), np.array([1, 0, 0.25, 0.75, 1]))
    document = json.loads(text_of(policy))
    assert document == {
        "format": "tightrope policy",
        "version": 2,
        "model": "abc",
        "variables": ["x", "up"],
        "policy": [
            [[3, True], "go", 0],
            {
                "state": {"x": 4, "up": False},
                "choices": [
                    {"action": "go", "choice": 0, "probability": 0.25},
                    {"action": "go", "choice": 1, "probability": 0.75},
                ],
            },
        ],
    }
    assert len(text_of(policy).splitlines()) == 4


def test_a_file_by_hand_may_use_names_and_numbers_for_flags(tmp_path: Path) -> None:
    policy = read(
        tmp_path,
        wrapped({"state": {"up": 1, "x": 3}, "action": "wait"}, {"state": {"x": 4, "up": 0}, "choice": 1}),
    )
    assert policy.probability.tolist() == [0, 1, 0, 1, 1]
    assert policy.choice.tolist() == [1, 3, 4]


def test_uniform_and_deterministic_policies() -> None:
    here = structure()
    assert Policy.uniform(here).probability.tolist() == [0.5, 0.5, 0.5, 0.5, 1]
    fixed = Policy.of_choices(here, np.array([1, 2, 4]))
    assert fixed.probability.tolist() == [0, 1, 1, 0, 1]
    assert fixed.choice.tolist() == [1, 2, 4]
    with pytest.raises(InputError, match="one choice per state"):
        _ = Policy.uniform(here).choice


@pytest.mark.parametrize(
    ("probability", "message"),
    [
        ([1, 0], "the policy has 2 entries for 5 choices"),
        ([1, 0, 0.5, 0.4, 1], "the policy's probabilities in state (x=4,up=false) sum to 0.9, not 1"),
        (
            [2, -1, 1, 0, 1],
            "the policy takes choice 'go' of state (x=3,up=true) with probability 2, not within [0, 1]",
        ),
        (
            [float("nan"), 1, 1, 0, 1],
            "the policy takes choice 'go' of state (x=3,up=true) with probability nan, not within [0, 1]",
        ),
    ],
)
def test_wrong_probabilities_are_refused(probability: list[float], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Policy(structure(), np.array(probability, dtype=np.float64))
    assert caught.value.message == message


def test_wrong_choices_are_refused() -> None:
    with pytest.raises(InputError, match="the policy names 1 choices for 3 states"):
        Policy.of_choices(structure(), np.array([0]))
    message = r"the policy takes choice 0 in state \(x=4,up=false\), whose choices are 2..3"
    with pytest.raises(InputError, match=message):
        Policy.of_choices(structure(), np.array([0, 0, 4]))


FIRST = {"state": {"x": 3, "up": True}, "action": "go"}
SECOND = {"state": {"x": 4, "up": False}, "choice": 0}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes"),
        ("[]", "a policy file holds one JSON object"),
        ({}, 'no policy file: it lacks "format": "tightrope policy" or the list "policy"'),
        (
            {"format": "tightrope policy", "version": 3, "policy": []},
            "version 3 of the format; this program reads 1 and 2",
        ),
        (wrapped(7), 'entry 1 is not an object with a "state": 7'),
        (wrapped(FIRST, FIRST), "entry 2 names state (x=3,up=true) a second time"),
        (
            wrapped(FIRST),
            "the policy says nothing about state (x=4,up=false), which has 2 choices (1 such states)",
        ),
        (wrapped({"state": 9, "choice": 0}), "entry 1: 9 is none of the model's named states: 0, 1, 2"),
        (
            wrapped({"state": {"x": 3}, "choice": 0}),
            'entry 1: a state is given by the variables x, up, not by {"x": 3}',
        ),
        (
            wrapped({"state": {"x": 3, "up": False}, "choice": 0}),
            'entry 1: {"x": 3, "up": false} is not a reachable state of the model',
        ),
        (
            wrapped({"state": 0, "action": "run"}),
            "entry 1, state (x=3,up=true): the action 'run' is not enabled; enabled are 'go', 'wait'",
        ),
        (
            wrapped(FIRST, {"state": 1, "action": "go"}),
            "entry 2, state (x=4,up=false): 2 choices have the action 'go'",
        ),
        (wrapped({"state": 0, "choice": 2}), "entry 1, state (x=3,up=true): no choice 2, they are 0..1"),
        (
            wrapped({"state": 0, "choice": 1, "action": "go"}),
            "entry 1, state (x=3,up=true): choice 1 is 'wait', not 'go'",
        ),
        (wrapped({"state": 0, "choices": 3}), 'entry 1: "choices" is not a list of objects'),
        (
            wrapped({"state": 0, "choices": [{"choice": 0, "probability": "all"}]}),
            "entry 1: the probability 'all' is not a number",
        ),
        (
            wrapped({"state": 0, "choices": [{"choice": 0, "probability": 0.5}]}, SECOND),
            "the policy's probabilities in state (x=3,up=true) sum to 0.5, not 1",
        ),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, document: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, document)
    assert caught.value.message == message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.json: cannot read the policy: No such file or directory"):
        Policy(structure(), tmp_path / "none.json")
