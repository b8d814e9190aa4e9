"""Events, which pool the outcomes of choices, with successes and trials; checks of their intervals.

An *event* is a polynomial g that is the probability of an outcome, where `paired` also that of 1 − g. A visit
to a choice with an outcome of probability g is a trial of g; each visit is at most one, chosen by the model
alone. Every outcome of unknown probability belongs to an event, seen or not, so the data do not decide how δ
is shared. [lower, upper] is accepted for K successes in N trials if it is at least as wide as that of the
method:

* clopper-pearson: P(Bin(N, lower) ≥ K) ≤ γ/2 and P(Bin(N, upper) ≤ K) ≤ γ/2.
* hoeffding: the ends are at least √(log(2/γ)/(2N)) away from K/N.
* beta-binomial: at both ends the likelihood ratio of the mixture with the Beta(½, ½) distribution is at least
  1/γ.

0 and 1 are always valid, and an upper end is a lower one of the failures. All is computed in whole numbers of
2⁻¹²⁸, rounded to the safe side, by Stirling's and geometric series (`docs/trust.md`).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import factorial
from typing import Any

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import spend
from tightrope_check.coordinates import Key, Terms, add, key
from tightrope_check.learned import IntervalRows, Learned, RowOrigin, Statements
from tightrope_check.logarithms import log_ratio
from tightrope_check.verdict import Check

_SMALL = 33
_TERMS = (1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360)
_SERIES = [Fraction(*term) for term in _TERMS]
_UNIT = 1 << 128
_LOG_TWO_PI = 18378770664093454835606594728112352797227 * _UNIT // 10**40
"""Rounded down, by less than 2 units."""

_ENOUGH = 10**13
_MOST_TERMS = 100_000


class EventCounts:
    """The events of a model, in the order of their first expression, with successes and trials."""

    def __init__(self, about: Learned, paired: bool):
        outcomes, polynomials = about.outcomes, about.polynomials
        pairs = np.stack([outcomes.expression, outcomes.multiplicity], axis=1)
        distinct, of_pair = np.unique(pairs, axis=0, return_inverse=True)
        number: dict[Key, tuple[int, bool]] = {}
        self.polynomials: list[Terms] = []
        self.links: dict[int, list[tuple[int, int, bool]]] = {}
        event, flipped = np.full(len(distinct), -1), np.zeros(len(distinct), dtype=np.bool_)
        for i, (e, m) in enumerate(distinct.tolist()):
            if not about.unknown[e]:
                continue
            polynomial = add({}, polynomials[e], m)
            spend("events", 400 + 40 * len(polynomial))
            if key(polynomial) not in number:
                if paired:
                    number[key(about.space.complement(polynomial))] = len(self.polynomials), True
                number[key(polynomial)] = len(self.polynomials), False
                self.polynomials.append(polynomial)
            event[i], flipped[i] = number[key(polynomial)]
            self.links.setdefault(e, []).append((int(event[i]), m, bool(flipped[i])))
        self.successes, self.trials = np.zeros((2, len(self.polynomials)), dtype=np.int64)
        event, flipped, owner = event[of_pair.reshape(-1)], flipped[of_pair.reshape(-1)], outcomes.owner
        order = np.lexsort((outcomes.expression, flipped, event, owner))
        order = order[event[order] >= 0]
        # One trial a visit and event: by an outcome of probability g where there is one, else 1 − g.
        _, first = np.unique(owner[order] * (len(self.polynomials) + 1) + event[order], return_index=True)
        order = order[first]
        visits, seen = outcomes.visits[owner[order]], outcomes.seen[order]
        np.add.at(self.trials, event[order], visits)
        np.add.at(self.successes, event[order], np.where(flipped[order], visits - seen, seen))

    def ends_of_expressions(self, lower: FloatArray, upper: FloatArray) -> dict[tuple[int, int], Fraction]:
        """The best of what the events' intervals say of every expression: f = g/m, or (1 − g)/m."""
        result: dict[tuple[int, int], Fraction] = {}
        for e, links in self.links.items():
            for (event, times, flipped), side in product(links, (0, 1)):
                end = Fraction(float((lower, upper)[side != flipped][event]))
                end = (1 - end if flipped else end) / times
                known = result.get((e, side), end)
                result[e, side] = min(known, end) if side else max(known, end)
        return result


def prove(about: Learned, delta: Fraction) -> Statements:
    """Are these intervals of the events, or of the transitions of unknown probability, which share δ?"""
    data, hints, problem = about.data, about.hints, about.problem
    assert data is not None and hints.lower is not None and hints.upper is not None
    if not about.is_untied:
        events, ends = EventCounts(about, data.shared_by == "events"), (hints.lower, hints.upper)
        if len(hints.lower) != len(events.polynomials):
            raise ValueError("the intervals do not fit the model's events")
        method = data.method.partition("+")[0]
        check = _prove(method, "event", (events.successes, events.trials, *ends), delta)
        rows = IntervalRows(about.space, events.polynomials, *ends)
        return Statements(check, {RowOrigin.EVENT: rows}, events.ends_of_expressions(*ends))
    start, size = problem.graph.transition_start, problem.graph.transitions
    if len(hints.lower) != size:
        raise ValueError("the intervals do not fit the model's transitions")
    counts = data.totals(np.arange(size), size)
    trials = np.repeat(np.add.reduceat(counts, start[:-1]), np.diff(start))
    unknown = about.unknown[about.expression]
    counted = tuple(of[unknown] for of in (counts, trials, hints.lower, hints.upper))
    return Statements(_prove(data.method, "transition", counted, delta))


def _prove(method: str, what: str, counted: tuple[Any, ...], delta: Fraction) -> Check:
    """Of (successes, trials, lower, upper)."""
    wrong = Intervals(method, (delta or Fraction(1)) / max(len(counted[0]), 1)).unproved(*counted)
    check = Check.everywhere(f"{what}s' intervals follow from the counts by {method}", wrong, what)
    words = f"{len(wrong)} {what}s share δ = {float(delta):g}, {int(counted[1].sum())} trials"
    return replace(check, detail=words) if check.passed else check


class Intervals:
    """Intervals of one method at one level γ. Logarithms are whole numbers of units, on the safe side."""

    def __init__(self, method: str, gamma: Fraction):
        self.method = method
        self.level = log_ratio(gamma.numerator, gamma.denominator, False)[0]
        self.half = self.level - log_ratio(2, 1, True)[0]

    def unproved(
        self, successes: OffsetArray, trials: OffsetArray, lower: FloatArray, upper: FloatArray
    ) -> BoolArray:
        """Where the interval does not follow from the counts."""
        wrong = ~((successes <= trials) & (lower >= 0) & (lower <= upper) & (upper <= 1))
        for end, trivial, upward in ((lower, lower <= 0, False), (upper, upper >= 1, True)):
            rows = np.flatnonzero(~wrong & ~trivial)
            names = np.stack([successes[rows].astype(np.float64), trials[rows].astype(np.float64), end[rows]])
            _, first, inverse = np.unique(names, axis=1, return_index=True, return_inverse=True)
            part = rows[first]
            spend("intervals from counts", 20 * len(part), 500)
            cases = zip(successes[part].tolist(), trials[part].tolist(), end[part].tolist(), strict=True)
            holds = [self.holds(k, size, p, upward) for k, size, p in cases]
            wrong[rows] |= ~np.array(holds, dtype=np.bool_)[inverse.reshape(-1)]
        return wrong

    def holds(self, k: int, size: int, end: float | Fraction, upward: bool) -> bool:
        """The condition at an end that is neither 0 nor 1: of p = a/b as a lower end."""
        a, b = end.as_integer_ratio()
        if upward:
            k, a = size - k, b - a
        away = k * b - size * a
        if away <= 0:
            return False
        if self.method == "hoeffding":  # 2·(away/b)² ≥ size·log(2/γ)
            return 2 * away * away * _UNIT >= -self.half * size * b * b
        value = _log_point(k, size, a, b)
        if self.method == "clopper-pearson":
            total = self._series(k, size, a, b - a)
            return total is not None and value + log_ratio(total, _UNIT, True)[0] <= self.half
        for part in (k, size - k):
            value += 2 * _stirling(part, True) - _stirling(2 * part, False)
        return -value >= -self.level

    def _series(self, k: int, size: int, a: int, rest: int) -> int | None:
        """An upper bound of 1 + r + r·r' + … over the ratios of probabilities from k upwards: the ratios are
        below 1 and fall, so what is left is below a geometric series."""
        total = term = _UNIT
        for at in range(k, k + _MOST_TERMS):
            top, bottom = (size - at) * a, (at + 1) * rest
            left = term * top
            if left * _ENOUGH <= total * (bottom - top):
                return total - (-left // (bottom - top))
            term = -(-left // bottom)
            total += term
            if at % 64 == 0:
                spend("tails of binomials", 320, 320)
        return None


@lru_cache(maxsize=1 << 16)
def _stirling(count: int, upward: bool) -> int:
    """s(n) in units, on a side; its series is off by less than the first term left out, and has its sign."""
    if count < _SMALL:
        return log_ratio(factorial(count), count**count, upward)[0] + count * _UNIT
    total = (log_ratio(count, 1, upward)[0] + _LOG_TWO_PI) // 2
    for i, c in enumerate(_SERIES):
        total += c.numerator * _UNIT // (c.denominator * count ** (2 * i + 1))
    return total + _UNIT // (156 * count**13) + len(_SERIES) + 3 if upward else total


def _log_point(k: int, size: int, a: int, b: int) -> int:
    """Not below log P(Bin(size, a/b) = k), in units."""
    value = _stirling(size, True) - _stirling(k, False) - _stirling(size - k, False)
    for part, share in ((k, a), (size - k, b - a)):
        if part:
            value -= part * log_ratio(part * b, size * share, False)[0]
    return value
