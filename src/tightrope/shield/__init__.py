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
from functools import cached_property, partial
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
from msgspec import structs

from tightrope.atomic import atomic_write, path_of
from tightrope.errors import CannotCertify, InputError, Location, check_type
from tightrope.io.answers import RemovedAction, ShieldAnswer, ShieldDocument, ShieldFacts
from tightrope.io.coding import read_document, record_of, to_plain, to_text
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy_file import FiniteMemoryChoices
from tightrope.model.product import MOST_PAIRS
from tightrope.model.states import find_choice, index_or_state, is_whole, show_action
from tightrope.model.structure import NamedStates, Structure, plain, release
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, offsets, ranges
from tightrope.numerics.record import same
from tightrope.problem import Problem
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.equations.system import equations_of, horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.verdict import Assessment, Word

if TYPE_CHECKING:
    from tightrope_check.problem import CertifiedObjective

FORMAT, VERSION = "tightrope shield", 3
GRAPH = ("choice_start", "transition_start", "successor", "action", "initial_states")
ROWS = ("state", "memory", "choice", "following")
COLUMNS = ("ranking", "value", "price", "settled")
KINDS = {"value": "<f8", "price": "<f8", "settled": "|b1", "number": "<i8", "truth": "|b1"}
"""The types of arrays in a file, and of variables, whose names they begin; all others are "<i4"."""

LEAST_PATIENCE = 100
MOST_PRICES = 50_000_000
"""Prices by step and choice beyond which a question with a step bound is refused."""


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Verified values, prices and the fallback policy, shared by all episodes.

    The memory of the policy is the step, the last one for all later ones, or the state of an automaton. There
    are a value and a rank for each of its rows, and prices for the choices of their states, row by row.
    """

    facts: ShieldFacts
    structure: Structure
    fallback: FiniteMemoryChoices
    ranking: OffsetArray
    """−1 where a temporal formula is won, but only if the fallback policy acts from there on."""
    value: FloatArray
    price: FloatArray
    settled: BoolArray
    """Rows in which the question is decided, so that every choice is free."""

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together, or hold what no price or value is."""
        self.fallback.refuse_for(self.structure)
        memories, states = self.fallback.memories, self.structure.states
        if memories * states > MOST_PAIRS:
            raise InputError(f"{memories:,} memories and {states:,} states are too many for a shield")
        for name in COLUMNS:
            number = self.first[-1] if name == "price" else len(self.fallback.state)
            if getattr(self, name).shape != (number,):
                raise InputError(f"'{name}' has the shape {getattr(self, name).shape}, not {(int(number),)}")
        if np.isnan(self.value).any() or not np.all(self.price >= 0):
            raise InputError("a value is no number, or a price is not at least 0")

    @cached_property
    def first(self) -> OffsetArray:
        """Where the prices of every row begin, and the end of the last one."""
        return offsets(np.diff(self.structure.choice_start)[self.fallback.state])

    @cached_property
    def row(self) -> IndexArray:
        """The row of every memory and state; −1 where no episode meets the two."""
        rows = np.full((self.fallback.memories, self.structure.states), -1, np.int32)
        rows[self.fallback.memory, self.fallback.state] = np.arange(len(self.fallback.state))
        return rows

    def is_about(self, model: Structure) -> bool:
        """Whether the shield has the choices of a model, under the names of its states and actions."""
        parts = [*GRAPH[:3], "initial_states", "valuations", "state_names"]
        alike = all(same(getattr(self.structure, part), getattr(model, part)) for part in parts)
        names = [np.array(one.action_names)[one.action_of_choice] for one in (self.structure, model)]
        return alike and same(*names)


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
    every = np.ones(structure.choices, np.bool_)
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
    given = solution.verdict.facts | given | known
    table = price_table(objective, structure, steps, last, after, solution.ranking, given)
    return table if problem is None or problem.lift is None else _lift(table, problem)


def price_table(
    objective: Objective | CertifiedObjective,
    structure: Structure,
    steps: int,
    last: tuple[FloatArray, OffsetArray, BoolArray] | None,
    after: Callable[[FloatArray], FloatArray],
    ranking: OffsetArray,
    known: dict[str, Any],
    margin: float = 0.0,
) -> ShieldTable:
    """Prices backwards from the `last` step: values, fallback policy and decided states (None: all is decided
    then). `after` bounds what choices lead to. Prices are larger by a `margin` of 1 + |v|."""
    kind, agent = (getattr(one, "name", one) for one in (objective.kind, objective.agent))
    first, counts, target = structure.choice_start[:-1], np.diff(structure.choice_start), objective.target
    maximises, rows = agent == "MAX", []
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
            if target is not None and kind == "UNTIL":
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
        rows.append((fallback, value, price, settled))
    columns = map(np.concatenate, zip(*reversed(rows), strict=True)) if steps else rows[0]
    choice, *numbers = columns
    memory = np.repeat(np.arange(steps + 1), len(first))
    state, following = np.tile(np.arange(len(first)), steps + 1), np.minimum(memory + 1, steps)
    release(state, memory, following)
    policy = FiniteMemoryChoices(state, memory, choice, following)
    may_wait = last is None or kind == "DISCOUNTED" or (kind == "UNTIL" and not maximises)  # avoiding may
    own = {"maximises": maximises, "complement": objective.complement, "range": objective.range}
    facts = ShieldFacts(**(known | own), needs_patience=not may_wait)
    return ShieldTable(facts, structure, policy, np.tile(ranking, steps + 1), *numbers)


def _lift(table: ShieldTable, problem: Problem) -> ShieldTable:
    """The same prices for the model behind a product with an automaton. A formula about infinite runs, once
    it is won, is satisfied only by the fallback policy, with its memory: these are further rows."""
    lift = problem.lift
    if not isinstance(lift, ProductLift) or lift.reach is None or lift.letters is None:
        raise InputError(f"shields do not cover questions such as {problem.text}")
    structure, won = lift.base.structure, lift.reach.won if lift.needs_support else []
    automaton, choice = lift.reach.automaton, table.fallback.choice
    rows = finite_memory_choices(lift.product, automaton, lift.letters, choice, won)
    inside = rows.state[len(choice) :]
    is_won = table.settled & (table.value > 0) & lift.needs_support
    return ShieldTable(
        table.facts,
        structure,
        rows,
        ranking=np.append(np.where(is_won, -1, table.ranking), np.full(len(inside), -1)),
        value=np.append(table.value, np.ones(len(inside))),
        price=np.append(table.price, np.zeros(np.diff(structure.choice_start)[inside].sum())),
        settled=np.append(table.settled & ~is_won, np.zeros(len(inside), np.bool_)),
    )


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
        table, structure = self.table, self.table.structure
        names = None if structure.state_names is None else list(structure.state_names)
        for part in (part for name in names or () for part in (name if isinstance(name, tuple) else (name,))):
            if not isinstance(part, str | int):
                raise InputError(
                    f"the state {part!r} cannot be written to a file",
                    hint="shields are saved for states named by text, whole numbers or tuples of these",
                )
        arrays = {name: getattr(table.fallback, name) for name in ROWS}
        arrays |= {name: getattr(table, name) for name in COLUMNS}
        arrays |= {f"model/{name}": getattr(structure, name) for name in GRAPH}
        for name, column in structure.valuations.items():
            arrays[f"{'truth' if column.dtype == np.bool_ else 'number'}/{name}"] = column
        document = ShieldDocument(
            **structs.asdict(self.describe()),
            action_names=list(structure.action_names),
            state_names=names,
            arrays={name: np.asarray(arrays[name], _kind(name)).tobytes() for name in arrays},
        )
        with atomic_write(path_of(path)) as file:
            file.write(to_text({"format": FORMAT, **to_plain(document)}))

    def describe(self) -> ShieldAnswer:
        """Return the bound at the beginning of an episode, and how often the shield interferes."""
        table, structure = self.table, self.table.structure
        state, rows = np.unique(table.fallback.state, return_index=True)  # where states are met first
        (price, owner), choice = ranges(table.first, rows), ranges(structure.choice_start, state)[0]
        affordable, is_open = table.price[price] <= self.initial_slack, ~table.settled[rows]
        offered = np.bincount(owner[affordable], minlength=len(rows))
        names = structure.action_names
        removed = np.bincount(structure.action_of_choice[choice][~affordable & is_open[owner]])
        order = np.argsort(-removed, kind="stable")
        return record_of(
            ShieldAnswer,
            self.fresh(),
            table.facts,
            states=structure.states,
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
        values = self.table.value[self.table.row[0, list(self.table.structure.initial_states)]]
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
        self._arrive(state)
        structure, action = self.table.structure, plain(action)
        if not isinstance(action, str | int) or action not in self._offered:
            action = self.choices[find_choice(structure, self._state, action, "the shield")]
        choice, price = self._offered[action]
        if self.is_committed or price > self.slack:
            if action != self._fallback:
                name = structure.state_name(self._state)
                why = f"its price is {price:.5g}, the slack left is {self.slack:.5g}"
                if self.is_committed:
                    why = "only the fallback policy acts until the end of the episode"
                raise InputError(
                    f"the shield does not allow {action!r} in state {name}: {why}",
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
        return {choice: name for name, (choice, _) in self._offered.items()}

    @property
    def _state(self) -> int:
        return self.table.fallback.state.item(self._here)

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

    def _arrive(self, state: object) -> None:
        """Find the row of the state that the agent is in now, after what was done before."""
        table, structure, acted = self.table, self.table.structure, self._by >= 0
        if state is self._name and not acted:
            return
        advice = "" if self._here < 0 else f"; the fallback in the last known state is {self._fallback!r}"
        try:
            number = index_or_state(structure, state)
        except InputError as error:
            raise InputError(f"the shield does not know the state: {error.message}{advice}") from None
        near, memory = [number], 0
        if acted:
            first, last = structure.transition_start[self._by : self._by + 2].tolist()
            near, memory = structure.successor[first:last].tolist(), table.fallback.following.item(self._here)
        elif self._here >= 0:
            near, memory = [self._state], table.fallback.memory.item(self._here)
        here = table.row.item(memory, number) if number in near else -1
        if here < 0:
            raise self._lost(f"state {structure.state_name(number)}", advice)
        if here != self._here or acted:
            self._settle(here, number)
        self._name = object() if type(state).__hash__ is None else state  # it may be changed in place

    def _lost(self, where: str, advice: str) -> InputError:
        """The error about a state of the model in which the agent cannot be now."""
        structure = self.table.structure
        if self._here < 0:
            why = "the shield of a temporal formula follows episodes from their beginning"
            return InputError(f"an episode begins in {where}, which is no initial state: {why}")
        now = f"state {structure.state_name(self._state)}"
        if self._by < 0:
            return InputError(
                f"the agent is in {now} and has taken no action there, but is asked about {where}",
                hint="call `take` after each action, and `start` when an episode begins",
            )
        return InputError(
            f"the model has no transition from {now} by '{structure.action_name(self._by)}' to {where}, so "
            f"the guaranteed bound no longer holds{advice}",
            hint="`tightrope watch` tests whether the model still fits",
        )

    def _settle(self, here: int, state: int) -> None:
        """Arrive in a row, of this state: is it decided, is the patience used up, what is offered?"""
        table, structure = self.table, self.table.structure
        if not self.is_decided:
            if table.settled.item(here):
                self.is_decided = True
            elif table.ranking.item(here) < 0:
                self.is_committed = True
            elif self.patience is not None and self._here >= 0 and not self.is_committed:
                self.patience -= table.ranking.item(here) >= table.ranking.item(self._here)
                self.is_committed = self.patience < 0
            is_free = self.is_decided or self.is_committed
            self._held = table.value.item(here), 0.0 if is_free else self.slack
        begin = table.first.item(here)
        first, last = structure.choice_start[state : state + 2].tolist()
        names = [show_action(structure, choice) for choice in range(first, last)]
        if len(set(names)) < len(names):  # an action may itself be called by a number: places for all
            names = list(range(len(names)))
        prices = [0.0] * len(names) if self.is_decided else table.price[begin : begin + len(names)].tolist()
        self._offered = dict(zip(names, zip(range(first, last), prices, strict=True), strict=True))
        self._fallback, self._here, self._by = names[table.fallback.choice.item(here) - first], here, -1


def _kind(name: str) -> str:
    return KINDS.get(name.partition("/")[0], "<i4")


def _table_in(document: ShieldDocument) -> ShieldTable:
    """The tables of a file, validated."""
    arrays: dict[str, Any] = {}
    for name, data in document.arrays.items():
        if len(data) % np.dtype(_kind(name)).itemsize:
            raise InputError(f"the array '{name}' ends within a number")
        arrays[name] = np.frombuffer(data, _kind(name))
    variables = [name for name in arrays if name.startswith(("number/", "truth/"))]
    names = document.state_names and NamedStates([plain(name) for name in document.state_names])
    structure = Structure(
        **{name: arrays[f"model/{name}"] for name in GRAPH},
        action_names=tuple(document.action_names),
        valuations={name.partition("/")[2]: arrays[name] for name in variables},
        state_names=names or None,
    )
    policy = FiniteMemoryChoices(*(arrays[name] for name in ROWS))
    facts = record_of(ShieldFacts, document)
    return ShieldTable(facts, structure, policy, **{name: arrays[name] for name in COLUMNS})


__getattr__ = lazy_loader.attach(__name__, ["gym"])[0]  # which needs Gymnasium
