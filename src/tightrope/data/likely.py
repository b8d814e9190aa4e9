"""What a log looks like that the model cannot explain as it was read: another reading under which every row
fits.

Only ever a hint: nothing is counted under a reading that nobody chose. It is looked for in the first rows,
and reported where the reading taken fails for a good part of them and the other for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from tightrope.data.appearance import look, some_values
from tightrope.data.column_names import ACTION, EPISODE, STEP
from tightrope.data.locate import NOT_GIVEN, Taken
from tightrope.data.read_plan import ReadPlan
from tightrope.data.rows import RowDecoder, Rows
from tightrope.data.state_form import StateNames
from tightrope.data.state_index import UNKNOWN
from tightrope.errors import InputError
from tightrope.io.table.columns import whole_numbers
from tightrope.io.table.data_table import Chunk
from tightrope.io.table.problems import ProblemCodes
from tightrope.numerics.arrays import OffsetArray

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
        self.rows: Rows = self.decoder.decode(chunk)

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
            taken = self.rows.taken
            if other.action is not None:
                taken = other.action(self._actions())
            if self._fitting(state, next_state, taken) == self._count_wanted():
                return f"these look like {other.words}"
        return None

    def _values(self, names: tuple[str, ...]) -> Values:
        problems: ProblemCodes = np.zeros(self.chunk.rows, dtype=np.int8)
        found = []
        for name in names:
            try:
                found.append(whole_numbers(self.chunk.columns[name], name, "", problems))
            except InputError:
                return ()
        return tuple(found) if not problems.any() else ()

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

    def _fitting(self, state: OffsetArray, next_state: OffsetArray, taken: Taken) -> int:
        """How many rows are transitions of the model."""
        if len(state) == 0:
            return -1
        if self.columns.from_next_row:
            rows = self._continues()
            if len(rows) == 0:
                return -1
            next_state, state = state[rows + 1], state[rows]
            taken = Taken(taken.action[rows], taken.local[rows])
        problems: ProblemCodes = np.zeros(len(state), dtype=np.int8)
        self.index.transitions(state, taken, next_state, problems)
        return int((problems == 0).sum())

    def _others(self) -> Iterator[_Other]:
        own, variables = self.structure.own_states, tuple(self.structure.valuations)
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
            said = ", ".join(f"{role}={column}" for role, column in zip(roles, columns, strict=True))
            yield _Other(
                f'state and next state the other way round: say `columns="{said}"`', current, swapped=True
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
            said = f"variables {words} than in the model: say `maps=[{maps}]`"
            yield _Other(said, self._variables(same, shift))
        if 2 <= len(variables) <= 4:
            for order in permutations(same):
                if order != same:
                    said = ", ".join(
                        f"{variables[i]}{mark}={names[k]}"
                        for mark, names in (("", self.columns.state), ("'", self.columns.next_state))
                        for i, k in enumerate(order)
                        if names
                    )
                    words = f'columns of variables in another order: say `columns="{said}"`'
                    yield _Other(words, self._variables(order))

    def _current(self) -> Callable[[Values], OffsetArray]:
        if self.columns.by is StateNames.INDEX:
            return _index(0)
        if self.columns.by is StateNames.VARIABLES:
            return self._variables(tuple(range(len(self.structure.valuations))))
        own = self.structure.own_states
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
