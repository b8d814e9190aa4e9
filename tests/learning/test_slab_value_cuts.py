"""Gradients of policies' values, and cuts of a likelihood region along them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from learning_cases import case, counts_of
from tightrope.certify.learned import certificate_of
from tightrope.coupled.taylor import ValueGradient
from tightrope.learning.learn import learn
from tightrope.model.mdp import MDP
from tightrope.model.objective import ObjectiveKind
from tightrope.regions.likelihood import LIKELIHOOD, LogLikelihood, cut_along, wants_value_cuts
from tightrope.regions.region import RegionTask
from tightrope.solver.solve import solve
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.checker import check

ROVER = "rover(4,4)"


def at_truth(name):
    known = case(name)
    coordinates = Coordinates.of(known.model.expressions, known.model.parameters)
    functions = coordinates.functions(known.model.expressions)
    theta = np.array([[float(value) for value in known.instance.truth]])
    return known, coordinates, functions, coordinates.lift(theta)[0]


def value_at(known, functions, objective, x):
    probability = functions.constant + functions.linear @ x
    model = MDP(known.model.structure, probability[known.model.expression])
    solution = solve(model, objective, policy=known.policy, precision=1e-12)
    return 0.5 * (solution.lower + solution.upper)[known.model.initial]


@pytest.mark.parametrize(
    ("name", "steps"), [("parallel(3)", None), ("glider(5,5)", None), ("aircraft(8,4)", 12)]
)
def test_a_gradient_is_the_difference_of_values(name, steps):
    known, coordinates, functions, x = at_truth(name)
    objective = known.objective
    if steps is not None:
        assert objective.kind is ObjectiveKind.UNTIL
        objective = replace(objective, upper_steps=steps)
    gradient = ValueGradient.of(known.model, objective, known.policy, functions).at(x)
    assert np.abs(gradient).max() > 0
    for j in range(coordinates.size):
        # along a direction in which every choice keeps summing to 1: free parameters and their products
        step = np.zeros(coordinates.size)
        step[j] = 1e-6
        up, down = (value_at(known, functions, objective, x + sign * step) for sign in (1, -1))
        assert (up - down) / 2e-6 == pytest.approx(gradient[j], rel=1e-4, abs=1e-6)


def test_cuts_narrow_the_region_along_the_value_and_keep_all_of_it():
    known, coordinates, functions, _ = at_truth(ROVER)
    region = LIKELIHOOD.build(RegionTask(known.model, known.counts(episodes=20_000), 0.01))
    assert wants_value_cuts(region)
    direction = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # that of no coordinate and no expression
    cut = cut_along(region, Outcomes.of(known.model), direction[None, :])
    before, after = (float(np.subtract(*r.support(direction[None, :])[::-1])[0]) for r in (region, cut))
    assert after < 0.999 * before
    assert "2 more tangent cuts along the values of one policy" in cut.notes
    evidence = region.evidence
    likelihood = LogLikelihood(functions, evidence.weight, evidence.threshold)
    draw = np.random.default_rng(3)
    lower, upper = region.bounding_box
    points = draw.uniform(lower, upper, size=(4000, coordinates.size))
    inside = points[likelihood.values(points) >= likelihood.level]
    inside = inside[[coordinates.parameters.contains(list(point)) for point in inside.tolist()]]
    assert len(inside) > 20
    assert all(cut.contains(point) for point in inside.tolist())


def test_coupled_values_use_the_cuts_and_certificates_prove_them():
    known, counts = case(ROVER), counts_of(ROVER)
    result = learn(
        known.problem, counts, delta=0.01, region="likelihood", sets="coupled", policy=known.policy
    )
    assert any("more tangent cuts along the values of" in note for note in result.notes)
    certificate = certificate_of(result, counts)
    verdict = check(certificate)
    assert verdict.valid, verdict
    claim = certificate.claims[-1]
    interval = result.value.interval
    assert claim.lower == pytest.approx(interval.lower, abs=1e-9)
    assert claim.upper == pytest.approx(interval.upper, abs=1e-9)
