"""Parts of a model written in Python: successors, labels, rewards and variables.

Successors are a function of the state, a mapping {state: {action: {next state: probability}}}, or a table
(pandas, polars, pyarrow) with the columns `state`, `action`, `next_state` and `probability`; in continuous
time without actions and with `rate`. Labels, rewards and variables are functions; a label may list its states
and a reward may map states to amounts. Probabilities and rates are numbers, pairs, functions of the
parameters, or text ("1 - p"). Errors name the argument and the state, with the author's exception as cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from tightrope.errors import InputError, TightropeError, check_type, describe
from tightrope.model import polynomial
from tightrope.model.free import Free
from tightrope.model.numbers import Number, exact
from tightrope.numerics.late import pa

Entry = polynomial.Function | tuple[Number, Number] | Free
"""What a transition may have: a function of the parameters, bounds, or nothing known."""

Rows = list[tuple[int, str, dict[int, Entry]]]

Given: TypeAlias = Any
"""What an author writes; the functions here say what is wrong with it."""


FORM = "{action: {next state: probability}}"
RATES = "{next state: rate}"
ASKED = {
    "state_rewards": "state",
    "choice_rewards": "state, action",
    "transition_rewards": "state, action, next_state",
}


def is_table(given: object) -> bool:
    """Whether it is a table of some library."""
    return hasattr(given, "__arrow_c_stream__")


def successors_of(
    given: Given, argument: str = "successors", *, timed: bool = False
) -> Callable[[object], Given]:
    """A function of the state, whatever the author has written."""
    if is_table(given):
        given = _of_table(given, argument, timed)
    form = RATES if timed else FORM
    if isinstance(given, Mapping):
        mapping = given

        def find(state: object) -> Given:
            if state not in mapping:
                close = get_close_matches(str(state), [str(known) for known in mapping], 1)
                meant = f"did you mean {close[0]!r}? " if close else ""
                hint = f"{meant}every state that is reached needs an entry, {{{state!r}: {form}}}"
                raise InputError(f"`{argument}` says nothing about state {state!r}", hint=hint)
            return mapping[state]

        return find
    if not callable(given):
        raise InputError(
            f"`{argument}` is {describe(given)}, neither a function of the state nor a mapping or table",
            hint=f"write a function that returns {form}, or a mapping from states to these",
        )
    return lambda state: ask(argument, given, state)


def ask(argument: str, function: object, *about: object) -> Given:
    """What a function of the author's says about a state, or a state and what follows."""
    if not callable(function):
        raise InputError(f"`{argument}` is {describe(function)}, not a function")
    try:
        return function(*about)
    except Exception as error:
        place = " and ".join(([f"state {about[0]!r}"] if about else []) + [repr(one) for one in about[1:]])
        reason = str(error) if isinstance(error, TightropeError) else f"{type(error).__name__}: {error}"
        raise InputError(f"`{argument}` fails at {place}: {reason}") from error


def _of_table(table: object, argument: str, timed: bool) -> dict[Hashable, Given]:
    """{state: {action: {next state: value}}}, or {state: {next state: rate}}."""
    columns = table_columns(table)
    needed = ("state", "next_state", "rate") if timed else ("state", "action", "next_state", "probability")
    if missing := [name for name in needed if name not in columns]:
        raise InputError(
            f"`{argument}`: the table has no column {missing[0]}",
            hint=f"the columns are {', '.join(map(str, columns))}, and {', '.join(needed)} are needed",
        )
    result: dict[Hashable, Given] = {}
    for row, cells in enumerate(zip(*(columns[name] for name in needed), strict=True)):
        for name, cell in zip(needed, cells, strict=True):
            if cell is None or (isinstance(cell, float) and cell != cell):
                raise InputError(f"`{argument}`, row {row}: there is no {name.replace('_', ' ')}")
        *where, value = cells
        inner = result
        for key in where[:-1]:
            inner = inner.setdefault(key, {})
        if where[-1] in inner:
            reason = " of ".join(f"{n.replace('_', ' ')} {c!r}" for n, c in zip(needed, where, strict=False))
            raise InputError(f"`{argument}`, row {row}: {reason} stands there twice")
        inner[where[-1]] = value
    return result


def table_columns(table: Given) -> dict[str, list[Given]]:
    """The columns of a table as lists of Python's own values."""
    if hasattr(table, "to_pydict"):  # pyarrow
        return dict(table.to_pydict())
    if type(table).__module__.startswith("polars"):
        return dict(table.to_dict(as_series=False))
    if hasattr(table, "to_dict"):
        return dict(table.to_dict("list"))
    return dict(pa.table(table).to_pydict())


def explore(
    initial: Sequence[Hashable],
    successors: Callable[[object], Given],
    names: Sequence[str],
    argument: str = "successors",
    *,
    timed: bool = False,
) -> tuple[list[Hashable], Rows]:
    """All states that can be reached, in the order in which they are met, and their rows."""
    number: dict[Hashable, int] = {}
    states: list[Hashable] = []
    rows: Rows = []

    def index(state: Hashable, whose: str) -> int:
        try:
            if state not in number:
                number[state] = len(states)
                states.append(state)
        except TypeError:
            raise InputError(
                f"{whose} is {state!r}, and {describe(state)} cannot be a state: it can be changed",
                hint="write states as numbers, texts, tuples or frozen dataclasses",
            ) from None
        return number[state]

    for state in initial:
        index(state, "`initial`")
    at = 0
    while at < len(states):
        given = successors(states[at])
        here = f"`{argument}` at state {states[at]!r}"
        form = RATES if timed else FORM
        _check_mapping(given, here, form)
        named_here = {"": ""} if timed else {action: name_action(action, here) for action in given}
        if len(set(named_here.values())) < len(named_here):
            raise InputError(f"{here} has two actions with the same name: 1 and '1' are one name")
        for action, distribution in {"": given}.items() if timed else given.items():
            of_action = here if timed else f"{here}, action {action!r}"
            if not timed:
                _check_mapping(distribution, of_action, "{next state: probability}")
            row: dict[int, Entry] = {}
            for successor, value in distribution.items():
                read = read_value(value, names, lambda s=successor, of=of_action: f"{of}, to {s!r}")  # type: ignore[misc]
                if not is_zero(read):
                    row[index(successor, of_action)] = read
            rows.append((at, named_here[action], row))
        at += 1
    return states, rows


def _check_mapping(given: object, where: str, form: str) -> None:
    if not isinstance(given, Mapping):
        raise InputError(f"{where} gives {_short(given)}, not {form}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else describe(value)


def name_action(action: object, where: str) -> str:
    """The name of an action; whole numbers are names as well."""
    if isinstance(action, str):
        return action
    if isinstance(action, int | np.integer) and not isinstance(action, bool):
        return str(action)
    raise InputError(f"{where} has the action {action!r}, and actions are named by texts")


def read_value(value: Given, names: Sequence[str], where: Callable[[], str]) -> Entry:
    """A probability or rate: a function of the parameters, `free`, or a pair; text is read by their names."""
    try:
        if isinstance(value, Free):
            return value
        if isinstance(value, tuple):
            if len(value) != 2:
                raise InputError(f"{value!r} is not a pair (lower, upper)")
            for end in value:
                polynomial.as_function(end)
            return value
        if isinstance(value, str):
            return polynomial.parse_function(value, {name: i for i, name in enumerate(names)})
        function = polynomial.as_function(value)
    except polynomial.PolynomialSyntaxError as error:
        hint = "name them in `parameters`: tr.Parameters.box(p=(0, 1))" if not names else None
        raise InputError(f"{where()}: {value!r}: {error}", hint=hint) from None
    except InputError as error:
        raise InputError(f"{where()}: {error.message}", hint=error.hint) from None
    if max(function.variables, default=-1) >= len(names):
        known = f"only of {', '.join(names)}" if names else "missing"
        raise InputError(
            f"{where()}: the value has parameters, and `parameters` is {known}",
            hint="give the Parameters whose symbols() were used",
        )
    return function


def is_zero(value: Entry) -> bool:
    """Whether a transition cannot happen, so that the model does not have it."""
    if isinstance(value, Free):
        return False
    if isinstance(value, tuple):
        return exact(value[1]) == 0
    return polynomial.as_function(value) == polynomial.Polynomial({})


def label_states(states: Sequence[Hashable], labels: object) -> dict[str, list[int]]:
    """The numbers of the states of every label."""
    listed: dict[str, list[int]] = {}
    for name, given in named("labels", labels).items():
        argument = f"labels[{name!r}]"
        if callable(given):
            listed[name] = [s for s, x in enumerate(states) if _holds(argument, given, x)]
            continue
        if isinstance(given, str | Mapping) or not isinstance(given, Collection):
            raise InputError(
                f"`{argument}` is {describe(given)}, neither a function of the state nor a list of states",
                hint=f"write labels={{{name!r}: lambda state: …}}",
            )
        number = {state: s for s, state in enumerate(states)}
        if not any(isinstance(state, bool | np.bool_) for state in states):
            refuse_truths(argument, given)
        if unknown := [one for one in given if not isinstance(one, Hashable) or one not in number]:
            known = ", ".join(map(repr, states[:5])) + ", …" * (len(states) > 5)
            raise InputError(
                f"`{argument}` names the state {unknown[0]!r}, and no such state is reached",
                hint=f"the states are {known}",
            )
        listed[name] = [number[state] for state in given]
    return listed


def refuse_truths(argument: str, listed: Iterable[object]) -> None:
    """A mask is no list of states: True would be the state 1."""
    if any(isinstance(one, bool | np.bool_) for one in listed):
        raise InputError(
            f"`{argument}` lists truth values, and True would be read as the state 1",
            hint="list the states themselves, as in np.flatnonzero(mask)",
        )


def _holds(argument: str, function: object, state: object) -> bool:
    """What a label's function says of a state: texts and arrays are no truth values."""
    truth = ask(argument, function, state)
    if truth is not None and not isinstance(truth, bool | np.bool_ | int | np.integer):
        raise InputError(f"`{argument}` gives {_short(truth)} at state {state!r}, neither true nor false")
    return bool(truth)


def rewards_of(
    argument: str, rewards: object, places: Iterable[tuple[Hashable, ...]]
) -> dict[str, list[Given]]:
    """What every reward structure earns at these places; what a mapping does not name earns 0."""
    listed = list(places)
    result = {}
    for name, given in named(argument, rewards).items():
        here = f"{argument}[{name!r}]"
        if isinstance(given, Mapping):
            keys = [place[0] if len(place) == 1 else place for place in listed]
            known = set(keys)
            if unknown := [key for key in given if key not in known]:
                example = f"; a key is such as {keys[0]!r}" if keys else ""
                raise InputError(f"`{here}` refers to {unknown[0]!r}, which the model does not have{example}")
            result[name] = [given.get(key, 0) for key in keys]
            continue
        if not callable(given):
            raise InputError(
                f"`{here}` is {describe(given)}, neither a function nor a mapping",
                hint=f"write {argument}={{{name!r}: lambda {ASKED[argument]}: …}}",
            )
        result[name] = [ask(here, given, *place) for place in listed]
    return result


def named(argument: str, given: Given) -> dict[str, Given]:
    """A mapping from names."""
    if given is None:
        return {}
    check_type(argument, given, Mapping, 'a mapping from names, such as {"goal": …}')
    for name in given:
        check_type(argument, name, str, "a mapping from names that are texts")
    return dict(given)


def valuations_of(states: Sequence[Hashable], variables: object) -> dict[str, list[int | bool]]:
    """The values of the state variables: what `variables` says, or the fields of a NamedTuple."""
    if variables is None:
        names = getattr(states[0], "_fields", None)
        if names is None:
            return {}

        def variables(state: object) -> dict[str, Given]:
            return {name: getattr(state, name, None) for name in names}

    columns: dict[str, list[int | bool]] = {}
    for number, state in enumerate(states):
        given = ask("variables", variables, state)
        _check_mapping(given, f"`variables` at state {state!r}", "{name: whole number}")
        for name in [*columns] if number else []:
            if name not in given:
                raise InputError(f"`variables` says nothing of {name!r} at state {state!r}")
        for name, value in given.items():
            if not isinstance(value, int | np.integer | bool | np.bool_):
                raise InputError(
                    f"{name} is {value!r} at state {state!r}, and state variables are whole numbers, true or "
                    "false",
                    hint="`variables=lambda state: {…}` says what the variables are; states keep their names",
                )
            if number and name not in columns:
                raise InputError(f"`variables` refers to {name!r} at state {state!r}, and not before")
            columns.setdefault(name, []).append(value)  # type: ignore[arg-type]
    return columns
