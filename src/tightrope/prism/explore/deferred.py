"""Sums, products and shares of probabilities, written down during exploration and computed at its end.

The explorer only needs to know which transitions carry the same combination of probabilities, not
what it comes to. Each distinct combination gets the next number; in the end all combinations of the
same depth are computed together, exactly, in a few vector operations.

An array that grows at its end, by doubling.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import ExactIntegers, IndexArray, OffsetArray
from tightrope.prism.explore.key_index import KeyIndex


class Growing:
    """`values` is a view of what has been appended so far, valid until the next `append`."""

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None):
        self._array: npt.NDArray[Any] = np.empty((16,) if width is None else (16, width), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._array[: self._length]

    def append(self, values: npt.NDArray[Any]) -> None:
        length = self._length + len(values)
        if length > len(self._array):
            larger = np.empty((max(length, 2 * len(self._array)), *self._array.shape[1:]), self._array.dtype)
            larger[: self._length] = self.values
            self._array = larger
        self._array[self._length : length] = values
        self._length = length


_LOW_WORD = 2**32 - 1


class Operation(Enum):
    """How two numbers are combined; SHARE divides by plain numbers, QUOTIENT polynomials."""

    SUM = 0
    PRODUCT = 1
    SHARE = 2
    QUOTIENT = 3


Compute = Callable[[Operation, ExactIntegers, ExactIntegers], IndexArray]
"""The table entries of the combinations of two arrays of table entries."""


class Deferred:
    """Numbers for entries of a table and for combinations of numbers."""

    def __init__(self) -> None:
        self._entries = KeyIndex()
        self._number_of_entry = Growing(np.int32)
        self._pairs = {operation: KeyIndex() for operation in Operation}
        self._number_of_pair = {operation: Growing(np.int32) for operation in Operation}
        self._depth = Growing(np.int32)

    def entries(self, entries: IndexArray) -> IndexArray:
        """The numbers of entries of the table."""
        position = self._entries.insert(entries.reshape(-1, 1).astype(np.int64))
        fresh = len(self._entries) - len(self._number_of_entry)
        if fresh:
            self._number_of_entry.append(self._number_rows(np.zeros(fresh, dtype=np.int32)))
        numbers: IndexArray = self._number_of_entry.values[position]
        return numbers.reshape(entries.shape)

    def combine(self, operation: Operation, left: IndexArray, right: IndexArray) -> IndexArray:
        """The numbers of the combinations of two arrays of numbers."""
        index, number = self._pairs[operation], self._number_of_pair[operation]
        pair = index.insert(((left.astype(np.int64) << 32) | right).reshape(-1, 1))
        if len(index) > len(number):
            first, second = _sides(index.keys[len(number) :, 0])
            depth = self._depth.values[first] + 1
            if operation is not Operation.SHARE:
                depth = np.maximum(depth, self._depth.values[second] + 1)
            number.append(self._number_rows(depth))
        result: IndexArray = number.values[pair]
        return result

    def pairs(self, operation: Operation) -> tuple[KeyIndex, IndexArray]:
        """The pairs combined so far, as left·2^32 + right, and the numbers of the results."""
        return self._pairs[operation], self._number_of_pair[operation].values

    def resolve(self, compute: Compute) -> IndexArray:
        """The table entry behind every number."""
        entry: IndexArray = np.zeros(len(self._depth), dtype=np.int32)
        entry[self._number_of_entry.values] = self._entries.keys[:, 0]
        for depth in range(1, int(self._depth.values.max(initial=0)) + 1):
            for operation, index in self._pairs.items():
                number = self._number_of_pair[operation].values
                now = np.flatnonzero(self._depth.values[number] == depth)
                if len(now):
                    left, right = _sides(index.keys[now, 0])
                    other = right if operation is Operation.SHARE else entry[right]
                    entry[number[now]] = compute(operation, entry[left], other)
        return entry

    def _number_rows(self, depth: IndexArray) -> IndexArray:
        first = len(self._depth)
        self._depth.append(depth)
        return np.arange(first, len(self._depth), dtype=np.int32)


def _sides(pairs: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    return pairs >> 32, pairs & _LOW_WORD
