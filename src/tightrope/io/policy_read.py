"""Reading policy files (`tightrope.io.policy_write` says what they look like), with every error placed.

A file written by hand may leave out the number of a choice where the action's name is enough, and may write
every entry as an object: {"state": {"x": 1}, "action": "up"}, with "steps": [{"from": 0, "action": "up"}, …]
where the policy depends on the step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.policy_write import FORMAT, INDEX, VERSION
from tightrope.io.results import POLICY_VERSIONS
from tightrope.model.step_choices import StepChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray


@dataclass(frozen=True)
class _Said:
    """An entry: choices from which step on, and the probabilities at the first."""

    state: int
    runs: list[tuple[int, int]]
    shares: list[tuple[int, float]]


def read_policy_file(path: Path | str, structure: Structure) -> FloatArray | StepChoices:
    """What a `Policy` of the model is made of; every state with more than one choice is in the file, once."""
    return PolicyReader(str(path), structure).read()


class PolicyReader:
    def __init__(self, file: str, structure: Structure):
        self.file = file
        self.structure = structure
        columns = [column.tolist() for column in structure.valuations.values()]
        self.by_index = structure.own_states is None and not columns
        valuations = zip(*columns, strict=True)
        self.state_of = {values: s for s, values in enumerate(valuations)} if columns else None

    def read(self) -> FloatArray | StepChoices:
        structure = self.structure
        document = self._document()
        records = document.get("policy")
        if document.get("format") != FORMAT or not isinstance(records, list):
            raise self._error(f'no policy file: it lacks "format": "{FORMAT}" or the list "policy"')
        if document.get("version") not in POLICY_VERSIONS:
            raise self._error(
                f"version {document.get('version')!r} of the format; this program reads 1 and {VERSION}"
            )
        self.variables = self._variables(document.get("variables"))
        if document.get("states") not in (None, INDEX):
            raise self._error(f'"states" can be "{INDEX}", not {json.dumps(document["states"])}')
        self.by_index = self.by_index or document.get("states") == INDEX
        forced = np.diff(structure.choice_start) == 1
        seen = np.zeros(structure.states, dtype=np.bool_)
        said: list[_Said] = []
        for number, record in enumerate(records, start=1):
            said.append(self._entry(record, number))
            state = said[-1].state
            if seen[state]:
                raise self._error(f"entry {number} names state {structure.state_name(state)} a second time")
            seen[state] = True
        missing = np.flatnonzero(~seen & ~forced)
        if len(missing):
            raise self._error(
                f"the policy says nothing about state {structure.state_name(int(missing[0]))}, which has "
                f"{np.diff(structure.choice_start)[missing[0]]} choices ({len(missing)} such states)"
            )
        if any(len(entry.runs) > 1 for entry in said):
            return self._by_step(said)
        probability = np.zeros(structure.choices)
        probability[structure.choice_start[:-1]] = 1.0
        for entry in said:
            probability[structure.choice_start[entry.state]] = 0.0
            for choice, share in entry.shares:
                probability[choice] += share
        return probability

    def _by_step(self, said: list[_Said]) -> StepChoices:
        runs = [[(0, int(first))] for first in self.structure.choice_start[:-1]]
        for entry in said:
            if len(entry.shares) > 1:
                raise self._error(
                    f"the policy is random in state {self.structure.state_name(entry.state)} and depends on "
                    "the step elsewhere",
                    hint="a policy that depends on the step takes one choice per state and step",
                )
            runs[entry.state] = entry.runs
        start = np.concatenate([[0], np.cumsum([len(each) for each in runs])])
        step, choice = np.array([run for each in runs for run in each], dtype=np.int64).T
        return StepChoices(start, step, choice)

    def _variables(self, listed: object) -> list[str]:
        names = list(self.structure.valuations)
        if listed is None:
            return names
        if not isinstance(listed, list) or set(map(str, listed)) != set(names) or len(listed) != len(names):
            wanted = ", ".join(names) or "none"
            raise self._error(f'"variables" are {json.dumps(listed)}, but those of the model are {wanted}')
        return [str(name) for name in listed]

    def _entry(self, record: object, number: int) -> _Said:
        """An entry as a row [state, action, choice] or [state, steps], or as an object."""
        if isinstance(record, list) and len(record) in (2, 3):
            state = self._state(self._name_values(record[0]), number)
            if len(record) == 3:
                return self._read_row(state, [(0, {"action": record[1], "choice": record[2]})], number)
            return self._read_row(state, self._runs(record[1], number), number)
        if not isinstance(record, dict) or "state" not in record:
            raise self._error(f'entry {number} is not an object with a "state": {record!r}')
        state = self._state(record["state"], number)
        if "choices" in record:
            shares = self._choices(record, state, number)
            return _Said(state, [(0, shares[0][0] if shares else -1)], shares)
        if "steps" in record:
            return self._read_row(state, self._runs(record["steps"], number), number)
        return self._read_row(state, [(0, record)], number)

    def _read_row(self, state: int, runs: list[tuple[int, dict[str, object]]], number: int) -> _Said:
        chosen = [(step, self._choice(entry, state, number)) for step, entry in runs]
        return _Said(state, chosen, [(chosen[0][1], 1.0)])

    def _name_values(self, shown: object) -> object:
        """The values of a row by their names, as objects have them."""
        if self.state_of is None or not isinstance(shown, list) or len(shown) != len(self.variables):
            return shown
        return dict(zip(self.variables, shown, strict=True))

    def _runs(self, listed: object, number: int) -> list[tuple[int, dict[str, object]]]:
        """What is done from which step on: [[0, "up", 0], …], or objects with "from"."""
        runs: list[tuple[int, dict[str, object]]] = []
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, list) and len(each) == 3:
                each = {"from": each[0], "action": each[1], "choice": each[2]}
            step = each.get("from") if isinstance(each, dict) else None
            if not isinstance(step, int) or isinstance(step, bool):
                break
            runs.append((step, each))
        steps = [step for step, _ in runs]
        if not isinstance(listed, list) or len(runs) != len(listed) or not runs:
            raise self._error(
                f"entry {number}: {json.dumps(listed)} does not say from which step on what is done"
            )
        if steps[0] != 0 or sorted(set(steps)) != steps:
            raise self._error(f"entry {number}: the steps begin at 0 and increase, they are {steps}")
        return runs

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
        except RecursionError:
            raise self._error("no policy file: it is nested too deeply") from None
        except ValueError:
            raise self._error("no policy file: a number in it has thousands of digits") from None
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
