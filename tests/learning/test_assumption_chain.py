"""The chain expression, tied, untied, per unit: which rungs data refute, what each costs, what hints say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.learning.robustness import refuted_rungs, ties_refuted, what_to_do

STEPS = {0: 1, 1: 3, 4: 1}
Episodes = list[list[tuple[int, str, int]]]


def way() -> tr.Problem:
    parameters = tr.Parameters.box(p=(0.05, 0.95))
    (p,) = parameters.symbols()
    rows = [
        (0, "a", {1: p, 2: 1 - p}),
        (0, "b", {4: 1}),
        (1, "a", {3: p, 2: 1 - p}),
        (4, "a", {1: p * p, 2: 1 - p * p}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [3]})
    return model.problem('Pmax=? [ F "goal" ]')


def walked(chance: dict[int, float], number: int = 1500, seed: int = 1) -> Episodes:
    rng, episodes = np.random.default_rng(seed), []
    for _ in range(number):
        steps: list[tuple[int, str, int]] = [(0, "b", 4)] if rng.random() < 0.5 else []
        state = 4 if steps else 0
        while state in STEPS:
            to = STEPS[state] if rng.random() < chance[state] else 2
            steps.append((state, "a", to))
            state = to
        episodes.append(steps)
    return episodes


@pytest.mark.parametrize(
    ("chance", "refuted", "needed"),
    [
        ({0: 0.6, 1: 0.6, 4: 0.36}, set(), "expression"),
        ({0: 0.6, 1: 0.6, 4: 0.7}, set(), "tied"),
        ({0: 0.6, 1: 0.75, 4: 0.36}, {"expression", "tied"}, "untied"),
    ],
)
def test_the_first_rung_that_is_not_refuted(chance: dict[int, float], refuted: set[str], needed: str) -> None:
    """A broken tie refutes ties and expressions, a wrong expression nothing but itself."""
    problem = way()
    data = walked(chance)
    result = tr.learn(problem, data, delta=0.01)
    assert set(refuted_rungs(result.model, result.counts, None)) == refuted
    chain = result.assumption_chain()
    assert chain.needed is not None and chain.needed.name == needed
    for before, after in zip(chain.rungs, chain.rungs[1:], strict=False):
        assert after.guarantee <= before.guarantee + 1e-6
        assert after.cost == pytest.approx(before.guarantee - after.guarantee, abs=1e-6)
    truth = tr.solve(problem.at(p=0.6)).lower[0]
    assert truth > 0


def test_the_hint_on_a_broken_tie_is_not_the_tie() -> None:
    result = tr.learn(way(), walked({0: 0.6, 1: 0.75, 4: 0.36}), delta=0.01)
    assert what_to_do(result).startswith("--sets untied") and "--sets tied" not in what_to_do(result)


def test_ties_are_rarely_refuted_where_they_hold() -> None:
    """1,000 data sets of tied choices, visited unevenly: the e-value reaches 100 in at most 1 %."""
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(s, "a", {s + 1: p, 9: 1 - p}) for s in range(8)] + [(8, "", {8: 1}), (9, "", {9: 1})]
    model = tr.build_from_rows(rows, parameters)
    counts = tr.read_data([[(0, "a", 9)]], model).counts
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(1000):
        chance = rng.uniform(0.02, 0.98)
        seen = np.zeros(model.transitions, dtype=np.int64)
        for s in range(8):
            visits = int(rng.integers(0, 200))
            kept = int(rng.binomial(visits, chance))
            seen[2 * s : 2 * s + 2] = [kept, visits - kept]
        drawn = tr.Counts(seen, counts.transition_start, counts.design, counts.model_hash)
        alarms += ties_refuted(model, drawn)["expression", "tied"][0] >= math.log(100)
    assert alarms <= 10


def test_a_number_of_the_model_that_is_wrong_refutes_all_rungs() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "a", {1: 0.5, 2: 0.5}), (1, "", {1: p, 2: 1 - p}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"end": [2]})
    data = tr.read_data([[(0, "a", 1), (1, "", 2)]] * 190 + [[(0, "a", 2)]] * 10, model)
    assert set(refuted_rungs(model, data.counts, None)) == {"expression", "tied", "untied", "per-unit"}


def test_units_one_by_one() -> None:
    """Each unit at its share of δ: wider than all together, and about the units of the log alone."""
    problem = way()
    rows = [
        (f"{unit}-{number}", unit, *step)
        for unit, seed in (("east", 1), ("west", 2))
        for number, steps in enumerate(walked({0: 0.6, 1: 0.6, 4: 0.36}, 300, seed))
        for step in steps
    ]
    frame = pd.DataFrame(rows, columns=["episode", "unit", "state", "action", "next_state"])
    result = tr.learn(problem, tr.read_data(frame, problem.model, states="index"), delta=0.01)
    chain = result.assumption_chain("unit")
    assert [rung.name for rung in chain.rungs][-1] == "per-unit"
    assert chain.rungs[-1].guarantee < chain.rungs[-2].guarantee
    with pytest.raises(tr.InputError, match="no column 'site'"):
        result.assumption_chain("site")


def test_the_test_of_the_model_sees_a_broken_tie_beside_a_square() -> None:
    """A square touches its envelope in the middle of the box, where searches begin: they go on from there."""
    result = tr.learn(way(), walked({0: 0.6, 1: 0.75, 4: 0.36}, 2000), delta=0.01)
    assert result.fit is not None and result.fit.alarm and result.fit.suspects[0].kind == "tie"
