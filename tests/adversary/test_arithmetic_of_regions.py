"""The arithmetic lies, in what learned certificates rest on: operands at the edge of float64 and beyond.

The truth is in rationals. Whatever float64 says is on the safe side, and nothing underflows in regions.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from tightrope_check.coordinates import Space
from tightrope_check.coupled import (
    Ball,
    PolicyChain,
    ValueModel,
    hull_misfit,
    model_misfit,
    polynomial_ends,
    total_doubt,
)
from tightrope_check.evidence import Domain
from tightrope_check.learned import BasisTable, RowSystem, upper_bounds
from tightrope_check.logarithms import log_ratio
from tightrope_check.numbers import FLOAT64, RATIONAL, OutOfRange
from tightrope_check.statistics.binomial import Intervals
from tightrope_check.statistics.ellipsoid import EllipsoidRows
from tightrope_check.statistics.likelihood import Forms, Likelihood, log_units

SMALL, LARGE = Fraction(1, 10**5000), Fraction(10**5000)
EDGES = [5e-324, 2.0**-1022, 1e-300, 1e-160, 1e-30, 1.0, 1e30, 1e150, 1e290]


def _rows(*rows: list[Fraction], reach: Fraction = Fraction(1)) -> RowSystem:
    size = len(rows[0]) - 1
    return RowSystem.of(([-reach] * size, [reach] * size), [RATIONAL.array(row) for row in rows])


@pytest.mark.parametrize("scale", EDGES)
def test_bounds_by_bases_in_floats_are_above_the_exact_ones(scale: float) -> None:
    random = np.random.default_rng(3)
    size = 3
    table = random.normal(size=(6, size + 1)) * 10.0 ** random.uniform(-5, 5, (6, 1))
    table[:, -1] = np.abs(table[:, -1])
    rows = _rows(*[[Fraction(v) for v in row] for row in table.tolist()])
    basis = np.array([[0, 2, 4], [6, 7, 8], [9, 10, 11], [1, 6, 11]])
    directions = random.normal(size=(40, size)) * scale
    which = random.integers(0, 4, 40)
    exact = BasisTable(rows, basis).upper_bounds(RATIONAL.array(directions), which)
    with np.errstate(all="ignore"):
        near = BasisTable(rows, basis).within(FLOAT64).upper_bounds(directions, which)
    assert all(
        b == np.inf or Fraction(b) >= a for a, b in zip(RATIONAL.fractions(exact), near.tolist(), strict=True)
    )


def test_a_coefficient_too_small_for_floats_does_not_vanish_from_a_row() -> None:
    """10⁻⁵⁰⁰⁰·x ≤ −1 with x down to −10⁵⁰⁰⁰: as 0·x ≤ −1 it would show that the region is empty."""
    rows = _rows([SMALL, Fraction(-1)], reach=LARGE)
    with pytest.raises(OutOfRange):
        rows.within(FLOAT64)
    with np.errstate(all="ignore"):
        found = upper_bounds(rows, RATIONAL.array([[1], [-1]]), np.array([[2], [1]]))
    assert RATIONAL.fractions(found)[0] >= -LARGE and RATIONAL.fractions(found)[1] == LARGE
    rows = _rows([SMALL, Fraction(-1, 10**4990)], reach=Fraction(10**11)).within(FLOAT64)
    assert rows.matrix[2, 0] == 0 and rows.bound[2] >= 0


@pytest.mark.parametrize("scale", [Fraction(1, 10**400), SMALL, LARGE])
def test_directions_beyond_floats_are_bounded_exactly(scale: Fraction) -> None:
    rows = _rows([Fraction(1), Fraction(1), Fraction(1)])
    with np.errstate(all="ignore"):
        found = upper_bounds(rows, RATIONAL.array([[scale, 2 * scale]]), np.array([[4, 2]]))
    assert RATIONAL.fractions(found)[0] >= 2 * scale


def _about(polynomials: list[dict], low: Fraction, high: Fraction) -> SimpleNamespace:
    none: tuple = ()
    domain = Domain((low,), (high,), none, none, np.zeros(0, dtype=np.bool_))
    return SimpleNamespace(
        space=Space(domain, polynomials),
        polynomials=polynomials,
        used=list(range(len(polynomials))),
        unknown=np.ones(len(polynomials), dtype=np.bool_),
    )


@pytest.mark.parametrize("power", [20, 400, 3999])
def test_a_negative_probability_is_none_however_small(power: int) -> None:
    """−θ² at θ = 10⁻³⁹⁹⁹ is no probability: a plug-in there scores nothing."""
    theta = Fraction(1, 10**power)
    square = {((0, 2),): Fraction(-1)}
    rest = {(): Fraction(1), ((0, 2),): Fraction(1)}
    about = _about([square, rest], Fraction(0), 2 * theta)
    likelihood = object.__new__(Likelihood)
    likelihood.forms, likelihood.unknown = Forms(about), np.arange(2)
    point = np.array([float(theta)])
    assert (point[0] == 0) == (power > 323)
    if power <= 323:
        assert likelihood._score(point, np.array([0, 5])) is None
    assert likelihood._score(np.array([0.0]), np.array([1, 5])) is None  # what was seen has probability 0


@pytest.mark.parametrize("scale", EDGES[:-1])
def test_ellipsoids_in_floats_are_above_the_exact_ones(scale: float) -> None:
    random = np.random.default_rng(7)
    found = object.__new__(EllipsoidRows)
    found.n, found.size = RATIONAL, 3
    found.middle = RATIONAL.array([SMALL, Fraction(1, 3), Fraction(-7)])
    found.image = RATIONAL.array(random.normal(size=(3, 3)))
    found.image[1] = RATIONAL.array([SMALL, Fraction(1, 10**200), Fraction(1, 10**320)])
    directions = random.normal(size=(20, 3)) * scale
    exact = found.upper_bounds(RATIONAL.array(directions), None)
    with np.errstate(all="ignore"):
        near = found.within(FLOAT64).upper_bounds(directions, None)
    assert all(
        b == np.inf or Fraction(b) >= a for a, b in zip(RATIONAL.fractions(exact), near.tolist(), strict=True)
    )


def test_quick_logarithms_enclose_the_slow_ones() -> None:
    random = np.random.default_rng(1)
    values = np.concatenate([EDGES, 10.0 ** random.uniform(-320, 308, 300), random.uniform(0.4, 2.1, 300)])
    long = [SMALL, LARGE, Fraction(1, 3), Fraction(2**200 + 1, 2**200)]
    for array in (values, np.array(long, dtype=object), np.array(long[2:], dtype=object)):
        low, high = log_units(array, False), log_units(array, True)
        for value, a, b in zip(array.tolist(), low.tolist(), high.tolist(), strict=True):
            top, bottom = Fraction(value).numerator, Fraction(value).denominator
            assert a <= log_ratio(top, bottom, False)[0] and log_ratio(top, bottom, True)[0] <= b
            assert b - a <= 2**72
    with pytest.raises(OutOfRange):
        log_units(np.array([0.0, 1.0]), True)


@pytest.mark.parametrize("method", ["clopper-pearson", "beta-binomial", "hoeffding"])
@pytest.mark.parametrize("end", [5e-324, 2.0**-1022, 1e-300])
def test_ends_next_to_0_and_1_are_proved_as_they_are(method: str, end: float) -> None:
    """One success in a trial has probability p: a lower end of γ/2 and no more, however small γ is."""
    count = np.array([1])
    for gamma, wrong in ((2 * Fraction(end) * 2, False), (2 * Fraction(end) / 2, True)):
        found = Intervals(method, gamma).unproved(count, count, np.array([end]), np.array([1.0]))
        if method == "clopper-pearson":
            assert found.tolist() == [wrong]
        elif wrong:
            assert found.tolist() == [True]


def _walk(n: object, weight: list, linear: list, constant: list) -> PolicyChain:
    """One open state, from which two decided ones follow."""
    number = n.array
    return PolicyChain(
        n, np.array([0]), np.array([0, 2]), number(weight), np.array([0, 1]), np.array([1, 2]),
        number([[v] for v in linear]), number(constant), n.zeros(1), n.zeros(1),
    )  # fmt: skip


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e-200, 1e-100])
def test_models_that_miss_by_what_floats_lose_are_refused(value: float) -> None:
    """V = ½·value + ½·value at the open state: an error below half of what is missed proves nothing."""
    shape = np.array([[1.0], [-1.0]]), np.array([0.5]), np.array([[1e-3]])
    for n in (FLOAT64, RATIONAL):
        walk = _walk(n, [1.0, 1.0], [0.0, 0.0], [Fraction(1, 2), Fraction(1, 2)])
        ball = Ball.of(walk, *shape)
        model = ValueModel.constant(np.array([0.0, value, value]), 1)
        model.error[0] = value / 4
        assert model_misfit(walk, ball, model).tolist() == [True]
        model.error[0] = 4 * value
        assert not n.exact or model_misfit(walk, ball, model).tolist() == [False]


@pytest.mark.parametrize("large", [1e61, 1e160, 1e300])
def test_numbers_too_large_for_the_filter_are_left_to_rationals(large: float) -> None:
    shape = np.array([[1.0], [-1.0]]), np.array([0.5]), np.array([[1e-3]])
    walk = _walk(FLOAT64, [1.0, 1.0], [0.0, 0.0], [Fraction(1, 2), Fraction(1, 2)])
    model = ValueModel.constant(np.array([0.0, large, large]), 1)
    with pytest.raises(OutOfRange), np.errstate(all="ignore"):
        model_misfit(walk, Ball.of(walk, *shape), model)
    with pytest.raises(OutOfRange), np.errstate(all="ignore"):
        polynomial_ends(Ball.of(walk, *shape), model, 1, shape[0])
    with pytest.raises(OutOfRange):
        total_doubt(FLOAT64, np.array([large]), np.ones(1), np.ones((1, 1)), np.ones((1, 1)))


@pytest.mark.parametrize("short", [0.0, 5e-324, 1e-310, 1e-200])
def test_points_on_the_wrong_side_by_a_hair_are_seen(short: float) -> None:
    """The box [0, 1]² and a corner that falls short of it, by less than float64 can add to 1."""
    rows = RowSystem.of(([Fraction(0)] * 2, [Fraction(1)] * 2), [])
    simplices = np.array([[0, 2], [2, 1], [1, 3], [3, 0]])
    corners = np.array([[1.0, 1.0], [short, 1.0], [-0.0, -0.0], [1.0, -0.0]])
    trouble = hull_misfit(FLOAT64, rows, simplices, corners, np.zeros(2), np.eye(2))
    assert (trouble is None) == (short == 0)
