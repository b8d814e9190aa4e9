"""Counting the recent part of a log: events in their order, of which the first are left out.

A log is read twice: as a whole, which finds what is wrong with it or missing from it, and then event by
event, as `watch` reads it. Batches begin anew with the first event that is kept, so the likelihood region and
the test of the model know nothing of what came before.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from tightrope.data.accumulator import BatchAccumulator
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.event_stream import Events, follow_events
from tightrope.data.read_plan import ReadPlan
from tightrope.data.recent import Kept, Recent
from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import OffsetArray


class RecentEvents:
    """Takes events in their order, and counts those that are to be kept."""

    def __init__(self, recent: Recent, transitions: int):
        self.recent = recent
        self.events = 0
        self._accumulator = BatchAccumulator(transitions)
        self._counted = 0
        self._last: deque[OffsetArray] = deque()
        self._waiting = 0

    def add(self, transition: OffsetArray) -> None:
        before = self.events
        self.events += len(transition)
        if self.recent.since is not None:
            self._count(transition[max(0, self.recent.since - 1 - before) :])
            return
        assert self.recent.window is not None
        self._last.append(np.array(transition, dtype=np.int64))
        self._waiting += len(transition)
        while self._waiting - len(self._last[0]) >= self.recent.window:
            self._waiting -= len(self._last.popleft())

    def _count(self, transition: OffsetArray) -> None:
        self._accumulator.add(
            transition, np.arange(self._counted, self._counted + len(transition), dtype=np.int64)
        )
        self._counted += len(transition)

    def finish(self, whole: Counts) -> tuple[Counts, Kept]:
        """The counts of what is kept; `whole` are those of the whole log, whose flaws they have, too."""
        recent, last = self.recent, self.events
        first = recent.since if recent.since is not None else max(1, last - (recent.window or 0) + 1)
        if first > last:
            raise InputError(
                f"`since` is event {first:,}, but the data have {last:,} events",
                hint="events are counted from 1 in the order of the log, as `watch` prints them",
            )
        if recent.chosen_at is not None and recent.chosen_at > last:
            raise InputError(f"`chosen_at` is event {recent.chosen_at:,}, but the data have {last:,} events")
        if recent.window is not None:
            self._count(np.concatenate(self._last)[-recent.window :])
        kept = Kept(first, last, recent.chosen_at)
        held = whole.design
        design = SamplingDesign(
            SamplingKind.ADAPTIVE,
            steps=self._counted,
            censored=held.censored if kept.holds else (*held.censored, kept.missing),
            open_end=held.open_end,
        )
        batches = self._accumulator.finish()
        return Counts.from_batches(batches, whole.transition_start, design, whole.model_hash), kept


def keep_recent(
    plan: ReadPlan, whole: Counts, recent: Recent, *, dropped: int, is_sorted: bool
) -> tuple[Counts, Kept]:
    """Read the tables of a log once more, event by event, and count those that are kept.

    `whole` are the counts of all rows but the `dropped` ones; `is_sorted`: as they are in the log.
    """
    place = Location(plan.tables[0].path)
    if any(columns.is_counted for columns in plan.columns):
        raise InputError(
            "a table of counts has no order of its events, so that none can be left out for being old",
            place,
            "give the log itself, one row per step",
        )
    if dropped:
        raise InputError(
            "rows were dropped, so that events cannot be numbered as they happened",
            place,
            "correct the log, and leave `skip_invalid` out",
        )
    if not is_sorted:
        raise InputError(
            "the rows are not in their order in time, by which events are numbered",
            place,
            "sort them by time, or by episode and step",
        )
    found = RecentEvents(recent, plan.structure.transitions)

    def take(events: Events) -> None:
        found.add(events.transition)

    for table in range(len(plan.tables)):
        follow_events(plan, table, take, strict=True)
    if found.events != whole.steps:
        raise InputError(
            f"the log was read twice, with {whole.steps:,} and then with {found.events:,} events",
            place,
            "give files, or tables that can be read more than once, whose rows are in the order of time",
        )
    return found.finish(whole)
