"""Which files a user means by `--data`, and what kind each of them is.

A place is a file, a glob pattern, a directory (searched in full; `key=value` folders in it become columns),
an address of an object store (`s3://…`, through fsspec or pyarrow) or `-` for standard input. Files come in
the order given; those of a pattern or directory in the order of their names. That order is taken for their
order in time. One log under two names, byte for byte or compressed, is refused: its rows would count twice.

The name's ending says what a file is (`.csv.gz`); standard input, which has none, is looked at.

Object stores that fsspec does not know are read through pyarrow's own file systems (`ArrowStore`).
"""

from __future__ import annotations

import atexit
import fnmatch
import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from tightrope.errors import InputError, Location


@dataclass(frozen=True)
class ArrowStore:
    """A pyarrow file system: `open`, `size`, `isdir`, `find` and `glob`, as fsspec calls them."""

    system: Any

    @staticmethod
    def of(address: str) -> tuple[ArrowStore, str]:
        """The store of an address, and the path in it."""
        from pyarrow import fs

        system, path = fs.FileSystem.from_uri(address)
        return ArrowStore(system), path

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

        found = self.system.get_file_info(fs.FileSelector(path, recursive=True))
        return [entry.path for entry in found if entry.type == fs.FileType.File]

    def glob(self, pattern: str) -> list[str]:
        """All files that match a pattern; the part before the first wildcard must be a directory."""
        fixed = pattern[: min(pattern.find(c) for c in "*?[" if c in pattern)]
        return [path for path in self.find(fixed.rpartition("/")[0]) if fnmatch.fnmatch(path, pattern)]


STDIN = "-"
STDIN_NAME = "standard input"


class DataFormat(Enum):
    """What the bytes of a file are, once decompressed."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


_ENDINGS = {
    ".csv": DataFormat.CSV,
    ".tsv": DataFormat.CSV,
    ".jsonl": DataFormat.JSON_LINES,
    ".ndjson": DataFormat.JSON_LINES,
    ".parquet": DataFormat.PARQUET,
    ".pq": DataFormat.PARQUET,
    ".arrow": DataFormat.ARROW,
    ".feather": DataFormat.ARROW,
    ".ipc": DataFormat.ARROW,
}
_COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_MAGIC = (
    (b"PAR1", DataFormat.PARQUET, None),
    (b"ARROW1", DataFormat.ARROW, None),
    (b"\xff\xff\xff\xff", DataFormat.ARROW, None),
    (b"\x1f\x8b", None, "gzip"),
    (b"\x28\xb5\x2f\xfd", None, "zstd"),
    (b"BZh", None, "bz2"),
)


@dataclass(frozen=True)
class DataFile:
    """One file: where it is, how it is called in messages, what it is; `keys` come from its folders' names.

    Plain data, so that another process can open it.
    """

    path: str
    name: str
    format: DataFormat
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

    def expanded_size(self) -> tuple[int, int] | None:
        """(bytes, 0), of what gzip packed as well; (bytes on disk, 1) of what is packed in another way."""
        size = self.size()
        if size is None or self.compression is None:
            return None if size is None else (size, 0)
        if self.compression != "gzip" or size < 4:
            return size, 1
        with open(self.path, "rb") as raw:
            raw.seek(-4, os.SEEK_END)
            return int.from_bytes(raw.read(4), "little"), 0

    def digest(self) -> bytes:
        """Of what is in the file, expanded where gzip packed it; as it is where it is damaged."""
        for stream in (self.open_text if self.compression == "gzip" else self.open, self.open):
            digest = sha256()
            with suppress(OSError), stream() as raw:
                while block := raw.read(1 << 20):
                    digest.update(block)
                return digest.digest()
        return os.fsencode(self.path)

    def open(self) -> Any:
        """The bytes as they are, seekable, for pyarrow."""
        import pyarrow as pa

        if self.is_remote:
            system, path = open_store(self.path)
            return pa.PythonFile(system.open(path, "rb"), mode="r")
        return pa.OSFile(self.path, "rb")

    def open_text(self) -> Any:
        """The decompressed bytes, as a stream."""
        import pyarrow as pa

        raw = self.open()
        return raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)


def find_files(
    places: str | Path | Sequence[str | Path], format: str | None = None, growing: bool = False
) -> tuple[DataFile, ...]:
    """Every file that is meant, in order; a place without any is an `InputError`. Logs that are `growing` may
    be equal for a while."""
    listed = [places] if isinstance(places, str | Path) else list(places)
    if not listed:
        raise InputError("no data: the list of files is empty")
    stated = _read_stated(format)
    files: list[DataFile] = []
    for place in listed:
        files.extend(_of_place(os.fspath(place), stated))
    seen: set[object] = set()
    for file in files:
        if (name := _identity(file.path)) in seen:
            raise InputError(
                "the file is given twice: its rows would count twice",
                Location(file.name),
                "name it once; patterns and directories may overlap",
            )
        seen.add(name)
    if not growing:
        _refuse_copies(files)
    return tuple(files)


def _refuse_copies(files: Sequence[DataFile]) -> None:
    """Sizes first, those of what is compressed by gzip's last bytes; only files of one size are read."""
    if len(files) < 2:
        return
    alike: dict[object, list[DataFile]] = {}
    for file in files:
        if not file.is_remote and (size := file.expanded_size()) is not None:
            alike.setdefault((size, file.format, file.keys), []).append(file)
    for group in alike.values():
        known: dict[bytes, DataFile] = {}
        for file in group if len(group) > 1 else ():
            first = known.setdefault(file.digest(), file)
            if first is not file and _has_rows(file):
                raise InputError(
                    f"it holds the same rows as {first.name}, byte for byte: they would count twice",
                    Location(file.name),
                    "leave one of the two out; if they are two logs that happen to be equal, give them a "
                    "column that tells them apart, such as a time or the episode's name",
                )


def _has_rows(file: DataFile) -> bool:
    """Whether there is more in a file than a header."""
    if file.format is DataFormat.PARQUET:
        import pyarrow.parquet as pq

        return bool(pq.read_metadata(file.path).num_rows)
    if file.format is DataFormat.ARROW:
        return True
    lines = 1 if file.format is DataFormat.CSV else 0
    with file.open_text() as text:
        begin = text.read(1 << 16)
    return len(begin) == 1 << 16 or sum(map(bool, map(bytes.strip, begin.splitlines()))) > lines


def _identity(path: str) -> object:
    """The same for two names, or links, of one file."""
    try:
        found = os.stat(path)
    except OSError:
        return path
    return found.st_dev, found.st_ino


def format_of(name: str) -> tuple[DataFormat, str | None] | None:
    """What an ending says: the format and the compression; None where it says nothing."""
    path = PurePosixPath(name.lower())
    compression = _COMPRESSION.get(path.suffix)
    if compression is not None:
        path = path.with_suffix("")
    kind = _ENDINGS.get(path.suffix)
    if kind is None or (compression is not None and kind in (DataFormat.PARQUET, DataFormat.ARROW)):
        return None
    return kind, compression


def open_store(address: str) -> tuple[Any, str]:
    """The file system of an address and the path in it: fsspec's where it knows it, else pyarrow's."""
    scheme = address.partition("://")[0]
    try:
        try:
            import fsspec

            system, path = fsspec.core.url_to_fs(address)
        except ImportError:
            system, path = ArrowStore.of(address)
    except ValueError as error:
        raise InputError(
            f"no file system is known for {scheme}://: {error}",
            hint="pip install 'tightrope[stores]' and the file system's package (s3fs, gcsfs, adlfs, …)",
        ) from error
    return system, path


def _read_stated(format: str | None) -> tuple[DataFormat, str | None] | None:
    if format is None:
        return None
    found = format_of(f"x.{format.lstrip('.')}")
    if found is None:
        known = ", ".join(kind.lstrip(".") for kind in _ENDINGS)
        raise InputError(f"'{format}' is no data format", hint=f"known are {known}; csv.gz, jsonl.zst, …")
    return found


def _of_place(place: str, stated: tuple[DataFormat, str | None] | None) -> list[DataFile]:
    if place == STDIN:
        return [_spool_stdin(stated)]
    if "://" in place:
        return _of_store(place, stated)
    if os.path.isdir(place):
        return _of_directory(place, stated)
    if not os.path.lexists(place) and glob.has_magic(place):
        found = sorted(glob.glob(place, recursive=True), key=_natural)
        base = _find_fixed_part(place)
        files = [file for path in found for file in _list_found(path, stated, base)]
        if not files:
            raise InputError("no file matches the pattern", Location(place))
        return files
    return [_file(place, stated)]


def _list_found(path: str, stated: tuple[DataFormat, str | None] | None, base: str) -> list[DataFile]:
    return _of_directory(path, stated, base) if os.path.isdir(path) else [_file(path, stated, base)]


def _of_directory(
    place: str, stated: tuple[DataFormat, str | None] | None, base: str | None = None
) -> list[DataFile]:
    found: list[str] = []
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        found.extend(os.path.join(folder, name) for name in names if not _is_hidden(name))
    return _of_tree(place, sorted(found, key=_natural), stated, place if base is None else base)


def _of_store(place: str, stated: tuple[DataFormat, str | None] | None) -> list[DataFile]:
    system, path = open_store(place)
    scheme = place.partition("://")[0]
    try:
        if glob.has_magic(path):
            found = sorted(system.glob(path), key=_natural)
        elif system.isdir(path):
            found = sorted(system.find(path), key=_natural)
        else:
            return [_file(place, stated)]
    except OSError as error:
        raise InputError(f"the store cannot be read: {error}", Location(place)) from error
    found = [name for name in found if not any(_is_hidden(part) for part in PurePosixPath(name).parts[1:])]
    addresses = [f"{scheme}://{name}" for name in found]
    return _of_tree(place, addresses, stated, f"{scheme}://{_find_fixed_part(path)}")


def _of_tree(
    place: str, found: list[str], stated: tuple[DataFormat, str | None] | None, base: str
) -> list[DataFile]:
    """The data files among all files of a tree; other files beside them are no data."""
    data = [path for path in found if stated is not None or format_of(path) is not None]
    if not data:
        raise InputError(
            "there is no data file in the directory",
            Location(place),
            f"looked for files that end in {', '.join(_ENDINGS)}",
        )
    return [_file(path, stated, base) for path in data]


def _file(path: str, stated: tuple[DataFormat, str | None] | None, base: str | None = None) -> DataFile:
    """One file; folders below `base` may add columns, those above it and those of a file by name never do."""
    known = stated or format_of(path)
    if known is None:
        suffix = "".join(PurePosixPath(path).suffixes[-2:])
        raise InputError(
            f"a data file ends in {', '.join(_ENDINGS)} (text also .gz, .zst), not {suffix or 'nothing'!r}",
            Location(path),
            'say what it is with `format="csv"`',
        )
    keys = _keys(path[len(base) :]) if base is not None else ()
    return DataFile(path, path, *known, keys=keys)


def _find_fixed_part(pattern: str) -> str:
    """The folders of a pattern before its first wildcard; all of a path without any."""
    if not glob.has_magic(pattern):
        return pattern
    first = min(pattern.find(mark) for mark in "*?[" if mark in pattern)
    return pattern[: pattern.rfind("/", 0, first) + 1]


def _keys(path: str) -> tuple[tuple[str, str], ...]:
    """`run=3/day=2/part.parquet` as (("run", "3"), ("day", "2"))."""
    parts = PurePosixPath(path.replace(os.sep, "/")).parts[:-1]
    pairs = [part.partition("=") for part in parts if "=" in part]
    return tuple((unquote(key), unquote(value)) for key, _, value in pairs if key.isidentifier())


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _natural(path: str) -> list[tuple[int, int | str]]:
    """Sorts part-2 before part-10."""
    pieces = re.split(r"([0-9]+)", path)
    return [(0, int(piece)) if piece.isdigit() else (1, piece) for piece in pieces]


def _spool_stdin(stated: tuple[DataFormat, str | None] | None) -> DataFile:
    """Standard input, copied to a file that lives as long as the process: rows may be needed twice."""
    with tempfile.NamedTemporaryFile(prefix="tightrope-", delete=False) as target:
        atexit.register(_forget, target.name)
        shutil.copyfileobj(sys.stdin.buffer, target)
    if stated is not None:
        return DataFile(target.name, STDIN_NAME, *stated)
    return DataFile(target.name, STDIN_NAME, *_look_at(target.name))


def _forget(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def _look_at(path: str) -> tuple[DataFormat, str | None]:
    """The format that the first bytes speak of."""
    import pyarrow as pa

    with open(path, "rb") as file:
        begin = file.read(1 << 12)
    compression = None
    for magic, kind, packed in _MAGIC:
        if begin.startswith(magic):
            if kind is not None:
                return kind, None
            compression = packed
    if compression is not None:
        with pa.CompressedInputStream(pa.OSFile(path, "rb"), compression) as stream:
            begin = stream.read(1 << 12)
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    return (DataFormat.JSON_LINES if text.startswith(b"{") else DataFormat.CSV), compression


def spool(write: Iterable[Any], schema: Any) -> DataFile:
    """Record batches that can be read only once, kept in a file that lives as long as the process."""
    import pyarrow as pa

    with tempfile.NamedTemporaryFile(prefix="tightrope-", suffix=".arrow", delete=False) as target:
        atexit.register(_forget, target.name)
        with pa.ipc.new_file(target, schema) as writer:
            for batch in write:
                writer.write_batch(batch)
    return DataFile(target.name, "the record batches", DataFormat.ARROW)
