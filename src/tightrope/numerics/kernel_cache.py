"""Where compiled kernels are kept: beside the source, in a private directory, or nowhere.

A cache of machine code is code: whoever can write to it decides what this process runs. So next to the
source itself there is only one other place, a directory of the user's own (`$XDG_CACHE_HOME/tightrope` or
`~/.cache/tightrope`) which must belong to them and be closed to everybody else. Where that cannot be had
kernels are compiled anew by every process, and one line says so. `NUMBA_CACHE_DIR`, where it is set, goes
before all of this.

Kernels call kernels of other files, and numba looks at the file of the caller alone: after an upgrade it
would go on running machine code of the version before. So the kernels of a file are kept in a folder named
after the contents of that file and of all files that it imports, directly or not: whatever a kernel could be
compiled from. A change in one of these starts a new folder, and a change elsewhere costs nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any

from numba import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    _CacheLocator,
    _SourceFileBackedLocatorMixin,
)

CLOSED = 0o700

PACKAGE = Path(__file__).resolve().parents[1]
IMPORTS = re.compile(
    rb"^[ \t]*(?:from[ \t]+tightrope(?:\.([\w.]+))?[ \t]+import|import[ \t]+tightrope(?:\.([\w.]+))?)", re.M
)
"""Imports of the package's own modules, wherever in a file they stand."""

VERSIONS = 4
"""Folders for the kernels of one file that stay when a new one is made, the newest of all versions."""


@cache
def kernel_directory(source: Path) -> Path | None:
    """The folder for the kernels of this very file; None where there is no place for one."""
    base = _base()
    if base is None:
        return None
    name = ".".join(source.relative_to(PACKAGE).with_suffix("").parts)
    folder = base / "kernels" / f"{name}-{source_digest(source)}"
    if not folder.is_dir():
        _drop_old(folder.parent, name)
    return folder


@cache
def _base() -> Path | None:
    """The place for folders of kernels: the user's word, beside the source, or a directory of the user."""
    setting = config.CACHE_DIR  # type: ignore[attr-defined]  # NUMBA_CACHE_DIR
    if setting:
        return Path(setting).absolute() if _takes_files(Path(setting)) else _nowhere()
    beside = PACKAGE / "__pycache__"
    return beside if _takes_files(beside) else private_directory()


def source_digest(source: Path) -> str:
    """Names a file and all that it imports from this package, by their contents."""
    known: set[Path] = set()
    new = {source}
    while new:
        known |= new
        new = {path for each in new for path in _find_imported(each)} - known
    digest = hashlib.sha256()
    for path in sorted(known):
        digest.update(f"{path.relative_to(PACKAGE)}\n".encode())
        digest.update(hashlib.sha256(_contents(path)).digest())
    return digest.hexdigest()[:16]


@cache
def _contents(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _find_imported(source: Path) -> frozenset[Path]:
    """The files that a file imports; for a package, which may hand out its modules, all in its folder."""
    files: list[Path] = []
    for match in IMPORTS.finditer(_contents(source)):
        name = match[1] or match[2]
        path = PACKAGE.joinpath(*name.decode().split(".")) if name else PACKAGE
        files += _files(path)
    return frozenset(files)


def _files(path: Path) -> Iterable[Path]:
    if path.is_dir():
        return path.rglob("*.py") if path == PACKAGE else path.glob("*.py")
    return [path.with_suffix(".py")]


def _drop_old(base: Path, name: str) -> None:
    """Kernels of other versions of a file, but for the newest few: another process may be using them."""
    with suppress(OSError):
        own = (path for path in base.iterdir() if path.name.rpartition("-")[0] == name)
        others = sorted(own, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[VERSIONS - 1 :]:
            rmtree(path, ignore_errors=True)


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


class _KernelLocator(_SourceFileBackedLocatorMixin, _CacheLocator):
    """The place for one kernel: the folder for its file, whatever numba's settings say by now."""

    def __init__(self, function: Any, file: str):
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._folder = kernel_directory(Path(file))

    def get_cache_path(self) -> str:
        return str(self._folder)


class _KernelFiles(CompileResultCacheImpl):
    _locator_classes = [_KernelLocator]  # noqa: RUF012 (as numba declares it)


class _KernelCache(FunctionCache):
    _impl_class = _KernelFiles


def keep_compiled(dispatcher: Any) -> None:
    """Have what a dispatcher compiles kept in the folder for its file, where there is one.

    numba's own setting for the place is one for the whole process: while one thread changes it, another would
    write its machine code elsewhere, and load it from there. So every dispatcher gets a cache of its own.
    """
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT: the kernel's own text in Python
        return
    function = dispatcher.py_func
    if kernel_directory(Path(function.__code__.co_filename)) is not None:
        try:
            dispatcher._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
        except RuntimeError:  # no locator: the folder cannot be made
            _nowhere()


@cache
def _nowhere() -> None:
    """Say once that nothing is kept."""
    warnings.warn(
        "compiled kernels cannot be kept: neither the installation nor a cache directory of your own "
        "(XDG_CACHE_HOME) can be written to, so every run compiles them anew",
        stacklevel=2,
    )


def _is_private(path: Path) -> bool:
    """Whether it is a directory of this user that nobody else can enter."""
    entry = os.lstat(path)
    mine = stat.S_ISDIR(entry.st_mode) and entry.st_uid == os.geteuid()
    return mine and stat.S_IMODE(entry.st_mode) & 0o077 == 0


def _takes_files(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
