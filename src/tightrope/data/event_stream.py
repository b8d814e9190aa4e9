"""A log as a sequence of events, chunk by chunk, for tests in the order of events.

Rows are read and checked as for counting (`tightrope.data.fold`), except that an outcome which the model
excludes is an event: it is evidence about the model, not a fault of the log. If rows have times, these give
the order over all files.

Events are numbered from 1, as in `watch`. If earlier events are left out (`Recent`), confidence holds only
if that was decided without the events that are used: the first event was fixed in advance, or follows from
earlier events, such as the one after an alarm. A change point estimated from later events chose itself, and
the start of a window of the last events depends on where the log ends. The user states how many events had
been seen at the decision (`chosen_at`; 0 for a plan), and the result is nominal unless all of these precede
the first event that is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data.columns import TIME
from tightrope.data.counts import BatchCounter, Counts, LazyLog
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.fold import Collector, Excluded, Fold
from tightrope.data.read_options import Recent
from tightrope.data.read_plan import ReadPlan
from tightrope.data.row_sequence import HOLES, MISSING, OUT_OF_ORDER
from tightrope.data.time_order import are_in_time
from tightrope.errors import InputError, Location
from tightrope.io.table.columns import RowProblem
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.record import Record

BLOCK = 1 << 18
"""Events that are handed over at once."""


@dataclass(frozen=True)
class LogEvents:
    """Transitions in the order in which they happened, by rows of a chunk, and what happened beside them.

    `begins` says which of them are the first of an episode; that of the first row of a log that grows may be
    said of one that goes on.
    """

    transition: OffsetArray
    row: OffsetArray
    begins: BoolArray
    excluded: tuple[Excluded, ...]
    rows: int
    time: OffsetArray

    def since(self, row: int) -> LogEvents:
        """Those from a row on."""
        later = self.row >= row
        excluded = tuple(one for one in self.excluded if one.row >= row)
        events = (self.transition[later], self.row[later], self.begins[later])
        return LogEvents(*events, excluded, self.rows, self.time[later])


Take = Callable[[LogEvents], None]


def follow_in_time(
    plan: ReadPlan, take: Take, strict: bool, keep: Callable[[int, LogEvents], LogEvents] | None = None
) -> tuple[list[int], Counter[str]]:
    """The events of all tables in the order of their times, however rows stand; the rows of each, and what is
    left out of them.

    `keep` says which events of a table are taken. Events are gathered first: about 32 bytes each.
    """
    events: list[LogEvents] = []
    rows: list[int] = []
    dropped: Counter[str] = Counter()
    for table in range(len(plan.tables)):

        def gather(more: LogEvents, table: int = table) -> None:
            events.append(more if keep is None else keep(table, more))

        read, left_out = follow_events(plan, table, gather, strict)
        rows.append(read)
        dropped += left_out
    if not events:
        return rows, dropped
    time = np.concatenate([one.time for one in events])
    order = np.argsort(time, kind="stable")
    time = time[order]
    transition = np.concatenate([one.transition for one in events])[order]
    begins = np.concatenate([one.begins for one in events])[order]
    excluded = sorted((outcome for one in events for outcome in one.excluded), key=lambda one: one.time)
    for first in range(0, max(len(order), 1), BLOCK):
        part = slice(first, first + BLOCK)
        until = time[part][-1] if first + BLOCK < len(order) else np.iinfo(np.int64).max
        at = [one for one in excluded if one.time <= until]
        excluded = excluded[len(at) :]
        place = np.arange(len(order[part]), dtype=np.int64)
        shown = tuple(replace(one, row=int(np.searchsorted(time[part], one.time))) for one in at)
        take(LogEvents(transition[part], place, begins[part], shown, 0, time[part]))
    return rows, dropped


def follow_events(plan: ReadPlan, table: int, take: Take, strict: bool = False) -> tuple[int, Counter[str]]:
    """Hand over the events of one table as they are read; how many rows it has, and what is left out of it.

    With `strict` an outcome that the model excludes is an error, as it is for counting. Rows of an episode
    that are out of order are one, too: what came later may depend on what came before, so that no other
    order will do.
    """
    stream = Collector("number", "transition", "since_start", "time")
    fold = Fold(plan, (stream,), by_name=True, excludes=not strict)
    first = 1
    for chunk in fold.chunks(table):
        try:
            fold.update(chunk, table)
        except InputError:
            if not fold.notes[OUT_OF_ORDER]:
                raise
        if fold.notes[OUT_OF_ORDER]:
            raise InputError(
                "the rows are not in order of time, and `watch` needs that order",
                Location(plan.tables[table].path),
                "sort them by episode and step",
            )
        settled = first = chunk.first_row + chunk.rows
        if fold.last is not None and fold.from_next:  # outcomes that may still come
            settled = int(fold.last.number[fold.are_open(fold.last)].min(initial=first))
        take(_released(stream, fold, settled, chunk.first_row, chunk.rows))
    if fold.last is not None:
        take(_released(stream, fold, first, first, 0))
    if (missing := int(fold.notes[MISSING] + fold.notes[HOLES])) and plan.options.gaps is None:
        fold.dropped[RowProblem.MISSING_STEP.words] += missing
    return fold.rows, fold.dropped


def _released(stream: Collector, fold: Fold, before: int, first_row: int, size: int) -> LogEvents:
    """The events of all rows before this one, in the order of rows; the others stay."""
    held = stream.finish()
    order = np.argsort(held["number"], kind="stable")
    order = order[held["transition"][order] >= 0]
    cut = int(np.searchsorted(held["number"][order], before))
    stream.parts = [{name: one[order[cut:]] for name, one in held.items()}]
    row, transition, since, time = (held[name][order[:cut]] for name in stream.fields)
    outside = sorted((one for _, one in fold.excluded if one.row < before), key=lambda one: one.row)
    fold.excluded = [(place, one) for place, one in fold.excluded if one.row >= before]
    shown = tuple(replace(one, row=one.row - first_row) for one in outside)
    return LogEvents(transition, row - first_row, since == 0, shown, size, time)


def split_at_excluded(events: LogEvents) -> Iterator[tuple[OffsetArray, BoolArray] | Excluded]:
    """Transitions (with which of them begin an episode) and what the model excludes, one after the other."""
    first = 0
    for excluded in events.excluded:
        end = int(np.searchsorted(events.row, excluded.row))
        yield events.transition[first:end], events.begins[first:end]
        yield excluded
        first = end
    yield events.transition[first:], events.begins[first:]


@dataclass(frozen=True, eq=False, repr=False)
class KeptEvents(Record):
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
        text = f"events {self.first:,} to {self.last:,} are kept, the {self.left_out:,} before are left out"
        if not self.holds:
            return text
        when = "in advance" if self.chosen_at == 0 else f"when {self.chosen_at:,} had been seen"
        return f"{text}, as was decided {when}: what is kept is fresh"

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


def recent_counts(transition: npt.NDArray[Any], recent: Recent, whole: Counts) -> tuple[Counts, KeptEvents]:
    """The counts of those events of a log, in their order, that are kept; `whole` are the counts of all,
    whose flaws they have, too."""
    last, held = len(transition), whole.design
    first = recent.since if recent.since is not None else max(1, last - (recent.window or 0) + 1)
    if first > last:
        raise InputError(
            f"`since` is event {first:,}, but the data have {last:,} events",
            hint="events are counted from 1 in the order of the log, as `watch` prints them",
        )
    if recent.chosen_at is not None and recent.chosen_at > last:
        raise InputError(f"`chosen_at` is event {recent.chosen_at:,}, but the data have {last:,} events")
    events, counter, number = KeptEvents(first, last, recent.chosen_at), BatchCounter(), last - first + 1
    counter.add_at(transition[first - 1 :].astype(np.int64), np.arange(number))
    design = SamplingDesign(
        SamplingKind.ADAPTIVE,
        steps=number,
        censored=held.censored if events.holds else (*held.censored, events.missing),
        open_end=held.open_end,
        by_episodes=False,
        order=held.order,
        ends=held.ends,
    )
    counts = Counts.from_batches(counter.finish(), whole.transition_start, design, whole.model_hash)
    if (log := whole.log) is not None:
        structure = log.structure if isinstance(log, LazyLog) else None
        counts = replace(counts, log=LazyLog(lambda: log().since(first - 1), structure))
    return counts, events


def keep_recent(
    plan: ReadPlan, whole: Counts, recent: Recent, *, dropped: int, is_sorted: bool
) -> tuple[Counts, KeptEvents]:
    """Read the tables of a log once more, event by event, and count those that are kept.

    `whole` are the counts of all rows but the `dropped` ones; `is_sorted`: as they are in the log.
    """
    place = Location(plan.tables[0].path)
    if any(columns.is_counted for columns in plan.columns):
        raise InputError(
            "a table of counts does not record the order of events, so old events cannot be excluded",
            place,
            "give the log itself, one row per step",
        )
    if dropped:
        raise InputError(
            "rows were dropped, so events cannot be numbered in order",
            place,
            "correct the log, and leave `skip_invalid` out",
        )
    if not is_sorted:
        raise InputError(
            "the rows are not in order of time, and events are numbered in order of time",
            place,
            "sort them by time, or by episode and step",
        )
    parts: list[IndexArray] = []

    def take(events: LogEvents) -> None:
        parts.append(events.transition.astype(np.int32))

    in_time = all(TIME in columns.roles for columns in plan.columns) and not are_in_time(plan)
    if in_time and whole.design.order.holds:
        follow_in_time(plan, take, strict=True)
    else:
        for table in range(len(plan.tables)):
            follow_events(plan, table, take, strict=True)
    transition = np.concatenate(parts)
    if len(transition) != whole.steps:
        raise InputError(
            f"the log was read twice, with {whole.steps:,} and then with {len(transition):,} events",
            place,
            "give files, or tables that can be read more than once, whose rows are in the order of time",
        )
    return recent_counts(transition, recent, whole)
