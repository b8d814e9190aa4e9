"""From what a user calls a state to its number in the model: one state at a time, for questions in Python.

A state is one of the model's own states (`tightrope.model.own_states`), or the values of its variables: a
mapping by name, or a sequence in the order of their declaration. A bare number is a number only where the
model's author calls states by numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tightrope.errors import InputError
from tightrope.model.own_states import plain
from tightrope.model.structure import Structure


def find_state(structure: Structure, state: Any) -> int:
    """The number of a state; what is none is an `InputError`."""
    shown, own = plain(state), structure.own_states
    if own is not None and (number := own.find(shown)) >= 0:
        return number
    names = tuple(structure.valuations)
    values: Sequence[Any] | None = None
    if isinstance(shown, Mapping) and set(shown) == set(names):
        values = [shown[name] for name in names]
    elif (
        isinstance(shown, tuple) and len(shown) == len(names) and not (own is not None and own.has_sequences)
    ):
        values = shown
    if names and values is not None:
        columns = zip(structure.valuations.values(), values, strict=True)
        found = np.flatnonzero(np.all([column == value for column, value in columns], axis=0))
        if len(found) == 1:
            return int(found[0])
        if len(found) > 1:
            raise InputError(f"{len(found)} states have the values {shown!r}: they do not say which is meant")
    known = f"; its own states are {own.listing()}" if own is not None else ""
    wanted = f"; states have values of {', '.join(names)}" if names else known
    raise InputError(f"{shown!r} is no state of the model{wanted}")
