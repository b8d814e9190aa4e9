"""Wrong logs are refused in the exact words of `logs/wrong.txt`: what, where, why, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from log_cases import FOLDER
from tightrope.cli.app import run
from tightrope.cli.flags import as_flags
from tightrope.data.reading import read_data
from tightrope.errors import InputError
from wrong_logs import CASES, WrongLog, model_named, write_case


def expected() -> dict[str, str]:
    """The messages by the names of their logs."""
    parts = (FOLDER / "wrong.txt").read_text().split("## ")[1:]
    pairs = [part.split("\n", 1) for part in parts]
    return {name: message.rstrip("\n") for name, message in pairs}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_wrong_log_is_refused_in_these_words(
    case: WrongLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        read_data(write_case(tmp_path, case), model_named(case.model), **case.words)
    assert str(caught.value) == expected()[case.name]


def test_there_are_many_and_each_has_its_words() -> None:
    assert len(CASES) >= 60
    assert set(expected()) == {case.name for case in CASES}


def test_the_command_line_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = str(FOLDER / "machine.prism")
    words = ["--prop", 'Pmax=? [ F "broken" ]']
    tried = [case for case in CASES if case.model == "machine" and not case.words and case.place is None]
    for case in tried[::5]:
        for file in tmp_path.iterdir():
            file.unlink()
        place = write_case(tmp_path, case)
        assert run(["learn", model, "--data", str(place), *words]) == 2, case.name
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == f"error: {as_flags(expected()[case.name])}\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("variables counted from 1", {"maps": ["wear: -1", "broken: -1"]}),
        ("numbers of the model", {"states": "index"}),
        ("numbers from 1", {"states": "index", "maps": ["state: -1"]}),
        (
            "the other way round",
            {"columns": ["wear=wear_next, broken=broken_next, wear'=wear, broken'=broken"]},
        ),
        (
            "variables changed over",
            {"columns": ["wear=broken, broken=wear, wear'=broken_next, broken'=wear_next"]},
        ),
        ("choices from 1", {"columns": ["choice=action"], "maps": ["choice: -1"]}),
        ("actions by number", {"maps": ["action: 0=run, 1=repair, 2=wait"]}),
        ("a number of two meanings", {"columns": ["choice=action"]}),
    ],
)
def test_what_a_hint_says_helps(
    name: str, words: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = next(case for case in CASES if case.name == name)
    place = write_case(tmp_path, case)
    reading = read_data(place, model_named(case.model), **words)  # type: ignore[arg-type]
    assert reading.counts.steps == reading.rows > 0
