"""Long-run averages and steady states: against Storm, against hand-made values, and what is refused.

Also of `coupled/difference.py`.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stormpy

import tightrope as tr
from tightrope.cli.app import run

Rows = list[tuple[int, str, dict[int, Any]]]


def bounds(model: Any, text: str) -> tuple[float, float]:
    found = tr.solve(model, text)
    assert found.bounds is not None and found.is_certified, found.missed
    return found.bounds


def test_averages_by_hand() -> None:
    rows: Rows = [
        (0, "left", {1: 1}),
        (0, "right", {2: "1/4", 3: "3/4"}),
        (1, "", {1: "1/2", 0: "1/2"}),
        (2, "", {2: 1}),
        (3, "", {4: 1}),
        (4, "", {3: 1}),
    ]
    model = tr.build_from_rows(
        rows, labels={"one": [1], "even": [2, 4]}, state_rewards={"r": [0, 3, 8, -4, 1]}
    )
    # Left for ever: a third of the time in 0, two thirds in 1. Right: 8 with 1/4, else -3/2 on average.
    assert bounds(model, "Rmax=? [ S ]") == pytest.approx((2, 2), abs=1e-5)
    assert bounds(model, "Rmin=? [ LRA ]") == pytest.approx((0.875, 0.875), abs=1e-5)
    assert bounds(model, 'Smax=? [ "one" ]') == pytest.approx((2 / 3, 2 / 3), abs=1e-5)
    assert bounds(model, 'Smin=? [ "one" ]') == pytest.approx((0, 0), abs=1e-6)
    assert bounds(model, 'LRAmax=? [ "even" ]') == pytest.approx((0.625, 0.625), abs=1e-5)
    assert bounds(model, 'filter(max, Smax=? [ "even" ])') == pytest.approx((1, 1), abs=1e-6)
    assert tr.solve(model, 'Smax>=0.6 [ "one" ] & S<=0.7 [ "one" ]').truth == "true"


@pytest.mark.parametrize("direction", ["max", "min"])
def test_averages_are_those_of_storm(direction: str) -> None:
    rng = random.Random(11)
    for _ in range(10):
        rows: Rows = []
        for s in range(6):
            for c in range(rng.randint(1, 2)):
                leads_to = {*rng.sample(range(6), rng.randint(1, 2)), *([5] if s == c == 0 else [])}
                rows.append((s, f"c{c}", {t: f"1/{len(leads_to)}" for t in leads_to}))
        rewards = [rng.randint(0, 9) for _ in range(6)]
        model = tr.build_from_rows(rows, labels={"a": [0, 5]}, state_rewards={"r": rewards})
        assert isinstance(model, tr.ParametricMDP)
        for ours, theirs in [
            (f'R{{"r"}}{direction}=? [ S ]', f'R{{"r"}}{direction}=? [ LRA ]'),
            (f'S{direction}=? [ "a" ]', f'LRA{direction}=? [ "a" ]'),
        ]:
            (parsed,) = stormpy.parse_properties(theirs)
            value = stormpy.model_checking(tr.to_stormpy(model.instantiate()), parsed)
            found = tr.solve(model, ours)
            assert found.lower is not None and found.upper is not None
            expected = np.array([float(value.get_value(s)) for s in range(6)])
            assert (found.lower - 1e-5 <= expected).all() and (expected <= found.upper + 1e-5).all()
            assert (found.upper - found.lower <= 1e-5 * max(1, *rewards)).all()


def test_what_is_not_answered_is_refused() -> None:
    cut = tr.build_from_rows([(0, "", {0: (0, 0.8), 1: (0.2, 1)}), (1, "", {0: 1})], labels={"a": [1]})
    with pytest.raises(tr.InputError, match="nature can remove transitions of this model"):
        tr.solve(cut, 'Smax=? [ "a" ]')
    assert tr.solve(cut, 'Smax=? [ "a" ]', assume_support=1e-3).is_certified
    two = tr.build_from_rows([(0, "x", {0: 1}), (0, "y", {1: 1}), (1, "", {0: 1})], labels={"a": [1]})
    with pytest.raises(tr.InputError, match=r"S=\? is ambiguous: the model has choices"):
        tr.solve(two, 'S=? [ "a" ]')
    with pytest.raises(tr.InputError, match="long-run averages are not supported here"):
        _ = tr.Problem(two, 'Smax=? [ "a" ]').objective
    with pytest.raises(tr.InputError, match="the model has no reward structure"):
        tr.solve(two, "Rmax=? [ S ]")


def vertices(lower: np.ndarray, upper: np.ndarray) -> list[np.ndarray]:
    """Of the distributions within bounds: all but one entry at an end."""
    found: list[np.ndarray] = []
    for free in range(len(lower)):
        others = [i for i in range(len(lower)) if i != free]
        for ends in itertools.product(*((lower[i], upper[i]) for i in others)):
            point = np.zeros(len(lower))
            point[others] = ends
            point[free] = 1 - sum(ends)
            if lower[free] - 1e-12 <= point[free] <= upper[free] + 1e-12:
                found.append(point)
    return found


def exact_average(
    model: tr.IntervalMDP, reward: np.ndarray, choices: tuple[int, ...], picks: tuple[int, ...]
) -> float:
    """Of the chain that choices and picks leave, from state 0: by powers of its lazy matrix."""
    matrix = np.zeros((model.states, model.states))
    for s, c in enumerate(choices):
        span = slice(*model.transition_start[c : c + 2])
        np.add.at(matrix[s], model.successor[span], vertices(model.lower[span], model.upper[span])[picks[c]])
    lazy = (matrix + np.eye(model.states)) / 2
    for _ in range(40):
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)
    return float(lazy[0] @ reward)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("letters", ["maxmin", "maxmax", "minmax", "minmin"])
def test_averages_of_interval_models_are_those_of_vertices(letters: str) -> None:
    rng = random.Random(3)
    mixed = 0
    for number in range(2):
        rows: Rows = []
        for s in range(4):
            leads = rng.sample(range(4), 2) if number % 2 or s < 2 else [s, s]
            for c in range(2 if s < 2 else 1):
                if leads[0] == leads[1]:
                    rows.append((s, f"c{c}", {s: 1}))
                else:
                    low = rng.randint(1, 4) / 10
                    pair = rng.sample(range(4), 2)
                    rows.append((s, f"c{c}", {pair[0]: (low, low + 0.3), pair[1]: (0.7 - low, 1 - low)}))
        rewards = [float(rng.randint(0, 9)) for _ in range(4)]
        model = tr.build_from_rows(rows, labels={}, state_rewards={"r": rewards})
        assert isinstance(model, tr.IntervalMDP)
        sizes = [
            len(vertices(*(b[slice(*model.transition_start[c : c + 2])] for b in (model.lower, model.upper))))
            for c in range(model.choices)
        ]
        agent = max if letters[:3] == "max" else min
        nature = max if letters[3:] == "max" else min
        values = []
        for choices in itertools.product(*(range(*model.choice_start[s : s + 2]) for s in range(4))):
            seen = [range(size) if c in choices else range(1) for c, size in enumerate(sizes)]
            values.append(
                nature(exact_average(model, np.array(rewards), choices, p) for p in itertools.product(*seen))
            )
        expected = agent(values)
        low, high = bounds(model, f'R{{"r"}}{letters}=? [ S ]')
        assert low - 1e-5 <= expected <= high + 1e-5 and high - low < 1e-4, (number, low, high, expected)
        mixed += not any(abs(expected - r) < 1e-6 for r in rewards)
    assert mixed >= 1


def test_learned_averages_hold_the_true_value_and_their_policies_attain_them() -> None:
    """Two rooms to work in, the better one behind a door that may lead into a trap."""
    parameters = tr.Parameters.box(p=("1/10", "9/10"), q=("1/10", "9/10"))
    p, q = parameters.symbols()
    rows: Rows = [
        (0, "work", {0: 1 - p, 1: p}),
        (0, "door", {2: 1 - q, 4: q}),
        (1, "", {0: 1}),
        (2, "", {3: p, 2: 1 - p}),
        (3, "", {2: 1}),
        (4, "", {4: 1}),
    ]
    rewards = {"r": [1.0, 2.0, 3.0, 6.0, 0.0]}
    model = tr.build_from_rows(rows, parameters, labels={"up": [1, 3]}, state_rewards=rewards)
    assert isinstance(model, tr.ParametricMDP)
    chosen = set()
    for number, point in enumerate([{"p": 0.5, "q": 0.2}, {"p": 0.5, "q": 0.8}]):
        at_truth = model.instantiate(**point)
        data = tr.Simulator(at_truth, model_hash=model.hash()).generative(300, seed=number)
        for asked in ('R{"r"}max=? [ S ]', 'R{"r"}min=? [ S ]', 'Smax=? [ "up" ]'):
            found = tr.learn(tr.Problem(model, asked), data, delta=0.01)
            best = bounds(at_truth, asked)
            ends = found.interval
            assert found.verdict.is_proved and ends.upper - ends.lower < 2
            if "max" in asked:
                assert found.guarantee == ends.lower <= best[1] + 1e-6 and best[0] - 1e-6 <= found.optimistic
            else:
                assert found.guarantee == ends.upper >= best[0] - 1e-6 and best[1] + 1e-6 >= found.optimistic
            kept = [row for c, row in enumerate(rows) if c in set(found.policy.choice.tolist())]
            chain = tr.build_from_rows(kept, parameters, labels={"up": [1, 3]}, state_rewards=rewards)
            assert isinstance(chain, tr.ParametricMDP)
            low, high = bounds(chain.instantiate(**point), asked.replace("max", "").replace("min", ""))
            assert ends.lower - 1e-6 <= low and high <= ends.upper + 1e-6, (asked, point)
            chosen.add((number, asked, int(found.policy.choice[0])))
    assert (0, 'R{"r"}max=? [ S ]', 1) in chosen and (1, 'R{"r"}max=? [ S ]', 0) in chosen


def test_what_is_refused_of_learned_averages() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows: Rows = [(0, "", {0: 1 - p, 1: p}), (1, "", {0: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"a": [1]})
    assert isinstance(model, tr.ParametricMDP)
    few = [[(0, "", 0)]] * 5
    with pytest.raises(tr.CannotCertify, match="neither the domain nor the data show that the probability"):
        tr.learn(tr.Problem(model, 'S=? [ "a" ]'), few)
    assert tr.learn(tr.Problem(model, 'S=? [ "a" ]'), few, assume_support=1e-3).guarantee >= 0
    for asked, words, message in (
        ('S>=0.5 [ "a" ]', {}, "not a threshold"),
        ('S=? [ "a" ]', {"sets": "untied"}, "untied sets cannot be used with long-run averages"),
    ):
        with pytest.raises(tr.InputError, match=message):
            tr.learn(tr.Problem(model, asked), few, **words)


def test_the_command_line_learns_averages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, log, policy = tmp_path / "m.prism", tmp_path / "log.csv", tmp_path / "policy.json"
    file.write_text(
        "dtmc const double p; module m s:[0..1]; [] s=0 -> p:(s'=1)+1-p:(s'=0); [] s=1 -> (s'=0); endmodule"
    )
    given = [str(file), "--domain", "0.1<=p<=0.9"]
    words = ["sample", *given, "--at", "p=0.5", "--episodes", "4", "--seed", "1", "-o", str(log)]
    assert run(words) == 0
    asked = ["learn", *given, "--prop", "S=? [ s=1 ]", "--data", str(log)]
    assert run([*asked, "-o", str(policy)]) == 0
    assert ", confidence 0.999\n" in capsys.readouterr().out and policy.is_file()
    assert run([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["robust_policy"]["lower"] < 1 / 3 < found["robust_policy"]["upper"]
    assert run([*asked, "--certificate", str(tmp_path / "c")]) == 0
    capsys.readouterr()
    assert run(["verify", str(tmp_path / "c"), "--exact"]) == 0
    assert "VALID: long-run average reward >= 0.31" in capsys.readouterr().out
