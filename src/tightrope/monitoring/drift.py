"""Evidence that parameters have changed: predictions that begin anew, and their price.

Predictions of the past to a power below 1, compensated for it, times predictions that begin anew at an event
j, are a nonnegative supermartingale whatever the true parameters are. Candidates j and powers are mixed with
weights fixed in advance. The least value over all parameters of the domain is bounded from below by tangents
and Gibbs' inequality (`weigh_terms`). Beside the mixture there is an e-detector, whose false alarms have a
bounded rate. Proofs: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.io.results import Anomaly
from tightrope.monitoring.best_fit import BARRIER, BestFit, log_chances_of, moved_parameters, refit
from tightrope.monitoring.departures import SPARE, Parts, held, log_sum, put_back
from tightrope.numerics.arrays import AnyArray, FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.statistics.outcomes import Outcomes

POWERS: FloatArray = np.array([6.0, 3.0, 1.0]) / 8.0
"""The powers λ; their products with counts are exact."""

FIRMNESS: FloatArray = POWERS * (2.0 - POWERS)
"""How firmly a power ties parameters to the past, beside the likelihood itself."""

MOST = 4_000_000
"""Predictions that are kept, periods times outcomes: of the oldest periods nothing is given back."""

_LEAST = 1e-12
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Tangent:
    """−S(θ) ≤ level + Σ tilt·f(θ) over the expressions f; `bend` is minus its curvature, times f."""

    level: float
    tilt: FloatArray
    bend: FloatArray


class Compensation:
    """Predictions of periods, and how often each distribution that depends on parameters was drawn from."""

    def __init__(self, fit: BestFit, outcomes: Outcomes):
        depends = fit.informative[outcomes.expression] > 0.0
        parts = Parts.signatures(outcomes, np.logical_or.reduceat(depends, outcomes.start[:-1]))
        self.expression, self.multiplicity = parts.expression.astype(np.int64), parts.multiplicity
        self.start = np.r_[0, np.cumsum(parts.width)].astype(np.int64)
        self.expressions = len(fit.functions)
        self._part = np.r_[parts.part, -1][parts.outcome]
        self.visits = np.zeros(len(parts))
        self.closed = 0
        self.seen = np.zeros((0, len(self.visits)))
        self.roots = np.zeros((0, len(self.expression)))

    def add(self, transition: OffsetArray, count: OffsetArray) -> None:
        """Count transitions of the period that is not over yet."""
        part = self._part[transition]
        retained = part >= 0
        np.add.at(self.visits, part[retained], count[retained].astype(np.float64))

    def close(self, log_chance: FloatArray) -> None:
        """End a period, all of which was predicted with these logarithms of the probabilities."""
        self.closed += 1
        most = max(MOST // max(len(self.expression), 1), 8)
        self.seen = np.concatenate([self.seen, self.visits[None, :]])[-most:]
        roots = np.exp(log_chance[self.expression] / 8.0)
        self.roots = np.concatenate([self.roots, roots[None, :]])[-most:]
        self.visits = np.zeros(len(self.visits))

    def given_back(self, chance: FloatArray) -> FloatArray:
        """S of the first 0, 1, 2, … periods at these probabilities per expression, for every power, about."""
        result = np.zeros((self.closed + 1, len(POWERS)))
        if len(self.seen):
            each = -(self.seen[:, :, None] * np.log(self._averages(chance)[0])).sum(axis=1)
            result[self.closed + 1 - len(each) :] = np.cumsum(each, axis=0)
        return result

    def shares(self, closed: OffsetArray, share: FloatArray) -> FloatArray:
        """How much of each period there is, if share[j] per power is of the first closed[j] periods."""
        first = self.closed - len(self.seen)
        within = np.arange(first, self.closed)[:, None] < closed[None, :]
        result: FloatArray = within.astype(np.float64) @ share
        return result

    def tangent(self, chance: FloatArray, share: FloatArray) -> Tangent:
        """The tangent of Σ share·S at these probabilities per expression, on the safe side."""
        tilt, bend = np.zeros(self.expressions), np.zeros(self.expressions)
        if not len(self.seen) or not len(self.expression):
            return Tangent(0.0, tilt, bend)
        averages, ratio = self._averages(chance)
        total, size, slope = _slopes(self.seen, share, averages, ratio, self.start)
        level = total - float(((1.0 - POWERS) * share).sum(axis=1) @ self.seen.sum(axis=1))
        slope *= (1.0 - POWERS)[:, None] * self.multiplicity
        np.add.at(tilt, self.expression, slope.sum(axis=0))
        np.add.at(bend, self.expression, POWERS @ slope)
        level += _ROUNDING * size + (_ROUNDING + 2.0**-52 * share.size * len(self.visits)) * float(tilt.sum())
        return Tangent(level, tilt, bend)

    def _averages(self, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ c·(q/c)^λ of each distribution in each period, for every power (1 where there was none), and the
        eighth roots of q/c."""
        least = np.maximum(chance[self.expression], _LEAST)
        ratio = self.roots / least**0.125
        return _averages(self.seen, self.multiplicity * least, ratio, self.start), ratio

    KEPT = ("closed", "visits", "seen", "roots")


@kernel
def _averages(seen: FloatArray, weight: FloatArray, ratio: FloatArray, start: OffsetArray) -> FloatArray:
    result = np.ones((len(seen), len(start) - 1, 3))
    for e in range(len(seen)):
        for s in range(len(start) - 1):
            if seen[e, s] == 0.0:
                continue
            firm, middle, loose = 0.0, 0.0, 0.0
            for o in range(start[s], start[s + 1]):
                cube = ratio[e, o] * ratio[e, o] * ratio[e, o]
                firm += weight[o] * cube * cube
                middle += weight[o] * cube
                loose += weight[o] * ratio[e, o]
            if loose > 0.0:
                result[e, s, 0], result[e, s, 1], result[e, s, 2] = firm, middle, loose
    return result


@kernel
def _slopes(
    seen: FloatArray, share: FloatArray, averages: FloatArray, ratio: FloatArray, start: OffsetArray
) -> tuple[float, float, FloatArray]:
    """Σ share·seen·log(average), what its rounding is in proportion to, and its slopes (q/c)^λ by power and
    outcome."""
    result, slope = np.zeros((3, ratio.shape[1])), np.zeros(3)
    total, size = 0.0, 0.0
    for e in range(len(seen)):
        if share[e, 0] + share[e, 1] + share[e, 2] == 0.0:
            continue
        for s in range(len(start) - 1):
            if seen[e, s] == 0.0:
                continue
            for k in range(3):
                weight, average = share[e, k] * seen[e, s], averages[e, s, k]
                logarithm = np.log(average)
                total += weight * logarithm
                size += weight * (2.0 + abs(logarithm) + 2.0 * (start[s + 1] - start[s]))
                slope[k] = weight / average
            for o in range(start[s], start[s + 1]):
                cube = ratio[e, o] * ratio[e, o] * ratio[e, o]
                result[0, o] += slope[0] * cube * cube
                result[1, o] += slope[1] * cube
                result[2, o] += slope[2] * ratio[e, o]
    return total, size, result


_ROUNDS = 3
_STEPS = 30
_CLOSE = 1e-10
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True, eq=False)
class JointTerms:
    """Term [j, k] has the power λ_k; S is over the first `closed[j]` periods."""

    fit: BestFit
    compensation: Compensation
    past: FloatArray
    since: FloatArray
    closed: OffsetArray

    def bound(
        self, base: FloatArray, guess: FloatArray, start: FloatArray
    ) -> tuple[FloatArray, float, FloatArray]:
        """(π [j, k], u, x): log Σ exp(other − g) ≥ Σ π·(other − log π) − u for any `other`; x: where it
        ended."""
        best: tuple[float, FloatArray, float, FloatArray] | None = None
        logits = guess
        for number in range(_ROUNDS):
            shares = _shares(logits)
            x, most = self._most(shares, start)
            value = weigh_terms(shares, base, most)
            if best is None or value > best[0]:
                best = (value, shares, most, x)
            start = x
            renewed = base - self._explain(x)
            if np.abs(_shares(renewed) - shares).max() < 0.03 or number == _ROUNDS - 1:
                break
            logits = renewed if number == 0 else 0.5 * (logits + renewed)
            logits = np.where(np.isfinite(logits), logits, -np.inf)
        assert best is not None
        return best[1], best[2], best[3]

    def _most(self, shares: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
        """An upper bound on Σ π·g over the domain, and where it is nearly reached."""
        weight = (shares @ POWERS) @ self.past + shares.sum(axis=1) @ self.since
        periods = self.compensation.shares(self.closed, np.where(shares < _NEGLIGIBLE, 0.0, shares))
        x, tangent = self._search(weight, periods, start)
        return x, self.fit.upper(weight, x, tangent.tilt, tangent.level)

    def _explain(self, x: FloatArray) -> FloatArray:
        """g at x, about."""
        functions = self.fit.functions
        chance = functions.at(x)
        logs = np.log(np.where(chance > 0.0, chance, 1.0))
        given = self.compensation.given_back(chance)[self.closed]
        result: FloatArray = POWERS * (self.past @ logs)[:, None] + (self.since @ logs)[:, None] - given
        return result

    def _search(
        self, weight: FloatArray, periods: FloatArray, start: FloatArray
    ) -> tuple[FloatArray, Tangent]:
        """Where weight·log f − S is largest, nearly, and the tangent there.

        Around a point −S is about bend·log f + (tilt − bend)·f, whose maximum is the next one.
        """
        functions, (rows, bound) = self.fit.functions, self.fit.rows
        informed = weight * self.fit.informative
        x, best, trial = start, -math.inf, self.fit.inside(start)
        for _ in range(_STEPS):
            exact = functions.at(trial)
            tangent, chance = self.compensation.tangent(exact, periods), np.maximum(exact, _LEAST)
            value = float(informed @ np.log(chance)) + tangent.level + float(tangent.tilt @ chance)
            value += BARRIER * float(np.log(np.maximum(bound - rows @ trial, 1e-300)).sum())
            rounding = _CLOSE + 1e-13 * abs(value)
            if value < best - rounding:
                trial = 0.5 * (x + trial)
                continue
            is_over, x, best = value <= best + rounding, trial, value
            if is_over:
                break
            slope = (tangent.tilt - tangent.bend) @ functions.linear
            trial = self.fit.search(weight + tangent.bend * chance, x, slope)
        return x, tangent


def weigh_terms(shares: FloatArray, base: FloatArray, most: float) -> float:
    """Σ π·(base − log π) − most, rounded down."""
    used = shares > 0.0
    terms = shares[used] * base[used]
    entropy = -float((shares[used] * np.log(shares[used])).sum())
    return float(terms.sum()) + entropy - most - 1e-9 - 1e-14 * (float(np.abs(terms).sum()) + abs(most))


def _shares(logits: FloatArray) -> FloatArray:
    """Shares in proportion to exp(logits); tiny ones are left out."""
    result: FloatArray = np.exp(logits - logits.max())
    result[result < 1e-6] = 0.0
    result /= result.sum()
    return result


TEMPERED = (16.0, 1.0 / 512.0)
"""All data before a candidate count for so many events in its estimates, or for this part of them."""

SPACING = 1.4
"""Ages of candidates differ at least by this factor."""

REFRESH = 1.5
"""A candidate's estimate is renewed when the events since it was made have grown by this factor."""

ALONE = 16
"""With more parameters than this none is tried alone."""

NAMED = 4
"""So many candidates, those that promise most, are compared when the strongest is asked for."""

WITHIN = 12.0
"""Candidates that promise so much less than the best, in nats, are left out of a sum."""

MANY, FEW = 128.0, 8.0
"""So many candidates have about the same weight: of a stream, and of data in batches."""

_KEPT = (
    *("number", "event", "before", "length", "closed", "estimated_at"),
    *("past", "points", "log_chance", "own"),
)


def log_weight(number: FloatArray, shift: float = MANY) -> FloatArray:
    """Weights ¼·(shift + ½)^¼·(number + shift)^(−5/4), whose sum is at most 1 (convexity); logarithms."""
    first = math.log(0.25) + 0.25 * math.log(shift + 0.5)
    result: FloatArray = first - 1.25 * np.log(number + shift) - 1e-12
    return result


class DriftEvidence:
    """The candidates of one stream, in slots of arrays; `order` lists the used slots, oldest first.

    `before` is the model's log-prediction of the `past` (events per expression, `length` together), own[slot,
    k] that of prediction k since, which was `estimated_at` so many events
    since; `closed` periods were then over. Prediction 0 moves all parameters, the others one each (`alone`).
    """

    def __init__(self, fit: BestFit, outcomes: Outcomes, alone: bool = True, shift: float = MANY):
        self.fit, self.shift = fit, shift
        self.compensation = Compensation(fit, outcomes)
        self._given: FloatArray | None = None
        self.made = 0
        self.order: list[int] = []
        free = len(fit.coordinates.free)
        tried = free if alone and 1 < free <= ALONE else 0
        self.first = np.array([0, *range(tried)], dtype=np.int64)
        self.last = np.array([free, *range(1, tried + 1)], dtype=np.int64)
        share = [0.5] + [0.5 / tried] * tried if tried else [1.0]
        self._log_share = np.log(share)
        self.total = np.zeros(len(fit.functions))
        kinds, size = len(self.first), len(fit.functions)
        self.number, self.event, self.before, self.length, self.closed, self.estimated_at = np.zeros((6, 16))
        self.past, self.own = np.zeros((16, size)), np.zeros((16, kinds))
        self.points, self.log_chance = np.zeros((16, kinds, free)), np.zeros((16, kinds, size))

    def add(self, seen: FloatArray) -> None:
        """Events since the last call, per expression, all predicted before they came."""
        self.own += self.log_chance @ seen
        self.total += seen

    def _since(self) -> FloatArray:
        """The logarithm of the mixture of each candidate's predictions since it began, rounded down."""
        spare = SPARE + len(self.total) * 2.0**-52
        result: FloatArray = np.logaddexp.reduce(self.own * (1.0 + spare) + self._log_share, axis=1) - 1e-9
        return result

    def close(self, log_chance: FloatArray) -> None:
        """The model's own predictions, so far with these logarithms, are about to change."""
        self.compensation.close(log_chance)
        self._given = None

    def _promises(self, log_chance: FloatArray) -> FloatArray:
        """A guess of log P_λ·N_j at its worst θ [slot, λ]; −∞ for slots that are not used."""
        if self._given is None:
            self._given = self.compensation.given_back(np.exp(log_chance))
        explained = self.past @ log_chance
        since = float(self.total @ log_chance) - explained
        ahead = (self._since() - since)[:, None]
        events = (self.total.sum() - self.length)[:, None]
        regained = np.maximum(ahead, 0.0) * (events / (self.length[:, None] * FIRMNESS + events + 1.0))
        result: FloatArray = (self.before - explained)[:, None] * POWERS + ahead - regained
        result += self._given[self.closed.astype(np.int64)]
        unused = np.ones(len(result), dtype=np.bool_)
        unused[self.order] = False
        result[unused] = -math.inf
        return result

    def promise(self, log_chance: FloatArray) -> tuple[float, float]:
        """A guess of what `weigh` finds."""
        result = self._promises(log_chance) - math.log(len(POWERS))
        both = (result + log_weight(np.maximum(self.number, 1.0), self.shift)[:, None], result)
        return log_sum(both[0]), log_sum(both[1])

    def weigh(self, log_chance: FloatArray, start: FloatArray) -> tuple[float, float]:
        """log of the mixture and log of the detector, rounded down; `start` is near the best fit."""
        promised = self._promises(log_chance)
        least = max(float(promised.max()) - WITHIN, -1e200)
        slots = np.flatnonzero(promised.max(axis=1) > least)
        if not len(slots):
            return -math.inf, -math.inf
        shares, most, base = self._bound_terms(slots, promised[slots], start)
        weight = log_weight(self.number[slots], self.shift)[:, None]
        return weigh_terms(shares, base + weight, most), weigh_terms(shares, base, most)

    def _bound_terms(
        self, slots: OffsetArray, promised: FloatArray, start: FloatArray
    ) -> tuple[FloatArray, float, FloatArray]:
        """Shares of the terms, an upper bound on what they are divided by, and their numerators [slot, λ]."""
        past = self.past[slots]
        closed = self.closed[slots].astype(np.int64)
        terms = JointTerms(self.fit, self.compensation, past, self.total - past, closed)
        base = POWERS * self.before[slots][:, None] + self._since()[slots][:, None]
        base = base - math.log(len(POWERS)) - 1e-12
        shares, most, _ = terms.bound(base, promised, start)
        return shares, most, base

    def best(self, log_chance: FloatArray, start: FloatArray) -> tuple[int, float] | None:
        """The slot with the most evidence of its own, and that evidence."""
        promised = self._promises(log_chance)
        result: tuple[int, float] | None = None
        for slot in sorted(self.order, key=lambda slot: -float(promised[slot].max()))[:NAMED]:
            shares, most, base = self._bound_terms(np.array([slot]), promised[[slot]], start)
            value = weigh_terms(shares, base, most)
            if result is None or value > result[1]:
                result = (slot, value)
        return result

    def anomaly(self, names: Sequence[str], slot: int, log_e: float, when: str = "event") -> Anomaly:
        """When the parameters changed, and which of them by how many standard errors."""
        past, since = self.past[slot], int(self.event[slot])
        kind = int((self.own[slot] + self._log_share).argmax()) if len(self.first) > 1 else 0
        text = f"the parameters since {when} {since + 1:,} are not those before"
        if kind:  # that explains it best
            name = names[self.fit.coordinates.free[self.first[kind]]]
            text = f"parameter {name} since {when} {since + 1:,} is not what it was before"
        moved = moved_parameters(self.fit, names, past, self.total - past)
        return Anomaly("drift", text, log_e, (), since, moved)

    def look(self, event: int, before: float, point: FloatArray, log_chance: FloatArray) -> None:
        """Renew estimates, thin the candidates out, and begin one here."""
        self._renew()
        if self.order:
            self._thin(event, self._promises(log_chance).max(axis=1))
        self.made += 1
        slot = next((slot for slot in range(len(self.number)) if slot not in self.order), len(self.number))
        if slot == len(self.number):
            for name in _KEPT:
                full = getattr(self, name)
                setattr(self, name, np.concatenate([full, np.zeros_like(full)]))
        self.number[slot], self.event[slot], self.before[slot] = self.made, event, before
        self.length[slot], self.closed[slot] = self.total.sum(), self.compensation.closed
        self.estimated_at[slot], self.own[slot] = 0.0, 0.0
        self.past[slot], self.points[slot], self.log_chance[slot] = self.total, point, log_chance
        self.order.append(slot)

    def _renew(self) -> None:
        events = self.total.sum() - self.length
        due = np.array(self.order, dtype=np.int64)
        due = due[events[due] >= REFRESH * np.maximum(self.estimated_at[due], 1.0)]
        if not len(due):
            return
        self.estimated_at[due] = events[due]
        lean = np.maximum(TEMPERED[0], TEMPERED[1] * self.event[due])
        tempering = np.minimum(1.0, lean / np.maximum(self.length[due], 1.0))
        weight = (self.total - self.past[due]) + self.past[due] * tempering[:, None]
        points = self.points[due]
        refit(self.fit, weight, points, self.first, self.last)
        rows, kinds, free = points.shape
        inside, result = log_chances_of(self.fit, points.reshape(rows * kinds, free))
        row, kind = np.nonzero(inside.reshape(rows, kinds))
        self.points[due[row], kind] = points[row, kind]
        self.log_chance[due[row], kind] = result[inside]

    def _thin(self, event: int, promise: FloatArray) -> None:
        retained: list[int] = []
        for slot in reversed(self.order):
            if retained and event - self.event[slot] < SPACING * (event - self.event[retained[-1]]):
                if len(retained) > 1 and promise[slot] > promise[retained[-1]]:
                    retained[-1] = slot
                continue
            retained.append(slot)
        self.order = retained[::-1]

    def state(self) -> dict[str, AnyArray]:
        """Everything, slot by slot."""
        past = held(self.compensation, Compensation.KEPT, "past_")
        order = np.array([self.made, *self.order], dtype=np.int64)
        return held(self, (*_KEPT, "total"), "drift_") | past | {"drift_order": order}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        put_back(self, (*_KEPT, "total"), state, "drift_")
        put_back(self.compensation, Compensation.KEPT, state, "past_")
        self._given = None
        self.made, *self.order = (int(number) for number in state["drift_order"])
