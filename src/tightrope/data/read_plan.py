"""Everything needed to count a part of a log, as plain data: parts can be counted in other threads and
processes.

A log is a sequence of tables (files); a `Part` is a table or some of its row groups. `ReadPlan` says what the
columns of each table mean for which model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from tightrope.data.columns import EPISODE, STEP, TIME, RowColumns, unused_names
from tightrope.data.design import absorbing_states
from tightrope.data.model_index import ModelIndex, Taken
from tightrope.data.row_sequence import (
    FROM_NEXT_ROW,
    HAS_ENDS,
    HAS_EPISODES,
    HAS_STEPS,
    HAS_TIME,
    NO_TICK,
    Tick,
)
from tightrope.data.row_validation import RowValidation
from tightrope.data.rows import EventBatch, RowDecoder, TimeKind, ValueMap
from tightrope.errors import InputError, Location
from tightrope.io.table.columns import ProblemCodes
from tightrope.io.table.data_table import DataTable
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.provenance import Provenance

PART_ROWS = 1 << 20
"""Rows of a part that is cut out of a Parquet file: whole row groups, until there are so many."""


Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def in_threads(threads: int, work: Callable[[Task], Outcome], tasks: Sequence[Task]) -> Iterator[Outcome]:
    """The outcomes of all tasks, in their order; no more than a few are in memory at once."""
    if threads < 2:
        yield from map(work, tasks)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: deque[Future[Outcome]] = deque()
        waiting = deque(tasks)
        try:
            while running or waiting:
                while waiting and len(running) < threads + 1:
                    running.append(pool.submit(work, waiting.popleft()))
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def refuse_copy(held: dict[Provenance, DataTable], table: DataTable, rows: Provenance) -> None:
    """Refuse the rows of a table before, written in another way; chance hardly makes two logs the same."""
    first = held.setdefault(rows, table)
    if first is not table and rows.is_telling:
        raise InputError(
            f"it holds the same rows as {first.path}: they would count twice",
            Location(table.path),
            "leave one of the two out; if they are two logs that happen to be equal, give episodes other "
            "names in one of them",
        )


@dataclass(frozen=True)
class Part:
    """Some row groups of a table, or all of it where `groups` is None.

    `first` is the number of rows of the log before it; None where that is known only once these are counted.
    """

    table: int
    groups: range | None
    first: int | None
    rows: int | None


State = TypeVar("State")


class Engine(Protocol):
    """Reads the parts of a log (`tightrope.data.engines`)."""

    def run(self, work: Work[State], plan: ReadPlan, parts: Sequence[Part]) -> Iterator[State]:
        """What `work` gives for each part, in the order of the parts; plan and states can be pickled."""


class MakeObserver(Protocol):
    """Makes an observer of a log's events (`tightrope.data.fold`). `is_later`: of a part, with rows before
    it. `is_ordered`: events come in the order in which they happened."""

    def __call__(self, is_later: bool, is_ordered: bool) -> Any: ...


@dataclass(frozen=True, eq=False)
class ReadPlan:
    """The tables of one log, what their columns mean, and what to do with bad rows.

    `engine` reads its parts, where this process does not. `by_episodes`: batches end after numbers of
    episodes. `tick` is the usual step of the log's clock. `until_now`: episodes that go on are cut at the
    log's last instant. `outages`: what is missing within episodes is so for reasons of its own. `boundaries`
    are the times at which batches end, where times say it. `time_kind`: what times are, in all tables.
    `known` are columns without a role that were written before the outcomes of their rows, `ignored` those
    that are not looked at. `observers` make what takes the events of the log, beside counting.
    """

    structure: Structure
    tables: Sequence[DataTable]
    columns: Sequence[RowColumns]
    maps: Mapping[str, ValueMap] = field(default_factory=dict)
    skip: bool = False
    by_episodes: bool = False
    tick: Tick = NO_TICK
    until_now: bool = False
    outages: bool = False
    drop_copies: bool = False
    has_number_times: bool = False
    time_kind: TimeKind | None = None
    boundaries: OffsetArray | None = None
    engine: Engine | None = None
    known: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    observers: tuple[MakeObserver, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("index", "absorbing")} | {"engine": None}

    @cached_property
    def index(self) -> ModelIndex:
        """Finds states, choices and transitions."""
        return ModelIndex(self.structure)

    @cached_property
    def absorbing(self) -> BoolArray:
        """States that nothing leaves."""
        return absorbing_states(self.structure)

    def check_free_columns(self) -> None:
        """Refuse columns that `known` or `ignored` names and the log does not have, or has a use for."""
        pairs = zip(self.tables, self.columns, strict=True)
        free = dict.fromkeys(name for table, own in pairs for name in unused_names(table, own.names))
        for name in (*self.known, *self.ignored):
            if name not in free:
                raise InputError(
                    f"the log has no column '{name}' without a role",
                    Location(self.tables[0].path),
                    f"it has: {', '.join(free) or 'none'}",
                )

    def prepare(self) -> None:
        """Build what threads share, before there are several."""
        assert self.index is not None and self.absorbing is not None

    def decoder(self, table: int) -> RowDecoder:
        path = self.tables[table].path
        return RowDecoder(self.columns[table], self.maps, self.index, path, self.time_kind)

    def validation(self, table: int) -> RowValidation:
        """What says what is wrong with the rows of a table."""
        return RowValidation(self.tables[table], self.decoder(table))

    def transitions(
        self, state: OffsetArray, taken: Taken, next_state: OffsetArray, problems: ProblemCodes
    ) -> OffsetArray:
        """The transitions of rows that say where they lead; those that the model lacks are marked."""
        return self.index.transitions(state, taken, next_state, problems)

    @property
    def is_timed(self) -> bool:
        """Whether the log is in continuous time: rows are sojourns."""
        return False

    def names_of(self, episode: OffsetArray, number: OffsetArray, table: int = 0) -> OffsetArray:
        """What tells episodes apart: their names, or, where there are none, the numbers of rows, negated."""
        return episode & np.int64(2**63 - 1) if EPISODE in self.columns[table].roles else -number

    def leads_nowhere(self, rows: EventBatch, table: int = 0) -> BoolArray:
        """Which rows lead to states that nothing leaves, or stand in one where the next row says it."""
        there = rows.state if self.columns[table].from_next_row else rows.next_state
        inside = (there >= 0) & (there < self.structure.states)
        result: BoolArray = inside & self.absorbing[np.where(inside, there, 0)]
        return result

    def bits(self, table: int) -> int:
        """What the table has, as `follow` takes it."""
        columns = self.columns[table]
        has = {
            HAS_EPISODES: EPISODE in columns.roles,
            HAS_STEPS: STEP in columns.roles,
            HAS_TIME: TIME in columns.roles,
            HAS_ENDS: bool(columns.ends),
            FROM_NEXT_ROW: columns.from_next_row,
        }
        return sum(bit for bit, is_there in has.items() if is_there)

    def parts(self) -> list[Part]:
        """The log cut into parts, in order; text files are one part each."""
        result: list[Part] = []
        first: int | None = 0
        for number, table in enumerate(self.tables):
            if table.group_rows is None:
                result.append(Part(number, None, first, None))
                first = None
                continue
            begin = 0
            while begin < len(table.group_rows):
                end, rows = begin, 0
                most = 0 if table.format.groups_are_parts else PART_ROWS
                while end < len(table.group_rows) and (end == begin or rows < most):
                    rows += table.group_rows[end]
                    end += 1
                if rows:
                    result.append(Part(number, range(begin, end), first, rows))
                first = None if first is None else first + rows
                begin = end
        return result


Work: TypeAlias = Callable[[ReadPlan, Part], State]
