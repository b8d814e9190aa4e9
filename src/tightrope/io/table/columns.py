"""Columns of a data file as numpy arrays, with a problem code for every value that is none.

Whole numbers may come in any integer type, as floats without a fraction, as booleans, or as text. Every row
gets the code of the first thing that is wrong with it, 0 where nothing is (`RowProblem`).

Dates are read where they can mean one thing only: as ISO writes them (2024-01-31 12:00), with dots in the
German way (31.01.2024 12:00), or by a format that the user gives.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from enum import IntEnum
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import AnyArray, OffsetArray
from tightrope.numerics.late import pa, pc


class ArrowColumn(Protocol):
    """A column of pyarrow, which has no types of its own: an array, in one piece or in several."""

    null_count: int

    def __len__(self) -> int: ...

    def __getitem__(self, place: object) -> Any: ...

    def __getattr__(self, name: str) -> Any: ...


_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_EXACT_FLOATS = 2.0**53
_TRUTH = {"true": 1, "false": 0}


def whole_numbers(column: ArrowColumn, name: str, file: str, problems: ProblemCodes) -> OffsetArray:
    """The column as int64; rows that hold no whole number are marked, and 0 in the result."""
    column = dense(column)
    kind = column.type
    valid = np.ones(len(column), dtype=np.bool_)
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        mark(problems, ~valid, RowProblem.MISSING_VALUE)
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64)
    if holds_text(column):
        return _from_text(column, problems)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        filled = column.fill_null(False if pa.types.is_boolean(kind) else 0) if column.null_count else column
        numbers = read_numbers(filled)
        if numbers.dtype == np.uint64:
            mark(problems, numbers > np.iinfo(np.int64).max, RowProblem.NOT_A_NUMBER)
        return numbers.astype(np.int64, copy=False)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = read_numbers(column.cast(pa.float64()).fill_null(0.0))
        fits = np.abs(values) <= _EXACT_FLOATS
        mark(problems, ~fits, RowProblem.NOT_A_NUMBER)
        usable = np.where(fits, values, 0.0)
        mark(problems, np.rint(usable) != usable, RowProblem.FRACTIONAL)
        return usable.astype(np.int64)
    raise InputError(
        f"column '{name}' has the type {kind}, but whole numbers are needed there", Location(file)
    )


def truth_values(column: ArrowColumn, name: str, file: str, problems: ProblemCodes) -> npt.NDArray[np.bool_]:
    """A column of flags (true/false or 0/1); an empty one means false."""
    flags: npt.NDArray[np.int8] = np.zeros(len(column), dtype=np.int8)
    values = whole_numbers(column, name, file, flags)
    mark(problems, (flags > RowProblem.MISSING_VALUE) | (values < 0) | (values > 1), RowProblem.NOT_A_NUMBER)
    return np.equal(values, 1)


def distinct(column: ArrowColumn) -> tuple[list[Any], OffsetArray]:
    """The distinct values of a column and, for every row, which of them it holds (−1: null).

    Lists and objects are compared by the text that shows them.
    """
    if is_nested(column):
        column = pa.array([None if v is None else str(v) for v in column.to_pylist()], type=pa.string())
    encoded = column if _is_dictionary(column) else column.dictionary_encode()
    codes = encoded.indices.cast(pa.int64())
    codes = read_numbers(codes.fill_null(-1) if codes.null_count else codes)
    return encoded.dictionary.to_pylist(), codes


def holds_text(column: ArrowColumn) -> bool:
    """Whether the values are strings, as names are."""
    kind = column.type.value_type if _is_dictionary(column) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_nested(column: ArrowColumn) -> bool:
    """Whether the values are lists or objects."""
    return bool(column.type.num_fields > 0)


def _is_dictionary(column: ArrowColumn) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def dense(column: ArrowColumn) -> ArrowColumn:
    """The column with its values one by one."""
    return column.dictionary_decode() if _is_dictionary(column) else column


def read_numbers(column: ArrowColumn) -> AnyArray:
    """Numbers as they lie in memory, where they do: Arrow's own `to_numpy` imports pandas for that."""
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if is_number and isinstance(column, pa.Array) and column.null_count == 0 and len(column) > 0:
        kind = np.dtype(column.type.to_pandas_dtype())
        return np.frombuffer(column.buffers()[1], kind, len(column), column.offset * kind.itemsize)
    result: AnyArray = column.to_numpy(zero_copy_only=False)
    return result


def _from_text(column: ArrowColumn, problems: ProblemCodes) -> OffsetArray:
    try:
        if column.null_count == 0:
            return read_numbers(pc.cast(column, pa.int64()))
    except pa.ArrowInvalid:
        pass
    texts, codes = distinct(column)
    flags: ProblemCodes = np.zeros(len(texts) + 1, dtype=np.int8)
    numbers = np.zeros(len(texts) + 1, dtype=np.int64)
    for i, text in enumerate(texts):
        numbers[i], flags[i] = _parse(text.strip())
    np.copyto(problems, flags[codes], where=problems == RowProblem.NONE)
    return numbers[codes]


def _parse(text: str) -> tuple[int, RowProblem]:
    """The whole number that a text stands for, or why it does not stand for any."""
    if not text:
        return 0, RowProblem.MISSING_VALUE
    if _WHOLE.fullmatch(text):
        return int(text), RowProblem.NONE
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()], RowProblem.NONE
    try:
        value = float(text)
    except ValueError:
        return 0, RowProblem.NOT_A_NUMBER
    if not abs(value) <= _EXACT_FLOATS:
        return 0, RowProblem.NOT_A_NUMBER
    return (int(value), RowProblem.NONE) if value.is_integer() else (0, RowProblem.FRACTIONAL)


ProblemCodes: TypeAlias = npt.NDArray[np.int8]
"""One `RowProblem` a row."""


class RowProblem(IntEnum):
    """Why a row of data cannot be counted; `words` is how a report of dropped rows names it."""

    words: str

    def __new__(cls, code: int, words: str = "") -> RowProblem:
        problem = int.__new__(cls, code)
        problem._value_ = code
        problem.words = words
        return problem

    NONE = 0, "nothing"
    MISSING_VALUE = 1, "missing value"
    NOT_A_NUMBER = 2, "not a number"
    FRACTIONAL = 3, "not a whole number"
    UNKNOWN_STATE = 4, "unknown state"
    UNKNOWN_NEXT_STATE = 5, "unknown next state"
    DISABLED_ACTION = 6, "disabled action"
    AMBIGUOUS_ACTION = 7, "ambiguous action"
    CONTRADICTING_ACTION = 8, "action and choice disagree"
    IMPOSSIBLE_TRANSITION = 9, "impossible transition"
    NEGATIVE_COUNT = 10, "negative count"
    NEGATIVE_BATCH = 11, "negative batch number"
    BROKEN_CHAIN = 12, "broken chain"
    MISSING_STEP = 13, "missing step"
    AFTER_THE_END = 14, "step after the episode's end"
    RAGGED_ROW = 15, "wrong number of fields"
    UNMAPPED_VALUE = 16, "value without a meaning"
    REPEATED_STEP = 17, "step given twice"
    AMBIGUOUS_NUMBER = 18, "ambiguous number of an action"
    REPEATED_TIME = 19, "instant given twice"


def mark(problems: ProblemCodes, wrong: npt.NDArray[np.bool_], problem: RowProblem) -> None:
    """Give the rows in `wrong` this code, unless they have one already."""
    problems[wrong & (problems == RowProblem.NONE)] = problem


SHOWN = 3
"""Values of a column that a message shows."""

LOOKED_AT, MOST_COLUMNS = 2000, 50
"""Rows of a column that nobody asked for, and how many of these are looked at."""

_CLOCK = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}|[AaPp][Mm]))?)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_LOOKS = (
    ("whole numbers", re.compile(r"[+-]?\d{1,18}")),
    ("true or false", re.compile(r"true|false|yes|no|ja|nein", re.IGNORECASE)),
    ("numbers", re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")),
    ("numbers with a decimal comma", re.compile(r"[+-]?\d{1,3}(?:\.?\d{3})*,\d+|[+-]?\d+,\d+")),
    ("dates", re.compile(rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}{_CLOCK}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}{_CLOCK}")),
    ("dates", re.compile(rf"\d{{1,4}}[/.\-]\d{{1,2}}[/.\-]\d{{1,4}}{_CLOCK}")),
    (
        "dates",
        re.compile(
            r"(?i:\d{1,4}[ -]MONTH[ -]\d{2,4}|MONTH \d{1,2},? \d{4})(?:[T ].*)?".replace("MONTH", _MONTH)
        ),
    ),
    ("times of day", re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?")),
)
_GERMAN = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y")


def look(values: Iterable[object]) -> str:
    """What some values look like, in words.

    >>> look(["01.02.2024 08:00", "01.02.2024 09:00"]), look(["0,5", "12,25"]), look(["early", "late"])
    ('dates', 'numbers with a decimal comma', 'text')
    """
    texts = [str(value).strip() for value in values if value is not None and str(value).strip()]
    for words, form in _LOOKS:
        if texts and all(form.fullmatch(text) for text in texts):
            return words
    return "text" if texts else "nothing"


def some_values(column: ArrowColumn) -> list[Any]:
    """The first values of a column that are there and differ."""
    values, codes = distinct(column.slice(0, LOOKED_AT))
    first = np.unique(codes[codes >= 0], return_index=True)
    order = first[0][np.argsort(first[1])]
    differing = (values[code] for code in order.tolist())
    return [value for value in differing if value is not None and str(value).strip()][:SHOWN]


def describe_column(column: ArrowColumn) -> str:
    """Three values, and what they look like: "'a', 'b', 'c' look like text"."""
    values = some_values(column)
    if not values:
        return "it is empty"
    shown = ", ".join(repr(str(value)) for value in values)
    return f"{shown} {'look' if len(values) > 1 else 'looks'} like {look(values)}"


def times_of(column: ArrowColumn, name: str, file: str, first_row: int = 1) -> Any:
    """A column of text as numbers or as times; what is neither, or two things, is refused."""
    stripped = pc.utf8_trim_whitespace(column)
    kinds = (pa.int64(), pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
    readings = [partial(pc.cast, stripped, kind) for kind in kinds]
    for read in (*readings, *(partial(pc.strptime, stripped, form, "us") for form in _GERMAN)):
        with suppress(pa.ArrowInvalid):
            return read()
    raise _no_time(column, name, file, first_row)


_DAYS = (
    *("%d %b %Y", "%d %b %y", "%d-%b-%Y", "%d-%b-%y", "%b %d %Y", "%b %d, %Y", "%Y %b %d", "%Y-%b-%d"),
    *("%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d/%m/%y", "%m/%d/%y", "%y/%m/%d", "%d-%m-%y", "%m-%d-%y", "%y-%m-%d", "%d.%m.%y"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M", "T%H:%M:%S")
_FIELDS = {
    **dict.fromkeys(("%d", "%m", "%H", "%I"), r"\d{1,2}"),
    "%M": r"\d{2}",
    "%S": r"\d{2}",
    "%y": r"\d{2}",
    "%Y": r"\d{4}",
    "%p": "(?i:[ap]m)",
    "%b": f"(?i:{_MONTH})",
}
DATE_FORMS = tuple(day + clock for day in _DAYS for clock in _CLOCKS)
"""How dates may be written beside ISO's form and the German one."""


def find_date_form(columns: Iterable[ArrowColumn], name: str, file: str) -> str | None:
    """Find the one of `DATE_FORMS` that fits all texts; refuse two that differ; None if there is none."""
    digests = {form: hashlib.sha256() for form in DATE_FORMS}
    shown = ""
    for column in columns:
        texts = pc.utf8_trim_whitespace(dense(column)).drop_null()
        shown = shown or next((str(value) for value in some_values(texts)), "")
        for form in list(digests):
            pattern = re.sub("%[a-zA-Z]", lambda field: _FIELDS[field[0]], form.replace(".", r"\."))
            read = None
            if pc.all(pc.match_substring_regex(texts, f"^{pattern}$"), min_count=0).as_py():
                read = pc.strptime(texts, form, "s", error_is_null=True)
            if read is None or read.null_count:
                del digests[form]
            else:
                digests[form].update(read_numbers(read.cast("int64")).tobytes())
        if not digests:
            return None
    forms = {digest.digest(): form for form, digest in reversed(digests.items())}
    if len(forms) > 1:
        one, other = [*reversed(forms.values())][:2]
        days = [datetime.strptime(shown, form) for form in (one, other)]
        years = days[0].year != days[1].year
        read_as = [f"day {d.day} of month {d.month}" + (f" of {d.year}" if years else "") for d in days]
        raise InputError(
            f"column '{name}' holds dates that can be read in two ways: {shown} is {', or '.join(read_as)}; "
            f"{one} and {other} both fit all rows",
            Location(file),
            f'say which: `columns="time={name}:{one}"` or `columns="time={name}:{other}"`',
        )
    return next(iter(forms.values())) if shown else None


def _no_time(column: ArrowColumn, name: str, file: str, first_row: int) -> InputError:
    shown = f"column '{name}' holds a text that is not a time: {describe_column(column)}"
    if (odd := _odd_text(column)) is not None:
        place, text, usual = odd
        shown = f"column '{name}', row {first_row + place:,}: {text!r} is not written as the other times "
        shown += f"are, such as {usual!r}"
    forms = "write times as numbers, as 2026-01-31 12:00:00 or as 31.01.2026 12:00, or say how they are"
    return InputError(shown, Location(file), f'{forms} written: `columns="time={name}:%d.%m.%Y %H:%M"`')


def _odd_text(column: ArrowColumn) -> tuple[int, str, str] | None:
    """Find the first text in an unusual format: its place, it, and a usual one, or None."""
    texts = pc.utf8_trim_whitespace(dense(column)).fill_null("")
    there: npt.NDArray[np.bool_] = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    shape = pc.replace_substring_regex(pc.replace_substring_regex(texts, "[0-9]+", "0"), "[A-Za-z]+", "a")
    names, code = distinct(shape)
    number = np.bincount(code[there], minlength=len(names))
    alike: npt.NDArray[np.bool_] = there & (code == int(np.argmax(number)))
    if alike.sum() == there.sum():
        readings = (pc.strptime(texts, form, "s", error_is_null=True) for form in (*_GERMAN, *DATE_FORMS))
        read = [there & one.is_valid().to_numpy(zero_copy_only=False) for one in readings]
        alike = max(read, key=lambda one: int(one.sum()))
    odd = np.flatnonzero(there & ~alike)
    if not len(odd) or 2 * alike.sum() <= there.sum():
        return None
    first = int(odd[0])
    return first, texts[first].as_py(), texts[int(np.argmax(alike))].as_py()
