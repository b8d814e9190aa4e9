"""Labelled readings: a table of states, what a sensor reported there, and how often, joined with a model.

    position,camera,count
    0,left,4
    0,middle,913

Columns that are called as variables of the model say in which states a reading was made; `state` does where
its states have names instead. One column more is the reading. States that agree on the columns given share
one sensor, which may report all readings of the table, and one that it never showed (`UNSEEN`), each with an
unknown probability. Readings are draws in a known state, in any number and order that did not look ahead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind, absorbing_states
from tightrope.data.reading import Reading
from tightrope.data.rows import plain_text
from tightrope.errors import InputError, Location, describe
from tightrope.io.table.columns import ProblemCodes, RowProblem, mark, whole_numbers
from tightrope.io.table.data_table import DataTable
from tightrope.io.table.files import format_of, format_of_object, open_tables
from tightrope.model.free import free
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, UNSEEN, Seen, observed
from tightrope.numerics.late import pa

COUNT, STATE = "count", "state"
USUAL = ("observation", "reading", "seen")
"""Names by which the column of readings is known where there are others."""

Kind = tuple[object, ...]
"""What the columns of states say of some of them."""

SENSOR = "sensor at "
ENDED = "ended"
"""What is seen in states that no action leaves: there is nothing to read any more."""


def with_sensor(plant: object, table: object, column: str | None = None) -> tuple[POMDP, Reading]:
    """Return the plant with a sensor known from a table only, and the counts of its readings.

    `table` is the path of a CSV file, a data frame, or a list of rows {column: value}; `column` has the
    readings.

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
    opened, held = _opened(table)
    named, reading_at, count_at = _columns(opened, behind, column)
    keys = _keys(behind, named)
    known, seen = set(keys), Counter[tuple[Kind, str]]()
    numbers = [1] * held.num_rows if count_at is None else _values(opened, held, count_at, behind)
    texts = [plain_text(value) for value in held[reading_at].to_pylist()]
    entries = zip(*(_values(opened, held, name, behind) for name in named), strict=True)
    for row, (key, reading, number) in enumerate(zip(entries, texts, numbers, strict=True)):
        if key not in known:
            shown = ", ".join(f"{name}={value}" for name, value in zip(named, key, strict=True))
            raise opened.error(f"no state of the model has {shown}", None, 1 + row)
        if not reading:
            hint = "an image without a report is not a reading"
            raise opened.error("the reading is missing", hint, 1 + row)
        seen[key, reading] += number
    readings, read = sorted({reading for _, reading in seen}), {key for key, _ in seen}
    if reserved := {UNSEEN, ENDED} & set(readings):
        raise opened.error(f"{reserved.pop()!r} is not a reading: it has a meaning of its own")
    kinds = [
        None if over else key for key, over in zip(keys, absorbing_states(behind.structure), strict=True)
    ]
    possible = [*readings, UNSEEN]
    rows: list[Seen] = [
        {ENDED: 1} if key is None else dict.fromkeys(possible, free(_sensor_name(named, key)))
        for key in kinds
    ]
    pomdp = observed(plant if isinstance(plant, POMDP) else behind, rows)
    counts = _counts(pomdp, kinds, seen, readings)
    shown = ", ".join(named)
    total = int(counts.transition.sum())
    words = (
        f"readings {reading_at!r} given {shown}: {total:,} of {len(read):,} kinds of states, "
        f"{len(readings):,} readings"
    )
    missing = len({key for key in kinds if key is not None} - read)
    notes = (
        f"{missing:,} kinds of states have no reading in the table: there nothing is known of the sensor",
    )
    about = notes if missing else ()
    return pomdp, Reading(counts, held.num_rows, {}, None, (words,), about, (opened.path,))


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


def _opened(table: object) -> tuple[DataTable, Any]:
    """The table, and its columns in memory."""
    data, name = table, "observations"
    if isinstance(table, str | PathLike):
        data = os.fspath(table)
    elif isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        header = dict.fromkeys(str(key) for row in table for key in row)
        data = pa.table({key: [row.get(key) for row in table] for key in header})
    elif format_of_object(table) is None:
        raise InputError(
            f"`observations` is {describe(table)}, no table of readings",
            hint="a CSV file, a data frame, or a list of rows {column: value}",
        )
    (opened,) = open_tables(data, "csv" if isinstance(data, str) and format_of(data) is None else None)
    opened = opened if isinstance(data, str) else replace(opened, path=name)
    return opened, opened.read_all()


def _columns(table: DataTable, model: ParametricMDP, column: str | None) -> tuple[list[str], str, str | None]:
    """The columns of states, that of the reading, and that of counts."""
    header, variables, where = table.names, model.structure.valuations, Location(table.path, 1)
    named = [name for name in header if name in variables and name != column]
    if not named and not variables and STATE in header:
        named = [STATE]
    if not named:
        own = ", ".join(variables) or STATE
        raise InputError("no column says in which state a reading was made", where, f"there is: {own}")
    count = COUNT if COUNT in header and COUNT not in variables else None
    if column is not None and column not in header:
        raise InputError(f"there is no column {column!r}", where)
    rest = [name for name in header if name not in (*named, count)]
    rest = [name for name in rest if name in USUAL] if column is None and len(rest) > 1 else rest
    reading = [column] if column is not None else rest
    if len(reading) != 1:
        listed = ", ".join(repr(name) for name in header if name not in (*named, count)) or "none"
        message = f"one column beside states and counts is the reading, and there are: {listed}"
        raise InputError(message, where, "call it 'observation', or leave the others out")
    return named, reading[0], count


def _keys(model: ParametricMDP, named: Sequence[str]) -> list[Kind]:
    """What the columns say of every state."""
    own = model.structure
    if named[0] == STATE and STATE not in own.valuations:
        return [(str(own.state_names[s] if own.state_names is not None else s),) for s in range(own.states)]
    return list(zip(*(own.valuations[name].tolist() for name in named), strict=True))


def _values(table: DataTable, held: Any, name: str, model: ParametricMDP) -> list[Any]:
    """What a column of states, or that of counts, says row by row."""
    values: list[Any] = [plain_text(value) for value in held[name].to_pylist()]
    flags: ProblemCodes = np.zeros(len(values), dtype=np.int8)
    is_variable = name in model.structure.valuations
    if not is_variable and name != COUNT:
        flags[[not text for text in values]] = RowProblem.MISSING_VALUE
        whole = values
    else:
        numbers = whole_numbers(held[name].combine_chunks(), name, table.path, flags)
        mark(flags, (numbers < 0) & (not is_variable), RowProblem.NEGATIVE_COUNT)
        whole = numbers.tolist()
    if flags.any():
        row = int(np.argmax(flags != 0))
        message = f"{name} is {values[row]!r}, no whole number"
        if name == COUNT and not is_variable:
            message = f"the count is {values[row] or 'missing'}, no whole number of at least 0"
        elif flags[row] == RowProblem.MISSING_VALUE:
            message = f"{name} is missing: a row without its state says nothing of the sensor"
        raise table.error(message, None, 1 + row)
    return whole


def _sensor_name(named: Sequence[str], key: Kind) -> str:
    return SENSOR + ", ".join(f"{name}={value}" for name, value in zip(named, key, strict=True))


def _counts(
    pomdp: POMDP,
    keys: Sequence[Kind | None],
    seen: Mapping[tuple[Kind, str], int],
    readings: list[str],
) -> Counts:
    """How often each reading was made, at one state of every kind."""
    assert isinstance(pomdp.model, ParametricMDP)
    own = pomdp.structure
    total = np.zeros(own.transitions, np.int64)
    first: dict[Kind, int] = {}
    for state, key in enumerate(keys):
        if key is not None and not (own.draws_start and state == own.initial):
            first.setdefault(key, state)
    place = {reading: number for number, reading in enumerate(readings)}
    for (key, reading), number in seen.items():
        if key in first:  # readings where a play has ended say nothing that is asked
            begin = int(own.transition_start[own.choice_start[first[key]]])
            total[begin + place[reading]] += number
    design = SamplingDesign(SamplingKind.ADAPTIVE, steps=int(total.sum()))
    return Counts(total, own.transition_start, design, pomdp.model.hash())
