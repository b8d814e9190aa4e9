"""The coupled value of a policy against brute force: never left by any instantiation, and tight."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from coupled_cases import KINDS, Case, brute_force, random_case, value_at
from learning_cases import case as benchmark
from learning_cases import counts_of
from tightrope.ambiguity.sets import Sets, expression, rectangular
from tightrope.coupled.result import CoupledStatus, CoupledValue
from tightrope.coupled.synthesis import find_coupled_policy
from tightrope.coupled.value import CoupledLimits, bound_coupled_value
from tightrope.errors import InputError
from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.regions.event_polytope import domain_region
from tightrope.regions.registry import build_region, region_kind

ONE = Polynomial.constant(1)


def sets_of(case: Case) -> Sets:
    return rectangular(domain_region(case.model), case.model)


def check(case: Case, seed: int) -> CoupledValue:
    value = bound_coupled_value(sets_of(case), case.objective, case.policy)
    low, high = brute_force(case, seed, 60)
    slack = 1e-12 * max(1.0, abs(low), abs(high))
    assert value.lower <= low + slack and high - slack <= value.upper
    assert value.rectangular_lower <= value.lower <= value.upper <= value.rectangular_upper
    assert value.status in (CoupledStatus.EXACT, CoupledStatus.CERTIFIED), (value.status, value.reason)
    assert value.gap <= 0.02
    # The instantiations are real, and the brute force found nothing much better.
    assert value.lowest is not None and value.highest is not None
    for witness in (value.lowest, value.highest):
        there = value_at(case, witness.theta)
        assert witness.lower - slack <= there <= witness.upper + slack
    assert value.lowest.upper - low <= 0.03 * value.width + 1e-8 * abs(low) + 1e-12
    assert high - value.highest.lower <= 0.03 * value.width + 1e-8 * abs(high) + 1e-12
    return value


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", KINDS)
def test_no_instantiation_leaves_the_interval_of_any_objective(kind: str) -> None:
    for cyclic in (False, True):
        for products in (False, True):
            value = check(random_case(3, kind, cyclic=cyclic, products=products), 1)
            assert value.gap <= 0.02


@settings(max_examples=10)
@given(
    seed=st.integers(100, 10_000), kind=st.sampled_from(KINDS), cyclic=st.booleans(), products=st.booleans()
)
def test_random_models(seed: int, kind: str, cyclic: bool, products: bool) -> None:
    value = check(random_case(seed, kind, cyclic=cyclic, products=products, parameters=1 + seed % 3), seed)
    assert value.gap <= 0.02


def reach(states: int) -> Objective:
    target = np.arange(states) == states - 1
    return Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MIN, target=target)


def built(parameters: Parameters, rows: list[dict[int, Polynomial]]) -> ParametricMDP:
    model = build_from_rows([(s, "a", row) for s, row in enumerate(rows)], parameters)
    assert isinstance(model, ParametricMDP)
    return model


def test_the_same_coin_twice_cannot_show_both_faces_at_its_best() -> None:
    """p·(1−p) on [0.2, 0.9]: the coupled range is [0.09, 0.25], the rectangular one [0.02, 0.72]."""
    parameters = Parameters.box(p=(Fraction(1, 5), Fraction(9, 10)))
    (p,) = parameters.symbols()
    model = built(parameters, [{1: p, 2: ONE - p}, {3: ONE - p, 2: p}, {2: ONE}, {3: ONE}])
    sets = rectangular(domain_region(model), model)
    value = bound_coupled_value(sets, reach(4), np.zeros(model.states, np.int64))
    assert value.rectangular_lower == pytest.approx(0.02, abs=1e-9)
    assert value.rectangular_upper == pytest.approx(0.72, abs=1e-9)
    assert value.lower <= 0.09 <= value.lower + 0.0016 and value.upper - 0.0016 <= 0.25 <= value.upper
    assert value.highest is not None and value.highest.theta[0] == pytest.approx(0.5, abs=0.05)
    assert value.lowest is not None and value.lowest.theta[0] == pytest.approx(0.9, abs=1e-6)
    assert not value.rectangular_lost_nothing and value.cells


def test_a_play_that_may_never_stop_is_not_assumed_to() -> None:
    """Leaving a loop with probability p ∈ [0, ½]: the value is 1 for p > 0 and 0 for p = 0."""
    parameters = Parameters.box(p=(0, Fraction(1, 2)))
    (p,) = parameters.symbols()
    model = built(parameters, [{1: p, 0: ONE - p}, {1: ONE}])
    sets = rectangular(domain_region(model), model)
    limits = CoupledLimits(cells=60)
    value = bound_coupled_value(sets, reach(2), np.zeros(model.states, np.int64), limits=limits)
    assert value.lower == 0.0 and value.upper == 1.0
    assert value.status is CoupledStatus.EXACT and value.lowest is not None
    assert (value.lowest.theta.tolist(), value.lowest.upper) == ([0.0], 0.0)


@pytest.mark.parametrize("goal", ['R=? [ F "goal" ]', 'P=? [ F "goal" ]'])
def test_values_at_an_edge_where_a_play_never_ends_are_ends_of_the_interval(goal: str) -> None:
    """The search split cells around p = 0 until its time was over."""
    (p,) = (parameters := tr.Parameters.box(p=(0, "1/2"))).symbols()
    rows = [(0, "", {2: p, 1: 1 - p}), (1, "", {2: p, 0: 1 - p}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [2]}, state_rewards={"r": [1, 1, 0]})
    result = tr.solve(model.problem(goal))
    assert result.robust is not None and result.robust.coupled is not None
    value = result.robust.coupled
    assert value.status is CoupledStatus.EXACT and result.verdict.word.value == "proved"
    witness = value.highest if goal.startswith("R") else value.lowest
    assert witness is not None and witness.theta.tolist() == [0.0]
    assert witness.upper == (math.inf if goal.startswith("R") else 0.0)
    assert value.lower == pytest.approx(2.0 if goal.startswith("R") else 0.0, rel=1e-5)


def test_cells_without_a_model_are_not_split_for_ever() -> None:
    """The lower end, 3 at p = ½, is not found: the rectangular sets allow less wherever p is small."""
    (p,) = (parameters := tr.Parameters.box(p=(0, "1/2"))).symbols()
    rows = [(0, "", {2: p, 1: 1 - p}), (1, "", {3: p, 2: 1 - p}), (3, "", {3: 1})]
    rows += [(2, "", {3: p / 2, 0: 1 - p / 2})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [3]}, state_rewards={"r": [1, 1, 1, 0]})
    result = tr.solve(model.problem('R=? [ F "goal" ]'))
    assert result.robust is not None and result.robust.coupled is not None
    value = result.robust.coupled
    assert value.status is CoupledStatus.PRECISION_LIMIT and result.verdict.word.value == "limit"
    assert len(value.cells) < 100 and value.upper == math.inf and value.lower <= 36 / 7


@pytest.mark.parametrize("power", [1, 2])
def test_a_play_that_costs_nothing_is_not_assumed_to_stop_either(power: int) -> None:
    """At p = 1 it goes on for ever, so the reward until the target is infinite there, and 0 elsewhere."""
    (p,) = (parameters := tr.Parameters.box(p=("0.1", "1"))).symbols()
    stay = p if power == 1 else p * p
    rows = [(0, "", {0: stay, 1: 1 - stay}), (1, "", {1: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [1]}, choice_rewards={"r": [0, 0]})
    problem = model.problem('R=? [ F "goal" ]')
    known = tr.solve(problem, sets="coupled", seconds=0.2)
    learned = tr.learn(problem, [[(0, "", 0)] * 5] * 3, sets="coupled", seconds=0.2)
    assert known.interval.upper == learned.interval.upper == math.inf


def test_a_reward_that_is_infinite_whatever_the_parameters_is_left_to_the_rectangular_sets() -> None:
    parameters = Parameters.box(p=(Fraction(1, 5), Fraction(1, 2)))
    (p,) = parameters.symbols()
    model = built(parameters, [{1: p, 2: ONE - p}, {1: ONE}, {2: ONE}])
    case = random_case(1, "reward", cyclic=False, products=False)
    assert case.objective.reward is not None
    target = np.array([False, False, True])
    reward = type(case.objective.reward)(state=np.ones(3))
    objective = Objective(
        ObjectiveKind.REACH_REWARD, Direction.MIN, Direction.MAX, target=target, reward=reward
    )
    sets = rectangular(domain_region(model), model)
    value = bound_coupled_value(sets, objective, np.zeros(model.states, np.int64))
    assert value.lower == value.upper == np.inf
    assert value.status is CoupledStatus.RECTANGULAR and "infinite" in value.reason


@pytest.mark.parametrize(
    "name", ["aircraft(8,4)", "glider(5,5)", "betting(8)", "rover(4,4)", "engagement(3)"]
)
def test_benchmarks_are_inside_the_rectangular_interval_and_contain_the_true_value(name: str) -> None:
    case = benchmark(name)
    region = build_region(region_kind("polytope"), case.model, counts_of(name), 0.001)
    value = bound_coupled_value(rectangular(region, case.model), case.objective, case.policy)
    assert value.rectangular_lower <= value.lower <= case.optimum * (1 + 1e-6)
    assert case.optimum * (1 - 1e-6) <= value.upper <= value.rectangular_upper
    assert value.status in (CoupledStatus.EXACT, CoupledStatus.CERTIFIED) and value.gap <= 0.02
    if name == "betting(8)":
        assert value.rectangular_lost_nothing and not value.cells
    if name == "aircraft(8,4)":
        assert value.width < 0.9 * (value.rectangular_upper - value.rectangular_lower)


def test_the_best_policy_is_within_reach_of_the_limit() -> None:
    """Two ways to the target, each good where the other is bad: the limit is the value at the crossing."""
    parameters = Parameters.box(p=(Fraction(3, 10), Fraction(7, 10)))
    (p,) = parameters.symbols()
    rows = [(0, "a", {1: p, 2: ONE - p}), (0, "b", {1: ONE - p, 2: p}), (1, "a", {2: p, 3: ONE - p})]
    model = build_from_rows([*rows, (2, "a", {2: ONE}), (3, "a", {3: ONE})], parameters)
    assert isinstance(model, ParametricMDP)
    found = find_coupled_policy(rectangular(domain_region(model), model), reach(4))
    # "a": p(1−p) ≥ 0.21, attained at both ends; "b": (1−p)² ≥ 0.09.
    assert found.policy.choice[0] == 0
    assert found.guarantee <= 0.21 <= found.guarantee + 0.001
    assert found.guarantee <= found.limit <= 0.49 + 1e-9
    assert found.optimality_gap == pytest.approx(found.limit - found.guarantee)
    assert found.candidates[0].guarantee <= found.guarantee


def test_what_cannot_be_done_is_refused_with_the_way_out() -> None:
    case = random_case(1, "bounded", cyclic=False, products=False)
    with pytest.raises(InputError, match="depends on the step"):
        find_coupled_policy(sets_of(case), case.objective)
    with pytest.raises(InputError, match="half-spaces"):
        bound_coupled_value(expression(domain_region(case.model), case.model), case.objective, case.policy)
    with pytest.raises(InputError, match="gap"):
        bound_coupled_value(sets_of(case), case.objective, case.policy, gap=0.0)
