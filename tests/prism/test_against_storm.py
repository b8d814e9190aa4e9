"""The PRISM front end against Storm's, on every model of `tests/models`.

Sizes, labels, rewards, action names and the exact value of every transition at random rational
points must agree, state by state (by valuation) and choice by choice (as a multiset).

Also of `io/formats.py`.
"""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from storm import (
    MODELS,
    Case,
    build_with_storm,
    cases,
    plain_from_storm,
    plain_from_tightrope,
    storm_parameters,
)
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism, load_prism_text

CASES = cases()
POINTS = 3


def build(case: Case) -> Any:
    return load_prism(case.path, constants=case.constants)


def random_point(names: tuple[str, ...], generator: random.Random) -> dict[str, Fraction]:
    """Inside the unit box, with a different large prime below every value."""
    primes = (10007, 10009, 10037, 10039, 10061)
    return {
        name: Fraction(generator.randrange(1, prime), prime)
        for name, prime in zip(names, primes, strict=False)
    }


def test_the_battery_is_large_enough() -> None:
    assert len({case.file for case in CASES}) >= 18
    assert {case.file for case in CASES} == {path.name for path in MODELS.glob("*.prism")}
    assert {case.kind for case in CASES} == {"parametric", "plain", "interval"}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_sizes_and_parameters(case: Case) -> None:
    model = build(case)
    assert (model.states, model.choices, model.transitions) == (case.states, case.choices, case.transitions)
    expected = IntervalMDP if case.kind == "interval" else ParametricMDP
    assert isinstance(model, expected)
    names = () if case.kind == "interval" else model.expressions.parameter_names
    assert sorted(names) == sorted(case.parameters)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_model_as_storm(case: Case, tmp_path: Path) -> None:
    storm = build_with_storm(case.path, case.constants, case.kind, tmp_path)
    model = build(case)
    assert sorted(storm_parameters(storm)) == sorted(case.parameters)
    generator = random.Random(str(case))
    for _ in range(POINTS if case.parameters else 1):
        point = random_point(case.parameters, generator)
        theirs = plain_from_storm(storm, point)
        ours = plain_from_tightrope(model, point, action_names=storm.is_nondeterministic_model)
        assert ours.counts == theirs.counts == (case.states, case.choices, case.transitions)
        assert ours.variables == theirs.variables
        assert ours.initial == theirs.initial
        assert ours.labels == theirs.labels
        assert ours.state_rewards == theirs.state_rewards
        assert ours.choices == theirs.choices


def test_instantiation_is_the_nearest_double(tmp_path: Path) -> None:
    """`instantiate` gives an MDP whose probabilities are Storm's exact values, rounded once."""
    case = next(case for case in CASES if case.file == "cubic.prism")
    storm = build_with_storm(case.path, case.constants, case.kind, tmp_path)
    point = {"p": Fraction(3, 11), "q": Fraction(12, 17)}
    model = build(case)
    concrete = model.instantiate([point[name] for name in model.expressions.parameter_names])
    assert isinstance(concrete, MDP)
    theirs = plain_from_storm(storm, point)
    ours = plain_from_tightrope(concrete, point, action_names=False)
    rounded = {
        state: [sorted((target, float(value)) for target, value in choice[2]) for choice in choices]
        for state, choices in theirs.choices.items()
    }
    assert rounded == {
        state: [sorted((target, float(value)) for target, value in choice[2]) for choice in choices]
        for state, choices in ours.choices.items()
    }


def test_where_storm_differs_prism_decides() -> None:
    """mod(-5,5) is 0, and a state keeps its rewards when its deadlock is fixed."""
    model = load_prism_text(
        "mdp module m x : [-5..4] init -5; [a] x=-5 -> (x'=mod(x,5)+3); endmodule"
        " rewards true : 2; [] true : 7; endrewards"
    )
    assert model.valuations["x"].tolist() == [-5, 3]
    assert model.labels["deadlock"].tolist() == [False, True]
    assert model.rewards[""].state is not None
    assert model.rewards[""].state.tolist() == [2, 2]
