"""Nature's problem at a choice with few successors, without a branch that depends on values.

Most choices of most models have at most five successors. Sorting them by insertion is a handful of steps,
but which ones is anybody's guess, and a processor that guesses wrong loses more time than all the arithmetic
takes. A sorting network does the same comparisons whatever the values are, each of them two selections, so
that a backup is one straight piece of code. Shorter choices are filled up with successors that have no mass.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import inlined

FEW = 5


@inlined
def _exchange(x: float, room: float, y: float, other: float) -> tuple[float, float, float, float]:
    """Two successors, the smaller value first."""
    swap = y < x
    return (
        y if swap else x,
        other if swap else room,
        x if swap else y,
        room if swap else other,
    )


@inlined
def _pour(total: float, rest: float, x: float, room: float) -> tuple[float, float]:
    """The sum with what of `rest` a successor has room for, and what is left."""
    take = min(room, rest)
    return total + take * x, rest - take


@inlined
def _successor(
    t: np.uint64,
    last: np.uint64,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    sign: float,
) -> tuple[float, float, float]:
    """Its value times `sign`, its lower bound and its room; without either beyond the choice's end."""
    inside = t < last
    at = t if inside else last - np.uint64(1)
    low = lower[at]
    return (
        sign * values[np.uint32(successor[at])],
        low if inside else 0.0,
        upper[at] - low if inside else 0.0,
    )


@inlined
def pour_few(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    values: FloatArray,
    maximise: bool,
) -> float:
    """The optimum of p·values over at most FEW successors, in plain floating point; not finite where
    a value is not.
    """
    start, end = np.uint64(first), np.uint64(last)
    sign = -1.0 if maximise else 1.0
    a, low_a, room_a = _successor(start, end, successor, lower, upper, values, sign)
    b, low_b, room_b = _successor(start + np.uint64(1), end, successor, lower, upper, values, sign)
    c, low_c, room_c = _successor(start + np.uint64(2), end, successor, lower, upper, values, sign)
    d, low_d, room_d = _successor(start + np.uint64(3), end, successor, lower, upper, values, sign)
    e, low_e, room_e = _successor(start + np.uint64(4), end, successor, lower, upper, values, sign)
    total = (low_a * a + low_b * b) + (low_c * c + low_d * d) + low_e * e
    rest = max(1.0 - ((low_a + low_b) + (low_c + low_d) + low_e), 0.0)
    # nine comparisons sort five
    a, room_a, d, room_d = _exchange(a, room_a, d, room_d)
    b, room_b, e, room_e = _exchange(b, room_b, e, room_e)
    a, room_a, c, room_c = _exchange(a, room_a, c, room_c)
    b, room_b, d, room_d = _exchange(b, room_b, d, room_d)
    a, room_a, b, room_b = _exchange(a, room_a, b, room_b)
    c, room_c, e, room_e = _exchange(c, room_c, e, room_e)
    b, room_b, c, room_c = _exchange(b, room_b, c, room_c)
    d, room_d, e, room_e = _exchange(d, room_d, e, room_e)
    c, room_c, d, room_d = _exchange(c, room_c, d, room_d)
    total, rest = _pour(total, rest, a, room_a)
    total, rest = _pour(total, rest, b, room_b)
    total, rest = _pour(total, rest, c, room_c)
    total, rest = _pour(total, rest, d, room_d)
    total, rest = _pour(total, rest, e, room_e)
    return sign * total
