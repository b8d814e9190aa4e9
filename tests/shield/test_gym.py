"""Models as Gymnasium environments, and shields around environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tightrope as tr
from tightrope.errors import InputError


def model() -> Any:
    rows = [(0, "safe", {1: 0.9, 2: 0.1}), (0, "fast", {1: 0.8, 2: 0.2}), (1, "back", {0: 1})]
    rewards = {"distance": [1.0, 2.0, 0.0, 0.0]}
    return tr.build_from_rows([*rows, (2, "", {2: 1})], labels={"crash": [2]}, choice_rewards=rewards)


def shielded(slack: float = 0.15, **words: Any) -> Any:
    shield = tr.Shield.of(tr.solve(model(), 'Pmin=? [ F<=3 "crash" ]'), slack=slack)
    return tr.gym.ShieldWrapper(tr.gym.ModelEnv(model()), shield, **words)


def test_a_model_is_an_environment() -> None:
    env = tr.gym.ModelEnv(model())
    check_env(env, skip_render_check=True)
    assert env.reset(seed=1)[0] == 0 and env.action_masks().tolist() == [True, True, False]
    assert env.step(2)[:3] == (0, 0.0, False)  # "back" is not an action of state 0
    earned = [env.step(1)[1] for _ in range(1) if env.reset(seed=4)]
    assert earned == [2.0]
    after = {int(env.step(0)[0]) for seed in range(40) if env.reset(seed=seed)}
    assert after == {1, 2}


def test_episodes_end_in_absorbing_states() -> None:
    env = tr.gym.ModelEnv(model())
    seen = {env.step(1)[::2][:2] for seed in range(40) if env.reset(seed=seed)}
    assert seen == {(1, False), (2, True)}


def test_a_parametric_model_needs_a_point() -> None:
    bench = tr.benchmark("betting(3)")
    env = tr.gym.ModelEnv(bench.model, at={"p": 0.5, "q": 0})
    check_env(env, skip_render_check=True)
    assert env.state_of(0) == {"steps": 0, "money": 10}
    interval = tr.build_from_rows([(0, "a", {0: (0.2, 0.8), 1: (0.2, 0.8)}), (1, "", {1: 1})])
    with pytest.raises(InputError, match="one probability for every transition"):
        tr.gym.ModelEnv(interval)
    with pytest.raises(InputError, match="no rewards 'time'"):
        tr.gym.ModelEnv(model(), reward="time")


def test_the_shield_masks_prices_and_replaces() -> None:
    env = shielded()
    observation, info = env.reset(seed=1)
    assert observation == 0 and env.action_masks().tolist() == [True, True, False]
    assert info["shield"]["prices"] == {0: 0.0, 1: pytest.approx(0.09)}
    info = env.step(1)[-1]
    assert info["shield"]["slack"] == pytest.approx(0.06) and not info["shield"]["replaced"]
    assert info["shield"]["promise"] <= 1
    env = shielded(slack=0.0)
    env.reset(seed=1)
    facts = env.step(1)[-1]["shield"]
    assert facts["replaced"] and facts["taken"] == 0 and facts["slack"] == 0.0


def test_a_forbidden_action_raises_where_that_is_wanted() -> None:
    env = shielded(slack=0.0, forbidden="raise")
    env.reset(seed=1)
    with pytest.raises(InputError, match=r"does not allow 'fast' .*the slack left is 0"):
        env.step(1)


def test_any_agent_keeps_the_bound_in_the_environment() -> None:
    env, rng, crashes = shielded(slack=0.15), np.random.default_rng(3), 0
    for seed in range(400):
        observation, _ = env.reset(seed=seed)
        for _ in range(3):
            observation, *_ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        crashes += observation == 2
    assert env.shield.fresh().promise == pytest.approx(0.34) and crashes / 400 < 0.34


def test_an_environment_of_ones_own_goes_through_state_of() -> None:
    lake = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=False)
    plain = tr.from_gymnasium(lake)
    shield = tr.Shield.of(tr.solve(plain, 'Pmax=? [ F<=20 "goal" ]'), slack=0.0)
    env = tr.gym.ShieldWrapper(lake, shield, state_of=int)
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(20):
        observation, reward, ends, _, info = env.step(int(rng.integers(4)))
        if ends:
            break
    assert ends and reward == 1 and observation == 15 and info["shield"]["promise"] == 1.0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: tr.gym.ShieldWrapper(gymnasium.make("Pendulum-v1"), shielded().shield), "numbered actions"),
        (lambda: tr.gym.ShieldWrapper(gymnasium.make("CartPole-v1"), shielded().shield), "3 actions"),
        (lambda: shielded(forbidden="ignore"), "not 'fallback' or 'raise'"),
    ],
)
def test_what_has_no_shield_is_refused_in_words(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_result_gives_an_environment_of_the_best_fit() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    data = [[(0, "toss", 1)]] * 30 + [[(0, "toss", 2)]] * 10
    env = tr.learn(model.problem('Pmax=? [ F "heads" ]'), data).to_gymnasium()
    assert env.probability.tolist() == pytest.approx([0.75, 0.25, 1, 1], abs=0.01)
    check_env(env, skip_render_check=True)
    with pytest.raises(InputError, match="no data to fit"):
        tr.solve(model.problem('Pmax=? [ F "heads" ]')).to_gymnasium()
