"""The array types of this package, so that signatures say what an array holds."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tightrope_check.arrays import BoolArray as BoolArray
from tightrope_check.arrays import FloatArray as FloatArray
from tightrope_check.arrays import OffsetArray as OffsetArray

IndexArray: TypeAlias = npt.NDArray[np.int32]
"""Indices of states, expressions, actions: one per transition or choice."""

ExactIntegers: TypeAlias = npt.NDArray[Any]
"""Integers that are int64 while they fit and Python's own (dtype object) beyond."""

Scalar = TypeVar("Scalar", bound=np.generic)


def offsets(sizes: npt.ArrayLike) -> OffsetArray:
    """Where rows of these sizes begin, and the end of the last one."""
    return np.append(np.int64(0), np.cumsum(sizes, dtype=np.int64))


def stretches(first: OffsetArray, length: OffsetArray) -> OffsetArray:
    """first[0], …, first[0] + length[0] − 1, first[1], …"""
    entries: OffsetArray = np.arange(int(length.sum())) + np.repeat(
        first - (np.cumsum(length) - length), length
    )
    return entries


def ranges(start: OffsetArray, which: OffsetArray | IndexArray) -> tuple[OffsetArray, OffsetArray]:
    """start[i]..start[i+1] for every i of `which` one behind the other, and the places of these i."""
    counts = start[which + 1] - start[which]
    return stretches(start[which], counts), np.repeat(np.arange(len(which)), counts)


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The array itself if it cannot be written to, or a view of it that cannot.

    numba compiles a kernel once for arrays that can be written to and once for those that cannot: where a
    kernel only reads an array that may be either, its caller passes this one.
    """
    if not array.flags.writeable:
        return array
    seen = array.view()
    seen.setflags(write=False)
    return seen
