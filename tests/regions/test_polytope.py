"""Polytope regions against exact rational linear programs, in every shape they can take."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_reference import ONE, coins, exact_range, exact_vertices, region_rows, simplex, with_intervals
from tightrope.errors import CannotCertify
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import ranges_over_box
from tightrope.regions.bounds import expression_bounds, parameter_box
from tightrope.regions.event_polytope import irreducible, polytope_region
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.polytope import EnclosingVertices, Polytope, prove_vertices
from tightrope.regions.region import Relaxation
from tightrope.regions.registry import region_kind
from tightrope.regions.tightening import tighten
from tightrope.regions.walk import bound_by_programs, bound_by_walks
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import Budget, EventIntervals

F = Fraction


def variables(count: int) -> list[Polynomial]:
    return [Polynomial.variable(i) for i in range(count)]


@st.composite
def affine_models(draw: st.DrawFn) -> EventIntervals:
    """Coins with random mixtures of up to three parameters, intervals around a random true point."""
    size = draw(st.integers(1, 3))
    on_simplex = size > 1 and draw(st.booleans())
    names = "pqr"[:size]
    parameters = simplex(*names) if on_simplex else Parameters.unit_box(tuple(names))
    count = draw(st.integers(1, 5))
    polynomials = []
    for _ in range(count):
        weights = [draw(st.integers(0, 6)) for _ in range(size)]
        total = sum(weights) + draw(st.integers(1, 4))
        offset = F(draw(st.integers(0, total - sum(weights))), total)
        mixture = Polynomial.constant(offset)
        for x, weight in zip(variables(size), weights, strict=True):
            mixture = mixture + x * Polynomial.constant(F(weight, total))
        polynomials.append(mixture)
    if all(polynomial.is_constant for polynomial in polynomials):
        polynomials.append(Polynomial.variable(0))
    model = coins(parameters, polynomials)
    truth = [draw(st.integers(1, 20)) for _ in range(size)]
    scale = sum(truth) if on_simplex else 20
    point = [F(value, scale) for value in truth]
    intervals = with_intervals(model, [0.0], [1.0], Budget.TIED)
    lower, upper = [], []
    for event in range(len(intervals.events)):
        value = round(float(intervals.events.function(event).evaluate(point)) * 256)
        lower.append(max(0, value - draw(st.integers(0, 80))) / 256)
        upper.append(min(256, value + draw(st.integers(0, 80))) / 256)
    return with_intervals(model, lower, upper, Budget.TIED)


@given(affine_models(), st.booleans())
def test_projected_bounds_are_on_the_safe_side_of_exact_rational_programs(
    intervals: EventIntervals, by_programs: bool
) -> None:
    region = polytope_region(intervals)
    if by_programs:
        region = without_vertices(region)
    table = intervals.events.outcomes.model.expressions
    vertices = exact_vertices(region_rows(intervals))
    assert region.emptiness.is_empty <= (not vertices)
    if not vertices:
        return
    lower, upper = expression_bounds(region, table)
    for e in range(len(table)):
        exact_low, exact_high = exact_range(table.polynomial(e), vertices)
        assert F(float(lower[e])) <= exact_low and exact_high <= F(float(upper[e]))
        assert float(exact_low - F(float(lower[e]))) < 1e-6
        assert float(F(float(upper[e])) - exact_high) < 1e-6
    for vertex in vertices:
        assert region.contains(vertex)


def without_vertices(region: Polytope) -> Polytope:
    from dataclasses import replace

    return replace(region, enclosure=None)


def test_simplex_is_eliminated_exactly() -> None:
    parameters = simplex("a", "b", "c", "d")
    a, b, c, d = variables(4)
    model = coins(parameters, [a + b / 2, c / 3 + d])
    coordinates = Coordinates.of(model.expressions, parameters)
    assert coordinates.free == (0, 1, 2) and coordinates.size == 3
    assert coordinates.substitution[3] == ONE - a - b - c
    region = polytope_region(with_intervals(model, [0.2, 0, 0.1, 0], [0.6, 1, 0.9, 1]))
    low, high = parameter_box(region)
    assert np.all(low >= 0) and np.all(high <= 1)
    assert region.relaxation is Relaxation.EXACT
    assert region.contains([F(1, 4)] * 4) and not region.contains([F(1), F(0), F(0), F(0)])


def test_fixed_parameter_is_eliminated() -> None:
    parameters = Parameters.box(p=(0, 1), q=("0.25", "0.25"))
    p, q = variables(2)
    model = coins(parameters, [(p + q) / 2])
    region = polytope_region(with_intervals(model, [0.3, 0], [0.4, 1]))
    low, high = parameter_box(region)
    assert region.coordinates.free == (0,)
    assert low[1] == high[1] == 0.25
    assert low[0] == pytest.approx(0.35) and high[0] == pytest.approx(0.55)


def test_all_parameters_fixed_leaves_a_point() -> None:
    parameters = Parameters.box(p=("0.3", "0.3"))
    model = coins(parameters, [Polynomial.variable(0)])
    inside = polytope_region(with_intervals(model, [0.2, 0], [0.4, 1]))
    outside = polytope_region(with_intervals(model, [0.4, 0], [0.5, 1]))
    lower, upper = expression_bounds(inside, model.expressions)
    assert not inside.emptiness.is_empty and outside.emptiness.is_empty
    coin = model.expressions.index_of(Polynomial.variable(0))
    assert F(float(lower[coin])) <= F(3, 10) <= F(float(upper[coin]))
    assert upper[coin] - lower[coin] < 1e-9


def test_model_without_parameters_has_a_trivial_region() -> None:
    model = coins(Parameters(), [Polynomial.constant(F(1, 3))])
    region = polytope_region(with_intervals(model, [], []))
    lower, upper = expression_bounds(region, model.expressions)
    assert not region.emptiness.is_empty
    assert np.all(upper - lower < 1e-15)


def test_equal_bounds_make_a_lower_dimensional_region() -> None:
    p, q = variables(2)
    model = coins(Parameters.unit_box(("p", "q")), [p, q, (p + q) / 2])
    half = 0.5
    region = polytope_region(with_intervals(model, [0, 0, 0, 0, half, 0], [1, 1, 1, 1, half, 1]))
    lower, upper = expression_bounds(region, model.expressions)
    middle = model.expressions.index_of((p + q) / 2)
    assert not region.emptiness.is_empty
    assert lower[middle] <= 0.5 <= upper[middle] and upper[middle] - lower[middle] < 1e-9
    assert region.contains([F(1, 4), F(3, 4)]) and not region.contains([F(1, 4), F(1, 2)])


def test_contradicting_events_are_named_and_irreducible() -> None:
    p, q = variables(2)
    model = coins(Parameters.unit_box(("p", "q")), [p, q, (p + q) / 2, p / 2])
    lower = [0.1, 0, 0.8, 0, 0.1, 0, 0.0, 0.0]
    upper = [0.3, 1, 0.9, 1, 0.4, 1, 1.0, 1.0]
    region = polytope_region(with_intervals(model, lower, upper))
    assert region.emptiness.is_empty and region.emptiness.witness is None
    conflict = region.emptiness.conflict
    assert conflict is not None
    texts = [text.split(" (as in")[0] for text in conflict.texts]
    assert texts == ["p", "q", "1/2*p + 1/2*q"]
    assert "no parameters of the domain explain the data" in region.emptiness.text(0.05)
    with pytest.raises(CannotCertify):
        region.support(np.eye(2))
    assert not region.contains([F(1, 2), F(1, 2)])


def test_irreducible_conflicts_are_found_among_many_candidates() -> None:
    rng = np.random.default_rng(2)
    for size in (1, 2, 3, 5):
        needed = set(rng.choice(300, size, replace=False).tolist())
        asked = 0

        def is_empty(some: list[int], needed: set[int] = needed) -> bool:
            nonlocal asked
            asked += 1
            return needed <= set(some)

        assert set(irreducible(range(300), is_empty)) == needed
        assert asked < 40 * size


def test_witness_of_a_region_lies_in_it() -> None:
    p, q = variables(2)
    model = coins(Parameters.unit_box(("p", "q")), [p, q])
    region = polytope_region(with_intervals(model, [0.2, 0, 0.5, 0], [0.4, 1, 0.7, 1]))
    witness = region.emptiness.witness
    assert witness is not None
    assert region.contains([F(float(x)) for x in witness])


def test_many_rows_in_six_dimensions_agree_with_programs() -> None:
    """Vertices with their proof and dual bounds of linear programs are two roads to the same values."""
    rng = np.random.default_rng(3)
    names = tuple(f"x{i}" for i in range(6))
    parameters = Parameters.unit_box(names)
    model = coins(parameters, [Polynomial.variable(i) for i in range(6)])
    coordinates = Coordinates.of(model.expressions, parameters)
    matrix = rng.normal(size=(300, 6))
    truth = np.full(6, 0.5)
    bound = matrix @ truth + 0.02 + 0.1 * rng.random(300)
    base = Halfspaces.of_domain(coordinates).with_rows(matrix, bound, Origin.EVENT_UPPER)
    intervals = with_intervals(model, [0.0] * 12, [1.0] * 12)
    region = Polytope.of(
        region_kind("polytope"), coordinates, intervals.ledger, tighten(coordinates, base), Relaxation.EXACT
    )
    assert region.enclosure is not None and len(region.enclosure.points) > 100
    directions = rng.normal(size=(40, 6))
    low, high = region.support(directions)
    other_low, other_high = without_vertices(region).support(directions)
    assert np.allclose(low, other_low, atol=1e-8) and np.allclose(high, other_high, atol=1e-8)
    assert np.all(region.vertex_error < 1e-9)
    points = region.vertices
    assert points is not None
    assert np.all(matrix @ points.T <= bound[:, None] + 1e-7)


def test_incomparable_first_example_of_the_paper() -> None:
    """θ₁+θ₂ = 1 from f₃ = ½: P_Θ gives [0, 1] for f₃ where P_I and P_Λ have [½, ½]."""
    p, q = variables(2)
    model = coins(Parameters.unit_box(("p", "q")), [p, q, (p + q) / 2])
    intervals = with_intervals(model, [0, 0, 0, 0, 0.5, 0], [1, 1, 1, 1, 0.5, 1])
    middle = model.expressions.index_of((p + q) / 2)
    region = polytope_region(intervals)
    tied = intervals.expression_bounds()
    projected = expression_bounds(region, model.expressions, within=tied)
    box = parameter_box(region)
    over_box = ranges_over_box(model.expressions, box[0].tolist(), box[1].tolist())
    assert (tied[0][middle], tied[1][middle]) == (0.5, 0.5)
    assert (projected[0][middle], projected[1][middle]) == (0.5, 0.5)
    assert box[0].tolist() == [0.0, 0.0] and box[1].tolist() == [1.0, 1.0]
    assert (over_box[0][middle], over_box[1][middle]) == pytest.approx((0.0, 1.0), abs=1e-14)


def test_incomparable_second_example_of_the_paper() -> None:
    """θ and 1−θ both in [.4, .7]: U = [.4, .6], so P_Θ excludes what P_I allows."""
    p = Polynomial.variable(0)
    model = coins(Parameters.unit_box(("p",)), [p])
    complement = model.expressions.index_of(ONE - p)
    intervals = with_intervals(model, [0.4, 0.4], [0.7, 0.7])
    region = polytope_region(intervals)
    box = parameter_box(region)
    assert box[0][0] == pytest.approx(0.4, abs=1e-12) and box[1][0] == pytest.approx(0.6, abs=1e-12)
    assert F(float(box[0][0])) <= F(0.4) and F(float(box[1][0])) >= 1 - F(0.4)
    tied = intervals.expression_bounds()
    over_box = ranges_over_box(model.expressions, box[0].tolist(), box[1].tolist())
    assert tied[1][complement] == 0.7 > over_box[1][complement]


@given(affine_models())
def test_inclusion_hierarchy_is_exact(intervals: EventIntervals) -> None:
    """P_I ⊇ P_Λ and P_Θ ⊇ P_Λ hold for the float bounds themselves, not only in the limit."""
    region = polytope_region(intervals)
    if region.emptiness.is_empty:
        return
    table = intervals.events.outcomes.model.expressions
    tied = intervals.expression_bounds()
    projected = expression_bounds(region, table, within=tied)
    box = parameter_box(region)
    over_box = ranges_over_box(table, box[0].tolist(), box[1].tolist())
    inside = expression_bounds(region, table, within=over_box)
    assert np.all(tied[0] <= projected[0]) and np.all(projected[1] <= tied[1])
    assert np.all(over_box[0] <= inside[0]) and np.all(inside[1] <= over_box[1])
    assert np.all(projected[0] >= over_box[0] - 1e-9) and np.all(projected[1] <= over_box[1] + 1e-9)
    vertices = exact_vertices(region_rows(intervals))
    for e in range(len(table)):
        if vertices:
            low, high = exact_range(table.polynomial(e), vertices)
            assert F(float(over_box[0][e])) <= low and high <= F(float(over_box[1][e]))


def test_linear_programs_agree_with_the_walk() -> None:
    """Three roads to a support value: vertices, the walk along edges, and HiGHS where the walk gets stuck."""
    rng = np.random.default_rng(5)
    for size, rows in ((1, 3), (2, 8), (4, 60), (9, 120)):
        matrix = rng.normal(size=(rows, size))
        matrix /= np.abs(matrix).max(axis=1, keepdims=True)
        bound = 0.4 * np.linalg.norm(matrix, axis=1) * (1 + 0.2 * rng.random(rows))
        system = ScaledHalfspaces(matrix, bound, np.ones(rows), np.zeros(size), np.ones(size))
        directions = rng.normal(size=(40, size)) * 10.0 ** rng.integers(-6, 6, size=(40, 1))
        walked, reached = bound_by_walks(system, directions)
        programmed, _ = bound_by_programs(system, directions)
        assert reached.all()
        assert np.allclose(walked, programmed, rtol=1e-9, atol=0)
        points = rng.normal(size=(4000, size))
        points *= (
            0.99 / np.maximum((points @ matrix.T / bound).max(axis=1), np.abs(points).max(axis=1))[:, None]
        )
        assert np.all(points @ directions.T <= walked)


def test_walk_without_a_common_point_is_stuck_but_safe() -> None:
    system = ScaledHalfspaces(
        np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-0.5, -0.5]), np.ones(2), np.zeros(2), np.ones(2)
    )
    bounds, reached = bound_by_walks(system, np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert not reached.any()
    assert np.all(bounds >= -1.0)


def test_an_incomplete_list_of_vertices_is_not_accepted() -> None:
    """The proof of enclosure fails as soon as a simplex is missing, doubled or has a wrong neighbour."""
    from scipy.spatial import ConvexHull

    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(30, 3))
    bound = np.ones(30)
    hull = ConvexHull(matrix, qhull_options="Qt")
    simplices, neighbours = hull.simplices.astype(np.int64), hull.neighbors.astype(np.int64)
    whole = prove_vertices(matrix, bound, simplices, neighbours)
    assert isinstance(whole, EnclosingVertices) and len(whole.points) == len(simplices)
    doubled = simplices.copy()
    doubled[-1] = doubled[0]
    assert prove_vertices(matrix, bound, doubled, neighbours) == "failed"
    astray = neighbours.copy()
    astray[0] = np.roll(astray[0], 1)
    assert prove_vertices(matrix, bound, simplices, astray) == "failed"
    gone = len(simplices) - 1
    kept = np.where(neighbours[:gone] == gone, 0, neighbours[:gone])
    assert prove_vertices(matrix, bound, simplices[:gone], kept) == "failed"
    flat = matrix.copy()
    flat[simplices[0, 0]] = flat[simplices[0, 1]]
    assert prove_vertices(flat, bound, simplices, neighbours) == "failed"
