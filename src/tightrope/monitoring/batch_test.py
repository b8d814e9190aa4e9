"""Does the model fit data that come in batches, or all at once: an e-value, looked at between batches.

The e-process is that of `tightrope.monitoring.e_process`; within a batch the order of events does not matter.
The first batch is predicted by Krichevsky–Trofimov mixtures, later ones by the model's own predictions.
Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.data.counts import Counts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.departures import free_prediction, log_sum
from tightrope.monitoring.drift import FEW
from tightrope.monitoring.e_process import FIRST_CHANGE, SHARES, EProcess
from tightrope.numerics.arrays import OffsetArray

GROWTH = 1.4
"""Estimates are renewed, and evidence is looked at, when events have grown by this factor, and in the end."""

PROMISING = -2.0
"""Evidence for changes that is not expected to exceed this, a logarithm, is not computed."""


class BatchTest(EProcess):
    """The evidence against a model, batch by batch of `counts`."""

    def __init__(self, model: ParametricMDP, counts: Counts):
        super().__init__(model, counts.visits > 0, alone=False, shift=FEW)

    def add(self, transition: OffsetArray, count: OffsetArray) -> None:
        """Take in a batch: how often each transition was seen in it."""
        if len(transition) == 0:
            return
        self.count(transition, count)
        if self.events == 0:
            self._predict_freely(transition, count)
        self.events += int(count.sum())

    def _predict_freely(self, transition: OffsetArray, count: OffsetArray) -> None:
        """Let signatures that depend on parameters have predicted the first batch by their own mixtures; what
        is left of such a signature without one of its choices is predicted by a mixture, too."""
        self.drift.compensation.visits[:] = 0.0
        outcomes, by_signature, by_choice = self.outcomes, *self.departures.values()
        informative = self.fit.informative[outcomes.expression]
        is_free = np.bincount(outcomes.signature, weights=informative, minlength=len(outcomes.width)) > 0.0
        owner, free = self.model.signatures.of_choice, by_signature.free()
        mine = is_free[owner[by_signature.parts.choice]]
        self.total += float((free - by_signature.model)[mine].sum())
        self.total_size += float(np.abs(free[mine]).sum())
        by_signature.model[mine], by_signature.model_size[mine] = free[mine], np.abs(free[mine])
        pooled, parts = outcomes.pooled_part(transition, count).astype(np.float64), by_choice.parts
        place = parts.outcome[transition]
        rows = np.flatnonzero(place >= 0)
        rows = rows[is_free[owner[parts.choice[parts.part[place[rows]]]]]]
        met, number = np.unique(parts.part[place[rows]], return_inverse=True)
        signature, own, count = (
            owner[parts.choice[met]],
            outcomes.of_transition[transition[rows]],
            count[rows],
        )
        width, start = outcomes.width[signature], outcomes.start[signature]
        first, each = np.cumsum(width) - width, np.repeat(np.arange(len(met)), width).astype(np.int32)
        whole = pooled[start[each] + np.arange(len(each)) - first[each]]
        used = np.zeros(len(each))
        np.add.at(used, first[number] + own - start[number], count)
        all_of_it, rest = (free_prediction(x, each, len(met), width) for x in (whole, whole - used))
        alike = np.bincount(number, count * np.log(outcomes.multiplicity[own]), len(met))
        by_choice.model[met] = all_of_it - rest - alike
        by_choice.model_size[met] = np.abs(all_of_it) + np.abs(rest) + alike + 1.0

    def log_evidence(self) -> float:
        """log E now, rounded down."""
        if self.events == 0:
            return 0.0
        drift, terms = -math.inf, self.terms()
        if self.drift.order and self.drift.promise(self.log_chance)[0] > PROMISING:
            drift = math.log(SHARES["drift"]) + self.drift.weigh(self.log_chance, self.best)[0]
        return log_sum(np.array([*map(log_sum, terms.values()), drift]))


def weigh_batches(test: BatchTest, counts: Counts) -> list[tuple[int, float]]:
    """Let a test take in all data; after how many events it looked, and what log E was.

    Predictions are renewed when events have grown enough to learn from: whatever is fixed before an event
    predicts it soundly. Changes may begin after every batch.
    """
    if counts.batches is None:
        seen = np.flatnonzero(counts.transition)
        batches = [(seen, counts.transition[seen])]
    else:
        batches = [batch for batch in counts.batches if len(batch[0])]
    looks: list[tuple[int, float]] = []
    looked = 0
    for number, (transition, count) in enumerate(batches, start=1):
        test.add(transition, count)
        is_last = number == len(batches)
        if is_last or test.events >= GROWTH * looked:
            looked = test.events
            if is_last or looked >= FIRST_CHANGE:
                looks.append((looked, test.log_evidence()))
            test.renew_prediction()
        if not is_last:
            if test.events >= FIRST_CHANGE:
                test.drift.close(test.log_chance)
            test.begin_change()
    return looks
