"""The counts of one log, one row per step: parts counted at the same time, summed in their order.

Parts whose first row number is known beforehand (Parquet) are spread over threads; kernels and Arrow
release the interpreter. Text files follow each other, for their rows can only be numbered after those
before.

What is missing from a log (`describe_missing`) may have been left out because of how it came out. An outcome
that is not in the data is a visit with an unknown outcome. Where whether it is there depends on what it was,
the outcomes that are there are no draws from the model any more, and no confidence statement holds for them;
nobody but who collected the data can know that it does not. So the following make the confidence nominal:

* rows that were dropped because they could not be read or explained;
* steps that are missing within an episode or at its beginning;
* actions whose outcome the log does not have, where the model allows more than one;
* episodes whose end is not marked, in a log that marks ends, unless they stop in a state that
  nothing leaves or all at the same length, the longest of all: a cap.

No loss is: an episode that was truncated after complete steps, the end of a log (but for its very last
action, where visits were fixed in advance, or where more data follow: `SamplingDesign.open_end`), and an
action without alternatives in its outcome.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from tightrope.data.batches import BatchAccumulator, Batches, batch_ends
from tightrope.data.column_names import COST, EPISODE, STEP, TIME
from tightrope.data.costs import CostSums
from tightrope.data.counting import count_part
from tightrope.data.design import SamplingDesign
from tightrope.data.follow import (
    EPISODES,
    GAPS,
    LONGEST,
    MISSING,
    OPEN_ENDS,
    OPEN_LONGEST,
    OPEN_SHORTEST,
    START_HIGH,
    START_LOW,
)
from tightrope.data.intake import Intake
from tightrope.data.likely import likely_reading
from tightrope.data.partial import Joined, Partial
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.sorting import count_sorted, times_fall
from tightrope.errors import InputError, Location
from tightrope.formats.table.data_table import DataTable
from tightrope.numerics.arrays import OffsetArray


def describe_missing(
    dropped: Mapping[str, int], notes: OffsetArray, lost: int, late_starts: int = 0
) -> tuple[str, ...]:
    """What is missing, one phrase each; nothing where nothing is."""
    found = []
    if dropped:
        rows = sum(dropped.values())
        reasons = ", ".join(f"{times} {reason}" for reason, times in sorted(dropped.items()))
        found.append(f"{rows:,} {_plural(rows, 'row was', 'rows were')} dropped ({reasons})")
    if notes[GAPS]:
        steps = int(notes[MISSING])
        found.append(f"{steps:,} {_plural(steps, 'step is', 'steps are')} missing within episodes")
    if late_starts:
        found.append(f"{late_starts:,} {_plural(late_starts, 'episode begins', 'episodes begin')} late")
    if lost:
        found.append(f"{lost:,} {_plural(lost, 'action has', 'actions have')} no outcome in the log")
    is_cap = notes[OPEN_SHORTEST] == notes[OPEN_LONGEST] == notes[LONGEST]
    if notes[OPEN_ENDS] and not is_cap:
        stops = int(notes[OPEN_ENDS])
        found.append(f"{stops:,} {_plural(stops, 'episode stops', 'episodes stop')} without an end")
    return tuple(found)


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many


OUT_OF_ORDER = "rows are out of order"
"""How the note on rows begins that were sorted before they were counted."""


@dataclass
class ReadProgress:
    """How far reading is; `tell` is called with it now and then, from any thread."""

    total_bytes: int
    tell: Callable[[ReadProgress], None] | None = None
    rows: int = 0
    bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def over(tables: Sequence[DataTable], tell: Callable[[ReadProgress], None] | None) -> ReadProgress:
        return ReadProgress(sum(table.bytes or 0 for table in tables), tell)

    def add(self, rows: int, read: int) -> None:
        with self._lock:
            self.rows += rows
            self.bytes += read
        if self.tell is not None:
            self.tell(self)


@dataclass(frozen=True)
class LogCounts:
    """Counts per transition with what there is to say about them.

    `open_end` says that the outcome of the very last action is not there: a moment of stopping like any other
    to time-uniform methods, but no number of visits that was fixed in advance.
    """

    count: OffsetArray
    batches: Batches | None
    rows: int
    dropped: Counter[str]
    episodes: int | None
    censored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    open_end: bool = False
    costs: CostSums | None = None


def count_log(
    plan: ReadPlan, stated: SamplingDesign | None, threads: int | None, watch: ReadProgress
) -> LogCounts:
    """Count a whole log; its rows are sorted first where they are out of order."""
    try:
        try:
            joined = join(plan, count_parts(plan, threads, watch))
        except InputError:
            if stated is None and times_fall(plan):
                return _count_sorted(plan)
            raise
        return finish(plan, joined, stated)
    except InputError as error:
        raise explain(plan, error) from error.__cause__


def count_parts(plan: ReadPlan, threads: int | None, watch: ReadProgress) -> Iterator[Partial]:
    """The partial counts of all parts, in their order."""
    if plan.counting is not None:
        yield from plan.counting.partials(plan, watch.add)
        return
    parts = plan.parts()
    workers = min(threads or os.cpu_count() or 1, len(parts))
    if workers < 2 or any(part.first is None for part in parts) or plan.by_episodes:
        first = 0
        for part in parts:
            partial = count_part(plan, part, first, watch.add)
            first += partial.rows
            yield partial
        return
    plan.prepare()
    with ThreadPoolExecutor(workers) as pool:
        running: deque[Future[Partial]] = deque()
        waiting: deque[Part] = deque(parts)
        try:
            while running or waiting:
                while waiting and len(running) < 2 * workers:
                    running.append(pool.submit(count_part, plan, waiting.popleft(), None, watch.add))
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def join(plan: ReadPlan, partials: Iterator[Partial]) -> Joined:
    """The sum of partial counts in their order."""
    joined = Joined(plan, BatchAccumulator(plan.structure.transitions))
    for partial in partials:
        joined.add(partial)
        _refuse_bad(plan, joined)
    joined.finish()
    _refuse_bad(plan, joined)
    return joined


def _refuse_bad(plan: ReadPlan, joined: Joined) -> None:
    """A row that turned out to be wrong when parts were joined."""
    if joined.bad:
        edge = joined.bad[0]
        intake = Intake(plan.tables[edge.table], plan.decoder(edge.table), False)
        raise intake.error_of(edge.row, edge.problem, edge.state, edge.before, edge.before)


def finish(plan: ReadPlan, joined: Joined, stated: SamplingDesign | None) -> LogCounts:
    """The counts of a log whose parts have been joined."""
    roles = plan.columns[0].roles
    if joined.is_out_of_order and stated is not None:
        raise InputError(
            "the rows are not in the order in which the file was written",
            Location(plan.tables[0].path),
            "it was edited after it was written",
        )
    if joined.is_out_of_order and (EPISODE in roles or TIME in roles):
        return _count_sorted(plan)
    if joined.is_out_of_order and STEP in plan.columns[0].roles:
        joined.notes[GAPS] += int(joined.notes[START_LOW] < joined.notes[START_HIGH])
    batches = joined.accumulator.finish(_batches_of_episodes(plan, stated))
    count = batches.total(plan.structure.transitions)
    episodes = joined.episodes if _follows_episodes(plan) else None
    missing = describe_missing(joined.dropped, joined.notes, joined.lost)
    costs = joined.costs.sums() if COST in roles else None
    found = (count, batches, joined.rows, joined.dropped, episodes, missing)
    return LogCounts(*found, open_end=joined.open_end, costs=costs)


def explain(plan: ReadPlan, error: InputError) -> InputError:
    """The error, with another reading of the log where that fits and this one does not."""
    if error.message.startswith("row "):
        alternative = likely_reading(plan, _table_of(plan, error.location))
        if alternative is not None:
            return InputError(error.message, error.location, alternative)
    return error


def _table_of(plan: ReadPlan, location: Location | None) -> int:
    names = [table.path for table in plan.tables]
    return names.index(location.file) if location is not None and location.file in names else 0


def _count_sorted(plan: ReadPlan) -> LogCounts:
    found = count_sorted(plan)
    missing = describe_missing(found.dropped, found.notes, found.lost, found.late_starts)
    episodes = int(found.notes[EPISODES])
    how = f"{OUT_OF_ORDER}: {found.how}"
    about = (found.count, found.batches, found.rows, found.dropped, episodes, missing)
    return LogCounts(*about, (how,), costs=found.costs)


def _follows_episodes(plan: ReadPlan) -> bool:
    """Whether the log says where one episode ends and the next begins."""
    columns = plan.columns[0]
    return EPISODE in columns.roles or STEP in columns.roles or bool(columns.ends) or columns.from_next_row


def _batches_of_episodes(plan: ReadPlan, design: SamplingDesign | None) -> int | None:
    if not plan.by_episodes or design is None or design.episodes is None:
        return None
    return len(batch_ends(design.episodes))
