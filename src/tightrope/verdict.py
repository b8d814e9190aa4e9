"""What a result is worth, in one word, and the assumptions that the word rests on.

Every surface (terminal, page, JSON, Python, exit code) shows what is computed here, once:

* `proved`: the bounds follow from model, data and assumptions that are derived from the input or stated;
* `nominal`: an assumption is broken, or nobody knows whether it holds;
* `contradicted`: the data refute the model;
* `limit`: the computation did not finish.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kept(StrEnum):
    """Whether an assumption holds of the data at hand."""

    YES = "yes"
    """It follows from the input."""

    STATED = "stated"
    """The user says so; nothing in the input could show it."""

    NO = "no"
    """The input says otherwise."""

    UNKNOWN = "unknown"
    """Neither the input nor the user says."""


@dataclass(frozen=True)
class Assumed:
    """One assumption of a guarantee: its name, whether it is kept, and how that is known."""

    name: str
    kept: Kept
    why: str

    @property
    def holds(self) -> bool:
        """Whether a guarantee may rest on it."""
        return self.kept in (Kept.YES, Kept.STATED)

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "kept": self.kept.value, "why": self.why}


class Word(StrEnum):
    """The verdict itself."""

    PROVED = "proved"
    NOMINAL = "nominal"
    CONTRADICTED = "contradicted"
    LIMIT = "limit"


@dataclass(frozen=True)
class Verdict:
    """The word, what it rests on, and why it is not `proved` where it is not.

    >>> ends = Assumed("ends", Kept.UNKNOWN, "no column says how episodes ended; --ends complete states it")
    >>> Verdict.of([ends]).word.value, Verdict.of([ends]).exit_code
    ('nominal', 1)
    >>> Verdict.of([]).word.value, Verdict.of([]).exit_code
    ('proved', 0)
    """

    word: Word
    assumptions: tuple[Assumed, ...] = ()
    why: str = ""

    @staticmethod
    def of(
        assumptions: Iterable[Assumed] = (), *, contradicted: str | None = None, limit: str | None = None
    ) -> Verdict:
        """The worst that is known: a refuted model, work that was not finished, an assumption not kept."""
        known = tuple(assumptions)
        if contradicted is not None:
            return Verdict(Word.CONTRADICTED, known, contradicted)
        if limit is not None:
            return Verdict(Word.LIMIT, known, limit)
        open_ones = [one for one in known if not one.holds]
        if open_ones:
            return Verdict(Word.NOMINAL, known, "; ".join(f"{one.name}: {one.why}" for one in open_ones))
        return Verdict(Word.PROVED, known)

    @property
    def is_proved(self) -> bool:
        return self.word is Word.PROVED

    @property
    def exit_code(self) -> int:
        """0 for `proved` alone."""
        return 0 if self.is_proved else 1
