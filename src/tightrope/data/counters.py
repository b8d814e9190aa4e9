"""Counters that several threads fill, each its own, and that are added up without looking at all of them.

A kernel lists the transitions that it counts for the first time, so reading a small batch off a large
model costs as much as the batch, not as the model. Integers add up to the same whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from tightrope.numerics.arrays import IndexArray, OffsetArray

COUNTER_MEMORY = 1 << 30
"""Bytes that the counters of all threads together may take."""

SMALL_BATCH = 256
"""Episodes (or choices) below which a second thread does not pay."""

Work: TypeAlias = Callable[[int, int, OffsetArray, IndexArray], tuple[int, int]]
"""Counts the items first..last−1 into counters; the steps taken and the number of transitions touched."""


class Counters:
    """One row of counters a thread, all zero between two runs."""

    def __init__(self, transitions: int, threads: int):
        affordable = COUNTER_MEMORY // (12 * transitions)
        self.threads = max(1, min(threads, affordable))
        self._count: OffsetArray = np.zeros((self.threads, transitions), dtype=np.int64)
        self._touched: IndexArray = np.empty((self.threads, transitions), dtype=np.int32)

    def run(self, work: Work, first: int, last: int) -> tuple[int, tuple[OffsetArray, OffsetArray]]:
        """Spread the items first..last−1 over the threads; the steps taken and the counts of this run."""
        threads = max(1, min(self.threads, (last - first) // SMALL_BATCH))
        cuts = [first + (last - first) * i // threads for i in range(threads + 1)]
        if threads == 1:
            done = [work(first, last, self._count[0], self._touched[0])]
        else:
            with ThreadPoolExecutor(threads) as pool:
                tasks = [
                    pool.submit(work, cuts[i], cuts[i + 1], self._count[i], self._touched[i])
                    for i in range(threads)
                ]
                done = [task.result() for task in tasks]
        return sum(steps for steps, _ in done), self._harvest([touches for _, touches in done])

    def _harvest(self, touches: list[int]) -> tuple[OffsetArray, OffsetArray]:
        """The transitions seen, in order, and how often; leaves the counters at zero."""
        total = self._count[0]
        parts = [self._touched[i, :number] for i, number in enumerate(touches)]
        for row, part in zip(self._count[1:], parts[1:], strict=False):
            total[part] += row[part]
            row[part] = 0
        seen = np.unique(np.concatenate(parts)).astype(np.int64)
        count = total[seen]
        total[seen] = 0
        return seen, count
