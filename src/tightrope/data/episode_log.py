"""The rows of a log, one by one, in the order in which they may be processed, for tests by more than counts.

Rows are ordered by time where the log has one clock for all episodes, else as they stand: what comes before a
row is what may have been known there. A first part of them is as good, so logs longer than `MOST` rows are
cut, and say so. Episodes are followed by their names (`tightrope.data.fold`); where rows of an episode are
out of order, all are sorted first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from tightrope.data.columns import TIME
from tightrope.data.counts import MOST, BatchCounter, Counts, LazyLog, batch_ends
from tightrope.data.design import SamplingDesign, absorbing_states
from tightrope.data.fold import Collector, Excluded, Fold
from tightrope.data.free_columns import LogColumn, by_appearance, columns_of, free_columns
from tightrope.data.read_plan import ReadPlan
from tightrope.data.row_sequence import EPISODES, OUT_OF_ORDER, START_HIGH, START_LOW, Tick
from tightrope.data.rows import TimeKind
from tightrope.data.time_order import fold_sorted
from tightrope.errors import InputError
from tightrope.model.policy import HasStructure
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.provenance import Provenance, RowTally, transition_marks


@dataclass(frozen=True, eq=False, repr=False)
class EpisodeLog(Record):
    """Rows in the order in which they are processed.

    `previous` is the row before in the same episode that a row continues without a gap, else −1. Episodes
    are numbered by their first rows; `over` says of each whether the log marks it as over (and not as
    truncated), or it ended in a state that nothing leaves. `excluded` are outcomes that the model does not
    know, each with the number of rows before it. `rows_left_out` are those beyond the first `MOST`.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})])
    >>> log = tr.read_data([[(0, "go", 0), (0, "go", 1)], [(0, "go", 1)]], model).counts.log()
    >>> log.previous.tolist(), log.episode.tolist(), log.over.tolist()
    ([-1, 0, -1], [0, 0, 1], [True, True])
    """

    transition: IndexArray
    previous: IndexArray
    episode: IndexArray
    over: BoolArray
    model_hash: str
    time: FloatArray | None = None
    columns: Mapping[str, LogColumn] = field(default_factory=dict)
    excluded: tuple[Excluded, ...] = ()
    rows_left_out: int = 0
    names: OffsetArray | None = None
    """Of each row, what tells its episode from others in files (`ReadPlan.names_of`); None: its number."""

    def __post_init__(self) -> None:
        if not len(self.transition) == len(self.previous) == len(self.episode):
            raise ValueError("a log has one transition, predecessor and episode a row")
        if np.any(self.previous >= np.arange(len(self.previous))):
            raise ValueError("a row continues one that comes before it")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        freeze_fields(self)

    @staticmethod
    def of_parts(parts: Sequence[OffsetArray], structure: Structure, model_hash: str) -> EpisodeLog:
        """Whole episodes, by the transitions of each; some may be empty."""
        episode = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return EpisodeLog.of_episodes(
            np.concatenate([np.empty(0, np.int64), *parts]), episode, len(parts), structure, model_hash
        )

    @staticmethod
    def of_episodes(
        transition: OffsetArray, episode: OffsetArray, episodes: int, structure: Structure, model_hash: str
    ) -> EpisodeLog:
        """Whole episodes, one after the other, numbered from 0; some may be empty."""
        row = np.arange(len(transition), dtype=np.int32)
        continues = np.r_[False, np.diff(episode) == 0][: len(row)]
        nowhere = absorbing_states(structure)
        over = np.zeros(episodes, dtype=np.bool_)
        over[episode[nowhere[structure.successor[transition]]]] = True
        if nowhere[structure.initial]:
            over[:] = True
        return EpisodeLog(
            transition.astype(np.int32),
            np.where(continues, row - 1, -1).astype(np.int32),
            episode.astype(np.int32),
            over,
            model_hash,
        )

    def __len__(self) -> int:
        return len(self.transition)

    def provenance(self, structure: Structure) -> Provenance:
        """Which rows these are."""
        order = np.argsort(self.episode, kind="stable")
        mark = transition_marks(structure)[self.transition[order]]
        tally, names = RowTally(), self.episode.astype(np.int64) if self.names is None else self.names
        tally.add(mark, names[order])
        return tally.finish(self.episodes)

    @property
    def episodes(self) -> int:
        return len(self.over)

    @property
    def begins(self) -> BoolArray:
        """Which rows are the first of their episode."""
        result: BoolArray = np.zeros(len(self), dtype=np.bool_)
        result[np.unique(self.episode, return_index=True)[1]] = True
        return result

    def choice(self, structure: Structure) -> IndexArray:
        """The choice of each row."""
        result: IndexArray = structure.transition_choice[self.transition]
        return result

    def state(self, structure: Structure) -> IndexArray:
        """The state that each row leaves."""
        result: IndexArray = structure.choice_state[self.choice(structure)]
        return result

    def by_unit(self, column: str) -> IndexArray:
        """What a column says of each episode, by its first row that has a value; −1 where none has."""
        code = self.columns[column].code
        rows = np.flatnonzero(code >= 0)[::-1]
        result: IndexArray = np.full(self.episodes, -1, dtype=np.int32)
        result[self.episode[rows]] = code[rows]
        return result

    def subset(self, episodes: BoolArray) -> EpisodeLog:
        """Some episodes alone, numbered anew."""
        number = np.cumsum(episodes) - 1
        return self._select(episodes[self.episode], number, self.over[episodes])

    def first(self, rows: int) -> EpisodeLog:
        """The first rows alone."""
        if rows >= len(self):
            return self
        episodes = int(self.episode[:rows].max(initial=-1)) + 1
        over = self.over[:episodes].copy()
        over[self.episode[rows:][self.episode[rows:] < episodes]] = False
        part = self._select(np.arange(len(self)) < rows, np.arange(self.episodes), over)
        return replace(part, rows_left_out=self.rows_left_out + len(self) - rows)

    def since(self, row: int) -> EpisodeLog:
        """The rows from number `row` on, from 0."""
        later = np.arange(len(self)) >= row
        names, numbers = by_appearance(self.episode[row:])
        number = np.zeros(self.episodes, dtype=np.int64)
        number[self.episode[row:]] = numbers
        return self._select(later, number, self.over[names])

    def select(self, rows: BoolArray) -> EpisodeLog:
        """Some rows alone, chosen by what was known before them; episodes keep their numbers."""
        return self._select(rows, np.arange(self.episodes), self.over)

    def _select(self, rows: BoolArray, number: OffsetArray, over: BoolArray) -> EpisodeLog:
        place = np.r_[np.cumsum(rows) - 1, -1]
        previous = np.where(self.previous >= 0, rows[self.previous], False)
        return replace(
            self,
            transition=self.transition[rows],
            previous=np.where(previous, place[self.previous], -1)[rows].astype(np.int32),
            episode=number[self.episode[rows]].astype(np.int32),
            over=over,
            time=None if self.time is None else self.time[rows],
            names=(self.episode.astype(np.int64) if self.names is None else self.names)[rows],
            columns={name: column.select(rows) for name, column in self.columns.items()},
            excluded=tuple(
                replace(one, row=int(place[one.row - 1]) + 1)
                for one in self.excluded
                if one.row == 0 or rows[one.row - 1]
            ),
        )

    def __add__(self, later: EpisodeLog) -> EpisodeLog:
        """These rows, then the later ones, which are of other episodes."""
        if self.model_hash != later.model_hash:
            raise InputError("logs of two different models cannot be added")
        shift, names = len(self), dict.fromkeys([*self.columns, *later.columns])
        time = None
        if self.time is not None and later.time is not None:
            time = np.concatenate([self.time, later.time])
        previous = np.where(later.previous >= 0, later.previous + shift, -1)
        both = EpisodeLog(
            np.concatenate([self.transition, later.transition]),
            np.concatenate([self.previous, previous.astype(np.int32)]),
            np.concatenate([self.episode, later.episode + np.int32(self.episodes)]),
            np.concatenate([self.over, later.over]),
            self.model_hash,
            time,
            {name: _column(self, name).joined(_column(later, name)) for name in names},
            (*self.excluded, *(replace(one, row=one.row + shift) for one in later.excluded)),
            self.rows_left_out + later.rows_left_out,
            None if self.names is None or later.names is None else np.concatenate([self.names, later.names]),
        )
        if self.rows_left_out:
            return replace(self, rows_left_out=both.rows_left_out + len(later))
        return both.first(MOST)

    def counts(self, model: HasStructure, design: SamplingDesign) -> Counts:
        """The counts of these rows under a design, of which numbers of episodes and steps are these rows'."""
        structure: Structure = model.structure
        if structure.transitions <= int(self.transition.max(initial=-1)):
            raise InputError("the log is of another model, with other transitions")
        counter = BatchCounter()
        place = np.arange(len(self), dtype=np.int64)
        if design.by_episodes:
            place = np.maximum.accumulate(self.episode.astype(np.int64))
        counter.add_at(self.transition.astype(np.int64), place)
        planned = design.planned if design.planned == self.episodes else None
        design = replace(design, episodes=self.episodes, steps=len(self), planned=planned)
        batches = counter.finish(len(batch_ends(self.episodes)) if design.by_episodes else 0)
        counts = Counts.from_batches(batches, structure.transition_start, design, self.model_hash)
        return replace(counts, log=LazyLog(lambda: self.first(MOST), structure))

    def _title_(self) -> str:
        return f"EpisodeLog: {len(self):,} rows of {self.episodes:,} episodes"

    def _facts_(self) -> Facts:
        columns = ", ".join(f"{name} ({len(one.labels):,})" for name, one in self.columns.items())
        facts = [("over", f"{int(self.over.sum()):,} episodes"), ("columns", columns or "none")]
        facts += [("excluded", one.text) for one in self.excluded[:3]]
        return facts + ([("left out", f"{self.rows_left_out:,} rows")] if self.rows_left_out else [])


def _column(log: EpisodeLog, name: str) -> LogColumn:
    nothing: IndexArray = np.full(len(log), -1, dtype=np.int32)
    return log.columns.get(name, LogColumn(nothing, (), np.full(len(log), np.nan)))


def _fold_rows(plan: ReadPlan, excludes: bool, most: int | None) -> tuple[Fold, Collector]:
    """All rows as they stand, or sorted within their episodes where some are out of order; `most` of those
    that are in order.
    """
    fields = (
        "place",
        "transition",
        "origin",
        "time",
        "episode",
        "number",
        "since_start",
        "before",
        "is_over",
    )
    rows, beside = Collector(*fields), free_columns(plan)
    fold = Fold(plan, (rows,), by_name=True, excludes=excludes, beside=beside)
    for number in range(len(plan.tables)):
        for chunk in fold.chunks(number):
            fold.update(chunk, number)
            notes = fold.notes
            late = fold.has_steps and notes[EPISODES] > 0 and notes[START_LOW] < notes[START_HIGH]
            if (notes[OUT_OF_ORDER] or late) and (fold.named or fold.has_time):
                rows = Collector(*fields)
                return fold_sorted(plan, (rows,), excludes, beside)[0], rows
            if most is not None and fold.rows >= most:
                return fold, rows
    fold.finish()
    return fold, rows


def read_rows(plan: ReadPlan, in_time: bool, strict: bool = False, most: int | None = None) -> EpisodeLog:
    """The rows of a log whose columns are known; `in_time`: one clock runs for all its episodes.

    With `strict` an outcome that the model excludes is an error, as it is for counting. The first `most` rows
    of a log that is in order are read alone.
    """
    fold, collection = _fold_rows(plan, not strict, most)
    held = collection.finish()
    over, counted = held["origin"][held["is_over"].astype(np.bool_)], np.flatnonzero(held["transition"] >= 0)
    held = {name: one[counted] for name, one in held.items()}
    has_time = TIME in plan.roles
    order = np.arange(len(counted)) if fold.is_sorted else np.argsort(held["place"])
    if has_time and in_time:
        order = order[np.argsort(held["time"][order], kind="stable")]
    held_most = MOST if most is None else most
    left_out, order = max(0, len(order) - held_most), order[:held_most]
    previous = _previous(held["origin"], held["since_start"], held["before"], order)
    held = {name: one[order] for name, one in held.items()}
    episodes, numbers = by_appearance(held["origin"])
    excluded = []
    for here, one in fold.excluded:
        by_place = (np.maximum.accumulate(held["place"]), here)
        rises, at = (held["time"], one.time) if has_time and in_time else by_place
        excluded.append(replace(one, row=int(np.searchsorted(rises, at))))
    return EpisodeLog(
        held["transition"].astype(np.int32),
        previous,
        numbers,
        np.isin(episodes, over),
        plan.model_hash,
        _clock(held["time"], plan.time_kind) if has_time else None,
        columns_of(plan.columns, fold.beside, held, len(episodes)),
        tuple(sorted(excluded, key=lambda one: one.row)) if not left_out else (),
        left_out,
        plan.names_of(held["episode"], held["number"]),
    )


def _previous(
    episode: OffsetArray, since: OffsetArray, before: OffsetArray, order: OffsetArray
) -> IndexArray:
    """The row that each row in an order continues, where that is among them."""
    grouped = np.lexsort((since, episode))
    follows = (np.diff(episode[grouped]) == 0) & (before[grouped[1:]] >= 0)
    row = np.full(len(episode) + 1, -1, dtype=np.int64)
    row[grouped[1:][follows]] = grouped[:-1][follows]
    place = np.full(len(episode) + 1, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    result = place[row[order]]
    return np.where(result < np.arange(len(order)), result, -1).astype(np.int32)


def _clock(time: OffsetArray, kind: TimeKind | None) -> FloatArray:
    """Times as numbers: as they are, dates in seconds."""
    clock = Tick(1.0, kind is TimeKind.FLOAT).clock(time)
    return clock / 1e9 if kind is TimeKind.DATE else clock
