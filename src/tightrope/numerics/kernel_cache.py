"""Where compiled kernels are kept: in the wheel, a directory of the user's, beside the source, or nowhere.

A cache of machine code is code: whoever can write to it decides what this process runs. So next to the
installation itself there is only one other place, a directory of the user's own (`$XDG_CACHE_HOME/tightrope`
or `~/.cache/tightrope`) which must belong to them and be closed to everybody else. It serves all
installations and clones of a user. Where that cannot be had kernels lie beside the source, and where nothing
can be written there either they are compiled anew by every process, and one line says so. `NUMBA_CACHE_DIR`,
where it is set, goes before these.

Kernels call kernels of other files, and numba looks at the file of the caller alone: after an upgrade it
would go on running machine code of the version before. So the kernels of a file are kept in a folder named
after the contents of that file and of all files that it imports, directly or not: whatever a kernel could be
compiled from. A change in one of these starts a new folder, and a change elsewhere costs nothing.

A kernel has a file for each combination of types, versions and processor, named after all of these, and the
file holds them, too. numba's own cache numbers its files and keeps an index: two processes that compile the
same kernel for different types at the same time give both the same number, and one loads what the other
wrote.

A wheel holds the kernels under `tightrope/kernels`, compiled for a baseline (`BASELINES`): they run on every
processor that has its features. They serve the version of Python and numba that they were compiled with; with
others, on older processors and in a clone kernels are compiled when they are first called.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any

import numba
from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.serialize import dumps

CLOSED = 0o700

PACKAGE = Path(__file__).resolve().parents[1]
IMPORTS = re.compile(
    rb"^[ \t]*(?:from[ \t]+tightrope(?:\.([\w.]+))?[ \t]+import|import[ \t]+tightrope(?:\.([\w.]+))?)", re.M
)
"""Imports of the package's own modules, wherever in a file they stand."""

VERSIONS = 12
"""Folders for the kernels of one file that stay when a new one is made, the newest of all versions."""

SHIPPED = PACKAGE / "kernels"
"""Kernels that came with the installation; nothing is ever written there."""

BASELINES = {
    "x86_64": ("x86-64-v3", "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse4.2 xsave"),
    "aarch64": ("generic", ""),
}
"""What kernels in a wheel are compiled for, by architecture: numba's name for it, features that a processor
must have. The generic processor of aarch64 is armv8-a, which all of them are.
"""


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
    """The place for folders of kernels: the user's word, a directory of the user, or beside the source."""
    setting = config.CACHE_DIR  # type: ignore[attr-defined]  # NUMBA_CACHE_DIR
    if setting:
        return Path(setting).absolute() if _takes_files(Path(setting)) else None
    beside = PACKAGE / "__pycache__"
    return private_directory() or (beside if _takes_files(beside) else None)


@cache
def source_digest(source: Path) -> str:
    """Names a file and all that it imports from this package but this very file, by their contents."""
    this = Path(__file__).resolve()
    known: set[Path] = set()
    new = {source}
    while new:
        known |= new
        new = {path for each in new for path in _find_imported(each)} - known - {this}
    digest = hashlib.sha256()
    for path in sorted(known):
        digest.update(_line(path))
    return digest.hexdigest()[:16]


@cache
def _contents(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _line(path: Path) -> bytes:
    """The name of a file and what it holds."""
    return f"{path.relative_to(PACKAGE)}\n".encode() + hashlib.sha256(_contents(path)).digest()


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
    return None


class _KernelLocator(_CacheLocator):
    """The place for one kernel, whatever numba's settings say by now."""

    def __init__(self, function: Any, file: str):
        self._line = function.__code__.co_firstlineno
        self._folder = kernel_directory(Path(file))

    @classmethod
    def from_function(cls, function: Any, file: str) -> _KernelLocator:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(self._folder or "")

    def get_source_stamp(self) -> str:
        return ""  # the folder's name says it

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """A folder is made when something is put there."""


class _KernelImplementation(CompileResultCacheImpl):
    _locator_classes = [_KernelLocator]  # noqa: RUF012 (as numba declares it)


class _KernelFiles:
    """The files of one kernel, with the face of numba's pair of index and data."""

    def __init__(self, source: Path, base: str):
        self._folder = kernel_directory(source)
        self._shipped = _find_shipped(source)
        self._base = base

    def load(self, key: Any) -> Any:
        sig, target, code = key
        baseline = _find_baseline(target) if self._shipped else None
        shipped = self._read(self._shipped, (sig, baseline, code)) if baseline else None
        return shipped or self._read(self._folder, key)

    def save(self, key: Any, data: Any) -> None:
        """Under another name first: readers see a whole file or none."""
        if self._folder is None:
            return _nowhere()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".part", delete=False) as file:
                file.write(dumps((key, data)))  # type: ignore[no-untyped-call]
            os.replace(file.name, self._folder / self._name(key))
        except OSError:
            _nowhere()

    def _read(self, folder: Path | None, key: Any) -> Any:
        try:
            stored, data = pickle.loads((folder / self._name(key)).read_bytes()) if folder else (None, None)
        except (OSError, EOFError, ValueError, LookupError, AttributeError, ImportError, pickle.PickleError):
            return None
        return data if stored == key else None

    def _name(self, key: Any) -> str:
        digest = hashlib.sha256(repr((numba.__version__, sys.version_info[:2], key)).encode())
        return f"{self._base}-{digest.hexdigest()[:16]}.nbc"


class _KernelCache(FunctionCache):
    _impl_class = _KernelImplementation

    def __init__(self, function: Any):
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file: Any = _KernelFiles(Path(function.__code__.co_filename), self._impl.filename_base)


@cache
def _find_shipped(source: Path) -> Path | None:
    """The folder for the kernels of this very file in the wheel, where there is one."""
    if not SHIPPED.is_dir():
        return None
    name = ".".join(source.relative_to(PACKAGE).with_suffix("").parts)
    folder = SHIPPED / f"{name}-{source_digest(source)}"
    return folder if folder.is_dir() else None


@cache
def _find_baseline(target: tuple[str, str, str]) -> tuple[str, str, str] | None:
    """What numba calls the target of this machine's baseline; None where it lacks one of its features."""
    from llvmlite.binding import get_host_cpu_features

    name, needed = BASELINES.get(target[0].partition("-")[0], ("", ""))
    own_choice = config.CPU_NAME or config.CPU_FEATURES  # type: ignore[attr-defined]
    features = get_host_cpu_features()
    if not name or own_choice or not all(features.get(feature) for feature in needed.split()):
        return None
    return target[0], name, ""


def keep_compiled(dispatcher: Any) -> None:
    """Have what a dispatcher compiles kept in the folder for its file, and loaded from there or the wheel.

    numba's own setting for the place is one for the whole process: while one thread changes it, another would
    write its machine code elsewhere, and load it from there. So every dispatcher gets a cache of its own.
    """
    if hasattr(dispatcher, "py_func"):  # not under NUMBA_DISABLE_JIT, where it is the kernel's own text
        dispatcher._cache = _KernelCache(dispatcher.py_func)


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
