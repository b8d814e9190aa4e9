"""Logs held against shields: prices, slack, forbidden steps, and the test of the promised success rate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.shield.watching import ShieldWatch

MODEL = """mdp
const double p;
module m
  s : [0..3] init 0;
  [safe] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [fast] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [back] s=2 -> (s'=3);
  [] s=1 | s=3 -> true;
endmodule
label "goal" = s=1;
"""
PROP = 'Pmax=? [ F "goal" ]'


def question() -> tr.Problem:
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    (p,) = parameters.symbols()
    rows = [(0, "safe", {1: p, 2: 1 - p}), (0, "fast", {1: 0.5, 2: 0.5}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [1]})
    return model.problem(PROP)


def watch_of(slack: float, alpha: float = 0.01) -> ShieldWatch:
    problem = question()
    shield = tr.Shield.of(tr.solve(problem.at(p=0.8)), problem, slack=slack)
    return ShieldWatch(problem, shield, alpha)


def observe(watch: ShieldWatch, transitions: list[int]) -> None:
    events = np.array(transitions, np.int64)
    watch.observe(events, np.ones(len(events), np.bool_), len(events))


def test_prices_are_paid_and_forbidden_steps_are_counted() -> None:
    watch = watch_of(0.4)
    observe(watch, [0, 2, 3, 1])  # safe to 1, fast to 1, fast to 2, safe to 2
    assert (watch.steps, watch.priced, watch.forbidden) == (4, 2, 0)
    assert watch.spent == pytest.approx(0.6) and watch.least == pytest.approx(0.1)
    assert watch.returns.episodes == 4 and watch.mean == pytest.approx(0.5)
    strict = watch_of(0.0)
    observe(strict, [0, 2, 3, 1])
    assert (strict.steps, strict.forbidden, strict.returns.episodes) == (2, 2, 2)


def test_episodes_that_leave_the_shield_on_their_way_are_said_to_have_left() -> None:
    rows = [(0, "on", {1: 1}), (1, "safe", {2: 1}), (1, "fast", {3: 1}), (2, "", {2: 1}), (3, "", {3: 1})]
    parameters = tr.Parameters.box(p=("0.1", "0.9"))
    model = tr.build_from_rows(rows, parameters, labels={"goal": [2]})
    problem = model.problem(PROP)
    watch = ShieldWatch(problem, tr.Shield.of(tr.solve(problem.at(p=0.5)), problem, slack=0.0), 0.01)
    watch.observe(np.array([0, 1, 0, 2, 0]), np.array([True, False, True, False, True]), 5)
    watch.observe(np.array([0]), np.array([True]), 6)
    assert (watch.steps, watch.forbidden, watch.left, watch.cut) == (5, 1, 1, 1)
    assert watch.mean == 1.0  # whoever left or was cut off counts as a success


def test_a_broken_promise_raises_an_alarm_and_a_true_one_does_not() -> None:
    rng = np.random.default_rng(2)
    fine, broken = watch_of(0.0), watch_of(0.0)
    observe(fine, rng.choice([0, 1], 500, p=[0.8, 0.2]).tolist())
    observe(broken, rng.choice([0, 1], 500, p=[0.5, 0.5]).tolist())
    assert not fine.alarm and broken.alarm


def test_a_shield_of_another_model_is_refused() -> None:
    other = tr.build_from_rows([(0, "a", {1: 1}), (1, "", {1: 1})], labels={"goal": [1]})
    shield = tr.Shield.of(tr.solve(other, PROP), slack=0.0)
    with pytest.raises(InputError, match="about another model"):
        ShieldWatch(question(), shield, 0.01)


def test_the_command_compares_a_log_with_a_shield(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.prism").write_text(MODEL)
    sample = ["sample", "m.prism", "--at", "p=0.8", "--prop", PROP, "--raw", "--quiet"]
    assert run([*sample, "--episodes", "300", "--seed", "1", "-o", "log.csv"]) == 0
    data = ["m.prism", "--data", "log.csv"]
    assert run(["shield", *data, "--prop", PROP, "--slack", "0.4", "-o", "s.json", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["watch", *data, "--shield", "s.json", "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    facts = record["shield"]
    assert facts["forbidden"] == 0 and 100 < facts["priced"] < 200 and facts["least_slack"] < 0.4
    assert record["returns"]["episodes"] == 300 and not record["returns"]["alarm"]
    assert run(["watch", *data, "--shield", "s.json"]) == 0
    assert "  shield     " in capsys.readouterr().out
    assert run(["watch", *data, "--shield", "s.json", "--checkpoint", "c.npz"]) == 2
    assert "--shield and --checkpoint cannot be used together" in capsys.readouterr().err
