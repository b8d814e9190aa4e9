"""Bases that prove bounds over a region: as good as linear programs, also where the simplex method stalls."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from tightrope.certify.region import BasisFinder
from tightrope_check.learned import RowSystem, upper_bounds
from tightrope_check.numbers import RATIONAL


def _rows(size: int, count: int, seed: int) -> RowSystem:
    """Random half-spaces around 0 in the cube [−1, 1]^size."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(count, size))
    matrix /= np.abs(matrix).max(axis=1, keepdims=True)
    random.normal(size=count)
    bound = random.uniform(0.3, 1.0, count) * np.abs(matrix).sum(axis=1) * 0.6
    rows = [RATIONAL.array(row) for row in np.column_stack([matrix, bound])]
    return RowSystem.of(([Fraction(-1)] * size, [Fraction(1)] * size), rows)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("size", "count", "seed"),
    [(2, 6, 1), (3, 12, 2), (4, 30, 3), (5, 12, 148), (5, 20, 289), (7, 60, 4)],
)
def test_bases_prove_what_linear_programs_say(size, count, seed):
    """Seeds 148 and 289: steps of the dual simplex method that gain nothing went round in circles."""
    rows = _rows(size, count, seed)
    random = np.random.default_rng(seed).normal(size=(20, size))
    directions = np.concatenate([np.eye(size), -np.eye(size), random])
    bases = BasisFinder(rows).find(directions)
    proved = RATIONAL.floats(upper_bounds(rows, RATIONAL.array(directions), bases))
    matrix, bound = RATIONAL.floats(rows.matrix), RATIONAL.floats(rows.bound)
    for direction, best in zip(directions, proved, strict=True):
        largest = -linprog(-direction, A_ub=matrix, b_ub=bound, bounds=(None, None)).fun
        assert best == pytest.approx(largest, abs=1e-9)
