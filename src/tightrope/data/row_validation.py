"""What happens to rows that cannot be counted: a loud, exact error, or dropped and counted by reason.

Dropping is for exploring dirty files. A transition that the model excludes is evidence of a wrong model,
and data chosen by their outcome no longer come from the design that the file claims.

*Hints* for logs that the model cannot explain: other import settings (`likely_reading`) are tried on the
first rows, and reported if the settings taken fail for many of them and the others for none.
`unknown_values` reads the log again and counts values that are no state, action or transition; the most
frequent ones usually show the cause, such as another name or unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from tightrope.data import columns as col
from tightrope.data.columns import RowColumns, StateNames
from tightrope.data.model_index import NO_SUCH_ACTION
from tightrope.data.read_plan import ReadPlan
from tightrope.data.rows import NO_ACTION, EventBatch, RowDecoder, ValueMap, mapped_role
from tightrope.errors import InputError
from tightrope.io.table.columns import ProblemCodes, RowProblem, dense, describe_column, look, some_values
from tightrope.io.table.data_table import Chunk
from tightrope.model.structure import UNLABELLED
from tightrope.numerics.arrays import BoolArray
from tightrope.numerics.late import pa

SHOWN_SUCCESSORS = 6
SKIP_HINT = "`skip_invalid=True` drops such rows; the confidence is then nominal"
NO_NOISE = f"data that the model excludes are evidence of a wrong model, not of noise ({SKIP_HINT})"

Message = tuple[str, str | None]
"""What is wrong, and what to do."""


class WrongRow:
    """A row of a table that cannot be counted; it is looked up again where it is not in `chunk`."""

    def __init__(self, plan: ReadPlan, place: int, decoder: RowDecoder, number: int, chunk: Chunk | None):
        self.table, self.decoder, self.columns = plan.tables[place], decoder, decoder.columns
        self.plan, self.structure, self.number = plan, plan.structure, number
        table = self.table
        if chunk is None or not chunk.first_row <= number < chunk.first_row + chunk.rows:
            chunks = table.chunks(self.columns.names)
            chunk = next(c for c in chunks if c.first_row <= number < c.first_row + c.rows)
        self.row = number - chunk.first_row
        self.chunk = Chunk(number, 1, {n: column.slice(self.row, 1) for n, column in chunk.columns.items()})
        self.others = chunk

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
                hint = "say which was taken in a column 'choice': its number within the state, from 0"
                return f"several choices of state {here} have the action {self._action()}", hint
            case RowProblem.AMBIGUOUS_NUMBER:
                return self._ambiguous_number(state, here)
            case RowProblem.CONTRADICTING_ACTION:
                message = f"choice {self._value(self.columns.choice)} of state {here} is not {self._action()}"
                return f"{message}; enabled are {self._enabled(state)}", SKIP_HINT
            case RowProblem.IMPOSSIBLE_TRANSITION:
                there = self.structure.state_name(next_state)
                if self.plan.is_timed and state == next_state:
                    hint = "add up the durations of rows with the same state"
                    return f"state {here} follows itself, and the model has no such transition", hint
                if self.plan.is_timed:
                    hint = "every change of the state has a row of its own; is the log of this model, and "
                    return f"the model has no transition from {here} to {there}", hint + "complete?"
                hint = self._with_unused(f"it may lead to {self._successors(state)}; {NO_NOISE}")
                transition = f"from state {here} under {self._action()} to state {there}"
                return f"the model has no transition {transition}", hint
            case RowProblem.NEGATIVE_COUNT | RowProblem.NEGATIVE_BATCH:
                role = col.COUNT if problem is RowProblem.NEGATIVE_COUNT else col.BATCH
                return f"the {role} {self._value(self.columns.roles[role])} is negative", SKIP_HINT
        return self._order_message(problem, here, led)

    def _order_message(self, problem: RowProblem, here: str, led: int) -> Message:
        """What is wrong with a row that does not follow the one before."""
        roles = self.columns.roles
        episode = self._value(roles[col.EPISODE]) if col.EPISODE in roles else "?"
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
            message = f"step {self._value(roles[col.STEP])} of episode {episode} is given twice"
            hint = "remove rows that were logged twice, or give each episode a name of its own in 'episode'"
            return message, hint
        if problem is RowProblem.REPEATED_TIME:
            moment = self._value(roles[col.TIME])
            hint = "`drop_duplicates=True` drops rows that were logged twice"
            message = f"episode {episode} has two rows at one instant, {moment}"
            coarse = "" if self.plan.is_timed else "; rows of a coarse clock need a column 'step'"
            return message, hint + coarse
        return problem.words, SKIP_HINT

    # --- what stands in the row --------------------------------------------------------------------

    def _value(self, name: str | None) -> Any:
        """A value as it stands in the file."""
        return self.chunk.columns[name or ""][0].as_py()

    def _state_name(self, state: int) -> str:
        return self.structure.state_name(state) if 0 <= state < self.structure.states else "?"

    def _map_of(self, role: str) -> ValueMap | None:
        return self.decoder.maps.get(mapped_role(role))

    def _in_model(self, role: str, name: str) -> object:
        """The cell of a column, as a map says what it means."""
        unused: ProblemCodes = np.zeros(1, dtype=np.int8)
        return self.decoder.map_column(self.chunk, mapped_role(role), unused, name)[0].as_py()

    def _problem(self, role: str, name: str) -> int:
        """What is wrong with the value of one column."""
        return int(self.decoder.problems_of(role, name, self.chunk)[0])

    def _is_missing(self, role: str, name: str) -> bool:
        """Whether a cell is empty that has to hold something."""
        if name in self.columns.ends or role == col.WATCHED_UNTIL or not _is_blank(self._value(name)):
            return False
        known = self._map_of(role)
        return known is None or not known.reads_blanks

    def _bad_value(self) -> str:
        """Which column it is, and what stands there, in the order in which columns are read."""
        for role, name in self.columns.each:
            value, problem = self._value(name), self._problem(role, name)
            wrong = f"column '{name}' holds {value!r}, which is"
            if problem and name in self.columns.ends:
                return f"{wrong} neither true nor false"
            if self._is_missing(role, name) or (problem == RowProblem.MISSING_VALUE and role != col.COST):
                return f"column '{name}' has no value"
            if problem and role == col.COST:
                return f"{wrong} not a {'duration' if self.plan.is_timed else 'cost'}"
            if problem == RowProblem.FRACTIONAL:
                known = self._map_of(role)
                meant = "" if known is None else f" ({self._in_model(role, name)} after `maps`)"
                return f"column '{name}' holds {value}{meant}, which is not a whole number"
            if problem == RowProblem.NOT_A_NUMBER:
                if look([value]) == "numbers" and abs(float(value)) > 2**53:
                    return f"{wrong} too large a number"
                values = some_values(self.others.columns[name])
                plain = len(values) < 2 and look(values) == "text"
                plain |= any(look([one]) in ("numbers", "whole numbers") for one in values)
                more = "" if plain else f" ({describe_column(self.others.columns[name])})"
                return f"{wrong} not a number{more}"
        return "a value is missing or unreadable"

    def _value_hint(self) -> str:
        """How to read dates and decimal commas, or to give an empty cell a meaning."""
        for role, name in self.columns.each:
            looks = look([self._value(name)])
            if name in self.columns.ends or not self.decoder.holds_numbers(role):
                continue
            if looks == "dates":
                return f'where they are times, say `columns="time={name}"`'
            if looks == "numbers with a decimal comma":
                return f"write the numbers of '{name}' with a point: 0.5, not 0,5"
        for role, name in self.columns.each:
            if self._is_missing(role, name):
                known = self._map_of(role)
                if (role in self.columns.roles and role != col.ACTION) or (known and known.names is None):
                    break
                others = "" if known is None else f"{known.text}, "
                how = f"`maps='{mapped_role(role)}: {others}=…'` says what"
                return f"if an empty cell means something, {how}; {SKIP_HINT}"
        return SKIP_HINT

    def _unmapped_value(self) -> str:
        for role, name in self.columns.each:
            if self._problem(role, name) == RowProblem.UNMAPPED_VALUE:
                listed = f"`maps='{mapped_role(role)}: …'` does not list"
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
        variables, after = self.decoder.index.state_index.names, ""
        if any(variable in self.decoder.maps for variable in variables):
            pairs = zip(variables, names, strict=True)
            cells = ((own, self._in_model(own, name)) for own, name in pairs)
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
        hint, meant = NO_NOISE, None if column is None else self._in_model(col.ACTION, column)
        if isinstance(meant, str) and meant not in names:
            mapped = f"`maps` reads {value!r} as {meant!r}"
            means = mapped if meant != value else f"`maps='action: {value}=…'` says what it means"
            hint = f"the model's actions are {', '.join(names)}; {means}"
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
        pointed = col.unused_columns(self.table, self.columns.names, list(self.columns.roles))
        return "; ".join([*pointed, hint])

    def _action(self) -> str:
        if self.columns.action is not None:
            value = self._value(self.columns.action)
            return f"'{value}'" if isinstance(value, str) else f"choice {value}"
        choice = self.columns.choice
        return "its only choice" if choice is None else f"choice {self._value(choice)}"

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


def _is_blank(value: object) -> bool:
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or (isinstance(value, str) and not value.strip())


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


LOOKED_AT = 20_000
"""Rows that are looked at."""

FEWEST = 3
"""Fewer rows fit too many settings to speak for one."""

SUSPICIOUS = 0.2
"""The share of rows that must fail before other settings are tried."""

Other = tuple[str, RowColumns, Mapping[str, ValueMap]]
"""Other import settings: what to say, and the columns and maps that this means."""


def likely_reading(plan: ReadPlan, table: int) -> str | None:
    """ "These look like …", where other settings explain all of the first rows; None where none do."""
    columns = plan.columns[table]
    try:
        chunk = next(plan.tables[table].chunks(columns.names), None)
    except InputError:
        return None
    if chunk is None or chunk.rows < FEWEST:
        return None
    if chunk.rows > LOOKED_AT:
        first = {name: column.slice(0, LOOKED_AT) for name, column in chunk.columns.items()}
        chunk = Chunk(chunk.first_row, LOOKED_AT, first)
    step = columns.roles.get(col.STEP)
    if step is not None and look(some_values(chunk.columns[step])) == "dates":
        return f"these look like times in the column '{step}': say `columns=\"time={step}\"`"
    if _fitting(plan, table, chunk) > 1 - SUSPICIOUS:
        return None
    for words, others, maps in _others(plan, columns):
        listed = (*plan.columns[:table], others, *plan.columns[table + 1 :])
        if _fitting(replace(plan, columns=listed, maps={**plan.maps, **maps}), table, chunk) == 1:
            return f"these look like {words}"
    return None


def _fitting(plan: ReadPlan, table: int, chunk: Chunk) -> float:
    """The share of rows that are transitions of the model."""
    try:
        rows = plan.decoder(table).decode(chunk)
    except InputError:
        return 0.0
    if plan.columns[table].from_next_row:
        same = np.diff(rows.episode) == 0 if col.EPISODE in plan.columns[table].roles else True
        follows = np.flatnonzero(same & ~rows.ended[:-1])
        rows = replace(rows[follows], next_state=rows.state[follows + 1])
    plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
    return float((rows.problems == RowProblem.NONE).mean()) if len(rows) else 0.0


def _others(plan: ReadPlan, columns: RowColumns) -> Iterator[Other]:
    """Other settings, the likeliest first."""
    structure, variables = plan.structure, tuple(plan.structure.valuations)
    one, shown = columns.state[0], f"the column '{columns.state[0]}'"
    by_index, less = replace(columns, by=StateNames.INDEX), ValueMap(steps=(("-", Fraction(1)),))
    if len(columns.state) == 1 and not columns.by_index:
        yield f'the model\'s numbers of its states (from 0) in {shown}: say `states="index"`', by_index, {}
    elif len(columns.state) == 1:
        if structure.state_names is not None and structure.state_names.are_numbers:
            words = f'what the model\'s author calls its states, in {shown}: say `states="own"`'
            yield words, replace(columns, by=StateNames.OWN), {}
        if len(variables) == 1:
            words = f"the variable {variables[0]} in {shown}: say `columns='{variables[0]}={one}'`"
            roles = dict(zip((variables[0], f"{variables[0]}'"), columns.state_roles.values(), strict=False))
            yield words, replace(columns, by=StateNames.VARIABLES, state_roles=roles), {}
    if len(columns.state) == 1:
        words = f"the model's numbers of its states counted from 1 in {shown}: say"
        yield f"{words} `states=\"index\"` and `maps='state: -1'`", by_index, {col.STATE: less}
    if columns.by is StateNames.VARIABLES:
        more = ValueMap(steps=(("+", Fraction(1)),))
        for shift, words in ((less, "counted from one more"), (more, "counted from one less")):
            listed = ", ".join(f"'{name}: {shift.text}'" for name in variables)
            words = f"variables {words} than in the model: say `maps=[{listed}]`"
            yield words, columns, dict.fromkeys(variables, shift)
        for order in permutations(range(len(variables))) if len(variables) <= 4 else ():
            sides = columns.state, columns.next_state
            state, after = (tuple(names[k] for k in order) if names else () for names in sides)
            yield _renamed(columns, "columns of variables in another order", (*state, *after))
    if not columns.from_next_row:
        words = "state and next state the other way round"
        yield _renamed(columns, words, (*columns.next_state, *columns.state))
    if (action := columns.roles.get(col.ACTION)) is not None:
        roles = {role: name for role, name in columns.roles.items() if role not in (col.ACTION, col.CHOICE)}
        words = f"choices counted from 1: say `columns='choice={action}'` and `maps='choice: -1'`"
        yield words, replace(columns, roles={**roles, col.CHOICE: action}), {col.CHOICE: less}
        names = ValueMap({str(n): name for n, name in enumerate(filter(None, structure.action_names))})
        words = f"actions numbered through all of the model: say `maps='action: {names.text}'`"
        yield words, columns, {col.ACTION: names}


def _renamed(columns: RowColumns, words: str, names: Iterable[str]) -> Other:
    roles = dict(zip(columns.state_roles, names, strict=True))
    naming = ", ".join(f"{role}={column}" for role, column in roles.items())
    return f'{words}: say `columns="{naming}"`', replace(columns, state_roles=roles), {}


SHOWN = 5
"""How many values of each kind are kept."""

STATES, ACTIONS, NOT_ENABLED, IMPOSSIBLE, UNREADABLE = KINDS = (
    "states",
    "actions",
    "actions not enabled",
    "impossible transitions",
    "unreadable values",
)
"""The kinds, in the order in which they are shown."""


@dataclass(frozen=True)
class UnknownValue:
    """A value as it stands in the log, and the number of rows that hold it."""

    value: str
    rows: int


Unknown = Mapping[str, Sequence[UnknownValue]]
"""The most frequent values of every kind."""


def unknown_values(plan: ReadPlan) -> Unknown:
    """The most frequent values that the model does not know, by kind; kinds without any are left out."""
    seen: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    shown: dict[str, str] = {}
    for number, table in enumerate(plan.tables):
        columns, decoder = plan.columns[number], plan.decoder(number)
        for chunk in table.chunks(columns.names, lambda: None):
            rows = decoder.decode(chunk)
            _find_transitions(plan, rows, columns.from_next_row)
            seen[UNREADABLE].update(_unreadable(decoder, chunk, rows, shown))
            for kind, bad, roles in _kinds(rows, columns):
                if bad.any():
                    seen[kind].update(_values(decoder, chunk, bad, roles, kind))
    return {
        kind: tuple(UnknownValue(value, rows) for value, rows in values.most_common(SHOWN))
        for kind, values in seen.items()
        if values
    }


def _find_transitions(plan: ReadPlan, rows: EventBatch, from_next_row: bool) -> None:
    """Mark the rows whose action or transition the model does not have."""
    if not from_next_row:
        plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        return
    # where a row led stands elsewhere: any known state will do to look at its action
    acting = (rows.action != NO_ACTION) & (rows.local != NO_ACTION) & (rows.problems == RowProblem.NONE)
    some = rows[acting]
    plan.index.transitions(some.state, some.taken, some.state, some.problems)
    some.problems[some.problems == RowProblem.IMPOSSIBLE_TRANSITION] = RowProblem.NONE
    rows.problems[acting] = some.problems


def _kinds(rows: EventBatch, columns: RowColumns) -> list[tuple[str, BoolArray, dict[str, str]]]:
    """(kind, the rows of that kind, the columns that show what is wrong by what they hold)."""
    problems = rows.problems
    before = {role: name for role, name in columns.state_roles.items() if name in columns.state}
    after = {role: name for role, name in columns.state_roles.items() if name not in columns.state}
    action = {role: columns.roles[role] for role in (col.ACTION, col.CHOICE) if role in columns.roles}
    disabled = problems == RowProblem.DISABLED_ACTION
    nameless = disabled & (rows.action == NO_SUCH_ACTION)
    name = {role: column for role, column in action.items() if role == col.ACTION}
    return [
        (STATES, problems == RowProblem.UNKNOWN_STATE, before),
        (STATES, problems == RowProblem.UNKNOWN_NEXT_STATE, after),
        (ACTIONS, nameless, name),
        (NOT_ENABLED, disabled & ~nameless, {**before, **action}),
        (IMPOSSIBLE, problems == RowProblem.IMPOSSIBLE_TRANSITION, {**before, **action, **after}),
    ]


def _unreadable(decoder: RowDecoder, chunk: Chunk, rows: EventBatch, shown: dict[str, str]) -> Counter[str]:
    """Columns with values that cannot be read, by rows; `shown` says of each column what it holds there:
    three values, and what they look like."""
    wanted = (RowProblem.NOT_A_NUMBER, RowProblem.FRACTIONAL, RowProblem.UNMAPPED_VALUE)
    bad, unreadable = np.isin(rows.problems, wanted), Counter[str]()
    for role, name in decoder.columns.each if bad.any() else ():
        failed = bad & np.isin(decoder.problems_of(role, name, chunk), wanted)
        if failed.any():
            naming = "" if role == name else f", read as {col.describe_role(role)}"
            text = f"column '{name}'{naming}: {describe_column(chunk.columns[name].filter(pa.array(failed)))}"
            unreadable[shown.setdefault(name, text)] += int(failed.sum())
    return unreadable


def _values(
    decoder: RowDecoder, chunk: Chunk, bad: BoolArray, roles: Mapping[str, str], kind: str
) -> Counter[str]:
    """How often each combination of values stands in the bad rows; of next states as of states, of unknown
    actions with what a map makes of them."""
    columns = [chunk.columns[name] for name in roles.values()]
    if kind == ACTIONS and col.ACTION in decoder.maps:
        unused: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        columns.append(decoder.map_column(chunk, col.ACTION, unused))
    held = [dense(column).filter(pa.array(bad)).cast(pa.string()) for column in columns]
    labels = [role.rstrip("'") if kind == STATES else role for role in roles]
    rows = zip(*(column.fill_null("nothing").to_pylist() for column in held), strict=True)
    if len(labels) == 1 and labels[0] in (col.ACTION, col.STATE, col.NEXT_STATE):
        return Counter(map(", read as ".join, rows))
    return Counter(
        ", ".join(f"{role}={text}" for role, text in zip(labels, row, strict=True)) for row in rows
    )
