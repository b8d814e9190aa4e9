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

DIGITS = 5
CLOSE_DIGITS = 9
"""Digits of intervals that are narrower than a ten thousandth of their ends."""


def text_below(value: float, digits: int = DIGITS) -> str:
    """Round a lower bound down to so many digits, with commas from 1,000.

    >>> text_below(0.123456), text_below(2 / 3, 4), text_below(1234567.8), text_below(float("-inf"))
    ('0.12345', '0.6666', '1,234,500', '-inf')
    """
    return _round(value, digits, ROUND_FLOOR)


def text_above(value: float, digits: int = DIGITS) -> str:
    """Round an upper bound up."""
    return _round(value, digits, ROUND_CEILING)


def number_text(value: float, digits: int = DIGITS) -> str:
    """Round a number that is no bound to the nearest.

    >>> number_text(2 / 3), number_text(6120.04), number_text(0.1, 2)
    ('0.66667', '6,120', '0.1')
    """
    return _round(value, digits, ROUND_HALF_EVEN)


def bound_text(value: float, is_lower: bool, digits: int = DIGITS) -> str:
    """A bound on one side: rounded down where it is a lower one, up where it is an upper one.

    >>> bound_text(2 / 3, True, 4), bound_text(2 / 3, False, 4)
    ('0.6666', '0.6667')
    """
    return text_below(value, digits) if is_lower else text_above(value, digits)


def interval_text(lower: float, upper: float, digits: int | None = None) -> str:
    """An interval, both ends rounded outward.

    >>> interval_text(1 / 3, 2 / 3, 4), interval_text(0.5, 0.5000004), interval_text(math.inf, math.inf)
    ('[0.3333, 0.6667]', '[0.5, 0.5000004]', 'infinite')
    """
    if lower == math.inf:
        return "infinite"
    digits = digits or (CLOSE_DIGITS if _is_close(lower, upper) else DIGITS)
    return f"[{text_below(lower, digits)}, {text_above(upper, digits)}]"


def _is_close(lower: float, upper: float) -> bool:
    return upper - lower < 1e-4 * max(abs(lower), abs(upper))


def value_text(lower: float, upper: float) -> str:
    """A computed value: its relation to one number where its bounds are close, else to both bounds.

    >>> value_text(0.9774999999, 0.9775000001), value_text(0.25, 0.5), value_text(2.0, 2.0)
    ('= 0.9775 (error <= 1.1e-10)', 'in [0.25, 0.5]', '= 2')
    """
    if lower == upper == math.inf:
        return "is infinite"
    if math.isinf(upper - lower) or (lower != upper and not _is_close(lower, upper)):
        return f"in {interval_text(lower, upper)}"
    middle = Context(prec=DIGITS).plus(Decimal((lower + upper) / 2))
    error = max(abs(Decimal(lower) - middle), abs(Decimal(upper) - middle))
    allowed = f" (error <= {text_above(float(error), 2)})" if error else ""
    return f"= {_grouped(middle)}{allowed}"


def bounded(value: float, is_lower: bool, digits: int = DIGITS) -> str:
    """The relation of a quantity to a bound on one side.

    >>> bounded(2 / 3, True, 4), bounded(float("inf"), False), bounded(float("inf"), True)
    ('>= 0.6666', 'has no finite upper bound', 'is infinite (discount it, or bound the steps)')
    """
    if math.isinf(value) and value > 0.0:
        return "is infinite (discount it, or bound the steps)" if is_lower else "has no finite upper bound"
    return f"{'>=' if is_lower else '<='} {bound_text(value, is_lower, digits)}"


def confidence_text(delta: float) -> str:
    """1 − δ, rounded down.

    >>> confidence_text(0.01), confidence_text(0.1 / 3), confidence_text(1e-12)
    ('0.99', '0.966666666', '0.999999999')
    """
    return _grouped(Context(prec=9, rounding=ROUND_FLOOR).subtract(Decimal(1), Decimal(repr(delta))))


def sure_text(delta: float) -> str:
    """How sure a claim is: at a confidence, or over all parameters of a domain where nothing was learned."""
    return f"confidence {confidence_text(delta)}" if delta else "over the domain"


def _round(value: float, digits: int, mode: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    return _grouped(Context(prec=digits, rounding=mode).plus(Decimal(repr(float(value)))))


def _grouped(number: Decimal) -> str:
    """A rounded number as people write it: commas from 1,000, no zeros at the end, powers of ten at both
    extremes."""
    if number and not -5 <= number.adjusted() < 12:
        digits = f"{number:e}".partition("e")[0]
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return f"{digits}e{number.adjusted()}"
    text = f"{number or abs(number):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def headline(verdict: Verdict, certificate: Certificate) -> str:
    """The verdict in one line that a layman reads, before everything else."""
    if verdict.contradicted is not None:
        return f"CONTRADICTED: {verdict.contradicted}; nothing is proved"
    failed = [f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed]
    if failed:
        return f"NOT VALID: {failed[0]}"
    data, statement = certificate.problem.data, _statement(verdict, certificate)
    if verdict.nominal:
        return f"NOMINAL: {statement}, not guaranteed"
    sure = "" if data is None else f", {sure_text(data.total_delta)}"
    word = {None: "VALID: ", "true": "VALID: true, ", "false": "FALSE: "}.get(verdict.answer, "UNDECIDED: ")
    return f"{word}{statement}{sure}"


def _statement(verdict: Verdict, certificate: Certificate) -> str:
    """What is proved, and of which policy."""
    objective, name = certificate.problem.objective, verdict.claim or certificate.claims[0].name
    low, high = verdict.values[name]
    upward = (objective.agent == "MAX") != objective.complement
    quantity = "probability" if objective.is_probability else f"expected {'reward' if upward else 'cost'}"
    if objective.kind == "AVERAGE":
        quantity = quantity.replace("expected", "long-run average")
    if name == "difference":
        done = any(one.policy == "unknown" for one in certificate.claims)
        whose = "the observed policy" if done else "the baseline"
        return f"difference in {quantity} {value_text(low, high)} for the policy against {whose}"
    whose = "" if name == "value" else f" for the {name}".replace("the what", "what")
    claim = next(one for one in certificate.claims if one.name == name)
    follows = low == claim.lower if upward else high == claim.upper
    if name == "value" or verdict.answer in ("false", "not certified") or not follows:
        return f"{quantity} {value_text(low, high)}{whose}"
    return f"{quantity} {bounded(low if upward else high, upward)}{whose}"


def facts(verdict: Verdict, certificate: Certificate) -> Iterator[tuple[str, str]]:
    """(label, text): what was compared with files of the user's, assumptions, and how many checks passed."""
    compared = [name for name, is_tied in verdict.bound.items() if is_tied]
    parts = [f"your {', '.join(compared)}"] if compared else []
    if verdict.not_tied:
        add = ", ".join(_FLAGS.get(name, f"--{name} FILE") for name in verdict.not_tied)
        parts.append(
            f"{'not ' + ', '.join(verdict.not_tied) if compared else 'nothing of yours'} (add {add})"
        )
    if certificate.problem.automaton is not None and "property" in verdict.not_tied:
        parts.append("the automaton's meaning is not compared with any formula")
    yield "compared", "; ".join(parts)
    for _, status, words in verdict.assumptions:
        yield "assumes" if status in ("yes", "stated") else "reason", words.removeprefix("NOMINAL: ")
    yield "checks", f"{sum(one.passed for one in verdict.checks)} of {len(verdict.checks)} passed"
    for name, (low, high) in verdict.values.items():
        if len(verdict.values) > 1:
            yield name, interval_text(low, high)


_FLAGS = {"model": "--model MODEL", "property": "--prop P", "data": "--data FILE"}


def rows(verdict: Verdict, certificate: Certificate) -> Iterator[tuple[str, str, str]]:
    """(what, whether it holds, in words): checks, and what the file says of itself."""
    for one in verdict.checks:
        yield one.name, "holds" if one.passed else "FAILS", one.detail
    for name, text in certificate.about.items():
        yield "the file says", "", f"{shown(name)}: {shown(text)}"
