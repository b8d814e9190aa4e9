"""From what a user calls data to opened tables: files of any kind, or tables that are in memory.

Anything that speaks Arrow's C interface is a table: those of pandas, polars, pyarrow and DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.io.table.arrow import in_memory
from tightrope.io.table.data_table import DataTable, LogFile, explain_errors
from tightrope.io.table.files import find_files, spool
from tightrope.io.table.spark import is_frame, open_frame

MOST_IN_MEMORY = 1 << 28
"""Bytes of record batches that are kept; streams that are longer go through a file."""


def open_tables(data: Any, format: str | None = None) -> tuple[DataTable, ...]:
    """Every table that is meant, in the order given."""
    listed = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    if listed and all(isinstance(entry, DataTable) for entry in listed):
        return tuple(listed)
    if listed and all(isinstance(entry, str | Path) for entry in listed):
        return tuple(open_table(file) for file in find_files(listed, format))
    if is_table(data):
        return (_of_memory(data, "the table"),)
    if isinstance(data, Sequence) and data and all(is_table(entry) for entry in data):
        return tuple(_of_memory(entry, f"table {number}") for number, entry in enumerate(data))
    if isinstance(data, Iterator):
        import pyarrow as pa

        batches = (pa.record_batch(batch) for batch in data)
        first = next(batches)
        return (_of_batches(chain([first], batches), first.schema),)
    raise InputError(
        f"data of the type {type(data).__name__} cannot be read",
        hint="give paths or patterns, a table (pandas, polars, pyarrow) or an iterable of episodes",
    )


def is_table(data: Any) -> bool:
    """Whether it is a table of some library, or a reader of record batches."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__") or is_frame(data)


def open_table(file: LogFile) -> DataTable:
    """Look at a file's header and metadata."""
    opened = file.format.open(file)
    if opened is None:
        with explain_errors(file.name):
            table = _of_batches(file.format.batches(file.path), None, file.name)
        return table if table.file is not None else replace(table, file=file, keys=file.keys)
    return _checked(opened)


def _of_memory(data: Any, name: str) -> DataTable:
    import pyarrow as pa

    if is_frame(data):
        return _checked(open_frame(data, name))
    if isinstance(data, pa.RecordBatchReader):
        return _of_batches(data, data.schema)
    if isinstance(data, pa.Table):
        table = data
    elif hasattr(data, "__arrow_c_stream__"):
        table = _stream(data, name)
    else:
        table = pa.Table.from_batches([pa.record_batch(data)])
    return _checked(in_memory(table, name))


def _of_batches(batches: Iterable[Any], schema: Any, name: str = "the record batches") -> DataTable:
    """Batches that can be read only once: kept in memory, or in a file where they are many."""
    import pyarrow as pa

    memory: list[Any] = []
    coming, size = iter(batches), 0
    for batch in coming:
        memory.append(batch)
        size += batch.nbytes
        if size > MOST_IN_MEMORY:
            return open_table(spool(chain(memory, coming), schema or batch.schema, name))
    if not memory and schema is None:
        raise InputError("the file is empty", Location(name))
    return _checked(in_memory(pa.Table.from_batches(memory, schema), name))


def _stream(data: Any, name: str) -> Any:
    """The table of another library, through Arrow's C interface."""
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        words = [str(part) for part in error.args] or [type(error).__name__]
        raise InputError(
            f"the table cannot be read as columns of one type each: {'; '.join(words).splitlines()[0]}",
            Location(name),
            "leave out columns that are not needed, or make the values of a column one type",
        ) from error


def _checked(table: DataTable) -> DataTable:
    repeated = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if repeated:
        raise InputError(f"the header names column '{repeated[0]}' more than once", Location(table.path))
    return table
