"""The L1 region: linear rows that say exactly what the norm says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from region_reference import ONE, counts_of
from tightrope.data.design import SamplingKind
from tightrope.model.builder import build_from_rows
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.regions.bounds import expression_bounds
from tightrope.regions.l1 import L1
from tightrope.regions.region import RegionTask
from tightrope.regions.registry import region_kind
from tightrope.statistics.confidence_budget import Assumption
from tightrope.statistics.intervals import weissman_radius

F = Fraction
P, Q = Polynomial.variable(0), Polynomial.variable(1)


def dice() -> ParametricMDP:
    rows = [
        (0, "roll", {0: P / 2, 1: Q / 2, 2: ONE - P / 2 - Q / 2}),
        (1, "toss", {0: P, 1: ONE - P}),
        (2, "stay", {2: ONE}),
    ]
    model = build_from_rows(rows, Parameters.unit_box(("p", "q")))
    assert isinstance(model, ParametricMDP)
    return model


def test_membership_is_the_norm() -> None:
    model = dice()
    counts = counts_of(model, [60, 90, 150, 40, 60, 5], SamplingKind.GENERATIVE_FIXED)
    region = L1.build(RegionTask(model, counts, 0.1))
    assert region.kind == region_kind("l1") and region.ledger.events == 2
    assert region.ledger.assumption is Assumption.FIXED_DESIGN and region.ledger.holds
    radius = weissman_radius(np.array([3, 2]), np.array([300, 100]), 0.05)
    rates = [np.array([60, 90, 150]) / 300, np.array([40, 60]) / 100]
    for p in np.linspace(0, 1, 21):
        for q in np.linspace(0, 1, 21):
            roll = np.array([p / 2, q / 2, 1 - p / 2 - q / 2])
            toss = np.array([p, 1 - p])
            off = [np.abs(roll - rates[0]).sum() - radius[0], np.abs(toss - rates[1]).sum() - radius[1]]
            if abs(max(off)) > 1e-9:
                assert region.contains([F(float(p)), F(float(q))]) == (max(off) < 0)


def test_contradicting_distributions_are_named() -> None:
    model = dice()
    counts = counts_of(model, [3, 900, 97, 990, 10, 0], SamplingKind.GENERATIVE_FIXED)
    region = L1.build(RegionTask(model, counts, 0.1))
    assert region.emptiness.is_empty and region.emptiness.conflict is not None
    assert region.emptiness.conflict.texts[0].startswith("the distribution of choice 'roll' of state 0")


def test_unvisited_choices_add_nothing() -> None:
    model = dice()
    region = L1.build(RegionTask(model, counts_of(model, [0] * 6, SamplingKind.GENERATIVE_FIXED), 0.1))
    lower, upper = expression_bounds(region, model.expressions)
    half = model.expressions.index_of(P / 2)
    assert lower[half] == 0.0 and abs(upper[half] - 0.5) < 1e-12
