"""Text files of other tools: errors that point into them.

Readers go through a file once, line by line, and keep only arrays. Where something turns out wrong
later (a state that does not exist, probabilities that do not sum to 1), `line_number` goes through
the file a second time for the place; a good file never pays for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tightrope.errors import InputError, Location
from tightrope.numerics.text_reading import reading


def fail(
    path: Path, line: int, text: str, message: str, token: str | None = None, hint: str | None = None
) -> NoReturn:
    """Raise the error at this line, at the column where `token` stands in it."""
    column = text.find(token) + 1 if token else 0
    shown = text.rstrip("\r\n")
    if column == 0:
        column = len(shown) - len(shown.lstrip()) + 1
    raise InputError(message, Location(str(path), line, column, shown), hint)


def fail_at_nth(
    path: Path,
    index: int,
    counts: Callable[[str], bool],
    message: str,
    after: int = 0,
    hint: str | None = None,
) -> NoReturn:
    """Raise the error at the `index`-th line after line `after` that `counts` says yes to."""
    with reading(path) as file:
        seen = 0
        for number, line in enumerate(file, 1):
            if number > after and counts(line):
                if seen == index:
                    fail(path, number, line, message, hint=hint)
                seen += 1
    raise InputError(message, Location(str(path)), hint)


def shorten(text: str, length: int = 60) -> str:
    """The text for a message: in quotes, long ones cut."""
    stripped = text.strip()
    return f"'{stripped if len(stripped) <= length else stripped[:length] + '…'}'"
