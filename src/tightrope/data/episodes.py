"""The kernels that walk: episodes counted, or recorded step by step.

An episode starts in the initial state and ends in a state without a row (stopped or absorbing) or after
`cap` steps. Under a policy that depends on the step (`Runs`) the row to draw from is that of the choice
taken there; without one (None) it is that of the state, and nothing of this is compiled. Episode n draws
from the generator of its own number, so a range of episodes gives the same counts however it is cut up.
Counting walks several episodes at once: their memory accesses do not wait for each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.data.alias import STOP, pick
from tightrope.data.generator import draw, seed_generator
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

LANES = 8
"""Episodes walked at once by one thread."""


class Walk(NamedTuple):
    """An alias table with a row per state, or per choice where the policy depends on the step (`Runs`); where
    transitions lead; how episodes begin and end; `key` is that of their generators.
    """

    row: OffsetArray
    bucket: OffsetArray
    successor: IndexArray
    initial: int
    cap: int
    key: np.uint64


class Runs(NamedTuple):
    """A policy that depends on the step: the states that end an episode, and at state s `choice[i]` from
    `step[i]` on, for i in start[s]..start[s + 1].
    """

    stopping: BoolArray
    start: OffsetArray
    step: OffsetArray
    choice: OffsetArray


@kernel
def _find_row(
    row: OffsetArray,
    stopping: BoolArray,
    start: OffsetArray,
    step: OffsetArray,
    choice: OffsetArray,
    state: int,
    taken: int,
) -> int:
    """The row of the choice that a policy takes in a state after so many steps; STOP where episodes end."""
    if stopping[state]:
        return STOP
    j = start[state]
    while j + 1 < start[state + 1] and step[j + 1] <= taken:
        j += 1
    return int(row[choice[j]])


@kernel
def count_episodes(
    walk: Walk, runs: Runs | None, first: int, last: int, count: OffsetArray, touched: IndexArray
) -> tuple[int, int]:
    """Walk the episodes first..last−1 and add their transitions to `count`.

    Transitions whose count was 0 are listed in `touched`. Returns the number of steps and of these.
    """
    row, bucket, successor, initial, cap, key = walk
    if runs is None:
        begin = row[initial]
    else:
        stopping, start, step, choice = runs
        begin = _find_row(row, stopping, start, step, choice, initial, 0)
    if begin < 0 or cap == 0:
        return 0, 0
    generator = np.empty((LANES, 4), dtype=np.uint64)
    here = np.empty(LANES, dtype=np.int64)
    left = np.empty(LANES, dtype=np.int64)
    active = min(LANES, last - first)
    for lane in range(active):
        seed_generator(key, first + lane, generator[lane])
        here[lane] = begin
        left[lane] = cap
    waiting = first + active
    steps = 0
    touches = 0
    while active > 0:
        lane = 0
        while lane < active:
            t = pick(here[lane], bucket, draw(generator[lane]))
            if count[t] == 0:
                touched[touches] = t
                touches += 1
            count[t] += 1
            steps += 1
            left[lane] -= 1
            if runs is None:
                here[lane] = row[successor[t]]
            else:
                here[lane] = _find_row(row, stopping, start, step, choice, successor[t], cap - left[lane])
            if left[lane] == 0 or here[lane] < 0:
                if waiting < last:
                    seed_generator(key, waiting, generator[lane])
                    here[lane] = begin
                    left[lane] = cap
                    waiting += 1
                else:
                    active -= 1
                    for i in range(4):
                        generator[lane, i] = generator[active, i]
                    here[lane] = here[active]
                    left[lane] = left[active]
            lane += 1
    return steps, touches


@kernel
def record_episodes(
    walk: Walk,
    runs: Runs | None,
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
    if runs is not None:
        stopping, run_start, run_step, run_choice = runs
    generator = np.empty(4, dtype=np.uint64)
    rows = 0
    number = first
    while number < last and rows + cap <= len(transition):
        seed_generator(key, number, generator)
        state = initial
        for taken in range(cap):
            if runs is None:
                here = row[state]
            else:
                here = _find_row(row, stopping, run_start, run_step, run_choice, state, taken)
            if here < 0:
                break
            t = pick(here, bucket, draw(generator))
            episode[rows] = number
            step[rows] = taken
            transition[rows] = t
            rows += 1
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
