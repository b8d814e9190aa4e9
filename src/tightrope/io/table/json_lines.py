"""JSON lines as tables: one object per line; objects within it become columns `outer.inner`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tightrope.errors import InputError, Location
from tightrope.io.table import data_table
from tightrope.io.table.csv_text import text_lines, too_long
from tightrope.io.table.data_table import KEY, Chunk, DataTable, OnRaggedRow, decode, explain_errors
from tightrope.io.table.files import DataFile

LOOKED_AT = 1000
"""Lines whose keys make the columns."""


@dataclass(frozen=True)
class JsonTable(DataTable):
    """Line n of those that are not blank is row n."""

    file: DataFile | None = None

    @property
    def _source(self) -> DataFile:
        assert self.file is not None
        return self.file

    def location(self, row: int) -> Location:
        with text_lines(self._source, errors="replace") as lines:
            filled = ((n, line) for n, line in enumerate(lines, start=1) if line.strip())
            for number, line in itertools.islice(filled, row - 1, None):
                return Location(self.path, number, None, line)
        return Location(self.path)

    def _chunks(
        self, names: Sequence[str], on_ragged_row: OnRaggedRow | None, groups: range | None
    ) -> Iterator[Chunk]:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        raw = self._source.open()
        packed = self._source.compression
        stream = raw if packed is None else pa.CompressedInputStream(raw, packed)
        first = 1
        try:
            with arrow_json.open_json(
                stream,
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=data_table.CHUNK_BYTES),
            ) as reader:
                for batch in reader:
                    table = flatten(pa.Table.from_batches([batch]))
                    columns = {name: _column(table, name, batch.num_rows) for name in names}
                    if batch.num_rows:
                        yield Chunk(first, batch.num_rows, columns, raw.tell() if not raw.closed else 0)
                    first += batch.num_rows
        except pa.ArrowInvalid as error:
            raise self._bad_line(error) from error

    def _bad_line(self, error: Exception) -> InputError:
        """The first line that is no object, or whose values changed their type, with its number."""
        types: dict[str, str] = {}
        with text_lines(self._source, errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                hint = "each line is one object; a line cut off at the end is the sign of a truncated file"
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
        text = str(error).splitlines()[0]
        if "straddl" in text:
            return too_long(self.path)
        return InputError(f"the file cannot be read: {text}", Location(self.path))


def open_json_lines(file: DataFile) -> JsonTable:
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
    return JsonTable(file.name, tuple(names), metadata, file.keys, bytes=file.size(), file=file)


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


def _column(table: Any, name: str, rows: int) -> Any:
    import pyarrow as pa

    if name not in table.column_names:
        return pa.nulls(rows)
    column = table.column(name).combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


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
