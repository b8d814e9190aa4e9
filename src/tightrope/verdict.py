"""The verdict of a result and its assumptions, the same for terminal, page, JSON, Python and exit code.

* `proved`: the bounds follow from model, data and assumptions that are derived from the input or stated;
* `nominal`: an assumption is violated or unverified;
* `contradicted`: the data refute the model;
* `limit`: the computation did not finish.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class AssumptionStatus(StrEnum):
    """Whether the data satisfy an assumption."""

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
    """One assumption of a guarantee: its name, its status and the reason for the status."""

    name: str
    kept: AssumptionStatus
    why: str

    @staticmethod
    def derived(name: str, why: str) -> Assumed:
        return Assumed(name, AssumptionStatus.YES, why)

    @staticmethod
    def stated(name: str, why: str) -> Assumed:
        return Assumed(name, AssumptionStatus.STATED, why)

    @staticmethod
    def violated(name: str, why: str) -> Assumed:
        return Assumed(name, AssumptionStatus.NO, why)

    @staticmethod
    def unverified(name: str, why: str) -> Assumed:
        return Assumed(name, AssumptionStatus.UNKNOWN, why)

    @property
    def holds(self) -> bool:
        """Whether a guarantee may rest on it."""
        return self.kept in (AssumptionStatus.YES, AssumptionStatus.STATED)

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "kept": self.kept.value, "why": self.why}


class Word(StrEnum):
    """The verdict itself."""

    PROVED = "proved"
    NOMINAL = "nominal"
    CONTRADICTED = "contradicted"
    LIMIT = "limit"


_BADNESS = {Word.PROVED: 0, Word.NOMINAL: 1, Word.LIMIT: 2, Word.CONTRADICTED: 3}
_DOUBTS = {AssumptionStatus.NO: "violated", AssumptionStatus.UNKNOWN: "unverified"}


@dataclass(frozen=True)
class Assessment:
    """The verdict, its assumptions, and the reason if it is not `proved`.

    >>> ends = Assumed.unverified("ends", "the log has no column of ends")
    >>> Assessment.of([ends]).word.value, Assessment.of([ends]).exit_code
    ('nominal', 1)
    >>> Assessment.of([]).word.value, Assessment.of([]).exit_code
    ('proved', 0)
    """

    word: Word
    assumptions: tuple[Assumed, ...] = ()
    why: str = ""

    @staticmethod
    def of(
        assumptions: Iterable[Assumed] = (), *, contradicted: str | None = None, limit: str | None = None
    ) -> Assessment:
        """The worst that is known: a refuted model, work that was not finished, an assumption not kept."""
        known = tuple(assumptions)
        if contradicted is not None:
            return Assessment(Word.CONTRADICTED, known, contradicted)
        if limit is not None:
            return Assessment(Word.LIMIT, known, limit)
        open_ones = [one for one in known if not one.holds]
        if open_ones:
            return Assessment(Word.NOMINAL, known, "; ".join(f"{one.name}: {one.why}" for one in open_ones))
        return Assessment(Word.PROVED, known)

    @staticmethod
    def worst(several: Sequence[Assessment]) -> Assessment:
        """One verdict of answers that stand side by side: that of the worst, with what all rest on."""
        least = max(several, key=lambda one: _BADNESS[one.word], default=Assessment(Word.PROVED))
        known = tuple(dict.fromkeys(assumed for one in several for assumed in one.assumptions))
        whys = dict.fromkeys(one.why for one in several if one.word is least.word and one.why)
        return Assessment(least.word, known, "; ".join(whys))

    def given(self, one: Assumed) -> Assessment:
        """The verdict with an assumption more."""
        known = (*self.assumptions, one)
        is_settled = self.word in (Word.CONTRADICTED, Word.LIMIT)
        return Assessment(self.word, known, self.why) if is_settled else Assessment.of(known)

    def headline(self, claim: str, sure: str = "", proved: str = "PROVED") -> str:
        """The verdict (`proved` if nothing is wrong) and the claim; `sure` only if all assumptions hold.

        >>> Assessment.of([]).headline("probability >= 0.7", "confidence 0.99")
        'PROVED: probability >= 0.7, confidence 0.99'
        >>> Assessment.of([Assumed.unverified("ends", "no column")]).headline("probability >= 0.7", "surely")
        'NOMINAL: probability >= 0.7, not guaranteed'
        """
        if self.word is Word.CONTRADICTED:
            return f"{self.word.name}: the data do not fit the model"
        all_hold = all(one.holds for one in self.assumptions)
        limit = "less precise than requested" if self.word is Word.LIMIT else ""
        parts = [claim, sure if all_hold else "not guaranteed", limit]
        return f"{proved if self.is_proved else self.word.name}: {', '.join(part for part in parts if part)}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not `proved`, a line each."""
        if self.word in (Word.PROVED, Word.NOMINAL):
            return self.doubts
        return (*([self.why] if self.why else []), *self.doubts)

    @property
    def doubts(self) -> tuple[str, ...]:
        """The assumptions that do not hold or are not known to, a line each."""
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
