"""What a policy loses against the robust one, at the worst nature for the robust values.

Let v be the verified values, price(c) = v(s) − q(c) the price of a choice (`tightrope.shield`) and p
nature's answer to v. Under p a policy π loses Σ d(s) · price(π(s)) from the start, where d are the expected
visits of π. This is linear algebra over the states that π reaches, so many policies can be compared. It
guides the search only: what a tree guarantees is solved and verified over all of nature's sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import splu

from tightrope.model.objective import Direction
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.rules.states import name_choices
from tightrope.shield import table_of
from tightrope.solver.solution import Solution

STEP_PRICE = 1e-9
"""Added to every price, as a share of the value: a policy that waits for ever at no price is no good."""

FORGETS = 1e-11
"""How likely plays stop at each step, so that policies that never end have finite losses."""


class Evaluated(NamedTuple):
    """The loss of a policy as a share of the value, expected visits, and the loss from every state on."""

    loss: float
    visits: FloatArray
    to_go: FloatArray


@dataclass(frozen=True, eq=False)
class LossModel:
    """Prices of actions in the states that have something to decide (`rows`), and nature's answer.

    `offered[s, a]` is the choice with the action a in state s, −1 where there is none.
    """

    structure: Structure
    actions: tuple[str, ...]
    rows: OffsetArray
    offered: OffsetArray
    price: FloatArray
    robust: OffsetArray
    settled: BoolArray
    probability: FloatArray
    """Of transitions, times the discount."""
    scale: float

    @staticmethod
    def of(solution: Solution, robust: OffsetArray) -> LossModel:
        """The losses against the policy `robust`, which attains the values of the solution."""
        table, structure = table_of(solution), solution.kernel.structure
        value, settled = table.value[: structure.states], table.ranking[: structure.states] < 0
        start, objective = float(value[structure.initial]), solution.objective
        scale = max(abs(1 - start if objective.complement else start), 1e-12)
        names, number = name_choices(structure)
        rows = np.flatnonzero((np.diff(structure.choice_start) > 1) & ~settled)
        offered = np.full((structure.states, len(names)), -1, np.int64)
        offered[structure.choice_state, number] = np.arange(structure.choices)
        price = table.price[: structure.choices]
        price = np.where(np.isfinite(price), price, scale)
        if objective.discount is None:
            price += STEP_PRICE * scale * (value != 0)[structure.choice_state]
        price[settled[structure.choice_state]] = 0.0
        maximises = objective.agent is Direction.MAX
        probability = solution.kernel.answer(np.where(np.isfinite(value), value, scale), not maximises)
        return LossModel(
            structure=structure,
            actions=names,
            rows=rows,
            offered=offered,
            price=price,
            robust=robust,
            settled=settled,
            probability=probability * (objective.discount or 1 - FORGETS),
            scale=scale,
        )

    @cached_property
    def choice(self) -> OffsetArray:
        """The choices that rows offer, by action."""
        return self.offered[self.rows]

    @cached_property
    def available(self) -> BoolArray:
        return self.choice >= 0

    @cached_property
    def costs(self) -> FloatArray:
        """The price of every action in every row; the whole value where it is not possible."""
        return np.where(self.available, self.price[self.choice], self.scale)

    @cached_property
    def _step(self) -> sparse.csr_array:
        return self.structure.matrix(self.probability)

    @cached_property
    def _possible(self) -> sparse.csr_array:
        """The transitions of all natures, those of settled states left out."""
        structure = self.structure
        is_open = ~self.settled[structure.choice_state[structure.transition_choice]]
        return structure.matrix(is_open.astype(np.float64))

    def policy(self, action: OffsetArray) -> tuple[OffsetArray, BoolArray]:
        """The choice of every state, and rows without the action, where the robust policy acts."""
        chosen = np.take_along_axis(self.choice, action[:, None], axis=1)[:, 0]
        choice, missing = self.robust.copy(), chosen < 0
        choice[self.rows[~missing]] = chosen[~missing]
        return choice, missing

    def follow(self, action: OffsetArray) -> OffsetArray:
        """The choice of every state by the action of every state; the robust one where it is not possible."""
        chosen = self.offered[np.arange(len(action)), action]
        return np.where(chosen < 0, self.robust, chosen)

    def reached(self, choice: OffsetArray) -> OffsetArray:
        """The states that a policy reaches with some nature, in order."""
        graph = self._possible[choice]
        graph.eliminate_zeros()
        starts = self.structure.initial_states
        seen = [breadth_first_order(graph, start, return_predecessors=False) for start in starts]
        return np.unique(np.concatenate(seen)).astype(np.int64)

    def reaches(self, choice: OffsetArray, rows: BoolArray) -> bool:
        """Whether a policy comes to a state of these rows with some nature."""
        return bool(np.isin(self.rows[rows], self.reached(choice)).any())

    def evaluate(self, choice: OffsetArray, missing: BoolArray | None = None) -> Evaluated:
        """What a policy loses; `missing` rows cost the whole value where the policy reaches them."""
        structure, states = self.structure, self.reached(choice)
        live = states[~self.settled[states]]
        cost = np.where(self.settled, 0.0, self.price[choice])
        impossible = 0.0
        if missing is not None:
            cost[self.rows[missing]] += self.scale
            impossible = float(np.isin(self.rows[missing], live).any())
        visits, to_go = np.zeros(structure.states), np.zeros(structure.states)
        if len(live):
            within = self._step[choice[live]][:, live]
            factors = splu((sparse.eye_array(len(live)) - within).tocsc())
            start = np.isin(live, structure.initial_states).astype(np.float64)
            visits[live] = np.maximum(factors.solve(start, trans="T"), 0.0)
            to_go[live] = factors.solve(cost[live])
        worst = max(float(to_go[state]) for state in structure.initial_states)
        return Evaluated(worst / self.scale + impossible, visits, to_go)

    def after(self, to_go: FloatArray) -> FloatArray:
        """The loss of every action in every row, if the policy with the loss `to_go` acts from then on."""
        every = self.price + self._step @ to_go
        return np.where(self.available, every[self.choice], to_go[self.rows][:, None] + self.scale)
