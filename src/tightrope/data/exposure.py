"""Logs with time: how long a chain waited in every state, and which transitions it took.

Rows say in which state the chain is, by the model's variables or by `state`, its index. Two forms:

* a column `time`: the chain is in this state from this moment on. The next row of the episode says what came
  next; the same state again means that nothing happened until then, which is how a log ends in the middle of
  a sojourn.
* a column `duration`: the chain stayed in this state for so long, and then went to the state of the episode's
  next row. The last row of an episode is cut off: its time counts, and no transition.

`episode` tells episodes apart; without it, everything is one. Times are numbers in the unit of the model's
rates. A log with both columns is refused, and so is a step that the model does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data.column_names import COUNT, HABITS, is_name_of_next, plain_name
from tightrope.data.state_index import StateIndex
from tightrope.data.timed_simulator import TimedRows
from tightrope.errors import InputError, Location
from tightrope.formats.table.columns import distinct, whole_numbers
from tightrope.formats.table.data_table import Chunk, DataTable
from tightrope.formats.table.opening import open_tables
from tightrope.model.structure import Structure, Structured
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields

TIME, DURATION, EPISODE, STATE = "time", "duration", "episode", "state"


@dataclass(frozen=True, eq=False, repr=False)
class Exposure(Record):
    """`jumps[t]` counts transition t, `waited[s]` is the time spent in state s.

    >>> import tightrope as tr, pyarrow as pa
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})])
    >>> seen = tr.read_exposure(pa.table({"duration": [2.0, 0.5, 1.0], "state": [0, 1, 0]}), chain)
    >>> seen.jumps.tolist(), seen.waited.tolist(), seen.censored
    ([1, 1], [3.0, 0.5], 1)
    """

    jumps: OffsetArray
    waited: FloatArray
    rows: int
    episodes: int
    censored: int
    """Sojourns that were cut off."""
    read_as: str
    files: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        freeze_fields(self)

    def _title_(self) -> str:
        total = float(self.waited.sum())
        return f"Exposure: {int(self.jumps.sum()):,} jumps in {self.episodes:,} episodes, time {total:.6g}"

    def _facts_(self) -> Facts:
        return [("read as", self.read_as), ("cut off", f"{self.censored:,} sojourns")]


def read_exposure(data: Any, model: Structured | Structure, format: str | None = None) -> Exposure:
    """Read a log: a path, several, a table, or what `simulate_times` gives.

    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})]).instantiate()
    >>> float(tr.read_exposure(tr.simulate_times(chain, 3, seed=1, time=10), chain).waited.sum())
    30.0
    """
    structure = model if isinstance(model, Structure) else model.structure
    if isinstance(data, TimedRows):
        data = data.table()
    tables = open_tables(data, format)
    if not tables:
        raise InputError("there is no data")
    counter = _Counter(structure)
    forms, unread = set(), dict[str, None]()
    for table in tables:
        form = _form(table, structure)
        forms.add(form.text)
        unread |= dict.fromkeys(name for name in table.names if name not in form.columns)
        counter.add_table(table, form)
    if len(forms) > 1:
        raise InputError(f"the files are not of one form: {' and '.join(sorted(forms))}")
    files = tuple(table.path for table in tables)
    return Exposure(
        counter.jumps,
        counter.waited,
        counter.rows,
        counter.episodes,
        counter.censored,
        forms.pop() + (f"; not read: {', '.join(unread)}" if unread else ""),
        files,
    )


@dataclass(frozen=True)
class _Form:
    clock: str
    names: tuple[str, ...]
    has_episodes: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.clock, *self.names, *([EPISODE] if self.has_episodes else []))

    @property
    def text(self) -> str:
        told = "one episode" if not self.has_episodes else "episodes by 'episode'"
        meaning = "the moment a state is seen" if self.clock == TIME else "how long a state lasts"
        return f"'{self.clock}' is {meaning}, states by {', '.join(self.names)}, {told}"


def _form(table: DataTable, structure: Structure) -> _Form:
    where = Location(table.path)
    clocks = [name for name in (TIME, DURATION) if name in table.names]
    if len(clocks) != 1:
        found = "both 'time' and 'duration'" if clocks else f"neither ({', '.join(table.names)})"
        raise InputError(
            f"a log in continuous time has a column 'time' or a column 'duration', and this one has {found}",
            where,
            "keep one of them: the moment at which a state is entered, or how long it lasts",
        )
    variables = tuple(structure.valuations)
    by_variables = bool(variables) and all(name in table.names for name in variables)
    if not by_variables and STATE not in table.names:
        wanted = ", ".join(variables) if variables else "state"
        missing = [name for name in variables if name not in table.names]
        raise InputError(
            f"the log does not say in which state the chain is: {', '.join(missing) or STATE} is missing",
            where,
            f"it needs the columns {wanted}"
            + (", or the index of the state in 'state'" if variables else ""),
        )
    names = variables if by_variables else (STATE,)
    _refuse_transitions(table, names)
    return _Form(clocks[0], names, EPISODE in table.names)


def _refuse_transitions(table: DataTable, names: tuple[str, ...]) -> None:
    """Columns that would be left out, and with them what happened."""
    variables = {*names, STATE}
    for name in table.names:
        if name in names:
            continue
        said, instead = "", ""
        if any(is_name_of_next(name, variable) for variable in variables):
            said = "says where a row leads, and in a log in continuous time the next row does"
            instead = "leave it out, and give the last state of every episode a row of its own"
        elif plain_name(name) in (COUNT, *HABITS[COUNT]):
            said = "says how often a row was seen, and a log in continuous time has a row for every sojourn"
            instead = "write every sojourn in a row of its own"
        elif EPISODE not in table.names and plain_name(name) in HABITS[EPISODE]:
            said = "seems to number episodes, which in a log in continuous time 'episode' does"
            instead = "call it 'episode', or leave it out if all rows are one episode"
        if said:
            raise InputError(f"the column '{name}' {said}", Location(table.path), instead)


class _Counter:
    """Adds up the rows of all tables."""

    def __init__(self, structure: Structure):
        self._structure = structure
        self._index = StateIndex(structure) if structure.valuations else None
        self.jumps: OffsetArray = np.zeros(structure.transitions, dtype=np.int64)
        self._waited = np.zeros(structure.states, dtype=np.longdouble)  # millions of terms
        self.rows = self.episodes = self.censored = 0
        owner = structure.transition_choice.astype(np.int64)
        key = owner * structure.states + structure.successor
        self._order = np.argsort(key, kind="stable")
        self._keys = key[self._order]

    @property
    def waited(self) -> FloatArray:
        return self._waited.astype(np.float64)

    def add_table(self, table: DataTable, form: _Form) -> None:
        wanted = list(form.columns)
        parts: list[tuple[FloatArray, OffsetArray, OffsetArray]] = []
        codes: dict[Any, int] = {}
        for chunk in table.chunks(wanted):
            clock = _numbers(chunk, form.clock, table)
            states = self._states(chunk, form, table)
            episode: OffsetArray = np.zeros(chunk.rows, dtype=np.int64)
            if form.has_episodes:
                values, code = distinct(chunk.columns[EPISODE])
                number = np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64)
                if (code < 0).any():
                    raise _wrong(table, chunk.first_row + int(np.argmax(code < 0)), "the episode is missing")
                episode = number[code]
            parts.append((clock, states, episode))
        if not parts or not sum(len(clock) for clock, _, _ in parts):
            raise InputError("the log has no rows", Location(table.path))
        clock, states, episode = (np.concatenate([part[i] for part in parts]) for i in range(3))
        self._add(table, form, clock, states, episode)

    def _add(
        self, table: DataTable, form: _Form, clock: FloatArray, states: OffsetArray, episode: OffsetArray
    ) -> None:
        follows = episode[1:] == episode[:-1]
        begins = np.flatnonzero(np.r_[True, ~follows])
        seen = episode[begins]
        if len(np.unique(seen)) < len(seen):
            again = np.flatnonzero(_find_repeated(seen))
            raise _wrong(
                table,
                int(begins[again[0]]) + 1,
                "an episode goes on here after another one",
                "sort the log by episode, then by time",
            )
        before, after = states[:-1], states[1:]
        if form.clock == TIME:
            spent = np.diff(clock)
            backwards = np.flatnonzero(follows & (spent < 0))
            if len(backwards):
                raise _wrong(
                    table, int(backwards[0]) + 2, "time runs backwards", "sort the log by episode and time"
                )
            waited_in, waited_for = before[follows], spent[follows]
            last = np.flatnonzero(np.r_[~follows, True])
            ended = np.r_[False, follows & (before == after)][last]
            self.censored += int(ended.sum())
        else:
            waited_in, waited_for = states, clock
            self.censored += len(begins)
        np.add.at(self._waited, waited_in, waited_for.astype(np.longdouble))
        moved = follows & (before != after)
        if form.clock == DURATION and (still := follows & ~moved).any():
            own = self._locate(before[still], after[still])
            if (own < 0).any():
                row = int(np.flatnonzero(still)[np.argmax(own < 0)]) + 2
                raise _wrong(
                    table,
                    row,
                    f"state {self._structure.state_name(int(after[row - 2]))} follows itself, and the model "
                    "has no such transition",
                    "add up the durations of rows with the same state",
                )
        found = self._locate(before[moved], after[moved])
        if (found < 0).any():
            row = int(np.flatnonzero(moved)[np.argmax(found < 0)]) + 1
            name = self._structure.state_name
            raise _wrong(
                table,
                row + 1,
                f"the model has no transition from {name(int(states[row - 1]))} to {name(int(states[row]))}",
                "every change of the state has a row of its own; is the log of this model, and complete?",
            )
        np.add.at(self.jumps, found, 1)
        self.rows += len(clock)
        self.episodes += len(begins)

    def _locate(self, source: OffsetArray, target: OffsetArray) -> OffsetArray:
        """The transition between two states, −1 where there is none."""
        key = source * self._structure.states + target
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[place] == key, self._order[place], -1)

    def _states(self, chunk: Chunk, form: _Form, table: DataTable) -> OffsetArray:
        problems: npt.NDArray[np.int8] = np.zeros(chunk.rows, dtype=np.int8)
        columns: Mapping[str, OffsetArray] = {
            name: whole_numbers(chunk.columns[name], name, table.path, problems) for name in form.names
        }
        if problems.any():
            row = chunk.first_row + int(np.argmax(problems > 0))
            raise _wrong(table, row, f"{', '.join(form.names)}: a whole number is missing")
        if form.names == (STATE,) and STATE not in self._structure.valuations:
            states = columns[STATE]
            known = (states >= 0) & (states < self._structure.states)
        else:
            assert self._index is not None
            states = self._index.states(columns)
            known = states >= 0
        if not known.all():
            row = int(np.argmin(known))
            shown = ", ".join(f"{name}={int(columns[name][row])}" for name in form.names)
            raise _wrong(table, chunk.first_row + row, f"the model has no state with {shown}")
        return states


def _numbers(chunk: Chunk, name: str, table: DataTable) -> FloatArray:
    import pyarrow as pa

    column = chunk.columns[name]
    try:
        values: FloatArray = column.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise InputError(
            f"column '{name}' holds no numbers",
            Location(table.path),
            "write times as numbers, in the unit of the model's rates",
        ) from None
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"column '{name}' has the type {column.type}, and numbers are wanted",
            Location(table.path),
            "write times as numbers, in the unit of the model's rates",
        ) from None
    wrong = ~np.isfinite(values) | ((values < 0) if name == DURATION else False)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise _wrong(
            table, chunk.first_row + row, f"{name} is {values[row]}, not a number that a clock shows"
        )
    return np.array(values)


def _find_repeated(values: OffsetArray) -> npt.NDArray[np.bool_]:
    """Where a value has occurred before."""
    _, first = np.unique(values, return_index=True)
    again = np.ones(len(values), dtype=np.bool_)
    again[first] = False
    return again


def _wrong(table: DataTable, row: int, message: str, hint: str | None = None) -> InputError:
    return InputError(f"row {row}: {message}", table.location(row), hint)
