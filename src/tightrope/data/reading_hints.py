"""Hints about a log that the model cannot explain: another reading that fits, and values it does not know.

Nothing is counted under a reading that nobody chose. Another one (`likely_reading`) is looked for in the
first rows, and reported where the reading taken fails for a good part of them and the other for none.

For values that are no state, no action, no transition of the model (`unknown_values`) the log is looked
through once more; the most frequent ones usually say at a glance what is the matter: another name for an
action, a unit, states beyond the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from tightrope.data.columns import ACTION, BATCH, CHOICE, COUNT, EPISODE, STEP, StateNames, describe_role
from tightrope.data.model_index import NO_SUCH_ACTION, NOT_GIVEN, UNKNOWN, Taken
from tightrope.data.read_plan import ReadPlan
from tightrope.data.rows import NO_ACTION, LogRows, RowDecoder
from tightrope.errors import InputError
from tightrope.io.table.columns import (
    ProblemCodes,
    RowProblem,
    dense,
    describe_column,
    look,
    some_values,
    truth_values,
    whole_numbers,
)
from tightrope.io.table.data_table import Chunk
from tightrope.numerics.arrays import BoolArray, OffsetArray

LOOKED_AT = 20_000
"""Rows that are looked at."""

FEWEST = 3
"""Fewer rows fit too many readings to speak for one."""

SUSPICIOUS = 0.2
"""The share of rows that must fail before another reading is looked for."""

Values = tuple[OffsetArray, ...]


@dataclass(frozen=True)
class _Other:
    """Another reading: what to say, and how whole columns become states and actions."""

    words: str
    states: Callable[[Values], OffsetArray]
    swapped: bool = False
    action: Callable[[OffsetArray], Taken] | None = None


def likely_reading(plan: ReadPlan, table: int) -> str | None:
    """ "These look like …", where another reading explains all of the first rows; None where none does."""
    try:
        chunk = next(plan.tables[table].chunks(plan.columns[table].names), None)
    except InputError:
        return None
    if chunk is None or chunk.rows < FEWEST:
        return None
    if chunk.rows > LOOKED_AT:
        columns = {name: column.slice(0, LOOKED_AT) for name, column in chunk.columns.items()}
        chunk = Chunk(chunk.first_row, LOOKED_AT, columns)
    return _Looker(plan, table, chunk).answer()


class _Looker:
    def __init__(self, plan: ReadPlan, table: int, chunk: Chunk):
        self.plan, self.chunk = plan, chunk
        self.index = plan.index
        self.structure = plan.structure
        self.columns = plan.columns[table]
        self.decoder: RowDecoder = plan.decoder(table)
        self.rows: LogRows = self.decoder.decode(chunk)

    def answer(self) -> str | None:
        step = self.columns.roles.get(STEP)
        if step is not None and look(some_values(self.chunk.columns[step])) == "dates":
            return f"these look like times in the column '{step}': say `columns=\"time={step}\"`"
        own = self._fitting(self.rows.state, self.rows.next_state, self.rows.taken)
        if own > (1 - SUSPICIOUS) * self._count_wanted():
            return None
        before, after = self._values(self.columns.state), self._values(self.columns.next_state)
        for other in self._others():
            state = other.states(before)
            next_state = other.states(after) if after else np.full(len(state), UNKNOWN, dtype=np.int64)
            if other.swapped:
                state, next_state = next_state, state
            choice = self.rows.taken
            if other.action is not None:
                choice = other.action(self._actions())
            if self._fitting(state, next_state, choice) == self._count_wanted():
                return f"these look like {other.words}"
        return None

    def _values(self, names: tuple[str, ...]) -> Values:
        problems: ProblemCodes = np.zeros(self.chunk.rows, dtype=np.int8)
        columns = []
        for name in names:
            try:
                columns.append(whole_numbers(self.chunk.columns[name], name, "", problems))
            except InputError:
                return ()
        return tuple(columns) if not problems.any() else ()

    def _actions(self) -> OffsetArray:
        problems: ProblemCodes = np.zeros(self.chunk.rows, dtype=np.int8)
        name = self.columns.action or ""
        if name not in self.chunk.columns:
            return np.full(self.chunk.rows, -1, dtype=np.int64)
        try:
            values = whole_numbers(self.chunk.columns[name], name, "", problems)
        except InputError:
            return np.full(self.chunk.rows, -1, dtype=np.int64)
        return np.where(problems == 0, values, -1)

    def _continues(self) -> OffsetArray:
        """Rows whose next row belongs to the same episode."""
        same = np.ones(len(self.rows) - 1, dtype=np.bool_)
        if EPISODE in self.columns.roles:
            same = np.diff(self.rows.episode) == 0
        return np.flatnonzero(same & ~self.rows.ended[:-1])

    def _count_wanted(self) -> int:
        """The number of rows that a reading must explain."""
        return len(self._continues()) if self.columns.from_next_row else len(self.rows)

    def _fitting(self, state: OffsetArray, next_state: OffsetArray, choice: Taken) -> int:
        """How many rows are transitions of the model."""
        if len(state) == 0:
            return -1
        if self.columns.from_next_row:
            rows = self._continues()
            if len(rows) == 0:
                return -1
            next_state, state = state[rows + 1], state[rows]
            choice = Taken(choice.action[rows], choice.local[rows])
        problems: ProblemCodes = np.zeros(len(state), dtype=np.int8)
        self.index.transitions(state, choice, next_state, problems)
        return int((problems == 0).sum())

    def _others(self) -> Iterator[_Other]:
        own, variables = self.structure.state_names, tuple(self.structure.valuations)
        whole = len(self.columns.state) == 1
        shown = f"the column '{self.columns.state[0]}'"
        if whole and self.columns.by is not StateNames.INDEX:
            yield _Other(
                f'the model\'s numbers of its states (from 0) in {shown}: say `states="index"`', _index(0)
            )
        if whole and self.columns.by is StateNames.INDEX:
            if own is not None and own.are_numbers:
                yield _Other(
                    f'what the model\'s author calls its states, in {shown}: say `states="own"`',
                    lambda v: own.find_numbers(v[0]) if v else np.empty(0, dtype=np.int64),
                )
            if len(variables) == 1:
                yield _Other(
                    f"the variable {variables[0]} in {shown}: say `columns='{variables[0]}="
                    f"{self.columns.state[0]}'`",
                    self._variables((0,)),
                )
        if whole:
            yield _Other(
                f'the model\'s numbers of its states counted from 1 in {shown}: say `states="index"` '
                "and `maps='state: -1'`",
                _index(-1),
            )
        if self.columns.by is StateNames.VARIABLES:
            yield from self._other_variables(variables)
        current = self._current()
        if not self.columns.from_next_row:
            roles = list(self.columns.state_roles)
            columns = [*self.columns.next_state, *self.columns.state]
            naming = ", ".join(f"{role}={column}" for role, column in zip(roles, columns, strict=True))
            yield _Other(
                f'state and next state the other way round: say `columns="{naming}"`', current, swapped=True
            )
        if ACTION in self.columns.roles:
            column = f"`columns='choice={self.columns.action}'`"
            words = f"choices counted from 1: say {column} and `maps='choice: -1'`"
            yield _Other(words, current, action=_local(-1))
            names = [name for name in self.structure.action_names if name]
            listed = ", ".join(f"{number}={name}" for number, name in enumerate(names))
            yield _Other(
                f"actions numbered through all of the model: say `maps='action: {listed}'`",
                current,
                action=self._global,
            )

    def _other_variables(self, variables: tuple[str, ...]) -> Iterator[_Other]:
        same = tuple(range(len(variables)))
        for shift, words in ((-1, "counted from one more"), (1, "counted from one less")):
            maps = ", ".join(f"'{name}: {shift:+d}'" for name in variables)
            naming = f"variables {words} than in the model: say `maps=[{maps}]`"
            yield _Other(naming, self._variables(same, shift))
        if 2 <= len(variables) <= 4:
            for order in permutations(same):
                if order != same:
                    naming = ", ".join(
                        f"{variables[i]}{mark}={names[k]}"
                        for mark, names in (("", self.columns.state), ("'", self.columns.next_state))
                        for i, k in enumerate(order)
                        if names
                    )
                    words = f'columns of variables in another order: say `columns="{naming}"`'
                    yield _Other(words, self._variables(order))

    def _current(self) -> Callable[[Values], OffsetArray]:
        if self.columns.by is StateNames.INDEX:
            return _index(0)
        if self.columns.by is StateNames.VARIABLES:
            return self._variables(tuple(range(len(self.structure.valuations))))
        own = self.structure.state_names
        assert own is not None
        return lambda v: own.find_numbers(v[0]) if v and own.are_numbers else np.empty(0, dtype=np.int64)

    def _variables(self, order: tuple[int, ...], shift: int = 0) -> Callable[[Values], OffsetArray]:
        def states(values: Values) -> OffsetArray:
            if len(values) != len(order):
                return np.empty(0, dtype=np.int64)
            names = self.index.state_index.names
            return self.index.state_index.states(
                {name: values[k] + shift for name, k in zip(names, order, strict=True)}
            )

        return states

    def _global(self, numbers: OffsetArray) -> Taken:
        names = [i for i, name in enumerate(self.structure.action_names) if name]
        table = np.array([*names, -2], dtype=np.int64)
        inside = (numbers >= 0) & (numbers < len(names))
        return Taken(table[np.where(inside, numbers, len(names))], np.full(len(numbers), NOT_GIVEN))


def _index(shift: int) -> Callable[[Values], OffsetArray]:
    return lambda values: values[0] + shift if values else np.empty(0, dtype=np.int64)


def _local(shift: int) -> Callable[[OffsetArray], Taken]:
    return lambda numbers: Taken(np.full(len(numbers), NOT_GIVEN), numbers + shift)


SHOWN = 5
"""How many values of each kind are kept."""

STATES, ACTIONS, NOT_ENABLED, IMPOSSIBLE, UNREADABLE = (
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
    seen: dict[str, Counter[str]] = {}
    shown: dict[str, str] = {}
    for number, table in enumerate(plan.tables):
        columns = plan.columns[number]
        decoder = plan.decoder(number)
        for chunk in table.chunks(columns.names, _ignore):
            rows = decoder.decode(chunk)
            _find_transitions(plan, rows, columns.from_next_row)
            unreadable = _unreadable(decoder, chunk, rows, shown)
            if unreadable:
                seen.setdefault(UNREADABLE, Counter()).update(unreadable)
            for kind, bad, roles in _kinds(rows, columns.state_roles, columns.roles, columns.state):
                if bad.any():
                    labels = [role.rstrip("'") if kind == STATES else role for role in roles]
                    seen.setdefault(kind, Counter()).update(_values(chunk, bad, labels, roles.values()))
    order = (STATES, ACTIONS, NOT_ENABLED, IMPOSSIBLE, UNREADABLE)
    return {
        kind: tuple(UnknownValue(value, rows) for value, rows in seen[kind].most_common(SHOWN))
        for kind in order
        if kind in seen
    }


def _ignore() -> None:
    """A row with the wrong number of fields has no values to show."""


def _find_transitions(plan: ReadPlan, rows: LogRows, from_next_row: bool) -> None:
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


_Kind = tuple[str, BoolArray, dict[str, str]]


def _kinds(
    rows: LogRows, state_roles: Mapping[str, str], roles: Mapping[str, str], state: Sequence[str]
) -> list[_Kind]:
    """(kind, the rows of that kind, the columns that show what is wrong by what they hold)."""
    problems = rows.problems
    before = {role: column for role, column in state_roles.items() if column in state}
    after = {role: column for role, column in state_roles.items() if column not in state}
    action = {role: roles[role] for role in (ACTION, CHOICE) if role in roles}
    disabled = problems == RowProblem.DISABLED_ACTION
    nameless = disabled & (rows.action == NO_SUCH_ACTION)
    return [
        (STATES, problems == RowProblem.UNKNOWN_STATE, before),
        (STATES, problems == RowProblem.UNKNOWN_NEXT_STATE, after),
        (ACTIONS, nameless, action),
        (NOT_ENABLED, disabled & ~nameless, {**before, **action}),
        (IMPOSSIBLE, problems == RowProblem.IMPOSSIBLE_TRANSITION, {**before, **action, **after}),
    ]


def _unreadable(decoder: RowDecoder, chunk: Chunk, rows: LogRows, shown: dict[str, str]) -> Counter[str]:
    """Columns with values that cannot be read, by rows; `shown` says of each column what it holds there:
    three values, and what they look like."""
    import pyarrow as pa

    wanted = [
        int(code) for code in (RowProblem.NOT_A_NUMBER, RowProblem.FRACTIONAL, RowProblem.UNMAPPED_VALUE)
    ]
    bad, columns = np.isin(rows.problems, wanted), decoder.columns
    unreadable: Counter[str] = Counter()
    for role, name in [*columns.state_roles.items(), *columns.roles.items()] if bad.any() else ():
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        known = decoder.maps.get(role.removesuffix("'"))
        column = chunk.columns[name] if known is None else known.apply(chunk.columns[name], flags)
        if name in columns.ends:
            truth_values(column, name, decoder.file, flags)
        elif role in (STEP, COUNT, BATCH, CHOICE) or (role in columns.state_roles and _by_number(decoder)):
            whole_numbers(column, name, decoder.file, flags)
        failed = bad & np.isin(flags, wanted)
        if failed.any():
            naming = "" if role == name else f", read as {describe_role(role)}"
            text = f"column '{name}'{naming}: {describe_column(chunk.columns[name].filter(pa.array(failed)))}"
            unreadable[shown.setdefault(name, text)] += int(failed.sum())
    return unreadable


def _by_number(decoder: RowDecoder) -> bool:
    own = decoder.index.structure.state_names
    return decoder.columns.by is not StateNames.OWN or (own is not None and own.are_numbers)


def _values(chunk: Chunk, bad: BoolArray, labels: Sequence[str], columns: Iterable[str]) -> Counter[str]:
    """How often each combination of values stands in the bad rows."""
    import pyarrow as pa

    arrays = [dense(chunk.columns[column]).cast(pa.string()) for column in columns]
    names = [f"c{number}" for number in range(len(arrays))]
    table = pa.table(arrays, names=names).filter(pa.array(bad))
    groups = table.group_by(names).aggregate([([], "count_all")])
    counted = groups.column("count_all").to_pylist()
    rows = zip(*(groups.column(name).to_pylist() for name in names), strict=True)
    result: Counter[str] = Counter()
    for values, times in zip(rows, counted, strict=True):
        result[_show(labels, values)] += times
    return result


def _show(labels: Sequence[str], values: Sequence[str | None]) -> str:
    texts = ["nothing" if value is None else value for value in values]
    if len(labels) == 1 and labels[0] in (ACTION, "state", "next_state"):
        return texts[0]
    return ", ".join(f"{label}={text}" for label, text in zip(labels, texts, strict=True))
