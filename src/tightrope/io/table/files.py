"""From what a user calls data to opened tables: which files these are, and what kind each of them is.

A place is a file, a glob pattern, a directory (searched in full; `key=value` folders in it become columns),
an address of an object store (`s3://…`, through fsspec or pyarrow) or `-` for standard input. Files come in
the order given; those of a pattern or directory in the order of their names. That order is taken for their
order in time. One log under two names, compressed or with other line ends, is refused: its rows would count
twice.

The name's ending says what a file is (`.csv.gz`); standard input, which has none, is looked at. Another
package adds a `LogFormat` by an entry point of the group `tightrope.logs`, as `tightrope.fleet.traces` does.
"""

from __future__ import annotations

import atexit
import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from tightrope.errors import InputError, Location
from tightrope.io.formats import with_plugins
from tightrope.io.table.arrow import Arrow, InMemory, Parquet
from tightrope.io.table.data_table import COMMENT, DataTable, LogFile, LogFormat, explain_errors, open_store
from tightrope.io.table.frames import Minari, SparkFrames
from tightrope.io.table.text import Csv, JsonLines, text_lines
from tightrope.numerics.late import fs, pa

STDIN = "-"

BUILT_IN = (Csv(), JsonLines(), Parquet(), Arrow(), SparkFrames(), InMemory(), Minari())
COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

Kind = tuple[LogFormat, str | None]
"""A format, and how it is compressed."""

_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}


@cache
def log_formats() -> tuple[LogFormat, ...]:
    """All formats: ours first, then those of other packages by their names."""
    return with_plugins(BUILT_IN, "tightrope.logs", LogFormat, "format of logs")


def format_of(name: str) -> Kind | None:
    """What an ending says: the format and the compression; None where it says nothing."""
    path = PurePosixPath(name.lower())
    compression = COMPRESSION.get(path.suffix)
    if compression is not None:
        path = path.with_suffix("")
    for known in (lambda: BUILT_IN, log_formats):  # other packages are loaded if need be
        for form in known() if path.suffix else ():
            if path.suffix in form.suffixes:
                return None if compression and not form.is_text else (form, compression)
    return None


def endings() -> tuple[str, ...]:
    """The endings of all formats."""
    return tuple(ending for form in log_formats() for ending in form.suffixes)


def find_files(
    places: str | Path | Sequence[str | Path], format: str | None = None, growing: bool = False
) -> tuple[LogFile, ...]:
    """List all files in order; refuse a place without any. Logs that are `growing` may be equal."""
    listed = [places] if isinstance(places, str | Path) else list(places)
    if not listed:
        raise InputError("no data: the list of files is empty")
    stated = None if format is None else format_of(f"x.{format.lstrip('.')}")
    if format is not None and stated is None:
        known = ", ".join(ending.lstrip(".") for ending in endings())
        raise InputError(
            f"'{format}' is not a data format", hint=f"known values: {known}; csv.gz, jsonl.zst, …"
        )
    files = [file for place in listed for file in _of_place(os.fspath(place), stated)]
    seen: set[object] = set()
    for file in files:
        if (name := _identity(file.path)) in seen:
            raise InputError(
                "the file is given twice: its rows would count twice",
                Location(file.name),
                "name it once; patterns and directories may overlap",
            )
        seen.add(name)
    if not growing and len(files) > 1:
        _refuse_copies(files)
    return tuple(files)


def _identity(path: str) -> object:
    """The same for two names, or links, of one file."""
    try:
        status = os.stat(path)
    except OSError:
        return path
    return status.st_dev, status.st_ino


def _refuse_copies(files: Sequence[LogFile]) -> None:
    """Refuse a file with the rows of another; only files that begin alike are read."""
    begin_alike = _alike([file for file in files if not file.is_remote], _beginning)
    for first, copy, *_ in (same for some in begin_alike for same in _alike(some, _digest)):
        table = open_table(copy)
        if next(table.chunks(table.columns[:1], lambda: None), None) is not None:
            raise InputError(
                f"it holds the same rows as {first.name}: they would count twice",
                Location(copy.name),
                "leave one of the two out; if they are two logs that happen to be equal, give them a "
                "column that distinguishes them, such as a time or the episode's name",
            )


def _alike(files: Sequence[LogFile], key: Callable[[LogFile], object]) -> list[list[LogFile]]:
    """Those that have something in common, in groups."""
    groups: dict[object, list[LogFile]] = {}
    for file in files:
        groups.setdefault((file.format, file.keys, key(file)), []).append(file)
    return [group for group in groups.values() if len(group) > 1]


def _beginning(file: LogFile) -> object:
    """The size of a binary file, the first rows of a text."""
    return tuple(islice(_contents(file), 16)) if file.format.is_text else file.size()


def _digest(file: LogFile) -> bytes:
    """Of what is in the file."""
    digest = sha256()
    for block in _contents(file):
        digest.update(block)
    return digest.digest()


def _contents(file: LogFile) -> Iterator[bytes]:
    """What is in the file: of a text the lines, without comments and blank ones; its name if damaged."""
    try:
        if file.format.is_text:
            with text_lines(file, errors="replace") as lines:
                for line in lines:
                    if (text := line.strip()) and not text.startswith(COMMENT):
                        yield text.encode() + b"\n"
        else:
            with file.open() as raw:
                yield from iter(lambda: raw.read(1 << 20), b"")
    except (OSError, EOFError, ValueError, InputError):
        yield os.fsencode(file.path)


def _of_place(place: str, stated: Kind | None) -> list[LogFile]:
    """The files of one place."""
    if place == STDIN:
        return [_spool_stdin(stated)]
    for form in log_formats() if ":" in place else ():
        if form.scheme is not None and place.startswith(form.scheme):
            return [LogFile(place, place, form)]
    if "://" in place:
        return _of_store(place, stated)
    if os.path.isdir(place):
        return _of_tree(place, _walk(place), stated, place)
    if os.path.lexists(place) or not glob.has_magic(place):
        return [_file(place, stated)]
    base, files = fixed_part(place), list[LogFile]()
    for path in sorted(glob.glob(place, recursive=True), key=_natural):
        is_folder = os.path.isdir(path)
        files += _of_tree(path, _walk(path), stated, base) if is_folder else [_file(path, stated, base)]
    if not files:
        raise InputError("no file matches the pattern", Location(place))
    return files


def _walk(place: str) -> list[str]:
    paths: list[str] = []
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        paths.extend(os.path.join(folder, name) for name in names if not _is_hidden(name))
    return sorted(paths, key=_natural)


def _of_store(place: str, stated: Kind | None) -> list[LogFile]:
    system, path = open_store(place)
    scheme, is_pattern = place.partition("://")[0], glob.has_magic(path)
    base = fixed_part(path)
    try:
        if not is_pattern and system.get_file_info(path).type != fs.FileType.Directory:
            return [_file(place, stated)]
        inside = system.get_file_info(fs.FileSelector(base.rstrip("/"), recursive=True))
    except OSError as error:
        raise InputError(f"the store cannot be read: {error}", Location(place)) from error
    names = sorted((entry.path for entry in inside if entry.type == fs.FileType.File), key=_natural)
    wanted = re.compile(_pattern(path) if is_pattern else ".*")
    shown = [
        name
        for name in names
        if wanted.fullmatch(name) and not any(map(_is_hidden, PurePosixPath(name).parts[1:]))
    ]
    return _of_tree(place, [f"{scheme}://{name}" for name in shown], stated, f"{scheme}://{base}")


def _pattern(path: str) -> str:
    """A pattern of paths as a regular expression: `*` stays within a folder, `**/` goes through all."""
    tokens = re.split(r"(\*\*/?|\*|\?|\[[^]]+\])", path)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(known.get(t, t.replace("[!", "[^") if t.startswith("[") else re.escape(t)) for t in tokens)


def fixed_part(pattern: str) -> str:
    """The folders of a pattern before its first wildcard; all of a path without any."""
    if not glob.has_magic(pattern):
        return pattern
    first = min(pattern.find(mark) for mark in "*?[" if mark in pattern)
    return pattern[: pattern.rfind("/", 0, first) + 1]


def _of_tree(place: str, paths: list[str], stated: Kind | None, base: str) -> list[LogFile]:
    """The data files among all files of a tree; other files beside them are no data."""
    data = [path for path in paths if stated is not None or format_of(path) is not None]
    if not data:
        raise InputError(
            "there is no data file in the directory",
            Location(place),
            f"looked for files that end in {', '.join(endings())}",
        )
    return [_file(path, stated, base) for path in data]


def _file(path: str, stated: Kind | None, base: str | None = None) -> LogFile:
    """One file; folders below `base` may add columns, those above it and those of a file by name never do."""
    known = stated or format_of(path)
    if known is None:
        suffix = "".join(PurePosixPath(path).suffixes[-2:])
        raise InputError(
            f"a data file ends in {', '.join(endings())} (text also .gz, .zst), not {suffix or 'nothing'!r}",
            Location(path),
            'save it as CSV or Parquet, or say what it is: `format="csv"`',
        )
    here = path if "://" in path else os.path.abspath(path)  # also for processes in other folders
    return LogFile(here, path, *known, keys=() if base is None else _keys(path[len(base) :]))


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


def _spool_stdin(stated: Kind | None) -> LogFile:
    """Standard input, copied to a file that lives as long as the process: rows may be needed twice."""
    with tempfile.NamedTemporaryFile(prefix="tightrope-", delete=False) as target:
        atexit.register(Path(target.name).unlink, missing_ok=True)
        shutil.copyfileobj(sys.stdin.buffer, target)
    return LogFile(target.name, "standard input", *(stated or _look_at(target.name)))


def _look_at(path: str) -> Kind:
    """The format that the first bytes speak of."""
    with open(path, "rb") as file:
        begin = file.read(1 << 12)
    for form in log_formats():
        if form.marks and begin.startswith(form.marks):
            return form, None
    compression = next((packed for magic, packed in _PACKED.items() if begin.startswith(magic)), None)
    if compression is not None:
        with pa.CompressedInputStream(pa.OSFile(path, "rb"), compression) as stream:
            begin = stream.read(1 << 12)
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    return (JsonLines() if text.startswith(b"{") else Csv()), compression


MOST_IN_MEMORY = 1 << 28
"""Bytes of record batches that are kept; streams that are longer go through a file."""


def open_tables(data: Any, format: str | None = None) -> tuple[DataTable, ...]:
    """Every table that is meant, in the order given."""
    listed = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    if listed and all(isinstance(entry, DataTable) for entry in listed):
        return tuple(listed)
    if listed and all(isinstance(entry, str | Path) for entry in listed):
        return tuple(open_table(file) for file in find_files(listed, format))
    if format_of_object(data) is not None:
        return (_of_memory(data, "the table"),)
    if isinstance(data, Sequence) and data and all(format_of_object(entry) for entry in data):
        return tuple(_of_memory(entry, f"table {number}") for number, entry in enumerate(data))
    if isinstance(data, Iterator):
        batches = (pa.record_batch(batch) for batch in data)
        first = next(batches)
        return (_of_batches(chain([first], batches), first.schema),)
    raise InputError(
        f"data of the type {type(data).__name__} cannot be read",
        hint="give paths or patterns, a table (pandas, polars, pyarrow) or an iterable of episodes",
    )


def format_of_object(data: object) -> LogFormat | None:
    """The format of a table of some library, or of a reader of record batches; None of anything else."""
    return next((form for form in log_formats() if form.accepts(data)), None)


def open_table(file: LogFile) -> DataTable:
    """Look at a file's header and metadata; of JSON lines also at the keys, which may be those of traces."""
    if file.format == JsonLines():
        with explain_errors(file.name), file.open() as raw:
            head = file.expand(raw).read(1 << 16)
        file = replace(file, format=next((f for f in log_formats() if f.accepts(head)), file.format))
    opened = file.format.open(file)
    if opened is None:
        with explain_errors(file.name):
            table = _of_batches(file.format.batches(file.path), None, file.name)
        return table if table.file is not None else replace(table, file=file, keys=file.keys)
    return _checked(opened)


def _of_memory(data: object, name: str) -> DataTable:
    if isinstance(data, pa.RecordBatchReader):
        return _of_batches(data, data.schema)
    form = format_of_object(data)
    assert form is not None
    return _checked(form.hold(data, name))


def _of_batches(batches: Iterable[Any], schema: Any, name: str = "the record batches") -> DataTable:
    """Batches that can be read only once: kept in memory, or in a file where they are many."""
    memory: list[object] = []
    coming, size = iter(batches), 0
    for batch in coming:
        memory.append(batch)
        size += batch.nbytes
        if size > MOST_IN_MEMORY:
            return open_table(spool(chain(memory, coming), schema or batch.schema, name))
    if not memory and schema is None:
        raise InputError("the file is empty", Location(name))
    return _checked(InMemory().hold(pa.Table.from_batches(memory, schema), name))


def _checked(table: DataTable) -> DataTable:
    repeated = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if repeated:
        raise table.error(f"the header names column '{repeated[0]}' more than once")
    return table


def spool(batches: Iterable[object], schema: object, name: str) -> LogFile:
    """Record batches that can be read only once, kept in a file that lives as long as the process."""
    with tempfile.NamedTemporaryFile(prefix="tightrope-", suffix=".arrow", delete=False) as target:
        atexit.register(Path(target.name).unlink, missing_ok=True)
        with pa.ipc.new_file(target, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    return LogFile(target.name, name, Arrow())
