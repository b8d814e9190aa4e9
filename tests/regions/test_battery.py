"""One battery that every region must pass."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from region_reference import coins, counts_of, generative, simplex
from tightrope.data.design import SamplingKind
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.regions.bounds import expression_bounds, parameter_box
from tightrope.regions.region import Region, RegionOptions
from tightrope.regions.registry import build_region, region_kind
from tightrope.statistics.estimates import Budget, IntervalMethod

F = Fraction
P, Q, R = (Polynomial.variable(i) for i in range(3))

OPTIONS = {
    "polytope": (region_kind("polytope"), RegionOptions()),
    "polytope, paper": (region_kind("polytope"), RegionOptions(budget=Budget.PAPER)),
    "polytope, hoeffding": (region_kind("polytope"), RegionOptions(interval=IntervalMethod.HOEFFDING)),
    "polytope, anytime": (region_kind("polytope"), RegionOptions(interval=IntervalMethod.BETA_BINOMIAL)),
    "l1": (region_kind("l1"), RegionOptions()),
    "chi2": (region_kind("chi2"), RegionOptions()),
    "ellipsoid": (region_kind("ellipsoid"), RegionOptions()),
    "likelihood": (region_kind("likelihood"), RegionOptions()),
}

MODELS: dict[str, tuple[ParametricMDP, list[Fraction]]] = {
    "one parameter": (coins(Parameters.unit_box(("p",)), [P, P / 3]), [F(2, 5)]),
    "box": (
        coins(Parameters.box(p=("0.1", "0.9"), q=(0, 1)), [P, Q / 2 + P / 2, Q / 4]),
        [F(3, 10), F(3, 5)],
    ),
    "simplex": (
        coins(simplex("a", "b", "c"), [P / 2 + Q / 4, R, Q / 3 + P]),
        [F(1, 5), F(1, 2), F(3, 10)],
    ),
    "product": (coins(Parameters.unit_box(("p", "q")), [P * Q, P, P / 2 + Q / 2]), [F(3, 10), F(3, 5)]),
    "simplex with products": (
        coins(simplex("a", "b", "c"), [P * R, P / 2 + Q / 3, R]),
        [F(1, 5), F(1, 2), F(3, 10)],
    ),
    "cut box": (
        coins(
            Parameters(
                ("p", "q"),
                (F(0), F(0)),
                (F(1), F(1)),
                (LinearConstraint((F(1), F(1)), F(1)),),
            ),
            [P + Q, P / 2, Q],
        ),
        [F(3, 10), F(3, 5)],
    ),
    "cubic": (coins(Parameters.unit_box(("p", "q")), [P * P * Q, P, Q * Q]), [F(3, 5), F(7, 10)]),
}


def region_of(kind: str, model: str, samples: int, seed: int = 6) -> Region:
    which, options = OPTIONS[kind]
    parametric, truth = MODELS[model]
    counts = generative(parametric, truth, samples, np.random.default_rng(seed))
    return build_region(which, parametric, counts, 0.05, options)


@pytest.mark.thinned(9)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", OPTIONS)
def test_battery(kind: str, model: str) -> None:
    parametric, truth = MODELS[model]
    region = region_of(kind, model, 400)
    table = parametric.expressions

    # It contains the truth it was built around, and so do its projections.
    assert region.contains(truth) and not region.emptiness.is_empty
    low, high = expression_bounds(region, table)
    for value, a, b in zip(table.exact_values(truth).to_fractions(), low, high, strict=True):
        assert F(float(a)) <= value <= F(float(b))
    box_low, box_high = parameter_box(region)
    assert all(F(float(a)) <= t <= F(float(b)) for a, t, b in zip(box_low, truth, box_high, strict=True))

    # The support function is one: ordered, homogeneous, subadditive, consistent with box and witness.
    rng = np.random.default_rng(1)
    size = region.coordinates.size
    first, second = rng.normal(size=(12, size)), rng.normal(size=(12, size))
    lower, upper = region.support(first)
    _, other = region.support(second)
    _, total = region.support(first + second)
    assert np.all(lower <= upper)
    assert np.allclose(region.support(4.0 * first)[1], 4.0 * upper, atol=1e-6)
    assert np.all(total <= upper + other + 1e-6)
    axis_low, axis_high = region.support(np.eye(size))
    bounding_low, bounding_high = region.bounding_box
    assert np.allclose(axis_low, bounding_low, atol=1e-3) and np.allclose(axis_high, bounding_high, atol=1e-3)
    x = region.coordinates.lift(np.array([[float(t) for t in truth]]))[0]
    assert np.all(lower - 1e-12 <= first @ x) and np.all(first @ x <= upper + 1e-12)
    if region.emptiness.witness is not None:
        inside = first @ region.emptiness.witness
        assert np.all(lower - 1e-9 <= inside) and np.all(inside <= upper + 1e-9)
    if region.vertices is not None:
        values = first @ region.vertices.T
        error = np.abs(first) @ region.vertex_error
        assert np.allclose(values.max(axis=1), upper, atol=1e-9)
        assert np.all(values.max(axis=1) + error >= upper - 1e-12)

    # Points of the region keep to its projections; points outside its box are not in it.
    thetas = rng.uniform(box_low, box_high, size=(300, len(truth)))
    on_simplex = any(constraint.is_equality for constraint in parametric.parameters.constraints)
    for theta in thetas:
        exact = [F(float(t)) for t in theta]
        if on_simplex:
            exact[-1] = 1 - sum(exact[:-1])
        if parametric.parameters.contains(exact) and region.contains(exact):
            values = table.values(exact)
            assert np.all(values >= low - 1e-12) and np.all(values <= high + 1e-12)
    assert region.ledger.delta == 0.05 and region.ledger.lines and region.notes


@pytest.mark.thinned(7)
@pytest.mark.parametrize("model", ["box", "product"])
@pytest.mark.parametrize("kind", OPTIONS)
def test_more_data_make_the_region_smaller_on_average(kind: str, model: str) -> None:
    widths = []
    for samples in (100, 1600):
        total = 0.0
        for seed in range(3):
            low, high = expression_bounds(region_of(kind, model, samples, seed), MODELS[model][0].expressions)
            total += float((high - low).sum())
        widths.append(total)
    assert widths[1] < 0.6 * widths[0]


@pytest.mark.parametrize("kind", [k for k in OPTIONS if k != "likelihood"])
def test_no_data_leave_the_whole_domain(kind: str) -> None:
    which, options = OPTIONS[kind]
    parametric, _ = MODELS["box"]
    counts = counts_of(parametric, [0] * parametric.transitions, SamplingKind.ADAPTIVE)
    region = build_region(which, parametric, counts, 0.05, options)
    low, high = parameter_box(region)
    assert np.all(low <= [0.1 + 1e-9, 1e-9]) and np.all(high >= [0.9 - 1e-9, 1 - 1e-9])
