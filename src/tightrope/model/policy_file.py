"""Policies as JSON files (`docs/data.md`), with an entry for each state that has several choices.

    {"format": "tightrope policy", "version": 2, "variables": ["x", "y"],
     "policy": [[[1, 1], "sendL", 2], [[2, 1], [[0, "up", 0], [7, "sendL", 2]]]]}

An entry has a state (values of `variables`, the author's state or its index), an action, and the number of
the choice within its state; or a list of first steps with actions; or probabilities. A finite-memory policy
("tightrope controller") has rows of state, memory, action, choice, next memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np

from tightrope.errors import InputError, Location, similar_file
from tightrope.model.graph.support import Support
from tightrope.model.states import AMBIGUOUS, is_whole, list_states, values_identify
from tightrope.model.structure import Structure, freeze
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.provenance import Provenance

# Time-varying: state s takes `choice[j]` from step `step[j]` until its next run begins, the last one for
# ever, for j in start[s]..start[s+1]−1. The first run begins at step 0. Finite memory: in state `state[i]`
# with memory `memory[i]` the choice is `choice[i]`, and the memory becomes `following[i]`. A play begins with
# memory 0. Rows are those that a play can reach.


def check_choices(structure: Structure, state: OffsetArray, choice: OffsetArray) -> None:
    """Refuse choices that are none of their states."""
    low, high = structure.choice_start[state], structure.choice_start[state + 1]
    wrong = np.flatnonzero((choice < low) | (choice >= high))
    if len(wrong):
        first = wrong[0]
        raise InputError(
            f"the policy takes choice {choice[first]} in state {structure.state_name(int(state[first]))}, "
            f"whose choices are {low[first]}..{high[first] - 1}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TimeVaryingChoices(Record):
    """One choice (its index in the model) per state and step.

    >>> TimeVaryingChoices.constant(np.array([0, 2])).horizon
    0
    """

    start: OffsetArray
    step: OffsetArray
    choice: OffsetArray

    def __post_init__(self) -> None:
        freeze(self, np.int64, "start", "step", "choice")
        inner = np.ones(len(self.step), np.bool_)
        inner[self.start[:-1]] = False
        at = np.flatnonzero(inner)
        if np.any(np.diff(self.start) < 1) or np.any(self.step[self.start[:-1]] != 0):
            raise InputError("a policy by steps has no choice for the first step of some state")
        if np.any(self.step[at] <= self.step[at - 1]):
            raise InputError("the steps of a policy by steps are not in increasing order")

    @staticmethod
    def constant(choice: OffsetArray) -> TimeVaryingChoices:
        """Return choices that are `choice` at every step, one per state."""
        return TimeVaryingChoices(np.arange(len(choice) + 1), np.zeros(len(choice), np.int64), choice)

    @property
    def states(self) -> int:
        return len(self.start) - 1

    @cached_property
    def horizon(self) -> int:
        """From this step on nothing changes."""
        return int(self.step.max(initial=0))

    @property
    def first(self) -> OffsetArray:
        """The choices at step 0."""
        return self.choice[self.start[:-1]]

    def at(self, step: int) -> OffsetArray:
        """Return the choice of every state at `step`."""
        begun = np.add.reduceat((self.step <= step).astype(np.int64), self.start[:-1])
        return self.choice[self.start[:-1] + begun - 1]

    def choice_at(self, state: int, step: int) -> int:
        """Return the choice of `state` (an index) at `step`."""
        first, last = self.start[state : state + 2].tolist()
        return int(self.choice[first + int(np.searchsorted(self.step[first:last], step, side="right")) - 1])

    def backwards(self, steps: int) -> Iterator[OffsetArray]:
        """The choices at the steps `steps` − 1, …, 1, 0; each is valid until the next is asked for."""
        if steps <= 0:
            return
        current = self.at(steps - 1).copy()
        later = np.flatnonzero((self.step > 0) & (self.step < steps))
        later = later[np.argsort(self.step[later], kind="stable")]
        owner = np.repeat(np.arange(self.states), np.diff(self.start))
        ends = np.searchsorted(self.step[later], np.arange(steps + 1))
        for step in range(steps - 1, -1, -1):
            yield current
            begins = later[ends[step] : ends[step + 1]]
            current[owner[begins]] = self.choice[begins - 1]

    def refuse_for(self, structure: Structure) -> None:
        """Raise an error if the policy does not fit this model."""
        if self.states != structure.states:
            raise InputError(f"the policy names choices for {self.states} of {structure.states} states")
        check_choices(structure, np.repeat(np.arange(self.states), np.diff(self.start)), self.choice)


class TimeVaryingRecorder:
    """Collects decisions from the last step to the first, as backups find them."""

    def __init__(self, last: OffsetArray, step: int):
        """`last` is what is done from `step` on."""
        self.current, self.step = last.copy(), step
        self._state: list[OffsetArray] = []
        self._step: list[OffsetArray] = []
        self._choice: list[OffsetArray] = []

    def before(self, choice: OffsetArray) -> None:
        """What is done one step earlier."""
        changed = np.flatnonzero(choice != self.current)
        self._state.append(changed)
        self._step.append(np.full(len(changed), self.step))
        self._choice.append(self.current[changed])
        self.current[changed] = choice[changed]
        self.step -= 1

    def result(self) -> TimeVaryingChoices:
        """The whole; what was done at the earliest step recorded is done at all before it."""
        states = np.arange(len(self.current))
        state = np.concatenate([states, *self._state])
        step = np.concatenate([np.zeros(len(states), np.int64), *self._step])
        choice = np.concatenate([self.current, *self._choice])
        order = np.lexsort((step, state))
        start = np.searchsorted(state[order], np.arange(len(states) + 1))
        return TimeVaryingChoices(start, step[order], choice[order])


@dataclass(frozen=True, eq=False, repr=False)
class FiniteMemoryChoices(Record):
    """In `state[i]` with `memory[i]` take `choice[i]` and remember `following[i]`; a play begins with 0.

    >>> import tightrope as tr
    >>> rows = [(0, "left", {1: 1}), (0, "right", {2: 1}), (1, "", {0: 1}), (2, "", {0: 1})]
    >>> model = tr.build_from_rows(rows, labels={"a": [1], "b": [2]})
    >>> choices = tr.FiniteMemoryChoices([0, 1, 0, 2], [0, 1, 1, 0], [0, 2, 1, 3], [1, 1, 0, 0])
    >>> turns = tr.Policy(model, choices)
    >>> turns.act(0, memory=0), turns.next_memory(0, 0), turns.act(0, memory=1)
    ('left', 1, 'right')
    """

    state: OffsetArray
    memory: OffsetArray
    choice: OffsetArray
    following: OffsetArray

    def __post_init__(self) -> None:
        freeze(self, np.int64, "state", "memory", "choice", "following")
        lengths = {len(column) for column in self.columns}
        if len(lengths) > 1 or lengths == {0}:
            raise InputError(
                "finite-memory policies have as many states as memories, choices and next memories"
            )
        if self.state.min() < 0 or self.memory.min() < 0:
            raise InputError("a row of the finite-memory policy has a negative state or memory")
        if self.following.min() < 0 or self.following.max() >= self.memories:
            raise InputError("the finite-memory policy moves to a memory that has no row")
        if not np.diff(np.sort(self.memory * (self.state.max() + 1) + self.state, kind="stable")).all():
            raise InputError("the finite-memory policy has two rows for one state and memory")

    @property
    def columns(self) -> tuple[OffsetArray, OffsetArray, OffsetArray, OffsetArray]:
        return self.state, self.memory, self.choice, self.following

    @cached_property
    def memories(self) -> int:
        """How many different things are remembered."""
        return int(self.memory.max()) + 1

    def find(self, state: int, memory: int) -> int:
        """Return the row of `state` (an index) and `memory`; −1 if it is unreachable."""
        rows = np.flatnonzero((self.state == state) & (self.memory == memory))
        return int(rows[0]) if len(rows) else -1

    def refuse_for(self, structure: Structure) -> None:
        """Raise an error if the policy does not fit this model."""
        if self.state.max() >= structure.states:
            raise InputError("the finite-memory policy has a row for a state that the model does not have")
        check_choices(structure, self.state, self.choice)
        if any(self.find(state, 0) < 0 for state in structure.initial_states):
            raise InputError("the finite-memory policy has no row for the initial state with memory 0")

    def restrict_to_reached(self, support: Support) -> FiniteMemoryChoices:
        """The rows that a play can reach; memories are numbered anew, 0 stays first."""
        structure, width = support.structure, self.memories
        row = {key: number for number, key in enumerate((self.state * width + self.memory).tolist())}
        first = row[structure.initial * width]
        order, seen = [first], {first}
        start, successor, possible = structure.transition_start, structure.successor, support.possible
        for number in order:
            choice, following = int(self.choice[number]), int(self.following[number])
            for transition in range(int(start[choice]), int(start[choice + 1])):
                if possible[transition]:
                    behind = row[int(successor[transition]) * width + following]
                    if behind not in seen:
                        seen.add(behind)
                        order.append(behind)
        reached = np.array(order)
        used = np.unique(np.concatenate([[0], self.memory[reached], self.following[reached]]))
        return FiniteMemoryChoices(
            self.state[reached],
            np.searchsorted(used, self.memory[reached]),
            self.choice[reached],
            np.searchsorted(used, self.following[reached]),
        )


POLICY_FORMAT = "tightrope policy"
POLICY_VERSION = 2
POLICY_VERSIONS = (1, POLICY_VERSION)
"""Version 1 had objects as entries, which version 2 still reads."""

FINITE_MEMORY_FORMAT = "tightrope controller"
OBSERVER_FORMAT = "tightrope observer"
POLICY_FORMATS = (POLICY_FORMAT, FINITE_MEMORY_FORMAT, OBSERVER_FORMAT)
FINITE_MEMORY_VERSION = 1

INDEX = "index"

Choices: TypeAlias = FloatArray | TimeVaryingChoices | FiniteMemoryChoices
"""A probability per choice of the model, or a choice per state and step, or per state and memory."""


def write_choices(
    structure: Structure,
    choices: Choices,
    stream: IO[str],
    model_hash: str | None = None,
    certified: Mapping[str, object] | None = None,
    made_from: str | None = None,
) -> None:
    """Write them as JSON, one line per state that has a choice to make, or per state and memory."""
    own = list_own_states(structure)
    finite_memory = isinstance(choices, FiniteMemoryChoices)
    head: dict[str, object] = {"format": POLICY_FORMAT, "version": POLICY_VERSION, "model": model_hash}
    if finite_memory:
        head = {"format": FINITE_MEMORY_FORMAT, "version": FINITE_MEMORY_VERSION}
        head |= {} if model_hash is None else {"model": model_hash}
    if values_identify(structure):
        head["variables"] = list(structure.valuations)
    elif own is None and (structure.state_names is not None or structure.valuations):
        head["states"] = INDEX
    if certified is not None:
        head["certified"] = certified
    if made_from is not None:
        head["made_from"] = made_from
    lines = list(_lines(structure, choices, own))
    key = "controller" if finite_memory else "policy"
    stream.write(json.dumps(head, allow_nan=False)[:-1] + f', "{key}": [')
    stream.write("\n" + ",\n".join(lines) if lines else "")
    stream.write("\n]}\n")


def list_own_states(structure: Structure) -> Sequence[object] | None:
    """The model's own states, where each is the same state again when it is read from JSON."""
    own = structure.state_names
    if own is None or structure.valuations:
        return None
    try:
        read = json.loads(json.dumps(list(own), allow_nan=False))
    except (TypeError, ValueError):
        return None
    return own if all(own.find(state) == number for number, state in enumerate(read)) else None


def _lines(structure: Structure, choices: Choices, own: Sequence[object] | None) -> Iterator[str]:
    if isinstance(choices, FiniteMemoryChoices):
        yield from _by_memory(structure, choices, state_texts(structure, own, choices.state))
        return
    states = np.flatnonzero(np.diff(structure.choice_start) > 1)
    texts = state_texts(structure, own, states)
    if isinstance(choices, TimeVaryingChoices):
        yield from _by_step(structure, choices, states.tolist(), texts)
        return
    support_size = np.add.reduceat((choices > 0).astype(np.int64), structure.choice_start[:-1])
    if np.all(support_size == 1):
        choice, names = np.flatnonzero(choices)[states], _action_texts(structure)
        rows = (texts, structure.action_of_choice[choice].tolist(), choice - structure.choice_start[states])
        yield from (f"[{text},{names[action]},{local}]" for text, action, local in zip(*rows, strict=True))
        return
    yield from _randomised(structure, choices, states.tolist(), texts)


def state_texts(structure: Structure, own: Sequence[object] | None, states: OffsetArray) -> list[str]:
    """The states as they stand in the file."""
    if values_identify(structure):
        columns = [column[states].tolist() for column in structure.valuations.values()]
        return [json.dumps(values, separators=(",", ":")) for values in zip(*columns, strict=True)]
    return [str(state) if own is None else json.dumps(own[state]) for state in states.tolist()]


def _action_texts(structure: Structure) -> list[str]:
    return [json.dumps(name) for name in structure.action_names]


def _by_step(
    structure: Structure, choices: TimeVaryingChoices, states: list[int], texts: list[str]
) -> Iterator[str]:
    names = _action_texts(structure)
    start, step, choice = choices.start.tolist(), choices.step.tolist(), choices.choice.tolist()
    first = structure.choice_start.tolist()
    action = structure.action_of_choice.tolist()
    for state, text in zip(states, texts, strict=True):
        runs = range(start[state], start[state + 1])
        entries = [(step[j], names[action[choice[j]]], choice[j] - first[state]) for j in runs]
        if len(entries) == 1:
            yield f"[{text},{entries[0][1]},{entries[0][2]}]"
        else:
            yield f"[{text},[{','.join(f'[{t},{a},{c}]' for t, a, c in entries)}]]"


def _by_memory(structure: Structure, choices: FiniteMemoryChoices, texts: list[str]) -> Iterator[str]:
    names = _action_texts(structure)
    first, action = structure.choice_start, structure.action_of_choice
    columns = [column.tolist() for column in choices.columns]
    for text, state, memory, choice, following in zip(texts, *columns, strict=True):
        yield f"[{text},{memory},{names[action[choice]]},{choice - int(first[state])},{following}]"


def _randomised(
    structure: Structure, probability: FloatArray, states: list[int], texts: list[str]
) -> Iterator[str]:
    start = structure.choice_start.tolist()
    names, action = structure.action_names, structure.action_of_choice
    for state, text in zip(states, texts, strict=True):
        first, last = start[state], start[state + 1]
        likely = [c for c in range(first, last) if probability[c] > 0]
        if len(likely) == 1:
            yield f"[{text},{json.dumps(names[action[likely[0]]])},{likely[0] - first}]"
            continue
        shown = json.loads(text)
        if values_identify(structure):
            shown = dict(zip(structure.valuations, shown, strict=True))
        choices = [
            {"action": names[action[c]], "choice": c - first, "probability": float(probability[c])}
            for c in likely
        ]
        yield json.dumps({"state": shown, "choices": choices})


def read_object(path: Path | str) -> dict[str, object]:
    """The JSON object in a policy's file."""
    place = Location(str(path))
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        hint = similar_file(Path(path))
        raise InputError(f"cannot read the policy: {error.strerror}", place, hint) from error
    except json.JSONDecodeError as error:
        here = Location(str(path), error.lineno, error.colno)
        hint = "a policy is a JSON file that `learn`, `check` or `policy.save` wrote"
        raise InputError(f"not JSON: {error.msg}", here, hint) from error
    except UnicodeDecodeError as error:
        raise InputError("not JSON: the file is not UTF-8 text", place) from error
    except RecursionError:
        raise InputError("no policy file: it is nested too deeply", place) from None
    except ValueError:
        raise InputError("no policy file: a number in it has thousands of digits", place) from None
    if not isinstance(document, dict):
        raise InputError("a policy file holds one JSON object", place)
    return document


@dataclass(frozen=True)
class _Entry:
    """An entry: choices from which step on, and the probabilities at the first."""

    state: int
    runs: list[tuple[int, int]]
    shares: list[tuple[int, float]]


def read_policy_file(path: Path | str, structure: Structure) -> tuple[Choices, Provenance | None]:
    """The choices in a file for a model, and the data that they were made from."""
    return _PolicyReader(str(path), structure).read()


class _PolicyReader:
    def __init__(self, file: str, structure: Structure):
        self.file = file
        self.structure = structure
        self.by_index = structure.state_names is None and not structure.valuations
        self.state_of = list_states(structure) if structure.valuations else None

    def read(self) -> tuple[Choices, Provenance | None]:
        document = read_object(self.file)
        has_memory = document.get("format") == FINITE_MEMORY_FORMAT
        records = document.get("controller" if has_memory else "policy")
        if has_memory and not isinstance(records, list):
            raise self._error('no file of a finite-memory policy: it lacks the list "controller"')
        if not isinstance(records, list) or not (has_memory or document.get("format") == POLICY_FORMAT):
            raise self._error(f'no policy file: it lacks "format": "{POLICY_FORMAT}" or the list "policy"')
        versions = (FINITE_MEMORY_VERSION,) if has_memory else POLICY_VERSIONS
        if document.get("version") not in versions:
            raise self._error(
                f"version {document.get('version')!r} of the format; this program reads "
                f"{' and '.join(map(str, versions))}"
            )
        self.variables = self._variables(document.get("variables"))
        if document.get("states") not in (None, INDEX):
            raise self._error(f'"states" can be "{INDEX}", not {json.dumps(document["states"])}')
        self.by_index = self.by_index or document.get("states") == INDEX
        made_from = document.get("made_from")
        if made_from is not None and not isinstance(made_from, str):
            raise self._error(f'"made_from" is not a text: {json.dumps(made_from)[:60]}')
        choices = self._read_memory(records) if has_memory else self._read_entries(records)
        return choices, None if made_from is None else Provenance.parse(made_from, self.file)

    def _read_entries(self, records: list[object]) -> Choices:
        structure = self.structure
        forced = np.diff(structure.choice_start) == 1
        seen = np.zeros(structure.states, dtype=np.bool_)
        entries: list[_Entry] = []
        for number, record in enumerate(records, start=1):
            entries.append(self._entry(record, number))
            state = entries[-1].state
            if seen[state]:
                raise self._error(f"entry {number} names state {structure.state_name(state)} a second time")
            seen[state] = True
        missing = np.flatnonzero(~seen & ~forced)
        if len(missing):
            raise self._error(
                f"the policy says nothing about state {structure.state_name(int(missing[0]))}, which has "
                f"{np.diff(structure.choice_start)[missing[0]]} choices ({len(missing)} such states)"
            )
        if any(len(entry.runs) > 1 for entry in entries):
            return self._by_step(entries)
        probability = np.zeros(structure.choices)
        probability[structure.choice_start[:-1]] = 1.0
        for entry in entries:
            probability[structure.choice_start[entry.state]] = 0.0
            for choice, share in entry.shares:
                probability[choice] += share
        return probability

    def _by_step(self, entries: list[_Entry]) -> TimeVaryingChoices:
        runs = [[(0, int(first))] for first in self.structure.choice_start[:-1]]
        for entry in entries:
            if len(entry.shares) > 1:
                raise self._error(
                    f"the policy is random in state {self.structure.state_name(entry.state)} and depends on "
                    "the step elsewhere",
                    hint="a policy that depends on the step takes one choice per state and step",
                )
            runs[entry.state] = entry.runs
        start = np.concatenate([[0], np.cumsum([len(each) for each in runs])])
        step, choice = np.array([run for each in runs for run in each], dtype=np.int64).T
        return TimeVaryingChoices(start, step, choice)

    def _read_memory(self, rows: list[object]) -> FiniteMemoryChoices:
        read = [self._memory_row(row, number) for number, row in enumerate(rows, start=1)]
        try:
            choices = FiniteMemoryChoices(*np.array(read, np.int64).reshape(-1, 4).T)
            choices.refuse_for(self.structure)
        except InputError as error:
            raise self._error(error.message) from None
        return choices

    def _memory_row(self, row: object, number: int) -> tuple[int, int, int, int]:
        if not isinstance(row, list) or len(row) != 5:
            raise self._error(
                f"row {number} is not [state, memory, action, choice, following memory]: {json.dumps(row)}"
            )
        shown, memory, action, local, following = row
        for remembered in (memory, following):
            if not is_whole(remembered) or not 0 <= remembered < 2**31:
                raise self._error(f"row {number}: {json.dumps(remembered)} is not a memory's number")
        state = self._state(self._name_values(shown), number)
        return state, memory, self._choice({"action": action, "choice": local}, state, number), following

    def _variables(self, listed: object) -> list[str]:
        names = list(self.structure.valuations)
        if listed is None:
            return names
        if not isinstance(listed, list) or set(map(str, listed)) != set(names) or len(listed) != len(names):
            wanted = ", ".join(names) or "none"
            raise self._error(f'"variables" are {json.dumps(listed)}, but those of the model are {wanted}')
        return [str(name) for name in listed]

    def _entry(self, record: object, number: int) -> _Entry:
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
            return _Entry(state, [(0, shares[0][0] if shares else -1)], shares)
        if "steps" in record:
            return self._read_row(state, self._runs(record["steps"], number), number)
        return self._read_row(state, [(0, record)], number)

    def _read_row(self, state: int, runs: list[tuple[int, dict[str, object]]], number: int) -> _Entry:
        chosen = [(step, self._choice(entry, state, number)) for step, entry in runs]
        return _Entry(state, chosen, [(chosen[0][1], 1.0)])

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

    def _state(self, shown: object, number: int) -> int:
        structure = self.structure
        if is_whole(shown) and self.by_index:
            if 0 <= shown < structure.states:
                return shown
            raise self._error(
                f"entry {number} names state {shown}, but the states are 0..{structure.states - 1}"
            )
        names = list(structure.valuations)
        own = structure.state_names
        if own is not None and not isinstance(shown, dict):
            if (state := own.find(shown)) >= 0:
                return state
            raise self._error(
                f"entry {number}: {json.dumps(shown)} is none of the model's named states: {own.listing()}"
            )
        if self.state_of is None or not isinstance(shown, dict) or set(shown) != set(names):
            wanted = f"the variables {', '.join(names)}" if names else "its index"
            hint = f'where numbers are indices of states, say "states": "{INDEX}" beside "format"'
            raise self._error(
                f"entry {number}: a state is given by {wanted}, not by {json.dumps(shown)}",
                hint=hint if is_whole(shown) else None,
            )
        values = tuple(shown[name] for name in names)
        state = self.state_of.get(values, -1) if all(isinstance(value, int) for value in values) else -1
        if state >= 0:
            return state
        what = "is not a reachable state" if state != AMBIGUOUS else "are the values of several states"
        raise self._error(f"entry {number}: {json.dumps(shown)} {what} of the model")

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
