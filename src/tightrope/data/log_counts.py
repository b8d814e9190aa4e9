"""Counts of a log, with what is missing from it, how its episodes ended, and its order in time.

*Missing data* (`describe_missing`). If the presence of an outcome depends on the outcome, the observed ones
are no draws from the model, and no confidence statement holds. The result is therefore nominal if

* rows were dropped because they could not be read or explained;
* steps are missing within an episode or at its start, or a regular clock has a gap;
* the log lacks the outcome of an action that has several in the model.

A truncated episode and the end of the log lose nothing, except the very last action where visits were fixed
in advance or more data follow (`SamplingDesign.open_end`).

*Ends* (`ends_of`) are known from a flag or an absorbing state. The end of the last episode does not matter,
nor does one instant at which all running episodes are cut: both are stopping times. Otherwise the user must
state that episodes are complete. *Order* (`order_of`) is known from times, or within a single episode;
otherwise it is stated or unknown.

A table of counts (`count_table`) has one row per transition, with or without a batch number.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data.columns import BATCH, COST, COUNT, EPISODE, STEP, TIME, WATCHED_UNTIL
from tightrope.data.costs import CostSums, CostTally
from tightrope.data.counts import BatchCounter, Batches, Counts, batch_ends
from tightrope.data.design import (
    ENDS,
    KNOWN_ENDS,
    KNOWN_ORDER,
    ORDER,
    SamplingDesign,
    SamplingKind,
    has_levels,
    worse,
)
from tightrope.data.fold import Fold, Watch, Watched, fold_part
from tightrope.data.free_columns import free_columns
from tightrope.data.read_options import AS_READ, BY_TIME, COMPLETE, LogReadOptions
from tightrope.data.read_plan import Part, ReadPlan, in_threads
from tightrope.data.reading_hints import likely_reading
from tightrope.data.row_sequence import (
    EPISODES,
    FIRST_HIGH,
    FIRST_LOW,
    GAPS,
    HOLES,
    LAST_TIME,
    MISSING,
    OPEN_EARLIEST,
    OPEN_ENDS,
    PARTS,
    START_HIGH,
    START_LOW,
    TIME_FALLS,
    no_notes,
)
from tightrope.data.rows import EventBatch
from tightrope.data.time_order import (
    batch_instants,
    begin_times,
    episode_instants,
    fold_sorted,
    moment_of,
    times_fall,
)
from tightrope.errors import InputError, Location
from tightrope.io.table.columns import RowProblem, mark, whole_numbers
from tightrope.io.table.data_table import DataTable
from tightrope.numerics.arrays import OffsetArray
from tightrope.provenance import Provenance, RowTally, of_counts, transition_marks
from tightrope.verdict import Assumed


class CountTally:
    """Counts per transition in batches, exact sums of costs, and the rows of every table."""

    def __init__(self, plan: ReadPlan, is_placed: bool = True) -> None:
        self.plan, self.counter = plan, BatchCounter()
        self.waiting: list[tuple[OffsetArray, OffsetArray]] | None = None if is_placed else []
        """Rows by their numbers and transitions, where the rows before them are not counted yet."""
        self.costs = CostTally() if COST in plan.columns[0].roles else None
        self.rows = [RowTally() for _ in plan.tables]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plan": None}

    def update(self, batch: EventBatch) -> None:
        batch = batch.counted
        if not len(batch):
            return
        if self.waiting is None:
            self.counter.add(batch.batch, batch.transition)
        else:
            self.waiting.append((_short(batch.batch), _short(batch.transition)))
        if self.costs is not None:
            self.costs.add(batch.transition, batch.cost)
        first = int(batch.table[0])
        if (batch.table == first).all():
            self._see(batch, first)
            return
        for table in range(int(batch.table.min()), int(batch.table.max()) + 1):
            self._see(batch[batch.table == table], table)

    def _see(self, batch: EventBatch, table: int) -> None:
        mark = transition_marks(self.plan.structure)[batch.transition]
        names = self.plan.names_of(batch.episode, batch.number, table)
        self.rows[table].add(mark, names, batch.since_start, None if self.costs is None else batch.cost)

    def place(self, before: int, is_known: bool) -> None:
        placed = [(before + number.astype(np.int64), transition) for number, transition in self.waiting or ()]
        self.waiting = None if is_known else placed
        for number, transition in placed if is_known else ():
            self.counter.add_at(transition.astype(np.int64), number)

    def merge(self, later: CountTally) -> None:
        self.counter.merge(later.counter)
        if self.waiting is not None:
            self.waiting += later.waiting or []
        if self.costs is not None and later.costs is not None:
            self.costs.merge(later.costs.sums())
        for mine, others in zip(self.rows, later.rows, strict=True):
            mine.merge(others)

    def finish(self) -> None:
        """Nothing waits here."""


def _short(numbers: OffsetArray) -> npt.NDArray[Any]:
    """The same in as few bytes as they need: they travel from workers."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def count_fold(plan: ReadPlan, by_name: bool = False, first: int | None = 0, is_first: bool = True) -> Fold:
    """A fold that counts a log, or a part of it with rows before."""
    beside = {}
    if plan.observers:
        beside = free_columns(plan.tables, plan.columns, plan.known, plan.ignored, for_tables=True)
    fold = Fold(plan, by_name=by_name, first=first, is_first=is_first, beside=beside)
    is_ordered = plan.boundaries is None and not by_name
    others = (make(not is_first, is_ordered) for make in plan.observers)
    fold.observers = (CountTally(plan, not fold.waits_for_place), *others)
    return fold


def count_part(plan: ReadPlan, part: Part, watch: Watch | None = None, by_name: bool = False) -> Fold:
    """Count one part."""
    return fold_part(count_fold(plan, by_name, part.first, is_first=False), part, watch)


def describe_missing(
    dropped: Mapping[str, int], notes: OffsetArray, lost: int, late_starts: int = 0, outages: bool = False
) -> tuple[str, ...]:
    """What is missing, one phrase each; nothing where nothing is, or where outages are stated."""
    lines = []
    if dropped:
        rows = sum(dropped.values())
        reasons = ", ".join(f"{times} {reason}" for reason, times in sorted(dropped.items()))
        lines.append(f"{rows:,} {_plural(rows, 'row was', 'rows were')} dropped ({reasons})")
    if notes[HOLES] and not outages:
        holes = int(notes[HOLES])
        lines.append(
            f"{holes:,} {_plural(holes, 'silence is', 'silences are')} longer than the clock's usual step: "
            "rows are missing there (--gaps outage states that this had nothing to do with what happened)"
        )
    if notes[GAPS] and not outages:
        steps = int(notes[MISSING])
        lines.append(f"{steps:,} {_plural(steps, 'step is', 'steps are')} missing within episodes")
    if late_starts:
        lines.append(f"{late_starts:,} {_plural(late_starts, 'episode begins', 'episodes begin')} late")
    if lost:
        lines.append(f"{lost:,} {_plural(lost, 'action has', 'actions have')} {NO_OUTCOME}")
    return tuple(lines)


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many


NO_OUTCOME = "no outcome in the log"
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
    order: Assumed = KNOWN_ORDER
    ends: Assumed = KNOWN_ENDS
    seen: Sequence[Provenance] = ()
    """Which rows were counted, of every table."""
    observed: tuple[Any, ...] = ()
    """What the observers of the plan found."""


class _NotInTime(Exception):
    """Rows do not stand in the order of their times."""


def count_log(
    plan: ReadPlan, stated: SamplingDesign | None, options: LogReadOptions, watch: ReadProgress
) -> LogCounts:
    """Count a whole log, in batches that follow its times where it has some.

    Episodes that stand one after the other are counted part by part, others followed by their names; where
    rows of one episode are out of order, all are sorted first.
    """
    roles = plan.columns[0].roles
    by_name = plan.drop_copies or WATCHED_UNTIL in roles or (plan.by_episodes and stated is None)
    try:
        if not by_name:
            try:
                fold = fold_log(plan, options, watch)
            except _NotInTime:
                plan = replace(plan, boundaries=batch_instants(plan, options.threads))
                fold = fold_log(plan, options, watch)
            if fold.is_out_of_order and stated is not None:
                raise InputError(
                    "the rows are not in the order in which the file was written",
                    Location(plan.tables[0].path),
                    "it was edited after it was written",
                )
            if not fold.is_out_of_order or not (EPISODE in roles or TIME in roles):
                return describe(plan, fold, options, stated)
            if EPISODE not in roles:
                return _count_sorted(plan, options)
        return _followed_by_name(plan, options, watch)
    except InputError as error:
        if stated is None and times_fall(plan):
            return _count_sorted(plan, options)
        raise explain(plan, error) from error.__cause__


def fold_log(plan: ReadPlan, options: LogReadOptions, watch: ReadProgress, by_name: bool = False) -> Fold:
    """All rows of a log, counted; parts at the same time, where their places are known beforehand."""
    parts, whole = plan.parts(), count_fold(plan, by_name)
    in_time = TIME in plan.columns[0].roles and options.order != AS_READ and plan.boundaries is None

    def is_in_time() -> None:
        if in_time and not by_name and whole.notes[TIME_FALLS]:
            raise _NotInTime

    def told(rows: int, read: int) -> None:
        watch.add(rows, read)
        is_in_time()

    workers = min(options.threads or os.cpu_count() or 1, len(parts))
    numbered = plan.boundaries is not None or all(part.first is not None for part in parts)
    if plan.engine is None and (workers < 2 or not numbered or plan.by_episodes or by_name):
        plan.prepare()
        for part in parts:
            fold_part(whole, part, told)
    else:
        for fold in _folds(plan, workers, watch, by_name):
            whole.merge(fold)
            is_in_time()
    whole.finish()
    return whole


def _folds(plan: ReadPlan, workers: int, watch: ReadProgress, by_name: bool) -> Iterator[Fold]:
    """What was made of all parts, in their order."""
    if plan.engine is not None:
        parts = plan.parts()
        folds = plan.engine.run(partial(count_part, by_name=by_name), plan, parts)
        for part, fold in zip(parts, folds, strict=True):
            watch.add(fold.rows, plan.tables[part.table].bytes_of(fold.rows))
            yield fold
        return
    plan.prepare()
    yield from in_threads(workers, lambda part: count_part(plan, part, watch.add), plan.parts())


def _followed_by_name(plan: ReadPlan, options: LogReadOptions, watch: ReadProgress) -> LogCounts:
    """Count a log whose episodes interleave, or by numbers of episodes."""
    in_time = TIME in plan.columns[0].roles and options.order != AS_READ
    if in_time and plan.by_episodes:
        plan = replace(plan, boundaries=episode_instants(begin_times(plan)))
    elif in_time and plan.boundaries is None:
        plan = replace(plan, boundaries=batch_instants(plan, options.threads))
    if plan.by_episodes and not in_time:  # how many had begun is known in the order of the log alone
        plan = replace(plan, engine=None)
    fold = fold_log(plan, options, ReadProgress(0), by_name=True)
    if fold.is_out_of_order and (fold.named or fold.has_time):
        return _count_sorted(plan, options)
    how = () if plan.by_episodes else ("several episodes at once, each followed by its name",)
    return describe(plan, fold, options, remarks=how)


def _count_sorted(plan: ReadPlan, options: LogReadOptions) -> LogCounts:
    if options.order == AS_READ:
        raise InputError(
            "`order` states that rows are in order of time, but the rows of an episode are not",
            Location(plan.tables[0].path),
            "leave `order` out, or sort the log",
        )
    if WATCHED_UNTIL in plan.columns[0].roles:
        raise InputError(
            "the rows of an episode are not in order of time, and `watched_until` names the column "
            f"'{plan.columns[0].roles[WATCHED_UNTIL]}'",
            Location(plan.tables[0].path),
            "sort the log by time",
        )
    counting = count_fold(plan, by_name=True)
    fold, how = fold_sorted(plan, counting.observers, beside=counting.beside)
    return describe(plan, fold, options, remarks=(f"{OUT_OF_ORDER}: {how}",))


def describe(
    plan: ReadPlan,
    fold: Fold,
    options: LogReadOptions,
    stated: SamplingDesign | None = None,
    remarks: tuple[str, ...] = (),
) -> LogCounts:
    """The counts of a log, with what is known of it."""
    notes, outages = fold.notes, options.gaps is not None
    tally, *others = fold.observers
    assert isinstance(tally, CountTally)
    counted = tally.counter.finish(_number_of_batches(plan, fold, stated))
    late = 0
    if fold.is_sorted and fold.has_steps:
        late = int((np.concatenate(fold.first_steps) > notes[START_LOW]).sum())
    elif fold.is_out_of_order and fold.has_steps:
        notes[GAPS] += int(notes[START_LOW] < notes[START_HIGH])
    missing = describe_missing(fold.dropped, notes, fold.lost, late, outages)
    if fold.copies:
        remarks += (f"{fold.copies:,} rows that were logged twice were dropped, as was asked",)
    interleaved = fold.shows_one_clock and not fold.is_sorted
    order = order_of(plan, notes, options, interleaved=interleaved, sorted_=fold.is_sorted)
    ends = ends_of(plan, notes, fold.last_is_open, order, options, fold.watched)
    episodes = int(notes[EPISODES]) if remarks or plan.by_episodes or _follows_episodes(plan) else None
    batches = None if fold.is_sorted and fold.batches is None else counted
    count = counted.total(plan.structure.transitions)
    about = (count, batches, fold.rows, fold.dropped, episodes, missing, remarks, fold.open_end)
    costs = None if tally.costs is None else tally.costs.sums()
    seen = [rows.finish() for rows in tally.rows]
    return LogCounts(*about, costs, order, ends, seen, tuple(other.finish() for other in others))


def _number_of_batches(plan: ReadPlan, fold: Fold, stated: SamplingDesign | None) -> int:
    """How many batches there are, those in which nothing was counted included."""
    if fold.is_sorted:
        return fold.batches or 0
    if plan.boundaries is not None:
        return len(plan.boundaries) + 1
    if plan.by_episodes and stated is not None:
        return 0 if stated.episodes is None else len(batch_ends(stated.episodes))
    if plan.by_episodes:
        return len(batch_ends(int(fold.notes[EPISODES])))
    return len(batch_ends(fold.rows)) if fold.by_name else 0


def order_of(
    plan: ReadPlan,
    notes: OffsetArray,
    options: LogReadOptions,
    interleaved: bool = False,
    sorted_: bool = False,
) -> Assumed:
    """Whether batches follow the order in which rows happened, and how that is known."""
    if TIME in plan.columns[0].roles and options.order != AS_READ:
        if options.order == BY_TIME:
            return Assumed.stated(ORDER, "--order time: one clock runs for all episodes")
        alike = notes[EPISODES] > 1 and notes[FIRST_LOW] == notes[FIRST_HIGH]
        if alike and plan.has_number_times and not interleaved:
            why = (
                "every episode begins at the same number, so each may have a clock of its own; "
                "--order time says that one clock runs for all"
            )
            return Assumed.unverified(ORDER, why)
        return Assumed.derived(ORDER, "batches follow the times of rows, over all files and episodes")
    if notes[EPISODES] == 1 and len(plan.tables) == 1 and not sorted_:
        return Assumed.derived(ORDER, "all rows are of one episode, in its order")
    if options.order == AS_READ:
        return Assumed.stated(ORDER, "--order as-read: rows stand in the order in which they happened")
    why = (
        "no column holds the time of rows, so nothing says in which order episodes happened; --order as-read "
        "states that rows stand in that order"
    )
    return Assumed.unverified(ORDER, why)


def ends_of(
    plan: ReadPlan,
    notes: OffsetArray,
    last_is_open: bool,
    order: Assumed,
    options: LogReadOptions,
    watched: Watched | None = None,
) -> Assumed:
    """Whether episodes stop where they were over or cut by a rule, and how that is known."""
    ends = _ends_of(plan, notes, last_is_open, order, options, watched)
    if options.gaps is not None and options.ends != COMPLETE and not _shows_gaps(plan):
        why = "--gaps outage: neither step numbers nor a regular clock show where rows are missing"
        return worse(ends, Assumed.unverified(ENDS, why))
    if options.gaps is None or not (notes[HOLES] or notes[GAPS]):
        return ends
    why = "--gaps outage: where rows are missing within episodes, logging stopped for reasons of its own"
    return worse(ends, Assumed.stated(ENDS, why))


def _ends_of(
    plan: ReadPlan,
    notes: OffsetArray,
    last_is_open: bool,
    order: Assumed,
    options: LogReadOptions,
    watched: Watched | None,
) -> Assumed:
    others, episodes = int(notes[OPEN_ENDS]), int(notes[EPISODES])
    may_lack = _may_lack_rows(plan)
    if not may_lack and not others and not last_is_open:
        why = "every episode ends in a state that nothing leaves, or is marked as over"
        return Assumed.derived(ENDS, why)
    if not may_lack and not others and (episodes == 1 or order.holds):
        return Assumed.derived(ENDS, "all episodes are over but the last, which the end of the log cuts")
    if options.ends == COMPLETE:
        return Assumed.stated(ENDS, "--ends complete: every episode is whole, no row of it is missing")
    if watched is not None:
        return _watched(plan, watched)
    if options.until_now or options.watched_until is not None:
        return _cut(plan, notes, options)
    if may_lack:
        why = (
            "next states are those of the next rows, and neither step numbers nor a regular clock show "
            "that none is missing between; --ends complete states it"
        )
        return Assumed.unverified(ENDS, why)
    stop = others + last_is_open
    why = (
        f"{stop:,} of {episodes:,} {_plural(episodes, 'episode', 'episodes')} stop in a state that can be "
        "left, and nothing says that they were over; --ends complete states that no row is missing, "
        "--until-now cuts a running log at its last instant, a column truncated or terminated says it of each"
    )
    return Assumed.unverified(ENDS, why)


def _may_lack_rows(plan: ReadPlan) -> bool:
    """Whether a row could be missing within an episode without a trace: the rows around it follow each other
    all the same. Where every step of the model leads one level further it could not."""
    if not plan.columns[0].from_next_row or _shows_gaps(plan):
        return False
    return not has_levels(plan.structure)


def _shows_gaps(plan: ReadPlan) -> bool:
    """Whether steps or a clock show that a row is missing within an episode."""
    return STEP in plan.columns[0].roles or plan.tick.step > 0.0


_STATED = "no row is missing until then, and how long an outcome takes does not depend on it"


def _watched(plan: ReadPlan, watched: Watched) -> Assumed:
    """A column says until when each episode was watched."""
    name = plan.columns[0].roles[WATCHED_UNTIL]
    how = f"the column {name} says until when each episode was watched"
    if watched.unknown:
        some = f"{watched.unknown:,} {_plural(watched.unknown, 'episode', 'episodes')}"
        return Assumed.unverified(ENDS, f"{how}, but nothing of {some} that can go on")
    if not plan.tick.step:
        return Assumed.stated(ENDS, f"{how}; {_STATED}")
    if watched.longest > (PARTS - 2 if watched.has_rows_at_ends else PARTS + 2):
        return Assumed.violated(ENDS, f"{how}; but some stop before, and rows are missing there")
    return Assumed.derived(ENDS, f"{how}, as their last rows show")


def _cut(plan: ReadPlan, notes: OffsetArray, options: LogReadOptions) -> Assumed:
    """Episodes that are not over are said to have gone on until one instant."""
    where = Location(plan.tables[0].path)
    if TIME not in plan.columns[0].roles:
        word = "`until_now`" if options.until_now else "`watched_until`"
        raise InputError(f"{word} needs times, and the log has none", where, 'name them: `columns="time=…"`')
    last, tick = int(notes[LAST_TIME]), plan.tick
    how = "--until-now: episodes that are not over went on until the log's last instant"
    if options.watched_until is not None:
        end = moment_of(options.watched_until, plan)
        if end < last:
            raise InputError(f"`watched_until` is {options.watched_until}, but the log has later rows", where)
        last = end
        how = f"--watched-until {options.watched_until}: episodes that are not over were watched until then"
    earliest, latest = (int(part) for part in tick.parts(np.array([notes[OPEN_EARLIEST], last])))
    inclusive = last == int(notes[LAST_TIME])  # rows at the very end: each open episode needs its own
    if tick.step and latest - earliest > (PARTS - 2 if inclusive else PARTS + 2):
        return Assumed.violated(ENDS, f"{how}; but some stop before, and rows are missing there")
    if tick.step:
        return Assumed.derived(ENDS, f"{how}, as their last rows show")
    return Assumed.stated(ENDS, f"{how}; {_STATED}")


def explain(plan: ReadPlan, error: InputError) -> InputError:
    """The error, with another reading of the log where that fits and this one does not."""
    if error.message.startswith("row "):
        names, place = [table.path for table in plan.tables], error.location
        table = names.index(place.file) if place is not None and place.file in names else 0
        if (alternative := likely_reading(plan, table)) is not None:
            return InputError(error.message, error.location, alternative)
    return error


def _follows_episodes(plan: ReadPlan) -> bool:
    """Whether the log says where one episode ends and the next begins."""
    columns = plan.columns[0]
    return EPISODE in columns.roles or STEP in columns.roles or bool(columns.ends) or columns.from_next_row


LARGEST_TOTAL = 2.0**62
"""Counts must not add up to more than an int64 holds."""

MOST_BATCHES = 1 << 20
"""More batches than any file of ours has."""


def count_table(
    plan: ReadPlan, stated: SamplingDesign | None, options: LogReadOptions, watch: ReadProgress
) -> LogCounts:
    """Add up one table; batch numbers order the batches in time."""
    try:
        counted = _count_table(plan, watch)
        return replace(counted, order=_order(plan, options), ends=_ends(plan, counted, options))
    except InputError as error:
        raise explain(plan, error) from error.__cause__


def _count_table(plan: ReadPlan, watch: ReadProgress) -> LogCounts:
    table, columns, fold = plan.tables[0], plan.columns[0], Fold(plan)
    decoder = fold.validation(0).decoder
    parts: list[tuple[OffsetArray, OffsetArray, OffsetArray]] = []
    total = 0.0
    read = 0
    for chunk in fold.chunks(0):
        rows = decoder.decode(chunk)
        fold.rows += chunk.rows
        count = whole_numbers(
            chunk.columns[columns.roles[COUNT]], columns.roles[COUNT], table.path, rows.problems
        )
        mark(rows.problems, count < 0, RowProblem.NEGATIVE_COUNT)
        batch = np.zeros(chunk.rows, dtype=np.int64)
        if BATCH in columns.roles:
            name = columns.roles[BATCH]
            batch = whole_numbers(chunk.columns[name], name, table.path, rows.problems)
            mark(rows.problems, batch < 0, RowProblem.NEGATIVE_BATCH)
        rows.transition = plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        rows.columns, rows.batch = {COUNT: count}, batch
        rows = fold.admitted(rows, chunk)
        parts.append((rows.transition, rows.columns[COUNT], rows.batch))
        total += float(parts[-1][1].astype(np.float64).sum())
        watch.add(chunk.rows, max(0, chunk.bytes_read - read))
        read = chunk.bytes_read
    if total > LARGEST_TOTAL:
        raise InputError(f"the counts add up to {total:.3g}, which is more than 2^62", Location(table.path))
    empty = (np.empty(0, dtype=np.int64),) * 3
    transition, count, batch = (np.concatenate(one) for one in zip(empty, *parts, strict=True))
    batched = BATCH in columns.roles
    counts = Counts.from_table(
        transition,
        count,
        plan.structure.transition_start,
        SamplingDesign(SamplingKind.ADAPTIVE),
        "",
        batch if batched else None,
        batches=_read_stated_batches(table, batch) if batched else None,
    )
    missing = describe_missing(fold.dropped, no_notes(), 0)
    about = (counts.transition, counts.batches, fold.rows, fold.dropped, None, missing)
    return LogCounts(*about, seen=[of_counts(plan.structure, counts.transition)])


def _order(plan: ReadPlan, options: LogReadOptions) -> Assumed:
    if BATCH not in plan.columns[0].roles:
        return Assumed.unverified(ORDER, "a table of counts without a column batch has no order")
    if options.order is not None:
        return Assumed.stated(ORDER, f"--order {options.order}: batches are numbered as they came")
    return Assumed.stated(ORDER, "the column batch numbers batches in the order in which they came")


def _ends(plan: ReadPlan, counted: LogCounts, options: LogReadOptions) -> Assumed:
    if plan.absorbing[plan.structure.successor[counted.count > 0]].all():
        return Assumed.derived(ENDS, "what is counted leads to states that nothing leaves")
    if options.ends == COMPLETE:
        return Assumed.stated(ENDS, "the counts hold every outcome (--ends complete)")
    why = "a table of counts does not show how episodes ended; add --ends complete if no outcome is missing"
    return Assumed.unverified(ENDS, why)


def _read_stated_batches(table: DataTable, batch: OffsetArray) -> int | None:
    """How many batches the file says it has; the numbers in it must lie below."""
    stated = (table.metadata or {}).get("batches")
    if stated is None:
        return None
    if not isinstance(stated, int) or not int(batch.max(initial=-1)) < stated <= MOST_BATCHES:
        raise InputError(
            f"the file's metadata refer to {stated} batches, its rows of number {batch.max(initial=-1)}",
            Location(table.path),
        )
    return stated
