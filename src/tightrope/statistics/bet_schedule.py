"""When bets are placed: the pilot, the batches before which they are renewed, and for how much data.

All of it follows from the sampling design and from how much data came before a batch, never from outcomes
that a bet is placed on. Two rules:

* *planned*: the number of episodes was stated before the data came, and batches end where that many episodes
  would end theirs. The pilot are the batches within the first 3 % of the plan, and every bet is sized for
  what the plan leaves after the pilot. Ending early or going on past the plan stays valid, and only costs
  width.
* *open*: nothing was planned, or the data are looked at while they come. The pilot are 10 batches, and bets
  of several sizes share the stake (`tightrope.statistics.slab`), each for a fixed amount of data; the
  middle one is for the plan where there is one.

Bets are renewed whenever the data have grown by half since they were placed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.data.counts import Counts, batch_ends
from tightrope.data.design import SamplingKind
from tightrope.numerics.arrays import FloatArray

PILOT_SHARE = 0.03
LEAST_PILOT = 5
"""Batches: the first ones hold an episode each."""

OPEN_PILOT = 10
RENEWED_AFTER = 1.5


@dataclass(frozen=True, eq=False)
class Schedule:
    """Bets are placed before batches `placed`, of `batches`; `so_far` is the amount of data before each.

    Amounts are episodes where a plan is known and visits otherwise; `planned` is what the plan leaves after
    the pilot, None where there is none or where the data are looked at while they come: then `middle` is the
    plan.
    """

    pilot: int
    batches: int
    placed: tuple[int, ...]
    so_far: tuple[float, ...]
    planned: float | None
    middle: float | None = None

    def note(self) -> str:
        """One line for reports."""
        if self.middle is not None:
            return (
                f"bets: of several sizes, the middle one for the plan of {self.middle:,.0f} episodes; "
                f"a pilot of {self.pilot} batches"
            )
        if self.planned is None:
            return f"bets: nothing was planned, so bets of several sizes; a pilot of {self.pilot} batches"
        amount = self.planned + (self.so_far[0] if self.so_far else 0.0)
        return f"bets: sized for a plan of {amount:,.0f} episodes, of which {PILOT_SHARE:.0%} are the pilot"

    def part(self, number: int) -> range:
        """The batches that the bets placed as number `number` are on."""
        end = self.placed[number + 1] if number + 1 < len(self.placed) else self.batches
        return range(self.placed[number], end)


def schedule(counts: Counts, sizes: FloatArray) -> Schedule:
    """The schedule of counts with batches of so many visits each."""
    plan, middle = count_planned_episodes(counts), _middle(counts)
    ends, planned = np.cumsum(sizes), None
    pilot = OPEN_PILOT
    if plan is not None or middle is not None:
        assert counts.design.episodes is not None
        ends = batch_ends(counts.design.episodes).astype(np.float64)
    if plan is not None:
        pilot = max(int(np.searchsorted(batch_ends(plan), PILOT_SHARE * plan, side="right")), LEAST_PILOT)
        planned = max(float(plan - batch_ends(plan)[min(pilot, len(batch_ends(plan))) - 1]), 1.0)
    placed: list[int] = []
    so_far: list[float] = []
    for batch in range(pilot, len(ends)):
        before = float(ends[batch - 1])
        if before > 0.0 and (not placed or before >= RENEWED_AFTER * so_far[-1]):
            placed.append(batch)
            so_far.append(before)
    return Schedule(pilot, len(sizes), tuple(placed), tuple(so_far), planned, middle)


def _middle(counts: Counts) -> float | None:
    """The plan of data that are looked at while they come."""
    design = counts.design
    if not design.anytime or design.planned is None or not _has_episodes(counts):
        return None
    return float(design.planned)


def _has_episodes(counts: Counts) -> bool:
    """Whether batches tell how many episodes each holds, and nothing says that the plan came late."""
    design = counts.design
    if counts.batches is None or design.episodes is None or design.late_plan:
        return False
    return design.by_episodes and len(batch_ends(design.episodes)) == len(counts.batches)


def count_planned_episodes(counts: Counts) -> int | None:
    """The number of episodes that were planned before the first one, where batches tell how many each holds
    and the data were not looked at before they were all there.

    Trajectories whose number was fixed in advance are their own plan.
    """
    design = counts.design
    if design.anytime or not _has_episodes(counts):
        return None
    if design.planned is not None:
        return design.planned
    return design.episodes if design.kind is SamplingKind.TRAJECTORIES else None
