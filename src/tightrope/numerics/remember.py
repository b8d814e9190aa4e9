"""What follows from an immutable object alone is computed once and kept with the object.

`cached_property` for functions: the result lies in the `__dict__` of the first argument and goes when that
goes, so it may refer back to it. Only for pure functions of frozen objects; whoever gets a result shares it
and must not write to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def remember(function: Callable[P, T]) -> Callable[P, T]:
    """The function, evaluated once for each object it is given first (and each value of the other arguments).

    >>> class Thing: ...
    >>> calls = []
    >>> size = remember(lambda thing, unit=1: calls.append(unit) or len(calls))
    >>> thing = Thing()
    >>> size(thing), size(thing), size(thing, unit=2), calls
    (1, 1, 2, [1, 2])
    """
    name = f"_remembered_{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def recalled(*arguments: P.args, **named: P.kwargs) -> T:
        kept: dict[Hashable, object] = vars(arguments[0]).setdefault(name, {})
        key = (arguments[1:], tuple(sorted(named.items())))
        if key not in kept:
            kept[key] = function(*arguments, **named)
        return cast(T, kept[key])

    return recalled


class Remembering:
    """A frozen dataclass that results are kept with; pickles leave them out, and arrays stay read-only."""

    def __getstate__(self) -> dict[str, Any]:
        record: Any = self
        return {entry.name: _portable(getattr(self, entry.name)) for entry in fields(record)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: _freeze(value) for name, value in state.items()})


class _Mapping(dict[Any, Any]):
    """What a mapping that cannot be written to is in a pickle, which knows no such thing."""


def _portable(value: Any) -> Any:
    return _Mapping(value) if isinstance(value, MappingProxyType) else value


def _freeze(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return MappingProxyType(dict(value)) if isinstance(value, _Mapping) else value
