"""Slopes of values over plain arrays against those of the coupled solver; best policies against `solve`."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from learning_cases import case
from tightrope.coupled.taylor import ValueGradient
from tightrope.learning.bet_policy import question_of
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.solver.solve import solve
from tightrope.statistics.coordinates import Coordinates
from tightrope_check.search.value_slopes import (
    Elimination,
    GraphQuestion,
    Matrix,
    SolvedEquations,
    best_policy,
    find_reached,
    layers_of,
    value_slopes,
)


def setting(name):
    known = case(name)
    coordinates = Coordinates.of(known.model.expressions, known.model.parameters)
    functions = coordinates.functions(known.model.expressions)
    x = coordinates.lift(np.array([[float(value) for value in known.instance.truth]]))[0]
    chance = np.clip(functions.constant + functions.linear @ x, 0.0, 1.0)
    return known, functions, x, chance[known.model.expression]


def asked(objective, other):
    if other == "min":
        return replace(objective, agent=Direction.MIN)
    if other == "steps":
        return replace(objective, upper_steps=10, lower_steps=2)
    if other == "late":
        return replace(objective, lower_steps=3)
    if other == "discounted":
        return replace(objective, kind=ObjectiveKind.DISCOUNTED, target=None, discount=0.9)
    if other == "complement":
        return replace(objective, complement=True)
    return objective


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("glider(4,4)", ""),
        ("glider(4,4)", "discounted"),
        ("parallel(3)", ""),
        ("aircraft(8,4)", "steps"),
        ("aircraft(8,4)", "late"),
        ("rover(4,4)", "complement"),
    ],
)
def test_slopes_are_those_of_the_coupled_solver(name, other):
    known, functions, x, probability = setting(name)
    objective = asked(known.objective, other)
    start = known.model.structure.choice_start
    mixed = np.repeat(1.0 / np.diff(start), np.diff(start))
    for weight in (known.policy.probability, mixed):
        found = value_slopes(question_of(known.model, objective), weight, probability)
        policy = Policy(known.model, weight)
        wanted = ValueGradient.of(known.model, objective, policy, functions).at(x)
        gradient = np.bincount(known.model.expression[found[0]], found[1], len(functions)) @ functions.linear
        assert np.any(wanted != 0)
        assert gradient == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("glider(4,4)", ""),  # cycles
        ("glider(4,4)", "min"),
        ("glider(4,4)", "discounted"),
        ("engagement(3)", ""),
        ("parallel(3)", ""),  # layers
        ("aircraft(8,4)", "min"),
        ("rover(4,4)", ""),
    ],
)
def test_the_best_policy_is_best(name, other):
    known, _, _, probability = setting(name)
    objective = asked(known.objective, other)
    question = question_of(known.model, objective)
    assert (question.layers is None) == (name.startswith(("glider", "engagement")) or other == "discounted")
    model, initial = MDP(known.model.structure, probability), known.model.initial
    best = solve(model, objective, precision=1e-10)
    found = best_policy(question, probability)
    for choice in (found, best_policy(question, probability, found)):
        weight = np.zeros(known.model.structure.choices)
        weight[choice] = 1.0
        own = solve(model, objective, policy=Policy(known.model, weight), precision=1e-10)
        assert own.lower[initial] == pytest.approx(best.lower[initial], rel=1e-8)


@pytest.mark.parametrize("kind", ["UNTIL", "UNTIL min", "REACH_REWARD min"])
def test_the_best_policy_terminates_wherever_one_can(kind):
    """Cycles without rewards and end components: every change that gains keeps a way to the end."""
    rng = np.random.default_rng(7)
    for _ in range(60):
        states, choices = 6, 18
        successor = rng.integers(states, size=2 * choices).astype(np.int32)
        successor[-6:] = states - 1  # the last state stays, and is the target
        share = rng.integers(1, 10, size=choices) / 10
        probability = np.stack([share, 1 - share], axis=1).ravel()
        reward = rng.integers(3, size=choices) * (rng.random(choices) < 0.5) * 1.0
        question = GraphQuestion(
            np.arange(0, choices + 1, 3),
            np.arange(0, 2 * choices + 1, 2),
            successor,
            0,
            kind.split()[0],
            not kind.endswith("min"),
            False,
            reward=reward if kind.startswith("REACH") else None,
            target=np.arange(states) == states - 1,
        )
        policy = best_policy(question, probability)
        moves = np.stack([2 * policy, 2 * policy + 1], axis=1)
        owner = np.repeat(np.arange(states), 2)
        reaches = find_reached(states, successor[moves].ravel(), owner, np.array([states - 1]))
        assert reaches[~question.decided[0]].all()


def test_ways_through_a_graph():
    origin, successor = np.array([0, 0, 1, 3]), np.array([1, 2, 2, 1])
    assert layers_of(4, origin, successor).tolist() == [2, 1, 0, 2]
    assert layers_of(4, np.append(origin, 2), np.append(successor, 0)) is None
    assert find_reached(4, origin, successor, np.array([1])).tolist() == [False, True, True, False]


@pytest.mark.parametrize("ordered", [True, False])
def test_equations_are_solved_without_scipy(ordered):
    rng = np.random.default_rng(5)
    for size in (1, 2, 7, 60):
        row, column = rng.integers(0, size, (2, 4 * size))
        if ordered:
            row, column = np.maximum(row, column), np.minimum(row, column)
            row, column = row[row > column], column[row > column]
        value = rng.random(len(row))
        total = np.bincount(row, value, size)[row] * rng.uniform(1.001, 3.0)
        matrix = Matrix(row, column, value / total, size)
        dense = np.eye(size)
        np.subtract.at(dense, (row, column), value / total)
        right, factor = rng.standard_normal(size), Elimination(matrix, ordered)
        assert factor.solve(right) == pytest.approx(np.linalg.solve(dense, right), rel=1e-9, abs=1e-9)
        assert factor.solve(right, "T") == pytest.approx(np.linalg.solve(dense.T, right), rel=1e-9, abs=1e-9)


def test_slopes_without_scipy_are_the_same(monkeypatch):
    known, _, _, probability = setting("glider(4,4)")
    question = question_of(known.model, known.objective)
    fast = value_slopes(question, known.policy.probability, probability)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    slow = value_slopes(question, known.policy.probability, probability)
    np.testing.assert_array_equal(fast[0], slow[0])
    np.testing.assert_allclose(fast[1], slow[1], rtol=1e-10, atol=1e-10)


def test_singular_equations_have_no_solution():
    matrix = Matrix(np.array([0, 1]), np.array([1, 0]), np.ones(2), 2)
    assert SolvedEquations.of(matrix, np.ones(2), np.zeros(2), np.arange(2), False) is None
    with pytest.raises(ZeroDivisionError):
        Elimination(matrix, False)
