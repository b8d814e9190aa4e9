"""Rows of a log, decoded: states, actions and positions as whole numbers; maps of values.

A map translates a log's values to the model's, from other names or units:

    --map 'action: 0=repair, 1=run'      each value by its name; an unlisted value is refused
    --map 'alarm: X=true, =false'        nothing before the sign: an empty cell
    --map 'wear: *10'                    other units: factors and shifts, in order
    --map 'temperature: -32 /1.8 round'  `round` and `floor` make whole numbers

A map of a variable holds for its next value, too; one of `state` for next states. Arithmetic is exact. A
label that holds exactly if a variable has one value is a name of that value. Labels and actions of PRISM
files are identifiers; other texts are converted (`identifier`): `end of run` is read as `end_of_run`.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import hashlib
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tightrope.data import columns as col
from tightrope.data.columns import RowColumns, StateNames
from tightrope.data.costs import as_number, cost_values
from tightrope.data.model_index import UNKNOWN, ModelIndex, Taken, identifier
from tightrope.errors import InputError, Location
from tightrope.io.table import columns as cells
from tightrope.io.table.columns import ArrowColumn, ProblemCodes, RowProblem, mark
from tightrope.io.table.data_table import Chunk, DataTable
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, OffsetArray
from tightrope.numerics.late import pa, pc

_WHOLE = re.compile(r"-?[0-9]+|0[xX][0-9a-fA-F]{1,16}")
"""Texts that are whole numbers, to Arrow as well."""

TABLE = 40
"""Places of rows are their table, shifted so far, and their number in it."""

NO_ACTION = -3
"""A row without an action, as the last of an episode is in a log that takes next states from the next row."""


Rows: TypeAlias = slice | BoolArray | OffsetArray
"""Some rows of a batch."""


@dataclass
class EventBatch:
    """Rows of a log as events, one entry each. Missing columns are 0.

    Decoding sets `placed` (episode, step and time can be read) and codes of `columns` without a role.
    Following (`tightrope.data.fold`) sets the rest: `sound` rows could be read, `closed` ones lead to
    absorbing states; `transition` and `next_state` are −1 without an outcome, `before` is the transition of
    the continued row (−1: none); `since_start` rows of the episode precede, which begins at position
    `origin`.
    """

    number: OffsetArray
    state: OffsetArray
    action: OffsetArray
    local: OffsetArray
    next_state: OffsetArray
    episode: OffsetArray
    step: OffsetArray
    time: OffsetArray
    placed: BoolArray
    ended: BoolArray
    truncated: BoolArray
    problems: ProblemCodes
    cost: FloatArray
    columns: dict[str, OffsetArray]
    sound: BoolArray
    closed: BoolArray
    transition: OffsetArray
    before: OffsetArray
    table: OffsetArray
    batch: OffsetArray
    since_start: OffsetArray
    since_entry: OffsetArray
    origin: OffsetArray
    until: OffsetArray

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, part: Rows) -> EventBatch:
        return self._each(lambda name: getattr(self, name)[part], lambda name: self.columns[name][part])

    def some(self, part: Rows) -> EventBatch:
        """The same, of which only fields that are asked for are copied; this batch must stay as it is."""
        return _SomeEvents(self, part)

    @staticmethod
    def joined(parts: Sequence[EventBatch]) -> EventBatch:
        """Rows of several chunks, one below the other."""
        return parts[0]._each(
            lambda name: np.concatenate([getattr(part, name) for part in parts]),
            lambda name: np.concatenate([part.columns[name] for part in parts]),
        )

    def _each(self, field: Callable[[str], AnyArray], column: Callable[[str], OffsetArray]) -> EventBatch:
        columns = {name: column(name) for name in self.columns}
        return EventBatch(columns=columns, **{name: field(name) for name in _FIELDS})

    def repeats(self, before: EventBatch, from_next_row: bool) -> BoolArray:
        """Rows that say the same as those before, at the same places."""
        same: BoolArray = (self.cost == before.cost) | (np.isnan(self.cost) & np.isnan(before.cost))
        for name in {*_FIELDS[1 : _FIELDS.index("cost")]} - {"placed", "next_state" if from_next_row else ""}:
            same &= getattr(self, name) == getattr(before, name)
        return same

    @property
    def taken(self) -> Taken:
        return Taken(self.action, self.local)

    @property
    def place(self) -> OffsetArray:
        """Numbers that rise with the place of rows in the log."""
        return (self.table << TABLE) + self.number

    @property
    def is_over(self) -> BoolArray:
        """Which rows say that their episode is over, and not cut off."""
        return self.closed | (self.ended & ~self.truncated)

    @property
    def counted(self) -> EventBatch:
        """Those whose outcome is known."""
        known = self.transition >= 0
        return self if known.all() else self.some(known)


class _SomeEvents(EventBatch):
    """Some rows of a batch."""

    def __init__(self, batch: EventBatch, part: Rows):
        self._batch, self._part = batch, part

    def __getattr__(self, name: str) -> object:
        value = getattr(self._batch, name)
        own = {n: v[self._part] for n, v in value.items()} if name == "columns" else value[self._part]
        self.__dict__[name] = own
        return own


_FIELDS = tuple(column.name for column in fields(EventBatch) if column.name != "columns")


def value_names(structure: Structure, variable: str) -> dict[str, str]:
    """The labels that name a value of a variable, with these values as texts."""
    column, names = structure.valuations[variable], dict[str, str]()
    for label, members in structure.labels.items():
        values = np.unique(column[members])
        if len(values) == 1 and np.array_equal(column == values[0], members):
            names[label] = str(int(values[0]))
    return names


def _by_name(column: ArrowColumn, names: Mapping[str, str]) -> ArrowColumn:
    """The column with names replaced by what they stand for; what is no name stays as it is."""
    values, codes = cells.distinct(column)
    texts = []
    for value in values:
        text = str(value)
        forms = (text, text.strip(), identifier(text), identifier(text) + "_")
        texts.append(next((names[form] for form in forms if form in names), text))
    return _texts_at(codes, texts)


def _texts_at(codes: OffsetArray, texts: Sequence[str | None]) -> ArrowColumn:
    """A column of texts by their numbers; below 0 there is none."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    words = pa.array(texts, type=pa.string())
    column: ArrowColumn = pa.DictionaryArray.from_arrays(indices, words).dictionary_decode()
    return column


def mapped_role(role: str) -> str:
    """What maps call it: next values share the map of the present ones."""
    return col.STATE if role == col.NEXT_STATE else role.removesuffix("'")


class RowDecoder:
    """Decodes the chunks of one table."""

    def __init__(
        self,
        columns: RowColumns,
        maps: Mapping[str, ValueMap],
        index: ModelIndex,
        file: str,
        time_kind: TimeKind | None = None,
    ):
        self.columns = columns
        self.time_kind = time_kind
        self.maps = maps
        self.index = index
        self.file = file
        self.beside: Mapping[str, Callable[[ArrowColumn], OffsetArray]] = {}
        """What makes codes of columns without a role, by their names."""
        self._value_names: dict[str, dict[str, str]] = {}

    def decode(self, chunk: Chunk) -> EventBatch:
        """Values that are none are marked in `problems`."""
        columns, rows = self.columns, chunk.rows
        problems: ProblemCodes = np.zeros(rows, dtype=np.int8)
        nothing: OffsetArray = np.zeros(rows, dtype=np.int64)
        unknown, no = np.full(rows, UNKNOWN, dtype=np.int64), np.zeros(rows, dtype=np.bool_)
        flags = {
            role: cells.truth_values(chunk.columns[name], name, self.file, problems)
            for role, name in columns.roles.items()
            if role in col.FLAGS
        }
        ended: BoolArray = np.logical_or.reduce([no, *flags.values()])
        state = self._states(chunk, columns.state, problems)
        choice = self._taken(chunk, problems)
        next_state = unknown
        if columns.from_next_row:
            mark(problems, (state < 0) | (state >= self.index.structure.states), RowProblem.UNKNOWN_STATE)
            choice = self._without_ends(chunk, state, choice)
        else:
            next_state = self._states(chunk, columns.next_state, problems)
        episode = step = time = nothing
        unplaced: ProblemCodes = np.zeros(rows, dtype=np.int8)
        if col.EPISODE in columns.roles:
            episode = identities(chunk.columns[columns.roles[col.EPISODE]], unplaced)
        if col.STEP in columns.roles:
            name = columns.roles[col.STEP]
            step = cells.whole_numbers(chunk.columns[name], name, self.file, unplaced)
        if col.TIME in columns.roles:
            time = self.times(chunk, unplaced)
        cost: FloatArray = np.zeros(rows)
        if col.COST in columns.roles:
            cost = cost_values(chunk.columns[columns.roles[col.COST]], columns.roles[col.COST], self.file)
            if not columns.from_next_row:  # else a row may have done nothing, and cost nothing
                mark(problems, np.isnan(cost), RowProblem.MISSING_VALUE)
        placed: BoolArray = unplaced == RowProblem.NONE
        np.copyto(problems, unplaced, where=problems == RowProblem.NONE)
        number = np.arange(chunk.first_row, chunk.first_row + rows, dtype=np.int64)
        held = chunk.columns
        codes = {n: code(held[n]) if n in held else unknown for n, code in self.beside.items()}
        place = (episode, step, time, placed, ended, flags.get(col.TRUNCATED, no))
        read = (number, state, choice.action, choice.local, next_state, *place, problems, cost, codes)
        return EventBatch(*read, no, no, unknown, unknown, *[nothing] * 6)

    def times(self, chunk: Chunk, problems: ProblemCodes) -> OffsetArray:
        """The times of rows, as whole numbers that rise with them."""
        return self._moments(chunk, col.TIME, problems)

    def ends_of_watching(self, chunk: Chunk, unknown: int) -> OffsetArray:
        """Until when the episode of each row was watched, in the same numbers."""
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        until = self._moments(chunk, col.WATCHED_UNTIL, flags)
        return np.where(flags == RowProblem.NONE, until, unknown)

    def _moments(self, chunk: Chunk, role: str, problems: ProblemCodes) -> OffsetArray:
        name = self.columns.roles[role]
        column = self.map_column(chunk, col.TIME, problems, name)
        column = _time_column(column, name, self.file, chunk.first_row)
        return moments(column, name, self.file, problems, self.time_kind)

    def time_kind_of(self, chunk: Chunk) -> TimeKind | None:
        """What times are, also where a text shows them; None where a chunk has none."""
        unused: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        column = self.map_column(chunk, col.TIME, unused)
        column = _time_column(column, self.columns.roles[col.TIME], self.file, chunk.first_row)
        return None if column.null_count == len(column) else _time_kind(column.type)

    def map_column(
        self, chunk: Chunk, role: str, problems: ProblemCodes, name: str | None = None
    ) -> ArrowColumn:
        """A column in the model's values."""
        column = chunk.columns[name or self.columns.roles[role]]
        return self.maps[role].apply(column, problems) if role in self.maps else column

    def holds_numbers(self, role: str) -> bool:
        """Whether whole numbers stand in the column of a role."""
        if role in self.columns.roles:
            return role not in (col.ACTION, col.EPISODE, col.TIME, col.COST, col.WATCHED_UNTIL)
        own = self.index.structure.state_names
        return self.columns.by is not StateNames.OWN or (own is not None and own.are_numbers)

    def problems_of(self, role: str, name: str, chunk: Chunk) -> ProblemCodes:
        """What is wrong with the values of one column, whatever stands beside them."""
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        column = self.map_column(chunk, mapped_role(role), flags, name)
        if name in self.columns.ends:
            cells.truth_values(column, name, self.file, flags)
        elif role == col.COST:
            mark(flags, np.isnan(cost_values(column, name, self.file)), RowProblem.MISSING_VALUE)
        elif role == col.TIME:
            self.times(chunk, flags)
        elif self.holds_numbers(role):
            cells.whole_numbers(column, name, self.file, flags)
        return flags

    def _taken(self, chunk: Chunk, problems: ProblemCodes) -> Taken:
        columns = self.columns
        action = self.map_column(chunk, col.ACTION, problems) if columns.action else None
        choice = self.map_column(chunk, col.CHOICE, problems) if columns.choice else None
        if not columns.from_next_row:
            return self.index.taken(action, choice, self.file, problems)
        own: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        read = self.index.taken(action, choice, self.file, own)
        missing = own == RowProblem.MISSING_VALUE
        if action is not None and cells.holds_text(action):
            missing |= empty_texts(action)
            own[missing] = RowProblem.MISSING_VALUE
        for problem in np.unique(own[~missing & (own != RowProblem.NONE)]):
            mark(problems, own == problem, RowProblem(problem))
        return Taken(np.where(missing, NO_ACTION, read.action), np.where(missing, NO_ACTION, read.local))

    def _without_ends(self, chunk: Chunk, state: OffsetArray, choice: Taken) -> Taken:
        """Empty cells that a map reads as an action are none in states that lack it: there logs end."""
        name = self.columns.action
        if name is None or col.ACTION not in self.maps or not self.maps[col.ACTION].reads_blanks:
            return choice
        known = empty_texts(chunk.columns[name]) & (state >= 0) & (state < self.index.structure.states)
        flags: ProblemCodes = np.zeros(int(known.sum()), dtype=np.int8)
        some = Taken(choice.action[known], choice.local[known])
        self.index.transitions(state[known], some, state[known], flags)
        ends: BoolArray = np.zeros(chunk.rows, dtype=np.bool_)
        ends[known] = flags == RowProblem.DISABLED_ACTION
        return Taken(np.where(ends, NO_ACTION, choice.action), np.where(ends, NO_ACTION, choice.local))

    def _states(self, chunk: Chunk, names: tuple[str, ...], problems: ProblemCodes) -> OffsetArray:
        index = self.index
        if self.columns.by is StateNames.VARIABLES:
            values = {}
            for variable, name in zip(index.state_index.names, names, strict=True):
                column = self.map_column(chunk, variable, problems, name)
                values[variable] = self._values(column, variable, name, problems)
            return index.state_index.states(values)
        column = self.map_column(chunk, col.STATE, problems, names[0])
        if self.columns.by is StateNames.INDEX:
            return cells.whole_numbers(column, names[0], self.file, problems)
        return decode_named_states(column, names[0], self.file, index, problems)

    def _values(self, column: ArrowColumn, variable: str, name: str, problems: ProblemCodes) -> OffsetArray:
        """The values of a variable: whole numbers, or names of them."""
        own: ProblemCodes = np.zeros(len(column), dtype=np.int8)
        values = cells.whole_numbers(column, name, self.file, own)
        if cells.holds_text(column) and (own == RowProblem.NOT_A_NUMBER).any():
            if variable not in self._value_names:
                self._value_names[variable] = value_names(self.index.structure, variable)
            own[:] = RowProblem.NONE
            values = cells.whole_numbers(_by_name(column, self._value_names[variable]), name, self.file, own)
        np.copyto(problems, own, where=problems == RowProblem.NONE)
        return values


def decode_named_states(
    column: ArrowColumn, name: str, file: str, index: ModelIndex, problems: ProblemCodes
) -> OffsetArray:
    """States as the model's author calls them; text stands for the number or the tuple that it shows."""
    own = index.structure.state_names
    assert own is not None
    if own.are_numbers:
        return own.find_numbers(cells.whole_numbers(column, name, file, problems))
    if cells.is_nested(column):
        values: list[object] = column.to_pylist()
        mark(problems, np.array([value is None for value in values]), RowProblem.MISSING_VALUE)
        return np.array([own.find(value) for value in values], dtype=np.int64)
    listed, codes = cells.distinct(column)
    mark(problems, codes < 0, RowProblem.MISSING_VALUE)
    if not own.are_texts:
        listed = [_literal(value) for value in listed]
    states = np.array([*(own.find(value) for value in listed), UNKNOWN], dtype=np.int64)
    return states[codes]


def identities(column: ArrowColumn, problems: ProblemCodes) -> OffsetArray:
    """Names of episodes as whole numbers: numbers are themselves, others 64 bits of a digest."""
    if column.null_count == 0 and pa.types.is_string(column.type):
        with contextlib.suppress(pa.ArrowInvalid):
            column = pc.cast(column, pa.int64())
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return cells.read_numbers(column).astype(np.int64, copy=False)
    values, codes = cells.distinct(column)
    numbers = np.array([*(_identity(value) for value in values), 0], dtype=np.int64)
    blank = (place for place, value in enumerate(values) if value != value or not str(value).strip())
    mark(problems, np.isin(codes, [-1, *blank]), RowProblem.MISSING_VALUE)
    return numbers[codes]


class TimeKind(Enum):
    """What times are; those of one log are all of one kind, since only then can they be compared."""

    INTEGER, FLOAT, DATE = "whole numbers", "numbers", "dates"
    ZONED = "dates with a time zone"

    @property
    def is_date(self) -> bool:
        return self in (TimeKind.DATE, TimeKind.ZONED)


def _time_kind(kind: object) -> TimeKind | None:
    if pa.types.is_temporal(kind):
        return TimeKind.ZONED if getattr(kind, "tz", None) else TimeKind.DATE
    if pa.types.is_integer(kind):
        return TimeKind.INTEGER
    return TimeKind.FLOAT if pa.types.is_floating(kind) else None


def _time_column(column: ArrowColumn, name: str, file: str, first_row: int) -> ArrowColumn:
    """A column of times, also where texts show them."""
    column = cells.dense(column)
    return cells.times_of(column, name, file, first_row) if cells.holds_text(column) else column


def _of_one_kind(column: ArrowColumn, wanted: TimeKind, name: str, file: str) -> Any:
    """Times in the kind that the log's other times are of; what cannot be compared with them is refused."""
    kind = _time_kind(column.type)
    if kind is wanted or column.null_count == len(column):
        return column
    if not (wanted.is_date or (kind is not None and kind.is_date)):
        try:
            return column.cast(pa.float64() if wanted is TimeKind.FLOAT else pa.int64())
        except pa.ArrowInvalid:
            pass
    shown = "none" if kind is None else kind.value
    raise InputError(
        f"column '{name}' holds {shown} here, and the times of the rows before are {wanted.value}",
        Location(file),
        "write all times of a log alike",
    )


def moments(
    column: ArrowColumn, name: str, file: str, problems: ProblemCodes, wanted: TimeKind | None = None
) -> OffsetArray:
    """Times as whole numbers that rise with them."""
    if wanted is not None:
        column = _of_one_kind(column, wanted, name, file)
    if column.null_count:
        mark(problems, column.is_null().to_numpy(zero_copy_only=False), RowProblem.MISSING_VALUE)
    kind = column.type
    if pa.types.is_temporal(kind):
        if not pa.types.is_time32(kind) and not pa.types.is_time64(kind):
            try:
                column = pc.cast(column, pa.timestamp("ns"))
            except pa.ArrowInvalid as error:
                text, hint = f"column '{name}' holds dates that cannot be read", "years go from 1678 to 2261"
                raise InputError(f"{text}: {error}", Location(file), hint) from error
        whole: OffsetArray = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return whole
    if pa.types.is_integer(kind):
        return cells.whole_numbers(column, name, file, problems)
    if pa.types.is_floating(kind):
        values = column.fill_null(0.0).cast(pa.float64()).to_numpy(zero_copy_only=False)
        mark(problems, ~np.isfinite(values), RowProblem.NOT_A_NUMBER)
        return rising_integers(values)
    raise InputError(f"column '{name}' has the type {kind}, which is not a time", Location(file))


def rising_integers(values: npt.NDArray[np.float64]) -> OffsetArray:
    """Whole numbers in the order of the floats."""
    bits = np.ascontiguousarray(values + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def empty_texts(column: ArrowColumn) -> BoolArray:
    """Whether a text is missing or blank."""
    values, codes = cells.distinct(column)
    return np.array([*(value is None or not str(value).strip() for value in values), True])[codes]


def _identity(value: object) -> int:
    if value is None:
        return 0
    text = str(value).strip()
    if _WHOLE.fullmatch(text):
        number = int(text, 16 if "x" in text.lower() else 10)
        number -= 2**64 if number >= 2**63 and "x" in text.lower() else 0
        return number if -(2**63) <= number < 2**63 else digest(text)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return digest(text)


def digest(text: str) -> int:
    """64 bits of a text's hash."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def _literal(value: object) -> object:
    """The number, tuple or truth value that a text shows; the text itself where it shows none."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


_STEP = re.compile(r"\s*(?:(round|floor)|([*/+-])\s*([0-9.]+(?:[eE][+-]?[0-9]+)?(?:/[0-9]+)?))\s*")
HINT = "write `maps='action: 0=repair, 1=run'` or `maps='wear: *10'`"


_ARITHMETIC: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "+": operator.add,
    "-": operator.sub,
    "round": lambda number, _: Fraction(round(number)),
    "floor": lambda number, _: Fraction(math.floor(number)),
}


@dataclass(frozen=True)
class ValueMap:
    """Either `names` (value in the log to value in the model) or `steps` of arithmetic."""

    names: Mapping[str, str] | None = None
    steps: tuple[tuple[str, Fraction], ...] = ()

    def apply(self, column: ArrowColumn, problems: ProblemCodes) -> ArrowColumn:
        """The column in the model's values, as text; values without a meaning are marked."""
        values, codes = cells.distinct(column)
        meanings = [self._meaning(value) for value in values]
        texts = [text for text, _ in meanings]
        wrong = np.array([*(problem for _, problem in meanings), RowProblem.NONE], dtype=np.int8)
        for problem in (RowProblem.UNMAPPED_VALUE, RowProblem.NOT_A_NUMBER):
            mark(problems, wrong[codes] == problem, problem)
        if self.reads_blanks:
            codes = np.where(codes < 0, len(texts), codes)
            texts.append(self._meaning("")[0])
        return _texts_at(codes, texts)

    def _meaning(self, value: object) -> tuple[str | None, RowProblem]:
        text = plain_text(value)
        if self.names is not None:
            if text in self.names:
                return self.names[text], RowProblem.NONE
            return (text, RowProblem.UNMAPPED_VALUE) if text else (None, RowProblem.NONE)
        if not text:
            return None, RowProblem.NONE
        try:
            number = Fraction(text)
        except (ValueError, ZeroDivisionError):
            return text, RowProblem.NOT_A_NUMBER
        for sign, by in self.steps:
            number = _ARITHMETIC[sign](number, by)
        return str(number.numerator if number.denominator == 1 else float(number)), RowProblem.NONE

    @property
    def reads_blanks(self) -> bool:
        """Whether an empty cell has a meaning."""
        return self.names is not None and "" in self.names

    @property
    def calls(self) -> dict[str, str]:
        """What the log calls values that are numbers in the model, by these."""
        calls: dict[str, list[str]] = {}
        for name, value in (self.names or {}).items():
            if name and as_number(name) is None and as_number(value) is not None:
                calls.setdefault(value, []).append(name)
        return {value: " / ".join(names) for value, names in calls.items()}

    @property
    def text(self) -> str:
        """As the user would write it."""
        if self.names is not None:
            return ", ".join(f"{value}={meaning}" for value, meaning in self.names.items())
        return " ".join(sign if sign in ("round", "floor") else f"{sign}{by}" for sign, by in self.steps)


@dataclass(frozen=True)
class TimeFormat(ValueMap):
    """Times written in a way that the user gives, in the words of strptime."""

    format: str = ""

    def apply(self, column: ArrowColumn, problems: ProblemCodes) -> Any:
        column = cells.dense(column)
        if not cells.holds_text(column):
            return column
        try:
            read = pc.strptime(pc.utf8_trim_whitespace(column), self.format, "us", error_is_null=True)
        except pa.ArrowException as error:
            raise InputError(f"'{self.format}' is not a format of times: {error}") from error
        unread = pc.and_(pc.is_null(read), pc.is_valid(column)).to_numpy(zero_copy_only=False)
        mark(problems, unread, RowProblem.NOT_A_NUMBER)
        return read

    @property
    def text(self) -> str:
        return self.format


def time_format_of(tables: Sequence[tuple[DataTable, str]]) -> str | None:
    """How the times of a log are written, by all its rows, where they are texts of a form of their own."""
    first, name = tables[0]
    column = next((chunk.columns[name] for chunk in first.chunks((name,), lambda: None)), None)
    if column is None or not cells.holds_text(column) or cells.look(cells.some_values(column)) != "dates":
        return None
    with contextlib.suppress(InputError):
        cells.times_of(cells.dense(column), name, first.path)
        return None
    columns = (chunk.columns[name] for table, name in tables for chunk in table.chunks((name,), lambda: None))
    return cells.find_date_form(columns, name, first.path)


def plain_text(value: object) -> str:
    """A value as a user writes it: 1.0 is 1, True is true, None is nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def parse_maps(
    texts: Sequence[str] | Mapping[str, object] | None, variables: Collection[str], more: Collection[str] = ()
) -> dict[str, ValueMap]:
    """The maps by the role they belong to; some roles have maps only in some logs.

    >>> parse_maps(["action: 0=repair,1=run", "wear: *10 -1"], ["wear"])["wear"].text
    '*10 -1'
    """
    maps: dict[str, ValueMap] = {}
    for role, value_map in _entries(texts or ()):
        if role not in variables and role not in (col.STATE, col.ACTION, col.CHOICE, col.EPISODE, *more):
            own = (name for name in col.ROLES if name in (col.STATE, col.ACTION, col.CHOICE))
            known = ", ".join(dict.fromkeys([*variables, *own, *more]))
            raise InputError(
                f"`maps` refers to '{role}', which has no values to map", hint=f"known values: {known}"
            )
        if role in maps:
            raise InputError(f"`maps` gives the values of '{role}' twice")
        maps[role] = value_map
    return maps


def map_entries(texts: Sequence[str] | Mapping[str, object]) -> dict[str, str]:
    """What a user's words say of values, as texts."""
    return {role: value_map.text for role, value_map in _entries(texts)}


def _entries(texts: Sequence[str] | Mapping[str, object]) -> Iterator[tuple[str, ValueMap]]:
    if isinstance(texts, Mapping):
        yield from ((str(role), _value_map(one, f"{role}: {one}")) for role, one in texts.items())
        return
    for text in [texts] if isinstance(texts, str) else texts:
        role, colon, meaning = (part.strip() for part in text.partition(":"))
        if not colon or not meaning:
            raise InputError("a map is a name, a colon and values", Location("`maps`", 1, None, text), HINT)
        yield role, _value_map(meaning, text)


def _value_map(meaning: object, text: str) -> ValueMap:
    if isinstance(meaning, Mapping):
        return ValueMap({plain_text(value): plain_text(name) for value, name in meaning.items()})
    if "=" in str(meaning):
        names: dict[str, str] = {}
        for piece in next(csv.reader([str(meaning)], skipinitialspace=True), []):
            value, equals, name = (part.strip() for part in piece.partition("="))
            if not equals or not name:
                problem = f"{piece.strip()!r} does not give a value its meaning"
                raise InputError(problem, Location("`maps`", 1, None, text), HINT)
            if value in names:
                given = value or "of an empty cell"
                raise InputError(f"the value {given} is given twice", Location("`maps`", 1, None, text))
            names[value] = name
        return ValueMap(names)
    return ValueMap(steps=_steps(str(meaning), text))


def _steps(meaning: str, text: str) -> tuple[tuple[str, Fraction], ...]:
    steps: list[tuple[str, Fraction]] = []
    at = 0
    while at < len(meaning):
        match = _STEP.match(meaning, at)
        try:
            number = Fraction(match[3]) if match and match[3] else Fraction(0)
            if match is None or (match[2] in ("*", "/") and number == 0):
                raise ValueError
        except (ValueError, ZeroDivisionError):
            problem = f"{meaning[at:].strip()!r} is not an arithmetic with a number"
            raise InputError(problem, Location("`maps`", 1, None, text), HINT) from None
        steps.append((match[1] or match[2], number))
        at = match.end()
    return tuple(steps)
