"""Memoryless policies, and their JSON files: state valuation → action.

    {"format": "tightrope policy", "version": 1, "model": "9f2c…",
     "policy": [
      {"state": {"x": 1, "y": 1}, "action": "sendL", "choice": 2},
      {"state": {"x": 2, "y": 1}, "choices": [{"action": "up", "choice": 0, "probability": 0.5}, …]}
     ]}

States with a single choice are left out. `choice` is the number of the choice within its state, counted
from 0; it is what tells two choices of the same action apart. A file written by hand may leave it out
where the action's name is enough. A model without state variables names its states as its author does
("state": "hungry"; `tightrope.model.own_states`), or by index ("state": 17) where it was read from a file
that numbers them. Where own states cannot be written in JSON, the head says that indices are meant:
"states": "index".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, IndexArray

FORMAT = "tightrope policy"
VERSION = 1
SUM_TOLERANCE = 1e-9
INDEX = "index"


@dataclass(frozen=True, eq=False)
class Policy:
    """`probability[c]`: how likely choice c is taken in its state."""

    probability: FloatArray
    structure: Structure

    def __post_init__(self) -> None:
        probability = np.ascontiguousarray(self.probability, dtype=np.float64).view()
        probability.flags.writeable = False
        object.__setattr__(self, "probability", probability)
        structure = self.structure
        if probability.shape != (structure.choices,):
            raise InputError(f"the policy has {len(probability)} entries for {structure.choices} choices")
        wrong = np.flatnonzero(~((probability >= 0) & (probability <= 1)))
        if len(wrong):
            raise InputError(
                f"the policy takes {structure.choice_name(int(wrong[0]))} with probability "
                f"{probability[wrong[0]]:.12g}, not within [0, 1]"
            )
        total = np.add.reduceat(probability, structure.choice_start[:-1])
        wrong = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
        if len(wrong):
            state = int(wrong[0])
            raise InputError(
                f"the policy's probabilities in state {structure.state_name(state)} sum to "
                f"{total[state]:.12g}, not 1"
            )

    @staticmethod
    def uniform(structure: Structure) -> Policy:
        """Every choice of a state alike."""
        choices = np.diff(structure.choice_start)
        return Policy(np.repeat(1 / choices, choices), structure)

    @staticmethod
    def deterministic(structure: Structure, choice: npt.NDArray[np.integer]) -> Policy:
        """Takes `choice[s]`, the index of a choice of the model, in state s."""
        taken = np.asarray(choice)
        if taken.shape != (structure.states,):
            raise InputError(f"the policy names {len(taken)} choices for {structure.states} states")
        wrong = np.flatnonzero((taken < structure.choice_start[:-1]) | (taken >= structure.choice_start[1:]))
        if len(wrong):
            state = int(wrong[0])
            raise InputError(
                f"the policy takes choice {taken[state]} in state {structure.state_name(state)}, "
                f"whose choices are {structure.choice_start[state]}..{structure.choice_start[state + 1] - 1}"
            )
        probability = np.zeros(structure.choices)
        probability[taken] = 1.0
        return Policy(probability, structure)

    @cached_property
    def is_deterministic(self) -> bool:
        return bool(np.all((self.probability == 0) | (self.probability == 1)))

    @cached_property
    def choice(self) -> IndexArray:
        """The choice taken in each state by a deterministic policy."""
        if not self.is_deterministic:
            raise ValueError("a randomised policy does not take one choice a state")
        return np.flatnonzero(self.probability).astype(np.int32)


def write_policy(policy: Policy, stream: IO[str], model_hash: str | None = None) -> None:
    """Write the policy as JSON, one line a state that has a choice to make."""
    own = _written_states(policy.structure)
    head = {"format": FORMAT, "version": VERSION, "model": model_hash}
    if own is None and policy.structure.own_states is not None and not policy.structure.valuations:
        head["states"] = INDEX
    stream.write(json.dumps(head)[:-1] + ', "policy": [')
    separator = "\n"
    for record in _records(policy, own):
        stream.write(separator + json.dumps(record))
        separator = ",\n"
    stream.write("\n]}\n")


def _written_states(structure: Structure) -> Sequence[object] | None:
    """The model's own states, where each is the same state again when it is read from JSON."""
    own = structure.own_states
    if own is None or structure.valuations:
        return None
    try:
        read = json.loads(json.dumps(list(own), allow_nan=False))
    except (TypeError, ValueError):
        return None
    return own if all(own.find(state) == number for number, state in enumerate(read)) else None


def _records(policy: Policy, own: Sequence[object] | None) -> Iterator[dict[str, object]]:
    structure = policy.structure
    columns = {name: column.tolist() for name, column in structure.valuations.items()}
    start = structure.choice_start.tolist()
    names = structure.action_names
    action = structure.action_of_choice
    for state in np.flatnonzero(np.diff(structure.choice_start) > 1).tolist():
        first, last = start[state], start[state + 1]
        taken = [c for c in range(first, last) if policy.probability[c] > 0]
        shown: object = own[state] if own is not None else state
        if columns:
            shown = {name: column[state] for name, column in columns.items()}
        named = [{"action": names[action[c]], "choice": c - first} for c in taken]
        if len(taken) == 1:
            yield {"state": shown, **named[0]}
        else:
            shares = [float(policy.probability[c]) for c in taken]
            yield {
                "state": shown,
                "choices": [{**n, "probability": p} for n, p in zip(named, shares, strict=True)],
            }


def read_policy(path: Path | str, structure: Structure) -> Policy:
    """Read a policy for a model; every state with more than one choice must be in the file, once."""
    return _PolicyReader(str(path), structure).read()


class _PolicyReader:
    def __init__(self, file: str, structure: Structure):
        self.file = file
        self.structure = structure
        columns = [column.tolist() for column in structure.valuations.values()]
        self.by_index = structure.own_states is None and not columns
        valuations = zip(*columns, strict=True)
        self.state_of = {values: s for s, values in enumerate(valuations)} if columns else None

    def read(self) -> Policy:
        structure = self.structure
        document = self._document()
        records = document.get("policy")
        if document.get("format") != FORMAT or not isinstance(records, list):
            raise self._error(f'no policy file: it lacks "format": "{FORMAT}" or the list "policy"')
        if document.get("version") != VERSION:
            raise self._error(
                f"version {document.get('version')!r} of the format; this program reads {VERSION}"
            )
        if document.get("states") not in (None, INDEX):
            raise self._error(f'"states" can be "{INDEX}", not {json.dumps(document["states"])}')
        self.by_index = self.by_index or document.get("states") == INDEX
        probability = np.zeros(structure.choices)
        forced = np.diff(structure.choice_start) == 1
        probability[structure.choice_start[:-1][forced]] = 1.0
        seen = np.zeros(structure.states, dtype=np.bool_)
        for number, record in enumerate(records, start=1):
            if not isinstance(record, dict) or "state" not in record:
                raise self._error(f'entry {number} is not an object with a "state": {record!r}')
            state = self._state(record["state"], number)
            if seen[state]:
                raise self._error(f"entry {number} names state {structure.state_name(state)} a second time")
            seen[state] = True
            probability[structure.choice_start[state] : structure.choice_start[state + 1]] = 0.0
            for choice, share in self._choices(record, state, number):
                probability[choice] += share
        missing = np.flatnonzero(~seen & ~forced)
        if len(missing):
            raise self._error(
                f"the policy says nothing about state {structure.state_name(int(missing[0]))}, which has "
                f"{np.diff(structure.choice_start)[missing[0]]} choices ({len(missing)} such states)"
            )
        return Policy(probability, structure)

    def _document(self) -> dict[str, object]:
        try:
            document = json.loads(Path(self.file).read_text(encoding="utf-8"))
        except OSError as error:
            raise self._error(f"cannot read the policy: {error.strerror}") from error
        except json.JSONDecodeError as error:
            here = Location(self.file, error.lineno, error.colno)
            raise InputError(f"not JSON: {error.msg}", here) from error
        except UnicodeDecodeError as error:
            raise self._error("not JSON: the file is not UTF-8 text") from error
        if not isinstance(document, dict):
            raise self._error("a policy file holds one JSON object")
        return document

    def _state(self, shown: object, number: int) -> int:
        structure = self.structure
        is_number = isinstance(shown, int) and not isinstance(shown, bool)
        if is_number and isinstance(shown, int) and self.by_index:
            if 0 <= shown < structure.states:
                return shown
            raise self._error(
                f"entry {number} names state {shown}, but the states are 0..{structure.states - 1}"
            )
        names = list(structure.valuations)
        own = structure.own_states
        if own is not None and not isinstance(shown, dict):
            if (state := own.find(shown)) >= 0:
                return state
            raise self._error(
                f"entry {number}: {json.dumps(shown)} is none of the model's own states: {own.listing()}"
            )
        if self.state_of is None or not isinstance(shown, dict) or set(shown) != set(names):
            wanted = f"the variables {', '.join(names)}" if names else "its index"
            hint = f'where numbers are indices of states, say "states": "{INDEX}" beside "format"'
            raise self._error(
                f"entry {number}: a state is given by {wanted}, not by {json.dumps(shown)}",
                hint=hint if is_number else None,
            )
        values = tuple(shown[name] for name in names)
        if all(isinstance(value, int) for value in values) and values in self.state_of:
            return self.state_of[values]
        raise self._error(f"entry {number}: {json.dumps(shown)} is not a reachable state of the model")

    def _choices(self, record: dict[str, object], state: int, number: int) -> list[tuple[int, float]]:
        if "choices" not in record:
            return [(self._choice(record, state, number), 1.0)]
        listed = record["choices"]
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            raise self._error(f'entry {number}: "choices" is not a list of objects')
        result = []
        for entry in listed:
            share = entry.get("probability")
            if isinstance(share, bool) or not isinstance(share, int | float):
                raise self._error(f"entry {number}: the probability {share!r} is not a number")
            result.append((self._choice(entry, state, number), float(share)))
        return result

    def _choice(self, entry: dict[str, object], state: int, number: int) -> int:
        structure = self.structure
        first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        where = f"entry {number}, state {structure.state_name(state)}"
        names = [structure.action_name(c) for c in range(first, last)]
        action, local = entry.get("action"), entry.get("choice")
        if local is not None:
            if isinstance(local, bool) or not isinstance(local, int) or not 0 <= local < last - first:
                raise self._error(f"{where}: no choice {local!r}, they are 0..{last - first - 1}")
            if action is not None and action != names[local]:
                raise self._error(f"{where}: choice {local} is {names[local]!r}, not {action!r}")
            return first + local
        matching = [c for c in range(first, last) if names[c - first] == action]
        if len(matching) == 1:
            return matching[0]
        enabled = ", ".join(repr(name) for name in names)
        if not matching:
            raise self._error(f"{where}: the action {action!r} is not enabled; enabled are {enabled}")
        raise self._error(
            f"{where}: {len(matching)} choices have the action {action!r}",
            hint='say which by "choice", its number within the state, counted from 0',
        )

    def _error(self, message: str, hint: str | None = None) -> InputError:
        return InputError(message, Location(self.file), hint)
