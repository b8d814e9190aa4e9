"""Kernels compiled ahead, and the line that says why a first run takes long."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tightrope.cli import warmup as warmup_run
from tightrope.cli.app import run
from tightrope.numerics.jit import COMPILING

COMPILE = """
import os, sys
import numba
from numba.core.registry import cpu_target
cpu_target.typing_context.refresh()  # what all of them need is loaded once
for stream, prompt in zip(sys.argv[1].split(","), (False, False, True)):
    if os.fork() == 0:
        os.dup2(int(stream), 2)
        from tightrope.cli.output import tell_when_compiling
        from tightrope.numerics import jit
        tell_when_compiling()
        tell_when_compiling()
        if prompt:
            sys.ps1 = ">>> "
            jit._waiting[0]()
        numba.njit(lambda x: x + 1)(1)
        numba.njit(lambda x: x + 2)(1)
        os._exit(0)
    assert os.wait()[1] == 0
"""


def test_every_example_runs_and_the_kernels_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = os.getcwd()
    assert warmup_run.run_example("cyclic models") >= 0
    assert os.getcwd() == here
    monkeypatch.setattr(warmup_run, "EXAMPLES", {"wrong": (("check", "nowhere.prism"),)})
    with pytest.raises(Exception, match=r"the example 'tightrope check nowhere\.prism' failed"):
        warmup_run.run_example("wrong")


def test_the_command_says_what_it_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [("learning", 1, 2, 30), ("online", 2, 2, 4)]
    monkeypatch.setattr(warmup_run, "warm_up", lambda jobs: iter(made))
    assert run(["warmup"]) == 0
    printed = capsys.readouterr()
    assert "[1/2] learning: 30 kernels compiled" in printed.err
    assert "34 kernels compiled in" in printed.out
    assert run(["warmup", "--json", "--jobs", "1"]) == 0
    assert '"kernels": 34' in capsys.readouterr().out


@pytest.mark.long
def test_a_user_at_a_terminal_or_prompt_is_informed_once_that_kernels_are_compiled(tmp_path: Path) -> None:
    inner, outer = pty.openpty()
    with (tmp_path / "pipe").open("w") as pipe, (tmp_path / "prompt").open("w") as prompt:
        streams = (outer, pipe.fileno(), prompt.fileno())
        command = [sys.executable, "-c", COMPILE, ",".join(map(str, streams))]
        subprocess.run(command, check=True, timeout=120, pass_fds=streams)
    os.close(outer)
    shown = os.read(inner, 10_000).decode()
    os.close(inner)
    assert shown.count(COMPILING) == 1
    assert (tmp_path / "pipe").read_text() == ""
    assert (tmp_path / "prompt").read_text() == COMPILING + "\n"


def test_peak_memory_is_in_the_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import json

    model = tmp_path / "coin.prism"
    model.write_text("dtmc module m s : [0..1] init 0; [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=0); endmodule")
    check = ["check", str(model), "--prop", "P=? [ F s=1 ]"]
    assert run([*check, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak_memory"] > 10_000_000
    assert run([*check, "--verbose"]) == 0
    assert "MiB at most" in capsys.readouterr().out
