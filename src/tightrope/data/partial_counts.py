"""Counts of a part of a log, and how those of consecutive parts are joined into those of the whole.

Counting is a map over parts and a sum: a part's counts do not depend on what stands before it. What does is
kept at its edges, its first and its last row, and settled when the edges of neighbours meet: whether the
episode goes on, whether steps are missing between them, and, in logs without next states, where the last
row led. The result is the same however the log is cut.

The map of counting: one part of a log to its partial counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

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
    CLOSED,
    ENDED,
    EPISODES,
    HAS_EPISODES,
    HAS_STEPS,
    HAS_TIME,
    HEAD_OPEN,
    HEAD_ROWS,
    HEAD_TIME,
    LONGEST,
    OUT_OF_ORDER,
    RELATIONS,
    ROWS,
    SOUND,
    START_HIGH,
    START_LOW,
    TIME_FALLS,
    FollowState,
    Marks,
    add_notes,
    begin_episode,
    end_episode,
    follow,
    no_notes,
)
from tightrope.data.row_validation import RowValidation
from tightrope.data.rows import NO_ACTION, Rows
from tightrope.io.table.columns import RowProblem
from tightrope.io.table.data_table import Chunk
from tightrope.numerics.arrays import BoolArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Partial:
    """What one part holds. `head` is its first row whose place can be read, `tail` its last row; `broken`
    says that rows whose place cannot be read stand before the head.

    `after` is what `follow` knows in the end. `starts` are the episodes that begin in it, where the log has
    no steps to tell whether one comes back. `lost` are visits whose outcome is not in the log.
    """

    table: int
    rows: int
    parts: list[tuple[OffsetArray, OffsetArray]]
    dropped: Counter[str]
    head: Rows | None
    tail: Rows | None
    head_position: int
    tail_position: int
    after: FollowState
    starts: OffsetArray
    lost: int = 0
    broken: bool = False
    costs: CostSums | None = None


@dataclass
class BadEdge:
    """A row at an edge that does not follow the row of the part before."""

    table: int
    row: int
    problem: RowProblem
    state: int
    before: int


@dataclass
class Joined:
    """The sum of partial counts, taken in order."""

    plan: ReadPlan
    accumulator: BatchAccumulator
    rows: int = 0
    lost: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: OffsetArray = field(default_factory=no_notes)
    bad: list[BadEdge] = field(default_factory=list)
    starts: dict[int, list[OffsetArray]] = field(default_factory=dict)
    open_end: bool = False
    last_is_open: bool = False
    last_time: int = 0
    costs: CostTally = field(default_factory=CostTally)
    _last: Partial | None = None
    _open_rows: int = 0
    _broken: bool = False

    def add(self, part: Partial) -> None:
        """Join the next part."""
        self.rows += part.rows
        self.lost += part.lost
        self.dropped += part.dropped
        self.accumulator.add_parts(part.parts)
        self.costs.merge(part.costs)
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
        self.starts.setdefault(part.table, []).append(part.starts[1:] if continues else part.starts)
        add_notes(self.notes, part.after.notes)
        before = self._open_rows if continues else 0
        if not continues:
            self._end_open()
            begin_episode(int(part.head.step[0]), bool(bits & HAS_STEPS), int(part.head.time[0]), self.notes)
        if part.after.notes[HEAD_ROWS] >= 0:
            is_open, time = bool(part.after.notes[HEAD_OPEN]), int(part.after.notes[HEAD_TIME])
            end_episode(before + int(part.after.notes[HEAD_ROWS]), is_open, time, self.notes)
            before = 0
        self._open_rows = before + int(part.after.carry[ROWS])
        self._last = part

    def finish(self) -> None:
        """The log ends; `last_is_open` where its last episode is."""
        self.notes[LONGEST] = max(int(self.notes[LONGEST]), self._open_rows)
        if self._last is not None:
            self._settle_tail(None, is_last=True)
            carry = self._last.after.carry
            self.last_is_open = not carry[ENDED] and not carry[CLOSED]
            self.last_time = int(carry[AT_TIME])

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

    @property
    def episodes(self) -> int:
        return int(self.notes[EPISODES])

    def _end_open(self) -> None:
        if self._last is not None and self._open_rows:
            carry = self._last.after.carry
            is_open = not carry[ENDED] and not carry[CLOSED]
            end_episode(self._open_rows, is_open, int(carry[AT_TIME]), self.notes)

    def _meet(self, part: Partial, head: Rows, bits: int) -> bool:
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
        notes, problems = state.notes, row.problems
        add_notes(self.notes, _only_relation(notes))
        goes_on = not marks.is_new[0]
        if problems[0] != RowProblem.NONE and head.problems[0] == RowProblem.NONE:
            self._refuse_head(part, head, RowProblem(problems[0]), int(last.after.carry[AT_NEXT]))
        follows = bool(marks.continues[0])
        self._settle_tail(int(head.state[0]) if follows else None)
        return goes_on

    def _refuse_head(self, part: Partial, head: Rows, problem: RowProblem, before: int) -> None:
        """The first row of a part turns out to be wrong: an error, or its count is taken back."""
        if not self.plan.skip:
            self.bad.append(BadEdge(part.table, int(head.number[0]), problem, int(head.state[0]), before))
            return
        assert part.tail is not None
        from_next = self.plan.columns[part.table].from_next_row
        if from_next and part.tail.number[0] == head.number[0]:
            part.tail.problems = np.array([problem], dtype=np.int8)
            return
        self.dropped[problem.words] += 1
        row = head[:]
        row.problems = head.problems.copy()
        found, lost = locate_known(self.plan, row)
        self.lost -= lost
        if found[0] >= 0:
            self._count_one(int(found[0]), part.head_position, -1)
            if part.costs is not None:
                self.costs.add(found, head.cost, -1)

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
            problem, state = RowProblem(tail.problems[0]), int(tail.state[0])
            self.bad.append(BadEdge(last.table, int(tail.number[0]), problem, state, next_state))
        else:
            self._count_one(int(transition[0]), last.tail_position)
            if last.costs is not None:
                self.costs.add(transition, tail.cost)


def locate_known(plan: ReadPlan, rows: Rows) -> tuple[OffsetArray, int]:
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


def _may_go_on(carry: OffsetArray, head: Rows, bits: int) -> bool:
    """Whether an episode may go on in the next file: only where names and steps, or times, say so."""
    if not bits & HAS_EPISODES or carry[AT_EPISODE] != head.episode[0] or carry[ENDED]:
        return False
    if bits & HAS_STEPS:
        return bool(head.step[0] == carry[AT_STEP] + 1)
    return bool(bits & HAS_TIME) and bool(head.time[0] >= carry[AT_TIME])


def _only_relation(notes: OffsetArray) -> OffsetArray:
    """The notes on how two rows follow each other, without those on where episodes begin and end."""
    result = no_notes()
    result[:RELATIONS] = notes[:RELATIONS]
    return result


Watch = Callable[[int, int], None]
"""Called now and then with rows and bytes that were read since the last call."""


def count_part(plan: ReadPlan, part: Part, first: int | None = None, watch: Watch | None = None) -> Partial:
    """Count one part; `first` rows of the log stand before it, where the part does not say so itself."""
    return PartCounter(plan, part, part.first if part.first is not None else first or 0).count(watch)


class PartCounter:
    """Follows the chunks of one part."""

    def __init__(self, plan: ReadPlan, part: Part, first: int):
        self.plan = plan
        self.part = part
        self.table = plan.tables[part.table]
        self.columns = plan.columns[part.table]
        self.bits = plan.bits(part.table)
        self.decoder = plan.decoder(part.table)
        self.validation = RowValidation(self.table, self.decoder, plan.skip)
        self.first = first
        self.accumulator: BatchAccumulator | BatchCounter
        if plan.boundaries is None:
            self.accumulator = BatchAccumulator(plan.structure.transitions, 0 if plan.by_episodes else first)
        else:
            self.accumulator = BatchCounter(plan.structure.transitions, len(plan.boundaries) + 1)
        self.state = FollowState.before_all()
        self.starts: list[OffsetArray] = []
        self.keeps_starts = EPISODE in self.columns.roles and STEP not in self.columns.roles
        self.first_row: int | None = None
        self.head: Rows | None = None
        self.tail: Rows | None = None
        self.lost = 0
        self.broken = False
        self.costs = CostTally() if COST in self.columns.roles else None

    def count(self, watch: Watch | None) -> Partial:
        skips_ragged = self.plan.skip and not self.columns.from_next_row
        read = 0
        for chunk in self.table.chunks(
            self.columns.names, self.validation.ragged if skips_ragged else None, self.part.groups
        ):
            if self.first_row is None:
                self.first_row = chunk.first_row
            self._count_chunk(chunk)
            if watch is not None:
                watch(chunk.rows, max(0, chunk.bytes_read - read))
                read = chunk.bytes_read
        if self.tail is not None and self.columns.from_next_row and not self.plan.skip:
            self.validation.check(self.tail)
        return Partial(
            self.part.table,
            self.validation.rows,
            self.accumulator.parts(),
            Counter(self.validation.dropped),
            self.head,
            self.tail,
            int(self._position(self.head)[0]) if self.head is not None else 0,
            int(self._position(self.tail)[0]) if self.tail is not None else 0,
            self.state,
            np.concatenate([np.empty(0, dtype=np.int64), *self.starts]),
            self.lost,
            self.broken,
            None if self.costs is None else self.costs.sums(),
        )

    def _count_chunk(self, chunk: Chunk) -> None:
        rows = self.decoder.decode(chunk)
        self.validation.rows += chunk.rows
        if self.columns.from_next_row:
            waiting = self.tail
            if waiting is not None:
                rows = Rows.joined([waiting, rows])
            self._follow(rows, 0 if waiting is None else 1)
            self.tail, rows = rows[-1:], rows[:-1]
            transition, lost = locate_known(self.plan, rows)
            self.lost += lost
            kept = self.validation.admit(rows, chunk) & (transition >= 0)
        else:
            before = int(self.state.carry[AT_NEXT])
            transition = self.plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
            self._follow(rows, 0)
            self.tail = rows[-1:]
            kept = self.validation.admit(rows, chunk, before)
        if self.costs is not None:
            self.costs.add(transition[kept], rows.cost[kept])
        position = self._position(rows)
        if not kept.all():
            transition, position = transition[kept], position[kept]
        self.accumulator.add(transition, position)

    def _follow(self, rows: Rows, start: int) -> Marks:
        there = rows.state if self.columns.from_next_row else rows.next_state
        inside = (there >= 0) & (there < self.plan.structure.states)
        closed: BoolArray = inside & self.plan.absorbing[np.where(inside, there, 0)]
        marks = follow(self.bits, start, rows, closed, self.state, self.plan.tick)
        if self.keeps_starts:
            self.starts.append(rows.episode[marks.is_new])
        if start and self.head is not None and self.head.number[0] == rows.number[0]:
            self.head = rows[:1]
        if self.head is None:
            placed = np.flatnonzero(rows.placed)
            self.broken |= len(placed) == 0 or placed[0] > 0
            if len(placed):
                self.head = rows[placed[0] : placed[0] + 1]
        return marks

    def _position(self, rows: Rows) -> OffsetArray:
        """Where each row stands in time: the number of its episode, or its own number in the log, from 0; the
        number of its batch where times say when batches end.
        """
        if self.plan.boundaries is not None:
            return np.searchsorted(self.plan.boundaries, rows.time)
        if self.plan.by_episodes:
            return rows.episode
        assert self.first_row is not None
        return rows.number + (self.first - self.first_row)
