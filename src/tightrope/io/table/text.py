"""Text files as tables, plain or compressed: CSV, and JSON lines.

CSV has values as text, separated by commas, semicolons or tabs. JSON lines hold one object each; objects
within it become columns `outer.inner`.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.table import data_table
from tightrope.io.table.columns import ArrowColumn
from tightrope.io.table.data_table import DataTable, LogFile, LogFormat, Piece, Ragged
from tightrope.numerics.late import arrow_csv, arrow_json, pa

SEPARATORS = (",", ";", "\t")

MOST_LINE = 1 << 20
"""Bytes of a line of text: no row is longer."""


class _Lines(LogFormat):
    """Lines that are not blank are rows."""

    is_text = True

    def location(self, table: DataTable, row: int) -> Location:
        """The line of a row. Looks through the file once more: blank lines are lines, but no rows."""
        for number, line in itertools.islice(filled_lines(table), row - 1, None):
            return Location(table.path, number, None, line)
        return Location(table.path)


def filled_lines(table: DataTable) -> Iterator[tuple[int, str]]:
    """The lines of all rows, by their numbers."""
    with text_lines(table.source, errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if number > table.header_lines and line.strip():
                yield number, line


class Csv(_Lines):
    """Values between separators, behind a header; all are text."""

    name, suffixes = "CSV", (".csv", ".tsv")

    def open(self, file: LogFile) -> DataTable:
        metadata = None
        with data_table.explain_errors(file.name), text_lines(file) as lines:
            for number, line in enumerate(lines, start=1):
                if line.startswith(data_table.CSV_PREFIX):
                    metadata = data_table.decode(line[len(data_table.CSV_PREFIX) :], file.name)
                elif not line.startswith(data_table.COMMENT):
                    separator = next((mark for mark in SEPARATORS if mark in line), ",")
                    header = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
                    columns = tuple(name.strip() for name in header)
                    if not any(columns):
                        raise InputError("the header names no columns", Location(file.name, number))
                    return DataTable.of(file, columns, metadata, header_lines=number, separator=separator)
        raise InputError("the file is empty", Location(file.name))

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        if next(filled_lines(table), None) is None:
            return
        refused: list[Any] = []

        def skip(row: Any) -> str:
            if ragged is not None:
                ragged()
                return "skip"
            refused.append(row)
            return "error"

        raw, text = table.source.open(), pa.string()
        try:
            with arrow_csv.open_csv(
                table.source.expand(raw),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=data_table.CHUNK_BYTES,
                    skip_rows=table.header_lines,
                    column_names=list(table.columns),
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=table.separator, invalid_row_handler=skip),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(table.columns, text), include_columns=list(names)
                ),
            ) as reader:
                for batch in reader:
                    columns = {name: batch.column(name) for name in names}
                    yield columns, batch.num_rows, raw.tell() if not raw.closed else 0
        except pa.ArrowInvalid as error:
            if not refused and "straddl" in str(error):
                raise too_long(table.path) from error
            if not refused:
                raise
            row = refused[0]
            raise InputError(
                f"a row has {row.actual_columns} fields, but the header has {row.expected_columns}",
                self.location(table, row.number - table.header_lines) if row.number else Location(table.path),
                "a row cut off at the end is the sign of a truncated file"
                if row.actual_columns < row.expected_columns
                else "a value that holds a separator stands in double quotes",
            ) from error


class JsonLines(_Lines):
    """One object per line. The keys of the first lines (`CHUNK_BYTES`) are the columns; a key that only comes
    later is refused, since rows before it were read without it."""

    name, suffixes = "JSON lines", (".jsonl", ".ndjson")

    def open(self, file: LogFile) -> DataTable:
        with data_table.explain_errors(file.name):
            with text_lines(file) as lines:
                number, line = next(((n, line) for n, line in enumerate(lines, 1) if line.strip()), (0, "{}"))
                about = _load(line, file.name, number, 'each line is one object, like {"x": 1, …}')
            stored = about.get(data_table.KEY)
            metadata = None if stored is None else data_table.decode(json.dumps(stored), file.name)
            table = DataTable.of(file, (), metadata)
            names = next((tuple(part.column_names) for part, _ in self._tables(table)), ())
        if not names:
            raise InputError("the file is empty", Location(file.name))
        return replace(table, columns=names)

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        done = 0
        for part, read in self._tables(table):
            there, rows = part.column_names, part.num_rows
            if late := next((name for name in there if name not in table.columns), None):
                row = 1 + done + np.flatnonzero(part[late].is_valid())[0]
                message = f"'{late}' has no value in the first lines, whose keys are the columns"
                raise table.error(message, "write it into the first line, as null if need be", row)
            yield {n: whole(part.column(n)) if n in there else pa.nulls(rows) for n in names}, rows, read
            done += rows

    @staticmethod
    def _tables(table: DataTable) -> Iterator[tuple[Any, int]]:
        """Complete lines as tables, whose columns have types of their own: 0 may come before 0.5. How many
        bytes were read for them."""
        options = arrow_json.ReadOptions(use_threads=False, block_size=data_table.CHUNK_BYTES + MOST_LINE)
        with table.source.open() as raw:
            stream, rest = table.source.expand(raw), b""
            while block := stream.read(data_table.CHUNK_BYTES) or rest:
                is_last = block is rest
                lines, end, rest = (block, b"", b"") if is_last else (rest + block).rpartition(b"\n")
                if len(rest) > MOST_LINE:
                    raise too_long(table.path)
                try:
                    if lines.strip():
                        held = arrow_json.read_json(io.BytesIO(lines + end), read_options=options)
                        yield flatten(held), raw.tell()
                except pa.ArrowInvalid as error:
                    raise _bad_line(table, error) from error


def _bad_line(table: DataTable, error: Exception) -> InputError:
    """The first line that is no object, or whose values changed their type, with its number."""
    types: dict[str, str] = {}
    hint = "each line is one object; a line cut off at the end is the sign of a truncated file"
    for number, line in filled_lines(table):
        try:
            content = _load(line, table.path, number, hint)
        except InputError as wrong:
            return wrong
        for name, value in content.items():
            kind = _kind(value)
            if kind is not None and types.setdefault(name, kind) != kind:
                here = Location(table.path, number, None, line)
                problem = f"'{name}' is {kind} here and {types[name]} in the lines before"
                return InputError(problem, here, "write the values of a key in one way in all lines")
    if "straddl" in data_table.first_line(error):
        return too_long(table.path)
    return table.error(f"the file cannot be read: {data_table.first_line(error)}")


def text_lines(file: LogFile, errors: str = "strict") -> io.TextIOWrapper:
    """Yield the lines of a text file, decompressed, without a byte order mark, up to `MOST_LINE` long."""
    buffered = io.BufferedReader(_ShortLines(file), 1 << 16)
    return io.TextIOWrapper(buffered, encoding="utf-8-sig", errors=errors, newline="")


class _ShortLines(io.RawIOBase):
    """The bytes of a text file, refused where a line goes on for too long, before it is in memory."""

    def __init__(self, file: LogFile):
        self.file, self.stream, self.length = file, file.expand(file.open()), 0

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
        f"a line has more than {MOST_LINE:,} bytes, which is not a row of a log",
        Location(name),
        "end rows by line feeds; rows that are longer go into Parquet files",
    )


def _load(line: str, name: str, number: int, hint: str) -> dict[str, object]:
    """The object of a line."""
    try:
        content = json.loads(line)
    except json.JSONDecodeError as wrong:
        here = Location(name, number, wrong.colno, line)
        raise InputError(f"the line is not JSON: {wrong.msg}", here, hint) from wrong
    except (RecursionError, ValueError) as wrong:
        words = "it nests too deeply" if isinstance(wrong, RecursionError) else "a number is too long"
        raise InputError(f"the line cannot be read: {words}", Location(name, number), hint) from wrong
    if not isinstance(content, dict):
        here = Location(name, number, None, line)
        raise InputError("the line is not a JSON object", here, 'each line is like {"x": 1, …}')
    return content


def flatten(table: Any) -> Any:
    """Columns of objects as columns `outer.inner`, all the way down."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def whole(column: ArrowColumn) -> ArrowColumn:
    """A column of a table as one array."""
    joined: ArrowColumn = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _kind(value: object) -> str | None:
    names = {type(None): None, bool: "true or false", int: "a number", float: "a number", str: "text"}
    return {**names, list: "a list"}.get(type(value), "an object")
