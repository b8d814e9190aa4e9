"""The order of a log in time: the instants at which batches end, and rows that have to be sorted.

*Batches follow the clock*, and no row has to be moved for that: counting gives each row to the batch of its
own time. A batch ends with the instant in which its last row came, by rank: row number 1, 2, 3, … 8, 10, 12,
… in time order. Rows of one instant are never parted. Under a plan of episodes a batch ends when the episode
after its last one begins. Both are stopping times: they depend on what happened up to then, never on what
came later. The instants are found exactly, in a few passes over the times alone: a histogram says where the
ranks lie, and only the times there are sorted.

*Rows out of order* are read in full, sorted within their episodes by step, else by time, and then followed
(`fold_sorted`): about 80 bytes of memory each. Names of episodes are the log's where no episode has a step
twice, and those of each file otherwise. Where rows are simply shuffled nobody knows their order in time, and
the counts come without batches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TypedDict, TypeVar

import numpy as np

from tightrope.data.columns import EPISODE, STEP, TIME
from tightrope.data.counts import batch_ends, batch_of
from tightrope.data.fold import Fold, Observer
from tightrope.data.free_columns import ColumnCodes
from tightrope.data.read_plan import Part, ReadPlan, in_threads
from tightrope.data.row_sequence import LAST_TIME, OUT_OF_ORDER, Tick, find_tick
from tightrope.data.row_validation import count_problems
from tightrope.data.rows import EventBatch, TimeKind, identities
from tightrope.errors import InputError
from tightrope.io.table.columns import ProblemCodes, RowProblem
from tightrope.io.table.data_table import Chunk
from tightrope.numerics.arrays import OffsetArray

BINS = 1 << 16
MOST_SORTED = 1 << 22
"""Times that are sorted at once, where the ranks that are sought lie."""

MOST_KEPT = 1 << 21
"""Times that are kept in memory; those of longer logs are read again for every pass."""

PIECE = 1 << 17
"""Rows whose times are in memory at once, in each thread."""

LOOKED_AT = 1 << 17
"""Rows of a log by which the usual step of its clock is found."""

Found = TypeVar("Found")


def end_instants(plan: ReadPlan, begins: OffsetArray | None = None) -> OffsetArray:
    """The last instants of all batches but the last: of rows, or of episodes that begin at these times."""
    if begins is not None:
        result: OffsetArray = np.sort(begins)[batch_ends(len(begins))[:-1]] - 1
        return result
    times = _Times(plan)
    return times.of_ranks(batch_ends(sum(number for number, _, _ in times.extents)))[:-1]


def begin_times(plan: ReadPlan) -> OffsetArray:
    """When each episode begins: the earliest time of each name."""
    first: dict[int, int] = {}
    for number, table in enumerate(plan.tables):
        decoder = plan.decoder(number)
        for chunk in table.chunks(plan.columns[number].names):
            rows = decoder.decode(chunk)
            placed = np.flatnonzero(rows.placed)
            order = np.lexsort((rows.time[placed], rows.episode[placed]))
            names, at = np.unique(rows.episode[placed][order], return_index=True)
            for name, time in zip(names.tolist(), rows.time[placed][order][at].tolist(), strict=True):
                first[name] = min(first.get(name, time), time)
    return np.array(list(first.values()), dtype=np.int64)


def moment_of(value: str | float, plan: ReadPlan) -> int:
    """A time that the user gives, as those of the log are read."""
    import pyarrow as pa

    chunk = next(iter(plan.tables[0].chunks((plan.roles[TIME],))))
    decoder, name = plan.decoder(0), plan.roles[TIME]
    kind = chunk.columns[name].type
    wanted = pa.array([value if isinstance(value, str) else repr(value)])
    flags: ProblemCodes = np.zeros(1, dtype=np.int8)
    try:
        if pa.types.is_temporal(kind):
            wanted = wanted.cast(kind)
        moment = int(decoder.times(Chunk(1, 1, {name: wanted}), flags)[0])
    except (InputError, pa.ArrowInvalid):
        flags[0] = RowProblem.NOT_A_NUMBER
    if flags[0]:
        raise InputError(f"`watched_until` is {value!r}, which is neither a time of the log nor its column")
    return moment


class Clock(TypedDict):
    """What is known of a log's clock, by the names that a plan has for it."""

    tick: Tick
    has_number_times: bool
    time_kind: TimeKind | None


def clock_of(plan: ReadPlan) -> Clock:
    """The usual step of the clock, by the first rows of the log; what times are."""
    columns = plan.columns[0]
    if TIME not in columns.roles or columns.is_counted:
        return Clock(tick=Tick(), has_number_times=False, time_kind=None)
    decoder, looked = plan.decoder(0), 0
    times, names, kinds = [], [], set[TimeKind]()
    for chunk in plan.tables[0].chunks(
        [columns.roles[one] for one in (TIME, EPISODE) if one in columns.roles]
    ):
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        time = decoder.times(chunk, flags)
        episode = np.zeros(chunk.rows, dtype=np.int64)
        if EPISODE in columns.roles:
            episode = identities(chunk.columns[columns.roles[EPISODE]], flags)
        times.append(time[flags == RowProblem.NONE])
        names.append(episode[flags == RowProblem.NONE])
        if (kind := decoder.time_kind_of(chunk)) is not None:
            kinds.add(kind)
        looked += chunk.rows
        if looked >= LOOKED_AT:
            break
    kind = next((kind for kind in (TimeKind.DATE, TimeKind.FLOAT) if kind in kinds), TimeKind.INTEGER)
    tick = Tick()
    if len(kinds) == 1:
        is_float = kind is TimeKind.FLOAT
        tick = find_tick(np.concatenate(names)[:LOOKED_AT], np.concatenate(times)[:LOOKED_AT], is_float)
    return Clock(tick=tick, has_number_times=kind is not TimeKind.DATE, time_kind=kind if kinds else None)


def are_in_time(plan: ReadPlan) -> bool:
    """Whether every row is later than, or at the same instant as, the row before, over all tables."""
    last = np.empty(0, dtype=np.int64)
    for times in (times for table in range(len(plan.tables)) for times in _times_of(plan, table)):
        rising = np.concatenate([last, times])
        if np.any(np.diff(rising) < 0):
            return False
        last = rising[-1:]
    return True


def _times_of(plan: ReadPlan, table: int, groups: range | None = None) -> Iterator[OffsetArray]:
    """The times of a table that can be read, chunk by chunk."""
    decoder, name = plan.decoder(table), plan.columns[table].roles[TIME]
    for chunk in plan.tables[table].chunks((name,), None, groups):
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        times = decoder.times(chunk, flags)
        yield times if not flags.any() else times[flags == RowProblem.NONE]


class _Times:
    """The times of a log, read again and again, or kept."""

    def __init__(self, plan: ReadPlan):
        self.plan, self.parts = plan, plan.parts()
        self.threads = min(plan.options.threads or os.cpu_count() or 1, len(self.parts))
        plan.prepare()
        keeps = sum(table.most_rows for table in plan.tables) <= MOST_KEPT
        self._kept: dict[int, list[OffsetArray]] | None = {} if keeps else None
        self.extents = [extent for part in self._each(_extent) for extent in part if extent[0]]

    def of_ranks(self, ranks: OffsetArray) -> OffsetArray:
        """The times with these ranks, from 1; ranks rise."""
        low = min(first for _, first, _ in self.extents)
        high = max(last for _, _, last in self.extents)
        result = np.empty(len(ranks), dtype=np.int64)
        open_ = [(low, high, 0, np.arange(len(ranks)))]
        while open_:
            open_ = self._refine(open_, ranks, result)
        return result

    def _refine(
        self, spans: list[tuple[int, int, int, OffsetArray]], ranks: OffsetArray, result: OffsetArray
    ) -> list[tuple[int, int, int, OffsetArray]]:
        """Look closer at spans of time, each with the rows before it and the ranks in it."""
        shifts = [max(0, int(high - low).bit_length() - 16) for low, high, _, _ in spans]
        counted = [np.zeros(BINS + 1, dtype=np.int64) for _ in spans]
        lock = Lock()

        def histogram(times: OffsetArray) -> None:
            for (low, high, _, _), shift, total in zip(spans, shifts, counted, strict=True):
                inside = times if len(spans) == 1 else times[(times >= low) & (times <= high)]
                bins = np.bincount((inside - low) >> shift)
                with lock:
                    total[: len(bins)] += bins

        for _ in self._each(histogram):
            pass
        closer: list[tuple[int, int, int, OffsetArray]] = []
        waiting = 0
        for (low, _, before, sought), shift, bins in zip(spans, shifts, counted, strict=True):
            upto = before + np.cumsum(bins)
            place = np.searchsorted(upto, ranks[sought])
            for one in np.unique(place).tolist():
                here = sought[place == one]
                first = low + (int(one) << shift)
                if shift == 0:
                    result[here] = first
                else:
                    closer.append((first, first + (1 << shift) - 1, int(upto[one] - bins[one]), here))
                    waiting += int(bins[one])
        if not closer or waiting > MOST_SORTED:
            return closer
        lows = np.array([low for low, *_ in closer])
        highs = np.array([high for _, high, *_ in closer])

        def pick(times: OffsetArray) -> OffsetArray:
            span = np.searchsorted(lows, times, side="right") - 1
            return times[(span >= 0) & (times <= highs[np.maximum(span, 0)])]

        near = np.sort(np.concatenate([times for part in self._each(pick) for times in part]))
        for low, high, before, sought in closer:
            span = near[np.searchsorted(near, low) : np.searchsorted(near, high, side="right")]
            result[sought] = span[ranks[sought] - before - 1]
        return []

    def _each(self, work: Callable[[OffsetArray], Found]) -> Iterator[list[Found]]:
        """What comes out for the times of every part, piece by piece, so that few are in memory at once."""
        parts = range(len(self.parts))
        return in_threads(self.threads, lambda part: [work(times) for times in self._pieces(part)], parts)

    def _pieces(self, number: int) -> Iterable[OffsetArray]:
        """The times of a part, some chunks at a time."""
        if self._kept is None:
            return self._read(self.parts[number])
        if number not in self._kept:
            self._kept[number] = list(self._read(self.parts[number]))
        return self._kept[number]

    def _read(self, part: Part) -> Iterator[OffsetArray]:
        waiting = [np.empty(0, dtype=np.int64)]
        for times in _times_of(self.plan, part.table, part.groups):
            waiting.append(times)
            if sum(map(len, waiting)) >= PIECE:
                yield np.concatenate(waiting)
                waiting = waiting[:1]
        yield np.concatenate(waiting)


def _extent(times: OffsetArray) -> tuple[int, int, int]:
    return (len(times), int(times.min()), int(times.max())) if len(times) else (0, 0, 0)


def fold_sorted(
    plan: ReadPlan,
    observers: Sequence[Observer],
    excludes: bool = False,
    beside: Mapping[str, ColumnCodes] | None = None,
) -> tuple[Fold, str]:
    """A fold over all rows of a log, sorted within their episodes and followed as one chunk; and how."""
    fold = Fold(plan, observers, by_name=True, is_sorted=True, excludes=excludes, beside=beside)
    rows, has_time, has_steps = _all_rows(plan, fold), TIME in plan.roles, STEP in plan.roles
    episode = _episodes(rows, EPISODE in plan.roles, has_steps)
    place = rows.step if has_steps else rows.time if has_time else np.arange(len(rows))
    first, which = np.unique(episode, return_index=True, return_inverse=True)[1:]
    number = np.argsort(np.argsort(first))[which]
    order = np.lexsort((np.arange(len(rows)), place, number))
    stands = np.argsort(episode, kind="stable")  # rows of an episode as they stand in the log
    position: OffsetArray | None = order
    if has_time:
        how = "sorted by time"
    elif np.all((np.diff(place[stands]) >= 0) | (np.diff(episode[stands]) != 0)):
        how = "rows of several episodes at once, each in order"
    elif np.all(np.diff(number) >= 0):
        position, how = np.arange(len(order)), "sorted by step within each episode"
    else:
        how = "shuffled rows, sorted by step; their order in time is unknown, so there are no batches"
        position = None
    fold.names = np.zeros(len(first), dtype=np.int64)
    fold.names[number] = rows.episode
    rows = replace(rows[order], episode=number[order])
    if has_time:
        ends = batch_ends(len(rows))
        rows.batch, fold.batches = np.searchsorted(np.sort(rows.time)[ends - 1][:-1], rows.time), len(ends)
    elif position is not None:
        rows.batch, fold.batches = batch_of(position), len(batch_ends(fold.rows))
    fold.add(rows)
    fold.finish()
    if len(rows):
        fold.notes[LAST_TIME] = rows.time.max()
    return fold, how


def times_fall(plan: ReadPlan) -> bool:
    """Whether a log that only times put in order is out of order: what looks wrong may be only that."""
    if TIME not in plan.roles or STEP in plan.roles:
        return False
    options = replace(plan.options, skip_invalid=True, drop_duplicates=False)
    fold = Fold(replace(plan, options=options))
    for number in range(len(plan.tables)):
        for chunk in fold.chunks(number):
            fold.update(chunk, number)
            if fold.notes[OUT_OF_ORDER]:
                return True
    return False


def _all_rows(plan: ReadPlan, fold: Fold) -> EventBatch:
    """Every row of the log that has a place; bad values are errors unless they are skipped."""
    parts: list[EventBatch] = []
    for number in range(len(plan.tables)):
        for chunk in fold.chunks(number):
            rows = fold.decoder(number).decode(chunk)
            if not plan.skip:
                fold.admitted(replace(rows, problems=fold.faults(rows.problems)), chunk)
            fold.rows += chunk.rows
            rows.table = np.full(len(rows), number, dtype=np.int64)
            fold.dropped += count_problems(rows.problems[~rows.placed])
            parts.append(rows[rows.placed])
    return EventBatch.joined(parts)


def _episodes(rows: EventBatch, named: bool, by_step: bool) -> OffsetArray:
    """Which episode each row belongs to: by name, or by file and name where files share names and steps."""
    if not named:
        return np.zeros(len(rows), dtype=np.int64)
    everywhere = np.unique(rows.episode, return_inverse=True)[1]
    order = np.lexsort((rows.step, everywhere))
    same = (np.diff(everywhere[order]) == 0) & (np.diff(rows.step[order]) == 0)
    if by_step and not np.any(same & (np.diff(rows.table[order]) != 0)):
        return everywhere.astype(np.int64)
    pairs = np.stack([rows.table, rows.episode])
    return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
