"""Differences between operating systems: locks and owners of files, cores, memory in use.

Linux and macOS have `flock`; Windows locks the first byte of a file. On Windows, and on file systems without
locks, directories are not protected from concurrent writers.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import resource

IS_WINDOWS = sys.platform == "win32"


def lock(descriptor: int, *, wait: bool = True) -> None:
    """Lock an open file; `BlockingIOError` where it is taken and `wait` is False, `OSError` without locks."""
    if sys.platform == "win32":
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from error
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def open_folder(folder: Path) -> int | None:
    """A descriptor of a directory, to be locked; None where there are none."""
    return None if IS_WINDOWS else os.open(folder, os.O_RDONLY)


def is_private(path: Path) -> bool:
    """Whether it is a directory of this user alone: by its modes, on Windows below the user's home."""
    entry = os.lstat(path)
    if sys.platform == "win32":
        return stat.S_ISDIR(entry.st_mode) and Path.home().resolve() in path.resolve().parents
    mine = stat.S_ISDIR(entry.st_mode) and entry.st_uid == os.geteuid()
    return mine and stat.S_IMODE(entry.st_mode) & 0o077 == 0


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory() -> int:
    """Bytes that this process has had in memory at most so far; 0 where nobody says."""
    if sys.platform == "win32":
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
