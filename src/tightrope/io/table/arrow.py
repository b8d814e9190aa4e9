"""Parquet files, Arrow files and tables in memory: columns in their own types.

Parquet says beforehand how many rows its groups hold, so that groups can be counted apart from each other;
tables in memory are cut into groups likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.io.table import data_table
from tightrope.io.table.data_table import (
    KEY,
    Chunk,
    DataTable,
    Metadata,
    OnRaggedRow,
    decode,
    explain_errors,
)
from tightrope.io.table.files import DataFile
from tightrope.io.table.text import flatten

GROUP_ROWS = 1 << 19
"""Rows of a group of a table in memory."""


@dataclass(frozen=True)
class ParquetTable(DataTable):
    """Its groups are Parquet's row groups."""

    file: DataFile | None = None

    def _chunks(
        self, names: Sequence[str], on_ragged_row: OnRaggedRow | None, groups: range | None
    ) -> Iterator[Chunk]:
        import pyarrow.parquet as pq

        assert self.file is not None and self.group_rows is not None
        wanted = range(len(self.group_rows)) if groups is None else groups
        first = 1 + sum(self.group_rows[: wanted.start])
        total = max(sum(self.group_rows), 1)
        share = (self.bytes or 0) / total
        with (
            self.file.open() as raw,
            pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20) as file,
        ):
            for batch in file.iter_batches(
                batch_size=data_table.CHUNK_ROWS,
                row_groups=list(wanted),
                columns=[name.split(".")[0] for name in names],
                use_threads=False,
            ):
                if batch.num_rows:
                    read = int(share * (first + batch.num_rows))
                    yield Chunk(first, batch.num_rows, _columns(batch, names), read)
                first += batch.num_rows


@dataclass(frozen=True)
class ArrowTable(DataTable):
    """An Arrow file (Feather version 2) or stream; what is stored is read batch by batch."""

    file: DataFile | None = None

    def _chunks(
        self, names: Sequence[str], on_ragged_row: OnRaggedRow | None, groups: range | None
    ) -> Iterator[Chunk]:
        assert self.file is not None
        with self.file.open() as raw:
            yield from _in_pieces(_batches(raw), names, raw)


@dataclass(frozen=True)
class MemoryTable(DataTable):
    """A pyarrow table that is in memory already, of pyarrow, pandas or polars; none of it is copied."""

    table: Any = field(default=None, compare=False)

    def _chunks(
        self, names: Sequence[str], on_ragged_row: OnRaggedRow | None, groups: range | None
    ) -> Iterator[Chunk]:
        assert self.group_rows is not None
        before = 0 if groups is None else sum(self.group_rows[: groups.start])
        rows = len(self.table) if groups is None else sum(self.group_rows[groups.start : groups.stop])
        wanted = self.table.select(list(dict.fromkeys(names))).slice(before, rows)
        yield from _in_pieces(wanted.to_batches(max_chunksize=data_table.CHUNK_ROWS), names, first=1 + before)


def open_parquet(file: DataFile) -> ParquetTable:
    """Look at the footer."""
    import pyarrow.parquet as pq

    with explain_errors(file.name):
        if file.size() == 0:
            raise InputError("the file is empty", Location(file.name))
        with file.open() as raw, pq.ParquetFile(raw) as opened:
            schema = opened.schema_arrow
            about = opened.metadata
            rows = tuple(about.row_group(group).num_rows for group in range(about.num_row_groups))
            names = tuple(flatten(schema.empty_table()).column_names)
            metadata = _metadata(schema, file.name)
            return ParquetTable(file.name, names, metadata, file.keys, rows, file.size(), file)


def open_arrow(file: DataFile) -> ArrowTable:
    """Look at the schema."""
    with explain_errors(file.name):
        if file.size() == 0:
            raise InputError("the file is empty", Location(file.name))
        with file.open() as raw:
            schema = _reader(raw).schema
        names = tuple(flatten(schema.empty_table()).column_names)
        metadata = _metadata(schema, file.name)
        return ArrowTable(file.name, names, metadata, file.keys, None, file.size(), file)


def in_memory(table: Any, name: str) -> MemoryTable:
    """A pyarrow table under a name for messages."""
    flat = flatten(table)
    starts = range(0, len(flat), GROUP_ROWS)
    return MemoryTable(
        name,
        tuple(flat.column_names),
        _metadata(table.schema, name),
        group_rows=tuple(min(GROUP_ROWS, len(flat) - start) for start in starts),
        bytes=flat.nbytes,
        table=flat,
    )


def _metadata(schema: Any, name: str) -> Metadata | None:
    stored = (schema.metadata or {}).get(KEY.encode())
    return decode(stored.decode(), name) if stored is not None else None


def _reader(raw: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(raw)
    except pa.ArrowInvalid:
        raw.seek(0)
        return pa.ipc.open_stream(raw)


def _batches(raw: Any) -> Iterator[Any]:
    import pyarrow as pa

    reader = _reader(raw)
    if isinstance(reader, pa.RecordBatchFileReader):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader


def _in_pieces(batches: Any, names: Sequence[str], raw: Any = None, first: int = 1) -> Iterator[Chunk]:
    size = data_table.CHUNK_ROWS
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            piece = batch.slice(start, size)
            read = raw.tell() if raw is not None else first * max(1, batch.nbytes // max(batch.num_rows, 1))
            yield Chunk(first, piece.num_rows, _columns(piece, names), read)
            first += piece.num_rows


def _columns(batch: Any, names: Sequence[str]) -> dict[str, Any]:
    import pyarrow as pa

    if any(pa.types.is_struct(field.type) for field in batch.schema):
        table = flatten(pa.Table.from_batches([batch]))
        return {name: _usual(_whole(table.column(name))) for name in names}
    return {name: _usual(batch.column(name)) for name in names}


def _usual(column: Any) -> Any:
    """Text in the form that all of Arrow's functions take."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _whole(column: Any) -> Any:
    import pyarrow as pa

    joined = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
