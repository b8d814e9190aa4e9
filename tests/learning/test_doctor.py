"""`doctor`: planted departures are found, named, weighed by what they do to the answer, and mended.

Also of `cli/doctor.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from benchmark_script import run_benchmark
from learning.test_amendments import agent, by_previous, by_seen, question, simulate, unedited
from tightrope.cli.app import run
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.archive import load

OPTIONS: dict[str, Any] = {"delta": 0.1, "sets": "tied", "seconds": 900.0}
PROGRAM = """dtmc
const double p; const double q;
module m
  s : [0..3] init 0;
  [go] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [go] s=1 -> q : (s'=0) + 1-q : (s'=2);
  [go] s=2 -> 1/2 : (s'=0) + 1/4 : (s'=1) + 1/4 : (s'=3);
  [] s=3 -> true;
endmodule
label "edit" = s=1;
label "done" = s=3;
"""
PROPERTY = 'P=? [ !"edit" U "done" ]'


def write_runs(folder: Path, episodes: int = 200) -> tuple[str, str]:
    model, log = folder / "model.prism", folder / "runs.csv"
    model.write_text(PROGRAM)
    runs = simulate(by_seen, episodes)
    rows = [f"{n},{at},{action},{to}" for n, steps in enumerate(runs) for at, action, to in steps]
    log.write_text("\n".join(["episode,s,action,s_next", *rows]) + "\n")
    return str(model), str(log)


@pytest.mark.costly("learning/test_amendments.py::test_whether_it_has_edited_before")
def test_whether_it_has_edited_before_comes_first() -> None:
    data = tr.read_data(simulate(by_seen, 250), agent())
    found = tr.doctor(question(), data, **OPTIONS)
    assert found.verdict.word.value == "contradicted"
    assert found.headline() == "CONTRADICTED: the data do not fit the model"
    first = found.findings[0]
    assert first.finding.feature == "seen:1"
    assert first.amendment is not None and 0 in (first.amendment.choices or ())
    assert first.mends and first.log_e_after is not None and first.log_e_after < 2
    truth = unedited(0.3)
    assert first.value is not None and first.value.lower <= truth <= first.value.upper
    assert found.value is not None and found.value.upper < truth
    assert found.result is not None and found.result.seen is not None
    assert found.result.seen.interval.lower <= truth <= found.result.seen.interval.upper
    assert first.estimate == pytest.approx(truth, abs=0.05)
    assert found.estimate is not None and first.effect == pytest.approx(first.estimate - found.estimate)


@pytest.mark.costly("test_selection_is_paid_for")
def test_the_largest_effect_of_a_model_that_stays_refuted_is_not_first() -> None:
    """The state before is what it depends on; what was seen before goes along with it, and changes more."""
    data = tr.read_data(simulate(by_previous, 400), agent())
    found = tr.doctor(question(), data, **OPTIONS)
    assert found.findings[0].finding.feature in ("prev", "prev2")
    assert found.findings[0].mends
    others = [one for one in found.findings if not one.mends]
    assert max(abs(one.effect or 0.0) for one in others) > abs(found.findings[0].effect or 0.0)
    first = found.findings[0].value
    assert first is not None and first.lower <= 0.7 * 0.25 / 0.9 <= first.upper


@pytest.mark.costly("learning/test_amendments.py::test_a_column_of_the_log")
def test_a_column_and_units(tmp_path: Path) -> None:
    episodes = simulate(lambda _, number: [0.9 if number % 3 == 0 else 0.3, 0.5], 300)
    lines = ["episode,state,action,next_state,shift"]
    for number, steps in enumerate(episodes):
        shift = "day" if number % 3 else "night"
        lines += [f"{number},{at},{action},{to},{shift}" for at, action, to in steps]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    found = tr.doctor(question(), tmp_path / "log.csv", **OPTIONS)
    (shift,) = [one for one in found.findings if one.finding.feature == "column:shift"]
    truth = unedited(0.9) / 3 + unedited(0.3) * 2 / 3
    assert shift.amendment is not None and shift.amendment.text == "split=shift"
    assert shift.mends
    assert shift.value is not None and shift.value.lower <= truth <= shift.value.upper
    assert shift.finding is max(found.findings, key=lambda one: one.finding.weighed).finding
    for asked, status, word in (("split=shift", "stated", "proved"), ("auto", "unknown", "nominal")):
        answer = tr.doctor(
            question(),
            tr.read_data(tmp_path / "log.csv", agent(), order="as-read"),
            amend=asked,
            select_on=0.5,
            **OPTIONS,
        ).amended
        assert answer is not None and answer.amended.amendment.text == "split=shift"
        (values,) = [one for one in answer.verdict.assumptions if one.name == "values"]
        assert (values.kept.value, answer.verdict.word.value) == (status, word)
        assert values.why == "a value of 'shift' that the log does not have does not occur"


def test_a_broken_tie_is_untied() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "a", {1: p, 2: 1 - p}), (1, "a", {3: p, 2: 1 - p}), (2, "", {2: 1}), (3, "", {3: 1})]
    problem = tr.build_from_rows(rows, parameters, labels={"won": [3]}).problem('P=? [ F "won" ]')
    rng = np.random.default_rng(3)
    episodes = []
    for _ in range(600):
        second = (1, "a", 3 if rng.random() < 0.3 else 2)
        episodes.append([(0, "a", 1), second] if rng.random() < 0.8 else [(0, "a", 2)])
    found = tr.doctor(problem, episodes, **OPTIONS)
    (first, *_) = found.findings
    assert first.finding.kind == "tie"
    assert first.amendment is not None and first.amendment.kind == "untie"
    assert first.mends
    assert first.value is not None and first.value.lower <= 0.24 <= first.value.upper


def test_a_model_that_fits_has_no_findings() -> None:
    data = tr.read_data(simulate(lambda *_: [0.3, 0.5], 300), agent())
    found = tr.doctor(question(), data, **OPTIONS)
    assert (found.verdict.word.value, found.findings) == ("proved", ())
    assert found.breakdown is not None and found.breakdown.holds > 0
    assert found.estimate == pytest.approx(unedited(0.3), abs=0.05)


def test_all_rows_are_tested_where_not_all_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rows in (("data.reading.LONG", 0), ("monitoring.examination.READ_AGAIN", 0)):
        monkeypatch.setattr(f"tightrope.{name}", rows)
    monkeypatch.setattr("tightrope.data.episode_log.MOST", 300)
    model, log = write_runs(tmp_path, 900)
    loaded = tr.load(model)
    data = tr.read_data(log, loaded, order="as-read")
    assert data.counts.log is not None and data.counts.log().rows_left_out == data.counts.steps - 300
    found = tr.doctor(loaded, data, **OPTIONS)
    assert found.examination.rows == data.counts.steps > 2000
    assert found.examination.alarm and found.examination.log_e_value > 20


def test_a_model_alone() -> None:
    found = tr.doctor(agent(), tr.read_data(simulate(by_seen, 300), agent()), seconds=900.0)
    assert found.verdict.word.value == "contradicted"
    assert found.result is None and found.findings[0].effect is None
    assert found.findings[0].amendment is not None


def test_selection_is_paid_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tightrope.learning.amendments.MOST", 2)
    data = tr.read_data(simulate(by_seen, 300), agent())
    truth = unedited(0.3)
    half = tr.doctor(question(), data, amend="auto", select_on=0.5, seed=4, **OPTIONS).amended
    assert half is not None and half.result is not None
    assert half.verdict.word.value == "proved"
    assert half.counts.design.episodes == 150
    assert "150 of 300 episodes (seed 4)" in half.selection.why
    assert half.result.interval.lower <= truth <= half.result.interval.upper
    tr.certify(half, tmp_path / "half.cert")
    proof = load(tmp_path / "half.cert").certificate
    assert proof.about["selection"] == f"{half.amended.amendment.text}: {half.selection.why}"
    assert tr.verify(tmp_path / "half.cert", model=half.amended.model).word == "proved"
    carried = tr.doctor(question(), data, amend="auto", select_by="e-values", **OPTIONS).amended
    assert carried is not None and carried.result is not None
    assert carried.verdict.word.value == "proved"
    assert carried.result.ledger.delta < 0.1 / 8
    assert carried.amended.amendment.choices is None
    unpaid = tr.doctor(question(), data, amend="auto", **OPTIONS).amended
    assert unpaid is not None and unpaid.verdict.word.value == "nominal"
    with pytest.raises(tr.InputError, match="nothing to certify: selection: the amendment was chosen"):
        tr.certify(unpaid, tmp_path / "unpaid.cert")
    given = tr.doctor(question(), data, amend="memory=seen:1", **OPTIONS).amended
    assert given is not None and given.selection.kept.value == "unknown"


def test_clusters_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.learning.amendments.MOST", 1)
    lines = ["episode,state,action,next_state,task"]
    for number, steps in enumerate(simulate(by_seen, 100)):
        lines += [f"{number},{at},{action},{to},t{number % 10}" for at, action, to in steps]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    data = tr.read_data(tmp_path / "log.csv", agent())
    made = tr.doctor(
        question(), data, amend="memory=seen:1", select_on=0.4, cluster="task", **OPTIONS
    ).amended
    assert made is not None
    assert made.amended.log.episodes == 60
    assert "4 of 10 values of 'task'" in made.selection.why


def test_the_best_fit_is_where_counts_are() -> None:
    data = tr.read_data(simulate(by_seen, 300), agent())
    visits, counts = data.counts.visits, data.counts.transition
    assert Outcomes.of(agent()).fitted(data.counts).probability[0] == pytest.approx(
        counts[0] / visits[0], abs=0.01
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"select_on": 1.5}, "`select_on` is 1.5"),
        ({"select_on": 0.5, "select_by": "e-values"}, "both correct for the selection"),
        ({"select_by": "luck"}, "not 'e-values'"),
        ({"cluster": "task"}, "`cluster` requires `select_on`"),
        ({"select_on": 0.5, "cluster": "task"}, "the column 'task' is not in the log"),
        ({"amend": "memory=dream"}, "'dream' is not a memory"),
    ],
)
def test_refusals(words: dict[str, Any], message: str) -> None:
    data = tr.read_data(simulate(by_seen, 20), agent())
    with pytest.raises(tr.InputError, match=message):
        tr.doctor(question(), data, **OPTIONS, **words)


def test_counts_are_refused() -> None:
    counts = tr.read_data(simulate(by_seen, 20), agent()).counts
    table = tr.Counts(counts.transition, counts.transition_start, counts.design, counts.model_hash)
    with pytest.raises(tr.InputError, match="needs the rows of a log"):
        tr.doctor(question(), table)


def test_the_command_writes_a_model_that_answers_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, log = write_runs(tmp_path)
    written, lifted = str(tmp_path / "amended.prism"), str(tmp_path / "amended.csv")
    asked = ["--prop", PROPERTY, "--delta", "0.1", "--sets", "tied", "--time-limit", "900"]
    change = ["--amend", "auto", "--select-on", "0.5", "-o", written, "--log-out", lifted]
    assert run(["doctor", model, *asked, "--data", log, *change, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "contradicted"
    assert answer["amended"]["verdict"] == "proved"
    first = answer["findings"][0]
    assert first["amendment"] == "memory=seen:(s=1)"
    assert first["value_without"]["lower"] > answer["value"]["upper"]
    assert {"what", "e_value", "effect"} <= set(first)
    assert answer["breakdown"]["holds"] > 0
    assert run(["learn", written, *asked, "--data", lifted, "--json"]) == 0
    learned = json.loads(capsys.readouterr().out)
    assert learned["robust_policy"]["lower"] == pytest.approx(answer["amended"]["value"]["lower"], abs=1e-9)
    assert learned["robust_policy"]["upper"] == pytest.approx(answer["amended"]["value"]["upper"], abs=1e-9)


def test_learning_on_a_file_whose_values_the_log_named_is_nominal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The draw of the written model has the values of the log: one that it lacks is impossible there."""
    model, log = write_runs(tmp_path, 0)
    episodes = simulate(lambda _, number: [0.9 if number % 3 == 0 else 0.3, 0.5], 200)
    shifts = ["night", "day", "day"]
    rows = [f"{n},{s},{a},{t},{shifts[n % 3]}" for n, steps in enumerate(episodes) for s, a, t in steps]
    Path(log).write_text("\n".join(["episode,s,action,s_next,shift", *rows]) + "\n")
    written, lifted = str(tmp_path / "amended.prism"), str(tmp_path / "amended.csv")
    asked = ["--prop", PROPERTY, "--delta", "0.1", "--sets", "tied", "--order", "as-read"]
    change = ["--amend", "split=shift", "--select-on", "0.5", "-o", written, "--log-out", lifted]
    assert run(["doctor", model, *asked, "--data", log, *change, "--json"]) in (0, 1)
    capsys.readouterr()
    assert run(["learn", written, *asked, "--data", lifted, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "nominal"
    (chosen,) = [one for one in answer["assumptions"] if one["name"] == "model chosen without this log"]
    assert chosen["kept"] == "no" and "what they do not show is impossible" in chosen["why"]


def test_the_command_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, log = write_runs(tmp_path, 100)
    asked = ["--prop", PROPERTY, "--sets", "tied", "--time-limit", "900", "--verbose"]
    assert run(["doctor", model, *asked, "--data", log]) == 1
    text = capsys.readouterr().out
    assert text.startswith("CONTRADICTED: the data do not fit the model\n")
    assert "  value      none; under the contradicted model [" in text
    assert "memory=seen:(s=1)" in " ".join(text.split())
    assert run(["doctor", model, "--data", log, "-o", str(tmp_path / "x.prism")]) == 2
    assert "--amend" in capsys.readouterr().err


@pytest.mark.long
def test_intervals_of_chosen_models_hold() -> None:
    table = run_benchmark("selection_coverage.py", "--smoke").stdout.splitlines()
    assert len(table) == 20
    assert sum(int(row[31:37]) for row in table[1:10]) > 0


def test_a_refutation_whose_level_is_nominal_is_a_doubt(tmp_path: Path) -> None:
    """Runs without a clock: in a chain their order does not matter, with choices it does."""
    model, log = write_runs(tmp_path, 150)
    result = tr.learn(tr.load(model).problem(PROPERTY), log, outcomes="none")
    assert result.verdict.word.value == "contradicted"


@pytest.mark.parametrize("text", ['S=? [ "edit" ]', 'filter(count, P>=0.2 [ X "edit" ])'])
def test_questions_without_one_objective_are_refused(text: str) -> None:
    with pytest.raises(tr.InputError, match=r"not supported here|one P or R is required"):
        tr.doctor(agent().problem(text), simulate(by_seen, 5))


def coin() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "run", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    return tr.build_from_rows(rows, parameters, labels={"ok": [1]})


def write_blocks(folder: Path, chances: list[float], seed: int, size: int = 60) -> Path:
    """One file for each chance of success, with the same number of episodes."""
    folder.mkdir()
    rng = np.random.default_rng([29, seed])
    for number, chance in enumerate(chances):
        rows = [f"{number}-{i},0,run,{1 if rng.random() < chance else 2}" for i in range(size)]
        text = "\n".join(["episode,state,action,next_state", *rows])
        (folder / f"{number:02}.csv").write_text(text + "\n")
    return folder


def test_files_and_days_that_differ_are_found_and_proposed_as_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where they stand one after the other. Nobody knows whether a file was named after its outcomes."""
    model, chances = coin(), [0.9, 0.9, 0.6, 0.9, 0.3, 0.9]
    folder = write_blocks(tmp_path / "runs", chances, 1)
    found = tr.doctor(model.problem('P=? [ F "ok" ]'), folder, delta=0.1)
    assert found.unit == "file" and found.findings[0].finding.feature == "column:file"
    assert found.verdict.word.value == "nominal" and "'file' was written before" in found.verdict.why
    sure = tr.doctor(model, tr.read_data(folder, model, known="file"))
    assert sure.verdict.word.value == "contradicted"
    fleet = tr.learn_fleet(model.problem('P=? [ F "ok" ]'), folder, "file", delta=0.1, share=0.5)
    assert [one.episodes for one in fleet.units] == [60] * 6 and fleet.verdict.word.value == "limit"
    rows, minute = [], 0
    for day, chance in enumerate(chances):
        for one in range(60):
            good = np.random.default_rng([31, day, one]).random() < chance
            minute += 24
            time = np.datetime64("2026-03-01T00:00") + np.timedelta64(minute, "m")
            rows.append(f"{day}-{one},0,run,{1 if good else 2},{time}")
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["episode,state,action,next_state,time", *rows]) + "\n")
    days = tr.doctor(model.problem('P=? [ F "ok" ]'), log, delta=0.1)
    assert days.unit == "day" and days.findings[0].finding.cells[0].value == "day = 2026-03-05"
    model.save(tmp_path / "coin.drn")
    words = [str(tmp_path / "coin.drn"), "--prop", 'P=? [ F "ok" ]', "--delta", "0.1", "--states", "index"]
    words += ["--data", str(folder)]
    assert run(["doctor", *words]) == 1
    assert "units      tightrope learn … --unit file bounds most of them" in capsys.readouterr().out
    assert run(["learn", *words, "--unit", "file:0.5"]) == 1
    assert "6 by 'file', 360 episodes" in capsys.readouterr().out


def test_equal_blocks_alarm_rarely(tmp_path: Path) -> None:
    """At most a share of alpha raises an alarm: so it was in 200 logs."""
    model, alarms = coin(), 0
    for seed in range(50):
        data = tr.read_data(write_blocks(tmp_path / f"{seed}", [0.8] * 5, seed, 30), model)
        examined = tr.doctor(model, data, alpha=0.1)
        assert any(name == "file" for name in data.counts.log().columns)
        alarms += examined.examination.alarm
    assert alarms <= 0.1 * 50


def test_independence_is_untested_where_the_data_show_no_episodes() -> None:
    model = coin()
    table = pa.table({"state": [0, 0], "action": ["run"] * 2, "next_state": [1, 2], "count": [40, 9]})
    result = tr.learn(model.problem('P=? [ F "ok" ]'), tr.read_data(table, model), delta=0.1)
    assert isinstance(result, tr.LearningResult)
    stated = [one.why for one in result.verdict.assumptions if one.name == "episodes"]
    assert stated == ["independent episodes (untested)"]
