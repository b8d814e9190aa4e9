"""What people read: at most ten lines, each fact once, and commands that can be pasted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tightrope.cli.app import run

MODEL = """mdp
const double p;
module machine
  s : [0..2] init 0;
  [go] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [fix] s=0 -> p/2 : (s'=1) + 1-p/2 : (s'=2);
  [stay] s>0 -> true;
endmodule
label "up" = s=1;
"""
PROP = ("--prop", 'Pmax=? [ F "up" ]')


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, a log that fits, and one whose parameter changes halfway."""
    monkeypatch.chdir(tmp_path)
    Path("m.prism").write_text(MODEL)
    steady = ["0,go,1"] * 3 + ["0,go,2"]
    for name, rows in (("good.csv", steady * 60), ("bad.csv", steady * 60 + ["0,go,2"] * 120)):
        numbered = [f"{number},{number},{row}" for number, row in enumerate(rows)]
        Path(name).write_text("\n".join(["episode,time,s,action,s_next", *numbered]) + "\n")
    return tmp_path


CASES = {
    "learn": (["learn", "m.prism", *PROP, "--data", "good.csv"], "PROVED: probability >= 0."),
    "check": (
        ["check", "m.prism", *PROP, "--at", "p=0.5"],
        "PROVED: probability = 0.5 ",
    ),
    "watch": (["watch", "m.prism", "--data", "bad.csv"], "CONTRADICTED: alarm at event "),
    "doctor": (["doctor", "m.prism", *PROP, "--data", "bad.csv"], "CONTRADICTED: the data do not fit"),
    "compare": (
        ["improve", "m.prism", *PROP, "--data", "good.csv"],
        "PROVED: improvement in ",
    ),
    "data": (["data", "good.csv", "--model", "m.prism"], "READ: 240 of 240 rows of good.csv can be used"),
    "draft": (["draft", "good.csv", "-o", "d.prism", "--variables", "s"], "DRAFTED: "),
    "online": (
        ["online", "m.prism", *PROP, "--at", "p=0.5", "--episodes", "40"],
        "PROVED: probability >= 0.",
    ),
}


@pytest.mark.usefixtures("place")
def test_a_contradicted_model_has_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "m.prism", *PROP, "--data", "bad.csv"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("CONTRADICTED: ") and "  value      none; under" in out and "any policy" not in out


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("place")
def test_a_first_line_and_ten_lines_and_a_next_command_that_works(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, first = CASES[name]
    assert run(words) in (0, 1)
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith(first), out
    assert len(lines) <= 10 and err == "", out + err
    assert all(len(line) <= 80 for line in lines if not line.startswith(("  next", lines[0]))), out
    for line in lines:
        if pasted := re.match(r"  next +tightrope (.*)", line):
            assert run(shlex.split(pasted[1])) != 2, capsys.readouterr().err
    assert name not in ("watch", "data", "draft") or "\n  next " in out


def test_a_nominal_answer_says_why_once_and_what_would_prove_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = "  [go] s=2 -> p : (s'=1) + 1-p : (s'=2);\nendmodule"
    Path("m.prism").write_text(MODEL.replace("s>0", "s=1").replace("endmodule", again))
    Path("counts.csv").write_text("s,action,s_next,count\n0,go,1,70\n0,go,2,30\n")
    words = ["learn", "m.prism", *PROP, "--data", "counts.csv"]
    assert run(words) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0].endswith(" for the robust policy, not guaranteed") and err == ""
    assert out.count("how episodes ended") == 1
    (option,) = re.findall(r"  hint +add (--ends complete) ", out)
    assert run([*words, *option.split()]) == 0
    assert capsys.readouterr().out.startswith("PROVED: ")


def test_learn_prints_the_policy_by_the_names_of_the_model(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learn", "m.prism", *PROP, "--data", "good.csv"]) == 0
    assert re.search(r"^  policy +go when s=0$", capsys.readouterr().out, re.MULTILINE)
