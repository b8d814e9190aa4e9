"""A table of data as a stream of chunks: never more than a few megabytes in memory at once.

`DataTable` is what every kind of log is once it is open; a `LogFormat` opens it and reads its pieces. What a
column means is decided elsewhere; everything about the file as such is checked here.

What a file says about itself (who wrote it, for which model, how the data were sampled) is one JSON object,
kept in Parquet's key-value metadata under the key `tightrope`, and in CSV on a first line that starts with
`# tightrope:`. Files of other origin have none.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from tightrope.atomic import atomic_write_bytes
from tightrope.errors import InputError, Location, similar_file
from tightrope.io.table.columns import ArrowColumn
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import AnyArray
from tightrope.numerics.late import arrow_csv, fs, pa, pq

KEY = "tightrope"
COMMENT = "#"
CSV_PREFIX = f"{COMMENT} {KEY}: "
VERSION = 1

PARQUET = (".parquet", ".pq")
COUNTS, TRANSITIONS = "counts", "transitions"
"""What the rows of a file are."""

Metadata = Mapping[str, object]


def structure_hash(structure: Structure) -> str:
    """The identity of the numbering of states, choices and transitions, whatever their probabilities."""
    digest, own = hashlib.sha256(b"structure"), structure
    for array in (own.choice_start, own.transition_start, own.successor, own.action_of_choice):
        digest.update(array.tobytes())
    digest.update(repr(structure.action_names).encode())
    return digest.hexdigest()


def encode(metadata: Metadata) -> str:
    return json.dumps({"version": VERSION, **metadata}, sort_keys=True)


def decode(text: str, file: str) -> Metadata:
    """The metadata of a file of ours; text that is none is an `InputError`."""
    try:
        metadata = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"the file's metadata are damaged: {error.msg}", Location(file)) from error
    if not isinstance(metadata, dict) or metadata.get("version") != VERSION:
        version = metadata.get("version") if isinstance(metadata, dict) else None
        raise InputError(
            f"the file's metadata have version {version!r}; this program reads version {VERSION}",
            Location(file),
        )
    return metadata


class LogFormat:
    """One kind of log: what the bytes of a file are, once decompressed, or a kind of table in memory.

    Files are found by the ending of their name, other places by a `scheme` before it (`minari:NAME`). Files
    of `is_text` may be compressed, and their rows are lines. `marks` are the first bytes of others.
    `groups_are_parts`: groups of rows are read where they lie, each for itself. `made` tells how they came.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    scheme: ClassVar[str | None] = None
    is_text: ClassVar[bool] = False
    marks: ClassVar[tuple[bytes, ...]] = ()
    groups_are_parts: ClassVar[bool] = False
    made: tuple[str, ...] = ()

    def accepts(self, data: object) -> bool:
        """Whether `hold` takes this object, or JSON lines that begin with these bytes are of this format."""
        return False

    def hold(self, data: object, name: str) -> DataTable:
        """The table of an object, under a name for messages."""
        raise InputError(f"the format '{self.name}' holds no objects", Location(name))

    def open(self, file: LogFile) -> DataTable | None:
        """Look at a file's header and metadata; None where `batches` are all that there is."""

    def batches(self, path: str) -> Iterable[object]:
        """What is in a file, as pyarrow's record batches."""
        raise InputError(f"the format '{self.name}' has neither `open` nor `batches`", Location(path))

    def pieces(
        self, table: DataTable, names: Sequence[str], ragged: Ragged, groups: range | None
    ) -> Iterator[Piece]:
        """The columns that are stored in a table that `open` or `hold` gave, piece by piece."""
        raise InputError(f"the format '{self.name}' has no `pieces`", Location(table.path))

    def location(self, table: DataTable, row: int) -> Location:
        """Where row number `row` of the data is: its line where the file has lines."""
        return Location(table.path)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


@dataclass(frozen=True)
class LogFile:
    """One file: where it is, how it is called in messages, what it is; `keys` come from its folders' names.

    Plain data, so that another process can open it.
    """

    path: str
    name: str
    format: LogFormat
    compression: str | None = None
    keys: tuple[tuple[str, str], ...] = ()

    @property
    def is_remote(self) -> bool:
        return "://" in self.path

    def size(self) -> int | None:
        """Bytes on disk; None where that is not known."""
        try:
            system, path = open_store(self.path)
            return None if (size := system.get_file_info(path).size) is None else int(size)
        except OSError:
            return None

    def open(self) -> Any:
        """The bytes as they are, seekable, for pyarrow."""
        system, path = open_store(self.path)
        return system.open_input_file(path)

    def expand(self, raw: BinaryIO) -> Any:
        """The decompressed bytes of what `open` gave, as a stream."""
        return raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)


def open_store(address: str) -> tuple[Any, str]:
    """The pyarrow file system of an address or a path, and the path in it; fsspec's where it knows it."""
    if "://" not in address:
        return fs.LocalFileSystem(), address
    try:
        try:
            import fsspec

            system, path = fsspec.core.url_to_fs(address)
            return fs.PyFileSystem(fs.FSSpecHandler(system)), path
        except ImportError:
            system, path = fs.FileSystem.from_uri(address)
            return system, path
    except ValueError as error:
        raise InputError(
            f"no file system is known for {address.partition('://')[0]}://: {error}",
            hint="pip install 'tightrope[stores]' and the file system's package (s3fs, gcsfs, adlfs, …)",
        ) from error


CHUNK_ROWS = 1 << 15
"""Rows of a Parquet chunk."""

CHUNK_BYTES = 1 << 20
"""Bytes of a CSV chunk. The reader queues some forty chunks ahead, so memory is about forty times this."""

Ragged = Callable[[], None] | None
"""Called for each row with too few or too many fields, which is dropped then; None: it is an error."""

Piece = tuple[dict[str, ArrowColumn], int, int]
"""Some columns, the number of their rows, and about how many bytes were read to get there."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows; `first_row` counts the rows of data from 1. Columns are pyarrow arrays.

    `bytes_read` is about how much of the file was read to get here.
    """

    first_row: int
    rows: int
    columns: dict[str, ArrowColumn]
    bytes_read: int = 0


@dataclass(frozen=True)
class DataTable:
    """An opened table: its columns and metadata; `chunks` streams what is in them.

    `keys` are columns that hold one value in all rows: those that the names of a file's folders give.
    `group_rows` are the numbers of rows of parts that can be read apart, where that is known beforehand.
    `file` is None of tables in memory, which are `content`. Text files have `header_lines` before the first
    row, and a `separator` between values.
    """

    path: str
    columns: tuple[str, ...]
    metadata: Metadata | None
    format: LogFormat
    keys: tuple[tuple[str, str], ...] = ()
    group_rows: tuple[int, ...] | None = None
    bytes: int | None = None
    file: LogFile | None = None
    header_lines: int = 0
    separator: str = ","
    content: Any = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, **({"content": None} if self.format.groups_are_parts else {})}

    @staticmethod
    def of(file: LogFile, columns: Sequence[str], metadata: Metadata | None, **more: Any) -> DataTable:
        """The table of a file."""
        opened = DataTable(file.name, tuple(columns), metadata, file.format, **more)
        return replace(opened, keys=file.keys, bytes=file.size(), file=file)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns: those that are stored, then those that folders give."""
        return (*self.columns, *(name for name, _ in self.keys if name not in self.columns))

    def error(self, message: str, hint: str | None = None, row: int | None = None) -> InputError:
        """An error about the table, or about one of its rows."""
        if row is None:
            return InputError(message, Location(self.path), hint)
        return InputError(f"row {row}: {message}", self.format.location(self, row), hint)

    @property
    def most_rows(self) -> int:
        """About how many rows the table has at most."""
        return sum(self.group_rows) if self.group_rows is not None else (self.bytes or 0) // 2

    def bytes_of(self, rows: int) -> int:
        """About how many bytes so many rows take."""
        return (self.bytes or 0) * rows // max(sum(self.group_rows) if self.group_rows else rows, 1)

    def chunks(
        self, names: Sequence[str], ragged: Ragged = None, groups: range | None = None
    ) -> Iterator[Chunk]:
        """The named columns, chunk by chunk; only those of some groups of rows where these are given."""
        constant = {name: value for name, value in self.keys if name in names and name not in self.columns}
        stored = list(dict.fromkeys(name for name in names if name not in constant))
        first = 1 + (sum(self.group_rows[: groups.start]) if groups and self.group_rows else 0)
        with explain_errors(self.path):
            for columns, rows, read in self.format.pieces(self, stored, ragged, groups):
                if rows:
                    keys = {name: pa.repeat(value, rows) for name, value in constant.items()}
                    yield Chunk(first, rows, {**columns, **keys}, read)
                first += rows

    def read_all(self) -> Any:
        """All rows as one table of pyarrow."""
        parts = [pa.table(chunk.columns) for chunk in self.chunks(self.names)]
        if not parts:
            raise self.error("the table has no rows")
        return pa.concat_tables(parts, promote_options="permissive").combine_chunks()

    @property
    def source(self) -> LogFile:
        assert self.file is not None
        return self.file


def is_parquet(path: str | Path) -> bool:
    """Whether the name of a file to write says Parquet (`.parquet`, `.pq`) rather than CSV (`.csv`)."""
    suffix = Path(path).suffix.lower()
    if suffix != ".csv" and suffix not in PARQUET:
        endings = ", ".join((".csv", *PARQUET))
        raise InputError(f"a data file ends in {endings}, not {suffix or 'nothing'!r}", Location(str(path)))
    return suffix != ".csv"


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Say of pyarrow's and the operating system's errors which file they are about."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error.reason}", Location(path)) from error
    except MemoryError as error:
        raise InputError(
            "the file cannot be read: it declares more than there is memory for",
            Location(path),
            "a damaged file, or one to be written again in smaller pieces: Parquet in smaller row groups",
        ) from error
    except pa.ArrowException as error:
        raise InputError(
            f"the file cannot be read: {first_line(error)}",
            Location(path),
            "a truncated or damaged file, or one that is not what its name says",
        ) from error
    except OSError as error:
        why, hint = f"the file cannot be read: {_reason(error)}", similar_file(Path(path))
        raise InputError(why, Location(path), hint) from error


def _reason(error: OSError) -> str:
    """What the operating system says; else what pyarrow says, which is about what is in the file."""
    system = re.search(r"\[errno \d+\] (.*)", str(error))
    if system:
        return system[1]
    return error.strerror or f"{first_line(error)} (a truncated or damaged file)"


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


Columns = Mapping[str, AnyArray]
"""Columns of equal length: whole numbers, flags, or (indices into) text."""


def write_table(
    path: str | Path,
    chunks: Iterable[Columns],
    metadata: Metadata,
    names: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Write the chunks one below the other; the first one, which may be empty, says what the columns are.

    A text column holds indices into its `names`.
    """
    names, coming = names or {}, iter(chunks)
    kinds, first = {"f": pa.float64(), "b": pa.bool_()}, next(coming)
    schema = pa.schema(
        [
            (name, pa.string() if name in names else kinds.get(column.dtype.kind, pa.int64()))
            for name, column in first.items()
        ]
    )
    batches = filter(len, (_batch(schema, columns, names) for columns in chain([first], coming)))
    with atomic_write_bytes(path) as file:
        if is_parquet(path):
            schema = schema.with_metadata({KEY: encode(metadata)})
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))
        else:
            file.write(f"{CSV_PREFIX}{encode(metadata)}\n".encode())
            file.write((",".join(schema.names) + "\n").encode())
            options = arrow_csv.WriteOptions(include_header=False, quoting_style="needed")
            with arrow_csv.CSVWriter(file, schema, write_options=options) as writer:
                for batch in batches:
                    writer.write_batch(batch)


def _batch(schema: object, columns: Columns, names: Mapping[str, tuple[str, ...]]) -> Any:
    texts = {name: pa.array(own, pa.string()).take(pa.array(columns[name])) for name, own in names.items()}
    return pa.record_batch({**columns, **texts}, schema=schema)
