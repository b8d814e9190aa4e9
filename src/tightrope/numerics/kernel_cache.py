"""Cache of compiled kernels: in the wheel, a directory of the user, beside the source, or none.

*Security.* Cached machine code is executed, so the user's directory must belong to the user and be closed to
others; otherwise kernels lie beside the source. `NUMBA_CACHE_DIR` goes first.

*Validity.* A kernel is stored under a digest of all its inputs (`kernel_digest`); the file's name adds types,
versions and processor, and the file repeats them. Processes that need the same kernel wait for the one that
compiles. Unused kernels are dropped. Kernels of a wheel are compiled for a baseline (`BASELINES`).
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING

import numba
import numpy as np
from numba import config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.extending import _Intrinsic
from numba.core.serialize import dumps

from tightrope.numerics.machine import is_private, lock

if TYPE_CHECKING:
    from tightrope.numerics.jit import Kernel, Untyped

CLOSED = 0o700

PACKAGE = Path(__file__).resolve().parents[1]
VERSIONS = 48
"""Files of one kernel, for all types and of all versions, that stay when another is written: the newest."""

DAY = 86_400.0
UNUSED, UNUSED_FOLDER = 90 * DAY, 7 * DAY
"""Seconds after which a file of kernels, or all of an earlier version's folder, is dropped."""

LOOKS, PAUSE = 1200, 0.1
"""How often and how many seconds apart a process looks whether another one has compiled what it needs."""

KERNEL_FILES = (".nbc", ".nbi", ".lock", ".part")
EARLIER_FOLDER = re.compile(r"[\w.]+-[0-9a-f]{16}")

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
    """The folder for the kernels of a file; None where there is no place for one."""
    base = _base()
    return None if base is None else base / "kernels" / _folder_name(source)


def _folder_name(source: Path) -> str:
    return ".".join(source.relative_to(PACKAGE).with_suffix("").parts)


@cache
def _base() -> Path | None:
    """The place for folders of kernels: the user's word, a directory of the user, or beside the source."""
    setting = config.CACHE_DIR  # type: ignore[attr-defined]  # NUMBA_CACHE_DIR
    if setting:
        return Path(setting).absolute() if _takes_files(Path(setting)) else None
    beside = PACKAGE / "__pycache__"
    return private_directory() or (beside if _takes_files(beside) else None)


@cache
def kernel_digest(kernel: Kernel) -> str:
    """Names all that a `jit.Kernel` is compiled from, by content, but for the types that it is called with.

    numba reads a function's code, and takes the values of the names in it for constants. Of two kernels that
    call each other neither could be told without the other: there are none.
    """
    function = kernel.function
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    options = tuple(kernel.options.items())
    parts = _describe_code(function.__code__, kernel), function.__defaults__, cells, options
    return hashlib.sha256(repr([_describe(each, kernel) for each in parts]).encode()).hexdigest()


def _describe_code(code: CodeType, kernel: Kernel) -> object:
    """Instructions, constants without the docstring, and what stands behind every name."""
    constants = code.co_consts[code.co_consts[:1] == (kernel.function.__doc__,) :]
    known = kernel.function.__globals__
    named = tuple((name, known[name]) for name in code.co_names if name in known)
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_argcount, code.co_flags, names, constants, named


def _describe(value: object, kernel: Kernel) -> object:
    """Words and numbers that are the same in every process where the value is the same."""
    if isinstance(value, type(kernel)):
        return "itself" if value is kernel else kernel_digest(value)
    match value:
        case CodeType():
            return _describe(_describe_code(value, kernel), kernel)
        case tuple():
            return type(value).__qualname__, *(_describe(each, kernel) for each in value)
        case np.ndarray():
            return value.dtype.str, value.shape, value.tobytes()
        case None | bool() | int() | float() | complex() | str() | bytes() | np.generic():
            return type(value).__qualname__, repr(value)
        case ModuleType() if not value.__name__.startswith("tightrope"):
            return value.__name__
        case type() if issubclass(value, tuple) and hasattr(value, "_fields"):
            return value.__qualname__, value._fields
        case type() if not value.__module__.startswith("tightrope"):
            return value.__module__, value.__qualname__
        case FunctionType() | type() | _Intrinsic():
            place = sys.modules[value.__module__].__file__ or ""
            return getattr(value, "__qualname__", ""), _file_digest(Path(place))
    raise TypeError(f"{kernel.function.__qualname__} names {value!r}: what is compiled from it is not known")


@cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _fields(each: object) -> object:
    """Names of the fields of records among types: numba's own names of these types leave them out."""
    if isinstance(each, types.BaseTuple):
        return getattr(each, "fields", None), *(_fields(part) for part in each)  # type: ignore[attr-defined]
    return tuple(_fields(part) for part in each) if isinstance(each, tuple) else None


@cache
def private_directory() -> Path | None:
    """The user's own directory for kernels, made where it is missing; None where it is not theirs alone."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(base) / "tightrope"
    if path.is_absolute():
        try:
            path.parent.mkdir(mode=CLOSED, parents=True, exist_ok=True)
            path.mkdir(mode=CLOSED, exist_ok=True)
            if is_private(path) and _takes_files(path):
                return path
        except OSError:
            pass
    return None


class _KernelFiles:
    """The files of one kernel, with the face of numba's pair of index and data and of their place."""

    def __init__(self, kernel: Kernel, is_called_by_kernels: bool = False):
        source = Path(kernel.function.__code__.co_filename)
        shipped = SHIPPED / _folder_name(source)
        self._folder = kernel_directory(source)
        self._shipped = shipped if shipped.is_dir() else None
        self._kernel = kernel.function.__name__
        self._digest = kernel_digest(kernel) + is_called_by_kernels * " without a face for Python"
        self._marks: dict[str, int] = {}

    def ensure_cache_path(self) -> None:
        """A folder is made when something is put there."""

    def load(self, key: tuple[Untyped, ...]) -> object:
        sig, target, code = key
        baseline = _find_baseline(target) if self._shipped else None
        shipped = self._read(self._shipped, (sig, baseline, code)) if baseline else None
        return shipped or self._read(self._folder, key) or self._wait(key)

    def save(self, key: tuple[Untyped, ...], data: object) -> None:
        """Under another name first: readers see a whole file or none."""
        if self._folder is None:
            return _nowhere()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".part", delete=False) as file:
                file.write(dumps((key, self._digest, data)))  # type: ignore[no-untyped-call]
            os.replace(file.name, self._folder / self._name(key))
        except OSError:
            return _nowhere()
        self._drop_old(self._folder)
        if own := private_directory():
            drop_unused(own / "kernels")
        if mark := self._marks.pop(self._name(key), None):
            with suppress(OSError):
                os.unlink(self._folder / f"{self._name(key)}.lock")
            os.close(mark)

    def _wait(self, key: tuple[Untyped, ...]) -> object:
        """What another process is compiling now; None where this one shall, and others wait for it."""
        name = self._name(key)
        if self._folder is None or name in self._marks:
            return None
        with suppress(OSError):  # no such locks here
            self._folder.mkdir(parents=True, exist_ok=True)
            mark = self._marks[name] = os.open(self._folder / f"{name}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
            for _ in range(LOOKS):
                try:
                    lock(mark, wait=False)
                    break
                except BlockingIOError:
                    time.sleep(PAUSE)
            if data := self._read(self._folder, key):
                os.close(self._marks.pop(name))
                return data
        return None

    def _read(self, folder: Path | None, key: tuple[Untyped, ...]) -> object:
        try:
            *stored, data = pickle.loads((folder / self._name(key)).read_bytes()) if folder else (None,)
        except (OSError, EOFError, ValueError, LookupError, AttributeError, ImportError, pickle.PickleError):
            return None
        if stored != [key, self._digest]:
            return None
        if folder and folder == self._folder:
            _note_use(folder / self._name(key))
        return data

    def _name(self, key: tuple[Untyped, ...]) -> str:
        what = numba.__version__, sys.version_info[:2], key, _fields(key[0]), self._digest
        return f"{self._kernel}-{hashlib.sha256(repr(what).encode()).hexdigest()[:16]}.nbc"

    def _drop_old(self, folder: Path) -> None:
        """Another process may be using the newest few of other versions."""
        with suppress(OSError):
            own = folder.glob(f"{self._kernel}-{'?' * 16}.nbc")
            for path in sorted(own, key=lambda path: path.stat().st_mtime, reverse=True)[VERSIONS:]:
                path.unlink()


def _note_use(path: Path) -> None:
    """Whether a file's time of reading is kept depends on the file system."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


@cache
def drop_unused(folders: Path) -> None:
    """Drop unused files one by one; folders that processes of this version write to stay."""
    stamp, now = folders / "swept", time.time()
    with suppress(OSError):
        if stamp.exists() and now - stamp.stat().st_mtime < DAY:
            return
        stamp.touch()
        for folder in folders.iterdir():
            if folder.is_symlink() or not folder.is_dir():
                continue
            files = {path: path.lstat() for path in folder.iterdir() if path.suffix in KERNEL_FILES}
            ages = {path: now - max(each.st_mtime, each.st_atime) for path, each in files.items()}
            is_earlier = EARLIER_FOLDER.fullmatch(folder.name) is not None
            gone = is_earlier and min(ages.values(), default=UNUSED_FOLDER) >= UNUSED_FOLDER
            for path, age in ages.items():
                if gone or age > UNUSED:
                    path.unlink(missing_ok=True)
            if gone:
                with suppress(OSError):  # not empty: other files are in there
                    folder.rmdir()


class _KernelCache(FunctionCache):
    """Numba's, with our files in place of its own."""

    def __init__(self, kernel: Kernel, is_called_by_kernels: bool):
        self._name, self._py_func = repr(kernel.function), kernel.function
        self._cache_file: Untyped = _KernelFiles(kernel, is_called_by_kernels)
        self._impl: Untyped = CompileResultCacheImpl.__new__(CompileResultCacheImpl)
        self._impl._locator = self._cache_file
        self._cache_path = str(self._cache_file._folder or "")
        self.enable()  # type: ignore[no-untyped-call]


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


def keep_compiled(dispatcher: Untyped, kernel: Kernel, is_called_by_kernels: bool) -> None:
    """Have what a dispatcher compiles kept in the folder for its file, and loaded from there or the wheel.

    numba's own setting for the place is one for the whole process: while one thread changes it, another would
    write its machine code elsewhere, and load it from there. So every dispatcher gets a cache of its own.
    """
    if hasattr(dispatcher, "py_func"):  # not under NUMBA_DISABLE_JIT, where it is the kernel's own text
        dispatcher._cache = _KernelCache(kernel, is_called_by_kernels)


def is_kept(dispatcher: Untyped) -> bool:
    """Whether it is one of ours: numba compiles small helpers (`np.empty`, `max`) in every process anew."""
    return isinstance(dispatcher._cache, _KernelCache)


@cache
def _nowhere() -> None:
    """Say once that nothing is kept."""
    warnings.warn(
        "compiled kernels cannot be stored: neither the installation nor a cache directory of your own "
        "(XDG_CACHE_HOME) can be written to, so every run compiles them anew",
        stacklevel=2,
    )


def _takes_files(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
