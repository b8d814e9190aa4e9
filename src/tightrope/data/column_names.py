"""What the columns of other people's logs are called: naming habits, and the user's own word in `--columns`.

A role has one canonical name, which always means it, and habits, which are looked for where the canonical
name is not there. Case, blanks, dots and dashes do not matter. Two columns with equal claim to a role are
refused, and what was found is always said ("read as"). A column that bears the name of one of the model's
variables is that variable and nothing else.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from tightrope.errors import InputError, Location

STATE, NEXT_STATE, ACTION, CHOICE = "state", "next_state", "action", "choice"
EPISODE, STEP, TIME = "episode", "step", "time"
TERMINATED, TRUNCATED, DONE = "terminated", "truncated", "done"
COUNT, BATCH = "count", "batch"
COST = "cost"
WATCHED_UNTIL = "watched_until"
"""Until when an episode was watched: the column that the option of this name gives."""
NEXT = "_next"
ROLES = (
    STATE,
    NEXT_STATE,
    ACTION,
    CHOICE,
    EPISODE,
    STEP,
    TIME,
    TERMINATED,
    TRUNCATED,
    DONE,
    COUNT,
    BATCH,
    COST,
)

HABITS: Mapping[str, tuple[str, ...]] = {
    STATE: ("s", "obs", "observation", "from_state", "source", "cur_state", "current_state", "state_id"),
    ACTION: ("act", "a", "action_name", "action_id", "actions", "decision", "control"),
    CHOICE: (),
    EPISODE: (
        "ep",
        "run",
        "trajectory",
        "traj",
        "rollout",
        "trial",
        "episode_id",
        "run_id",
        "trajectory_id",
        "traj_id",
        "ep_id",
        "episode_number",
    ),
    STEP: ("t", "timestep", "time_step", "step_id", "step_number", "step_index", "steps"),
    TIME: ("timestamp", "datetime", "ts", "date", "date_time"),
    TERMINATED: ("terminal", "is_terminal", "termination", "terminateds"),
    TRUNCATED: ("timeout", "timeouts", "truncation", "is_truncated", "truncateds"),
    DONE: ("is_done", "dones", "end", "last", "is_last", "ended"),
    COUNT: ("counts",),
    BATCH: (),
    COST: ("costs", "reward", "rewards", "r"),
}
_NEXT_FORMS = ("{}_next", "next_{}", "{}'", "{}_prime", "{}prime", "new_{}", "{}_new", "next{}", "{}next")
_NEXT_STATE_HABITS = ("to_state", "target", "destination", "s2", "sp", "successor")
_STATE_PREFIXES = ("state.", "s.", "obs.", "observation.")
_NEXT_PREFIXES = (
    "next_state.",
    "state_next.",
    "s'.",
    "next_obs.",
    "next_observation.",
    "next.",
    "new_state.",
)


def is_name_of_next(column: str, variable: str) -> bool:
    """Whether a column is called like the next value of a variable, or for `state`, like the next state."""
    names = {plain_name(form.format(variable)) for form in _NEXT_FORMS}
    names |= set(_NEXT_STATE_HABITS) if variable == STATE else set()
    return plain_name(column) in names


def plain_name(name: str) -> str:
    """A column's name without case, blanks and dashes."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


class ColumnFinder:
    """Finds the columns of one table; `given` says which column has a role, whatever it is called."""

    def __init__(
        self, file: str, columns: Sequence[str], variables: Collection[str], given: Mapping[str, str]
    ):
        self.file = file
        self.columns = tuple(columns)
        self.given = dict(given)
        self._taken = {name for name in columns if name in variables and name not in given}
        self._taken |= set(given.values())
        self._check_given()

    def role(self, role: str) -> str | None:
        """The column of a role, or None where no column has it."""
        if role in self.given:
            return self.given[role] or None
        return self._first(role, role, HABITS[role])

    def state(self) -> str | None:
        """The column of whole states."""
        return self.role(STATE)

    def next_state(self, state: str | None) -> str | None:
        """The column of next states, for which the name of the states' own column counts, too."""
        if NEXT_STATE in self.given:
            return self.given[NEXT_STATE] or None
        bases = dict.fromkeys(b for b in (STATE, plain_name(state) if state else None) if b is not None)
        habits = [form.format(base) for base in bases for form in _NEXT_FORMS] + list(_NEXT_STATE_HABITS)
        return self._first(NEXT_STATE, NEXT_STATE, habits)

    def variable(self, name: str) -> str | None:
        """The column of a variable: its name, or that within an object `state`."""
        if name in self.given:
            return self.given[name] or None
        if name in self.columns:
            return name
        same = [column for column in self._free() if plain_name(column) == plain_name(name)]
        if same:
            return self._only(name, same)
        nested = [prefix + plain_name(name) for prefix in _STATE_PREFIXES]
        return self._first(name, nested[0], nested[1:])

    def next_variable(self, name: str) -> str | None:
        """The column of a variable's next value."""
        key = name + "'"
        if key in self.given:
            return self.given[key] or None
        own = self.variable(name)
        bases = dict.fromkeys([plain_name(name), *([plain_name(own)] if own is not None else [])])
        forms = [form.format(base) for base in bases for form in _NEXT_FORMS]
        nested = [prefix + plain_name(name) for prefix in _NEXT_PREFIXES]
        return self._first(key, name + NEXT, [*forms, *nested])

    def _first(self, role: str, canonical: str, habits: Iterable[str]) -> str | None:
        if canonical in self.columns and canonical not in self._taken:
            return canonical
        wanted = [plain_name(canonical), *habits]
        found = [column for column in self._free() if plain_name(column) in wanted]
        return self._only(role, found) if found else None

    def _only(self, role: str, found: list[str]) -> str:
        if len(found) > 1:
            shown = " and ".join(f"'{column}'" for column in found[:3])
            raise InputError(
                f"the columns {shown} could each be the {describe_role(role)}",
                Location(self.file),
                f'say which: `columns="{role}={found[0]}"`',
            )
        return found[0]

    def _free(self) -> Iterable[str]:
        return (column for column in self.columns if column not in self._taken)

    def _check_given(self) -> None:
        for role, column in self.given.items():
            if column and column not in self.columns:
                raise InputError(
                    f"`columns` names the column '{column}' for the {describe_role(role)}, but there is none",
                    Location(self.file),
                    f"the file has the columns {', '.join(self.columns)}",
                )


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
    """`wear=wear_level, wear'=next_wear, action=cmd` as roles with their columns; an empty column means none.
    `time=Zeit:%d.%m.%Y %H:%M` also says how times are written.

    >>> parse_columns(["wear=wear_level, wear'=next_wear", "action=cmd, step="], ["wear"])
    {'wear': 'wear_level', "wear'": 'next_wear', 'action': 'cmd', 'step': ''}
    """
    if texts is None:
        return GivenColumns()
    roles = GivenColumns()
    for name, column in _entries(texts):
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


def _entries(texts: Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    if isinstance(texts, Mapping):
        return [(str(role), str(column)) for role, column in texts.items()]
    listed = [texts] if isinstance(texts, str) else texts
    return [_entry(piece, text) for text in listed for piece in _pieces(text)]


def _pieces(text: str) -> list[str]:
    return next(csv.reader([text], skipinitialspace=True), [])


def _entry(piece: str, text: str) -> tuple[str, str]:
    role, equals, column = (part.strip() for part in piece.partition("="))
    if not equals or not role:
        raise InputError(
            f"{piece.strip()!r} does not give a column its meaning",
            Location("`columns`", 1, None, text),
            'write it as `columns="wear=wear_level, wear\'=next_wear, action=cmd, episode=run_id"`',
        )
    return role, column


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
    raise InputError(f"`columns` speaks of '{name}', which is no part of a row", hint=f"known are {known}")
