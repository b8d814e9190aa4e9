"""Errors with texts that a user can act on.

A `TightropeError` is shown without a traceback; its `exit_code` is that of the command.

* `InputError` (exit 2): the input is wrong. Names what, where (`Location`), why and what to do.
* `CannotCertify` (exit 1): the input is correct, but no certified answer was found.
"""

from __future__ import annotations

from dataclasses import dataclass


def shown(text: str, besides: str = "\t") -> str:
    """Text of a file, or its name, as it may be shown: nothing in it that a terminal would act on.

    >>> shown("\x1b[2Jmodel.prism")
    '\\\\x1b[2Jmodel.prism'
    """
    if text.isprintable():
        return text
    characters = [
        c if c.isprintable() or c in besides else c.encode("unicode_escape").decode("ascii") for c in text
    ]
    return "".join(characters)


@dataclass(frozen=True)
class Location:
    """A place in a file (or in an option's text), with the offending line for the message.

    `line` and `column` count from 1; `text` is the whole source line.

    >>> print(Location("model.prism", 3, 7))
    model.prism:3:7
    """

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        parts = [shown(self.file)]
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
            return f"    {shown(line)}"
        padding = "".join("\t" if c == "\t" else " " * len(shown(c)) for c in line[: self.column - 1])
        return f"    {shown(line)}\n    {padding}^"


class TightropeError(Exception):
    """Base of all errors meant for the user.

    >>> issubclass(InputError, TightropeError)
    True
    """

    exit_code = 1


class InputError(TightropeError, ValueError):
    """The input is wrong: `message` says what and why, `hint` what to do about it.

    Names of Python arguments stand in backticks, `delta` or `sets="tied"`; the command line shows its own
    options instead (`tightrope.cli.flags`).

    >>> print(InputError("the range is empty", Location("model.prism", 3), hint="swap its ends"))
    model.prism:3: the range is empty
    hint: swap its ends
    """

    exit_code = 2

    def __init__(self, message: str, location: Location | None = None, hint: str | None = None):
        self.message = message
        self.location = location
        self.hint = hint
        super().__init__(message)

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        return type(self), (self.message, self.location, self.hint)

    def __str__(self) -> str:
        head = f"{self.location}: {self.message}" if self.location else self.message
        lines = [head]
        if self.location and (excerpt := self.location.excerpt()):
            lines.append(excerpt)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class CannotCertify(TightropeError):
    """The input is fine, but a limit, a time-out or an empty region stands before an answer.

    >>> CannotCertify.exit_code, InputError.exit_code
    (1, 2)
    """

    exit_code = 1
