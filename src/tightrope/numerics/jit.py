"""One way to compile a kernel: numba without Python objects, cached on disk, GIL released.

A thin face, so that kernels keep their types for the checker and every kernel of the house is
compiled with the same options. Floating-point reassociation ("fastmath") is never switched on:
it would void every rounding argument. Where the machine code is kept: `tightrope.numerics.kernel_cache`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

from tightrope.numerics.kernel_cache import caching

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile on first call; the machine code is kept for the next process."""
    return _compiled(function, forceinline=False)


def inlined(function: F) -> F:
    """A kernel that is merged into the kernels that call it: for the innermost steps of a loop, where
    passing arrays costs.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool) -> F:
    with caching(Path(function.__code__.co_filename)) as kept:
        return cast(F, numba.njit(cache=kept, nogil=True, forceinline=forceinline)(function))
