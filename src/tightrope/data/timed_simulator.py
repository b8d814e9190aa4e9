"""Trajectories of chains in continuous time, with the moments of their jumps.

All episodes move together, a jump at a time: exponential sojourns, then a transition with probability
rate/exit. An episode is watched for a fixed time, after which its last state is written once more (its
sojourn is cut off); a number of jumps may end it before. Rows are those that `exposure` reads: the state
from a moment on. A jump of a state to itself shows as the same state again, which says that nothing was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, check_number, describe
from tightrope.model.continuous import CTMC
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_CAP = 10**6
"""Jumps of an episode, where nothing else is said."""


@dataclass(frozen=True, eq=False, repr=False)
class TimedRows(Record):
    """Rows of a log, by episode and time.

    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})]).instantiate()
    >>> rows = tr.simulate_times(chain, 3, seed=1, time=10)
    >>> rows.table().column_names, float(rows.time.max())
    (['episode', 'time', 'state'], 10.0)
    """

    episode: OffsetArray
    time: FloatArray
    state: OffsetArray
    jumps: int
    structure: Structure = field(repr=False)

    def __post_init__(self) -> None:
        freeze_fields(self)

    def _title_(self) -> str:
        return f"TimedRows: {len(self.episode):,} rows, {self.jumps:,} jumps"

    def _facts_(self) -> Facts:
        return []

    def table(self) -> pa.Table:
        """A log for `learn_rates`: states by the model's variables, or by their index in `state`."""
        import pyarrow as pa

        found = self.structure.valuations.items()
        columns = {name: column[self.state] for name, column in found} or {"state": self.state}
        return pa.table({"episode": self.episode, "time": self.time, **columns})


def simulate_times(chain: CTMC, episodes: int, seed: int, time: float, cap: int = LARGEST_CAP) -> TimedRows:
    """Watch so many episodes from the initial state for a time, or until they have had `cap` jumps.

    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})]).instantiate()
    >>> tr.simulate_times(chain, 3, seed=1, time=10)
    TimedRows: 42 rows, 36 jumps
    """
    if not isinstance(chain, CTMC):
        raise InputError(
            f"`chain` is {describe(chain)}, not a CTMC",
            hint="model.instantiate(lam=0.5) is the chain at a point",
        )
    check_number("time", time, 0, inf)
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
    return TimedRows(episode[order], times[order], state[order], jumps, structure)
