"""What a check found, and what that rests on: every word is the checker's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tightrope.certificate.problem import Problem
from tightrope.numerics.arrays import BoolArray

FIXED = "the visits of every event were fixed in advance, independently of outcomes"
PLANNED = "the amount of data was fixed in advance; the policy may have been adaptive"
ANY = "any policy, any stopping rule, at all times at once"
MEANING = "the automaton in the file recognises the formula that is meant"
BELIEVED = "automaton-believed: another program made the automaton of the formula, and nobody checked that"


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
    user's own (None: there is no such thing in it); the checker itself ties a certificate to nothing.

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


def _exact(number: float | None) -> str:
    """Every digit of it: what is assumed shall not look weaker than it is."""
    return repr(number).removesuffix(".0")


def assumptions(problem: Problem, planned: bool, given: bool) -> tuple[list[str], bool]:
    """(what is assumed, in words; whether the confidence is nominal), derived from method and design.

    * FIXED (Clopper–Pearson, Hoeffding, Weissman's balls). Holds of draws from a generative model, and of
      trajectories that meet an event at most once each (never a choice twice, and events that pool no
      choices): whether one meets it is decided before its outcome is drawn.
    * PLANNED (likelihood whose pilot follows a plan, also as the guard of a slab), ANY (beta-binomial,
      ellipsoid, likelihood otherwise).

    Rows that were left out by their outcomes (censored data) satisfy none of them.
    """
    data = problem.data
    words: list[str] = []
    if problem.assumed_support is not None:
        words.append(
            f"a transition that can happen has at least probability {_exact(problem.assumed_support)}"
        )
    if problem.automaton is not None:
        words.append(BELIEVED if problem.automaton.believed else MEANING)
    if data is None:
        return words, False
    if data.method in ("clopper-pearson", "hoeffding", "weissman"):
        assumed = FIXED
        once = data.design == "trajectories" and not data.repeats and data.is_untied
        holds = data.design == "generative-fixed" or once
    else:
        assumed = PLANNED if planned else ANY
        holds = assumed == ANY or data.design != "adaptive"
    words.append(f"{assumed} (the data say: {data.design})")
    if data.method in ("likelihood", "slab"):
        words.append("batches were cut without looking at outcomes")
        if data.design == "adaptive" and data.planned is not None:
            words.append(f"{data.planned} episodes were planned before the first one")
    if data.method == "slab" and given:
        words.append("the given policy, which is bet on, was not chosen by looking at these data")
    if data.costs is not None:
        low, high, deviation = map(_exact, (data.costs.lower, data.costs.upper, data.costs.deviation))
        spread = f"costs lie within [{low}, {high}]" if data.costs.lower is not None else ""
        words.append(spread or f"the standard deviation of a cost given the past is at most {deviation}")
    if data.censored:
        words.insert(0, "NOMINAL: rows were left out by their outcomes; nothing is guaranteed")
    if not holds:
        words.insert(0, "NOMINAL: the data were not collected as the method needs; nothing is guaranteed")
    return words, data.censored or not holds
