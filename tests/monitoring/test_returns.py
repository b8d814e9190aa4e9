"""`watch --result`: what episodes return under a policy, and whether that agrees with what was promised."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tightrope.cli.app import run
from tightrope.cli.watch import WatchRecord
from tightrope.errors import InputError
from tightrope.io.coding import from_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.monitoring.promise import (
    CUT,
    ELSEWHERE,
    LEFT,
    SHOWN,
    EpisodeReturns,
    Promise,
    PromiseWatch,
    rules_of,
)
from tightrope.prism.load import load_prism_text
from tightrope.problem import Problem

MODEL = """mdp
const double p;
module m
  s : [0..4] init 0;
  [try] s=0 -> p:(s'=1) + (1-p):(s'=2);
  [rest] s=0 -> (s'=0);
  [go] s=1 -> 0.5:(s'=3) + 0.5:(s'=0);
  [go] s=2 -> 0.5:(s'=4) + 0.5:(s'=2);
  [done] s>2 -> true;
endmodule
label "goal" = s=3;
label "end" = s>2;
rewards "cost" [try] true : 1; [rest] true : 1; [go] true : 2; endrewards
"""


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    found = load_prism_text(MODEL, "m.prism", box="p=0.1:0.9")
    assert isinstance(found, ParametricMDP)
    return found


def steps(model: ParametricMDP, *moves: tuple[int, str, int]) -> np.ndarray:
    structure = model.structure
    values = structure.valuations["s"].tolist()
    found = []
    for state, action, after in moves:
        for t in range(model.transitions):
            choice = int(structure.transition_choice[t])
            here = values[int(structure.choice_state[choice])]
            there = values[int(structure.successor[t])]
            if (here, structure.action_name(choice), there) == (state, action, after):
                found.append(t)
    assert len(found) == len(moves)
    return np.array(found)


def scored(
    model: ParametricMDP, question: str, moves: list[tuple[int, str, int]], begins: list[int], least: bool
) -> list[tuple[float, int]]:
    policy = Policy(model, {"s=0": "try"})
    rules = rules_of(model.structure, Problem(model, question).objective, policy)
    watch = EpisodeReturns(rules, policy, least)
    flags = np.zeros(len(moves), dtype=np.bool_)
    flags[begins] = True
    transition = steps(model, *moves)
    whole = [pair for part in _portions(watch, transition, flags) for pair in part]
    return whole


def _portions(watch: EpisodeReturns, transition: np.ndarray, flags: np.ndarray) -> list[Any]:
    """In portions of two: episodes go on across them."""
    found = []
    for first in range(0, len(transition), 2):
        value, ending = watch.add(transition[first : first + 2], flags[first : first + 2])
        found.append(list(zip(value.tolist(), ending.tolist(), strict=True)))
    return found


WON = [(0, "try", 1), (1, "go", 3)]
LOST = [(0, "try", 2)]
LONG = [(0, "try", 1), (1, "go", 0), (0, "try", 1), (1, "go", 3)]
LEAVES = [(0, "try", 1), (1, "go", 0), (0, "rest", 0)]
OPEN = [(0, "try", 1)]
ABROAD = [(2, "go", 4)]


def episodes(*parts: list[tuple[int, str, int]]) -> tuple[list[tuple[int, str, int]], list[int]]:
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return [move for part in parts for move in part], ends[:-1]


def test_what_episodes_return_in_probability(model: ParametricMDP) -> None:
    """Lost as soon as the goal is out of reach; what leaves or is cut off counts as good as it can be."""
    moves, begins = episodes(WON, LOST, LONG, LEAVES, OPEN, ABROAD, WON)
    found = scored(model, 'Pmax=? [ F "goal" ]', moves, begins, True)
    ended = [SHOWN, SHOWN, SHOWN, LEFT, CUT, ELSEWHERE, SHOWN]
    assert found == list(zip([1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0], ended, strict=True))
    least = scored(model, 'Pmin=? [ F "goal" ]', moves, begins, False)
    assert [value for value, _ in least] == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


def test_step_bounds_count_from_the_first_step(model: ParametricMDP) -> None:
    moves, begins = episodes(WON, LONG, OPEN, WON)
    found = scored(model, 'Pmax=? [ F<=3 "goal" ]', moves, begins, True)
    assert [value for value, _ in found] == [1.0, 0.0, 1.0, 1.0]
    found = scored(model, 'Pmax=? [ F[3,9] "goal" ]', moves, begins, True)
    assert found[1] == (1.0, SHOWN)


def test_what_episodes_cost(model: ParametricMDP) -> None:
    """Costs add up until the end; an open one has at least what the shortest way costs."""
    lost = [*LOST, (2, "go", 2), (2, "go", 4)]
    moves, begins = episodes(WON, lost, LEAVES, OPEN, WON)
    found = scored(model, 'R{"cost"}min=? [ F "end" ]', moves, begins, False)
    # left at state 0 after 3, from where 3 is the least; cut off at state 1 after 1, from where 2 is
    assert found == [(3.0, SHOWN), (5.0, SHOWN), (6.0, LEFT), (3.0, CUT), (3.0, SHOWN)]
    found = scored(model, 'R{"cost"}max=? [ C<=2 ]', moves, begins, True)
    assert [value for value, _ in found] == [3.0, 3.0, 3.0, 5.0, 3.0]


def promise(model: ParametricMDP, question: str, bound: float, least: bool) -> Promise:
    return Promise(Problem(model, question).objective, Policy(model, {"s=0": "try"}), bound, least)


def test_costs_without_a_limit_are_watched_where_they_are_guaranteed_to_be_small(
    model: ParametricMDP,
) -> None:
    watch = PromiseWatch(model.structure, promise(model, 'R{"cost"}min=? [ F "end" ]', 4.0, False), 0.01)
    assert (watch.returns.low, watch.returns.high) == pytest.approx((3.0, 11.0), rel=1e-14)
    lost = [*LOST, *([(2, "go", 2)] * 3), (2, "go", 4)]
    for _ in range(40):
        moves, begins = episodes(lost)
        watch.observe(steps(model, *moves), np.isin(np.arange(len(moves)), begins), 7)
    assert watch.alarm and watch.first_alarm == 7 and watch.mean == 9.0
    again = PromiseWatch(model.structure, watch.promise, 0.01)
    again.restore(watch.state())
    assert again.facts() == watch.facts()
    other = PromiseWatch(model.structure, promise(model, 'R{"cost"}min=? [ F "end" ]', 5.0, False), 0.01)
    with pytest.raises(InputError, match="another result or policy"):
        other.restore(watch.state())


@pytest.mark.parametrize(
    ("question", "bound", "least", "said"),
    [
        ('R{"cost"}max=? [ F "end" ]', 4.0, True, "are unbounded"),
        ('R{"cost"}max=? [ F "goal" ]', 4.0, True, "never reaches the end of rewards"),
        ('R{"cost"}max=? [ C ]', 4.0, True, "no episode shows"),
        ('Pmax=? [ F "goal" ]', 1.5, True, "outside of what any episode can return"),
        ('Pmax=? [ F "goal" ]', math.inf, True, "every episode satisfies it"),
    ],
)
def test_guaranteed_bounds_that_cannot_be_watched(
    model: ParametricMDP, question: str, bound: float, least: bool, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        PromiseWatch(model.structure, promise(model, question, bound, least), 0.01)


def test_an_explorer_raises_no_false_alarm(model: ParametricMDP) -> None:
    """Where it leaves the policy at random, most of those who stay on it are the ones that lose at once."""
    rng = np.random.default_rng(3)
    won, lost = steps(model, *WON), steps(model, *LOST)
    again, leaves = steps(model, *LONG[:2]), steps(model, (0, "rest", 0))
    alarms = 0
    for _ in range(30):
        watch = PromiseWatch(model.structure, promise(model, 'Pmax=? [ F "goal" ]', 0.5, True), 0.05)
        for _ in range(150):
            path, begins = [], True
            while True:
                if not begins and rng.random() < 0.7:  # p = 2/3: the value is 2/3·½/(1 − 2/3·½) = ½
                    path.append(leaves)
                    break
                begins = False
                if rng.random() < 1 / 3:
                    path.append(lost)
                    break
                if rng.random() < 0.5:
                    path.append(won)
                    break
                path.append(again)
            moves = np.concatenate(path)
            watch.observe(moves, np.arange(len(moves)) == 0, 1)
        alarms += watch.alarm
        assert watch.left > 0
    assert alarms <= 3


def write_log(name: str, share: float, count: int) -> None:
    """Episodes of which a `share` wins."""
    rows = ["episode,step,s,action,s'"]
    won = 0
    for episode in range(count):
        wins = won < share * (episode + 1)
        won += wins
        rows += [
            f"{episode},0,0,try,{1 if wins else 2}",
            f"{episode},1,{1 if wins else 2},go,{3 if wins else 4}",
        ]
    Path(name).write_text("\n".join(rows) + "\n")


def test_a_result_is_held_against_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    certain = MODEL.replace("0.5:(s'=3) + 0.5:(s'=0)", "(s'=3)").replace("0.5:(s'=4) + 0.5:(s'=2)", "(s'=4)")
    Path("m.prism").write_text(certain)
    write_log("before.csv", 0.8, 400)
    asked = ["m.prism", "--prop", 'Pmax=? [ F "goal" ]']
    assert run(["learn", *asked, "--data", "before.csv", "--sets", "tied", "-o", "run"]) == 0
    write_log("good.csv", 0.8, 120)
    write_log("bad.csv", 0.3, 120)
    capsys.readouterr()
    words = [
        "watch",
        "m.prism",
        "--result",
        "run",
        "--alpha",
        "0.02",
        "--param",
        "p=0:1",
        "--order",
        "as-read",
    ]
    assert run([*words, "--data", "good.csv"]) == 0
    shown = capsys.readouterr().out
    assert "returns    agree with the guaranteed bound (e-value " in shown
    assert "0.8 on average in 120 episodes, guaranteed >= 0." in shown
    assert run([*words, "--data", "bad.csv", "--json"]) == 1
    record = from_text(capsys.readouterr().out.splitlines()[-1], WatchRecord)
    assert record.returns is not None and record.returns.alarm and record.alarm and record.final
    assert (record.alpha, record.model_alpha, record.returns.alpha) == (0.02, 0.01, 0.01)
    assert record.first_alarm == record.returns.first_alarm
    assert (record.returns.episodes, record.returns.left_policy, record.returns.cut_off) == (120, 0, 0)
    assert "returns" in [suspect.kind for suspect in record.suspects]
    kept = [*words, "--data", "bad.csv", "--checkpoint", "kept.npz", "--json"]
    assert run(kept) == 1 and run(kept) == 1
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert again["returns"]["log_e_value"] == record.returns.log_e_value
    Path("plain.csv").write_text("s,action,s'\n0,try,1\n")
    for more, said in (
        (["--data", "plain.csv"], "where episodes begin"),
        (["--data", "good.csv", "--policy", "run/robust-policy.json"], "not for a given one"),
    ):
        assert run([*words, *more]) == 2
        assert said in capsys.readouterr().err.replace("\n", " ")
    assert run(["watch", "m.prism", "--data", "good.csv", "--policy", "x.json"]) == 2
    assert "--result" in capsys.readouterr().err
