"""Many unknown probabilities: episodes put together from steps, and tables of free distributions."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import tightrope as tr
from benchmark_script import run_benchmark
from tightrope.data.design import SamplingKind
from tightrope.learning.outcomes import ObservedOutcomes
from tightrope.monitoring.episode_scores import PathRules, Queues

QUESTION = 'Pmax=? [ F "goal" ]'


def two_actions(states: int = 1) -> tr.ParametricMDP:
    """From each state: back to it, to the goal or to the end, by either of two actions."""
    goal = states
    rows = [
        (s, a, dict.fromkeys(((s + 1) % states, goal, goal + 1), tr.free))
        for s in range(states)
        for a in "ab"
    ]
    ends = [(goal, "", {goal: 1}), (goal + 1, "", {goal + 1: 1})]
    return tr.build_from_rows([*rows, *ends], labels={"goal": [goal]})


def test_episodes_take_the_next_outcome_of_their_choice_until_one_is_missing() -> None:
    model = two_actions()
    log = [
        [(0, "a", 0), (0, "b", 1)],
        [(0, "b", 2)],
        [(0, "a", 2)],
        [(0, "a", 1)],
        [(0, "a", 0), (0, "b", 1)],
    ]
    queues = Queues.of(model, tr.read_data(log, model).counts)
    assert queues is not None
    problem, every = model.problem(QUESTION), np.arange(model.choices)
    policy = np.array([1.0, 0.0, 1.0, 1.0])
    rules = PathRules.of(model.structure, problem.objective, policy > 0.0)
    made = queues.episodes(rules, policy, every)
    # queue of a: 0, 2, 1, 0 — the first episode takes 0 and 2, the second 1, the third lacks an outcome
    assert model.structure.successor[made.transition].tolist() == [0, 2, 1]
    assert made.start.tolist() == [0, 2] and made.step.tolist() == [0, 1, 0] and made.elsewhere == 0
    other = queues.episodes(rules, np.array([0.0, 1.0, 1.0, 1.0]), every)
    assert model.structure.successor[other.transition].tolist() == [1, 2, 1]


def simulated(model: tr.ParametricMDP, draws: int, seed: int) -> tr.Counts:
    """The same distribution at every choice, drawn so many times."""
    width = np.diff(model.transition_start)
    chances = np.concatenate([[0.5, 0.35, 0.15] if w == 3 else [1.0] for w in width.tolist()])
    truth = tr.MDP(model.structure, chances)
    return tr.Simulator(truth, model_hash=model.hash()).generative(draws, seed=seed)


def test_a_given_policy_is_seen_in_separate_steps() -> None:
    model = two_actions(5)
    assert len(model.parameters) == 20
    counts = simulated(model, 400, 3)
    policy = tr.Policy(model, [1.0, 0.0] * 5 + [1.0, 1.0])
    problem = model.problem(QUESTION)
    result = tr.learn(problem, counts, delta=0.01, policy=policy)
    seen = result.outcomes
    assert isinstance(seen, ObservedOutcomes) and seen.from_steps and seen.method == "beta-binomial"
    assert "put together from steps" in seen.policy and seen.planned is None
    assert result.value is not None and 0.7 in result.value.interval
    alone = tr.learn(problem, counts, delta=0.01, policy=policy, outcomes="none")
    assert alone.value is not None and result.value.interval.width < 0.7 * alone.value.interval.width
    assert not isinstance(tr.learn(problem, counts, delta=0.01).outcomes, ObservedOutcomes)
    few = two_actions(2)
    near = tr.learn(
        few.problem(QUESTION), simulated(few, 50, 1), policy=tr.Policy(few, [1.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    )
    assert not isinstance(near.outcomes, ObservedOutcomes)


def test_an_order_that_is_not_known_puts_nothing_together() -> None:
    model = two_actions(5)
    counts = simulated(model, 50, 3)
    adaptive = replace(counts, design=replace(counts.design, kind=SamplingKind.ADAPTIVE))
    assert Queues.of(model, adaptive) is None


def numbers(states: int) -> tr.ParametricMDP:
    chances = {"a": ("1/2", "1/4", "1/4"), "b": ("1/2", "1/8", "3/8")}
    rows = [
        (s, a, dict(zip(((s + 1) % states, states, states + 1), row, strict=True)))
        for s in range(states)
        for a, row in chances.items()
    ]
    ends = [(states, "", {states: 1}), (states + 1, "", {states + 1: 1})]
    initial = dict.fromkeys(range(states), f"1/{states}")
    model = tr.build_from_rows([*rows, *ends], initial=initial, labels={"goal": [states]})
    assert isinstance(model, tr.ParametricMDP)
    return model


def test_a_table_has_the_sets_of_unconstrained_rows_and_keeps_the_draw_of_the_first_state() -> None:
    model = numbers(4)
    free = tr.ParametricMDP.without_numbers(model)
    with (
        mock.patch("tightrope.model.free.MOST_COORDINATES", 3),
        mock.patch("tightrope.model.parametric_mdp.MOST_COORDINATES", 3),
    ):
        table = tr.ParametricMDP.without_numbers(model)
        assert table.is_table
        assert len(table.parameters) == len(free.parameters) == 16 and not table.parameters.constraints
        draw = table.structure.choice_start[table.structure.initial]
        at = table.structure.transition_start[draw]
        assert table.expressions.text(int(table.expression[at])) == "1/4"
        texts = [table.expressions.text(int(e)) for e in table.expression[:3]]
        assert texts == ["free_1", "free_2", "1 - free_1 - free_2"]
        assert (
            table.shown_parameters if hasattr(table, "shown_parameters") else not table.parameters.shown.names
        )
        counts = tr.Simulator(model.instantiate(), model_hash=model.hash()).generative(60, seed=1)
        words = {"delta": 0.05, "sets": "untied", "outcomes": "none"}
        many = tr.learn(model.problem(QUESTION), counts, **words)
        with pytest.raises(tr.InputError, match="too many for regions"):
            tr.learn(
                table.problem(QUESTION),
                counts.__class__(counts.transition, counts.transition_start, counts.design, table.hash()),
                sets="rectangular",
            )
    few = tr.learn(model.problem(QUESTION), counts, **words)
    np.testing.assert_array_equal(many.sets.lower, few.sets.lower)
    np.testing.assert_array_equal(many.sets.upper, few.sets.upper)
    assert many.interval == few.interval


def test_the_domain_of_a_table_holds_distributions_only() -> None:
    """Its box holds points where 1 - x1 - x2 < 0; nature must not pick these, nor a user."""
    rows = [(0, "", {1: "1/2", 2: "1/4", 3: "1/4"}), *((s, "", {4: 1}) for s in range(1, 5))]
    rewards = {"r": [0, 1, 1, 2, 0]}
    model = tr.build_from_rows(rows, labels={"done": [4]}, state_rewards=rewards)
    free = tr.ParametricMDP.without_numbers(model)
    with (
        mock.patch("tightrope.model.free.MOST_COORDINATES", 1),
        mock.patch("tightrope.model.parametric_mdp.MOST_COORDINATES", 1),
    ):
        table = tr.ParametricMDP.without_numbers(model)
        with pytest.raises(tr.InputError, match="not within"):
            table.instantiate([1, 1])
        for sets in ("expression", "rectangular", "coupled"):
            answer = tr.solve(table.problem('R{"r"}maxmin=? [ F "done" ]'), sets=sets)
            same = tr.solve(free.problem('R{"r"}maxmin=? [ F "done" ]'), sets="rectangular")
            assert answer.robust.interval == same.robust.interval and answer.interval == same.interval
            assert 1 in answer.interval and answer.interval.lower > 0.99999


@pytest.mark.long
def test_the_benchmark_of_many_parameters() -> None:
    done = run_benchmark("many_parameters.py", "--smoke")
    assert done.returncode == 0 and "of importance weights" in done.stdout
