"""The sets nature picks from: bounds that are always proper, and the inclusions of the paper's Theorem 2."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from region_reference import ONE, coins, counts_of, generative, simplex, with_intervals
from tightrope.ambiguity.sets import (
    Sets,
    SetsKind,
    expression,
    feasible,
    parameter,
    rectangular,
    tied,
    untied,
)
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingKind
from tightrope.data.simulator import Simulator
from tightrope.errors import CannotCertify, InputError
from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import ranges_over_box
from tightrope.regions.event_polytope import polytope_region
from tightrope.regions.region import Relaxation
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.solve import operator_of, solve
from tightrope.statistics.estimates import Budget, event_intervals

F = Fraction
FAMILIES = ("rover(10,10)", "aircraft(20,10)", "betting(25)", "engagement(50)", "glider(11,9)", "parallel(5)")


# --- bounds that admit a distribution ----------------------------------------------------------

START = np.array([0, 3], dtype=np.int64)
NOTHING = (np.zeros(3), np.ones(3))
FREE = np.zeros(3, np.bool_)


def mended(
    lower: list[float], upper: list[float], known: list[bool] | None = None
) -> tuple[list[float], ...]:
    fixed = FREE if known is None else np.array(known)
    found = feasible(START, np.array(lower), np.array(upper), fixed, NOTHING)
    assert found.lower.sum() <= 1.0 <= found.upper.sum() and np.all(found.lower <= found.upper)
    return found.lower.tolist(), found.upper.tolist(), found.contradictory.tolist()


def test_proper_bounds_stay_as_they_are() -> None:
    assert mended([0.1, 0.2, 0.3], [0.3, 0.4, 0.5]) == ([0.1, 0.2, 0.3], [0.3, 0.4, 0.5], [False])


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([0.5, 0.4, 0.3], [0.6, 0.5, 0.4]),  # more than 1 in sum
        ([0.1, 0.1, 0.1], [0.2, 0.2, 0.2]),  # less than 1 in sum
        ([0.5, 0.1, 0.1], [0.4, 0.5, 0.5]),  # crossed
    ],
)
def test_contradictory_bounds_fall_back_to_the_domain(lower: list[float], upper: list[float]) -> None:
    assert mended(lower, upper) == ([0.0] * 3, [1.0] * 3, [True])


def test_rounding_is_forgiven_outward() -> None:
    third = float(F(1, 3))
    lower, upper, contradictory = mended([third + 1e-15] * 3, [third + 2e-15] * 3)
    assert contradictory == [False]
    assert all(a <= third + 1e-15 for a in lower) and all(b >= third for b in upper)
    assert max(b - a for a, b in zip(lower, upper, strict=True)) < 2e-14
    lower, upper, contradictory = mended([0.2, 0.2, 0.6 + 1e-16], [0.2 - 1e-16, 0.2, 0.6])
    assert contradictory == [False] and upper[0] - lower[0] < 1e-15


def test_what_nature_may_place_is_never_lost_in_rounding() -> None:
    """1 − 2⁻⁵³ and [0, 2⁻⁵³]: read with tolerance the second would be impossible."""
    rest = 2.0**-53
    lower, upper, _ = mended([1.0 - rest, 0.0, 0.0], [1.0, rest, 0.0])
    assert 1.0 - lower[0] > 5 * 2.0**-52 and upper[1] >= rest


def test_constants_are_not_moved() -> None:
    lower, upper, _ = mended([0.25, 0.5, 0.25 + 1e-15], [0.25, 0.5, 0.25 + 1e-15], [True, True, False])
    assert (lower[:2], upper[:2]) == ([0.25, 0.5], [0.25, 0.5])
    assert lower[2] <= 0.25 <= upper[2]


# --- the kinds ---------------------------------------------------------------------------------


def spinner() -> ParametricMDP:
    """Three outcomes on a simplex, then one of them twice beside a constant."""
    p, q, _ = (Polynomial.variable(i) for i in range(3))
    half, quarter = Polynomial.constant(F(1, 2)), Polynomial.constant(F(1, 4))
    rows: list[tuple[int, str, dict[int, Polynomial]]] = [
        (0, "spin", {1: p, 2: q, 3: ONE - p - q}),
        (1, "again", {0: quarter * p, 2: quarter * p, 3: half, 4: half - half * p}),
        *((s, "stay", {s: ONE}) for s in (2, 3, 4)),
    ]
    model = build_from_rows(rows, simplex("p", "q", "r"), labels={"goal": [2]})
    assert isinstance(model, ParametricMDP)
    return model


TRUTH = (F(1, 4), F(1, 2), F(1, 4))


def all_sets(model: ParametricMDP, counts: Counts, delta: float = 0.01) -> dict[str, Sets]:
    intervals = event_intervals(model, counts, delta)
    bounds = intervals.expression_bounds()
    region = polytope_region(intervals)
    return {
        "untied": untied(model, counts, delta),
        "tied": tied(intervals),
        "parameter": parameter(region, model),
        "met": parameter(region, model, bounds),
        "expression": expression(region, model, bounds),
        "rectangular": rectangular(region, model, bounds),
    }


def test_every_kind_contains_the_true_value_and_keeps_constants_exact() -> None:
    model = spinner()
    counts = generative(model, TRUTH, 500, np.random.default_rng(2))
    exact = model.expressions.exact_values(TRUTH).take(model.expression)
    constant = model.expressions.is_constant[model.expression]
    for name, sets in all_sets(model, counts).items():
        assert sets.kind is (SetsKind.PARAMETER if name == "met" else SetsKind(name))
        assert sets.relaxation is Relaxation.EXACT
        for t in range(model.transitions):
            assert F(float(sets.lower[t])) <= exact[t] <= F(float(sets.upper[t]))
        assert np.array_equal(sets.lower[constant], sets.upper[constant])
        assert sets.lower.min() >= 0.0 and sets.upper.max() <= 1.0
        assert (sets.region is not None) is (name == "rectangular")
        interval = sets.interval_model()
        assert interval.structure is model.structure
        assert np.array_equal(interval.lower, sets.lower) and not sets.lower.flags.writeable


def test_inclusions_hold_bound_by_bound() -> None:
    model = spinner()
    sets = all_sets(model, generative(model, TRUTH, 500, np.random.default_rng(3)))
    for outer, inner in (
        ("tied", "expression"),
        ("parameter", "expression"),
        ("parameter", "met"),
        ("tied", "met"),
    ):
        assert np.all(sets[outer].lower <= sets[inner].lower), (outer, inner)
        assert np.all(sets[outer].upper >= sets[inner].upper), (outer, inner)
    assert np.array_equal(sets["expression"].lower, sets["rectangular"].lower)


def test_without_data_everything_in_the_domain_is_possible() -> None:
    model = spinner()
    counts = counts_of(model, [0] * model.transitions, SamplingKind.GENERATIVE_FIXED)
    for name, sets in all_sets(model, counts).items():
        low = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)[0][
            model.expression
        ]
        assert np.all(sets.lower <= np.maximum(low, 0.0) + 1e-12), name


def test_contradictory_tied_intervals_are_noted_and_widened() -> None:
    model = spinner()
    count = len(with_intervals(model, [], []).events)
    sets = tied(with_intervals(model, [0.6] * count, [0.7] * count))
    assert "admit no distribution" in sets.notes[-1]
    assert np.all(sets.lower[:3] == 0.0) and sets.interval_model().states == 5


def test_an_empty_region_has_no_sets() -> None:
    p = Polynomial.variable(0)
    model = coins(Parameters.unit_box(("p",)), [p, p * Polynomial.constant(F(1, 2))])
    region = polytope_region(with_intervals(model, [0.8, 0.1], [0.9, 0.2], Budget.TIED))
    assert region.emptiness.is_empty
    for make in (parameter, expression, rectangular):
        with pytest.raises(CannotCertify, match="the region is empty"):
            make(region, model)


def test_regions_of_other_models_and_missing_regions_are_refused() -> None:
    model = spinner()
    p = Polynomial.variable(0)
    other = coins(Parameters.unit_box(("x",)), [p])
    region = polytope_region(with_intervals(other, [0.1], [0.9], Budget.TIED))
    with pytest.raises(InputError, match=r"the region is one of \(x\)"):
        expression(region, model)
    sets = tied(event_intervals(model, generative(model, TRUTH, 10, np.random.default_rng(1)), 0.1))
    with pytest.raises(InputError, match="a region is required for rectangular sets"):
        replace(sets, kind=SetsKind.RECTANGULAR)
    with pytest.raises(InputError, match="one lower bound per transition"):
        replace(sets, lower=sets.lower[1:])


def test_products_are_relaxations_and_say_so() -> None:
    p, q = Polynomial.variable(0), Polynomial.variable(1)
    model = coins(Parameters.unit_box(("p", "q")), [p, q, p * q])
    intervals = with_intervals(model, [0.2, 0.0, 0.3], [0.6, 1.0, 0.9], Budget.TIED)
    region = polytope_region(intervals)
    for make in (parameter, expression, rectangular):
        assert make(region, model).relaxation is Relaxation.OUTER


# --- Theorem 2 on the case studies ---------------------------------------------------------------


@cache
def case(name: str) -> tuple[ParametricMDP, Objective, Counts]:
    instance = parse_bench(name)
    model = load(instance)
    simulator = Simulator(
        model.instantiate(instance.truth), cap=instance.episode_cap, model_hash=model.hash(), threads=1
    )
    return model, question(instance, model.structure).objective, simulator.episodes(20_000, seed=5)


def certified(sets: Sets, objective: Objective) -> tuple[float, float]:
    """The lower end against nature, the upper end with it."""
    kernel = operator_of(sets)
    ends = [solve(kernel, replace(objective, nature=nature)) for nature in (Direction.MIN, Direction.MAX)]
    initial = sets.model.initial
    return float(ends[0].lower[initial]), float(ends[1].upper[initial])


def contains(outer: tuple[float, float], inner: tuple[float, float]) -> bool:
    """Up to the precision of two solves."""
    spare = 2e-6
    return outer[0] <= inner[0] + spare * abs(inner[0]) and inner[1] <= outer[1] + spare * abs(outer[1])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_hierarchy_of_theorem_2(name: str) -> None:
    model, objective, counts = case(name)
    sets = all_sets(model, counts)
    value = {
        kind: certified(sets[kind], objective) for kind in ("tied", "parameter", "expression", "rectangular")
    }
    assert contains(value["tied"], value["expression"]), value
    assert contains(value["parameter"], value["expression"]), value
    assert contains(value["expression"], value["rectangular"]), value
    truth = solve(IntervalOperator.of(model.instantiate(parse_bench(name).truth)), objective)
    assert contains(value["rectangular"], (truth.lower[model.initial], truth.upper[model.initial]))
    if name in ("rover(10,10)", "betting(25)"):  # two successors everywhere: the same sets
        assert isinstance(operator_of(sets["rectangular"]), IntervalOperator)
        assert value["expression"] == value["rectangular"]
    if name in ("aircraft(20,10)", "glider(11,9)", "parallel(5)"):
        assert (
            value["rectangular"][1] - value["rectangular"][0]
            < value["expression"][1] - value["expression"][0]
        )
