"""Logs of several episodes at once: each is followed by its name, whatever stands between its rows.

Chunks are taken in the order of the log. The rows of a chunk are grouped by episode, each group behind the
last row that its episode had before, and then followed as if episodes stood one after the other
(`tightrope.data.follow`). What is kept from chunk to chunk is the last row of every episode, so memory grows
with the number of episodes and not with that of rows.

Which batch a row belongs to follows from its own place: its time, its number in the log, or how many episodes
had begun by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from tightrope.data.batches import BatchCounter, Batches, batch_ends
from tightrope.data.column_names import COST, EPISODE, STEP, TIME, WATCHED_UNTIL
from tightrope.data.costs import CostSums, CostTally
from tightrope.data.follow import IN_STRANDS, FollowState, Tick, end_episode, follow
from tightrope.data.intake import Intake
from tightrope.data.partial import locate_known
from tightrope.data.read_plan import ReadPlan
from tightrope.data.rows import Rows
from tightrope.data.state_index import UNKNOWN
from tightrope.errors import InputError
from tightrope.io.table.data_table import Chunk, DataTable
from tightrope.io.table.problems import Problem, ProblemCodes
from tightrope.numerics.arrays import BoolArray, OffsetArray

ALL_ROWS = 1 << 50
"""More rows than a log has."""

UNWATCHED = -(2**63)
"""A row that does not say until when its episode was watched."""


@dataclass
class Placed:
    """Rows with the number of their table, their batch, their transition where they say where they lead, and
    whether each begins an episode.
    """

    rows: Rows
    table: OffsetArray
    batch: OffsetArray
    transition: OffsetArray
    begins: BoolArray

    def __getitem__(self, part: OffsetArray | BoolArray) -> Placed:
        more = (getattr(self, name)[part] for name in _BESIDE)
        return Placed(self.rows[part], *more)

    @staticmethod
    def joined(parts: list[Placed]) -> Placed:
        rows = Rows.joined([part.rows for part in parts])
        return Placed(rows, *(np.concatenate([getattr(part, name) for part in parts]) for name in _BESIDE))

    @property
    def places(self) -> OffsetArray:
        """Numbers that rise with the place of rows in the log."""
        return self.table * (1 << 40) + self.rows.number


_BESIDE = ("table", "batch", "transition", "begins")


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

    def add(self, rows: Rows, until: OffsetArray) -> None:
        """The ends of a chunk, the latest of each episode; UNWATCHED where a row has none."""
        known = rows.placed & (until != UNWATCHED)
        self.has_rows_at_ends |= bool(np.any(until[known] == rows.time[known]))
        names, place = np.unique(rows.episode[known], return_inverse=True)
        latest = np.full(len(names), UNWATCHED, dtype=np.int64)
        np.maximum.at(latest, place, until[known])
        for name, end in zip(names.tolist(), latest.tolist(), strict=True):
            self.until[name] = max(end, self.until.get(name, end))

    def end(self, rows: Rows, row: int, tick: Tick, table: DataTable) -> None:
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

    def __init__(self, plan: ReadPlan):
        self.plan = plan
        roles = plan.columns[0].roles
        self.named, self.has_time, self.has_steps = (role in roles for role in (EPISODE, TIME, STEP))
        self.from_next = plan.columns[0].from_next_row
        self.state = FollowState.before_all()
        self.notes = self.state.notes
        self.tails: Placed | None = None
        self.copies = 0
        self.begun = 0
        self.shows_one_clock = False
        """Rows of several episodes stand between each other, and none is earlier than the row before."""
        self.last_is_open = False
        self.last_row: int | None = None
        self.watched = Watched() if WATCHED_UNTIL in roles else None

    def follow(self, rows: Rows, table: int, batch: OffsetArray, until: OffsetArray | None = None) -> Placed:
        """Follow a chunk; the rows that are settled by it, of this chunk and of those before.

        `until` is when watching the episode of each row ended, where a column says so.
        """
        size = len(rows)
        transition = np.full(size, UNKNOWN, dtype=np.int64)
        if not self.from_next:
            transition = self.plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        numbers = (np.full(size, table, dtype=np.int64), batch, transition)
        new = Placed(rows, *numbers, np.zeros(size, dtype=np.bool_))
        unplaced = new[~rows.placed]
        new = new[rows.placed]
        waiting, over = self._waiting(new.rows, table)
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
        there = both.rows.state if self.from_next else both.rows.next_state
        inside = (there >= 0) & (there < self.plan.structure.states)
        closed: BoolArray = inside & self.plan.absorbing[np.where(inside, there, 0)]
        bits = self.plan.bits(table) | IN_STRANDS
        marks = follow(bits, 0, both.rows, closed, self.state, self.plan.tick, known)
        both.begins |= marks.is_new & ~known
        self.begun += int((marks.is_new & ~known).sum())
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

    def finish(self) -> Placed:
        """The last rows of all episodes, whose next states nobody knows; notes on how these end.

        `last_is_open`: the episode that the log ends with has an open end; that one is not in the notes.
        """
        tails = self.tails
        if tails is None:
            raise ValueError("no row was followed")
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
                end_episode(0, True, int(tails.rows.time[row]), self.notes)

    def are_open(self, tails: Placed) -> BoolArray:
        """Which rows do not say that their episode is over, and lead to states that can be left."""
        there = tails.rows.state if self.from_next else tails.rows.next_state
        inside = (there >= 0) & (there < self.plan.structure.states)
        closed = inside & self.plan.absorbing[np.where(inside, there, 0)]
        result: BoolArray = ~closed & ~tails.rows.ended
        return result

    @property
    def _tails(self) -> Placed:
        assert self.tails is not None
        return self.tails

    def _waiting(self, rows: Rows, table: int) -> tuple[OffsetArray, OffsetArray]:
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

    def _lasts(self, rows: Rows) -> BoolArray:
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
        kept = Placed.joined([self.tails[rest], lasts])
        self.tails = kept[np.argsort(kept.rows.episode, kind="stable")] if self.named else kept

    def _without_copies(self, both: Placed, known: BoolArray) -> tuple[Placed, BoolArray]:
        """Rows that say the same as the row of their episode before, at the same place, are left out."""
        if not self.plan.drop_copies or len(both.rows) < 2:
            return both, known
        copy = both.rows.repeats(self.from_next) & ~known
        self.copies += int(copy.sum())
        return both[~copy], known[~copy]


@dataclass(frozen=True)
class StrandCounts:
    """What a log of several episodes at once holds."""

    batches: Batches
    rows: int
    dropped: Counter[str]
    notes: OffsetArray
    lost: int
    copies: int
    last_is_open: bool
    open_end: bool
    shows_one_clock: bool
    costs: CostSums | None
    watched: Watched | None


def count_strands(plan: ReadPlan) -> StrandCounts:
    """Count a whole log, each episode followed by its name."""
    strands = Strands(plan)
    counter = _Counter(plan, strands)
    for table, chunk, rows in _decoded(plan):
        counter.add(table, chunk, rows)
    return counter.finish()


def _decoded(plan: ReadPlan) -> Iterator[tuple[int, Chunk, Rows]]:
    """All chunks in the order of the log; the next one is decoded while one is counted."""
    plan.prepare()

    def chunks() -> Iterator[tuple[int, Chunk, Rows]]:
        for number, table in enumerate(plan.tables):
            decoder = plan.decoder(number)
            for chunk in table.chunks(plan.columns[number].names, None):
                yield number, chunk, decoder.decode(chunk)

    source = chunks()
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(next, source, None)
        while (found := ahead.result()) is not None:
            ahead = pool.submit(next, source, None)
            yield found


class _Counter:
    """Gives settled rows to their batches."""

    def __init__(self, plan: ReadPlan, strands: Strands):
        self.plan, self.strands = plan, strands
        self.rows = self.lost = 0
        self.dropped: Counter[str] = Counter()
        self.ends = batch_ends(ALL_ROWS)
        boundaries = plan.boundaries
        size = (len(self.ends) if boundaries is None else len(boundaries)) + 1
        self.counter = BatchCounter(plan.structure.transitions, size)
        self.costs = CostTally() if COST in plan.columns[0].roles else None
        self._seen: set[int] = set()

    def add(self, table: int, chunk: Chunk, rows: Rows) -> None:
        self.rows += chunk.rows
        if not self.plan.skip and rows.problems.any():
            Intake(self.plan.tables[table], self.plan.decoder(table), False).admit(rows, chunk)
        until: OffsetArray | None = None
        if self.strands.watched is not None:
            flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
            until = self.plan.decoder(table).ends_of_watching(chunk, flags)
            until = np.where(flags == Problem.NONE, until, UNWATCHED)
        self._count(self.strands.follow(rows, table, self._batch(rows, chunk), until))

    def _batch(self, rows: Rows, chunk: Chunk) -> OffsetArray:
        if self.plan.boundaries is not None:
            return np.searchsorted(self.plan.boundaries, rows.time)
        if self.plan.by_episodes:
            return np.searchsorted(self.ends, self._begun(rows) - 1, side="right")
        first = self.rows - chunk.rows
        return np.searchsorted(self.ends, np.arange(first, first + len(rows)), side="right")

    def _begun(self, rows: Rows) -> OffsetArray:
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

    def _count(self, placed: Placed) -> None:
        rows = placed.rows
        if self.strands.from_next:
            transition, lost = locate_known(self.plan, rows)
            self.lost += lost
        else:
            transition = placed.transition
        bad = np.flatnonzero(rows.problems)
        if len(bad) and not self.plan.skip:
            refuse(self.plan, placed, int(bad[np.argmin(placed.places[bad])]))
        for code, times in zip(*np.unique(rows.problems[bad], return_counts=True), strict=True):
            self.dropped[Problem(code).words] += int(times)
        kept = (rows.problems == Problem.NONE) & (transition >= 0)
        self.counter.add(transition[kept], placed.batch[kept])
        if self.costs is not None:
            self.costs.add(transition[kept], rows.cost[kept])

    def finish(self) -> StrandCounts:
        strands = self.strands
        tails, open_end = strands.finish(), False
        if strands.from_next:
            if (last := strands.last_row) is not None:
                rest = np.ones(len(tails.rows), dtype=np.bool_)
                rest[last] = False
                _, waits = locate_known(self.plan, tails[~rest].rows)
                open_end, tails = waits > 0, tails[rest]
            self._count(tails)
        number = len(batch_ends(self.rows))
        if self.plan.boundaries is not None:
            number = len(self.plan.boundaries) + 1
        elif self.plan.by_episodes:
            number = len(batch_ends(strands.begun))
        batches = Batches.from_parts(self.counter.parts()[:number])
        costs = None if self.costs is None else self.costs.sums()
        about = (strands.copies, strands.last_is_open, open_end, strands.shows_one_clock)
        found = (batches, self.rows, self.dropped, strands.notes, self.lost, *about)
        return StrandCounts(*found, costs, strands.watched)


def refuse(plan: ReadPlan, placed: Placed, row: int) -> None:
    """The error about one of the rows."""
    rows, table = placed.rows, int(placed.table[row])
    intake = Intake(plan.tables[table], plan.decoder(table), False)
    led = int(rows.next_state[row - 1]) if row else 0
    state, next_state = int(rows.state[row]), int(rows.next_state[row])
    raise intake.error_of(int(rows.number[row]), Problem(rows.problems[row]), state, next_state, led)
