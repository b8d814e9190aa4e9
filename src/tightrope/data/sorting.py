"""Logs whose rows are out of order: read in full, sorted within their episodes, then counted.

Rows belong to the episode they name and follow each other by step, else by time, else as they stand in the
log. Names are the log's where no episode has a step twice, and those of each file otherwise. Memory grows
with the number of rows (about 80 bytes each); logs in order are streamed instead.

What the order in time is decides about the batches. Sorting by time, or by steps within episodes that stand
together, gives it, and so does a log of several episodes at once in which every one is in order. Where rows
are simply shuffled nobody knows it, and the counts come without batches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from tightrope.data.batches import BatchAccumulator, BatchCounter, Batches, batch_ends
from tightrope.data.column_names import COST, EPISODE, STEP, TIME
from tightrope.data.costs import CostSums, CostTally
from tightrope.data.follow import (
    CLOSED,
    ENDED,
    HAS_TIME,
    IS_SORTED,
    LAST_TIME,
    OUT_OF_ORDER,
    ROWS,
    START_LOW,
    FollowState,
    end_episode,
    follow,
)
from tightrope.data.intake import Intake
from tightrope.data.partial import locate_known
from tightrope.data.read_plan import ReadPlan
from tightrope.data.rows import Rows
from tightrope.io.table.problems import Problem
from tightrope.numerics.arrays import BoolArray, OffsetArray


@dataclass(frozen=True)
class SortedCounts:
    """What a log holds whose rows were sorted; `batches` is None where their order in time is unknown."""

    count: OffsetArray
    batches: Batches | None
    rows: int
    dropped: Counter[str]
    notes: OffsetArray
    lost: int
    late_starts: int
    how: str
    last_is_open: bool
    costs: CostSums | None = None


def count_sorted(plan: ReadPlan) -> SortedCounts:
    """Count a whole log after sorting its rows."""
    rows, table = _all_rows(plan)
    placed = np.flatnonzero(rows.placed)
    rows, table, left_out = rows[placed], table[placed], rows[np.flatnonzero(~rows.placed)]
    by_step = STEP in plan.columns[0].roles
    by_time = TIME in plan.columns[0].roles and not by_step
    episode = _episodes(rows, table, EPISODE in plan.columns[0].roles, by_step)
    place = rows.step if by_step else rows.time if by_time else np.arange(len(rows))
    first_seen = _number_by_first_row(episode)
    order = np.lexsort((np.arange(len(rows)), place, first_seen))
    kept_as_logged = _rises_within(episode, place)
    stand_together = bool(np.all(np.diff(first_seen) >= 0))
    in_order, position = rows[order], order.astype(np.int64)
    in_order = replace(in_order, episode=first_seen[order])
    copies = 0
    if plan.drop_copies:
        fresh = ~in_order.repeats(plan.columns[0].from_next_row)
        copies, order, in_order, position = (
            int((~fresh).sum()),
            order[fresh],
            in_order[fresh],
            position[fresh],
        )
    counter = _SortedCounter(plan, in_order, table[order])
    transition, keep = counter.count()
    dropped = counter.dropped + Counter(Problem(code).words for code in left_out.problems)
    count = np.bincount(transition[keep], minlength=plan.structure.transitions).astype(np.int64)
    batches: Batches | None = None
    if TIME in plan.columns[0].roles:
        instants = np.sort(in_order.time)[batch_ends(len(in_order)) - 1]
        batch = np.searchsorted(instants[:-1], in_order.time[keep])
        counter_ = BatchCounter(plan.structure.transitions, len(instants))
        counter_.add(transition[keep], batch)
        batches = Batches.from_parts(counter_.parts())
        how = "sorted by time"
    elif kept_as_logged:
        how = "rows of several episodes at once, each in order"
    elif stand_together:
        position = np.arange(len(order), dtype=np.int64)
        how = "sorted by step within each episode"
    else:
        how = "shuffled rows, sorted by step; their order in time is unknown, so there are no batches"
    if batches is None and "unknown" not in how:
        batches = _split_into_batches(transition[keep], position[keep], plan.structure.transitions)
    if copies:
        how += f"; {copies:,} rows that were logged twice were dropped, as was asked"
    total = len(rows) + len(left_out)
    costs: CostSums | None = None
    if COST in plan.columns[0].roles:
        costs = CostTally().add(transition[keep], in_order.cost[keep]).sums()
    about = (counter.notes, counter.lost, counter.late_starts, how, counter.last_is_open)
    return SortedCounts(count, batches, total, dropped, *about, costs)


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


class _SortedCounter:
    """Follows sorted rows as one chunk."""

    def __init__(self, plan: ReadPlan, rows: Rows, table: OffsetArray):
        self.plan, self.rows, self.table = plan, rows, table
        self.state = FollowState.before_all()
        self.notes = self.state.notes
        self.dropped: Counter[str] = Counter()
        self.lost = 0
        self.late_starts = 0
        self.last_is_open = False

    def count(self) -> tuple[OffsetArray, BoolArray]:
        plan, rows = self.plan, self.rows
        from_next = plan.columns[0].from_next_row
        if not from_next:
            transition = plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        there = rows.state if from_next else rows.next_state
        inside = (there >= 0) & (there < plan.structure.states)
        closed = inside & plan.absorbing[np.where(inside, there, 0)]
        bits = plan.bits(0) | IS_SORTED
        if STEP in plan.columns[0].roles:
            bits &= ~HAS_TIME
        marks = follow(bits, 0, rows, closed, self.state, plan.tick)
        if len(rows):
            last = int(np.argmax(rows.time)) if TIME in plan.columns[0].roles else len(rows) - 1
            carry = self.state.carry
            is_open = not carry[ENDED] and not carry[CLOSED]
            self.last_is_open = is_open and last == len(rows) - 1
            if is_open and not self.last_is_open:
                end_episode(int(carry[ROWS]), True, int(rows.time[-1]), self.notes)
            self.notes[LAST_TIME] = rows.time.max()
        if STEP in plan.columns[0].roles:
            self.late_starts = int((rows.step[marks.is_new] > self.notes[START_LOW]).sum())
        if from_next:
            # the last row here need not be the last in time: no outcome may be missing without being told
            transition, self.lost = locate_known(plan, rows)
        bad = np.flatnonzero(rows.problems)
        if len(bad) and not plan.skip:
            self._refuse(int(bad[0]))
        for code, times in zip(*np.unique(rows.problems[bad], return_counts=True), strict=True):
            self.dropped[Problem(code).words] += int(times)
        return transition, (rows.problems == Problem.NONE) & (transition >= 0)

    def _refuse(self, row: int) -> None:
        rows, table = self.rows, int(self.table[row])
        intake = Intake(self.plan.tables[table], self.plan.decoder(table), False)
        led = int(rows.next_state[row - 1]) if row else 0
        state, next_state = int(rows.state[row]), int(rows.next_state[row])
        raise intake.error_of(int(rows.number[row]), Problem(rows.problems[row]), state, next_state, led)


def _all_rows(plan: ReadPlan) -> tuple[Rows, OffsetArray]:
    """Every row of the log, and which table it comes from; bad values are errors unless they are skipped."""
    parts: list[Rows] = []
    table: list[OffsetArray] = []
    for number, opened in enumerate(plan.tables):
        decoder = plan.decoder(number)
        intake = Intake(opened, decoder, plan.skip)
        for chunk in opened.chunks(plan.columns[number].names, intake.ragged if plan.skip else None):
            rows = decoder.decode(chunk)
            if not plan.skip:
                intake.admit(rows, chunk)
            parts.append(rows)
            table.append(np.full(len(rows), number, dtype=np.int64))
    return Rows.joined(parts), np.concatenate(table)


def _episodes(rows: Rows, table: OffsetArray, named: bool, by_step: bool) -> OffsetArray:
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


def _split_into_batches(transition: OffsetArray, position: OffsetArray, transitions: int) -> Batches:
    accumulator = BatchAccumulator(transitions)
    order = np.argsort(position, kind="stable")
    accumulator.add(transition[order], position[order])
    return accumulator.finish()
