"""`CVaR{"cost",α}min=? [ F "goal" ]`, conditional value at risk: the mean of the worst 1 − α of all costs.

CVaR is the least v + E[(X − v)⁺] / (1 − α) over all v (Rockafellar, Uryasev, 2000). Costs are whole numbers,
so the rest of a budget v is a finite memory. A minimising agent takes the least value over whole v, at most
the best value found. A maximising one may mix policies: the least over v of the largest value H(v), convex,
evaluated at a few points; lines through neighbours bound it from below elsewhere.

On interval models nature must want what the agent wants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.reward_bounds import through_choices
from tightrope.logic.solving import ANYTHING, Solve
from tightrope.logic.values import BoundedValue, StateBounds
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.model.product import MOST_STATES, Automaton, Letters, product_of
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.solver.solution import Solution

FIRST_BUDGET = 8
MOST_POINTS = 60
"""Of a convex function, that are evaluated per state."""
WIDE = "not close enough"
GRID = Fraction(1, 1 << 20)
"""Budgets are multiples of it, so that they and their parts are exact doubles."""


class CvarProblem:
    """The costs beyond any budget, for one reward, one objective and one level."""

    def __init__(self, model: MDP | IntervalMDP, objective: Objective, level: Fraction, solve: Solve):
        reward = objective.reward
        assert reward is not None
        self._model, self._solve, self._objective = model, solve, objective
        self._longer = through_choices(model)
        self._cost = reward.per_choice(model.structure)
        amounts, place = np.unique(np.concatenate([[0.0], self._cost]), return_inverse=True)
        letter = np.concatenate([np.full(model.states, place[0]), place[1:]])
        self._amounts, self._letters = amounts, Letters(letter.astype(np.int32), tuple(range(len(amounts))))
        exact = RationalArray.from_fractions([1 - level])
        self._share = StateBounds(exact.to_float_down(), exact.to_float_up())
        self.iterations = 0
        self.is_certified = True

    def values(self, starts: OffsetArray, budgets: OffsetArray, part: float = 0.0) -> StateBounds:
        """v + E[(X − v)⁺] / (1 − α) from states with budgets, v = budget − part; a row of all."""
        most = int(budgets.max())
        if most + 1 >= MOST_STATES:
            raise InputError(
                f"the costs are so large that budgets of {most:,} and more matter to CVaR",
                hint="scale the costs down in the model",
            )
        left = np.maximum(np.arange(most + 1)[:, None] - self._amounts[None, :], 0).astype(np.int32)
        product = product_of(Support.of(self._longer), self._letters, Automaton(left), starts, budgets)
        spent = self._amounts[self._letters.letter[product.state]]
        beyond = np.maximum(spent - product.memory, 0.0)
        beyond += np.where((product.memory > 0) & (spent >= product.memory), part, 0.0)
        objective = replace(self._objective, reward=RewardStructure(state=beyond))
        if objective.target is not None:
            on_choices = np.zeros(self._model.structure.choices, np.bool_)
            target: BoolArray = np.concatenate([objective.target, on_choices])[product.state]
            objective = replace(objective, target=target)
        if objective.upper_steps is not None:  # a step leads through the state of its choice
            objective = replace(objective, upper_steps=2 * objective.upper_steps)
        solution: Solution = self._solve(product.model(self._longer), objective)
        self.iterations += solution.iterations
        self.is_certified &= solution.is_certified
        excess = StateBounds(solution.lower[: len(starts)], solution.upper[: len(starts)])
        beginning = np.asarray(budgets - part, np.float64)
        ones = np.ones(len(starts))
        share = StateBounds(self._share.lower * ones, self._share.upper * ones)
        result = StateBounds(beginning, beginning).plus(excess.divided_by(share))
        return StateBounds(np.where(np.isposinf(excess.lower), np.inf, result.lower), result.upper)


def bound_least_cvar(problem: CvarProblem, starts: OffsetArray, states: int) -> BoundedValue:
    """Where the agent minimises, or nobody decides anything."""
    most = FIRST_BUDGET
    while True:
        budgets = np.tile(np.arange(most + 1), len(starts))
        result = problem.values(np.repeat(starts, most + 1), budgets)
        low, high = (end.reshape(len(starts), most + 1) for end in (result.lower, result.upper))
        best = high.min(axis=1)
        if (best[np.isfinite(best)] <= most + 1).all():  # a larger budget is worth at least itself
            break
        most *= 2
    lower, upper = (np.full(states, end) for end in ANYTHING)
    lower[starts], upper[starts] = (
        np.minimum(low.min(axis=1), np.where(np.isinf(best), np.inf, most + 1)),
        best,
    )
    return BoundedValue(StateBounds(lower, upper), problem.iterations, None if problem.is_certified else WIDE)


def bound_largest_cvar(
    problem: CvarProblem, starts: OffsetArray, states: int, level: Fraction, precision: float
) -> BoundedValue:
    """Where the agent maximises."""
    lower, upper = (np.full(states, end) for end in ANYTHING)
    missed = False
    for start in starts.tolist():

        def value(v: float, start: int = start) -> tuple[float, float]:
            budget = int(np.ceil(v))
            result = problem.values(np.array([start]), np.array([budget]), budget - v)
            return float(result.lower[0]), float(result.upper[0])

        convex = Convex(value, 1 - 1 / (1 - level))
        low, high = convex.minimum(precision)
        lower[start], upper[start] = low, high = max(low, 0.0), high  # costs are not negative
        missed |= low < high and not high - low <= precision * max(1.0, abs(low))
    wide = missed or not problem.is_certified
    return BoundedValue(StateBounds(lower, upper), problem.iterations, WIDE if wide else None)


class Convex:
    """The least value of a convex function H(v) ≥ v on [0, ∞), whose slope is at most 1, and `leftmost` for
    v below 0.

    Lines through points are followed exactly, by rationals; the points are multiples of `GRID`."""

    def __init__(self, value: Callable[[float], tuple[float, float]], leftmost: Fraction):
        self._value, self._leftmost = value, leftmost
        self._seen: dict[Fraction, tuple[Fraction, Fraction]] = {}

    def minimum(self, precision: float) -> tuple[float, float]:
        """Bounds on it."""
        first = self._value(0.0)
        if not np.isfinite(first).all():
            return first
        self._seen[Fraction(0)] = Fraction(first[0]), Fraction(first[1])
        self._try(Fraction(1))
        for _ in range(MOST_POINTS):
            least, where = self._below()
            best = min(high for _, high in self._seen.values())
            if best - least <= Fraction(precision) * max(Fraction(1), abs(best)) or not self._try(where):
                break
        exact = RationalArray.from_fractions([self._below()[0], min(high for _, high in self._seen.values())])
        return float(exact.to_float_down()[0]), float(exact.to_float_up()[1])

    def _try(self, where: Fraction) -> bool:
        """Evaluate near a point; whether that was a new one."""
        v = Fraction(round(where / GRID)) * GRID
        if v in self._seen:
            return False
        low, high = self._value(float(v))
        self._seen[v] = Fraction(low), Fraction(high)
        return True

    def _below(self) -> tuple[Fraction, Fraction]:
        """A bound from below on all values, and where it is attained."""
        points = [KnownCosts(v, *ends) for v, ends in sorted(self._seen.items())]
        best, where = min((point.low, point.v) for point in points)
        falls = [self._leftmost, *((b.low - a.high) / (b.v - a.v) for a, b in pairwise(points))]
        rises = [*((b.high - a.low) / (b.v - a.v) for a, b in pairwise(points)), Fraction(1)][1:]
        result = [
            _crossing(one, other, fall, rise)
            for (one, other), fall, rise in zip(pairwise(points), falls[:-1], rises, strict=True)
        ]
        last = points[-1]
        if falls[-1] < 0:  # behind the last point: on its line, and at least v
            at = max((last.low - falls[-1] * last.v) / (1 - falls[-1]), last.v)
            result.append((at, at))
        return min([*result, (best, where)])


@dataclass(frozen=True)
class KnownCosts:
    """A point of the function, and bounds on its value."""

    v: Fraction
    low: Fraction
    high: Fraction


def _crossing(
    one: KnownCosts, other: KnownCosts, falls: Fraction, rises: Fraction
) -> tuple[Fraction, Fraction]:
    """The least value between two points of two lines no steeper than `falls` and `rises`, and where."""
    if falls >= 0:
        return one.low, one.v
    if rises <= 0:
        return other.low, other.v
    at = (other.low - one.low + falls * one.v - rises * other.v) / (falls - rises)
    at = min(max(at, one.v), other.v)
    return max(one.low + falls * (at - one.v), other.low + rises * (at - other.v)), at
