"""Policies with memory: finite-state controllers, as an object, a JSON file and a DOT graph.

    {"format": "tightrope controller", "version": 1, "model": "9f2c…", "variables": ["x", "y"],
     "controller": [
      [[1, 1], 0, "sendL", 2, 3],
      …
     ]}

A row is a state (as in policy files, `tightrope.io.policy_write`), what is remembered there (a number; a
play begins with 0), the action, the number of the choice within its state, and what is remembered from then
on. Rows are those that a play under the controller can reach.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.atomic import atomic_write
from tightrope.errors import InputError
from tightrope.io.coding import to_plain
from tightrope.io.policy import HasStructure, Policy
from tightrope.io.policy_read import PolicyReader
from tightrope.io.policy_write import INDEX, list_own_states, state_texts
from tightrope.io.results import CONTROLLER_FORMAT, CertifiedFacts
from tightrope.model.automaton import Automaton
from tightrope.model.graph.support import Support
from tightrope.model.product import MOST_PAIRS, Letters, Product, product_of
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields

FORMAT = CONTROLLER_FORMAT
VERSION = 1
MOST_DRAWN = 2_000
"""A graph with more rows is not drawn."""


@dataclass(frozen=True, eq=False, repr=False)
class Controller(Record):
    """In `state[i]` with `memory[i]` take `choice[i]` and remember `following[i]`; a play begins with 0.

    >>> import tightrope as tr
    >>> rows = [(0, "left", {1: 1}), (0, "right", {2: 1}), (1, "", {0: 1}), (2, "", {0: 1})]
    >>> model = tr.build_from_rows(rows, labels={"a": [1], "b": [2]})
    >>> turns = tr.Controller(model.structure, [0, 1, 0, 2], [0, 1, 1, 0], [0, 2, 1, 3], [1, 1, 0, 0])
    >>> turns.act(0, 0), turns.act(0, 1)
    (('left', 1), ('right', 0))
    """

    structure: Structure
    state: OffsetArray
    memory: OffsetArray
    choice: OffsetArray
    following: OffsetArray

    def __post_init__(self) -> None:
        for name in ("state", "memory", "choice", "following"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        structure, (rows, *others) = self.structure, [len(self.state), len(self.memory), len(self.choice)]
        if not rows or {*others, len(self.following)} != {rows}:
            raise InputError("a controller has as many states as memories, choices and following memories")
        if self.state.min() < 0 or self.state.max() >= structure.states or self.memory.min() < 0:
            raise InputError("a controller's row is about a state that the model does not have")
        wrong = np.flatnonzero(
            (self.choice < structure.choice_start[self.state])
            | (self.choice >= structure.choice_start[self.state + 1])
        )
        if len(wrong):
            where = structure.state_name(int(self.state[wrong[0]]))
            raise InputError(f"the controller takes a choice in state {where} that it does not have")
        if self.following.min() < 0 or self.following.max() >= self.memories:
            raise InputError("the controller remembers what no row of it is about")
        key = self.state * self.memories + self.memory
        if len(np.unique(key)) < rows:
            raise InputError("the controller has two rows for one state and memory")
        if not np.any(key == structure.initial * self.memories):
            raise InputError("the controller has no row for the initial state with memory 0")
        freeze_fields(self)

    @property
    def memories(self) -> int:
        """How many different things are remembered."""
        return int(self.memory.max()) + 1

    @property
    def digest(self) -> str:
        """A name for what it does."""
        columns = (self.state, self.memory, self.choice, self.following)
        return sha256(b"".join(column.tobytes() for column in columns)).hexdigest()

    def act(self, state: int, memory: int) -> tuple[str, int]:
        """The action in a state (by its index), and what is remembered from then on."""
        row = np.flatnonzero((self.state == state) & (self.memory == memory))
        if not len(row):
            raise InputError(
                f"the controller is never in state {self.structure.state_name(state)} with memory {memory}"
            )
        return self.structure.action_name(int(self.choice[row[0]])), int(self.following[row[0]])

    def beside(self, model: HasStructure, support: Support) -> tuple[Product, Policy]:
        """The model with the controller's memory, all choices left open, and the policy that follows it.

        Where other choices lead, the controller says nothing: there the first choice is taken."""
        structure, lost = model.structure, self.memories
        if structure.states * (lost + 1) > MOST_PAIRS:
            raise InputError(
                f"the controller has {lost:,} memories, the model {structure.states:,} states: too many pairs"
            )
        successor = np.full((lost + 1, structure.states), lost, np.int32)
        successor[self.memory, self.state] = self.following
        letters = Letters(np.arange(structure.states, dtype=np.int32), tuple(range(structure.states)))
        product = product_of(support, letters, Automaton(successor), np.array([structure.initial]))
        taken = np.full((lost + 1, structure.states), -1, np.int64)
        taken[self.memory, self.state] = self.choice
        wanted = taken[product.memory, product.state]
        first = product.structure.choice_start[:-1]
        own = np.where(wanted < 0, first, first + wanted - structure.choice_start[product.state])
        return product, Policy.of_choices(product.structure, own)

    def save(
        self, path: Path | str, model_hash: str | None = None, certified: CertifiedFacts | None = None
    ) -> None:
        """Write it as JSON, or as a graph where the name ends in .dot; `certified` is what it attains."""
        target = Path(path)
        with atomic_write(target) as file:
            file.write(self.to_dot() if target.suffix == ".dot" else self._json(model_hash, certified))

    def to_dot(self) -> str:
        """A graph of memories: an edge says in which state and with which action memory changes."""
        if len(self.state) > MOST_DRAWN:
            raise InputError(
                f"the controller has {len(self.state):,} rows, and graphs have at most {MOST_DRAWN:,}"
            )
        lines = ["digraph controller {", "  rankdir=LR;", "  start [shape=point]; start -> 0;"]
        lines += [f"  {number} [shape=circle];" for number in np.unique(self.memory)]
        for state, memory, choice, following in zip(*self._columns(), strict=True):
            what = f"{self.structure.state_name(state)}: {self.structure.action_name(choice) or '[]'}"
            lines.append(f"  {memory} -> {following} [label={json.dumps(what)}];")
        return "\n".join([*lines, "}", ""])

    def _json(self, model_hash: str | None, certified: CertifiedFacts | None) -> str:
        structure = self.structure
        own = list_own_states(structure)
        head: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        if model_hash is not None:
            head["model"] = model_hash
        if structure.valuations:
            head["variables"] = list(structure.valuations)
        elif own is None and structure.own_states is not None:
            head["states"] = INDEX
        if certified is not None:
            head["certified"] = to_plain(certified)
        names = [json.dumps(name) for name in structure.action_names]
        first, action = structure.choice_start, structure.action_of_choice
        lines = [
            f"[{text},{memory},{names[action[choice]]},{choice - int(first[state])},{following}]"
            for text, state, memory, choice, following in zip(
                state_texts(structure, own, self.state).to_pylist(), *self._columns(), strict=True
            )
        ]
        return json.dumps(head)[:-1] + ', "controller": [\n' + ",\n".join(lines) + "\n]}\n"

    def _columns(self) -> list[list[int]]:
        return [column.tolist() for column in (self.state, self.memory, self.choice, self.following)]

    def _title_(self) -> str:
        return f"Controller: {self.memories:,} memories, {len(self.state):,} rows"

    def _facts_(self) -> Facts:
        shown = zip(*self._columns(), strict=True)
        return [
            (f"{self.structure.state_name(s)}, {m}", f"{self.structure.action_name(c) or '[]'}, then {f}")
            for s, m, c, f in list(shown)[:6]
        ]


def restrict_to_reached(controller: Controller, support: Support) -> Controller:
    """The rows that a play under the controller can reach; memories are numbered anew, 0 stays first."""
    structure, width = controller.structure, controller.memories
    row = {key: number for number, key in enumerate((controller.state * width + controller.memory).tolist())}
    order, seen = [row[structure.initial * width]], {row[structure.initial * width]}
    start, successor, possible = structure.transition_start, structure.successor, support.possible
    for number in order:
        choice, following = int(controller.choice[number]), int(controller.following[number])
        for transition in range(int(start[choice]), int(start[choice + 1])):
            if possible[transition]:
                behind = row[int(successor[transition]) * width + following]
                if behind not in seen:
                    seen.add(behind)
                    order.append(behind)
    kept = np.array(order)
    used = np.unique(np.concatenate([[0], controller.memory[kept], controller.following[kept]]))
    return Controller(
        structure,
        controller.state[kept],
        np.searchsorted(used, controller.memory[kept]),
        controller.choice[kept],
        np.searchsorted(used, controller.following[kept]),
    )


def read_steering(path: Path | str, structure: Structure) -> Policy | Controller:
    """A policy or a controller, whichever a file holds."""
    try:
        head = Path(path).read_bytes()[:200]
    except OSError:
        head = b""  # the reader of policies says what is wrong
    return read_controller(path, structure) if FORMAT.encode() in head else Policy(structure, Path(path))


def read_controller(path: Path | str, structure: Structure) -> Controller:
    """Read a controller file for a model.

    >>> import tempfile
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "on", {1: 1}), (0, "off", {0: 1}), (1, "", {0: 1})])
    >>> once = tr.Controller(model.structure, [0, 1, 0], [0, 1, 1], [0, 2, 1], [1, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     once.save(f"{folder}/once.json")
    ...     tr.read_controller(f"{folder}/once.json", model.structure) == once
    True
    """
    return _ControllerReader(str(path), structure).read_rows()


class _ControllerReader(PolicyReader):
    def read_rows(self) -> Controller:
        document = self._document()
        rows = document.get("controller")
        if document.get("format") != FORMAT or not isinstance(rows, list):
            raise self._error(f'no controller file: it lacks "format": "{FORMAT}" or the list "controller"')
        if document.get("version") != VERSION:
            raise self._error(
                f"version {document.get('version')!r} of the format; this program reads {VERSION}"
            )
        self.variables = self._variables(document.get("variables"))
        self.by_index = self.by_index or document.get("states") == INDEX
        read = [self._row(row, number) for number, row in enumerate(rows, start=1)]
        try:
            return Controller(self.structure, *np.array(read, np.int64).reshape(-1, 4).T)
        except InputError as error:
            raise self._error(error.message) from None

    def _row(self, row: object, number: int) -> tuple[int, int, int, int]:
        if not isinstance(row, list) or len(row) != 5:
            raise self._error(
                f"row {number} is not [state, memory, action, choice, following memory]: {json.dumps(row)}"
            )
        shown, memory, action, local, following = row
        for remembered in (memory, following):
            if isinstance(remembered, bool) or not isinstance(remembered, int) or remembered < 0:
                raise self._error(f"row {number}: {json.dumps(remembered)} is not a memory's number")
        state = self._state(self._name_values(shown), number)
        return state, memory, self._choice({"action": action, "choice": local}, state, number), following
