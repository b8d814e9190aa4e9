"""Intervals of rates from jumps and exposures: a confidence sequence by a Gamma mixture, in rationals.

The README of this package has classes, the mixture and the choice of b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt
from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.budget import spend, spend_sums
from tightrope_check.coordinates import Key, key, polynomial_range
from tightrope_check.fields import Polynomial
from tightrope_check.logarithms import log_ratio
from tightrope_check.statistics.binomial import UNIT, stirling
from tightrope_check.verdict import Check

if TYPE_CHECKING:
    from tightrope_check.problem import CertifiedProblem


@dataclass(frozen=True, eq=False)
class RateClass:
    """A polynomial with all its multiples, what was seen of them, and b of its mixture."""

    base: Polynomial
    jumps: int
    exposure: Fraction
    scale: Fraction


def classes_of(problem: CertifiedProblem) -> tuple[list[RateClass], dict[int, tuple[int, Fraction]]]:
    """The classes in the order of their first expression, and of every unknown one its class and factor."""
    data, domain, graph = problem.data, problem.domain, problem.graph
    assert data is not None and data.waited is not None and domain is not None
    assert problem.polynomial is not None and problem.expression is not None
    number: dict[Key, int] = {}
    bases: list[Polynomial] = []
    of: dict[int, tuple[int, Fraction]] = {}
    for e in np.unique(problem.expression).tolist():
        polynomial = problem.polynomial[e]
        leading = max(polynomial, default=())
        if leading:
            factor = abs(polynomial[leading])
            base = {monomial: c / factor for monomial, c in polynomial.items()}
            of[e] = number.setdefault(key(base), len(bases)), factor
            bases += [base] if of[e][0] == len(bases) else []
    jumps, exposure = [0] * len(bases), [Fraction(0)] * len(bases)
    counts = data.totals(np.arange(graph.transitions), graph.transitions).tolist()
    owner = np.repeat(np.arange(graph.choices), np.diff(graph.transition_start)).tolist()
    waited = [Fraction(time) for time in data.waited.tolist()]
    spend_sums("exposures", 4 * graph.transitions, [[factor for _, factor in of.values()]], 200)
    rows = zip(problem.expression.tolist(), graph.successor.tolist(), owner, counts, strict=True)
    for e, successor, state, count in rows:
        if e in of and successor != state:
            c, factor = of[e]
            jumps[c] += count
            exposure[c] += factor * waited[state]
    ends = [polynomial_range(base, domain.lower, domain.upper, True) for base in bases]
    scales = [_scale(max(low, Fraction(0)), high) for low, high in ends]
    return [RateClass(*one) for one in zip(bases, jumps, exposure, scales, strict=True)], of


def _scale(low: Fraction, high: Fraction) -> Fraction:
    """1/(2·middle), in some 128 bits; 1 where the rate is 0."""
    if high <= 0:
        return Fraction(1)
    if low <= 0:
        return 50 / high
    square = 1 / (4 * low * high)
    shift = 128 + max(0, square.denominator.bit_length() - square.numerator.bit_length())
    return Fraction(isqrt((square.numerator << (2 * shift)) // square.denominator), 1 << shift)


def excludes(one: RateClass, rate: Fraction, level: Fraction, upward: bool) -> bool:
    """Whether a rate is surely outside, above K/T if `upward`: log M ≥ −log γ, γ = `level`."""
    k, total = one.jumps, one.scale + one.exposure
    if rate <= 0 or (rate * one.exposure > k) != upward or rate * one.exposure == k:
        return False
    value = log_ratio(*_parts(one.scale / total), False)[0] // 2 + stirling(2 * k, False) - stirling(k, True)
    if k:
        value += k * log_ratio(*_parts(k / (total * rate)), False)[0] - k * UNIT
    top, bottom = _parts(rate * one.exposure)
    return value + top * UNIT // bottom >= -log_ratio(*_parts(level), False)[0]


def _parts(number: Fraction) -> tuple[int, int]:
    return number.numerator, number.denominator


def prove(
    problem: CertifiedProblem, classes: Sequence[RateClass], lower: Sequence[float], upper: Sequence[float]
) -> Check:
    """Are these intervals of the classes, which share δ? 0 and ∞ always are ends."""
    assert problem.data is not None
    if not len(lower) == len(upper) == len(classes):
        raise ValueError("the intervals do not fit the model's rates")
    level = Fraction(problem.data.delta) / max(len(classes), 1)
    spend("intervals of rates", 40 * len(classes), 700)
    wrong = [
        not low <= high
        or (low > 0 and not excludes(one, Fraction(low), level, False))
        or (high < inf and not excludes(one, Fraction(high), level, True))
        for one, low, high in zip(classes, lower, upper, strict=True)
    ]
    name = "intervals of rates follow from jumps and exposures"
    if any(wrong):
        return Check.everywhere(name, np.array(wrong, dtype=np.bool_), "rate")
    events = sum(one.jumps for one in classes)
    return Check(name, True, f"{len(classes)} rates share δ = {problem.data.delta:g}, {events} jumps")
