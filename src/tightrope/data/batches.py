"""Time-ordered batches of counts, in memory that grows with what was seen.

The likelihood region (METHODS §3) predicts each batch from all earlier ones, so counts come in
batches whose boundaries are fixed in advance and never depend on outcomes. `batch_ends` grows them
geometrically: the first batches hold a single episode, later ones a fifth of all data so far, and the
sequence of boundaries does not depend on where the data end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import OffsetArray
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
