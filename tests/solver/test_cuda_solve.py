"""Whole solves on the device: bounds enclose exact values, agree with the CPU's, and pass the checker.

Also of `solver/cuda/kernel.py`.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from cases import rectangular_models as regions
from cases.exact_values import KINDS, assert_encloses, draw
from cases.slow_models import cost_grid, hesitant_walk, two_ways
from cuda_cases import DEVICE, device, random_intervals, random_structure
from exact_reference import brute_force, random_objective
from tightrope.ambiguity.sets import SetsKind, rectangular
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.certify.problem import to_problem
from tightrope.certify.solved import to_certificate
from tightrope.data.simulator import Simulator
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.problem import Problem
from tightrope.regions.event_polytope import polytope_region
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.cuda.backend import Factoriser
from tightrope.solver.solution import Solution, Status
from tightrope.solver.solve import Workspace, operator_of, solve
from tightrope_check.checker import check

pytestmark = pytest.mark.compiler

MIN, MAX = Direction.MIN, Direction.MAX


@pytest.fixture(autouse=True)
def small_segments() -> None:
    device()


def assert_same_values(there: Solution, here: Solution) -> None:
    """Both enclose the same value, and both as closely as was asked."""
    assert there.status is here.status
    assert np.all(there.lower <= here.upper) and np.all(here.lower <= there.upper)
    assert there.gap <= there.precision or not there.is_certified


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("agent", "nature"), list(product(Direction, Direction)))
def test_bounds_enclose_the_exact_value_and_meet(
    kind: ObjectiveKind, agent: Direction, nature: Direction
) -> None:
    """Small random models: end components, zero bounds, ties, infinite rewards."""
    for seed in range(300, 306):
        rng, model = draw(seed)
        objective = random_objective(rng, model, kind, agent, nature)
        solution = solve(model.model(), objective, device=DEVICE)
        assert_encloses(solution, brute_force(model, objective), seed)
        assert solution.is_certified, (seed, solution.status)
        assert check(to_certificate(to_problem(model.model(), objective), solution)).valid, seed


def test_a_cyclic_grid_is_solved_transposed_and_its_certificate_checks() -> None:
    model, objective = cost_grid(12, 6)
    workspace = Workspace(DEVICE)
    here, there = solve(model, objective), solve(model, objective, workspace=workspace)
    assert_same_values(there, here)
    assert there.is_certified
    layout = workspace.place(there.kernel).model.layout
    assert [rows.k for rows in layout.segments] == [3] and layout.distinct == 6
    assert check(to_certificate(to_problem(model, objective), there)).valid


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["betting(5)", "aircraft(8,4)", "rover(6,6)", "glider(7,7)", "parallel(2)"])
def test_the_case_studies_have_the_values_of_the_cpu(name: str) -> None:
    instance = parse_bench(f"bench:{name}")
    model = load(instance)
    objective = question(instance, model.structure).objective
    point = model.instantiate(instance.truth)
    assert_same_values(solve(point, objective, device=DEVICE), solve(point, objective))
    reach = np.where(model.expressions.is_constant[model.expression], 0.0, 0.02)
    bounds = np.maximum(point.probability - reach, 0.0), np.minimum(point.probability + reach, 1.0)
    interval = IntervalMDP(model.structure, *bounds)
    for nature in (MIN, MAX):
        asked = replace(objective, nature=nature)
        assert_same_values(solve(interval, asked, device=DEVICE), solve(interval, asked))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cyclic", [False, True])
def test_rectangular_sets(seed: int, cyclic: bool) -> None:
    model = regions.random_model(seed, cyclic=cyclic)
    intervals = regions.random_intervals(model, seed)
    sets = rectangular(polytope_region(intervals), model, intervals.expression_bounds())
    kernel = operator_of(sets)
    for nature in (MIN, MAX):
        objective = regions.reach(model, MAX, nature)
        here, there = solve(kernel, objective), solve(kernel, objective, device=DEVICE)
        assert there.status is here.status is Status.CERTIFIED
        assert np.allclose(there.lower, here.lower, rtol=2e-6, atol=1e-9)
        assert np.allclose(there.upper, here.upper, rtol=2e-6, atol=1e-9)


def test_a_model_stays_on_the_device_between_solves() -> None:
    model, objective = cost_grid(6, 3)
    kernel, workspace = IntervalOperator.of(model), Workspace(DEVICE)
    first = solve(kernel, objective, workspace=workspace)
    before = workspace.place(kernel).model
    solve(kernel, replace(objective, nature=MIN), workspace=workspace)
    again = solve(kernel, objective, workspace=workspace)
    assert workspace.place(kernel).model is before
    assert np.array_equal(first.lower, again.lower) and np.array_equal(first.upper, again.upper)
    gone = weakref.ref(before)
    del before, workspace
    assert gone() is None, "a model leaves the device with the workspace"


def test_fixed_and_randomised_policies_and_bounded_objectives() -> None:
    rng = np.random.default_rng(4)
    structure = random_structure(rng, 8, uniform=False)
    model = random_intervals(rng, structure, coarse=True)
    target = np.arange(8) == 5
    objective = Objective(ObjectiveKind.UNTIL, MAX, MIN, target=target)
    fixed = np.zeros(structure.states, np.int64)
    weights = np.repeat(1 / np.diff(structure.choice_start), np.diff(structure.choice_start))
    for policy in (fixed, weights):
        for asked in (objective, replace(objective, upper_steps=7), replace(objective, lower_steps=2)):
            here, there = (
                solve(model, asked, policy=policy),
                solve(model, asked, policy=policy, device=DEVICE),
            )
            assert_same_values(there, here)


def test_slow_models_are_factorised_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    original = Factoriser.solve

    def counted(self: Factoriser, *given: Any, **named: Any) -> Any:
        solution = original(self, *given, **named)
        found.append(solution[0] is not None)
        return solution

    monkeypatch.setattr(Factoriser, "solve", counted)
    instance = parse_bench("bench:engagement(25)")
    model = load(instance)
    objective = question(instance, model.structure).objective
    point = model.instantiate(instance.truth)
    there = solve(point, objective, device=DEVICE)
    assert_same_values(there, solve(point, objective))
    assert there.is_certified and there.iterations < 1000
    assert found and all(found)


def test_limits_are_a_status() -> None:
    model, objective = cost_grid(12, 12)
    limited = solve(model, objective, iterations=10, device=DEVICE)
    assert limited.status is Status.ITERATION_LIMIT
    exact = solve(model, objective)
    assert np.all(limited.lower <= exact.upper) and np.all(exact.lower <= limited.upper)


@pytest.mark.costly("test_rectangular_sets")
def test_learning_on_the_device_gives_the_same_intervals() -> None:
    instance = parse_bench("bench:aircraft(20,10)")
    model = load(instance)
    counts = Simulator(model.instantiate(instance.truth), cap=100, model_hash=model.hash()).episodes(
        200, seed=3
    )
    objective = question(instance, model.structure).objective
    options = LearnOptions(sets=SetsKind.RECTANGULAR)
    here = learn(Problem(model, objective), counts, delta=0.01, **options.words)
    there = learn(Problem(model, objective), counts, delta=0.01, **replace(options, device=DEVICE).words)
    assert there.robust.interval.lower == pytest.approx(here.robust.interval.lower, rel=1e-6)
    assert there.robust.interval.upper == pytest.approx(here.robust.interval.upper, rel=1e-6)


@pytest.mark.parametrize("agent", list(Direction))
def test_equally_good_ways_of_different_length(agent: Direction) -> None:
    """Margins of the shorter way do not hold; equations shifted by them get the time they need."""
    solution = solve(*two_ways(0.0002, agent), device=DEVICE, iterations=20_000)
    assert solution.is_certified
    assert np.all(solution.lower[:4] <= 0.5) and np.all(solution.upper[:4] >= 0.5)


def test_choices_that_never_stop_at_first_do_not_rule_factorisation_out() -> None:
    solution = solve(*hesitant_walk(300), device=DEVICE, iterations=30_000)
    assert solution.is_certified
    assert solution.lower[0] <= 104_700 <= solution.upper[0]
