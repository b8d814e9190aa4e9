"""The CUDA kernels compiled by a C++ compiler and run on the host, one thread after the other.

That is what the tests without a GPU run on: the same source, the same launches, the same backend; only the
memory and the scheduling are the host's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import InputError
from tightrope.solver.cuda.source import SOURCE, kernel_names

_C_TYPES: dict[type, Any] = {
    np.bool_: ctypes.c_bool,
    np.int32: ctypes.c_int,
    np.int64: ctypes.c_longlong,
    np.float64: ctypes.c_double,
}


class EmulatedDevice:
    """Runs launches of 2 blocks of 3 threads, so that loops over rows are exercised."""

    xp: Any = np
    widths = (2, 3)
    least_rows = 2
    blocks, block = 2, 3
    threads = 6

    def __init__(self) -> None:
        self._libraries: dict[tuple[str, ...], Mapping[str, Any]] = {}

    def upload(self, values: Any) -> Any:
        return np.array(values)

    def download(self, values: Any, out: Any = None) -> Any:
        if out is None:
            return np.array(values)
        out[...] = values
        return out

    def pointer(self, values: Any) -> int:
        return int(values.ctypes.data)

    def functions(self, options: Sequence[str], k: int) -> Mapping[str, Any]:
        key = tuple(options)
        if key not in self._libraries:
            names = dict.fromkeys(name for width in (0, *self.widths) for name in kernel_names(width))
            self._libraries[key] = _compile(options, tuple(names))
        return self._libraries[key]

    def launch(self, function: Any, arguments: Sequence[Any], threads: int | None = None) -> None:
        held: list[Any] = []
        for argument in arguments:
            if argument is None:
                held.append(ctypes.c_void_p(None))
            elif isinstance(argument, np.ndarray) and argument.dtype.kind == "V":  # a record
                held.append((ctypes.c_char * argument.nbytes).from_buffer_copy(argument.tobytes()))
            elif isinstance(argument, np.ndarray):
                held.append(ctypes.c_void_p(self.pointer(argument)))
            else:
                held.append(_C_TYPES[type(argument)](argument))
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(value) for value in held))
        function(self.blocks, self.block, pointers)

    def record(self, launches: Callable[[], None]) -> Callable[[], None]:
        return launches


def _compile(options: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """A shared library with one entry for each kernel, kept for the next process by what went into it."""
    entries = "".join(
        f'extern "C" void entry{i}(unsigned blocks, unsigned threads, void **arguments) '
        f"{{ launch({name}, blocks, threads, arguments); }}\n"
        for i, name in enumerate(names)
    )
    text = f'#include "{SOURCE.name}"\n{entries}'
    command = [*_compiler(), "-std=c++17", "-O0", "-ffp-contract=off", "-fPIC", "-shared", "-w", *options]
    command += ["-I", str(SOURCE.parent)]
    shim = SOURCE.with_name("shim.h").read_bytes()
    digest = hashlib.sha256(SOURCE.read_bytes() + shim + text.encode() + " ".join(command).encode())
    folder = Path(tempfile.gettempdir()) / f"tightrope-cuda-emulated-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"{digest.hexdigest()[:24]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, built = Path(work) / "entries.cpp", Path(work) / "entries.so"
            source.write_text(text)
            done = subprocess.run([*command, str(source), "-o", str(built)], capture_output=True, text=True)
            if done.returncode:
                raise InputError(f"the C++ compiler refuses the kernels:\n{done.stderr[:4000]}")
            os.replace(built, library)
    loaded = ctypes.CDLL(str(library))
    return {name: getattr(loaded, f"entry{i}") for i, name in enumerate(names)}


def _compiler() -> list[str]:
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return [name]
    raise InputError(
        "the emulated CUDA device needs a C++ compiler", hint=f"install g++ ({sys.platform}), or use a GPU"
    )
