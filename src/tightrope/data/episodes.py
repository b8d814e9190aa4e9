"""The kernels that walk: episodes counted, or recorded step by step.

An episode starts in the initial state and ends in a state without a row (stopped or absorbing) or after
`cap` steps. Episode n draws from the generator of its own number, so a range of episodes gives the
same counts however it is cut up. Counting walks several episodes at once: their memory accesses do
not wait for each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.data.alias import pick
from tightrope.data.generator import draw, seed_generator
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

LANES = 8
"""Episodes walked at once by one thread."""


class Walk(NamedTuple):
    """An alias table with a row per state (or per choice), where transitions lead, and how episodes begin and
    end; `key` is that of their generators.
    """

    row: OffsetArray
    bucket: OffsetArray
    successor: IndexArray
    initial: int
    cap: int
    key: np.uint64


@kernel
def count_episodes(
    walk: Walk,
    first: int,
    last: int,
    count: OffsetArray,
    touched: IndexArray,
) -> tuple[int, int]:
    """Walk the episodes first..last−1 and add their transitions to `count`.

    Transitions whose count was 0 are listed in `touched`. Returns the number of steps and of these.
    """
    row, bucket, successor, initial, cap, key = walk
    if row[initial] < 0 or cap == 0:
        return 0, 0
    generator = np.empty((LANES, 4), dtype=np.uint64)
    state = np.empty(LANES, dtype=np.int64)
    left = np.empty(LANES, dtype=np.int64)
    active = min(LANES, last - first)
    for lane in range(active):
        seed_generator(key, first + lane, generator[lane])
        state[lane] = initial
        left[lane] = cap
    waiting = first + active
    steps = 0
    touches = 0
    while active > 0:
        lane = 0
        while lane < active:
            t = pick(row[state[lane]], bucket, draw(generator[lane]))
            if count[t] == 0:
                touched[touches] = t
                touches += 1
            count[t] += 1
            steps += 1
            state[lane] = successor[t]
            left[lane] -= 1
            if left[lane] == 0 or row[state[lane]] < 0:
                if waiting < last:
                    seed_generator(key, waiting, generator[lane])
                    state[lane] = initial
                    left[lane] = cap
                    waiting += 1
                else:
                    active -= 1
                    for i in range(4):
                        generator[lane, i] = generator[active, i]
                    state[lane] = state[active]
                    left[lane] = left[active]
            lane += 1
    return steps, touches


@kernel
def record_episodes(
    walk: Walk,
    first: int,
    last: int,
    episode: OffsetArray,
    step: OffsetArray,
    transition: OffsetArray,
) -> tuple[int, int]:
    """Write whole episodes, one row per step, while `cap` more rows fit.

    Returns the number of rows and the first episode not walked.
    """
    row, bucket, successor, initial, cap, key = walk
    generator = np.empty(4, dtype=np.uint64)
    rows = 0
    number = first
    while number < last and rows + cap <= len(transition):
        seed_generator(key, number, generator)
        state = initial
        taken = 0
        while taken < cap and row[state] >= 0:
            t = pick(row[state], bucket, draw(generator))
            episode[rows] = number
            step[rows] = taken
            transition[rows] = t
            rows += 1
            taken += 1
            state = successor[t]
        number += 1
    return rows, number


@kernel
def count_draws(
    row: OffsetArray,
    bucket: OffsetArray,
    key: np.uint64,
    draws: OffsetArray,
    first: int,
    last: int,
    count: OffsetArray,
    touched: IndexArray,
) -> tuple[int, int]:
    """Draw each row r of first..last−1 `draws[r]` times; count transitions as `count_episodes` does."""
    generator = np.empty(4, dtype=np.uint64)
    touches = 0
    steps = 0
    for r in range(first, last):
        seed_generator(key, r, generator)
        steps += draws[r]
        for _ in range(draws[r]):
            t = pick(row[r], bucket, draw(generator))
            if count[t] == 0:
                touched[touches] = t
                touches += 1
            count[t] += 1
    return steps, touches
