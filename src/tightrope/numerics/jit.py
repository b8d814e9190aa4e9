"""One way to compile a kernel: numba without Python objects, cached on disk, GIL released.

A thin face, so that kernels keep their types for the checker and every kernel of the house is
compiled with the same options. Floating-point reassociation ("fastmath") is never switched on:
it would void every rounding argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile on first call; the machine code is kept beside the source for the next process."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def inlined(function: F) -> F:
    """A kernel that is merged into the kernels that call it: for the innermost steps of a loop, where
    passing arrays costs.
    """
    return cast(F, numba.njit(cache=True, nogil=True, forceinline=True)(function))
