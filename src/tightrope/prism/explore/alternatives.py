"""What can happen in the states of a frame: enabled alternatives, each with its outcomes.

Alternative i belongs to row `rows[i]` and has the outcomes start[i]..start[i+1]; an outcome is the
step from the key of the row's state to that of its successor, and the number of its probability.
Alternatives of one row stand for different choices. `join` is synchronisation: two modules that
share an action move together, every alternative of one with every alternative of the other; steps
add and probabilities multiply, since the modules write different variables and draw independently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

_Arrays: TypeAlias = tuple[OffsetArray, OffsetArray, OffsetArray, IndexArray]


@dataclass(frozen=True, eq=False)
class Alternatives:
    rows: OffsetArray
    start: OffsetArray
    step: OffsetArray
    probability: IndexArray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def _arrays(self) -> _Arrays:
        return self.rows, self.start, self.step, self.probability

    @classmethod
    def uniform(cls, rows: OffsetArray, step: OffsetArray, probability: IndexArray) -> Alternatives:
        """From step[alternative, outcome, word] and probability[alternative, outcome]."""
        count, outcomes, words = step.shape
        start = np.arange(0, count * outcomes + 1, outcomes, dtype=np.int64)
        return cls(rows, start, step.reshape(-1, words), probability.reshape(-1))

    @classmethod
    def concatenate(cls, parts: Sequence[Alternatives]) -> Alternatives:
        """All alternatives of the parts, part after part."""
        if len(parts) == 1:
            return parts[0]
        offset = np.cumsum([0, *(len(part.probability) for part in parts)])
        starts = [part.start[:-1] + shift for part, shift in zip(parts, offset, strict=False)]
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([*starts, offset[-1:]]),
            np.concatenate([part.step for part in parts]),
            np.concatenate([part.probability for part in parts]),
        )


def by_row(parts: Sequence[Alternatives], size: int) -> Alternatives:
    """The alternatives of all parts ordered by row; those of one row stay in the order of the parts."""
    everything = Alternatives.concatenate(parts)
    if len(parts) == 1:
        return everything
    order = row_order(everything.rows, size)[1]
    start = np.zeros(len(order) + 1, dtype=np.int64)
    step = np.empty_like(everything.step)
    probability = np.empty_like(everything.probability)
    _reorder(order, everything.start, everything.step, everything.probability, start, step, probability)
    return Alternatives(everything.rows[order], start, step, probability)


def join(
    left: Alternatives,
    right: Alternatives,
    multiply: Callable[[IndexArray, IndexArray], IndexArray],
) -> Alternatives:
    """All pairs of alternatives of the same row; both sides are ordered by row."""
    pairs, outcomes = _count_pairs(left.rows, left.start, right.rows, right.start)
    rows: OffsetArray = np.empty(pairs, dtype=np.int64)
    start: OffsetArray = np.zeros(pairs + 1, dtype=np.int64)
    step: OffsetArray = np.empty((outcomes, left.step.shape[1]), dtype=np.int64)
    first: IndexArray = np.empty(outcomes, dtype=np.int32)
    second: IndexArray = np.empty(outcomes, dtype=np.int32)
    _fill_pairs(left._arrays, right._arrays, rows, start, step, first, second)
    return Alternatives(rows, start, step, multiply(first, second))


@kernel
def row_order(rows: OffsetArray, size: int) -> tuple[OffsetArray, OffsetArray]:
    """How many entries each row has, and the stable order of the entries by row."""
    count = np.zeros(size, dtype=np.int64)
    for row in rows:
        count[row] += 1
    place = np.zeros(size, dtype=np.int64)
    for row in range(1, size):
        place[row] = place[row - 1] + count[row - 1]
    order = np.empty(len(rows), dtype=np.int64)
    for entry in range(len(rows)):
        row = rows[entry]
        order[place[row]] = entry
        place[row] += 1
    return count, order


@kernel
def _reorder(
    order: OffsetArray,
    start: OffsetArray,
    step: OffsetArray,
    probability: IndexArray,
    new_start: OffsetArray,
    new_step: OffsetArray,
    new_probability: IndexArray,
) -> None:
    write = 0
    for position in range(len(order)):
        entry = order[position]
        for outcome in range(start[entry], start[entry + 1]):
            for word in range(step.shape[1]):
                new_step[write, word] = step[outcome, word]
            new_probability[write] = probability[outcome]
            write += 1
        new_start[position + 1] = write


@kernel
def _count_pairs(
    left_rows: OffsetArray, left_start: OffsetArray, right_rows: OffsetArray, right_start: OffsetArray
) -> tuple[int, int]:
    pairs, outcomes, begin = 0, 0, 0
    for i in range(len(left_rows)):
        while begin < len(right_rows) and right_rows[begin] < left_rows[i]:
            begin += 1
        j = begin
        while j < len(right_rows) and right_rows[j] == left_rows[i]:
            pairs += 1
            outcomes += (left_start[i + 1] - left_start[i]) * (right_start[j + 1] - right_start[j])
            j += 1
    return pairs, outcomes


@kernel
def _fill_pairs(
    left: _Arrays,
    right: _Arrays,
    rows: OffsetArray,
    start: OffsetArray,
    step: OffsetArray,
    first: IndexArray,
    second: IndexArray,
) -> None:
    left_rows, left_start, left_step, left_probability = left
    right_rows, right_start, right_step, right_probability = right
    pair, write, begin = 0, 0, 0
    for i in range(len(left_rows)):
        while begin < len(right_rows) and right_rows[begin] < left_rows[i]:
            begin += 1
        j = begin
        while j < len(right_rows) and right_rows[j] == left_rows[i]:
            for a in range(left_start[i], left_start[i + 1]):
                for b in range(right_start[j], right_start[j + 1]):
                    for word in range(step.shape[1]):
                        step[write, word] = left_step[a, word] + right_step[b, word]
                    first[write] = left_probability[a]
                    second[write] = right_probability[b]
                    write += 1
            rows[pair] = left_rows[i]
            pair += 1
            start[pair] = write
            j += 1
