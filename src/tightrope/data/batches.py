"""Time-ordered batches of counts, in memory that grows with what was seen.

The likelihood region (METHODS §3) predicts each batch from all earlier ones, so counts come in
batches whose boundaries are fixed in advance and never depend on outcomes. `batch_ends` grows them
geometrically: the first batches hold a single episode, later ones a fifth of all data so far, and the
sequence of boundaries does not depend on where the data end.

`BatchAccumulator` gathers counts from a stream of transitions, cut into such batches as they come. Memory is
one counter a transition of the model plus the batches themselves; what the stream holds does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.record import Record, freeze_fields

RATIO_NUMERATOR, RATIO_DENOMINATOR = 5, 4
"""Each boundary is 5/4 of the one before, rounded down, and at least one more."""


def batch_ends(total: int) -> OffsetArray:
    """The ends of the batches of `total` episodes (or rows), the last one being `total` itself.

    >>> batch_ends(20).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20]
    """
    ends: list[int] = []
    end = 0
    while end < total:
        end = min(total, next_end(end))
        ends.append(end)
    return np.array(ends, dtype=np.int64)


def next_end(end: int) -> int:
    """The boundary after `end`."""
    return max(end + 1, end * RATIO_NUMERATOR // RATIO_DENOMINATOR)


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Record):
    """Sparse counts per batch: those of batch b are `transition[start[b]:start[b+1]]` and `count[...]`.

    Transitions rise strictly within a batch and counts are positive; an empty batch is allowed.
    """

    start: OffsetArray
    transition: OffsetArray
    count: OffsetArray

    def __post_init__(self) -> None:
        if len(self.start) == 0 or self.start[0] != 0 or np.any(np.diff(self.start) < 0):
            raise ValueError("batch starts must begin at 0 and never fall")
        if not self.start[-1] == len(self.transition) == len(self.count):
            raise ValueError("batch starts, transitions and counts disagree in length")
        if np.any(self.count <= 0):
            raise ValueError("a batch lists only transitions that it has seen")
        rising = np.diff(self.transition) > 0
        boundary = self.start[1:-1]
        inner = boundary[(boundary > 0) & (boundary < len(self.transition))] - 1
        rising[inner] = True
        if not np.all(rising):
            raise ValueError("transitions must rise strictly within a batch")
        freeze_fields(self)

    @staticmethod
    def from_parts(parts: Sequence[tuple[OffsetArray, OffsetArray]]) -> Batches:
        """Batches from one (transitions, counts) pair each, in time order."""
        start = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(transition) for transition, _ in parts], out=start[1:])
        transitions = [np.asarray(transition, dtype=np.int64) for transition, _ in parts]
        counts = [np.asarray(count, dtype=np.int64) for _, count in parts]
        empty = [np.empty(0, dtype=np.int64)]
        return Batches(start, np.concatenate(transitions + empty), np.concatenate(counts + empty))

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, batch: int) -> tuple[OffsetArray, OffsetArray]:
        """The transitions seen in one batch and how often."""
        if not 0 <= batch < len(self):
            raise IndexError(f"batch {batch} of {len(self)}")
        part = slice(self.start[batch], self.start[batch + 1])
        return self.transition[part], self.count[part]

    def __iter__(self) -> Iterator[tuple[OffsetArray, OffsetArray]]:
        return (self[batch] for batch in range(len(self)))

    def __add__(self, later: Batches) -> Batches:
        """These batches, then the later ones."""
        return Batches.from_parts([*self, *later])

    def total(self, transitions: int) -> OffsetArray:
        """The counts of all batches together, one per transition of the model."""
        result = np.zeros(transitions, dtype=np.int64)
        np.add.at(result, self.transition, self.count)
        return result


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
        self.add_to(transition, batch, times)

    def add_to(self, transition: int, batch: int, times: int = 1) -> None:
        """The same for a batch by its number."""
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


DENSE = 1 << 23
"""Counters, of all batches together, that are kept as one array."""


class BatchCounter:
    """Takes transitions in any order, each with the number of its batch."""

    def __init__(self, transitions: int, batches: int):
        self.batches, self._transitions = batches, transitions
        dense = transitions * batches <= DENSE
        self._dense = np.zeros((batches, transitions), dtype=np.int64) if dense else None
        empty = np.empty(0, dtype=np.int64)
        self._sparse: list[tuple[OffsetArray, OffsetArray]] = [(empty, empty)] * (0 if dense else batches)

    def add(self, transition: OffsetArray, batch: OffsetArray) -> None:
        if self._dense is not None:
            _add_to_batches(self._dense, transition, batch)
            return
        for one in np.unique(batch).tolist():
            seen, count = np.unique(transition[batch == one], return_counts=True)
            self._sparse[one] = add_counts(self._sparse[one], (seen, count.astype(np.int64)))

    def parts(self) -> list[tuple[OffsetArray, OffsetArray]]:
        """Transitions and counts of all batches."""
        if self._dense is None:
            return self._sparse
        seen = [np.flatnonzero(row) for row in self._dense]
        return [(found, row[found]) for found, row in zip(seen, self._dense, strict=True)]


@kernel
def _add_to_batches(count: npt.NDArray[np.int64], transition: OffsetArray, batch: OffsetArray) -> None:
    for i in range(len(transition)):
        count[batch[i], transition[i]] += 1


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
