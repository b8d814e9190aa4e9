"""Rectangular sets against exact rational brute force: nature's problem, whole solves, degenerate regions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cases.rectangular_models import F, random_intervals, random_model, reach, system_of
from region_reference import exact_vertices, generative, region_rows, with_intervals
from tightrope.ambiguity.rectangular_inner import inner_value, outer_value, walk
from tightrope.ambiguity.region_shape import shape_of
from tightrope.ambiguity.sets import Sets, expression, rectangular
from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import RewardStructure
from tightrope.regions.event_polytope import polytope_region
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import build_region, own_kinds, region_kind
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.solution import Status
from tightrope.solver.solve import operator_of, solve
from tightrope.statistics.estimates import Budget

MIN, MAX = Direction.MIN, Direction.MAX


def exact_optimum(
    model: ParametricMDP, vertices: list[list[Fraction]], choice: int, values: list[Fraction], maximise: bool
) -> Fraction:
    start, end = int(model.transition_start[choice]), int(model.transition_start[choice + 1])
    found = []
    for vertex in vertices:
        total = F(0)
        for t in range(start, end):
            probability = model.expressions.polynomial(int(model.expression[t])).evaluate(vertex)
            total += probability * values[int(model.successor[t])]
        found.append(total)
    return max(found) if maximise else min(found)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
def test_nature_is_enclosed_on_the_safe_side_of_the_exact_optimum(seed: int) -> None:
    model = random_model(seed, parameters=3 if seed == 3 else 2, states=6)
    intervals = random_intervals(model, seed)
    vertices = exact_vertices(region_rows(intervals))
    kernel = RectangularOperator.of(
        rectangular(polytope_region(intervals), model, intervals.expression_bounds())
    )
    assert kernel.shape.joint.any()
    workspace = kernel.open_workspace()
    rng = np.random.default_rng(seed)
    for _ in range(4):
        values = rng.integers(-64, 64, model.states) / 16.0
        exact = [F(float(v)) for v in values]
        for nature in (MIN, MAX):
            system = system_of(model, kernel, nature)
            low, high = (kernel.safe_choices(system, values, upward, workspace) for upward in (False, True))
            answer = kernel.answer(values, nature is MAX, workspace)
            sums = np.add.reduceat(answer, model.transition_start[:-1])
            assert answer.min() >= 0.0 and np.abs(sums - 1.0).max() < 2e-15
            attained = np.add.reduceat(answer * values[model.successor], model.transition_start[:-1])
            for choice in range(model.choices):
                optimum = exact_optimum(model, vertices, choice, exact, nature is MAX)
                if nature is MIN:
                    assert F(float(low[choice])) <= optimum
                else:
                    assert F(float(high[choice])) >= optimum
                assert abs(low[choice] - float(optimum)) < 1e-9
                assert abs(high[choice] - float(optimum)) < 1e-9
                assert abs(attained[choice] - float(optimum)) < 1e-9
    assert workspace.region.pool.used[1] == 0, "a vertex found no room"


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("agent", [MAX, MIN])
def test_robust_and_optimistic_values_of_acyclic_models_are_the_exact_ones(
    seed: int, agent: Direction
) -> None:
    model = random_model(seed + 20)
    intervals = random_intervals(model, seed)
    vertices = exact_vertices(region_rows(intervals))
    region = polytope_region(intervals)
    sets = rectangular(region, model, intervals.expression_bounds())
    wide = expression(region, model, intervals.expression_bounds())
    for nature in (MIN, MAX):
        value = [F(0)] * (model.states - 1) + [F(1)]
        for state in range(model.states - 3, -1, -1):
            choices = range(int(model.choice_start[state]), int(model.choice_start[state + 1]))
            each = [exact_optimum(model, vertices, c, value, nature is MAX) for c in choices]
            value[state] = max(each) if agent is MAX else min(each)
        objective = reach(model, agent, nature)
        solution = solve(sets, objective)
        assert solution.is_certified
        for state in range(model.states):
            if nature is MIN:
                assert F(float(solution.lower[state])) <= value[state]
            else:
                assert F(float(solution.upper[state])) >= value[state]
        exact = np.array([float(v) for v in value])
        assert np.abs(solution.lower - exact).max() < 1e-9 and np.abs(solution.upper - exact).max() < 1e-9
        outer = solve(wide, objective)
        assert np.all(solution.lower >= outer.lower - 1e-12) or nature is MAX
        assert np.all(solution.upper <= outer.upper + 1e-12) or nature is MIN


@pytest.mark.costly("test_robust_and_optimistic_values_of_acyclic_models_are_the_exact_ones")
@pytest.mark.parametrize("kind", [ObjectiveKind.UNTIL, ObjectiveKind.REACH_REWARD, ObjectiveKind.DISCOUNTED])
def test_cyclic_models_agree_with_value_iteration_over_the_exact_vertices(kind: ObjectiveKind) -> None:
    for seed in range(3):
        model = random_model(seed + 40, cyclic=True)
        intervals = random_intervals(model, seed)
        vertices = exact_vertices(region_rows(intervals))
        table = np.array(
            [
                [float(model.expressions.polynomial(e).evaluate(v)) for v in vertices]
                for e in range(len(model.expressions))
            ]
        )
        sets = rectangular(polytope_region(intervals), model, intervals.expression_bounds())
        reward = np.random.default_rng(seed).integers(1, 5, model.choices).astype(np.float64)
        for agent, nature in ((MAX, MIN), (MIN, MAX), (MAX, MAX), (MIN, MIN)):
            objective = reach(model, agent, nature)
            if kind is ObjectiveKind.REACH_REWARD:
                target = objective.target
                assert target is not None
                wider = target.copy()
                wider[-2] = True
                objective = replace(objective, kind=kind, reward=RewardStructure(choice=reward), target=wider)
            elif kind is ObjectiveKind.DISCOUNTED:
                objective = Objective(
                    kind, agent, nature, reward=RewardStructure(choice=reward), discount=0.9
                )
            solution = solve(sets, objective)
            assert solution.is_certified
            values = _iterated(model, objective, table, reward)
            assert np.all(solution.lower <= values + 1e-6 * (1 + values))
            assert np.all(solution.upper >= values - 1e-6 * (1 + values))


def _iterated(
    model: ParametricMDP, objective: Objective, table: np.ndarray, reward: np.ndarray
) -> np.ndarray:
    """Plain value iteration to convergence, from below; slow and simple."""
    rewarded = objective.kind is not ObjectiveKind.UNTIL
    discount = objective.discount or 1.0
    values = np.zeros(model.states)
    fixed = np.zeros(model.states, np.bool_)
    if objective.target is not None:
        fixed = objective.target.copy()
        fixed[-2] = True
        values[objective.target] = 0.0 if rewarded else 1.0
    probability = table[model.expression]
    for _ in range(3000):
        terms = probability * values[model.successor][:, None]
        each = np.add.reduceat(terms, model.transition_start[:-1], axis=0)
        inner = each.max(axis=1) if objective.nature is MAX else each.min(axis=1)
        step = discount * inner + (reward if rewarded else 0.0)
        best = (np.maximum if objective.agent is MAX else np.minimum).reduceat(step, model.choice_start[:-1])
        new = np.where(fixed, values, best)
        if np.abs(new - values).max() < 1e-13:
            break
        values = new
    return values


# --- the walk itself ---------------------------------------------------------------------------


def polygon_sets(parameters: Parameters, rows: list[dict[int, Polynomial]], states: int) -> Sets:
    """One choice for each of the first states, absorbing ones after; no data: the region is the domain."""
    listed: list[tuple[int, str, dict[int, Polynomial]]] = [(i, "go", row) for i, row in enumerate(rows)]
    listed += [(s, "stay", {s: Polynomial.constant(1)}) for s in range(len(rows), states)]
    model = build_from_rows(listed, parameters)
    assert isinstance(model, ParametricMDP)
    given = with_intervals(model, [], [], Budget.TIED)
    nothing = with_intervals(model, [0.0] * len(given.events), [1.0] * len(given.events), Budget.TIED)
    return rectangular(polytope_region(nothing), model)


def bound(names: tuple[str, ...], coefficients: list[int], value: Fraction) -> LinearConstraint:
    assert len(names) == len(coefficients)
    return LinearConstraint(tuple(F(c) for c in coefficients), value)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_walks_find_the_optimum_that_linear_programs_find_and_their_bounds_hold(size: int) -> None:
    """A cube cut by random rows, in dimensions with and without enumerated vertices."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(size)
    names = tuple(f"x{i}" for i in range(size))
    ones = tuple(F(1, 2 * size) for _ in names)
    constraints = tuple(
        LinearConstraint(
            tuple(F(int(a), 8) for a in rng.integers(-8, 9, size)), F(int(rng.integers(1, 9)), 32)
        )
        for _ in range(3 * size)
    )
    shifted = tuple(
        LinearConstraint(
            c.coefficients, c.bound + sum(a * m for a, m in zip(c.coefficients, ones, strict=True))
        )
        for c in constraints
    )
    parameters = Parameters(names, (F(0),) * size, (F(1, size),) * size, shifted)
    symbols = parameters.symbols()
    rest = Polynomial.constant(1)
    row: dict[int, Polynomial] = {}
    for i, x in enumerate(symbols):
        row[i + 1] = x
        rest = rest - x
    row[size + 1] = rest
    sets = polygon_sets(parameters, [row], size + 2)
    shape = shape_of(sets)
    matrix, right = shape.rows[:, :-1], shape.rows[:, -1]
    multiplier = np.empty(size)
    met = shape.open_pool()
    for _ in range(30):
        q = rng.standard_normal(size)
        v = walk(shape.rows, met, int(met.used[2]), q, multiplier)
        outer = outer_value(shape.rows, met.link, shape.reach, v, q, multiplier)
        inner = inner_value(met.vertex, v, q)
        best = -linprog(-q, A_ub=matrix, b_ub=right, bounds=(None, None)).fun
        assert inner <= outer
        assert outer >= best - 1e-10 and outer - best < 1e-8 and best - inner < 1e-8
    assert met.used[0] > 1 or size == 1


def test_a_walk_that_cannot_store_vertices_still_gives_bounds() -> None:
    parameters = Parameters.box(p=(0, F(1, 3)), q=(0, F(1, 3)), r=(0, F(1, 3)))
    p, q, r = parameters.symbols()
    sets = polygon_sets(parameters, [{1: p, 2: q, 3: r, 4: Polynomial.constant(1) - p - q - r}], 5)
    shape = shape_of(sets)
    direction = np.array([1.0, 1.0, 1.0])
    for pool, slack in ((shape.open_pool(), 1e-9), (shape.open_pool(1), 10.0)):
        multiplier = np.empty(3)
        v = walk(shape.rows, pool, 0, direction, multiplier)
        outer = outer_value(shape.rows, pool.link, shape.reach, v, direction, multiplier)
        exact = shape.reach.sum()  # the corner of the box
        assert exact - 1e-6 <= outer <= exact + slack


# --- shapes that need care ---------------------------------------------------------------------


def test_two_unknown_successors_are_exactly_their_intervals() -> None:
    for seed in range(4):
        model = random_model(seed)
        keep = random_intervals(model, seed)
        sets = rectangular(polytope_region(keep), model, keep.expression_bounds())
        kernel = RectangularOperator.of(sets)
        plain = IntervalOperator.of(sets.interval_model())
        values = np.random.default_rng(seed).random(model.states)
        short = np.flatnonzero(np.diff(model.transition_start) <= 2)
        assert not kernel.shape.joint[short].any() and len(short) > 0
        for nature in (MIN, MAX):
            system = system_of(model, kernel, nature)
            for upward in (False, True):
                ours, theirs = (k.safe_choices(system, values, upward) for k in (kernel, plain))
                assert np.array_equal(ours[short], theirs[short])
                assert np.all(ours >= theirs) if nature is MIN else np.all(ours <= theirs)


def test_a_coin_needs_no_region_in_the_loop() -> None:
    parameters = Parameters.box(p=(F(1, 4), F(3, 4)))
    (p,) = parameters.symbols()
    sets = polygon_sets(parameters, [{1: p, 2: Polynomial.constant(1) - p}], 3)
    assert isinstance(operator_of(sets), IntervalOperator)


def test_a_shared_expression_moves_together() -> None:
    """Twice f and once 1 − 2f: the intervals let the two drift apart, the region does not."""
    parameters = Parameters.box(p=(F(1, 4), F(3, 8)))
    (p,) = parameters.symbols()
    sets = polygon_sets(parameters, [{1: p, 2: p, 3: Polynomial.constant(1) - p - p}], 4)
    kernel = RectangularOperator.of(sets)
    system = system_of(sets.model, kernel, MIN)
    values = np.array([0.0, 1.0, -1.0, 0.0])
    low, high = (kernel.safe_choices(system, values, upward)[0] for upward in (False, True))
    assert -1e-9 < low <= 0.0 <= high < 1e-9
    assert kernel.intervals.safe_choices(system, values, False)[0] < -0.12


def test_equal_values_are_kept_to_the_last_bit() -> None:
    model = random_model(3)
    keep = random_intervals(model, 3)
    kernel = RectangularOperator.of(rectangular(polytope_region(keep), model))
    values = np.full(model.states, 0.1)
    for nature in (MIN, MAX):
        for upward in (False, True):
            out = kernel.safe_choices(system_of(model, kernel, nature), values, upward)
            assert np.array_equal(out, np.full(model.choices, 0.1))


@pytest.mark.parametrize("gap", [F(0), F(1, 10**13), F(1, 10**9)])
def test_regions_without_interior_are_solved(gap: Fraction) -> None:
    """p and q within `gap` of each other, written as inequalities: a segment, or nearly one."""
    names = ("p", "q")
    constraints = (bound(names, [1, -1], gap), bound(names, [-1, 1], gap))
    parameters = Parameters(names, (F(1, 8),) * 2, (F(3, 8),) * 2, constraints)
    p, q = parameters.symbols()
    sets = polygon_sets(parameters, [{1: p, 2: q, 3: Polynomial.constant(1) - p - q}], 4)
    kernel = RectangularOperator.of(sets)
    values = np.array([0.0, 1.0, -1.0, 0.0])
    out = kernel.safe_choices(system_of(sets.model, kernel, MIN), values, False)[0]
    assert -float(gap) - 1e-8 < out <= 0.0


def test_a_region_of_one_point_gives_the_value_at_that_point() -> None:
    third = F(1, 3)
    parameters = Parameters(("p", "q"), (third, F(0)), (third, F(1, 2)), (bound(("p", "q"), [0, 1], F(0)),))
    p, q = parameters.symbols()
    rows = [{1: p, 2: p + q, 3: Polynomial.constant(1) - p - p - q}]
    sets = polygon_sets(parameters, rows, 4)
    solution = solve(sets, reach(sets.model, MAX, MIN))
    assert float(third) - 1e-9 <= solution.lower[0] <= solution.upper[0] <= float(third) + 1e-9


def test_corners_in_which_many_facets_meet() -> None:
    """A pyramid over a square with the same facets written twice, and three more through its tip."""
    names = ("x", "y", "h")
    one = F(1, 4)
    sides = [[1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1]]
    constraints = [
        LinearConstraint(tuple(F(a) for a in side), one + F(side[0] + side[1], 4)) for side in sides
    ]
    constraints += [replace(c) for c in constraints[:2]]
    constraints += [
        LinearConstraint((F(a), F(b), F(1)), one + (F(a) + F(b)) / 4) for a, b in ((F(1, 2), F(1, 3)), (0, 0))
    ]
    parameters = Parameters(names, (F(0),) * 3, (F(1, 2), F(1, 2), F(1, 4)), tuple(constraints))
    x, y, h = parameters.symbols()
    half = Polynomial.constant(F(1, 2))
    f = [half * x, half * y, half * h]
    row = {1: f[0], 2: f[1], 3: f[2], 4: Polynomial.constant(1) - f[0] - f[1] - f[2]}
    sets = polygon_sets(parameters, [row], 5)
    kernel = RectangularOperator.of(sets)
    values = np.array([0.0, 0.0, 0.0, 1.0, 0.0])  # the height: its maximum is the tip
    out = kernel.safe_choices(system_of(sets.model, kernel, MAX), values, True)[0]
    assert 0.125 <= out < 0.125 + 1e-9
    for values in np.random.default_rng(5).standard_normal((20, 5)):
        outer = kernel.safe_choices(system_of(sets.model, kernel, MAX), values, True)[0]
        inner = kernel.safe_choices(system_of(sets.model, kernel, MAX), values, False)[0]
        assert inner <= outer < inner + 1e-8


def test_where_intervals_let_nature_cut_what_the_region_does_not() -> None:
    """Two ways out of a loop and two that stay: p + q ≥ ½, but the intervals allow p = q = 0.

    The guaranteed bound reads the graph from the intervals and claims 0; the other one must not.
    """
    names = ("p", "q", "r")
    constraints = (bound(names, [-1, -1, 0], F(-1, 2)), bound(names, [1, 1, 1], F(1)))
    parameters = Parameters(names, (F(0),) * 3, (F(1),) * 3, constraints)
    p, q, r = parameters.symbols()
    one = Polynomial.constant(1)
    rows = [{0: one - p - q - r, 1: r, 2: p, 3: q}, {0: one}, {4: one}, {4: one}]
    sets = polygon_sets(parameters, rows, 5)
    kernel = operator_of(sets)
    solution = solve(kernel, reach(sets.model, MAX, MIN))
    assert solution.lower[0] == 0.0 and solution.upper[0] == 1.0
    assert solution.status is Status.PRECISION_LIMIT
    other = solve(kernel, reach(sets.model, MIN, MAX))
    assert other.lower[0] == other.upper[0] == 1.0


def test_a_fixed_policy_is_within_the_optimum_and_bounded_horizons_work() -> None:
    model = random_model(44, cyclic=True)
    keep = random_intervals(model, 4)
    kernel = operator_of(rectangular(polytope_region(keep), model, keep.expression_bounds()))
    objective = reach(model, MAX, MIN)
    best = solve(kernel, objective)
    first = solve(kernel, objective, policy=np.zeros(model.states, np.int64))
    same = solve(kernel, objective, policy=best.policy)
    assert np.all(first.lower <= best.upper)
    assert np.all(same.lower <= best.upper) and np.all(same.upper >= best.lower)
    soon = solve(kernel, replace(objective, upper_steps=3))
    assert np.all(soon.lower <= best.upper + 1e-12) and soon.upper.max() <= 1.0


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", [kind for kind in own_kinds() if kind != region_kind("slab")])
def test_every_region_contains_the_true_value_and_is_inside_its_own_intervals(kind: RegionKind) -> None:
    model = random_model(41, cyclic=True)
    truth = [F(2, 5), F(3, 5)]
    counts = generative(model, truth, 400, np.random.default_rng(1))
    region = build_region(kind, model, counts, 0.01)
    for agent in (MAX, MIN):
        robust, optimistic = (MIN, MAX) if agent is MAX else (MAX, MIN)
        at_truth = solve(IntervalOperator.of(model.instantiate(truth)), reach(model, agent, robust))
        bounds = {}
        for name, sets in (("wide", expression(region, model)), ("tight", rectangular(region, model))):
            ends = [solve(sets, reach(model, agent, nature)) for nature in (MIN, MAX)]
            assert all(end.is_certified for end in ends)
            bounds[name] = ends[0].lower[0], ends[1].upper[0]
        assert bounds["wide"][0] <= bounds["tight"][0] <= at_truth.upper[0]
        assert at_truth.lower[0] <= bounds["tight"][1] <= bounds["wide"][1]
        assert optimistic is not robust
