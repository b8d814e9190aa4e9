"""Which columns of a log say what, decided once for each table; never guessed where two readings are
possible.

A state is given by the model's variables (`x`, `y`, … and `x_next`, `y_next`, …), by what the author of a
model in Python calls it (`state`, `next_state`), or by the model's own number of it: the last only where
the user says so (`--states index`) or where the file was written for this very model. Where a log has no
columns for the next state, it is the state of the episode's next row.

`action` is a name or the number of the choice within its state, which is refused where it might be that of
another action; `choice` is that number beyond doubt. A model with one choice in every state needs neither.
A table with a column `count` is a table of counts, any other has one row per step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tightrope.data.column_names import (
    ACTION,
    BATCH,
    CHOICE,
    COST,
    COUNT,
    DONE,
    EPISODE,
    NEXT,
    NEXT_STATE,
    ROLES,
    STATE,
    STEP,
    TERMINATED,
    TIME,
    TRUNCATED,
    ColumnFinder,
)
from tightrope.data.state_form import StateNames
from tightrope.errors import InputError, Location
from tightrope.io.table.data_table import COUNTS, Chunk, DataTable, structure_hash
from tightrope.model.structure import ParametricReward, Structure

RESERVED = (STATE, NEXT_STATE, ACTION, CHOICE, EPISODE, STEP, TERMINATED, TRUNCATED, COUNT, BATCH)


@dataclass(frozen=True)
class RowColumns:
    """The columns that say from where, by what and to where a row goes, and where it stands in its episode.

    `next_state` is empty where the next row tells it. `state_roles` are the columns of states by what they
    hold: variables with their next values (`x'`), or whole states. `roles` are all others.
    """

    by: StateNames
    state: tuple[str, ...]
    next_state: tuple[str, ...]
    state_roles: Mapping[str, str]
    roles: Mapping[str, str]

    @property
    def from_next_row(self) -> bool:
        return not self.next_state

    @property
    def by_index(self) -> bool:
        return self.by is StateNames.INDEX

    @property
    def action(self) -> str | None:
        return self.roles.get(ACTION)

    @property
    def choice(self) -> str | None:
        return self.roles.get(CHOICE)

    @property
    def is_counted(self) -> bool:
        """Whether a row is a counted transition rather than a step."""
        return COUNT in self.roles

    @property
    def ends(self) -> tuple[str, ...]:
        """The columns of flags that say that an episode is over."""
        return tuple(self.roles[role] for role in (TERMINATED, TRUNCATED, DONE) if role in self.roles)

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read."""
        return tuple(dict.fromkeys([*self.state_roles.values(), *self.roles.values()]))

    @property
    def read_as(self) -> str:
        """The reading in one line: `wear = wear_level, wear' = next_wear, action = cmd`."""
        roles = [*self.state_roles.items(), *self.roles.items()]
        parts = [role if role == column else f"{role} = {column}" for role, column in roles]
        form = {
            StateNames.INDEX: "states by the model's index",
            StateNames.VARIABLES: "states by the model's variables",
            StateNames.OWN: "states as the model's author calls them",
        }[self.by]
        follow = "; next states from the next row of the episode" if self.from_next_row else ""
        return f"{form}; {', '.join(parts)}{follow}"


def find_columns(
    table: DataTable, structure: Structure, states: StateNames | None, given: Mapping[str, str]
) -> RowColumns:
    """Decide how a table gives states and actions, or say what is missing or could mean two things."""
    written_here = _is_written_for(table, structure)
    by_index = states is StateNames.INDEX or (states is None and written_here)
    variables = () if by_index else tuple(structure.valuations)
    if states is not StateNames.INDEX and STATE in given and STATE not in variables:
        variables = ()
    finder = ColumnFinder(table.path, table.names, variables, given)
    by, state, next_state = _state_columns(table, structure, states, by_index, finder)
    state_roles = _state_roles(by, state, next_state, structure)
    used = {*state_roles.values()}
    roles: dict[str, str] = {}
    for role in ROLES:
        if role in (STATE, NEXT_STATE):
            continue
        if role == COUNT and written_here and (table.metadata or {}).get("rows") == COUNTS:
            roles[COUNT] = COUNT
            continue
        if role == COST and not _has_unknown_rewards(table, structure, given):
            continue
        column = finder.role(role)
        if column is not None and column not in used:
            roles[role] = column
            used.add(column)
    _check_action(table, structure, roles)
    if COUNT in roles:
        if not next_state:
            raise _missing(table, [_next_role(by, structure)], "a table of counts says where a row leads")
        left_out = (EPISODE, STEP, TIME, TERMINATED, TRUNCATED, DONE, COST)
        roles = {r: c for r, c in roles.items() if r not in left_out}
    else:
        roles.pop(BATCH, None)
        if not next_state:
            _check_next_row(table, by, structure, roles, given)
    return RowColumns(by, state, next_state, state_roles, roles)


def show_value(chunk: Chunk, name: str, row: int) -> Any:
    """A value as it stands in the file."""
    return chunk.columns[name][row].as_py()


def _is_written_for(table: DataTable, structure: Structure) -> bool:
    """Whether the file gives states by index and was written for this model; one for another is refused."""
    metadata = table.metadata or {}
    if "structure" not in metadata or not {STATE, NEXT_STATE} <= set(table.names):
        return False
    if metadata["structure"] == structure_hash(structure):
        return True
    source = metadata.get("source")
    raise InputError(
        "the file was sampled from a different model" + (f" ({source})" if source else ""),
        Location(table.path),
        "use the same model and constants, or sample with states given by variables",
    )


def _state_columns(
    table: DataTable,
    structure: Structure,
    states: StateNames | None,
    by_index: bool,
    finder: ColumnFinder,
) -> tuple[StateNames, tuple[str, ...], tuple[str, ...]]:
    variables = tuple(structure.valuations)
    if by_index:
        return (StateNames.INDEX, *_whole_states(table, finder, "states are read by index"))
    whole = None if STATE in variables else finder.state()
    present = [finder.variable(name) for name in variables]
    complete = bool(variables) and None not in present
    if states is StateNames.VARIABLES and not variables:
        raise InputError("the model has no variables: states cannot be read by them", Location(table.path))
    if complete and states is not StateNames.OWN and not (STATE in finder.given and STATE not in variables):
        names = tuple(name for name in present if name is not None)
        return StateNames.VARIABLES, names, _next_variables(table, structure, finder)
    if states is not StateNames.VARIABLES and structure.own_states is not None:
        return (StateNames.OWN, *_whole_states(table, finder, _or_variables(variables)))
    if states is StateNames.OWN:
        raise InputError(
            "the model does not know what its author calls its states: only models written in Python do",
            Location(table.path),
        )
    if whole is not None and not any(name is not None for name in present):
        raise _only_a_number(table, structure, whole)
    missing = [name for name, column in zip(variables, present, strict=True) if column is None]
    if not variables:
        raise _missing(
            table, [STATE], 'the model has no variables: states go by index, with `states="index"`'
        )
    raise _missing(table, missing, f"states are given by the model's variables {', '.join(variables)}")


def _only_a_number(table: DataTable, structure: Structure, column: str) -> InputError:
    """A column of whole states, for a model that knows states by its variables or not at all."""
    variables = tuple(structure.valuations)
    named = f"the model names its states by its variables {', '.join(variables)}"
    return InputError(
        f"the column '{column}' does not say how it names states: "
        + (named if variables else "the model has neither variables nor states of its author's naming"),
        Location(table.path),
        'where it is the number that the model gives a state, say `states="index"`'
        + (
            f"; where it holds the variable {variables[0]}, say `columns='{variables[0]}={column}'`"
            if len(variables) == 1
            else ""
        ),
    )


def _has_unknown_rewards(table: DataTable, structure: Structure, given: Mapping[str, str]) -> bool:
    """Whether costs are of use: some reward of the model depends on parameters."""
    if any(isinstance(reward, ParametricReward) for reward in structure.rewards.values()):
        return True
    if given.get(COST):
        raise InputError(
            f"`columns` names the column '{given[COST]}' for the cost, but no reward of the model depends on "
            "a parameter: costs would say nothing",
            Location(table.path),
            "leave it out",
        )
    return False


def _whole_states(
    table: DataTable, finder: ColumnFinder, why: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    state = finder.state()
    if state is None:
        raise _missing(table, [STATE], why)
    next_state = finder.next_state(state)
    return (state,), () if next_state is None else (next_state,)


def _or_variables(variables: tuple[str, ...]) -> str:
    if not variables:
        return "the model's own states stand there"
    return f"or, for states by variables, {', '.join((*variables, *(name + NEXT for name in variables)))}"


def _next_variables(table: DataTable, structure: Structure, finder: ColumnFinder) -> tuple[str, ...]:
    variables = tuple(structure.valuations)
    found = [finder.next_variable(name) for name in variables]
    if len(variables) == 1 and found[0] is None and variables[0] == STATE:
        found = [finder.next_state(STATE)]
    if not any(name is not None for name in found):
        return ()
    missing = [f"{v}{NEXT}" for v, column in zip(variables, found, strict=True) if column is None]
    if missing:
        raise _missing(table, missing, "some next values are there, these are not")
    return tuple(name for name in found if name is not None)


def _state_roles(
    by: StateNames, state: tuple[str, ...], next_state: tuple[str, ...], structure: Structure
) -> dict[str, str]:
    if by is StateNames.VARIABLES:
        names = tuple(structure.valuations)
        after = {f"{n}'": column for n, column in zip(names, next_state, strict=False)}
        return {**dict(zip(names, state, strict=True)), **after}
    return {STATE: state[0], **({NEXT_STATE: next_state[0]} if next_state else {})}


def _next_role(by: StateNames, structure: Structure) -> str:
    return NEXT_STATE if by is not StateNames.VARIABLES else next(iter(structure.valuations)) + NEXT


def _check_next_row(
    table: DataTable, by: StateNames, structure: Structure, roles: Mapping[str, str], given: Mapping[str, str]
) -> None:
    """Next states come from the next row only where something says that rows follow each other."""
    said = NEXT_STATE in given or any(f"{name}'" in given for name in structure.valuations)
    if said or any(role in roles for role in (EPISODE, STEP, TIME, TERMINATED, TRUNCATED, DONE)):
        return
    role = NEXT_STATE if by is not StateNames.VARIABLES else f"{next(iter(structure.valuations))}'"
    raise InputError(
        "no column holds the next state, and none says which rows follow each other (episode, step, done)",
        Location(table.path),
        f'name it with `columns="{role}=…"`; or say `columns="{role}="` where each row continues the one '
        f"before; the file has the columns {', '.join(table.names)}",
    )


def _check_action(table: DataTable, structure: Structure, roles: Mapping[str, str]) -> None:
    if ACTION in roles or CHOICE in roles or not structure.has_choices:
        return
    raise _missing(table, [ACTION], f"or '{CHOICE}': some states of the model have more than one choice")


def _missing(table: DataTable, names: list[str], why: str) -> InputError:
    from tightrope.data.appearance import unused_columns

    absent = [name for name in names if name not in table.names] or names
    hint = f'the file has the columns {", ".join(table.names)}; `columns="{absent[0]}=…"` says what they mean'
    return InputError(
        f"missing column{'s' if len(absent) > 1 else ''} {', '.join(absent)} ({why})",
        Location(table.path),
        "; ".join([hint, *unused_columns(table, (), ())]),
    )
