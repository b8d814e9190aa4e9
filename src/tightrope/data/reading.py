"""Counts from logs, streamed: memory holds a few chunks.

Files of `tightrope sample` state their design and model, and are checked. Other logs count as `ADAPTIVE`
(`tightrope.data.design`) unless the caller states more.

*Added rows.* A model may have an initial state labelled "start" with one choice to the states where episodes
begin, and an absorbing state labelled "end". If the log names neither, every episode gets a first row and
every completed one a last row. An action called `start` is no step (`Structure.draws_start`).
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tightrope.data import columns as col
from tightrope.data.columns import RowColumns, find_columns, parse_columns, with_watched
from tightrope.data.counts import LONG, Counts, LazyLog
from tightrope.data.design import ENDS, ORDER, SamplingDesign, SamplingKind, worse
from tightrope.data.episode_log import EpisodeLog, KeptEvents, keep_recent, read_rows
from tightrope.data.fit_tables import observers_for
from tightrope.data.log_counts import NO_OUTCOME, OUT_OF_ORDER, ReadProgress, count_log, stated_design
from tightrope.data.read_options import AS_READ, BY_TIME, COMPLETE, LogReadOptions, with_words
from tightrope.data.read_plan import ReadPlan, engine_at, refuse_copy
from tightrope.data.row_validation import likely_reading
from tightrope.data.rows import TimeFormat, ValueMap, parse_maps, time_format_of
from tightrope.data.steps import count_episodes
from tightrope.data.time_order import with_clock
from tightrope.errors import InputError, Location, describe
from tightrope.io.log_words import ROWS
from tightrope.io.table.data_table import DataTable, Metadata
from tightrope.io.table.files import format_of_object, open_tables
from tightrope.model.structure import END, START, Structure, Structured
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.provenance import Provenance
from tightrope.verdict import Assumed


@dataclass(frozen=True, eq=False, repr=False)
class Reading(Record):
    """Counts, the number of rows behind them, and the number of dropped rows by reason.

    `read_as` are the roles of columns and `notes` further remarks, as lines; `files` are the names in order,
    `metadata` those of the first file that has some. `kept`: the events counted, if some were excluded.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "toss", {1: "1/2", 2: "1/2"}), (1, "", {1: 1}), (2, "", {2: 1})])
    >>> reading = tr.read_data([[(0, "toss", 1)], [(0, "toss", 2)]], model)
    >>> reading.rows, reading.counts.transition.tolist()
    (2, [1, 1, 0, 0])
    """

    counts: Counts
    rows: int
    dropped: Mapping[str, int]
    metadata: Metadata | None
    read_as: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    kept: KeptEvents | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dropped", MappingProxyType(dict(self.dropped)))
        if self.metadata is not None:
            object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def to_arrow(self, model: Structured) -> Any:
        """Return the counts as a table: state, action, next state, count.

        Parameters
        ----------
        model : ParametricMDP or MDP
            The model of the counts.
        """
        return self.counts.to_arrow(model)

    def to_dataframe(self, model: Structured) -> Any:
        """Return `to_arrow` as a data frame.

        Parameters
        ----------
        model : ParametricMDP or MDP
            The model of the counts.
        """
        return self.counts.to_dataframe(model)

    def _title_(self) -> str:
        return f"Reading: {self.rows:,} rows, {self.counts.steps:,} steps"

    def _facts_(self) -> Facts:
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        files = f"{self.files[0]}{more}" if self.files else ""
        dropped = [("dropped", f"{number:,} {reason}") for reason, number in self.dropped.items()]
        lines = [("read as", line) for line in self.read_as] + [("note", note) for note in self.notes]
        return [*([("files", files)] if files else []), *lines, *dropped, *self.counts._facts_()]


@with_words(LogReadOptions)
def read_data(data: object, model: Structured, options: LogReadOptions) -> Reading:
    """Read a log for a model.

    Parameters
    ----------
    data
        A path, a pattern, a directory, an address of a store, or a list of them; a table of pandas, polars,
        pyarrow or Spark; or an iterable of whole episodes, each a sequence of (state, action, next state).
    model, **options
        As in `tightrope data --help`. `columns` names columns, {"state": "from", "next_state": "to"};
        `skip_invalid` drops rows that the model excludes (`Reading.dropped`).

    Returns
    -------
    Reading
        With `read_as`, the import settings.

    Raises
    ------
    InputError
        If the model excludes a row: names file, row and values.

    Examples
    --------
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "toss", {1: "1/2", 2: "1/2"}), (1, "", {1: 1}), (2, "", {2: 1})])
    >>> tr.read_data([[(0, "toss", 1)], [(0, "toss", 2)]], model).counts.transition.tolist()
    [1, 1, 0, 0]
    """
    if not hasattr(model, "structure"):
        raise InputError(f"`model` is {describe(model)}, not a model", hint="tr.load reads one")
    if isinstance(data, Mapping):
        raise InputError(
            f"`data` is {describe(data)}, not a table",
            hint="make a table of it: pandas.DataFrame(data), or pyarrow.table(data)",
        )
    if isinstance(data, Iterator) and format_of_object(data) is None:
        first = next(data, None)
        data, is_log = chain([] if first is None else [first], data), hasattr(first, "__arrow_c_array__")
    else:
        entries = data if isinstance(data, list | tuple) else [data]
        is_log = bool(entries) and all(
            isinstance(entry, str | Path | bytes) or format_of_object(entry) is not None for entry in entries
        )
    if not is_log:
        if unused := options.given(ROWS):
            raise InputError(
                f"{' and '.join(unused)} {'is' if len(unused) == 1 else 'are'} about the rows of a log, and "
                "these are whole episodes",
                hint="leave that out, or give the log as a table with times",
            )
        counts, recent = count_episodes(data, model, options)
        counts = _with_design(counts, options)
        rows, notes = (counts.steps, ()) if recent is None else (recent.last, (recent.note,))
        read_as = ("episodes of steps (state, action, next state)",)
        read = Reading(counts, rows, {}, None, read_as, notes, kept=recent)
        return _with_added_rows(read, model, options) if options.ends == COMPLETE else read
    return read_tables(open_tables(data, options.format), model, options)


def read_tables(tables: Sequence[DataTable], model: Structured, options: LogReadOptions) -> Reading:
    """The same for tables that are open."""
    plan = replace(plan_reading(tables, model.structure, options), model_hash=model.hash())
    if sum(table.most_rows for table in tables) > LONG:
        observers = observers_for(model) if options.observers is None else options.observers
        plan = replace(plan, observers=observers)
    with engine_at(options.place, tables) as engine:
        whole = _whole(replace(plan, engine=engine))
    if not any(columns.is_counted for columns in plan.columns):
        read = partial(rows_of, plan, whole.counts.design.order.holds, not plan.skip)
        log = LazyLog(read, read_first=read if whole.counts.observed else None)
        whole = replace(whole, counts=replace(whole.counts, log=log))
        whole = _with_added_rows(whole, model, options)
    if options.recent is None:
        return whole
    counts, recent = keep_recent(
        plan,
        model,
        whole.counts,
        options.recent,
        dropped=sum(whole.dropped.values()),
        is_sorted=not any(note.startswith(OUT_OF_ORDER) for note in whole.notes),
    )
    return replace(whole, counts=counts, notes=(*whole.notes, recent.note), kept=recent)


def _called(structure: Structure, word: str) -> list[int]:
    """The states that alone have this label, also with strokes behind it, and are what it says."""
    labels = (members for name, members in structure.labels.items() if name.rstrip("_") == word)
    single = [members for members in labels if members.sum() == 1]
    states = [int(np.argmax(members)) for members in single if word != END or structure.is_closed(members)]
    if word == END:
        return states
    choices = np.diff(structure.choice_start)
    return [
        state
        for state in states
        if structure.initial_states == (state,) and choices[state] == 1 and state not in structure.successor
    ]


def add_rows(log: EpisodeLog, structure: Structure, all_over: bool) -> tuple[EpisodeLog, list[str]]:
    """The log with first and last rows, and what was added, in words; itself where nothing is.

    `all_over`: every episode is over, whether marked or not. Then what it did last has an outcome: the end.
    """
    source, target = log.state(structure), structure.successor[log.transition]
    named = {*np.unique(source).tolist(), *np.unique(target).tolist()}
    start = next((state for state in _called(structure, START) if state not in named), None)
    end = next((state for state in _called(structure, END) if state not in named), None)
    nothing: OffsetArray = np.empty(0, dtype=np.int64)
    first, last, begun, over = nothing, nothing, nothing, nothing
    if start is not None:
        first = np.flatnonzero(log.begins)
        begun = _between(structure, np.full(len(first), start), source[first].astype(np.int64))
        if np.any(begun < 0):
            where = structure.state_name(int(source[first[np.argmax(begun < 0)]]))
            raise InputError(
                f"an episode begins in {where}, which is not an initial state of the model",
                hint='the successors of the state labelled "start" are where episodes begin',
            )
    if end is not None:
        ends = log.over | all_over
        last = len(log) - 1 - np.unique(log.episode[::-1], return_index=True)[1]
        last = last[ends[log.episode[last]]]
        over = _between(structure, target[last].astype(np.int64), np.full(len(last), end))
        last, over = last[over >= 0], over[over >= 0]
    notes = [
        f"{len(rows):,} rows were added that the log does not have: {what}"
        for rows, what in ((first, "where episodes begin"), (last, "that episodes are over"))
        if len(rows)
    ]
    if not notes:
        return log, []
    size = len(log)
    copied = np.concatenate([np.arange(size), first, last])
    place = np.concatenate([3 * np.arange(size) + 1, 3 * first, 3 * last + 2])
    previous = np.concatenate([log.previous, np.full(len(first), -1), last]).astype(np.int64)
    previous[first] = size + np.arange(len(first))
    order = np.argsort(place, kind="stable")
    number = np.empty(len(order) + 1, dtype=np.int64)
    number[order], number[-1] = np.arange(len(order)), -1
    ended = log.over.copy()
    ended[log.episode[last]] = True
    return replace(
        log,
        transition=np.concatenate([log.transition, begun, over])[order].astype(np.int32),
        previous=number[previous[order]].astype(np.int32),
        episode=log.episode[copied[order]],
        over=ended,
        time=None if log.time is None else log.time[copied[order]],
        names=None if log.names is None else log.names[copied[order]],
        columns={name: column.select(copied[order]) for name, column in log.columns.items()},
        excluded=tuple(
            replace(one, row=int(number[one.row]) if one.row < size else len(order)) for one in log.excluded
        ),
    ), notes


def _between(structure: Structure, source: OffsetArray, target: OffsetArray) -> OffsetArray:
    """The only transition from each state to another, −1 where there is none, or more than one."""
    begin, size = structure.choice_state[structure.transition_choice].astype(np.int64), structure.states
    pairs = begin * size + structure.successor
    keys, transition, times = np.unique(pairs, return_index=True, return_counts=True)
    wanted = source.astype(np.int64) * size + target
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[place] == wanted) & (times[place] == 1), transition[place], -1)


def _with_added_rows(whole: Reading, model: Structured, options: LogReadOptions) -> Reading:
    """With the rows that say where episodes begin and that they are over, where the model has such."""
    counts, structure = whole.counts, model.structure
    if counts.log is None or not (_called(structure, START) or _called(structure, END)):
        return whole
    log, notes = add_rows(counts.log(), structure, options.ends == COMPLETE)
    if not notes:
        return whole
    if options.recent is not None:
        raise InputError(
            "the model has rows that the log does not contain, so events cannot be numbered",
            hint="leave `since` and `window` out, or write these rows into the log",
        )
    if log.rows_left_out:
        raise InputError(
            f"the search for the first and last rows of episodes is limited to {len(counts.log()):,} rows",
            hint="give a part of the log, or write the first and last rows of episodes into it",
        )
    design = counts.design
    if options.ends == COMPLETE and len(log) - len(counts.log()) >= log.episodes and log.over.all():
        missing = tuple(one for one in design.censored if not one.endswith(NO_OUTCOME))
        design = replace(design, censored=missing, open_end=False)
    more = replace(log.counts(model, design), costs=counts.costs, seen=counts.provenance)
    if counts.batches is None:
        more = replace(more, batches=None)
    return replace(whole, counts=more, notes=(*whole.notes, *notes))


def counts_with_rows(plan: ReadPlan, model: Structured) -> Counts:
    """The counts of a log and its rows; what the model excludes is left out of both, and listed."""
    plan = replace(plan, model_hash=model.hash())
    counts = _whole(plan.lenient).counts
    rows = rows_of(plan, counts.design.order.holds, strict=False)
    return replace(counts, log=lambda: rows)


def rows_of(plan: ReadPlan, in_time: bool, strict: bool, most: int | None = None) -> EpisodeLog:
    """The rows of all segments of a log, one after the other; the first `most` of one that is in order."""
    return reduce(operator.add, (read_rows(one, in_time, strict, most) for one in _segments(plan)))


def plan_reading(tables: Sequence[DataTable], structure: Structure, options: LogReadOptions) -> ReadPlan:
    """What every table's columns mean; tables of one shape are read alike."""
    variables = tuple(structure.valuations)
    given = parse_columns(options.columns, variables)
    maps = parse_maps(options.maps, variables)
    columns = [find_columns(table, structure, options.state_names, given) for table in tables]
    names = {str(n): name for n, name in enumerate(filter(None, structure.action_names))}
    if names and any((table.metadata or {}).get("actions") == "numbers" for table in tables):
        maps.setdefault(col.ACTION, ValueMap(names))
    pairs = list(zip(tables, columns, strict=True))
    clocks = [(table, own.roles[col.TIME]) for table, own in pairs if col.TIME in own.roles]
    written = given.time_format or (time_format_of(clocks) if clocks else None)
    if written is not None:
        maps[col.TIME] = TimeFormat(format=written)
    columns = with_watched(tables, columns, str(options.watched_until), (col.EPISODE, col.TIME))
    for table, own in zip(tables, columns, strict=True):
        _check_maps(table, own, maps)
    if columns and all(own.is_counted for own in columns):
        _refuse_words_about_rows(tables[0], columns[0], options, given)
    plan = ReadPlan(structure, tuple(tables), tuple(columns), maps, options)
    plan.check_free_columns()
    if not tables:
        return plan
    plan = with_clock(plan)
    if options.ends == COMPLETE and not plan.tick.is_regular:  # then nothing happened between
        plan = replace(plan, tick=replace(plan.tick, step=0.0))
    return plan


def describe_design(plan: ReadPlan) -> SamplingDesign:
    """What is known of how a log came about, whatever the model says to its rows."""
    return _whole(plan.lenient).counts.design


def _whole(plan: ReadPlan) -> Reading:
    """All segments of the log, one after the other."""
    total: Counts | None = None
    dropped: Counter[str] = Counter()
    rows, notes, options = 0, list[str](), plan.options
    watch = ReadProgress.over(plan.tables, options.progress)
    segments = _segments(plan)
    held: dict[Provenance, DataTable] = {}
    for segment in segments:
        _refuse_design(segment.tables[0], options, len(segments) == 1)
        log = count_log(segment, watch)
        for table, rows_held in zip(segment.tables, log.seen, strict=True):
            refuse_copy(held, table, rows_held)
        rows += log.rows
        dropped += log.dropped
        notes += log.notes
        counts = log.counts
        if total is not None:
            counts = replace(counts, design=_after(total.design, counts.design, options))
        total = counts if total is None else total + counts
    assert total is not None
    names = tuple(table.path for table in plan.tables)
    metadata = next((table.metadata for table in plan.tables if table.metadata is not None), None)
    if rows and rows == sum(dropped.values()):
        reasons = ", ".join(f"{times:,} {reason}" for reason, times in dropped.items())
        hint = "read it without `skip_invalid=True`: the error then says what is wrong with the first row"
        raise plan.tables[0].error(
            f"not one of the {rows:,} rows can be counted ({reasons})", likely_reading(plan, 0) or hint
        )
    if rows == 0 and metadata is None:
        what = "the file has a header but no rows" if len(names) == 1 else "none of the files has a row"
        raise InputError(what, Location(names[0]))
    total = _with_design(total, options)
    notes += _about_plan(total.design, options)
    columns = plan.columns[0]
    notes += [*options.overridden, *col.unused_columns(plan.tables[0], columns.names, list(columns.roles))]
    called = {role: dict(known) for role, one in plan.maps.items() if (known := one.calls)}
    about = tuple(dict.fromkeys(notes))
    counts = replace(total, names=called)
    return Reading(counts, rows, dict(dropped), metadata, _read_as(plan), about, names)


def _after(earlier: SamplingDesign, later: SamplingDesign, options: LogReadOptions) -> SamplingDesign:
    """The later of two data sets that are read one after the other: nothing says that it came later.

    Where neither policy looked at outcomes the two are independent, and any order is theirs.
    """
    adaptive = SamplingKind.ADAPTIVE in (earlier.kind, later.kind) or later.planned_from is not None
    if not adaptive:
        return later
    if options.order == AS_READ:
        order = Assumed.stated(ORDER, "--order as-read: files stand in the order in which they came")
    else:
        why = "nothing says that these files came one after the other; --order as-read states it"
        order = Assumed.unverified(ORDER, why)
    return replace(later, order=worse(later.order, order))


def _segments(plan: ReadPlan) -> list[ReadPlan]:
    """Files of our own and tables of counts stand for themselves; other files in a row are one log."""
    groups, is_plain = list[list[int]](), list[bool]()
    for number, table in enumerate(plan.tables):
        is_plain.append(table.metadata is None and not plan.columns[number].is_counted)
        if number and is_plain[-2] and is_plain[-1] and plan.shape(number - 1) == plan.shape(number):
            groups[-1].append(number)
        else:
            groups.append([number])
    segments = []
    for group in groups:
        tables, columns = tuple(plan.tables[n] for n in group), tuple(plan.columns[n] for n in group)
        segment = replace(plan, tables=tables, columns=columns)
        segments.append(replace(segment, by_episodes=_by_episodes(segment)))
    return segments


def _by_episodes(plan: ReadPlan) -> bool:
    """Whether batches end after numbers of episodes: in files of ours, and under a plan of episodes."""
    table = plan.tables[0]
    if col.EPISODE not in plan.roles:
        return False
    if (table.metadata or {}).get("batching") == "episodes" and stated_design(table) is not None:
        return True
    return plan.options.counts_episodes


def _refuse_design(table: DataTable, options: LogReadOptions, is_alone: bool) -> None:
    """Refuse a stated design that assumes more than what a file records of itself."""
    recorded, stated = stated_design(table), options.stated_kind
    if recorded is None or stated is None:
        return
    held = replace(recorded, planned_from=None) if is_alone else recorded
    if (weaker := held.merged(SamplingDesign(stated)).kind) is not stated:
        raise table.error(
            f"`design` says {stated.value}, and the file records that its data are {weaker.value}",
            "leave `design` out: the file says how it was sampled",
        )


def _with_design(counts: Counts, options: LogReadOptions) -> Counts:
    """The counts under the design that the user states, with what is missing from them."""
    held, stated = counts.design, options.stated_design
    if isinstance(stated, SamplingDesign):
        same = {name: getattr(held, name) for name in ("open_end", "by_episodes", "order", "ends")}
        held = replace(stated, censored=tuple(dict.fromkeys(stated.censored + held.censored)), **same)
    elif stated is not None:
        held = replace(held, kind=stated, planned=None if stated is SamplingKind.ADAPTIVE else held.planned)
    if stated is not None and held.kind is SamplingKind.GENERATIVE_FIXED and not held.ends.holds:
        drawn = "--design generative: rows are draws of single choices, whose number was fixed in advance"
        held = replace(held, ends=Assumed.stated(ENDS, drawn))
    if options.planned_episodes is not None:
        missing = held.censored
        plan, seen = options.planned_episodes, held.episodes
        went_on = seen is not None and seen > plan and held.kind is SamplingKind.ADAPTIVE
        if seen is not None and seen != plan and not went_on:
            missing += (f"{plan:,} episodes were planned, the log has {seen:,}",)
        recorded = counts.design.planned
        contradicted = recorded is not None and recorded != plan
        if contradicted:
            missing += (f"the plan of {plan:,} episodes came late: the data record one of {recorded:,}",)
        late = held.late_plan or contradicted
        held = replace(held, planned=plan, censored=missing, late_plan=late)
    return replace(counts, design=held)


def _about_plan(design: SamplingDesign, options: LogReadOptions) -> list[str]:
    """What was planned, what came, and what that means."""
    plan, came = options.planned_episodes, design.episodes
    if plan is None:
        return []
    planned = f"{plan:,} episodes were planned"
    if came is None:
        return [f"{planned}, but the log does not tell episodes apart: the plan is not used"]
    if design.late_plan:
        return [f"{planned}, {came:,} came; the plan came late, and is not used"]
    if came < plan:
        why = "nobody knows whether the others are missing for how they came out"
        return [f"{planned}, {came:,} came: {why}, so the confidence is nominal"]
    more = "" if came == plan else ", and going on costs only width"
    return [f"{planned}, {came:,} came: pilot and bets follow the plan{more}"]


def _read_as(plan: ReadPlan) -> tuple[str, ...]:
    """How the columns were read, once for all files of one shape."""
    lines: dict[str, list[str]] = {}
    for table, columns in zip(plan.tables, plan.columns, strict=True):
        lines.setdefault(columns.read_as, []).append(table.path)
    maps = [f"values mapped: {role}: {value_map.text}" for role, value_map in plan.maps.items()]
    if len(lines) == 1:
        shown = list(lines)
    else:
        shown = [f"{paths[0]}{' …' if len(paths) > 1 else ''}: {line}" for line, paths in lines.items()]
    return (*shown, *dict.fromkeys(line for table in plan.tables for line in table.format.made), *maps)


def _check_maps(table: DataTable, columns: RowColumns, maps: Mapping[str, ValueMap]) -> None:
    used = dict(columns.each)
    unused = [role for role in maps if role not in used]
    if unused:
        raise table.error(
            f"`maps` gives values of '{unused[0]}', but the log is not read by it",
            f"it is read by {', '.join(used)}",
        )


def _refuse_words_about_rows(
    table: DataTable, columns: RowColumns, options: LogReadOptions, given: Mapping[str, str]
) -> None:
    """A table of counts has neither rows in time nor ends of episodes: words about them would do nothing."""
    words = options.given(ROWS)
    if options.order == BY_TIME:
        words.append('`order="time"`')
    used = dict(columns.each)
    unread = [role for role, column in given.items() if column and role not in used]
    words += [f"the column of the {col.describe_role(role)} (`columns`)" for role in unread]
    if words:
        raise table.error(
            f"this is a table of counts, with one row per counted transition: {' and '.join(words)} "
            f"{'requires' if len(words) == 1 else 'require'} the rows of a log, one per step",
            'leave that out, or give the log that was counted; of a table of counts `ends="complete"` states '
            "that it counts all that was seen",
        )
