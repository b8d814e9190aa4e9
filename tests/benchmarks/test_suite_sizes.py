"""The case studies through our own front end: the exact sizes, and models that are what they say.

Instances up to 60,000 transitions; `benchmarks/suite_sizes.py` does them all.
"""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances, load, parse_bench, question
from tightrope.model.objective import Direction, ObjectiveKind

IN_TESTS = [i for i in list_instances() if i.sizes and i.sizes.transitions <= 60_000]
SMALLEST = {"aircraft(20,10)", "betting(25)", "engagement(50)", "rover(10,10)", "glider(11,9)", "parallel(5)"}


def test_only_the_largest_are_left_to_the_benchmark() -> None:
    assert {i.name for i in list_instances()} - {i.name for i in IN_TESTS} == {
        "aircraft(50,10)",
        "aircraft(100,20)",
        "aircraft(200,40)",
        "betting(50)",
        "betting(100)",
        "betting(135)",
        "rover(50,50)",
        "rover(75,75)",
        "rover(125,125)",
        "glider(71,67)",
        "parallel(10)",
        "parallel(20)",
    }


@pytest.mark.thinned(5)
@pytest.mark.parametrize("instance", IN_TESTS, ids=lambda i: i.name)
def test_sizes_are_exact_and_the_true_point_gives_a_model(instance: Instance) -> None:
    model = load(instance)
    assert instance.sizes is not None
    assert (model.states, model.transitions, len(model.expressions)) == (
        instance.sizes.states,
        instance.sizes.transitions,
        instance.sizes.expressions,
    )
    assert model.parameters == instance.parameters()
    assert model.unproved == ()
    values = model.expressions.values(instance.truth)
    assert values.min() > 0 and values.max() == 1
    chain = model.instantiate(instance.truth)
    sums = np.add.reduceat(chain.probability, model.transition_start[:-1])
    assert np.abs(sums - 1).max() < 1e-12


DEGREES = {"aircraft": 1, "betting": 1, "engagement": 1, "rover": 1, "glider": 2, "parallel": 2}
ACTIONS = {
    "aircraft": {"up", "down", "stay"},
    "betting": {"bet0", "bet1", "bet2", "bet5", "bet10", "end", "over"},
    "engagement": {"light", "medium", "aggressive", "respond", "over"},
    "rover": {"up", "right", "sendL", "sendH", "arrived"},
    "glider": {"east", "west", "north", "south", "arrived"},
    "parallel": {"bet0", "bet1", "bet2", "bet5", "bet10", "end", "over"},
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_degree_and_actions(name: str) -> None:
    instance = parse_bench(name)
    model = load(instance)
    assert model.expressions.degree == DEGREES[instance.family]
    structure = model.structure
    used = np.unique(structure.action_of_choice)
    assert {structure.action_names[a] for a in used} == ACTIONS[instance.family]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_the_default_property_is_understood(name: str) -> None:
    instance = parse_bench(name)
    model = load(instance)
    objective = question(instance, model.structure).objective
    kinds = {"P": ObjectiveKind.UNTIL, "R": ObjectiveKind.REACH_REWARD}
    assert objective.kind is kinds[instance.property_text[0]]
    assert objective.agent is (Direction.MAX if "max=?" in instance.property_text else Direction.MIN)
    assert objective.nature is objective.agent.opposite
    assert objective.target is not None and objective.target.any() and not objective.target[model.initial]
    assert (objective.terminal is None) == (instance.family != "engagement")


@pytest.mark.costly("test_sizes_are_exact_and_the_true_point_gives_a_model")
def test_unlisted_instances_build_too() -> None:
    engagement = load(parse_bench("engagement(7)"))
    assert (engagement.states, engagement.transitions) == (20 * 7 - 6, 60 * 7 - 38)
    glider = load(parse_bench("glider(6,4)"))  # even sizes: the middle lies between two columns
    assert glider.states == 24
    rover = load(parse_bench("rover(3,5)"))
    assert rover.labels["target"].any() and rover.labels["crash"].any()
    assert load(parse_bench("parallel(11)")).parameters.names == ("p1", "p2", "q")
    assert load(parse_bench("aircraft(1,1)")).labels["goal"].any()


def test_rewards_are_paid_once_at_the_end_of_the_game() -> None:
    model = load(parse_bench("betting(25)"))
    reward = model.rewards["money"].state
    assert reward is not None
    money, steps = model.valuations["money"], model.valuations["steps"]
    assert np.array_equal(reward, np.where(steps == 25, money, 0))
    assert model.labels["done"].sum() == (steps == 26).sum()


def test_the_penalty_sits_on_the_churned_states() -> None:
    model = load(parse_bench("engagement(50)"))
    penalty = model.rewards["penalty"].state
    assert penalty is not None
    assert np.array_equal(penalty, np.where(model.labels["churn"], 10.0, 0.0))
    assert model.labels["churn"].sum() == model.labels["purchase"].sum() == 5
