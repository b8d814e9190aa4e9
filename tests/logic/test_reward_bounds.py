"""Paths with a bound on what they earn: against recursion over the budget, against Storm, and what is
refused."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import stormpy

import tightrope as tr

pytestmark = pytest.mark.usefixtures("in_python")

STATES = 6


def random_model(rng: random.Random, interval: bool = False) -> tr.MDP | tr.IntervalMDP:
    rows: list[Any] = []
    costs: list[int] = []
    for s in range(STATES):
        for c in range(rng.randint(1, 2)):
            one, other = rng.sample(range(STATES), 2)
            share = rng.randint(1, 3) / 5
            wide = 0.2 if interval else 0.0
            pair = {one: (share, share + wide), other: (1 - share - wide, 1 - share)}
            rows.append((s, f"c{c}", pair if interval else {one: share, other: 1 - share}))
            costs.append(rng.randint(1, 3))
    labels = {"a": rng.sample(range(1, STATES), 2), "b": rng.sample(range(STATES), 4)}
    made = tr.build_from_rows(rows, labels=labels, choice_rewards={"cost": costs})
    return made.instantiate() if isinstance(made, tr.ParametricMDP) else made


def by_recursion(model: Any, budget: int, agent: Any, nature: Any, lower: int = 0) -> float:
    """P(F a) with lower ≤ earned ≤ budget: every choice costs at least 1, so budgets shrink."""
    cost = model.rewards["cost"].per_choice(model.structure)
    bounds = (model.probability,) * 2 if isinstance(model, tr.MDP) else (model.lower, model.upper)

    @cache
    def value(s: int, earned: int) -> float:
        if earned > budget:
            return 0.0
        if model.labels["a"][s] and earned >= lower:
            return 1.0
        found = []
        for c in range(*model.choice_start[s : s + 2]):
            span = range(*model.transition_start[c : c + 2])
            ends = [value(int(model.successor[t]), earned + int(cost[c])) for t in span]
            low, high = bounds[0][span[0]], bounds[1][span[0]]
            found.append(nature(p * ends[0] + (1 - p) * ends[1] for p in (low, high)))
        return float(agent(found))

    return value(0, 0)


@pytest.mark.parametrize("interval", [False, True])
def test_values_are_those_of_recursion(interval: bool) -> None:
    rng = random.Random(5)
    for number in range(3):
        model = random_model(rng, interval)
        for budget in (2, 6):
            best = tr.solve(model, f'Pmaxmin=? [ F{{"cost"}}<={budget} "a" ]')
            assert best.is_certified and best.bounds is not None
            assert best.bounds == pytest.approx((by_recursion(model, budget, max, min),) * 2, abs=1e-5), (
                number
            )
            least = tr.solve(model, f'Pminmax=? [ !(F{{"cost"}}<{budget + 1} "a") ]').bounds
            expected = 1 - by_recursion(model, budget, max, min)
            assert least == pytest.approx((expected,) * 2, abs=1e-5)
            late = tr.solve(model, f'Pminmin=? [ true U{{"cost"}}={budget} "a" ]').bounds
            exactly = by_recursion(model, budget, min, min, budget)
            assert late == pytest.approx((exactly,) * 2, abs=1e-5)


def test_values_are_those_of_storm() -> None:
    rng = random.Random(2)
    for direction in ("max", "min"):
        rows: list[Any] = []
        for s in range(STATES):
            for c in range(rng.randint(1, 2)):
                one, other = rng.sample(range(STATES), 2)
                rows.append((s, f"c{c}", {one: 0.25, other: 0.75}))
        spent = {"cost": [rng.randint(0, 3) for _ in range(STATES)]}
        made = tr.build_from_rows(rows, labels={"a": [4, 5]}, state_rewards=spent)
        assert isinstance(made, tr.ParametricMDP)
        model = made.instantiate()
        asked = f'P{direction}=? [ F{{"cost"}}<=3 "a" ]'
        (parsed,) = stormpy.parse_properties(asked)
        theirs = stormpy.model_checking(tr.to_stormpy(model), parsed, only_initial_states=True).get_value(0)
        found = tr.solve(model, asked).bounds
        assert found is not None and found[0] - 1e-5 <= theirs <= found[1] + 1e-5


def test_what_is_refused() -> None:
    model = random_model(random.Random(1))
    half = tr.build_from_rows([(0, "", {0: 1})], labels={"a": [0]}, state_rewards={"cost": [0.5]})
    for subject, asked, message in (
        (model, 'Pmax=? [ F{"price"}<=3 "a" ]', 'there is no reward structure "price"'),
        (model, 'Pmax=? [ G (F{"cost"}<=3 "a") ]', "a bound on a reward stands alone"),
        (model, 'Pmax=? [ "b" W{"cost"}<=3 "a" ]', "goes with F, G and U over state formulas"),
        (half, 'P=? [ F{"cost"}<=3 "a" ]', "not all whole numbers"),
        (model, 'Pmax=? [ F{"cost"}<=99999 "a" ]', "a bound on a reward is less than"),
    ):
        with pytest.raises(tr.InputError, match=message):
            tr.solve(subject, asked)
    with pytest.raises(tr.InputError, match="bounds on rewards are not supported here"):
        _ = tr.Problem(model, 'Pmax=? [ F{"cost"}<=3 "a" ]').objective
