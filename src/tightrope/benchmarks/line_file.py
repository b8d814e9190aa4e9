"""Files of one JSON object a line, appended to by one process at a time.

A line is written whole and synced. A process that dies while writing leaves at most a torn last line, which
readers pass over and the next writer cuts off.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from tightrope.errors import InputError
from tightrope.io.atomic import explain_errors


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file, a torn last one left out."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there are no records: no file {path}") from None
    return data[: _whole(data)].split(b"\n")


class LineFile:
    """A file of lines, held by this process alone while it is open."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> Self:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise InputError(
                f"another campaign is writing to {self.path}", hint="wait for it, or choose another directory"
            ) from None
        try:
            data = self.path.read_bytes()
            os.ftruncate(self._descriptor, _whole(data))
            self.read()
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def read(self) -> None:
        """What is to be known of the lines that are there already."""

    def append_line(self, line: str) -> None:
        """Add a line; it is on the disk when this returns."""
        data = (line + "\n").encode()
        with explain_errors(self.path):
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)


def _whole(data: bytes) -> int:
    """Where the last line that ends in a line feed ends."""
    return data.rfind(b"\n") + 1
