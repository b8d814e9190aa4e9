"""Every command that reads logs takes the same words for it, and treats them alike."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from log_cases import FOLDER
from tightrope.cli.app import load_group, run
from tightrope.io.log_words import WORDS, LogWords, load_reading, reading_text

COMMANDS = ("data", "draft", "learn", "compare", "improve", "doctor", "plan", "watch", "verify")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_every_word(command: str) -> None:
    options = {option.name: option for option in load_group(command).commands[command].params}
    for name, word in WORDS.items():
        assert options[name].opts == [word.flag], name
        assert options[name].rich_help_panel == "Log"
        assert options[name].hidden == (command not in ("data", "draft") and name != "reading")


def test_python_takes_the_same_words() -> None:
    more = ["threads", "progress", "observers"]
    assert {one.name for one in fields(LogWords)} - {"overridden"} == WORDS.keys() | set(more)
    for function in (tr.read_data, tr.read_exposure):
        assert list(signature(function).parameters)[2:] == [*WORDS, *more]


def test_saved_readings_hold_what_is_said_of_a_log(tmp_path: Path) -> None:
    said: dict[type, Any] = {bool: True, int: 3}
    values = {name: said.get(word.saved, "time") for name, word in WORDS.items() if word.saved is not None}
    (tmp_path / "log.reading.toml").write_text(reading_text({**values, "columns": {"state": "s"}}))
    assert load_reading(tmp_path / "log.reading.toml") == {**values, "columns": {"state": "s"}}
    assert values.keys() == WORDS.keys() - {
        *("columns", "maps", "reading", "since", "window", "chosen_at", "engine", "scheduler")
    }


GOAL = ["--prop", "P=? [ F broken ]"]
LOG = str(FOLDER / "canonical.csv")


def asked(command: str, log: str, folder: Path) -> list[str]:
    """A call of the command on a log."""
    model, param = str(FOLDER / "machine.prism"), ["--param", "p=0.01:0.99,q=0.01:0.99"]
    if command == "draft":
        return ["draft", log, "-o", str(folder / "m.prism")]
    if command == "data":
        return ["data", log, "--model", model, *param]
    if command == "verify":
        certificate = folder / "run.cert"
        certificate.write_text("")
        return ["verify", str(certificate), "--model", model, *param, "--data", log]
    more = {
        "compare": ["--prop", "Pmin=? [ F broken ]", "--policy", str(folder / "none.json")],
        "improve": ["--prop", "Pmin=? [ F broken ]"],
        "plan": [*GOAL, "--gap", "0.1"],
        "watch": [],
    }
    return [command, model, *param, "--data", log, *more.get(command, ["--prop", "Pmin=? [ F broken ]"])]


WRONG = [
    (["--states", "colour"], "states are not named by 'colour'"),
    (["--design", "loose"], "'loose' is not a sampling design"),
    (["--ends", "open"], "--ends is 'open', and it may be 'complete'"),
    (["--order", "random"], "--order is 'random', and it may be 'as-read' or 'time'"),
    (["--gaps", "lost"], "--gaps is 'lost', and it may be 'outage'"),
    (["--planned-episodes", "0"], "--planned-episodes is 0, not a positive number"),
    (["--engine", "ray"], "--engine: 'ray' is not an engine"),
    (["--scheduler", "host:1"], "--scheduler requires --engine dask or --engine spark"),
    (["--since", "soon"], "--since is 'soon', not the number of an event"),
    (["--since", "2", "--window", "3"], "--since and --window both select events"),
    (
        ["--until-now", "--ends", "complete"],
        "--ends, --watched-until and --until-now each state how episodes",
    ),
    (["--reading", "none.reading.toml"], "none.reading.toml: the import settings cannot be read"),
]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "verify"])
def test_every_command_refuses_the_same_words(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, message in WRONG:
        assert run([*asked(command, LOG, tmp_path), *words]) == 2, words
        error = capsys.readouterr().err
        assert error.startswith(f"error: {message}"), error


@pytest.mark.parametrize("words", [["--engine", "spark"], ["--since", "2"], ["--window", "5"]])
def test_watch_refuses_what_it_cannot_do(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*asked("watch", LOG, tmp_path), *words]) == 2
    assert "watch processes all events in order on this machine" in capsys.readouterr().err


def test_commands_read_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same words on a log of other names: each command says that it is read in the same way."""
    words = ["--columns", "action=cmd", "--ends", "complete", "--order", "as-read"]
    words += ["--planned-episodes", "60"]
    shown: dict[str, str] = {}
    for command in ("data", "learn", "improve", "doctor"):
        run([*asked(command, str(FOLDER / "next-row.csv"), tmp_path), *words, "--verbose"])
        shown[command] = " ".join(capsys.readouterr().out.split())
    for command, text in shown.items():
        assert "wear, broken, action = cmd, episode = run; next states from the next row" in text, command
        assert "60 episodes were planned, 60 came: pilot and bets follow the plan" in text, command
