"""Counts gathered from a stream of transitions, cut into geometric batches as they come.

Memory is one counter a transition of the model plus the batches themselves; what the stream holds
does not matter.
"""

from __future__ import annotations

import numpy as np

from tightrope.data.batches import Batches, next_end
from tightrope.numerics.arrays import OffsetArray


class BatchAccumulator:
    """Takes transitions in time order, each with its position: the number of its episode or row, from 0."""

    def __init__(self, transitions: int):
        self._count = np.zeros(transitions, dtype=np.int64)
        self._parts: list[tuple[OffsetArray, OffsetArray]] = []
        self._end = next_end(0)
        self._pending = False

    def add(self, transition: OffsetArray, position: OffsetArray) -> None:
        """Count a chunk; positions never fall, neither within a chunk nor from one to the next."""
        first = 0
        while first < len(transition):
            cut = first + int(np.searchsorted(position[first:], self._end))
            if cut > first:
                np.add.at(self._count, transition[first:cut], 1)
                self._pending = True
            if cut < len(transition):
                self._close()
            first = cut

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
