"""Does the model fit data that come in batches, or all at once: an e-value, looked at between batches.

As for a stream of events (`tightrope.monitoring.monitor`) the evidence is

    E = Σ_k w_k·q_k(data) / max over the domain of p_θ(data),      Σ w_k ≤ 1,

with predictions q_k in which one signature, one choice or, from some batch on, the parameters depart from
the model. Within a batch the order of events does not matter: the model's own predictions are fixed before
it, and Krichevsky–Trofimov mixtures depend on counts alone. For the true θ* the sum at the ends of batches is
at most a non-negative supermartingale that begins at 1, under any policy and however it is decided when data
end; so it ever reaches 1/α with probability at most α.

The first batch cannot be predicted from what came before. There every signature with unknown probabilities
is predicted freely, by its own mixture, and a choice that departs leaves the rest of its signature to one. So
data without batches are tested, too, as a single first batch: all these distributions are free at once, which
costs (k−1)/2·log n for each that was met with k outcomes, where batches cost (d/2)·log n for d parameters
together.

Numerators are rounded down, the denominator up.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.batch_changes import Change, Changes
from tightrope.monitoring.batch_choices import SPARE, ChoiceEvidence
from tightrope.monitoring.best_fit import BestFit, log_chances
from tightrope.monitoring.departures import free_prediction
from tightrope.monitoring.refit import estimate
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.statistics.outcomes import Outcomes

SHARES = {"expression": 0.3, "tie": 0.2, "drift": 0.5}
"""How the mixture is divided among kinds of departures; what a model does not have is left unused."""

FIRST_CHANGE = 64
"""Events before which no change of the parameters is looked for."""

GROWTH = 1.4
"""Estimates are renewed, and evidence is looked at, when events have grown by this factor, and in the end."""


NEGLIGIBLE = -4.0
"""Where all choices together have less evidence than this, a logarithm, they are left out of the sum."""


class BatchTest:
    """The evidence against a model, batch by batch of `counts`."""

    def __init__(self, model: ParametricMDP, counts: Counts):
        self.model = model
        self.outcomes = Outcomes.of(model)
        self.fit = BestFit.of(model)
        self.choices = ChoiceEvidence(self.outcomes, counts)
        self.changes = Changes(self.fit)
        self.events = 0
        self.pooled = np.zeros(len(self.outcomes))
        self.seen = np.zeros(len(model.expressions))
        self.own = np.zeros(len(model.signatures))
        self.own_size = np.zeros(len(model.signatures))
        self.point = self.fit.maximiser.start
        self.best = self.fit.centre
        found = log_chances(self.fit, self.point)
        if found is None:
            raise InputError("the domain of the parameters has no interior")
        self.log_chance: FloatArray = found

    def add(self, transition: OffsetArray, count: OffsetArray) -> None:
        """Take in a batch: how often each transition was seen in it."""
        if len(transition) == 0:
            return
        pooled = self.outcomes.pooled_part(transition, count)
        places, number = self.outcomes.expression, pooled.astype(np.float64)
        seen: FloatArray = np.bincount(places, weights=number, minlength=len(self.seen)).astype(np.float64)
        terms = pooled * self.log_chance[self.outcomes.expression]
        size = len(self.own)
        self.own += np.bincount(self.outcomes.signature, weights=terms, minlength=size)
        self.own_size += np.bincount(self.outcomes.signature, weights=np.abs(terms), minlength=size)
        if self.events == 0:
            is_free = self._depends()
            self.own[is_free] = self._free(pooled.astype(np.float64))[is_free]
            self.own_size[is_free] = np.abs(self.own[is_free])
            self.choices.begin(transition, count, self.log_chance, is_free)
        else:
            self.choices.add(transition, count, self.log_chance)
        self.changes.add(seen)
        self.pooled += pooled
        self.seen += seen
        self.events += int(count.sum())

    def predict(self) -> None:
        """Renew the estimate."""
        point = estimate(self.fit, self.seen, self.point)
        chances = log_chances(self.fit, point)
        if chances is not None:
            self.point, self.log_chance = point, chances

    def begin_change(self) -> None:
        """Let a change of the parameters begin here."""
        if self.events >= FIRST_CHANGE:
            self.changes.begin(self.events, self._total, self.seen, self.point, self.log_chance)

    def log_evidence(self, briefly: bool = False) -> float:
        """log E now, rounded down; `briefly` leaves out what is much work and next to no evidence."""
        if self.events == 0:
            return 0.0
        surplus = self.surplus()
        expressions = self.log_weight("expression") + _log_sum(self.expression_departures())
        drifts = [math.log(SHARES["drift"]) + log_e for log_e, _ in self._weigh()]
        return _log_sum(np.array([surplus + expressions, self._ties(surplus, briefly), *drifts]))

    def _ties(self, surplus: float, briefly: bool) -> float:
        """log Σ w·E of the choices that may not be equal."""
        scale = surplus + self.log_weight("tie")
        net = self.choices.net
        if briefly and scale + float(net.max(initial=-math.inf)) + math.log(len(net) + 1.0) < NEGLIGIBLE:
            return -math.inf
        return scale + _log_sum(self.choices.departures())

    def log_weight(self, kind: str) -> float:
        """Of one signature, or one choice, in the mixture."""
        parts = int(np.count_nonzero(self.outcomes.width > 1)) if kind == "expression" else self.choices.total
        return math.log(SHARES[kind] / max(parts, 1))

    def surplus(self) -> float:
        """log of (the model's own predictions / the best fit), rounded down: what every departure pays."""
        self.best = self.fit.search(self.seen, self.best)
        return self._total - self.fit.upper(self.seen, self.best)

    def expression_departures(self) -> FloatArray:
        """A lower bound on log of (free prediction / the model's own) of each signature."""
        found = self._free(self.pooled) - self.own - SPARE * self.own_size
        return np.where(self.outcomes.width > 1, found, -math.inf)

    def free_of_signatures(self) -> FloatArray:
        """The logarithm of the free prediction of each signature."""
        return self._free(self.pooled)

    def strongest_change(self) -> tuple[float, Change] | None:
        """The change with the most evidence, and the logarithm of what it has by itself."""
        found = [(log_e - change.log_weight, change) for log_e, change in self._weigh()]
        return max(found, key=lambda each: each[0], default=None)

    def _weigh(self) -> list[tuple[float, Change]]:
        return self.changes.weigh_candidates(self.log_chance, self.best)

    @property
    def _total(self) -> float:
        """The model's log-prediction of everything so far, rounded down."""
        return float(self.own.sum()) - SPARE * (float(self.own_size.sum()) + 1.0)

    def _depends(self) -> BoolArray:
        """Which signatures depend on the parameters; the others are known before any data."""
        informative = self.fit.informative[self.outcomes.expression]
        return np.bincount(self.outcomes.signature, weights=informative, minlength=len(self.own)) > 0.0

    def _free(self, pooled: FloatArray) -> FloatArray:
        """KT of every signature, its equal successors equally likely; rounded down."""
        outcomes = self.outcomes
        size = len(outcomes.width)
        free = free_prediction(pooled, outcomes.signature, size, outcomes.width)
        alike = np.bincount(
            outcomes.signature, weights=pooled * np.log(outcomes.multiplicity), minlength=size
        )
        found: FloatArray = free - alike * (1.0 + SPARE)
        return found


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
                looks.append((looked, test.log_evidence(briefly=not is_last)))
            test.predict()
        if not is_last:
            test.begin_change()
    return looks


def _log_sum(terms: FloatArray) -> float:
    """log Σ exp of many terms, rounded down."""
    largest = float(terms.max(initial=-math.inf))
    if not math.isfinite(largest):
        return -math.inf
    total = largest + math.log(float(np.exp(terms[terms > largest - 40.0] - largest).sum()))
    return total - 1e-9 - 4e-16 * abs(total)
