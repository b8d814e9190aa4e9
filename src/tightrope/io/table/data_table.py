"""A table of data as a stream of chunks: never more than a few megabytes in memory at once.

`DataTable` is the face that every kind of file has (`text`, `arrow`) and that tables in memory have, too.
Text columns arrive as text and others in their own types; what a column means is decided by whoever asked for
it (`tightrope.io.table.columns`). Everything about the file as such is checked here: its kind, header,
completeness, and that every page can be decoded.

What a file says about itself (who wrote it, for which model, how the data were sampled) is one JSON object,
kept in Parquet's key-value metadata under the key `tightrope`, and in CSV on a first line that starts with
`# tightrope:`. Files of other origin have none. `write_table` writes files in chunks, all or nothing.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.atomic import atomic_write_bytes
from tightrope.errors import InputError, Location
from tightrope.model.structure import Structure

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
    digest = hashlib.sha256(b"structure")
    for array in (
        structure.choice_start,
        structure.transition_start,
        structure.successor,
        structure.action_of_choice,
    ):
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
    """What the bytes of a file are, once decompressed; found by the ending of its name.

    Files of `is_text` may be compressed, and their rows are lines. `marks` are the first bytes of others.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    is_text: ClassVar[bool] = False
    marks: ClassVar[tuple[bytes, ...]] = ()

    def open(self, file: LogFile) -> DataTable | None:
        """Look at a file's header and metadata; None where `batches` are all that there is."""

    def batches(self, path: str) -> Iterable[Any]:
        """What is in a file, as pyarrow's record batches."""
        raise InputError(f"the format '{self.name}' has neither `open` nor `batches`", Location(path))

    def has_rows(self, file: LogFile) -> bool:
        """Whether there is more in a file than a header."""
        return True

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
            if self.is_remote:
                system, path = open_store(self.path)
                return int(system.size(path) or 0)
            return os.stat(self.path).st_size
        except OSError:
            return None

    def open(self) -> Any:
        """The bytes as they are, seekable, for pyarrow."""
        import pyarrow as pa

        if self.is_remote:
            system, path = open_store(self.path)
            return pa.PythonFile(system.open(path, "rb"), mode="r")
        return pa.OSFile(self.path, "rb")

    def expand(self, raw: Any) -> Any:
        """The decompressed bytes of what `open` gave, as a stream."""
        import pyarrow as pa

        return raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)

    def open_text(self) -> Any:
        """The decompressed bytes, as a stream."""
        return self.expand(self.open())


@dataclass(frozen=True)
class ArrowStore:
    """A pyarrow file system: `open`, `size`, `isdir`, `find` and `glob`, as fsspec calls them."""

    system: Any

    def open(self, path: str, mode: str = "rb") -> Any:
        return self.system.open_input_file(path)

    def size(self, path: str) -> int:
        return int(self.system.get_file_info(path).size or 0)

    def isdir(self, path: str) -> bool:
        from pyarrow import fs

        return bool(self.system.get_file_info(path).type == fs.FileType.Directory)

    def find(self, path: str) -> list[str]:
        """All files below a directory."""
        from pyarrow import fs

        entries = self.system.get_file_info(fs.FileSelector(path, recursive=True))
        return [entry.path for entry in entries if entry.type == fs.FileType.File]

    def glob(self, pattern: str) -> list[str]:
        """All files that match a pattern; the part before the first wildcard must be a directory."""
        folder = fixed_part(pattern).removesuffix("/")
        return [path for path in self.find(folder) if fnmatch.fnmatch(path, pattern)]


def open_store(address: str) -> tuple[Any, str]:
    """The file system of an address and the path in it: fsspec's where it knows it, else pyarrow's."""
    try:
        try:
            import fsspec

            system, path = fsspec.core.url_to_fs(address)
        except ImportError:
            from pyarrow import fs

            system, path = fs.FileSystem.from_uri(address)
            system = ArrowStore(system)
    except ValueError as error:
        raise InputError(
            f"no file system is known for {address.partition('://')[0]}://: {error}",
            hint="pip install 'tightrope[stores]' and the file system's package (s3fs, gcsfs, adlfs, …)",
        ) from error
    return system, path


def fixed_part(pattern: str) -> str:
    """The folders of a pattern before its first wildcard; all of a path without any."""
    if not glob.has_magic(pattern):
        return pattern
    first = min(pattern.find(mark) for mark in "*?[" if mark in pattern)
    return pattern[: pattern.rfind("/", 0, first) + 1]


CHUNK_ROWS = 1 << 15
"""Rows of a Parquet chunk."""

CHUNK_BYTES = 1 << 20
"""Bytes of a CSV chunk. The reader queues some forty chunks ahead, so memory is about forty times this."""

Ragged = Callable[[], None] | None
"""Called for each row with too few or too many fields, which is dropped then; None: it is an error."""

Piece = tuple[dict[str, Any], int, int]
"""Some columns, the number of their rows, and about how many bytes were read to get there."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows; `first_row` counts the rows of data from 1. Columns are pyarrow arrays.

    `bytes_read` is about how much of the file was read to get here.
    """

    first_row: int
    rows: int
    columns: dict[str, Any]
    bytes_read: int = 0


@dataclass(frozen=True)
class DataTable(ABC):
    """An opened table: its columns and metadata; `chunks` streams what is in them.

    `keys` are columns that hold one value in all rows: those that the names of a file's folders give.
    `group_rows` are the numbers of rows of parts that can be read apart, where the file says them beforehand.
    `file` is None of tables in memory.
    """

    path: str
    columns: tuple[str, ...]
    metadata: Metadata | None
    keys: tuple[tuple[str, str], ...] = ()
    group_rows: tuple[int, ...] | None = None
    bytes: int | None = None
    file: LogFile | None = None
    groups_are_parts: ClassVar[bool] = False

    @property
    def names(self) -> tuple[str, ...]:
        """All columns: those that are stored, then those that folders give."""
        return (*self.columns, *(name for name, _ in self.keys if name not in self.columns))

    def location(self, row: int) -> Location:
        """Where row number `row` of the data is: its line where the file has lines."""
        return Location(self.path)

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
            for columns, rows, read in self._pieces(stored, ragged, groups):
                if rows:
                    keys = {name: _repeat(value, rows) for name, value in constant.items()}
                    yield Chunk(first, rows, {**columns, **keys}, read)
                first += rows

    @property
    def source(self) -> LogFile:
        assert self.file is not None
        return self.file

    @abstractmethod
    def _pieces(self, names: Sequence[str], ragged: Ragged, groups: range | None) -> Iterator[Piece]:
        """The columns that are stored, piece by piece."""


def is_parquet(path: str | Path) -> bool:
    """Whether the name of a file to write says Parquet (`.parquet`, `.pq`) rather than CSV (`.csv`)."""
    suffix = Path(path).suffix.lower()
    if suffix != ".csv" and suffix not in PARQUET:
        endings = ", ".join((".csv", *PARQUET))
        raise InputError(f"a data file ends in {endings}, not {suffix or 'nothing'!r}", Location(str(path)))
    return suffix != ".csv"


def _repeat(value: str, rows: int) -> Any:
    import pyarrow as pa

    codes = pa.array(np.zeros(rows, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([value], type=pa.string()))


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Say of pyarrow's and the operating system's errors which file they are about."""
    import pyarrow as pa

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
        raise InputError(f"the file cannot be read: {_reason(error)}", Location(path)) from error


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


Columns = Mapping[str, npt.NDArray[Any]]
"""Columns of equal length: whole numbers, flags, or (indices into) text."""


def write_table(
    path: str | Path,
    column_types: Mapping[str, type],
    chunks: Iterable[Columns],
    metadata: Metadata,
    names: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Write the chunks one below the other.

    `column_types` says int, float, bool or str for each column; a text column holds indices into its `names`.
    """
    import pyarrow as pa

    kinds = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in column_types.items()])
    batches = (_batch(schema, columns, names or {}) for columns in chunks)
    with atomic_write_bytes(path) as file:
        if is_parquet(path):
            import pyarrow.parquet as pq

            schema = schema.with_metadata({KEY: encode(metadata)})
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))
        else:
            from pyarrow import csv

            file.write(f"{CSV_PREFIX}{encode(metadata)}\n".encode())
            file.write((",".join(schema.names) + "\n").encode())
            options = csv.WriteOptions(include_header=False, quoting_style="needed")
            with csv.CSVWriter(file, schema, write_options=options) as writer:
                for batch in batches:
                    writer.write_batch(batch)


def _batch(schema: Any, columns: Columns, names: Mapping[str, tuple[str, ...]]) -> Any:
    import pyarrow as pa

    arrays = []
    for field in schema:
        values = columns[field.name]
        if field.name in names:
            indices = pa.array(np.asarray(values, dtype=np.int32))
            texts = pa.array(names[field.name], type=pa.string())
            arrays.append(pa.DictionaryArray.from_arrays(indices, texts).dictionary_decode())
        else:
            arrays.append(pa.array(values, type=field.type))
    return pa.record_batch(arrays, schema=schema)
