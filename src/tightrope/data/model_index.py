"""From states, actions and next states of many rows to the model's states and transitions.

An action is given by its name, or by the number of the choice within its state, from 0. A name that two
choices share is a problem, since the outcome must not decide it. So is a number if another choice's action
has that number as its name.

The values of the model's variables become one integer key (`StateIndex`). If the ranges exceed 62 bits, the
key so far is replaced by its rank among those that occur.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.io.table import columns as cells
from tightrope.io.table.columns import ArrowColumn, ProblemCodes, RowProblem, mark
from tightrope.model.structure import UNLABELLED, Structure, frozen_array
from tightrope.numerics.arrays import IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel

NOT_GIVEN = -1
"""Where a row gives no action name, or no choice number."""

NO_SUCH_ACTION = -2
"""A name that the model does not have."""

NUMBERED = -4
"""In place of a name: the choice's number comes from a column of actions."""

_NONE = int(RowProblem.NONE)
_UNKNOWN_STATE = int(RowProblem.UNKNOWN_STATE)
_UNKNOWN_NEXT_STATE = int(RowProblem.UNKNOWN_NEXT_STATE)
_DISABLED_ACTION = int(RowProblem.DISABLED_ACTION)
_AMBIGUOUS_ACTION = int(RowProblem.AMBIGUOUS_ACTION)
_CONTRADICTING_ACTION = int(RowProblem.CONTRADICTING_ACTION)
_IMPOSSIBLE_TRANSITION = int(RowProblem.IMPOSSIBLE_TRANSITION)


@dataclass(frozen=True)
class Taken:
    """What was done in each row: an action's index (or a code above) and the choice's number."""

    action: OffsetArray
    local: OffsetArray


def identifier(text: str) -> str:
    """The identifier of the PRISM language that stands for a text of a log.

    >>> identifier("end of run"), identifier("0"), identifier("wear_level")
    ('end_of_run', '_0', 'wear_level')
    """
    word = re.sub(r"[^A-Za-z0-9_]", "_", text.strip())
    return f"_{word}" if not word or word[0].isdigit() else word


class ModelIndex:
    """Everything needed to find transitions; built once for a structure."""

    def __init__(self, structure: Structure):
        self.structure = structure
        self._action_of_name = {name: i for i, name in enumerate(structure.action_names)}
        self._has_numbers_for_names = any(name.removeprefix("_").isdigit() for name in structure.action_names)
        named = [number for number, name in enumerate(structure.action_names) if name != UNLABELLED]
        self._named: IndexArray = np.array(named, dtype=np.int32)
        seen: OffsetArray = np.full(structure.states, -1, dtype=np.int64)
        repeated = _find_repeated_successor(structure.transition_start, structure.successor, seen)
        if repeated >= 0:
            raise InputError(
                f"{structure.choice_name(repeated)} lists a successor twice: data cannot distinguish the two",
                hint="merge equal successors of a choice and add their probabilities",
            )

    @cached_property
    def state_index(self) -> StateIndex:
        """Valuations to states."""
        return StateIndex(self.structure)

    def taken(
        self, action: ArrowColumn | None, choice: ArrowColumn | None, file: str, problems: ProblemCodes
    ) -> Taken:
        """Read the columns 'action' and 'choice' (pyarrow arrays), of which either may be missing.

        What stands in 'action' is a name where the model has that name, else the number of a choice.
        """
        rows = len(problems)
        names = np.full(rows, NOT_GIVEN, dtype=np.int64)
        local = np.full(rows, NOT_GIVEN, dtype=np.int64)
        if choice is not None:
            local = cells.whole_numbers(choice, "choice", file, problems)
            mark(problems, local < 0, RowProblem.DISABLED_ACTION)
        if action is None:
            if choice is None:
                local[:] = 0
            return Taken(names, local)
        if not cells.holds_text(action) and self._has_numbers_for_names:
            action = action.cast("string")
        if not cells.holds_text(action):
            numbers = cells.whole_numbers(action, "action", file, problems)
            mark(problems, numbers < 0, RowProblem.DISABLED_ACTION)
            if choice is None:
                names[:] = NUMBERED
                return Taken(names, numbers)
            mark(problems, numbers != local, RowProblem.CONTRADICTING_ACTION)
            return Taken(names, local)
        values, codes = cells.distinct(action)
        meanings = [self._meaning(value) for value in values] + [(NOT_GIVEN, NOT_GIVEN)]
        by_name, by_number = np.array(meanings, dtype=np.int64).T
        missing = codes < 0
        if choice is None:
            mark(problems, missing, RowProblem.MISSING_VALUE)
            return Taken(by_name[codes], by_number[codes])
        numbers = by_number[codes]
        mark(problems, (numbers >= 0) & (numbers != local), RowProblem.CONTRADICTING_ACTION)
        return Taken(np.where(numbers >= 0, NOT_GIVEN, by_name[codes]), local)

    def _meaning(self, value: str | None) -> tuple[int, int]:
        """(action index, number of the choice) that a text stands for."""
        if value in self._action_of_name:
            return self._action_of_name[value], NOT_GIVEN
        text = (value or "").strip()
        forms = (text, identifier(text), identifier(text) + "_")
        if text and (named := next((form for form in forms if form in self._action_of_name), None)):
            return self._action_of_name[named], NOT_GIVEN
        if text.isascii() and text.isdigit() and len(text) <= 9:
            return NUMBERED, int(text)
        return NO_SUCH_ACTION if text else self._action_of_name.get(text, NO_SUCH_ACTION), NOT_GIVEN

    def outcomes(self, state: int, action: int, local: int) -> int:
        """How many outcomes a choice has, given as in rows; 0 where it is no choice, or more than one."""
        structure = self.structure
        first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        if local >= 0:
            choices = [first + local] if first + local < last else []
        else:
            choices = [c for c in range(first, last) if structure.action_of_choice[c] == action]
        if len(choices) != 1:
            return 0
        begin, end = structure.transition_start[choices[0]], structure.transition_start[choices[0] + 1]
        return int(end - begin)

    def transitions(
        self, state: OffsetArray, choice: Taken, next_state: OffsetArray, problems: ProblemCodes
    ) -> OffsetArray:
        """The transition of each row; rows that are none of the model's are marked."""
        structure = self.structure
        transition = np.zeros(len(state), dtype=np.int64)
        given = (state, choice.action, choice.local, next_state)
        _locate(
            structure.choice_start,
            structure.transition_start,
            structure.successor,
            structure.action_of_choice,
            _Columns(*(read_only(np.ascontiguousarray(each, dtype=np.int64)) for each in given)),
            transition,
            problems,
        )
        numbered = np.flatnonzero((choice.action == NUMBERED) & (problems == RowProblem.NONE))
        numbered = numbered[choice.local[numbered] < len(self._named)]
        if len(numbered):  # the number of one choice within the state, and of the action of another
            meant, first = self._named[choice.local[numbered]], structure.choice_start[state[numbered]]
            size = np.int64(len(structure.action_names))
            pairs = structure.choice_state * size + structure.action_of_choice
            other = structure.action_of_choice[first + choice.local[numbered]] != meant
            has = np.isin(state[numbered] * size + meant, pairs)
            problems[numbered[other & has]] = RowProblem.AMBIGUOUS_NUMBER
        return transition


class _Columns(NamedTuple):
    """Rows of a log in numbers."""

    state: OffsetArray
    action: OffsetArray
    local: OffsetArray
    next_state: OffsetArray


@kernel
def _locate(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    action_of_choice: IndexArray,
    columns: _Columns,
    transition: OffsetArray,
    problems: npt.NDArray[np.int8],
) -> None:
    state, action, local, next_state = columns
    states = len(choice_start) - 1
    for i in range(len(state)):
        if problems[i] != _NONE:
            continue
        s = state[i]
        if s < 0 or s >= states:
            problems[i] = _UNKNOWN_STATE
            continue
        if next_state[i] < 0 or next_state[i] >= states:
            problems[i] = _UNKNOWN_NEXT_STATE
            continue
        first, last = choice_start[s], choice_start[s + 1]
        if local[i] >= 0:
            choice = first + local[i]
            if choice >= last:
                problems[i] = _DISABLED_ACTION
                continue
            if (
                action[i] >= NO_SUCH_ACTION
                and action[i] != NOT_GIVEN
                and action[i] != action_of_choice[choice]
            ):
                problems[i] = _CONTRADICTING_ACTION
                continue
        else:
            choice = -1
            matches = 0
            for c in range(first, last):
                if action_of_choice[c] == action[i]:
                    choice = c
                    matches += 1
            if matches == 0:
                problems[i] = _DISABLED_ACTION
                continue
            if matches > 1:
                problems[i] = _AMBIGUOUS_ACTION
                continue
        place = -1
        for t in range(transition_start[choice], transition_start[choice + 1]):
            if successor[t] == next_state[i]:
                place = t
                break
        if place < 0:
            problems[i] = _IMPOSSIBLE_TRANSITION
        else:
            transition[i] = place


@kernel
def _find_repeated_successor(
    transition_start: OffsetArray, successor: IndexArray, last_seen: OffsetArray
) -> int:
    """A choice that lists a successor twice, or −1; `last_seen` starts at −1 for every state."""
    for c in range(len(transition_start) - 1):
        for t in range(transition_start[c], transition_start[c + 1]):
            if last_seen[successor[t]] == c:
                return c
            last_seen[successor[t]] = c
    return -1


UNKNOWN = -1
"""The index of a valuation that no state has."""

LARGEST_KEY = 1 << 62
DENSE_PER_STATE = 16
"""A dense table may have this many entries per state."""


class StateIndex:
    """Built once for a structure; `states` then maps columns of values to state indices."""

    def __init__(self, structure: Structure):
        self.names: tuple[str, ...] = tuple(structure.valuations)
        self._digits: list[tuple[str, int, int, OffsetArray | None]] = []
        """Of each variable: its least value, the size of its range, and the keys so far that occur, where
        the next digit would not fit behind them: ranks among these do."""
        key, size = np.zeros(structure.states, dtype=np.int64), 1
        for name, column in structure.valuations.items():
            low, ranks = int(column.min()), None
            radix = int(column.max()) - low + 1
            if size * radix >= LARGEST_KEY:
                ranks, key = np.unique(key, return_inverse=True)
                size = len(ranks)
            self._digits.append((name, low, radix, ranks))
            _append_digit(key, frozen_array(column, np.int64), low, radix)
            size *= radix
        order = np.argsort(key, kind="stable").astype(np.int32)
        keys = key[order]
        repeated = np.flatnonzero(np.diff(keys) == 0)
        if len(repeated):
            first, second = int(order[repeated[0]]), int(order[repeated[0] + 1])
            raise InputError(
                f"the model's variables do not distinguish its states: states {first} and {second} are both "
                f"{structure.state_name(first)}",
                hint="give states by index, in columns 'state' and 'next_state'",
            )
        self._keys: OffsetArray = keys
        self._order: IndexArray = order
        self._dense: IndexArray | None = None
        if len(keys) and keys[-1] < DENSE_PER_STATE * max(structure.states, 1024):
            self._dense = np.full(int(keys[-1]) + 1, UNKNOWN, dtype=np.int32)
            self._dense[keys] = order

    def states(self, columns: Mapping[str, npt.NDArray[np.int64]]) -> OffsetArray:
        """The state of each row; `UNKNOWN` where the model has none with these values."""
        key = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
        for name, low, radix, ranks in self._digits:
            key = key if ranks is None else _rank(ranks, key)
            _append_digit(key, read_only(np.ascontiguousarray(columns[name], dtype=np.int64)), low, radix)
        if self._dense is not None:
            _look_up(key, self._dense)
            return key
        return np.append(self._order, np.int32(UNKNOWN))[_rank(self._keys, key)].astype(np.int64)


def _rank(keys: OffsetArray, key: OffsetArray) -> OffsetArray:
    """The place of each key among others that rise, `UNKNOWN` where it is none of them."""
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[place] == key, place, UNKNOWN)


@kernel
def _append_digit(key: OffsetArray, column: OffsetArray, low: int, radix: int) -> None:
    """Append a variable's digit to each key; UNKNOWN where its value is out of range."""
    for i in range(len(key)):
        digit = column[i] - low
        key[i] = key[i] * radix + digit if key[i] >= 0 and 0 <= digit < radix else UNKNOWN


@kernel
def _look_up(key: OffsetArray, dense: IndexArray) -> None:
    """Replace keys by states."""
    for i in range(len(key)):
        key[i] = dense[key[i]] if 0 <= key[i] < len(dense) else UNKNOWN
