"""Objectives with values known by hand, refusals, limits, and what a solution carries."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from exact_reference import TinyModel, random_model, vertices
from tightrope.errors import InputError
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.solver import Status, solve
from tightrope.solver.bellman.interval import IntervalOperator

MAX, MIN = Direction.MAX, Direction.MIN


def model_of(*states: list[list[tuple[int, float, float]]]) -> IntervalMDP:
    """Per state its choices, per choice (successor, lower, upper)."""
    flat = [c for state in states for c in state]
    structure = Structure(
        choice_start=np.cumsum([0] + [len(state) for state in states]),
        transition_start=np.cumsum([0] + [len(c) for c in flat]),
        successor=np.array([t for c in flat for t, _, _ in c], np.int32),
    )
    return IntervalMDP(
        structure,
        np.array([low for c in flat for _, low, _ in c]),
        np.array([high for c in flat for _, _, high in c]),
    )


def only(size: int, *members: int) -> np.ndarray:
    mask = np.zeros(size, np.bool_)
    mask[list(members)] = True
    return mask


def reach(size: int, *members: int, agent: Direction = MAX, nature: Direction = MIN) -> Objective:
    return Objective(ObjectiveKind.UNTIL, agent, nature, target=only(size, *members))


LOOP = [[(0, 1.0, 1.0)]]


def sink(state: int) -> list[list[tuple[int, float, float]]]:
    return [[(state, 1.0, 1.0)]]


def test_waiting_is_no_way_to_a_target() -> None:
    """The greedy policy could wait for ever; the policy returned leaves."""
    model = model_of([[(0, 1.0, 1.0)], [(1, 0.5, 0.5), (2, 0.5, 0.5)]], sink(1), sink(2))
    solution = solve(model, reach(3, 1))
    assert solution.lower[0] == pytest.approx(0.5, rel=1e-6) and solution.upper[0] >= 0.5
    assert solution.choice[0] == 1
    assert solution.ranking[0] > 0


def test_nature_cuts_what_it_may() -> None:
    cuttable = model_of([[(0, 0.0, 1.0), (1, 0.0, 0.5)]], sink(1))
    assert solve(cuttable, reach(2, 1)).upper[0] == 0.0
    assert solve(cuttable, reach(2, 1, nature=MAX)).lower[0] == 1.0
    assumed = solve(cuttable, reach(2, 1), assume_support=1e-3)
    assert assumed.lower[0] == 1.0
    cost = Objective(
        ObjectiveKind.REACH_REWARD, MIN, MAX, target=only(2, 1), reward=RewardStructure(state=np.ones(2))
    )
    assert solve(cuttable, cost).lower[0] == np.inf
    assert solve(cuttable, replace(cost, nature=MIN)).upper[0] == pytest.approx(2.0, rel=1e-6)
    assert solve(cuttable, cost, assume_support=0.25).upper[0] == pytest.approx(4.0, rel=1e-6)
    with pytest.raises(
        InputError, match=r"at most probability 0\.5, which refutes that all have at least 0\.6"
    ):
        solve(cuttable, cost, assume_support=0.6)


def test_what_bounds_leave_is_natures_however_little() -> None:
    """0.7 + 0.3 < 1 in binary, by 5.6e-17: bounds are the float64 they are, and that much goes to state 3."""
    model = model_of([[(1, 0.0, 0.7), (2, 0.0, 0.3), (3, 0.0, 1.0)]], sink(1), sink(2), sink(3))
    missing = Fraction(1) - Fraction(0.7) - Fraction(0.3)
    least = solve(model, reach(4, 3))
    assert 0 < missing <= Fraction(float(least.upper[0])) < Fraction(1, 10**14)
    assert Fraction(float(least.lower[0])) <= missing
    assert solve(model, reach(4, 1, 2)).upper[0] == 0.0
    most = solve(model, reach(4, 1, 2, nature=MAX))
    assert Fraction(float(most.lower[0])) <= 1 - missing <= Fraction(float(most.upper[0]))


def test_zero_reward_cycles_are_left_by_those_who_minimise() -> None:
    model = model_of([[(1, 1.0, 1.0)]], [[(0, 1.0, 1.0)], [(2, 1.0, 1.0)]], sink(2))
    reward = RewardStructure(choice=np.array([0.0, 0.0, 7.0, 0.0]))
    objective = Objective(ObjectiveKind.REACH_REWARD, MIN, MIN, target=only(3, 2), reward=reward)
    solution = solve(model, objective)
    assert solution.lower[0] == pytest.approx(7.0, rel=1e-6) and solution.upper[0] >= 7.0
    assert list(solution.choice) == [0, 2, 3]
    assert solve(model, replace(objective, agent=MAX)).lower[0] == np.inf


def test_terminal_rewards_of_either_sign() -> None:
    model = model_of([[(1, 0.25, 0.5), (2, 0.5, 0.75)]], sink(1), sink(2))
    objective = Objective(
        ObjectiveKind.REACH_REWARD,
        MIN,
        MAX,
        target=only(3, 1, 2),
        reward=RewardStructure(state=np.array([1.0, 9.0, 9.0])),
        terminal=np.array([0.0, 10.0, -2.0]),
    )
    solution = solve(model, objective)
    assert solution.lower[0] <= 1 + 0.5 * 10 - 0.5 * 2 <= solution.upper[0]
    assert (solution.lower[1], solution.upper[2]) == (10.0, -2.0)
    assert solution.is_certified


def test_negative_rewards_only_where_every_play_stops() -> None:
    model = model_of([[(0, 0.5, 0.5), (1, 0.5, 0.5)]], sink(1))
    reward = RewardStructure(state=np.array([-1.0, 0.0]))
    objective = Objective(ObjectiveKind.REACH_REWARD, MAX, MIN, target=only(2, 1), reward=reward)
    solution = solve(model, objective)
    assert solution.lower[0] <= -2 <= solution.upper[0] and solution.is_certified
    lingering = model_of([[(0, 0.5, 0.5), (1, 0.5, 0.5)], [(0, 1.0, 1.0)]], sink(1))
    with pytest.raises(InputError, match="every policy reaches"):
        solve(lingering, replace(objective, reward=reward))
    total = Objective(ObjectiveKind.TOTAL, MAX, MIN, reward=reward)
    solution = solve(model, total)
    assert solution.lower[0] <= -2 <= solution.upper[0] and solution.is_certified
    with pytest.raises(InputError, match="rewards may go on forever"):
        solve(lingering, total)


def test_total_and_discounted_rewards() -> None:
    model = model_of([[(0, 0.5, 0.75), (1, 0.25, 0.5)]], sink(1))
    reward = RewardStructure(state=np.array([1.0, 0.0]))
    total = Objective(ObjectiveKind.TOTAL, MAX, MIN, reward=reward)
    assert solve(model, total).lower[0] == pytest.approx(2.0, rel=1e-6)
    assert solve(model, replace(total, nature=MAX)).upper[0] == pytest.approx(4.0, rel=1e-6)
    for_ever = RewardStructure(state=np.array([0.0, 0.5]))
    assert solve(model, replace(total, reward=for_ever)).lower[0] == np.inf
    discounted = Objective(ObjectiveKind.DISCOUNTED, MAX, MIN, reward=for_ever, discount=0.5)
    solution = solve(model, discounted)
    assert solution.lower[1] <= 1.0 <= solution.upper[1]
    # x = 0.5·(p·x + (1−p)·1) with p = 0.75: x = 0.2
    assert solution.lower[0] <= 0.2 <= solution.upper[0] and solution.is_certified


def by_steps(model: TinyModel, objective: Objective) -> list[Fraction]:
    """Step-bounded objectives by exact backups over vertices."""
    size = model.states
    agent = max if objective.agent is MAX else min
    nature = max if objective.nature is MAX else min
    start = model.structure.choice_start
    reward = [Fraction(0)] * int(start[-1])
    if objective.reward is not None:
        reward = [Fraction(float(r)) for r in objective.reward.per_choice(model.structure)]

    def backup(values: list[Fraction]) -> list[Fraction]:
        return [
            agent(
                reward[start[s] + i] + nature(sum(p * values[t] for t, p in v) for v in vertices(choice))
                for i, choice in enumerate(model.choices[s])
            )
            for s in range(size)
        ]

    if objective.kind is ObjectiveKind.CUMULATIVE:
        values = [Fraction(0)] * size
        for _ in range(objective.upper_steps or 0):
            values = backup(values)
        return values
    target = [bool(b) for b in objective.target]
    values = [Fraction(int(b)) for b in target]
    if objective.kind is ObjectiveKind.NEXT:
        return backup(values)
    allowed = [True] * size if objective.allowed is None else [bool(b) for b in objective.allowed]
    for _ in range((objective.upper_steps or 0) - objective.lower_steps):
        new = backup(values)
        values = [Fraction(1) if target[s] else (new[s] if allowed[s] else Fraction(0)) for s in range(size)]
    for _ in range(objective.lower_steps):
        new = backup(values)
        values = [new[s] if allowed[s] else Fraction(0) for s in range(size)]
    return values


@pytest.mark.thinned(4)
@pytest.mark.parametrize("agent", Direction)
@pytest.mark.parametrize("nature", Direction)
def test_step_bounds_exactly(agent: Direction, nature: Direction) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        model = random_model(rng, 4)
        target, allowed = rng.random(4) < 0.3, rng.random(4) < 0.8
        reward = RewardStructure(state=rng.choice([-1.0, 0.0, 2.0], size=4))
        for objective in (
            Objective(ObjectiveKind.UNTIL, agent, nature, target=target, allowed=allowed, upper_steps=5),
            Objective(
                ObjectiveKind.UNTIL,
                agent,
                nature,
                target=target,
                allowed=allowed,
                lower_steps=2,
                upper_steps=4,
            ),
            Objective(ObjectiveKind.NEXT, agent, nature, target=target),
            Objective(ObjectiveKind.CUMULATIVE, agent, nature, reward=reward, upper_steps=6),
        ):
            solution = solve(model.model(), objective)
            for s, value in enumerate(by_steps(model, objective)):
                assert Fraction(float(solution.lower[s])) <= value <= Fraction(float(solution.upper[s]))
            assert solution.is_certified


def test_complement() -> None:
    model = model_of([[(1, 0.1, 0.3), (2, 0.7, 0.9)]], sink(1), sink(2))
    inner = reach(3, 1, agent=MIN, nature=MAX)
    solution = solve(model, replace(inner, complement=True))
    assert solution.lower[0] <= 0.7 <= solution.upper[0]
    assert solution.lower[2] == solution.upper[2] == 1.0
    assert solution.lower[1] == solution.upper[1] == 0.0


def test_limits_are_a_status_and_the_bounds_still_hold() -> None:
    size = 400
    rows = [[[(max(s - 1, 0), 0.4, 0.6), (min(s + 1, size - 1), 0.4, 0.6)]] for s in range(size)]
    rows[0], rows[-1] = sink(0), sink(size - 1)
    model = model_of(*rows)
    cut = solve(model, reach(size, size - 1), iterations=50)
    assert cut.status is Status.ITERATION_LIMIT and not cut.is_certified
    late = solve(model, reach(size, size - 1), seconds=0.0)
    assert late.status is Status.TIME_LIMIT
    full = solve(model, reach(size, size - 1))
    assert full.is_certified
    for partial in (cut, late):
        assert np.all(partial.lower <= full.upper) and np.all(full.lower <= partial.upper)


def test_slow_chains_are_factorised() -> None:
    """A symmetric walk on 2000 states: sweeps alone would need millions."""
    size = 2001
    structure = Structure(
        choice_start=np.arange(size + 1),
        transition_start=np.concatenate([[0, 1], 1 + 2 * np.arange(1, size - 1), [2 * size - 2]]),
        successor=np.concatenate(
            [[0], np.array([(s - 1, s + 1) for s in range(1, size - 1)]).ravel(), [size - 1]]
        ).astype(np.int32),
    )
    model = MDP(structure, np.concatenate([[1.0], np.full(2 * size - 4, 0.5), [1.0]]))
    solution = solve(model, reach(size, size - 1))
    value = np.arange(size) / (size - 1)
    assert np.all(solution.lower <= value) and np.all(value <= solution.upper)
    assert solution.is_certified and solution.iterations < 20_000


def test_the_witness_is_natures_answer() -> None:
    model = model_of([[(1, 0.1, 0.3), (2, 0.2, 0.9), (3, 0.0, 1.0)]], sink(1), sink(2), sink(3))
    solution = solve(model, reach(4, 1))
    assert solution.witness()[:3] == pytest.approx([0.1, 0.9, 0.0])
    assert solve(model, reach(4, 1, nature=MAX)).witness()[0] == pytest.approx(0.3)


def test_files_decimals_are_scaled_to_one() -> None:
    structure = model_of([[(1, 0.0, 1.0), (2, 0.0, 1.0), (3, 0.0, 1.0)]], sink(1), sink(2), sink(3)).structure
    third = 0.3333333333
    kernel = IntervalOperator.of(MDP(structure, np.array([third, third, third, 1, 1, 1])))
    assert kernel.lower[:3].sum() == pytest.approx(1.0, abs=1e-15)
    assert solve(kernel, reach(4, 1, 2, 3)).lower[0] == 1.0


def test_wrong_arguments_are_named() -> None:
    model = model_of([[(0, 0.5, 0.5), (1, 0.5, 0.5)], [(1, 1.0, 1.0)]], sink(1))
    objective = reach(2, 1)
    with pytest.raises(InputError, match="precision"):
        solve(model, objective, precision=0.0)
    with pytest.raises(InputError, match="threads"):
        solve(model, objective, threads=0)
    with pytest.raises(InputError, match="names 1 choices for 2 states"):
        solve(model, objective, policy=np.array([0]))
    with pytest.raises(InputError, match=r"choice number 1 of state 1, whose choices are 0\.\.0"):
        solve(model, objective, policy=np.array([0, 1]))
    with pytest.raises(InputError, match=r"sum to 0\.5"):
        solve(model, objective, policy=np.array([0.25, 0.25, 1.0]))
    with pytest.raises(InputError, match=r"sum to 1\.5"):
        solve(model_of([[(0, 0.0, 1.0), (1, 0.0, 1.0)]], sink(1)), objective, assume_support=0.75)


def test_a_start_of_the_wrong_length_is_refused() -> None:
    structure = Structure(
        np.arange(3), np.arange(3), np.array([1, 1]), labels={"goal": np.array([False, True])}
    )
    model = MDP(structure, np.ones(2))
    objective = Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MIN, target=structure.labels["goal"])
    assert solve(model, objective, start=np.ones(2)).lower[0] == 1.0
    for start in (np.ones(1), np.ones(3), np.ones((2, 1))):
        with pytest.raises(InputError, match="the model has 2 states"):
            solve(model, objective, start=start)


def test_threads_change_nothing() -> None:
    model = random_model(np.random.default_rng(5), 4).model()
    one, two = solve(model, reach(4, 1)), solve(model, reach(4, 1), threads=2)
    assert np.array_equal(one.lower, two.lower) and np.array_equal(one.upper, two.upper)
