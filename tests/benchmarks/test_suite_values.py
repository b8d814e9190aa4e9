"""The optimum of every case study at its true point, by our own solver, against the recorded one.

Instances up to 40,000 transitions; `benchmarks/suite_sizes.py` does them all.
"""

from __future__ import annotations

import pytest

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances, load, question
from tightrope.solver.solve import solve

IN_TESTS = [i for i in list_instances() if i.sizes and i.sizes.transitions <= 40_000]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("instance", IN_TESTS, ids=lambda i: i.name)
def test_the_optimum_at_the_true_point_is_the_recorded_one(instance: Instance) -> None:
    model = load(instance)
    objective = question(instance, model.structure).objective
    solution = solve(model.instantiate(instance.truth), objective, iterations=20_000)
    assert solution.is_certified
    assert instance.optimum is not None
    lower, upper = solution.lower[model.initial], solution.upper[model.initial]
    assert upper - lower <= 1e-6 * upper
    assert lower <= float(instance.optimum) + instance.optimum_tolerance
    assert upper >= float(instance.optimum) - instance.optimum_tolerance
