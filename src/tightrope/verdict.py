"""What a result is worth, in one word, and the assumptions that the word rests on.

Every surface (terminal, page, JSON, Python, exit code) shows what is computed here, once:

* `proved`: the bounds follow from model, data and assumptions that are derived from the input or stated;
* `nominal`: an assumption is broken, or nobody knows whether it holds;
* `contradicted`: the data refute the model;
* `limit`: the computation did not finish.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from tightrope.late import dataclass


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


_BADNESS = {Word.PROVED: 0, Word.NOMINAL: 1, Word.LIMIT: 2, Word.CONTRADICTED: 3}
_DOUBTS = {Kept.NO: "not kept", Kept.UNKNOWN: "not known"}


@dataclass(frozen=True)
class Worth:
    """The word, what it rests on, and why it is not `proved` where it is not.

    >>> ends = Assumed("ends", Kept.UNKNOWN, "no column says how episodes ended; --ends complete states it")
    >>> Worth.of([ends]).word.value, Worth.of([ends]).exit_code
    ('nominal', 1)
    >>> Worth.of([]).word.value, Worth.of([]).exit_code
    ('proved', 0)
    """

    word: Word
    assumptions: tuple[Assumed, ...] = ()
    why: str = ""

    @staticmethod
    def of(
        assumptions: Iterable[Assumed] = (), *, contradicted: str | None = None, limit: str | None = None
    ) -> Worth:
        """The worst that is known: a refuted model, work that was not finished, an assumption not kept."""
        known = tuple(assumptions)
        if contradicted is not None:
            return Worth(Word.CONTRADICTED, known, contradicted)
        if limit is not None:
            return Worth(Word.LIMIT, known, limit)
        open_ones = [one for one in known if not one.holds]
        if open_ones:
            return Worth(Word.NOMINAL, known, "; ".join(f"{one.name}: {one.why}" for one in open_ones))
        return Worth(Word.PROVED, known)

    @staticmethod
    def worst(several: Sequence[Worth]) -> Worth:
        """One verdict of answers that stand side by side: that of the worst, with what all rest on."""
        least = max(several, key=lambda one: _BADNESS[one.word], default=Worth(Word.PROVED))
        known = tuple(dict.fromkeys(assumed for one in several for assumed in one.assumptions))
        whys = dict.fromkeys(one.why for one in several if one.word is least.word and one.why)
        return Worth(least.word, known, "; ".join(whys))

    def given(self, one: Assumed) -> Worth:
        """The verdict with an assumption more."""
        known = (*self.assumptions, one)
        is_settled = self.word in (Word.CONTRADICTED, Word.LIMIT)
        return Worth(self.word, known, self.why) if is_settled else Worth.of(known)

    def headline(self, claim: str, sure: str = "") -> str:
        """The word, and the claim as far as it may be made: how `sure` it is only where all is kept.

        >>> Worth.of([]).headline("at least 0.7", "with confidence 0.99")
        'PROVED: at least 0.7 with confidence 0.99'
        >>> Worth.of([Assumed("ends", Kept.UNKNOWN, "no column")]).headline("at least 0.7", "surely")
        'NOMINAL: at least 0.7, which is not guaranteed'
        """
        word = self.word.name
        if self.word is Word.CONTRADICTED:
            return f"{word}: the data refute the model"
        all_hold = all(one.holds for one in self.assumptions)
        text = f"{claim} {sure}".strip() if all_hold else f"{claim}, which is not guaranteed"
        return f"{word}: {text}{', not as close as was asked' if self.word is Word.LIMIT else ''}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not `proved`, a line each."""
        if self.word in (Word.PROVED, Word.NOMINAL):
            return self.doubts
        return (*([self.why] if self.why else []), *self.doubts)

    @property
    def doubts(self) -> tuple[str, ...]:
        """The assumptions that are not kept, a line each."""
        return tuple(
            f"{one.name} {_DOUBTS[one.kept]}: {one.why}" for one in self.assumptions if not one.holds
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The three keys of it that every record has."""
        return {"verdict": self.word, "why": self.why, "assumptions": list(self.assumptions)}

    @property
    def is_proved(self) -> bool:
        return self.word is Word.PROVED

    @property
    def exit_code(self) -> int:
        """0 for `proved` alone."""
        return 0 if self.is_proved else 1
