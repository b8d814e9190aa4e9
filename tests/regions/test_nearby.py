"""The region of grown data, found from that of fewer data, is the region found from nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from learning_cases import case
from online_cases import simulator
from tightrope.data.collection import GrowingCounts, simulate_until_doubled
from tightrope.model.policy import Policy
from tightrope.regions.event_polytope import Nearby, polytope_region, tighten_nearby
from tightrope.regions.halfspaces import Halfspaces
from tightrope.regions.polytope import Polytope
from tightrope.statistics.estimates import EventIntervals, IntervalMethod, event_intervals


def intervals(name: str, episodes: int) -> EventIntervals:
    problem = case(name)
    model = problem.model
    policy = Policy.of_choices(model.structure, model.structure.choice_start[:-1])
    data = GrowingCounts(model)
    while data.episodes < episodes:
        simulate_until_doubled(simulator(problem), policy, 2, data, episodes)
        data.look()
    return event_intervals(model, data.counts(), 0.01, IntervalMethod.BETA_BINOMIAL)


def support(region: Polytope) -> tuple[np.ndarray, np.ndarray]:
    directions = np.random.default_rng(5).normal(size=(40, region.coordinates.size))
    return region.support(directions)


@pytest.mark.parametrize("name", ["aircraft(8,4)", "rover(4,4)", "betting(8)"])
def test_the_same_region_without_linear_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = intervals(name, 200), intervals(name, 260)
    near = Nearby.around(polytope_region(few), None)
    assert near is not None
    fresh = polytope_region(many)
    monkeypatch.setattr("tightrope.regions.event_polytope.tighten", lambda *asked: pytest.fail("tightened"))
    moved = polytope_region(many, near=near)
    assert moved.enclosure is not None and fresh.enclosure is not None
    assert len(moved.enclosure.facets) == len(fresh.enclosure.facets)
    np.testing.assert_allclose(support(moved), support(fresh), rtol=0, atol=1e-11)
    np.testing.assert_allclose(moved.bounding_box, fresh.bounding_box, rtol=0, atol=1e-11)
    assert moved.contains(case(name).instance.truth) == fresh.contains(case(name).instance.truth)
    matrix, bound = moved.facets
    corners = moved.vertices
    assert corners is not None and np.all(matrix @ corners.T <= bound[:, None] + 1e-9)
    assert len(np.unique(moved.enclosure.simplices)) == len(bound), "rows keep their numbers"
    touched = np.take_along_axis(
        bound[:, None] - matrix @ corners.T,
        np.searchsorted(moved.enclosure.facets, moved.enclosure.simplices).T,
        axis=0,
    )
    assert np.abs(touched).max() < 1e-9, "every vertex lies on the rows it is said to lie on"


def test_a_region_that_has_not_moved_comes_out_the_same_and_keeps_its_frame() -> None:
    found = intervals("aircraft(8,4)", 200)
    near = Nearby.around(polytope_region(found), None)
    first = polytope_region(found, near=near)
    kept = Nearby.around(first, near)
    assert kept is near
    again = polytope_region(found, near=kept)
    assert np.array_equal(support(first), support(again))


def square(low: float, high: float) -> Halfspaces:
    """[low, high]² by four rows, in the domain [0, 1]²."""
    eye, nothing = np.eye(2), np.zeros(4, np.int32)
    bound = np.array([high, high, -low, -low])
    return Halfspaces(np.concatenate([eye, -eye]), bound, nothing, nothing, np.zeros(2), np.ones(2))


def test_a_frame_that_may_cut_something_off_is_no_answer() -> None:
    near = Nearby(np.full(2, 0.4), np.full(2, 0.6), np.full(2, 0.5))
    inside = tighten_nearby(square(0.45, 0.58), near)
    assert inside is not None
    system = inside[0].system
    np.testing.assert_allclose([system.lower, system.upper], [[0.45] * 2, [0.58] * 2], atol=1e-14)
    assert np.all(system.lower <= 0.45) and np.all(system.upper >= 0.58)
    assert tighten_nearby(square(0.45, 0.7), near) is None, "it reaches out of the frame"
    assert tighten_nearby(square(0.3, 0.58), near) is None
    assert tighten_nearby(square(0.51, 0.58), near) is None, "the point is no longer inside"
    assert tighten_nearby(square(0.6, 0.4), near) is None, "it is empty"
    everywhere = replace(near, lower=np.full(2, -1.0), upper=np.full(2, 2.0))
    whole = tighten_nearby(square(-0.5, 1.5), everywhere)
    assert whole is not None, "faces of the domain are no cuts"
    np.testing.assert_allclose([whole[0].system.lower, whole[0].system.upper], [[0.0] * 2, [1.0] * 2])
