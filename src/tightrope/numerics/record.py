"""Records: frozen dataclasses with equality by fields, small pickles and short representations.

Arrays are compared entry by entry, NaN equal to NaN; fields with `compare=False` do not count. Pickles and
deep copies hold only the fields, without cached results (`cached_property`, `remember`); arrays stay
read-only. A record prints as its `_title_` and `_facts_`, at most `MOST_LINES` lines, or as a notebook card.

`remember` is `cached_property` for functions: the result lies in the `__dict__` of the first argument. Use it
only for pure functions of frozen objects; results are shared and must not be modified.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

import tightrope
from tightrope.errors import word_methods
from tightrope.numerics.jit import Untyped

MOST_LINES = 10
WIDTH = 100
"""Of a line of text; what is longer ends in an ellipsis."""

Facts = Sequence[tuple[str, str]]


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
        results: dict[Hashable, object] = vars(arguments[0]).setdefault(name, {})
        key = (arguments[1:], tuple(sorted(named.items())))
        if key not in results:
            results[key] = function(*arguments, **named)
        return cast(T, results[key])

    return recalled


class _Mapping(dict[object, object]):
    """What a mapping that cannot be written to is in a pickle, which knows no such thing."""


def _portable(value: object) -> object:
    return _Mapping(value) if isinstance(value, MappingProxyType) else value


def _freeze(value: object) -> object:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return MappingProxyType(dict(value)) if isinstance(value, _Mapping) else value


class Record:
    """Give it to `@dataclass(frozen=True, eq=False, repr=False)` classes.

    Wrong calls of the methods of public ones are refused in words, wherever a user got the record from.
    """

    def __init_subclass__(cls, **words: object) -> None:
        super().__init_subclass__(**words)
        if cls.__name__ in vars(tightrope)["__all__"]:
            word_methods(cls)

    def __getstate__(self) -> dict[str, object]:
        return {entry.name: _portable(getattr(self, entry.name)) for entry in entries_of(self)}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update({name: _freeze(value) for name, value in state.items()})

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _same_fields(self, other)

    def __hash__(self) -> int:
        """Of what is quickly read: equal records have equal hashes, and few others do."""
        return hash(tuple(_rough(getattr(self, each.name)) for each in entries_of(self) if each.compare))

    def _title_(self) -> str:
        return type(self).__name__

    def _facts_(self) -> Facts:
        shown = [entry.name for entry in entries_of(self) if entry.repr]
        return [(name, brief(getattr(self, name))) for name in shown if getattr(self, name) is not None]

    def _picture_(self) -> str:
        """A small figure for the card, as SVG; none by default."""
        return ""

    def __repr__(self) -> str:
        return as_text(self._title_(), self._facts_())

    def _repr_html_(self) -> str:
        return as_card(self._title_(), self._facts_(), self._picture_())


def entries_of(record: object) -> tuple[Field[object], ...]:
    """The fields of a dataclass, whatever is known of its type."""
    return fields(cast(Any, record))


def freeze_fields(record: object) -> None:
    """Make the arrays of a frozen record read-only; who made them may still hold a writable view."""
    for entry in entries_of(record):
        value = getattr(record, entry.name)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            frozen = value.view()
            frozen.flags.writeable = False
            object.__setattr__(record, entry.name, frozen)


def as_text(title: str, facts: Facts) -> str:
    """The title and a line per fact, names in a column."""
    lines = list(facts[: MOST_LINES - 1])
    if len(lines) < len(facts):
        lines[-1:] = [("…", f"and {len(facts) - len(lines) + 1} more")]
    column = max((len(name) for name, _ in lines), default=0)
    return "\n".join([_cut(title), *(_cut(f"  {name:<{column}}  {value}") for name, value in lines)])


def as_card(title: str, facts: Facts, picture: str = "") -> str:
    """The same as a card of a notebook; `picture` is markup of ours, everything else is escaped."""
    from html import escape

    cell = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"
    rows = "".join(
        f'<tr><th style="{cell};font-weight:500;opacity:.7">{escape(name)}</th>'
        f'<td style="{cell}">{escape(value)}</td></tr>'
        for name, value in facts
    )
    frame = "display:inline-flex;gap:24px;border:1px solid #8884;border-radius:6px;padding:8px 12px"
    table = f'<table style="border-collapse:collapse">{rows}</table>'
    return (
        f'<div class="tightrope-card" style="{frame}"><div><div style="font-weight:600;padding-bottom:4px">'
        f"{escape(title)}</div>{table}</div>{picture}</div>"
    )


def brief(value: object) -> str:
    """A value in a few words."""
    match value:
        case np.ndarray():
            is_short = value.ndim == 1 and value.dtype.kind in "iuf"
            entries = ", ".join(f"{entry:.4g}" for entry in value[:4]) if is_short else "…"
            shape = "×".join(map(str, value.shape))
            return f"{shape} {value.dtype}: {entries}{', …' if is_short and len(value) > 4 else ''}"
        case Enum():
            return str(value.value)
        case float():
            return f"{value:.9g}"
        case str():
            return value
        case Mapping():
            return ", ".join(map(str, value)) or "none"
        case tuple() | list():
            short = len(value) <= 4 and all(isinstance(entry, str | int | float) for entry in value)
            return ", ".join(map(str, value)) if short and value else f"{len(value)}"
    return repr(value).partition("\n")[0]


def same(one: Untyped, other: Untyped) -> bool:
    """Whether two values of fields say the same."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and _same_arrays(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "tocsr") and hasattr(other, "tocsr"):
        return bool(one.shape == other.shape and (one != other).nnz == 0)
    if isinstance(one, float) and isinstance(other, float) and one != one:
        return other != other
    if type(one) is not type(other):
        return False
    by_identity = is_dataclass(one) and type(one).__eq__ is object.__eq__
    return _same_fields(one, other) if by_identity else bool(one == other)


def _same_fields(one: object, other: object) -> bool:
    compared = [entry.name for entry in entries_of(one) if entry.compare]
    return one is other or all(same(getattr(one, name), getattr(other, name)) for name in compared)


def _same_arrays(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> bool:
    if one.shape != other.shape:
        return False
    inexact = np.issubdtype(one.dtype, np.inexact) and np.issubdtype(other.dtype, np.inexact)
    return bool(np.array_equal(one, other, equal_nan=inexact))


def _rough(value: object) -> Hashable:
    if isinstance(value, str | int | bool | None | Enum):
        return value
    if isinstance(value, np.ndarray):
        return tuple(value.shape)
    if isinstance(value, Mapping | list | tuple):
        return len(value)
    return type(value).__name__


def _cut(line: str) -> str:
    line = line.replace("\n", " ")
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
