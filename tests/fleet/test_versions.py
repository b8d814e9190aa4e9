"""Two logs compared: values, false claims, contributions of steps, units, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tightrope.cli.app import run
from tightrope.data.reading import read_data
from tightrope.errors import InputError
from tightrope.fleet.versions import (
    STAKES,
    compare_versions,
    difference_interval,
    first_proof,
    most_pairs,
    order_evidence,
    step_losses,
)
from tightrope.learning.draft import draft
from tightrope.verdict import Word

COLUMNS = ["episode", "state", "action", "next_state", "terminated", "task", "tokens"]


def runs(seed: int, number: int, edit: float, last: float = 0.95) -> pd.DataFrame:
    """Runs of three steps: search, edit (works with probability `edit`), and the end."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for one in range(number):
        where = "found" if rng.random() < 0.9 else "lost"
        rows.append((one, "begin", "search", where, False, f"t{one % 10}", int(rng.integers(5, 50))))
        good = rng.random() < (edit if where == "found" else 0.3)
        done = "edited" if good else "broken"
        rows.append((one, where, "edit", done, False, f"t{one % 10}", int(rng.integers(10, 90))))
        end = "success" if rng.random() < (last if good else 0.1) else "failure"
        rows.append((one, done, "stop", end, True, f"t{one % 10}", 0))
    return pd.DataFrame(rows, columns=COLUMNS)


def test_the_bets_are_a_mixture_that_never_loses_all() -> None:
    assert math.isclose(sum(weight for _, weight in STAKES), 1.0)
    assert all(0.0 < share < 1.0 for share, _ in STAKES)


def test_a_fall_is_proved_and_blamed_on_the_step_that_changed() -> None:
    result = compare_versions(runs(1, 400, 0.9), runs(2, 400, 0.65), cost=("tokens", 200.0))
    truth = {0.9: 0.9 * (0.9 * 0.95 + 0.1 * 0.1) + 0.1 * (0.3 * 0.95 + 0.7 * 0.1)}
    truth[0.65] = 0.9 * (0.65 * 0.95 + 0.35 * 0.1) + 0.1 * (0.3 * 0.95 + 0.7 * 0.1)
    assert result.verdict.word is Word.PROVED
    assert truth[0.65] - truth[0.9] in result.success.interval
    assert result.success.interval.upper < 0.0
    assert result.lost[0].name == "found" and result.lost[0].interval.upper < 0.0
    assert all(one.interval.upper >= 0.0 for one in result.lost[1:])
    assert result.cost is not None and 0.0 in result.cost.interval
    assert result.cost.before == pytest.approx(np.mean(runs(1, 400, 0.9).groupby("episode").tokens.sum()))
    assert result.proved_after is not None and result.proved_after < 400
    assert result.runs == (400, 400) and result.pairs == 400


def test_costs_are_those_of_any_column() -> None:
    logs = [runs(seed, 200, 0.9).rename(columns={"tokens": "cost"}) for seed in (1, 2)]
    result = compare_versions(*logs, cost=("cost", 200.0))
    assert result.cost is not None
    assert result.cost.before == pytest.approx(np.mean(logs[0].groupby("episode").cost.sum()))


def test_costs_that_are_missing_are_refused_and_open_runs_may_cost_more() -> None:
    """They counted as 0, and as what was paid so far: a change of logging was a proved fall of costs."""
    before, after = runs(1, 200, 0.9), runs(2, 200, 0.9)
    missing = after.assign(tokens=after.tokens.where(after.index % 2 == 0))
    with pytest.raises(InputError, match="missing costs"):
        compare_versions(before, missing, cost=("tokens", 200.0))
    cut = after.assign(truncated=(after.episode % 2 == 0) & (after.state == "begin"))
    ended = cut.groupby("episode").truncated.cumsum().shift(fill_value=0).astype(bool)
    ended &= cut.state != "begin"
    result = compare_versions(before.assign(truncated=False), cut[~ended], cost=("tokens", 200.0))
    assert result.undecided == (0, 100)
    assert result.cost is not None and 0.0 in result.cost.interval


def test_contributions_add_up_to_the_change_beyond_the_pilot() -> None:
    """G telescopes: the sum over all steps is what runs won, less the same beginning."""
    result = compare_versions(runs(1, 300, 0.9), runs(2, 300, 0.65))
    added = sum(one.after - one.before for one in result.steps)
    assert added == pytest.approx(result.success.after - result.success.before, abs=0.05)


def test_equal_versions_are_rarely_called_different_at_any_look() -> None:
    """Of 500 simulations with 400 looks each at most a share of delta ever claims a difference."""
    claims = 0
    for seed in range(500):
        rng = np.random.default_rng([7, seed])
        difference = (rng.random(400) < 0.7).astype(float) - (rng.random(400) < 0.7)
        claims += first_proof(difference, difference, 0.1) is not None
    assert claims <= 0.1 * 500


def test_intervals_hold_at_many_looks() -> None:
    missed = 0
    for seed in range(40):
        rng = np.random.default_rng([9, seed])
        difference = (rng.random(300) < 0.7).astype(float) - (rng.random(300) < 0.8)
        looks = (difference_interval(difference[:n], difference[:n], 1.0, 0.1) for n in (20, 60, 150, 300))
        missed += any(-0.1 not in one for one in looks)
    assert missed <= 0.1 * 40


def test_the_first_proof_is_where_the_interval_leaves_zero() -> None:
    for seed in range(10):
        rng = np.random.default_rng([8, seed])
        difference = (rng.random(400) < 0.5).astype(float) - (rng.random(400) < 0.75)
        first = first_proof(difference, difference, 0.05)
        assert first is not None
        before, there = (
            difference_interval(difference[:n], difference[:n], 1.0, 0.05) for n in (first - 1, first)
        )
        assert 0.0 in before and 0.0 not in there


def test_undecided_runs_count_against_both_ends() -> None:
    low, high = np.zeros(100), np.concatenate([np.zeros(50), np.ones(50)])
    open_ended = difference_interval(low, high, 1.0, 0.1)
    assert open_ended.lower == difference_interval(low, low, 1.0, 0.1).lower
    assert open_ended.upper == difference_interval(high, high, 1.0, 0.1).upper


def test_units_are_compared_by_their_means() -> None:
    before, after = runs(1, 400, 0.95), runs(2, 200, 0.1)
    by_task = compare_versions(before, after, unit="task", delta=0.2)
    assert by_task.pairs == 10
    single = compare_versions(before, after, delta=0.2)
    assert single.pairs == 200 and single.success.interval.width < by_task.success.interval.width
    with pytest.raises(InputError, match="no value of 'task' is in both logs"):
        compare_versions(before, after.assign(task=["x" + one for one in after.task]), unit="task")


def test_a_margin_is_kept_broken_or_open() -> None:
    same = compare_versions(runs(1, 600, 0.9), runs(2, 600, 0.9), margin=0.2)
    assert same.verdict.is_proved and "fell by at most 0.2" in same.headline()
    worse = compare_versions(runs(1, 400, 0.9), runs(2, 400, 0.5), margin=0.05)
    assert worse.verdict.word is Word.CONTRADICTED and "more than 0.05" in worse.headline()
    few = compare_versions(runs(1, 30, 0.9), runs(2, 30, 0.9), margin=0.05)
    assert few.verdict.word is Word.LIMIT and "more pairs" in few.verdict.why


def test_what_cannot_be_compared_is_refused() -> None:
    log = runs(1, 50, 0.9)
    with pytest.raises(InputError, match="the same runs"):
        compare_versions(log, log)
    with pytest.raises(InputError, match="no column 'money'"):
        compare_versions(log, runs(2, 50, 0.9), cost=("money", 2.0))
    with pytest.raises(InputError, match="no state of the logs is called 'success'"):
        compare_versions(log.replace("success", "won"), runs(2, 50, 0.9).replace("success", "won"))
    with pytest.raises(InputError, match="`margin`"):
        compare_versions(log, runs(2, 50, 0.9), margin=2.0)
    with pytest.raises(InputError, match="no reward structure"):
        compare_versions(log, runs(2, 50, 0.9), question="R=? [ C ]")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, seed, edit in ((old, 1, 0.9), (new, 2, 0.6)):
        folder.mkdir()
        runs(seed, 300, edit).to_csv(folder / "runs.csv", index=False)
    words = ["compare", "--before", str(old), "--after", str(new), "--delta", "0.05"]
    assert run([*words, "--cost", "tokens:200"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("PROVED: success fell by at least 0.") and "step       found: [-0." in output
    assert run([*words, "--margin", "0.05", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "contradicted" and answer["steps"][0]["name"] == "found"
    assert run(["draft", str(old), "-o", str(tmp_path / "agent.prism")]) == 0
    assert run(["compare", str(tmp_path / "agent.prism"), *words[1:]]) == 0
    capsys.readouterr()
    for wrong, problem in (
        (["compare", "--before", str(old)], "--before and --after belong together"),
        ([*words, "--cost", "tokens"], "--cost names no largest cost"),
        ([*words, "--policy", "new.json"], "--policy: it cannot be used with --before"),
        ([*words, "--baseline", "uniform"], "--baseline: it cannot be used with --before"),
        (["compare", "bench:betting(4)", "--data", str(old)], "compare takes MODEL"),
        (["compare"], "compare takes MODEL"),
    ):
        assert run(wrong) == 2
        assert problem in capsys.readouterr().err


def test_the_answer_as_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed, edit in (("old.csv", 1, 0.9), ("new.csv", 2, 0.6)):
        runs(seed, 200, edit).to_csv(tmp_path / name, index=False)
    words = ["compare", "--before", str(tmp_path / "old.csv"), "--after", str(tmp_path / "new.csv")]
    assert run([*words, "--delta", "0.05", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("### PROVED: success fell by at least 0.")
    assert "| step | contribution | bounds |" in lines and "| | |" in lines
    assert all(line.startswith("|") for line in lines[1:] if line)


def test_runs_that_are_sorted_by_their_end_are_nominal() -> None:
    before, after = runs(1, 300, 0.9), runs(2, 600, 0.9)
    won = after.groupby("episode").next_state.last() == "success"
    rank = {
        episode: place for place, episode in enumerate(won.sort_values(ascending=False, kind="stable").index)
    }
    order = after.episode.map(rank)
    result = compare_versions(before, after.assign(episode=order).sort_values("episode", kind="stable"))
    assert result.success.interval.lower > 0.0  # all of the first 300 runs after are successes
    assert result.verdict.word is Word.NOMINAL
    assert "the order of the runs after depends on how they ended" in result.verdict.why


def test_order_alarms_rarely_if_runs_are_independent() -> None:
    alarms = 0
    for seed in range(300):
        won = np.random.default_rng([11, seed]).random(400) < 0.8
        alarms += max(order_evidence(won[:n]) for n in range(20, 401, 20)) >= math.log(1000)
    assert alarms == 0


def test_runs_without_an_end_count_both_ways() -> None:
    before, after = runs(1, 300, 0.9), runs(2, 300, 0.9)
    keep = ~((after.next_state == "success") & (after.episode % 2 == 0))
    result = compare_versions(before, after[keep])
    assert result.undecided[0] == 0 and result.undecided[1] > 100
    assert 0.0 in result.success.interval
    assert any("runs without an end: " in str(value) for _, value in result.rows())


def traces(path: Path, seed: int, number: int, first: int = 0) -> list[str]:
    """A transcript of runs of two lines; tasks recur in the same order."""
    rng, lines = np.random.default_rng([17, seed]), []
    for one in range(first, first + number):
        cost = int(rng.integers(9999))
        call = {"run": one, "tool": "edit", "result": bool(rng.random() < 0.7), "cost": cost}
        lines += [json.dumps(call), json.dumps({"run": one, "score": int(rng.random() < 0.8)})]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return lines


def test_copied_runs_are_refused_whatever_their_file_is_called(tmp_path: Path) -> None:
    lines = traces(tmp_path / "a.jsonl", 1, 300)
    traces(tmp_path / "other.jsonl", 2, 300)
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes())
    (tmp_path / "grown.jsonl").write_text("\n".join(lines + traces(tmp_path / "x.jsonl", 3, 60, 300)))
    for name in ("one", "two"):
        for number in (4, 5):
            traces(tmp_path / name / f"{name}{number}.jsonl", number, 100)
    before = tmp_path / "a.jsonl"
    for first, second in ((before, tmp_path / "copy.jsonl"), (tmp_path / "one", tmp_path / "two")):
        with pytest.raises(InputError, match=r"the same (runs|rows)"):
            compare_versions(first, second, margin=0.1, delta=0.05)
    grown = compare_versions(before, tmp_path / "grown.jsonl", margin=0.2, delta=0.05)
    assert grown.verdict.word is Word.NOMINAL and "may be copies" in grown.verdict.why
    fresh = compare_versions(before, tmp_path / "other.jsonl", margin=0.2, delta=0.05)
    assert fresh.verdict.word is Word.PROVED


def test_copied_runs_with_other_names_are_noticed() -> None:
    """Short runs are equal by chance; of long ones hardly any two are."""
    rng = np.random.default_rng(12)

    def walks(number: int, most: int, name: str) -> pd.DataFrame:
        rows = []
        for one in range(number):
            state = 0
            for step in range(most):
                previous, state = state, (state + int(rng.choice([1, 4]))) % 5 if step < most - 1 else 5
                rows.append(
                    (f"{name}{one}", str(previous), "success" if state == 5 else str(state), state == 5)
                )
        return pd.DataFrame(rows, columns=["episode", "state", "next_state", "terminated"])

    def verdict(before: pd.DataFrame, after: pd.DataFrame) -> Word:
        return compare_versions(before, after, margin=0.5).verdict.word

    before, after = walks(60, 14, "before"), walks(60, 14, "after")
    renamed = before.assign(episode="again-" + before.episode)
    assert verdict(before, after) is Word.PROVED
    assert verdict(before, renamed) is Word.NOMINAL
    assert verdict(before, pd.concat([after, renamed[renamed.episode < "again-before4"]])) is Word.NOMINAL
    assert verdict(walks(60, 3, "before"), walks(60, 3, "after")) is Word.PROVED
    twice = pd.concat([after, after.assign(episode="again-" + after.episode)])
    assert verdict(before, twice) is Word.NOMINAL


@pytest.mark.parametrize("effect", [0.0, 0.4])
@pytest.mark.parametrize("moved", [False, True])
def test_other_tasks_are_no_change_of_version(moved: bool, effect: float) -> None:
    """Ten tasks of 40 runs each; those of the second log are the same, or ten others."""
    rng = np.random.default_rng(5)

    def log(name: str, first: int) -> pd.DataFrame:
        task = rng.permutation(np.repeat(np.arange(first, first + 10), 40))
        won = rng.random(400) < 0.5 + effect * np.where(task % 2, 1.0, -1.0)
        end = np.where(won, "success", "failure")
        rows = {"episode": [f"{name}{one}" for one in range(400)], "state": "start", "next_state": end}
        taken = np.where(won, 10, 20) + 100 * (first > 0)
        return pd.DataFrame(
            {**rows, "terminated": True, "task": [f"t{one}" for one in task], "seconds": taken}
        )

    logs = log("before", 0), log("after", 10 * moved)
    found = compare_versions(*logs)
    assert found.verdict.is_proved == (not moved or effect == 0.0)
    assert ("success depends on 'task'" in found.verdict.why) == (moved and effect > 0.0)
    others = [one.drop(columns="task") for one in logs]
    assert compare_versions(*others).verdict.is_proved, "numbers are what runs led to"


def test_copied_rows_of_tables_are_refused(tmp_path: Path) -> None:
    log = runs(1, 200, 0.6, 0.7)
    for name, rows in (("a.csv", log), ("b.csv", log), ("c.csv", runs(2, 200, 0.6, 0.7))):
        rows.to_csv(tmp_path / name, index=False)
    with pytest.raises(InputError, match=r"the same (runs|rows)"):
        compare_versions(tmp_path / "a.csv", tmp_path / "b.csv")
    part = compare_versions(log, log[log.episode < 150], margin=0.5)
    assert part.verdict.word is Word.NOMINAL and "may be copies" in part.verdict.why
    assert compare_versions(tmp_path / "a.csv", tmp_path / "c.csv", margin=0.5).verdict.is_proved
    model = draft(tmp_path / "a.csv").model
    problem = model.problem('Pmax=? [ F "success" ]')
    with pytest.raises(InputError, match="both logs have the same runs"):
        compare_versions(tmp_path / "a.csv", tmp_path / "b.csv", problem)


def test_a_comparison_says_when_to_stop() -> None:
    """1.3 times the pairs of a z-test with power 0.9 for ten points; power 0.8 at least within these."""
    assert most_pairs(0.7, 0.05) == int(1.3 * 472.8) and most_pairs(0.3, 0.05) == most_pairs(0.7, 0.05)
    same = compare_versions(runs(1, 300, 0.9), runs(2, 300, 0.9))
    assert same.proved_after is None and same.stop_after == most_pairs(same.success.before, 0.05)
    assert any(name == "stop" and str(same.stop_after) in str(text) for name, text in same.rows())
    fell = compare_versions(runs(1, 300, 0.9), runs(2, 300, 0.6))
    assert fell.proved_after is not None and dict(fell.rows())["stop"] is None
    proved = 0
    for seed in range(100):
        rng = np.random.default_rng([23, seed])
        difference = (rng.random(614) < 0.6).astype(float) - (rng.random(614) < 0.7)
        proved += first_proof(difference, difference, 0.05) is not None
    assert proved >= 80


def test_the_steps_that_lose_most_are_listed_with_what_they_lose() -> None:
    """begin, then found or lost, then edited or broken: with the frequencies of the log as probabilities."""
    log = runs(1, 400, 0.7)
    model = draft(log).model
    won = log.groupby("episode").next_state.last() == "success"
    losses = step_losses(model.problem('Pmax=? [ F "success" ]'), read_data(log, model).counts)
    assert {one.name for one in losses} == {"begin", "found", "lost", "edited", "broken"}
    assert [one.loss for one in losses] == sorted((one.loss for one in losses), reverse=True)
    begin = next(one for one in losses if one.name == "begin")
    assert begin.visits == 1.0 and begin.chance == pytest.approx(won.mean(), abs=1e-6)
    after = {where: won[log[log.state == where].episode].mean() for where in ("edited", "broken")}
    chance = {}
    for where in ("found", "lost"):
        there = log[log.state == where]
        good = (there.next_state == "edited").mean()
        chance[where] = good * after["edited"] + (1 - good) * after["broken"]
        one = next(one for one in losses if one.name == where)
        assert one.chance == pytest.approx(chance[where], abs=1e-6)
        lost = (there.next_state == "broken").sum() / 400 * (chance[where] - after["broken"])
        assert one.loss == pytest.approx(lost, abs=1e-6)
    assert next(one for one in losses if one.name == "edited").outcomes.startswith("success 9")
