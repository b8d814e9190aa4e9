"""Groups with partial pooling: intervals that hold for each, whatever the others are like."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace as Plain
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from learning.test_amendments import agent, question, simulate, unedited
from learning.test_doctor import PROGRAM, PROPERTY
from tightrope.cli.app import run
from tightrope.learning.groups import _tested
from tightrope.statistics.estimates import Events
from tightrope.statistics.intervals import beta_binomial
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.pooling import _predicted, pooled_intervals, trials_of

CHANCES = (0.1, 0.3, 0.8)


def draw(chances: np.ndarray, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Groups and outcomes; who comes next depends on what came before, and so does when it ends."""
    rng, group, success = np.random.default_rng(seed), [], []
    at = 0
    for _ in range(rows):
        group.append(at)
        success.append(bool(rng.random() < chances[at]))
        at = at if success[-1] else int(rng.integers(len(chances)))
        if len(group) > rows // 2 and np.mean(success[-5:]) > 0.9:
            break
    return np.array(group), np.array(success)


def write(folder: Path, chances: tuple[float, ...], episodes: int = 240) -> Path:
    path = folder / "runs.csv"
    lines = ["episode,s,action,s_next,machine"]
    for number, steps in enumerate(simulate(lambda _, n: [chances[n % len(chances)], 0.5], episodes, seed=3)):
        lines += [f"{number},{at},{action},{to},m{number % len(chances)}" for at, action, to in steps]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("spread", [0.0, 0.35])
def test_all_intervals_hold_together_while_the_outcomes_decide_what_comes(spread: float) -> None:
    chances = np.clip(0.4 + spread * np.linspace(-1, 1, 6), 0.02, 0.98)
    missed, repeats = 0, 150
    for seed in range(repeats):
        group, success = draw(chances, 60, seed)
        one = np.zeros(len(group), np.int64)
        _, _, lower, upper = pooled_intervals(one, group, success, (1, 6), 0.2 / 6)
        missed += bool(((lower[0] > chances) | (upper[0] < chances)).any())
    assert missed <= 0.2 * repeats


def test_pooling_costs_at_most_a_half_of_the_level_and_helps_where_groups_are_alike() -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(20, size=1200)
    alike, apart = rng.random(1200) < 0.3, rng.random(1200) < np.where(group % 2, 0.95, 0.05)
    one = np.zeros(1200, np.int64)
    for success in (alike, apart):
        k, n, lower, upper = (x[0] for x in pooled_intervals(one, group, success, (1, 20), 0.01))
        low, high = beta_binomial(k, n, 0.005)
        assert (lower >= low - 1e-12).all() and (upper <= high + 1e-12).all()
        if success is alike:
            low, high = beta_binomial(k, n, 0.01)
            assert (upper - lower).mean() < 0.94 * (high - low).mean()


def test_predictions_come_from_earlier_rows_alone() -> None:
    rng = np.random.default_rng(2)
    group, success = rng.integers(4, size=60), rng.random(60) < 0.5
    later = success.copy()
    later[40:] = ~later[40:]
    assert _predicted(group, success)[:40] == pytest.approx(_predicted(group, later)[:40], abs=1e-12)
    both = np.exp(_predicted(group, success)[40]) + np.exp(_predicted(group, later)[40])
    assert both == pytest.approx(1.0)


def test_trials_are_those_that_counts_show() -> None:
    model = agent()
    log = tr.read_data(simulate(lambda *_: [0.3, 0.5], 30), model).counts
    events = Events.tie(Outcomes.of(model))
    row, event, success = trials_of(events, log.log())
    successes, trials = events.tally(Outcomes.of(model).pooled(log))
    assert np.bincount(event, minlength=len(events)).tolist() == trials.tolist()
    assert np.bincount(event[success], minlength=len(events)).tolist() == successes.tolist()
    assert (np.diff(row) >= 0).all()


def test_every_group_is_answered_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, model = write(tmp_path, CHANCES), tmp_path / "model.prism"
    model.write_text(PROGRAM)
    base = ["doctor", str(model), "--prop", PROPERTY, "--data", str(log), "--delta", "0.1", "--sets", "tied"]
    call = [*base, "--order", "as-read", "--known", "machine", "--amend", "groups=machine"]
    written = tmp_path / "amended.prism"
    run([*call, "--select-on", "0.3", "--seed", "2", "--json", "-o", str(written)])
    facts = json.loads(capsys.readouterr().out)["amended"]
    assert facts["verdict"] == "proved"
    values = {one["name"]: one["value"] for one in facts["groups"]["groups"]}
    truth = {f"m{place}": unedited(chance) for place, chance in enumerate(CHANCES)}
    assert values.keys() == truth.keys()
    assert all(values[name]["lower"] <= truth[name] <= values[name]["upper"] for name in truth)
    assert facts["value"]["lower"] == min(one["lower"] for one in values.values())
    average = facts["groups"]["average"]
    assert average["lower"] <= np.mean(list(truth.values())) <= average["upper"]
    assert facts["groups"]["new_unit"] == pytest.approx(1.0 - 0.1 - 2.0 / 4.0)
    assert "p__m0" in written.read_text() and facts["parameters"] > 6
    run([*call, "--verbose"])
    shown = capsys.readouterr().out
    assert "average group" in shown and "machine m1" in shown and "if exchangeable" in shown


@pytest.mark.costly("test_every_group_is_answered_for")
def test_questions_that_count_steps_and_what_is_refused(tmp_path: Path) -> None:
    data = tr.read_data(write(tmp_path, (0.2, 0.7), 80), tr.load(_program(tmp_path)))
    problem = tr.load(_program(tmp_path)).problem('P=? [ F<=1 "edit" ]')
    words = {"delta": 0.1, "sets": "tied", "seconds": 900.0}
    found = tr.doctor(problem, data, amend="groups=machine", **words).amended
    assert found is not None and found.groups is not None
    for one, truth in zip(found.groups.groups, (0.2, 0.7), strict=True):
        assert one.value.lower <= truth <= one.value.upper
    assert found.verdict.word.value == "nominal"  # nothing is known of the order, nor of how it was chosen
    with pytest.raises(tr.InputError, match="certificates do not cover answers for groups"):
        tr.certify(found, tmp_path / "groups.cert")
    for amend, message in [
        ("groups=pump", "the column 'pump' is not in the log"),
        ("groups", "is not a revision"),
    ]:
        with pytest.raises(tr.InputError, match=message):
            tr.doctor(problem, data, amend=amend, **words)
    with pytest.raises(tr.InputError, match="no other region"):
        tr.doctor(problem, data, amend="groups=machine", region="likelihood", delta=0.1)
    with pytest.raises(tr.InputError, match="question without memory"):
        tr.doctor(question(), tr.read_data(simulate(lambda *_: [0.3, 0.5], 20), agent()), amend="rates=prev")


def _program(folder: Path) -> Path:
    path = folder / "model.prism"
    path.write_text(PROGRAM)
    return path


def test_each_group_has_its_part_of_the_level_of_the_test() -> None:
    # Evidence for a change reaches 1/a with probability at most a and is no e-value: a mean of such is none.
    made: list[Any] = [Plain(result=Plain(fit=Plain(alpha=0.001, log_e_value=7.0))) for _ in range(4)]
    tested = _tested(made, 100)
    assert tested.log_e_value == 7.0 - math.log(4) and not tested.alarm
    made[1].result.fit.log_e_value = math.log(4000.0) + 1e-9
    assert _tested(made, 100).first_alarm == 100
