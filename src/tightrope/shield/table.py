"""What a shield runs on: verified values, the price of every choice, and the fallback policy.

With a step bound there is a vector of values for each step. Prices are rounded up. Nothing in a file is
trusted: arrays have the declared sizes, prices are numbers of at least 0, the structure is validated as every
model's is. `tightrope verify --shield` shows that the prices follow from a certificate.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import structs

from tightrope.atomic import atomic_write
from tightrope.errors import InputError, Location
from tightrope.io.answers import ShieldAnswer, ShieldDocument, ShieldFacts
from tightrope.io.coding import read_document, record_of, to_plain, to_text
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy_file import FiniteMemoryChoices, check_choices
from tightrope.model.structure import NamedStates, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.problem import Problem
from tightrope.solver.equations.system import equations_of, horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope_check.problem import CertifiedObjective

FORMAT, VERSION = "tightrope shield", 1
KINDS = {"<f8", "<i8", "<i4", "|b1", "|u1"}
GRAPH = ("choice_start", "transition_start", "successor", "action", "initial_states")
TABLES = ("value", "price", "fallback", "settled", "won", "ranking")
PRODUCT = ("state", "choice")
COLUMN = "variable/"
CONTROLLER = tuple(each.name for each in fields(FiniteMemoryChoices))

MOST_PRICES = 50_000_000
"""Prices by step and choice beyond which a question with a step bound is refused."""


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Verified values, prices and the fallback policy, shared by all episodes.

    Rows of `value`, `price` and `fallback` are steps, the last for all later ones. `structure` is the model
    or its product with an automaton: then `state`, `choice` are those of the model, `base`.
    """

    facts: ShieldFacts
    structure: Structure
    value: FloatArray
    price: FloatArray
    fallback: OffsetArray
    settled: BoolArray
    """By step: states in which the question is decided, so that every choice is free."""
    won: BoolArray
    """States from which only the fallback policy may act: it satisfies the temporal formula there."""
    ranking: OffsetArray
    base: Structure
    state: IndexArray
    choice: OffsetArray
    memory: IndexArray | None = None
    controller: FiniteMemoryChoices | None = None
    """The fallback policy of a formula about infinite runs, which starts with the `memory` of its state."""

    def validate(self) -> None:
        """Refuse tables that do not fit together, or hold what no price or value is."""
        states, choices = self.structure.states, self.structure.choices
        steps = len(self.value) if self.value.ndim == 2 else 0
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("won", "ranking", "state", "memory"), (states,))
        shapes |= dict.fromkeys(("value", "fallback", "settled"), (steps, states))
        for name, shape in {**shapes, "price": (steps, choices), "choice": (choices,)}.items():
            array = getattr(self, name)
            if array is not None and (array.shape != shape or steps == 0):
                raise InputError(f"'{name}' has the shape {array.shape}, not {shape}")
        if np.isnan(self.value).any() or not np.all(self.price >= 0):
            raise InputError("a value is no number, or a price is not at least 0")
        check_choices(self.structure, np.tile(np.arange(states), steps), self.fallback.reshape(-1))
        if self.state.min() < 0 or self.state.max() >= self.base.states:
            raise InputError("a state of the product is none of the model")
        check_choices(self.base, self.state[self.structure.choice_state].astype(np.int64), self.choice)

    def is_about(self, model: Structure) -> bool:
        """Whether the shield has the choices of a model, under the names of its states and actions."""
        arrays, names = [], []
        for one in (self.base, model):
            actions = np.array(one.action_names)[one.action_of_choice]
            graph = one.choice_start, one.transition_start, one.successor, actions
            arrays.append([*graph, *one.valuations.values()])
            names.append((list(one.valuations), list(one.state_names or ())))
        return names[0] == names[1] and all(map(np.array_equal, *arrays))

    def free_states(self, slack: float) -> int:
        """States in which the slack of a whole episode leaves a choice among several."""
        offered = np.add.reduceat((self.price[0] <= slack).astype(np.int64), self.structure.choice_start[:-1])
        return int(np.count_nonzero((offered > 1) & ~self.settled[0]))

    def removed(self, slack: float) -> list[tuple[str, int]]:
        """Actions that the slack of a whole episode does not allow, with the number of such states."""
        barred = (self.price[0] > slack) & ~self.settled[0][self.structure.choice_state]
        counts = np.bincount(self.structure.action_of_choice[barred])
        order = np.argsort(-counts, kind="stable").tolist()
        return [(self.structure.action_names[i], int(counts[i])) for i in order if counts[i]]

    def row(self, step: int) -> int:
        return min(step, len(self.value) - 1)

    def offered(self, state: int, step: int, is_decided: bool) -> dict[str | int, tuple[int, float]]:
        """The choices of a state by action, each with its price; by number where actions are not unique."""
        first, last = self.structure.choice_start[state : state + 2].tolist()
        actions = self.structure.action_of_choice[first:last].tolist()
        prices = [0.0] * len(actions) if is_decided else self.price[self.row(step), first:last].tolist()
        names: list[str | int] = [self._shown[action] for action in actions]
        if len(set(actions)) < len(actions):  # an action may itself be called by a number: places for all
            names = list(range(len(actions)))
        return dict(zip(names, zip(range(first, last), prices, strict=True), strict=True))

    @cached_property
    def _shown(self) -> list[str | int]:
        """The actions as environments number or name them."""
        return [int(name) if name.isdecimal() else name for name in self.structure.action_names]

    def show(self, state: int) -> str:
        """The name of the state of the model behind one of the structure."""
        return self.base.state_name(int(self.state[state]))


def table_of(solution: Solution, problem: Problem | None = None, **known: Any) -> ShieldTable:
    """Prices of all choices under the verified values of a solution; `known` are facts of a learned one."""
    objective, kernel, structure = solution.objective, solution.kernel, solution.kernel.structure
    if solution.weight is not None:
        raise InputError("a shield needs the policy that a solve found, not a given one")
    if objective.agent is objective.nature and kernel.lower is not kernel.upper:
        raise InputError(
            "a shield needs a bound against every nature, and here nature helps the agent",
            hint="ask for the worst nature, such as Pmaxmin or Rminmax",
        )
    maximises = objective.agent is Direction.MAX
    avoids = objective.kind is ObjectiveKind.UNTIL and not maximises
    given = {"question": "" if problem is None else problem.text, "confidence": None}
    facts = ShieldFacts(
        **(solution.verdict.facts | given | known),
        maximises=maximises,
        complement=objective.complement,
        range=objective.range,
        needs_patience=not (objective.is_bounded or avoids or objective.kind is ObjectiveKind.DISCOUNTED),
    )
    won = np.zeros(structure.states, np.bool_)
    rows, own = _rows_of(solution), same_states(structure)
    table = ShieldTable(facts, structure, *rows, won=won, ranking=solution.ranking, **own)
    return table if problem is None or problem.lift is None else _lift(table, problem)


def same_states(structure: Structure) -> dict[str, Any]:
    """The model behind a structure that is the model itself."""
    state, choice = np.arange(structure.states, dtype=np.int32), np.arange(structure.choices)
    return {"base": structure, "state": state, "choice": choice}


class PriceRows(NamedTuple):
    """Values, prices and the fallback policy by step, and where the question is decided."""

    value: FloatArray
    price: FloatArray
    fallback: OffsetArray
    settled: BoolArray


def _rows_of(solution: Solution) -> PriceRows:
    """A row per step that counts; the last row is for what comes after them."""
    objective, kernel, last = solution.objective, solution.kernel, None
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    every = np.ones(structure.choices, np.bool_)
    steps = objective.lower_steps if objective.upper_steps is None else objective.upper_steps
    steps = 1 if objective.kind is ObjectiveKind.NEXT else steps
    if steps and (steps + 1) * structure.choices > MOST_PRICES:
        raise InputError(
            f"{steps:,} steps of {structure.choices:,} choices need more than {MOST_PRICES:,} prices",
            hint="ask without a step bound, or with a smaller one",
        )
    if objective.is_bounded:
        system = horizon_system(objective, structure, every)
    else:
        support = Support(structure, kernel.lower, kernel.upper)
        equations = equations_of(objective, structure, support, every)
        system, fixed = equations.system, equations.fixed
        if steps:
            solution = solve(kernel, replace(objective, lower_steps=0), precision=solution.precision)
        value = solution.fixpoint_lower if maximises else solution.fixpoint_upper
        last = np.where(fixed, equations.value, value), solution.choice, fixed
    after = partial(kernel.safe_choices, system, upward=not maximises)
    return price_rows(objective, steps, last, structure.choice_start, after, maximises)


def price_rows(
    objective: Objective | CertifiedObjective,
    steps: int,
    last: tuple[FloatArray, OffsetArray, BoolArray] | None,
    choice_start: OffsetArray,
    after: Callable[[FloatArray], FloatArray],
    maximises: bool,
    margin: float = 0.0,
) -> PriceRows:
    """Rows backwards from the `last` one: values, fallback policy and decided states (None: all is decided
    then). `after` bounds what choices lead to. Prices are larger by a `margin` of 1 + |v|."""
    first, states = choice_start[:-1].astype(np.int64), len(choice_start) - 1
    best, is_over = np.maximum if maximises else np.minimum, last is None
    state_of = np.repeat(np.arange(states), np.diff(choice_start))
    if last is None:
        given = objective.terminal if objective.target is None else objective.target
        end = np.zeros(states) if given is None else given.astype(np.float64)
        last = end, first, np.ones(states, np.bool_)
    value, fallback, settled = last

    def priced(reached: FloatArray) -> PriceRows:
        here = value[state_of]
        with np.errstate(invalid="ignore"):
            loss = (here - reached if maximises else reached - here) + margin * (1.0 + np.abs(here))
        price = np.where(loss > 0, np.nextafter(loss, np.inf), 0.0)  # ∞ − ∞ is no loss
        return PriceRows(value, price, fallback, settled)

    reached = after(value)
    rows = [priced(reached)]
    if is_over:
        rows[0].price[:] = 0.0
    for step in range(steps - 1, -1, -1):
        value = best.reduceat(reached, first)
        attains = np.flatnonzero(reached == value[state_of])
        fallback = attains[np.unique(state_of[attains], return_index=True)[1]].astype(np.int64)
        settled = np.zeros(states, np.bool_)
        if objective.target is not None and objective.kind in ("UNTIL", ObjectiveKind.UNTIL):
            won = objective.target if step >= objective.lower_steps else settled
            settled = won if objective.allowed is None else won | ~objective.allowed
            value[settled] = won[settled]
        rows.append(priced(reached))
        rows[-1].price[fallback] = 0.0
        reached = after(value)
    return PriceRows(*(np.stack(parts[::-1]) for parts in zip(*rows, strict=True)))


def _lift(table: ShieldTable, problem: Problem) -> ShieldTable:
    """The same prices for the model behind a product with an automaton."""
    lift = problem.lift
    if not isinstance(lift, ProductLift) or lift.reach is None or lift.letters is None:
        raise InputError(f"shields do not cover questions such as {problem.text}")
    product, reach = lift.product, lift.reach
    if lift.needs_support:  # the formula is satisfied only if the fallback policy acts from here on
        choices = table.fallback[0]
        own = finite_memory_choices(product, reach.automaton, lift.letters, choices, reach.won)
        won, settled = table.settled[0] & (table.value[0] > 0), table.settled & (table.value == 0)
        table = replace(table, won=won, settled=settled, controller=own)
    places = {name: getattr(product, name) for name in ("state", "choice", "memory")}
    return replace(table, base=lift.base.structure, **places)


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
    if table.base is not table.structure:
        parts += [("", PRODUCT, table), ("model/", GRAPH, table.base)]
    if table.controller is not None:
        parts += [("", ("memory",), table), ("controller/", CONTROLLER, table.controller)]
    for prefix, names, part in parts:
        yield from ((f"{prefix}{name}", getattr(part, name)) for name in names)
    yield from ((f"{COLUMN}{name}", column) for name, column in table.base.valuations.items())


def _read_table(document: ShieldDocument) -> ShieldTable:
    arrays: dict[str, Any] = {name: _read(name, *stored) for name, stored in document.arrays.items()}
    for name, array in arrays.items():
        inside = name.startswith(("structure/", "model/", "controller/"))
        if inside and (array.ndim != 1 or array.dtype.kind != "i"):
            raise InputError(f"the array '{name}' is no list of whole numbers")
    names, columns = document.state_names, {name: arrays[name] for name in arrays if name.startswith(COLUMN)}
    states = [tuple(name) if isinstance(name, list) else name for name in names or ()]
    named = {
        "valuations": {name.removeprefix(COLUMN): column for name, column in columns.items()},
        "state_names": None if names is None else NamedStates(states),
    }

    def graph(prefix: str, **named: Any) -> Structure:
        parts = {name: arrays[f"{prefix}/{name}"] for name in GRAPH}
        return Structure(**parts, action_names=tuple(document.action_names), **named)

    parts = {name: arrays[name] for name in TABLES}
    if "state" in arrays:
        structure, base = graph("structure"), graph("model", **named)
        parts |= {name: arrays[name] for name in PRODUCT} | {"base": base}
        if parts["won"].any():
            own = FiniteMemoryChoices(*(arrays[f"controller/{name}"] for name in CONTROLLER))
            own.refuse_for(base)
            parts |= {"memory": arrays["memory"], "controller": own}
    else:
        structure = graph("structure", **named)
        parts |= same_states(structure)
    table = ShieldTable(record_of(ShieldFacts, document), structure, **parts)
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
        if kind not in KINDS or min(shape, default=0) < 0:
            raise ValueError
        return np.frombuffer(content, kind).reshape(shape)
    except ValueError as error:
        why = "in base64" if isinstance(error, binascii.Error) else "as large as it says"
        raise InputError(f"the array '{name}' is not {why}") from None
