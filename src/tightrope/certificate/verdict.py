"""What a check found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tightrope.numerics.arrays import BoolArray


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
    """All checks, what they prove of each policy, and what that rests on. Every word here is the checker's
    own.

    `nominal`: the data were not collected in the way that the confidence needs.
    `bound` says of "model", "property", "data" and "policy" whether what is in the file was found to be the
    user's own (None: there is no such thing in it).

    >>> Verdict((Check("rows", True, ""),), {"value": (0.25, 0.5)}, "value", ()).valid
    True
    """

    checks: tuple[Check, ...]
    values: Mapping[str, tuple[float, float]]
    kind: str
    assumes: tuple[str, ...]
    nominal: bool = False
    bound: Mapping[str, bool | None] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def not_tied(self) -> tuple[str, ...]:
        return tuple(name for name, tied in self.bound.items() if tied is False)
