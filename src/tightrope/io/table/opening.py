"""From what a user calls data to opened tables: files of any kind, or tables that are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.io.table.arrow import InMemory
from tightrope.io.table.data_table import DataTable, LogFile, LogFormat, explain_errors
from tightrope.io.table.files import find_files, log_formats, spool

MOST_IN_MEMORY = 1 << 28
"""Bytes of record batches that are kept; streams that are longer go through a file."""


def open_tables(data: Any, format: str | None = None) -> tuple[DataTable, ...]:
    """Every table that is meant, in the order given."""
    listed = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    if listed and all(isinstance(entry, DataTable) for entry in listed):
        return tuple(listed)
    if listed and all(isinstance(entry, str | Path) for entry in listed):
        return tuple(open_table(file) for file in find_files(listed, format))
    if format_of_object(data) is not None:
        return (_of_memory(data, "the table"),)
    if isinstance(data, Sequence) and data and all(format_of_object(entry) for entry in data):
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


def format_of_object(data: Any) -> LogFormat | None:
    """The format of a table of some library, or of a reader of record batches; None of anything else."""
    return next((form for form in log_formats() if form.accepts(data)), None)


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

    if isinstance(data, pa.RecordBatchReader):
        return _of_batches(data, data.schema)
    form = format_of_object(data)
    assert form is not None
    return _checked(form.hold(data, name))


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
    return _checked(InMemory().hold(pa.Table.from_batches(memory, schema), name))


def _checked(table: DataTable) -> DataTable:
    repeated = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if repeated:
        raise InputError(f"the header names column '{repeated[0]}' more than once", Location(table.path))
    return table
