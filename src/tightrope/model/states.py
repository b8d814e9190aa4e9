"""Names of states and choices, one at a time and in tables.

A state is the author's state, or the values of its variables: a mapping, a sequence in the order of
declaration, or a text ("x=3,y=4"). A label of a single state names it. A number is a state only if the author
uses numbers or the model has nothing else: environments number states differently, and an error would go
unnoticed. A choice is its action's name, or its number within the state, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.structure import Structure, plain
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.late import pa, pc
from tightrope.numerics.record import remember

MOST_LISTED = 200_000
"""Up to so many states a table of all values is kept; beyond, every question scans the columns."""

AMBIGUOUS = -2

_VALUE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(-?\d+|true|false)\s*")


def find_state(structure: Structure, state: object) -> int:
    """The number of a state; what is none is an `InputError`."""
    shown, own = plain(state), structure.state_names
    if own is not None and (number := own.find(shown)) >= 0:
        return number
    names = tuple(structure.valuations)
    if isinstance(shown, str):
        return _of_text(structure, shown)
    values: Sequence[object] | None = None
    if isinstance(shown, Mapping) and set(shown) == set(names):
        values = [plain(shown[name]) for name in names]
    elif (
        isinstance(shown, tuple) and len(shown) == len(names) and not (own is not None and own.has_sequences)
    ):
        values = shown
    if names and values is not None:
        match = _of_values(structure, tuple(values))
        if match >= 0:
            return match
        if match == AMBIGUOUS:
            raise InputError(f"several states have the values {shown!r}: they do not say which is meant")
    if own is None and not names and is_whole(shown) and 0 <= shown < structure.states:
        return int(shown)
    raise InputError(
        f"{shown!r} is not a state of the model{_list_known(structure)}", hint=_index_hint(shown, names)
    )


def index_or_state(structure: Structure, state: object) -> int:
    """The same, where a number may be an index unless it may be the value of the only variable."""
    if is_whole(state) and structure.state_names is None and structure.valuations:
        if len(structure.valuations) == 1:
            name = next(iter(structure.valuations))
            raise InputError(
                f"{state} can be the index of a state or its value of {name}", hint=f'write "{name}={state}"'
            )
        if not 0 <= state < structure.states:
            raise InputError(f"{state} is not a state's index; they are 0..{structure.states - 1}")
        return int(state)
    return find_state(structure, state)


def show_state(structure: Structure, state: int) -> object:
    """A state as its author calls it: an own state, else its variables' values by name, else its index."""
    if structure.state_names is not None:
        return structure.state_names[state]
    if structure.valuations:
        return {name: column[state].item() for name, column in structure.valuations.items()}
    return state


def find_choice(structure: Structure, state: int, action: object, where: str = "") -> int:
    """The index of the choice that a name or a number means in a state; `where` begins the error."""
    first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
    names = [structure.action_name(choice) for choice in range(first, last)]
    action = action.item() if isinstance(action, np.generic) else action
    problem, named = "not enabled", action
    if is_whole(action) and all(name.isdecimal() for name in names):
        named = str(action)
    if isinstance(named, str):
        matching = [number for number, name in enumerate(names) if name == named]
        if len(matching) == 1:
            return first + matching[0]
        problem = "ambiguous" if matching else problem
    elif is_whole(action) and 0 <= action < last - first:
        return first + int(action)
    raise InputError(
        f"{where}: the action {action!r} is {problem} in state {structure.state_name(state)}".lstrip(": "),
        hint=f"its choices are {', '.join(f'{i} ({own})' for i, own in enumerate(names))}",
    )


def show_action(structure: Structure, choice: int) -> str | int:
    """The name of a choice's action; a number where it is one, as environments number their actions."""
    name = structure.action_name(choice)
    return int(name) if name.isdecimal() and str(int(name)) == name else name


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, of Python's or numpy's."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _of_text(structure: Structure, text: str) -> int:
    """`x=3,y=4`, with or without brackets, or a label of a single state."""
    names = tuple(structure.valuations)
    if (members := structure.labels.get(text)) is not None:
        states = np.flatnonzero(members)
        if len(states) == 1:
            return int(states[0])
        raise InputError(f"the label '{text}' holds in {len(states)} states, and not in a single one")
    parts = [_VALUE.fullmatch(part) for part in text.strip().removeprefix("(").removesuffix(")").split(",")]
    given = {part[1]: part[2] for part in parts if part}
    if not names or not all(parts) or len(given) != len(parts) or not set(given) <= set(names):
        raise InputError(f"{text!r} is not a state of the model{_list_known(structure)}")
    values = {name: {"true": 1, "false": 0}.get(text) for name, text in given.items()}
    wanted = {name: int(given[name]) if value is None else value for name, value in values.items()}
    if len(wanted) == len(names):
        number = _of_values(structure, tuple(wanted[name] for name in names))
        if number >= 0:
            return number
    states = _scan(structure, wanted)
    if len(states) == 1:
        return int(states[0])
    if len(states) > 1:
        missing = ", ".join(name for name in names if name not in wanted)
        say = f": say {missing} as well" if missing else ""
        raise InputError(f"{len(states)} states have {text}{say}")
    raise InputError(f"({text}) is not a reachable state of the model")


def _of_values(structure: Structure, values: tuple[object, ...]) -> int:
    if structure.states > MOST_LISTED:
        states = _scan(structure, dict(zip(structure.valuations, values, strict=True)))
        return int(states[0]) if len(states) == 1 else AMBIGUOUS if len(states) else -1
    try:
        return list_states(structure).get(values, -1)
    except TypeError:  # not hashable
        return -1


@remember
def list_states(structure: Structure) -> dict[tuple[object, ...], int]:
    """The states by the values of their variables; `AMBIGUOUS` where several have the same."""
    columns = [column.tolist() for column in structure.valuations.values()]
    table: dict[tuple[object, ...], int] = {}
    for number, values in enumerate(zip(*columns, strict=True)):
        table[values] = AMBIGUOUS if values in table else number
    return table


@remember
def values_identify(structure: Structure) -> bool:
    """Whether no two states share the values of all variables."""
    return bool(structure.valuations) and AMBIGUOUS not in list_states(structure).values()


def _scan(structure: Structure, wanted: Mapping[str, object]) -> OffsetArray:
    same = [structure.valuations[name] == value for name, value in wanted.items()]
    return np.flatnonzero(np.all(same, axis=0))


def _list_known(structure: Structure) -> str:
    names, own = tuple(structure.valuations), structure.state_names
    if names:
        return f"; states have values of {', '.join(names)}"
    return f"; its states are {own.listing()}" if own is not None else f" of {structure.states} states"


def _index_hint(shown: object, names: tuple[str, ...]) -> str | None:
    if not is_whole(shown) or not names:
        return None
    example = ",".join(f"{name}=0" for name in names)
    return f'give the values of its variables, such as "{example}", or say `states="index"`'


Table: TypeAlias = Any
"""A `pyarrow.Table`, or one of its columns; the package has no types."""


def state_columns(structure: Structure, states: npt.NDArray[np.integer]) -> dict[str, Table]:
    """What the states are called, a column per variable."""
    if structure.valuations:
        return {name: pa.array(column[states]) for name, column in structure.valuations.items()}
    own = structure.state_names
    if own is None:
        return {"state": pa.array(states.astype(np.int64))}
    listed = [own[state] for state in states.tolist()]
    try:
        return {"state": pa.array(listed)}
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return {"state": pa.array([repr(state) for state in listed])}


def action_column(structure: Structure, choices: npt.NDArray[np.integer]) -> Table:
    """The names of the choices' actions, stored once each."""
    indices = pa.array(structure.action_of_choice[choices].astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(structure.action_names, pa.string()))


def with_nulls(column: object, valid: npt.NDArray[np.bool_]) -> Table:
    """The column, null where it is not valid."""
    array = column if isinstance(column, pa.Array) else pa.array(column)
    return pc.if_else(pa.array(valid), array, pa.scalar(None, array.type))


def with_states(
    structure: Structure, states: npt.NDArray[np.integer], columns: Mapping[str, object]
) -> Table:
    """A table of the states' columns and then these."""
    named = state_columns(structure, states)
    for name, column in columns.items():
        while name in named:
            name += "_"
        named[name] = column if isinstance(column, pa.Array) else pa.array(column)
    return pa.table(named)


def to_pandas(table: Table) -> Table:
    """A pandas data frame; pandas is optional."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise InputError(
            "data frames need the package 'pandas', which is not installed",
            hint="pip install 'tightrope[pandas]', or use to_arrow()",
        ) from error
    return table.to_pandas()
