"""The map of counting: one part of a log to its partial counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from tightrope.data.batches import BatchAccumulator, BatchCounter
from tightrope.data.column_names import COST, EPISODE, STEP
from tightrope.data.costs import CostTally
from tightrope.data.follow import NEXT, FollowState, Marks, follow
from tightrope.data.intake import Intake
from tightrope.data.partial import Partial, locate_known
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.rows import Rows
from tightrope.io.table.data_table import Chunk
from tightrope.numerics.arrays import BoolArray, OffsetArray

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
        self.intake = Intake(self.table, self.decoder, plan.skip)
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
            self.columns.names, self.intake.ragged if skips_ragged else None, self.part.groups
        ):
            if self.first_row is None:
                self.first_row = chunk.first_row
            self._count_chunk(chunk)
            if watch is not None:
                watch(chunk.rows, max(0, chunk.bytes_read - read))
                read = chunk.bytes_read
        if self.tail is not None and self.columns.from_next_row and not self.plan.skip:
            self.intake.check(self.tail)
        return Partial(
            self.part.table,
            self.intake.rows,
            self.accumulator.parts(),
            Counter(self.intake.dropped),
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
        self.intake.rows += chunk.rows
        if self.columns.from_next_row:
            waiting = self.tail
            if waiting is not None:
                rows = Rows.joined([waiting, rows])
            self._follow(rows, 0 if waiting is None else 1)
            self.tail, rows = rows[-1:], rows[:-1]
            transition, lost = locate_known(self.plan, rows)
            self.lost += lost
            kept = self.intake.admit(rows, chunk) & (transition >= 0)
        else:
            before = int(self.state.carry[NEXT])
            transition = self.plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
            self._follow(rows, 0)
            self.tail = rows[-1:]
            kept = self.intake.admit(rows, chunk, before)
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
