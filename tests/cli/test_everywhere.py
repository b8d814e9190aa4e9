"""What every command takes: settings in a file, `--quiet`, `--verbose`, `-o -`, completion, no colours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tightrope.cli.app import run
from tightrope.cli.output import Content, render, set_common, show, shown_notes
from tightrope.numerics.machine import cores, lock

COIN = """mdp
const double p;
module coin
  s : [0..1] init 0;
  [toss] s=0 -> p : (s'=1) + 1-p : true;
  [stay] s=1 -> true;
endmodule
label "heads" = s=1;
"""
HEADS = 'Pmax=? [ F<=1 "heads" ]'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coin.prism").write_text(COIN)
    (tmp_path / "tightrope.toml").write_text(f"model = 'coin.prism'\nproperty = '{HEADS}'\ndelta = 0.01\n")
    return tmp_path


def test_settings_stand_in_for_options_and_are_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--at", "p=0.25", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines()[0] == "settings of tightrope.toml: model, property"
    assert json.loads(captured.out)["upper"] == pytest.approx(0.25)
    assert run(["check", "--at", "p=0.25", "--prop", 'Pmax=? [ F<=2 "heads" ]', "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["upper"] == pytest.approx(0.4375)
    assert captured.err == "settings of tightrope.toml: model\n"


def test_settings_are_about_their_model(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "other.prism").write_text(COIN)
    assert run(["check", "other.prism", "--at", "p=0.25"]) == 2, "no property"
    assert "settings of tightrope.toml: not used, they are about coin.prism\n" in capsys.readouterr().err
    assert run(["info", "--no-config"]) == 2, "no model"
    assert run(["info", "--config", "no.toml"]) == 2
    assert "no.toml: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confidence = 0.95", "there is no setting 'confidence'"),
        ("delta = [1]", "neither"),
        ("x", "not TOML"),
        ("model = '--json'", "an option, not a model"),
    ],
)
def test_wrong_settings(here: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "tightrope.toml").write_text(text)
    assert run(["info", "coin.prism"]) == 2
    said = capsys.readouterr().err
    assert message in said and "tightrope.toml" in said
    assert any(word in said for word in ("delta", "TOML", "option"))


def test_quiet_leaves_the_answer(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--at", "p=0.25", "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "" and len(captured.out.splitlines()) == 1 and "0.25" in captured.out
    assert run(["info"]) == 0 and "states" in capsys.readouterr().out, "for one command alone"


def test_standard_output_is_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "-o", "-"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("// Written by tightrope\n") and "@nr_states\n2" in captured.out
    assert sorted(path.name for path in here.iterdir()) == ["coin.prism", "tightrope.toml"]
    assert run(["learn", "--data", "x", "-o", "-"]) == 2
    assert "-o -: what learn writes is no single file" in capsys.readouterr().err


def test_technical_notes_are_for_those_who_ask() -> None:
    notes = ["10 rows in 2 coordinates, 10 facets, 10 vertices", "the log has gaps"]
    set_common()
    assert shown_notes(notes) == [("note", "the log has gaps")]
    set_common(flags=("verbose",))
    assert len(shown_notes(notes)) == 2
    set_common()


def test_no_color_means_no_colour_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = Content([("value", "1"), ("note", "\x1b[31mred")])
    assert "\x1b[36m" in render("title", shown, verbose=False, colour=True)
    assert "\x1b" not in render("title", shown, verbose=False)
    assert "\x1b[31m" not in render("title", shown, verbose=False, colour=True), "what a file says is escaped"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    show("title", shown)
    assert "\x1b" not in capsys.readouterr().out


def test_a_shell_sees_what_may_follow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TIGHTROPE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "tightrope info --dom")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run([]) == 0
    assert capsys.readouterr().out.split() == ["--domain"]


WITHOUT_POSIX = """
import os, signal, subprocess, sys, types
import matplotlib.pyplot, numba, pyarrow.parquet, rich.console, scipy.optimize, typer
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in "fork getuid geteuid getgid sched_getaffinity killpg setsid fchmod sysconf O_DIRECTORY".split():
    delattr(os, name)
for name in "SIGKILL SIGHUP SIGALRM SIGUSR1 SIGCHLD SIGPIPE setitimer alarm".split():
    delattr(signal, name)
sys.modules["msvcrt"] = types.SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=lambda *given: None)
import tightrope.numerics
sys.platform, here = "win32", sys.platform
from tightrope.numerics import machine
machine.sys, sys.platform = types.SimpleNamespace(platform="win32"), here
from tightrope.cli.app import run
assert machine.peak_memory() == 0 and machine.cores() >= 1
print(run(["check", "--at", "p=0.7"]), run(["learn", "--data", "log.csv", "--ends", "complete", "-o", "out"]))
"""


@pytest.mark.long
def test_nothing_that_only_posix_has_is_needed(here: Path) -> None:
    (here / "log.csv").write_text("s,action,s_next,count\n0,toss,1,70\n0,toss,0,30\n")
    finished = subprocess.run([sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True)
    assert finished.stdout.splitlines()[-1:] == ["0 0"], finished.stdout + finished.stderr
    assert (here / "out" / "result.json").is_file()


def test_locks_are_held_by_one(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path / "held", os.O_RDWR | os.O_CREAT) for _ in range(2))
    lock(first)
    with pytest.raises(BlockingIOError):
        lock(second, wait=False)
    os.close(first)
    lock(second, wait=False)
    os.close(second)
    assert cores() >= 1
