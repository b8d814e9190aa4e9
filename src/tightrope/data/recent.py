"""The recent part of a log: events before a change are left out.

Events are numbered from 1 in the order of the log, as `watch` counts them. Which ones are left out is a
choice, and the confidence holds only if it was made without looking at what is kept:

* the first event that is kept was fixed in advance, or follows from the events before it, such as the event
  after an alarm: what comes then is fresh, under any policy, and every time-uniform statement holds from
  there on;
* a change that was estimated from what came after it: the events between the estimate and the alarm are part
  of what was looked at. Intervals from them are those of data that were chosen for being different;
* a window of the last events: it begins where it does because the log ends where it does.

So whoever leaves out events says how many had been seen when that was decided (`chosen_at`; 0 for a plan).
The confidence is nominal unless those are all before the first event that is kept.

Counting the recent part of a log: events in their order, of which the first are left out.

A log is read twice: as a whole, which finds what is wrong with it or missing from it, and then event by
event, as `watch` reads it. Batches begin anew with the first event that is kept, so the likelihood region and
the test of the model know nothing of what came before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from tightrope.data.batches import BatchAccumulator
from tightrope.data.column_names import TIME
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.event_stream import Events, follow_events, follow_in_time
from tightrope.data.read_plan import ReadPlan
from tightrope.data.time_order import are_in_time
from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import Record


@dataclass(frozen=True)
class Recent:
    """What is to be kept: the events from number `since` on, or the last `window` of them."""

    since: int | None = None
    window: int | None = None
    chosen_at: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("since", 1), ("window", 1), ("chosen_at", 0)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise InputError(
                    f"`{name}` is {value!r}, not a number of events from {least} on",
                    hint="events are counted from 1 in the order of the log, as `watch` prints them",
                )
        if self.since is not None and self.window is not None:
            raise InputError(
                "`since` and `window` both say which events are kept", hint="leave one of them out"
            )
        if self.chosen_at is not None and self.since is None and self.window is None:
            raise InputError(
                "`chosen_at` says when it was decided which events are kept, and all are",
                hint="add `since` or `window`, or leave `chosen_at` out",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Kept(Record):
    """The events that were kept, `first` to `last`; `chosen_at` had been seen when that was decided."""

    first: int
    last: int
    chosen_at: int | None

    @property
    def left_out(self) -> int:
        return self.first - 1

    @property
    def holds(self) -> bool:
        """Whether what is kept is fresh: it was not looked at when it was chosen."""
        return self.left_out == 0 or (self.chosen_at is not None and self.chosen_at < self.first)

    @property
    def note(self) -> str:
        """What is kept, in a line."""
        if self.left_out == 0:
            return f"all {self.last:,} events are kept"
        kept = f"events {self.first:,} to {self.last:,} are kept, the {self.left_out:,} before are left out"
        if not self.holds:
            return kept
        when = "in advance" if self.chosen_at == 0 else f"when {self.chosen_at:,} had been seen"
        return f"{kept}, as was decided {when}: what is kept is fresh"

    @property
    def missing(self) -> str:
        """Why the confidence is nominal, where it is."""
        left = f"{self.left_out:,} events before event {self.first:,} are left out"
        if self.chosen_at is None:
            return f"{left}, and nothing says that this was decided before those that are kept were seen"
        return f"{left}, as was decided when events up to {self.chosen_at:,} had been seen"

    def to_json(self) -> dict[str, int | bool | None]:
        return {
            "first": self.first,
            "last": self.last,
            "left_out": self.left_out,
            "chosen_at": self.chosen_at,
            "holds": self.holds,
        }


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
            by_episodes=False,
            order=held.order,
            ends=held.ends,
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

    in_time = all(TIME in columns.roles for columns in plan.columns) and not are_in_time(plan)
    if in_time and whole.design.order.holds:
        follow_in_time(plan, dict.fromkeys(range(len(plan.tables)), lambda events: events), take, True)
    else:
        for table in range(len(plan.tables)):
            follow_events(plan, table, take, strict=True)
    if found.events != whole.steps:
        raise InputError(
            f"the log was read twice, with {whole.steps:,} and then with {found.events:,} events",
            place,
            "give files, or tables that can be read more than once, whose rows are in the order of time",
        )
    return found.finish(whole)
