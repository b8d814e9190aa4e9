"""Counts gathered from a stream of transitions, cut into geometric batches as they come.

Memory is one counter a transition of the model plus the batches themselves; what the stream holds
does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.data.batches import Batches, next_end
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.jit import kernel


class BatchAccumulator:
    """Takes transitions in time order, each with its position: the number of its episode or row, from 0.

    `first` is the position that counting begins at; batches before it stay empty.
    """

    def __init__(self, transitions: int, first: int = 0):
        self._count = np.zeros(transitions, dtype=np.int64)
        self._parts: list[tuple[OffsetArray, OffsetArray]] = []
        self._end = next_end(0)
        self._pending = False
        while self._end <= first:
            self._close()

    def add(self, transition: OffsetArray, position: OffsetArray) -> None:
        """Count a chunk; positions never fall, neither within a chunk nor from one to the next."""
        first = 0
        while first < len(transition):
            cut = first + int(np.searchsorted(position[first:], self._end))
            if cut > first:
                _add(self._count, transition[first:cut])
                self._pending = True
            if cut < len(transition):
                self._close()
            first = cut

    def add_one(self, transition: int, position: int, times: int = 1) -> None:
        """Count a transition whose batch may be closed already; −1 times takes it back."""
        batch, end = 0, next_end(0)
        while end <= position:
            batch, end = batch + 1, next_end(end)
        empty = np.empty(0, dtype=np.int64)
        self._parts += [(empty, empty)] * (batch + 1 - len(self._parts))
        self._parts[batch] = add_counts(self._parts[batch], (np.array([transition]), np.array([times])))

    def add_parts(self, parts: Sequence[tuple[OffsetArray, OffsetArray]]) -> None:
        """Add the batches that were counted elsewhere, from the first on."""
        empty = np.empty(0, dtype=np.int64)
        self._parts += [(empty, empty)] * (len(parts) - len(self._parts))
        for batch, part in enumerate(parts):
            if len(part[0]):
                self._parts[batch] = add_counts(self._parts[batch], part)

    def parts(self) -> list[tuple[OffsetArray, OffsetArray]]:
        """Transitions and counts of all batches so far."""
        if self._pending:
            self._close()
        return self._parts

    def finish(self, batches: int | None = None) -> Batches:
        """All batches; where their number is known, empty ones are added at the end."""
        if self._pending:
            self._close()
        empty = np.empty(0, dtype=np.int64)
        missing = max(0, (batches or 0) - len(self._parts))
        return Batches.from_parts(self._parts + [(empty, empty)] * missing)

    def _close(self) -> None:
        seen = np.flatnonzero(self._count)
        self._parts.append((seen, self._count[seen]))
        self._count[seen] = 0
        self._end = next_end(self._end)
        self._pending = False


@kernel
def _add(count: OffsetArray, transition: OffsetArray) -> None:
    for t in transition:
        count[t] += 1


def add_counts(
    one: tuple[OffsetArray, OffsetArray], other: tuple[OffsetArray, OffsetArray]
) -> tuple[OffsetArray, OffsetArray]:
    """Two sparse counts as one."""
    transition, place = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    count = np.zeros(len(transition), dtype=np.int64)
    np.add.at(count, place, np.concatenate([one[1], other[1]]))
    return transition[count != 0].astype(np.int64), count[count != 0]
