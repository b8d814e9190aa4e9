"""What is needed to count a part of a log, as plain data that other threads and processes can take.

A log is a sequence of tables (files); a `Part` is a table or some of its row groups.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from tightrope.data.columns import EPISODE, STEP, TIME, RowColumns, unused_names
from tightrope.data.design import absorbing_states
from tightrope.data.engines import DASK, LOCAL, SPARK, Place
from tightrope.data.model_index import ModelIndex, Taken
from tightrope.data.read_options import AS_READ, LogReadOptions
from tightrope.data.row_sequence import NO_TICK, LogShape, Tick
from tightrope.data.rows import EventBatch, RowDecoder, TimeKind, ValueMap
from tightrope.errors import InputError
from tightrope.io.table.arrow import held_table
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
        raise table.error(
            f"it holds the same rows as {first.path}: they would count twice",
            "leave one of the two out; if they are two logs that happen to be equal, give episodes other "
            "names in one of them",
        )


BLOCKS = ("file", "day")
"""Columns that logs of several files or days have besides their own."""


@dataclass(frozen=True)
class Part:
    """Some row groups of a table, or all of it where `groups` is None.

    `first` is the number of rows of the log before it; None where that is known only once these are counted.
    """

    table: int
    groups: range | None
    first: int | None


State = TypeVar("State")


class Engine(Protocol):
    """Reads the parts of a log (`tightrope.data.engines`)."""

    def run(self, work: Work[State], plan: ReadPlan, parts: Sequence[Part]) -> Iterator[State]:
        """What `work` gives for each part, in the order of the parts; plan and states can be pickled."""


def engine_at(place: Place, tables: Sequence[DataTable]) -> AbstractContextManager[Engine | None]:
    """What reads these tables as long as the block lasts; None is this process."""
    if any(table.format.groups_are_parts for table in tables):
        if place.kind == DASK:
            raise InputError('data frames of Spark are read by Spark, not by `engine="dask"`')
        place = Place(SPARK, place.address)
    if place.kind == LOCAL:
        return nullcontext()
    module = import_module(f"tightrope.data.{place.kind}_engine")
    opened: AbstractContextManager[Engine] = module.opened(place)
    return opened


MakeObserver: TypeAlias = Callable[[bool, bool], Any]
"""Makes an observer of events: whether of a part with rows before it, and whether rows are in time."""


@dataclass(frozen=True, eq=False)
class ReadPlan:
    """The tables of one log, the roles of their columns, and the user's statements.

    `by_episodes`: batches end after numbers of episodes. `tick` is the clock's usual step, `time_kind` the
    kind of times; batches end at the times `boundaries`. `observers` see events, too.
    """

    structure: Structure
    tables: Sequence[DataTable]
    columns: Sequence[RowColumns]
    maps: Mapping[str, ValueMap]
    options: LogReadOptions
    model_hash: str = ""
    by_episodes: bool = False
    tick: Tick = NO_TICK
    time_kind: TimeKind | None = None
    boundaries: OffsetArray | None = None
    engine: Engine | None = None
    observers: tuple[MakeObserver, ...] = ()

    def __getstate__(self) -> dict[str, object]:
        own = {k: v for k, v in self.__dict__.items() if k not in ("index", "absorbing")}
        return own | {"engine": None, "options": replace(self.options, progress=None, observers=None)}

    @property
    def roles(self) -> Mapping[str, str]:
        """The columns of the first table by their roles; its shape is that of all."""
        return self.columns[0].roles

    @property
    def skip(self) -> bool:
        """Whether rows that cannot be counted are dropped."""
        return self.options.skip_invalid

    @property
    def cuts_at_end(self) -> bool:
        """Whether episodes that go on are cut at the log's last instant, by a rule."""
        options = self.options
        return options.until_now or options.watched_until is not None or options.gaps is not None

    @property
    def is_in_time(self) -> bool:
        """Whether the times of rows say in which order they happened; the user may state it instead."""
        return TIME in self.roles and self.options.order != AS_READ

    @property
    def has_dates(self) -> bool:
        """Whether times are dates."""
        return self.time_kind is not None and self.time_kind.is_date

    @property
    def lenient(self) -> ReadPlan:
        """The same, dropping rows that cannot be counted."""
        return replace(self, options=replace(self.options, skip_invalid=True))

    @cached_property
    def index(self) -> ModelIndex:
        """Finds states, choices and transitions."""
        return ModelIndex(self.structure)

    @cached_property
    def absorbing(self) -> BoolArray:
        """States that nothing leaves."""
        return absorbing_states(self.structure)

    def holding(self, table: int, batches: Iterable[object]) -> ReadPlan:
        """The same where only these rows of a table are here."""
        held = held_table(self.tables[table], batches)
        return replace(self, tables=[*self.tables[:table], held, *self.tables[table + 1 :]])

    def check_free_columns(self) -> None:
        """Refuse columns that `known` or `ignored` names and the log does not have, or has a use for."""
        pairs = zip(self.tables, self.columns, strict=True)
        free = dict.fromkeys(name for table, own in pairs for name in unused_names(table, own.names))
        for name in (*self.options.names("known"), *self.options.names("ignored")):
            if name not in free and name not in BLOCKS:
                raise self.tables[0].error(
                    f"the column '{name}' is not in the log, or has another role",
                    f"columns without a role: {', '.join(free) or 'none'}",
                )

    def run(self, work: Work[State]) -> Iterator[State]:
        """What some work gives for each part, in the order of parts: in threads, or where the engine is."""
        parts = self.parts()
        if self.engine is not None:
            return self.engine.run(work, self, parts)
        assert self.index is not None and self.absorbing is not None  # what threads share is made before
        return in_threads(self.workers, partial(work, self), parts)

    @property
    def workers(self) -> int:
        """How many threads have something to do."""
        return min(self.options.threads or os.cpu_count() or 1, len(self.parts()))

    def decoder(self, table: int) -> RowDecoder:
        path = self.tables[table].path
        return RowDecoder(self.columns[table], self.maps, self.index, path, self.time_kind)

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
        return inside & self.absorbing[np.where(inside, there, 0)]

    def shape(self, table: int) -> LogShape:
        """What the rows of a table have."""
        own, roles = self.columns[table], self.columns[table].roles
        has = (EPISODE in roles, STEP in roles, TIME in roles)
        return LogShape(*has, bool(own.ends), own.from_next_row)

    def parts(self) -> list[Part]:
        """The log cut into parts, in order; text files are one part each."""
        result: list[Part] = []
        first: int | None = 0
        for number, table in enumerate(self.tables):
            if table.group_rows is None:
                result.append(Part(number, None, first))
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
                    result.append(Part(number, range(begin, end), first))
                first = None if first is None else first + rows
                begin = end
        return result


Work: TypeAlias = Callable[[ReadPlan, Part], State]
