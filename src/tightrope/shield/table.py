"""What a shield runs on: verified values, the price of every choice, and the fallback policy.

price(c) = max(0, v(s) − q(c)) for a maximising agent, where v are the verified values of the fallback policy
and q(c) is the worst expectation of v after c over nature's sets, rounded down. Prices are rounded up. For
minimising agents the signs turn. With a step bound there is a vector for each step.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy_choices import FiniteMemoryChoices, check_choices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.problem import Problem
from tightrope.solver.equations.system import equations_of, horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.verdict import Assessment

MOST_PRICES = 50_000_000
"""Prices by step and choice beyond which a question with a step bound is refused."""


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
class _PriceRows:
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


def _for_ever(solution: Solution) -> _PriceRows:
    """One row: the question counts no steps."""
    objective, kernel = solution.objective, solution.kernel
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    support = Support(structure, kernel.lower, kernel.upper)
    equations = equations_of(objective, structure, support, np.ones(structure.choices, np.bool_))
    value = (solution.fixpoint_lower if maximises else solution.fixpoint_upper).copy()
    value[equations.fixed] = equations.value[equations.fixed]
    after = kernel.safe_choices(equations.system, value, not maximises)
    price = _prices(value, after, structure.choice_state, maximises)
    return _PriceRows(value[None], price[None], solution.choice[None], equations.fixed[None])


def _by_steps(solution: Solution) -> _PriceRows:
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
        rows.append(_PriceRows(value, price, fallback, settled))
    return _PriceRows(
        *(np.stack([getattr(row, part.name) for row in rows[::-1]]) for part in fields(_PriceRows))
    )


def _steps(objective: Objective) -> int:
    """The number of steps after which a choice per state suffices."""
    if objective.kind is ObjectiveKind.NEXT:
        return 1
    return objective.lower_steps if objective.upper_steps is None else objective.upper_steps


def _last_row(solution: Solution) -> _PriceRows:
    """What holds after the steps that are counted: nothing is left to decide, or a question without bound."""
    objective, structure = solution.objective, solution.kernel.structure
    if not objective.is_bounded:
        later = solve(solution.kernel, replace(objective, lower_steps=0), precision=solution.precision)
        for_ever = _for_ever(later)
        return _PriceRows(for_ever.value[0], for_ever.price[0], for_ever.fallback[0], for_ever.settled[0])
    end = objective.terminal if objective.target is None else objective.target
    value = np.zeros(structure.states) if end is None else end.astype(np.float64)
    first = structure.choice_start[:-1].astype(np.int64)
    return _PriceRows(value, np.zeros(structure.choices), first, np.ones(structure.states, np.bool_))


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


def lift_table(table: ShieldTable, problem: Problem) -> ShieldTable:
    """The same prices for the model behind a product with an automaton, where the problem is one."""
    lift = problem.lift
    if lift is None:
        return table
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
