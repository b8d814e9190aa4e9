"""Events, which pool the outcomes of choices, with successes and trials.

An *event* is a polynomial g that is the probability of an outcome, where `paired` also that of 1 − g. A visit
to a choice with an outcome of probability g is a trial of g; each visit is at most one, chosen by the model
alone. Every outcome of unknown probability belongs to an event, seen or not, so that nothing seen decides how
δ is shared.

Is [lower, upper] an interval of the stated method for K successes in N trials, or a wider one?

* clopper-pearson  P(Bin(N, lower) ≥ K) ≤ γ/2 and P(Bin(N, upper) ≤ K) ≤ γ/2.
* hoeffding        the ends are at least √(log(2/γ)/(2N)) away from K/N.
* beta-binomial    at both ends the likelihood ratio of the mixture with the Beta(½, ½) distribution is at
  least 1/γ.

0 and 1 are always fine, and an upper end is a lower one of the failures. Probabilities by Stirling's series
s(n) = log n! − n·log n + n, tails by a geometric series; `docs/trust.md` has the formulas. Every logarithm
comes with its error, and errors are added up.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.certificate.budget import spend
from tightrope.certificate.numbers import Arithmetic, Numbers, log_below
from tightrope.certificate.region.polynomials import Key, Terms, add, key
from tightrope.certificate.region.projection import Ends as ProvedEnds
from tightrope.certificate.region.rows import Ends, Origin, Statements
from tightrope.certificate.statistics.outcomes import Ints, Outcomes, totals
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from tightrope.certificate.learned import Learned

_SMALL = 33
_SERIES = [Fraction(1, 12), Fraction(-1, 360), Fraction(1, 1260), Fraction(-1, 1680), Fraction(1, 1188)]
_SERIES.append(Fraction(-691, 360360))
_LOG_TWO_PI = Fraction(18378770664093454835606594728112352797228, 10**40)
_ENOUGH = Fraction(1, 10**13)
_MOST_TERMS = 100_000
_BLOCK = 1 << 16


class Events:
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
        of_pair = of_pair.reshape(-1)
        self._count(outcomes, event[of_pair].astype(np.int64), flipped[of_pair])

    def __len__(self) -> int:
        return len(self.polynomials)

    def ends_of_expressions(self, lower: FloatArray, upper: FloatArray) -> ProvedEnds:
        """The best of what the events' intervals say of every expression: f = g/m, or (1 − g)/m."""
        result: ProvedEnds = {}
        for e, links in self.links.items():
            for (event, times, flipped), side in product(links, (0, 1)):
                end = Fraction(float((lower, upper)[side != flipped][event]))
                end = (1 - end if flipped else end) / times
                known = result.get((e, side), end)
                result[e, side] = min(known, end) if side else max(known, end)
        return result

    def _count(self, outcomes: Outcomes, event: Ints, flipped: BoolArray) -> None:
        """One trial a visit and event: by an outcome of probability g where there is one, else 1 − g."""
        owner = outcomes.owner
        order = np.lexsort((outcomes.expression, flipped, event, owner))
        order = order[event[order] >= 0]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (np.diff(owner[order]) != 0) | (np.diff(event[order]) != 0)
        order = order[new]
        visits, seen = outcomes.visits[owner[order]], outcomes.seen[order]
        self.successes, self.trials = np.zeros((2, len(self)), dtype=np.int64)
        np.add.at(self.trials, event[order], visits)
        np.add.at(self.successes, event[order], np.where(flipped[order], visits - seen, seen))


def prove(about: Learned, delta: Fraction) -> Statements:
    """Are these intervals of the events, or of the transitions of unknown probability, which share δ?"""
    data, hints, problem = about.data, about.hints, about.problem
    assert data is not None and hints.lower is not None and hints.upper is not None
    if not data.is_untied:
        events, ends = Events(about, data.shared_by == "events"), (hints.lower, hints.upper)
        if len(hints.lower) != len(events):
            raise ValueError("the intervals do not fit the model's events")
        check = _prove(about.n, data.method, "event", (events.successes, events.trials, *ends), delta)
        rows = Ends(about.space, events.polynomials, *ends)
        return Statements(check, {Origin.EVENT: rows}, events.ends_of_expressions(*ends))
    start, size = problem.graph.transition_start, problem.graph.transitions
    if len(hints.lower) != size:
        raise ValueError("the intervals do not fit the model's transitions")
    counts = totals(data, np.arange(size), size)
    trials = np.repeat(np.add.reduceat(counts, start[:-1]), np.diff(start))
    unknown = about.unknown[about.expression]
    counted = tuple(of[unknown] for of in (counts, trials, hints.lower, hints.upper))
    return Statements(_prove(about.n, data.method, "transition", counted, delta))


def _prove(n: Arithmetic, method: str, what: str, counted: tuple[Any, ...], delta: Fraction) -> Check:
    """Of (successes, trials, lower, upper)."""
    wrong = Intervals(n, method, (delta or Fraction(1)) / max(len(counted[0]), 1)).unproved(*counted)
    found = Check.everywhere(f"{what}s' intervals follow from the counts by {method}", wrong, what)
    words = f"{len(wrong)} {what}s share δ = {float(delta):g}, {int(counted[1].sum())} trials"
    return replace(found, detail=words) if found.passed else found


class Intervals:
    """Intervals of one method at one level γ."""

    def __init__(self, n: Arithmetic, method: str, gamma: Fraction):
        self.n, self.method = n, method
        self.log_level = log_below(n, gamma)
        small = [Fraction(factorial(i), i**i) for i in range(_SMALL)]
        value, error = self._log(n.array(small))
        self._table = value + n.array(np.arange(_SMALL)), error + 100 * n.epsilon

    def unproved(self, successes: Ints, trials: Ints, lower: FloatArray, upper: FloatArray) -> BoolArray:
        """Where the interval does not follow from the counts."""
        wrong = ~((successes <= trials) & (lower >= 0) & (lower <= upper) & (upper <= 1))
        for end, trivial, upward in ((lower, lower <= 0, False), (upper, upper >= 1, True)):
            rows = np.flatnonzero(~wrong & ~trivial)
            names = np.stack([successes[rows].astype(np.float64), trials[rows].astype(np.float64), end[rows]])
            _, first, inverse = np.unique(names, axis=1, return_index=True, return_inverse=True)
            holds = np.zeros(len(first), dtype=np.bool_)
            for start in range(0, len(first), _BLOCK):
                part = rows[first[start : start + _BLOCK]]
                holds[start : start + _BLOCK] = self._holds(successes[part], trials[part], end[part], upward)
            wrong[rows] |= ~holds[inverse.reshape(-1)]
        return wrong

    def _holds(self, k: Ints, size: Ints, end: FloatArray, upward: bool) -> BoolArray:
        """The condition at ends that are neither 0 nor 1."""
        n = self.n
        spend("intervals from counts", 20 * len(end), 500)
        p = n.array(end)
        q = 1 - p
        if upward:
            k, p, q = size - k, q, p
        away = n.array(k) - size * p - 4 * n.epsilon * (n.array(k) + size * p)
        result: BoolArray = np.asarray(away > 0, dtype=np.bool_)
        rows = np.flatnonzero(result)
        k, size, p, q, away = k[rows], size[rows], p[rows], q[rows], away[rows]
        if len(rows) == 0:
            return result
        if self.method == "hoeffding":
            needed = size * (n.log_up(n.array([2])) - self.log_level)
            result[rows] = 2 * away * away * (1 - 16 * n.epsilon) >= needed * (1 + 8 * n.epsilon)
            return result
        value, error = self._log_point(k, size, p, q)
        if self.method == "clopper-pearson":
            total, found = self._series(k, size, p / q)
            log_tail = value + error + n.log_up(total)
            half = self.log_level - n.log_up(n.array([2]))[0]
            result[rows] = found & (log_tail + 8 * n.epsilon * np.abs(log_tail) <= half)
            return result
        value = -value
        for part in (k, size - k):
            (twice, twice_error), (once, once_error) = self._stirling(2 * part), self._stirling(part)
            value, error = value + twice - 2 * once, error + twice_error + 2 * once_error
        result[rows] = value - error - 16 * n.epsilon * np.abs(value) >= -self.log_level
        return result

    def _log(self, x: Numbers) -> tuple[Numbers, Numbers]:
        """(log x, a bound on its error), x itself being off by at most a few ε."""
        up, down = self.n.log_up(x), self.n.log_down(x)
        return (up + down) / 2, (up - down) + 8 * self.n.epsilon

    def _stirling(self, counts: Ints) -> tuple[Numbers, Numbers]:
        """(s(n), a bound on its error)."""
        n, x = self.n, self.n.array(np.maximum(counts, _SMALL))
        value, error = self._log(x)
        value, power = (value + n.array([_LOG_TWO_PI])) / 2, 1 / x
        for coefficient in _SERIES:
            value, power = value + n.array([coefficient]) * power, power / (x * x)
        error = error + n.array([Fraction(1, 10**39)]) + power / 156 + 16 * n.epsilon * (2 + np.abs(value))
        small, place = counts < _SMALL, np.minimum(counts, _SMALL - 1)
        return np.where(small, self._table[0][place], value), np.where(small, self._table[1][place], error)

    def _log_point(self, k: Ints, size: Ints, p: Numbers, q: Numbers) -> tuple[Numbers, Numbers]:
        """(log P(Bin(size, p) = k), a bound on its error)."""
        value, error = self._stirling(size)
        for part, expected in ((k, size * p), (size - k, size * q)):
            own, own_error = self._stirling(part)
            log, log_error = self._log(np.where(part > 0, part / expected, self.n.array([1])))
            value, error = value - own - part * log, error + own_error + part * log_error
            error = error + 8 * self.n.epsilon * (np.abs(value) + np.abs(part * log))
        return value, error

    def _series(self, k: Ints, size: Ints, odds: Numbers) -> tuple[Numbers, BoolArray]:
        """Upper bounds of 1 + r + r·r' + … over the ratios of probabilities from k upwards, where found: the
        ratios fall, so what is left is below a geometric series; a first ratio of 1 or more never helps."""
        n, enough = self.n, self.n.array([_ENOUGH])[0]
        total, term = n.zeros(len(k)) + 1, n.zeros(len(k)) + 1
        result, open_rows = n.zeros(len(k)), np.arange(len(k))
        for place in range(_MOST_TERMS):
            spend("tails of binomials", 300 + 10 * len(open_rows), 320 if n.exact else 0)
            at = k[open_rows] + place
            ratio = n.array(size[open_rows] - at) / (at + 1) * odds[open_rows] * (1 + 8 * n.epsilon)
            falls = np.asarray(ratio < 1, dtype=np.bool_)
            rest = np.where(falls, term * ratio / np.where(falls, 1 - ratio, 1), 0)
            done = np.asarray(rest <= enough * total, dtype=np.bool_)
            slack = (1 + (16 * place + 64) * n.epsilon) * falls
            result[open_rows[done]] = ((total + rest) * slack)[done]
            open_rows, term = open_rows[~done], n.trim((term * ratio)[~done], True)
            if len(open_rows) == 0:
                break
            total = n.trim(total[~done] + term, True)
        return result, np.asarray(result > 0, dtype=np.bool_)
