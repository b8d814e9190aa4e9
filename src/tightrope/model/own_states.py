"""The states of a model as its author calls them: the objects that were given to a Python builder.

A model numbers its states from 0 in the order in which they were found. Who wrote the model thinks in other
terms: positions, names, tuples. Where these are numbers, too, the two are easily mistaken for each other, and
nothing in the data would show it. So builders keep the author's states with the model, and data, environments
and policies find states by them.

Own states take no part in the identity of a model: its hash and its transitions are the same without them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.numerics.arrays import OffsetArray

UNKNOWN = -1
"""The index of what is no state."""

LARGEST = 1 << 63
"""Numbers below are those that arrays hold."""

SHOWN = 6
"""How many states a message lists."""


class OwnStates(Sequence[Hashable]):
    """`states[i]` is what the author calls state number i; all are different.

    >>> own = OwnStates([2, 3, 1])
    >>> own.find(3), own.find(7), own.find("three")
    (1, -1, -1)
    """

    def __init__(self, states: Sequence[Hashable]):
        self._states = states
        self._numbered = isinstance(states, range) and states == range(len(states))
        if not self._numbered and len(self._index) != len(states):
            raise InputError("two states of the model are equal: nothing can tell them apart")

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, index: Any) -> Any:
        return self._states[index]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._states)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnStates) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash((len(self), self._states[0] if len(self) else None))

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnStates, (self._states,)

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {state: number for number, state in enumerate(self._states)}

    def find(self, state: object) -> int:
        """The number of a state; `UNKNOWN` where it is none. numpy's scalars and arrays count as values."""
        try:
            return self._index.get(plain(state), UNKNOWN)
        except TypeError:  # not hashable
            return UNKNOWN

    @cached_property
    def are_numbers(self) -> bool:
        """Whether every state is a whole number that fits into 64 bits."""
        return self._numbered or all(
            isinstance(state, int | np.integer)
            and not isinstance(state, bool)
            and -LARGEST <= state < LARGEST
            for state in self._states
        )

    @cached_property
    def are_texts(self) -> bool:
        """Whether every state is a string."""
        return not self._numbered and all(isinstance(state, str) for state in self._states)

    @cached_property
    def has_sequences(self) -> bool:
        """Whether some state is a tuple."""
        return not self._numbered and any(isinstance(state, tuple) for state in self._states)

    def find_numbers(self, values: npt.NDArray[np.int64]) -> OffsetArray:
        """The numbers of many states that are whole numbers; `UNKNOWN` where there is none."""
        if self._numbered:
            return np.where((values >= 0) & (values < len(self)), values, UNKNOWN).astype(np.int64)
        keys, order = self._sorted_numbers
        position = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[position] == values, order[position], UNKNOWN).astype(np.int64)

    @cached_property
    def _sorted_numbers(self) -> tuple[OffsetArray, OffsetArray]:
        keys = np.array(self._states, dtype=np.int64)
        order = np.argsort(keys, kind="stable").astype(np.int64)
        return keys[order], order

    def listing(self) -> str:
        """The first few states, for messages."""
        shown = ", ".join(repr(state) for state in self._states[:SHOWN])
        return shown + (", …" if len(self) > SHOWN else "")


def plain(value: Any) -> Any:
    """numpy's scalars and arrays, and lists, as the plain values that a model is written in."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(plain(entry) for entry in value) if isinstance(value, list) else value
