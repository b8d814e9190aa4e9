"""The array types of this package, so that signatures say what an array holds."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tightrope.numerics.jit import kernel
from tightrope_check.arrays import BoolArray as BoolArray
from tightrope_check.arrays import FloatArray as FloatArray
from tightrope_check.arrays import OffsetArray as OffsetArray

IndexArray: TypeAlias = npt.NDArray[np.int32]
"""Indices of states, expressions, actions: one per transition or choice."""

AnyArray: TypeAlias = npt.NDArray[Any]
"""An array of any type, such as the values of a variable: whole numbers or truth values."""

ExactIntegers: TypeAlias = AnyArray
"""Integers that are int64 while they fit and Python's own (dtype object) beyond."""

DeviceArray: TypeAlias = Any
"""An array of the module in which a model is solved: NumPy's, or CuPy's, which carries no types."""

ArrayModule: TypeAlias = Any
"""NumPy or CuPy."""

Scalar = TypeVar("Scalar", bound=np.generic)


def offsets(sizes: npt.ArrayLike) -> OffsetArray:
    """Where rows of these sizes begin, and the end of the last one."""
    return np.append(np.int64(0), np.cumsum(sizes, dtype=np.int64))


def stretches(first: OffsetArray, length: OffsetArray) -> OffsetArray:
    """first[0], …, first[0] + length[0] − 1, first[1], …"""
    shift: OffsetArray = first - offsets(length)[:-1]
    return np.arange(int(length.sum()), dtype=np.int64) + np.repeat(shift, length)


def ranges(start: OffsetArray, which: OffsetArray | IndexArray) -> tuple[OffsetArray, OffsetArray]:
    """start[i]..start[i+1] for every i of `which` one behind the other, and the places of these i."""
    counts = start[which + 1] - start[which]
    return stretches(start[which], counts), np.repeat(np.arange(len(which)), counts)


@kernel
def invert(square: FloatArray, inverse: FloatArray) -> float:
    """Gauss–Jordan with row pivots, the smallest of which is returned; `square` is used up. (A library call
    compiles for many times as long.)"""
    size, smallest = len(square), np.inf
    for j in range(size):
        for k in range(size):
            inverse[j, k] = 1.0 if j == k else 0.0
    for column in range(size):
        pivot = column
        for row in range(column + 1, size):
            if abs(square[row, column]) > abs(square[pivot, column]):
                pivot = row
        for k in range(size):
            square[column, k], square[pivot, k] = square[pivot, k], square[column, k]
            inverse[column, k], inverse[pivot, k] = inverse[pivot, k], inverse[column, k]
        lead = square[column, column]
        smallest = min(smallest, abs(lead))
        if lead == 0.0:
            lead = 1e-300
        for k in range(size):
            square[column, k] /= lead
            inverse[column, k] /= lead
        for row in range(size):
            factor = square[row, column]
            if row != column and factor != 0.0:
                for k in range(size):
                    square[row, k] -= factor * square[column, k]
                    inverse[row, k] -= factor * inverse[column, k]
    return smallest


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The array, or a view that cannot be written to: kernels are compiled once for each of the two."""
    if not array.flags.writeable:
        return array
    seen = array.view()
    seen.setflags(write=False)
    return seen
