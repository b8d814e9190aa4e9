"""Rows that a log does not have: where its episodes begin, and that they are over.

A log whose episodes begin in several states says by that where they begin, and one whose episodes end in
states that others leave says how often. In a model both are rows: an initial state labelled "start", into
which nothing leads, whose one choice leads to the states in which episodes begin; and a state labelled "end"
that nothing leaves. No row of the log names these two states. So where the model has them and the log never
does, every episode gets a first row, and every one that is over a last one. Both come where they happen: the
first row is known when the episode begins, the last one when it is over, in the order of the log. Where the
action of the first is called `start` as well, it is no step: no bound of a property counts it
(`Structure.draws_start`).

Where the log names one of the two states itself, nothing is added for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.data.episode_log import EpisodeLog
from tightrope.errors import InputError
from tightrope.model.structure import END, START, Structure
from tightrope.numerics.arrays import OffsetArray


def has_added_rows(structure: Structure) -> bool:
    """Whether a model has a state in which episodes only begin, or are only over."""
    return bool(_called(structure, START) or _called(structure, END))


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
                f"an episode begins in {where}, where none begins by the model",
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
    key, times = np.unique(begin * size + structure.successor, return_counts=True)
    transition = {int(k): t for t, k in enumerate((begin * size + structure.successor).tolist())}
    several = set(key[times > 1].tolist())
    wanted = (source.astype(np.int64) * size + target).tolist()
    return np.array([-1 if k in several else transition.get(k, -1) for k in wanted], dtype=np.int64)
