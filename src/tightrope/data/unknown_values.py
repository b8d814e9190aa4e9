"""What a log holds that the model does not know: values that are no state, no action, no transition of it.

The log is looked through once more, for the values of the rows that cannot be counted; the most frequent ones
usually say at a glance what is the matter: another name for an action, a unit, states beyond the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.data.appearance import describe_column
from tightrope.data.column_names import ACTION, BATCH, CHOICE, COUNT, STEP, describe_role
from tightrope.data.locate import NO_SUCH_ACTION
from tightrope.data.read_plan import ReadPlan
from tightrope.data.rows import NO_ACTION, RowDecoder, Rows
from tightrope.data.state_form import StateNames
from tightrope.io.table.columns import truth_values, whole_numbers
from tightrope.io.table.data_table import Chunk
from tightrope.io.table.problems import Problem, ProblemCodes
from tightrope.numerics.arrays import BoolArray

SHOWN = 5
"""How many values of each kind are kept."""

STATES, ACTIONS, NOT_ENABLED, IMPOSSIBLE, UNREADABLE = (
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
    seen: dict[str, Counter[str]] = {}
    shown: dict[str, str] = {}
    for number, table in enumerate(plan.tables):
        columns = plan.columns[number]
        decoder = plan.decoder(number)
        for chunk in table.chunks(columns.names, _ignore):
            rows = decoder.decode(chunk)
            _find_transitions(plan, rows, columns.from_next_row)
            unreadable = _unreadable(decoder, chunk, rows, shown)
            if unreadable:
                seen.setdefault(UNREADABLE, Counter()).update(unreadable)
            for kind, bad, roles in _kinds(rows, columns.state_roles, columns.roles, columns.state):
                if bad.any():
                    labels = [role.rstrip("'") if kind == STATES else role for role in roles]
                    seen.setdefault(kind, Counter()).update(_values(chunk, bad, labels, roles.values()))
    order = (STATES, ACTIONS, NOT_ENABLED, IMPOSSIBLE, UNREADABLE)
    return {
        kind: tuple(UnknownValue(value, rows) for value, rows in seen[kind].most_common(SHOWN))
        for kind in order
        if kind in seen
    }


def _ignore() -> None:
    """A row with the wrong number of fields has no values to show."""


def _find_transitions(plan: ReadPlan, rows: Rows, from_next_row: bool) -> None:
    """Mark the rows whose action or transition the model does not have."""
    if not from_next_row:
        plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        return
    # where a row led stands elsewhere: any known state will do to look at its action
    acting = (rows.action != NO_ACTION) & (rows.local != NO_ACTION) & (rows.problems == Problem.NONE)
    some = rows[acting]
    plan.index.transitions(some.state, some.taken, some.state, some.problems)
    some.problems[some.problems == Problem.IMPOSSIBLE_TRANSITION] = Problem.NONE
    rows.problems[acting] = some.problems


_Kind = tuple[str, BoolArray, dict[str, str]]


def _kinds(
    rows: Rows, state_roles: Mapping[str, str], roles: Mapping[str, str], state: Sequence[str]
) -> list[_Kind]:
    """(kind, the rows of that kind, the columns that show what is wrong by what they hold)."""
    problems = rows.problems
    before = {role: column for role, column in state_roles.items() if column in state}
    after = {role: column for role, column in state_roles.items() if column not in state}
    action = {role: roles[role] for role in (ACTION, CHOICE) if role in roles}
    disabled = problems == Problem.DISABLED_ACTION
    nameless = disabled & (rows.action == NO_SUCH_ACTION)
    return [
        (STATES, problems == Problem.UNKNOWN_STATE, before),
        (STATES, problems == Problem.UNKNOWN_NEXT_STATE, after),
        (ACTIONS, nameless, action),
        (NOT_ENABLED, disabled & ~nameless, {**before, **action}),
        (IMPOSSIBLE, problems == Problem.IMPOSSIBLE_TRANSITION, {**before, **action, **after}),
    ]


def _unreadable(decoder: RowDecoder, chunk: Chunk, rows: Rows, shown: dict[str, str]) -> Counter[str]:
    """Columns with values that cannot be read, by rows; `shown` says of each column what it holds there:
    three values, and what they look like."""
    import pyarrow as pa

    wanted = [int(code) for code in (Problem.NOT_A_NUMBER, Problem.FRACTIONAL, Problem.UNMAPPED_VALUE)]
    bad, columns = np.isin(rows.problems, wanted), decoder.columns
    found: Counter[str] = Counter()
    for role, name in [*columns.state_roles.items(), *columns.roles.items()] if bad.any() else ():
        flags: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        known = decoder.maps.get(role.removesuffix("'"))
        column = chunk.columns[name] if known is None else known.apply(chunk.columns[name], flags)
        if name in columns.ends:
            truth_values(column, name, decoder.file, flags)
        elif role in (STEP, COUNT, BATCH, CHOICE) or (role in columns.state_roles and _by_number(decoder)):
            whole_numbers(column, name, decoder.file, flags)
        failed = bad & np.isin(flags, wanted)
        if failed.any():
            said = "" if role == name else f", read as {describe_role(role)}"
            text = f"column '{name}'{said}: {describe_column(chunk.columns[name].filter(pa.array(failed)))}"
            found[shown.setdefault(name, text)] += int(failed.sum())
    return found


def _by_number(decoder: RowDecoder) -> bool:
    own = decoder.index.structure.own_states
    return decoder.columns.by is not StateNames.OWN or (own is not None and own.are_numbers)


def _values(chunk: Chunk, bad: BoolArray, labels: Sequence[str], columns: Iterable[str]) -> Counter[str]:
    """How often each combination of values stands in the bad rows."""
    import pyarrow as pa

    arrays = [_text(chunk.columns[column]) for column in columns]
    names = [f"c{number}" for number in range(len(arrays))]
    table = pa.table(arrays, names=names).filter(pa.array(bad))
    groups = table.group_by(names).aggregate([([], "count_all")])
    counted = groups.column("count_all").to_pylist()
    rows = zip(*(groups.column(name).to_pylist() for name in names), strict=True)
    result: Counter[str] = Counter()
    for values, times in zip(rows, counted, strict=True):
        result[_show(labels, values)] += times
    return result


def _show(labels: Sequence[str], values: Sequence[str | None]) -> str:
    texts = ["nothing" if value is None else value for value in values]
    if len(labels) == 1 and labels[0] in (ACTION, "state", "next_state"):
        return texts[0]
    return ", ".join(f"{label}={text}" for label, text in zip(labels, texts, strict=True))


def _text(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string())
