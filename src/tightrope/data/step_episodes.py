"""The kernels that walk under a policy that depends on the step: episodes counted, or recorded step by step.

As `tightrope.data.episodes`, with the difference that the row to draw from is that of the choice which the
policy takes at the state and at the step; a choice that is never drawn from has no row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.data.alias import pick
from tightrope.data.episodes import Walk
from tightrope.data.generator import draw, seed_generator
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel


class Runs(NamedTuple):
    """The states that end an episode, and the policy: at state s `choice[i]` from `step[i]` on, for i in
    start[s]..start[s + 1].
    """

    stopping: BoolArray
    start: OffsetArray
    step: OffsetArray
    choice: OffsetArray


@kernel
def count_step_episodes(
    walk: Walk,
    runs: Runs,
    first: int,
    last: int,
    count: OffsetArray,
    touched: IndexArray,
) -> tuple[int, int]:
    """Walk the episodes first..last−1 and add their transitions to `count`, as `count_episodes` does."""
    row, bucket, successor, initial, cap, key = walk
    stopping, run_start, run_step, run_choice = runs
    generator = np.empty(4, dtype=np.uint64)
    steps = 0
    touches = 0
    for number in range(first, last):
        seed_generator(key, number, generator)
        state = initial
        taken = 0
        while taken < cap and not stopping[state]:
            j = run_start[state]
            while j + 1 < run_start[state + 1] and run_step[j + 1] <= taken:
                j += 1
            t = pick(row[run_choice[j]], bucket, draw(generator))
            if count[t] == 0:
                touched[touches] = t
                touches += 1
            count[t] += 1
            steps += 1
            taken += 1
            state = successor[t]
    return steps, touches


@kernel
def record_step_episodes(
    walk: Walk,
    runs: Runs,
    first: int,
    last: int,
    episode: OffsetArray,
    step: OffsetArray,
    transition: OffsetArray,
) -> tuple[int, int]:
    """Write whole episodes, one row per step, while `cap` more rows fit, as `record_episodes` does."""
    row, bucket, successor, initial, cap, key = walk
    stopping, run_start, run_step, run_choice = runs
    generator = np.empty(4, dtype=np.uint64)
    rows = 0
    number = first
    while number < last and rows + cap <= len(transition):
        seed_generator(key, number, generator)
        state = initial
        taken = 0
        while taken < cap and not stopping[state]:
            j = run_start[state]
            while j + 1 < run_start[state + 1] and run_step[j + 1] <= taken:
                j += 1
            t = pick(row[run_choice[j]], bucket, draw(generator))
            episode[rows] = number
            step[rows] = taken
            transition[rows] = t
            rows += 1
            taken += 1
            state = successor[t]
        number += 1
    return rows, number
