"""The ellipsoid: closed forms, cuts by the domain, and why the published constant is not sound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from region_reference import coins, counts_of, generative, simplex
from tightrope.data.design import SamplingKind
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.regions.bounds import expression_bounds, parameter_box
from tightrope.regions.ellipsoid import ELLIPSOID, Ellipsoid
from tightrope.regions.region import RegionOptions, RegionTask
from tightrope.statistics.confidence_budget import Assumption
from tightrope.statistics.least_squares import EllipsoidVersion

F = Fraction
P, Q = Polynomial.variable(0), Polynomial.variable(1)
COIN = Polynomial.constant(F(9, 20)) + P / 10


def boundary(region: Ellipsoid, count: int, seed: int) -> np.ndarray:
    """Points on the boundary of the ellipsoid, in coordinates x."""
    squares = region.squares
    unit = np.random.default_rng(seed).normal(size=(count, len(squares.centre)))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    factor = np.linalg.cholesky(np.linalg.inv(squares.matrix))
    return squares.origin + squares.scale * (squares.centre + squares.radius * unit @ factor.T)


def example(within_domain: bool) -> Ellipsoid:
    model = coins(Parameters.box(p=(0, 1), q=(0, "0.5")), [P / 2 + Q, P, Q])
    counts = generative(model, [F(3, 10), F(1, 20)], 60, np.random.default_rng(8))
    return replace(ELLIPSOID.build(RegionTask(model, counts, 0.05)), within_domain=within_domain)


def test_closed_form_is_the_maximum_over_the_ellipsoid_and_never_below_it() -> None:
    region = example(within_domain=False)
    points = boundary(region, 20000, 1)
    directions = np.random.default_rng(2).normal(size=(25, 2))
    low, high = region.support(directions)
    values = points @ directions.T
    assert np.all(values <= high + 1e-12) and np.all(values >= low - 1e-12)
    assert np.allclose(values.max(axis=0), high, rtol=1e-3, atol=1e-3)


def test_cut_by_the_domain_is_tighter_and_still_contains_all_common_points() -> None:
    whole, cut = example(within_domain=False), example(within_domain=True)
    directions = np.vstack([np.eye(2), np.random.default_rng(3).normal(size=(10, 2))])
    low, high = cut.support(directions)
    free_low, free_high = whole.support(directions)
    assert np.all(high <= free_high + 1e-12) and np.all(low >= free_low - 1e-12)
    assert low[1] == pytest.approx(0.0, abs=1e-6) and free_low[1] < -0.01
    inside = boundary(cut, 20000, 4)
    centre = cut.squares.origin + cut.squares.scale * cut.squares.centre
    inside = np.vstack([inside, centre + (inside - centre) * np.random.default_rng(5).random((20000, 1))])
    inside = inside[np.all((inside >= cut.coordinates.lower) & (inside <= cut.coordinates.upper), axis=1)]
    values = inside @ directions.T
    assert len(inside) > 1000
    assert np.all(values <= high + 1e-12) and np.all(values >= low - 1e-12)
    assert np.allclose(values.max(axis=0), high, atol=0.02) and np.allclose(
        values.min(axis=0), low, atol=0.02
    )


def test_support_is_safe_against_an_exact_evaluation() -> None:
    """|p − p̂| ≤ β/√V for one coin, in rational arithmetic with the square of the bound."""
    model = coins(Parameters.unit_box(("p",)), [P])
    counts = counts_of(model, [30, 70, 0, 0], SamplingKind.ADAPTIVE)
    region = replace(ELLIPSOID.build(RegionTask(model, counts, 0.05)), within_domain=False)
    low, high = (float(v[0]) for v in parameter_box(region))
    # y = 2p − 1, slopes ±½: V = λ + 100·(¼ + ¼), r = ½·(30 − 50) − ½·(70 − 50).
    v = F(0.1) + 50
    centre = F(-20) / v
    beta = np.sqrt(0.5) * np.sqrt(np.log(float(v / F(0.1))) + 2 * np.log(20)) + np.sqrt(0.1)
    for end in (2 * F(high) - 1, 2 * F(low) - 1):
        assert (end - centre) ** 2 * v >= F(float(beta)) ** 2 * (1 - F(1, 10**13))
        assert float((end - centre) ** 2 * v) == pytest.approx(beta**2, rel=1e-9)


def test_published_constant_misses_more_than_delta_even_at_a_fixed_number_of_tosses() -> None:
    """f = 0.45 + 0.1·p at p = ½, δ = 0.001: ten heads or ten tails exclude the truth, 1/512 > δ."""
    model = coins(Parameters.unit_box(("p",)), [COIN])
    missed = {EllipsoidVersion.PAPER: F(0), EllipsoidVersion.SOUND: F(0)}
    from math import comb

    for version in missed:
        for heads in range(11):
            counts = counts_of(model, [heads, 10 - heads, 0, 0], SamplingKind.GENERATIVE_FIXED)
            region = ELLIPSOID.build(RegionTask(model, counts, 0.001, RegionOptions(ellipsoid=version)))
            if not region.contains([F(1, 2)]):
                missed[version] += F(comb(10, heads), 1024)
    assert missed[EllipsoidVersion.PAPER] == F(1, 512) > F(1, 1000)
    assert missed[EllipsoidVersion.SOUND] == 0


def test_published_version_is_labelled() -> None:
    model = coins(Parameters.unit_box(("p",)), [P])
    counts = counts_of(model, [3, 7, 0, 0], SamplingKind.GENERATIVE_FIXED)
    paper = ELLIPSOID.build(
        RegionTask(model, counts, 0.05, RegionOptions(ellipsoid=EllipsoidVersion.PAPER))
    ).ledger
    sound = ELLIPSOID.build(RegionTask(model, counts, 0.05)).ledger
    assert paper.assumption is Assumption.NONE and not paper.holds and "unsound" in paper.method
    assert sound.assumption is Assumption.ADAPTIVE_ANYTIME and sound.holds


def test_equality_of_the_domain_and_unvisited_data() -> None:
    parameters = simplex("a", "b", "c")
    model = coins(parameters, [P, Q])
    nothing = ELLIPSOID.build(RegionTask(model, counts_of(model, [0] * 6, SamplingKind.ADAPTIVE), 0.05))
    low, high = parameter_box(nothing)
    assert np.all(low >= 0) and np.all(high <= 1) and low[2] < 1e-6 and high[2] > 1 - 1e-6
    assert not nothing.emptiness.is_empty and nothing.vertices is None and nothing.facets is None


def test_lifted_ellipsoid_contains_the_true_value_and_uses_envelopes() -> None:
    model = coins(Parameters.unit_box(("p", "q")), [P * Q, P])
    truth = [F(2, 5), F(7, 10)]
    counts = generative(model, truth, 400, np.random.default_rng(9))
    region = ELLIPSOID.build(RegionTask(model, counts, 0.05))
    bare = replace(ELLIPSOID.build(RegionTask(model, counts, 0.05)), within_domain=False)
    assert region.contains(truth)
    low, high = expression_bounds(region, model.expressions)
    wide_low, wide_high = expression_bounds(bare, model.expressions)
    values = model.expressions.values(truth)
    assert np.all(low <= values) and np.all(values <= high)
    assert np.all(low >= wide_low - 1e-9) and np.all(high <= wide_high + 1e-9)


def test_ellipsoid_outside_the_domain_is_empty() -> None:
    model = coins(Parameters.box(p=("0.9", "1")), [P])
    counts = counts_of(model, [1000, 9000, 0, 0], SamplingKind.GENERATIVE_FIXED)
    region = ELLIPSOID.build(RegionTask(model, counts, 0.05))
    assert region.emptiness.is_empty
    assert not region.contains([F(1, 10)])


def test_coefficients_of_very_different_size_are_no_obstacle() -> None:
    """Raw coordinates, as published, put 10⁷ visits and slopes of 1000 into one matrix; scaled ones do
    not.
    """
    parameters = Parameters.box(p=("0.1", "0.4"), q=(0, "0.0005"))
    model = coins(parameters, [P, P / 2 + Q * Polynomial.constant(1000)])
    counts = counts_of(model, [3_000_000, 7_000_000, 4_000_000, 6_000_000, 0, 0], SamplingKind.ADAPTIVE)
    for version in EllipsoidVersion:
        region = ELLIPSOID.build(RegionTask(model, counts, 0.05, RegionOptions(ellipsoid=version)))
        low, high = parameter_box(region)
        assert low[0] < 0.3 < high[0] and high[0] - low[0] < 0.01
        assert low[1] < 0.00025 < high[1] and high[1] - low[1] < 1e-4
