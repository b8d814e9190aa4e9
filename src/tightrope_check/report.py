"""A verdict as text: one line that says what is proved, then the checks. Bounds are rounded outward."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING

from tightrope_check.errors import shown

if TYPE_CHECKING:
    from tightrope_check.problem import Certificate
    from tightrope_check.verdict import Verdict

DIGITS, CLOSE_DIGITS = 5, 9
"""Digits of numbers, and of intervals that are narrower than a ten thousandth of their ends."""


def text_below(value: float, digits: int = DIGITS) -> str:
    """Round a lower bound down to so many digits, with commas from 1,000."""
    return round_text(value, digits, ROUND_FLOOR)


def text_above(value: float, digits: int = DIGITS) -> str:
    """Round an upper bound up."""
    return round_text(value, digits, ROUND_CEILING)


def interval_text(lower: float, upper: float, digits: int | None = None) -> str:
    """An interval, both ends rounded outward."""
    is_close = upper - lower < 1e-4 * max(abs(lower), abs(upper))
    digits = digits or (CLOSE_DIGITS if is_close else DIGITS)
    return "infinite" if lower == math.inf else f"[{text_below(lower, digits)}, {text_above(upper, digits)}]"


def value_text(lower: float, upper: float) -> str:
    """The relation of a value to one number where its bounds are close, else to both bounds."""
    if math.isinf(lower) or math.isinf(upper) or upper - lower > 1e-4 * max(abs(lower), abs(upper)):
        return "is infinite" if lower == math.inf else f"in {interval_text(lower, upper)}"
    middle = Context(prec=DIGITS).plus(Decimal((lower + upper) / 2))
    error = max(abs(Decimal(lower) - middle), abs(Decimal(upper) - middle))
    allowed = f" (error <= {round_text(error, 2, ROUND_CEILING)})" if error else ""
    return f"= {round_text(middle, DIGITS)}{allowed}"


def bounded(value: float, is_lower: bool, digits: int = DIGITS) -> str:
    """The relation of a quantity to a bound on one side."""
    if math.isinf(value) and value > 0.0:
        return "is infinite (discount it, or bound the steps)" if is_lower else "has no finite upper bound"
    return f">= {text_below(value, digits)}" if is_lower else f"<= {text_above(value, digits)}"


def confidence_text(delta: float) -> str:
    """1 − δ with four digits, of δ below a half, rounded down.

    >>> confidence_text(0.05 / 3), confidence_text(1e-7), confidence_text(1 - 1e-10)
    ('0.98333', '0.9999999', '0.0000000001')
    """
    digits, places = (4, 28) if delta < 0.5 else (28, 4)
    above = Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(repr(delta)))
    return f"{Context(prec=places, rounding=ROUND_FLOOR).subtract(Decimal(1), above).normalize():f}"


def round_text(value: float | Decimal, digits: int, mode: str = ROUND_HALF_EVEN) -> str:
    """Commas from 1,000, no zeros at the end, powers of ten at both extremes."""
    if not math.isfinite(value):
        return f"{value:g}"
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    number = (Context(prec=digits, rounding=mode).plus(exact) + 0).normalize()
    is_extreme = number and not -5 <= number.adjusted() < 12
    return f"{number:e}".replace("e+", "e") if is_extreme else f"{number:,f}"


def headline(verdict: Verdict, certificate: Certificate) -> str:
    """The verdict in one line that a layman reads, before everything else."""
    if verdict.contradicted is not None:
        return f"CONTRADICTED: {verdict.contradicted}; nothing is proved"
    if failed := [f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed]:
        return f"NOT VALID: {failed[0]}"
    data, words = certificate.problem.data, getattr(certificate, "words", None)
    statement = next(iter(words.values())) if words else _statement(verdict, certificate)
    sure = "" if data is None else f", confidence {confidence_text(data.total_delta)}"
    word = {None: "VALID: ", "true": "VALID: true, ", "false": "FALSE: "}.get(verdict.answer, "UNDECIDED: ")
    return f"NOMINAL: {statement}, not guaranteed" if verdict.nominal else f"{word}{statement}{sure}"


def _statement(verdict: Verdict, certificate: Certificate) -> str:
    """What is proved, and of which policy."""
    objective, name = certificate.problem.objective, verdict.claim or certificate.claims[0].name
    low, high = verdict.values[name]
    upward = (objective.agent == "MAX") != objective.complement
    quantity = "long-run average " if objective.kind == "AVERAGE" else "expected "
    quantity = "probability" if objective.is_probability else quantity + ("reward" if upward else "cost")
    if name == "difference":
        other = "observed policy" if any(c.policy == "unknown" for c in certificate.claims) else "baseline"
        return f"difference in {quantity} {value_text(low, high)} for the policy against the {other}"
    whose = "" if name == "value" else f" for the {name}".replace("the what", "what")
    claim = next(one for one in certificate.claims if one.name == name)
    follows = low == claim.lower if upward else high == claim.upper
    if name == "value" or verdict.answer in ("false", "not certified") or not follows:
        return f"{quantity} {value_text(low, high)}{whose}"
    return f"{quantity} {bounded(low if upward else high, upward)}{whose}"


def facts(verdict: Verdict, certificate: Certificate) -> Iterator[tuple[str, str]]:
    """(label, text): what was compared with files of the user's, assumptions, and how many checks passed."""
    compared = ", ".join(name for name, is_tied in verdict.bound.items() if is_tied)
    parts, flags = [f"your {compared}"] * bool(compared), {"model": "--model MODEL", "property": "--prop P"}
    if verdict.not_tied:
        missing = f"not {', '.join(verdict.not_tied)}" if compared else "nothing of yours"
        add = ", ".join(flags.get(name, f"--{name} FILE") for name in verdict.not_tied)
        parts.append(f"{missing} (add {add})")
    if certificate.problem.automaton is not None and "property" in verdict.not_tied:
        parts.append("the automaton's meaning is not compared with any formula")
    yield "compared", "; ".join(parts)
    for _, status, words in verdict.assumptions:
        yield "assumes" if status in ("yes", "stated") else "reason", words.removeprefix("NOMINAL: ")
    yield "checks", f"{sum(one.passed for one in verdict.checks)} of {len(verdict.checks)} passed"
    for name, ends in list(verdict.values.items())[1:]:
        yield name, getattr(certificate, "words", {}).get(name) or interval_text(*ends)


def rows(verdict: Verdict, certificate: Certificate) -> Iterator[tuple[str, str, str]]:
    """(what, whether it holds, in words): checks, and what the file says of itself."""
    for one in verdict.checks:
        yield one.name, "holds" if one.passed else "FAILS", one.detail
    for name, text in certificate.about.items():
        yield "the file says", "", f"{shown(name)}: {shown(text)}"
