"""Sums over states and points that the checker takes in doubles: never below the exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.certificate.coupled.values import total_doubt
from tightrope.certificate.numbers import LONGDOUBLE, RATIONAL


@pytest.mark.parametrize("seed", range(4))
def test_doubts_in_doubles_are_above_the_exact_ones(seed):
    random = np.random.default_rng(seed)
    doubt = np.where(random.random(30) < 0.3, 0.0, 10.0 ** random.uniform(-12, 0, 30))
    along, y = random.normal(size=(30, 4)), random.normal(size=(9, 4))
    base = -along @ y[0] + np.where(random.random(30) < 0.5, 0.0, 1e-3)  # cancels, nearly, at one point
    exact = total_doubt(RATIONAL, *(RATIONAL.array(part) for part in (doubt, base, along, y)))
    found = total_doubt(LONGDOUBLE, *(LONGDOUBLE.array(part) for part in (doubt, base, along, y)))
    assert all(a >= b for a, b in zip(LONGDOUBLE.fractions(found), RATIONAL.fractions(exact), strict=True))
    assert RATIONAL.floats(exact) == pytest.approx(found.astype(float), rel=1e-12, abs=1e-13)


def test_states_of_known_value_add_nothing():
    doubt, base, along, y = np.array([0.0, 0.5]), np.array([7.0, 2.0]), np.ones((2, 1)), np.array([[1.0]])
    found = total_doubt(LONGDOUBLE, *(LONGDOUBLE.array(part) for part in (doubt, base, along, y)))
    assert float(found[0]) == pytest.approx(1.5, rel=1e-13)
