"""Hints about a log that the model cannot explain: other import settings, and unknown values.

Other settings (`likely_reading`) are tried on the first rows, and reported if the settings taken fail for
many of them and the others for none. `unknown_values` reads the log again and counts values that are no
state, action or transition; the most frequent ones usually show the cause, such as another name or unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations

import numpy as np

from tightrope.data.columns import (
    ACTION,
    BATCH,
    CHOICE,
    COUNT,
    EPISODE,
    NEXT_STATE,
    STATE,
    STEP,
    RowColumns,
    StateNames,
    describe_role,
)
from tightrope.data.model_index import NO_SUCH_ACTION
from tightrope.data.read_plan import ReadPlan
from tightrope.data.rows import NO_ACTION, EventBatch, RowDecoder, ValueMap
from tightrope.errors import InputError
from tightrope.io.table.columns import (
    ProblemCodes,
    RowProblem,
    dense,
    describe_column,
    look,
    some_values,
    truth_values,
    whole_numbers,
)
from tightrope.io.table.data_table import Chunk
from tightrope.numerics.arrays import BoolArray
from tightrope.numerics.late import pa

LOOKED_AT = 20_000
"""Rows that are looked at."""

FEWEST = 3
"""Fewer rows fit too many settings to speak for one."""

SUSPICIOUS = 0.2
"""The share of rows that must fail before other settings are tried."""

Other = tuple[str, RowColumns, Mapping[str, ValueMap]]
"""Other import settings: what to say, and the columns and maps that this means."""


def likely_reading(plan: ReadPlan, table: int) -> str | None:
    """ "These look like …", where other settings explain all of the first rows; None where none do."""
    columns = plan.columns[table]
    try:
        chunk = next(plan.tables[table].chunks(columns.names), None)
    except InputError:
        return None
    if chunk is None or chunk.rows < FEWEST:
        return None
    if chunk.rows > LOOKED_AT:
        first = {name: column.slice(0, LOOKED_AT) for name, column in chunk.columns.items()}
        chunk = Chunk(chunk.first_row, LOOKED_AT, first)
    step = columns.roles.get(STEP)
    if step is not None and look(some_values(chunk.columns[step])) == "dates":
        return f"these look like times in the column '{step}': say `columns=\"time={step}\"`"
    if _fitting(plan, table, chunk) > 1 - SUSPICIOUS:
        return None
    for words, others, maps in _others(plan, columns):
        listed = (*plan.columns[:table], others, *plan.columns[table + 1 :])
        if _fitting(replace(plan, columns=listed, maps={**plan.maps, **maps}), table, chunk) == 1:
            return f"these look like {words}"
    return None


def _fitting(plan: ReadPlan, table: int, chunk: Chunk) -> float:
    """The share of rows that are transitions of the model."""
    try:
        rows = plan.decoder(table).decode(chunk)
    except InputError:
        return 0.0
    if plan.columns[table].from_next_row:
        same = np.diff(rows.episode) == 0 if EPISODE in plan.columns[table].roles else True
        follows = np.flatnonzero(same & ~rows.ended[:-1])
        rows = replace(rows[follows], next_state=rows.state[follows + 1])
    plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
    return float((rows.problems == RowProblem.NONE).mean()) if len(rows) else 0.0


def _others(plan: ReadPlan, columns: RowColumns) -> Iterator[Other]:
    """Other settings, the likeliest first."""
    structure, variables = plan.structure, tuple(plan.structure.valuations)
    one, shown = columns.state[0], f"the column '{columns.state[0]}'"
    by_index, less = replace(columns, by=StateNames.INDEX), ValueMap(steps=(("-", Fraction(1)),))
    if len(columns.state) == 1 and not columns.by_index:
        yield f'the model\'s numbers of its states (from 0) in {shown}: say `states="index"`', by_index, {}
    elif len(columns.state) == 1:
        if structure.state_names is not None and structure.state_names.are_numbers:
            words = f'what the model\'s author calls its states, in {shown}: say `states="own"`'
            yield words, replace(columns, by=StateNames.OWN), {}
        if len(variables) == 1:
            words = f"the variable {variables[0]} in {shown}: say `columns='{variables[0]}={one}'`"
            roles = dict(zip((variables[0], f"{variables[0]}'"), columns.state_roles.values(), strict=False))
            yield words, replace(columns, by=StateNames.VARIABLES, state_roles=roles), {}
    if len(columns.state) == 1:
        words = f"the model's numbers of its states counted from 1 in {shown}: say"
        yield f"{words} `states=\"index\"` and `maps='state: -1'`", by_index, {STATE: less}
    if columns.by is StateNames.VARIABLES:
        more = ValueMap(steps=(("+", Fraction(1)),))
        for shift, words in ((less, "counted from one more"), (more, "counted from one less")):
            listed = ", ".join(f"'{name}: {shift.text}'" for name in variables)
            words = f"variables {words} than in the model: say `maps=[{listed}]`"
            yield words, columns, dict.fromkeys(variables, shift)
        for order in permutations(range(len(variables))) if len(variables) <= 4 else ():
            state, after = (
                tuple(names[k] for k in order) if names else ()
                for names in (columns.state, columns.next_state)
            )
            yield _renamed(columns, "columns of variables in another order", (*state, *after))
    if not columns.from_next_row:
        words = "state and next state the other way round"
        yield _renamed(columns, words, (*columns.next_state, *columns.state))
    if (action := columns.roles.get(ACTION)) is not None:
        roles = {role: name for role, name in columns.roles.items() if role not in (ACTION, CHOICE)}
        words = f"choices counted from 1: say `columns='choice={action}'` and `maps='choice: -1'`"
        yield words, replace(columns, roles={**roles, CHOICE: action}), {CHOICE: less}
        names = ValueMap({str(n): name for n, name in enumerate(filter(None, structure.action_names))})
        words = f"actions numbered through all of the model: say `maps='action: {names.text}'`"
        yield words, columns, {ACTION: names}


def _renamed(columns: RowColumns, words: str, names: Iterable[str]) -> Other:
    roles = dict(zip(columns.state_roles, names, strict=True))
    naming = ", ".join(f"{role}={column}" for role, column in roles.items())
    return f'{words}: say `columns="{naming}"`', replace(columns, state_roles=roles), {}


SHOWN = 5
"""How many values of each kind are kept."""

STATES, ACTIONS, NOT_ENABLED, IMPOSSIBLE, UNREADABLE = KINDS = (
    "states",
    "actions",
    "actions not enabled",
    "impossible transitions",
    "unreadable values",
)
"""The kinds, in the order in which they are shown."""


@dataclass(frozen=True)
class UnknownValue:
    """A value as it stands in the log, and the number of rows that hold it."""

    value: str
    rows: int


Unknown = Mapping[str, Sequence[UnknownValue]]
"""The most frequent values of every kind."""


def unknown_values(plan: ReadPlan) -> Unknown:
    """The most frequent values that the model does not know, by kind; kinds without any are left out."""
    seen: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    shown: dict[str, str] = {}
    for number, table in enumerate(plan.tables):
        columns, decoder = plan.columns[number], plan.decoder(number)
        for chunk in table.chunks(columns.names, lambda: None):
            rows = decoder.decode(chunk)
            _find_transitions(plan, rows, columns.from_next_row)
            seen[UNREADABLE].update(_unreadable(decoder, chunk, rows, shown))
            for kind, bad, roles in _kinds(rows, columns):
                if bad.any():
                    seen[kind].update(_values(chunk, bad, roles, kind == STATES))
    return {
        kind: tuple(UnknownValue(value, rows) for value, rows in values.most_common(SHOWN))
        for kind, values in seen.items()
        if values
    }


def _find_transitions(plan: ReadPlan, rows: EventBatch, from_next_row: bool) -> None:
    """Mark the rows whose action or transition the model does not have."""
    if not from_next_row:
        plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        return
    # where a row led stands elsewhere: any known state will do to look at its action
    acting = (rows.action != NO_ACTION) & (rows.local != NO_ACTION) & (rows.problems == RowProblem.NONE)
    some = rows[acting]
    plan.index.transitions(some.state, some.taken, some.state, some.problems)
    some.problems[some.problems == RowProblem.IMPOSSIBLE_TRANSITION] = RowProblem.NONE
    rows.problems[acting] = some.problems


def _kinds(rows: EventBatch, columns: RowColumns) -> list[tuple[str, BoolArray, dict[str, str]]]:
    """(kind, the rows of that kind, the columns that show what is wrong by what they hold)."""
    problems = rows.problems
    before = {role: name for role, name in columns.state_roles.items() if name in columns.state}
    after = {role: name for role, name in columns.state_roles.items() if name not in columns.state}
    action = {role: columns.roles[role] for role in (ACTION, CHOICE) if role in columns.roles}
    disabled = problems == RowProblem.DISABLED_ACTION
    nameless = disabled & (rows.action == NO_SUCH_ACTION)
    return [
        (STATES, problems == RowProblem.UNKNOWN_STATE, before),
        (STATES, problems == RowProblem.UNKNOWN_NEXT_STATE, after),
        (ACTIONS, nameless, action),
        (NOT_ENABLED, disabled & ~nameless, {**before, **action}),
        (IMPOSSIBLE, problems == RowProblem.IMPOSSIBLE_TRANSITION, {**before, **action, **after}),
    ]


def _unreadable(decoder: RowDecoder, chunk: Chunk, rows: EventBatch, shown: dict[str, str]) -> Counter[str]:
    """Columns with values that cannot be read, by rows; `shown` says of each column what it holds there:
    three values, and what they look like."""
    wanted = (RowProblem.NOT_A_NUMBER, RowProblem.FRACTIONAL, RowProblem.UNMAPPED_VALUE)
    bad, columns = np.isin(rows.problems, wanted), decoder.columns
    own = decoder.index.structure.state_names
    numbers = {STEP, COUNT, BATCH, CHOICE}
    if columns.by is not StateNames.OWN or (own is not None and own.are_numbers):
        numbers |= columns.state_roles.keys()
    unreadable: Counter[str] = Counter()
    for role, name in columns.each if bad.any() else ():
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        known = decoder.maps.get(role.removesuffix("'"))
        column = chunk.columns[name] if known is None else known.apply(chunk.columns[name], flags)
        if name in columns.ends:
            truth_values(column, name, decoder.file, flags)
        elif role in numbers:
            whole_numbers(column, name, decoder.file, flags)
        failed = bad & np.isin(flags, wanted)
        if failed.any():
            naming = "" if role == name else f", read as {describe_role(role)}"
            text = f"column '{name}'{naming}: {describe_column(chunk.columns[name].filter(pa.array(failed)))}"
            unreadable[shown.setdefault(name, text)] += int(failed.sum())
    return unreadable


def _values(chunk: Chunk, bad: BoolArray, roles: Mapping[str, str], are_states: bool) -> Counter[str]:
    """How often each combination of values stands in the bad rows; of next states as of states."""
    columns = [dense(chunk.columns[name]).filter(pa.array(bad)).cast(pa.string()) for name in roles.values()]
    labels = [role.rstrip("'") if are_states else role for role in roles]
    is_plain = len(labels) == 1 and labels[0] in (ACTION, STATE, NEXT_STATE)
    texts = zip(*(column.fill_null("nothing").to_pylist() for column in columns), strict=True)
    return Counter(
        row[0] if is_plain else ", ".join(f"{role}={text}" for role, text in zip(labels, row, strict=True))
        for row in texts
    )
