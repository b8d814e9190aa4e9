"""The options that commands share, and what a command prints."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tightrope.cli.app import load_group
from tightrope.cli.options import PANELS, parse_constants
from tightrope.cli.output import build_progress, group, print_facts, print_json, print_table, warn
from tightrope.errors import InputError


def test_constants_in_order_from_one_or_several_options() -> None:
    assert parse_constants(["n=50, k=2", "fast=true"]) == {"n": "50", "k": "2", "fast": "true"}
    assert parse_constants(["low=-1/3"]) == {"low": "-1/3"}
    assert parse_constants(None) == {}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("n", 1, "'n' does not give a constant its value"),
        ("", 1, "'' does not give a constant its value"),
        ("n=", 1, "'n=' does not give a constant its value"),
        ("=5", 1, "'=5' does not give a constant its value"),
        ("n=5,,k=2", 5, "'' does not give a constant its value"),
        ("n=5, 2k=2", 6, "'2k=2' does not give a constant its value"),
        ("n=5,k", 5, "'k' does not give a constant its value"),
        ("n=5,n=6", 5, "constant 'n' is given twice"),
        ("a b=3", 1, "'a b=3' does not give a constant its value"),
    ],
)
def test_wrong_constants_point_at_the_entry(text: str, column: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_constants([text])
    assert caught.value.message == message
    assert str(caught.value).startswith(f"--const:1:{column}: ")


def test_json_is_one_line_of_plain_values(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(
        {
            "states": np.int64(3),
            "value": np.float64(0.25),
            "unbounded": float("inf"),
            "below": np.array([-np.inf, 0.5]),
            "unknown": float("nan"),
            "exact": Fraction(1, 3),
            "certified": np.bool_(True),
            "file": Path("a/b"),
            "nested": {"θ": (1, None)},
        }
    )
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "states": 3,
        "value": 0.25,
        "unbounded": "inf",
        "below": ["-inf", 0.5],
        "unknown": "nan",
        "exact": "1/3",
        "certified": True,
        "file": "a/b",
        "nested": {"θ": [1, None]},
    }


def test_json_refuses_what_it_has_no_form_for() -> None:
    with pytest.raises(TypeError, match="no JSON form for object"):
        print_json({"thing": object()})


def test_tables_keep_within_the_terminal_and_print_brackets_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_facts("bench:rover(10,10)", [("domain", "p in [bold]"), ("labels", ", ".join(["target (1)"] * 20))])
    print_table("Results", ("model", "lower"), [("a", "0.5"), ("b", "10.25")])
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].strip() == "bench:rover(10,10)"
    assert "p in [bold]" in out
    assert [line.split() for line in lines[-2:]] == [["a", "0.5"], ["b", "10.25"]]


def test_messages_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    warn("one deadlock")
    assert capsys.readouterr() == ("", "warning: one deadlock\n")
    assert group(1234567) == "1,234,567"


class Terminal:
    """A stderr that says it is a terminal and keeps what it is sent."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def test_progress_shows_on_a_terminal_once_a_build_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with build_progress("quick.prism") as progress:
        progress(10, 20)
    assert terminal.text == ""
    monkeypatch.setattr("tightrope.cli.output.PATIENCE", 0.0)
    with build_progress("slow[1].prism") as progress:
        progress(120_000, 1_500_000)
    assert "building slow[1].prism: 120,000 states, 1,500,000 transitions" in terminal.text


def test_progress_is_silent_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tightrope.cli.output.PATIENCE", 0.0)
    with build_progress("model.prism") as progress:
        progress(120_000, 1_500_000)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("command", ["learn", "plan", "online", "watch", "verify"])
def test_options_that_the_help_does_not_list_are_described_by_another_command(command: str) -> None:
    """They are taken all the same, and the help says whose help describes them."""
    parser = load_group(command).commands[command]
    hidden = [option for option in parser.params if getattr(option, "hidden", False)]
    assert hidden
    _, _, said = parser.help.partition("Options beyond those listed here: ")
    described = {}
    for part in said.split("; "):
        names, _, home = part.rstrip(".").removesuffix(" --help')").partition(" (see 'tightrope ")
        described |= dict.fromkeys(names.split(", "), home)
    assert set(described) == {max(option.opts, key=len) for option in hidden}
    for option in hidden:
        home = described[max(option.opts, key=len)]
        (listed,) = [each for each in load_group(home).commands[home].params if each.opts == option.opts]
        assert not listed.hidden


@pytest.mark.parametrize("command", ["check", "data", "learn", "plan", "online", "sample", "watch"])
def test_options_stand_in_named_panels(command: str) -> None:
    parser = load_group(command).commands[command]
    options = [option for option in parser.params if option.param_type_name == "option"]
    listed = [option for option in options if not option.hidden]
    named = [option for option in listed if option.rich_help_panel in PANELS]
    assert len(named) >= 0.8 * len(listed)
    assert {option.rich_help_panel for option in named} >= {"Model and property", "Output"}
