"""One way to compile a kernel: numba without Python objects, cached on disk, GIL released.

All kernels have the same options and keep their types for the checker. Floating-point reassociation
("fastmath") is never enabled: it would void every rounding argument. `tightrope.numerics.kernel_cache` stores
the machine code.

numba is imported at the first call of a kernel, as that takes a second. Within `interpreting` small calls run
in Python instead: the same operations on the same float64 and integers, in the same order. `when_compiling`
reports the first kernel that has to be compiled, not loaded.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., object])

Untyped: TypeAlias = Any
"""What numba hands out, which carries no types."""

ALLOWANCE = 500_000
"""Entries of arrays that kernels may be called with in Python, all calls together: about 0.2 seconds."""

COMPILING = "compiling kernels, about half a minute, first run only ('tightrope warmup' does it ahead)"

_allowance = 0
_is_inside = False
_waiting: list[Callable[[], None]] = [lambda: _tell_at_a_prompt()]
_lock = threading.RLock()


def kernel(function: F) -> F:
    """Compile on first call; the machine code is kept for the next process."""
    return cast(F, Kernel(function, is_inlined=False))


def inlined(function: F) -> F:
    """A kernel that is merged into the kernels that call it: for the innermost steps of a loop.

    It counts no references to arrays, so that records of arrays are handed on for nothing: it makes no array
    and returns none.
    """
    return cast(F, Kernel(function, is_inlined=True))


@contextmanager
def interpreting() -> Iterator[None]:
    """Within the block kernels run in Python, as long as that is little work and numba is not there."""
    global _allowance
    _allowance = 0 if "numba" in sys.modules else ALLOWANCE
    try:
        yield
    finally:
        _allowance = 0


def is_interpreting() -> bool:
    return _allowance > 0


def stop_interpreting() -> None:
    """From now on kernels are compiled: much work is coming."""
    global _allowance
    _allowance = 0


def when_numba_is_there(action: Callable[[], None]) -> None:
    """Do it before the first kernel is compiled; now, where numba has been imported."""
    if "numba" in sys.modules:
        action()
    else:
        _waiting.append(action)


class Kernel:
    """A function that is compiled when it is first called. numba takes it for what it becomes."""

    def __init__(self, function: Callable[..., object], is_inlined: bool):
        functools.update_wrapper(self, function)
        self.function = function
        self.is_inlined = is_inlined
        self._compiled: Untyped = None
        self._callee: Untyped = None

    def __call__(self, *arguments: object) -> object:
        if self._compiled is None:
            if _is_inside or _allowance > 0:
                return self._interpret(arguments)
            with _lock:
                self._compiled = self._compiled or self._compile()
        return self._compiled(*arguments)

    @property
    def _numba_type_(self) -> object:
        """What a kernel that calls this one sees: machine code that Python cannot call.

        To unpack a dozen arrays from Python's objects takes as long to compile as many a kernel.
        """
        with _lock:
            self._callee = self._callee or self._compile(is_called_by_kernels=True)
            return self._callee._numba_type_

    @property
    def options(self) -> dict[str, Untyped]:
        """What numba is told of it; nothing calls kernels as functions of C."""
        return {
            "nogil": True,
            "forceinline": self.is_inlined,
            "no_cfunc_wrapper": True,
            "_nrt": not self.is_inlined,  # said of both: one that is compiled for a caller inherits it
        }

    def _compile(self, is_called_by_kernels: bool = False) -> Untyped:
        import numba

        from tightrope.numerics.kernel_cache import keep_compiled

        while _waiting:
            _waiting.pop()()
        options = {**self.options, "no_cpython_wrapper": is_called_by_kernels}
        compiled: Untyped = numba.njit(**options)(self.function)
        keep_compiled(compiled, self, is_called_by_kernels)
        return compiled

    def _interpret(self, arguments: tuple[object, ...]) -> object:
        """Run the function itself; kernels that it calls do the same."""
        global _allowance, _is_inside
        if _is_inside:
            return self.function(*arguments)
        _allowance -= 10 + _count_entries(arguments)
        if _allowance <= 0:
            return self(*arguments)
        _is_inside = True
        try:
            with np.errstate(all="ignore"):  # kernels say nothing of overflow either
                return self.function(*arguments)
        finally:
            _is_inside = False


def _count_entries(arguments: tuple[object, ...]) -> int:
    """Entries of the arrays among the arguments and in their records."""
    return sum(
        each.size if isinstance(each, np.ndarray) else _count_entries(each)
        for each in arguments
        if isinstance(each, np.ndarray | tuple)
    )


def when_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` once, when this process compiles a kernel for the first time."""
    when_numba_is_there(lambda: _listen(tell))


def _tell_at_a_prompt() -> None:
    """Say at a prompt of Python and in a notebook why it takes long; a script's streams are its own."""
    if hasattr(sys, "ps1") or "ipykernel" in sys.modules:
        _listen(lambda: print(COMPILING, file=sys.stderr))  # noqa: T201


def _listen(tell: Callable[[], None]) -> None:
    from numba.core import event

    events: Untyped = event

    class FirstCompile(event.Listener):
        has_told = False

        def on_start(self, event: object) -> None:
            if not self.has_told:
                self.has_told = True
                tell()

        def on_end(self, event: object) -> None:
            """Nothing to say."""

    events.register("numba:compile", FirstCompile())
