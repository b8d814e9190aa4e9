"""Intervals against exact rational binomial tails, and the counterexample to Clopper–Pearson under
stopping.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.statistics.intervals import beta_binomial, clopper_pearson, hoeffding, weissman_radius


def at_least(k: int, n: int, p: Fraction) -> Fraction:
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


def one(method, k: int, n: int, gamma: float) -> tuple[Fraction, Fraction]:
    lower, upper = method(np.array([k]), np.array([n]), gamma)
    return Fraction(float(lower[0])), Fraction(float(upper[0]))


@given(st.integers(1, 60), st.floats(1e-9, 0.5), st.data())
def test_clopper_pearson_tails_are_below_half_gamma_exactly(
    n: int, gamma: float, data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, n))
    lower, upper = one(clopper_pearson, k, n, gamma)
    half = Fraction(gamma) / 2
    assert lower == 0 if k == 0 else at_least(k, n, lower) <= half
    assert upper == 1 if k == n else 1 - at_least(k + 1, n, upper) <= half
    if k > 0:
        assert at_least(k, n, lower * (1 + Fraction(1, 10**7))) > half * Fraction(999999, 1000000)


def test_clopper_pearson_is_tight_at_large_counts() -> None:
    k, n = np.array([40_000_000, 3]), np.array([100_000_000, 1_000_000_000])
    lower, upper = clopper_pearson(k, n, 1e-6)
    assert lower[0] < 0.4 < upper[0]
    assert upper[0] - lower[0] == pytest.approx(2 * 4.8916 * np.sqrt(0.24 / 1e8), rel=1e-3)
    assert 0 < lower[1] < 3e-9 < upper[1] < 4e-8


def test_repeated_counts_are_computed_once_and_put_back_in_order() -> None:
    rng = np.random.default_rng(5)
    n = rng.integers(0, 30, 3000)
    k = rng.integers(0, n + 1)
    lower, upper = clopper_pearson(k, n, 0.01)
    for i in range(0, 3000, 97):
        assert (lower[i], upper[i]) == one(clopper_pearson, k[i], n[i], 0.01)


@pytest.mark.parametrize("method", [clopper_pearson, hoeffding, beta_binomial])
def test_unvisited_is_the_whole_unit_interval(method) -> None:
    assert one(method, 0, 0, 0.01) == (0, 1)


@pytest.mark.parametrize("method", [clopper_pearson, hoeffding, beta_binomial])
def test_mirrored_counts_give_mirrored_intervals_that_contain_the_rate(method) -> None:
    k, n = np.array([0, 1, 7, 20]), np.array([20, 20, 20, 20])
    lower, upper = method(k, n, 0.05)
    _, mirrored_upper = method(n - k, n, 0.05)
    assert np.allclose(lower, 1 - mirrored_upper, atol=1e-8)
    assert np.all((lower <= k / n) & (k / n <= upper))
    assert np.all((lower >= 0) & (upper <= 1))


def test_hoeffding_radius() -> None:
    lower, upper = one(hoeffding, 50, 100, 0.05)
    radius = Fraction(np.sqrt(np.log(40) / 200))
    assert lower <= Fraction(1, 2) - radius and upper >= Fraction(1, 2) + radius
    assert float(upper - lower) == pytest.approx(2 * float(radius), rel=1e-12)


@given(st.integers(1, 40), st.floats(1e-6, 0.3), st.data())
def test_beta_binomial_ends_lie_outside_the_mixture_set(n: int, gamma: float, data: st.DataObject) -> None:
    """M_n at the returned ends exceeds 1/gamma; B(K+½, n−K+½)/B(½,½) is the rational C(2K,K)C(2J,J)/(4^n
    C(n,K)).
    """
    k = data.draw(st.integers(0, n))
    lower, upper = one(beta_binomial, k, n, gamma)
    mixture = Fraction(comb(2 * k, k) * comb(2 * (n - k), n - k), 4**n * comb(n, k))
    for end, trivial in ((lower, 0), (upper, 1)):
        if end != trivial:
            assert mixture / (end**k * (1 - end) ** (n - k)) >= 1 / Fraction(gamma)
    inside = lower + (upper - lower) * Fraction(1, 10**6)
    if lower != 0 and inside < Fraction(k, n):
        assert mixture / (inside**k * (1 - inside) ** (n - k)) < 1 / Fraction(gamma)


def test_clopper_pearson_misses_more_than_gamma_under_stopping_on_outcomes() -> None:
    """Stop at 6/6 or 0/6 heads, else at 9 tosses, p = ½, gamma = .05: the miss probability is exactly
    7/128.
    """
    paths = {(0, 0): Fraction(1)}
    missed = {clopper_pearson: Fraction(0), beta_binomial: Fraction(0)}
    for _ in range(9):
        following: dict[tuple[int, int], Fraction] = {}
        for (tossed, heads), mass in paths.items():
            for heads_now in (heads, heads + 1):
                key = (tossed + 1, heads_now)
                following[key] = following.get(key, Fraction(0)) + mass / 2
        paths = {}
        for (tossed, heads), mass in following.items():
            if tossed == 9 or (tossed == 6 and heads in (0, 6)):
                for method in missed:
                    lower, upper = one(method, heads, tossed, 0.05)
                    if not lower <= Fraction(1, 2) <= upper:
                        missed[method] += mass
            else:
                paths[tossed, heads] = mass
    assert missed[clopper_pearson] == Fraction(7, 128) > Fraction(1, 20)
    assert missed[beta_binomial] <= Fraction(1, 20)


def test_weissman_radius_solves_its_inequality() -> None:
    outcomes, trials = np.array([2, 3, 6, 4]), np.array([100, 1000, 50, 0])
    radius = weissman_radius(outcomes, trials, 0.01)
    tail = (2.0 ** outcomes[:3] - 2) * np.exp(-trials[:3] * radius[:3] ** 2 / 2)
    assert np.all(tail <= 0.01) and np.allclose(tail, 0.01, rtol=1e-9)
    assert radius[3] == 2.0
