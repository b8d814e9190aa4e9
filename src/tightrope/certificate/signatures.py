"""Choices that are labelled alike, and how often their transitions were seen together.

The signature of a choice is the row of its transitions' expressions, in order. Choices of one signature have
the same outcomes with the same probabilities, so their counts may be added up, transition by transition:
every sum of counts over outcomes or events stays the same. There are thousands of signatures where there are
millions of choices, and what follows from counts is derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.numerics.arrays import IndexArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Signatures:
    """Signature s has expression[start[s]:start[s+1]], seen `counts` times in all choices that have it."""

    start: OffsetArray
    expression: OffsetArray
    counts: OffsetArray
    of_choice: OffsetArray

    @staticmethod
    def of(transition_start: OffsetArray, expression: IndexArray, counts: OffsetArray) -> Signatures:
        """Counts must sum to less than 2⁵³, so that adding them up in doubles is exact."""
        length = np.diff(transition_start)
        of_choice = np.zeros(len(length), dtype=np.int64)
        radix = int(expression.max(initial=0)) + 1
        rows: list[OffsetArray] = []
        seen: list[OffsetArray] = []
        starts = [np.zeros(1, dtype=np.int64)]
        known = 0
        for k in np.flatnonzero(np.bincount(length)).tolist():
            choices = np.flatnonzero(length == k)
            first = transition_start[choices]
            number = expression[first].astype(np.int64)
            for j in range(1, k):
                number = _numbered(number) * radix + expression[first + j]
            number = _numbered(number)
            count = int(number.max()) + 1
            example = np.zeros(count, dtype=np.int64)
            example[number] = first
            rows.append(expression[example[:, None] + np.arange(k)].astype(np.int64).reshape(-1))
            pooled = [np.bincount(number, weights=counts[first + j], minlength=count) for j in range(k)]
            seen.append(np.stack(pooled, axis=1).astype(np.int64).reshape(-1))
            starts.append(starts[-1][-1] + k * np.arange(1, count + 1))
            of_choice[choices] = known + number
            known += count
        return Signatures(np.concatenate(starts), np.concatenate(rows), np.concatenate(seen), of_choice)

    def __len__(self) -> int:
        return len(self.start) - 1

    def rows(self) -> list[list[int]]:
        """The expressions of every signature."""
        listed, start = self.expression.tolist(), self.start.tolist()
        return [listed[a:b] for a, b in pairwise(start)]


def _numbered(keys: OffsetArray) -> OffsetArray:
    """The rank of each key among the distinct ones."""
    result: OffsetArray = np.searchsorted(np.unique(keys), keys)
    return result
