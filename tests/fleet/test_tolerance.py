"""Guarantees for units that differ: orders of bounds against exact tails, and the risk of support units."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from tightrope.fleet.tolerance import (
    chance_of_next,
    order_of_most,
    order_of_next,
    support_risk,
    units_for,
)


def exact_tail(units: int, k: int, chance: Fraction) -> Fraction:
    return sum((comb(units, j) * chance**j * (1 - chance) ** (units - j) for j in range(k)), Fraction(0))


@pytest.mark.parametrize("units", [1, 5, 20, 57, 100])
@pytest.mark.parametrize(("share", "delta"), [(0.5, 0.1), (0.8, 0.1), (0.9, 0.05), (0.95, 0.3)])
def test_the_order_is_the_largest_that_the_exact_tail_allows(units: int, share: float, delta: float) -> None:
    chance = (1 - Fraction(share)) * (1 - Fraction(0.2))
    k = order_of_most(units, share, delta, 0.2)
    assert exact_tail(units, k, chance) <= Fraction(delta)
    assert k == units or exact_tail(units, k + 1, chance) > Fraction(delta)


@pytest.mark.parametrize(("share", "delta"), [(0.9, 0.1), (0.8, 0.05), (0.99, 0.001)])
def test_the_number_of_units_that_a_share_needs_is_the_least_with_a_bound(share: float, delta: float) -> None:
    need = units_for(share, delta)
    assert order_of_most(need, share, delta) >= 1 and order_of_most(need - 1, share, delta) == 0


def test_the_next_unit_keeps_the_bound_as_often_as_is_said() -> None:
    """Units with value and bound: the bound is too high for a fifth of them, by as much as possible."""
    rng, units, miss = np.random.default_rng(3), 20, 0.2
    k = order_of_next(units, 0.1, miss)
    assert k == 1 and chance_of_next(units, k, miss) == pytest.approx(1 - 1 / (21 * 0.8))
    value = rng.random((40_000, units + 1))
    bound = np.where(rng.random(value.shape) < miss, 1.0, value)[:, :units]
    kept = value[:, units] >= np.sort(bound, axis=1)[:, k - 1]
    assert kept.mean() >= chance_of_next(units, k, miss) - 0.004
    assert order_of_next(5, 0.1) == 0 and chance_of_next(3, 3, 0.5) == 0.0


def test_the_risk_of_support_units_is_that_of_the_equation() -> None:
    for units, support, delta in ((10, 0, 0.1), (30, 3, 0.05), (100, 4, 0.1), (50, 49, 0.1)):
        keep = 1 - Fraction(support_risk(units, support, delta))
        terms = (
            Fraction(comb(j, support), comb(units, support)) / keep ** (units - j)
            for j in range(support, units)
        )
        assert Fraction(delta) / units * sum(terms, Fraction(0)) >= 1
    assert support_risk(7, 7, 0.1) == 1.0 and support_risk(100, 2, 0.1) < support_risk(100, 3, 0.1)


def test_new_units_leave_the_hull_as_rarely_as_is_said() -> None:
    rng, units = np.random.default_rng(5), 40
    value = rng.random((4_000, units))
    outside = 1.0 - (value.max(axis=1) - value.min(axis=1))
    assert (outside > support_risk(units, 2, 0.1)).mean() <= 0.1
