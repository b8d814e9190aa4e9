"""The case studies in another engine: Storm builds the same files and finds the same optima.

Storm cannot mix parameters with `min`, so the rover goes through at its true point only; its
properties have no terminal reward, so the engagement model is compared in size only.
"""

from __future__ import annotations

import pytest
import stormpy

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances

SMALL = [i for i in list_instances() if i.sizes and i.sizes.transitions <= 30_000]
PARAMETRIC = [i for i in SMALL if i.family != "rover" and i.sizes and i.sizes.transitions <= 16_000]


def program(instance: Instance, *given: str) -> stormpy.PrismProgram:
    constants = [*(f"{name}={value}" for name, value in instance.constants.items()), *given]
    parsed = stormpy.parse_prism_program(str(instance.path))
    instantiated, _ = stormpy.instantiate_constants(parsed, ",".join(constants))
    return instantiated


@pytest.mark.thinned(4)
@pytest.mark.parametrize("instance", PARAMETRIC, ids=lambda i: i.name)
def test_storm_counts_the_same_transitions_and_expressions(instance: Instance) -> None:
    options = stormpy.BuilderOptions(build_full=True)
    model = stormpy.build_model[stormpy.RationalFunction](program(instance), options=options)
    values = [
        str(transition.value)
        for state in model.states
        for action in state.actions
        for transition in action.transitions
    ]
    sizes = instance.sizes
    assert sizes is not None
    assert (model.nr_states, len(values), len(set(values))) == (
        sizes.states,
        sizes.transitions,
        sizes.expressions,
    )


@pytest.mark.thinned(4)
@pytest.mark.parametrize("instance", SMALL, ids=lambda i: i.name)
def test_storm_finds_the_same_optimum_at_the_true_point(instance: Instance) -> None:
    fixed = program(instance, instance.truth_text)
    options = stormpy.BuilderOptions(build_full=True)
    model = stormpy.build_model[float](fixed, options=options)
    sizes = instance.sizes
    assert sizes is not None
    assert (model.nr_states, model.nr_transitions) == (sizes.states, sizes.transitions)
    if instance.terminal_reward is None:
        (wanted,) = stormpy.parse_properties(instance.property_text, fixed)
        value = float(stormpy.model_checking(model, wanted)[model.initial_states[0]])
        assert abs(value - float(instance.optimum)) <= instance.optimum_tolerance
