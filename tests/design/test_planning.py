"""Information, directions, oracles and designs, against brute force on models small enough for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.coupled.taylor import ValueGradient
from tightrope.design.design import design
from tightrope.design.directions import Directions, EveryDirection, Information, find_directions
from tightrope.design.episodes import Episodes, Way, stationary
from tightrope.design.oracle import Answer, Atom, atom_of, best_episodes

POINT = np.array([0.3, 0.6])


@pytest.fixture(scope="module")
def walk() -> Any:
    """Two parameters and their product over four layers; every state offers a choice about each."""
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.1, 0.9))
    p, q = parameters.symbols()
    rows = [
        (0, "a", {1: p, 2: 1 - p}),
        (0, "b", {1: q, 2: 1 - q}),
        (1, "a", {3: p * q, 4: 1 - p * q}),
        (1, "b", {3: p, 4: 1 - p}),
        (2, "a", {3: q / 2, 4: (1 - q) / 2, 5: "1/2"}),
        (2, "b", {3: "1/4", 4: "3/4"}),
        (3, "a", {4: p, 5: 1 - p}),
        (3, "b", {4: 1 - q, 5: q}),
        (4, "", {4: 1}),
        (5, "", {5: 1}),
    ]
    return tr.build_from_rows(rows, parameters, labels={"goal": [5]})


@pytest.fixture(scope="module")
def loop() -> Any:
    """A model with cycles in which every episode ends."""
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.1, 0.9))
    p, q = parameters.symbols()
    rows = [
        (0, "a", {0: p / 2, 1: 1 - p / 2}),
        (0, "b", {1: q, 2: 1 - q}),
        (1, "a", {0: p, 2: 1 - p}),
        (1, "b", {2: 1}),
        (2, "a", {1: q / 2, 3: 1 - q / 2}),
        (2, "b", {3: 1}),
        (3, "", {3: 1}),
    ]
    return tr.build_from_rows(rows, parameters, labels={"goal": [3]})


def deterministic(model: Any) -> Iterator[tr.Policy]:
    spans = [
        range(a, b)
        for a, b in zip(model.choice_start[:-1].tolist(), model.choice_start[1:].tolist(), strict=True)
    ]
    for choice in itertools.product(*spans):
        yield tr.Policy.of_choices(model.structure, np.array(choice))


def no_stop(model: Any) -> Any:
    return np.zeros(model.states, np.bool_)


def test_the_information_of_an_episode_is_the_variance_of_its_score(walk: Any) -> None:
    information = Information.at(walk, POINT)
    rng = np.random.default_rng(3)
    share = rng.random(walk.choices)
    start = walk.choice_start
    share /= np.repeat(np.add.reduceat(share, start[:-1]), np.diff(start))
    policy = tr.Policy(walk, share)
    covariance, visits = np.zeros((2, 2)), np.zeros(walk.choices)

    def go(state: int, chance: float, score: Any, taken: list[int]) -> None:
        if state >= 4:
            covariance[:] += chance * np.outer(score, score)
            np.add.at(visits, taken, chance)
            return
        for c in range(start[state], start[state + 1]):
            for t in range(walk.transition_start[c], walk.transition_start[c + 1]):
                e = walk.expression[t]
                chance_here = information.probability[e]
                step = information.slope[e] / chance_here
                go(int(walk.successor[t]), chance * share[c] * chance_here, score + step, [*taken, c])

    go(0, 1.0, np.zeros(2), [])
    occupancy = Episodes.of(information, no_stop(walk)).occupancy(policy)
    np.testing.assert_allclose(occupancy, visits, atol=1e-14)
    np.testing.assert_allclose(information.of_visits(occupancy), covariance, rtol=1e-12)
    bend = np.array([[2.0, 0.5], [0.5, 1.0]])
    worth = float(occupancy @ information.rewards(bend))
    assert worth == pytest.approx(float(np.vdot(bend, covariance)), rel=1e-12)


def test_slopes_follow_products_of_parameters(walk: Any) -> None:
    step = 1e-6
    information = Information.at(walk, POINT)
    for i in range(2):
        shift = step * np.eye(2)[i]
        ahead, behind = (Information.at(walk, POINT + sign * shift).probability for sign in (1, -1))
        np.testing.assert_allclose(information.slope[:, i], (ahead - behind) / (2 * step), atol=1e-9)


def test_counts_in_the_expected_shares_carry_the_expected_information(walk: Any) -> None:
    information = Information.at(walk, POINT)
    occupancy = Episodes.of(information, no_stop(walk)).occupancy(tr.Policy.uniform(walk))
    per_transition = occupancy[walk.structure.transition_choice] * information.probability[walk.expression]
    count = np.bincount(walk.expression, weights=per_transition, minlength=len(walk.expressions))
    np.testing.assert_allclose(information.of_counts(count), information.of_visits(occupancy), rtol=1e-12)


@pytest.mark.parametrize("criterion", ["directions", "every"])
def test_the_slope_of_a_criterion_is_its_derivative(criterion: str) -> None:
    rng = np.random.default_rng(5)
    given = Directions.merged(rng.normal(size=(4, 3)), rng.random(4))
    chosen = given if criterion == "directions" else EveryDirection(3)
    root, change = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    matrix, change = root @ root.T + np.eye(3), change + change.T
    step = 1e-6
    difference = (chosen.value(matrix + step * change) - chosen.value(matrix - step * change)) / (2 * step)
    assert -float(np.vdot(chosen.slope(matrix), change)) == pytest.approx(difference, rel=1e-6)


def test_collinear_directions_are_one_whatever_their_sign() -> None:
    merged = Directions.merged(np.array([[1.0, 2.0], [-2.0, -4.0], [0.0, 3.0], [0.0, 0.0]]), np.ones(4))
    np.testing.assert_allclose(merged.weight, [3 * 5**0.5, 3.0])
    matrix = np.diag([2.0, 5.0])
    direct = sum(float(np.sqrt(v @ np.linalg.inv(matrix) @ v)) for v in ([1, 2], [-2, -4], [0, 3]))
    assert merged.value(matrix) == pytest.approx(direct)


def test_a_direction_without_information_has_no_finite_length() -> None:
    merged = Directions.merged(np.eye(2), np.array([2.0, 1.0]))
    assert merged.lengths(np.diag([4.0, 0.0])).tolist() == [0.5, np.inf]


@pytest.mark.parametrize("text", ['Pmax=? [ F "goal" ]', 'Pmax=? [ F<=2 "goal" ]'])
def test_directions_are_those_in_which_nature_moves_the_value(walk: Any, text: str) -> None:
    """A step of its own along every choice's direction changes the value by the weighted lengths."""
    objective = walk.problem(text).objective
    information = Information.at(walk, POINT)
    policy = tr.Policy.of_choices(walk.structure, walk.choice_start[:-1])
    per_choice = find_directions(information, objective, policy, coupled=False)
    once = find_directions(information, objective, policy, coupled=True)
    assert per_choice is not None and once is not None and len(once) == 1
    functions = information.maximiser.functions
    value = ValueGradient.of(walk, objective, policy, functions)
    assert value is not None
    gradient = value.at(information.lifted)
    assert gradient is not None
    assert once.weight[0] == pytest.approx(
        float(np.linalg.norm(gradient @ information.maximiser.jacobian(POINT)))
    )
    # Nature per choice gains Σ η(c)·max over |Δ| ≤ ε of v_c·Δ: never less than what one Δ for all gains.
    assert per_choice.weight.sum() >= once.weight[0] - 1e-12
    if "<=" in text:
        return
    step, base = 1e-6, _value(walk, policy, information.probability[walk.expression])
    moved = information.probability[walk.expression].copy()
    values = np.array([_value(walk, policy, moved, state) for state in range(walk.states)])
    for c in policy.choice.tolist():
        mine = slice(walk.transition_start[c], walk.transition_start[c + 1])
        slope = information.slope[walk.expression[mine]]
        v = values[walk.successor[mine]] @ slope
        if np.linalg.norm(v) > 0:
            moved[mine] += slope @ (step * v / np.linalg.norm(v))
    assert (_value(walk, policy, moved) - base) / step == pytest.approx(per_choice.weight.sum(), rel=1e-4)


def _value(model: Any, policy: tr.Policy, probability: Any, state: int = 0) -> float:
    if state >= 4:
        return float(state == 5)
    c = int(policy.choice[state])
    mine = range(model.transition_start[c], model.transition_start[c + 1])
    return sum(
        float(probability[t]) * _value(model, policy, probability, int(model.successor[t])) for t in mine
    )


@pytest.mark.parametrize("cap", [None, 2, 3, 50])
def test_the_oracle_finds_what_no_policy_beats(walk: Any, loop: Any, cap: int | None) -> None:
    rng = np.random.default_rng(7)
    for model in (walk, loop):
        information = Information.at(model, POINT)
        episodes = Episodes.of(information, no_stop(model), cap)
        reward = rng.random(model.choices)
        reward[-1] = 0.0  # the end
        answer = best_episodes(episodes)(reward)
        best = max(float(episodes.occupancy(policy) @ reward) for policy in deterministic(model))
        assert answer.value >= best - 1e-9
        assert best - 1e-9 <= answer.upper <= answer.value * (1 + 1e-8)
        np.testing.assert_allclose(
            episodes.occupancy(answer.atom.parts[0][1]), answer.atom.occupancy, atol=1e-12
        )
        if episodes.way is not Way.SWEEPS:
            assert answer.value == pytest.approx(best, rel=1e-9)


def test_ways_agree_where_the_cap_is_far(loop: Any) -> None:
    information = Information.at(loop, POINT)
    reward = information.rewards(np.eye(2))
    without, far = Episodes.of(information, no_stop(loop)), Episodes.of(information, no_stop(loop), 400)
    assert (without.way, far.way) == (Way.EQUATIONS, Way.SWEEPS)
    assert best_episodes(far)(reward).value == pytest.approx(best_episodes(without)(reward).value, rel=1e-9)


def test_a_cap_is_demanded_where_episodes_need_not_end() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "toss", {0: p, 1: 1 - p}), (1, "back", {0: 1}), (1, "end", {2: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters)
    information = Information.at(model, np.array([0.5]))
    with pytest.raises(tr.InputError, match="information could be collected forever"):
        Episodes.of(information, no_stop(model))
    assert best_episodes(Episodes.of(information, no_stop(model), 10))(np.array([1.0, 0, 0, 0])).value > 5


def test_one_randomised_policy_has_the_occupancy_of_the_mixture(walk: Any, loop: Any) -> None:
    for model in (walk, loop):
        episodes = Episodes.of(Information.at(model, POINT), no_stop(model))
        mixed = np.zeros(model.choices)
        for share, policy in zip((0.5, 0.3, 0.2), deterministic(model), strict=False):
            mixed += share * episodes.occupancy(policy)
        np.testing.assert_allclose(episodes.occupancy(stationary(model.structure, mixed)), mixed, atol=1e-12)


@pytest.mark.parametrize("amount", [3.0, 1000.0])
def test_no_mixture_is_better_than_the_certificate_says(walk: Any, amount: float) -> None:
    information = Information.at(walk, POINT)
    episodes = Episodes.of(information, no_stop(walk))
    wanted = Directions.merged(np.array([[1.0, 0.2], [0.1, 1.0]]), np.array([1.0, 0.7]))
    past = np.diag([5.0, 1.0])
    found = design(information, wanted, past, amount, best_episodes(episodes))
    assert found.optimality <= 0.005 and found.efficiency >= 0.97
    assert found.value == pytest.approx(wanted.value(past + amount * found.matrix))
    assert found.shares.sum() == pytest.approx(1.0)
    matrices = [information.of_visits(episodes.occupancy(policy)) for policy in deterministic(walk)]
    best = min(
        wanted.value(past + amount * (share * one + (1 - share) * other))
        for one, other in itertools.combinations(matrices, 2)
        for share in np.linspace(0, 1, 21)
    )
    assert best >= found.value * (1 - found.optimality) - 1e-12
    assert found.value <= best * 1.005


def test_costs_are_per_unit_and_shares_per_episode(walk: Any) -> None:
    """Two atoms alike but for their price: twice as dear is half as good, so the cheap one is taken."""
    information = Information.at(walk, POINT)
    episodes = Episodes.of(information, no_stop(walk))
    plain = atom_of(episodes, tr.Policy.uniform(walk))
    dear, cheap = Atom(plain.parts, plain.occupancy, 2.0), Atom(plain.parts, plain.occupancy, 1.0)
    asked = iter([dear, cheap, cheap, cheap])

    def oracle(reward: Any) -> Answer:
        atom, most = next(asked), float(plain.occupancy @ reward)
        return Answer(atom, most / atom.cost, most)

    found = design(information, EveryDirection(2), np.eye(2), 100.0, oracle)
    assert found.cost == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(found.matrix, information.of_visits(plain.occupancy), rtol=1e-9)
    assert isinstance(found.policy, tr.Policy)
