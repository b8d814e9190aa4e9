"""Labelled readings: a table of states, what a sensor reported there, and how often, joined with a model.

    position,camera,count
    0,left,4
    0,middle,913

Columns that are called as variables of the model say in which states a reading was made; `state` does where
its states have names instead. `count` is a number of rows like this one, 1 where there is no such column.
One column more is the reading. States that agree on the columns given share one sensor (that is the reading
of the table: the sensor depends on nothing else), which may report all readings of the table, and one that it
never showed (`UNSEEN`), each with an unknown probability. In states that no action leaves nothing is read.

The readings count as draws from the sensor in a known state, in any number and order that did not look ahead.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.reading import Reading
from tightrope.errors import InputError, Location, describe
from tightrope.model.free import free
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, UNSEEN
from tightrope.model.sensor import observed
from tightrope.model.structure import Structure
from tightrope.numerics.text import reading as opening

COUNT, STATE = "count", "state"
USUAL = ("observation", "reading", "seen")
"""Names by which the column of readings is known where there are others."""

SENSOR = "sensor at "
ENDED = "ended"
"""What is seen in states that no action leaves: there is nothing to read any more."""


@dataclass(frozen=True)
class _Table:
    name: str
    header: tuple[str, ...]
    rows: list[tuple[int, tuple[Any, ...]]]
    """With the number of the line."""

    def error(self, line: int, message: str, hint: str | None = None) -> InputError:
        return InputError(message, Location(self.name, line), hint)


def with_sensor(plant: Any, table: Any, column: str | None = None) -> tuple[POMDP, Reading]:
    """The plant with a sensor of which the table is all that is known, and the counts of its readings.

    `table` is the path of a CSV file, a data frame, or a list of rows {column: value}; `column` names that of
    the readings.

    >>> import tightrope as tr
    >>> rows = [(0, "l", {1: 1}), (0, "r", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> plant = tr.build_from_rows(rows, labels={"won": [1]})
    >>> pomdp, reading = with_sensor(plant, [{"state": 0, "seen": "hot", "count": 40}])
    >>> pomdp.names, reading.counts.steps
    (('sensing', 'hot', 'unseen', 'ended'), 40)
    """
    behind = plant.model if isinstance(plant, POMDP) else plant
    if isinstance(behind, IntervalMDP) or not isinstance(behind, ParametricMDP | MDP):
        raise InputError(
            f"a sensor requires models in discrete time without intervals, not {describe(plant)}"
        )
    if isinstance(behind, MDP):
        raise InputError(
            "the probabilities of the model are doubles, and a sensor requires exact probabilities",
            hint="write the model in PRISM's language, or its numbers as fractions",
        )
    read = _read(table)
    named, reading_at, count_at = _columns(read, behind, column)
    keys = _keys(behind, named)
    seen: dict[tuple[Any, ...], dict[str, int]] = {}
    known = set(keys)
    for line, row in read.rows:
        key = _key(read, line, row, named, behind)
        if key not in known:
            shown = ", ".join(f"{name}={value}" for (name, _), value in zip(named, key, strict=True))
            raise read.error(line, f"no state of the model has {shown}")
        reading = str(row[reading_at]).strip()
        if not reading or row[reading_at] is None:
            raise read.error(line, "the reading is missing", "an image without a report is not a reading")
        number = 1 if count_at is None else _number(read, line, row[count_at])
        own = seen.setdefault(key, {})
        own[reading] = own.get(reading, 0) + number
    readings = sorted({reading for own in seen.values() for reading in own})
    if reserved := {UNSEEN, ENDED} & set(readings):
        raise InputError(
            f"{reserved.pop()!r} is not a reading: it has a meaning of its own", Location(read.name)
        )
    if not readings:
        raise InputError("the table has no rows", Location(read.name))
    kinds = [None if over else key for key, over in zip(keys, _ended(behind.structure), strict=True)]
    possible = [*readings, UNSEEN]
    rows: list[Any] = [
        {ENDED: 1} if key is None else dict.fromkeys(possible, free(_sensor_name(named, key)))
        for key in kinds
    ]
    pomdp = observed(plant, rows)
    counts = _counts(pomdp, kinds, seen, readings)
    shown = ", ".join(name for name, _ in named)
    total = int(counts.transition.sum())
    words = (
        f"readings {read.header[reading_at]!r} given {shown}: {total:,} of {len(seen):,} kinds of states, "
        f"{len(readings):,} readings"
    )
    missing = len({key for key in kinds if key is not None} - set(seen))
    notes = (
        f"{missing:,} kinds of states have no reading in the table: there nothing is known of the sensor",
    )
    about = notes if missing else ()
    return pomdp, Reading(counts, len(read.rows), {}, None, (words,), about, (read.name,))


def counted(pomdp: POMDP, reading: Reading) -> dict[str, Fraction]:
    """The sensors' parameters where each reports as often as in the table: to simulate with, no bound.

    >>> import tightrope as tr
    >>> rows = [(0, "l", {1: 1}), (0, "r", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> plant = tr.build_from_rows(rows, labels={"won": [1]})
    >>> table = [{"state": 0, "seen": "hot", "count": 30}, {"state": 0, "seen": "cold", "count": 10}]
    >>> [str(share) for share in counted(*with_sensor(plant, table)).values()]
    ['1/4', '3/4']
    """
    model = pomdp.model
    assert isinstance(model, ParametricMDP)
    times = np.zeros(len(model.expressions), np.int64)
    np.add.at(times, model.expression, reading.counts.transition)
    place = {str(model.expressions.function(e)): e for e in np.unique(model.expression).tolist()}
    at: dict[str, Fraction] = {}
    for sensor in model.parameters.free:
        if not (sensor.name or "").startswith(SENSOR):
            continue
        names = [model.parameters.names[k] for k in sensor.coordinates]
        seen = [int(times[place[str(each)]]) for each in sensor.probabilities]
        if not sum(seen):
            raise InputError(
                f"the table has no reading of the {sensor.name}",
                Location(reading.files[0]),
                "add labelled readings of these states",
            )
        at |= {name: Fraction(k, sum(seen)) for name, k in zip(names, seen, strict=False)}
    return at


def _read(table: Any) -> _Table:
    if isinstance(table, str | PathLike):
        path = Path(table)
        with opening(path) as file:
            lines = csv.reader(file)
            try:
                header = tuple(name.strip() for name in next(lines, []))
                rows = [(lines.line_num, tuple(row)) for row in lines if row]
            except csv.Error as error:
                raise InputError(f"this is not CSV: {error}", Location(str(path), lines.line_num)) from None
        name = str(path)
        short = next((line for line, row in rows if len(row) != len(header)), None)
        if short is not None:
            raise InputError(
                f"this row has not {len(header)} columns as the first line", Location(name, short)
            )
    else:
        records = table.to_dict("records") if hasattr(table, "to_dict") else table
        if not isinstance(records, Sequence) or not all(isinstance(row, Mapping) for row in records):
            raise InputError(
                f"`observations` is {describe(table)}, no table of readings",
                hint="a CSV file, a data frame, or a list of rows {column: value}",
            )
        header = tuple(dict.fromkeys(str(key) for row in records for key in row))
        rows = [(k, tuple(row.get(key) for key in header)) for k, row in enumerate(records, 1)]
        name = "observations"
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"two columns are called {twice!r}", Location(name, 1))
    return _Table(name, header, rows)


def _columns(
    table: _Table, model: ParametricMDP, column: str | None
) -> tuple[list[tuple[str, int]], int, int | None]:
    """The columns of states with their places, that of the reading, and that of counts."""
    header, variables = table.header, model.structure.valuations
    named = [(name, k) for k, name in enumerate(header) if name in variables and name != column]
    if not named and not variables and STATE in header:
        named = [(STATE, header.index(STATE))]
    if not named:
        own = ", ".join(variables) or STATE
        raise table.error(1, "no column says in which state a reading was made", f"there is: {own}")
    count = header.index(COUNT) if COUNT in header and COUNT not in variables else None
    reserved = {place for _, place in named} | ({count} if count is not None else set())
    rest = [k for k in range(len(header)) if k not in reserved]
    if column is not None:
        if column not in header:
            raise table.error(1, f"there is no column {column!r}")
        return named, header.index(column), count
    usual = [k for k in rest if header[k] in USUAL]
    if len(usual) == 1:
        rest = usual
    if len(rest) != 1:
        listed = ", ".join(repr(header[k]) for k in rest) or "none"
        raise table.error(
            1,
            f"one column beside states and counts is the reading, and there are: {listed}",
            "call it 'observation', or leave the others out",
        )
    return named, rest[0], count


def _keys(model: ParametricMDP, named: Sequence[tuple[str, int]]) -> list[tuple[Any, ...]]:
    """What the columns say of every state."""
    own = model.structure
    if named[0][0] == STATE and STATE not in own.valuations:
        return [(str(own.state_names[s] if own.state_names is not None else s),) for s in range(own.states)]
    columns = [own.valuations[name].tolist() for name, _ in named]
    return list(zip(*columns, strict=True))


def _key(
    table: _Table, line: int, row: tuple[Any, ...], named: Sequence[tuple[str, int]], model: ParametricMDP
) -> tuple[Any, ...]:
    values: list[Any] = []
    for name, place in named:
        text = "" if row[place] is None else str(row[place]).strip()
        if not text:
            raise table.error(line, f"{name} is missing: a row without its state says nothing of the sensor")
        if name not in model.structure.valuations:
            values.append(text)
            continue
        lower = text.lower()
        if lower in ("true", "false"):
            values.append(lower == "true")
            continue
        try:
            whole = int(float(text)) if isinstance(row[place], float) else int(text)
        except (ValueError, OverflowError):
            whole = None
        if whole is None or float(text) != whole:
            raise table.error(line, f"{name} is {text!r}, no whole number")
        values.append(whole)
    return tuple(values)


def _number(table: _Table, line: int, value: Any) -> int:
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise table.error(line, f"the count is {value!r}, no whole number of at least 0")
    return int(text)


def _ended(own: Structure) -> list[bool]:
    """Which states no action leaves."""
    leaves = np.zeros(own.states, np.bool_)
    source = own.choice_state[own.transition_choice]
    leaves[source[own.successor != source]] = True
    return (~leaves).tolist()


def _sensor_name(named: Sequence[tuple[str, int]], key: tuple[Any, ...]) -> str:
    return SENSOR + ", ".join(f"{name}={value}" for (name, _), value in zip(named, key, strict=True))


def _counts(
    pomdp: POMDP,
    keys: Sequence[tuple[Any, ...] | None],
    seen: Mapping[Any, Mapping[str, int]],
    readings: list[str],
) -> Counts:
    """How often each reading was made, at one state of every kind."""
    assert isinstance(pomdp.model, ParametricMDP)
    own = pomdp.structure
    total = np.zeros(own.transitions, np.int64)
    first: dict[tuple[Any, ...], int] = {}
    for state, key in enumerate(keys):
        if key is not None and not (own.draws_start and state == own.initial):
            first.setdefault(key, state)
    for key, row in seen.items():
        if key not in first:  # readings where a play has ended say nothing that is asked
            continue
        begin = int(own.transition_start[own.choice_start[first[key]]])
        for place, reading in enumerate(readings):
            total[begin + place] += row.get(reading, 0)
    design = SamplingDesign(SamplingKind.ADAPTIVE, steps=int(total.sum()))
    return Counts(total, own.transition_start, design, pomdp.model.hash())
