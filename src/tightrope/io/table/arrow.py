"""Parquet files, Arrow files and tables in memory: columns in their own types.

Parquet says beforehand how many rows its groups hold, so that groups can be counted apart from each other;
tables in memory are cut into groups likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.io.table import data_table
from tightrope.io.table.data_table import (
    KEY,
    PARQUET,
    DataTable,
    LogFile,
    LogFormat,
    Metadata,
    Piece,
    Ragged,
    decode,
    explain_errors,
)
from tightrope.io.table.text import flatten, whole

GROUP_ROWS = 1 << 19
"""Rows of a group of a table in memory."""


class ParquetTable(DataTable):
    """Its groups are Parquet's row groups."""

    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        import pyarrow.parquet as pq

        assert self.group_rows is not None
        wanted = range(len(self.group_rows)) if groups is None else groups
        done = sum(self.group_rows[: wanted.start])
        share = (self.bytes or 0) / max(sum(self.group_rows), 1)
        with self.source.open() as raw, pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20) as file:
            for batch in file.iter_batches(
                batch_size=data_table.CHUNK_ROWS,
                row_groups=list(wanted),
                columns=[name.split(".")[0] for name in names],
                use_threads=False,
            ):
                done += batch.num_rows
                yield columns_of(batch, names), batch.num_rows, int(share * done)


class ArrowTable(DataTable):
    """An Arrow file (Feather version 2) or stream; what is stored is read batch by batch."""

    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        import pyarrow as pa

        with self.source.open() as raw:
            reader = _reader(raw)
            batches = reader
            if isinstance(reader, pa.RecordBatchFileReader):
                batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            for batch in batches:
                for start in range(0, batch.num_rows, data_table.CHUNK_ROWS):
                    piece = batch.slice(start, data_table.CHUNK_ROWS)
                    yield columns_of(piece, names), piece.num_rows, raw.tell()


@dataclass(frozen=True)
class MemoryTable(DataTable):
    """A pyarrow table that is in memory already, of pyarrow, pandas or polars; none of it is copied."""

    table: Any = field(default=None, compare=False)

    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        assert self.group_rows is not None
        wanted = self.table.select(list(dict.fromkeys(names)))
        done = 0
        if groups is not None:
            done = sum(self.group_rows[: groups.start])
            wanted = wanted.slice(done, sum(self.group_rows[groups.start : groups.stop]))
        for batch in wanted.to_batches(max_chunksize=data_table.CHUNK_ROWS):
            done += batch.num_rows
            yield columns_of(batch, names), batch.num_rows, done * (batch.nbytes // max(batch.num_rows, 1))


class Parquet(LogFormat):
    """Columns in groups of rows; the footer says how many each has."""

    name, suffixes, marks = "Parquet", PARQUET, (b"PAR1",)

    def open(self, file: LogFile) -> ParquetTable:
        import pyarrow.parquet as pq

        with _opened(file) as raw, pq.ParquetFile(raw) as opened:
            about = opened.metadata
            rows = tuple(about.row_group(group).num_rows for group in range(about.num_row_groups))
            return ParquetTable(*_about(opened.schema_arrow, file.name), file.keys, rows, file.size(), file)

    def has_rows(self, file: LogFile) -> bool:
        return any(self.open(file).group_rows or ())


class Arrow(LogFormat):
    """Arrow's files and streams."""

    name, suffixes = "Arrow", (".arrow", ".feather", ".ipc")
    marks = (b"ARROW1", b"\xff\xff\xff\xff")

    def open(self, file: LogFile) -> ArrowTable:
        with _opened(file) as raw:
            schema = _reader(raw).schema
            return ArrowTable(*_about(schema, file.name), file.keys, None, file.size(), file)


@contextmanager
def _opened(file: LogFile) -> Iterator[Any]:
    with explain_errors(file.name):
        if file.size() == 0:
            raise InputError("the file is empty", Location(file.name))
        with file.open() as raw:
            yield raw


def in_memory(table: Any, name: str) -> MemoryTable:
    """A pyarrow table under a name for messages."""
    flat = flatten(table)
    starts = range(0, len(flat), GROUP_ROWS)
    groups = tuple(min(GROUP_ROWS, len(flat) - start) for start in starts)
    return MemoryTable(*_about(table.schema, name), group_rows=groups, bytes=flat.nbytes, table=flat)


def _about(schema: Any, name: str) -> tuple[str, tuple[str, ...], Metadata | None]:
    """The name, the columns and the metadata of a table."""
    import pyarrow as pa

    stored = (schema.metadata or {}).get(KEY.encode())
    metadata = decode(stored.decode(), name) if stored is not None else None
    nothing = pa.Table.from_batches([], schema)  # `schema.empty_table()` would import pandas
    return name, tuple(flatten(nothing).column_names), metadata


def _reader(raw: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(raw)
    except pa.ArrowInvalid:
        raw.seek(0)
        return pa.ipc.open_stream(raw)


class _Held(MemoryTable):
    """One group of rows of a table, by its place there."""

    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        return super()._pieces(names, ragged, None)


def held_table(table: DataTable, batches: Iterable[Any]) -> MemoryTable:
    """A table of which only one group of rows is here."""
    import pyarrow as pa

    about = (table.path, table.columns, table.metadata, table.keys, table.group_rows, table.bytes, None)
    return _Held(*about, pa.Table.from_batches(list(batches)))


def columns_of(batch: Any, names: Sequence[str]) -> dict[str, Any]:
    """The named columns of a record batch."""
    import pyarrow as pa

    if any(pa.types.is_struct(field.type) for field in batch.schema):
        table = flatten(pa.Table.from_batches([batch]))
        return {name: _usual(whole(table.column(name))) for name in names}
    return {name: _usual(batch.column(name)) for name in names}


def _usual(column: Any) -> Any:
    """Text in the form that all of Arrow's functions take."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
