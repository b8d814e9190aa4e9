"""Text files as tables, plain or compressed: CSV, and JSON lines.

CSV has values as text, separated by commas, semicolons or tabs. JSON lines hold one object each; objects
within it become columns `outer.inner`.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tightrope.errors import InputError, Location
from tightrope.io.table import data_table
from tightrope.io.table.data_table import (
    COMMENT,
    CSV_PREFIX,
    KEY,
    DataTable,
    LogFile,
    LogFormat,
    Piece,
    Ragged,
    decode,
    explain_errors,
    first_line,
)

SEPARATORS = (",", ";", "\t")

MOST_LINE = 1 << 20
"""Bytes of a line of text: no row is longer."""


@dataclass(frozen=True)
class TextTable(DataTable):
    """Lines that are not blank are rows; `header_lines` is the number of lines before the first row."""

    header_lines: int = 0

    def location(self, row: int) -> Location:
        """The line of a row. Looks through the file once more: blank lines are lines, but no rows."""
        for number, line in itertools.islice(self.filled_lines(), row - 1, None):
            return Location(self.path, number, None, line)
        return Location(self.path)

    def filled_lines(self) -> Iterator[tuple[int, str]]:
        """The lines of all rows, by their numbers."""
        with text_lines(self.source, errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                if number > self.header_lines and line.strip():
                    yield number, line


@dataclass(frozen=True)
class CsvTable(TextTable):
    """Values are text, between separators."""

    separator: str = ","

    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        import pyarrow as pa

        if next(self.filled_lines(), None) is None:
            return
        refused: list[Any] = []

        def skip(row: Any) -> str:
            if ragged is not None:
                ragged()
                return "skip"
            refused.append(row)
            return "error"

        try:
            yield from self._stream(names, skip)
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

    def _stream(self, names: Sequence[str], skip: Callable[[Any], str]) -> Iterator[Piece]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        raw = self.source.open()
        reader = arrow_csv.open_csv(
            self.source.expand(raw),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=data_table.CHUNK_BYTES,
                skip_rows=self.header_lines,
                column_names=list(self.columns),
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.separator, invalid_row_handler=skip),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in self.columns}, include_columns=list(names)
            ),
        )
        with reader:
            for batch in reader:
                columns = {name: batch.column(name) for name in names}
                yield columns, batch.num_rows, raw.tell() if not raw.closed else 0


class _Lines(LogFormat):
    """Rows are lines behind a header of so many lines."""

    is_text = True
    header: ClassVar[int] = 0

    def has_rows(self, file: LogFile) -> bool:
        with file.open_text() as text:
            begin = text.read(1 << 16)
        filled = sum(map(bool, map(bytes.strip, begin.splitlines())))
        return len(begin) == 1 << 16 or filled > self.header


class Csv(_Lines):
    """Values between separators, behind a header."""

    name, suffixes, header = "CSV", (".csv", ".tsv"), 1

    def open(self, file: LogFile) -> CsvTable:
        return open_csv(file)


class JsonLines(_Lines):
    """One object per line."""

    name, suffixes = "JSON lines", (".jsonl", ".ndjson")

    def open(self, file: LogFile) -> JsonTable:
        return open_json_lines(file)


def open_csv(file: LogFile) -> CsvTable:
    """Look at the header and at a first line of metadata."""
    metadata = None
    with explain_errors(file.name), text_lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith(CSV_PREFIX):
                metadata = decode(line[len(CSV_PREFIX) :], file.name)
            elif not line.startswith(COMMENT):
                separator = next((mark for mark in SEPARATORS if mark in line), ",")
                header = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
                columns = tuple(name.strip() for name in header)
                if not any(columns):
                    raise InputError("the header names no columns", Location(file.name, number))
                opened = (file.name, columns, metadata, file.keys, None, file.size(), file)
                return CsvTable(*opened, header_lines=number, separator=separator)
    raise InputError("the file is empty", Location(file.name))


def text_lines(file: LogFile, errors: str = "strict") -> io.TextIOWrapper:
    """The lines of a text file, decompressed, none of them longer than `MOST_LINE`; a byte order mark is no
    part of the first."""
    buffered = io.BufferedReader(_ShortLines(file), 1 << 16)
    return io.TextIOWrapper(buffered, encoding="utf-8-sig", errors=errors, newline="")


class _ShortLines(io.RawIOBase):
    """The bytes of a text file, refused where a line goes on for too long, before it is in memory."""

    def __init__(self, file: LogFile):
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


LOOKED_AT = 1000
"""Lines whose keys make the columns."""


class JsonTable(TextTable):
    """One object per line."""

    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        raw = self.source.open()
        options = arrow_json.ReadOptions(use_threads=False, block_size=data_table.CHUNK_BYTES)
        try:
            with arrow_json.open_json(self.source.expand(raw), read_options=options) as reader:
                for batch in reader:
                    table = flatten(pa.Table.from_batches([batch]))
                    there, rows = table.column_names, batch.num_rows
                    columns = {
                        name: whole(table.column(name)) if name in there else pa.nulls(rows) for name in names
                    }
                    yield columns, rows, raw.tell() if not raw.closed else 0
        except pa.ArrowInvalid as error:
            raise self._bad_line(error) from error

    def _bad_line(self, error: Exception) -> InputError:
        """The first line that is no object, or whose values changed their type, with its number."""
        types: dict[str, str] = {}
        hint = "each line is one object; a line cut off at the end is the sign of a truncated file"
        for number, line in self.filled_lines():
            try:
                content = _load(line, self.path, number, hint)
            except InputError as wrong:
                return wrong
            for name, value in content.items():
                kind = _kind(value)
                if kind is not None and types.setdefault(name, kind) != kind:
                    here = Location(self.path, number, None, line)
                    problem = f"'{name}' is {kind} here and {types[name]} in the lines before"
                    return InputError(problem, here, "write the values of a key in one way in all lines")
        if "straddl" in first_line(error):
            return too_long(self.path)
        return InputError(f"the file cannot be read: {first_line(error)}", Location(self.path))


def open_json_lines(file: LogFile) -> JsonTable:
    """The keys of the first lines are the columns."""
    names: dict[str, None] = {}
    metadata = None
    with explain_errors(file.name), text_lines(file) as lines:
        filled = ((n, line) for n, line in enumerate(lines, start=1) if line.strip())
        for number, line in itertools.islice(filled, LOOKED_AT):
            content = _load(line, file.name, number, 'each line is one object, like {"x": 1, …}')
            if KEY in content and metadata is None:
                metadata = decode(json.dumps(content[KEY]), file.name)
            names.update(dict.fromkeys(_names(content)))
    if not names:
        raise InputError("the file is empty", Location(file.name))
    return JsonTable(file.name, tuple(names), metadata, file.keys, None, file.size(), file)


def _load(line: str, name: str, number: int, hint: str) -> dict[str, Any]:
    """The object of a line."""
    try:
        content = json.loads(line)
    except json.JSONDecodeError as wrong:
        here = Location(name, number, wrong.colno, line)
        raise InputError(f"the line is no JSON: {wrong.msg}", here, hint) from wrong
    except (RecursionError, ValueError) as wrong:
        words = "it nests too deeply" if isinstance(wrong, RecursionError) else "a number is too long"
        raise InputError(f"the line cannot be read: {words}", Location(name, number), hint) from wrong
    if not isinstance(content, dict):
        here = Location(name, number, None, line)
        raise InputError("the line is no JSON object", here, 'each line is like {"x": 1, …}')
    return content


def flatten(table: Any) -> Any:
    """Columns of objects as columns `outer.inner`, all the way down."""
    import pyarrow as pa

    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def whole(column: Any) -> Any:
    """A column of a table as one array."""
    import pyarrow as pa

    joined = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _names(content: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _names(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return kinds.get(type(value), "an object")
