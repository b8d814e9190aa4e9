"""Shields: any agent may act, and a verified bound still holds for the whole run.

A value vector v that was verified for the fallback policy prices every choice c of a state s:
price(c) = max(0, v(s) − q(c)), where q(c) is the worst expectation of v after c over nature's sets, rounded
down. The agent starts with some slack, may take any choice whose price is at most the slack that is left, and
pays it. Then v(state) − slack is a submartingale for every agent and every nature, so the bound at the start
decreases by at most the initial slack. For minimising agents the signs turn; rewards that were earned count
beside v.

Where a play must still reach something, an agent could wait for ever at price 0. So a shield has a patience:
the number of steps in an episode that do not lower the ranking of the solution. Once it is used up, the
fallback policy acts until the end, and attains v from there. Proof: docs/explanation/shields.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.atomic import path_of
from tightrope.errors import InputError
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy_choices import FiniteMemoryChoices, check_choices
from tightrope.model.states import find_choice, index_or_state, show_action
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.solver.equations.system import equations_of, horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.verdict import Assessment

if TYPE_CHECKING:
    from tightrope.learning.result import LearningResult
    from tightrope.problem import Problem

MOST_PRICES = 50_000_000
"""Prices by step and choice beyond which a question with a step bound is refused."""

LEAST_PATIENCE = 100


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Verified values, prices and the fallback policy, shared by all episodes.

    Rows of `value`, `price` and `fallback` are steps; the last row is for all later steps. States and choices
    are those of `structure`, which is the model or its product with an automaton: then `state` and `choice`
    are the model's behind the product's, and `controller` is the fallback policy with its memory.
    """

    structure: Structure
    value: FloatArray
    price: FloatArray
    fallback: OffsetArray
    settled: BoolArray
    """By step: states in which the question is decided, so that every choice is free."""
    won: BoolArray
    """States from which only the fallback policy may act: it satisfies the temporal formula there."""
    ranking: OffsetArray
    maximises: bool
    complement: bool
    quantity_range: tuple[float, float]
    needs_patience: bool
    question: str
    verdict: Assessment
    confidence: float | None
    base: Structure
    state: IndexArray | None = None
    choice: OffsetArray | None = None
    memory: IndexArray | None = None
    controller: FiniteMemoryChoices | None = None

    def validate(self) -> None:
        """Refuse tables that do not fit together, or hold what no price or value is."""
        states, choices, steps = self.structure.states, self.structure.choices, len(self.value)
        shapes = {
            "value": (steps, states),
            "price": (steps, choices),
            "fallback": (steps, states),
            "settled": (steps, states),
            "won": (states,),
            "ranking": (states,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape or steps == 0:
                raise InputError(f"'{name}' has the shape {getattr(self, name).shape}, not {shape}")
        if np.isnan(self.value).any() or not np.all(self.price >= 0):
            raise InputError("a value is no number, or a price is not at least 0")
        for row in self.fallback:
            check_choices(self.structure, np.arange(states), row)
        if self.state is None or self.choice is None or self.memory is None:
            return
        if self.state.shape != (states,) or self.memory.shape != (states,) or self.choice.shape != (choices,):
            raise InputError("the states of the product do not match those of the model")
        if self.state.min() < 0 or self.state.max() >= self.base.states:
            raise InputError("a state of the product is none of the model")
        check_choices(self.base, self.state[self.structure.choice_state].astype(np.int64), self.choice)

    def free_states(self, slack: float) -> int:
        """States in which the slack of a whole episode leaves a choice among several."""
        offered = np.add.reduceat((self.price[0] <= slack).astype(np.int64), self.structure.choice_start[:-1])
        return int(np.count_nonzero((offered > 1) & ~self.settled[0]))

    def removed(self, slack: float) -> list[tuple[str, int]]:
        """Actions that the slack of a whole episode does not allow, with the number of such states."""
        barred = np.flatnonzero((self.price[0] > slack) & ~self.settled[0][self.structure.choice_state])
        numbers, counts = np.unique(self.structure.action_of_choice[barred], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [(self.structure.action_names[numbers[i]], int(counts[i])) for i in order]

    def row(self, step: int) -> int:
        last = len(self.value) - 1
        return step if step < last else last

    def choices(self, state: int) -> range:
        starts = self._starts
        return range(starts[state], starts[state + 1])

    @cached_property
    def _starts(self) -> memoryview:
        """`choice_start`, of which an entry is read faster than one of an array."""
        return self.structure.choice_start.data

    @cached_property
    def _actions(self) -> memoryview:
        return self.structure.action_of_choice.data

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def offered(self, state: int, step: int, is_decided: bool) -> dict[str | int, tuple[int, float]]:
        """The choices of a state by action, each with its price; by number where actions are not unique."""
        choices, actions = self.choices(state), self._actions
        numbers = [actions[choice] for choice in choices]
        names: list[str | int] = [self._shown[number] for number in numbers]
        if len(set(numbers)) < len(numbers):
            names = [name if names.count(name) == 1 else place for place, name in enumerate(names)]
        if is_decided:
            return {name: (choice, 0.0) for name, choice in zip(names, choices, strict=True)}
        prices = self.price[self.row(step), choices.start : choices.stop].tolist()
        return {name: (choice, price) for name, choice, price in zip(names, choices, prices, strict=True)}

    @cached_property
    def _shown(self) -> list[str | int]:
        """The actions as environments number or name them."""
        return [int(name) if name.isdecimal() else name for name in self.structure.action_names]

    def base_choice(self, choice: int) -> int:
        """The model's choice behind one of the structure."""
        return choice if self.choice is None else int(self.choice[choice])

    @cached_property
    def controller_rows(self) -> dict[tuple[int, int], int]:
        """The row of the controller for a state of the model and a memory."""
        assert self.controller is not None
        pairs = zip(self.controller.state.tolist(), self.controller.memory.tolist(), strict=True)
        return {pair: number for number, pair in enumerate(pairs)}


@dataclass
class Shield:
    """Restrict any agent so that a verified bound still holds over the whole run.

    One object guards one running episode: `start` begins it, `allowed` lists the choices with their prices,
    `take` pays for one. Copies are cheap and independent (`copy.copy`).

    >>> import tightrope as tr
    >>> rows = [(0, "safe", {1: 0.9, 2: 0.1}), (0, "fast", {1: 0.8, 2: 0.2})]
    >>> rows += [(1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, labels={"crash": [2]})
    >>> shield = tr.Shield.of(tr.solve(model, 'Pmin=? [ F "crash" ]'), slack=0.15)
    >>> shield.start().allowed(0)
    {'safe': 0.0, 'fast': 0.1}
    >>> shield.take(0, "fast")
    >>> round(shield.slack, 6), shield.promise
    (0.05, 0.25)
    """

    table: ShieldTable = field(repr=False)
    initial_slack: float
    patience_of_episode: int | None
    slack: float = 0.0
    patience: int | None = None
    step: int = 0
    is_committed: bool = False
    _here: int = -1
    """The state in which the agent is to act; −1 where nobody has said so yet."""
    _from: int = -1
    """The state before it, and `_by`: the choice taken there."""
    _by: int = -1
    _offered: dict[str | int, tuple[int, float]] = field(default_factory=dict, repr=False)
    _memory: int = -1
    """What the controller remembers, once it acts."""
    _decided: float | None = None
    """The value of a question that has been decided."""

    @staticmethod
    def of(solution: Solution, *, slack: float, patience: int | None = None, question: str = "") -> Shield:
        """The shield of a solution over a model without data, with nature's sets as they were solved."""
        return Shield(table_of(solution, question), slack, patience).start()

    def __post_init__(self) -> None:
        if not 0 <= self.initial_slack < math.inf:
            raise InputError(f"the slack is {self.initial_slack}, not a number of at least 0")
        if self.patience_of_episode is not None and self.patience_of_episode < 0:
            raise InputError(f"the patience is {self.patience_of_episode}, not a number of steps")
        if not self.table.needs_patience:
            self.patience_of_episode = None
        elif self.patience_of_episode is None:
            self.patience_of_episode = max(4 * (int(self.table.ranking.max(initial=0)) + 1), LEAST_PATIENCE)

    @staticmethod
    def load(path: str | PathLike[str]) -> Shield:
        """The shield in a file that `save` or `tightrope shield` wrote."""
        from tightrope.learning.shield_file import load_shield

        return load_shield(path_of(path))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the shield to a JSON file, which needs no model to be used."""
        from tightrope.learning.shield_file import save_shield

        save_shield(self, path_of(path))

    def fresh(self) -> Shield:
        """The same shield at the beginning of another episode."""
        return replace(self).start()

    def start(self) -> Shield:
        """Begin an episode: slack and patience are whole again."""
        self.slack, self.patience = float(self.initial_slack), self.patience_of_episode
        self.step, self.is_committed, self._decided = 0, False, None
        self._here = self._from = self._by = self._memory = -1
        return self

    def allowed(self, state: Any) -> dict[str | int, float]:
        """The choices that may be taken in a state, each with its price."""
        here = self._arrive(state)
        if not self.is_committed:
            slack = self.slack
            prices = {name: price for name, (_, price) in self._offered.items() if price <= slack}
            if prices:
                return prices
        return {self._name(self._fallback(here)): 0.0}

    def take(self, state: Any, action: Any) -> None:
        """Record that the agent takes an action in a state, and pay its price.

        Raises
        ------
        InputError
            If the shield does not allow the action; nothing changes then.
        """
        here, table = self._arrive(state), self.table
        choice, price = self._offered.get(action) or self._find(here, action)
        if self.is_committed or price > self.slack:
            if choice != self._fallback(here):
                raise self._forbidden(here, action, price)
            self._commit(here)
        elif price > 0:
            self.slack = max(math.nextafter(self.slack - price, -math.inf), 0.0)
        if self.is_committed and table.controller is not None:
            row = table.controller_rows[self._base_state(here), self._memory]
            self._memory = int(table.controller.following[row])
        self._from, self._by, self._here = here, choice, -1
        self.step += 1

    def fallback(self, state: Any) -> str | int:
        """The action of the fallback policy, which is always allowed."""
        return self._name(self._fallback(self._arrive(state)))

    @property
    def promise(self) -> float:
        """The verified bound that holds now, given the state and the slack that is left."""
        table = self.table
        if self._decided is not None:
            return self._bound(self._decided, 0.0)
        slack = 0.0 if self.is_committed else self.slack
        if self._here < 0 <= self._from:  # between a choice and its outcome: what held before it
            return self._bound(float(table.value[table.row(self.step - 1), self._from]), slack)
        here = table.structure.initial if self._here < 0 else self._here
        return self._bound(float(table.value[table.row(self.step), here]), slack)

    # --- where the episode is --------------------------------------------------------------

    def _bound(self, value: float, slack: float) -> float:
        """The value with the slack taken off, rounded to the safe side, as the question reports it."""
        least, most = self.table.quantity_range
        away = -math.inf if self.table.maximises else math.inf
        bound = value if slack == 0 else math.nextafter(value + math.copysign(slack, away), away)
        bound = min(max(bound, least), most)
        if self.table.complement and 0 < bound < 1:
            return math.nextafter(1.0 - bound, -away)
        return 1.0 - bound if self.table.complement else bound

    def _arrive(self, state: Any) -> int:
        """The state of the structure that the agent is in now."""
        table = self.table
        base = self._known(state)
        if self._here >= 0:
            if self._base_state(self._here) != base:
                raise InputError(
                    f"the agent is in state {table.base.state_name(self._base_state(self._here))} and has "
                    f"taken no action there, but is asked about state {table.base.state_name(base)}",
                    hint="call `take` after each action, and `start` when an episode begins",
                )
            return self._here
        self._here = self._follow(base)
        self._settle()
        self._offered = table.offered(self._here, self.step, self._decided is not None)
        return self._here

    def _known(self, state: Any) -> int:
        try:
            return index_or_state(self.table.base, state)
        except InputError as error:
            last = (
                "" if self._from < 0 else f"; the fallback in the last known state is {self._last_fallback()}"
            )
            raise InputError(f"the shield does not know the state: {error.message}{last}") from None

    def _last_fallback(self) -> str:
        row = self.table.row(self.step - 1)
        return repr(show_action(self.table.structure, int(self.table.fallback[row, self._from])))

    def _follow(self, base: int) -> int:
        """The state of the structure after the last choice, or the first of an episode."""
        table, structure = self.table, self.table.structure
        if self._from < 0:
            if table.state is None:
                return base
            starts = [s for s in structure.initial_states if int(table.state[s]) == base]
            if not starts:
                raise InputError(
                    f"an episode begins in state {table.base.state_name(base)}, which is no initial state: "
                    "the shield of a temporal formula follows episodes from their beginning"
                )
            return starts[0]
        first, last = structure.transition_start[self._by : self._by + 2].tolist()
        for after in structure.successor[first:last].tolist():
            if self._base_state(after) == base:
                return int(after)
        before = table.base.state_name(self._base_state(self._from))
        raise InputError(
            f"the model has no transition from state {before} by '{structure.action_name(self._by)}' to "
            f"state {table.base.state_name(base)}, so the guaranteed bound no longer holds; the fallback "
            f"in the state before is {self._last_fallback()}",
            hint="`tightrope watch` tests whether the model still fits",
        )

    def _settle(self) -> None:
        """What arriving in a state changes: a question that is decided, patience that is used up."""
        table, here = self.table, self._here
        if self._decided is not None:
            return
        row = table.row(self.step)
        if table.settled[row, here]:
            self._decided = float(table.value[row, here])
        elif table.won[here]:
            self._commit(here)
        elif self.patience is not None and self._from >= 0 and not self.is_committed:
            if table.ranking[here] >= table.ranking[self._from]:
                self.patience -= 1
            if self.patience < 0:
                self._commit(here)

    def _commit(self, here: int) -> None:
        """From here on the fallback policy acts until the end of the episode."""
        if not self.is_committed and self.table.memory is not None:
            self._memory = int(self.table.memory[here])
        self.is_committed = True

    def _fallback(self, here: int) -> int:
        """The choice of the fallback policy, in the structure."""
        table = self.table
        if self.is_committed and table.controller is not None:
            row = table.controller_rows[self._base_state(here), self._memory]
            wanted = int(table.controller.choice[row])
            return next(choice for choice in table.choices(here) if table.base_choice(choice) == wanted)
        return int(table.fallback[table.row(self.step), here])

    def _base_state(self, here: int) -> int:
        return here if self.table.state is None else int(self.table.state[here])

    def _name(self, choice: int) -> str | int:
        """A choice of the present state by its action, or by its number."""
        return next(name for name, (number, _) in self._offered.items() if number == choice)

    def _find(self, here: int, action: Any) -> tuple[int, float]:
        """A choice and its price by another name of it."""
        table, state = self.table, self._base_state(here)
        wanted = find_choice(table.base, state, action, "the shield")
        return next(entry for entry in self._offered.values() if table.base_choice(entry[0]) == wanted)

    def _forbidden(self, here: int, action: Any, price: float) -> InputError:
        state = self.table.base.state_name(self._base_state(here))
        why = (
            "only the fallback policy acts until the end of the episode"
            if self.is_committed
            else f"its price is {price:.5g}, the slack left is {self.slack:.5g}"
        )
        fallback = self._name(self._fallback(here))
        return InputError(
            f"the shield does not allow {action!r} in state {state}: {why}",
            hint=f"the fallback is {fallback!r}",
        )


# --- prices ----------------------------------------------------------------------------------


def table_of(
    solution: Solution,
    question: str = "",
    verdict: Assessment | None = None,
    confidence: float | None = None,
) -> ShieldTable:
    """Prices of all choices under the verified values of a solution."""
    if solution.weight is not None:
        raise InputError("a shield rests on the policy that a solve found, not on a given one")
    objective, kernel = solution.objective, solution.kernel
    maximises = objective.agent is Direction.MAX
    rows = _by_steps(solution) if objective.depends_on_step or objective.is_bounded else _for_ever(solution)
    structure = kernel.structure
    reaches = objective.kind is ObjectiveKind.UNTIL and not maximises
    discounted = objective.kind is ObjectiveKind.DISCOUNTED
    return ShieldTable(
        structure=structure,
        value=rows.value,
        price=rows.price,
        fallback=rows.fallback,
        settled=rows.settled,
        won=np.zeros(structure.states, np.bool_),
        ranking=solution.ranking,
        maximises=maximises,
        complement=objective.complement,
        quantity_range=objective.range,
        needs_patience=not (objective.is_bounded or reaches or discounted),
        question=question,
        verdict=solution.verdict if verdict is None else verdict,
        confidence=confidence,
        base=structure,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Values, prices and the fallback policy by step, and where the question is decided."""

    value: FloatArray
    price: FloatArray
    fallback: OffsetArray
    settled: BoolArray


def _prices(value: FloatArray, after: FloatArray, owner: IndexArray, maximises: bool) -> FloatArray:
    """max(0, v(s) − q(c)) rounded up, or max(0, q(c) − v(s)) for a minimising agent; 0 where nothing is
    promised."""
    here = value[owner]
    with np.errstate(invalid="ignore"):
        loss = here - after if maximises else after - here
    loss = np.where(np.isnan(loss), 0.0, loss)
    price: FloatArray = np.where(loss > 0, np.nextafter(loss, np.inf), 0.0)
    return price


def _for_ever(solution: Solution) -> _Rows:
    """One row: the question counts no steps."""
    objective, kernel = solution.objective, solution.kernel
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    support = Support(structure, kernel.lower, kernel.upper)
    equations = equations_of(objective, structure, support, np.ones(structure.choices, np.bool_))
    value = (solution.fixpoint_lower if maximises else solution.fixpoint_upper).copy()
    value[equations.fixed] = equations.value[equations.fixed]
    after = kernel.safe_choices(equations.system, value, not maximises)
    price = _prices(value, after, structure.choice_state, maximises)
    return _Rows(value[None], price[None], solution.choice[None], equations.fixed[None])


def _by_steps(solution: Solution) -> _Rows:
    """A row per step that counts, backwards from the last; the last row is for what comes after them."""
    objective, kernel = solution.objective, solution.kernel
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    system = horizon_system(objective, structure, np.ones(structure.choices, np.bool_))
    steps = _steps(objective)
    if (steps + 1) * structure.choices > MOST_PRICES:
        raise InputError(
            f"{steps:,} steps of {structure.choices:,} choices need more than {MOST_PRICES:,} prices",
            hint="ask without a step bound, or with a smaller one",
        )
    rows = [_last_row(solution)]
    for step in range(steps - 1, -1, -1):
        after = kernel.safe_choices(system, rows[-1].value, not maximises)
        value, fallback = _best(structure, after, maximises)
        settled = _settle_at(objective, step, value)
        price = _prices(value, after, structure.choice_state, maximises)
        rows.append(_Rows(value, price, fallback, settled))
    return _Rows(*(np.stack([getattr(row, part.name) for row in rows[::-1]]) for part in fields(_Rows)))


def _steps(objective: Objective) -> int:
    """The number of steps after which a choice per state suffices."""
    if objective.kind is ObjectiveKind.NEXT:
        return 1
    return objective.lower_steps if objective.upper_steps is None else objective.upper_steps


def _last_row(solution: Solution) -> _Rows:
    """What holds after the steps that are counted: nothing is left to decide, or a question without bound."""
    objective, structure = solution.objective, solution.kernel.structure
    if not objective.is_bounded:
        later = solve(solution.kernel, replace(objective, lower_steps=0), precision=solution.precision)
        for_ever = _for_ever(later)
        return _Rows(for_ever.value[0], for_ever.price[0], for_ever.fallback[0], for_ever.settled[0])
    end = objective.terminal if objective.target is None else objective.target
    value = np.zeros(structure.states) if end is None else end.astype(np.float64)
    first = structure.choice_start[:-1].astype(np.int64)
    return _Rows(value, np.zeros(structure.choices), first, np.ones(structure.states, np.bool_))


def _best(structure: Structure, after: FloatArray, maximises: bool) -> tuple[FloatArray, OffsetArray]:
    """The best value of every state over its choices, and the first choice that attains it."""
    best = (np.maximum if maximises else np.minimum).reduceat(after, structure.choice_start[:-1])
    attains = np.flatnonzero(after == best[structure.choice_state])
    _, first = np.unique(structure.choice_state[attains], return_index=True)
    return best, attains[first].astype(np.int64)


def _settle_at(objective: Objective, step: int, value: FloatArray) -> BoolArray:
    """States in which an until is decided after so many steps; `value` gets their values."""
    settled = np.zeros(len(value), np.bool_)
    if objective.kind is ObjectiveKind.UNTIL:
        assert objective.target is not None
        won = objective.target if step >= objective.lower_steps else settled
        settled = won if objective.allowed is None else won | ~objective.allowed
        value[settled] = won[settled]
    return settled


# --- shields of learned results --------------------------------------------------------------


def shield_of(result: LearningResult, slack: float, patience: int | None = None) -> Shield:
    """The shield of a learned result: its bound holds with the result's confidence."""
    problem = result.problem
    if problem.is_of_controller:
        raise InputError(
            "a shield needs to see the state, and this answer is about a controller that sees observations "
            "only"
        )
    solution = result.robust.solutions[0 if problem.objective.maximises else 1]
    table = table_of(solution, problem.text, result.verdict, 1 - result.ledger.delta)
    if problem.lift is not None:
        table = _lift(table, problem)
    return Shield(table, slack, patience).start()


def _lift(table: ShieldTable, problem: Problem) -> ShieldTable:
    """The same prices for the model behind a product with an automaton."""
    lift = problem.lift
    if not isinstance(lift, ProductLift) or lift.reach is None or lift.letters is None:
        raise InputError(f"shields do not cover questions such as {problem.text}")
    choices = finite_memory_choices(
        lift.product, lift.reach.automaton, lift.letters, table.fallback[0], lift.reach.won
    )
    won, settled = table.won, table.settled
    if lift.needs_support:  # the formula is satisfied only if the fallback policy acts from here on
        won, settled = table.settled[0] & (table.value[0] > 0), table.settled & (table.value == 0)
    return replace(
        table,
        base=lift.base.structure,
        state=lift.product.state,
        choice=lift.product.choice,
        memory=lift.product.memory,
        controller=choices,
        won=won,
        settled=settled,
    )
