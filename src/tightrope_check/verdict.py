"""What a check found, and what that rests on: every word is the checker's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tightrope_check.arrays import BoolArray

MEANING = "the automaton in the file recognises the formula that is meant"
Assumption = tuple[str, str, str]
"""(name; yes, stated, no or unknown; in words)."""

BELIEVED = "automaton-believed: another program made the automaton of the formula, and nobody checked that"


class Contradiction(Exception):
    """What was derived leaves nothing: no model agrees with what is said of it. A finding, never a proof."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked; `detail` says what went wrong, or what holds.

    >>> Check("rows", True, "at all 3 rows").passed
    True
    """

    name: str
    passed: bool
    detail: str

    @staticmethod
    def everywhere(name: str, wrong: BoolArray, what: str) -> Check:
        """Passed where nothing is `wrong`; otherwise the detail names the first of `what` that is."""
        if not wrong.any():
            return Check(name, True, f"at all {len(wrong)} {what}s")
        detail = f"fails at {int(wrong.sum())} {what}s, first at {what} {int(wrong.argmax())}"
        return Check(name, False, detail)


@dataclass(frozen=True)
class Verdict:
    """All checks, what they prove of each policy, and what that assumes; every word is the checker's own.

    `assumptions`: (name, whether it is satisfied: yes, stated, no or unknown, in words). `contradicted`: why
    no model agrees with the data; then nothing is proved. `bound` says of "model", "property", "data" and
    "policy" whether the file's was found to be the user's own (None: it has none); the checker itself
    compares nothing. Where it was, `values` are what holds there, and `claim` names the one that answers the
    user's question. `answer`: whether a property of the user's with a threshold is "true", "false" or "not
    certified".

    >>> Verdict((Check("rows", True, ""),), {"value": (0.25, 0.5)}, "value").word
    'proved'
    """

    checks: tuple[Check, ...]
    values: Mapping[str, tuple[float, float]]
    kind: str
    assumptions: tuple[Assumption, ...] = ()
    bound: Mapping[str, bool | None] = field(default_factory=dict)
    contradicted: str | None = None
    answer: str | None = None
    claim: str | None = None

    @property
    def valid(self) -> bool:
        return self.contradicted is None and all(check.passed for check in self.checks)

    @property
    def nominal(self) -> bool:
        """Whether the data were not collected in the way that the confidence needs, or nobody knows."""
        return any(status not in ("yes", "stated") for _, status, _ in self.assumptions)

    @property
    def word(self) -> str:
        """The verdict in one word: proved, nominal (also where a check fails), contradicted, or limit where
        the bounds do not decide what is asked."""
        if self.contradicted is not None:
            return "contradicted"
        if self.nominal or not self.valid:
            return "nominal"
        return "limit" if self.answer == "not certified" else "proved"

    @property
    def assumes(self) -> tuple[str, ...]:
        """What is assumed, in words."""
        return tuple(words for _, _, words in self.assumptions)

    @property
    def not_tied(self) -> tuple[str, ...]:
        return tuple(name for name, tied in self.bound.items() if tied is False)


def exactly(number: float | None) -> str:
    """Every digit of it: what is assumed shall not look weaker than it is."""
    return repr(number).removesuffix(".0")
