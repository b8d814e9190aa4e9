"""Single lemmas behind the checks, at the edges where rounding or wrapping around would break them."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tightrope_check.coordinates import bernstein_table
from tightrope_check.coupled import hull_misfit, total_doubt
from tightrope_check.evidence import Domain
from tightrope_check.learned import RowSystem
from tightrope_check.nature import Graph
from tightrope_check.numbers import FLOAT64, RATIONAL, Arithmetic, OutOfRange, as_fraction
from tightrope_check.problem import CertifiedObjective, CertifiedProblem
from tightrope_check.statistics.costs import Costs, CostStatements

BOTH = pytest.mark.parametrize("n", [FLOAT64, RATIONAL], ids=["float64", "rational"])


@BOTH
def test_nearly_opposite_rows_do_not_cover_the_other_side(n: Arithmetic) -> None:
    """All three rows lie in one half-plane, by a hair, so their cones leave out the direction (−1, 1).

    With rows divided by their lengths in doubles the hair is on the other side, and the cones seem to cover.
    """
    wide = Fraction(0.9999999999999993)
    near, far, aside = (1.0, 0.9999999999999991), (-1.0000000000000004, -0.9999999999999996), (0.0, -1.0)
    assert _turn(near, far) < 0 and _turn(near, aside) < 0 and _turn(aside, far) < 0
    box = [Fraction(0), Fraction(0)], [Fraction(1), wide]
    rows = RowSystem.of(
        box, [RATIONAL.array([*map(Fraction, row), Fraction(-1)]) for row in (near, far, aside)]
    )
    simplices, around = np.array([[4, 5], [5, 6], [6, 4]]), (np.zeros(2), np.eye(2))
    trouble = hull_misfit(n, rows, simplices, np.zeros((3, 2)), *around)
    assert trouble is not None and "on the same side of their common face" in trouble
    corners = np.array([[2.0, 2.0], [-1.0, 2.0], [-1.0, -1.0], [2.0, -1.0]])
    assert hull_misfit(n, rows, np.array([[0, 2], [2, 1], [1, 3], [3, 0]]), corners, *around) is None


def _turn(left: tuple[float, float], right: tuple[float, float]) -> Fraction:
    return Fraction(left[0]) * Fraction(right[1]) - Fraction(left[1]) * Fraction(right[0])


def test_doubts_too_small_for_doubles_are_not_lost() -> None:
    n = FLOAT64
    doubt, base = n.array([5e-324]), n.array([1e308])
    along = y = n.zeros((1, 1))
    assert doubt[0] * doubt[0] == 0 and doubt[0] * base[0] > 1e-23
    with pytest.raises(OutOfRange):
        total_doubt(n, doubt, base, along, y)
    base = n.array([0.5])
    assert total_doubt(n, doubt, base, along, y)[0] >= doubt[0] * base[0]


def test_numbers_of_costs_do_not_wrap_around() -> None:
    """2¹³ transitions with 2⁵⁰ costs each are 2⁶³ costs, which int64 reads as −2⁶³; 2¹⁴ are 0."""
    many, state = 2**14, np.zeros(1, dtype=np.int64)
    graph = Graph(np.array([0, 1]), np.array([0, many]), np.zeros(many, dtype=np.int64), 0)
    asked = CertifiedObjective("TOTAL", "MAX", "ANY", False, 0, earned=state)
    box = Domain((Fraction(0),), (Fraction(1),), (), (), np.zeros(0, dtype=np.bool_))
    problem = CertifiedProblem(graph, asked, polynomial=({((0, 1),): Fraction(1)},), domain=box)
    sums = (Fraction(2**50),) * many
    costs = Costs(np.arange(many), np.full(many, 2**50), sums, sums, 0.0, 4.0)
    (groups,) = CostStatements(problem, costs).groups
    assert [(count, total) for _, _, count, total, _ in groups] == [(2**64, 2**64)]


@settings(max_examples=25)
@given(
    degree=st.integers(0, 4),
    low=st.fractions(-3, 3, max_denominator=9),
    high=st.fractions(-3, 3, max_denominator=9),
)
def test_bernstein_coefficients_are_means_of_products(degree: int, low: Fraction, high: Fraction) -> None:
    for k, row in enumerate(bernstein_table(degree, low, high)):
        points = [high] * k + [low] * (degree - k)
        for e, found in enumerate(row):
            assert as_fraction(found) * comb(degree, e) == _elementary(points, e)


def _elementary(points: list[Fraction], e: int) -> Fraction:
    sums = [Fraction(1), *[Fraction(0)] * e]
    for point in points:
        for i in range(e, 0, -1):
            sums[i] += sums[i - 1] * point
    return sums[e]


def test_degrees_without_end_are_refused() -> None:
    with pytest.raises(ValueError, match="too high a degree"):
        bernstein_table(4000, Fraction(1, 10), Fraction(9, 10))
    with pytest.raises(ValueError, match="too high a degree"):
        bernstein_table(60, Fraction(1, 10**3999), Fraction(1))
