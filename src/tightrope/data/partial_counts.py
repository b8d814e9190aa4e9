"""Counts of a part of a log, and how those of consecutive parts are joined into those of the whole.

Counting is a map over parts (`count_part`) and a sum (`Joined`): a part's counts do not depend on what stands
before it. What does is kept at its edges, its first and its last row, and settled when the edges of
neighbours meet: whether the episode goes on, whether steps are missing between them, and, in logs without
next states, where the last row led. The result is the same however the log is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field

import numpy as np

from tightrope.data.columns import COST, EPISODE, STEP
from tightrope.data.costs import CostSums, CostTally
from tightrope.data.counts import BatchAccumulator, BatchCounter
from tightrope.data.model_index import UNKNOWN
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.row_sequence import (
    AT_EPISODE,
    AT_NEXT,
    AT_STEP,
    AT_TIME,
    ENDED,
    HAS_EPISODES,
    HAS_STEPS,
    HAS_TIME,
    HEAD_OPEN,
    HEAD_TIME,
    OUT_OF_ORDER,
    RELATIONS,
    SOUND,
    START_HIGH,
    START_LOW,
    TIME_FALLS,
    FollowState,
    add_notes,
    begin_episode,
    follow,
    no_notes,
    note_open_end,
)
from tightrope.data.rows import NO_ACTION, LogRows
from tightrope.errors import InputError
from tightrope.io.table.columns import RowProblem
from tightrope.io.table.data_table import Chunk
from tightrope.late import dataclass
from tightrope.numerics.arrays import OffsetArray
from tightrope.provenance import RowTally


def _no_names() -> list[OffsetArray]:
    return [np.empty(0, dtype=np.int64)]


@dataclass(eq=False)
class Partial:
    """What one part holds. `head` is its first row whose place can be read, `tail` its last row; `broken`
    says that rows whose place cannot be read stand before the head.

    `after` is what `follow` knows in the end. `starts` are the episodes that begin in it, where the log has
    no steps to tell whether one comes back. `lost` are visits whose outcome is not in the log.
    """

    table: int
    rows: int = 0
    parts: list[tuple[OffsetArray, OffsetArray]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    head: LogRows | None = None
    tail: LogRows | None = None
    head_position: int = 0
    tail_position: int = 0
    after: FollowState = field(default_factory=FollowState.before_all)
    starts: list[OffsetArray] = field(default_factory=_no_names)
    lost: int = 0
    broken: bool = False
    costs: CostSums | None = None
    seen: RowTally = field(default_factory=RowTally)


@dataclass
class Joined:
    """The sum of partial counts, taken in order."""

    plan: ReadPlan
    accumulator: BatchAccumulator
    rows: int = 0
    lost: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: OffsetArray = field(default_factory=no_notes)
    refusal: InputError | None = None
    starts: dict[int, list[OffsetArray]] = field(default_factory=dict)
    open_end: bool = False
    last_is_open: bool = False
    last_time: int = 0
    costs: CostTally = field(default_factory=CostTally)
    seen: dict[int, list[RowTally]] = field(default_factory=dict)
    """Which rows were counted, by table: those of its parts, and those between them."""
    _last: Partial | None = None
    _broken: bool = False

    def add(self, part: Partial) -> None:
        """Join the next part."""
        self.rows += part.rows
        self.lost += part.lost
        self.dropped += part.dropped
        self.accumulator.add_parts(part.parts)
        self.costs.merge(part.costs)
        self.seen.setdefault(part.table, []).append(part.seen)
        if part.tail is None:
            return
        if part.head is None:
            self._broken = True
            if self.plan.columns[part.table].from_next_row:
                self.dropped[RowProblem(part.tail.problems[0]).words] += 1
            return
        bits = self.plan.bits(part.table)
        continues = self._meet(part, part.head, bits)
        self._broken = False
        starts = np.concatenate(part.starts)
        self.starts.setdefault(part.table, []).append(starts[1:] if continues else starts)
        add_notes(self.notes, part.after.notes)
        if not continues:
            if self._last is not None and self._last.after.is_open:
                note_open_end(int(self._last.after.carry[AT_TIME]), self.notes)
            begin_episode(int(part.head.step[0]), bool(bits & HAS_STEPS), int(part.head.time[0]), self.notes)
        if part.after.notes[HEAD_OPEN] == 1:
            note_open_end(int(part.after.notes[HEAD_TIME]), self.notes)
        self._last = part

    def finish(self) -> None:
        """The log ends; `last_is_open` where its last episode is."""
        if self._last is not None:
            self._settle_tail(None, is_last=True)
            self.last_is_open = self._last.after.is_open
            self.last_time = int(self._last.after.carry[AT_TIME])

    @property
    def is_out_of_order(self) -> bool:
        """Whether rows must be sorted before they can be counted."""
        if self.notes[OUT_OF_ORDER] or self.notes[START_LOW] < self.notes[START_HIGH]:
            return True
        for starts in self.starts.values():
            names = np.concatenate(starts)
            if len(np.unique(names)) < len(names):
                return True
        return False

    def _meet(self, part: Partial, head: LogRows, bits: int) -> bool:
        """Let the first row of a part follow the last of the part before; whether the episode goes on."""
        last = self._last
        if last is None:
            return False
        assert last.tail is not None
        if last.table != part.table and not _may_go_on(last.after.carry, head, bits):
            if bits & HAS_TIME and head.time[0] <= last.after.carry[AT_TIME]:
                self.notes[TIME_FALLS] += 1
            self._settle_tail(None)
            return False
        state, row = last.after.copy(), head[:]
        row.problems = head.problems.copy()
        if part.broken or self._broken:
            state.carry[SOUND] = 0
        marks = follow(bits, 0, row, np.zeros(1, dtype=np.bool_), state, self.plan.tick)
        self.notes[:RELATIONS] += state.notes[:RELATIONS]
        if row.problems[0] != RowProblem.NONE and head.problems[0] == RowProblem.NONE:
            self._refuse_head(part, head, RowProblem(row.problems[0]), int(last.after.carry[AT_NEXT]))
        self._settle_tail(int(head.state[0]) if marks.continues[0] else None)
        return not marks.is_new[0]

    def _refuse_head(self, part: Partial, head: LogRows, problem: RowProblem, before: int) -> None:
        """The first row of a part turns out to be wrong: an error, or its count is taken back."""
        if not self.plan.skip:
            self._refuse(part.table, head, problem, before)
            return
        assert part.tail is not None
        from_next = self.plan.columns[part.table].from_next_row
        if from_next and part.tail.number[0] == head.number[0]:
            part.tail.problems = np.array([problem], dtype=np.int8)
            return
        self.dropped[problem.words] += 1
        row = head[:]
        row.problems = head.problems.copy()
        transition, lost = locate_known(self.plan, row)
        self.lost -= lost
        if transition[0] >= 0:
            self._count_one(int(transition[0]), part.head_position, -1)
            self._see(part.table, head, transition, -1)
            if part.costs is not None:
                self.costs.add(transition, head.cost, -1)

    def _refuse(self, table: int, row: LogRows, problem: RowProblem, before: int) -> None:
        """Remember the first row at an edge that does not follow the row of the part before."""
        validation = self.plan.validation(table, skip=False)
        number, state = int(row.number[0]), int(row.state[0])
        self.refusal = self.refusal or validation.error_of(number, problem, state, before, before)

    def _count_one(self, transition: int, position: int, times: int = 1) -> None:
        if self.plan.boundaries is None:
            self.accumulator.add_one(transition, position, times)
        else:
            self.accumulator.add_to(transition, position, times)

    def _settle_tail(self, next_state: int | None, is_last: bool = False) -> None:
        """In a log without next states: count where the last row of a part led, or that nobody knows."""
        last = self._last
        assert last is not None and last.tail is not None
        if not self.plan.columns[last.table].from_next_row:
            return
        if last.tail.problems[0] != RowProblem.NONE:
            self.dropped[RowProblem(last.tail.problems[0]).words] += 1
            return
        tail = last.tail[:]
        tail.next_state = np.array([UNKNOWN if next_state is None else next_state], dtype=np.int64)
        transition, lost = locate_known(self.plan, tail)
        if next_state is None:
            self.lost += 0 if is_last else lost
            self.open_end = is_last and lost > 0
        elif tail.problems[0] != RowProblem.NONE and self.plan.skip:
            self.dropped[RowProblem(tail.problems[0]).words] += 1
        elif tail.problems[0] != RowProblem.NONE:
            self._refuse(last.table, tail, RowProblem(tail.problems[0]), next_state)
        else:
            self._count_one(int(transition[0]), last.tail_position)
            self._see(last.table, tail, transition)
            if last.costs is not None:
                self.costs.add(transition, tail.cost)

    def _see(self, table: int, row: LogRows, transition: OffsetArray, sign: int = 1) -> None:
        self.seen[table].append(RowTally())
        self.plan.see(self.seen[table][-1], row, transition, table, sign=sign)


def locate_known(plan: ReadPlan, rows: LogRows) -> tuple[OffsetArray, int]:
    """The transitions of rows whose next state is known (the others stay UNKNOWN), and how many visits are
    lost.

    A visit is lost where something was done, its outcome is not there, and more than one was possible.
    """
    known = rows.next_state != UNKNOWN
    blank = (rows.action == NO_ACTION) | (rows.local == NO_ACTION) | np.isnan(rows.cost)
    missing = known & blank & (rows.problems == 0)
    rows.problems[missing] = RowProblem.MISSING_VALUE
    transition = np.full(len(rows), UNKNOWN, dtype=np.int64)
    if known.all():
        return plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems), 0
    part = rows[known]
    transition[known] = plan.index.transitions(part.state, part.taken, part.next_state, part.problems)
    rows.problems[known] = part.problems
    waiting = ~known & (rows.problems == RowProblem.NONE) & (rows.local != NO_ACTION)
    if plan.until_now:  # what is still under way at the log's last instant is left out by rule
        waiting &= rows.ended
    left = np.flatnonzero(waiting)
    lost = sum(
        plan.index.outcomes(int(rows.state[i]), int(rows.action[i]), int(rows.local[i])) != 1 for i in left
    )
    return transition, lost


def _may_go_on(carry: OffsetArray, head: LogRows, bits: int) -> bool:
    """Whether an episode may go on in the next file: only where names and steps, or times, say so."""
    if not bits & HAS_EPISODES or carry[AT_EPISODE] != head.episode[0] or carry[ENDED]:
        return False
    if bits & HAS_STEPS:
        return bool(head.step[0] == carry[AT_STEP] + 1)
    return bool(bits & HAS_TIME) and bool(head.time[0] >= carry[AT_TIME])


Watch = Callable[[int, int], None]
"""Called now and then with rows and bytes that were read since the last call."""


def count_part(plan: ReadPlan, part: Part, first: int | None = None, watch: Watch | None = None) -> Partial:
    """Count one part; `first` rows of the log stand before it, where the part does not say so itself."""
    return PartCounter(plan, part, part.first if part.first is not None else first or 0).count(watch)


class PartCounter:
    """Follows the chunks of one part."""

    def __init__(self, plan: ReadPlan, part: Part, first: int):
        self.plan, self.part, self.first = plan, part, first
        self.table, self.columns = plan.tables[part.table], plan.columns[part.table]
        self.decoder = plan.decoder(part.table)
        self.validation = plan.validation(part.table)
        self.accumulator: BatchAccumulator | BatchCounter
        if plan.boundaries is None:
            self.accumulator = BatchAccumulator(plan.structure.transitions, 0 if plan.by_episodes else first)
        else:
            self.accumulator = BatchCounter(plan.structure.transitions, len(plan.boundaries) + 1)
        self.result = Partial(part.table)
        self.keeps_starts = EPISODE in self.columns.roles and STEP not in self.columns.roles
        self.first_row: int | None = None
        self.costs = CostTally() if COST in self.columns.roles else None

    def count(self, watch: Watch | None) -> Partial:
        skips_ragged = self.plan.skip and not self.columns.from_next_row
        read, result = 0, self.result
        for chunk in self.table.chunks(
            self.columns.names, self.validation.ragged if skips_ragged else None, self.part.groups
        ):
            if self.first_row is None:
                self.first_row = chunk.first_row
            self._count_chunk(chunk)
            if watch is not None:
                watch(chunk.rows, max(0, chunk.bytes_read - read))
                read = chunk.bytes_read
        if result.tail is not None and self.columns.from_next_row and not self.plan.skip:
            self.validation.admit(result.tail)
        result.rows, result.dropped = self.validation.rows, self.validation.dropped
        result.parts = self.accumulator.parts()
        if result.head is not None:
            result.head_position = int(self._position(result.head)[0])
        if result.tail is not None:
            result.tail_position = int(self._position(result.tail)[0])
        result.costs = None if self.costs is None else self.costs.sums()
        return result

    def _count_chunk(self, chunk: Chunk) -> None:
        rows, result = self.decoder.decode(chunk), self.result
        self.validation.rows += chunk.rows
        if self.columns.from_next_row:
            waiting = result.tail
            if waiting is not None:
                rows = LogRows.joined([waiting, rows])
            self._follow(rows, 0 if waiting is None else 1)
            result.tail, rows = rows[-1:], rows[:-1]
            transition, lost = locate_known(self.plan, rows)
            result.lost += lost
            valid = self.validation.admit(rows, chunk) & (transition >= 0)
        else:
            before = int(result.after.carry[AT_NEXT])
            transition = self.plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
            self._follow(rows, 0)
            result.tail = rows[-1:]
            valid = self.validation.admit(rows, chunk, before)
        if self.costs is not None:
            self.costs.add(transition[valid], rows.cost[valid])
        position = self._position(rows)
        if not valid.all():
            transition, position, rows = transition[valid], position[valid], rows[valid]
        self.plan.see(result.seen, rows, transition, self.part.table)
        self.accumulator.add(transition, position)

    def _follow(self, rows: LogRows, start: int) -> None:
        plan, result = self.plan, self.result
        closed = plan.leads_nowhere(rows)
        marks = follow(plan.bits(self.part.table), start, rows, closed, result.after, plan.tick)
        if self.keeps_starts:
            result.starts.append(rows.episode[marks.is_new])
        if start and result.head is not None and result.head.number[0] == rows.number[0]:
            result.head = rows[:1]
        if result.head is None:
            placed = np.flatnonzero(rows.placed)
            result.broken |= len(placed) == 0 or placed[0] > 0
            if len(placed):
                result.head = rows[placed[0] : placed[0] + 1]

    def _position(self, rows: LogRows) -> OffsetArray:
        """Where each row stands in time: the number of its episode, or its own number in the log, from 0; the
        number of its batch where times say when batches end.
        """
        if self.plan.boundaries is not None:
            return np.searchsorted(self.plan.boundaries, rows.time)
        if self.plan.by_episodes:
            return rows.episode
        assert self.first_row is not None
        return rows.number + (self.first - self.first_row)
