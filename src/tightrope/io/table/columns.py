"""Columns of a data file as numpy arrays, with a problem code for every value that is none.

Whole numbers may come in any integer type, as floats without a fraction (what spreadsheets and data frames
make of integer columns with gaps), as booleans where the model's variable is one, or as text.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.io.table.problems import Problem, ProblemCodes, mark
from tightrope.numerics.arrays import OffsetArray

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_EXACT_FLOATS = 2.0**53
_TRUTH = {"true": 1, "false": 0}


def whole_numbers(column: Any, name: str, file: str, problems: ProblemCodes) -> OffsetArray:
    """The column as int64; rows that hold no whole number are marked, and 0 in the result."""
    import pyarrow as pa

    column = _dense(column)
    kind = column.type
    valid = np.ones(len(column), dtype=np.bool_)
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        mark(problems, ~valid, Problem.MISSING_VALUE)
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64)
    if _is_text(kind):
        return _from_text(column, problems)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        filled = column.fill_null(False if pa.types.is_boolean(kind) else 0) if column.null_count else column
        return _read(filled).astype(np.int64, copy=False)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _from_floats(_read(column.cast(pa.float64()).fill_null(0.0)), problems)
    raise InputError(
        f"column '{name}' has the type {kind}, but whole numbers are needed there",
        Location(file),
    )


def truth_values(column: Any, name: str, file: str, problems: ProblemCodes) -> npt.NDArray[np.bool_]:
    """A column of flags (true/false or 0/1); an empty one means false."""
    flags: npt.NDArray[np.int8] = np.zeros(len(column), dtype=np.int8)
    values = whole_numbers(column, name, file, flags)
    mark(problems, (flags > Problem.MISSING_VALUE) | (values < 0) | (values > 1), Problem.NOT_A_NUMBER)
    result: npt.NDArray[np.bool_] = values == 1
    return result


def distinct(column: Any) -> tuple[list[Any], OffsetArray]:
    """The distinct values of a column and, for every row, which of them it holds (−1: null).

    Lists and objects are compared by the text that shows them.
    """
    import pyarrow as pa

    if pa.types.is_nested(column.type) and not _is_dictionary(column):
        column = pa.array([None if v is None else str(v) for v in column.to_pylist()], type=pa.string())
    encoded = column if _is_dictionary(column) else column.dictionary_encode()
    codes = _read(encoded.indices.cast(pa.int64()).fill_null(-1))
    return encoded.dictionary.to_pylist(), codes


def holds_text(column: Any) -> bool:
    """Whether the values are strings, as names are."""
    return _is_text(column.type.value_type if _is_dictionary(column) else column.type)


def _is_dictionary(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _dense(column: Any) -> Any:
    return column.dictionary_decode() if _is_dictionary(column) else column


def _read(column: Any) -> npt.NDArray[Any]:
    result: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return result


def _from_text(column: Any, problems: ProblemCodes) -> OffsetArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if column.null_count == 0:
            return _read(pc.cast(column, pa.int64()))
    except pa.ArrowInvalid:
        pass
    texts, codes = distinct(column)
    flags: ProblemCodes = np.zeros(len(texts) + 1, dtype=np.int8)
    numbers = np.zeros(len(texts) + 1, dtype=np.int64)
    for i, text in enumerate(texts):
        numbers[i], flags[i] = _parse(text.strip())
    np.copyto(problems, flags[codes], where=problems == Problem.NONE)
    return numbers[codes]


def _parse(text: str) -> tuple[int, Problem]:
    """The whole number that a text stands for, or why it does not stand for any."""
    if not text:
        return 0, Problem.MISSING_VALUE
    if _WHOLE.fullmatch(text):
        return int(text), Problem.NONE
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()], Problem.NONE
    try:
        value = float(text)
    except ValueError:
        return 0, Problem.NOT_A_NUMBER
    if not abs(value) <= _EXACT_FLOATS:
        return 0, Problem.NOT_A_NUMBER
    return (int(value), Problem.NONE) if value.is_integer() else (0, Problem.FRACTIONAL)


def _from_floats(values: npt.NDArray[np.float64], problems: ProblemCodes) -> OffsetArray:
    finite = np.isfinite(values)
    mark(problems, ~finite, Problem.NOT_A_NUMBER)
    usable = np.where(finite, values, 0.0)
    mark(problems, np.rint(usable) != usable, Problem.FRACTIONAL)
    mark(problems, np.abs(usable) > _EXACT_FLOATS, Problem.NOT_A_NUMBER)
    usable[np.abs(usable) > _EXACT_FLOATS] = 0.0
    return usable.astype(np.int64)
