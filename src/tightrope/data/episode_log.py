"""The rows of a log, as a whole or as a stream of events, for tests that need more than counts.

Rows are ordered by time if all episodes have one clock, otherwise as they stand. An `EpisodeLog` has at most
`MOST` rows and says so. An outcome that the model excludes is an event: evidence about the model.

Events are numbered from 1, as in `watch`. If earlier events are excluded (`Recent`), the confidence holds
only if that was decided without the events used: the first one was fixed in advance, or follows from earlier
ones, such as an alarm. An estimated change point and the start of a window do not qualify. The user states
after how many events the decision was made (`chosen_at`; 0 for a plan); the result is nominal unless all of
these precede the first event used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from tightrope.data.columns import TIME
from tightrope.data.counts import MOST, BatchCounter, Counts, LazyLog, batch_ends
from tightrope.data.design import SamplingDesign, SamplingKind, absorbing_states
from tightrope.data.fit_tables import mixed_bits
from tightrope.data.fold import OUTSIDE, Collector, Excluded, Fold, NotInTime, fold_log
from tightrope.data.free_columns import MOST_LABELS, LogColumn, by_appearance, columns_of, free_columns
from tightrope.data.model_index import UNKNOWN
from tightrope.data.read_options import Recent
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.row_sequence import HOLES, MISSING, Tick
from tightrope.data.rows import TABLE, TimeKind
from tightrope.data.time_order import times_fall
from tightrope.errors import InputError
from tightrope.io.table.columns import RowProblem
from tightrope.model.structure import Structure, Structured
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.provenance import Provenance, RowTally, row_marks


@dataclass(frozen=True, eq=False, repr=False)
class EpisodeLog(Record):
    """Rows in the order in which they are processed.

    `previous` is the row of the same episode that a row continues without a gap, else −1. Episodes are
    numbered by their first rows; `over` says whether the episode ended, by the log or in an absorbing state.
    `excluded` are impossible outcomes, with the number of rows before each. `rows_left_out` are those beyond
    `MOST`.

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
        transition = np.concatenate([np.empty(0, np.int64), *parts])
        return EpisodeLog.of_episodes(transition, episode, len(parts), structure, model_hash)

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
        order, _ = self.by_episode()
        mark = row_marks(structure, self.transition[order])
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
        return structure.transition_choice[self.transition]

    def state(self, structure: Structure) -> IndexArray:
        """The state that each row leaves."""
        return structure.choice_state[self.choice(structure)]

    def by_episode(self) -> tuple[OffsetArray, OffsetArray]:
        """The rows, sorted by episode, and where those of each begin."""
        order = np.argsort(self.episode, kind="stable")
        return order, np.r_[0, np.cumsum(np.bincount(self.episode, minlength=self.episodes))]

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

    def counts(self, model: Structured, design: SamplingDesign) -> Counts:
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


_KEPT = ["place", "transition", "origin", "time", "episode", "number", "since_start", "before", "is_over"]


def _row_fold(
    plan: ReadPlan, part: Part | None = None, excludes: bool = False, is_sorted: bool = False
) -> Fold:
    """A fold that keeps the rows of a log, or of a part of it."""
    rows, beside = Collector(*_KEPT), free_columns(plan)
    return Fold(plan, (rows,), by_name=True, is_sorted=is_sorted, part=part, excludes=excludes, beside=beside)


def _fold_rows(plan: ReadPlan, excludes: bool, most: int | None) -> Fold:
    """All rows as they stand, or sorted where some are out of order; `most` of those that are in order."""
    fold = _row_fold(plan, excludes=excludes)
    try:
        for number in range(len(plan.tables)):
            for chunk in fold.chunks(number):
                fold.update(chunk, number)
                if fold.is_out_of_order and (fold.named or fold.has_time):
                    raise NotInTime("rows of an episode are out of order")
                if most is not None and fold.rows >= most:
                    return fold
        fold.finish()
    except InputError as error:
        if not (isinstance(error, NotInTime) or times_fall(plan)):
            raise
        return fold_log(plan, partial(_row_fold, excludes=excludes, is_sorted=True))
    return fold


def read_rows(plan: ReadPlan, in_time: bool, strict: bool = False, most: int | None = None) -> EpisodeLog:
    """The rows of a log, the first `most` of one that is in order; `in_time`: all episodes have one clock.

    With `strict` an outcome that the model excludes is an error, as it is for counting.
    """
    fold = _fold_rows(plan, not strict, most)
    held = fold.observers[0].finish()
    is_outside, has_time = held["transition"] == OUTSIDE, TIME in plan.roles
    over = held["origin"][held["is_over"] & ~is_outside]
    order = np.arange(len(held["place"])) if fold.is_sorted else np.argsort(held["place"])
    names = plan.names_of(held["episode"], held["number"])
    if plan.is_in_time and in_time:
        order = order[_order_in_time(held["time"][order], names[order])]
    is_row, outside = held["transition"][order] >= 0, np.flatnonzero(is_outside[order])
    texts = [fold.excluded[place] for place in held["place"][order[outside]].tolist()]
    excluded = tuple(map(Excluded, np.cumsum(is_row)[outside].tolist(), texts))
    held_most = MOST if most is None else most
    left_out, order = max(0, int(is_row.sum()) - held_most), order[is_row][:held_most]
    previous = _previous(held["origin"], held["since_start"], held["before"], order)
    held = {name: one[order] for name, one in held.items()}
    episodes, numbers = by_appearance(held["origin"])
    return EpisodeLog(
        held["transition"].astype(np.int32),
        previous,
        numbers,
        np.isin(episodes, over),
        plan.model_hash,
        _clock(plan, held["time"]) if has_time else None,
        columns_of(plan.columns, fold.beside, held, len(episodes)) | _blocks(plan, fold, held, numbers),
        excluded if not left_out else (),
        left_out,
        names[order],
    )


def _order_in_time(time: OffsetArray, names: OffsetArray) -> OffsetArray:
    """The order of times. Episodes at one instant have none, and that of the file may follow their outcomes:
    they stand in one drawn by their names."""
    return np.lexsort((mixed_bits(names), time))


def _blocks(
    plan: ReadPlan, fold: Fold, held: Mapping[str, OffsetArray], episode: IndexArray
) -> dict[str, LogColumn]:
    """Blocks of episodes that no column names: the file and the day in which each of them begins."""
    begin = np.unique(episode, return_index=True)[1]
    blocks = {"file": held["place"] >> TABLE}
    if TIME in plan.roles and plan.has_dates:
        blocks["day"] = (_clock(plan, held["time"]) // 86_400).astype(np.int64)
    result, ignored = {}, (*fold.beside, *plan.options.names("ignored"))
    for name, block in blocks.items():
        seen, code = by_appearance(block[begin])
        if 1 < len(seen) <= MOST_LABELS and name not in ignored:
            places = seen.tolist()
            paths = name == "file"
            shown = [plan.tables[at].path if paths else str(np.datetime64(at, "D")) for at in places]
            is_known = name in plan.options.names("known")
            result[name] = LogColumn(code[episode], tuple(shown), is_known=is_known)
    return result


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


def _clock(plan: ReadPlan, time: OffsetArray) -> FloatArray:
    """Times as numbers: as they are, dates in seconds."""
    clock = Tick(1.0, plan.time_kind is TimeKind.FLOAT).clock(time)
    return clock / 1e9 if plan.has_dates else clock


BLOCK = 1 << 18
"""Events that are handed over at once."""


@dataclass(frozen=True)
class LogEvents:
    """Events in the order in which they happened: their transitions (`OUTSIDE` where the model excludes it,
    of which `texts` say what it is, by the places of rows), the places and times of their rows, and names of
    their episodes.

    `begins` says which of them are the first of an episode; that of the first row of a log that grows may be
    said of one that goes on. So many `rows` of the log are settled with these.
    """

    transition: OffsetArray
    place: OffsetArray
    begins: BoolArray
    time: OffsetArray
    names: OffsetArray
    texts: Mapping[int, str]
    rows: int = 0

    def __getitem__(self, part: slice | OffsetArray) -> LogEvents:
        """Some of them."""
        return replace(self, **{name: getattr(self, name)[part] for name in _OF_EVENTS})

    def since(self, row: int) -> LogEvents:
        """Those from a row of the table on, from 1."""
        return self[np.flatnonzero(self.place & ((1 << TABLE) - 1) >= row)]

    def split(self) -> Iterator[tuple[OffsetArray, BoolArray] | Excluded]:
        """Transitions (with which of them begin an episode) and what is excluded, one after the other."""
        first = 0
        for end in np.flatnonzero(self.transition == OUTSIDE).tolist():
            yield self.transition[first:end], self.begins[first:end]
            yield Excluded(end, self.texts[int(self.place[end])])
            first = end + 1
        yield self.transition[first:], self.begins[first:]


_OF_EVENTS = ("transition", "place", "begins", "time", "names")

Take = Callable[[LogEvents], None]


def in_time_order(events: Sequence[LogEvents]) -> Iterator[LogEvents]:
    """All of these events in the order of their times, however rows stand: about 32 bytes each."""
    if not events:
        return
    fields = (np.concatenate([getattr(one, name) for one in events]) for name in _OF_EVENTS)
    transition, place, begins, time, names = fields
    texts = {k: v for each in {id(one.texts): one.texts for one in events}.values() for k, v in each.items()}
    whole = LogEvents(transition, place, begins, time, names, texts)[_order_in_time(time, names)]
    yield from (whole[first : first + BLOCK] for first in range(0, len(whole.time), BLOCK))


def follow_events(
    plan: ReadPlan, table: int, dropped: Counter[str], strict: bool = False
) -> Iterator[LogEvents]:
    """The events of one table as they are read; `dropped` counts what is left out, in the end.

    With `strict`, impossible outcomes are errors, and so are rows of an episode that are out of order.
    """
    stream = Collector("place", "transition", "since_start", "time", "episode")
    message = "the rows are not in order of time, and `watch` needs that order"
    disorder = message, "sort them by episode and step"
    fold = Fold(plan, (stream,), by_name=True, excludes=not strict, disorder=disorder)
    for chunk in fold.chunks(table):
        fold.update(chunk, table)
        settled = chunk.first_row + chunk.rows
        if fold.from_next and (last := fold.open.every()) is not None:  # outcomes that may still come
            settled = int(last.number[fold.are_open(last)].min(initial=settled))
        yield _released(stream, fold, (table << TABLE) + settled, chunk.rows)
    yield _released(stream, fold, (table + 1) << TABLE, 0)
    if (missing := int(fold.notes[MISSING] + fold.notes[HOLES])) and plan.options.gaps is None:
        dropped[RowProblem.MISSING_STEP.words] += missing
    dropped.update(fold.dropped)


def _released(stream: Collector, fold: Fold, before: int, rows: int) -> LogEvents:
    """The events of all rows before this place, in the order of rows; the others stay."""
    held = stream.finish()
    order = np.argsort(held["place"], kind="stable")
    order = order[held["transition"][order] != UNKNOWN]
    cut = int(np.searchsorted(held["place"][order], before))
    stream.parts = [{name: one[order[cut:]] for name, one in held.items()}]
    place, transition, since, time, episode = (held[name][order[:cut]] for name in stream.fields)
    names = fold.plan.names_of(episode, place)
    return LogEvents(transition, place, since == 0, time, names, fold.excluded, rows)


@dataclass(frozen=True, eq=False, repr=False)
class KeptEvents(Record):
    """The events that were kept, `first` to `last`; `chosen_at` had been seen when that was decided."""

    first: int
    last: int
    chosen_at: int | None

    @property
    def left_out(self) -> int:
        return self.first - 1

    @property
    def holds(self) -> bool:
        """Whether what is kept is fresh: it was not looked at when it was chosen."""
        return self.left_out == 0 or (self.chosen_at is not None and self.chosen_at < self.first)

    @property
    def note(self) -> str:
        """What is kept, in a line."""
        if self.left_out == 0:
            return f"all {self.last:,} events are kept"
        text = f"events {self.first:,} to {self.last:,} are kept, the {self.left_out:,} before are left out"
        if not self.holds:
            return text
        when = "in advance" if self.chosen_at == 0 else f"when {self.chosen_at:,} had been seen"
        return f"{text}, as was decided {when}: what is kept is fresh"

    @property
    def missing(self) -> str:
        """Why the confidence is nominal, where it is."""
        left = f"{self.left_out:,} events before event {self.first:,} are left out"
        if self.chosen_at is None:
            return f"{left}, and nothing says that this was decided before those that are kept were seen"
        return f"{left}, as was decided when events up to {self.chosen_at:,} had been seen"

    def to_json(self) -> dict[str, int | bool | None]:
        return {
            "first": self.first,
            "last": self.last,
            "left_out": self.left_out,
            "chosen_at": self.chosen_at,
            "holds": self.holds,
        }


def recent_counts(
    log: EpisodeLog, recent: Recent, whole: Counts, model: Structured
) -> tuple[Counts, KeptEvents]:
    """The counts of those events of a log, in their order, that are kept; `whole` are the counts of all,
    whose flaws they have, too."""
    last, held = len(log), whole.design
    first = recent.since if recent.since is not None else max(1, last - (recent.window or 0) + 1)
    if log.time is not None and 1 < first <= last and np.all(np.diff(log.time) >= 0):
        first = 1 + int(np.searchsorted(log.time, log.time[first - 2], side="right"))  # whole instants
    if first > last:
        raise InputError(
            f"`since` is event {first:,}, but the data have {last:,} events",
            hint="events are counted from 1 in the order of the log, as `watch` prints them",
        )
    if recent.chosen_at is not None and recent.chosen_at > last:
        raise InputError(f"`chosen_at` is event {recent.chosen_at:,}, but the data have {last:,} events")
    events = KeptEvents(first, last, recent.chosen_at)
    missing = () if events.holds else (events.missing,)
    design = SamplingDesign(
        SamplingKind.ADAPTIVE,
        censored=(*held.censored, *missing),
        open_end=held.open_end,
        by_episodes=False,
        order=held.order,
        ends=held.ends,
    )
    counts = log.since(first - 1).counts(model, design)
    return replace(counts, design=replace(counts.design, episodes=None)), events


def keep_recent(
    plan: ReadPlan, model: Structured, whole: Counts, recent: Recent, *, dropped: int, is_sorted: bool
) -> tuple[Counts, KeptEvents]:
    """Read the tables of a log once more, event by event, and count those that are kept.

    `whole` are the counts of all rows but the `dropped` ones; `is_sorted`: as they are in the log.
    """
    table = plan.tables[0]
    if any(columns.is_counted for columns in plan.columns):
        message = "a table of counts does not record the order of events, so old events cannot be excluded"
        raise table.error(message, "give the log itself, one row per step")
    if dropped:
        message = "rows were dropped, so events cannot be numbered in order"
        raise table.error(message, "correct the log, and leave `skip_invalid` out")
    if not is_sorted:
        message = "the rows are not in order of time, and events are numbered in order of time"
        raise table.error(message, "sort them by time, or by episode and step")
    log = read_rows(plan, whole.design.order.holds, True, max(MOST, whole.steps))
    if len(log) != whole.steps:
        raise table.error(
            f"the log was read twice, with {whole.steps:,} and then with {len(log):,} events",
            "give files, or tables that can be read more than once, whose rows are in the order of time",
        )
    return recent_counts(log, recent, whole, model)
