"""Wrong calls of the library are refused in the exact words of `logs/wrong_calls.txt`, as `InputError`."""

from __future__ import annotations

import pytest

import tightrope as tr
from log_cases import FOLDER
from places import TESTS
from wrong_calls import CALLS

ROOT = str(TESTS.parent)
WORDS = FOLDER / "wrong_calls.txt"


def expected() -> dict[str, str]:
    """The messages by the names of the calls."""
    pairs = [part.split("\n", 1) for part in WORDS.read_text().split("## ")[1:]]
    return {name: message.rstrip("\n") for name, message in pairs}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_refused_in_these_words(name: str) -> None:
    with pytest.raises(tr.InputError) as caught:
        CALLS[name]()
    assert str(caught.value).replace(ROOT, "…") == expected()[name]
    assert isinstance(caught.value, ValueError)


def test_there_are_many_and_each_has_its_words() -> None:
    assert len(CALLS) >= 140
    assert list(expected()) == list(CALLS)


def test_no_message_refers_to_the_command_line() -> None:
    assert "--" not in WORDS.read_text()
