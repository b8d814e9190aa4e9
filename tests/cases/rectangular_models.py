"""Random parametric models with regions small enough for exact optima."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from region_reference import with_intervals
from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.equations.system import System, equations_of
from tightrope.statistics.estimates import Budget, EventIntervals

F = Fraction


def distribution(rng: np.random.Generator, size: int) -> list[Fraction]:
    weights = [int(w) for w in rng.integers(0, 6, size)]
    weights[int(rng.integers(size))] += 1
    return [F(w, sum(weights)) for w in weights]


def mixtures(rng: np.random.Generator, parameters: int, size: int) -> list[Polynomial]:
    """Affine probabilities on the unit box: a mean of coins that choose between two distributions each."""
    total = [Polynomial({}) for _ in range(size)]
    for i in range(parameters):
        coin = Polynomial.variable(i)
        heads, tails = distribution(rng, size), distribution(rng, size)
        for j in range(size):
            share = coin * Polynomial.constant(heads[j]) + (
                Polynomial.constant(1) - coin
            ) * Polynomial.constant(tails[j])
            total[j] = total[j] + share * Polynomial.constant(F(1, parameters))
    return total


def random_model(seed: int, parameters: int = 2, states: int = 7, cyclic: bool = False) -> ParametricMDP:
    """States 0..n−1, the last two absorbing; choices with two to five successors."""
    rng = np.random.default_rng(seed)
    domain = Parameters.unit_box(tuple("pqr"[:parameters]))
    rows: list[tuple[int, str, dict[int, Polynomial]]] = []
    for state in range(states - 2):
        for action in "ab"[: 1 + int(rng.integers(2))]:
            first = 0 if cyclic else state + 1
            reachable = np.arange(first, states)
            count = min(int(rng.integers(2, 6)), len(reachable))
            successors = rng.choice(reachable, count, replace=False)
            if cyclic and states - 1 not in successors:
                successors[0] = states - 1
            probabilities = mixtures(rng, parameters, count)
            rows.append((state, action, dict(zip(map(int, successors), probabilities, strict=True))))
    for state in (states - 2, states - 1):
        rows.append((state, "stay", {state: Polynomial.constant(1)}))
    model = build_from_rows(rows, domain)
    assert isinstance(model, ParametricMDP)
    return model


def random_intervals(model: ParametricMDP, seed: int) -> EventIntervals:
    """Intervals with short binary ends around a point inside."""
    rng = np.random.default_rng(seed)
    point = [F(int(v), 16) for v in rng.integers(3, 14, len(model.parameters))]
    given = with_intervals(model, [], [], Budget.TIED)
    lower, upper = [], []
    for event in range(len(given.events)):
        value = math.floor(given.events.function(event).evaluate(point) * 256)
        lower.append(max(0, value - int(rng.integers(0, 40))) / 256)
        upper.append(min(256, value + 1 + int(rng.integers(0, 40))) / 256)
    return with_intervals(model, lower, upper, Budget.TIED)


def reach(model: ParametricMDP, agent: Direction, nature: Direction) -> Objective:
    target = np.zeros(model.states, np.bool_)
    target[-1] = True
    return Objective(ObjectiveKind.UNTIL, agent, nature, target=target)


def system_of(model: ParametricMDP, kernel: RectangularOperator, nature: Direction) -> System:
    support = kernel.intervals.support
    enabled = np.ones(model.choices, np.bool_)
    return equations_of(reach(model, Direction.MAX, nature), model.structure, support, enabled).system
