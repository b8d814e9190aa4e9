"""Rounding and weak duality against rational arithmetic: whatever the multipliers, the bound is a bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_reference import exact_vertices
from tightrope.errors import InputError
from tightrope.numerics.linear_program import (
    ConeProgram,
    LinearProgram,
    LinearStatus,
    dual_bounds,
    proves_empty,
)
from tightrope.numerics.rounding import down, largest_over_box, product_error, up

F = Fraction
SMALL = st.floats(-4, 4, allow_subnormal=False)


def exact_dot(a: np.ndarray, x: np.ndarray) -> Fraction:
    return sum((F(float(p)) * F(float(q)) for p, q in zip(a, x, strict=True)), F(0))


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=12))
def test_products_lie_within_their_error(pairs: list[tuple[float, float]]) -> None:
    left = np.array([[a for a, _ in pairs]])
    right = np.array([[b] for _, b in pairs])
    value, error = left @ right, product_error(left, right)
    low, high = down(value - error), up(value + error)
    exact = exact_dot(left[0], right[:, 0])
    assert F(float(low[0, 0])) <= exact <= F(float(high[0, 0]))
    assert down(1.0) < 1.0 < up(1.0)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=6))
def test_largest_over_a_box_is_not_below_any_corner(entries: list[tuple[float, float, float]]) -> None:
    row = np.array([[c for c, _, _ in entries]])
    lower = np.array([min(a, b) for _, a, b in entries])
    upper = np.array([max(a, b) for _, a, b in entries])
    best = F(float(largest_over_box(row, lower, upper)[0]))
    exact = sum(
        (
            max(F(c) * F(float(a)), F(c) * F(float(b)))
            for (c, _, _), a, b in zip(entries, lower, upper, strict=True)
        ),
        F(0),
    )
    assert exact <= best <= exact + F(1, 10**12)


@pytest.mark.parametrize("seed", range(12))
def test_dual_bounds_hold_for_good_and_for_arbitrary_multipliers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-4, 5, size=(5, 2)) / 4.0
    bound = rng.integers(-1, 9, size=5) / 8.0
    box = np.ones(2)
    rows = [([F(float(a)) for a in row], F(float(b))) for row, b in zip(matrix, bound, strict=True)]
    rows += [([F(1), F(0)], F(1)), ([F(-1), F(0)], F(1)), ([F(0), F(1)], F(1)), ([F(0), F(-1)], F(1))]
    vertices = exact_vertices(rows)
    directions = rng.normal(size=(4, 2))
    program = LinearProgram(-box, box)
    program.add_rows(matrix, bound)
    outcomes = [program.maximise(direction) for direction in directions]
    if not vertices:
        assert all(outcome.status is LinearStatus.INFEASIBLE for outcome in outcomes)
        assert proves_empty(matrix, bound, -box, box, outcomes[0].multipliers)
        return
    good = np.array([outcome.multipliers for outcome in outcomes])
    for multipliers in (good, rng.random((4, 5)) * 3, np.zeros((4, 5))):
        found = dual_bounds(matrix, bound, -box, box, directions, multipliers)
        for direction, value in zip(directions, found, strict=True):
            exact = max(
                exact_dot(direction, np.array([1.0, 0.0])) * v[0] + F(float(direction[1])) * v[1]
                for v in vertices
            )
            assert F(float(value)) >= exact
            if multipliers is good:
                assert float(F(float(value)) - exact) < 1e-9
        assert not proves_empty(matrix, bound, -box, box, multipliers[0])


def test_cone_program_multipliers_certify_the_cut_maximum() -> None:
    """max x over the unit disc with x ≤ ½ is ½: weak duality with the multipliers says so."""
    program = ConeProgram(np.eye(2), np.zeros(2), 1.0, np.array([[1.0, 0.0]]), np.array([0.5]))
    (weight,) = program.multipliers(np.array([1.0, 0.0]))
    assert weight * 0.5 + abs(1.0 - weight) == pytest.approx(0.5, abs=1e-6)
    assert program.multipliers(np.array([-1.0, 0.0]))[0] == pytest.approx(0.0, abs=1e-6)


def test_a_missing_cone_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(InputError, match="clarabel"):
        ConeProgram(np.eye(1), np.zeros(1), 1.0, np.zeros((0, 1)), np.zeros(0))
