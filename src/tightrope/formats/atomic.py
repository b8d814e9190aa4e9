"""Files that appear whole or not at all.

The text goes to a temporary name in the same directory, is synced to the disk and then renamed
over the target, which is one step for the file system: a reader sees the old file or the new
one. On an error or Ctrl-C the temporary file is removed and the old one stays.

    with atomic_write("policy.csv") as file:
        file.write("state,action\\n")

What is no regular file (`/dev/stdout`, a pipe) has no old content to protect and is written directly.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from tightrope.errors import InputError


@contextmanager
def atomic_write(path: str | Path) -> Iterator[TextIO]:
    """A text file (UTF-8, lines ending in a line feed) that takes its place when the block ends."""
    with (
        atomic_path(path) as temporary,
        explained(path),
        open(temporary, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


@contextmanager
def atomic_write_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file that takes its place when the block ends."""
    with atomic_path(path) as temporary, explained(path), open(temporary, "wb") as file:
        yield file


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A path to write to, for writers that want a name; what is there moves to `path` in the end."""
    check_target(path)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        with explained(path):
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o777)
        yield temporary
        with explained(path):
            sync(temporary)
            os.replace(temporary, target)
            sync(target.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def check_target(path: str | Path) -> None:
    """Refuse a file that cannot be written; asked before something long is computed for it."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a directory")
    if target.exists() and not target.is_file():
        return
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {target.parent}")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: no permission to write to {target.parent}")


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
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
