"""Columns of a log without a role, and names of episodes: codes while rows are read, labels after.

The code of a number is the number (`rising_integers`), of other values 64 bits of their digest, of an empty
cell −1, so parts agree. Labels are numbered by first appearance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.data.columns import EPISODE, RowColumns, unused_names
from tightrope.data.costs import as_number
from tightrope.data.read_plan import ReadPlan
from tightrope.data.row_sequence import Tick
from tightrope.data.rows import digest, plain_text, rising_integers
from tightrope.io.table.columns import ArrowColumn, dense, distinct, holds_text, some_values
from tightrope.numerics.arrays import AnyArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.late import pa, pc
from tightrope.numerics.record import Record, freeze_fields

MOST_LABELS = 1 << 16
MOST_COLUMNS = 64

BLANK = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""How an empty cell may be written; of names of episodes only the first."""

_ZEROS = re.compile(r"[+-]?0[0-9]")
"""How texts begin that are names rather than numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class LogColumn(Record):
    """A column without a role: which of its `labels` each row holds (−1: none), and the numbers they show.

    `is_known`: it was written before the outcome of its row; of columns of files the user states that.
    """

    code: IndexArray
    labels: tuple[str, ...]
    values: FloatArray | None = None
    is_known: bool = True

    def __post_init__(self) -> None:
        freeze_fields(self)

    def select(self, rows: AnyArray) -> LogColumn:
        """Some rows of it, with labels numbered by first appearance there."""
        seen, code = by_appearance(self.code[rows])
        labels = tuple(self.labels[one] for one in seen.tolist())
        values = None if self.values is None else self.values[rows]
        return replace(self, code=code, labels=labels, values=values)

    def joined(self, later: LogColumn) -> LogColumn:
        """These rows, then the later ones."""
        number = {label: i for i, label in enumerate(self.labels)}
        for label in later.labels:
            if len(number) < MOST_LABELS:
                number.setdefault(label, len(number))
        places = np.array([*(number.get(label, -1) for label in later.labels), -1], dtype=np.int32)
        values = None
        if self.values is not None and later.values is not None:
            values = np.concatenate([self.values, later.values])
        code = np.concatenate([self.code, places[later.code]])
        return LogColumn(code, tuple(number), values, self.is_known and later.is_known)


def by_appearance(code: AnyArray) -> tuple[AnyArray, IndexArray]:
    """The values of an array by first appearance, and the number of each entry's; −1 is none, and stays."""
    seen, first, which = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    order = order[seen[order] != -1]
    number = np.full(len(seen), -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return seen[order], number[which]


class ColumnCodes:
    """Makes codes of the values of one column, as they come."""

    def __init__(self, blank: frozenset[str] = BLANK, is_known: bool = True, is_lagged: bool = False):
        self.blank, self.is_known, self.is_lagged = blank, is_known, is_lagged
        self.labels: dict[int, str] = {}

    def codes(self, column: ArrowColumn) -> OffsetArray:
        """The codes of a chunk."""
        numbers = _as_numbers(dense(column), self.blank)
        if numbers is None:
            listed, place = distinct(column)
            return np.array([*map(self._code, listed), -1], dtype=np.int64)[place]
        return np.where(np.isnan(numbers), -1, rising_integers(numbers))

    def _code(self, value: object) -> int:
        text = plain_text(value)
        if text.lower() in self.blank:
            return -1
        number = as_number(text)
        if number is not None and abs(number) < 2.0**53 and not _ZEROS.match(text):
            return int(rising_integers(np.array([number]))[0])
        code = digest(text)
        if code in self.labels or len(self.labels) < MOST_LABELS:
            self.labels[code] = text
            return code
        return -1

    def column(self, code: OffsetArray) -> LogColumn:
        """What rows with these codes hold."""
        seen, place = by_appearance(code)
        numbers = Tick(1.0, is_float=True).clock(seen).copy()
        texts = [(i, self.labels[one]) for i, one in enumerate(seen.tolist()) if one in self.labels]
        values: FloatArray | None = None
        shown = {i: as_number(text) for i, text in texts}
        if None not in shown.values():
            numbers[list(shown)] = list(shown.values())
            values = np.append(numbers, np.nan)[place]
        labels = [plain_text(number) for number in numbers[:MOST_LABELS].tolist()]
        for i, text in texts:
            if i < MOST_LABELS:
                labels[i] = text
        return LogColumn(np.where(place < MOST_LABELS, place, -1), tuple(labels), values, self.is_known)


def _as_numbers(column: ArrowColumn, blank: frozenset[str]) -> FloatArray | None:
    """A column as numbers, NaN where a cell is empty; None where some value is none, or not exact."""
    kind = column.type
    if holds_text(column):
        if any(as_number(text) is None and text.lower() not in blank for text in some_values(column)):
            return None
        column = pc.utf8_trim_whitespace(column)
        is_blank = pc.is_in(pc.utf8_lower(column), pa.array(sorted(blank), kind))
        column = pc.if_else(is_blank, None, column)
        if pc.any(pc.match_substring_regex(column, f"^{_ZEROS.pattern}")).as_py():
            return None
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    try:
        numbers: FloatArray = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return None if np.any(np.abs(numbers) >= 2.0**53) else numbers


def free_columns(plan: ReadPlan, for_tables: bool = False) -> dict[str, ColumnCodes]:
    """What makes codes of the columns of tables that have no role, and of the names of episodes; for tables
    of counts without these, and with the value of the row before, where a value may be written late."""
    columns, known, ignored = plan.columns, plan.options.names("known"), plan.options.names("ignored")
    free = dict.fromkeys(
        name
        for table, own in zip(plan.tables, columns, strict=True)
        for name in (() if table.metadata is not None else unused_names(table, own.names))
    )
    names = {own.roles[EPISODE] for own in columns if EPISODE in own.roles}
    wanted = dict.fromkeys([name for name in free if name not in ignored][:MOST_COLUMNS], BLANK)
    wanted |= {} if for_tables else {name: frozenset({""}) for name in sorted(names)}
    return {n: ColumnCodes(blank, n in known, for_tables and n not in known) for n, blank in wanted.items()}


def columns_of(
    columns: Sequence[RowColumns],
    beside: Mapping[str, ColumnCodes],
    held: Mapping[str, AnyArray],
    episodes: int,
) -> dict[str, LogColumn]:
    """What columns without a role say; names of episodes only where some have several of so many episodes."""
    names = {own.roles.get(EPISODE) for own in columns}
    result = {name: codes.column(held[f":{name}"]) for name, codes in beside.items()}
    return {n: one for n, one in result.items() if n not in names or len(one.labels) < episodes}
