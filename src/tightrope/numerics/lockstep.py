"""Threads that go through the same stages in step, inside compiled loops.

Every worker stores its number of finished stages in its own place (release semantics), and begins a stage
when all have finished those before it (acquire). So a reader sees all that the writer wrote before, and with
one writer per place no other atomic operation is needed. A meeting costs less than a microsecond if every
worker has a core. Otherwise waiting times out: the loop returns, and `go_through` yields and calls it again.
The division of work does not depend on it.

This module imports numba: import it only where several threads run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.jit import Untyped, kernel

APART = 16
"""Numbers of 8 bytes between the places of two workers: no two share a cache line."""

SPINS = 300_000
"""Looks at what the others have finished before a worker lets others run: some tenth of a millisecond."""

PATIENCE = 50
"""Waits in a row after which a worker sleeps a little each time."""

CODE: Untyped = cgutils
NUMPY: Untyped = arrayobj
"""Parts of numba that carry no types."""

ENDED, WAITING = 0, 1
"""What a compiled loop says when it returns: that is all; the others are not there yet."""

_ALL = np.iinfo(np.int64).max


def open_progress(workers: int) -> OffsetArray:
    """How many stages each worker has finished: none."""
    return np.zeros(workers * APART, np.int64)


def go_through(walk: Callable[[], int], progress: OffsetArray, worker: int) -> None:
    """Call `walk` until it has `ENDED`; whatever happens, nobody waits for this worker afterwards."""
    waited = 0
    try:
        while walk() == WAITING:
            waited += 1
            time.sleep(0.0 if waited < PATIENCE else 1e-4)
    finally:
        publish(progress, worker, _ALL)


@kernel
def publish(progress: OffsetArray, worker: int, finished: int) -> None:
    """Say that so many stages are finished."""
    _store_release(progress, worker * APART, finished)


@kernel
def wait_for_all(progress: OffsetArray, finished: int) -> bool:
    """Whether all workers have finished so many stages, now or a moment later."""
    for w in range(len(progress) // APART):
        spins = 0
        while _load_acquire(progress, w * APART) < finished:
            spins += 1
            if spins > SPINS:
                return False
    return True


def _type_load(typing_context: object, array: types.Type, index: object) -> tuple[object, Untyped]:
    def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> object:
        pointer = _address(context, builder, signature, arguments)
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, types.intp), generate


def _type_store(
    typing_context: object, array: types.Type, index: object, value: object
) -> tuple[object, Untyped]:
    def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> object:
        pointer = _address(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, types.int64), generate


def _address(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> object:
    """Of the entry of a contiguous array of int64."""
    array = NUMPY.make_array(signature.args[0])(context, builder, arguments[0])
    return CODE.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])


_load_acquire: Untyped = intrinsic(_type_load)
_store_release: Untyped = intrinsic(_type_store)
