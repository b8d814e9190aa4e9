"""What happens to rows that cannot be counted: a loud, exact error, or dropped and counted by reason.

Dropping is for exploring dirty files. A transition that the model excludes is evidence of a wrong model,
and data chosen by their outcome no longer come from the design that the file claims.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from tightrope.data.columns import (
    ACTION,
    BATCH,
    COST,
    COUNT,
    EPISODE,
    STEP,
    TIME,
    WATCHED_UNTIL,
    StateNames,
    show_value,
    unused_columns,
)
from tightrope.data.rows import RowDecoder
from tightrope.errors import InputError
from tightrope.io.table.columns import (
    ProblemCodes,
    RowProblem,
    describe_column,
    look,
    some_values,
    whole_numbers,
)
from tightrope.io.table.data_table import Chunk, DataTable
from tightrope.model.structure import UNLABELLED

SHOWN_SUCCESSORS = 6
SKIP_HINT = "`skip_invalid=True` drops such rows; the confidence is then nominal"


class RowValidation:
    """Says what is wrong with a row of one table."""

    def __init__(self, table: DataTable, decoder: RowDecoder):
        self.table = table
        self.decoder = decoder
        self.columns = decoder.columns
        self.structure = decoder.index.structure

    def error_of(
        self,
        number: int,
        problem: RowProblem,
        state: int,
        next_state: int,
        led: int,
        chunk: Chunk | None = None,
    ) -> InputError:
        """The error about row `number` of the table, which is looked up again where it is not in `chunk`."""
        if chunk is None or not chunk.first_row <= number < chunk.first_row + chunk.rows:
            chunk = next(
                c
                for c in self.table.chunks(self.columns.names)
                if c.first_row <= number < c.first_row + c.rows
            )
        return self._error(chunk, number - chunk.first_row, problem, state, next_state, led)

    def error(self, chunk: Chunk, row: int, message: str, hint: str | None = SKIP_HINT) -> InputError:
        """An error about one row of a chunk."""
        number = chunk.first_row + row
        return InputError(f"row {number}: {message}", self.table.location(number), hint)

    def _error(
        self, chunk: Chunk, row: int, problem: RowProblem, state: int, next_state: int, led: int
    ) -> InputError:
        structure = self.structure
        here = structure.state_name(state) if 0 <= state < structure.states else "?"
        match problem:
            case RowProblem.MISSING_VALUE | RowProblem.NOT_A_NUMBER | RowProblem.FRACTIONAL:
                return self.error(chunk, row, self._bad_value(chunk, row), self._value_hint(chunk, row))
            case RowProblem.UNMAPPED_VALUE:
                hint = "list every value of the column in `maps`; what is not listed means nothing"
                return self.error(chunk, row, self._describe_unmapped(chunk, row), hint)
            case RowProblem.UNKNOWN_STATE:
                names = self.columns.state
                return self.error(chunk, row, self._unknown_state(chunk, row, names), self._state_hint())
            case RowProblem.UNKNOWN_NEXT_STATE:
                names = self.columns.next_state
                return self.error(chunk, row, self._unknown_state(chunk, row, names), self._state_hint())
            case RowProblem.DISABLED_ACTION:
                return self._refuse_disabled(chunk, row, state, here)
            case RowProblem.AMBIGUOUS_ACTION:
                message = (
                    f"several choices of state {here} have the action {self._describe_action(chunk, row)}"
                )
                hint = "say which was taken in a column 'choice': its number within the state, from 0"
                return self.error(chunk, row, message, hint)
            case RowProblem.AMBIGUOUS_NUMBER:
                return self._ambiguous_number(chunk, row, state, here)
            case RowProblem.CONTRADICTING_ACTION:
                local = show_value(chunk, self.columns.choice or "", row)
                message = f"choice {local} of state {here} is not {self._describe_action(chunk, row)}; "
                return self.error(chunk, row, message + f"enabled are {self._list_enabled(state)}")
            case RowProblem.IMPOSSIBLE_TRANSITION:
                there = structure.state_name(next_state)
                message = f"the model has no transition from state {here} under "
                message += f"{self._describe_action(chunk, row)} to state {there}"
                hint = (
                    f"it may lead to {self._successors(chunk, row, state)}; data that the model excludes are "
                )
                hint += f"evidence of a wrong model, not of noise ({SKIP_HINT})"
                return self.error(chunk, row, message, self._with_unused(hint))
            case RowProblem.NEGATIVE_COUNT | RowProblem.NEGATIVE_BATCH:
                role = COUNT if problem is RowProblem.NEGATIVE_COUNT else BATCH
                value = show_value(chunk, self.columns.roles[role], row)
                return self.error(chunk, row, f"the {role} {value} is negative")
        return self._order_error(chunk, row, problem, here, led)

    def _refuse_disabled(self, chunk: Chunk, row: int, state: int, here: str) -> InputError:
        """An action that the state does not have, or nobody."""
        names = [name for name in self.structure.action_names if name]
        value = None if self.columns.action is None else show_value(chunk, self.columns.action, row)
        if isinstance(value, str) and not value.strip() and not self._has_unlabelled():
            return self.error(
                chunk, row, f"column '{self.columns.action}' has no value", self._value_hint(chunk, row)
            )
        message = f"{self._describe_action(chunk, row)} is not enabled in state {here}; "
        hint = f"data that the model excludes are evidence of a wrong model, not of noise ({SKIP_HINT})"
        if isinstance(value, str) and value not in names and ACTION not in self.decoder.maps:
            hint = (
                f"the model's actions are {', '.join(names)}; `maps='action: {value}=…'` says what it means"
            )
        return self.error(chunk, row, message + f"enabled are {self._list_enabled(state)}", hint)

    def _ambiguous_number(self, chunk: Chunk, row: int, state: int, here: str) -> InputError:
        """A number that one choice of the state has, and the action of another."""
        names = [name for name in self.structure.action_names if name]
        name = self.columns.action or ""
        number = int(float(str(show_value(chunk, name, row))))
        meant = self.structure.action_name(int(self.structure.choice_start[state]) + number)
        message = (
            f"the number {number} in column '{name}' may be choice {number} of state {here}, which is "
            f"'{meant}', or action {number} of the model, which is '{names[number]}'"
        )
        listed = ", ".join(f"{i}={own}" for i, own in enumerate(names))
        return self.error(
            chunk, row, message, f"say which: `columns=\"choice={name}\"`, or `maps='action: {listed}'`"
        )

    def _has_unlabelled(self) -> bool:
        """Whether some choice of the model has no name."""
        names = np.array([name == UNLABELLED for name in self.structure.action_names])
        return bool(names[self.structure.action_of_choice].any())

    def _state_hint(self) -> str:
        """What states there are."""
        if self.columns.by is not StateNames.VARIABLES:
            return f"`maps='state: …'` says what other names mean; {SKIP_HINT}"
        ranges = ", ".join(
            f"{name} {_plain(bool(column.min()))}..{_plain(bool(column.max()))}"
            if column.dtype == np.bool_
            else f"{name} {column.min()}..{column.max()}"
            for name, column in self.structure.valuations.items()
        )
        return f"in the model's states there are {ranges}; `maps` converts other units and names"

    def _order_error(self, chunk: Chunk, row: int, problem: RowProblem, here: str, led: int) -> InputError:
        """A row that does not follow the one before."""
        roles = self.columns.roles
        episode = show_value(chunk, roles[EPISODE], row) if EPISODE in roles else "?"
        if problem is RowProblem.BROKEN_CHAIN:
            there = self.structure.state_name(led) if 0 <= led < self.structure.states else "?"
            message = f"episode {episode} goes on in state {here}, but the row before led to state {there}"
            hint = "rows are missing between, or they belong to different episodes: name episodes in a "
            hint += "column 'episode', or number their rows in 'step'"
            return self.error(chunk, row, message, self._with_unused(hint))
        if problem is RowProblem.AFTER_THE_END:
            message = f"episode {episode} goes on after the row before said that it ended"
            return self.error(chunk, row, message, "give each episode its own name in the column 'episode'")
        if problem is RowProblem.REPEATED_STEP:
            step = show_value(chunk, roles[STEP], row)
            message = f"step {step} of episode {episode} is given twice"
            hint = "remove rows that were logged twice, or give each episode a name of its own in 'episode'"
            return self.error(chunk, row, message, hint)
        if problem is RowProblem.REPEATED_TIME:
            instant = show_value(chunk, roles[TIME], row)
            message = f"episode {episode} has two rows at one instant, {instant}"
            hint = "`drop_duplicates=True` drops rows that were logged twice; rows of a coarse clock need a "
            return self.error(chunk, row, message, hint + "column 'step'")
        return self.error(chunk, row, problem.words)

    def _bad_value(self, chunk: Chunk, row: int) -> str:
        """Which column it is, and what stands there, in the order in which columns are read."""
        columns = self.columns
        flags = columns.ends
        for role, name in [*columns.state_roles.items(), *columns.roles.items()]:
            value = show_value(chunk, name, row)
            if role == WATCHED_UNTIL:
                continue
            if name in flags:
                if value is not None and str(value).strip().lower() not in ("", "0", "1", "true", "false"):
                    return f"column '{name}' holds {value!r}, which is neither true nor false"
                continue
            if _is_blank(value) and not self._reads_blanks(role):
                return f"column '{name}' has no value"
            if role == COST and not _is_finite(value):
                return f"column '{name}' holds {value!r}, which is not a cost"
            if not self._holds_numbers(role, name):
                continue
            flag: ProblemCodes = np.zeros(1, dtype=np.int8)
            column = chunk.columns[name].slice(row, 1)
            variable = role.removesuffix("'")
            if variable in self.decoder.maps:
                column = self.decoder.maps[variable].apply(column, flag)
            whole_numbers(column, name, self.table.path, flag)
            if flag[0] == RowProblem.MISSING_VALUE:
                return f"column '{name}' has no value"
            if flag[0] == RowProblem.FRACTIONAL:
                meant = f" ({column[0].as_py()} after `maps`)" if variable in self.decoder.maps else ""
                return f"column '{name}' holds {value}{meant}, which is not a whole number"
            if flag[0]:
                values = some_values(chunk.columns[name])
                plain = len(values) < 2 and look(values) == "text"
                plain |= any(look([one]) in ("numbers", "whole numbers") for one in values)
                more = "" if plain else f" ({describe_column(chunk.columns[name])})"
                return f"column '{name}' holds {value!r}, which is not a number{more}"
        return "a value is missing or unreadable"

    def _with_unused(self, hint: str) -> str:
        """A hint behind what columns look like that nobody uses: in another order rows may fit."""
        pointed = unused_columns(self.table, self.columns.names, list(self.columns.roles))
        return "; ".join([*pointed, hint])

    def _reads_blanks(self, role: str) -> bool:
        known = self.decoder.maps.get(_mapped_role(role))
        return known is not None and known.reads_blanks

    def _value_hint(self, chunk: Chunk, row: int) -> str:
        """How to give an empty cell a meaning, where the first bad value is one, or dates and decimal
        commas."""
        columns = self.columns
        for role, name in [*columns.state_roles.items(), *columns.roles.items()]:
            if name in columns.ends or not self._holds_numbers(role, name):
                continue
            looks = look([show_value(chunk, name, row)])
            if looks == "dates":
                return f'where they are times, say `columns="time={name}"`'
            if looks == "numbers with a decimal comma":
                return f"write the numbers of '{name}' with a point: 0.5, not 0,5"
        for role, name in [*columns.state_roles.items(), *columns.roles.items()]:
            blank = (
                name not in columns.ends and role != WATCHED_UNTIL and _is_blank(show_value(chunk, name, row))
            )
            if blank and not self._reads_blanks(role):
                known = self.decoder.maps.get(_mapped_role(role))
                if (role in columns.roles and role != ACTION) or (known is not None and known.names is None):
                    break
                others = "" if known is None else f"{known.text}, "
                how = f"`maps='{_mapped_role(role)}: {others}=…'` says what"
                return f"if an empty cell means something, {how}; {SKIP_HINT}"
        return SKIP_HINT

    def _holds_numbers(self, role: str, name: str) -> bool:
        if self.columns.roles.get(role) == name:
            return role not in (ACTION, EPISODE, TIME, COST, WATCHED_UNTIL)
        own = self.structure.state_names
        return self.columns.by is not StateNames.OWN or (own is not None and own.are_numbers)

    def _describe_unmapped(self, chunk: Chunk, row: int) -> str:
        for role, name in [*self.columns.state_roles.items(), *self.columns.roles.items()]:
            variable = _mapped_role(role)
            if variable in self.decoder.maps:
                flag: ProblemCodes = np.zeros(1, dtype=np.int8)
                self.decoder.maps[variable].apply(chunk.columns[name].slice(row, 1), flag)
                if flag[0]:
                    value = show_value(chunk, name, row)
                    return f"column '{name}' holds {value!r}, which `maps='{variable}: …'` does not list"
        return "a value has no meaning"

    def _unknown_state(self, chunk: Chunk, row: int, names: tuple[str, ...]) -> str:
        value = show_value(chunk, names[0], row)
        if self.columns.by_index:
            return f"column '{names[0]}' holds {value}, but the states are 0..{self.structure.states - 1}"
        own = self.structure.state_names
        if self.columns.by is StateNames.OWN and own is not None:
            last = len(own) - 1
            if own.are_numbers and (own[0], own[last]) == (0, last):
                return f"column '{names[0]}' holds {value}, but the states are 0..{last}"
            return f"column '{names[0]}' holds {value!r}, which is none of the model's states {own.listing()}"
        values = ",".join(f"{name}={_plain(show_value(chunk, name, row))}" for name in names)
        return f"({values}){self._after_maps(chunk, row, names)} is not a reachable state of the model"

    def _after_maps(self, chunk: Chunk, row: int, names: tuple[str, ...]) -> str:
        """The state in the model's own values, where maps say what the log's mean."""
        maps, unused = self.decoder.maps, np.zeros(1, dtype=np.int8)
        variables = self.decoder.index.state_index.names
        if not any(variable in maps for variable in variables):
            return ""
        meant = []
        for variable, name in zip(variables, names, strict=True):
            column = chunk.columns[name].slice(row, 1)
            column = maps[variable].apply(column, unused) if variable in maps else column
            meant.append(f"{variable}={_plain(column[0].as_py())}")
        return f", which is ({','.join(meant)}) after `maps`,"

    def _describe_action(self, chunk: Chunk, row: int) -> str:
        if self.columns.action is not None:
            value = show_value(chunk, self.columns.action, row)
            return f"'{value}'" if isinstance(value, str) else f"choice {value}"
        if self.columns.choice is not None:
            return f"choice {show_value(chunk, self.columns.choice, row)}"
        return "its only choice"

    def _list_enabled(self, state: int) -> str:
        structure = self.structure
        first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        return ", ".join(f"{c - first}: '{structure.action_name(c)}'" for c in range(first, last))

    def _successors(self, chunk: Chunk, row: int, state: int) -> str:
        """The successors of the choice that was taken, or of the state where only a name is at hand."""
        structure = self.structure
        first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        wanted = self._match_choices(chunk, row, first, last)
        begin, end = structure.transition_start[wanted[0]], structure.transition_start[wanted[-1] + 1]
        names = [structure.state_name(int(s)) for s in structure.successor[begin:end]]
        more = f" and {len(names) - SHOWN_SUCCESSORS} more" if len(names) > SHOWN_SUCCESSORS else ""
        return ", ".join(names[:SHOWN_SUCCESSORS]) + more

    def _match_choices(self, chunk: Chunk, row: int, first: int, last: int) -> list[int]:
        for name in (self.columns.choice, self.columns.action):
            if name is None:
                continue
            value = show_value(chunk, name, row)
            named = [c for c in range(first, last) if self.structure.action_name(c) == value]
            if len(named) == 1:
                return named
            if str(value).strip().isdigit() and first + int(value) < last:
                return [first + int(value)]
        return list(range(first, last))


def count_problems(problems: ProblemCodes) -> Counter[str]:
    """How many rows have which problem, in words."""
    codes, times = np.unique(problems[problems != RowProblem.NONE], return_counts=True)
    return Counter({RowProblem(c).words: n for c, n in zip(codes.tolist(), times.tolist(), strict=True)})


def _is_blank(value: Any) -> bool:
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or (isinstance(value, str) and not value.strip())


def _mapped_role(role: str) -> str:
    """What maps call it: next values share the map of the present ones."""
    return "state" if role == "next_state" else role.removesuffix("'")


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
