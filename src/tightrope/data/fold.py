"""One pass over the rows of a log: decoded and validated once, followed by episode, passed to observers.

`Fold` takes chunks in the order of the log (`update`), joins another fold of the rows that follow (`merge`),
and settles the ends of episodes (`finish`). An `Observer` processes events (`EventBatch`), rows with settled
outcomes. Threads and clusters differ only in who calls these.

Without next states, a row is settled by the row that continues it. *Sequential episodes* need the last row of
the previous chunk only. *Interleaved episodes* (`by_name`) need the last row of each episode, so memory grows
with their number; in another table a name continues its episode if the step is the next or a later one.
*Parts* that begin within a log keep the decoded rows whose predecessor is unknown until `merge`; by name
these are all rows. So results do not depend on how the log is cut.

*Rows out of order* (`is_sorted`) are held, sorted within their episodes by step, else by time, and followed.
Names of episodes are the log's where no episode has a step twice, and those of each file otherwise. The order
in time of rows that are simply shuffled is unknown, and counts come without batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from tightrope.data import row_sequence as seq
from tightrope.data.columns import EPISODE, STEP, TIME, WATCHED_UNTIL
from tightrope.data.counts import batch_ends, batch_of, batches_from
from tightrope.data.fit_tables import LAGGED
from tightrope.data.free_columns import ColumnCodes, by_appearance
from tightrope.data.model_index import UNKNOWN
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.data.row_sequence import Marks, RowPlace, add_notes, follow_rows, no_marks, no_notes
from tightrope.data.row_validation import WrongRow, count_problems
from tightrope.data.rows import NO_ACTION, TABLE, EventBatch, RowDecoder
from tightrope.errors import InputError
from tightrope.io.table.columns import ProblemCodes, RowProblem, mark
from tightrope.io.table.data_table import Chunk
from tightrope.numerics.arrays import AnyArray, BoolArray, OffsetArray, read_only

NEVER = -(2**63)
"""A row that does not say until when its episode was watched."""

EXCLUDED = (RowProblem.IMPOSSIBLE_TRANSITION, RowProblem.UNKNOWN_NEXT_STATE)
"""What is wrong with an outcome that the model does not know."""


class NotInTime(InputError):
    """Rows do not stand in the order of their times."""


@dataclass(frozen=True)
class Excluded:
    """An outcome that the model excludes: the number of rows before it, and what it is."""

    row: int
    text: str


OUTSIDE = -2
"""In place of the transition of such an outcome."""


Self = TypeVar("Self")
Item = TypeVar("Item")


class Observer(Protocol):
    """Takes the events of a log in batches; `merge` adds what another one took of the rows that follow.

    It can be pickled, and its result does not depend on how the log was cut. One to which batches matter has
    a method `place`: so many rows stand before those whose numbers it has taken, no others where `is_known`.
    """

    def update(self, batch: EventBatch) -> None: ...

    def merge(self: Self, later: Self) -> None: ...

    def finish(self) -> Any: ...


class Collector:
    """Keeps some fields of all events, and the codes of columns without a role."""

    def __init__(self, *fields: str):
        self.fields = fields
        self.parts: list[dict[str, AnyArray]] = []

    def update(self, batch: EventBatch) -> None:
        values = {field: getattr(batch, field) for field in self.fields}
        self.parts.append(values | {f":{name}": code for name, code in batch.columns.items()})

    def merge(self, later: Collector) -> None:
        self.parts += later.parts

    def finish(self) -> dict[str, AnyArray]:
        """All of each field, and of each column by its name behind a colon."""
        names = self.parts[0] if self.parts else self.fields
        nothing: list[OffsetArray] = [] if self.parts else [np.empty(0, dtype=np.int64)]
        return {name: np.concatenate([*nothing, *(part[name] for part in self.parts)]) for name in names}


@dataclass
class _Piece:
    """Rows that are decoded and not followed yet; `after` as `follow_rows` takes it, and whether rows whose
    place cannot be read stand at the end."""

    events: EventBatch
    after: OffsetArray
    is_broken_behind: bool


class LastRows:
    """The last rows of episodes by name, in levels of which each is at least twice as long as the next: so a
    row is copied a few times only, however many episodes there are. Where they come one after the other there
    is one row, whatever its name."""

    def __init__(self, by_name: bool) -> None:
        self.by_name = by_name
        self.levels: list[tuple[EventBatch, BoolArray]] = []
        """Rows by their names, and which of them were not taken out."""

    def _names(self, episode: OffsetArray) -> OffsetArray:
        return episode if self.by_name else np.zeros_like(episode)

    def put(self, rows: EventBatch) -> None:
        """Add rows by their names, which are those of no others."""
        while self.levels and len(self.levels[-1][0]) < 2 * len(rows):
            others, there = self.levels.pop()
            rows = EventBatch.joined([others[there], rows])
            rows = rows[np.argsort(self._names(rows.episode), kind="stable")]
        self.levels.append((rows, np.ones(len(rows), dtype=np.bool_)))

    def find(self, names: OffsetArray, takes_out: bool = False) -> tuple[OffsetArray, EventBatch | None]:
        """The rows with some of these names, and the places of their names."""
        last, places = list[EventBatch](), list[OffsetArray]()
        names = self._names(names)
        for rows, there in self.levels:
            known = self._names(rows.episode)
            place = np.minimum(np.searchsorted(known, names), len(rows) - 1)
            of = np.flatnonzero((known[place] == names) & there[place])
            last, places = [*last, rows[place[of]]], [*places, of]
            there[place[of]] &= not takes_out
        if not any(map(len, last)):
            return np.empty(0, dtype=np.int64), None
        order = np.argsort(np.concatenate(places))
        return np.concatenate(places)[order], EventBatch.joined(last)[order]

    def every(self) -> EventBatch | None:
        """All of them, by their names."""
        if not self.levels:
            return None
        rows = EventBatch.joined([rows[there] for rows, there in self.levels])
        return rows[np.argsort(rows.episode)]


class Fold:
    """Follow the rows of a log, or of a part.

    A `part` has rows before it; where their number is not known until `merge`, batches are numbers of rows
    till then. `is_sorted`: all rows are held, and sorted in the end. With `excludes`, impossible outcomes are
    handed over, too, and `excluded` says what they are. `beside` names columns to encode. `disorder` says
    what is wrong with rows of an episode that are out of order, and what to do, where they are an error.
    """

    def __init__(
        self,
        plan: ReadPlan,
        observers: Sequence[Observer] = (),
        *,
        by_name: bool = False,
        is_sorted: bool = False,
        part: Part | None = None,
        excludes: bool = False,
        beside: Mapping[str, ColumnCodes] | None = None,
        disorder: tuple[str, str] | None = None,
    ):
        roles = plan.roles
        self.disorder = disorder if part is None else None
        self.is_apart = is_sorted or not (by_name or plan.by_episodes)
        """Whether parts of the log are worth a thread each, where their places are known."""
        self.plan, self.observers, self.is_sorted = plan, tuple(observers), is_sorted
        self.beside = {} if beside is None else beside
        self.by_name = by_name and EPISODE in roles
        self.has_begun, self.excludes = part is None and not is_sorted, excludes
        first = 0 if part is None or is_sorted else part.first
        self.named, self.has_time, self.has_steps = (role in roles for role in (EPISODE, TIME, STEP))
        self.from_next = plan.columns[0].from_next_row
        self.rows, self.first = 0, first or 0
        self.waits_for_place = first is None and plan.boundaries is None and not plan.by_episodes
        self.dropped: Counter[str] = Counter()
        self.notes = no_notes()
        self.open = LastRows(self.by_name)
        """The last row of each episode that may go on."""
        self.held: list[_Piece] = []
        """Rows that wait for the fold before them."""
        self.starts: dict[int, list[OffsetArray]] = {}
        """Names of episodes by table, where there are no steps to tell whether one comes back."""
        self.first_steps: list[OffsetArray] = []
        self.batches: int | None = None
        """How many batches sorted rows have, where their order in time is known."""
        self.how_sorted = ""
        self.names: OffsetArray | None = None
        """The names of episodes by number, where rows have these."""
        self.excluded: dict[int, str] = {}
        """Outcomes that the model does not know, by their places."""
        self.is_watched = WATCHED_UNTIL in roles
        self.last_is_open = self.open_end = self.must_rise = False
        self._clock: dict[int, tuple[int, int, bool, bool]] = {}
        """Of every table the last place and time, whether times never fall, and whether episodes mix."""
        self._names: set[int] = set()
        self._offset: tuple[int, int] | None = None
        self._decoders: dict[int, RowDecoder] = {}
        self._led: dict[int, int] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "plan": None, "_decoders": {}}

    # --- rows in ---------------------------------------------------------------------------------

    def ragged(self) -> None:
        """A row that has too few or too many fields was dropped."""
        self.rows += 1
        self.dropped[RowProblem.RAGGED_ROW.words] += 1

    def chunks(self, number: int, groups: range | None = None) -> Iterator[Chunk]:
        """The rows of a table, or of some of its groups, with all columns that are looked at."""
        plan, columns, table = self.plan, self.plan.columns[number], self.plan.tables[number]
        beside = [name for name in self.beside if name in table.names and name not in columns.names]
        ragged = self.ragged if plan.skip and not columns.from_next_row else None
        return table.chunks([*columns.names, *beside], ragged, groups)

    def update(self, chunk: Chunk, table: int) -> None:
        """The next rows of the log."""
        self.take(self.decoder(table).decode(chunk), table, chunk)

    def take(self, events: EventBatch, table: int, chunk: Chunk) -> None:
        """The same, decoded."""
        if self._offset is None or self._offset[0] != table:
            self._offset = (table, self.first + self.rows - chunk.first_row)
        self.rows += chunk.rows
        events.table = np.full(len(events), table, dtype=np.int64)
        events.batch = self._batches(events, events.number[:1] + self._offset[1])
        if self.is_watched:
            events.until = self.decoder(table).ends_of_watching(chunk, NEVER)
            self.notes[seq.ROWS_AT_ENDS] += (events.placed & (events.until == events.time)).sum()
        self.add(events, chunk)
        self._check_times()

    def _check_times(self) -> None:
        if self.must_rise and self.notes[seq.TIME_FALLS]:
            raise NotInTime("the rows are not in the order of their times")

    def _check_order(self) -> None:
        if self.disorder is not None and self.notes[seq.OUT_OF_ORDER]:
            table, number = divmod(int(self.notes[seq.DISORDERED_AT]), 1 << TABLE)
            raise self.plan.tables[table].error(*self.disorder, number)

    def add(self, events: EventBatch, chunk: Chunk | None = None) -> None:
        """The same with their tables and batches."""
        problems = events.problems
        if self.is_sorted and not self.plan.skip:
            self.admitted(replace(events, problems=self.faults(problems)), chunk)
        if not self.from_next:
            events.transition = self.plan.transitions(events.state, events.taken, events.next_state, problems)
        events.sound, events.closed = problems == RowProblem.NONE, self.plan.leads_nowhere(events)
        lagged = {LAGGED + name: events.before for name, one in self.beside.items() if one.is_lagged}
        events.columns = {**events.columns, **lagged}
        after = np.full(len(events), seq.FOLLOWS, dtype=np.int64)
        behind = False
        if not events.placed.all():
            placed, size = np.flatnonzero(events.placed), len(events)
            if not self.plan.skip:
                raise self._error(events, int(np.argmax(self.faults(problems) != 0)), chunk)
            self._settle(events[~events.placed], chunk)
            events = events[placed]
            after = np.where(np.diff(placed, prepend=-1) > 1, seq.BROKEN, seq.FOLLOWS)
            behind = not len(placed) or bool(placed[-1] < size - 1)
        self._follow(_Piece(events, after, behind and not self.by_name), chunk)

    def decoder(self, table: int) -> RowDecoder:
        """What decodes the rows of a table."""
        if table not in self._decoders:
            self._decoders[table] = self.plan.decoder(table)
            self._decoders[table].beside = {name: one.codes for name, one in self.beside.items()}
        return self._decoders[table]

    def _batches(self, rows: EventBatch, first: OffsetArray) -> OffsetArray:
        """The batch of each row: by its time, by the episodes that had begun, or by its place in the log."""
        if self.plan.boundaries is not None:
            return np.searchsorted(self.plan.boundaries, rows.time)
        if self.plan.by_episodes:
            return batch_of(self._begun(rows) - 1 if self.by_name else rows.episode)
        if not len(rows):
            return rows.number
        if self.waits_for_place:
            return np.arange(first[0], first[0] + len(rows))
        return batches_from(int(first[0]), len(rows))

    def _begun(self, rows: EventBatch) -> OffsetArray:
        """How many episodes had begun at each row, this one included; by names alone."""
        names, first = np.unique(rows.episode, return_index=True)
        is_fresh = np.array([name not in self._names for name in names.tolist()], dtype=np.bool_)
        steps, before = np.zeros(len(rows), dtype=np.int64), len(self._names)
        steps[first[is_fresh]] = 1
        self._names.update(names.tolist())
        return before + np.cumsum(steps)

    # --- rows that follow each other -------------------------------------------------------------

    def _follow(self, piece: _Piece, chunk: Chunk | None = None) -> None:
        """Follow rows behind those that were followed before, and hand over what is settled by them."""
        events, after = piece.events, piece.after
        if not self.has_begun:
            cut = self._first_end(events)
            if cut is None:
                self.held.append(piece)
                return
            self.held.append(_Piece(events[:cut], after[:cut], is_broken_behind=False))
            events, after, self.has_begun = events[cut:], after[cut:], True
        if len(events):
            self._settle_by(*self._grouped(events, after), chunk)
        for last, _ in self.open.levels if piece.is_broken_behind else ():
            last.sound = np.zeros(len(last), dtype=np.bool_)

    def _first_end(self, events: EventBatch) -> int | None:
        """The first row that begins an episode for sure, whatever stands before these and those held."""
        if self.by_name or self.is_sorted or not len(events):
            return None
        held = [piece.events[-1:] for piece in self.held if len(piece.events)]
        rows = EventBatch.joined([held[-1], events]) if held else events
        if self.named:
            begins = rows.episode[1:] != rows.episode[:-1]
        elif self.has_steps:
            begins = rows.step[1:] <= rows.step[:-1]
        elif self.plan.columns[0].ends:
            begins = rows.ended[:-1]
        else:
            begins = np.full(len(rows) - 1, not self.from_next)
        places = np.flatnonzero(begins)
        if not len(places):
            return None
        row = int(places[0])
        if self.has_time and rows.time[row + 1] <= rows.time[row]:
            self.notes[seq.TIME_FALLS] += 1
        return row if held else row + 1

    def _grouped(
        self, events: EventBatch, after: OffsetArray
    ) -> tuple[EventBatch, OffsetArray, EventBatch | None]:
        """Rows by episode, each behind what stands before it, and the last rows that some go on from."""
        in_order, names = events, events.episode
        if self.by_name:
            if np.any(np.diff(names[_heads(names)]) < 0):
                events = events[np.argsort(names, kind="stable")]
            after = np.full(len(events), seq.FOLLOWS, dtype=np.int64)
        events, after = self._without_copies(events, after)
        heads = self._heads(events)
        is_broken = after[heads] == seq.BROKEN
        after[heads], before = self._waiting(events, heads)
        if before is not None and is_broken.any():
            before.sound = np.zeros(len(before), dtype=np.bool_)
        if self.by_name and self.has_time and not self.is_sorted and len(events):
            in_order = events[np.argsort(events.place)] if self.plan.options.drop_duplicates else in_order
            self._look_at_clock(in_order, before)
        return events, after, before

    def _look_at_clock(self, events: EventBatch, before: EventBatch | None) -> None:
        """Rows of a table, in their order, and the last rows of episodes that go on with them: where episodes
        stand between each other and times never fall, one clock runs for all of them.
        """
        table, names = int(events.table[0]), events.episode[_heads(events.episode)]
        latest, time, rises, mixed = self._clock.get(table, (-1, int(events.time[0]), True, False))
        mixed = mixed or len(names) > len(np.unique(names))
        if before is not None:
            mixed = mixed or bool(np.any((before.table == table) & (before.place != latest)))
        rises = rises and bool(time <= events.time[0] and np.all(np.diff(events.time) >= 0))
        self._clock[table] = int(events.place[-1]), int(events.time[-1]), rises, mixed

    @property
    def shows_one_clock(self) -> bool:
        """Whether the rows of a table show that one clock runs for all its episodes."""
        return any(rises and mixed for _, _, rises, mixed in self._clock.values())

    def _without_copies(self, events: EventBatch, after: OffsetArray) -> tuple[EventBatch, OffsetArray]:
        """Rows that say the same as the row of their episode before, at the same place, are left out."""
        if not self.plan.options.drop_duplicates:
            return events, after
        copy = np.r_[False, events[1:].repeats(events[:-1], self.from_next)]
        heads = self._heads(events)
        place, last = self.open.find(events.episode[heads])
        if last is not None:
            same = (last.table == events.table[heads[place]]) | self.plan.is_timed
            heads, last = heads[place[same]], last[same]
            last.problems = np.where(last.sound, RowProblem.NONE, last.problems).astype(np.int8)
            copy[heads] = events[heads].repeats(last, self.from_next)
        self.notes[seq.COPIES] += copy.sum()
        return events[~copy], after[~copy]

    def _waiting(self, events: EventBatch, heads: OffsetArray) -> tuple[OffsetArray, EventBatch | None]:
        """What the first row of each episode here continues, and these rows, which are taken out of `open`.
        Names of episodes that are over are those of others now."""
        after = np.full(len(heads), seq.NOTHING, dtype=np.int64)
        there, before = self.open.find(events.episode[heads], takes_out=True)
        if before is None:
            return after, None
        goes_on = self._goes_on(before, events[heads[there]])
        after[there[goes_on]] = np.arange(int(goes_on.sum()))
        ended = before[~goes_on]
        if not self.by_name and self.has_time:
            self.notes[seq.TIME_FALLS] += (events.time[:1] <= ended.time).sum()
        self._end(ended)
        return after, before[goes_on]

    def _heads(self, events: EventBatch) -> OffsetArray:
        """The first rows of episodes that are followed apart."""
        return _heads(events.episode) if self.by_name else np.arange(min(len(events), 1))

    def _goes_on(self, last: EventBatch, heads: EventBatch) -> BoolArray:
        """Whether rows may be of the episodes that these last rows are of: in another table only where names
        and steps, or times, say so."""
        is_timed = self.plan.is_timed
        same: BoolArray = last.table == heads.table
        if same.all() or not (self.named or is_timed):
            return same
        goes_on: BoolArray = (last.episode == heads.episode) & ~last.ended
        if self.by_name and not is_timed:
            goes_on &= ~last.closed
        if self.has_steps:
            goes_on &= heads.step == last.step + 1
        else:
            at_once = (heads.time == last.time) & (is_timed or not self.by_name)
            goes_on &= self.has_time & ((heads.time > last.time) | at_once)
        goes_on |= same
        return goes_on

    def _settle_by(
        self, events: EventBatch, after: OffsetArray, before: EventBatch | None, chunk: Chunk | None
    ) -> None:
        """Follow rows by episode, and hand over those that are settled."""
        if not len(events):
            return
        plan, rows, size = self.plan, events, len(events)
        shape = plan.shape(0)._replace(by_name=self.by_name)
        marks, empty = no_marks(size), events[:0] if before is None else before
        known = [np.ascontiguousarray(one) for one in (empty.origin, empty.since_start, empty.since_entry)]
        given = Marks(known[0], known[1], known[2], *no_marks(0)[3:])
        place, last = self._place(events), self._place(empty)
        follow_rows(shape, place, after, last, marks, given, rows.problems, self.notes)
        self._check_order()
        heads = np.flatnonzero(after >= 0)
        continues, of = marks.continues[heads], after[heads]
        inside = marks.continues[1:] & (after[1:] < 0)
        if self.from_next:
            rows.next_state = np.full(size, UNKNOWN, dtype=np.int64)
            rows.next_state[:-1][inside] = rows.state[1:][inside]
            if before is not None:
                before.next_state[of[continues]] = rows.state[heads[continues]]
                self._locate(before)
            self._locate(events)
        transition, sound = events.transition, rows.problems == RowProblem.NONE
        earlier = np.full(size, UNKNOWN, dtype=np.int64)
        earlier[1:] = np.where(inside & sound[:-1], transition[:-1], UNKNOWN)
        if before is not None:
            fine = continues & (before.problems[of] == RowProblem.NONE)
            earlier[heads[fine]] = before.transition[of[fine]]
        events.before, events.origin = earlier, marks.origin
        events.since_start, events.since_entry = marks.since_start, marks.since_entry
        for name in events.columns:
            if name.startswith(LAGGED):
                code = events.columns[name[1:]]
                lagged = np.r_[UNKNOWN, code[:-1]]
                if before is not None:
                    lagged[heads] = before.columns[name[1:]][of]
                events.columns[name] = np.where(earlier != UNKNOWN, lagged, UNKNOWN)
        if before is not None:
            for head in heads[~sound[heads]].tolist():
                self._led[int(events.place[head])] = int(before.next_state[after[head]])
        if self.named and not self.has_steps and not self.by_name:
            self.starts.setdefault(int(events.table[0]), []).append(events.episode[marks.is_new])
        if self.is_sorted:
            self.first_steps.append(rows.step[marks.is_new])
        self._keep(events, before, of, chunk)

    def _place(self, events: EventBatch) -> RowPlace:
        clock, rows = self.plan.tick.parts(events.time), events
        numbers = (rows.episode, rows.step, rows.time, clock, rows.state, rows.next_state, rows.place)
        columns: list[AnyArray] = [*numbers, rows.ended, rows.closed, rows.sound]
        return RowPlace(*(read_only(np.ascontiguousarray(column)) for column in columns))

    def _locate(self, events: EventBatch) -> None:
        """Find the transitions of rows whose next state is known."""
        known = events.next_state != UNKNOWN
        blank = (events.action == NO_ACTION) | (events.local == NO_ACTION) | np.isnan(events.cost)
        mark(events.problems, known & blank, RowProblem.MISSING_VALUE)
        problems = events.problems.copy()
        transition = self.plan.transitions(events.state, events.taken, events.next_state, problems)
        events.transition = np.where(known, transition, UNKNOWN)
        np.copyto(events.problems, problems, where=known)

    def _keep(
        self, events: EventBatch, before: EventBatch | None, of: OffsetArray, chunk: Chunk | None
    ) -> None:
        """Keep the last rows, and hand over the others."""
        heads = self._heads(events)
        ends = np.r_[heads[1:] - 1, len(events) - 1]
        last = events[ends]
        if self.is_watched:
            last.until = np.maximum.reduceat(events.until, heads)
            if before is not None:
                runs = np.searchsorted(last.episode, before.episode)
                last.until[runs] = np.maximum(last.until[runs], before.until)
        self.open.put(last)
        if not self.from_next:
            self._settle(events, chunk)
            return
        if before is not None:
            self._settle(before, chunk)
        rest = np.ones(len(events), dtype=np.bool_)
        rest[ends] = False
        self._settle(events.some(rest), chunk)

    # --- rows out --------------------------------------------------------------------------------

    def admitted(self, events: EventBatch, chunk: Chunk | None = None) -> EventBatch:
        """Rows that are what they say; others are dropped, or an error."""
        problems = events.problems
        if not problems.any():
            return events
        bad = self.faults(problems) != RowProblem.NONE
        if bad.any() and not self.plan.skip:
            wrong = np.flatnonzero(bad)
            raise self._error(events, int(wrong[np.argmin(events.place[wrong])]), chunk)
        outside = np.flatnonzero((problems != RowProblem.NONE) & ~bad)
        for row in outside.tolist():
            text = str(self._error(events, row, chunk)).split("\n")[0]
            self.excluded[int(events.place[row])] = text
        events.transition[outside] = OUTSIDE
        self.dropped += count_problems(problems[bad])
        return events.some(~bad)

    def _settle(self, events: EventBatch, chunk: Chunk | None = None, is_last: bool = False) -> int:
        """Hand rows to the observers. How many outcomes are lost: something was done, and more than one
        outcome was possible."""
        if not len(events):
            return 0
        events, lost = self.admitted(events, chunk), 0
        if self.from_next:
            lost = self._lost(events)
            self.notes[seq.LOST] += 0 if is_last else lost
        if self.names is not None:
            events = events.some(slice(None))
            events.episode = self.names[events.episode]
        for observer in self.observers:
            observer.update(events)
        return lost

    def faults(self, problems: ProblemCodes) -> ProblemCodes:
        """The problems without those that are none of the log."""
        is_none = np.isin(problems, EXCLUDED) if self.excludes else False
        return np.where(is_none, RowProblem.NONE, problems).astype(np.int8)

    def _lost(self, events: EventBatch) -> int:
        waiting = (events.transition == UNKNOWN) & (events.local != NO_ACTION)
        if self.plan.is_timed or not waiting.any():
            return 0
        if self.plan.cuts_at_end:  # what is still under way at the log's last instant is left out by rule
            waiting &= events.ended
        done = np.stack([events.state, events.action, events.local])[:, waiting]
        each, times = np.unique(done, axis=1, return_counts=True)
        several = [self.plan.index.outcomes(*choice) != 1 for choice in each.T.tolist()]
        return int(times[several].sum())

    def _error(self, events: EventBatch, row: int, chunk: Chunk | None) -> InputError:
        """What is wrong with a row."""
        table, led = int(events.table[row]), int(events.next_state[row - 1]) if row else 0
        wrong = WrongRow(self.plan, table, self.decoder(table), int(events.number[row]), chunk)
        states = int(events.state[row]), int(events.next_state[row])
        led = self._led.get(int(events.place[row]), led)
        return wrong.error(RowProblem(events.problems[row]), *states, led)

    def are_open(self, last: EventBatch) -> BoolArray:
        """Which rows do not say that their episode is over, and lead to states that can be left."""
        return ~last.closed & ~last.ended

    def _end(self, last: EventBatch, but: int | None = None) -> None:
        """These are the last rows of their episodes."""
        open_ = self.are_open(last)
        if self.is_watched:
            self._note_watched(last[open_])
        times = last.time[open_ & (np.arange(len(last)) != but)]
        self.notes[seq.OPEN_ENDS] += len(times)
        self.notes[seq.OPEN_EARLIEST] = min(self.notes[seq.OPEN_EARLIEST], times.min(initial=seq.LATEST))
        if self.from_next and but is None:
            self._settle(last)

    def _note_watched(self, last: EventBatch) -> None:
        """Until when open episodes were watched, whose last rows these are."""
        self.notes[seq.UNWATCHED] += (last.until == NEVER).sum()
        last = last[last.until != NEVER]
        early = np.flatnonzero(last.until < last.time)
        if len(early):
            table, number = self.plan.tables[int(last.table[early[0]])], int(last.number[early[0]])
            raise table.error("the episode goes on after it was watched", row=number)
        apart = self.plan.tick.parts(last.until) - self.plan.tick.parts(last.time)
        longest = apart.max(initial=self.notes[seq.WATCHED_LONGEST])
        self.notes[seq.WATCHED_LONGEST] = longest

    def merge(self, later: Fold) -> None:
        """Add what was made of the rows that follow."""
        if later.waits_for_place:
            later._number(self.first + self.rows, not self.waits_for_place)
        self.rows += later.rows
        self.dropped += later.dropped
        self.excluded |= later.excluded
        for name, codes in later.beside.items():
            self.beside[name].labels |= codes.labels
        for piece in later.held:
            self._follow(piece)
        add_notes(self.notes, later.notes)
        self._check_order()
        self._check_times()
        if not later.has_begun:
            return
        if (last := self.open.every()) is not None:
            self._end(last)
        self.has_begun, self.open = True, later.open
        for table, names in later.starts.items():
            self.starts.setdefault(table, []).extend(names)
        for mine, others in zip(self.observers, later.observers, strict=True):
            mine.merge(others)

    def _number(self, before: int, is_known: bool) -> None:
        """So many rows stand before these; batches follow their numbers where `is_known` that it is all."""
        waiting = [piece.events for piece in self.held] + [rows for rows, _ in self.open.levels]
        for events in waiting:
            events.batch = batch_of(before + events.batch) if is_known else before + events.batch
        for observer in self.observers:
            if place := getattr(observer, "place", None):
                place(before, is_known)

    def finish(self) -> None:
        """The log ends: `last_is_open` where the episode that it ends with is, which is no open end; and
        `open_end` where the outcome of its very last action is not there."""
        if not self.has_begun:
            held, self.held, self.has_begun = self.held, [], True
            for piece in held if not self.is_sorted else self._sorted(held):
                self._follow(piece)
        last = self.open.every()
        if last is None or not len(last):
            return
        row = int(np.argmax(last.time if self.has_time else last.place))
        at_once = int((last.time == last.time[row]).sum()) if self.has_time else 1
        self.last_is_open = at_once == 1 and bool(self.are_open(last)[row])
        is_cut = self.last_is_open or not self.by_name
        if self.plan.boundaries is not None and last.time[row] < self.notes[seq.LAST_TIME]:
            self.last_is_open = False  # others go on after it, so the end of the log does not cut it
        if self.last_is_open:
            self.notes[seq.OPEN_EARLIEST] = min(int(self.notes[seq.OPEN_EARLIEST]), int(last.time[row]))
        self._end(last, row if self.last_is_open else -1)
        if self.from_next:
            is_last = np.arange(len(last)) == (row if is_cut and not self.is_sorted else -1)
            self._settle(last[~is_last])
            self.open_end = self._settle(last[is_last], is_last=True) > 0

    def _sorted(self, held: Sequence[_Piece]) -> Iterator[_Piece]:
        """All rows, sorted within their episodes by step, else by time; `names` are those of episodes."""
        if not held:
            return
        rows = EventBatch.joined([piece.events for piece in held])
        episode = self._episodes(rows)
        number = by_appearance(episode)[1].astype(np.int64)
        place = rows.step if self.has_steps else rows.time if self.has_time else np.arange(len(rows))
        order = np.lexsort((np.arange(len(rows)), place, number))
        stands = np.argsort(episode, kind="stable")  # rows of an episode as they stand in the log
        position: OffsetArray | None = order
        if self.has_time:
            self.how_sorted = "sorted by time"
        elif np.all((np.diff(place[stands]) >= 0) | (np.diff(episode[stands]) != 0)):
            self.how_sorted = "rows of several episodes at once, each in order"
        elif np.all(np.diff(number) >= 0):
            position, self.how_sorted = np.arange(len(order)), "sorted by step within each episode"
        else:
            how = "shuffled rows, sorted by step; their order in time is unknown, so there are no batches"
            position, self.how_sorted = None, how
        self.names = rows.episode[np.unique(number, return_index=True)[1]]
        rows = replace(rows[order], episode=number[order])
        if self.has_time:
            ends = batch_ends(len(rows))
            rows.batch = np.searchsorted(np.sort(rows.time)[ends - 1][:-1], rows.time)
            self.batches = len(ends)
        elif position is not None:
            rows.batch, self.batches = batch_of(position), len(batch_ends(self.rows))
        yield _Piece(rows, np.full(len(rows), seq.FOLLOWS, dtype=np.int64), is_broken_behind=False)

    def _episodes(self, rows: EventBatch) -> OffsetArray:
        """Which episode each row is of: by name, or by file and name where files share names and steps."""
        if not self.named:
            return np.zeros(len(rows), dtype=np.int64)
        everywhere = np.unique(rows.episode, return_inverse=True)[1]
        order = np.lexsort((rows.step, everywhere))
        same = (np.diff(everywhere[order]) == 0) & (np.diff(rows.step[order]) == 0)
        if self.has_steps and not np.any(same & (np.diff(rows.table[order]) != 0)):
            return everywhere.astype(np.int64)
        pairs = np.stack([rows.table, rows.episode])
        return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @property
    def is_out_of_order(self) -> bool:
        """Whether rows must be followed by name, or sorted, before they can be counted."""
        notes = self.notes
        if notes[seq.OUT_OF_ORDER] or notes[seq.START_LOW] < notes[seq.START_HIGH]:
            return True
        every = (np.concatenate(names) for names in self.starts.values())
        return any(len(np.unique(names)) < len(names) for names in every)


def _heads(names: OffsetArray) -> OffsetArray:
    """The first rows of groups of rows with one name."""
    return np.flatnonzero(np.r_[True, names[1:] != names[:-1]][: len(names)])


Watch = Callable[[int, int], None]
"""Called now and then with rows and bytes that were read since the last call."""


def fold_part(fold: Fold, part: Part, watch: Watch | None = None) -> Fold:
    """Let a fold take the rows of a part."""
    decode, read = fold.decoder(part.table).decode, 0
    decoded = ((chunk, decode(chunk)) for chunk in fold.chunks(part.table, part.groups))
    for chunk, rows in _ahead(decoded) if fold.by_name else decoded:
        fold.take(rows, part.table, chunk)
        if watch is not None:
            watch(chunk.rows, max(0, chunk.bytes_read - read))
            read = chunk.bytes_read
    return fold


MakeFold = Callable[[ReadPlan, Part | None], Fold]
"""Makes the fold of a part, or of a whole log."""


def fold_log(plan: ReadPlan, make: MakeFold, watch: Watch = lambda rows, read: None) -> Fold:
    """All rows of a log: by its engine, in threads where its parts are apart, or one by one."""
    whole, parts = make(plan, None), plan.parts()
    is_numbered = plan.boundaries is not None or all(part.first is not None for part in parts)
    is_apart = whole.is_apart and (whole.is_sorted or is_numbered) and plan.workers > 1
    if plan.engine is None and not is_apart:
        for part in parts:
            fold_part(whole, part, watch)
    else:
        for part, fold in zip(parts, plan.run(partial(_fold_one, make)), strict=True):
            watch(fold.rows, plan.tables[part.table].bytes_of(fold.rows))
            whole.merge(fold)
    whole.finish()
    return whole


def _fold_one(make: MakeFold, plan: ReadPlan, part: Part) -> Fold:
    return fold_part(make(plan, part), part)


def _ahead(source: Iterator[Item]) -> Iterator[Item]:
    """The same, each made while the one before is worked on."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, source, None)
        while (item := following.result()) is not None:
            following = pool.submit(next, source, None)
            yield item
