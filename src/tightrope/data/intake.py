"""What happens to rows that cannot be counted: a loud, exact error, or dropped and counted by reason.

Dropping is for exploring dirty files. A transition that the model excludes is evidence of a wrong model,
and data chosen by their outcome no longer come from the design that the file claims.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tightrope.data.chain import ChainCheck
from tightrope.data.row_columns import RowColumns, shown_value
from tightrope.errors import InputError
from tightrope.formats.data_columns import whole_numbers
from tightrope.formats.data_problems import Problem, ProblemCodes
from tightrope.formats.data_table import Chunk, DataTable
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray

SHOWN_SUCCESSORS = 6
SKIP_HINT = "--skip-invalid (skip_invalid=True) drops such rows and counts them"


class Intake:
    """Lets rows pass, counts the dropped ones, or raises the error of the first bad row."""

    def __init__(
        self,
        table: DataTable,
        columns: RowColumns,
        structure: Structure,
        numbers: tuple[str, ...],
        skip: bool,
        chain: ChainCheck | None = None,
    ):
        self.table = table
        self.columns = columns
        self.structure = structure
        self.skip = skip
        self.chain = chain
        self.rows = 0
        self.dropped: Counter[str] = Counter()
        self._numbers = (*columns.state, *columns.next_state, *numbers)

    def ragged(self) -> None:
        """A CSV row with the wrong number of fields was dropped."""
        self.dropped[Problem.RAGGED_ROW.words] += 1

    def admit(
        self, chunk: Chunk, problems: ProblemCodes, state: OffsetArray, next_state: OffsetArray
    ) -> BoolArray | None:
        """Which rows count; None for all of them."""
        self.rows += chunk.rows
        bad = np.flatnonzero(problems)
        if len(bad) == 0:
            return None
        if not self.skip:
            row = int(bad[0])
            raise self._error(chunk, row, Problem(problems[row]), int(state[row]), int(next_state[row]))
        for code, times in zip(*np.unique(problems[bad], return_counts=True), strict=True):
            self.dropped[Problem(code).words] += int(times)
        kept: BoolArray = problems == Problem.NONE
        return kept

    def error(self, chunk: Chunk, row: int, message: str, hint: str | None = SKIP_HINT) -> InputError:
        """An error about one row of a chunk."""
        number = chunk.first_row + row
        return InputError(f"row {number}: {message}", self.table.location(number), hint)

    def _error(self, chunk: Chunk, row: int, problem: Problem, state: int, next_state: int) -> InputError:
        structure = self.structure
        here = structure.state_name(state) if 0 <= state < structure.states else "?"
        match problem:
            case Problem.MISSING_VALUE | Problem.NOT_A_NUMBER | Problem.FRACTIONAL:
                return self.error(chunk, row, self._bad_value(chunk, row))
            case Problem.UNKNOWN_STATE:
                return self.error(chunk, row, self._unknown_state(chunk, row, self.columns.state))
            case Problem.UNKNOWN_NEXT_STATE:
                return self.error(chunk, row, self._unknown_state(chunk, row, self.columns.next_state))
            case Problem.DISABLED_ACTION:
                message = f"{self._shown_action(chunk, row)} is not enabled in state {here}; "
                return self.error(chunk, row, message + f"enabled are {self._enabled(state)}")
            case Problem.AMBIGUOUS_ACTION:
                message = f"several choices of state {here} have the action {self._shown_action(chunk, row)}"
                hint = "say which was taken in a column 'choice': its number within the state, from 0"
                return self.error(chunk, row, message, hint)
            case Problem.CONTRADICTING_ACTION:
                local = shown_value(chunk, self.columns.choice or "", row)
                message = f"choice {local} of state {here} is not {self._shown_action(chunk, row)}; "
                return self.error(chunk, row, message + f"enabled are {self._enabled(state)}")
            case Problem.IMPOSSIBLE_TRANSITION:
                there = structure.state_name(next_state)
                message = f"the model has no transition from state {here} under "
                message += f"{self._shown_action(chunk, row)} to state {there}"
                hint = (
                    f"it may lead to {self._successors(chunk, row, state)}; data that the model excludes are "
                )
                return self.error(
                    chunk, row, message, hint + f"evidence of a wrong model, not of noise ({SKIP_HINT})"
                )
            case Problem.NEGATIVE_COUNT | Problem.NEGATIVE_BATCH:
                name = "count" if problem is Problem.NEGATIVE_COUNT else "batch"
                return self.error(chunk, row, f"the {name} {shown_value(chunk, name, row)} is negative")
            case _ if self.chain is not None:
                message = self.chain.explain(chunk, row, problem, state, structure)
                return self.error(chunk, row, message)
        return self.error(chunk, row, problem.words)

    def _bad_value(self, chunk: Chunk, row: int) -> str:
        """Which column it is, and what stands there."""
        for name in (*self._numbers, *(n for n in (self.columns.choice,) if n)):
            flag: ProblemCodes = np.zeros(1, dtype=np.int8)
            whole_numbers(chunk.columns[name].slice(row, 1), name, self.table.path, flag)
            value = shown_value(chunk, name, row)
            if flag[0] == Problem.MISSING_VALUE:
                return f"column '{name}' has no value"
            if flag[0] == Problem.FRACTIONAL:
                return f"column '{name}' holds {value}, which is not a whole number"
            if flag[0]:
                return f"column '{name}' holds {value!r}, which is not a number"
        flags = self.chain.flags if self.chain is not None else ()
        for name in chunk.columns:
            value = shown_value(chunk, name, row)
            if name in flags:
                if value is not None and str(value).lower() not in ("", "0", "1", "true", "false"):
                    return f"column '{name}' holds {value!r}, which is neither true nor false"
            elif value in (None, ""):
                return f"column '{name}' has no value"
        return "a value is missing or unreadable"

    def _unknown_state(self, chunk: Chunk, row: int, names: tuple[str, ...]) -> str:
        if self.columns.by_index:
            value = shown_value(chunk, names[0], row)
            return f"column '{names[0]}' holds {value}, but the states are 0..{self.structure.states - 1}"
        values = ",".join(f"{name}={_plain(shown_value(chunk, name, row))}" for name in names)
        return f"({values}) is not a reachable state of the model"

    def _shown_action(self, chunk: Chunk, row: int) -> str:
        if self.columns.action is not None:
            value = shown_value(chunk, self.columns.action, row)
            return f"'{value}'" if isinstance(value, str) else f"choice {value}"
        if self.columns.choice is not None:
            return f"choice {shown_value(chunk, self.columns.choice, row)}"
        return "its only choice"

    def _enabled(self, state: int) -> str:
        structure = self.structure
        first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        return ", ".join(f"{c - first}: '{structure.action_name(c)}'" for c in range(first, last))

    def _successors(self, chunk: Chunk, row: int, state: int) -> str:
        """The successors of the choice that was taken, or of the state where only a name is at hand."""
        structure = self.structure
        first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        wanted = self._taken_choices(chunk, row, first, last)
        begin, end = structure.transition_start[wanted[0]], structure.transition_start[wanted[-1] + 1]
        names = [structure.state_name(int(s)) for s in structure.successor[begin:end]]
        more = f" and {len(names) - SHOWN_SUCCESSORS} more" if len(names) > SHOWN_SUCCESSORS else ""
        return ", ".join(names[:SHOWN_SUCCESSORS]) + more

    def _taken_choices(self, chunk: Chunk, row: int, first: int, last: int) -> list[int]:
        for name in (self.columns.choice, self.columns.action):
            if name is None:
                continue
            value = shown_value(chunk, name, row)
            named = [c for c in range(first, last) if self.structure.action_name(c) == value]
            if len(named) == 1:
                return named
            if str(value).strip().isdigit() and first + int(value) < last:
                return [first + int(value)]
        return list(range(first, last))


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
