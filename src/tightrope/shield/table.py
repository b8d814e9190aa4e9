"""What a shield runs on: verified values, the price of every choice, and the fallback policy.

With a step bound there is a vector of values for each step. Prices are rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from tightrope.errors import InputError
from tightrope.io.answers import ShieldFacts
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy_file import FiniteMemoryChoices, check_choices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.problem import Problem
from tightrope.solver.equations.system import equations_of, horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope_check.problem import CertifiedObjective

MOST_PRICES = 50_000_000
"""Prices by step and choice beyond which a question with a step bound is refused."""


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Verified values, prices and the fallback policy, shared by all episodes.

    Rows of `value`, `price` and `fallback` are steps, the last for all later ones. `structure` is the model
    or its product with an automaton: then `state`, `choice` are the model's, `controller` the fallback with
    memory.
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
        for row in self.fallback:
            check_choices(self.structure, np.arange(states), row)
        if self.state.min() < 0 or self.state.max() >= self.base.states:
            raise InputError("a state of the product is none of the model")
        check_choices(self.base, self.state[self.structure.choice_state].astype(np.int64), self.choice)

    def is_about(self, model: Structure) -> bool:
        """Whether the shield has the choices of a model, under the names of its states and actions."""
        mine = self.base
        graph = ("choice_start", "transition_start", "successor")
        named = [np.array(one.action_names)[one.action_of_choice] for one in (mine, model)]
        columns = mine.valuations.keys() == model.valuations.keys() and all(
            np.array_equal(column, model.valuations[name]) for name, column in mine.valuations.items()
        )
        states = [None if one.state_names is None else list(one.state_names) for one in (mine, model)]
        same = all(np.array_equal(getattr(mine, name), getattr(model, name)) for name in graph)
        return same and np.array_equal(named[0], named[1]) and columns and states[0] == states[1]

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

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def offered(self, state: int, step: int, is_decided: bool) -> dict[str | int, tuple[int, float]]:
        """The choices of a state by action, each with its price; by number where actions are not unique."""
        first, last = self.structure.choice_start[state : state + 2].tolist()
        actions = self.structure.action_of_choice[first:last].tolist()
        prices = self.price[self.row(step), first:last].tolist()
        names: Sequence[str | int] = [self._shown[action] for action in actions]
        if len(set(actions)) < len(actions):  # an action may itself be called by a number: places for all
            names = range(len(actions))
        if is_decided:
            prices = [0.0] * len(actions)
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
    rows = _by_steps(solution) if objective.depends_on_step or objective.is_bounded else _for_ever(solution)
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
    own = same_states(structure)
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


def prices_of(
    value: FloatArray, after: FloatArray, choice_start: OffsetArray, maximises: bool, margin: float = 0.0
) -> FloatArray:
    """max(0, v(s) − q(c)) rounded up (turned for a minimising agent); 0 where nothing is promised. `margin`:
    more by this share of 1 + |v|."""
    here = np.repeat(value, np.diff(choice_start))
    with np.errstate(invalid="ignore"):
        loss = (here - after if maximises else after - here) + margin * (1.0 + np.abs(here))
    return np.where(loss > 0, np.nextafter(loss, np.inf), 0.0)  # ∞ − ∞ is no loss


def _for_ever(solution: Solution) -> PriceRows:
    """One row: the question counts no steps."""
    objective, kernel = solution.objective, solution.kernel
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    support = Support(structure, kernel.lower, kernel.upper)
    equations = equations_of(objective, structure, support, np.ones(structure.choices, np.bool_))
    value = (solution.fixpoint_lower if maximises else solution.fixpoint_upper).copy()
    value[equations.fixed] = equations.value[equations.fixed]
    after = kernel.safe_choices(equations.system, value, not maximises)
    price = prices_of(value, after, structure.choice_start, maximises)
    return PriceRows(value[None], price[None], solution.choice[None], equations.fixed[None])


def _by_steps(solution: Solution) -> PriceRows:
    """A row per step that counts; the last row is for what comes after them."""
    objective, kernel = solution.objective, solution.kernel
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    system = horizon_system(objective, structure, np.ones(structure.choices, np.bool_))
    steps = objective.lower_steps if objective.upper_steps is None else objective.upper_steps
    steps = 1 if objective.kind is ObjectiveKind.NEXT else steps
    if (steps + 1) * structure.choices > MOST_PRICES:
        raise InputError(
            f"{steps:,} steps of {structure.choices:,} choices need more than {MOST_PRICES:,} prices",
            hint="ask without a step bound, or with a smaller one",
        )
    later = None if objective.is_bounded else replace(objective, lower_steps=0)
    last = None if later is None else _for_ever(solve(kernel, later, precision=solution.precision))
    after = partial(kernel.safe_choices, system, upward=not maximises)
    return rows_by_step(objective, steps, last, structure.choice_start, after, maximises)


def rows_by_step(
    objective: Objective | CertifiedObjective,
    steps: int,
    last: PriceRows | None,
    choice_start: OffsetArray,
    after: Callable[[FloatArray], FloatArray],
    maximises: bool,
    margin: float = 0.0,
) -> PriceRows:
    """Rows backwards from the `last` one (None: all is decided then); `after` bounds what choices lead to."""
    first, states = choice_start[:-1].astype(np.int64), len(choice_start) - 1
    if last is None:
        given = objective.terminal if objective.target is None else objective.target
        end = np.zeros(states) if given is None else given.astype(np.float64)
        free = np.zeros(int(choice_start[-1]))
        last = PriceRows(end[None], free[None], first[None], np.ones((1, states), np.bool_))
    rows, best = [PriceRows(*(part[0] for part in last))], np.maximum if maximises else np.minimum
    state_of = np.repeat(np.arange(states), np.diff(choice_start))
    for step in range(steps - 1, -1, -1):
        reached = after(rows[-1].value)
        value = best.reduceat(reached, first)
        attains = np.flatnonzero(reached == value[state_of])
        fallback = attains[np.unique(state_of[attains], return_index=True)[1]].astype(np.int64)
        settled = np.zeros(states, np.bool_)
        if objective.target is not None and objective.kind in ("UNTIL", ObjectiveKind.UNTIL):
            won = objective.target if step >= objective.lower_steps else settled
            settled = won if objective.allowed is None else won | ~objective.allowed
            value[settled] = won[settled]
        price = prices_of(value, reached, choice_start, maximises, margin)
        price[fallback] = 0.0
        rows.append(PriceRows(value, price, fallback, settled))
    return PriceRows(*(np.stack(parts[::-1]) for parts in zip(*rows, strict=True)))


def _lift(table: ShieldTable, problem: Problem) -> ShieldTable:
    """The same prices for the model behind a product with an automaton."""
    lift = problem.lift
    if not isinstance(lift, ProductLift) or lift.reach is None or lift.letters is None:
        raise InputError(f"shields do not cover questions such as {problem.text}")
    product, reach = lift.product, lift.reach
    controller = finite_memory_choices(product, reach.automaton, lift.letters, table.fallback[0], reach.won)
    if lift.needs_support:  # the formula is satisfied only if the fallback policy acts from here on
        won, settled = table.settled[0] & (table.value[0] > 0), table.settled & (table.value == 0)
        table = replace(table, won=won, settled=settled)
    return replace(
        table,
        base=lift.base.structure,
        state=product.state,
        choice=product.choice,
        memory=product.memory,
        controller=controller,
    )
