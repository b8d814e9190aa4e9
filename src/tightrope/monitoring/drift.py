"""Parameters that change at an unknown time: predictions that begin anew.

Let M = q(past)/p_θ*(past) be how much better the model's own predictions did than the truth up to an event j,
and N = q_j(since)/p_θ*(since) the same for predictions that begin anew at j. Both are non-negative
supermartingales that begin at 1, one after the other. So M^λ·N is a supermartingale for every λ in [0, 1]
(Jensen's inequality for M^λ up to j; from j on M^λ is fixed and N goes on), and

    E_jλ = exp( λ·log q(past) + log q_j(since) − max_θ [ λ·ℓ_past(θ) + ℓ_since(θ) ] ) ≤ M^λ·N

whatever θ* is: evidence that what came since j does not fit the parameters of what came before. With λ = 1
this is the likelihood ratio of "one change at j" to "no change", which pays (d/2)·log n for not knowing the
past parameters; a smaller λ pays λ times that, and ties the parameters to the past less firmly, which hardly
matters while the past is much longer than what came since.

q_j is a mixture of d + 1 predictions: in one all parameters begin anew, which pays about (d/2)·log of the
events since; in each of the others one parameter moves alone and the rest stays at the estimate of the past,
which pays ½·log and log 2d for not knowing which. All of them have the same denominator.

A mixture over j and a few λ, with weights that sum to at most 1 and are fixed in advance, is evidence, too,
and leaving terms out only lowers it. So candidates are kept at ages that grow geometrically (of those that
are close the one with the most evidence stays), one λ per candidate is computed, and none where it does not
promise much. Candidates are numbered in the order in which they begin, and their weights follow from the
number alone: that of a candidate that never begins, or is dropped, is wasted, not given to others.

Beside the mixture there is a detector without weights, R = Σ_j E_jλ·β^λ. Let C_j be the parameters with
ℓ_past(θ) ≥ log q(past) − log(1/β): by Ville's inequality θ* is in all of them with probability ≥ 1 − β, and
then E_jλ·β^λ ≤ N_j for every λ, chosen however. One N_j begins at 1 with every look, so that Σ_j N_j plus the
number of looks that are left until the t-th is a non-negative supermartingale that begins at t: R reaches 1/α
within the first t looks with probability at most α·t + β. That is a rate of false alarms, not a probability,
and many nats faster (an e-detector: Shin, Ramdas and Rinaldo 2024).

The first estimates after j lean on the data before it, tempered to the weight of about as many events as lie
between two looks: where nothing has changed little is lost, and where something has new data take over soon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.monitoring.best_fit import BestFit
from tightrope.monitoring.predicting import log_chances_of
from tightrope.monitoring.refit import refit
from tightrope.numerics.arrays import FloatArray

TEMPERED = (16.0, 1.0 / 256.0)
"""All data before a candidate count for so many events in its estimates, or for this part of them."""

SPACING = 1.4
"""Ages of candidates differ at least by this factor."""

REFRESH = 1.5
"""A candidate's estimate is renewed when the events since it was made have grown by this factor."""

TIES: FloatArray = np.array([1.0, 3.0 / 8.0, 1.0 / 8.0, 1.0 / 32.0])
"""The powers λ that the mixture is over, with equal weights; their products with counts are exact."""

FREE_TIES: FloatArray = np.ldexp(1.0, -np.arange(7))
"""The powers λ that the detector takes the best of."""

ALONE = 16
"""With more parameters than this none is tried alone."""

COMPUTED = 4
"""Evidence is computed for so many candidates, those that promise most."""

_SPARE = 1e-11
_KEPT = ("number", "event", "before", "length", "lean", "estimated_at", "past", "points", "log_chance", "own")


def log_weight(number: FloatArray) -> FloatArray:
    """The logarithm of the weight of candidates by number, 1, 2, …: those of all sum to less than 1.

    w = 1/(k·log k·(log log k)²) for k = number + 15, a convex function whose sum is at most its integral from
    15.5 on, 1/log log 15.5 < 0.992.
    """
    k = number + 15.0
    log_k = np.log(k)
    found: FloatArray = -(log_k + np.log(log_k) + 2.0 * np.log(np.log(log_k)))
    return found


class DriftEvidence:
    """The candidates of one stream, in slots of arrays; `order` says which slots are used, oldest first.

    Of the candidate in a slot: `before` is the model's log-prediction of the `past` (events per expression,
    `length` together), own[slot, k] that of its k-th prediction since, which began `lean`ing on so many
    events of the past and was `estimated_at` so many events since. Prediction 0 moves all parameters, the
    others one each.
    """

    def __init__(self, fit: BestFit):
        self.fit = fit
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
    estimated_at: FloatArray
    past: FloatArray
    points: FloatArray
    log_chance: FloatArray
    own: FloatArray

    def add(self, seen: FloatArray) -> None:
        """Events per expression since the last call; predictions were fixed before them."""
        self.own += self.log_chance @ seen
        self.total += seen

    def _since(self) -> FloatArray:
        """The logarithm of the mixture of each candidate's predictions since it began, rounded down."""
        spare = _SPARE + len(self.total) * 2.0**-52
        terms = self.own * (1.0 + spare) + self._log_share
        largest = terms.max(axis=1)
        found: FloatArray = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)) - 1e-9
        return found

    def promises(
        self, log_chance: FloatArray, ties: FloatArray, price: float
    ) -> tuple[FloatArray, FloatArray]:
        """What log E_jλ − λ·price may be for the best λ, slot by slot, and that λ.

        `log_chance` are predictions of any parameters of the domain, best of the present estimate. The
        maximum over θ exceeds what they explain; by how much is guessed, from how firmly λ holds them.
        """
        explained = self.past @ log_chance
        since = float(self.total @ log_chance) - explained
        ahead = self._since() - since
        events = self.total.sum() - self.length
        tied = self.length[:, None] * ties
        regained = np.maximum(ahead, 0.0)[:, None] * (events[:, None] / (tied + events[:, None] + 1.0))
        found = (self.before - explained - price)[:, None] * ties + ahead[:, None] - regained
        best = found.argmax(axis=1)
        chosen: FloatArray = found[np.arange(len(best)), best]
        return chosen, ties[best]

    def weighed(self, log_chance: FloatArray, start: FloatArray, floor: float) -> FloatArray:
        """log(w_j·E_jλ) of a few candidates, those that promise the most and more than `floor`."""
        slots = self._best(*self.promises(log_chance, TIES, 0.0), floor, True)
        found: FloatArray = self.log_evidence(slots, start)
        for place, (slot, _) in enumerate(slots):
            found[place] += self._log_weight(slot)
        return found

    def detected(self, log_chance: FloatArray, start: FloatArray, floor: float, price: float) -> FloatArray:
        """log(E_jλ·β^λ), the same way; `price` is log 1/β."""
        slots = self._best(*self.promises(log_chance, FREE_TIES, price), floor, False)
        found: FloatArray = self.log_evidence(slots, start)
        for place, (_, tie) in enumerate(slots):
            found[place] -= price * tie
        return found

    def may_matter(self, log_chance: FloatArray, floor: float, bare: float, price: float) -> bool:
        """Whether `weighed` or `detected` may find something beyond `floor` or `bare`."""
        weighed = self._best(*self.promises(log_chance, TIES, 0.0), floor, True)
        return bool(weighed or self._best(*self.promises(log_chance, FREE_TIES, price), bare, False))

    def best(self, log_chance: FloatArray, start: FloatArray) -> tuple[int, float] | None:
        """The slot with the most evidence of its own, and that evidence."""
        slots = self._best(*self.promises(log_chance, TIES, 0.0), -math.inf, False)
        found = self.log_evidence(slots, start)
        return (slots[int(found.argmax())][0], float(found.max())) if slots else None

    def _best(
        self, promised: FloatArray, tie: FloatArray, floor: float, is_weighed: bool
    ) -> list[tuple[int, float]]:
        """A few slots and their λ, those that promise the most first."""
        if is_weighed:
            promised = promised + log_weight(np.maximum(self.number, 1.0)) - math.log(len(TIES))
        found = sorted((s for s in self.order if promised[s] > floor), key=lambda slot: -promised[slot])
        return [(slot, float(tie[slot])) for slot in found[:COMPUTED]]

    def _log_weight(self, slot: int) -> float:
        """The weight of E_jλ in the mixture over candidates and λ."""
        return float(log_weight(self.number[slot])) - math.log(len(TIES)) - 1e-12

    def log_evidence(self, slots: list[tuple[int, float]], start: FloatArray) -> FloatArray:
        """log E_jλ of slots with their λ, rounded down; `start` is near the best fit."""
        since = self._since()
        found = np.empty(len(slots))
        for place, (slot, tie) in enumerate(slots):
            weight = tie * self.past[slot] + (self.total - self.past[slot])
            most = self.fit.upper(weight, self.fit.search(weight, start))
            found[place] = tie * float(self.before[slot]) + float(since[slot]) - most - 1e-9
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
            self._thin(event, self.promises(log_chance, TIES, 0.0)[0])
        self.made += 1
        slot = next((slot for slot in range(len(self.number)) if slot not in self.order), len(self.number))
        if slot == len(self.number):
            self._grow(2 * slot)
        self.number[slot], self.event[slot], self.before[slot] = self.made, event, before
        self.length[slot], self.lean[slot] = self.total.sum(), max(TEMPERED[0], TEMPERED[1] * event)
        self.estimated_at[slot], self.own[slot] = 0.0, 0.0
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
        found["drift_total"] = self.total.copy()
        found["drift_order"] = np.array([self.made, *self.order], dtype=np.int64)
        return found

    def restore(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            setattr(self, name, np.array(state[f"drift_{name}"], dtype=np.float64))
        self.total = np.array(state["drift_total"], dtype=np.float64)
        self.made, *self.order = (int(number) for number in state["drift_order"])
