"""Hints work when they are pasted: the same error does not come back."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from log_cases import FOLDER
from tightrope.cli.app import run
from wrong_logs import CASES, write_case

COIN = """mdp
const double p;
const int n;
module coin
  s : [0..2] init 0;
  [toss] s=0 -> p : (s'=n) + 1-p : (s'=2);
  [wait] s=0 -> (s'=2);
  [stay] s>0 -> true;
endmodule
label "won" = s=1;
rewards "cost" [toss] true : 1; endrewards
"""
LOG = "episode,s,action,next_s\n1,0,toss,1\n2,0,toss,2\n3,0,toss,1\n4,0,wait,2\n"
WON = ["--prop", 'Pmax=? [ F "won" ]']
AT = ["--at", "p=0.5"]
DATA = ["--data", "log.csv"]

ADDED = [
    (["check", "coin.prism", *WON, *AT], "--const n=…", "--const n=1"),
    (["check", "two.prism", *WON], "--at p=…", "--at p=0.5"),
    (["check", "two.prism", *WON, "--misfit", "0.1"], "--sets expression", None),
    (["sample", "two.prism", *WON, *AT, "--episodes", "3"], "-o data.parquet", None),
    (["sample", "two.prism", *WON, *AT, "--episodes", "3", "--costs", "exact", "-o", "x.csv"], "--raw", None),
    (["doctor", "two.prism", *WON, *DATA, "-o", "a.prism"], "--amend memory=prev", None),
    (["online", "two.prism", *WON, *AT], "--episodes N", "--episodes 3"),
    (["plan", "two.prism", *WON, *DATA], "--gap", "--gap 0.5"),
    (["draft", "bare.csv", "-o", "m.prism"], '--columns "state=…"', '--columns "state=a"'),
    (["learn", "two.prism", *WON, "--data", "log.data"], "--data-format csv", None),
]
"""A command that fails, what its error shows, and what is pasted behind it where values are left open."""

REPLACED = [
    (["check", "two.prism", "--prop", 'P=? [ F "won" ]', *AT], "P=?", "Pmax=?"),
    (["check", "two.prism", "--prop", "Pmax=? [ F won ]", *AT], "won", '"won"'),
    (["check", "two.prism", "--prop", 'Pmax=? [ F "win" ]', *AT], "win", "won"),
    (["check", "two.prism", "--prop", 'Rmax=? [ F<=3 "won" ]', *AT], 'F<=3 "won"', "C<=k"),
    (["check", "two.prisn", *WON, *AT], "two.prisn", "two.prism"),
    (["check", "bench:rovr(10,10)", "--at", "p=0.1,q=0.1"], "rovr", "rover"),
    (["export", "two.prism", "-o", "model.xyz"], "model.xyz", "model.drn"),
    (["learn", "two.prism", "--prop", 'P>=0.5 [ F "won" ]', *DATA], "P>=0.5", "Pmax=?"),
    (["learn", "two.prism", *WON, *DATA, "--sets", "untied", "--budget", "paper"], "untied", "tied"),
]
"""A command that fails, a part of it, and what its hint shows in place of that."""

LOGS = [
    ("variables counted from 1", "--map 'wear: -1' --map 'broken: -1'"),
    (
        "the other way round",
        "--columns \"wear=wear_next, broken=broken_next, wear'=wear, broken'=broken\"",
    ),
    (
        "variables changed over",
        "--columns \"wear=broken, broken=wear, wear'=broken_next, broken'=wear_next\"",
    ),
    ("choices from 1", "--columns 'choice=action' and --map 'choice: -1'"),
    ("actions by number", "--map 'action: 0=run, 1=repair, 2=wait'"),
    ("two actions", '--columns "action=act"'),
    ("two next values", '--columns "wear\'=next_wear"'),
    ("nothing follows", '--columns "wear\'="'),
    ("no number", "--skip-invalid"),
]
"""A wrong log by its name, and what its hint shows."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("coin.prism").write_text(COIN)
    Path("two.prism").write_text(COIN.replace("const int n;\n", "").replace("s'=n", "s'=1"))
    for name in ("log.csv", "log.data"):
        Path(name).write_text(LOG)
    Path("bare.csv").write_text("a,b\n0,1\n1,2\n")


def refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    code, error = run(command), capsys.readouterr().err
    return error.splitlines()[0] if code == 2 else ""


def shown(command: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The first line of the refusal, and all of it."""
    capsys.readouterr()
    assert run(command) == 2
    text = capsys.readouterr().err
    return text.splitlines()[0], text


def test_there_are_many() -> None:
    assert len({*(hint for _, hint, _ in ADDED), *(new for *_, new in REPLACED), *dict(LOGS).values()}) >= 25


@pytest.mark.parametrize(("command", "hint", "pasted"), ADDED, ids=lambda value: str(value)[:40])
def test_an_option_that_is_added(
    command: list[str], hint: str, pasted: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    error, text = shown(command, capsys)
    assert hint in text
    assert refused([*command, *shlex.split(pasted or hint)], capsys) != error


@pytest.mark.parametrize(("command", "old", "new"), REPLACED, ids=lambda value: str(value)[:40])
def test_a_word_that_is_replaced(
    command: list[str], old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error, text = shown(command, capsys)
    assert new in text
    pasted = [word.replace(old, new.replace("k", "3") if new == "C<=k" else new) for word in command]
    assert refused(pasted, capsys) != error


@pytest.mark.parametrize(("name", "hint"), LOGS, ids=[name for name, _ in LOGS])
def test_import_settings_of_a_wrong_log(
    name: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(case for case in CASES if case.name == name)
    place, model = write_case(tmp_path, case), str(FOLDER / "machine.prism")
    command = ["learn", model, "--data", str(place), "--prop", 'Pmax=? [ F "broken" ]']
    error, text = shown(command, capsys)
    assert hint in text
    assert refused([*command, *shlex.split(hint.replace(" and ", " "))], capsys) != error
