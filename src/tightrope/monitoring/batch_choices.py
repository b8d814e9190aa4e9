"""Choices that are said to be equal, over batches: how well each is predicted by itself.

The departure "choice c is not what its signature says" predicts the outcomes of c by the
Krichevsky–Trofimov mixture of c alone, and everything else as the model's own predictions do
(`tightrope.monitoring.batch_test`). Only choices that were taken are kept: a model has millions of others,
about which the data say nothing. The mixture's weights count them all the same, so they follow from the
model.

KT of a choice depends on its counts alone, so it is brought up to date by what a batch adds:

    Δ log KT = Σ_o log Γ(n_o + Δ_o + ½) − log Γ(n_o + ½)  −  log Γ(N + Δ + w/2) + log Γ(N + w/2).

All arguments are halves of integers, and small ones are looked up. `spread` sums absolute values (log Γ is
above −1 everywhere), of which rounding makes less than a part in 10¹¹.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import gammaln

from tightrope.data.counts import Counts
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel
from tightrope.statistics.outcomes import Outcomes

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
        kept = (self.part[place] >= 0) & is_free[self.signature[self.part[place]]]
        number, outcome = count[kept], outcomes.of_transition[transition[kept]]
        met, part = np.unique(self.part[place[kept]], return_inverse=True)
        pooled, signature, size = outcomes.pooled_part(transition, count), self.signature[met], len(met)
        key, group = np.unique(part * len(outcomes) + outcome, return_inverse=True)
        taken = np.bincount(group, weights=number, minlength=len(key))
        owner, outcome = key // len(outcomes), key % len(outcomes)
        every = pooled[outcome].astype(np.float64)
        less, more = gammaln(every - taken + 0.5), gammaln(every + 0.5)
        alike = taken * np.log(outcomes.multiplicity[outcome])
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
    found: FloatArray = np.append(0.0, gammaln(0.5 * np.arange(1, _TABLED)))
    return found


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
