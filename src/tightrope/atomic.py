"""Atomic writes: a file appears whole or not at all.

The text goes to a temporary file in the same directory, is synced and renamed over the target. On an error or
Ctrl-C the temporary file is removed and the old one stays.

    with atomic_write("policy.csv") as file:
        file.write("state,action\\n")

Devices and pipes are written directly. A stream of the process (`/dev/stdout`, `/dev/fd/3`) may lead to a
file that another process appends to, so the open stream is used: nothing is truncated or replaced.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, TextIO

from tightrope.errors import InputError, describe


@contextmanager
def atomic_write(path: str | Path) -> Iterator[TextIO]:
    """A text file (UTF-8, lines ending in a line feed) that takes its place when the block ends."""
    with (
        atomic_path(path) as temporary,
        explain_errors(path),
        open(temporary, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


@contextmanager
def atomic_write_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file that takes its place when the block ends."""
    with atomic_path(path) as temporary, explain_errors(path), open(temporary, "wb") as file:
        yield file


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A path to write to, for writers that want a name; what is there moves to `path` in the end."""
    check_target(path)
    target = Path(os.path.realpath(path))
    if target.is_file() and (descriptor := open_descriptor(path)) is not None:
        with _into(descriptor, path) as temporary:
            yield temporary
        return
    if target.exists() and not target.is_file():
        yield target
        return
    temporary = target.with_name(f".{target.name[:100]}.{os.urandom(8).hex()}.part")
    try:
        with explain_errors(path):
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o777)
        yield temporary
        with explain_errors(path):
            sync(temporary)
            os.replace(temporary, target)
            sync(target.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def path_of(given: str | PathLike[str]) -> Path:
    """The path that is given; an `InputError` for anything else."""
    if not isinstance(given, str | PathLike):
        raise InputError(f"`path` is {describe(given)}, not the name of a file or directory")
    return Path(given)


def check_target(path: str | Path) -> None:
    """Refuse a file that cannot be written; asked before something long is computed for it."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise InputError(f"cannot write {path}: it is a link that leads in a circle")
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a directory")
    if is_stream(path):
        return
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {target.parent}")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: no permission to write to {target.parent}")


_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/(?:self|thread-self|[0-9]+)/fd)/([0-9]+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def is_stream(path: str | Path) -> bool:
    """Whether it is a device, a pipe or an open stream: no file with old content to protect."""
    target = Path(os.path.realpath(path))
    return (target.exists() and not target.is_file()) or open_descriptor(path) is not None


def open_descriptor(path: str | Path) -> int | None:
    """The number of the process's open stream that the path names, directly or through links."""
    place = os.path.abspath(path)
    for _ in range(40):  # no system follows more links
        named = _DESCRIPTOR.fullmatch(place)
        number = int(named[1]) if named is not None else _STANDARD.get(place)
        if number is not None:
            own = re.match(r"/proc/([0-9]+)/", place)
            return number if own is None or int(own[1]) == os.getpid() else None
        if not os.path.islink(place):
            return None
        place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))
    return None


@contextmanager
def _into(descriptor: int, path: str | Path) -> Iterator[Path]:
    """A temporary file whose content goes to an open stream when the block ends."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "content"
        temporary.touch()
        yield temporary
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with (
            explain_errors(path),
            temporary.open("rb") as content,
            os.fdopen(os.dup(descriptor), "wb") as out,
        ):
            shutil.copyfileobj(content, out)


@contextmanager
def explain_errors(path: str | Path) -> Iterator[None]:
    """Say of an operating system's error which file could not be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
