"""`tr.online` of questions that are no single objective: episodes are collected evenly.

Also of `learning/online/learner.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import tightrope as tr


@pytest.fixture(scope="module")
def model() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=(0.05, 0.95))
    (p,) = parameters.symbols()
    rows = [(0, "go", {0: 1 - p, 1: p}), (0, "wait", {0: 1}), (1, "back", {0: 1})]
    return tr.build_from_rows(rows, parameters, labels={"on": [1]})


@pytest.mark.parametrize("question", ['Smax=? [ "on" ]', '2 * Pmax=? [ F<=3 "on" ]'])
def test_answers_come_at_doublings_and_are_those_of_learn(model: tr.ParametricMDP, question: str) -> None:
    """p = 0.5: a third of the time is spent at 1."""
    problem, draw = tr.Problem(model, question), np.random.default_rng(7)
    learner = tr.online(problem, delta=0.05, until_gap=0.2)
    assert learner.policy().probability.tolist() == [0.5, 0.5, 1.0]
    due = []
    for number in range(1, 9):
        episode, state = [], 0
        for _ in range(40):
            action = "back" if state else ("go", "wait")[draw.integers(2)]
            following = 0 if action != "go" else int(draw.random() < 0.5)
            episode.append((state, action, following))
            state = following
        if (result := learner.observe(episode)) is not None:
            due.append(number)
    assert due == [1, 2, 4, 8] and learner.episodes == 8
    again = tr.learn(problem, learner.data.counts(), delta=0.05, interval="beta-binomial", region="polytope")
    assert result.interval == again.interval
    truth = {'Smax=? [ "on" ]': 1 / 3, '2 * Pmax=? [ F<=3 "on" ]': 1.75}[question]
    assert result.interval.lower <= truth <= result.interval.upper
    assert learner.is_reached == (result.interval.upper - result.interval.lower <= 0.2)


def test_what_has_no_meaning_where_episodes_are_collected_evenly_is_refused(model: tr.ParametricMDP) -> None:
    problem = tr.Problem(model, 'Smax=? [ "on" ]')
    for words in ({"explore": "robust"}, {"baseline": "uniform"}, {"on_drift": "stop"}, {"allow_loss": 0.1}):
        with pytest.raises(tr.InputError, match=r"cannot be used with Smax=\? .* collected evenly"):
            tr.online(problem, **words)
    with pytest.raises(tr.InputError, match="'fly'"):
        tr.online(problem).observe([(0, "fly", 1)])
