"""Parameters that change at an unknown time: predictions that begin anew.

Let M = q(past)/p_θ*(past) be how much better the model's own predictions did than the truth up to an event j,
and N = q_j(since)/p_θ*(since) the same for predictions that begin anew at j. Both are non-negative
martingales that begin at 1, one after the other. So M^λ·N is a supermartingale for every λ in [0, 1]
(Jensen's inequality), and

    E_jλ = exp( λ·log q(past) + log q_j(since) − max_θ [ λ·ℓ_past(θ) + ℓ_since(θ) ] ) ≤ M^λ·N

whatever θ* is: evidence that what came since j does not fit the parameters of what came before. With λ = 1
this is the likelihood ratio of "one change at j" to "no change", which pays (d/2)·log n for not knowing the
past parameters; a smaller λ pays λ times that, and ties the parameters to the past less firmly, which hardly
matters while the past is much longer than what came since. A mixture over j and a few λ, with weights that
sum to at most 1 and are fixed in advance, is evidence, too, and leaving terms out only lowers it. So
candidates are kept at ages that grow geometrically (of those that are close the one with the most evidence
stays), one λ per candidate is computed, and none where it cannot amount to much because some θ at hand, no
better than the best, explains past and present well.

The first estimates after j lean on the data before it, tempered to the weight of a few events: where nothing
has changed little is lost, and where something has the new data take over soon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.monitoring.best_fit import BestFit
from tightrope.monitoring.predicting import log_chances
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

TEMPERED = 16.0
"""The number of events that all data before a candidate count for in its estimates."""

SPACING = 1.4
"""Ages of candidates differ at least by this factor."""

REFRESH = 1.5
"""A candidate's estimate is renewed when the events since it was made have grown by this factor."""

TIES = (1.0, 0.25, 1.0 / 16.0, 1.0 / 64.0)
"""The powers λ that the mixture is over, with equal weights."""

FIRMNESS = 2.0
"""λ is chosen so that the tempered past weighs at least this many times what came since, where it can."""

_SPARE = 1e-11


@dataclass
class Candidate:
    """Predictions that begin anew at `event`.

    `before` is the model's log-prediction of the `past`, of `length` events, and `own` the candidate's of the
    `events` that it has `seen` since; `size` sums absolute values, for rounding.
    """

    number: int
    event: int
    before: float
    past: FloatArray
    seen: FloatArray
    point: FloatArray
    log_chance: FloatArray
    length: float
    own: float = 0.0
    size: float = 0.0
    events: float = 0.0
    estimated_at: float = 0.0

    @property
    def log_weight(self) -> float:
        """The weight in the mixture; those of all candidates numbered from 1 and all λ sum to less than 1."""
        k = self.number + 1.0
        return -math.log(2.2 * k * math.log(k) ** 2 * len(TIES))

    @property
    def tie(self) -> float:
        """The λ that suits its age."""
        firm = [tie for tie in TIES if tie * self.length >= FIRMNESS * self.events]
        return min(firm) if firm else TIES[0]

    def promise(self, log_chance: FloatArray) -> float:
        """About an upper bound on log(w_j·E_jλ), given predictions of any parameters of the domain."""
        explained = (self.tie * self.past + self.seen) @ log_chance
        return self.tie * self.before + self.own - float(explained) + self.log_weight

    def add(self, met: OffsetArray, number: FloatArray) -> None:
        """Events since the last call, by expressions `met`."""
        terms = number * self.log_chance[met]
        self.own += float(terms.sum())
        self.size += float(np.abs(terms).sum())
        self.seen[met] += number
        self.events += float(number.sum())

    def renew(self, fit: BestFit) -> None:
        """Estimate the parameters anew, where there is enough to learn from."""
        if self.events < REFRESH * max(self.estimated_at, 1.0):
            return
        self.estimated_at = self.events
        tempered = self.past * min(1.0, TEMPERED / max(self.length, 1.0))
        point = fit.maximiser.estimate((self.seen + tempered) * fit.informative, self.point)
        found = log_chances(fit, point)
        if found is not None:
            self.point, self.log_chance = point, found

    def log_evidence(self, fit: BestFit, start: FloatArray) -> float:
        """log E_jλ for the λ that suits its age, rounded down."""
        tie = self.tie
        weight = tie * self.past + self.seen
        most = fit.upper(weight, fit.search(weight, start))
        return tie * self.before + self.own - _SPARE * self.size - most - 1e-9


class DriftEvidence:
    """The candidates of one stream."""

    def __init__(self, fit: BestFit):
        self.fit = fit
        self.candidates: list[Candidate] = []
        self.made = 0

    def add(self, seen: FloatArray) -> None:
        """Events per expression since the last call; predictions were fixed before them."""
        met = np.flatnonzero(seen)
        for candidate in self.candidates:
            candidate.add(met, seen[met])

    def promises(self, log_chance: FloatArray) -> FloatArray:
        """About upper bounds on log(w_j·E_j), given predictions of the model's present estimate."""
        return np.array([candidate.promise(log_chance) for candidate in self.candidates])

    def log_evidence(self, worth: BoolArray, start: FloatArray) -> FloatArray:
        """log(w_j·E_j) of the candidates that are `worth` it, else −∞; `start` is near the best fit."""
        found = np.full(len(self.candidates), -np.inf)
        for place in np.flatnonzero(worth):
            candidate = self.candidates[place]
            found[place] = candidate.log_evidence(self.fit, start) + candidate.log_weight
        return found

    def look(self, event: int, total: float, seen: FloatArray, point: FloatArray) -> None:
        """Renew estimates, begin a candidate here, and thin them out.

        `total` is the model's log-prediction so far, `seen` all events per expression, `point` the model's
        present estimate.
        """
        for candidate in self.candidates:
            candidate.renew(self.fit)
        found = log_chances(self.fit, point)
        if found is not None:
            self._thin(event, found)
            self.made += 1
            fresh = np.zeros_like(seen)
            length = float(seen.sum())
            begun = Candidate(self.made, event, total, seen.copy(), fresh, point, found, length)
            self.candidates.append(begun)

    def _thin(self, event: int, log_chance: FloatArray) -> None:
        promise = {c.number: c.promise(log_chance) for c in self.candidates}
        kept: list[Candidate] = []
        for candidate in reversed(self.candidates):
            if kept and event - candidate.event < SPACING * (event - kept[-1].event):
                if len(kept) > 1 and promise[candidate.number] > promise[kept[-1].number]:
                    kept[-1] = candidate
                continue
            kept.append(candidate)
        self.candidates = kept[::-1]
