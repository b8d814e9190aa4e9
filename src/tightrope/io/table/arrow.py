"""Parquet files, Arrow files and tables in memory: columns in their own types.

Parquet says beforehand how many rows its groups hold, so that groups can be counted apart from each other;
tables in memory are cut into groups likewise. Anything that speaks Arrow's C interface is a table in memory:
those of pandas, polars, pyarrow and DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO

from tightrope.errors import InputError, Location
from tightrope.io.table import data_table
from tightrope.io.table.columns import ArrowColumn
from tightrope.io.table.data_table import DataTable, LogFile, LogFormat, Metadata, Piece, Ragged
from tightrope.io.table.text import flatten, whole
from tightrope.numerics.late import pa, pq

GROUP_ROWS = 1 << 19
"""Rows of a group of a table in memory."""


class Parquet(LogFormat):
    """Columns in groups of rows; the footer says how many each has."""

    name, suffixes, marks = "Parquet", data_table.PARQUET, (b"PAR1",)

    def open(self, file: LogFile) -> DataTable:
        with _opened(file) as raw, pq.ParquetFile(raw) as opened:
            about = opened.metadata
            rows = tuple(about.row_group(group).num_rows for group in range(about.num_row_groups))
            return DataTable.of(file, *_about(opened.schema_arrow, file.name), group_rows=rows)

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        assert table.group_rows is not None
        wanted = range(len(table.group_rows)) if groups is None else groups
        done = sum(table.group_rows[: wanted.start])
        with table.source.open() as raw, pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20) as file:
            for batch in file.iter_batches(
                batch_size=data_table.CHUNK_ROWS,
                row_groups=list(wanted),
                columns=[name.split(".")[0] for name in names],
                use_threads=False,
            ):
                done += batch.num_rows
                yield columns_of(batch, names), batch.num_rows, table.bytes_of(done)


class Arrow(LogFormat):
    """Arrow's files (Feather version 2) and streams; what is stored is read batch by batch."""

    name, suffixes = "Arrow", (".arrow", ".feather", ".ipc")
    marks = (b"ARROW1", b"\xff\xff\xff\xff")

    def open(self, file: LogFile) -> DataTable:
        with _opened(file) as raw:
            return DataTable.of(file, *_about(_reader(raw).schema, file.name))

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        with table.source.open() as raw:
            reader = _reader(raw)
            batches = reader
            if isinstance(reader, pa.RecordBatchFileReader):
                batches = map(reader.get_batch, range(reader.num_record_batches))
            for batch in batches:
                for start in range(0, batch.num_rows, data_table.CHUNK_ROWS):
                    piece = batch.slice(start, data_table.CHUNK_ROWS)
                    yield columns_of(piece, names), piece.num_rows, raw.tell()


class InMemory(LogFormat):
    """Tables of pyarrow, pandas, polars and others, none of which is copied."""

    name = "table in memory"

    def accepts(self, data: object) -> bool:
        return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")

    def hold(self, data: object, name: str, metadata: Metadata | None = None) -> DataTable:
        try:
            if hasattr(data, "__arrow_c_stream__"):
                table = pa.RecordBatchReader.from_stream(data).read_all()
            else:
                table = pa.Table.from_batches([pa.record_batch(data)])
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            words = "; ".join(str(part) for part in error.args) or type(error).__name__
            raise InputError(
                f"the table cannot be read as columns of one type each: {words.splitlines()[0]}",
                Location(name),
                "leave out columns that are not needed, or make the values of a column one type",
            ) from error
        flat = flatten(table)
        starts = range(0, len(flat), GROUP_ROWS)
        groups = tuple(min(GROUP_ROWS, len(flat) - start) for start in starts)
        columns, stored = _about(table.schema, name)
        about = (name, columns, metadata or stored, self)
        return DataTable(*about, group_rows=groups, bytes=flat.nbytes, content=flat)

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        assert table.group_rows is not None
        wanted, done = table.content.select(list(dict.fromkeys(names))), 0
        if groups is not None:
            done = sum(table.group_rows[: groups.start])
            wanted = wanted.slice(done, sum(table.group_rows[groups.start : groups.stop]))
        for batch in wanted.to_batches(max_chunksize=data_table.CHUNK_ROWS):
            done += batch.num_rows
            yield columns_of(batch, names), batch.num_rows, done * (batch.nbytes // max(batch.num_rows, 1))


class _Held(InMemory):
    """One group of rows of a table, by its place there."""

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        return super().pieces(table, names, ragged, None)


def held_table(table: DataTable, batches: Iterable[object]) -> DataTable:
    """A table of which only one group of rows is here."""
    return replace(table, format=_Held(), content=pa.Table.from_batches(list(batches)))


@contextmanager
def _opened(file: LogFile) -> Iterator[BinaryIO]:
    with data_table.explain_errors(file.name):
        if file.size() == 0:
            raise InputError("the file is empty", Location(file.name))
        with file.open() as raw:
            yield raw


def _about(schema: Any, name: str) -> tuple[tuple[str, ...], Metadata | None]:
    """The columns and the metadata of a table."""
    stored = (schema.metadata or {}).get(data_table.KEY.encode())
    metadata = data_table.decode(stored.decode(), name) if stored is not None else None
    nothing = pa.Table.from_batches([], schema)  # `schema.empty_table()` would import pandas
    return tuple(flatten(nothing).column_names), metadata


def _reader(raw: BinaryIO) -> Any:
    try:
        return pa.ipc.open_file(raw)
    except pa.ArrowInvalid:
        raw.seek(0)
        return pa.ipc.open_stream(raw)


def columns_of(batch: Any, names: Sequence[str]) -> dict[str, ArrowColumn]:
    """The named columns of a record batch."""
    if any(pa.types.is_struct(field.type) for field in batch.schema):
        table = flatten(pa.Table.from_batches([batch]))
        return {name: _usual(whole(table.column(name))) for name in names}
    return {name: _usual(batch.column(name)) for name in names}


def _usual(column: ArrowColumn) -> ArrowColumn:
    """Text in the form that all of Arrow's functions take."""
    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
