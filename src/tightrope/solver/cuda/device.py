"""Devices of the backend: arrays, kernels, launches. CuPy's GPU is one device, `emulated` another.

`xp` is the array module of the device: CuPy, or NumPy for the emulation. The emulation compiles the same CUDA
source with a C++ compiler and runs one thread after the other on the host, for tests without a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import CannotCertify, InputError
from tightrope.numerics.arrays import ArrayModule, DeviceArray
from tightrope.numerics.kernel_cache import private_directory

BLOCK = 256
"""Threads a block, as in kernels.cu."""

CHUNK = 2**25
"""Bytes that are copied to the device at a time."""

DEVICES = ("cpu", "cuda")
"""What `device` may say."""


Launched = Callable[..., object]
"""A kernel, called with its blocks, its threads and its arguments."""


class CupyDevice:
    """The current CUDA device, through CuPy.

    `xp` is the module of its arrays. Rows of as many successors as `widths` has are transposed, in a segment
    of their own from `least_rows` states on. A launch has `threads` by default; loops over rows are as long
    as they need to be."""

    widths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    least_rows = 4096

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError as error:
            raise InputError(
                f'`device="cuda"` needs CuPy, which could not be imported: {error}',
                hint="pip install 'tightrope[gpu]', or leave `device` out",
            ) from error
        self.xp: ArrayModule = cupy
        try:
            if cupy.cuda.runtime.getDeviceCount() < 1:
                raise InputError('`device="cuda"`: the driver reports no CUDA device')
            properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise InputError(
                f'`device="cuda"`: no usable GPU ({error})',
                hint="look at what nvidia-smi says; CuPy's CUDA version must suit the driver",
            ) from error
        self.name: str = properties["name"].decode()
        self.threads = int(properties["multiProcessorCount"]) * 24 * BLOCK
        self._modules: dict[tuple[tuple[str, ...], int], Mapping[str, Launched]] = {}

    def upload(self, values: DeviceArray) -> DeviceArray:
        """A copy on the device; large arrays go through page-locked memory, several times as fast."""
        array = np.ascontiguousarray(values)
        if array.nbytes < 4 * CHUNK:
            return self.xp.asarray(array)
        out = self.xp.empty(array.shape, array.dtype)
        stream = self.xp.cuda.get_current_stream()
        source = array.reshape(-1).view(np.uint8)
        free: list[Any] = [None, None]
        for turn, begin in enumerate(range(0, array.nbytes, CHUNK)):
            size = min(CHUNK, array.nbytes - begin)
            buffer, address = self._staging[turn % 2]
            if free[turn % 2] is not None:
                free[turn % 2].synchronize()
            buffer[:size] = source[begin : begin + size]
            self.xp.cuda.runtime.memcpyAsync(out.data.ptr + begin, address, size, 1, stream.ptr)  # to device
            free[turn % 2] = stream.record()
        stream.synchronize()
        return out

    @cached_property
    def _staging(self) -> list[tuple[DeviceArray, int]]:
        """Two page-locked buffers and their addresses."""
        locked = [self.xp.cuda.alloc_pinned_memory(CHUNK) for _ in range(2)]
        return [(np.frombuffer(memory, np.uint8, CHUNK), int(memory.ptr)) for memory in locked]

    def download(self, values: DeviceArray, out: DeviceArray = None) -> DeviceArray:
        """As a NumPy array of the host, after all launches before; `out`, where one is given."""
        return self.xp.asnumpy(values, out=out)

    def pointer(self, values: DeviceArray) -> int:
        return int(values.data.ptr)

    def functions(self, options: Sequence[str], k: int) -> Mapping[str, Launched]:
        """The kernels for segments of k successors (0: any number) by name, compiled with `options`."""
        key = tuple(options), k
        if key not in self._modules:
            module = self.xp.RawModule(
                code=SOURCE.read_text(),
                options=("--std=c++17", "--fmad=false", *options),
                name_expressions=kernel_names(k),
            )
            self._modules[key] = {name: module.get_function(name) for name in kernel_names(k)}
        return self._modules[key]

    def launch(self, function: Launched, arguments: Sequence[object], threads: int | None = None) -> None:
        """Start a kernel. Arguments are device arrays, None, NumPy scalars or records."""
        blocks = (threads or self.threads) // BLOCK
        function((blocks,), (BLOCK,), tuple(0 if argument is None else argument for argument in arguments))

    def record(self, launches: Callable[[], None]) -> Callable[[], None]:
        """A sequence of launches to be repeated as one graph, which costs one launch."""
        stream = self.xp.cuda.Stream()
        with stream:
            stream.begin_capture()
            launches()
            graph = stream.end_capture()

        def replay() -> None:
            graph.launch()

        return replay


@contextmanager
def explain_failures(device: Device) -> Iterator[None]:
    """What a GPU refuses, in words: memory that runs out, launches that fail."""
    if not isinstance(device, CupyDevice):
        yield
        return
    cuda = device.xp.cuda
    try:
        yield
    except cuda.memory.OutOfMemoryError as error:
        free, total = cuda.runtime.memGetInfo()
        raise CannotCertify(
            f"the model does not fit into the memory of the GPU ({device.name}: {free / 2**30:.1f} of "
            f'{total / 2**30:.1f} GiB were free at the end): {error}. Try `device="cpu"`.'
        ) from error
    except (
        cuda.runtime.CUDARuntimeError,
        cuda.driver.CUDADriverError,
        cuda.compiler.CompileException,
    ) as error:
        raise CannotCertify(f'the GPU ({device.name}) failed: {error}. Try `device="cpu"`.') from error


_opened: dict[str, CupyDevice | EmulatedDevice] = {}


def open_device(name: str) -> Device:
    """The device of that name, opened once per process."""
    if name not in _opened:
        if name == "cuda":
            _opened[name] = CupyDevice()
        elif name == "cuda-emulated":  # for the tests: every kernel, no GPU
            _opened[name] = EmulatedDevice()
        else:
            raise InputError(f"the device is {name!r}, not one of {', '.join(DEVICES)}")
    return _opened[name]


_C_TYPES: dict[type, Any] = {
    np.bool_: ctypes.c_bool,
    np.int32: ctypes.c_int,
    np.int64: ctypes.c_longlong,
    np.float64: ctypes.c_double,
}


class EmulatedDevice:
    """Runs launches of 2 blocks of 3 threads, so that loops over rows are exercised."""

    xp: ArrayModule = np
    widths: tuple[int, ...] = (2, 3)
    least_rows = 2
    blocks, block = 2, 3
    threads = 6

    def __init__(self) -> None:
        self._libraries: dict[tuple[str, ...], Mapping[str, Launched]] = {}

    def upload(self, values: DeviceArray) -> DeviceArray:
        return np.array(values)

    def download(self, values: DeviceArray, out: DeviceArray = None) -> DeviceArray:
        if out is None:
            return np.array(values)
        out[...] = values
        return out

    def pointer(self, values: DeviceArray) -> int:
        return int(values.ctypes.data)

    def functions(self, options: Sequence[str], k: int) -> Mapping[str, Launched]:
        key = tuple(options)
        if key not in self._libraries:
            names = dict.fromkeys(name for width in (0, *self.widths) for name in kernel_names(width))
            self._libraries[key] = _compile(options, tuple(names))
        return self._libraries[key]

    def launch(self, function: Launched, arguments: Sequence[object], threads: int | None = None) -> None:
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


Device = CupyDevice | EmulatedDevice
"""A place where kernels run."""


def _compile(options: Sequence[str], names: Sequence[str]) -> dict[str, Launched]:
    """A library with an entry per kernel, kept for the next process in the user's own directory only."""
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
    folder = private_directory()
    library = None if folder is None else folder / f"cuda-emulated-{digest.hexdigest()[:24]}.so"
    with tempfile.TemporaryDirectory(dir=folder) as work:
        if library is None or not library.exists():
            source, built = Path(work) / "entries.cpp", Path(work) / "entries.so"
            source.write_text(text)
            done = subprocess.run([*command, str(source), "-o", str(built)], capture_output=True, text=True)
            if done.returncode:
                raise InputError(f"the C++ compiler refuses the kernels:\n{done.stderr[:4000]}")
            library = built if library is None else built.replace(library)
        loaded = ctypes.CDLL(str(library))
    return {name: getattr(loaded, f"entry{i}") for i, name in enumerate(names)}


def _compiler() -> list[str]:
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return [name]
    raise InputError(
        "the emulated CUDA device needs a C++ compiler", hint=f"install g++ ({sys.platform}), or use a GPU"
    )


SOURCE = Path(__file__).with_name("kernels.cu")

_SWEEPS = tuple(f"sweep<{{k}},{frozen},{lean}>" for frozen in ("false", "true") for lean in ("false", "true"))
_OF_SEGMENTS = (
    "margin",
    "safe_states",
    "safe_choices",
    "backward",
    "judge",
    "answers",
    "optimal",
    "attract",
    "settle",
    "keep_or_sink",
    "only_loops",
    "peel",
)
_OF_VECTORS = ("join", "largest_change")


def kernel_names(k: int) -> tuple[str, ...]:
    """The kernels of kernels.cu for segments of k successors, as the compiler knows them."""
    sweeps = tuple(sweep.format(k=k) for sweep in _SWEEPS)
    return (*sweeps, *(f"{name}<{k}>" for name in _OF_SEGMENTS), *_OF_VECTORS)
