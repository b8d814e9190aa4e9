"""Logs in continuous time, read and simulated: time spent in each state, and transitions.

Rows hold the state, by the model's variables or by `state` (a name or an index), and one of two columns:

* `time`: the state holds from this moment on. A repeated state ends a log within a sojourn;
* `duration`: the length of the sojourn. The last one of an episode is censored: it counts as time only.

A third form has one row per subject (`tightrope.data.survival`). Times are numbers in the model's unit, or
dates, in seconds unless a map says otherwise (`time: /3600` for hours).

*Ends of episodes.* Without the last sojourns every rate is overestimated. The end is known if the last state
is repeated or absorbing, if `terminated`, `truncated` or `done` marks the last row, or from a column with the
end of observation. Users can state a common end (`watched_until`, `until_now`) or a stopping rule
(`ends="complete"`). A single episode needs none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data import columns as col
from tightrope.data import rows as decoding
from tightrope.data.columns import (
    ColumnFinder,
    RowColumns,
    StateNames,
    parse_columns,
    state_columns,
    with_watched,
)
from tightrope.data.costs import exact_sums
from tightrope.data.design import ENDS, KNOWN_ENDS, absorbing_states
from tightrope.data.fold import NEVER, Collector, Fold, fold_log
from tightrope.data.free_columns import LogColumn, columns_of, free_columns
from tightrope.data.model_index import UNKNOWN, Taken
from tightrope.data.read_options import COMPLETE, LogReadOptions, with_words
from tightrope.data.read_plan import Part, ReadPlan, engine_at, refuse_copy
from tightrope.data.row_sequence import Tick
from tightrope.data.rows import RowDecoder, TimeFormat, TimeKind, ValueMap
from tightrope.data.survival import as_timed_tables, entries_of
from tightrope.data.time_order import moment_of
from tightrope.errors import InputError, check_number, describe
from tightrope.io.log_words import STEPS
from tightrope.io.table.columns import ProblemCodes, look, some_values
from tightrope.io.table.data_table import DataTable
from tightrope.io.table.files import open_tables
from tightrope.model.continuous import CTMC
from tightrope.model.structure import Structure, Structured
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.late import pa
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.provenance import Provenance, RowTally, joined, state_marks, with_number
from tightrope.verdict import Assumed

DURATION = "duration"

EXACT = Tick(1.0, is_float=True)
"""Makes numbers of times that are kept as whole ones."""


@dataclass(frozen=True, eq=False, repr=False)
class Pieces(Record):
    """Times spent in one state, one per row, and the transition at the end (−1: none).

    `since_entry`, `since_start` are the times passed in the state and in the episode before, `clock` the
    log's time (None if absent), `before` the previous state (−1: none), `names` tell episodes apart.
    """

    state: OffsetArray
    duration: FloatArray
    transition: OffsetArray
    episode: OffsetArray
    since_entry: FloatArray
    since_start: FloatArray
    before: OffsetArray
    clock: FloatArray | None
    columns: Mapping[str, LogColumn]
    names: OffsetArray | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Exposure(Record):
    """`jumps[t]` counts transition t, `waited[s]` is the time spent in state s.

    >>> import tightrope as tr, pyarrow as pa
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})])
    >>> seen = tr.read_exposure(pa.table({"duration": [2.0, 0.5, 1.0], "state": [0, 1, 0]}), chain)
    >>> seen.jumps.tolist(), seen.waited.tolist(), seen.censored
    ([1, 1], [3.0, 0.5], 1)
    """

    jumps: OffsetArray
    waited: FloatArray
    rows: int
    episodes: int
    censored: int
    """Sojourns that were cut off."""
    read_as: str
    files: tuple[str, ...] = field(default=())
    ends: Assumed = KNOWN_ENDS
    pieces: Callable[[], Pieces] | None = field(default=None, compare=False, repr=False)
    """The rows themselves, where they are at hand."""
    provenance: Provenance | None = field(default=None, compare=False, repr=False)
    """Which rows were read."""

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "pieces": None}

    def __post_init__(self) -> None:
        freeze_fields(self)

    def _title_(self) -> str:
        total = float(self.waited.sum())
        return f"Exposure: {int(self.jumps.sum()):,} jumps in {self.episodes:,} episodes, time {total:.6g}"

    def _facts_(self) -> Facts:
        ends = f"{self.ends.kept.value}: {self.ends.why}"
        return [("read as", self.read_as), ("cut off", f"{self.censored:,} sojourns"), ("ends", ends)]


@with_words(LogReadOptions)
def read_exposure(data: object, model: Structured | Structure, options: LogReadOptions) -> Exposure:
    """Read a log in continuous time.

    Parameters
    ----------
    data
        A path, several, a table, or the result of `simulate_times`.
    model
        The chain.
    **options
        As for `read_data`. `ends="complete"` states that a rule ended episodes with their last row;
        `watched_until` is the end of watching or its column; `until_now`: the last time of the log.

    Returns
    -------
    Exposure
        Jumps and waiting times.

    Examples
    --------
    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})]).instantiate()
    >>> float(tr.read_exposure(tr.simulate_times(chain, 3, seed=1, time=10), chain).waited.sum())
    30.0
    """
    structure = model if isinstance(model, Structure) else model.structure
    return exposure_of(data, structure, options)


def exposure_of(data: object, structure: Structure, options: LogReadOptions) -> Exposure:
    """The same, with all that is said about the log."""
    options.check()
    if words := options.given(STEPS):
        raise InputError(
            f"{' and '.join(words)} cannot be used with logs in continuous time", hint="leave that out"
        )
    is_own = isinstance(data, TimedRows)
    tables = open_tables(data.table() if isinstance(data, TimedRows) else data, options.format)
    if not tables:
        raise InputError("there is no data")
    entries, options = entries_of(options, structure)
    files = tuple(table.path for table in tables)
    if entries:
        tables, options = as_timed_tables(tables, entries, structure, options)
    columns = [_columns(table, structure, options) for table in tables]
    columns = with_watched(tables, columns, str(options.watched_until), (col.TIME,))
    if len(texts := {_read_as(own) for own in columns}) > 1:
        raise InputError(f"the files are not of one form: {' and '.join(sorted(texts))}")
    pairs = zip(tables, columns, strict=True)
    unread = dict.fromkeys(name for table, own in pairs for name in table.names if name not in own.names)
    maps = decoding.parse_maps(options.maps, tuple(structure.valuations), (col.TIME, DURATION))
    plan = TimedPlan(
        structure,
        tuple(tables),
        columns,
        {role: value_map for role, value_map in maps.items() if role not in (col.TIME, DURATION)},
        options,
        factor=_factor(col.TIME if col.TIME in columns[0].roles else DURATION, maps),
    )
    if plan.has_times:
        plan = _with_clock(plan, options, col.TIME in maps)
    plan.check_free_columns()
    with engine_at(options.place, tables) as engine:
        plan = replace(plan, engine=engine)
        sojourns = _Sojourns(plan, fold_log(plan, _fold_of))
    text = _read_as(columns[0]) + (f"; not read: {', '.join(unread)}" if unread else "")
    for role, value_map in maps.items():
        text += f"; values mapped: {role}: {value_map.text}"
    if entries:
        text = f"one row per subject, with times and statuses of {len(entries)} states; {text}"
    return sojourns.exposure(text, files, is_own)


def _read_as(columns: RowColumns) -> str:
    episode, clock = columns.roles.get(col.EPISODE), columns.roles.get(col.TIME)
    episodes = "one episode" if episode is None else f"episodes by '{episode}'"
    meaning = f"'{columns.roles.get(col.COST)}' is how long a state lasts"
    if clock is not None:
        meaning = f"'{clock}' is the moment a state is seen"
    return f"{meaning}, states by {', '.join(columns.state)}, {episodes}"


def _factor(role: str, maps: Mapping[str, ValueMap]) -> float:
    """What one unit of the log's clock is in the model's unit of time."""
    factor, value_map = Fraction(1), maps.get(role, ValueMap())
    for sign, by in value_map.steps:
        factor = factor * by if sign == "*" else factor / by if sign == "/" else Fraction(0)
    if value_map.names is not None or factor <= 0:
        raise InputError(f"a map of '{role}' has factors alone: `maps='{role}: /60'`")
    return float(factor)


def _with_clock(plan: TimedPlan, options: LogReadOptions, has_unit: bool) -> TimedPlan:
    """With how the times of a log are written and what they are; dates count from the first on."""
    clocks = [(table, own.roles[col.TIME]) for table, own in zip(plan.tables, plan.columns, strict=True)]
    given = parse_columns(options.columns, tuple(plan.structure.valuations), (DURATION,))
    if (written := given.time_format or decoding.time_format_of(clocks)) is not None:
        plan = replace(plan, maps={**plan.maps, col.TIME: TimeFormat(format=written)})
    decoder, (table, name) = RowDecoder(plan.columns[0], plan.maps, plan.index, ""), clocks[0]
    chunk = next(table.chunks((name,)), None)
    kind = None if chunk is None else decoder.time_kind_of(chunk)
    if chunk is None or kind is None or not kind.is_date:
        return replace(plan, time_kind=TimeKind.FLOAT)
    if not has_unit:
        raise table.error(
            f"column '{name}' holds dates, and nothing says in which unit of time the model's rates are",
            "they count in seconds: `maps='time: /3600'` makes hours of them, `maps='time: *1'` keeps them",
        )
    first = decoder.times(chunk, np.zeros(chunk.rows, dtype=np.int8))[0]
    return replace(plan, time_kind=kind, origin=int(first))


def _columns(table: DataTable, structure: Structure, options: LogReadOptions) -> RowColumns:
    variables = tuple(structure.valuations)
    given = parse_columns(options.columns, variables, (DURATION,))
    named = (col.EPISODE, *col.FLAGS, col.TIME, DURATION)
    roles = {role: name for role in named if (name := given.get(role, role if role in table.names else ""))}
    clocks = roles.keys() & {col.TIME, DURATION}
    clocks = clocks & given.keys() or clocks
    if len(clocks) != 1:
        present = "both 'time' and 'duration'" if clocks else f"neither ({', '.join(table.names)})"
        raise table.error(
            f"a log in continuous time has a column 'time' or a column 'duration', this one has {present}",
            "keep one of them: the moment at which a state is entered, or how long it lasts; "
            '`columns="time=…"` says which column that is',
        )
    (kind,) = clocks
    clock = {col.TIME if kind == col.TIME else col.COST: roles[kind]}
    roles = {role: name for role, name in roles.items() if role not in (col.TIME, DURATION)} | clock
    finder = ColumnFinder(table.path, table.names, variables, given)
    _refuse_transitions(table, {*variables, *given.values()}, roles)
    names = options.state_names or _state_names(table, structure, finder)
    by, state_roles = state_columns(table, structure, names, names is StateNames.INDEX, finder)
    if after := (columns := RowColumns(by, state_roles, roles)).next_state:
        raise table.error(f"the column '{after[0]}' {_LEADS}", _NO_NEXT)
    return columns


def _state_names(table: DataTable, structure: Structure, finder: ColumnFinder) -> StateNames:
    """How states are named where nobody says it: by the model's variables, its author, or the index."""
    variables, own = tuple(structure.valuations), structure.state_names
    whole = finder.given.get(col.STATE, col.STATE if col.STATE in table.names else "")
    is_given = col.STATE in finder.given and col.STATE not in variables
    is_whole = not whole or None not in map(finder.variable, variables)
    if variables and not is_given and is_whole:
        return StateNames.VARIABLES
    if own is None or not whole or own.are_numbers:
        return StateNames.OWN if own is not None and whole else StateNames.INDEX
    chunk = next(table.chunks((whole,)), None)
    is_named = chunk is not None and look(some_values(chunk.columns[whole])) != "whole numbers"
    return StateNames.OWN if is_named else StateNames.INDEX


_LEADS = "says where a row leads, and in a log in continuous time the next row does"
_NO_NEXT = "leave it out, and give the last state of every episode a row of its own"


def _refuse_transitions(table: DataTable, known: Collection[str], roles: Mapping[str, str]) -> None:
    """Columns that would be left out, and with them what happened."""
    for name in table.names:
        if name in known or name in roles.values():
            continue
        meaning, instead = "", ""
        if any(col.is_name_of_next(name, variable) for variable in (*known, col.STATE)):
            meaning, instead = _LEADS, _NO_NEXT
        elif col.plain_name(name) in (col.COUNT, *col.HABITS[col.COUNT]):
            meaning = (
                "says how often a row was seen, and a log in continuous time has a row for every sojourn"
            )
            instead = "write every sojourn in a row of its own"
        elif col.EPISODE not in roles and col.plain_name(name) in col.HABITS[col.EPISODE]:
            meaning = "seems to number episodes, which in a log in continuous time 'episode' does"
            instead = f'say `columns="episode={name}"`, or leave it out if all rows are one episode'
        if meaning:
            raise table.error(f"the column '{name}' {meaning}", instead)


@dataclass(frozen=True, eq=False)
class TimedPlan(ReadPlan):
    """What the columns of a log in continuous time mean. Rows have their times, or durations as costs; where
    a row leads, the next one of its episode says. Dates count from `origin` on, and a unit of the log's clock
    is `factor` units of the model's rates.
    """

    factor: float = 1.0
    origin: int = 0

    @property
    def is_timed(self) -> bool:
        return True

    @property
    def has_times(self) -> bool:
        return col.TIME in self.columns[0].roles

    def clock(self, time: OffsetArray) -> FloatArray:
        """Times in the unit of the model's rates."""
        if self.has_dates:
            return (time - self.origin).astype(np.float64) * 1e-9 * self.factor
        return EXACT.clock(time) * self.factor

    def transitions(
        self, state: OffsetArray, taken: Taken, next_state: OffsetArray, problems: ProblemCodes
    ) -> OffsetArray:
        """Where a row leads to another state; the same state again says that nothing happened."""
        flags = problems.copy()
        transition = self.index.transitions(state, taken, next_state, flags)
        moved: BoolArray = state != next_state
        wrong = (flags != problems) & (moved | (not self.has_times))
        problems[wrong] = flags[wrong]
        return np.where(moved & ~wrong, transition, UNKNOWN)


def _fold_of(plan: ReadPlan, part: Part | None = None) -> Fold:
    fields = ["place", "episode", "state", "transition", "next_state", "ended"]
    fields += ["time" if col.TIME in plan.roles else "cost"]
    rows = Collector(*fields, *(["until"] if col.WATCHED_UNTIL in plan.roles else []))
    disorder = "time runs backwards", "sort the log by episode and time"
    return Fold(plan, (rows,), by_name=True, part=part, beside=free_columns(plan), disorder=disorder)


class _Sojourns:
    """All rows of a log, by episode and time, and how long each of them lasted."""

    def __init__(self, plan: TimedPlan, fold: Fold):
        (collection,) = fold.observers
        held = collection.finish()
        sources = set((held["place"] >> decoding.TABLE).tolist())
        if missing := [table for number, table in enumerate(plan.tables) if number not in sources]:
            raise missing[0].error("the log has no rows")
        order = np.argsort(held["place"], kind="stable")
        order = order[np.argsort(held["episode"][order], kind="stable")]
        self.plan, self.beside = plan, fold.beside
        self.held = held = {name: one[order] for name, one in held.items()}
        self.state, self.transition = held["state"], held["transition"]
        self.clock = plan.clock(held["time"]) if plan.has_times else held["cost"] * plan.factor
        name = plan.roles[col.TIME if plan.has_times else col.COST]
        wrong = ~np.isfinite(self.clock) | (not plan.has_times and self.clock < 0.0)
        message = "{} is {}, not a number that a clock shows"
        self._refuse(np.flatnonzero(wrong), lambda row: message.format(name, self.clock[row]))
        self.goes_on = held["next_state"] != UNKNOWN
        """Whether the next row is of the same episode."""
        self.lasted = self.clock
        if plan.has_times:
            self.lasted = np.where(self.goes_on, np.diff(self.clock, append=0.0), 0.0)

    def exposure(self, read_as: str, files: tuple[str, ...], is_whole: bool) -> Exposure:
        """Jumps and times; where it `is_whole`, every episode was followed to its end."""
        plan, held, last = self.plan, self.held, np.flatnonzero(~self.goes_on)
        repeats, again = np.zeros(len(self.state), dtype=np.bool_), np.zeros(len(last), dtype=np.bool_)
        np.logical_and(self.goes_on[:-1], self.state[1:] == self.state[:-1], out=repeats[1:])
        if plan.has_times and int(repeats.sum()) == int(repeats[last].sum()):
            again = repeats[last]  # else states are written again and again
        known = again | held["ended"][last] | plan.absorbing[self.state[last]]
        open_ = last[~known]
        cut, ends = self._end(open_, len(last))
        jumped, waited = self.transition[self.transition >= 0], np.zeros(plan.structure.states)
        for state, total in exact_sums(self.state, self.lasted).items():
            waited[state] = float(total)
        return Exposure(
            np.bincount(jumped, minlength=plan.structure.transitions),
            waited,
            len(self.state),
            len(last),
            int(again.sum()) + len(open_) * cut if plan.has_times else len(last),
            read_as,
            files,
            KNOWN_ENDS if is_whole else ends,
            self.pieces,
            self._provenance(len(last)),
        )

    def _end(self, open_: OffsetArray, episodes: int) -> tuple[bool, Assumed]:
        """How open episodes ended, and whether at a time that is stated, up to which their last rows last."""
        options, clock, until = self.plan.options, self.clock, self.plan.roles.get(col.WATCHED_UNTIL)
        if until is None and not options.until_now and options.watched_until is None:
            return False, self._unstated(len(open_), episodes)
        if not self.plan.has_times:
            message = "durations have no points in time: `ends` states how episodes of such a log ended"
            raise InputError(message)
        if until is not None:
            moments = self.held["until"][open_]
            self._refuse(open_[moments == NEVER], lambda row: f"column '{until}' has no value")
            end = self.plan.clock(moments)
            ends = Assumed.derived(ENDS, f"the column {until} says until when each was watched")
        elif options.watched_until is None:
            end = np.full(len(open_), clock.max())
            rule = "--until-now: episodes that are not over were watched until the log's last instant"
            ends = Assumed.stated(ENDS, rule)
        else:
            end = self.plan.clock(np.full(len(open_), moment_of(options.watched_until, self.plan)))
            rule = f"--watched-until {options.watched_until}: all episodes were watched until then"
            ends = Assumed.stated(ENDS, rule)
        message = "an episode goes on at {:g}, after it was watched"
        self._refuse(open_[end < clock[open_]], lambda row: message.format(clock[row]))
        self.lasted[open_] = end - clock[open_]
        return True, ends

    def _refuse(self, rows: OffsetArray, message: Callable[[int], str]) -> None:
        """Refuse the first of some rows, where there is one."""
        if len(rows):
            row = int(rows[np.argmin(self.held["place"][rows])])
            table, number = divmod(int(self.held["place"][row]), 1 << decoding.TABLE)
            raise self.plan.tables[table].error(message(row), row=number)

    def _unstated(self, open_: int, episodes: int) -> Assumed:
        if not open_:
            return Assumed.derived(ENDS, "the log says how each episode ended")
        if episodes == 1:
            return Assumed.derived(ENDS, "the log is one episode: all that came before some moment")
        if self.plan.options.ends == COMPLETE:
            rule = "--ends complete: watching an episode stopped with its last row, by a rule"
            return Assumed.stated(ENDS, rule)
        why = (
            f"of {open_:,} of {episodes:,} episodes nobody knows how long their last state lasted; "
            "--watched-until says until when they were watched, --until-now that it was until the log's last "
            "instant, --ends complete that a rule ended them with their last rows"
        )
        return Assumed.unverified(ENDS, why)

    def _names(self) -> OffsetArray:
        return self.plan.names_of(self.held["episode"], self.held["place"] & ((1 << decoding.TABLE) - 1))

    def _provenance(self, episodes: int) -> Provenance:
        """Which rows were read; where they are in two files, these are the same."""
        plan, place, name = self.plan, self.held["place"], self._names()
        mark = with_number(state_marks(plan.structure)[self.state], self.lasted)
        held: dict[Provenance, DataTable] = {}
        for source, table in enumerate(plan.tables):
            tally, here = RowTally(), place >> decoding.TABLE == source
            tally.add(mark[here], name[here])
            refuse_copy(held, table, tally.finish())
        return replace(joined(held), episodes=episodes)

    def pieces(self) -> Pieces:
        """All stretches of time, in the order of episodes."""
        state, lasted = self.state, self.lasted
        begins = np.r_[True, ~self.goes_on[:-1]]
        enters = begins | np.r_[True, state[1:] != state[:-1]]
        rows = np.arange(len(begins))
        entry, start = (np.maximum.accumulate(np.where(mark, rows, 0)) for mark in (enters, begins))
        passed = np.r_[0.0, np.cumsum(lasted)[:-1]]
        before = np.where(begins[entry], -1, state[np.maximum(entry - 1, 0)])
        episode = np.cumsum(begins) - 1
        columns = columns_of(self.plan.columns, self.beside, self.held, int(episode[-1]) + 1)
        since = (passed - passed[entry], passed - passed[start])
        clock = self.clock if self.plan.has_times else None
        return Pieces(state, lasted, self.transition, episode, *since, before, clock, columns, self._names())


LARGEST_CAP = 10**6
"""Jumps of an episode, where nothing else is said."""


@dataclass(frozen=True, eq=False, repr=False)
class TimedRows(Record):
    """Rows of a log, by episode and time, as `simulate_times` returns them."""

    episode: OffsetArray
    time: FloatArray
    state: OffsetArray
    jumps: int
    structure: Structure = field(repr=False)

    def __post_init__(self) -> None:
        freeze_fields(self)

    def _title_(self) -> str:
        return f"TimedRows: {len(self.episode):,} rows, {self.jumps:,} jumps"

    def _facts_(self) -> Facts:
        return []

    def table(self) -> Any:
        """A log for `learn`: states by the model's variables, or in `state` by their names or index."""
        variables = self.structure.valuations.items()
        own = self.structure.state_names
        named = own is not None and own.are_texts
        states: Any = [own[state] for state in self.state.tolist()] if own and named else self.state
        columns = {name: column[self.state] for name, column in variables} or {"state": states}
        return pa.table({"episode": self.episode, "time": self.time, **columns})


def simulate_times(chain: CTMC, episodes: int, seed: int, time: float, cap: int = LARGEST_CAP) -> TimedRows:
    """Simulate episodes of a chain in continuous time.

    Parameters
    ----------
    chain, episodes, seed
        The chain, the number of episodes from the initial state, and the seed.
    time, cap
        Watch each episode for this time, or until it has had `cap` jumps.

    Returns
    -------
    TimedRows
        Rows for `read_exposure`.

    Examples
    --------

    >>> import tightrope as tr
    >>> chain = tr.build_ctmc_from_rows([(0, {1: 2}), (1, {0: 1})]).instantiate()
    >>> (rows := tr.simulate_times(chain, 3, seed=1, time=10)), rows.table().column_names, rows.time.max()
    (TimedRows: 42 rows, 36 jumps, ['episode', 'time', 'state'], np.float64(10.0))
    """
    if not isinstance(chain, CTMC):
        raise InputError(
            f"`chain` is {describe(chain)}, not a CTMC",
            hint="model.instantiate(lam=0.5) is the chain at a point",
        )
    check_number("time", time, 0, inf)
    rng = np.random.default_rng(seed)
    structure = chain.structure
    total = np.cumsum(chain.rate)
    before = np.r_[0.0, total][structure.transition_start[:-1]]
    leaves = ~absorbing_states(structure)
    now = np.full(episodes, structure.initial, dtype=np.int64)
    clock = np.zeros(episodes)
    number = np.arange(episodes)
    parts: list[tuple[OffsetArray, FloatArray, OffsetArray]] = [(number, clock.copy(), now.copy())]
    jumps = 0
    for _ in range(cap):
        if not len(number):
            break
        waited = rng.exponential(1.0, len(number)) / chain.exit_rate[now]
        later = clock + waited
        ends = (later >= time) | ~leaves[now]
        if ends.any():
            parts.append((number[ends], np.full(int(ends.sum()), time), now[ends]))
        going = ~ends
        number, now, clock = number[going], now[going], later[going]
        place = before[now] + rng.random(len(now)) * chain.exit_rate[now]
        first, last = structure.transition_start[now], structure.transition_start[now + 1] - 1
        transition = np.clip(np.searchsorted(total, place, side="right"), first, last)
        now = chain.successor[transition].astype(np.int64)
        jumps += len(now)
        parts.append((number, clock.copy(), now.copy()))
    episode, times, state = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order: npt.NDArray[np.intp] = np.lexsort((np.arange(len(episode)), episode))
    return TimedRows(episode[order], times[order], state[order], jumps, structure)
