"""Shields as JSON files: what the shield promises, and the tables that it runs on.

Nothing in a file is trusted: arrays have the declared sizes, prices are numbers of at least 0, the structure
is validated as every model's is. Nothing here shows that the prices follow from a value certificate.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from tightrope.atomic import atomic_write
from tightrope.errors import InputError, Location
from tightrope.io.coding import Real, read_document, to_text
from tightrope.io.results import Judged
from tightrope.model.policy_choices import FiniteMemoryChoices
from tightrope.model.structure import NamedStates, Structure
from tightrope.shield.table import ShieldTable

FORMAT, VERSION = "tightrope shield", 1
KINDS = {"<f8", "<i8", "<i4", "|b1", "|u1"}


class StoredArray(Struct, frozen=True):
    """An array: numpy's name of its type, its shape, and its bytes in base64."""

    type: str
    shape: list[int]
    data: str


class RemovedAction(Struct, frozen=True):
    """In how many states the slack of a whole episode does not allow an action."""

    action: str
    states: int


class StoredStructure(Struct, frozen=True):
    """The graph of a model, with the names of its states and actions."""

    arrays: dict[str, StoredArray]
    initial_states: list[int]
    action_names: list[str]
    variables: dict[str, StoredArray]
    state_names: list[Any] | None = None


class ShieldDocument(Judged, kw_only=True):
    """`shield`: the promise, how often the shield interferes, and the tables that it runs on."""

    format: str = FORMAT
    version: int = VERSION
    question: str
    promise: Real
    confidence: float | None
    slack: float
    patience: int | None
    states: int
    free_states: int
    removed: list[RemovedAction]
    maximises: bool
    complement: bool
    bounds: tuple[Real, Real]
    needs_patience: bool
    structure: StoredStructure
    base: StoredStructure | None
    tables: dict[str, StoredArray]
    controller: dict[str, StoredArray] | None


GRAPH = ["choice_start", "transition_start", "successor", "action"]
TABLES = ["value", "price", "fallback", "settled", "won", "ranking"]
PRODUCT = ["state", "choice", "memory"]
CONTROLLER = [each.name for each in fields(FiniteMemoryChoices)]


def to_document(table: ShieldTable, promise: float, slack: float, patience: int | None) -> ShieldDocument:
    """The record of a shield."""
    is_product = table.state is not None
    return ShieldDocument(
        question=table.question,
        verdict=table.verdict.word,
        why=table.verdict.why,
        assumptions=list(table.verdict.assumptions),
        promise=promise,
        confidence=table.confidence,
        slack=slack,
        patience=patience,
        states=table.base.states,
        free_states=table.free_states(slack),
        removed=[RemovedAction(*each) for each in table.removed(slack)],
        maximises=table.maximises,
        complement=table.complement,
        bounds=table.quantity_range,
        needs_patience=table.needs_patience,
        structure=_store_structure(table.structure),
        base=_store_structure(table.base) if is_product else None,
        tables=_store(table, [*TABLES, *(PRODUCT if is_product else [])]),
        controller=None if table.controller is None else _store(table.controller, CONTROLLER),
    )


def save_document(document: ShieldDocument, path: Path) -> None:
    """Write a shield; the file appears in one step."""
    with atomic_write(path) as file:
        file.write(to_text(document))


def load_document(path: Path) -> ShieldDocument:
    """The record in a file, whose tables are valid."""
    document = read_document(path, ShieldDocument, FORMAT, VERSION, "write one with 'tightrope shield'")
    try:
        _ = to_table(document)
    except InputError as error:
        raise InputError(f"this is no shield: {error.message}", Location(str(path))) from error
    return document


def to_table(document: ShieldDocument) -> ShieldTable:
    """The tables of a record, validated."""
    structure = _read_structure(document.structure)
    base = structure if document.base is None else _read_structure(document.base)
    arrays = {name: _read(document.tables, name) for name in TABLES}
    product: dict[str, Any] = {}
    if document.base is not None:
        product = {name: _read(document.tables, name) for name in PRODUCT}
        assert document.controller is not None
        controller = FiniteMemoryChoices(*(_read(document.controller, name) for name in CONTROLLER))
        controller.refuse_for(base)
        product["controller"] = controller
    table = ShieldTable(
        structure=structure,
        base=base,
        maximises=document.maximises,
        complement=document.complement,
        quantity_range=document.bounds,
        needs_patience=document.needs_patience,
        question=document.question,
        verdict=document.judged,
        confidence=document.confidence,
        **arrays,
        **product,
    )
    table.validate()
    return table


def _store(source: object, names: list[str]) -> dict[str, StoredArray]:
    return {name: _array(getattr(source, name)) for name in names}


def _array(values: object) -> StoredArray:
    plain = np.ascontiguousarray(np.asarray(values))
    kind = plain.dtype.newbyteorder("<")
    data = base64.b64encode(plain.astype(kind).tobytes()).decode("ascii")
    return StoredArray(kind.str, list(plain.shape), data)


def _read(arrays: dict[str, StoredArray], name: str) -> Any:
    """An array, if its description fits its bytes."""
    stored = arrays.get(name)
    if stored is None:
        raise InputError(f"the array '{name}' is missing")
    try:
        content = base64.b64decode(stored.data, validate=True)
    except binascii.Error:
        raise InputError(f"the array '{name}' is not in base64") from None
    size = int(np.prod([max(each, 0) for each in stored.shape], dtype=object))
    if stored.type not in KINDS or size * np.dtype(stored.type).itemsize != len(content):
        raise InputError(f"the array '{name}' is not as large as it says")
    return np.frombuffer(content, stored.type).reshape(stored.shape)


def _store_structure(structure: Structure) -> StoredStructure:
    names = structure.state_names
    return StoredStructure(
        _store(structure, GRAPH),
        list(structure.initial_states),
        list(structure.action_names),
        {name: _array(column) for name, column in structure.valuations.items()},
        None if names is None else [_plain_name(name) for name in names],
    )


def _plain_name(name: object) -> object:
    if isinstance(name, str | int) or (
        isinstance(name, tuple) and all(isinstance(e, str | int) for e in name)
    ):
        return list(name) if isinstance(name, tuple) else name
    raise InputError(
        f"the state {name!r} cannot be written to a file",
        hint="shields are saved for states that are named by text, whole numbers or tuples of these",
    )


def _read_structure(stored: StoredStructure) -> Structure:
    names = stored.state_names
    return Structure(
        choice_start=_read(stored.arrays, "choice_start"),
        transition_start=_read(stored.arrays, "transition_start"),
        successor=_read(stored.arrays, "successor"),
        initial_states=tuple(stored.initial_states),
        action=_read(stored.arrays, "action"),
        action_names=tuple(stored.action_names),
        valuations={name: _read(stored.variables, name) for name in stored.variables},
        state_names=None
        if names is None
        else NamedStates([tuple(name) if isinstance(name, list) else name for name in names]),
    )
