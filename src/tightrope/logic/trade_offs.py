"""Several objectives at once: what one policy can achieve of all of them, with certified bounds.

Every objective is turned so that more is better. For weights w ≥ 0 one solve gives an upper bound U(w) on
Σ w·y over all policies, and a policy, whose objectives are then bounded one by one: a point y that it attains
at least. Mixtures of policies (drawn once, when a play begins) attain mixtures of points, and no policy lies
beyond w·y ≤ U(w); so points are an inner and weights an outer bound of what is achievable (Forejt,
Kwiatkowska, Parker, 2012). On interval models nature is against every objective on its own for points, and
against the sum for weights: what is said to be achieved holds whatever nature does, and what is said to be
impossible fails under some pick of nature.

A play may *rest* in an end component in which nothing is earned or paid (`resting`): there it satisfies all
that its memory has settled, and of the formulas about what happens for ever one of the largest sets that can
be satisfied together almost surely. The model that is solved has one state for each such component, with all
ways out of it and a choice to stop for every such set.

Maximised rewards are sums of gains until a play stops, minimised ones sums of costs. Both together are added
with their signs, which has a meaning where nothing can be earned or paid for ever; otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.formula import Formula
from tightrope.logic.resting import Resting, rest_of
from tightrope.logic.solving import require_constant
from tightrope.logic.translation import progression
from tightrope.model.graph.components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.product import Letters, beside, product_of
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.solution import Solution

Solve = Callable[[MDP | IntervalMDP, Objective, Policy | None], Solution]


class Sums(Enum):
    """What is added up on the way."""

    GAINS = "maximised rewards, or none"
    COSTS = "minimised rewards"
    BOTH = "rewards of both directions"


@dataclass(frozen=True, eq=False)
class Wish:
    """One objective: the probability of a `formula`, which is the negation of what is minimised, or a total
    `reward` (one number per choice)."""

    text: str
    is_maximised: bool
    formula: Formula | None = None
    reward: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Point:
    """What a policy attains at least of every objective, each turned so that more is better."""

    value: FloatArray
    policy: OffsetArray


class TradeOffs:
    """The objectives on one product, from one initial state, solved for any weights."""

    def __init__(
        self,
        model: MDP | IntervalMDP,
        wishes: Sequence[Wish],
        atoms: list[BoolArray],
        solve: Solve,
        start: int,
    ):
        self.base, self.wishes, self._solve = model, wishes, solve
        self.is_steered = len(model.structure.initial_states) == 1  # where controllers begin
        require_constant(model, "several objectives")
        directions = {wish.is_maximised for wish in wishes if wish.reward is not None}
        self.sums = Sums.BOTH if len(directions) == 2 else Sums.COSTS if False in directions else Sums.GAINS
        self.letters = Letters.of(atoms, model.states)
        formulas = [wish.formula for wish in wishes if wish.formula is not None]
        parts = [progression(formula, self.letters.bits) for formula in formulas]
        self.automaton, states = beside([part[0] for part in parts], self.letters.bits)
        self.product = product_of(Support.of(model), self.letters, self.automaton, np.array([start]))
        lefts = [[left[state[i]] for state in states] for i, (_, left) in enumerate(parts)]
        free = np.ones(self.product.structure.choices, np.bool_)
        for reward in self._running:
            free &= reward == 0
        there = self.product.model(model)
        self.resting: Resting = rest_of(there, self.product, formulas, lefts, self.letters, free)
        self.model = self.resting.model
        if self.sums is Sums.BOTH:
            self._require_end()

    @property
    def count(self) -> int:
        return len(self.wishes)

    def upper(self, weights: FloatArray) -> tuple[float, Point]:
        """A bound on Σ w·y over all policies, and what the policy that was found attains."""
        total = sum(
            (w * part for w, part in zip(weights, self._parts, strict=True)), np.zeros(self.model.choices)
        )
        solution = self._solve(self.model, self._objective(total), None)
        policy = solution.policy
        if self.sums is Sums.COSTS:
            spared = sum(w for w, wish in zip(weights, self.wishes, strict=True) if wish.formula is not None)
            bound = float(np.nextafter(np.nextafter(spared, np.inf) - solution.lower[0], np.inf))
        else:
            bound = float(solution.upper[0])
        return bound, Point(np.array([self._evaluate(i, policy) for i in range(self.count)]), policy.choice)

    def controller(self, point: Point) -> Policy:
        """The policy of a point, with what it does where it rests."""
        rows = self.resting.rows(point.policy, self.automaton, self.letters)
        return Policy(self.base, rows.restrict_to_reached(Support.of(self.base)))

    def _evaluate(self, number: int, policy: Policy) -> float:
        solution = self._solve(self.model, self._objective(self._parts[number]), policy)
        if self.sums is not Sums.COSTS:
            return float(solution.lower[0])
        worst = float(solution.upper[0])
        return float(np.nextafter(1 - worst, -np.inf)) if self.wishes[number].formula is not None else -worst

    def _objective(self, reward: FloatArray) -> Objective:
        earned = RewardStructure(choice=reward)
        if self.sums is Sums.GAINS:
            return Objective(ObjectiveKind.TOTAL, Direction.MAX, Direction.MIN, reward=earned)
        done = np.zeros(self.model.states, np.bool_)
        done[-1] = True
        agent = Direction.MIN if self.sums is Sums.COSTS else Direction.MAX
        return Objective(ObjectiveKind.REACH_REWARD, agent, agent.opposite, target=done, reward=earned)

    def _require_end(self) -> None:
        going_on = np.ones(self.model.states, np.bool_)
        going_on[-1] = False
        if maximal_end_components(Support.of(self.model), within=going_on).count:
            raise InputError(
                "rewards that are to be large and rewards that are to be small go together in multi(…) where "
                "none of them can be earned for ever",
                hint="ask for one of the two kinds beside probabilities",
            )

    @cached_property
    def _running(self) -> list[FloatArray]:
        """The rewards of choices of the product; zero for probabilities."""
        nothing = np.zeros(self.product.structure.choices)
        return [nothing if w.reward is None else w.reward[self.product.choice] for w in self.wishes]

    @cached_property
    def _parts(self) -> list[FloatArray]:
        """What every choice of the model that is solved gives to, or takes from, each objective."""
        own, found = self.resting.own, []
        gained = iter(self.resting.satisfied)
        for wish, running in zip(self.wishes, self._running, strict=True):
            part = np.where(own >= 0, running[np.maximum(own, 0)], 0.0)
            if self.sums is Sums.BOTH and not wish.is_maximised:
                part = -part
            stops = (own < 0) & (own >= -self.resting.stops)
            if wish.formula is not None:
                won = next(gained)[-1 - own[stops]].astype(np.float64)
                part[stops] = 1 - won if self.sums is Sums.COSTS else won
            found.append(part)
        return found


def exact_point(point: FloatArray) -> list[Fraction]:
    """The numbers that doubles are; −∞ is what no mixture may use."""
    return [Fraction(float(value)) for value in point]
