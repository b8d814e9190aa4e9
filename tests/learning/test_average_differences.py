"""Differences of long-run averages: by cycles, at one parameter vector for both policies."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.model.parametric_mdp import ParametricMDP

QUESTION = 'R{"cost"}min=? [ S ]'


@cache
def press() -> ParametricMDP:
    """A press wears (`wear`) and breaks (`snap`); every day it is run or serviced."""
    parameters = tr.Parameters.box(wear=(0.05, 0.5), snap=(0.01, 0.25))
    wear, snap = parameters.symbols()
    run: dict[int, dict[int, Any]] = {
        0: {1: wear, 0: 1 - wear},
        1: {2: wear, 1: 1 - wear},
        2: {3: snap, 2: 1 - snap},
    }
    rows = [(level, "run", outcomes) for level, outcomes in run.items()]
    rows += [(level, "service", {0: 1}) for level in run] + [(3, "repair", {0: 1})]
    price = {"run": 0, "service": 2, "repair": 40}
    cost = {"cost": [price[action] for _, action, _ in rows]}
    model = tr.build_from_rows(rows, parameters, choice_rewards=cost, labels={"broken": [3]})
    assert isinstance(model, ParametricMDP)
    return model


def policies() -> tuple[tr.Policy, tr.Policy]:
    early = tr.Policy(press(), lambda level: "service" if level >= 1 else "run")
    late = tr.Policy(press(), lambda level: "service" if level >= 2 else "run")
    return early, late


def average(policy: tr.Policy, theta: Any) -> float:
    """By the stationary distribution."""
    model = press().instantiate(tuple(theta))
    structure, chance = model.structure, np.zeros((press().states, press().states))
    weight = np.repeat(policy.probability, np.diff(structure.transition_start)) * model.probability
    owner = np.repeat(structure.choice_state, np.diff(structure.transition_start))
    np.add.at(chance, (owner, structure.successor), weight)
    stationary = np.linalg.solve((np.eye(len(chance)) - chance + 1).T, np.ones(len(chance)))
    cost = model.rewards["cost"].per_choice(structure) * policy.probability
    return float(stationary @ np.bincount(structure.choice_state, cost, len(chance)))


@cache
def log(episodes: int = 300) -> Any:
    real = press().instantiate((0.2, 0.05))
    return tr.Simulator(real, model_hash=press().hash(), cap=40).episodes(episodes, seed=2)


def test_the_interval_holds_all_differences_of_the_region() -> None:
    early, late = policies()
    row = tr.compare(press().problem(QUESTION), log(), late, early, delta=0.05).best
    assert row.separate.lower <= row.interval.lower < row.interval.upper <= row.separate.upper
    assert row.interval.width < 0.8 * row.separate.width
    assert row.lowest is not None and row.highest is not None
    for share in np.linspace(0.0, 1.0, 7):
        theta = share * row.lowest.theta + (1 - share) * row.highest.theta
        assert average(late, theta) - average(early, theta) in row.interval
    assert average(late, (0.2, 0.05)) - average(early, (0.2, 0.05)) in row.interval


def test_improve_finds_the_rule_that_costs_least() -> None:
    early, late = policies()
    result = tr.improve(press().problem(QUESTION), log(), baseline=early, delta=0.05)
    gain = average(early, (0.2, 0.05)) - average(result.policy, (0.2, 0.05))
    assert result.policy == late and 0.0 < result.improvement <= gain
    assert result.limit is not None and result.improvement <= result.limit + 1e-9
    assert result.verdict.is_proved and [one.new for one in result.changes] == ["run"]
    assert tr.improve(press().problem(QUESTION), log(), baseline=late, delta=0.05).improvement == 0.0


def test_what_is_kept_and_what_is_refused() -> None:
    early, _ = policies()
    problem, words = press().problem(QUESTION), {"baseline": early, "delta": 0.05}
    never = tr.improve(problem, log(), keep=['P>=0.5 [ F<=3 "broken" ]'], **words)
    assert never.policy == early and never.improvement == 0.0
    result = tr.improve(problem, log(), keep=['P<=0.5 [ F<=3 "broken" ]'], **words)
    assert result.improvement > 0.0 and [one.holds for one in result.kept] == [True]
    with pytest.raises(tr.CannotCertify, match="long-run"):
        result.as_result()
    with pytest.raises(tr.InputError, match="no long-run average"):
        tr.improve(press().problem(QUESTION), log(), baseline="logged", delta=0.05)


def test_a_policy_without_a_state_that_is_met_again_gains_nothing() -> None:
    """From one state either of two absorbing ones: there is no single average."""
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows = [(0, "go", {1: p, 2: 1 - p}), (0, "stay", {0: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"one": [1]})
    data = [[(0, "go", 1)]] * 30 + [[(0, "go", 2)]] * 30
    result = tr.compare(model.problem('Smax=? [ "one" ]'), data, {0: "go"}, {0: "stay"}, delta=0.05)
    assert not np.isfinite(result.interval.lower) and result.order == ()


def test_where_a_second_class_is_possible_nothing_is_known() -> None:
    """State 2 may be left for ever or never: at q = 0 the play can end in either of two states."""
    parameters = tr.Parameters.box(q=(0, "1/2"), p=("0.1", "0.9"))
    q, p = parameters.symbols()
    rows = [(0, "a", {1: p, 2: 1 - p}), (0, "b", {2: 1}), (1, "", {1: 1}), (2, "", {1: q, 2: 1 - q})]
    model = tr.build_from_rows(rows, parameters, state_rewards={"r": [0, 1, 0]})
    problem = tr.Problem(model, 'R{"r"}max=? [ S ]')
    stay = [(2, "", 2)] * 20
    data = [[(0, "a", 1)]] * 40 + [[(0, "a", 2), *stay]] * 10
    policies = ({0: first, 1: "", 2: ""} for first in "ab")
    with warnings.catch_warnings(action="ignore"):
        compared = tr.compare(problem, data, *policies, delta=0.05)
    low, high = compared.best.interval
    assert (low, high) == (-np.inf, np.inf) and compared.verdict.word.value == "limit"
