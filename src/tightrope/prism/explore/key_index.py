"""Keys to dense numbers, in order of first appearance: the hash table of the explorer.

A state is a row of int64 words, and the explorer asks for millions of them at once which ones it
has met before. `KeyIndex` answers for a whole array in one compiled pass: open addressing with
linear probing over a table of int32 numbers, the keys themselves stored once and contiguously, so
that the list of all states is the table's own memory. The table is kept at most half full and
doubles; the order of first appearance is all that decides a number, so the same input gives the
same numbering on every machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

_LARGEST = 2**31 - 2


@kernel
def _mix(mixed: np.uint64, word: int) -> np.uint64:
    mixed = (mixed ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@kernel
def _slot(mixed: np.uint64, shift: np.uint64) -> np.int64:
    return np.int64((mixed * np.uint64(0xBF58476D1CE4E5B9)) >> shift)


@kernel
def _hash(keys: OffsetArray, row: int, shift: np.uint64) -> np.int64:
    """The upper bits of a multiplicative mix of the row's words."""
    mixed = np.uint64(0)
    for word in range(keys.shape[1]):
        mixed = _mix(mixed, keys[row, word])
    return _slot(mixed, shift)


@kernel
def _insert(
    keys: OffsetArray,
    begin: int,
    slots: IndexArray,
    shift: np.uint64,
    stored: OffsetArray,
    count: int,
    limit: int,
    out: IndexArray,
) -> tuple[int, int]:
    """Number keys[begin:] until `limit` keys are stored; (rows done, keys stored)."""
    mask = len(slots) - 1
    words = keys.shape[1]
    for row in range(begin, len(keys)):
        slot = _hash(keys, row, shift)
        while True:
            found = slots[slot]
            if found < 0:
                if count == limit:
                    return row, count
                for word in range(words):
                    stored[count, word] = keys[row, word]
                slots[slot] = count
                found = count
                count += 1
                break
            same = True
            for word in range(words):
                if stored[found, word] != keys[row, word]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & mask
        out[row] = found
    return len(keys), count


class Table(NamedTuple):
    """The arrays of an index, for kernels that look keys up one by one; valid until the index grows."""

    slots: IndexArray
    shift: Any
    stored: OffsetArray


@kernel
def number_key(table: Table, count: int, keys: OffsetArray, side: int, row: int) -> int:
    """The number of the key that keys[side, row] begins with: `count`, where it is new; −1 where it does not
    fit."""
    slots, stored = table.slots, table.stored
    words = stored.shape[1]
    mixed = np.uint64(0)
    for word in range(words):
        mixed = _mix(mixed, keys[side, row, word])
    slot = _slot(mixed, table.shift)
    while slots[slot] >= 0:
        same = True
        for word in range(words):
            if stored[slots[slot], word] != keys[side, row, word]:
                same = False
                break
        if same:
            return int(slots[slot])
        slot = (slot + 1) & (len(slots) - 1)
    if count >= min(len(stored), len(slots) // 2):
        return -1
    for word in range(words):
        stored[count, word] = keys[side, row, word]
    slots[slot] = count
    return count


@kernel
def _rehash(stored: OffsetArray, count: int, slots: IndexArray, shift: np.uint64) -> None:
    mask = len(slots) - 1
    for row in range(count):
        slot = _hash(stored, row, shift)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


class KeyIndex:
    """A growing set of keys of `words` int64 words each, numbered 0, 1, … as they appear."""

    def __init__(self, words: int = 1, bits: int = 6):
        self._stored: OffsetArray = np.empty((1 << (bits - 1), words), dtype=np.int64)
        self._count = 0
        self._set_slots(bits)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> OffsetArray:
        """All keys, one row each, in the order of their numbers; a view that is valid until `insert`."""
        return self._stored[: self._count]

    def insert(self, keys: OffsetArray) -> IndexArray:
        """The number of every row; rows not met before get the next numbers.

        >>> index = KeyIndex()
        >>> index.insert(np.array([[7], [3], [7]])).tolist(), index.keys.tolist()
        ([0, 1, 0], [[7], [3]])
        """
        out: IndexArray = np.empty(len(keys), dtype=np.int32)
        done = 0
        while True:
            limit = min(len(self._stored), len(self._slots) // 2)
            done, self._count = _insert(
                keys, done, self._slots, self._shift, self._stored, self._count, limit, out
            )
            if done == len(keys):
                return out
            self.grow()

    @property
    def table(self) -> Table:
        return Table(self._slots, self._shift, self._stored)

    def adopt(self, count: int) -> None:
        """Know of the keys that `number_key` has added to the table: there are `count` now."""
        self._count = count

    def grow(self) -> None:
        """Make room for more keys."""
        if self._count >= _LARGEST:
            raise InputError(f"the model has more than {_LARGEST} states", hint="use a smaller instance")
        if self._count == len(self._stored):
            larger: OffsetArray = np.empty((2 * self._count, self._stored.shape[1]), dtype=np.int64)
            larger[: self._count] = self._stored
            self._stored = larger
        if 2 * self._count >= len(self._slots):
            self._set_slots(self._bits + 1)
            _rehash(self._stored, self._count, self._slots, self._shift)

    def _set_slots(self, bits: int) -> None:
        self._bits = bits
        self._shift: Any = np.uint64(64 - bits)
        self._slots: npt.NDArray[np.int32] = np.full(1 << bits, -1, dtype=np.int32)
