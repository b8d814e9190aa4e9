"""Parameters that change between two batches: predictions that begin anew.

With M how much better the model's own predictions did than the truth up to the end of a batch j, and N the
same for predictions that begin anew there, M^λ·N is a supermartingale for λ in [0, 1] whatever the truth is
(Jensen's inequality). Its smallest value over all parameters,

    exp( λ·log q(past) + log q_j(since) − max_θ [ λ·ℓ_past(θ) + ℓ_since(θ) ] ),

is evidence that the parameters since j are not those before. λ = 1 pays (d/2)·log n for the past's
parameters; λ = 1/16 pays a sixteenth of it, and does where the past is long. Candidates are numbered, k has
the weight 1/(k(k+1)), half for each λ. Those that are left out, because they promise little or lie close to
another, only lower the sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.monitoring.best_fit import BestFit, log_chances_of
from tightrope.monitoring.refit import refit
from tightrope.numerics.arrays import FloatArray

TIES = (1.0, 1.0 / 16.0)
FIRM = 2.0
"""The tempered past weighs at least this many times what came since, or λ is 1."""

SPACING = 1.6
"""Ages of candidates differ at least by this factor."""

TEMPERED = 16.0
"""So many events of the past the first estimates after j lean on."""

REFRESH = 1.5
"""A candidate's estimate is renewed when the events since it was made have grown by this factor."""

PROMISING = -2.0
"""Evidence that cannot exceed this, a logarithm, is not computed."""

_SPARE = 1e-11


@dataclass
class Change:
    """Predictions that begin anew after `event`.

    `before` is the model's log-prediction of the `past`, `own` the candidate's of what it has `seen` since.
    """

    number: int
    event: int
    before: float
    past: FloatArray
    seen: FloatArray
    point: FloatArray
    log_chance: FloatArray
    own: float = 0.0
    size: float = 0.0
    estimated_at: float = 0.0

    @property
    def log_weight(self) -> float:
        return -math.log(self.number * (self.number + 1.0) * len(TIES))

    @property
    def tie(self) -> float:
        """The λ that suits its age."""
        past, since = float(self.past.sum()), float(self.seen.sum())
        return min(tie for tie in TIES if tie * past >= FIRM * since or tie == TIES[0])

    def add(self, seen: FloatArray) -> None:
        """The events of a batch by expression."""
        met = np.flatnonzero(seen)
        terms = seen[met] * self.log_chance[met]
        self.own += float(terms.sum())
        self.size += float(np.abs(terms).sum())
        self.seen = self.seen + seen

    @property
    def is_stale(self) -> bool:
        """Whether there is more to learn from since the last estimate."""
        return float(self.seen.sum()) >= REFRESH * self.estimated_at

    @property
    def leaning(self) -> FloatArray:
        """What the next estimate is made from."""
        found: FloatArray = self.seen + self.past * min(1.0, TEMPERED / max(float(self.past.sum()), 1.0))
        return found

    def promise(self, log_chance: FloatArray) -> float:
        """About an upper bound on the logarithm of its part of the sum, from predictions that fit well."""
        explained = float((self.tie * self.past + self.seen) @ log_chance)
        return self.tie * self.before + self.own - explained + self.log_weight

    def log_evidence(self, fit: BestFit, start: FloatArray) -> float:
        """The logarithm of its evidence, rounded down; `start` is near the best fit."""
        weight = self.tie * self.past + self.seen
        most = fit.upper(weight, fit.search(weight, start))
        return self.tie * self.before + self.own - _SPARE * self.size - most - 1e-9


class Changes:
    """The candidates of one data set."""

    def __init__(self, fit: BestFit):
        self.fit = fit
        self.made = 0
        self.candidates: list[Change] = []

    def add(self, seen: FloatArray) -> None:
        for candidate in self.candidates:
            candidate.add(seen)

    def begin(
        self, event: int, total: float, seen: FloatArray, point: FloatArray, log_chance: FloatArray
    ) -> None:
        """Renew estimates, and add a candidate after `event`.

        `total` is the model's log-prediction so far, `point` its estimate, with `log_chance`.
        """
        self._renew()
        self._thin(event, log_chance)
        self.made += 1
        nothing = np.zeros_like(seen)
        self.candidates.append(Change(self.made, event, total, seen.copy(), nothing, point, log_chance))

    def _renew(self) -> None:
        """Estimate the parameters anew of candidates that have more to learn from."""
        due = [candidate for candidate in self.candidates if candidate.is_stale]
        if not due:
            return
        points = np.stack([candidate.point for candidate in due])[:, None, :]
        weight = np.stack([candidate.leaning for candidate in due])
        refit(self.fit, weight, points, np.array([0]), np.array([points.shape[2]]))
        inside, found = log_chances_of(self.fit, points[:, 0])
        for number, candidate in enumerate(due):
            candidate.estimated_at = float(candidate.seen.sum())
            if inside[number]:
                candidate.point, candidate.log_chance = points[number, 0], found[number]

    def weigh_candidates(self, log_chance: FloatArray, start: FloatArray) -> list[tuple[float, Change]]:
        """log(w·E) of the candidates that promise something."""
        return [
            (change.log_weight + change.log_evidence(self.fit, start), change)
            for change in self.candidates
            if change.seen.any() and change.promise(log_chance) > PROMISING
        ]

    def _thin(self, event: int, log_chance: FloatArray) -> None:
        kept: list[Change] = []
        for change in reversed(self.candidates):
            if kept and event - change.event < SPACING * (event - kept[-1].event):
                if len(kept) > 1 and change.promise(log_chance) > kept[-1].promise(log_chance):
                    kept[-1] = change
                continue
            kept.append(change)
        self.candidates = kept[::-1]
