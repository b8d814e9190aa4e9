"""Which column of a log has which role: naming habits, and the user's own choice in `--columns`.

Each role has a canonical name and habitual ones; case, blanks, dots and dashes do not matter. Two columns
with equal claim to a role are refused, and the choice is printed ("read as"). A column with the name of a
model variable is that variable.

A state is given by the model's variables (`x`, `x_next`), by its name in a Python model (`state`,
`next_state`), or by its index, the latter only with `--states index` or in files written for this model.
Without columns for the next state, it is the state of the episode's next row. `action` is a name or the
number of the choice within its state, refused if ambiguous; `choice` is always that number. A table with a
column `count` is a table of counts.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from tightrope.errors import InputError, Location
from tightrope.io.table.columns import LOOKED_AT, MOST_COLUMNS, distinct, look, some_values
from tightrope.io.table.data_table import COUNTS, Chunk, DataTable, structure_hash
from tightrope.model.structure import ParametricReward, Structure

STATE, NEXT_STATE, ACTION, CHOICE = "state", "next_state", "action", "choice"
EPISODE, STEP, TIME = "episode", "step", "time"
TERMINATED, TRUNCATED, DONE = "terminated", "truncated", "done"
COUNT, BATCH = "count", "batch"
COST = "cost"
WATCHED_UNTIL = "watched_until"
"""Until when an episode was watched: the column that the option of this name gives."""
NEXT = "_next"
FLAGS = (TERMINATED, TRUNCATED, DONE)
"""They say that an episode is over."""

ROLES = (STATE, NEXT_STATE, ACTION, CHOICE, EPISODE, STEP, TIME, *FLAGS, COUNT, BATCH, COST)

_HABITS = {
    STATE: "s obs observation from_state source cur_state current_state state_id",
    ACTION: "act a action_name action_id actions decision control",
    EPISODE: "ep run trajectory traj rollout trial "
    "episode_id run_id trajectory_id traj_id ep_id episode_number",
    STEP: "t timestep time_step step_id step_number step_index steps",
    TIME: "timestamp datetime ts date date_time",
    TERMINATED: "terminal is_terminal termination terminateds",
    TRUNCATED: "timeout timeouts truncation is_truncated truncateds",
    DONE: "is_done dones end last is_last ended",
    COUNT: "counts",
    COST: "costs reward rewards r",
}
HABITS: Mapping[str, Sequence[str]] = {role: _HABITS.get(role, "").split() for role in ROLES}
_NEXT_FORMS = ["{}_next", "next_{}", "{}'", "{}_prime", "{}prime", "new_{}", "{}_new", "next{}", "{}next"]
_NEXT_STATE_HABITS = ["to_state", "target", "destination", "s2", "sp", "successor"]
_STATE_WORDS = ("state", "s", "obs", "observation")
_NEXT_WORDS = ("next_state", "state_next", "s'", "next_obs", "next_observation", "next", "new_state")


def is_name_of_next(column: str, variable: str) -> bool:
    """Whether a column is called like the next value of a variable, or for `state`, like the next state."""
    names = {plain_name(form.format(variable)) for form in _NEXT_FORMS}
    names |= set(_NEXT_STATE_HABITS) if variable == STATE else set()
    return plain_name(column) in names


def plain_name(name: str) -> str:
    """A column's name without case, blanks and dashes."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def word(name: str) -> str:
    """A column's name as a variable of a model can have it."""
    return re.sub(r"\W", "_", plain_name(name))


class ColumnFinder:
    """Finds the columns of one table; `given` says which column has a role, whatever it is called."""

    def __init__(
        self, file: str, columns: Sequence[str], variables: Collection[str], given: Mapping[str, str]
    ):
        self.file, self.columns, self.given = file, tuple(columns), dict(given)
        taken = {name for name in columns if name in variables and name not in given} | set(given.values())
        self._free = [column for column in self.columns if column not in taken]
        for role, column in self.given.items():
            if column and column not in self.columns:
                raise InputError(
                    f"`columns` names the column '{column}' for the {describe_role(role)}, but there is none",
                    Location(file),
                    f"the file has the columns {', '.join(self.columns)}",
                )

    def role(self, role: str) -> str | None:
        """The column of a role, or None where no column has it."""
        return self._first(role, role, HABITS[role])

    def next_state(self, state: str | None) -> str | None:
        """The column of next states, for which the name of the states' own column counts, too."""
        bases = dict.fromkeys(b for b in (STATE, plain_name(state) if state else None) if b is not None)
        habits = [form.format(base) for base in bases for form in _NEXT_FORMS] + list(_NEXT_STATE_HABITS)
        return self._first(NEXT_STATE, NEXT_STATE, habits)

    def variable(self, name: str) -> str | None:
        """The column of a variable: its name, or that within an object `state`."""
        if name in self.columns and name not in self.given:
            return name
        same = [column for column in self._free if plain_name(name) in (plain_name(column), word(column))]
        if same and name not in self.given:
            return self._only(name, same)
        nested = [f"{prefix}.{plain_name(name)}" for prefix in _STATE_WORDS]
        return self._first(name, nested[0], nested[1:])

    def next_variable(self, name: str) -> str | None:
        """The column of a variable's next value."""
        own = self.variable(name)
        bases = dict.fromkeys([plain_name(name), *([plain_name(own)] if own is not None else [])])
        forms = [form.format(base) for base in bases for form in _NEXT_FORMS]
        nested = [f"{prefix}.{plain_name(name)}" for prefix in _NEXT_WORDS]
        return self._first(name + "'", name + NEXT, [*forms, *nested])

    def _first(self, role: str, canonical: str, habits: Iterable[str]) -> str | None:
        """The column that is given for a role, else that with its name, else one with a habitual name."""
        if role in self.given:
            return self.given[role] or None
        if canonical in self._free:
            return canonical
        wanted = [plain_name(canonical), *habits]
        candidates = [column for column in self._free if plain_name(column) in wanted]
        return self._only(role, candidates) if candidates else None

    def _only(self, role: str, candidates: list[str]) -> str:
        if len(candidates) > 1:
            shown = " and ".join(f"'{column}'" for column in candidates[:3])
            raise InputError(
                f"the columns {shown} could each be the {describe_role(role)}",
                Location(self.file),
                f'say which: `columns="{role}={candidates[0]}"`',
            )
        return candidates[0]


def describe_role(role: str) -> str:
    """A role in words."""
    if role == NEXT_STATE:
        return "next state"
    if role.endswith("'"):
        return f"next value of '{role[:-1]}'"
    return role if role in ROLES else f"variable '{role}'"


_TIMED = re.compile(r"(?P<column>[^:]+):(?P<format>.*%.*)")


class GivenColumns(dict[str, str]):
    """Roles with their columns; `time_format` is how times are written, where the user says so."""

    time_format: str | None = None


def parse_columns(
    texts: Sequence[str] | Mapping[str, str] | None, variables: Collection[str], more: Collection[str] = ()
) -> GivenColumns:
    """Parse `wear=wear_level, action=cmd` as roles with their columns; an empty column means none.

    >>> parse_columns(["wear=wear_level, wear'=next_wear", "action=cmd, step="], ["wear"])
    {'wear': 'wear_level', "wear'": 'next_wear', 'action': 'cmd', 'step': ''}
    """
    roles = GivenColumns()
    for name, column in _entries(texts or ()):
        role = _role(name, variables, more)
        if role == TIME and (timed := _TIMED.fullmatch(column)):
            column, roles.time_format = timed["column"].strip(), timed["format"].strip()
        if role in roles:
            raise InputError(f"`columns` gives the {describe_role(role)} twice")
        if column and column in roles.values():
            raise InputError(f"`columns` gives the column '{column}' two meanings")
        roles[role] = column
    return roles


def column_entries(texts: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """What a user's words say of columns, as they stand."""
    return dict(_entries(texts))


def _entries(texts: Sequence[str] | Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if isinstance(texts, Mapping):
        yield from ((str(role), str(column)) for role, column in texts.items())
        return
    for text in [texts] if isinstance(texts, str) else texts:
        for piece in (piece for row in csv.reader([text], skipinitialspace=True) for piece in row):
            role, equals, column = (part.strip() for part in piece.partition("="))
            if not equals or not role:
                raise InputError(
                    f"{piece.strip()!r} does not give a column a role",
                    Location("`columns`", 1, None, text),
                    'write it as `columns="wear=wear_level, wear\'=next_wear, action=cmd, episode=run_id"`',
                )
            yield role, column


def _role(name: str, variables: Collection[str], more: Collection[str]) -> str:
    """The role that a user's word means: a variable, its next value, or one of `ROLES` or `more`."""
    if name in variables:
        return name
    for variable in variables:
        if name in {form.format(variable) for form in _NEXT_FORMS}:
            return variable + "'"
    if name in ROLES or name in more:
        return name
    if name in {form.format(STATE) for form in _NEXT_FORMS}:
        return NEXT_STATE
    known = ", ".join([*variables, *(f"{v}'" for v in variables), *ROLES, *more])
    raise InputError(
        f"`columns` refers to '{name}', which is not a part of a row", hint=f"known values: {known}"
    )


class StateForm(Enum):
    """An index means something only within one model; variables survive a change of the model's numbering.

    >>> [one.value for one in StateForm]
    ['index', 'variables']
    """

    INDEX = "index"
    VARIABLES = "variables"


class StateNames(Enum):
    """What stands in a log where it names a state."""

    INDEX = "index"
    """The number that the model gives the state; only where the user or the file says so."""

    VARIABLES = "variables"
    """The values of all variables of the model, a column each."""

    OWN = "own"
    """What the author of a model written in Python calls the state."""


Form = TypeVar("Form", StateForm, StateNames)


def form_of(states: Enum | str | None, forms: type[Form]) -> Form | None:
    """The form that a user names, None for none; a name that is none is an `InputError`."""
    word = states.value if isinstance(states, Enum) else states
    try:
        return None if word is None else forms(word)
    except ValueError:
        known = ", ".join(form.value for form in forms)
        raise InputError(f"states are not named by '{word}'", hint=f"known values: {known}") from None


RESERVED = set(ROLES) - {TIME, DONE, COST}


@dataclass(frozen=True)
class RowColumns:
    """The columns that say from where, by what and to where a row goes, and where it stands in its episode.

    `state_roles` are the columns of states by what they hold: variables with their next values (`x'`), or
    whole states. `roles` are all others. `next_state` is empty where the next row tells it.
    """

    by: StateNames
    state_roles: Mapping[str, str]
    roles: Mapping[str, str]

    @property
    def state(self) -> tuple[str, ...]:
        return tuple(column for role, column in self.state_roles.items() if not self._is_next(role))

    @property
    def next_state(self) -> tuple[str, ...]:
        return tuple(column for role, column in self.state_roles.items() if self._is_next(role))

    def _is_next(self, role: str) -> bool:
        return role.endswith("'") or (role == NEXT_STATE and self.by is not StateNames.VARIABLES)

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
        return tuple(self.roles[role] for role in FLAGS if role in self.roles)

    @property
    def each(self) -> list[tuple[str, str]]:
        """Every role with its column, in the order in which columns are read."""
        return [*self.state_roles.items(), *self.roles.items()]

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read."""
        return tuple(dict.fromkeys(column for _, column in self.each))

    @property
    def read_as(self) -> str:
        """The reading in one line: `wear = wear_level, wear' = next_wear, action = cmd`."""
        parts = [role if role == column else f"{role} = {column}" for role, column in self.each]
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
    given = {**_by_position(table, structure, states), **given}
    written_here = _is_written_for(table, structure)
    by_index = states is StateNames.INDEX or (states is None and written_here)
    variables = () if by_index else tuple(structure.valuations)
    if states is not StateNames.INDEX and STATE in given and STATE not in variables:
        variables = ()
    finder = ColumnFinder(table.path, table.names, variables, given)
    by, state_roles = state_columns(table, structure, states, by_index, finder)
    row = RowColumns(by, state_roles, {})
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
    if structure.has_choices and not {ACTION, CHOICE} & roles.keys():
        raise _missing(table, [ACTION], f"or '{CHOICE}': some states of the model have more than one choice")
    if COUNT in roles:
        if row.from_next_row:
            name = NEXT_STATE if by is not StateNames.VARIABLES else next(iter(structure.valuations)) + NEXT
            raise _missing(table, [name], "a table of counts says where a row leads")
        left_out = (EPISODE, STEP, TIME, *FLAGS, COST)
        roles = {r: c for r, c in roles.items() if r not in left_out}
    else:
        roles.pop(BATCH, None)
        if row.from_next_row:
            _check_next_row(table, by, structure, roles, given)
    return replace(row, roles=roles)


def with_watched(
    tables: Sequence[DataTable], columns: Sequence[RowColumns], name: str, needed: Sequence[str]
) -> list[RowColumns]:
    """The columns of logs, of which one may say until when each episode was watched; it needs others."""
    result, word = list(columns), f"`watched_until` names the column '{name}'"
    is_named = any(name in table.names for table in tables)
    for number, table in enumerate(tables if is_named else ()):
        own = columns[number]
        lacking = [role for role in needed if role not in own.roles and not own.is_counted]
        if name not in table.names:
            raise table.error(f"{word}, which this file does not have")
        if lacking:
            hint = f'name it: `columns="{lacking[0]}=…"`'
            raise table.error(f"{word}, and the log has none of the {lacking[0]}", hint)
        if name in own.names:
            raise InputError(f"{word}, which is read as something else")
        if not own.is_counted:
            result[number] = replace(own, roles={**own.roles, WATCHED_UNTIL: name})
    return result


def _by_position(table: DataTable, structure: Structure, states: StateNames | None) -> dict[str, str]:
    """Variables in the order of an environment's observations, where a table is of one."""
    columns, names = (table.metadata or {}).get("observation", ()), tuple(structure.valuations)
    if structure.state_names is not None and states is not StateNames.VARIABLES:
        return {}
    if states is StateNames.INDEX or not isinstance(columns, list) or len(columns) != len(names):
        return {}
    if {f"observation.{name}" for name in names} == set(columns):
        return {}
    pairs = zip(names, columns, strict=True)
    return {role: column for n, c in pairs for role, column in ((n, c), (f"{n}'", f"next_{c}"))}


def _is_written_for(table: DataTable, structure: Structure) -> bool:
    """Whether the file gives states by index and was written for this model; one for another is refused."""
    metadata = table.metadata or {}
    if "structure" not in metadata or not {STATE, NEXT_STATE} <= set(table.names):
        return False
    if metadata["structure"] == structure_hash(structure):
        return True
    source = metadata.get("source")
    raise table.error(
        "the file was sampled from a different model" + (f" ({source})" if source else ""),
        "use the same model and constants, or sample again with --states variables",
    )


def state_columns(
    table: DataTable, structure: Structure, states: StateNames | None, by_index: bool, finder: ColumnFinder
) -> tuple[StateNames, dict[str, str]]:
    """How a table names states, and the columns in which it does."""
    variables = tuple(structure.valuations)
    if by_index:
        return StateNames.INDEX, _whole_states(table, finder, "states are read by index")
    whole = None if STATE in variables else finder.role(STATE)
    present = [finder.variable(name) for name in variables]
    complete = bool(variables) and None not in present
    if states is StateNames.VARIABLES and not variables:
        raise table.error("the model has no variables, so states cannot be given by them")
    if complete and states is not StateNames.OWN and not (STATE in finder.given and STATE not in variables):
        own = {name: column for name, column in zip(variables, present, strict=True) if column is not None}
        return StateNames.VARIABLES, own | _next_variables(table, structure, finder)
    if states is not StateNames.VARIABLES and structure.state_names is not None:
        named = ", ".join((*variables, *(name + NEXT for name in variables)))
        why = f"or, for states by variables, {named}" if named else "the model's named states stand there"
        return StateNames.OWN, _whole_states(table, finder, why)
    if states is StateNames.OWN:
        raise table.error("the model has no named states: only models written in Python have them")
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
    return table.error(
        f"the column '{column}' does not say how it names states: "
        + (named if variables else "the model has neither variables nor states of its author's naming"),
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
        raise table.error(
            f"`columns` names the column '{given[COST]}' for the cost, but no reward of the model depends "
            "on a parameter",
            "leave it out",
        )
    return False


def _whole_states(table: DataTable, finder: ColumnFinder, why: str) -> dict[str, str]:
    state = finder.role(STATE)
    if state is None:
        raise _missing(table, [STATE], why)
    next_state = finder.next_state(state)
    return {STATE: state} if next_state is None else {STATE: state, NEXT_STATE: next_state}


def _next_variables(table: DataTable, structure: Structure, finder: ColumnFinder) -> dict[str, str]:
    variables = tuple(structure.valuations)
    after = [finder.next_variable(name) for name in variables]
    if len(variables) == 1 and after[0] is None and plain_name(variables[0]) in (STATE, *HABITS[STATE]):
        after = [finder.next_state(variables[0])]
    columns = {f"{v}'": column for v, column in zip(variables, after, strict=True) if column is not None}
    missing = [f"{v}{NEXT}" for v in variables if f"{v}'" not in columns]
    if columns and missing:
        raise _missing(table, missing, "these next values are missing, others are present")
    return columns


def _check_next_row(
    table: DataTable, by: StateNames, structure: Structure, roles: Mapping[str, str], given: Mapping[str, str]
) -> None:
    """Next states come from the next row only where something says that rows follow each other."""
    is_stated = NEXT_STATE in given or any(f"{name}'" in given for name in structure.valuations)
    if is_stated or any(role in roles for role in (EPISODE, STEP, TIME, *FLAGS)):
        return
    role = NEXT_STATE if by is not StateNames.VARIABLES else f"{next(iter(structure.valuations))}'"
    raise table.error(
        "no column holds the next state, and none says which rows follow each other (episode, step, done)",
        f'name it with `columns="{role}=…"`; or say `columns="{role}="` where each row continues the one '
        f"before; the file has the columns {', '.join(table.names)}",
    )


def _missing(table: DataTable, names: list[str], why: str) -> InputError:
    absent = [name for name in names if name not in table.names] or names
    hint = f'the file has the columns {", ".join(table.names)}; `columns="{absent[0]}=…"` says what they mean'
    return table.error(
        f"missing column{'s' if len(absent) > 1 else ''} {', '.join(absent)} ({why})",
        "; ".join([hint, *unused_columns(table, (), ())]),
    )


_ID_WORDS = re.compile(
    r"(^|[_\W])(id|nr|no|unit|pump|pumpe|machine|maschine|device|asset|serial|name|car|robot|patient)([_\W]|$)",
    re.IGNORECASE,
)
_END_WORDS = re.compile(r"end|done|fail|final|last|stop|ausfall|schluss|term", re.IGNORECASE)


def unused_columns(table: DataTable, used: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """What `point_at_unused` says of the first rows of a table; nothing where that says itself what it is."""
    names = unused_names(table, used)[:MOST_COLUMNS]
    if not names or table.metadata is not None or COUNT in roles:
        return ()
    try:
        chunk = next(table.chunks(names, lambda: None), None)
    except InputError:
        return ()
    return () if chunk is None else point_at_unused(chunk, roles)


def unused_names(table: DataTable, used: Sequence[str]) -> list[str]:
    """The columns of a table that nobody uses."""
    return [name for name in table.columns if name not in used]


def point_at_unused(chunk: Chunk, roles: Sequence[str]) -> tuple[str, ...]:
    """What columns that nobody uses look like, where the log has no such thing: times, names of episodes,
    ends."""
    hints, unused = [], "is not used and looks like"
    for name, column in chunk.columns.items():
        values = some_values(column)
        looks, shown = look(values), ", ".join(str(value) for value in values)
        if looks == "dates" and not {TIME, STEP} & set(roles):
            hints.append(f"column '{name}' {unused} times ({shown}): `columns=\"time={name}\"`")
        elif looks in ("whole numbers", "text") and _ID_WORDS.search(name) and EPISODE not in roles:
            several = len(set(distinct(column.slice(0, LOOKED_AT))[0]))
            if 1 < several <= max(min(chunk.rows, LOOKED_AT) // 2, 2):
                meaning = f'names of episodes ({shown}): `columns="episode={name}"`'
                hints.append(f"column '{name}' {unused} {meaning}")
        elif _is_flag(values) and _END_WORDS.search(name) and not {*FLAGS} & set(roles):
            hints.append(f"column '{name}' {unused} ends ({shown}): `columns=\"done={name}\"`")
    return tuple(hints)


def _is_flag(values: Sequence[object]) -> bool:
    return bool(values) and {str(value).strip().lower() for value in values} <= {"0", "1", "true", "false"}
