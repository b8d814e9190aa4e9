"""Logs whose rows do not stand one episode after the other, or not in the order of their times.

Each episode is followed by its name, whatever stands between its rows (`Strands`). The rows of a chunk are
grouped by episode, each group behind the last row that its episode had before, and then followed as if
episodes stood one after the other (`tightrope.data.row_sequence`). What is kept from chunk to chunk is the
last row of every episode, so memory grows with the number of episodes and not with that of rows.

*Batches follow the clock*, and no row has to be moved for that: it is enough to know the instants at which
they end. Counting goes through the files as they are, and gives each row to the batch of its own time (else
of its number in the log, or of how many episodes had begun by then). A batch ends with the instant in which
its last row came, by rank: row number 1, 2, 3, … 8, 10, 12, … in time order. Rows of one instant are never
parted: nobody knows their order, and within a batch it does not matter. Under a plan of episodes a batch ends
when the episode after its last one begins. Both are stopping times: they depend on what happened up to then,
never on what came later. The instants are found exactly, in a few passes over the times alone: a histogram
says where the ranks lie, and only the times there are sorted.

*Rows out of order* are read in full, sorted within their episodes, and then followed (`count_sorted`). Rows
belong to the episode they name and follow each other by step, else by time, else as they stand in the log.
Names are the log's where no episode has a step twice, and those of each file otherwise. Memory grows with the
number of rows (about 80 bytes each). Sorting by time, or by steps within episodes that stand together, gives
the order in time, and so does a log of several episodes at once in which every one is in order. Where rows
are simply shuffled nobody knows it, and the counts come without batches.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from threading import Lock
from typing import TypedDict, TypeVar

import numpy as np

from tightrope.data.columns import COST, EPISODE, STEP, TIME, WATCHED_UNTIL
from tightrope.data.costs import CostSums, CostTally
from tightrope.data.counts import BatchCounter, Batches, batch_ends
from tightrope.data.model_index import UNKNOWN
from tightrope.data.partial_counts import locate_known
from tightrope.data.read_plan import Part, ReadPlan, in_threads
from tightrope.data.row_sequence import (
    HAS_TIME,
    IN_STRANDS,
    IS_SORTED,
    LAST_TIME,
    OUT_OF_ORDER,
    START_LOW,
    FollowState,
    Tick,
    find_tick,
    follow,
    note_open_end,
)
from tightrope.data.row_validation import count_problems
from tightrope.data.rows import LogRows, TimeKind, identities
from tightrope.errors import InputError
from tightrope.io.table.columns import ProblemCodes, RowProblem
from tightrope.io.table.data_table import Chunk, DataTable
from tightrope.late import dataclass
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.provenance import Provenance, RowTally

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


def batch_instants(plan: ReadPlan, threads: int | None) -> OffsetArray:
    """The last instants of all batches of rows but the last, in time order."""
    times = _Times(plan, threads)
    rows = sum(number for number, _, _ in times.extents)
    return times.of_ranks(batch_ends(rows))[:-1]


def episode_instants(begins: OffsetArray) -> OffsetArray:
    """The same for batches of episodes that begin at these times: they end before the next one begins."""
    ends = batch_ends(len(begins))
    result: OffsetArray = np.sort(begins)[ends[:-1]] - 1
    return result


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

    chunk = next(iter(plan.tables[0].chunks((plan.columns[0].roles[TIME],))))
    decoder, name = plan.decoder(0), plan.columns[0].roles[TIME]
    kind = chunk.columns[name].type
    wanted = pa.array([value if isinstance(value, str) else repr(value)])
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)):
        try:
            wanted = wanted.cast(kind)
        except pa.ArrowInvalid:
            raise InputError(f"`watched_until` is {value!r}, and the log's times are {kind}") from None
    flags: ProblemCodes = np.zeros(1, dtype=np.int8)
    moment = decoder.times(Chunk(1, 1, {name: wanted}), flags)
    if flags[0]:
        raise InputError(f"`watched_until` is {value!r}, which is no time")
    return int(moment[0])


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
    wanted = [columns.roles[role] for role in (TIME, EPISODE) if role in columns.roles]
    for chunk in plan.tables[0].chunks(tuple(wanted)):
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
    last: int | None = None
    for table in range(len(plan.tables)):
        decoder, name = plan.decoder(table), plan.columns[table].roles[TIME]
        for chunk in plan.tables[table].chunks((name,)):
            flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
            times = decoder.times(chunk, flags)[flags == RowProblem.NONE]
            if not len(times):
                continue
            if (last is not None and times[0] < last) or bool(np.any(np.diff(times) < 0)):
                return False
            last = int(times[-1])
    return True


class _Times:
    """The times of a log, read again and again, or kept."""

    def __init__(self, plan: ReadPlan, threads: int | None):
        self.plan, self.parts = plan, plan.parts()
        self.threads = min(threads or os.cpu_count() or 1, len(self.parts))
        plan.prepare()
        self._kept: dict[int, list[OffsetArray]] = {}
        self._keeps = True
        self.extents = [extent for part in self._each(_extent) for extent in part if extent[0]]
        self._keeps = False

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
        return in_threads(
            self.threads,
            lambda number: [work(times) for times in self._pieces(number)],
            range(len(self.parts)),
        )

    def _pieces(self, number: int) -> Iterator[OffsetArray]:
        """The times of a part, some chunks at a time."""
        if number in self._kept:
            yield from self._kept[number]
            return
        pieces: list[OffsetArray] = []
        for times in self._read(self.parts[number]):
            yield times
            if self._keeps and sum(map(len, pieces)) <= MOST_KEPT:
                pieces.append(times)
        rows = sum(map(len, pieces))
        if (
            self._keeps
            and rows + sum(len(piece) for part in self._kept.values() for piece in part) <= MOST_KEPT
        ):
            self._kept[number] = pieces

    def _read(self, part: Part) -> Iterator[OffsetArray]:
        table, columns = self.plan.tables[part.table], self.plan.columns[part.table]
        decoder, waiting, rows = self.plan.decoder(part.table), list[OffsetArray](), 0
        for chunk in table.chunks((columns.roles[TIME],), None, part.groups):
            flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
            times = decoder.times(chunk, flags)
            waiting.append(times if not flags.any() else times[flags == RowProblem.NONE])
            rows += chunk.rows
            if rows >= PIECE:
                yield np.concatenate(waiting)
                waiting, rows = [], 0
        yield np.concatenate([np.empty(0, dtype=np.int64), *waiting])


def _extent(times: OffsetArray) -> tuple[int, int, int]:
    if not len(times):
        return 0, 0, 0
    return len(times), int(times.min()), int(times.max())


ALL_ROWS = 1 << 50
"""More rows than a log has."""

UNWATCHED = -(2**63)
"""A row that does not say until when its episode was watched."""


@dataclass
class Placed:
    """Rows with the number of their table, their batch, their transition where they say where they lead,
    whether each begins an episode, and how many rows of it came before.
    """

    rows: LogRows
    table: OffsetArray
    batch: OffsetArray
    transition: OffsetArray
    begins: BoolArray
    since: OffsetArray

    def __getitem__(self, part: OffsetArray | BoolArray) -> Placed:
        more = (getattr(self, name)[part] for name in _BESIDE)
        return Placed(self.rows[part], *more)

    @staticmethod
    def joined(parts: list[Placed]) -> Placed:
        rows = LogRows.joined([part.rows for part in parts])
        return Placed(rows, *(np.concatenate([getattr(part, name) for part in parts]) for name in _BESIDE))

    @property
    def places(self) -> OffsetArray:
        """Numbers that rise with the place of rows in the log."""
        return self.table * (1 << 40) + self.rows.number


_BESIDE = ("table", "batch", "transition", "begins", "since")


@dataclass
class Watched:
    """Until when episodes were watched, by a column of the log.

    `longest` is the longest time from the last row of an open episode to the end of watching it, in 1024ths
    of the clock's step; `unknown` are open episodes without such an end. `has_rows_at_ends`: some row stands
    at the very end of watching, so that each open episode needs one there.
    """

    until: dict[int, int] = field(default_factory=dict)
    longest: int = 0
    unknown: int = 0
    has_rows_at_ends: bool = False

    def add(self, rows: LogRows, until: OffsetArray) -> None:
        """The ends of a chunk, the latest of each episode; UNWATCHED where a row has none."""
        known = rows.placed & (until != UNWATCHED)
        self.has_rows_at_ends |= bool(np.any(until[known] == rows.time[known]))
        names, place = np.unique(rows.episode[known], return_inverse=True)
        latest = np.full(len(names), UNWATCHED, dtype=np.int64)
        np.maximum.at(latest, place, until[known])
        for name, end in zip(names.tolist(), latest.tolist(), strict=True):
            self.until[name] = max(end, self.until.get(name, end))

    def end(self, rows: LogRows, row: int, tick: Tick, table: DataTable) -> None:
        """An open episode whose last row this is."""
        end = self.until.pop(int(rows.episode[row]), None)
        if end is None:
            self.unknown += 1
            return
        time, number = int(rows.time[row]), int(rows.number[row])
        if end < time:
            message = f"row {number}: the episode goes on after it was watched"
            raise InputError(message, table.location(number))
        last, until = (int(part) for part in tick.parts(np.array([time, end])))
        self.longest = max(self.longest, until - last)


class Strands:
    """Follows rows of all tables of a log, chunk by chunk."""

    def __init__(self, plan: ReadPlan, is_sorted: bool = False, trail: bool = False):
        self.plan, self.is_sorted = plan, is_sorted
        self.numbers_episodes = trail
        self.trail: list[tuple[OffsetArray, OffsetArray]] = []
        """Where it is kept: the places of rows that continue others, and of those; `batch` of a row is then
        the number of its episode."""
        roles = plan.columns[0].roles
        self.named, self.has_time, self.has_steps = (role in roles for role in (EPISODE, TIME, STEP))
        self.from_next = plan.columns[0].from_next_row
        self.state = FollowState.before_all()
        self.notes = self.state.notes
        self.tails: Placed | None = None
        self.copies = self.begun = 0
        self.first_steps: OffsetArray = np.empty(0, dtype=np.int64)
        """With which steps episodes begin, in the chunk that was followed last."""
        self.shows_one_clock = False
        """Rows of several episodes stand between each other, and none is earlier than the row before."""
        self.last_is_open = False
        self.last_row: int | None = None
        self.watched = Watched() if WATCHED_UNTIL in roles else None

    def follow(
        self, rows: LogRows, table: int | OffsetArray, batch: OffsetArray, until: OffsetArray | None = None
    ) -> Placed:
        """Follow a chunk; the rows that are settled by it, of this chunk and of those before.

        Rows that are sorted are all one chunk, of several tables. `until` is when watching the episode of
        each row ended, where a column says so.
        """
        shape = 0 if isinstance(table, np.ndarray) else table
        size = len(rows)
        transition = np.full(size, UNKNOWN, dtype=np.int64)
        if not self.from_next:
            transition = self.plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        numbers = (np.full(size, table, dtype=np.int64), batch, transition)
        new = Placed(rows, *numbers, np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.int64))
        unplaced = new[~rows.placed]
        new = new[rows.placed]
        waiting, over = self._waiting(new.rows, shape)
        known = np.r_[np.ones(len(waiting), dtype=np.bool_), np.zeros(len(new.rows), dtype=np.bool_)]
        both = new if waiting.size == 0 else Placed.joined([self._tails[waiting], new])
        if self.named and self.has_time and not self.shows_one_clock:
            names, times = new.rows.episode, new.rows.time
            runs = 1 + int(np.count_nonzero(np.diff(names)))
            self.shows_one_clock = runs > len(np.unique(names)) and bool(np.all(np.diff(times) >= 0))
        if self.named:
            order = np.argsort(both.rows.episode, kind="stable")
            both, known = both[order], known[order]
        both, known = self._without_copies(both, known)
        bits = self.plan.bits(shape) | IN_STRANDS
        if self.is_sorted:
            bits = (bits | IS_SORTED) & ~(HAS_TIME if self.has_steps else 0)
        closed = self.plan.leads_nowhere(both.rows)
        marks = follow(bits, 0, both.rows, closed, self.state, self.plan.tick, known)
        begins = marks.is_new & ~known
        both.begins |= begins
        head = np.maximum.accumulate(np.where(known | begins, np.arange(len(known)), 0))
        both.since[:] = both.since[head] + np.arange(len(known)) - head
        if self.numbers_episodes:
            self._number_episodes(both, head, begins, marks.continues)
        self.begun += int(begins.sum())
        self.first_steps = both.rows.step[begins]
        is_last = self._lasts(both.rows)
        settled = [both[~is_last] if self.from_next else both[~known]]
        if len(over):
            ended = self._tails[over]
            self._end(ended)
            settled += [ended] if self.from_next else []
        self._keep(both, np.concatenate([waiting, over]), is_last)
        if self.watched is not None and until is not None:
            self.watched.add(rows, until)
        return Placed.joined([*settled, unplaced]) if len(settled) > 1 or len(unplaced.rows) else settled[0]

    def _number_episodes(
        self, both: Placed, head: OffsetArray, begins: BoolArray, continues: BoolArray
    ) -> None:
        """Give rows the numbers of their episodes, and remember which row each continues."""
        both.batch[begins] = self.begun + np.arange(int(begins.sum()))
        both.batch[:] = both.batch[head]
        places, rows = both.places, np.flatnonzero(continues)
        self.trail.append((places[rows], places[rows - 1]))

    def finish(self) -> Placed | None:
        """The last rows of all episodes, whose next states nobody knows; notes on how these end.

        `last_is_open`: the episode that the log ends with has an open end; that one is not in the notes.
        """
        tails = self.tails
        if tails is None or not len(tails.rows):
            return None
        last = int(np.argmax(tails.rows.time if self.has_time else tails.places))
        at_once = int((tails.rows.time == tails.rows.time[last]).sum()) if self.has_time else 1
        self.last_is_open = at_once == 1 and bool(self.are_open(tails)[last])
        self.last_row = last if self.last_is_open else None
        self._end(tails, self.last_row)
        return tails

    def _end(self, tails: Placed, but: int | None = None) -> None:
        for row in np.flatnonzero(self.are_open(tails)).tolist():
            if self.watched is not None:
                table = self.plan.tables[int(tails.table[row])]
                self.watched.end(tails.rows, row, self.plan.tick, table)
            if row != but:
                note_open_end(int(tails.rows.time[row]), self.notes)

    def are_open(self, tails: Placed) -> BoolArray:
        """Which rows do not say that their episode is over, and lead to states that can be left."""
        result: BoolArray = ~self.plan.leads_nowhere(tails.rows) & ~tails.rows.ended
        return result

    @property
    def _tails(self) -> Placed:
        assert self.tails is not None
        return self.tails

    def _waiting(self, rows: LogRows, table: int) -> tuple[OffsetArray, OffsetArray]:
        """Which tails go on in a chunk, and which do not: their names are those of other episodes now.

        In another table a name may be that of the same episode, where it goes on with the next step or later.
        """
        nothing = np.empty(0, dtype=np.int64)
        if self.tails is None or not len(self.tails.rows) or not len(rows):
            return nothing, nothing
        if not self.named:
            every = np.arange(len(self.tails.rows))
            return (every, nothing) if self.tails.table[-1] == table else (nothing, every)
        names, first = np.unique(rows.episode, return_index=True)
        place = np.searchsorted(self.tails.rows.episode, names)
        there = np.flatnonzero(place < len(self.tails.rows))
        there = there[self.tails.rows.episode[place[there]] == names[there]]
        place, first = place[there], first[there]
        tails = self.tails[place]
        goes_on = self.are_open(tails)
        if self.has_steps:
            goes_on &= rows.step[first] == tails.rows.step + 1
        else:
            goes_on &= self.has_time & (rows.time[first] > tails.rows.time)
        goes_on |= tails.table == table
        return place[goes_on], place[~goes_on]

    def _lasts(self, rows: LogRows) -> BoolArray:
        """The last row of each episode in rows that are grouped."""
        result: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        if len(rows):
            result[-1] = True
            if self.named:
                result[:-1] = rows.episode[1:] != rows.episode[:-1]
        return result

    def _keep(self, both: Placed, waiting: OffsetArray, is_last: BoolArray) -> None:
        """The last rows take the place of those that they continue."""
        lasts = both[is_last]
        if self.tails is None:
            self.tails = lasts
            return
        rest = np.ones(len(self.tails.rows), dtype=np.bool_)
        rest[waiting] = False
        tails = Placed.joined([self.tails[rest], lasts])
        self.tails = tails[np.argsort(tails.rows.episode, kind="stable")] if self.named else tails

    def _without_copies(self, both: Placed, known: BoolArray) -> tuple[Placed, BoolArray]:
        """Rows that say the same as the row of their episode before, at the same place, are left out."""
        if not self.plan.drop_copies or len(both.rows) < 2:
            return both, known
        copy = both.rows.repeats(self.from_next) & ~known
        self.copies += int(copy.sum())
        return both[~copy], known[~copy]


@dataclass(frozen=True)
class StrandCounts:
    """What a log holds whose episodes were followed by name; `batches` is None where the order of its rows in
    time is unknown. `late_starts` are episodes that begin with a later step than others.
    """

    batches: Batches | None
    count: OffsetArray
    rows: int
    dropped: Counter[str]
    strands: Strands
    lost: int
    costs: CostSums | None
    open_end: bool = False
    late_starts: int = 0
    how: str = "several episodes at once, each followed by its name"
    seen: Sequence[Provenance] = ()


def count_strands(plan: ReadPlan) -> StrandCounts:
    """Count a whole log, each episode followed by its name."""
    counter = _StrandCounter(plan, Strands(plan))
    for table, chunk, rows in _decoded(plan):
        counter.add(table, chunk, rows)
    return counter.finish()


def _decoded(plan: ReadPlan) -> Iterator[tuple[int, Chunk, LogRows]]:
    """All chunks in the order of the log; the next one is decoded while one is counted."""
    plan.prepare()

    def chunks() -> Iterator[tuple[int, Chunk, LogRows]]:
        for number, table in enumerate(plan.tables):
            decoder = plan.decoder(number)
            for chunk in table.chunks(plan.columns[number].names, None):
                yield number, chunk, decoder.decode(chunk)

    source = chunks()
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(next, source, None)
        while (decoded := ahead.result()) is not None:
            ahead = pool.submit(next, source, None)
            yield decoded


class _StrandCounter:
    """Gives settled rows to their batches."""

    def __init__(self, plan: ReadPlan, strands: Strands):
        self.plan, self.strands = plan, strands
        self.rows = self.lost = 0
        self.dropped: Counter[str] = Counter()
        self.ends = batch_ends(ALL_ROWS)
        size = (len(self.ends) if plan.boundaries is None else len(plan.boundaries)) + 1
        self.counter = BatchCounter(plan.structure.transitions, size)
        self.costs = CostTally() if COST in plan.columns[0].roles else None
        self._seen: set[int] = set()
        self.names: OffsetArray | None = None
        """The names of episodes by number, where these were numbered."""
        self.rows_seen = [RowTally() for _ in plan.tables]

    def add(self, table: int, chunk: Chunk, rows: LogRows) -> None:
        self.rows += chunk.rows
        if not self.plan.skip and rows.problems.any():
            self.plan.validation(table).admit(rows, chunk)
        until: OffsetArray | None = None
        if self.strands.watched is not None:
            flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
            until = self.plan.decoder(table).ends_of_watching(chunk, flags)
            until = np.where(flags == RowProblem.NONE, until, UNWATCHED)
        first = self.rows - chunk.rows
        batch = self.batch_of(rows, np.arange(first, first + len(rows)))
        self.count(self.strands.follow(rows, table, batch, until))

    def batch_of(self, rows: LogRows, position: OffsetArray) -> OffsetArray:
        """The batch of each row: by its time, by the episodes that had begun, or by its place in the log."""
        if self.plan.boundaries is not None:
            return np.searchsorted(self.plan.boundaries, rows.time)
        if self.plan.by_episodes and not self.strands.is_sorted:
            position = self._begun(rows) - 1
        return np.searchsorted(self.ends, position, side="right")

    def _begun(self, rows: LogRows) -> OffsetArray:
        """How many episodes had begun at each row, this one included; by names alone."""
        names, first = np.unique(rows.episode, return_index=True)
        fresh = [
            at for name, at in zip(names.tolist(), first.tolist(), strict=True) if name not in self._seen
        ]
        before = len(self._seen)
        self._seen.update(names.tolist())
        steps = np.zeros(len(rows), dtype=np.int64)
        steps[fresh] = 1
        return before + np.cumsum(steps)

    def count(self, placed: Placed) -> None:
        rows = placed.rows
        if self.strands.from_next:
            transition, lost = locate_known(self.plan, rows)
            self.lost += lost
        else:
            transition = placed.transition
        bad = np.flatnonzero(rows.problems)
        if len(bad) and not self.plan.skip:
            row = int(bad[0] if self.strands.is_sorted else bad[np.argmin(placed.places[bad])])
            raise self.plan.validation(int(placed.table[row])).error_at(rows, row)
        self.dropped += count_problems(rows.problems[bad])
        valid = (rows.problems == RowProblem.NONE) & (transition >= 0)
        self.counter.add(transition[valid], placed.batch[valid])
        if self.costs is not None:
            self.costs.add(transition[valid], rows.cost[valid])
        for number in np.unique(placed.table[valid]).tolist():
            here = valid & (placed.table == number)
            about = rows[here], transition[here], number, placed.since[here], self.names
            self.plan.see(self.rows_seen[number], *about)

    def finish(self) -> StrandCounts:
        strands = self.strands
        tails, open_end = strands.finish(), False
        if strands.from_next and tails is not None:
            if (last := strands.last_row) is not None and not strands.is_sorted:
                rest = np.ones(len(tails.rows), dtype=np.bool_)
                rest[last] = False
                _, waits = locate_known(self.plan, tails[~rest].rows)
                open_end, tails = waits > 0, tails[rest]
            self.count(tails)
        number = len(batch_ends(self.rows))
        if self.plan.boundaries is not None:
            number = len(self.plan.boundaries) + 1
        elif self.plan.by_episodes and not strands.is_sorted:
            number = len(batch_ends(strands.begun))
        batches = Batches.from_parts(self.counter.parts()[:number])
        costs = None if self.costs is None else self.costs.sums()
        count = batches.total(self.plan.structure.transitions)
        about = (batches, count, self.rows, self.dropped, strands, self.lost, costs, open_end)
        return StrandCounts(*about, seen=[tally.finish() for tally in self.rows_seen])


def count_sorted(plan: ReadPlan) -> StrandCounts:
    """Count a whole log after sorting its rows, as one chunk."""
    rows, table = _all_rows(plan)
    placed = np.flatnonzero(rows.placed)
    rows, table, unplaced = rows[placed], table[placed], rows[np.flatnonzero(~rows.placed)]
    roles = plan.columns[0].roles
    by_step, has_time = STEP in roles, TIME in roles
    episode = _episodes(rows, table, EPISODE in roles, by_step)
    place = rows.step if by_step else rows.time if has_time else np.arange(len(rows))
    first_seen = _number_by_first_row(episode)
    order = np.lexsort((np.arange(len(rows)), place, first_seen))
    position = order.astype(np.int64)
    if has_time:
        instants = np.sort(rows.time)[batch_ends(len(rows)) - 1]
        plan, how = replace(plan, boundaries=instants[:-1]), "sorted by time"
    elif _rises_within(episode, place):
        how = "rows of several episodes at once, each in order"
    elif np.all(np.diff(first_seen) >= 0):
        position = np.arange(len(order), dtype=np.int64)
        how = "sorted by step within each episode"
    else:
        how = "shuffled rows, sorted by step; their order in time is unknown, so there are no batches"
    strands = Strands(plan, is_sorted=True)
    counter = _StrandCounter(plan, strands)
    counter.rows, counter.names = len(placed) + len(unplaced), _names_by_number(rows, first_seen)
    counter.dropped += count_problems(unplaced.problems)
    in_order = replace(rows[order], episode=first_seen[order])
    counter.count(strands.follow(in_order, table[order], counter.batch_of(in_order, position)))
    counted = counter.finish()
    if len(rows):
        strands.notes[LAST_TIME] = rows.time.max()
    late = int((strands.first_steps > strands.notes[START_LOW]).sum()) if by_step else 0
    batches = None if "unknown" in how else counted.batches
    return replace(counted, batches=batches, late_starts=late, how=how)


def sorted_rows(plan: ReadPlan) -> tuple[LogRows, OffsetArray, OffsetArray]:
    """All rows that have a place, sorted within their episodes, which are numbered; their tables, and the
    names of episodes.
    """
    rows, table = _all_rows(plan)
    rows, table = rows[rows.placed], table[rows.placed]
    roles = plan.columns[0].roles
    first_seen = _number_by_first_row(_episodes(rows, table, EPISODE in roles, STEP in roles))
    place = rows.step if STEP in roles else rows.time if TIME in roles else np.arange(len(rows))
    order = np.lexsort((np.arange(len(rows)), place, first_seen))
    in_order = replace(rows[order], episode=first_seen[order])
    return in_order, table[order], _names_by_number(rows, first_seen)


def _names_by_number(rows: LogRows, number: OffsetArray) -> OffsetArray:
    names: OffsetArray = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
    names[number] = rows.episode
    return names


def times_fall(plan: ReadPlan) -> bool:
    """Whether a log that only times put in order is out of order: what looks wrong may be only that."""
    if TIME not in plan.columns[0].roles or STEP in plan.columns[0].roles:
        return False
    for number, opened in enumerate(plan.tables):
        decoder, state = plan.decoder(number), FollowState.before_all()
        for chunk in opened.chunks(plan.columns[number].names):
            rows = decoder.decode(chunk)
            follow(plan.bits(number), 0, rows, np.zeros(len(rows), dtype=np.bool_), state)
            if state.notes[OUT_OF_ORDER]:
                return True
    return False


def _all_rows(plan: ReadPlan) -> tuple[LogRows, OffsetArray]:
    """Every row of the log, and which table it comes from; bad values are errors unless they are skipped."""
    parts: list[LogRows] = []
    table: list[OffsetArray] = []
    for number, opened in enumerate(plan.tables):
        decoder, validation = plan.decoder(number), plan.validation(number)
        for chunk in opened.chunks(plan.columns[number].names, validation.ragged if plan.skip else None):
            rows = decoder.decode(chunk)
            if not plan.skip:
                validation.admit(rows, chunk)
            parts.append(rows)
            table.append(np.full(len(rows), number, dtype=np.int64))
    return LogRows.joined(parts), np.concatenate(table)


def _episodes(rows: LogRows, table: OffsetArray, named: bool, by_step: bool) -> OffsetArray:
    """Which episode each row belongs to: by name, or by file and name where files share names and steps."""
    if not named:
        return np.zeros(len(table), dtype=np.int64)
    if not by_step or table[-1] == 0:
        return _number(rows.episode, table)
    everywhere = np.unique(rows.episode, return_inverse=True)[1]
    order = np.lexsort((rows.step, everywhere))
    same = (np.diff(everywhere[order]) == 0) & (np.diff(rows.step[order]) == 0)
    if np.any(same & (np.diff(table[order]) != 0)):
        return _number(rows.episode, table)
    return everywhere.astype(np.int64)


def _number(episode: OffsetArray, table: OffsetArray) -> OffsetArray:
    pairs = np.stack([table, episode])
    return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _number_by_first_row(episode: OffsetArray) -> OffsetArray:
    """Episodes numbered by where their first row stands."""
    _, first, which = np.unique(episode, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int64)[which]


def _rises_within(episode: OffsetArray, place: OffsetArray) -> bool:
    """Whether the rows of every episode are in order as they stand."""
    order = np.argsort(episode, kind="stable")
    return bool(np.all((np.diff(place[order]) >= 0) | (np.diff(episode[order]) != 0)))
