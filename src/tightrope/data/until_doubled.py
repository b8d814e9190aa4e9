"""Episodes simulated under a policy until an update is due: compiled, the same however the run is divided.

Episode n draws from the generator of its own number (`tightrope.data.generator`), so a run that goes on
later, or somewhere else, sees what it would have seen without the break.
"""

from __future__ import annotations

import numpy as np

from tightrope.data.alias import build_alias_table, pick
from tightrope.data.episodes import Walk
from tightrope.data.generator import EPISODES, draw, seed_generator
from tightrope.data.growing import GrowingCounts
from tightrope.data.simulator import Simulator, seed_key
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.jit import kernel


def simulate_until_doubled(
    simulator: Simulator, policy: Policy, seed: int, data: GrowingCounts, last: int
) -> None:
    """Add episodes of the simulator's model under `policy`, until an update is due or there are `last`."""
    mdp = simulator.mdp
    table = build_alias_table(
        mdp.choice_start, mdp.transition_start, policy.probability, mdp.probability, simulator.stopping
    )
    key = seed_key(seed, EPISODES)
    walk = Walk(table.row, table.bucket, mdp.successor, mdp.initial, simulator.cap, key)
    compared, due = data.compared, False
    while not due and data.episodes < last:
        walked, steps, doubled = walk_until_doubled(
            walk,
            mdp.structure.transition_choice,
            data.number,
            data.before[0] + min(last, data.batch_end),
            compared,
            data.visits,
            data.pending,
        )
        data.counted(walked, steps)
        due = doubled or data.update_is_due


@kernel
def walk_until_doubled(
    walk: Walk,
    transition_choice: IndexArray,
    first: int,
    last: int,
    looked: OffsetArray,
    visits: OffsetArray,
    count: OffsetArray,
) -> tuple[int, int, bool]:
    """Walk episodes from `first` on, at most up to last−1, and end with the one in which a choice doubles.

    Adds to `visits` and `count`. Returns the episodes walked, their steps, and whether a choice doubled.
    """
    row, bucket, successor, initial, cap, key = walk
    generator = np.empty(4, dtype=np.uint64)
    steps = 0
    due = False
    number = first
    while number < last and not due:
        seed_generator(key, number, generator)
        state = initial
        taken = 0
        while taken < cap and row[state] >= 0:
            t = pick(row[state], bucket, draw(generator))
            c = transition_choice[t]
            count[t] += 1
            visits[c] += 1
            if visits[c] - looked[c] >= max(looked[c], 1):
                due = True
            taken += 1
            state = successor[t]
        steps += taken
        number += 1
    return number - first, steps, due
