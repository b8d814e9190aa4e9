"""Runs that are kept on disk: killed at any moment, prolonged, refused where they are not the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from online_cases import learner, source, truth
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.output import Manifest
from tightrope.io.results import RECORDS
from tightrope.learning.online.run import CHECKPOINT, Journal, OnlineRun

NAME = "betting(5)"
SHORT = 47
"""So many episodes end without an update."""

QUESTION = {"model": NAME, "delta": 0.001, "seed": 1}
TIMES = ("seconds", "elapsed", "peak_memory")


def records_of(directory: Path, episodes: int, question: dict[str, object] | None = None) -> list[Any]:
    with Journal(directory, question or QUESTION) as journal:
        whole = OnlineRun(learner(NAME, sets="expression"), source(NAME), episodes, truth(NAME), journal)
        return list(whole.records())


def timeless(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in r.items() if name not in TIMES} for r in records]


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / RECORDS).read_text().splitlines()]


@pytest.mark.costly("test_a_torn_record_comes_out_again")
def test_records_are_kept_and_a_run_that_is_prolonged_is_the_longer_run(tmp_path: Path) -> None:
    short = records_of(tmp_path / "a", SHORT)
    assert short[-1]["final"] and not any(record["final"] for record in short[:-1])
    assert timeless(lines(tmp_path / "a")) == timeless(short)
    assert timeless(records_of(tmp_path / "a", SHORT)) == timeless(short), "the same again"
    longer = records_of(tmp_path / "a", 100)
    at_once = records_of(tmp_path / "b", 100)
    assert timeless(longer) == timeless(at_once) and len(at_once) > len(short)
    assert timeless(lines(tmp_path / "a")) == timeless(lines(tmp_path / "b"))
    elapsed = [record["elapsed"] for record in longer]
    assert elapsed == sorted(elapsed)
    with pytest.raises(InputError, match=r"holds \d+ episodes already"):
        records_of(tmp_path / "a", 5)


def test_a_learner_restored_at_every_update_is_the_one_that_was_not() -> None:
    """Polytopes are looked for where the last one was, so a checkpoint has to say where that is."""
    name = "aircraft(8,4)"
    straight, restored = (learner(name, sets="expression", region="polytope") for _ in range(2))
    episodes = source(name)
    for one in (straight, restored):
        one.update()
    moved = 0
    while straight.episodes < 60:
        fresh = learner(name, sets="expression", region="polytope")
        fresh.restore(restored.state())
        restored = fresh
        for one in (straight, restored):
            episodes.collect(one.policy(), one.data, 60)
        ahead = restored.preview()
        mine, theirs = restored.update(), straight.update()
        assert mine.guarantee == theirs.guarantee == ahead.guarantee
        assert mine.optimistic == theirs.optimistic and mine.number == theirs.number
        assert mine.sampling_policy == theirs.sampling_policy
        near = (straight.state(), restored.state())
        for part in ("near_lower", "near_upper", "near_interior"):
            assert np.array_equal(near[0][part], near[1][part])
        moved += mine.guarantee > 0
    assert straight.last_update is not None and straight.last_update.number > 20 and moved > 5


def test_a_torn_record_comes_out_again(tmp_path: Path) -> None:
    whole = records_of(tmp_path, 20)
    data = (tmp_path / RECORDS).read_bytes()
    (tmp_path / RECORDS).write_bytes(data + b'{"update": 99, "epi')
    assert timeless(records_of(tmp_path, 20)) == timeless(whole)
    assert timeless(lines(tmp_path)) == timeless(whole)


def test_another_question_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    records_of(tmp_path, 20)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="its seed is 1, not 2"):
        records_of(tmp_path, 20, {**QUESTION, "seed": 2})
    with pytest.raises(InputError, match="its cap is not given, not 5"):
        records_of(tmp_path, 20, {**QUESTION, "cap": 5})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"did not write: thesis.tex; it was not changed"):
        records_of(tmp_path, 5)
    with pytest.raises(InputError, match="it is a file"):
        records_of(tmp_path / "thesis.tex", 5)
    with pytest.raises(InputError, match="there is no directory"):
        records_of(tmp_path / "no" / "where", 5)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_broken_checkpoint_is_named(tmp_path: Path) -> None:
    records_of(tmp_path, 5)
    (tmp_path / CHECKPOINT).write_bytes(b"PK not a zip")
    with pytest.raises(InputError, match="not a checkpoint"):
        records_of(tmp_path, 5)
    (tmp_path / CHECKPOINT).unlink()
    assert records_of(tmp_path, 5)[0]["update"] == 0, "without a checkpoint it begins again"


def test_the_records_of_a_campaign_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / RECORDS).write_text('{"format": 1, "instance": "betting(50)"}\n')
    with pytest.raises(InputError, match=r"did not write: records.jsonl; it was not changed"):
        records_of(tmp_path, 5)
    Manifest("online", {RECORDS: None}).save(tmp_path)
    with pytest.raises(InputError, match="other records than a run's"):
        records_of(tmp_path, 5)
    assert "betting(50)" in (tmp_path / RECORDS).read_text()


def test_two_runs_cannot_share_a_directory(tmp_path: Path) -> None:
    with Journal(tmp_path, QUESTION), pytest.raises(InputError, match="another run"):
        records_of(tmp_path, 5)
    with Journal(tmp_path, QUESTION) as journal:
        (tmp_path / RECORDS).write_bytes(b"")
        whole = OnlineRun(learner(NAME, sets="tied"), source(NAME), 5, None, journal)
        assert all(record["performance"] is None for record in whole.records())
    (tmp_path / RECORDS).write_bytes(b"")
    with pytest.raises(InputError, match="shorter than its checkpoint"):
        records_of(tmp_path, 5)


COMMAND = [
    *("online", "bench:betting(4)", "--episodes", "40", "--seed", "3"),
    *("--sets", "rectangular", "--region", "likelihood", "--json"),
]


@pytest.mark.long
@pytest.mark.usefixtures("empty_pictures")
def test_killed_twice_a_run_gives_the_records_of_one_that_was_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = tmp_path / "killed"
    for wanted in (3, 6):
        _kill_after(killed, wanted)
    partial = len(lines(killed))
    assert run([*COMMAND, "-o", str(killed)]) == 0
    continued = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert run([*COMMAND, "-o", str(tmp_path / "whole")]) == 0
    whole = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert 6 <= partial < len(whole), "it was killed on the way"
    assert timeless(continued) == timeless(whole)
    assert timeless(lines(killed)) == timeless(whole)
    assert not list(killed.glob(".*")), "nothing torn is left behind"
    same = [json.loads((d / "result.json").read_text()) for d in (killed, tmp_path / "whole")]
    assert same[0]["results"][0]["robust_policy"] == same[1]["results"][0]["robust_policy"]


def _kill_after(directory: Path, updates: int) -> None:
    """Start the run in a process of its own and kill it (-9) when there are so many records."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tightrope", *COMMAND, "-o", str(directory)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (directory / RECORDS).is_file() and (directory / RECORDS).read_bytes().count(b"\n") >= updates:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
