"""Wide tables of survival, one row per subject with a time and a status for each event, as logs with times.

`columns="enter ill=ill.time:ill.status, enter dead=death.time:death.status"` says of each state when subjects
entered it (status 1, or true) or until when they were watched without entering it (status 0). Every subject
begins in the model's initial state, at 0 or at the time that `columns="time=…"` names, and is watched until
the last of its times. An event that was looked for over a shorter time is refused where it could have come
after: time at risk that nobody watched would make its rate too small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.data.columns import EPISODE, TIME, StateNames, column_entries
from tightrope.data.costs import cost_values
from tightrope.data.design import absorbing_states
from tightrope.data.read_options import LogReadOptions
from tightrope.data.rows import plain_text
from tightrope.errors import InputError
from tightrope.io.table.columns import ArrowColumn, ProblemCodes, truth_values
from tightrope.io.table.data_table import DataTable
from tightrope.io.table.files import open_tables
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.late import pa

ENTER = "enter "
HINT = '`columns="enter dead=death.time:death.status"` names the columns of the time and of the status'


@dataclass(frozen=True)
class Entry:
    """The columns that say when, and whether, subjects entered a state."""

    state: int
    time: str
    status: str


def entries_of(options: LogReadOptions, structure: Structure) -> tuple[list[Entry], LogReadOptions]:
    """What `columns` says of events, and the options without it."""
    given = column_entries(options.columns or {})
    wide = {role: columns for role, columns in given.items() if role.startswith(ENTER)}
    if not wide:
        return [], options
    entries = []
    for role, columns in wide.items():
        time, colon, status = (part.strip() for part in columns.rpartition(":"))
        if not colon or not time or not status:
            raise InputError(f"`columns` gives {role!r} the columns {columns!r}, not two", hint=HINT)
        entries.append(Entry(_state(role.removeprefix(ENTER).strip(), structure), time, status))
    if len({entry.state for entry in entries}) < len(entries):
        raise InputError("`columns` gives the entry of one state twice", hint=HINT)
    rest = {role: column for role, column in given.items() if role not in wide}
    unknown = [role for role in rest if role not in (TIME, EPISODE)]
    if unknown:
        raise InputError(
            f"`columns` refers to '{unknown[0]}', which a table with one row per subject does not have",
            hint=f"beside the entries of states it has {TIME}, when watching began, and {EPISODE}",
        )
    return entries, replace(options, columns=rest)


def _state(name: str, structure: Structure) -> int:
    """The state that a name means."""
    own = structure.state_names
    if own is not None and (found := own.find(name)) >= 0:
        return found
    if name in structure.labels and int(structure.labels[name].sum()) == 1:
        return int(np.argmax(structure.labels[name]))
    if name.isdigit() and int(name) < structure.states:
        return int(name)
    single = [label for label, states in structure.labels.items() if int(states.sum()) == 1]
    known = ", ".join(map(str, list(own or [])[:8])) or ", ".join(single)
    raise InputError(
        f"`columns` says when subjects enter '{name}', which is not a state of the model nor a label of one",
        hint=f"there are {known}" if known else "give the state by its index",
    )


def as_timed_tables(
    tables: Sequence[DataTable], entries: Sequence[Entry], structure: Structure, options: LogReadOptions
) -> tuple[tuple[DataTable, ...], LogReadOptions]:
    """The tables as logs with one row per change, and how these are read."""
    long = pa.concat_tables(
        [_rows(table, entries, structure, column_entries(options.columns or {})) for table in tables],
        promote_options="permissive",
    )
    opened = open_tables(long)
    return tuple(opened), replace(options, columns={EPISODE: EPISODE, TIME: TIME}, states=StateNames.INDEX)


def _rows(table: DataTable, entries: Sequence[Entry], structure: Structure, given: Mapping[str, str]) -> Any:
    wanted = [column for entry in entries for column in (entry.time, entry.status)]
    wanted += [column for column in given.values() if column]
    missing = [column for column in wanted if column not in table.names]
    if missing:
        raise table.error(f"the table has no column '{missing[0]}'", f"it has {', '.join(table.names)}")
    whole = table.read_all()
    subjects = whole.num_rows
    begin = np.zeros(subjects) if TIME not in given else _times(whole[given[TIME]], given[TIME], table)
    when = np.stack([_times(whole[entry.time], entry.time, table) for entry in entries], axis=1)
    flags = [_status(whole[entry.status], entry.status, table) for entry in entries]
    happened: BoolArray = np.stack(flags, axis=1)
    until = when.max(axis=1)
    _check_times(table, begin, when, happened, entries, structure)
    order = np.argsort(np.where(happened, when, np.inf), axis=1, kind="stable")
    states = np.array([entry.state for entry in entries], dtype=np.int64)[order]
    times, counted = np.take_along_axis(when, order, 1), np.take_along_axis(happened, order, 1)
    seen = counted.sum(axis=1)
    last = np.where(seen > 0, states[np.arange(subjects), np.maximum(seen - 1, 0)], structure.initial)
    reached = np.where(counted, times, -np.inf).max(axis=1, initial=-np.inf)
    ends = (until > np.maximum(begin, reached)) & ~absorbing_states(structure)[last]
    every = np.arange(subjects)
    subject: OffsetArray = np.concatenate(
        [every, np.broadcast_to(every[:, None], times.shape)[counted], every[ends]]
    )
    clock: FloatArray = np.concatenate([begin, times[counted], until[ends]])
    state = np.concatenate([np.full(subjects, structure.initial), states[counted], last[ends]])
    sort = np.lexsort((clock, subject))
    rows = pa.array(subject[sort])
    taken = {name: whole[name].take(rows) for name in table.names if name not in wanted}
    episode = rows if EPISODE not in given else whole[given[EPISODE]].take(rows)
    clash = [name for name in taken if name in (EPISODE, TIME, "state")]
    taken = {f"{name} of the table" if name in clash else name: column for name, column in taken.items()}
    return pa.table({EPISODE: episode, TIME: clock[sort], "state": state[sort], **taken})


def _times(column: ArrowColumn, name: str, table: DataTable) -> FloatArray:
    values = cost_values(column.combine_chunks(), name, table.path)
    if np.isnan(values).any():
        row = int(np.argmax(np.isnan(values)))
        shown = plain_text(column[row].as_py())
        message = f"{name} is {shown!r}, not a time" if shown else f"{name} has no time"
        raise table.error(message, None, 1 + row)
    return values


def _status(column: ArrowColumn, name: str, table: DataTable) -> BoolArray:
    flags: ProblemCodes = np.zeros(len(column), dtype=np.int8)
    values = truth_values(column.combine_chunks(), name, table.path, flags)
    if flags.any() or column.null_count:
        wrong = (flags != 0) | np.asarray(column.is_null())
        hint = "1 where the event happened then, 0 where it was not seen until then"
        raise table.error(f"{name} is neither 0 nor 1", hint, 1 + int(np.argmax(wrong)))
    return values


def _check_times(
    table: DataTable,
    begin: FloatArray,
    when: FloatArray,
    happened: BoolArray,
    entries: Sequence[Entry],
    structure: Structure,
) -> None:
    """Subjects are watched from `begin` on, for each event until `when`, where it may have `happened`.

    Events come after watching began, one at a time, and nothing after a state that nothing leaves; what was
    not seen was looked for as long as it could have come.
    """
    early = happened & (when <= begin[:, None])
    if early.any():
        row, event = divmod(int(np.argmax(early)), len(entries))
        message = f"{entries[event].time} is {when[row, event]:g}, not after watching began"
        raise table.error(message, None, 1 + row)
    moments = np.sort(np.where(happened, when, np.arange(1, when.shape[1] + 1) * 1e300), axis=1)
    twice = (np.diff(moments, axis=1) == 0).any(axis=1)
    if twice.any():
        message = "two events happen at one instant, and nobody knows which came first"
        raise table.error(
            message, "set them apart, in the order in which they came", 1 + int(np.argmax(twice))
        )
    nowhere = absorbing_states(structure)
    for one, entry in enumerate(entries):
        after = (happened & (when > when[:, [one]])).any(axis=1) & happened[:, one]
        if nowhere[entry.state] and after.any():
            name = structure.state_name(entry.state)
            raise table.error(
                f"an event follows {name}, which nothing leaves", None, 1 + int(np.argmax(after))
            )
    source = structure.choice_state[structure.transition_choice]
    leads = {(int(a), int(b)) for a, b in zip(source, structure.successor, strict=True)}
    until = when.max(axis=1)
    for row, event in np.argwhere(~happened & (when < until[:, None])).tolist():
        to = entries[event].state
        visits = sorted((when[row, k], entries[k].state) for k in np.flatnonzero(happened[row]).tolist())
        states, ends = [structure.initial, *(s for _, s in visits)], [*(t for t, _ in visits), until[row]]
        at_risk = [s for s, end in zip(states, ends, strict=True) if end > when[row, event]]
        if any((state, to) in leads for state in at_risk):
            name = structure.state_name(to)
            message = (
                f"{name} was looked for until {when[row, event]:g}, and the subject was watched until "
                f"{until[row]:g}: what came between nobody knows"
            )
            hint = f"where it was watched, {entries[event].time} is the end of watching"
            raise table.error(message, hint, 1 + row)
