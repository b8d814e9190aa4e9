"""Parameters that change at an unknown time: predictions that begin anew.

Let P_λ be how much better the model's own predictions of the past up to an event j did than the truth, to the
power λ and compensated for it (`compensation`): a martingale that begins at 1. Let N_j be the ratio
q_j(since)/p_θ*(since) for predictions that begin anew at j, without a power. One after the other, P_λ·N_j is
a non-negative supermartingale that begins at 1 whatever θ* is: evidence that what came since j does not fit
the parameters of what came before, once its least value over all θ is taken (`joint_bound`). A λ near 1 pays
for not knowing the past parameters, about λ²·(d/2)·log n; a small one ties parameters to the past less
firmly, which hardly matters while the past is much longer than what came since.

q_j is a mixture of d + 1 predictions: in one all parameters begin anew, which pays about (d/2)·log of the
events since; in each of the others one parameter moves alone and the rest stays at the estimate of the past,
which pays ½·log and log 2d for not knowing which.

A mixture over j and λ, with weights that sum to at most 1 and are fixed in advance, is evidence, too, and
leaving terms out only lowers it. So candidates are kept at ages that grow geometrically (of those that are
close the one with the most evidence stays). Candidates are numbered in the order in which they begin, and
their weights follow from the number alone: that of a candidate that never begins, or is dropped, is wasted,
not given to others.

Beside the mixture there is a detector without weights, R = Σ_j P_λ(j)·N_j, averaged over λ. One candidate
begins with every look, and P_λ is expected to stay where it is, so R plus P_λ times the number of looks that
are left until the t-th is a non-negative supermartingale that begins at t: R reaches 1/α within the first t
looks with probability at most α·t. That is a rate of false alarms, not a probability, and many nats faster
(an e-detector: Shin, Ramdas and Rinaldo 2024).

The first estimates after j lean on the data before it, tempered to the weight of about as many events as lie
between two looks: where nothing has changed little is lost, and where something has new data take over soon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.monitoring.best_fit import BestFit, log_chances_of
from tightrope.monitoring.compensation import FIRMNESS, POWERS, Compensation
from tightrope.monitoring.joint_bound import JointTerms, weigh_terms
from tightrope.monitoring.refit import refit
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.statistics.outcomes import Outcomes

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

_SPARE = 1e-11
_KEPT = (
    *("number", "event", "before", "length", "lean", "closed", "estimated_at"),
    *("past", "points", "log_chance", "own"),
)


def log_weight(number: FloatArray) -> FloatArray:
    """The logarithm of the weight of candidates by number, 1, 2, …: those of all sum to less than 1.

    w = ¼·128.5^¼·k^(−5/4) for k = number + 128, a convex function, so that their sum is at most the integral
    from 128.5 on, which is 1.
    """
    found: FloatArray = math.log(0.25) + 0.25 * math.log(128.5) - 1.25 * np.log(number + 128.0) - 1e-12
    return found


class DriftEvidence:
    """The candidates of one stream, in slots of arrays; `order` says which slots are used, oldest first.

    Of the candidate in a slot: `before` is the model's log-prediction of the `past` (events per expression,
    `length` together), own[slot, k] that of its k-th prediction since, which began `lean`ing on so many
    events of the past and was `estimated_at` so many events since. When it began, `closed` periods of the
    model's own predictions were over. Prediction 0 moves all parameters, the
    others one each.
    """

    def __init__(self, fit: BestFit, outcomes: Outcomes):
        self.fit = fit
        self.compensation = Compensation(fit, outcomes)
        self._given: FloatArray | None = None
        self.made = 0
        self.order: list[int] = []
        free = len(fit.coordinates.free)
        alone = free if 1 < free <= ALONE else 0
        self.first = np.array([0, *range(alone)], dtype=np.int64)
        self.last = np.array([free, *range(1, alone + 1)], dtype=np.int64)
        share = [0.5] + [0.5 / alone] * alone if alone else [1.0]
        self._log_share = np.log(share)
        self.total = np.zeros(len(fit.functions))
        self._grow(16)

    def _grow(self, slots: int) -> None:
        kinds, free, size = len(self.first), len(self.fit.coordinates.free), len(self.fit.functions)
        shapes: dict[str, tuple[int, ...]] = {
            "past": (size,),
            "points": (kinds, free),
            "log_chance": (kinds, size),
            "own": (kinds,),
        }
        for name in _KEPT:
            larger = np.zeros((slots, *shapes.get(name, ())))
            smaller = getattr(self, name, larger[:0])
            larger[: len(smaller)] = smaller
            setattr(self, name, larger)

    number: FloatArray
    event: FloatArray
    before: FloatArray
    length: FloatArray
    lean: FloatArray
    closed: FloatArray
    estimated_at: FloatArray
    past: FloatArray
    points: FloatArray
    log_chance: FloatArray
    own: FloatArray

    def add(self, seen: FloatArray, transition: OffsetArray, count: OffsetArray) -> None:
        """Events since the last call, per expression and per transition, all predicted before they came."""
        self.compensation.add(transition, count)
        self.own += self.log_chance @ seen
        self.total += seen

    def _since(self) -> FloatArray:
        """The logarithm of the mixture of each candidate's predictions since it began, rounded down."""
        spare = _SPARE + len(self.total) * 2.0**-52
        terms = self.own * (1.0 + spare) + self._log_share
        largest = terms.max(axis=1)
        found: FloatArray = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)) - 1e-9
        return found

    def close(self, log_chance: FloatArray) -> None:
        """The model's own predictions, so far with these logarithms, are about to change."""
        self.compensation.close(log_chance)
        self._given = None

    def _promises(self, log_chance: FloatArray) -> FloatArray:
        """What log P_λ·N_j may be for its worst θ [slot, λ], a guess; −∞ for slots that are not used.

        `log_chance` are the model's present predictions. The maximum over θ exceeds what they explain; by how
        much is guessed, from how firmly λ holds them.
        """
        if self._given is None:
            self._given = self.compensation.given_back(np.exp(log_chance))
        explained = self.past @ log_chance
        since = float(self.total @ log_chance) - explained
        ahead = (self._since() - since)[:, None]
        events = (self.total.sum() - self.length)[:, None]
        regained = np.maximum(ahead, 0.0) * (events / (self.length[:, None] * FIRMNESS + events + 1.0))
        found: FloatArray = (self.before - explained)[:, None] * POWERS + ahead - regained
        found += self._given[self.closed.astype(np.int64)]
        unused = np.ones(len(found), dtype=np.bool_)
        unused[self.order] = False
        found[unused] = -math.inf
        return found

    def promise(self, log_chance: FloatArray) -> tuple[float, float]:
        """A guess of what `weigh` finds."""
        found = self._promises(log_chance) - math.log(len(POWERS))
        both = (found + log_weight(np.maximum(self.number, 1.0))[:, None], found)
        return _log_sum(both[0]), _log_sum(both[1])

    def weigh(self, log_chance: FloatArray, start: FloatArray) -> tuple[float, float]:
        """log of the mixture and log of the detector, rounded down; `start` is near the best fit."""
        promised = self._promises(log_chance)
        least = max(float(promised.max()) - WITHIN, -1e200)
        slots = np.flatnonzero(promised.max(axis=1) > least)
        if not len(slots):
            return -math.inf, -math.inf
        shares, most, base = self._bound_terms(slots, promised[slots], start)
        weight = log_weight(self.number[slots])[:, None]
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
        found: tuple[int, float] | None = None
        for slot in sorted(self.order, key=lambda slot: -float(promised[slot].max()))[:NAMED]:
            shares, most, base = self._bound_terms(np.array([slot]), promised[[slot]], start)
            value = weigh_terms(shares, base, most)
            if found is None or value > found[1]:
                found = (slot, value)
        return found

    def moved_alone(self, slot: int) -> int | None:
        """The parameter, by its place among the free ones, that explains a candidate best; None: several."""
        kind = int((self.own[slot] + self._log_share).argmax())
        return int(self.first[kind]) if len(self.first) > 1 and kind else None

    def look(self, event: int, before: float, point: FloatArray, log_chance: FloatArray) -> None:
        """Renew estimates, thin the candidates out, and begin one here.

        `before` is the model's log-prediction so far, `point` its present estimate with `log_chance`.
        """
        self._renew()
        if self.order:
            self._thin(event, self._promises(log_chance).max(axis=1))
        self.made += 1
        slot = next((slot for slot in range(len(self.number)) if slot not in self.order), len(self.number))
        if slot == len(self.number):
            self._grow(2 * slot)
        self.number[slot], self.event[slot], self.before[slot] = self.made, event, before
        self.length[slot], self.lean[slot] = self.total.sum(), max(TEMPERED[0], TEMPERED[1] * event)
        self.estimated_at[slot], self.own[slot], self.closed[slot] = 0.0, 0.0, self.compensation.closed
        self.past[slot], self.points[slot], self.log_chance[slot] = self.total, point, log_chance
        self.order.append(slot)

    def _renew(self) -> None:
        events = self.total.sum() - self.length
        due = np.array(
            [s for s in self.order if events[s] >= REFRESH * max(self.estimated_at[s], 1.0)], dtype=np.int64
        )
        if not len(due):
            return
        self.estimated_at[due] = events[due]
        tempering = np.minimum(1.0, self.lean[due] / np.maximum(self.length[due], 1.0))
        weight = (self.total - self.past[due]) + self.past[due] * tempering[:, None]
        points = self.points[due]
        refit(self.fit, weight, points, self.first, self.last)
        rows, kinds, free = points.shape
        inside, found = log_chances_of(self.fit, points.reshape(rows * kinds, free))
        row, kind = np.nonzero(inside.reshape(rows, kinds))
        self.points[due[row], kind] = points[row, kind]
        self.log_chance[due[row], kind] = found[inside]

    def _thin(self, event: int, promise: FloatArray) -> None:
        kept: list[int] = []
        for slot in reversed(self.order):
            if kept and event - self.event[slot] < SPACING * (event - self.event[kept[-1]]):
                if len(kept) > 1 and promise[slot] > promise[kept[-1]]:
                    kept[-1] = slot
                continue
            kept.append(slot)
        self.order = kept[::-1]

    def state(self) -> dict[str, Any]:
        """Everything, slot by slot: the arithmetic of a monitor that goes on is the same to the last bit."""
        found: dict[str, Any] = {f"drift_{name}": np.array(getattr(self, name)) for name in _KEPT}
        found |= self.compensation.state()
        found["drift_total"] = self.total.copy()
        found["drift_order"] = np.array([self.made, *self.order], dtype=np.int64)
        return found

    def restore(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            setattr(self, name, np.array(state[f"drift_{name}"], dtype=np.float64))
        self.compensation.restore(state)
        self._given = None
        self.total = np.array(state["drift_total"], dtype=np.float64)
        self.made, *self.order = (int(number) for number in state["drift_order"])


def _log_sum(terms: FloatArray) -> float:
    largest = float(terms.max(initial=-math.inf))
    return largest + math.log(float(np.exp(terms - largest).sum())) if math.isfinite(largest) else largest
