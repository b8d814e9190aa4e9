"""Sums over states and points that the checker takes in doubles: never below the exact ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tightrope_check.coupled import _range_of_pairs, total_doubt
from tightrope_check.numbers import FLOAT64, RATIONAL, as_fraction


@pytest.mark.parametrize("seed", range(4))
def test_doubts_in_doubles_are_above_the_exact_ones(seed):
    random = np.random.default_rng(seed)
    doubt = np.where(random.random(30) < 0.3, 0.0, 10.0 ** random.uniform(-12, 0, 30))
    along, y = random.normal(size=(30, 4)), random.normal(size=(9, 4))
    base = -along @ y[0] + np.where(random.random(30) < 0.5, 0.0, 1e-3)  # cancels, nearly, at one point
    exact = total_doubt(RATIONAL, *(RATIONAL.array(part) for part in (doubt, base, along, y)))
    found = total_doubt(FLOAT64, *(FLOAT64.array(part) for part in (doubt, base, along, y)))
    assert all(a >= b for a, b in zip(FLOAT64.fractions(found), RATIONAL.fractions(exact), strict=True))
    assert RATIONAL.floats(exact) == pytest.approx(found.astype(float), rel=1e-12, abs=1e-13)
    parts = [[Fraction(value) for value in row] for row in (doubt, base)]
    terms = zip(*parts, along.tolist(), strict=True)
    for point, bound in zip(y.tolist(), RATIONAL.fractions(exact), strict=True):
        true = sum(d * abs(b + _dot(row, point)) for d, b, row in terms)
        assert true <= bound <= true + Fraction(1, 10**50)
        terms = zip(*parts, along.tolist(), strict=True)


def _dot(left, right):
    return sum(Fraction(a) * Fraction(b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("n", [FLOAT64, RATIONAL])
def test_no_pair_lies_outside_the_range_of_pairs(n):
    """Also of rationals that no power of two divides."""
    random = np.random.default_rng(5)
    first, second = (random.integers(-99, 99, (7, 3)).tolist() for _ in range(2))
    first, second = ([[Fraction(v, 7) for v in row] for row in part] for part in (first, second))
    low = [Fraction(int(v), 3) for v in random.integers(-50, 50, 7)]
    high = [v + Fraction(1, 11) for v in low]
    pairs = [(k, m) for k in range(7) for m in range(7)]
    values = [
        (low[k] + low[m] + _dot(first[k], second[m]), high[k] + high[m] + _dot(first[k], second[m]))
        for k, m in pairs
    ]
    found = _range_of_pairs(n, *(n.array(part) for part in (low, high, first, second)))
    ends = [as_fraction(end) for end in found]
    slack = Fraction(1, 10**12 if n.exact else 10**10)
    assert min(a for a, _ in values) - slack <= ends[0] <= min(a for a, _ in values)
    assert max(b for _, b in values) <= ends[1] <= max(b for _, b in values) + slack


@pytest.mark.parametrize("n", [FLOAT64, RATIONAL])
def test_without_doubt_there_is_none(n):
    none = n.zeros(2)
    found = total_doubt(n, none, none + 1, n.zeros((2, 1)), n.zeros((3, 1)) + 1)
    assert n.fractions(found) == [0, 0, 0]


def test_states_of_known_value_add_nothing():
    doubt, base, along, y = np.array([0.0, 0.5]), np.array([7.0, 2.0]), np.ones((2, 1)), np.array([[1.0]])
    found = total_doubt(FLOAT64, *(FLOAT64.array(part) for part in (doubt, base, along, y)))
    assert float(found[0]) == pytest.approx(1.5, rel=1e-13)
