"""Errors and warnings with texts that a user can act on.

A `TightropeError` is shown without a traceback; its `exit_code` is that of the command.

* `InputError` (exit 2): the input is wrong. Names what, where (`Location`), why and what to do.
* `CannotCertify` (exit 1): the input is correct, but no certified answer was found.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from math import inf
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from tightrope_check.errors import CannotCertify as CannotCertify
from tightrope_check.errors import InputError as InputError
from tightrope_check.errors import Location as Location
from tightrope_check.errors import TightropeError as TightropeError
from tightrope_check.errors import shown as shown

E = TypeVar("E", bound=Enum)
F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


class ReadingWarning(UserWarning):
    """An input can be read in two ways; says which one was taken, and how to ask for the other.

    >>> import warnings
    >>> import tightrope as tr
    >>> rows = [(0, "a", {1: (0.4, 0.6), 0: (0.4, 0.6)}), (0, "b", {0: 1}), (1, "a", {1: 1})]
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     problem = tr.build_from_rows(rows, labels={"goal": [1]}).problem('Pmax=? [ F "goal" ]')
    >>> told[0].category.__name__
    'ReadingWarning'
    """


MEANT = (
    ("delta", "alpha", "confidence", "confidence_level", "level", "significance"),
    ("precision", "epsilon", "eps", "tol", "tolerance", "atol", "rtol"),
    ("seconds", "timeout", "time_limit", "max_time"),
    ("threads", "n_jobs", "workers", "jobs", "cores"),
    ("gap", "width", "half_width"),
    ("property", "prop", "formula", "query"),
    ("data", "log", "logs", "episodes"),
    ("state_rewards", "rewards", "reward", "costs"),
    ("parameters", "params", "domain"),
    ("data", "counts"),
)
"""Words of one meaning: whoever writes one is told which of them a function takes."""


def check_keywords(
    function: str, known: type | Sequence[str], given: Mapping[str, object], besides: Sequence[str] = ()
) -> dict[str, Any]:
    """Refuse keyword arguments that a function does not share; `besides` are its own arguments."""
    names = list(known.__annotations__ if isinstance(known, type) else known)
    for name, value in given.items():
        if name not in names:
            raise InputError(
                f"{function} has no argument `{name}`", hint=suggest(name, [*besides, *names], value)
            )
    return dict(given)


def suggest(name: str, names: Sequence[str], value: object = None) -> str:
    """The argument that a wrong name may stand for; all of them where that is unclear."""
    alike = [word for group in MEANT if name in group for word in group if word in names]
    alike += get_close_matches(name, names, 1, 0.65)
    if not alike:
        return f"its arguments are {', '.join(names)}"
    if alike[0] in ("delta", "alpha") and name.startswith(("confidence", "level")):
        share = value if isinstance(value, int | float) and 0.5 <= value < 1 else 0.95
        is_ = "the guarantee" if alike[0] == "delta" else "the test"
        return f"`{alike[0]}` is the probability that {is_} may fail: write `{alike[0]}={1 - share:.6g}`"
    return f"did you mean `{alike[0]}`?"


def similar_file(path: Path) -> str | None:
    """The file of its type, or of one spelt alike, that the name of one that is not there may stand for."""
    files = [one for one in path.parent.glob("*.*") if one.is_file()]
    types = get_close_matches(path.suffix, sorted({one.suffix for one in files}), 1, 0.75)
    stems = {one.stem: one for one in files if not path.suffix or one.suffix in types}
    close = [] if path.exists() else get_close_matches(path.stem, stems, 1)
    return f"did you mean {stems[close[0]]}?" if close else None


class WrongCall(InputError, TypeError):
    """A call with arguments that a function does not take, or without one that it needs.

    >>> issubclass(WrongCall, TypeError)
    True
    """


def in_words(function: F) -> F:
    """The function, with calls that its signature does not allow refused in words once they have failed."""

    @functools.wraps(function)
    def call(*given: object, **words: object) -> object:
        try:
            return function(*given, **words)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise _wrong_call(function, given, words) from None

    return cast(F, call)


def word_methods(owner: T) -> T:
    """The class, with the same for its public methods, for those of its bases here, and for making one."""
    for each in cast(type, owner).__mro__:
        if not each.__module__.startswith("tightrope"):
            continue
        for name, method in list(each.__dict__.items()):
            if name.startswith("_") and name not in ("__init__", "__call__"):
                continue
            kind = type(method) if isinstance(method, classmethod | staticmethod) else None
            function = method if kind is None else method.__func__
            if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
                worded = in_words(function)
                setattr(each, name, worded if kind is None else kind(worded))
    return owner


def _wrong_call(
    function: Callable[..., object], given: Sequence[object], words: Mapping[str, object]
) -> InputError:
    import inspect

    listed = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    called = function.__qualname__
    if listed and listed[0].name in ("self", "cls"):
        owner = given[0] if isinstance(given[0], type) else type(given[0])
        called = f"{owner.__name__}.{function.__name__}"
        listed, given = listed[1:], given[1:]
    called = called.removesuffix(".__init__").removesuffix(".__call__")
    places = [each.name for each in listed if each.kind is not each.KEYWORD_ONLY]
    names = [each.name for each in listed]
    needed = [each.name for each in listed if each.default is each.empty]
    for name, value in words.items():
        if name not in names:
            return WrongCall(f"{called} has no argument `{name}`", hint=suggest(name, names, value))
        if name in places[: len(given)]:
            return WrongCall(f"{called} is given `{name}` twice: by its place and by its name")
    if len(given) > len(places):
        head = f"{called}({', '.join(places)}"
        further = [name for name in names if name not in places]
        hint = f"name what comes after: {further[0]}=…" if further else None
        count = "one argument" if len(places) == 1 else f"{len(places) or 'no'} arguments"
        by = "its place" if len(places) == 1 else "their places"
        return WrongCall(f"{head}) takes {count} by {by}, not {len(given)}", hint=hint)
    missing = [f"`{name}`" for name in needed if name not in places[: len(given)] and name not in words]
    return WrongCall(f"{called} needs {' and '.join(missing)}", hint=f"call {called}({', '.join(needed)}, …)")


def describe(value: object) -> str:
    """What something is, in a few words for messages: `a str`, `an MDP`, `None`."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOUM' else 'a'} {name}"


def check_type(argument: str, value: object, kinds: Any, what: str) -> None:
    """Refuse what is of another type than these; `what` says what was wanted."""
    if (isinstance(value, bool) and kinds is not bool) or not isinstance(value, kinds):
        raise InputError(f"`{argument}` is {describe(value)}, not {what}")


def check_number(argument: str, value: object, low: float = -inf, high: float = inf) -> None:
    """Refuse what is no number strictly between two bounds; above there may be none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"`{argument}` is {value!r}, not a number")
    if not low < value or not (value < high or high == inf):
        wanted = f"within ({low:g}, {high:g})" if high < inf else f"a number above {low:g}"
        raise InputError(f"`{argument}` is {value}, not {wanted}")


def choose(option: str, kinds: type[E], value: object) -> E:
    """The choice that an argument names; the choice itself is accepted as well."""
    try:
        return kinds(value)
    except ValueError:
        known = ", ".join(kind.value for kind in kinds)
        raise InputError(f"`{option}` is {value!r}, not one of {known}") from None
