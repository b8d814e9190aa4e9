"""The solver against brute force in exact rationals: bounds hold, meet, and their policies attain them.

Small random models with few successors, so that end components, cycles without reward, ties and
transitions that nature can cut are the rule. Values are compared exactly: lower ≤ value ≤ upper as
rationals.

Also of `solver/elimination.py`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from cases.exact_values import KINDS, assert_encloses, draw, exact
from effort import repeats
from exact_reference import TinyModel, brute_force, random_model, random_objective
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.solver import Solution, solve

MODELS = repeats(36)
GAMES = (16, 103, 104)
"""Seeds of models that are solved as games: one player could idle forever, and the other one answers."""


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("agent", "nature"), list(product(Direction, Direction)))
def test_bounds_enclose_the_value_and_meet(kind: ObjectiveKind, agent: Direction, nature: Direction) -> None:
    for seed in sorted({*range(MODELS), *GAMES}):
        rng, model = draw(seed)
        objective = random_objective(rng, model, kind, agent, nature)
        solution = solve(model.model(), objective)
        assert_encloses(solution, brute_force(model, objective), seed)
        assert solution.is_certified, (seed, solution.status)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("agent", "nature"), list(product(Direction, Direction)))
def test_the_policy_attains_its_bound(kind: ObjectiveKind, agent: Direction, nature: Direction) -> None:
    for seed in range(1000, 1000 + MODELS // 2):
        rng, model = draw(seed)
        objective = random_objective(rng, model, kind, agent, nature)
        solution = solve(model.model(), objective)
        start = model.structure.choice_start
        chosen = TinyModel(
            tuple((state[int(solution.choice[s] - start[s])],) for s, state in enumerate(model.choices))
        )
        under = brute_force(chosen, _restricted(objective, model, solution))
        for s, value in enumerate(under):
            if agent is Direction.MAX:
                assert value >= exact(solution.fixpoint_lower[s]), (seed, s)
            else:
                assert value <= exact(solution.fixpoint_upper[s]), (seed, s)


def _restricted(objective: Objective, model: TinyModel, solution: Solution) -> Objective:
    """The objective on the chain of the policy."""
    from dataclasses import replace

    from tightrope.model.structure import RewardStructure

    if objective.reward is None:
        return objective
    each = objective.reward.per_choice(model.structure)
    return replace(objective, reward=RewardStructure(choice=each[solution.choice]))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", KINDS)
def test_fixed_policies(kind: ObjectiveKind) -> None:
    for seed in range(2000, 2000 + MODELS // 2):
        rng, model = draw(seed)
        for nature in Direction:
            objective = random_objective(rng, model, kind, Direction.MAX, nature)
            structure = model.structure
            picks = [int(rng.integers(len(state))) for state in model.choices]
            weights = [
                [Fraction(int(i == pick)) for i in range(len(state))]
                for state, pick in zip(model.choices, picks, strict=True)
            ]
            values = brute_force(model, objective, weights=weights)
            solution = solve(model.model(), objective, policy=picks)
            assert_encloses(solution, values, seed)
            assert solution.is_certified and solution.policy == Policy(structure, picks)

            mixed = [[Fraction(1, len(state))] * len(state) for state in model.choices]
            values = brute_force(model, objective, weights=mixed)
            flat = np.array([float(w) for state in mixed for w in state])
            solution = solve(model.model(), objective, policy=flat)
            assert_encloses(solution, values, seed)
            assert solution.is_certified


def test_plain_and_point_intervals_agree() -> None:
    for seed in range(3000, 3030):
        rng = np.random.default_rng(seed)
        model = random_model(rng, 4, intervals=False, denominator=10)
        objective = random_objective(rng, model, ObjectiveKind.UNTIL, Direction.MAX, Direction.MIN)
        values = brute_force(model, objective)
        assert_encloses(solve(model.model(), objective), values, seed)
        assert_encloses(solve(model.interval_model(), objective), values, seed)


def test_absolute_precision() -> None:
    for seed in range(4000, 4020):
        rng, model = draw(seed)
        objective = random_objective(rng, model, ObjectiveKind.REACH_REWARD, Direction.MIN, Direction.MAX)
        solution = solve(model.model(), objective, precision=1e-9, relative=False)
        assert_encloses(solution, brute_force(model, objective), seed)
        finite = np.isfinite(solution.upper)
        assert np.all(solution.upper[finite] - solution.lower[finite] <= 1e-9)
        assert solution.is_certified
