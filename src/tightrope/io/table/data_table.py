"""A table of data as a stream of chunks: never more than a few megabytes in memory at once.

`DataTable` is the face that every kind of file has (`csv_text`, `json_lines`, `arrow`) and that tables
in memory have, too. Text columns arrive as text and others in their own types; what a column means is
decided by whoever asked for it (`tightrope.io.table.columns`). Everything about the file as such is
checked here: its kind, header, completeness, and that every page can be decoded.

What a data file says about itself: who wrote it, for which model, and how the data were sampled.

One JSON object, kept in Parquet's key-value metadata under the key `tightrope`, and in CSV on a first line
that starts with `# tightrope:`. Files of other origin simply have none.

Data files, written in chunks and atomically: Parquet or CSV by the name's ending.

The metadata (`tightrope.io.table.data_table`) go into Parquet's key-value metadata, or onto the first
line of a CSV file as a comment.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.atomic import atomic_write_bytes
from tightrope.errors import InputError, Location
from tightrope.model.structure import Structure

KEY = "tightrope"
COMMENT = "#"
CSV_PREFIX = f"{COMMENT} {KEY}: "
VERSION = 1

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


CHUNK_ROWS = 1 << 15
"""Rows of a Parquet chunk."""

CHUNK_BYTES = 1 << 20
"""Bytes of a CSV chunk. The reader queues some forty chunks ahead, so memory is about forty times this."""

PARQUET_SUFFIXES = (".parquet", ".pq")
CSV_SUFFIXES = (".csv",)

OnRaggedRow = Callable[[], None]


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
    """

    path: str
    columns: tuple[str, ...]
    metadata: Metadata | None
    keys: tuple[tuple[str, str], ...] = ()
    group_rows: tuple[int, ...] | None = None
    bytes: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All columns: those that are stored, then those that folders give."""
        return (*self.columns, *(name for name, _ in self.keys if name not in self.columns))

    def location(self, row: int) -> Location:
        """Where row number `row` of the data is: its line where the file has lines."""
        return Location(self.path)

    def chunks(
        self,
        names: Sequence[str],
        on_ragged_row: OnRaggedRow | None = None,
        groups: range | None = None,
    ) -> Iterator[Chunk]:
        """The named columns, chunk by chunk; only those of some groups of rows where these are given.

        A row with too few or too many fields is an error, or dropped after a call of `on_ragged_row`
        where there is one.
        """
        constant = {name: value for name, value in self.keys if name in names and name not in self.columns}
        stored = list(dict.fromkeys(name for name in names if name not in constant))
        with explain_errors(self.path):
            for chunk in self._chunks(stored, on_ragged_row, groups):
                columns = dict(chunk.columns)
                for name, value in constant.items():
                    columns[name] = _repeat(value, chunk.rows)
                yield Chunk(chunk.first_row, chunk.rows, columns, chunk.bytes_read)

    @abstractmethod
    def _chunks(
        self, names: Sequence[str], on_ragged_row: OnRaggedRow | None, groups: range | None
    ) -> Iterator[Chunk]: ...


def is_parquet(path: str | Path) -> bool:
    """Whether the name of a file to write says Parquet (`.parquet`, `.pq`) rather than CSV (`.csv`)."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return True
    if suffix in CSV_SUFFIXES:
        return False
    raise InputError(
        f"a data file ends in {', '.join(CSV_SUFFIXES + PARQUET_SUFFIXES)}, not {suffix or 'nothing'!r}",
        Location(str(path)),
    )


def _repeat(value: str, rows: int) -> Any:
    import numpy as np
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
            f"the file cannot be read: {_first_line(error)}",
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
    return error.strerror or f"{_first_line(error)} (a truncated or damaged file)"


def _first_line(error: BaseException) -> str:
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
