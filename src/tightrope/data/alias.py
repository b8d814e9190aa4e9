"""Alias tables in integers: one random number picks a state's choice and successor together.

For every row (a state under a policy, or a single choice) the weights w_t = π(c)·P(t) are turned into
whole numbers W_t with Σ W_t = 2^62. The row has 2^k buckets of capacity 2^(62−k), each shared by at
most two transitions (Walker's alias method). A 62-bit random number then picks the bucket by its upper k
bits and one of the two transitions by comparing the rest: no rounding happens at drawing time, and
transition t comes out with probability exactly W_t / 2^62.

What is rounded is W_t: it differs from w_t·2^62 by at most one unit plus the float64 rounding of the
product (a relative error of a few 2^−53). A weight of 0 gives W_t = 0 and is never drawn; a positive
weight gives W_t ≥ 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.data.generator import RANDOM_BITS
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel

STOP = -1
"""What `row` holds for a row that is never drawn from."""

_BUCKET_BITS = 6
"""`row` packs the first bucket (upper bits) and k (lower six bits) into one word."""


@dataclass(frozen=True, eq=False)
class AliasTable:
    """`row[r]` says where the buckets of row r are; `bucket[i]` = (threshold, two transitions packed)."""

    row: OffsetArray
    bucket: OffsetArray


def build_alias_table(
    row_start: OffsetArray,
    transition_start: OffsetArray,
    choice_weight: FloatArray,
    probability: FloatArray,
    skip: BoolArray,
) -> AliasTable:
    """One row for each range `row_start[r]..row_start[r+1]` of choices; none for rows in `skip`."""
    row = np.empty(len(row_start) - 1, dtype=np.int64)
    row_start, transition_start = read_only(row_start), read_only(transition_start)
    choice_weight, probability = read_only(choice_weight), read_only(probability)
    buckets, widest = _lay_out(row_start, transition_start, choice_weight, probability, skip, row)
    bucket = np.empty((buckets, 2), dtype=np.int64)
    scratch = np.empty((4, widest), dtype=np.int64)
    _fill(row_start, transition_start, choice_weight, probability, row, bucket, scratch)
    return AliasTable(row, bucket)


@kernel
def pick(row: int, bucket: OffsetArray, number: int) -> int:
    """The transition that a random 62-bit number picks in a row."""
    rest_bits = RANDOM_BITS - (row & 63)
    entry = (row >> _BUCKET_BITS) + (number >> rest_bits)
    pair = bucket[entry, 1]
    if (number & ((1 << rest_bits) - 1)) < bucket[entry, 0]:
        return int(pair >> 32)
    return int(pair & 0xFFFFFFFF)


@kernel
def _lay_out(
    row_start: OffsetArray,
    transition_start: OffsetArray,
    choice_weight: FloatArray,
    probability: FloatArray,
    skip: BoolArray,
    row: OffsetArray,
) -> tuple[int, int]:
    """Where each row's buckets go; the number of buckets and the largest number of a row."""
    buckets = 0
    widest = 1
    for r in range(len(row)):
        if skip[r]:
            row[r] = STOP
            continue
        positive = 0
        for c in range(row_start[r], row_start[r + 1]):
            if choice_weight[c] > 0:
                for t in range(transition_start[c], transition_start[c + 1]):
                    positive += choice_weight[c] * probability[t] > 0
        bits = 0
        while (1 << bits) < positive:
            bits += 1
        row[r] = (buckets << _BUCKET_BITS) | bits
        buckets += 1 << bits
        widest = max(widest, 1 << bits)
    return buckets, widest


@kernel
def _fill(
    row_start: OffsetArray,
    transition_start: OffsetArray,
    choice_weight: FloatArray,
    probability: FloatArray,
    row: OffsetArray,
    bucket: OffsetArray,
    scratch: OffsetArray,
) -> None:
    item, weight, small, large = scratch[0], scratch[1], scratch[2], scratch[3]
    unit = 2.0**RANDOM_BITS
    for r in range(len(row)):
        if row[r] == STOP:
            continue
        total = 0.0
        for c in range(row_start[r], row_start[r + 1]):
            if choice_weight[c] > 0:
                for t in range(transition_start[c], transition_start[c + 1]):
                    total += choice_weight[c] * probability[t]
        items = 0
        largest = 0
        left = np.int64(1) << RANDOM_BITS
        for c in range(row_start[r], row_start[r + 1]):
            if choice_weight[c] > 0:
                for t in range(transition_start[c], transition_start[c + 1]):
                    share = choice_weight[c] * probability[t]
                    if share > 0:
                        whole = max(np.int64(1), np.int64(np.rint(min(share / total, 1.0) * unit)))
                        item[items] = t
                        weight[items] = whole
                        left -= whole
                        if whole > weight[largest]:
                            largest = items
                        items += 1
        weight[largest] += left
        bits = row[r] & 63
        capacity = np.int64(1) << (RANDOM_BITS - bits)
        for i in range(items, 1 << bits):
            item[i] = item[largest]
            weight[i] = 0
        smalls = 0
        larges = 0
        for i in range(1 << bits):
            if weight[i] < capacity:
                small[smalls] = i
                smalls += 1
            else:
                large[larges] = i
                larges += 1
        first = row[r] >> _BUCKET_BITS
        while smalls > 0:
            smalls -= 1
            i = small[smalls]
            j = large[larges - 1]
            bucket[first + i, 0] = weight[i]
            bucket[first + i, 1] = (item[i] << 32) | item[j]
            weight[j] -= capacity - weight[i]
            if weight[j] < capacity:
                larges -= 1
                small[smalls] = j
                smalls += 1
        for n in range(larges):
            i = large[n]
            bucket[first + i, 0] = capacity
            bucket[first + i, 1] = (item[i] << 32) | item[i]
