"""What a shield runs on: verified values, the price of every choice, and the fallback policy.

price(c) = max(0, v(s) − q(c)) for a maximising agent, where v are the verified values of the fallback policy
and q(c) is the worst expectation of v after c over nature's sets, rounded down. Prices are rounded up. For
minimising agents the signs turn. With a step bound there is a vector for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tightrope.errors import InputError
from tightrope.io.coding import Real
from tightrope.io.results import Judged
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy_choices import FiniteMemoryChoices, check_choices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.problem import Problem
from tightrope.provenance import Provenance
from tightrope.solver.equations.system import equations_of, horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.verdict import Assessment

MOST_PRICES = 50_000_000
"""Prices by step and choice beyond which a question with a step bound is refused."""


class ShieldFacts(Judged, kw_only=True):
    """What a shield is about and rests on; `range` are the possible values of the question, `certificate`
    the digest of the certificate that its prices follow from, `made_from` the data that it has seen."""

    question: str
    confidence: float | None
    maximises: bool
    complement: bool
    range: tuple[Real, Real]
    needs_patience: bool
    made_from: str | None = None
    certificate: str | None = None


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Verified values, prices and the fallback policy, shared by all episodes.

    Rows of `value`, `price` and `fallback` are steps; the last row is for all later steps. States and choices
    are those of `structure`, which is the model or its product with an automaton: then `state` and `choice`
    are those of the model behind it, and `controller` is the fallback policy with its memory.
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

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def offered(self, state: int, step: int, is_decided: bool) -> dict[str | int, tuple[int, float]]:
        """The choices of a state by action, each with its price; by number where actions are not unique."""
        choices = self.choices(state)
        first, last = choices.start, choices.stop
        actions = self.structure.action_of_choice[first:last].tolist()
        prices = self.price[self.row(step), first:last].tolist()
        if is_decided:
            prices = [0.0] * len(choices)
        names: Sequence[str | int] = [self._shown[action] for action in actions]
        if len(set(actions)) < len(actions):  # an action may itself be called by a number: places for all
            names = range(len(actions))
        return dict(zip(names, zip(choices, prices, strict=True), strict=True))

    @cached_property
    def _shown(self) -> list[str | int]:
        """The actions as environments number or name them."""
        return [int(name) if name.isdecimal() else name for name in self.structure.action_names]

    def show(self, state: int) -> str:
        """The name of the state of the model behind one of the structure."""
        return self.base.state_name(int(self.state[state]))

    def controller_row(self, state: int, memory: int) -> int:
        """The row of the controller for a state of the structure and a memory."""
        return self._controller_rows[int(self.state[state]), memory]

    @cached_property
    def _controller_rows(self) -> dict[tuple[int, int], int]:
        assert self.controller is not None
        pairs = zip(self.controller.state.tolist(), self.controller.memory.tolist(), strict=True)
        return {pair: number for number, pair in enumerate(pairs)}


def table_of(
    solution: Solution,
    question: str = "",
    verdict: Assessment | None = None,
    confidence: float | None = None,
    made_from: Provenance | None = None,
) -> ShieldTable:
    """Prices of all choices under the verified values of a solution."""
    if solution.weight is not None:
        raise InputError("a shield rests on the policy that a solve found, not on a given one")
    objective, kernel = solution.objective, solution.kernel
    maximises = objective.agent is Direction.MAX
    if objective.agent is objective.nature and kernel.lower is not kernel.upper:
        raise InputError(
            "a shield needs a bound against every nature, and here nature helps the agent",
            hint="ask for the worst nature, such as Pmaxmin or Rminmax",
        )
    rows = _by_steps(solution) if objective.depends_on_step or objective.is_bounded else _for_ever(solution)
    avoids = objective.kind is ObjectiveKind.UNTIL and not maximises
    facts = ShieldFacts(
        **(solution.verdict if verdict is None else verdict).facts,
        question=question,
        confidence=confidence,
        maximises=maximises,
        complement=objective.complement,
        range=objective.range,
        needs_patience=not (objective.is_bounded or avoids or objective.kind is ObjectiveKind.DISCOUNTED),
        made_from=None if made_from is None else made_from.text(),
    )
    structure = kernel.structure
    own = same_states(structure)
    won = np.zeros(structure.states, np.bool_)
    return ShieldTable(facts, structure, *rows, won=won, ranking=solution.ranking, **own)


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


def _prices(value: FloatArray, after: FloatArray, owner: IndexArray, maximises: bool) -> FloatArray:
    """max(0, v(s) − q(c)) rounded up, or max(0, q(c) − v(s)) for a minimising agent; 0 where nothing is
    promised."""
    here = value[owner]
    with np.errstate(invalid="ignore"):
        loss = here - after if maximises else after - here
    loss = np.where(np.isnan(loss), 0.0, loss)
    price: FloatArray = np.where(loss > 0, np.nextafter(loss, np.inf), 0.0)
    return price


def _for_ever(solution: Solution) -> PriceRows:
    """One row: the question counts no steps."""
    objective, kernel = solution.objective, solution.kernel
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    support = Support(structure, kernel.lower, kernel.upper)
    equations = equations_of(objective, structure, support, np.ones(structure.choices, np.bool_))
    value = (solution.fixpoint_lower if maximises else solution.fixpoint_upper).copy()
    value[equations.fixed] = equations.value[equations.fixed]
    after = kernel.safe_choices(equations.system, value, not maximises)
    price = _prices(value, after, structure.choice_state, maximises)
    return PriceRows(value[None], price[None], solution.choice[None], equations.fixed[None])


def _by_steps(solution: Solution) -> PriceRows:
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
        rows.append(PriceRows(value, price, fallback, settled))
    return PriceRows(*(np.stack(parts[::-1]) for parts in zip(*rows, strict=True)))


def _steps(objective: Objective) -> int:
    """The number of steps after which a choice per state suffices."""
    if objective.kind is ObjectiveKind.NEXT:
        return 1
    return objective.lower_steps if objective.upper_steps is None else objective.upper_steps


def _last_row(solution: Solution) -> PriceRows:
    """What holds after the steps that are counted: nothing is left to decide, or a question without bound."""
    objective, structure = solution.objective, solution.kernel.structure
    if not objective.is_bounded:
        later = solve(solution.kernel, replace(objective, lower_steps=0), precision=solution.precision)
        return PriceRows(*(part[0] for part in _for_ever(later)))
    end = objective.terminal if objective.target is None else objective.target
    value = np.zeros(structure.states) if end is None else end.astype(np.float64)
    first = structure.choice_start[:-1].astype(np.int64)
    return PriceRows(value, np.zeros(structure.choices), first, np.ones(structure.states, np.bool_))


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
