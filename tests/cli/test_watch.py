"""`tightrope watch` on logs, growing files, standard input and checkpoints."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tightrope.cli import watch as watch_command
from tightrope.cli.app import run
from tightrope.data.episode_log import LogEvents
from tightrope.data.read_options import LogReadOptions
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.following import Following
from tightrope.prism.load import load_prism_text

MODEL = """mdp
const double p;
module m
  s : [0..2] init 0;
  [go] s=0 -> p:(s'=1) + (1-p):(s'=2);
  [go] s>0 -> (s'=0);
endmodule
label "goal" = s=1;
"""
ROWS = [("0", "go", "1" if i % 5 < 2 else "2") for i in range(400)]


WATCH = ["watch", "m.prism", "--order", "as-read", "--ends", "complete"]
"""Logs of single rows: nothing in them says when they came, and that none is missing."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.prism").write_text(MODEL)


def write(name: str, rows: list[tuple[str, str, str]]) -> None:
    lines = ["s,action,s'", *(",".join(row) for row in rows)]
    Path(name).write_text("\n".join(lines) + "\n")


def watch(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert run([*WATCH, "--json", *words]) == code
    lines = capsys.readouterr().out.splitlines()
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def test_a_log_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    write("log.csv", ROWS)
    found = watch(capsys, "--data", "log.csv")
    keys = {"alarm", "e_value", "alpha", "events", "first_alarm", "suspects"}
    assert keys <= set(found)
    assert (found["alarm"], found["events"], found["first_alarm"]) == (False, 400, None)
    assert 0.0 < float(str(found["e_value"])) < 1.0
    assert run([*WATCH, "--data", "log.csv"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("NO ALARM: no evidence against the model\n") and "after 400 events" in shown


def test_what_the_model_excludes_is_an_alarm_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    write("log.csv", [*ROWS[:3], ("0", "go", "0"), *ROWS[3:6]])
    found = watch(capsys, "--data", "log.csv", code=1)
    assert (found["alarm"], found["first_alarm"], found["events"]) == (True, 4, 7)
    first = found["suspects"][0]
    assert first["kind"] == "excluded" and "log.csv:5" in first["text"] and "no transition" in first["text"]
    assert found["e_value"] == "inf"
    assert run([*WATCH, "--data", "log.csv", "--strict"]) == 2
    assert "the model has no transition" in capsys.readouterr().err


def test_a_drift_is_an_alarm_and_the_run_stops_there_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    write("log.csv", [*ROWS, *([("0", "go", "1")] * 120)])
    found = watch(capsys, "--data", "log.csv", "--alpha", "0.01", code=1)
    assert found["alarm"] and 400 < int(str(found["first_alarm"])) <= 520
    assert found["suspects"][0]["kind"] == "drift"
    assert found["suspects"][0]["moved"][0]["parameter"] == "p"
    assert run([*WATCH, "--data", "log.csv", "--alpha", "0.01", "--stop"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("alarm at event") == 1 and "standard errors" in shown
    assert "10^-" not in shown  # what does not speak against the model is not listed


def test_reports_come_while_reading(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        write(f"{number}.csv", ROWS[number : number + 100])
    words = [word for number in range(4) for word in ("--data", f"{number}.csv")]
    assert run([*WATCH, "--json", "--every", "150", *words]) == 0
    events = [json.loads(line)["events"] for line in capsys.readouterr().out.splitlines()]
    assert events == [200, 400, 400]


def test_a_checkpoint_goes_on_and_gives_the_same_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    write("whole.csv", ROWS)
    straight = watch(capsys, "--data", "whole.csv")
    write("log.csv", ROWS[:170])
    watch(capsys, "--data", "log.csv", "--checkpoint", "kept.npz")
    write("log.csv", ROWS)
    resumed = watch(capsys, "--data", "log.csv", "--checkpoint", "kept.npz")
    assert resumed["e_value"] == straight["e_value"] and resumed["events"] == 400
    again = watch(capsys, "--data", "log.csv", "--checkpoint", "kept.npz")
    assert again["events"] == 400
    for text, words in (
        ("another alpha", ["--alpha", "0.2"]),
        ("another model", ["--param", "p=0.1:0.9"]),
    ):
        command = [*WATCH, "--data", "log.csv", "--checkpoint", "kept.npz", *words]
        assert run(command) == 2
        assert text in capsys.readouterr().err
    write("log.csv", ROWS[:20])
    assert run([*WATCH, "--data", "log.csv", "--checkpoint", "kept.npz"]) == 2
    assert "it was changed, not added to" in capsys.readouterr().err.replace("\n", " ")
    Path("kept.npz").write_bytes(b"PK\x03\x04 torn")
    assert run([*WATCH, "--data", "log.csv", "--checkpoint", "kept.npz"]) == 2
    assert "not a checkpoint of a monitor" in capsys.readouterr().err


def _savez(change: Callable[[dict[str, Any]], None]) -> None:
    with np.load("kept.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    change(arrays)
    np.savez("kept.npz", **arrays)


def _declares_3_gib() -> None:
    """3 MB that expand to 3 GiB of zeros."""
    zeros = b"\0" * (1 << 20)
    with (
        zipfile.ZipFile("kept.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w") as file,
    ):
        header = {"descr": "|u1", "fortran_order": False, "shape": (3 << 30,)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(64):  # the directory says the rest
            file.write(zeros)


def _header_of_3_gib() -> None:
    """An array of a few bytes whose header says 3 GiB."""
    with zipfile.ZipFile("kept.npz", "w") as archive, archive.open("head.npy", "w") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (3 << 30,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"{}")


def _set(name: str, value: Any) -> Callable[[], None]:
    return lambda: _savez(lambda arrays: arrays.update({name: np.asarray(value)}))


def _head(**values: Any) -> Callable[[], None]:
    def change(arrays: dict[str, Any]) -> None:
        head = json.loads(arrays["head"].tobytes())
        head.update(values)
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)

    return lambda: _savez(change)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "spoil",
    [
        _declares_3_gib,
        _header_of_3_gib,
        _set("head", np.frombuffer(b"[]", dtype=np.uint8)),
        _set("head", np.frombuffer(b"[" * 100_000, dtype=np.uint8)),
        _head(read=[1]),
        _head(read={"log.csv": -5}),
        _head(read={"log.csv": "many"}),
        lambda: _savez(lambda arrays: arrays.pop("waiting")),
        _set("waiting", [10**9]),
        _set("waiting", [-1]),
        _set("seen", np.zeros(1)),
        _set("seen", ["a", "b"]),
        _set("drift_past", np.zeros((2, 1))),
        _set("drift_order", [1, 10**6]),
        _set("past_closed", 10**15),
        _set("largest", np.nan),
        _set("impossible", ["x"]),
        _set("progress", [1]),
    ],
)
def test_a_checkpoint_that_is_not_what_it_should_be_is_refused_in_words(
    spoil: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    write("log.csv", ROWS[:50])
    command = [*WATCH, "--data", "log.csv", "--checkpoint", "kept.npz"]
    assert run(command) == 0
    spoil()
    tracemalloc.start()
    try:
        assert run(command) == 2
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()
    said = capsys.readouterr().err
    assert "kept.npz" in said and "hint: name another file" in said


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_growing_file_is_followed_line_by_line(ending: str) -> None:
    model = load_prism_text(MODEL, "m.prism")
    structure = model.structure
    name = f"log.{ending}"
    seen: list[int] = []

    def take(events: LogEvents) -> None:
        seen.extend(structure.successor[events.transition].tolist())

    log = Following((name,), structure, LogReadOptions())
    header = "s,action,s'\n" if ending == "csv" else ""
    lines = [",".join(row) + "\n" for row in ROWS[:9]]
    if ending == "jsonl":
        lines = [json.dumps({"s": a, "action": b, "s'": c}) + "\n" for a, b, c in ROWS[:9]]
    Path(name).write_text(header + "".join(lines[:4]) + lines[4][:-3])
    assert log.take_new(take) == 4
    assert log.take_new(take) == 0
    assert isinstance(model, ParametricMDP)
    counts = log.counts(model, grows=True)
    assert counts.log is not None and len(counts.log()) == counts.steps == 4
    Path(name).write_text(header + "".join(lines))
    assert log.take_new(take) == 5
    assert seen == [1, 1, 2, 2, 2, 1, 1, 2, 2]
    resumed = Following((name,), structure, LogReadOptions(), read=dict(log.read))
    with Path(name).open("a") as file:
        file.write(lines[0])
    assert resumed.take_new(take) == 1 and len(seen) == 10


def test_files_that_are_added_to_a_directory_are_taken_once() -> None:
    structure = load_prism_text(MODEL, "m.prism").structure
    Path("runs").mkdir()
    log = Following(("runs",), structure, LogReadOptions())
    write("runs/a.csv", ROWS[:5])
    counts = [log.take_new(lambda events: None)]
    write("runs/b.csv", ROWS[:7])
    counts += [log.take_new(lambda events: None), log.take_new(lambda events: None)]
    assert counts == [5, 7, 0]


def test_json_lines_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(json.dumps({"s": int(a), "action": b, "s'": int(c)}) + "\n" for a, b, c in ROWS[:50])
    reader, writer = os.pipe()
    os.write(writer, lines.encode())
    os.close(writer)
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run([*WATCH, "--data", "-", "--json"]) == 0
    printed = capsys.readouterr().out.splitlines()
    first, last = (json.loads(line) for line in printed)  # that it fits, and the end
    assert (first["events"], first["final"], last["events"], last["final"]) == (50, False, 50, True)


def test_rows_of_a_stream_are_examined_as_they_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The site decides, and every count is what the model allows."""
    rng = np.random.default_rng(1)
    site = rng.integers(0, 2, 400)
    to = np.where(rng.random(400) < 0.3 + 0.4 * site, 1, 2)
    rows = zip(site.tolist(), to.tolist(), strict=True)
    lines = [json.dumps({"s": 0, "action": "go", "s'": b, "site": "ab"[a]}) + "\n" for a, b in rows]
    reader, writer = os.pipe()
    os.write(writer, "".join(lines).encode())
    os.close(writer)
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run([*WATCH, "--data", "-", "--json", "--known", "site"]) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["verdict"] == "contradicted" and last["suspects"][0]["kind"] == "column"


def test_a_run_that_is_killed_within_a_file_goes_on_after_its_last_checkpoint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tightrope.io.table.data_table.CHUNK_BYTES", 1000)
    write("log.csv", ROWS)
    straight = watch(capsys, "--data", "log.csv")
    kept = watch_command._Watching.keep

    def dies(self: watch_command._Watching) -> None:
        kept(self)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(watch_command._Watching, "keep", dies)
        assert run([*WATCH, "--data", "log.csv", "--every", "150", "--checkpoint", "kept.npz"]) != 0
    capsys.readouterr()
    resumed = watch(capsys, "--data", "log.csv", "--checkpoint", "kept.npz")
    assert resumed["e_value"] == straight["e_value"] and resumed["events"] == 400


def test_rows_that_are_left_out_make_the_rate_nominal(capsys: pytest.CaptureFixture[str]) -> None:
    write("log.csv", [*ROWS[:20], ("7", "go", "1")])
    assert run([*WATCH, "--data", "log.csv"]) == 2
    found = watch(capsys, "--data", "log.csv", "--skip-invalid", code=1)
    assert (
        found["verdict"] == "nominal"
        and found["nominal"] is True
        and found["dropped"] == {"unknown state": 1}
    )
    assert run([*WATCH, "--data", "log.csv", "--skip-invalid"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("NOMINAL: no evidence against") and "1 rows left out (1 unknown state)" in said
    assert run([*WATCH, "--data", "log.csv", "--skip-invalid", "--accept-nominal"]) == 0


def test_steps_that_are_missing_make_the_rate_nominal(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["1,0,0,go,1", "1,1,1,go,0", "1,4,0,go,2"]
    Path("log.csv").write_text("\n".join(["episode,step,s,action,s'", *rows]) + "\n")
    found = watch(capsys, "--data", "log.csv", code=1)
    assert found["nominal"] is True and found["dropped"] == {"missing step": 2}


def test_watch_and_learn_read_gaps_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Steps 2 and 3 are missing; both commands take the statement that this was an outage."""
    rows = ["1,0,0,go,1", "1,1,1,go,0", "1,4,0,go,2"]
    Path("log.csv").write_text("\n".join(["episode,step,s,action,s'", *rows]) + "\n")
    found = watch(capsys, "--data", "log.csv", "--gaps", "outage")
    assert found["verdict"] == "proved" and found["dropped"] == {} and not found["nominal"]
    assert [one["kept"] for one in found["assumptions"] if "outage" in one["why"]] == ["stated"]


def test_rows_out_of_order_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["1,1,1,go,0", "1,0,0,go,1"]
    Path("log.csv").write_text("\n".join(["episode,step,s,action,s'", *rows]) + "\n")
    assert run([*WATCH, "--data", "log.csv"]) == 2
    assert "order of time" in capsys.readouterr().err


def test_places_and_levels_are_refused_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--checkpoint", "no/where.npz"], "there is no directory"),
        (["--alpha", "2"], "--alpha is 2"),
    ):
        assert run([*WATCH, "--data", "nowhere.csv", *words]) == 2
        assert said in capsys.readouterr().err


def test_a_log_without_next_states_is_not_followed() -> None:
    Path("log.csv").write_text("episode,s,action\n1,0,go\n1,1,go\n")
    log = Following(("log.csv",), load_prism_text(MODEL, "m.prism").structure, LogReadOptions())
    with pytest.raises(InputError, match="needs the next state in every row"):
        log.take_new(lambda events: None)


def test_counts_have_no_order_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    Path("counts.csv").write_text("s,action,s',count\n0,go,1,5\n0,go,2,6\n")
    assert run([*WATCH, "--data", "counts.csv"]) == 2
    assert "does not record the order of events" in capsys.readouterr().err


def test_rows_that_stand_in_order_are_watched_as_they_stand() -> None:
    """Each episode has a clock of its own: times say nothing about the order of episodes."""
    rows = ["1,5,0,1", "1,6,1,0", "2,1,0,2", "2,2,2,0"]
    lines = ["episode,time,s,s',action", *(f"{row},go" for row in rows)]
    Path("log.csv").write_text("\n".join(lines) + "\n")
    structure, seen = load_prism_text(MODEL, "m.prism").structure, list[int]()
    log = Following(("log.csv",), structure, LogReadOptions(order="as-read"))
    log.take_all(lambda events: seen.extend(structure.successor[events.transition].tolist()))
    assert log.order.holds and [structure.valuations["s"][state] for state in seen] == [1, 0, 2, 0]
