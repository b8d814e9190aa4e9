"""Polynomial models: envelopes hold at true points, bounds enclose samples, tightening tightens."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from region_reference import coins, with_intervals
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.prism.load import load_prism_text
from tightrope.regions.bounds import expression_bounds, parameter_box
from tightrope.regions.event_polytope import polytope_region
from tightrope.regions.region import Relaxation
from tightrope.regions.tightening import envelope_rows
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import Budget

F = Fraction
P, Q, R = (Polynomial.variable(i) for i in range(3))


def test_chain_of_products_reaches_every_degree() -> None:
    parameters = Parameters.unit_box(("p", "q", "r"))
    model = coins(parameters, [P * P * Q, P * Q * R, P**4])
    coordinates = Coordinates.of(model.expressions, parameters)
    assert coordinates.names == ("p", "q", "r", "p*q", "p^2", "p*q*r", "p^2*q", "p^3", "p^4")
    values = coordinates.lift(np.array([[0.5, 0.25, 0.125]]))[0]
    exact = coordinates.lift_exact([F(1, 2), F(1, 4), F(1, 8)])
    assert values.tolist() == [float(value) for value in exact]
    assert exact[coordinates.names.index("p^2*q")] == F(1, 16)


@given(st.data())
def test_envelopes_hold_at_true_products(data: st.DataObject) -> None:
    bound = st.floats(-3, 3).map(lambda v: round(v, 3))
    ends = [sorted([data.draw(bound), data.draw(bound)]) for _ in range(2)]
    products = ((0, 1), (0, 0))
    lower = np.array([ends[0][0], ends[1][0], -9.0, -9.0])
    upper = np.array([ends[0][1], ends[1][1], 9.0, 9.0])
    matrix, limit = envelope_rows(products, lower, upper)
    shares = [F(data.draw(st.integers(0, 16)), 16) for _ in range(2)]
    x, y = (F(low) + (F(high) - F(low)) * s for (low, high), s in zip(ends, shares, strict=True))
    point = [x, y, x * y, x * x]
    for row, b in zip(matrix, limit, strict=True):
        assert sum(F(float(a)) * v for a, v in zip(row, point, strict=True)) <= F(float(b))


@pytest.mark.parametrize(
    "expressions",
    [
        [P, Q, P * Q],
        [P, P * P],
        [P * Q, P / 2 + Q / 2],
        [P, Q * Q * P, Q],
        [P * Q * R, P, Q, R / 2 + P / 2],
    ],
)
def test_bounds_enclose_every_consistent_parameter(expressions: list[Polynomial]) -> None:
    rng = np.random.default_rng(17)
    names = ("p", "q", "r")
    parameters = Parameters.unit_box(names)
    model = coins(parameters, expressions)
    truth = np.array([0.3, 0.6, 0.45])
    table = model.expressions
    values = table.values_many(truth[None, :])[0]
    tied = with_intervals(model, [0.0], [1.0], Budget.TIED)
    row = tied.events.expression
    lower, upper = values[row] - 0.05, values[row] + 0.04
    region = polytope_region(with_intervals(model, lower.tolist(), upper.tolist(), Budget.TIED))
    assert region.relaxation is Relaxation.OUTER and region.contains([F(float(v)) for v in truth])
    low, high = expression_bounds(region, table)
    box = parameter_box(region)
    thetas = rng.uniform(np.maximum(box[0], 0) - 0.02, np.minimum(box[1], 1) + 0.02, size=(20000, 3)).clip(
        0, 1
    )
    every = table.values_many(thetas)
    consistent = np.all((every[:, row] >= lower) & (every[:, row] <= upper), axis=1)
    assert consistent.sum() > 10
    assert np.all(every[consistent] >= low - 1e-12) and np.all(every[consistent] <= high + 1e-12)
    assert np.all(thetas[consistent] >= box[0] - 1e-12) and np.all(thetas[consistent] <= box[1] + 1e-12)
    assert all(region.contains([F(float(v)) for v in theta]) for theta in thetas[consistent][:20])
    # The relaxation is not vacuous either: at most twice the sampled width, plus what sampling missed.
    sampled = every[consistent].max(axis=0) - every[consistent].min(axis=0)
    assert np.all(high - low <= 2.0 * sampled + 0.05)


def test_tightening_repeats_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    model = coins(Parameters.unit_box(("p", "q")), [P * Q, P, Q])
    intervals = with_intervals(model, [0.20, 0.4, 0.0], [0.24, 0.6, 1.0], Budget.TIED)
    many = polytope_region(intervals)
    monkeypatch.setattr("tightrope.regions.tightening._ROUNDS", 1)
    once = polytope_region(intervals)
    assert many.tightening.converged and not once.tightening.converged
    assert many.tightening.rounds > 1 == once.tightening.rounds
    width = many.bounding_box[1] - many.bounding_box[0]
    assert np.all(width <= once.bounding_box[1] - once.bounding_box[0])
    assert parameter_box(many)[1][1] <= 0.24 / 0.4 + 0.02
    assert any("bound tightening" in note for note in many.notes)


def test_square_is_bounded_from_both_sides() -> None:
    model = coins(Parameters.unit_box(("p",)), [P * P])
    region = polytope_region(with_intervals(model, [0.25], [0.36], Budget.TIED))
    low, high = parameter_box(region)
    assert low[0] <= 0.5 and high[0] >= 0.6
    assert high[0] - low[0] < 0.11


def test_contradiction_between_factors_and_product_is_named() -> None:
    model = coins(Parameters.unit_box(("p", "q", "r")), [P, Q, P * Q, R])
    lower, upper = [0.1, 0.1, 0.3, 0.2], [0.3, 0.4, 0.5, 0.4]
    intervals = with_intervals(model, lower, upper, Budget.TIED)
    order = [intervals.events.function(e).text(("p", "q", "r")) for e in range(4)]
    by_name = dict(zip(["p", "q", "p*q", "r"], zip(lower, upper, strict=True), strict=True))
    arranged = [by_name[name] for name in order]
    region = polytope_region(
        with_intervals(model, [a for a, _ in arranged], [b for _, b in arranged], Budget.TIED)
    )
    assert region.emptiness.is_empty
    conflict = region.emptiness.conflict
    assert conflict is not None
    assert {text.split(" (as in")[0] for text in conflict.texts} == {"p", "q", "p*q"}


RATIO = """mdp
const double p;
const double q;
module m
  s : [0..2] init 0;
  [a] s=0 -> p/(p+q) : (s'=1) + q/(p+q) : (s'=2);
  [b] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [end] s>0 -> true;
endmodule
label "goal" = s=1;
"""


@pytest.mark.parametrize("sets", ["rectangular", "coupled"])
def test_an_equality_may_make_a_denominator_constant(sets: str) -> None:
    """With p + q = 1, p/(p + q) is p, and the region is an interval of p that both events allow."""
    model = load_prism_text(RATIO, box="p=0.1:0.9,q=0.1:0.9", domain="p+q=1")
    assert isinstance(model, tr.ParametricMDP)
    data = tr.Simulator(model.instantiate(p=0.55, q=0.45), model_hash=model.hash()).generative(300, seed=1)
    result = tr.learn(
        tr.Problem(model, 'Pmax=? [ F "goal" ]'), data, delta=0.01, region="polytope", sets=sets
    )
    low, high = result.interval.lower, result.interval.upper
    box = parameter_box(result.region)
    assert 0.4 < low <= 0.55 <= high < 0.7
    assert abs(low - box[0][0]) < 1e-9 and abs(high - box[1][0]) < 1e-9
    assert abs(box[0][0] + box[1][1] - 1) < 1e-9


@pytest.mark.parametrize(("p", "fits"), [("3/10", False), ("11/20", True)])
def test_a_domain_of_one_point_beside_quotients(p: str, fits: bool) -> None:
    """Where the intervals exclude the point the region is empty; that is no error of the linear program."""
    free = load_prism_text(RATIO, box="p=0.1:0.9,q=0.1:0.9")
    one = load_prism_text(RATIO, box="p=0.1:0.9,q=0.1:0.9", domain=f"p={p}, p+q=1")
    assert isinstance(free, tr.ParametricMDP) and isinstance(one, tr.ParametricMDP)
    data = tr.Simulator(free.instantiate(p=0.55, q=0.45), model_hash=one.hash()).generative(3000, seed=1)
    result = tr.learn(tr.Problem(one, 'Pmax=? [ F "goal" ]'), data, delta=0.01, region="polytope")
    assert result.region.emptiness.is_empty is not fits
    assert not fits or abs(result.guarantee - 0.55) < 1e-6
