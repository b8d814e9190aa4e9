"""CSV files as tables: plain or compressed, values as text, separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.io.table import data_table
from tightrope.io.table.data_table import (
    COMMENT,
    CSV_PREFIX,
    Chunk,
    DataTable,
    OnRaggedRow,
    decode,
    explain_errors,
)
from tightrope.io.table.files import DataFile

SEPARATORS = (",", ";", "\t")

MOST_LINE = 1 << 20
"""Bytes of a line of text: no row is longer."""


@dataclass(frozen=True)
class CsvTable(DataTable):
    """`header_lines` is the number of lines before the first row."""

    file: DataFile | None = None
    header_lines: int = 1
    separator: str = ","

    @property
    def _source(self) -> DataFile:
        assert self.file is not None
        return self.file

    def location(self, row: int) -> Location:
        """The line of a row. Looks through the file once more: blank lines are lines, but no rows."""
        with text_lines(self._source, errors="replace") as file:
            filled = (
                (n, line) for n, line in enumerate(file, start=1) if line.strip() or n <= self.header_lines
            )
            for number, line in itertools.islice(filled, self.header_lines + row - 1, None):
                return Location(self.path, number, None, line)
        return Location(self.path)

    def _chunks(
        self, names: Sequence[str], on_ragged_row: OnRaggedRow | None, groups: range | None
    ) -> Iterator[Chunk]:
        import pyarrow as pa

        if not self._has_rows():
            return
        refused: list[Any] = []

        def ragged(row: Any) -> str:
            if on_ragged_row is not None:
                on_ragged_row()
                return "skip"
            refused.append(row)
            return "error"

        try:
            yield from self._stream(names, ragged)
        except pa.ArrowInvalid as error:
            if not refused and "straddl" in str(error):
                raise too_long(self.path) from error
            if not refused:
                raise
            row = refused[0]
            raise InputError(
                f"a row has {row.actual_columns} fields, but the header has {row.expected_columns}",
                self.location(row.number - self.header_lines) if row.number else Location(self.path),
                "a row cut off at the end is the sign of a truncated file"
                if row.actual_columns < row.expected_columns
                else "a value that holds a separator stands in double quotes",
            ) from error

    def _stream(self, names: Sequence[str], ragged: Callable[[Any], str]) -> Iterator[Chunk]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        raw = self._source.open()
        packed = self._source.compression
        stream = raw if packed is None else pa.CompressedInputStream(raw, packed)
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=data_table.CHUNK_BYTES,
                skip_rows=self.header_lines,
                column_names=list(self.columns),
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.separator, invalid_row_handler=ragged),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in self.columns}, include_columns=list(names)
            ),
        )
        first = 1
        with reader:
            for batch in reader:
                if batch.num_rows:
                    read = raw.tell() if not raw.closed else 0
                    columns = {name: batch.column(name) for name in names}
                    yield Chunk(first, batch.num_rows, columns, read)
                first += batch.num_rows

    def _has_rows(self) -> bool:
        with text_lines(self._source, errors="replace") as file:
            return any(line.strip() for line in itertools.islice(file, self.header_lines, None))


def open_csv(file: DataFile) -> CsvTable:
    """Look at the header and at a first line of metadata."""
    metadata = None
    with explain_errors(file.name), text_lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith(CSV_PREFIX):
                metadata = decode(line[len(CSV_PREFIX) :], file.name)
            elif not line.startswith(COMMENT):
                separator = _separator(line)
                header = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
                columns = tuple(name.strip() for name in header)
                if not any(columns):
                    raise InputError("the header names no columns", Location(file.name, number))
                return CsvTable(
                    file.name,
                    columns,
                    metadata,
                    file.keys,
                    bytes=file.size(),
                    file=file,
                    header_lines=number,
                    separator=separator,
                )
    raise InputError("the file is empty", Location(file.name))


def text_lines(file: DataFile, errors: str = "strict") -> io.TextIOWrapper:
    """The lines of a text file, decompressed, none of them longer than `MOST_LINE`; a byte order mark is no
    part of the first."""
    buffered = io.BufferedReader(_ShortLines(file), 1 << 16)
    return io.TextIOWrapper(buffered, encoding="utf-8-sig", errors=errors, newline="")


class _ShortLines(io.RawIOBase):
    """The bytes of a text file, refused where a line goes on for too long, before it is in memory."""

    def __init__(self, file: DataFile):
        self.file, self.stream, self.length = file, file.open_text(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.stream.read(len(buffer))
        buffer[: len(block)] = block
        last = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self.length = len(block) - last - 1 if last >= 0 else self.length + len(block)
        if self.length > MOST_LINE:
            raise too_long(self.file.name)
        return len(block)

    def close(self) -> None:
        self.stream.close()
        super().close()


def too_long(name: str) -> InputError:
    return InputError(
        f"a line has more than {MOST_LINE:,} bytes, which is no row of a log",
        Location(name),
        "end rows by line feeds; rows that are longer go into Parquet files",
    )


def _separator(header: str) -> str:
    """The first of comma, semicolon and tab that stands in the header; a comma in none."""
    return next((mark for mark in SEPARATORS if mark in header), ",")
