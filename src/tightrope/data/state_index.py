"""From the values of the model's variables to the index of the state, for many rows at once.

A valuation becomes one integer key, its digits the values of the variables in their ranges (a mixed-radix
number). Keys are looked up in a dense table where the ranges are small, by binary search otherwise. Where
the product of the ranges exceeds 62 bits, the key so far is replaced by its rank among those that occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.structure import Structure, frozen_array
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

UNKNOWN = -1
"""The index of a valuation that no state has."""

LARGEST_KEY = 1 << 62
DENSE_PER_STATE = 16
"""A dense table may have this many entries per state."""


@dataclass(frozen=True, eq=False)
class _Level:
    """A run of variables whose digits fit into one key, then the ranks of the keys that occur."""

    names: tuple[str, ...]
    low: tuple[int, ...]
    radix: tuple[int, ...]
    keys: OffsetArray

    def key(self, prefix: OffsetArray, columns: Mapping[str, npt.NDArray[np.int64]]) -> OffsetArray:
        """The keys of valuations; UNKNOWN where a value is out of its range."""
        key = prefix.copy()
        for name, low, radix in zip(self.names, self.low, self.radix, strict=True):
            _append_digit(key, frozen_array(columns[name], np.int64), low, radix)
        return key


class StateIndex:
    """Built once for a structure; `states` then maps columns of values to state indices."""

    def __init__(self, structure: Structure):
        self.names: tuple[str, ...] = tuple(structure.valuations)
        columns = {name: column.astype(np.int64) for name, column in structure.valuations.items()}
        self._levels = _levels(columns, structure.states)
        key = self._last_key(columns)
        order = np.argsort(key, kind="stable").astype(np.int32)
        keys = key[order]
        repeated = np.flatnonzero(np.diff(keys) == 0)
        if len(repeated):
            first, second = int(order[repeated[0]]), int(order[repeated[0] + 1])
            raise InputError(
                f"the model's variables do not tell its states apart: states {first} and {second} are both "
                f"{structure.state_name(first)}",
                hint="give states by index, in columns 'state' and 'next_state'",
            )
        self._keys: OffsetArray = keys
        self._order: IndexArray = order
        self._dense: IndexArray | None = None
        if len(keys) and keys[-1] < DENSE_PER_STATE * max(structure.states, 1024):
            self._dense = np.full(int(keys[-1]) + 1, UNKNOWN, dtype=np.int32)
            self._dense[keys] = order

    def states(self, columns: Mapping[str, npt.NDArray[np.int64]]) -> OffsetArray:
        """The state of each row; `UNKNOWN` where the model has none with these values."""
        key = self._last_key(columns)
        if self._dense is not None:
            _look_up(key, self._dense)
            return key
        inside = (key >= 0) & (key <= int(self._keys[-1]))
        position = np.searchsorted(self._keys, np.where(inside, key, 0))
        hit = inside & (self._keys[position] == key)
        return np.where(hit, self._order[position], UNKNOWN).astype(np.int64)

    def _last_key(self, columns: Mapping[str, npt.NDArray[np.int64]]) -> OffsetArray:
        """The key under which a valuation is looked up: ranks level by level, the last one unranked."""
        size = len(next(iter(columns.values())))
        key = np.zeros(size, dtype=np.int64)
        for number, level in enumerate(self._levels):
            key = level.key(key, columns)
            if number + 1 < len(self._levels):
                position = np.minimum(np.searchsorted(level.keys, key), len(level.keys) - 1)
                key = np.where(level.keys[position] == key, position, UNKNOWN)
        return key


@kernel
def _append_digit(key: OffsetArray, column: OffsetArray, low: int, radix: int) -> None:
    """Append a variable's digit to each key; UNKNOWN where its value is out of range."""
    for i in range(len(key)):
        digit = column[i] - low
        key[i] = key[i] * radix + digit if key[i] >= 0 and 0 <= digit < radix else UNKNOWN


@kernel
def _look_up(key: OffsetArray, dense: IndexArray) -> None:
    """Replace keys by states."""
    for i in range(len(key)):
        key[i] = dense[key[i]] if 0 <= key[i] < len(dense) else UNKNOWN


def _levels(columns: Mapping[str, npt.NDArray[np.int64]], states: int) -> Sequence[_Level]:
    """Cut the variables into runs whose keys fit into `LARGEST_KEY`, given ranks below `states` before."""
    levels: list[_Level] = []
    prefix = np.zeros(states, dtype=np.int64)
    run: list[tuple[str, int, int]] = []
    size = 1

    def close() -> None:
        nonlocal prefix
        names, low, radix = zip(*run, strict=True)
        draft = _Level(names, low, radix, np.empty(0, dtype=np.int64))
        keys, prefix_ranks = np.unique(draft.key(prefix, columns), return_inverse=True)
        levels.append(_Level(names, low, radix, keys))
        prefix = prefix_ranks.astype(np.int64)

    for name, column in columns.items():
        low = int(column.min())
        radix = int(column.max()) - low + 1
        if run and size * radix >= LARGEST_KEY:
            close()
            run, size = [], states
        run.append((name, low, radix))
        size *= radix
    close()
    return levels
