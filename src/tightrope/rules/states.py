"""States and actions of a model as rules name them: a column per variable, and a name per choice.

States without variables have the author's names: numbers, tuples (a column for each place) or texts. Numbers
are called by a label that holds in one state alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from tightrope.errors import InputError
from tightrope.numerics.arrays import AnyArray, BoolArray, IndexArray, OffsetArray
from tightrope.rules.rule import Column, Columns, DecisionRule, RuleMemory, RuleRow

STATE = "state"


class NamesStates(Protocol):
    """What is needed of a model's structure."""

    @property
    def states(self) -> int: ...
    @property
    def choice_start(self) -> OffsetArray: ...
    @property
    def choice_state(self) -> IndexArray: ...
    @property
    def action_of_choice(self) -> IndexArray: ...
    @property
    def action_names(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> Mapping[str, BoolArray]: ...
    @property
    def valuations(self) -> Mapping[str, AnyArray]: ...
    @property
    def state_names(self) -> Sequence[object] | None: ...


def columns_of(
    structure: NamesStates, names: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[list[Column], Columns]:
    """The columns of states, with the values of every state; `names` are texts of values, by variable."""
    values, known = _values(structure), value_names(structure, names)
    kinds = {"b": "bool", "i": "int", "u": "int"}
    columns = [
        Column(
            name=name,
            kind=kinds.get(column.dtype.kind, "text"),
            names=dict(known[name]) if known.get(name) else UNSET,
        )
        for name, column in values.items()
    ]
    return columns, values


def value_names(
    structure: NamesStates, names: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Mapping[str, str]]:
    """What values are called: by `names`, or by labels, where each value has one of its own."""
    known = dict(names or {})
    for name, column in _values(structure).items():
        values, where = np.unique(column, return_inverse=True)
        exact = {
            str(values[where[holds][0]]): label
            for label, holds in structure.labels.items()
            if label != "init" and holds.any() and np.array_equal(holds, where == where[holds][0])
        }
        if name not in known and exact and len(exact) >= (len(values) if structure.valuations else 1):
            known[name] = exact
    return known


def _values(structure: NamesStates) -> dict[str, npt.NDArray[np.generic]]:
    if structure.valuations:
        return {name: np.asarray(column) for name, column in structure.valuations.items()}
    own = structure.state_names
    if own is None:
        return {STATE: np.arange(structure.states)}
    listed = list(own)
    places = [each for each in listed if isinstance(each, tuple)]
    if len(places) == len(listed) and len({len(each) for each in places}) == 1:
        parts = zip(*places, strict=True)
        return {f"{STATE}_{place}": _column(list(part)) for place, part in enumerate(parts, start=1)}
    return {STATE: _column(listed)}


def _column(values: list[object]) -> npt.NDArray[np.generic]:
    """Truth values and whole numbers as they are, all else as texts."""
    kinds = {type(each) for each in values}
    if kinds <= {bool, np.bool_} or kinds <= {int, np.int64, np.int32}:
        return np.array(values)
    return np.array([str(each) for each in values])


def name_choices(structure: NamesStates) -> tuple[tuple[str, ...], OffsetArray]:
    """The action of a choice, or `choice k` where that is unnamed or not unique, and each choice's name."""
    action, start = structure.action_of_choice.astype(np.int64), structure.choice_start
    pair = structure.choice_state.astype(np.int64) * len(structure.action_names) + action
    _, inverse, count = np.unique(pair, return_inverse=True, return_counts=True)
    local = np.arange(len(action)) - start[structure.choice_state]
    unnamed = np.array([not name for name in structure.action_names])
    alone = np.diff(start)[structure.choice_state] == 1
    by_number = (count[inverse] > 1) | (unnamed[action] & ~alone)
    names = (*structure.action_names, *(f"choice {k}" for k in range(int(local.max()) + 1)))
    used, place = np.unique(
        np.where(by_number, len(structure.action_names) + local, action), return_inverse=True
    )
    return tuple(names[k] for k in used), place.astype(np.int64)


class DecidesStates(Protocol):
    """A policy."""

    @property
    def structure(self) -> NamesStates: ...
    @property
    def steps(self) -> Any: ...
    @property
    def memory(self) -> Any: ...
    @property
    def choice(self) -> OffsetArray: ...
    @property
    def is_deterministic(self) -> bool: ...


def table_rule(policy: DecidesStates) -> DecisionRule:
    """A table with a row per state, or per state and first step, or per state and memory."""
    structure, steps, kind = policy.structure, policy.steps, RuleMemory.NONE
    if not policy.is_deterministic:
        raise InputError("a randomised policy is no rule", hint="policy.to_dataframe() shows it")
    state = np.arange(structure.states)
    memory = following = np.zeros(structure.states, np.int64)
    if policy.memory is not None:
        kind = RuleMemory.MEMORY
        state, memory, choice, following = policy.memory.columns
    elif steps is not None:
        kind, memory, choice = RuleMemory.STEP, steps.step, steps.choice
        state, following = np.repeat(state, np.diff(steps.start)), np.zeros(len(choice), np.int64)
    else:
        choice = policy.choice
    columns, values = columns_of(structure)
    names, number = name_choices(structure)
    listed = zip(*(column[state].tolist() for column in values.values()), strict=True)
    parts = [names[each] for each in number[choice]], memory.tolist(), following.tolist()
    rows = [RuleRow(list(each), *rest) for each, *rest in zip(listed, *parts, strict=True)]
    if len({(*row.state, row.memory) for row in rows}) < len(rows):
        raise InputError(f"several states have the same {', '.join(values)}: a table cannot tell them apart")
    return DecisionRule(columns=columns, actions=list(names), memory=kind, table=rows)
