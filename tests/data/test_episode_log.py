"""The rows of a log in the order in which they may be processed, with episodes, times and unused columns."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.data import episode_log
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.read_options import LogReadOptions
from tightrope.data.reading import plan_reading, rows_of
from tightrope.errors import InputError
from tightrope.io.table.files import open_tables
from tightrope.monitoring.examination import weigh_fit

PARAMETERS = tr.Parameters.box(p=(0, 1), q=(0, 1))
P, Q = PARAMETERS.symbols()
SUCCESSORS = {
    "ok": {"run": {"ok": 1 - P, "worn": P}},
    "worn": {"run": {"worn": 1 - Q, "dead": Q}, "mend": {"ok": 1}},
    "dead": {"": {"dead": 1}},
}
MODEL = tr.build_from_function("ok", SUCCESSORS.__getitem__, PARAMETERS)
"""Transitions: 0 ok-ok, 1 ok-worn, 2 worn-worn, 3 worn-dead, 4 worn-ok, 5 dead-dead."""


def _write(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def _log(path: Path, **words: object) -> EpisodeLog:
    counts = tr.read_data(path, MODEL, **words).counts  # type: ignore[arg-type]
    assert counts.log is not None
    log = counts.log()
    assert counts.log() is log
    assert np.array_equal(np.bincount(log.transition, minlength=6), counts.transition)
    return log


INTERLEAVED = """time,episode,state,action,next_state,shift,load
0,B,ok,run,worn,night,2.5
1,A,ok,run,ok,day,
2,A,ok,run,worn,day,1
3,B,worn,run,dead,night,4
4,A,worn,mend,ok,night,1
5,C,ok,run,ok,day,NA
"""


def test_rows_of_interleaved_units(tmp_path: Path) -> None:
    log = _log(_write(tmp_path, INTERLEAVED))
    assert log.transition.tolist() == [1, 0, 1, 3, 4, 0]
    assert log.episode.tolist() == [0, 1, 1, 0, 1, 2]
    assert log.previous.tolist() == [-1, -1, 1, 0, 2, -1]
    assert log.begins.tolist() == [True, True, False, False, False, True]
    assert log.over.tolist() == [True, False, False]
    assert log.time is not None and log.time.tolist() == [0, 1, 2, 3, 4, 5]
    assert log.state(MODEL.structure).tolist() == [0, 0, 0, 1, 1, 0]
    assert log.choice(MODEL.structure).tolist() == [0, 0, 0, 1, 2, 0]


def test_unused_columns_are_coded_by_first_appearance(tmp_path: Path) -> None:
    log = _log(_write(tmp_path, INTERLEAVED))
    assert list(log.columns) == ["shift", "load"], "the column of episodes names nothing else"
    shift, load = log.columns["shift"], log.columns["load"]
    assert shift.labels == ("night", "day") and shift.code.tolist() == [0, 1, 1, 0, 0, 1]
    assert shift.values is None
    assert load.labels == ("2.5", "1", "4") and load.code.tolist() == [0, -1, 1, 2, 1, -1]
    assert np.array_equal(load.values, [2.5, np.nan, 1, 4, 1, np.nan], equal_nan=True)
    assert log.by_unit("shift").tolist() == [0, 1, 1]


def test_files_that_are_sorted_by_episode_are_put_into_the_order_of_time(tmp_path: Path) -> None:
    lines = INTERLEAVED.splitlines()
    by_episode = [lines[0], *sorted(lines[1:], key=lambda line: line.split(",")[1])]
    log = _log(_write(tmp_path, "\n".join(by_episode) + "\n"), order="time")
    assert log.time is not None and log.time.tolist() == [0, 1, 2, 3, 4, 5]
    assert log.transition.tolist() == [1, 0, 1, 3, 4, 0]
    assert log.previous.tolist() == [-1, -1, 1, 0, 2, -1]
    assert log.columns["shift"].labels == ("night", "day"), "numbered in the order of processing"


def test_a_gap_is_not_bridged(tmp_path: Path) -> None:
    text = "episode,step,state,action,next_state\n1,0,ok,run,worn\n1,3,worn,run,worn\n1,4,worn,run,dead\n"
    log = _log(_write(tmp_path, text))
    assert log.previous.tolist() == [-1, -1, 1] and log.episode.tolist() == [0, 0, 0]


def test_next_states_of_next_rows_and_marks_of_ends(tmp_path: Path) -> None:
    text = (
        "episode,step,state,action,truncated,terminated\n"
        "1,0,ok,run,0,0\n1,1,worn,run,0,0\n1,2,worn,,1,0\n"
        "2,0,ok,run,0,0\n2,1,ok,,0,1\n3,0,ok,run,0,0\n3,1,worn,run,0,0\n3,2,dead,,0,0\n"
    )
    log = _log(_write(tmp_path, text))
    assert log.transition.tolist() == [1, 2, 0, 1, 3]
    assert log.previous.tolist() == [-1, 0, -1, -1, 3]
    assert log.over.tolist() == [False, True, True], "truncated is not over"


def test_rows_out_of_order_are_sorted_within_their_episodes(tmp_path: Path) -> None:
    text = (
        "episode,step,state,action,next_state,site\n1,1,worn,run,dead,x\n1,0,ok,run,worn,y\n2,0,ok,run,ok,y\n"
    )
    log = _log(_write(tmp_path, text))
    assert log.transition.tolist() == [1, 3, 0] and log.previous.tolist() == [-1, 0, -1]
    assert log.columns["site"].labels == ("y", "x")


def test_an_episode_goes_on_in_the_next_file(tmp_path: Path) -> None:
    head = "episode,step,state,action,next_state\n"
    one = _write(tmp_path, head + "1,0,ok,run,worn\n2,0,ok,run,ok\n", "a.csv")
    other = _write(tmp_path, head + "2,1,ok,run,worn\n", "b.csv")
    counts = tr.read_data([one, other], MODEL).counts
    assert counts.log is not None
    assert counts.log().previous.tolist() == [-1, -1, 1] and counts.log().episodes == 2


def test_names_of_units_with_several_episodes_are_a_column(tmp_path: Path) -> None:
    head = "episode,step,state,action,next_state\n"
    one = _write(tmp_path, head + "7,0,ok,run,worn\n", "a.csv")
    other = _write(tmp_path, head + "7,0,ok,run,ok\n7,1,ok,run,worn\n", "b.csv")
    log = tr.read_data([one, other], MODEL).counts.log
    assert log is not None and log().episodes == 2 and log().columns["episode"].labels == ("7",)


def test_a_unit_that_is_called_na_is_a_unit(tmp_path: Path) -> None:
    head = "episode,step,state,action,next_state,shift\n"
    one = _write(tmp_path, head + "NA,0,ok,run,worn,NA\n", "a.csv")
    other = _write(tmp_path, head + "NA,0,ok,run,ok,day\n7,0,ok,run,worn,day\n", "b.csv")
    log = tr.read_data([one, other], MODEL).counts.log
    assert log is not None and log().columns["episode"].labels == ("NA", "7")
    assert log().columns["episode"].code.tolist() == [0, 0, 1]
    assert log().columns["shift"].labels == ("day",), "in other columns it is an empty cell"


def test_excluded_outcomes_are_listed_with_their_place(tmp_path: Path) -> None:
    text = "episode,step,state,action,next_state\n1,0,ok,run,ok\n1,1,ok,run,dead\n2,0,ok,run,worn\n"
    path = _write(tmp_path, text)
    with pytest.raises(InputError):
        tr.read_data(path, MODEL)
    options = LogReadOptions()
    plan = plan_reading(open_tables(path), MODEL.structure, options)
    log = rows_of(plan, in_time=False, strict=False)
    assert log.transition.tolist() == [0, 1] and [one.row for one in log.excluded] == [1]
    assert "row 2" in log.excluded[0].text


def test_episodes_in_python_and_their_parts() -> None:
    runs = [[("ok", "run", "worn"), ("worn", "run", "dead")], [], [("ok", "run", "ok")] * 3]
    counts = tr.read_data(runs, MODEL).counts
    assert counts.log is not None
    log = counts.log()
    assert log.episode.tolist() == [0, 0, 2, 2, 2] and log.over.tolist() == [True, False, False]
    back = log.counts(MODEL, counts.design)
    assert back == counts and back.log is not None and back.log() is log
    part = log.subset(np.array([False, True, True]))
    assert part.episode.tolist() == [1, 1, 1] and part.previous.tolist() == [-1, 0, 1]
    assert part.counts(MODEL, counts.design).transition.tolist() == [3, 0, 0, 0, 0, 0]
    assert part.counts(MODEL, counts.design).design.episodes == 2
    both = counts + counts
    assert both.log is not None and both.log().episodes == 6
    assert both.log().previous.tolist() == [-1, 0, -1, 2, 3, -1, 5, -1, 7, 8]
    assert pickle.loads(pickle.dumps(counts)).log is None


def test_simulated_episodes_and_the_file_written_of_them(tmp_path: Path) -> None:
    truth = tr.Simulator(MODEL.instantiate(p=0.4, q=0.3), model_hash=MODEL.hash(), cap=20)
    counts = truth.episodes(40, seed=3)
    assert counts.log is not None
    log = counts.log()
    assert log.counts(MODEL, counts.design).transition.tolist() == counts.transition.tolist()
    assert log.episodes == 40 and int(log.begins.sum()) == 40
    path = tmp_path / "log.parquet"
    words = ["sample", "bench:betting(4)", "--episodes", "30", "--seed", "2", "--raw", "-o", str(path)]
    assert run(words) == 0
    model = tr.benchmark("betting(4)").model
    sampled = tr.read_data(path, model).counts
    assert sampled.log is not None
    rows = sampled.log()
    assert rows.episodes == 30 and not rows.columns and rows.over.all()
    assert np.array_equal(np.bincount(rows.transition, minlength=model.transitions), sampled.transition)
    assert rows.counts(model, sampled.design) == sampled


def test_what_is_kept_of_a_log_and_a_log_that_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path, INTERLEAVED)
    kept = tr.read_data(path, MODEL, since=3, chosen_at=2).counts
    assert kept.log is not None
    log = kept.log()
    assert log.transition.tolist() == [1, 3, 4, 0] and log.previous.tolist() == [-1, -1, 0, -1]
    assert log.episode.tolist() == [0, 1, 0, 2] and log.over.tolist() == [False, True, False]
    assert np.array_equal(np.bincount(log.transition, minlength=6), kept.transition)
    monkeypatch.setattr(episode_log, "MOST", 4)
    counts = tr.read_data(path, MODEL).counts
    assert counts.log is not None
    short = counts.log()
    assert short.transition.tolist() == [1, 0, 1, 3] and short.rows_left_out == 2
    assert short.over.tolist() == [True, False]


def test_a_table_of_counts_has_no_rows(tmp_path: Path) -> None:
    path = _write(tmp_path, "state,action,next_state,count\nok,run,ok,3\nok,run,worn,2\n")
    assert tr.read_data(path, MODEL).counts.log is None


def test_steps_without_names_stand_as_they_are_in_every_file(tmp_path: Path) -> None:
    """The second file begins within an episode: without names there is nothing to sort by."""
    _write(tmp_path, "step,state,action\n0,ok,run\n1,ok,run\n2,worn,run\n", "1.csv")
    _write(tmp_path, "step,state,action\n3,worn,mend\n4,ok,run\n0,ok,run\n1,worn,mend\n2,ok,run\n", "2.csv")
    log = _log(tmp_path)
    assert log.transition.tolist() == [0, 1, 4, 1, 4]
    assert log.previous.tolist() == [-1, 0, -1, -1, 3]
    assert _log(tmp_path, drop_duplicates=True).transition.tolist() == [0, 1, 4, 1, 4]


def test_rows_of_two_files_are_no_copies(tmp_path: Path) -> None:
    """Without steps and times names belong to their file, and equal rows of two are two rows."""
    _write(tmp_path, "episode,state,action,next_state\nA,ok,run,ok\nA,ok,run,ok\nB,ok,run,worn\n", "1.csv")
    _write(tmp_path, "episode,state,action,next_state\nA,ok,run,ok\nB,ok,run,worn\n", "2.csv")
    reading = tr.read_data(tmp_path, MODEL, drop_duplicates=True)
    assert reading.counts.transition.tolist() == [2, 2, 0, 0, 0, 0]


def test_rows_that_stand_in_order_stay_as_they_stand(tmp_path: Path) -> None:
    """Each episode has a clock of its own: times say nothing about the order of episodes."""
    model = tr.build_from_rows([(0, "go", {0: "1/2", 1: "1/2"}), (1, "go", {0: 1})])
    rows = ["1,5,0,1", "1,6,1,0", "2,1,0,0", "2,2,0,1"]
    lines = ["episode,time,state,next_state,action", *(f"{row},go" for row in rows)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    counts = tr.read_data(tmp_path / "log.csv", model, order="as-read").counts
    assert counts.log is not None and counts.log().transition.tolist() == [1, 2, 0, 1]


def test_episodes_at_one_instant_are_tested_in_no_order(tmp_path: Path) -> None:
    """A log with days for times, sorted by outcome within each day: every sorting of it was contradicted."""
    days, won = np.repeat(np.arange(30), 100), np.random.default_rng(5).random(3000) < 0.6
    order = np.lexsort((~won, days))
    rows = [
        f"{k},2026-01-{1 + days[row]:02d},ok,run,{'ok' if won[row] else 'worn'}\n"
        for k, row in enumerate(order.tolist())
    ]
    path = _write(tmp_path, "episode,time,state,action,next_state\n" + "".join(rows))
    for words, alarm in (({}, False), ({"order": "as-read"}, True)):
        counts = tr.read_data(path, MODEL, **words).counts  # type: ignore[arg-type]
        assert weigh_fit(MODEL, counts).alarm is alarm
        assert counts.log is not None and np.all(np.diff(counts.log().time) >= 0)
    assert not tr.Monitor(MODEL).update(path).alarm
    recent = tr.read_data(path, MODEL, since=151)
    assert (recent.kept.first, recent.counts.steps) == (201, 2800), "whole days are left out"
