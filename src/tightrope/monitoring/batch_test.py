"""Does the model fit data that come in batches, or all at once: an e-value, looked at between batches.

The e-process is that of `tightrope.monitoring.e_process`; within a batch the order of events does not matter.
The first batch is predicted by Krichevsky–Trofimov mixtures, later ones by the model's own predictions,
departures of single choices and changes of parameters (`tightrope.monitoring.drift`). Only choices that were
taken are stored; weights count all of them. Numerators are rounded down, the denominator up. Proof:
docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import gammaln

from tightrope.data.counts import Counts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.departures import free_prediction
from tightrope.monitoring.drift import FEW, DriftEvidence
from tightrope.monitoring.e_process import FIRST_CHANGE, SHARES, EProcess, log_sum, log_weight
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel
from tightrope.statistics.outcomes import Outcomes

GROWTH = 1.4
"""Estimates are renewed, and evidence is looked at, when events have grown by this factor, and in the end."""


PROMISING = -2.0
"""Evidence for changes that is not expected to exceed this, a logarithm, is not computed."""

NEGLIGIBLE = -4.0
"""Where all choices together have less evidence than this, a logarithm, they are left out of the sum."""


class BatchTest(EProcess):
    """The evidence against a model, batch by batch of `counts`."""

    def __init__(self, model: ParametricMDP, counts: Counts):
        super().__init__(model)
        self.choices = ChoiceEvidence(self.outcomes, counts)
        self.drift = DriftEvidence(self.fit, self.outcomes, alone=False, shift=FEW)
        self.pooled = np.zeros(len(self.outcomes))
        self.own = np.zeros(len(model.signatures))
        self.own_size = np.zeros(len(model.signatures))

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
            self.own[is_free] = self.free(pooled.astype(np.float64))[is_free]
            self.own_size[is_free] = np.abs(self.own[is_free])
            self.choices.begin(transition, count, self.log_chance, is_free)
        else:
            self.choices.add(transition, count, self.log_chance)
            self.drift.compensation.add(transition, count)
        self.drift.add(seen)
        self.pooled += pooled
        self.seen += seen
        self.events += int(count.sum())

    def begin_change(self) -> None:
        """Let a change of the parameters begin here."""
        if self.events >= FIRST_CHANGE:
            self.drift.close(self.log_chance)
            self.drift.look(self.events, self._total, self.point, self.log_chance)

    def renew_prediction(self) -> None:
        self.drift.close(self.log_chance)
        super().renew_prediction()

    def log_evidence(self, briefly: bool = False) -> float:
        """log E now, rounded down; `briefly` leaves out what is much work and next to no evidence."""
        if self.events == 0:
            return 0.0
        surplus = self.surplus()
        expressions = self.log_weight("expression") + log_sum(self.expression_departures())
        drift = -math.inf
        if self.drift.order and self.drift.promise(self.log_chance)[0] > PROMISING:
            drift = math.log(SHARES["drift"]) + self.drift.weigh(self.log_chance, self.best)[0]
        return log_sum(np.array([surplus + expressions, self._ties(surplus, briefly), drift]))

    def _ties(self, surplus: float, briefly: bool) -> float:
        """log Σ w·E of the choices that may not be equal."""
        scale = surplus + self.log_weight("tie")
        net = self.choices.net
        if briefly and scale + float(net.max(initial=-math.inf)) + math.log(len(net) + 1.0) < NEGLIGIBLE:
            return -math.inf
        return scale + log_sum(self.choices.departures())

    def log_weight(self, kind: str) -> float:
        """Of one signature, or one choice, in the mixture."""
        parts = int(np.count_nonzero(self.outcomes.width > 1)) if kind == "expression" else self.choices.total
        return log_weight(kind, parts)

    def surplus(self) -> float:
        """log of (the model's own predictions / the best fit), rounded down: what every departure pays."""
        return self.surplus_of(self._total)

    def expression_departures(self) -> FloatArray:
        """A lower bound on log of (free prediction / the model's own) of each signature."""
        result = self.free(self.pooled) - self.own - SPARE * self.own_size
        return np.where(self.outcomes.width > 1, result, -math.inf)

    @property
    def _total(self) -> float:
        """The model's log-prediction of everything so far, rounded down."""
        return float(self.own.sum()) - SPARE * (float(self.own_size.sum()) + 1.0)

    def _depends(self) -> BoolArray:
        """Which signatures depend on the parameters; the others are known before any data."""
        informative = self.fit.informative[self.outcomes.expression]
        return np.bincount(self.outcomes.signature, weights=informative, minlength=len(self.own)) > 0.0

    def free(self, pooled: FloatArray) -> FloatArray:
        """KT of every signature, its equal successors equally likely; rounded down."""
        outcomes = self.outcomes
        size = len(outcomes.width)
        free = free_prediction(pooled, outcomes.signature, size, outcomes.width)
        alike = np.bincount(outcomes.signature, pooled * np.log(outcomes.multiplicity), size)
        result: FloatArray = free - alike * (1.0 + SPARE)
        return result


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
            test.renew_prediction()
        if not is_last:
            test.begin_change()
    return looks


SPARE = 1e-11
"""Relative to the absolute values of what is summed: many times the rounding of all sums."""

_TABLED = 1 << 13


class ChoiceEvidence:
    """Evidence of the choices that were taken and share their distribution, or have equal successors.

    Transition `seen[i]` of the model is place i here and belongs to part[i], a choice (−1: to none). `total`
    is the number of such choices in the model. `net` is log of (free prediction / the model's own).
    """

    def __init__(self, outcomes: Outcomes, counts: Counts):
        model = outcomes.model
        signatures = model.signatures
        slots = np.diff(signatures.start)
        number = np.bincount(signatures.of_choice, minlength=len(signatures))
        tied = ((number > 1) | (slots > outcomes.width)) & (slots > 1)
        self.total = int(number[tied].sum())
        self.outcomes = outcomes
        self.seen: OffsetArray = np.flatnonzero(counts.transition)
        self.expression = model.expression[self.seen]
        choice = model.structure.transition_choice[self.seen]
        is_kept = tied[signatures.of_choice[choice]]
        begins = np.ones(len(choice), dtype=np.bool_)
        begins[1:] = choice[1:] != choice[:-1]
        self.choice = choice[begins & is_kept].astype(np.int64)
        self.part: OffsetArray = np.where(is_kept, np.cumsum(begins & is_kept) - 1, -1)
        self.signature = signatures.of_choice[self.choice]
        self.width = slots[self.signature].astype(np.int64)
        self.number = np.zeros(len(self.seen), dtype=np.int64)
        self.visits = np.zeros(len(self.choice), dtype=np.int64)
        self.net, self.spread = np.zeros(len(self.choice)), np.zeros(len(self.choice))
        self._place = np.zeros(model.transitions, dtype=np.int32)
        self._place[self.seen] = np.arange(len(self.seen))

    def add(self, transition: OffsetArray, count: OffsetArray, log_chance: FloatArray) -> None:
        """Take in a batch, which was predicted by `log_chance` per expression."""
        places = (self.part, self.width, self.expression)
        sums = (self.number, self.visits, self.net, self.spread)
        _add(self._place[transition], read_only(count), places, log_chance, sums, _table())

    def begin(
        self, transition: OffsetArray, count: OffsetArray, log_chance: FloatArray, is_free: BoolArray
    ) -> None:
        """Take in the first batch, where signatures that are free were predicted by their own mixtures.

        What is left of such a signature without one of its choices is predicted by a mixture, too.
        """
        self.add(transition, count, log_chance)
        if len(self.choice) == 0:
            return
        outcomes = self.outcomes
        place = self._place[transition]
        retained = (self.part[place] >= 0) & is_free[self.signature[self.part[place]]]
        number, outcome = count[retained], outcomes.of_transition[transition[retained]]
        met, part = np.unique(self.part[place[retained]], return_inverse=True)
        pooled, signature, size = outcomes.pooled_part(transition, count), self.signature[met], len(met)
        key, group = np.unique(part * len(outcomes) + outcome, return_inverse=True)
        used = np.bincount(group, weights=number, minlength=len(key))
        owner, outcome = key // len(outcomes), key % len(outcomes)
        every = pooled[outcome].astype(np.float64)
        less, more = gammaln(every - used + 0.5), gammaln(every + 0.5)
        alike = used * np.log(outcomes.multiplicity[outcome])
        visits, mine = outcomes.visits(pooled)[signature].astype(np.float64), self.visits[met]
        half, own_half = 0.5 * outcomes.width[signature], 0.5 * self.width[met]
        before, after = gammaln(visits + half), gammaln(visits - mine + half)
        seen, ends = gammaln(number + 0.5) - gammaln(0.5), gammaln(mine + own_half) - gammaln(own_half)
        free = np.bincount(part, weights=seen, minlength=size) - ends
        self.net[met] = (
            free + np.bincount(owner, weights=less - more + alike, minlength=size) + before - after
        )
        sizes = np.bincount(owner, weights=np.abs(less) + np.abs(more) + alike, minlength=size)
        self.spread[met] += sizes + np.abs(before) + np.abs(after) + 2.0 * np.abs(free) + 1.0

    def departures(self) -> FloatArray:
        """A lower bound on log of (free prediction / the model's own) of each choice."""
        return self.net - SPARE * self.spread


@cache
def _table() -> FloatArray:
    """log Γ at 0, ½, 1, …; the first one is not used."""
    result: FloatArray = np.append(0.0, gammaln(0.5 * np.arange(1, _TABLED)))
    return result


@kernel
def _add(
    place: IndexArray,
    count: OffsetArray,
    places: tuple[OffsetArray, OffsetArray, IndexArray],
    log_chance: FloatArray,
    sums: tuple[OffsetArray, OffsetArray, FloatArray, FloatArray],
    table: FloatArray,
) -> None:
    """Count a batch: what it adds to KT, less what it adds to the model's own prediction, of each choice."""
    part, width, expression = places
    number, visits, net, spread = sums
    for j in range(len(place)):
        i = place[j]
        p = part[i]
        if p < 0:
            continue
        times = count[j]
        term = times * log_chance[expression[i]]
        gain, size = -term, -term
        ends = (
            2 * number[i] + 1,
            2 * (number[i] + times) + 1,
            2 * visits[p] + width[p],
            2 * (visits[p] + times) + width[p],
        )
        for k in range(4):
            value = table[ends[k]] if ends[k] < len(table) else math.lgamma(0.5 * ends[k])
            gain += value if k == 1 or k == 2 else -value
            size += abs(value)
        net[p] += gain
        spread[p] += size
        number[i] += times
        visits[p] += times
