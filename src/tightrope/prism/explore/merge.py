"""Compiled passes over the outcomes of a frame: put them in order, and merge equal successors."""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.prism.explore.probabilities import ZERO

_FEW = 24
"""Choices with so many outcomes are merged by comparing all pairs, larger ones by hashing."""


@kernel
def possible_outcomes(
    order: OffsetArray,
    rows: OffsetArray,
    start: OffsetArray,
    step: OffsetArray,
    probability: IndexArray,
    keys: OffsetArray,
) -> tuple[OffsetArray, OffsetArray, IndexArray]:
    """The possible outcomes of all choices, in order, with the keys of their successors."""
    words = keys.shape[1]
    total = 0
    for outcome in range(len(probability)):
        if probability[outcome] != ZERO:
            total += 1
    new_start = np.zeros(len(order) + 1, dtype=np.int64)
    successor = np.empty((total, words), dtype=np.int64)
    number = np.empty(total, dtype=np.int32)
    write = 0
    for position in range(len(order)):
        entry = order[position]
        row = rows[entry]
        for outcome in range(start[entry], start[entry + 1]):
            if probability[outcome] != ZERO:
                for word in range(words):
                    successor[write, word] = keys[row, word] + step[outcome, word]
                number[write] = probability[outcome]
                write += 1
        new_start[position + 1] = write
    return new_start, successor, number


@kernel
def _merge_many(
    first: int,
    last: int,
    write: int,
    merged: int,
    successor: IndexArray,
    number: IndexArray,
    into: IndexArray,
    added: IndexArray,
) -> tuple[int, int]:
    """The same for one choice with many outcomes."""
    size = 1
    while size < 2 * (last - first):
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    for read in range(first, last):
        target = successor[read]
        slot = (np.int64(target) * 0x9E3779B1) & (size - 1)
        while table[slot] >= 0 and successor[table[slot]] != target:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = write
            successor[write] = target
            number[write] = number[read]
            write += 1
        else:
            into[merged] = table[slot]
            added[merged] = number[read]
            merged += 1
    return write, merged


@kernel
def merge_successors(
    start: OffsetArray,
    successor: IndexArray,
    number: IndexArray,
    width: IndexArray,
    into: IndexArray,
    added: IndexArray,
) -> tuple[int, int]:
    """Keep the first of equal successors of each choice, in place; list what is to be added to it."""
    write, merged = 0, 0
    for choice in range(len(start) - 1):
        begin, first, last = write, start[choice], start[choice + 1]
        if last - first > _FEW:
            write, merged = _merge_many(first, last, write, merged, successor, number, into, added)
        else:
            for read in range(first, last):
                target = successor[read]
                found = -1
                for earlier in range(begin, write):
                    if successor[earlier] == target:
                        found = earlier
                        break
                if found < 0:
                    successor[write] = target
                    number[write] = number[read]
                    write += 1
                else:
                    into[merged] = found
                    added[merged] = number[read]
                    merged += 1
        width[choice] = write - begin
    return write, merged
