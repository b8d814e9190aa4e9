"""Balls in χ² distance: the radius by hand, the distance against the divergence, coverage at all times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from region_reference import coins, counts_of
from tightrope.data.design import SamplingKind
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.regions.bounds import parameter_box
from tightrope.regions.chi2 import CHI2, chi2_radius
from tightrope.regions.registry import build_region
from tightrope.statistics.confidence_budget import Assumption

P = Polynomial.variable(0)


def distance(seen: np.ndarray, truth: np.ndarray) -> float:
    rate = seen / seen.sum()
    return float(((rate - truth) ** 2 / np.maximum(rate, truth)).sum())


def test_the_radius_of_two_tosses_by_hand() -> None:
    """Heads and tails: L̂ = 1/4, and the mixture gives the sequence 1/2·1/4 = 1/8."""
    expected = 2 * (math.log(20) + math.log(1 / 4) - math.log(1 / 8)) / 2
    assert chi2_radius(np.array([[1.0, 1.0]]), 0.05)[0] == pytest.approx(expected, rel=1e-8)
    assert chi2_radius(np.array([[1.0, 1.0]]), 0.05)[0] >= expected


def test_the_distance_is_at_most_twice_the_divergence() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        a, b = rng.dirichlet(np.full(4, 0.4), size=2)
        divergence = float((a * np.log(a / b)).sum())
        assert ((a - b) ** 2 / np.maximum(a, b)).sum() <= 2 * divergence * (1 + 1e-12) + 1e-12


def test_rows_hold_of_everything_in_the_ball_and_touch_it() -> None:
    seen, sets = np.array([[6.0, 30.0, 64.0]]), np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    radius, excess = chi2_radius(seen, 0.1)[0], CHI2.excess(seen, sets, 0.1)[0]
    rate = seen[0] / 100
    rng, reached = np.random.default_rng(4), np.zeros(len(sets))
    for step in np.concatenate([rng.normal(size=(3000, 3)), [[2, -1, -1], [-1, 2, -1], [-1, -1, 2.0]]]):
        step = (step - step.mean()) * rng.uniform(0, 0.3) / np.abs(step).max()
        point = rate + step
        if point.min() > 0 and distance(seen[0], point) <= radius:
            assert np.all(sets @ (point - rate) <= excess)
            reached = np.maximum(reached, sets @ (point - rate))
    assert np.all(reached >= 0.85 * excess)


def test_stopping_when_the_true_value_is_excluded_is_rare() -> None:
    rng, truth, missed, repeats = np.random.default_rng(6), np.array([0.05, 0.25, 0.7]), 0, 80
    for _ in range(repeats):
        seen = np.cumsum(rng.multinomial(1, truth, size=400), axis=0).astype(np.float64)
        radius = chi2_radius(seen, 0.2)
        missed += any(distance(one, truth) > r for one, r in zip(seen, radius, strict=True))
    assert missed <= 0.2 * repeats


def test_a_rare_outcome_is_known_better_than_in_an_l1_ball() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    adaptive = counts_of(model, [20, 1980, 0, 0], SamplingKind.ADAPTIVE)
    region = build_region("chi2", model, adaptive, 0.01)
    assert region.ledger.holds and region.ledger.assumption is Assumption.ADAPTIVE_ANYTIME
    low, high = (float(end[0]) for end in parameter_box(region))
    assert low < 0.01 < high
    balls = build_region("l1", model, counts_of(model, [20, 1980, 0, 0], SamplingKind.GENERATIVE_FIXED), 0.01)
    wide_low, wide_high = (float(end[0]) for end in parameter_box(balls))
    assert high - low < 0.6 * (wide_high - wide_low)
