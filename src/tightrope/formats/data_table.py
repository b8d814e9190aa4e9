"""CSV and Parquet tables as a stream of chunks: never more than a few megabytes in memory at once.

CSV columns arrive as text and Parquet columns in their own types; what a column means is decided by
whoever asked for it (`tightrope.formats.data_columns`). Everything about the file as such is checked here:
its kind, header, completeness and, for Parquet, that every page can be decoded.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.formats.data_metadata import COMMENT, CSV_PREFIX, KEY, Metadata, decode

CHUNK_ROWS = 1 << 17
"""Rows of a Parquet chunk."""

CHUNK_BYTES = 1 << 20
"""Bytes of a CSV chunk. The reader queues some forty chunks ahead, so memory is about forty times this."""

PARQUET_SUFFIXES = (".parquet", ".pq")
CSV_SUFFIXES = (".csv",)


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows; `first_row` counts the rows of data from 1. Columns are pyarrow arrays."""

    first_row: int
    rows: int
    columns: dict[str, Any]


@dataclass(frozen=True)
class DataTable:
    """An opened file: its columns and metadata; `chunks` streams what is in them.

    `header_lines` is the number of lines before the first row of a CSV file, None for Parquet.
    """

    path: str
    columns: tuple[str, ...]
    metadata: Metadata | None
    header_lines: int | None

    def location(self, row: int) -> Location:
        """Where row number `row` of the data is: its line in a CSV file; Parquet has no lines.

        Looks through the file once more: blank lines are no rows, but they are lines.
        """
        if self.header_lines is None:
            return Location(self.path)
        with open(self.path, encoding="utf-8-sig", errors="replace") as file:
            filled = (
                (n, line) for n, line in enumerate(file, start=1) if line.strip() or n <= self.header_lines
            )
            for number, line in itertools.islice(filled, self.header_lines + row - 1, None):
                return Location(self.path, number, None, line)
        return Location(self.path)

    def chunks(
        self, names: Sequence[str], on_ragged_row: Callable[[], None] | None = None
    ) -> Iterator[Chunk]:
        """The named columns, chunk by chunk.

        A CSV row with too few or too many fields is an error, or dropped after a call of
        `on_ragged_row` where there is one.
        """
        with _explained(self.path):
            if self.header_lines is None:
                yield from _parquet_chunks(self.path, names)
            else:
                yield from _csv_chunks(self, names, on_ragged_row)


def is_parquet(path: str | Path) -> bool:
    """Whether the name says Parquet (`.parquet`, `.pq`) rather than CSV (`.csv`)."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return True
    if suffix in CSV_SUFFIXES:
        return False
    raise InputError(
        f"a data file ends in {', '.join(CSV_SUFFIXES + PARQUET_SUFFIXES)}, not {suffix or 'nothing'!r}",
        Location(str(path)),
    )


def open_table(path: str | Path) -> DataTable:
    """Look at a file's header and metadata."""
    table = _open_parquet(str(path)) if is_parquet(path) else _open_csv(str(path))
    repeated = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if repeated:
        raise InputError(f"the header names column '{repeated[0]}' more than once", Location(table.path))
    return table


def _open_parquet(path: str) -> DataTable:
    import pyarrow.parquet as pq

    with _explained(path):
        if Path(path).stat().st_size == 0:
            raise InputError("the file is empty", Location(path))
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            stored = (schema.metadata or {}).get(KEY.encode())
            metadata = decode(stored.decode(), path) if stored is not None else None
            return DataTable(path, tuple(schema.names), metadata, None)


def _open_csv(path: str) -> DataTable:
    metadata = None
    with _explained(path), open(path, encoding="utf-8-sig", newline="") as file:
        for lines, line in enumerate(file, start=1):
            if line.startswith(CSV_PREFIX):
                metadata = decode(line[len(CSV_PREFIX) :], path)
            elif not line.startswith(COMMENT):
                header = next(csv.reader([line.rstrip("\r\n")]), [])
                columns = tuple(name.strip() for name in header)
                if not any(columns):
                    raise InputError("the header names no columns", Location(path, lines))
                return DataTable(path, columns, metadata, lines)
    raise InputError("the file is empty", Location(path))


def _parquet_chunks(path: str, names: Sequence[str]) -> Iterator[Chunk]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        first = 1
        for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=list(names), use_threads=False):
            if batch.num_rows:
                yield Chunk(first, batch.num_rows, {name: batch.column(name) for name in names})
            first += batch.num_rows


def _csv_chunks(
    table: DataTable, names: Sequence[str], on_ragged_row: Callable[[], None] | None
) -> Iterator[Chunk]:
    import pyarrow as pa

    assert table.header_lines is not None
    if not _has_rows(table.path, table.header_lines):
        return

    refused: list[Any] = []

    def ragged(row: Any) -> str:
        if on_ragged_row is not None:
            on_ragged_row()
            return "skip"
        refused.append(row)
        return "error"

    try:
        yield from _csv_stream(table, names, ragged)
    except pa.ArrowInvalid as error:
        if not refused:
            raise
        row = refused[0]
        raise InputError(
            f"a row has {row.actual_columns} fields, but the header has {row.expected_columns}",
            table.location(row.number - table.header_lines) if row.number else Location(table.path),
            "a row cut off at the end is the sign of a truncated file",
        ) from error


def _csv_stream(table: DataTable, names: Sequence[str], ragged: Callable[[Any], str]) -> Iterator[Chunk]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    reader = arrow_csv.open_csv(
        table.path,
        read_options=arrow_csv.ReadOptions(
            use_threads=False,
            block_size=CHUNK_BYTES,
            skip_rows=table.header_lines,
            column_names=list(table.columns),
        ),
        parse_options=arrow_csv.ParseOptions(invalid_row_handler=ragged),
        convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in table.columns}, include_columns=list(names)
        ),
    )
    first = 1
    with reader:
        for batch in reader:
            if batch.num_rows:
                yield Chunk(first, batch.num_rows, {name: batch.column(name) for name in names})
            first += batch.num_rows


def _has_rows(path: str, header_lines: int) -> bool:
    with open(path, "rb") as file:
        for _ in range(header_lines):
            file.readline()
        return any(line.strip() for line in iter(file.readline, b""))


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Say of pyarrow's and the operating system's errors which file they are about."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error.reason}", Location(path)) from error
    except pa.ArrowException as error:
        raise InputError(
            f"the file cannot be read: {_first_line(error)}",
            Location(path),
            "a truncated or damaged file, or one that is not what its name says",
        ) from error
    except OSError as error:
        reason = error.strerror or f"{_first_line(error)} (a truncated or damaged file)"
        raise InputError(f"the file cannot be read: {reason}", Location(path)) from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
