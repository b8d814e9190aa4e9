"""What can go wrong, in words a user can act on.

Every failure the user can do something about is a `TightropeError`. The command line prints
its text and leaves with its `exit_code`; nothing else of ours is ever shown as a traceback.

* `InputError` (exit 2): the input is wrong. Says what, where (`Location`), why and what to do.
* `CannotCertify` (exit 1): the input is fine, but no certified answer came out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

E = TypeVar("E", bound=Enum)


@dataclass(frozen=True)
class Location:
    """A place in a file (or in an option's text), with the offending line for the message.

    `line` and `column` count from 1; `text` is the whole source line.
    """

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        parts = [self.file]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(parts)

    def excerpt(self) -> str:
        """The source line with a caret under the column, or nothing where there is no text."""
        if self.text is None:
            return ""
        line = self.text.rstrip("\r\n")
        if self.column is None:
            return f"    {line}"
        padding = "".join("\t" if c == "\t" else " " for c in line[: self.column - 1])
        return f"    {line}\n    {padding}^"


class TightropeError(Exception):
    """Base of all errors meant for the user."""

    exit_code = 1


class InputError(TightropeError):
    """The input is wrong: `message` says what and why, `hint` what to do about it."""

    exit_code = 2

    def __init__(self, message: str, location: Location | None = None, hint: str | None = None):
        self.message = message
        self.location = location
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.location}: {self.message}" if self.location else self.message
        lines = [head]
        if self.location and (excerpt := self.location.excerpt()):
            lines.append(excerpt)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class CannotCertify(TightropeError):
    """The input is fine, but a limit, a time-out or an empty region stands before an answer."""

    exit_code = 1


def chosen(option: str, kinds: type[E], value: object) -> E:
    """The choice that an option names; the choice itself is accepted as well."""
    try:
        return kinds(value)
    except ValueError:
        known = ", ".join(kind.value for kind in kinds)
        raise InputError(f"The {option!r} option must be one of {known}, got {value!r}") from None
