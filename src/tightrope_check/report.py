"""A verdict as text: one line that says what is proved, then the checks. Bounds are rounded outward."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from tightrope_check.errors import shown

if TYPE_CHECKING:
    from tightrope_check.problem import Certificate
    from tightrope_check.verdict import Verdict

DIGITS = 9


def text_below(value: float, digits: int = DIGITS) -> str:
    """The number with so many digits, rounded down: a lower bound stays one where it is written.

    >>> text_below(0.123456), text_below(2 / 3, 4), text_below(float("-inf"))
    ('0.123456', '0.6666', '-inf')
    """
    return _round(value, digits, ROUND_FLOOR)


def text_above(value: float, digits: int = DIGITS) -> str:
    """The same, rounded up."""
    return _round(value, digits, ROUND_CEILING)


def interval_text(lower: float, upper: float, digits: int = DIGITS) -> str:
    """An interval, both ends rounded outward.

    >>> interval_text(1 / 3, 2 / 3, 4), interval_text(math.inf, math.inf)
    ('[0.3333, 0.6667]', 'infinite')
    """
    if lower == math.inf:
        return "infinite"
    return f"[{text_below(lower, digits)}, {text_above(upper, digits)}]"


def _round(value: float, digits: int, mode: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    shortest = Decimal(repr(float(value)))
    return f"{float(Context(prec=digits, rounding=mode).plus(shortest)):.{digits}g}"


def headline(verdict: Verdict, certificate: Certificate) -> str:
    """The verdict in one line that a layman reads, before everything else."""
    if verdict.contradicted is not None:
        return f"CONTRADICTED: {verdict.contradicted}; nothing is proved"
    failed = [f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed]
    if failed:
        return f"NOT VALID: {failed[0]}"
    data, statement = certificate.problem.data, _statement(verdict, certificate)
    if verdict.nominal:
        why = next(words for _, status, words in verdict.assumptions if status not in ("yes", "stated"))
        return f"NOMINAL: {statement}, which is not guaranteed: {why.removeprefix('NOMINAL: ')}"
    sure = "" if data is None else f" with confidence {confidence_text(data.total_delta)}"
    tied = [name for name, is_tied in verdict.bound.items() if is_tied]
    listed = " and ".join([", ".join(tied[:-1]), tied[-1]] if len(tied) > 1 else tied)
    of = f", of your {listed}" if tied else ", of what is written in the file"
    word = {None: "VALID: ", "true": "VALID: true, ", "false": "FALSE: "}.get(verdict.answer, "UNDECIDED: ")
    return f"{word}{statement}{sure}{of}"


def _statement(verdict: Verdict, certificate: Certificate) -> str:
    """What is proved, and of which policy."""
    objective, name = certificate.problem.objective, verdict.claim or certificate.claims[0].name
    low, high = verdict.values[name]
    if name == "difference":
        done = any(one.policy == "unknown" for one in certificate.claims)
        whose = "what was done" if done else "the baseline"
        return f"the policy's value less that of {whose} lies within {interval_text(low, high)}"
    whose = "" if name == "value" else f" for the {name}".replace("the what", "what")
    upward = (objective.agent == "MAX") != objective.complement
    claim = next(one for one in certificate.claims if one.name == name)
    follows = low == claim.lower if upward else high == claim.upper
    if name == "value" or verdict.answer in ("false", "not certified") or not follows:
        return f"the value lies within {interval_text(low, high)}{whose}"
    return f"at least {text_below(low)}{whose}" if upward else f"at most {text_above(high)}{whose}"


def confidence_text(delta: float) -> str:
    """1 − δ, which is never 1."""
    short = f"{1 - delta:.9g}"
    return f"1 - {delta:g}" if short == "1" else short


def not_tied(verdict: Verdict, certificate: Certificate) -> str:
    """What was compared with nothing of the user's, or nothing."""
    if not verdict.not_tied:
        return ""
    unknown = certificate.problem.automaton is not None and "property" in verdict.not_tied
    automaton = "; the meaning of its automaton is not tied to any formula" if unknown else ""
    return (
        f"NOT TIED to your {', '.join(verdict.not_tied)}: a certificate speaks of what is written in it; "
        f"`tightrope verify` with --model, --prop, --data and --policy compares{automaton}"
    )


def title(verdict: Verdict, certificate: Certificate) -> str:
    """What holds of every policy."""
    whole = "; ".join(f"{name} in {interval_text(low, high)}" for name, (low, high) in verdict.values.items())
    data = certificate.problem.data
    if verdict.word not in ("proved", "limit"):
        return f"{'NOMINAL' if verdict.valid else 'NOT PROVED'}: {whole}"
    return whole if data is None else f"{whole} with confidence {confidence_text(data.total_delta)}"


def rows(verdict: Verdict, certificate: Certificate) -> Iterator[tuple[str, str, str]]:
    """(what, whether it holds, in words): checks, assumptions, and what the file says of itself."""
    for one in verdict.checks:
        yield one.name, "holds" if one.passed else "FAILS", one.detail
    for line in verdict.assumes:
        yield "assumes", "", line
    for name, text in certificate.about.items():
        yield "the file says", "", f"{shown(name)}: {shown(text)}"
