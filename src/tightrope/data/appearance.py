"""What the values of a column look like: dates, numbers with a decimal comma, text. For messages, and for
times that are written in the usual ways.

Dates are read where they can mean one thing only: as ISO writes them (2024-01-31 12:00), with dots in the
German way (31.01.2024 12:00), or by a format that the user gives. 01/02/2024 can mean two days, and is
refused with both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.data.column_names import COUNT, DONE, EPISODE, STEP, TERMINATED, TIME, TRUNCATED
from tightrope.data.value_maps import ValueMap
from tightrope.errors import InputError, Location
from tightrope.io.table.columns import distinct
from tightrope.io.table.data_table import Chunk, DataTable
from tightrope.io.table.problems import Problem, ProblemCodes, mark

SHOWN = 3
"""Values of a column that a message shows."""

LOOKED_AT, MOST_COLUMNS = 2000, 50
"""Rows of a column that nobody asked for, and how many of these are looked at."""

_CLOCK = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?)?"
_LOOKS = (
    ("whole numbers", re.compile(r"[+-]?\d{1,18}")),
    ("true or false", re.compile(r"true|false|yes|no|ja|nein", re.IGNORECASE)),
    ("numbers", re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")),
    ("numbers with a decimal comma", re.compile(r"[+-]?\d{1,3}(?:\.?\d{3})*,\d+|[+-]?\d+,\d+")),
    ("dates", re.compile(rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}{_CLOCK}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}{_CLOCK}")),
    ("dates", re.compile(rf"\d{{1,4}}[/.\-]\d{{1,2}}[/.\-]\d{{1,4}}{_CLOCK}")),
    ("times of day", re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?")),
)
_GERMAN = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y")
_SLASHES = re.compile(rf"(\d{{1,2}})[/-](\d{{1,2}})[/-](\d{{4}}){_CLOCK}")
_ID_WORDS = re.compile(
    r"(^|[_\W])(id|nr|no|unit|pump|pumpe|machine|maschine|device|asset|serial|name|car|robot|patient)([_\W]|$)",
    re.IGNORECASE,
)
_END_WORDS = re.compile(r"end|done|fail|final|last|stop|ausfall|schluss|term", re.IGNORECASE)


def look(values: Iterable[Any]) -> str:
    """What some values look like, in words.

    >>> look(["01.02.2024 08:00", "01.02.2024 09:00"]), look(["0,5", "12,25"]), look(["early", "late"])
    ('dates', 'numbers with a decimal comma', 'text')
    """
    texts = [str(value).strip() for value in values if value is not None and str(value).strip()]
    for words, form in _LOOKS:
        if texts and all(form.fullmatch(text) for text in texts):
            return words
    return "text" if texts else "nothing"


def some_values(column: Any) -> list[Any]:
    """The first values of a column that are there and differ."""
    values, codes = distinct(column.slice(0, LOOKED_AT))
    first = np.unique(codes[codes >= 0], return_index=True)
    order = first[0][np.argsort(first[1])]
    found = [values[code] for code in order.tolist()]
    return [value for value in found if value is not None and str(value).strip()][:SHOWN]


def describe_column(column: Any) -> str:
    """Three values, and what they look like: "'a', 'b', 'c' look like text"."""
    values = some_values(column)
    if not values:
        return "it is empty"
    shown = ", ".join(repr(str(value)) for value in values)
    return f"{shown} {'look' if len(values) > 1 else 'looks'} like {look(values)}"


def times_of(column: Any, name: str, file: str) -> Any:
    """A column of text as numbers or as times; what is neither, or two things, is refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stripped = pc.utf8_trim_whitespace(column)
    for kind in (pa.int64(), pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return pc.cast(stripped, kind)
        except pa.ArrowInvalid:
            continue
    for format in _GERMAN:
        try:
            return pc.strptime(stripped, format, "us")
        except pa.ArrowInvalid:
            continue
    raise _no_time(column, name, file)


def _no_time(column: Any, name: str, file: str) -> InputError:
    here, shown = Location(file), describe_column(column)
    two = next((found for value in some_values(column) if (found := _SLASHES.fullmatch(str(value)))), None)
    if two is not None:
        clock = " %H:%M:%S" if str(two[0]).count(":") == 2 else " %H:%M" if ":" in str(two[0]) else ""
        mark = str(two[0])[len(two[1])]
        forms = [f"%d{mark}%m{mark}%Y{clock}", f"%m{mark}%d{mark}%Y{clock}"]
        return InputError(
            f"column '{name}' holds dates that can be read in two ways: {two[0]} is day {int(two[1])} of "
            f"month {int(two[2])}, or day {int(two[2])} of month {int(two[1])}",
            here,
            f'say which: `columns="time={name}:{forms[0]}"` or `columns="time={name}:{forms[1]}"`',
        )
    return InputError(
        f"column '{name}' holds a text that is no time: {shown}",
        here,
        "write times as numbers, as 2026-01-31 12:00:00 or as 31.01.2026 12:00, or say how they are written: "
        f'`columns="time={name}:%d.%m.%Y %H:%M"`',
    )


@dataclass(frozen=True)
class TimeFormat(ValueMap):
    """Times written in a way that the user gives, in the words of strptime."""

    format: str = ""

    def apply(self, column: Any, problems: ProblemCodes) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        try:
            read = pc.strptime(pc.utf8_trim_whitespace(column), self.format, "us", error_is_null=True)
        except pa.ArrowException as error:
            raise InputError(f"'{self.format}' is no format of times: {error}") from error
        unread = pc.and_(pc.is_null(read), pc.is_valid(column)).to_numpy(zero_copy_only=False)
        mark(problems, unread, Problem.NOT_A_NUMBER)
        return read

    @property
    def text(self) -> str:
        return self.format


def unused_columns(table: DataTable, used: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """What `point_at_unused` says of the first rows of a table; nothing where that says itself what it is."""
    names = [name for name in table.columns if name not in used][:MOST_COLUMNS]
    if not names or table.metadata is not None or COUNT in roles:
        return ()
    try:
        chunk = next(table.chunks(names, lambda: None), None)
    except InputError:
        return ()
    return () if chunk is None else point_at_unused(chunk, roles)


def point_at_unused(chunk: Chunk, roles: Sequence[str]) -> tuple[str, ...]:
    """What columns that nobody uses look like, where the log has no such thing: times, names of episodes,
    ends."""
    found, unused = [], "is not used and looks like"
    for name, column in chunk.columns.items():
        values = some_values(column)
        looks, shown = look(values), ", ".join(str(value) for value in values)
        if looks == "dates" and not {TIME, STEP} & set(roles):
            found.append(f"column '{name}' {unused} times ({shown}): `columns=\"time={name}\"`")
        elif looks in ("whole numbers", "text") and _ID_WORDS.search(name) and EPISODE not in roles:
            several = len(set(distinct(column.slice(0, LOOKED_AT))[0]))
            if 1 < several <= max(min(chunk.rows, LOOKED_AT) // 2, 2):
                said = f'names of episodes ({shown}): `columns="episode={name}"`'
                found.append(f"column '{name}' {unused} {said}")
        elif _is_flag(values) and _END_WORDS.search(name) and not {TERMINATED, TRUNCATED, DONE} & set(roles):
            found.append(f"column '{name}' {unused} ends ({shown}): `columns=\"done={name}\"`")
    return tuple(found)


def _is_flag(values: Sequence[Any]) -> bool:
    return bool(values) and {str(value).strip().lower() for value in values} <= {"0", "1", "true", "false"}
