"""Shields as JSON files: what the shield promises, and the tables that it runs on.

Nothing in a file is trusted: arrays have the declared sizes, prices are numbers of at least 0, the structure
is validated as every model's is. `tightrope verify --shield` shows that the prices follow from a certificate.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import structs

from tightrope.atomic import atomic_write
from tightrope.errors import InputError, Location
from tightrope.io.answers import ShieldAnswer, ShieldDocument, ShieldFacts
from tightrope.io.coding import read_document, record_of, to_plain, to_text
from tightrope.model.policy_file import FiniteMemoryChoices
from tightrope.model.structure import NamedStates, Structure
from tightrope.shield.table import ShieldTable, same_states

FORMAT, VERSION = "tightrope shield", 1
KINDS = {"<f8", "<i8", "<i4", "|b1", "|u1"}
GRAPH = ("choice_start", "transition_start", "successor", "action", "initial_states")
TABLES = ("value", "price", "fallback", "settled", "won", "ranking")
PRODUCT = ("state", "choice", "memory")
CONTROLLER = tuple(each.name for each in fields(FiniteMemoryChoices))
Arrays: TypeAlias = dict[str, Any]


def save_document(answer: ShieldAnswer, table: ShieldTable, path: Path) -> None:
    """Write a shield; the file appears in one step."""
    names = table.base.state_names
    for name in names or ():
        if not all(isinstance(part, str | int) for part in (name if isinstance(name, tuple) else (name,))):
            raise InputError(
                f"the state {name!r} cannot be written to a file",
                hint="shields are saved for states that are named by text, whole numbers or tuples of these",
            )
    document = ShieldDocument(
        **structs.asdict(answer),
        action_names=list(table.base.action_names),
        state_names=None if names is None else list(names),
        arrays={name: _store(array) for name, array in _arrays_of(table)},
    )
    with atomic_write(path) as file:
        file.write(to_text({"format": FORMAT, **to_plain(document)}))


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
    arrays: Arrays = {name: _read(name, *stored) for name, stored in document.arrays.items()}
    structure = _read_structure(document, arrays, "structure/")
    product = same_states(structure)
    if "state" in arrays:
        controller = FiniteMemoryChoices(*(arrays[f"controller/{name}"] for name in CONTROLLER))
        base = _read_structure(document, arrays, "model/")
        controller.refuse_for(base)
        product = {name: arrays[name] for name in PRODUCT} | {"base": base, "controller": controller}
    rows = {name: arrays[name] for name in TABLES}
    table = ShieldTable(record_of(ShieldFacts, document), structure, **rows, **product)
    table.validate()
    return table


def _store(values: object) -> tuple[str, list[int], str]:
    plain = np.ascontiguousarray(np.asarray(values))
    kind = plain.dtype.newbyteorder("<")
    return kind.str, list(plain.shape), base64.b64encode(plain.astype(kind).tobytes()).decode("ascii")


def _read(name: str, kind: str, shape: list[int], data: str) -> npt.NDArray[np.generic]:
    """An array, if its description fits its bytes."""
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise InputError(f"the array '{name}' is not in base64") from None
    size = math.prod(max(each, 0) for each in shape)
    if kind not in KINDS or size * np.dtype(kind).itemsize != len(content):
        raise InputError(f"the array '{name}' is not as large as it says")
    return np.frombuffer(content, kind).reshape(shape)


def _read_structure(document: ShieldDocument, arrays: Arrays, prefix: str) -> Structure:
    """The model, with its names; or its product with an automaton, without."""
    graph = {name: arrays[f"{prefix}{name}"] for name in GRAPH}
    for name, array in graph.items():
        if array.ndim != 1 or array.dtype.kind != "i":
            raise InputError(f"the array '{prefix}{name}' is no list of whole numbers")
    columns, states = {}, None
    if prefix == "model/" or "state" not in arrays:
        mark, states = "variable/", document.state_names
        columns = {name.removeprefix(mark): arrays[name] for name in arrays if name.startswith(mark)}
    plain = [tuple(name) if isinstance(name, list) else name for name in states or ()]
    named = None if states is None else NamedStates(plain)
    actions = tuple(document.action_names)
    return Structure(**graph, action_names=actions, valuations=columns, state_names=named)
