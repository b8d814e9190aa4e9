"""What the command line says is true: help texts as they are written, and only options that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tightrope
from tightrope.cli import app
from tightrope.cli.commands import COMMANDS
from tightrope.cli.everywhere import HELP
from tightrope.cli.flags import MOVED

SOURCE = Path(tightrope.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")

GOAL = 'Pmax=? [ F "goal" ]'

ELSEWHERE = {"--nthreads", "--fmad", "--std"}
"""Options of other programs: 'dask worker' in a hint, and the compiler of kernels."""


@cache
def command(name: str) -> Any:
    return app.build_command([name]).commands[name]


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_help_shows_every_text_as_it_is_written(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markup would eat the brackets of 'needs tightrope[gpu]'."""
    monkeypatch.setenv("COLUMNS", "1000")
    assert app.run([name, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    listed = [parameter for parameter in command(name).params if not getattr(parameter, "hidden", False)]
    texts = [parameter.help for parameter in listed if getattr(parameter, "help", None)]
    assert texts or name in ("questions", "warmup")
    for text in [*texts, *(command(name).help or "").split("\n\n")]:
        assert " ".join(text.replace("\\[", "[").split()) in shown


def test_help_names_extras_with_their_brackets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert app.run(["check", "--help"]) == 0
    assert "needs tightrope[gpu])" in capsys.readouterr().out


def named_options() -> dict[str, list[str]]:
    """Every option that a text of the package names, with the places."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if OPTION.search(text) else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for option in OPTION.findall(node.value):
                    place = f"{path.relative_to(SOURCE)}:{node.lineno}"
                    found.setdefault(option, []).append(place)
    return found


def test_every_option_that_a_message_names_exists() -> None:
    known = {
        "--help",
        "--version",
        "--install-completion",
        *ELSEWHERE,
        *MOVED,
        *re.findall(r"--[a-z-]+", HELP),
    }
    for entry in COMMANDS:
        for parameter in command(entry.name).params:
            known.update(parameter.opts, parameter.secondary_opts)
    named = named_options()
    assert len(named) > 20
    assert {option: places for option, places in named.items() if option not in known} == {}


# --- hints that help ------------------------------------------------------------------------

WALK = """mdp const double p;
module walk
  x : [0..4] init 2;
  [walk] x>0 & x<4 -> p : (x'=x+1) + 1-p : (x'=x-1);
  [run] x=3 -> 1/2 : (x'=4) + 1/2 : (x'=2);
  [stay] x=0 | x=4 -> true;
endmodule
label "home" = x=4;
"""
QUESTION = ["walk.prism", "--param", "p=0.1:0.9", "--prop", 'Pmax=? [ F "home" ]']


@pytest.fixture
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model, and a log that does not say how it was sampled."""
    monkeypatch.chdir(tmp_path)
    Path("walk.prism").write_text(WALK)
    rows = [(2, "walk", 3), (3, "run", 4), (2, "walk", 1), (1, "walk", 0), (2, "walk", 3), (3, "walk", 4)]
    rows += [(3, "walk", 2), (1, "walk", 2), (1, "walk", 2), (3, "walk", 4), (3, "run", 2)]
    lines = [",".join(str(value) for value in row) for row in rows * 20]
    Path("log.csv").write_text("\n".join(["x,action,x_next", *lines]) + "\n")


@pytest.mark.thinned(2)
@pytest.mark.usefixtures("walk")
@pytest.mark.parametrize(
    "options",
    [["--region", "l1"], ["--interval", "hoeffding"], ["--sets", "untied", "--interval", "clopper-pearson"]],
)
@pytest.mark.parametrize(
    "command",
    [["learn", "--data", "log.csv", "--ends", "complete"], ["online", "--episodes", "8", "--at", "p=0.6"]],
)
def test_the_hint_of_a_nominal_confidence_helps(
    command: list[str], options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [command[0], *QUESTION, *command[1:]]
    assert app.run([*asked, *options]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("NOMINAL: ")
    advised = re.search(r"hint add ((?:--[a-z]+ [a-z-]+ ?)+)", said)
    assert advised is not None
    changed = advised[1].split()
    kept = [
        word
        for flag, value in zip(options[::2], options[1::2], strict=True)
        if flag not in changed
        for word in (flag, value)
    ]
    assert app.run([*asked, *kept, *changed]) == 0
    assert capsys.readouterr().out.startswith("PROVED: ")


@pytest.mark.usefixtures("walk")
@pytest.mark.parametrize(
    "words", [["learn", *QUESTION, "--data", "walk.csv"], ["info", "log.prism"], ["info", "log"]]
)
def test_a_missing_file_is_not_answered_with_one_of_another_type(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(words) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["learn", "walk.prism", "--data", "lgo.csv"], "did you mean log.csv?"),
        (["info", "wlk.prism"], "did you mean walk.prism?"),
        (["check", "walk.prism", "--prop", "golas.props"], "did you mean goals.props?"),
        (["learn", "walk.prism", "--data", "log.csv", "--param", "p=0.1-0.9"], "p; write p=0.1:0.9"),
        (["learn", "walk.prism", "--data", "log.csv", "--param", "p=0.9:0.1"], "0.9 > 0.1"),
        (["check", "walk.prism", "--prop", GOAL, "--at", "0.5"], "p; write p=0.5"),
        (["check", "walk.prism", "--prop", "", "--at", "p=0.5"], "there is no property to check"),
        (["learn", "walk.prism", "--data", "log.csv", "--sets", "tide"], "'--sets': 'tide' is not one of"),
        (
            ["learn", "walk.prism", "--prop", GOAL, "--data", "log.csv", "--policy", "lgo.csv"],
            "did you mean log.csv?",
        ),
        (
            ["learn", "walk.prism", "--prop", GOAL, "--data", "log.csv", "--policy", "log.csv"],
            "a policy is a JSON file",
        ),
        (["report", "walk.prism"], "name DIR or DIR/result.json"),
        (["export", "walk.prism", "--policy", "log.csv", "--to", "klingon"], "--to is 'klingon', not one of"),
        (["data", "log.xlsx", "--model", "walk.prism"], "save it as CSV"),
        (["learn", "walk.prism", "--propertiy", GOAL], "did you mean --prop?"),
        (["learn", "walk.prism", "--confidence", "0.9"], "--delta is the probability"),
    ],
)
def test_mistakes_of_a_first_hour_are_named(
    words: list[str],
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    walk = "mdp\nconst double p;\nmodule m\n s : [0..1];\n [a] s=0 -> p : (s'=1) + 1-p : true;\nendmodule\n"
    (tmp_path / "walk.prism").write_text(walk + 'label "goal" = s=1;\n')
    (tmp_path / "log.csv").write_text("s,action,next_s\n0,a,1\n")
    (tmp_path / "goals.props").write_text(f"{GOAL}\n")
    (tmp_path / "log.xlsx").write_bytes(b"PK")
    before = sorted(tmp_path.iterdir())
    assert app.run(words) == 2
    assert hint in " ".join(capsys.readouterr().err.split())
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("walk")
def test_the_hint_of_a_misplaced_ellipsoid_helps(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["learn", *QUESTION, "--data", "log.csv", "--ellipsoid", "paper"]
    assert app.run([*asked, "--sets", "tied"]) == 2
    assert capsys.readouterr().err.endswith(
        "hint: leave --ellipsoid out, or choose --sets parameter, expression or rectangular with "
        "--region ellipsoid\n"
    )
    assert app.run([*asked, "--sets", "rectangular", "--region", "ellipsoid", "--accept-nominal"]) == 0
    capsys.readouterr()
    assert app.run([*asked, "--region", "polytope"]) == 2
    assert capsys.readouterr().err.endswith("hint: leave --ellipsoid out, or add --region ellipsoid\n")


def test_a_limit_that_was_reached_names_the_option_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("far.prism").write_text(
        "dtmc module far x : [0..400] init 1;\n"
        "[] x>0 & x<400 -> 1/2 : (x'=x+1) + 1/2 : (x'=x-1);\n"
        "[] x=0 | x=400 -> true; endmodule\n"
    )
    asked = ["check", "far.prism", "--prop", "P=? [ F x=400 ]", "--precision", "1e-17"]
    assert app.run(asked) == 1
    assert "Try a coarser precision" in " ".join(capsys.readouterr().out.split())
    assert app.run([*asked[:-1], "1e-6"]) == 0


def test_the_hint_of_data_that_the_model_does_not_fit_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("coins.prism").write_text(
        "mdp const double p; module coins s : [0..2] init 0;\n"
        "[one] s=0 -> p : (s'=1) + 1-p : (s'=2);\n"
        "[half] s=0 -> p/2 : (s'=1) + 1-p/2 : (s'=2);\n"
        "[rest] s>0 -> true; endmodule\n"
    )
    rows = ["0,one,1"] * 60 + ["0,one,2"] * 140 + ["0,half,1"] * 120 + ["0,half,2"] * 80
    Path("log.csv").write_text("\n".join(["s,action,s_next", *rows]) + "\n")
    asked = [
        "learn",
        "coins.prism",
        "--param",
        "p=0.1:0.9",
        "--data",
        "log.csv",
        "--order",
        "as-read",
        "--prop",
        "Pmax=? [ F s=1 ]",
    ]
    assert app.run([*asked, "--region", "likelihood"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("reason e-value 10^") == 1
    assert "hint --sets tied needs least of the model that is not refuted" in said
    assert app.run([*asked, "--sets", "tied"]) == 1
    assert capsys.readouterr().out.startswith("CONTRADICTED: the data do not fit the model")
    assert app.run([*asked, "--region", "polytope"]) == 1
    assert "reason     the region is empty" in capsys.readouterr().out
    assert app.run([*asked, "--region", "polytope", "--no-fallback"]) == 1
    assert "hint       leave --no-fallback out to use tied sets instead" in capsys.readouterr().out
