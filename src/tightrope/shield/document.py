"""Shields as JSON files: what the shield promises, and the tables that it runs on.

Nothing in a file is trusted: arrays have the declared sizes, prices are numbers of at least 0, the structure
is validated as every model's is. `tightrope verify --shield` shows that the prices follow from a certificate.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from tightrope.atomic import atomic_write
from tightrope.errors import InputError, Location
from tightrope.io.coding import Real, read_document, to_text
from tightrope.model.policy_choices import FiniteMemoryChoices
from tightrope.model.structure import NamedStates, Structure
from tightrope.shield.table import ShieldFacts, ShieldTable, same_states

FORMAT, VERSION = "tightrope shield", 1
KINDS = {"<f8", "<i8", "<i4", "|b1", "|u1"}
GRAPH = ("choice_start", "transition_start", "successor", "action", "initial_states")
TABLES = ("value", "price", "fallback", "settled", "won", "ranking")
PRODUCT = ("state", "choice", "memory")
Arrays: TypeAlias = dict[str, Any]
CONTROLLER = tuple(each.name for each in fields(FiniteMemoryChoices))


class RemovedAction(Struct, frozen=True):
    """In how many states the slack of a whole episode does not allow an action."""

    action: str
    states: int


class ShieldAnswer(ShieldFacts, kw_only=True):
    """`shield`: the guaranteed bound, and how often the shield interferes."""

    promise: Real
    slack: float
    patience: int | None
    states: int
    free_states: int
    removed: list[RemovedAction]


class StoredArray(Struct, frozen=True):
    """An array: numpy's name of its type, its shape, and its bytes in base64."""

    type: str
    shape: list[int]
    data: str


class ShieldDocument(ShieldAnswer, kw_only=True):
    """A shield in a file: what `shield` prints, and the tables that it runs on."""

    format: str = FORMAT
    version: int = VERSION
    action_names: list[str]
    state_names: list[Any] | None
    arrays: dict[str, StoredArray]


def describe(table: ShieldTable, promise: float, slack: float, patience: int | None) -> ShieldAnswer:
    """What a shield with this slack promises and allows."""
    return ShieldAnswer(
        **structs.asdict(table.facts),
        promise=promise,
        slack=slack,
        patience=patience,
        states=table.base.states,
        free_states=table.free_states(slack),
        removed=[RemovedAction(*each) for each in table.removed(slack)],
    )


def save_document(answer: ShieldAnswer, table: ShieldTable, path: Path) -> None:
    """Write a shield; the file appears in one step."""
    names = table.base.state_names
    document = ShieldDocument(
        **structs.asdict(answer),
        action_names=list(table.base.action_names),
        state_names=None if names is None else [_plain_name(name) for name in names],
        arrays={name: _store(array) for name, array in _arrays_of(table)},
    )
    with atomic_write(path) as file:
        file.write(to_text(document))


def load_document(path: Path) -> tuple[ShieldDocument, ShieldTable]:
    """The record in a file, and its tables, validated."""
    document = read_document(path, ShieldDocument, FORMAT, VERSION, "write one with 'tightrope shield'")
    try:
        return document, _read_table(document)
    except (InputError, KeyError) as error:
        why = error.message if isinstance(error, InputError) else f"the array {error} is missing"
        raise InputError(f"this is no shield: {why}", Location(str(path))) from error


def _arrays_of(table: ShieldTable) -> Iterator[tuple[str, object]]:
    """All arrays of a shield, by their names in files; `model/` is the model behind a product."""
    parts = [("", TABLES, table), ("structure/", GRAPH, table.structure)]
    if table.controller is not None:
        parts += [("", PRODUCT, table), ("model/", GRAPH, table.base)]
        parts += [("controller/", CONTROLLER, table.controller)]
    for prefix, names, part in parts:
        yield from ((f"{prefix}{name}", getattr(part, name)) for name in names)
    yield from ((f"variable/{name}", column) for name, column in table.base.valuations.items())


def _read_table(document: ShieldDocument) -> ShieldTable:
    arrays: Arrays = {name: _read(name, stored) for name, stored in document.arrays.items()}
    structure = _read_structure(document, arrays, "structure/")
    product = same_states(structure)
    if "state" in arrays:
        controller = FiniteMemoryChoices(*(arrays[f"controller/{name}"] for name in CONTROLLER))
        base = _read_structure(document, arrays, "model/")
        controller.refuse_for(base)
        product = {name: arrays[name] for name in PRODUCT} | {"base": base, "controller": controller}
    table = ShieldTable(document, structure, **{name: arrays[name] for name in TABLES}, **product)
    table.validate()
    return table


def _store(values: object) -> StoredArray:
    plain = np.ascontiguousarray(np.asarray(values))
    kind = plain.dtype.newbyteorder("<")
    data = base64.b64encode(plain.astype(kind).tobytes()).decode("ascii")
    return StoredArray(kind.str, list(plain.shape), data)


def _read(name: str, stored: StoredArray) -> npt.NDArray[np.generic]:
    """An array, if its description fits its bytes."""
    try:
        content = base64.b64decode(stored.data, validate=True)
    except binascii.Error:
        raise InputError(f"the array '{name}' is not in base64") from None
    size = int(np.prod([max(each, 0) for each in stored.shape], dtype=object))
    if stored.type not in KINDS or size * np.dtype(stored.type).itemsize != len(content):
        raise InputError(f"the array '{name}' is not as large as it says")
    return np.frombuffer(content, stored.type).reshape(stored.shape)


def _plain_name(name: object) -> object:
    parts = name if isinstance(name, tuple) else (name,)
    if all(isinstance(part, str | int) for part in parts):
        return list(parts) if isinstance(name, tuple) else name
    raise InputError(
        f"the state {name!r} cannot be written to a file",
        hint="shields are saved for states that are named by text, whole numbers or tuples of these",
    )


def _read_structure(document: ShieldDocument, arrays: Arrays, prefix: str) -> Structure:
    """The model, with its names; or its product with an automaton, without."""
    graph = {name: arrays[f"{prefix}{name}"] for name in GRAPH}
    for name, array in graph.items():
        if array.ndim != 1 or array.dtype.kind != "i":
            raise InputError(f"the array '{prefix}{name}' is no list of whole numbers")
    actions, columns, states = tuple(document.action_names), {}, None
    if prefix == "model/" or "state" not in arrays:
        parted = ((*name.partition("variable/"), column) for name, column in arrays.items())
        columns = {name: column for empty, mark, name, column in parted if mark and not empty}
        states = document.state_names
    plain = [tuple(name) if isinstance(name, list) else name for name in states or ()]
    named = None if states is None else NamedStates(plain)
    return Structure(**graph, action_names=actions, valuations=columns, state_names=named)
