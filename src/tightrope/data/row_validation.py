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
    unused_columns,
)
from tightrope.data.costs import as_number
from tightrope.data.rows import RowDecoder, ValueMap
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
NO_NOISE = f"data that the model excludes are evidence of a wrong model, not of noise ({SKIP_HINT})"

Message = tuple[str, str | None]
"""What is wrong, and what to do."""


class WrongRow:
    """A row of a table that cannot be counted; it is looked up again where it is not in `chunk`."""

    def __init__(self, table: DataTable, decoder: RowDecoder, number: int, chunk: Chunk | None):
        self.table, self.decoder, self.columns = table, decoder, decoder.columns
        self.structure, self.number = decoder.index.structure, number
        if chunk is None or not chunk.first_row <= number < chunk.first_row + chunk.rows:
            chunks = table.chunks(self.columns.names)
            chunk = next(c for c in chunks if c.first_row <= number < c.first_row + c.rows)
        self.chunk, self.row = chunk, number - chunk.first_row

    def error(self, problem: RowProblem, state: int, next_state: int, led: int) -> InputError:
        """The error about the row, by the states that were read; the row before led to state `led`."""
        message, hint = self._message(problem, state, next_state, led)
        return self.table.error(message, hint, self.number)

    def _message(self, problem: RowProblem, state: int, next_state: int, led: int) -> Message:
        here = self._state_name(state)
        match problem:
            case RowProblem.MISSING_VALUE | RowProblem.NOT_A_NUMBER | RowProblem.FRACTIONAL:
                return self._bad_value(), self._value_hint()
            case RowProblem.UNMAPPED_VALUE:
                hint = "list every value of the column in `maps`; what is not listed means nothing"
                return self._unmapped_value(), hint
            case RowProblem.UNKNOWN_STATE:
                return self._unknown_state(self.columns.state), self._state_hint()
            case RowProblem.UNKNOWN_NEXT_STATE:
                return self._unknown_state(self.columns.next_state), self._state_hint()
            case RowProblem.DISABLED_ACTION:
                return self._disabled_action(state, here)
            case RowProblem.AMBIGUOUS_ACTION:
                message = f"several choices of state {here} have the action {self._action()}"
                return (
                    message,
                    "say which was taken in a column 'choice': its number within the state, from 0",
                )
            case RowProblem.AMBIGUOUS_NUMBER:
                return self._ambiguous_number(state, here)
            case RowProblem.CONTRADICTING_ACTION:
                message = (
                    f"choice {self._value(self.columns.choice)} of state {here} is not {self._action()}; "
                )
                return message + f"enabled are {self._enabled(state)}", SKIP_HINT
            case RowProblem.IMPOSSIBLE_TRANSITION:
                there = self.structure.state_name(next_state)
                message = (
                    f"the model has no transition from state {here} under {self._action()} to state {there}"
                )
                return message, self._with_unused(f"it may lead to {self._successors(state)}; {NO_NOISE}")
            case RowProblem.NEGATIVE_COUNT | RowProblem.NEGATIVE_BATCH:
                role = COUNT if problem is RowProblem.NEGATIVE_COUNT else BATCH
                return f"the {role} {self._value(self.columns.roles[role])} is negative", SKIP_HINT
        return self._order_message(problem, here, led)

    def _order_message(self, problem: RowProblem, here: str, led: int) -> Message:
        """What is wrong with a row that does not follow the one before."""
        roles = self.columns.roles
        episode = self._value(roles[EPISODE]) if EPISODE in roles else "?"
        if problem is RowProblem.BROKEN_CHAIN:
            there = self._state_name(led)
            message = f"episode {episode} goes on in state {here}, but the row before led to state {there}"
            hint = "rows are missing between, or they belong to different episodes: name episodes in a "
            hint += "column 'episode', or number their rows in 'step'"
            return message, self._with_unused(hint)
        if problem is RowProblem.AFTER_THE_END:
            message = f"episode {episode} goes on after the row before said that it ended"
            return message, "give each episode its own name in the column 'episode'"
        if problem is RowProblem.REPEATED_STEP:
            message = f"step {self._value(roles[STEP])} of episode {episode} is given twice"
            hint = "remove rows that were logged twice, or give each episode a name of its own in 'episode'"
            return message, hint
        if problem is RowProblem.REPEATED_TIME:
            message = f"episode {episode} has two rows at one instant, {self._value(roles[TIME])}"
            hint = "`drop_duplicates=True` drops rows that were logged twice; rows of a coarse clock need a "
            return message, hint + "column 'step'"
        return problem.words, SKIP_HINT

    # --- what stands in the row --------------------------------------------------------------------

    def _value(self, name: str | None) -> Any:
        """A value as it stands in the file."""
        return self.chunk.columns[name or ""][self.row].as_py()

    def _state_name(self, state: int) -> str:
        return self.structure.state_name(state) if 0 <= state < self.structure.states else "?"

    def _map_of(self, role: str) -> ValueMap | None:
        return self.decoder.maps.get(_mapped_role(role))

    def _in_model(self, name: str, known: ValueMap | None, flag: ProblemCodes) -> Any:
        """The cell of a column, as a map says what it means."""
        cell = self.chunk.columns[name].slice(self.row, 1)
        return cell if known is None else known.apply(cell, flag)

    def _is_missing(self, role: str, name: str) -> bool:
        """Whether a cell is empty that has to hold something."""
        if name in self.columns.ends or role == WATCHED_UNTIL or not _is_blank(self._value(name)):
            return False
        known = self._map_of(role)
        return known is None or not known.reads_blanks

    def _bad_value(self) -> str:
        """Which column it is, and what stands there, in the order in which columns are read."""
        for role, name in self.columns.each:
            value = self._value(name)
            if name in self.columns.ends:
                if value is not None and str(value).strip().lower() not in ("", "0", "1", "true", "false"):
                    return f"column '{name}' holds {value!r}, which is neither true nor false"
                continue
            if self._is_missing(role, name):
                return f"column '{name}' has no value"
            if role == COST and not math.isfinite(math.nan if (cost := as_number(value)) is None else cost):
                return f"column '{name}' holds {value!r}, which is not a cost"
            if self._holds_numbers(role, name) and (wrong := self._not_whole(role, name, value)):
                return wrong
        return "a value is missing or unreadable"

    def _not_whole(self, role: str, name: str, value: Any) -> str | None:
        """Why a value is no whole number."""
        flag: ProblemCodes = np.zeros(1, dtype=np.int8)
        known = self.decoder.maps.get(role.removesuffix("'"))
        cell = self._in_model(name, known, flag)
        whole_numbers(cell, name, self.table.path, flag)
        if flag[0] == RowProblem.MISSING_VALUE:
            return f"column '{name}' has no value"
        if flag[0] == RowProblem.FRACTIONAL:
            meant = "" if known is None else f" ({cell[0].as_py()} after `maps`)"
            return f"column '{name}' holds {value}{meant}, which is not a whole number"
        if not flag[0]:
            return None
        values = some_values(self.chunk.columns[name])
        plain = len(values) < 2 and look(values) == "text"
        plain |= any(look([one]) in ("numbers", "whole numbers") for one in values)
        more = "" if plain else f" ({describe_column(self.chunk.columns[name])})"
        return f"column '{name}' holds {value!r}, which is not a number{more}"

    def _value_hint(self) -> str:
        """How to read dates and decimal commas, or to give an empty cell a meaning."""
        for role, name in self.columns.each:
            looks = look([self._value(name)])
            if name in self.columns.ends or not self._holds_numbers(role, name):
                continue
            if looks == "dates":
                return f'where they are times, say `columns="time={name}"`'
            if looks == "numbers with a decimal comma":
                return f"write the numbers of '{name}' with a point: 0.5, not 0,5"
        for role, name in self.columns.each:
            if self._is_missing(role, name):
                known = self._map_of(role)
                if (role in self.columns.roles and role != ACTION) or (known and known.names is None):
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

    def _unmapped_value(self) -> str:
        for role, name in self.columns.each:
            flag: ProblemCodes = np.zeros(1, dtype=np.int8)
            self._in_model(name, self._map_of(role), flag)
            if flag[0]:
                listed = f"`maps='{_mapped_role(role)}: …'` does not list"
                return f"column '{name}' holds {self._value(name)!r}, which {listed}"
        return "a value has no meaning"

    # --- states and actions ------------------------------------------------------------------------

    def _unknown_state(self, names: tuple[str, ...]) -> str:
        value, own = self._value(names[0]), self.structure.state_names
        if self.columns.by_index:
            return f"column '{names[0]}' holds {value}, but the states are 0..{self.structure.states - 1}"
        if self.columns.by is StateNames.OWN and own is not None:
            last = len(own) - 1
            if own.are_numbers and (own[0], own[last]) == (0, last):
                return f"column '{names[0]}' holds {value}, but the states are 0..{last}"
            return f"column '{names[0]}' holds {value!r}, which is none of the model's states {own.listing()}"
        values = ",".join(f"{name}={_plain(self._value(name))}" for name in names)
        maps, unused, after = self.decoder.maps, np.zeros(1, dtype=np.int8), ""
        variables = self.decoder.index.state_index.names
        if any(variable in maps for variable in variables):
            pairs = zip(variables, names, strict=True)
            cells = ((own, self._in_model(name, maps.get(own), unused)[0].as_py()) for own, name in pairs)
            after = f", which is ({','.join(f'{own}={_plain(cell)}' for own, cell in cells)}) after `maps`,"
        return f"({values}){after} is not a reachable state of the model"

    def _state_hint(self) -> str:
        """What states there are."""
        if self.columns.by is not StateNames.VARIABLES:
            return f"`maps='state: …'` says what other names mean; {SKIP_HINT}"
        ends = {n: (c.min().item(), c.max().item()) for n, c in self.structure.valuations.items()}
        ranges = ", ".join(f"{name} {_plain(low)}..{_plain(high)}" for name, (low, high) in ends.items())
        return f"in the model's states there are {ranges}; `maps` converts other units and names"

    def _disabled_action(self, state: int, here: str) -> Message:
        """An action that the state does not have, or nobody."""
        structure, column = self.structure, self.columns.action
        names = [name for name in structure.action_names if name]
        value = None if column is None else self._value(column)
        if isinstance(value, str) and not value.strip():
            unlabelled = np.array([name == UNLABELLED for name in structure.action_names])
            if not unlabelled[structure.action_of_choice].any():
                return f"column '{column}' has no value", self._value_hint()
        hint = NO_NOISE
        if isinstance(value, str) and value not in names and ACTION not in self.decoder.maps:
            hint = (
                f"the model's actions are {', '.join(names)}; `maps='action: {value}=…'` says what it means"
            )
        return f"{self._action()} is not enabled in state {here}; enabled are {self._enabled(state)}", hint

    def _ambiguous_number(self, state: int, here: str) -> Message:
        """A number that one choice of the state has, and the action of another."""
        names, column = [name for name in self.structure.action_names if name], self.columns.action
        number = int(float(str(self._value(column))))
        meant = self.structure.action_name(int(self.structure.choice_start[state]) + number)
        message = (
            f"the number {number} in column '{column}' may be choice {number} of state {here}, which is "
            f"'{meant}', or action {number} of the model, which is '{names[number]}'"
        )
        listed = ", ".join(f"{i}={own}" for i, own in enumerate(names))
        return message, f"say which: `columns=\"choice={column}\"`, or `maps='action: {listed}'`"

    def _with_unused(self, hint: str) -> str:
        """A hint behind what columns look like that nobody uses: in another order rows may fit."""
        pointed = unused_columns(self.table, self.columns.names, list(self.columns.roles))
        return "; ".join([*pointed, hint])

    def _action(self) -> str:
        if self.columns.action is not None:
            value = self._value(self.columns.action)
            return f"'{value}'" if isinstance(value, str) else f"choice {value}"
        return (
            "its only choice" if self.columns.choice is None else f"choice {self._value(self.columns.choice)}"
        )

    def _choices(self, state: int) -> range:
        return range(int(self.structure.choice_start[state]), int(self.structure.choice_start[state + 1]))

    def _enabled(self, state: int) -> str:
        names = (self.structure.action_name(choice) for choice in self._choices(state))
        return ", ".join(f"{number}: '{name}'" for number, name in enumerate(names))

    def _successors(self, state: int) -> str:
        """The successors of the choice that was taken, or of the state where only a name is at hand."""
        structure, wanted = self.structure, self._taken(self._choices(state))
        begin, end = structure.transition_start[wanted[0]], structure.transition_start[wanted[-1] + 1]
        names = [structure.state_name(int(s)) for s in structure.successor[begin:end]]
        more = f" and {len(names) - SHOWN_SUCCESSORS} more" if len(names) > SHOWN_SUCCESSORS else ""
        return ", ".join(names[:SHOWN_SUCCESSORS]) + more

    def _taken(self, choices: range) -> range | list[int]:
        for name in filter(None, (self.columns.choice, self.columns.action)):
            value = self._value(name)
            named = [choice for choice in choices if self.structure.action_name(choice) == value]
            if len(named) == 1:
                return named
            if str(value).strip().isdigit() and int(value) < len(choices):
                return [choices[int(value)]]
        return choices


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


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
