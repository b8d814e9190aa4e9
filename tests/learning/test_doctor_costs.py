"""Costs of a log against the reward of a model: numbers, means, and what they do to the answer."""

from __future__ import annotations

import io
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as csv
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.monitoring.examination import cost_finding
from tightrope.statistics.costs import mean_evidence


@pytest.fixture(scope="module")
def problem() -> tr.Problem:
    parameters = tr.Parameters.box(p=("1/10", "9/10"))
    (p,) = parameters.symbols()
    rows = [(0, "go", {0: p, 1: 1 - p}), (1, "go", {2: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, state_rewards={"cost": [2, 1, 0]}, labels={"end": [2]})
    return tr.Problem(model, 'R{"cost"}=? [ F "end" ]')


def write(path: Path, costs: tuple[float, float], noise: float = 0.0, episodes: int = 80) -> Path:
    """Episodes of two steps and more; the column says what each has cost."""
    rng = np.random.default_rng(1)
    lines = ["episode,state,action,next_state,cost"]
    for episode in range(episodes):
        state = 0
        while state != 2:
            following = state + int(state == 1 or rng.random() < 0.5)
            cost = costs[state] + (rng.choice([-noise, noise]) if noise else 0.0)
            lines.append(f"{episode},{state},go,{following},{cost:g}")
            state = following
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_wrong_number_is_found_and_what_it_does_to_the_answer(problem: tr.Problem, tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", (3.0, 1.0))
    found = tr.doctor(problem, log, delta=0.1, sets="tied", amend="costs=cost", outcomes="none")
    (one,) = found.findings
    assert one.finding.kind == "cost" and one.finding.contexts == (0,)
    assert "costs 3 in column 'cost'" in one.finding.text and "the model says 2" in one.finding.text
    assert one.amendment is not None and one.amendment.text == "costs=cost" and one.mends
    assert one.value is not None and one.value.lower <= 3 / 0.5 + 1 <= one.value.upper
    assert one.effect == pytest.approx(2.0, abs=0.6)
    assert found.verdict.word.value == "nominal"
    assert any(each.name == "costs" and each.kept.value == "no" for each in found.verdict.assumptions)
    assert found.amended is not None and "rewards" in found.amended.amended.prism()


def test_right_costs_and_questions_without_them_are_silent(problem: tr.Problem, tmp_path: Path) -> None:
    right = write(tmp_path / "right.csv", (2.0, 1.0))
    found = tr.doctor(problem, right, delta=0.1, sets="tied", outcomes="none")
    assert (found.verdict.word.value, found.findings) == ("proved", ())
    other = tr.Problem(problem.model, 'P=? [ F<=3 "end" ]')
    wrong = tr.read_data(write(tmp_path / "wrong.csv", (9.0, 1.0)), problem.model).counts.log()
    assert cost_finding(other, wrong, 0.001, None) is None


def test_means_of_random_costs_are_tested_where_a_range_is_stated(
    problem: tr.Problem, tmp_path: Path
) -> None:
    right = tr.read_data(write(tmp_path / "right.csv", (2.0, 1.0), 1.0), problem.model).counts.log()
    wrong = tr.read_data(write(tmp_path / "wrong.csv", (3.0, 1.0), 1.0), problem.model).counts.log()
    assert cost_finding(problem, wrong, 0.001, None) is None
    assert cost_finding(problem, right, 0.001, (0.0, 5.0)) is None
    finding = cost_finding(problem, wrong, 0.001, (0.0, 5.0))
    assert finding is not None and finding.contexts == (0,) and math.isfinite(finding.log_e_value)


def test_learn_says_so_too(problem: tr.Problem, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words: dict[str, Any] = {"delta": 0.1, "outcomes": "none"}
    wrong, right = write(tmp_path / "wrong.csv", (3.0, 1.0)), write(tmp_path / "right.csv", (2.0, 1.0))
    result = tr.learn(problem, wrong, **words)
    assert result.verdict.word.value == "nominal" and "the model says 2" in (result.wrong_costs or "")
    assert tr.learn(problem, right, **words).verdict.word.value == "proved"
    noisy = write(tmp_path / "noisy.csv", (3.0, 1.0), 1.0)
    assert tr.learn(problem, noisy, **words).wrong_costs is None  # nothing is known of how far they go
    stated = tr.learn(problem, noisy, cost_range=(0.0, 5.0), **words)
    assert "costs 3" in (stated.wrong_costs or "") and stated.verdict.word.value == "nominal"
    fine = write(tmp_path / "fine.csv", (2.0, 1.0), 1.0)
    assert tr.learn(problem, fine, cost_range=(0.0, 5.0), **words).verdict.word.value == "proved"
    problem.model.save(tmp_path / "model.drn")
    call = ["doctor", str(tmp_path / "model.drn"), "--prop", problem.text, "--data", str(noisy), "--json"]
    call += ["--states", "index", "--param", "p=0.1:0.9"]
    assert run(call) == 0
    first = json.loads(capsys.readouterr().out)
    assert run([*call, "--cost-range", "0,5"]) == 1
    second = json.loads(capsys.readouterr().out)
    assert (first["verdict"], second["verdict"]) == ("proved", "nominal")
    assert [one["kind"] for one in second["findings"]] == ["cost"]


def test_the_mean_of_the_e_value_is_at_most_one() -> None:
    """Over all sequences of costs 0 and 4 with mean 1."""
    total = 0.0
    for costs in itertools.product((0.0, 4.0), repeat=7):
        likely = math.prod(0.25 if cost else 0.75 for cost in costs)
        log_e = mean_evidence(np.array(costs), np.ones(7), np.zeros(7, np.int32), (0.0, 4.0))[0]
        total += likely * math.exp(log_e)
    assert total == pytest.approx(1.0, abs=1e-9)
    assert mean_evidence(np.array([1.0]), np.array([9.0]), np.zeros(1, np.int32), (0.0, 4.0)) == {0: math.inf}


@pytest.mark.parametrize(("price", "word"), [(1.0, "proved"), (3.5, "contradicted")])
def test_costs_that_share_a_parameter_are_compared(price: float, word: str) -> None:
    """A step of `go` costs h, one of `run` 2h: pooled, costs of 0.5 and 3.5 said that h is 1.3."""
    parameters = tr.Parameters.box(p=("1/10", "9/10"), h=(0, 5))
    p, h = parameters.symbols()
    rows = [(0, "go", {0: p, 1: 1 - p}), (1, "run", {0: 0.5, 2: 0.5}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, choice_rewards={"cost": [h, 2 * h, 0]}, labels={"end": [2]})
    rng, lines = np.random.default_rng(1), ["episode,time,state,action,next_state,cost"]
    for episode in range(200):
        state = 0
        while state < 2:
            after = int(rng.random() < 0.4) if state == 0 else 2 * int(rng.random() < 0.5)
            cost = (0.5 if state == 0 else price) + rng.choice([-0.5, 0.5])
            lines.append(f"{episode},{len(lines)},{state},{['go', 'run'][state]},{after},{cost}")
            state = after
    log = csv.read_csv(io.BytesIO("\n".join(lines).encode()))
    asked = model.problem('R{"cost"}=? [ F "end" ]')
    result = tr.learn(asked, tr.read_data(log, model, ends="complete"), delta=0.05, cost_range=(0, 5))
    assert result.verdict.word.value == word
    if word == "contradicted":
        assert "costs of two choices contradict each other" in result.verdict.why
