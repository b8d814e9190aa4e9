"""Paths with a bound on what they earn: against recursion over the budget, against Storm, and what is
refused."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stormpy

import tightrope as tr
from tightrope.prism.load import load_prism_text

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


def test_several_bounds_hold_at_the_same_time() -> None:
    """Against Storm, and steps as a reward of 1."""
    rng = random.Random(4)
    for direction in ("max", "min"):
        rows: list[Any] = []
        for s in range(STATES):
            for c in range(rng.randint(1, 2)):
                one, other = rng.sample(range(STATES), 2)
                rows.append((s, f"c{c}", {one: 0.25, other: 0.75}))
        spent = {name: [rng.randint(0, 2) for _ in range(STATES)] for name in ("cost", "price")}
        spent["one"] = [1] * STATES
        made = tr.build_from_rows(rows, labels={"a": [4, 5]}, state_rewards=spent)
        assert isinstance(made, tr.ParametricMDP)
        model = made.instantiate()
        for bounds in ('rew{"cost"}<=3,rew{"price"}<=2', 'rew{"price"}<=3,rew{"one"}<=4,rew{"cost"}>=1'):
            asked = f'P{direction}=? [ F^{{{bounds}}} "a" ]'
            (parsed,) = stormpy.parse_properties(asked)
            theirs = stormpy.model_checking(tr.to_stormpy(model), parsed, only_initial_states=True)
            found = tr.solve(model, asked).bounds
            assert found is not None and found[0] - 1e-5 <= theirs.get_value(0) <= found[1] + 1e-5
            in_steps = tr.solve(model, asked.replace('rew{"one"}', "steps")).bounds
            assert in_steps == pytest.approx(found, abs=1e-6)
        window = tr.solve(model, f'P{direction}=? [ F^{{rew{{"cost"}}[1,4],steps[2,5]}} "a" ]').bounds
        apart = '"a" ]', f'P{direction}=? [ F^{{rew{{"cost"}}>=1,rew{{"cost"}}<=4,steps>1,rew{{"one"}}<6}} '
        assert window == pytest.approx(tr.solve(model, apart[1] + apart[0]).bounds, abs=1e-6)


DRAWN = """dtmc
module m s:[0..2]; [a] s=0 -> (s'=1); [b] s=0 -> (s'=2); [] s>0 -> true; endmodule
label "a" = s>0;
rewards "cost" [a] true : 2; [b] true : 4; endrewards
"""


def test_means_of_successors_are_no_rewards_of_plays(tmp_path: Path) -> None:
    """Half of the plays earn 2, half of them 4: none earns the mean, 3."""
    rows: list[Any] = [(0, "", {1: "1/2", 2: "1/2"}), (1, "", {1: 1}), (2, "", {2: 1})]
    labels = {"a": [1, 2]}
    plain = tr.build_from_rows(rows, labels=labels, transition_rewards={"cost": [{1: 2, 2: 4}, {}, {}]})
    (tmp_path / "m.tra").write_text("3 4\n0 1 0.5\n0 2 0.5\n1 1 1\n2 2 1\n")
    (tmp_path / "m.lab").write_text('0="init" 1="a"\n0: 0\n1: 1\n2: 1\n')
    (tmp_path / "m.trew").write_text('# Reward structure "cost"\n3 2\n0 1 2\n0 2 4\n')
    matrix = np.array([[[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]])
    arrays = tr.from_arrays(matrix, np.array([[[0, 2, 4], [0, 0, 0], [0, 0, 0]]]), labels=labels)
    ended = {0: [(1.0, 1, 0.0, True)]}
    env = SimpleNamespace(P={0: {0: [(0.5, 1, 2.0, False), (0.5, 2, 4.0, False)]}, 1: ended, 2: ended})
    gym = tr.from_gymnasium(env)
    gym = replace(gym, structure=replace(gym.structure, labels={"a": gym.labels["terminal"]}))
    models = [plain, load_prism_text(DRAWN), tr.load(tmp_path / "m.tra"), arrays, gym]
    for number, ending in enumerate((".drn", ".tra", ".umb", ".jani")):  # written and read back
        plain.save(tmp_path / f"again{number}{ending}")
        models.append(tr.load(tmp_path / f"again{number}{ending}"))
    for model in models:
        name = next(iter(model.rewards))
        assert model.rewards[name].per_choice(model.structure)[0] == 3
        for asked in (
            f'P=? [ F{{"{name}"}}<=3 "a" ]',
            f'CVaR{{"{name}",0.5}}max=? [ F "a" ]',
            f'quantile(min k, P>=0.9 [ F{{"{name}"}}<=k "a" ])',
        ):
            with pytest.raises(tr.InputError, match="differ by successor"):
                tr.solve(model, asked)
    same = tr.build_from_rows(rows, labels=labels, choice_rewards={"cost": [3, 0, 0]})
    assert tr.solve(same, 'P=? [ F{"cost"}<=3 "a" ]').bounds == pytest.approx((1, 1))


def test_means_with_parameters_stay_means_in_files(tmp_path: Path) -> None:
    (p,) = (domain := tr.Parameters.box(p=(0.1, 0.9))).symbols()
    rows: list[Any] = [(0, "", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    earned = {"cost": [{1: 2, 2: 4}, {}, {}]}
    model = tr.build_from_rows(rows, domain, labels={"a": [1, 2]}, transition_rewards=earned)
    model.save(tmp_path / "m.drn")
    for one in (model, tr.load(tmp_path / "m.drn")):
        assert one.rewards["cost"].is_mean and one.instantiate((0.5,)).rewards["cost"].is_mean


def test_what_is_refused() -> None:
    model = random_model(random.Random(1))
    half = tr.build_from_rows([(0, "", {0: 1})], labels={"a": [0]}, state_rewards={"cost": [0.5]})
    for subject, asked, message in (
        (model, 'Pmax=? [ F{"price"}<=3 "a" ]', 'there is no reward structure "price"'),
        (model, 'Pmax=? [ G (F{"cost"}<=3 "a") ]', "a bound on a reward stands alone"),
        (model, 'Pmax=? [ "b" W{"cost"}<=3 "a" ]', "requires F, G and U over state formulas"),
        (half, 'P=? [ F{"cost"}<=3 "a" ]', "not all whole numbers"),
        (model, 'Pmax=? [ F{"cost"}<=99999 "a" ]', "bounds on rewards remember at most 50,000 sums"),
        (model, 'Pmax=? [ F^{rew{"cost"}<=999,steps<=99} "a" ]', "remember at most 50,000 sums"),
        (model, 'Pmax=? [ F^{steps<=3,steps>1} "a" ]', "steps are bounded twice"),
        (model, 'quantile(min k, Pmax>=0.5 [ F^{rew{"cost"}<=k,steps<=3} "a" ])', "and no other"),
    ):
        with pytest.raises(tr.InputError, match=message):
            tr.solve(subject, asked)
    with pytest.raises(tr.InputError, match="bounds on rewards are not supported here"):
        _ = tr.Problem(model, 'Pmax=? [ F{"cost"}<=3 "a" ]').objective
