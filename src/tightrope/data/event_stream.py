"""A log as the sequence of its events, chunk by chunk, for whoever watches rather than counts.

Rows are read and checked exactly as for counting (`tightrope.data.counting`), with one difference: an outcome
that the model excludes, a successor without a transition or outside of the reachable states, is an event,
too. It is evidence about the model and not a fault of the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tightrope.data.batches import BatchAccumulator
from tightrope.data.counting import PartCounter
from tightrope.data.follow import MISSING, OUT_OF_ORDER, Marks
from tightrope.data.intake import Intake
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.rows import Rows
from tightrope.errors import InputError, Location
from tightrope.formats.table.data_table import Chunk
from tightrope.formats.table.problems import Problem
from tightrope.numerics.arrays import BoolArray, OffsetArray

EXCLUDED = (Problem.IMPOSSIBLE_TRANSITION, Problem.UNKNOWN_NEXT_STATE)
"""What is wrong with an outcome that the model does not know."""


@dataclass(frozen=True)
class Excluded:
    """An outcome that the model excludes: its row in the chunk, from 0, and what it is."""

    row: int
    text: str


@dataclass(frozen=True)
class Events:
    """Transitions in the order in which they happened, by rows of a chunk, and what happened beside them.

    `begins` says which of them are the first of an episode; that of the first row of a log that grows may be
    said of one that goes on.
    """

    transition: OffsetArray
    row: OffsetArray
    begins: BoolArray
    excluded: tuple[Excluded, ...]
    rows: int

    def since(self, row: int) -> Events:
        """Those from a row on."""
        kept = self.row >= row
        excluded = tuple(one for one in self.excluded if one.row >= row)
        return Events(self.transition[kept], self.row[kept], self.begins[kept], excluded, self.rows)


def follow_events(
    plan: ReadPlan, table: int, take: Callable[[Events], None], strict: bool = False
) -> tuple[int, Counter[str]]:
    """Hand over the events of one table as they are read; how many rows it has, and what is left out of it.

    With `strict` an outcome that the model excludes is an error, as it is for counting. Rows that are out of
    order are one, too: what came later may depend on what came before, so that no other order will do.
    """
    part = Part(table, None, 0, None)
    follower = _Follower(plan, part, take, strict)
    follower.count(None)
    dropped = follower.intake.dropped
    missing = int(follower.state.notes[MISSING])
    if missing:
        dropped[Problem.MISSING_STEP.words] += missing
    return follower.intake.rows, dropped


class _Collector(BatchAccumulator):
    """Keeps the transitions of one chunk instead of counting them."""

    def __init__(self) -> None:
        super().__init__(0)
        self.transition: OffsetArray = np.empty(0, dtype=np.int64)
        self.position: OffsetArray = np.empty(0, dtype=np.int64)

    def add(self, transition: OffsetArray, position: OffsetArray) -> None:
        self.transition, self.position = transition, position

    def parts(self) -> list[tuple[OffsetArray, OffsetArray]]:
        return []


class _LenientIntake(Intake):
    """Lets outcomes that the model excludes pass by, and remembers them."""

    def __init__(self, plan: ReadPlan, part: Part):
        table = plan.tables[part.table]
        super().__init__(table, plan.decoder(part.table), plan.skip)
        self.excluded: list[tuple[int, str]] = []

    def admit(self, rows: Rows, chunk: Chunk | None = None, before: int = 0) -> BoolArray:
        outside: BoolArray = np.isin(rows.problems, EXCLUDED)
        for row in np.flatnonzero(outside).tolist():
            problem, number = Problem(rows.problems[row]), int(rows.number[row])
            error = self.error_of(
                number, problem, int(rows.state[row]), int(rows.next_state[row]), before, chunk
            )
            self.excluded.append((number, str(error).split("\n")[0]))
        rows.problems[outside] = Problem.NONE
        return super().admit(rows, chunk, before) & ~outside


class _Follower(PartCounter):
    """Follows one table and hands over every chunk."""

    def __init__(self, plan: ReadPlan, part: Part, take: Callable[[Events], None], strict: bool):
        super().__init__(plan, part, 0)
        self.collector = _Collector()
        self.accumulator = self.collector
        self.take = take
        self.lenient = _LenientIntake(plan, part)
        if not strict:
            self.intake = self.lenient
        self.beginning: OffsetArray = np.empty(0, dtype=np.int64)
        self.tail_begins = False

    def _follow(self, rows: Rows, start: int) -> Marks:
        marks = super()._follow(rows, start)
        begins = marks.is_new.copy()
        if start:
            begins[0] = self.tail_begins
        self.beginning = rows.number[begins]
        self.tail_begins = bool(len(begins)) and bool(begins[-1])
        return marks

    def _count_chunk(self, chunk: Chunk) -> None:
        super()._count_chunk(chunk)
        if self.state.notes[OUT_OF_ORDER]:
            raise InputError(
                "the rows are not in their order in time, by which alone they can be watched",
                Location(self.table.path),
                "sort them by episode and step",
            )
        assert self.first_row is not None
        shift = chunk.first_row - self.first_row + self.first
        row = self.collector.position - shift
        excluded = tuple(Excluded(number - chunk.first_row, text) for number, text in self.lenient.excluded)
        self.lenient.excluded.clear()
        flags: BoolArray = np.zeros(chunk.rows + 1, dtype=np.bool_)
        flags[self.beginning - chunk.first_row + 1] = True  # row −1 waited for this chunk
        self.take(Events(self.collector.transition, row, flags[row + 1], excluded, chunk.rows))


def split_at_excluded(events: Events) -> Iterator[tuple[OffsetArray, BoolArray] | Excluded]:
    """Transitions (with which of them begin an episode) and what the model excludes, one after the other."""
    first = 0
    for excluded in events.excluded:
        end = int(np.searchsorted(events.row, excluded.row))
        yield events.transition[first:end], events.begins[first:end]
        yield excluded
        first = end
    yield events.transition[first:], events.begins[first:]
