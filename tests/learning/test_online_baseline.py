"""Online learning that is never below a baseline: what collects is proved to lose nothing first.

Also of `learning/online/exploration.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from online_cases import source, truth, two_coins
from tightrope.cli.app import run as run_command
from tightrope.errors import InputError
from tightrope.io.results import Interval
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.run import OnlineRun
from tightrope.model.policy import Policy
from tightrope.problem import Problem

GOAL = 'Pmax=? [ F "goal" ]'


def tossed(came_up: int, coin: str = "first") -> list[tuple[dict[str, int], str, dict[str, int]]]:
    return [({"x": 0}, coin, {"x": came_up})]


def coin_learner(**asked: Any) -> OnlineLearner:
    asked = {"sets": "expression", "delta": 0.1, "baseline": {"x=0": "first"}, **asked}
    return tr.online(Problem(two_coins(), GOAL), **asked)


def test_a_coin_of_which_nothing_is_known_is_never_tossed() -> None:
    online = coin_learner()
    for came_up in [1, 2] * 8:
        assert online.policy()["x=0"] == "first"
        online.observe(tossed(came_up))
    update = online.update()
    assert update.optimistic_policy["x=0"] == "second" and update.above == Interval(0.0, 0.0)


def test_what_is_allowed_to_be_lost_pays_for_tossing_it_now_and_then() -> None:
    online = coin_learner(allow_loss=0.3, baseline={"x=0": "second"})
    assert online.policy()["x=0"] == {"first": 0.25, "second": 0.75}  # loses 1/4 at worst
    above = online.update().above
    assert above is not None and -0.3 <= above.lower == pytest.approx(-0.25) and above.upper >= 0.25


def test_a_coin_that_is_proved_to_be_better_is_tossed() -> None:
    online = coin_learner(explore="robust")
    for _ in range(40):
        online.observe(tossed(2))
        online.observe(tossed(1, "second"))
    assert online.policy()["x=0"] == "second"
    assert online.last_update is not None and online.last_update.above is not None
    assert 0.0 < online.last_update.above.lower <= 1.0


def test_what_is_certified_goes_on_and_is_restored() -> None:
    online = coin_learner(explore="robust")
    for _ in range(40):
        online.observe(tossed(2))
        online.observe(tossed(1, "second"))
    again = coin_learner(explore="robust")
    again.restore(online.state())
    assert again.last_update is not None and online.last_update is not None
    assert again.last_update.above == online.last_update.above
    assert again.preview().sampling_policy == online.policy()


@pytest.mark.costly("test_a_coin_that_is_proved_to_be_better_is_tossed")
def test_no_policy_of_a_run_is_below_the_baseline_in_fact() -> None:
    bench = tr.benchmark("betting(5)")
    uniform = Policy.uniform(bench.model)
    online = tr.online(bench.problem, delta=0.05, sets="expression", baseline="uniform", explore="robust")
    real = truth("betting(5)")

    def worth(policy: Policy) -> float:
        value = real.performance(policy)
        assert value is not None
        return value.lower

    seen, beside = [], worth(uniform)
    for record in OnlineRun(online, source("betting(5)"), 40, real).records():
        lower, upper = (record["above_baseline"][end] for end in ("lower", "upper"))
        gained = worth(online.policy()) - beside
        assert gained >= -1e-9 and lower - 1e-9 <= gained <= upper + 1e-9
        seen.append(gained)
    assert seen[0] == 0.0 and seen[-1] > 1.0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"baseline": "logged"}, "so it cannot be followed"),
        ({"sets": "tied"}, "a baseline needs a region bounded by half-spaces"),
        ({"region": "ellipsoid"}, "a baseline needs a region bounded by half-spaces"),
        ({"allow_loss": -1.0}, "not a number from 0 on"),
        ({"allow_loss": float("nan")}, "not a number from 0 on"),
    ],
)
def test_what_cannot_be_kept_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        coin_learner(**asked)


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["online", "bench:betting(5)", "--episodes", "3", "--sets", "expression"]
    assert run_command([*words, "--baseline", "do-nothing", "-o", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "no collecting policy is below it" in out
    lines = (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["above_baseline"] for line in lines] == [{"lower": 0.0, "upper": 0.0}] * len(
        lines
    )
    assert run_command([*words, "--allow-loss", "1"]) == 2
    assert "requires --baseline" in capsys.readouterr().err
