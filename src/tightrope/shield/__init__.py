"""Shields: any agent may act, and a verified bound still holds for the whole run.

A value vector v, verified for the fallback policy, prices every choice c of a state s: price(c) = max(0, v(s)
− q(c)), q(c) the worst expectation of v after c over nature's sets, rounded down. The agent starts with some
slack, and pays for choices. The patience is the number of steps per episode that do not lower the ranking of
the solution; then the fallback policy acts until the end, and attains v from there. With a step bound there
is a vector for each step. Proof: docs/explanation/shields.md.

Nothing in a file is trusted. `tightrope verify --shield` shows that the prices follow from a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
from msgspec.structs import asdict

from tightrope.atomic import atomic_write, path_of
from tightrope.errors import CannotCertify, InputError, Location, check_type
from tightrope.io.answers import RemovedAction, ShieldAnswer, ShieldDocument, ShieldFacts
from tightrope.io.coding import read_document, record_of, to_plain, to_text
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.policy_file import check_choices
from tightrope.model.product import every_transition, product_with_memory
from tightrope.model.states import find_choice, index_or_state, is_whole, show_action
from tightrope.model.structure import NamedStates, Structure, plain
from tightrope.numerics.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IndexArray,
    OffsetArray,
    offsets,
    ranges,
)
from tightrope.numerics.record import same
from tightrope.problem import Problem
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.equations.system import equations_of, horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.verdict import Assessment, Word

if TYPE_CHECKING:
    from tightrope_check.problem import CertifiedObjective

FORMAT, VERSION = "tightrope shield", 2
GRAPH = ("choice_start", "transition_start", "successor", "action", "initial_states")
ROWS = {"value": "<f8", "price": "<f8", "fallback": "<i8", "settled": "|b1"}
COLUMN, COLUMN_KINDS = "variable/", ("<f8", "<i8", "<i4", "|b1", "|u1")

LEAST_PATIENCE = 100
MOST_PRICES = 50_000_000
"""Prices by step and choice beyond which a question with a step bound is refused."""


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Verified values, prices and the fallback policy, shared by all episodes.

    Rows of `value`, `price`, `fallback` and `settled` are steps, the last for all later ones. `structure` is
    the model, `base`, or its product with an automaton, whose states are copies of `state`.
    """

    facts: ShieldFacts
    base: Structure
    structure: Structure
    state: IndexArray
    ranking: OffsetArray
    """−1 where a temporal formula is won, but only if the fallback policy acts from there on."""
    value: FloatArray
    price: FloatArray
    fallback: OffsetArray
    settled: BoolArray
    """States in which the question is decided, so that every choice is free."""

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together, or hold what no price or value is."""
        states, steps = self.structure.states, len(self.value) if self.value.ndim == 2 else 0
        shapes = dict.fromkeys(ROWS, (steps, states)) | {"price": (steps, self.structure.choices)}
        for name, shape in {**shapes, "ranking": (states,)}.items():
            if getattr(self, name).shape != shape or steps == 0:
                raise InputError(f"'{name}' has the shape {getattr(self, name).shape}, not {shape}")
        if np.isnan(self.value).any() or not np.all(self.price >= 0):
            raise InputError("a value is no number, or a price is not at least 0")
        check_choices(self.structure, np.tile(np.arange(states), steps), self.fallback.reshape(-1))

    def is_about(self, model: Structure) -> bool:
        """Whether the shield has the choices of a model, under the names of its states and actions."""
        parts = [*GRAPH[:3], "initial_states", "valuations", "state_names"]
        alike = all(same(getattr(self.base, part), getattr(model, part)) for part in parts)
        mine, theirs = (np.array(one.action_names)[one.action_of_choice] for one in (self.base, model))
        return alike and same(mine, theirs)


def table_of(solution: Solution, problem: Problem | None = None, **known: Any) -> ShieldTable:
    """Prices of all choices under the verified values of a solution; `known` are facts of a learned one."""
    objective, kernel, last = solution.objective, solution.kernel, None
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    if objective.agent is objective.nature and kernel.lower is not kernel.upper:
        raise InputError(
            "a shield needs a bound against every nature, and here nature helps the agent",
            hint="ask for the worst nature, such as Pmaxmin or Rminmax",
        )
    steps = objective.lower_steps if objective.upper_steps is None else objective.upper_steps
    steps = 1 if objective.kind is ObjectiveKind.NEXT else steps
    if steps and (steps + 1) * structure.choices > MOST_PRICES:
        raise InputError(
            f"{steps:,} steps of {structure.choices:,} choices need more than {MOST_PRICES:,} prices",
            hint="ask without a step bound, or with a smaller one",
        )
    every, state = np.ones(structure.choices, np.bool_), np.arange(structure.states, dtype=np.int32)
    if objective.is_bounded:
        system = horizon_system(objective, structure, every)
    else:
        equations = equations_of(objective, structure, Support(structure, kernel.lower, kernel.upper), every)
        system, fixed, unbounded = equations.system, equations.fixed, solution
        if steps:
            unbounded = solve(kernel, replace(objective, lower_steps=0), precision=solution.precision)
        value = unbounded.fixpoint_lower if maximises else unbounded.fixpoint_upper
        last = np.where(fixed, equations.value, value), unbounded.choice, fixed
    after = partial(kernel.safe_choices, system, upward=not maximises)
    if isinstance(kernel, BellmanOperator):
        after.keywords["workspace"] = room = kernel.open_workspace()
        room.care = True  # one pass, also where float64 does not tell sums of bounds from 1
    given = {"question": "" if problem is None else problem.text, "confidence": None}
    facts = facts_of(objective, maximises, last is None, solution.verdict.facts | given | known)
    rows = price_rows(objective, steps, last, structure.choice_start, after, maximises)
    table = ShieldTable(facts, structure, structure, state, solution.ranking, **rows)
    return table if problem is None or problem.lift is None else _lift(table, problem)


def price_rows(
    objective: Objective | CertifiedObjective,
    steps: int,
    last: tuple[FloatArray, OffsetArray, BoolArray] | None,
    choice_start: OffsetArray,
    after: Callable[[FloatArray], FloatArray],
    maximises: bool,
    margin: float = 0.0,
) -> dict[str, AnyArray]:
    """Rows backwards from the `last` one: values, fallback policy and decided states (None: all is decided
    then). `after` bounds what choices lead to. Prices are larger by a `margin` of 1 + |v|."""
    first, counts, rows = choice_start[:-1].astype(np.int64), np.diff(choice_start), []
    target = objective.target
    if last is None:
        given = objective.terminal if target is None else target
        end = np.zeros(len(first)) if given is None else given.astype(np.float64)
    value, fallback, settled = last or (end, first, np.ones(len(first), np.bool_))
    for step in range(steps, -1, -1):
        reached = after(value)
        if step < steps:
            value = (np.maximum if maximises else np.minimum).reduceat(reached, first)
            attains = np.flatnonzero(reached == np.repeat(value, counts))
            fallback = attains[np.searchsorted(attains, first)]
            settled = np.zeros(len(first), np.bool_)
            if target is not None and objective.kind in ("UNTIL", ObjectiveKind.UNTIL):
                won = target if step >= objective.lower_steps else settled
                settled = won if objective.allowed is None else won | ~objective.allowed
                value[settled] = won[settled]
        price = np.repeat(value, counts)
        with np.errstate(invalid="ignore"):
            least = margin * (1.0 + np.abs(price)) if margin else 0.0
            price -= reached
            price *= 1.0 if maximises else -1.0
            price += least
        price[~(price > 0)] = 0.0  # ∞ − ∞ is no loss
        np.nextafter(price, np.inf, out=price, where=price > 0)
        price[fallback if step < steps else np.repeat(settled, counts)] = 0.0
        rows.append((value, price, fallback, settled))
    columns = zip(*reversed(rows), strict=True)
    return {name: np.stack(row) if steps else row[0][None] for name, row in zip(ROWS, columns, strict=True)}


def facts_of(
    objective: Objective | CertifiedObjective, maximises: bool, is_bounded: bool, known: dict[str, Any]
) -> ShieldFacts:
    """What is known of a shield, and what an objective says of it. Agents that avoid something may wait."""
    kind = getattr(objective.kind, "name", objective.kind)
    may_wait = is_bounded or kind == "DISCOUNTED" or (kind == "UNTIL" and not maximises)
    own = {"maximises": maximises, "complement": objective.complement, "range": objective.range}
    return ShieldFacts(**(known | own), needs_patience=not may_wait)


def unfold(base: Structure, state: IndexArray, successor: AnyArray, initial: tuple[int, ...]) -> Structure:
    """The structure whose states are copies of these of `base`, with their choices."""
    if len(state) == 0 or state.min() < 0 or state.max() >= base.states:
        raise InputError("a state of the product is none of the model")
    choice = ranges(base.choice_start, state)[0]
    starts = offsets(np.diff(base.choice_start)[state]), offsets(np.diff(base.transition_start)[choice])
    made = Structure(*starts, successor, initial, base.action_of_choice[choice], base.action_names)
    if not np.array_equal(state[successor], base.successor[ranges(base.transition_start, choice)[0]]):
        raise InputError("a transition of the product is none of the model")
    return made


def _lift(table: ShieldTable, problem: Problem) -> ShieldTable:
    """The same prices for the model behind a product with an automaton."""
    lift = problem.lift
    if not isinstance(lift, ProductLift) or lift.reach is None or lift.letters is None:
        raise InputError(f"shields do not cover questions such as {problem.text}")
    product, base = lift.product, lift.base
    if lift.needs_support:  # once it is won, the formula is satisfied only by the fallback, with its memory
        automaton, choices = lift.reach.automaton, table.fallback[0]
        rows = finite_memory_choices(product, automaton, lift.letters, choices, lift.reach.won)
        possible = Support.of(every_transition(base.structure))
        product, follows = product_with_memory(base, Policy(base, rows), possible)
        place, old = np.empty((rows.memories + 1, base.states), np.int64), lift.product
        place[:, old.state] = place[old.memory, old.state] = np.arange(len(choices))
        place, inside = place[product.memory, product.state], product.memory >= automaton.states
        is_won = table.settled[0] & (table.value[0] > 0)
        table = replace(
            table,
            structure=product.structure,
            ranking=np.where(inside | is_won[place], -1, table.ranking[place]),
            value=np.where(inside, 1.0, table.value[:, place]),
            price=table.price[:, ranges(table.structure.choice_start, place)[0]],
            fallback=follows.choice[None],
            settled=(table.settled & ~is_won)[:, place] & ~inside,
        )
    return replace(table, base=base.structure, state=product.state)


@dataclass
class Shield:
    """Restrict any agent so that a verified bound still holds over the whole run.

    One object guards one episode: `start` begins it, `allowed` lists choices with prices, `take` pays for
    one. Copies are cheap and independent (`copy.copy`).

    >>> import tightrope as tr
    >>> rows = [(0, "safe", {1: 0.9, 2: 0.1}), (0, "fast", {1: 0.8, 2: 0.2})]
    >>> rows += [(1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, labels={"crash": [2]})
    >>> shield = tr.Shield.of(tr.solve(model, 'Pmin=? [ F "crash" ]'), slack=0.15)
    >>> {action: round(price, 6) for action, price in shield.start().allowed(0).items()}
    {'safe': 0.0, 'fast': 0.1}
    >>> shield.take(0, "fast")
    >>> round(shield.slack, 6), round(shield.promise, 6)
    (0.05, 0.25)
    """

    table: ShieldTable = field(repr=False)
    initial_slack: float
    patience_of_episode: int | None
    slack: float = 0.0
    patience: int | None = None
    step: int = 0
    is_committed: bool = False
    is_decided: bool = False
    _here: int = -1  # the last known state; −1 where an episode is to begin
    _by: int = -1  # the choice taken there; −1 where the agent is to act
    _name: object = field(default=None, repr=False)  # what the agent calls the state
    _held: tuple[float, float] = (0.0, 0.0)  # the value of the state, and the slack there
    _offered: dict[str | int, tuple[int, float]] = field(default_factory=dict, repr=False)
    _fallback: str | int = ""

    @staticmethod
    def of(
        solution: Solution,
        problem: Problem | None = None,
        *,
        slack: float,
        patience: int | None = None,
        **known: Any,
    ) -> Shield:
        """Return a shield of `solution` (of `problem`, which temporal formulas need) with nature's sets as
        solved; `slack`, `patience` as in `LearningResult.shield`. `known`: verdict, confidence and data."""
        if not isinstance(solution, Solution):
            raise InputError(
                "a shield needs the values of one P or R: averages and other questions have no shields",
                hint="of a temporal formula take `result.shield` or the command `tightrope shield`",
            )
        if solution.objective.is_temporal and (problem is None or problem.lift is None):
            raise InputError(
                "this solution is about reaching what satisfies a temporal formula, in a product",
                hint="give its problem, too (`result.problem`), or take `result.shield`",
            )
        if solution.weight is not None:
            raise InputError("a shield needs the policy that a solve found, not a given one")
        if problem is not None and problem.is_of_controller:
            raise InputError("a shield needs to see the state, and this controller sees observations only")
        if problem is not None and problem.query.is_threshold:
            raise InputError(
                f"{problem.text} is true or false, and a shield is about a value",
                hint="ask for the value: Pmax=? [ … ]",
            )
        if known.get("verdict") is Word.CONTRADICTED:
            raise CannotCertify(f"a shield needs a model that the data do not contradict: {known['why']}")
        return Shield(table_of(solution, problem, **known), slack, patience).start()

    def __post_init__(self) -> None:
        check_type("slack", self.initial_slack, Real, "a number")
        if not 0 <= self.initial_slack < math.inf:
            raise InputError(f"the slack is {self.initial_slack}, not a number of at least 0")
        steps, usual = self.patience_of_episode, 4 * (int(self.table.ranking.max(initial=0)) + 1)
        if steps is not None and not (is_whole(steps) and steps >= 0):
            raise InputError(f"the patience is {steps}, not a number of steps")
        steps = max(usual, LEAST_PATIENCE) if steps is None else int(steps)
        self.patience_of_episode = steps if self.table.facts.needs_patience else None

    @staticmethod
    def load(path: str | PathLike[str]) -> Shield:
        """Return the shield in the file `path`, which `save` or `tightrope shield` wrote."""
        place, hint = path_of(path), "write one with 'tightrope shield'"
        document = read_document(place, ShieldDocument, FORMAT, VERSION, hint)
        try:
            shield = Shield(_table_in(document), document.slack, document.patience).start()
            sign = 1 if document.maximises != document.complement else -1
            if sign * document.promise > sign * shield.promise:
                raise InputError(f"it states {document.promise}, and its tables give {shield.promise}")
        except (InputError, KeyError) as error:
            why = error.message if isinstance(error, InputError) else f"the array {error} is missing"
            raise InputError(f"this is no shield: {why}", Location(str(place))) from error
        return shield

    def save(self, path: str | PathLike[str]) -> None:
        """Write the shield to `path` as JSON. Using the file needs no model."""
        table, base = self.table, self.table.base
        names = None if base.state_names is None else list(base.state_names)
        for part in (part for name in names or () for part in (name if isinstance(name, tuple) else (name,))):
            if not isinstance(part, str | int):
                raise InputError(
                    f"the state {part!r} cannot be written to a file",
                    hint="shields are saved for states named by text, whole numbers or tuples of these",
                )
        arrays = {name: getattr(table, name) for name in (*ROWS, "ranking")}
        arrays |= {f"model/{name}": getattr(base, name) for name in GRAPH}
        arrays |= {f"{COLUMN}{name}": column for name, column in base.valuations.items()}
        if base is not (own := table.structure):
            arrays |= {"state": table.state, "successor": own.successor, "initial_states": own.initial_states}
        stored = {}
        for name, array in ((name, np.asarray(array)) for name, array in arrays.items()):
            kind = array.dtype.newbyteorder("<")
            stored[name] = kind.str, list(array.shape), array.astype(kind).tobytes()
        given = asdict(self.describe()) | {"action_names": list(base.action_names), "state_names": names}
        document = ShieldDocument(**given, arrays=stored)
        with atomic_write(path_of(path)) as file:
            file.write(to_text({"format": FORMAT, **to_plain(document)}))

    def describe(self) -> ShieldAnswer:
        """Return the bound at the beginning of an episode, and how often the shield interferes."""
        table, structure, price = self.table, self.table.structure, self.table.price[0]
        is_open, affordable = ~table.settled[0], price <= self.initial_slack
        offered = np.add.reduceat(affordable.astype(np.int64), structure.choice_start[:-1])
        barred = structure.action_of_choice[~affordable & is_open[structure.choice_state]]
        names, removed = structure.action_names, np.bincount(barred)
        order = np.argsort(-removed, kind="stable")
        return record_of(
            ShieldAnswer,
            self.fresh(),
            table.facts,
            states=table.base.states,
            free_states=int(np.count_nonzero((offered > 1) & is_open)),
            removed=[RemovedAction(names[k], int(removed[k])) for k in order if removed[k]],
        )

    def fresh(self) -> Shield:
        """Return the same shield at the beginning of another episode."""
        return replace(self).start()

    def start(self) -> Shield:
        """Begin an episode with full slack and patience. Return this shield."""
        self.slack, self.patience = float(self.initial_slack), self.patience_of_episode
        self.step, self.is_committed, self.is_decided = 0, False, False
        self._here, self._by, self._name = -1, -1, object()
        values = self.table.value[0, list(self.table.structure.initial_states)]
        self._held = float(values.min() if self.table.facts.maximises else values.max()), self.slack
        return self

    def allowed(self, state: object) -> dict[str | int, float]:
        """Return the allowed choices of `state` (as for `Policy.act`), each with its price."""
        self._arrive(state)
        slack = self.slack
        prices = {name: price for name, (_, price) in self._offered.items() if price <= slack}
        return prices if prices and not self.is_committed else {self._fallback: 0.0}

    def take(self, state: object, action: Any) -> None:
        """Record that the agent takes `action` in `state`, and pay its price.

        Raises
        ------
        InputError
            If the shield does not allow the action. Nothing changes then.
        """
        base, action = self.table.base, plain(action)
        own = int(self.table.state[self._arrive(state)])
        if not isinstance(action, str | int) or action not in self._offered:
            action = self.choices[find_choice(base, own, action, "the shield")]
        choice, price = self._offered[action]
        if self.is_committed or price > self.slack:
            if action != self._fallback:
                why = f"its price is {price:.5g}, the slack left is {self.slack:.5g}"
                if self.is_committed:
                    why = "only the fallback policy acts until the end of the episode"
                raise InputError(
                    f"the shield does not allow {action!r} in state {base.state_name(own)}: {why}",
                    hint=f"the fallback is {self._fallback!r}",
                )
            self.is_committed, self._held = True, (self._held[0], 0.0)
        elif price > 0:
            self.slack = max(math.nextafter(self.slack - price, -math.inf), 0.0)
        self._by = choice
        self.step += 1

    def fallback(self, state: object) -> str | int:
        """Return the fallback policy's action in `state`, which is always allowed."""
        self._arrive(state)
        return self._fallback

    @property
    def choices(self) -> dict[int, str | int]:
        """What `allowed` calls the choices of the model in the last state."""
        return dict(enumerate(self._offered, int(self.table.base.choice_start[self.table.state[self._here]])))

    @property
    def verdict(self) -> Assessment:
        """The verdict of the result, with its assumptions."""
        return self.table.facts.judged

    @property
    def promise(self) -> float:
        """The verified bound that holds now, given the state and the slack that is left."""
        facts, (bound, slack) = self.table.facts, self._held
        away = -math.inf if facts.maximises else math.inf
        if slack:
            bound = math.nextafter(bound + math.copysign(slack, away), away)
        bound = min(max(bound, facts.range[0]), facts.range[1])
        if facts.complement:
            return math.nextafter(1.0 - bound, -away) if 0 < bound < 1 else 1.0 - bound
        return bound

    def _arrive(self, state: object) -> int:
        """The state of the structure that the agent is in now."""
        table, structure, acted = self.table, self.table.structure, self._by >= 0
        if state is self._name and not acted:
            return self._here
        advice = "" if self._here < 0 else f"; the fallback in the last known state is {self._fallback!r}"
        try:
            base = index_or_state(table.base, state)
        except InputError as error:
            raise InputError(f"the shield does not know the state: {error.message}{advice}") from None
        near: list[int] = [self._here]
        if acted:
            near = structure.successor[slice(*structure.transition_start[self._by : self._by + 2])].tolist()
        elif self._here < 0:
            near = [base] if table.base is structure else list(structure.initial_states)
        for here in near:
            if table.state.item(here) == base:
                break
        else:
            raise self._lost(f"state {table.base.state_name(base)}", advice)
        if here != self._here or acted:
            self._settle(here)
        self._name = object() if type(state).__hash__ is None else state  # it may be changed in place
        return here

    def _lost(self, where: str, advice: str) -> InputError:
        """The error about a state of the model in which the agent cannot be now."""
        if self._here < 0:
            why = "the shield of a temporal formula follows episodes from their beginning"
            return InputError(f"an episode begins in {where}, which is no initial state: {why}")
        now = f"state {self.table.base.state_name(int(self.table.state[self._here]))}"
        if self._by < 0:
            return InputError(
                f"the agent is in {now} and has taken no action there, but is asked about {where}",
                hint="call `take` after each action, and `start` when an episode begins",
            )
        action = self.table.structure.action_name(self._by)
        return InputError(
            f"the model has no transition from {now} by '{action}' to {where}, so "
            f"the guaranteed bound no longer holds{advice}",
            hint="`tightrope watch` tests whether the model still fits",
        )

    def _settle(self, here: int) -> None:
        """Arrive in a state: is the question decided, is the patience used up, what is offered there?"""
        table, structure, row = self.table, self.table.structure, min(self.step, len(self.table.value) - 1)
        if not self.is_decided:
            if table.settled.item(row, here):
                self.is_decided = True
            elif table.ranking.item(here) < 0:
                self.is_committed = True
            elif self.patience is not None and self._here >= 0 and not self.is_committed:
                self.patience -= table.ranking.item(here) >= table.ranking.item(self._here)
                self.is_committed = self.patience < 0
            is_free = self.is_decided or self.is_committed
            self._held = table.value.item(row, here), 0.0 if is_free else self.slack
        first, last = structure.choice_start[here : here + 2].tolist()
        names = [show_action(structure, choice) for choice in range(first, last)]
        if len(set(names)) < len(names):  # an action may itself be called by a number: places for all
            names = list(range(len(names)))
        prices = [0.0] * len(names) if self.is_decided else table.price[row, first:last].tolist()
        self._offered = dict(zip(names, zip(range(first, last), prices, strict=True), strict=True))
        self._fallback, self._here, self._by = names[table.fallback.item(row, here) - first], here, -1


def _table_in(document: ShieldDocument) -> ShieldTable:
    """The tables of a file, validated."""
    arrays: dict[str, Any] = {}
    for name, (kind, shape, data) in document.arrays.items():
        kinds = COLUMN_KINDS if name.startswith(COLUMN) else (ROWS.get(name, "<i8"), ROWS.get(name, "<i4"))
        is_sized = (name in ROWS or len(shape) == 1) and min(shape, default=0) >= 0
        if kind not in kinds or not is_sized or math.prod(shape) * np.dtype(kind).itemsize != len(data):
            raise InputError(f"the array '{name}' is of no type that it may have, or not as large as it says")
        arrays[name] = np.frombuffer(data, kind).reshape(shape)
    names = document.state_names and [plain(name) for name in document.state_names]
    structure = base = Structure(
        **{name: arrays[f"model/{name}"] for name in GRAPH},
        action_names=tuple(document.action_names),
        valuations={name.removeprefix(COLUMN): arrays[name] for name in arrays if name.startswith(COLUMN)},
        state_names=None if names is None else NamedStates(names),
    )
    state, rows = np.arange(base.states, dtype=np.int32), {name: arrays[name] for name in ROWS}
    if "state" in arrays:
        state = arrays["state"]
        structure = unfold(base, state, arrays["successor"], arrays["initial_states"])
    return ShieldTable(record_of(ShieldFacts, document), base, structure, state, arrays["ranking"], **rows)


__getattr__ = lazy_loader.attach(__name__, ["gym"])[0]  # which needs Gymnasium
