"""Policies as JSON files: what is done in every state in which there is something to choose.

    {"format": "tightrope policy", "version": 2, "model": "9f2c…", "variables": ["x", "y"],
     "certified": {"property": "Pmax=? [ F \\"goal\\" ]", "lower": 0.81, "upper": 0.93, …},
     "policy": [
      [[1, 1], "sendL", 2],
      [[2, 1], [[0, "up", 0], [7, "sendL", 2]]],
      {"state": {"x": 3, "y": 1}, "choices": [{"action": "up", "choice": 0, "probability": 0.5}, …]}
     ]}

An entry is a state (the values of `variables` in their order), an action, and the number of the choice within
its state, counted from 0, which tells two choices of the same action apart. Where the policy depends on the
step, a list says from which step on what is done: above, up in steps 0 to 6, sendL from step 7 on. A state
in which the policy is random is an object with the probabilities. States with a single choice are left out.

A model without state variables names its states as its author does ("hungry"; `tightrope.model.own_states`),
or by index (17) where it was read from a file that numbers them. Where own states cannot be written in JSON,
the head says that indices are meant: "states": "index".

`certified` is what the policy of this very file attains: its verified interval, computed before the file was
written, and what it speaks of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from tightrope.io.coding import to_plain
from tightrope.io.results import POLICY_FORMAT, POLICY_VERSION, CertifiedFacts, PolicyHead
from tightrope.model.step_choices import StepChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray

if TYPE_CHECKING:
    from tightrope.io.policy import Policy

FORMAT = POLICY_FORMAT
VERSION = POLICY_VERSION
INDEX = "index"

Texts = Any
"""A pyarrow array of texts."""


def write_policy(
    policy: Policy,
    stream: IO[str],
    model_hash: str | None = None,
    certified: CertifiedFacts | None = None,
) -> None:
    """Write the policy as JSON, one line per state that has a choice to make."""
    structure = policy.structure
    own = list_own_states(structure)
    by_index = own is None and structure.own_states is not None and not structure.valuations
    head = PolicyHead(
        model=model_hash,
        variables=list(structure.valuations) or UNSET,
        states=INDEX if by_index else UNSET,
        certified=UNSET if certified is None else certified,
    )
    stream.write(json.dumps(to_plain(head), allow_nan=False)[:-1] + ', "policy": [')
    lines = list(_lines(policy, own))
    stream.write("\n" + ",\n".join(lines) if lines else "")
    stream.write("\n]}\n")


def list_own_states(structure: Structure) -> Sequence[object] | None:
    """The model's own states, where each is the same state again when it is read from JSON."""
    own = structure.own_states
    if own is None or structure.valuations:
        return None
    try:
        read = json.loads(json.dumps(list(own), allow_nan=False))
    except (TypeError, ValueError):
        return None
    return own if all(own.find(state) == number for number, state in enumerate(read)) else None


def _lines(policy: Policy, own: Sequence[object] | None) -> Iterator[str]:
    import pyarrow as pa

    structure = policy.structure
    states = np.flatnonzero(np.diff(structure.choice_start) > 1)
    texts = state_texts(structure, own, states)
    if policy.steps is not None:
        yield from _by_step(structure, policy.steps, states.tolist(), texts)
        return
    taken = np.add.reduceat((policy.probability > 0).astype(np.int64), structure.choice_start[:-1])
    if np.all(taken == 1):
        choice = np.flatnonzero(policy.probability)[states]
        local = _texts(choice - structure.choice_start[states])
        names = np.array(_action_texts(structure), dtype=object)[structure.action_of_choice[choice]]
        yield from _join("[", texts, ",", pa.array(names, pa.string()), ",", local, "]").to_pylist()
        return
    yield from _write_randomised(policy, states.tolist(), texts, own)


def state_texts(structure: Structure, own: Sequence[object] | None, states: OffsetArray) -> Texts:
    """The states as they stand in the file; a million of them in a moment."""
    import pyarrow as pa

    if structure.valuations:
        parts: list[Texts | str] = ["["]
        for column in structure.valuations.values():
            parts += [_texts(column[states]), ","]
        return _join(*parts[:-1], "]")
    if own is None:
        return _texts(states)
    return pa.array([json.dumps(own[state]) for state in states.tolist()], pa.string())


def _texts(column: npt.NDArray[np.generic]) -> Texts:
    import pyarrow as pa

    return pa.array(column).cast(pa.string())


def _join(*parts: Texts | str) -> Texts:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")


def _action_texts(structure: Structure) -> list[str]:
    return [json.dumps(name) for name in structure.action_names]


def _by_step(structure: Structure, choices: StepChoices, states: list[int], texts: Texts) -> Iterator[str]:
    names = _action_texts(structure)
    start, step, choice = choices.start.tolist(), choices.step.tolist(), choices.choice.tolist()
    first = structure.choice_start.tolist()
    action = structure.action_of_choice.tolist()
    for state, text in zip(states, texts.to_pylist(), strict=True):
        runs = range(start[state], start[state + 1])
        said = [(step[j], names[action[choice[j]]], choice[j] - first[state]) for j in runs]
        if len(said) == 1:
            yield f"[{text},{said[0][1]},{said[0][2]}]"
        else:
            yield f"[{text},[{','.join(f'[{t},{a},{c}]' for t, a, c in said)}]]"


def _write_randomised(
    policy: Policy, states: list[int], texts: Texts, own: Sequence[object] | None
) -> Iterator[str]:
    structure = policy.structure
    start = structure.choice_start.tolist()
    names, action = structure.action_names, structure.action_of_choice
    for state, text in zip(states, texts.to_pylist(), strict=True):
        first, last = start[state], start[state + 1]
        taken = [c for c in range(first, last) if policy.probability[c] > 0]
        if len(taken) == 1:
            yield f"[{text},{json.dumps(names[action[taken[0]]])},{taken[0] - first}]"
            continue
        shown: object = own[state] if own is not None else state
        if structure.valuations:
            shown = {name: column[state].item() for name, column in structure.valuations.items()}
        choices = [
            {"action": names[action[c]], "choice": c - first, "probability": float(policy.probability[c])}
            for c in taken
        ]
        yield json.dumps({"state": shown, "choices": choices})
