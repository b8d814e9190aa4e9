"""Signatures: the distinct tuples of expressions that label the transitions of a choice.

A model with millions of choices has few signatures; what depends on a choice only through its
expressions (does it sum to 1? what can nature do there?) is computed once a signature.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import IndexArray, OffsetArray, Scalar
from tightrope.numerics.jit import kernel


@dataclass(frozen=True, eq=False)
class Signatures:
    """Signature k is the tuple expression[start[k]:start[k+1]], in the order of the transitions."""

    of_choice: IndexArray
    start: OffsetArray
    expression: IndexArray

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def of_member(self) -> OffsetArray:
        """The signature that every entry of `expression` belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.start))

    @cached_property
    def example(self) -> OffsetArray:
        """The first choice of every signature."""
        first = np.empty(len(self), dtype=np.int64)
        first[self.of_choice[::-1]] = np.arange(len(self.of_choice) - 1, -1, -1)
        return first

    def spread(self, transition_start: OffsetArray, of_member: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """What every transition gets where each entry of `expression` has something."""
        out = np.empty(int(transition_start[-1]), of_member.dtype)
        _spread(transition_start, self.of_choice, self.start, of_member, out)
        return out

    @classmethod
    def of(cls, transition_start: OffsetArray, expression: IndexArray, expressions: int) -> Signatures:
        """Group choices by length, then fold their columns into one number, a column at a time."""
        length = np.diff(transition_start)
        of_choice = np.zeros(len(length), dtype=np.int32)
        sizes: list[OffsetArray] = []
        members: list[IndexArray] = []
        found = 0
        for k in np.flatnonzero(np.bincount(length)).tolist():
            rows = np.flatnonzero(length == k)
            first = transition_start[rows]
            number = expression[first].astype(np.int64)
            bound = expressions
            for j in range(1, k):
                number = number * expressions + expression[first + j]
                number, bound = _renumber(number, bound * expressions)
            number, bound = _renumber(number, bound)
            of_choice[rows] = number + found
            example = np.zeros(bound, dtype=np.int64)
            example[number] = first
            members.append(expression[example[:, None] + np.arange(k)].reshape(-1))
            sizes.append(np.full(bound, k, dtype=np.int64))
            found += bound
        start = np.zeros(found + 1, dtype=np.int64)
        np.cumsum(np.concatenate(sizes), out=start[1:])
        return cls(of_choice, start, np.concatenate(members))


@kernel
def _spread(
    transition_start: OffsetArray,
    of_choice: IndexArray,
    start: OffsetArray,
    of_member: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None:
    for c in range(len(of_choice)):
        first, source = transition_start[c], start[of_choice[c]]
        for t in range(first, transition_start[c + 1]):
            out[t] = of_member[source + t - first]


def _renumber(number: OffsetArray, bound: int) -> tuple[OffsetArray, int]:
    """Distinct values to 0, 1, … in increasing order: by a table where it is small, else by sorting."""
    if bound <= 4 * len(number) + 2**20:
        present = np.zeros(bound, dtype=np.bool_)
        present[number] = True
        rank = np.cumsum(present) - 1
        return rank[number], int(rank[-1]) + 1
    values, inverse = np.unique(number, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64), len(values)
