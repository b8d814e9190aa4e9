"""What a policy can be made of.

* a mapping from states to what is done there, or a function of the state that says it: an action's name, the
  number of a choice within its state (counted from 0), or a mapping from these to probabilities. States
  with a single choice may be left out of a mapping, and functions are not asked about them;
* the path of a policy file;
* whole numbers, one per state: the number of the choice within its state;
* probabilities, one per choice of the model, in the model's order;
* another policy of a model with the same states and choices; `StepChoices`, for choices that depend on the
  step.

States and actions are called what `tightrope.model.find_state` says. Functions get states in the same words:
the author's own states, else the variables' values by name ({"x": 3, "y": 4}), else the index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.io.policy_read import read_policy_file
from tightrope.model.find_state import find_choice, index_or_state, show_state
from tightrope.model.step_choices import StepChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray

Said: TypeAlias = (
    StepChoices
    | Mapping[Any, Any]
    | Callable[[Any], Any]
    | str
    | Path
    | npt.NDArray[Any]
    | Sequence[int]
    | Sequence[float]
)
"""What `Policy(model, …)` takes besides policies."""


def read_given(structure: Structure, given: Said) -> FloatArray | StepChoices:
    """A probability per choice, or a choice per state and step; what it is not is an `InputError`."""
    if isinstance(given, StepChoices):
        return given
    if isinstance(given, str | Path):
        return read_policy_file(given, structure)
    if isinstance(given, Mapping):
        return _of_mapping(structure, given)
    if callable(given):
        return _of_function(structure, given)
    return _of_array(structure, given)


def refuse_other_model(theirs: Structure, structure: Structure) -> None:
    """Refuse a policy of another model: choices must be the same, state by state and name by name."""
    if theirs is structure:
        return
    if not np.array_equal(theirs.choice_start, structure.choice_start):
        raise InputError(
            f"the policy is of another model, with {theirs.states} states and {theirs.choices} choices, "
            f"not {structure.states} and {structure.choices}"
        )
    if not _same_actions(theirs, structure):
        raise InputError("the policy is of another model, whose actions have other names")


def _same_actions(one: Structure, other: Structure) -> bool:
    if one.action_names == other.action_names:
        return np.array_equal(one.action_of_choice, other.action_of_choice)
    ours = np.array(one.action_names, dtype=object)[one.action_of_choice]
    theirs = np.array(other.action_names, dtype=object)[other.action_of_choice]
    return np.array_equal(ours, theirs)


def _of_array(structure: Structure, given: Any) -> FloatArray:
    array = np.asarray(given)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.floating):
        return array.astype(np.float64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"a policy cannot be made of a value of the type {type(given).__name__}",
            hint="give a mapping from states to actions, a function of the state, the path of a policy file, "
            "a choice's number per state or a probability per choice",
        )
    if array.shape != (structure.states,):
        raise InputError(f"the policy names {len(array)} choices for {structure.states} states")
    size = np.diff(structure.choice_start)
    wrong = np.flatnonzero((array < 0) | (array >= size))
    if len(wrong):
        state = int(wrong[0])
        raise InputError(
            f"the policy takes choice number {array[state]} of state {structure.state_name(state)}, whose "
            f"choices are 0..{size[state] - 1}",
            hint="choices are counted from 0 within their state",
        )
    weight = np.zeros(structure.choices)
    weight[structure.choice_start[:-1] + array] = 1.0
    return weight


def _of_function(structure: Structure, function: Callable[[Any], Any]) -> FloatArray:
    weight = _find_forced(structure)
    for state in np.flatnonzero(np.diff(structure.choice_start) > 1).tolist():
        _put(structure, weight, state, function(show_state(structure, state)))
    return weight


def _of_mapping(structure: Structure, given: Mapping[Any, Any]) -> FloatArray:
    weight = _find_forced(structure)
    seen = np.diff(structure.choice_start) == 1
    named: dict[int, Any] = {}
    for state, said in given.items():
        number = index_or_state(structure, state)
        if number in named:
            raise InputError(f"{named[number]!r} and {state!r} are the same state")
        named[number] = state
        seen[number] = True
        _put(structure, weight, number, said)
    missing = np.flatnonzero(~seen)
    if len(missing):
        raise InputError(
            f"the policy says nothing about state {structure.state_name(int(missing[0]))}, which has "
            f"{np.diff(structure.choice_start)[missing[0]]} choices ({len(missing)} such states)"
        )
    return weight


def _find_forced(structure: Structure) -> FloatArray:
    """Only what is the only choice of its state is taken."""
    weight = np.zeros(structure.choices)
    weight[structure.choice_start[:-1]] = np.diff(structure.choice_start) == 1
    return weight


def _put(structure: Structure, weight: FloatArray, state: int, said: Any) -> None:
    first, last = structure.choice_start[state : state + 2].tolist()
    weight[first:last] = 0.0
    if not isinstance(said, Mapping):
        weight[find_choice(structure, state, said, "the policy")] = 1.0
        return
    for action, share in said.items():
        if isinstance(share, bool) or not isinstance(share, int | float | np.number):
            name = structure.state_name(state)
            raise InputError(f"the policy takes {action!r} in state {name} with {share!r}: no number")
        weight[find_choice(structure, state, action, "the policy")] += float(share)
