"""The parts of a coupled proof, each against exact rationals or a brute-force reference."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from coupled_cases import Case, random_case
from tightrope.coupled.cells import Frame, Region, Rows, Split, frame_of
from tightrope.coupled.chain import Chain, chain_of
from tightrope.coupled.result import range_over_hull, vertex_proof
from tightrope.coupled.taylor import expand
from tightrope.model.builder import build_from_rows
from tightrope.model.expressions import ExpressionTable
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.event_polytope import domain_region
from tightrope.statistics.coordinates import Coordinates

F = Fraction
ONE = Polynomial.constant(1)


def exact_values(case: Case, chain: Chain, theta: list[Fraction]) -> list[Fraction]:
    """The chain's values at a rational point by Gaussian elimination over the rationals."""
    size = chain.rows
    expression = [
        case.model.expressions.polynomial(e).evaluate(theta) for e in range(len(case.model.expressions))
    ]
    table = [[F(int(i == j)) for j in range(size)] + [F(0)] for i in range(size)]
    for s in range(size):
        table[s][-1] = F(float(chain.value[s])) if chain.fixed[s] else F(float(chain.reward[s]))
        if chain.fixed[s]:
            continue
        for entry in range(int(chain.row_start[s]), int(chain.row_start[s + 1])):
            weight = F(float(chain.weight[entry])) * expression[int(chain.expression[entry])]
            table[s][int(chain.successor[entry])] -= weight
    for k in range(size):
        pivot = next(i for i in range(k, size) if table[i][k] != 0)
        table[k], table[pivot] = table[pivot], table[k]
        for i in range(size):
            if i != k and table[i][k] != 0:
                factor = table[i][k] / table[k][k]
                table[i] = [a - factor * b for a, b in zip(table[i], table[k], strict=True)]
    return [table[i][-1] / table[i][i] for i in range(size)]


def deterministic(seed: int, kind: str, cyclic: bool) -> Case:
    """A case whose policy does not mix: its weights are then exact."""
    while True:
        case = random_case(seed, kind, cyclic=cyclic, products=False)
        if case.policy.is_deterministic:
            return case
        seed += 1000


@pytest.mark.thinned(2)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("cyclic", [False, True])
@pytest.mark.parametrize("kind", ["reach", "reward"])
def test_taylor_models_enclose_the_exact_values_of_all_rows(kind: str, cyclic: bool, order: int) -> None:
    rng = np.random.default_rng(5)
    for seed in range(4):
        case = deterministic(seed, kind, cyclic)
        chain = chain_of(case.model, case.objective, case.policy)
        assert isinstance(chain, Chain) and chain.acyclic <= (not cyclic or chain.acyclic)
        functions = Coordinates.of(case.model.expressions, case.model.parameters).functions(
            case.model.expressions
        )
        low, high = case.box
        centre, axes = 0.5 * (low + high), np.diag(0.35 * (high - low)) @ np.array([[1.0, 0.3], [-0.2, 1.0]])
        model = expand(chain, functions, centre, axes, 1.0, order)
        assert model is not None and model.order == order
        for direction in rng.normal(size=(4, 2)):
            y = [F(float(v)) for v in direction / (np.linalg.norm(direction) * (1 + 1e-9))]
            x = [F(float(centre[i])) + sum(F(float(axes[i, j])) * y[j] for j in range(2)) for i in range(2)]
            for s, value in enumerate(exact_values(case, chain, x)):
                polynomial = F(float(model.constant[s])) + sum(
                    F(float(model.slope[s, j])) * y[j] for j in (0, 1)
                )
                if order == 2:
                    bend = model.curvature[s]
                    polynomial += sum(F(float(bend[i, j])) * y[i] * y[j] for i in (0, 1) for j in (0, 1))
                assert abs(value - polynomial) <= F(float(model.error[s])), (seed, s)


def test_the_error_is_of_third_order_and_a_point_is_exact_up_to_rounding() -> None:
    case = deterministic(2, "reward", True)
    chain = chain_of(case.model, case.objective, case.policy)
    assert isinstance(chain, Chain)
    functions = Coordinates.of(case.model.expressions, case.model.parameters).functions(
        case.model.expressions
    )
    centre = 0.5 * (case.box[0] + case.box[1])
    errors = []
    for size in (0.02, 0.01, 0.005):
        model = expand(chain, functions, centre, size * np.eye(2), 1.0)
        assert model is not None
        errors.append(float(model.error[chain.initial]))
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(8.0, rel=0.15)
    point = expand(chain, functions, centre, np.zeros((2, 0)), 0.0, order=0)
    assert point is not None
    exact = exact_values(case, chain, [F(float(v)) for v in centre])[chain.initial]
    assert (
        abs(exact - F(float(point.constant[chain.initial])))
        <= F(float(point.error[chain.initial]))
        < F(1, 10**11)
    )


def plain_coordinates(size: int) -> Coordinates:
    """So many free parameters and nothing else."""
    names = [f"t{i}" for i in range(size)]
    table, _ = ExpressionTable(names).freeze(np.zeros(1, np.int32))
    return Coordinates.of(table, Parameters.unit_box(names))


def random_rows(rng: np.random.Generator, size: int) -> Rows:
    normal = rng.normal(size=(3 * size, size))
    box = np.vstack([np.eye(size), -np.eye(size)])
    bound = np.concatenate([0.3 + rng.random(3 * size), np.ones(2 * size)])
    return Rows(np.vstack([normal, box]), bound, np.arange(5 * size))


def largest(matrix: FloatArray, bound: FloatArray, direction: FloatArray) -> float:
    solved = linprog(-direction, A_ub=matrix, b_ub=bound, bounds=[(None, None)] * len(direction))
    assert solved.success
    return -float(solved.fun)


def check_encloses(frame: Frame, matrix: FloatArray, bound: FloatArray, rng: np.random.Generator) -> float:
    """The hull of the points reaches at least as far as the cell in every direction; the mean excess."""
    points = frame.to_x(frame.points)
    excess = []
    for direction in rng.normal(size=(25, matrix.shape[1])):
        reach = float((points @ direction).max()) - largest(matrix, bound, direction)
        assert reach >= -1e-9
        excess.append(reach)
    assert frame.radius >= float(np.linalg.norm(frame.points, axis=1).max())
    return float(np.mean(excess))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_frames_enclose_their_cells_tightly(size: int) -> None:
    rng = np.random.default_rng(size)
    for scale in (1.0, 1e-5):
        rows = random_rows(rng, size)
        shift = rng.normal(size=size)
        moved = Rows(rows.matrix / scale, rows.bound + (rows.matrix / scale) @ shift, rows.number)
        found = frame_of(moved, shift, np.full(size, scale))
        assert found is not None
        frame, kept = found
        assert check_encloses(frame, moved.matrix, moved.bound, rng) < 1e-6 * scale
        assert set(frame.simplices.reshape(-1).tolist()) == set(kept.number.tolist())
        assert frame.radius == pytest.approx(1.0, abs=1e-6)


def test_a_frame_of_few_rows_encloses_and_is_tight_where_it_matters() -> None:
    rng = np.random.default_rng(8)
    rows = random_rows(rng, 4)
    others = len(rows.bound) - 8
    region = Region(rows.matrix, rows.bound, -np.ones(4), np.ones(4), np.zeros(4), plain_coordinates(4))
    direction = rng.normal(size=4)
    shape = region.root_along(direction[None, :])
    assert shape.reduced and shape.frame is not None and len(shape.rows.bound) < others + 8
    check_encloses(shape.frame, rows.matrix, rows.bound, rng)
    points = shape.frame.to_x(shape.frame.points)
    assert float((points @ direction).max()) == pytest.approx(
        largest(rows.matrix, rows.bound, direction), abs=1e-6
    )


def test_rows_along_a_direction_are_the_same_together_and_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    rows = random_rows(rng, 4)
    region = Region(rows.matrix, rows.bound, -np.ones(4), np.ones(4), np.zeros(4), plain_coordinates(4))
    directions, most = rng.normal(size=(2, 4)), [8]
    together = region.root_along(directions).frame

    def refuses_two(rows: Rows, *about: Any) -> Any:
        found = frame_of(rows, *about) if len(rows.bound) <= most[0] + 1 else None
        most[0] = most[0] if found is None else len(rows.bound)
        return found

    monkeypatch.setattr("tightrope.coupled.cells.frame_of", refuses_two)
    apart = region.root_along(directions).frame
    assert most[0] > 10 and together is not None and apart is not None
    assert np.array_equal(together.points, apart.points) and np.array_equal(together.axes, apart.axes)


def test_the_halves_of_a_cell_cover_it() -> None:
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 3)
    region = Region(rows.matrix, rows.bound, -np.ones(3), np.ones(3), np.zeros(3), plain_coordinates(3))
    root = region.root()
    assert root.frame is not None
    normal = rng.normal(size=3)
    for side in (1.0, -1.0):
        split = Split(normal, float(normal @ root.frame.centre), side)
        child = region.child(root, split, normal[None, :])
        assert child.frame is not None
        cut, offset = split.row
        matrix, bound = np.vstack([rows.matrix, cut]), np.append(rows.bound, offset)
        assert check_encloses(child.frame, matrix, bound, rng) < 1e-6


def products_below(limit: Fraction) -> Region:
    """p·q on the unit square with p + q ≤ limit."""
    parameters = Parameters(("p", "q"), (F(0), F(0)), (F(1), F(1)), (LinearConstraint((F(1), F(1)), limit),))
    p, q = parameters.symbols()
    model = build_from_rows([(0, "a", {0: p * q, 1: ONE - p * q}), (1, "a", {1: ONE})], parameters)
    assert isinstance(model, ParametricMDP)
    return Region.of(domain_region(model))


def at_least(axis: int, offset: float) -> Split:
    return Split(np.eye(3)[axis], offset, -1.0)


TOWARD = np.array([[0.0, 0.0, 1.0]])


def test_cells_of_products_have_tighter_envelopes_and_may_contradict_their_box() -> None:
    region = products_below(F(1))
    root = region.root()
    high = region.child(root, at_least(0, 0.75), TOWARD)
    assert root.frame is not None and high.frame is not None
    wide, tight = (float(np.ptp(frame.to_x(frame.points)[:, 2])) for frame in (root.frame, high.frame))
    assert tight < 0.8 * wide
    corner = region.child(high, at_least(1, 0.75), TOWARD)
    assert corner.frame is None and corner.emptiness is not None and len(corner.emptiness.rows) == 0
    assert corner.lower[2] == pytest.approx(0.5625) and corner.upper[2] == pytest.approx(0.5)


def test_empty_cells_come_with_multipliers_that_show_it() -> None:
    region = products_below(F(1))
    cell = region.child(region.root(), at_least(0, 0.6), TOWARD)
    cell = region.child(cell, at_least(1, 0.41), TOWARD)
    assert cell.frame is None and cell.emptiness is not None and len(cell.emptiness.rows) > 0
    every = np.concatenate([region.matrix, cell.cuts.matrix])
    bound = np.concatenate([region.bound, cell.cuts.bound])
    total, right = [F(0)] * 3, F(0)
    for number, multiplier in zip(cell.emptiness.rows, cell.emptiness.multipliers, strict=True):
        assert multiplier >= 0.0
        if multiplier > 0.0:
            total = [
                t + F(float(multiplier)) * F(float(a)) for t, a in zip(total, every[number], strict=True)
            ]
            right += F(float(multiplier)) * F(float(bound[number]))
    box = zip(total, cell.lower, cell.upper, strict=True)
    assert sum(min(t * F(float(low)), t * F(float(high))) for t, low, high in box) > right


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_range_of_a_quadratic_encloses_it_and_is_exact_at_a_dominant_vertex(size: int) -> None:
    rng = np.random.default_rng(size)
    points = rng.normal(size=(12, size))
    for bend in (0.0, 0.05, 1.0):
        half = bend * rng.normal(size=(size, size))
        slope, curvature = rng.normal(size=size), half + half.T
        low, high = range_over_hull(0.7, slope, curvature, points)
        y = rng.dirichlet(np.full(12, 0.3), 400) @ points
        values = 0.7 + y @ slope + np.einsum("ki,ij,kj->k", y, curvature, y)
        assert low <= values.min() and values.max() <= high
        corners = 0.7 + points @ slope + np.einsum("ki,ij,kj->k", points, curvature, points)
        if bend == 0.0:
            assert high == pytest.approx(float(corners.max()), abs=1e-12)
    low, high = range_over_hull(0.7, slope, np.zeros((0, 0)), points)
    assert high == pytest.approx(0.7 + float((points @ slope).max()), abs=1e-12)


def test_a_vertex_proof_shows_the_minimum_up_to_rounding() -> None:
    case = deterministic(6, "reward", False)
    chain = chain_of(case.model, case.objective, case.policy)
    assert isinstance(chain, Chain)
    polytope = domain_region(case.model)
    functions = polytope.coordinates.functions(case.model.expressions)
    frame = Region.of(polytope).root().frame
    assert frame is not None
    model = expand(chain, functions, frame.centre, frame.axes, frame.radius)
    assert model is not None
    for upper in (False, True):
        proof = vertex_proof(chain, functions, frame, model, upper)
        assert proof is not None
        corners = frame.to_x(frame.points)
        values = [exact_values(case, chain, [F(float(v)) for v in x])[chain.initial] for x in corners]
        best = max(values) if upper else min(values)
        outside = F(proof.bound) - best if upper else best - F(proof.bound)
        assert 0 <= outside <= F(proof.violation) + 2 * F(proof.error) + F(1, 10**12)
