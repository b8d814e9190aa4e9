"""Errors that point into a PRISM text: place, offending line, and a likely correction."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from tightrope.errors import InputError, Location
from tightrope.prism.parse.syntax import Expression, Position


@dataclass(frozen=True)
class Source:
    """A text and the name it goes by in messages."""

    text: str
    file: str

    def location(self, position: Position | None) -> Location:
        """The place in the file, with its line where the position is known."""
        if position is None:
            return Location(self.file)
        lines = self.text.split("\n")
        line = lines[position.line - 1] if position.line <= len(lines) else None
        return Location(self.file, position.line, position.column, line)

    def error(self, message: str, position: Position | None, hint: str | None = None) -> InputError:
        """An `InputError` at a position of the text."""
        return InputError(message, self.location(position), hint)


class Complaint(Exception):
    """What is wrong with a text, raised where its `Source` is not at hand; never leaves the package."""

    def __init__(self, message: str, position: Position | None, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.position = position
        self.hint = hint

    def in_source(self, source: Source) -> InputError:
        """The same complaint as the error a user sees."""
        return source.error(self.message, self.position, self.hint)


def position_of(expression: Expression) -> Position | None:
    """Where an expression starts; None for one that no text stands behind."""
    position: Position | None = getattr(expression, "position", None)
    return position


def suggestion(name: str, known: Iterable[str], kind: str = "names") -> str:
    """A hint for an unknown name: the nearest known one, else all of them (or that there are none)."""
    names = sorted(set(known))
    if not names:
        return f"there are no {kind}"
    folded = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{folded[near[0]]}'?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"the {kind} are: {shown}"
