"""Trajectories of chains in continuous time, with the moments of their jumps.

All episodes move together, a jump at a time: exponential sojourns, then a transition with probability
rate/exit. An episode is watched for a fixed time, after which its last state is written once more (its
sojourn is cut off); a number of jumps may end it before. Rows are those that `exposure` reads: the state
from a moment on. A jump of a state to itself shows as the same state again, which says that nothing was seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.model.continuous import CTMC
from tightrope.numerics.arrays import FloatArray, OffsetArray


@dataclass(frozen=True, eq=False)
class TimedRows:
    """Rows of a log, by episode and time."""

    episode: OffsetArray
    time: FloatArray
    state: OffsetArray
    jumps: int


def simulate_times(chain: CTMC, episodes: int, seed: int, time: float, cap: int) -> TimedRows:
    """Watch so many episodes from the initial state for a time, or until they have had `cap` jumps."""
    rng = np.random.default_rng(seed)
    structure = chain.structure
    total = np.cumsum(chain.rate)
    before = np.r_[0.0, total][structure.transition_start[:-1]]
    owner = structure.transition_choice
    leaves = np.bincount(owner[chain.successor != owner], minlength=chain.states) > 0
    now = np.full(episodes, structure.initial, dtype=np.int64)
    clock = np.zeros(episodes)
    number = np.arange(episodes)
    found: list[tuple[OffsetArray, FloatArray, OffsetArray]] = [(number, clock.copy(), now.copy())]
    jumps = 0
    for _ in range(cap):
        if not len(number):
            break
        waited = rng.exponential(1.0, len(number)) / chain.exit_rate[now]
        later = clock + waited
        ends = (later >= time) | ~leaves[now]
        if ends.any():
            found.append((number[ends], np.full(int(ends.sum()), time), now[ends]))
        going = ~ends
        number, now, clock = number[going], now[going], later[going]
        place = before[now] + rng.random(len(now)) * chain.exit_rate[now]
        transition = np.searchsorted(total, place, side="right")
        transition = np.clip(
            transition, structure.transition_start[now], structure.transition_start[now + 1] - 1
        )
        now = chain.successor[transition].astype(np.int64)
        jumps += len(now)
        found.append((number, clock.copy(), now.copy()))
    episode, times, state = (np.concatenate([part[i] for part in found]) for i in range(3))
    order: npt.NDArray[np.intp] = np.lexsort((np.arange(len(episode)), episode))
    return TimedRows(episode[order], times[order], state[order], jumps)
