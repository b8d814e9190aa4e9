"""Where compiled kernels are kept: beside the source, in a private directory, or nowhere.

A cache of machine code is code: whoever can write to it decides what this process runs. So next to the
source itself there is only one other place, a directory of the user's own (`$XDG_CACHE_HOME/tightrope` or
`~/.cache/tightrope`) which must belong to them and be closed to everybody else. Where that cannot be had
kernels are compiled anew by every process, and one line says so. `NUMBA_CACHE_DIR`, where it is set, goes
before all of this.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from numba import config

CLOSED = 0o700
SETTINGS: Any = config
"""numba's settings, which carry no types."""


class Place(Enum):
    """Where the kernels of a source directory are kept."""

    BESIDE = "beside the source"
    PRIVATE = "in the user's own directory"
    NOWHERE = "nowhere"


@cache
def place_of(folder: str) -> Place:
    """The place for kernels whose source lies in the folder."""
    if SETTINGS.CACHE_DIR:
        return Place.BESIDE if _takes_files(Path(SETTINGS.CACHE_DIR)) else _nowhere()
    if _takes_files(Path(folder) / "__pycache__"):
        return Place.BESIDE
    return Place.NOWHERE if private_directory() is None else Place.PRIVATE


@cache
def private_directory() -> Path | None:
    """The user's own directory for kernels, made where it is missing; None where it is not theirs alone."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(base) / "tightrope"
    if path.is_absolute():
        try:
            path.parent.mkdir(mode=CLOSED, parents=True, exist_ok=True)
            path.mkdir(mode=CLOSED, exist_ok=True)
            if _is_private(path) and _takes_files(path):
                return path
        except OSError:
            pass
    _nowhere()
    return None


@contextmanager
def caching(folder: str) -> Iterator[bool]:
    """Within the block numba keeps what is compiled at the folder's place; whether there is one."""
    place = place_of(folder)
    private = private_directory() if place is Place.PRIVATE else None
    before = SETTINGS.CACHE_DIR
    try:
        if private is not None:
            SETTINGS.CACHE_DIR = str(private)
        yield place is not Place.NOWHERE
    finally:
        SETTINGS.CACHE_DIR = before


@cache
def _nowhere() -> Place:
    """Say once that nothing is kept."""
    warnings.warn(
        "compiled kernels cannot be kept: neither the installation nor a cache directory of your own "
        "(XDG_CACHE_HOME) can be written to, so every run compiles them anew",
        stacklevel=2,
    )
    return Place.NOWHERE


def _is_private(path: Path) -> bool:
    """Whether it is a directory of this user that nobody else can enter."""
    found = os.lstat(path)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and stat.S_IMODE(found.st_mode) & 0o077 == 0
    )


def _takes_files(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
