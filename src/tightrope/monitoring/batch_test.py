"""Does the model fit data that come in batches, or all at once: an e-value, looked at between batches.

The e-process is that of `tightrope.monitoring.e_process`. Within a batch the order of events does not
matter: the model's own predictions are fixed before it, and Krichevsky–Trofimov mixtures depend on counts
alone. For the true θ* the sum at the ends of batches is at most a non-negative supermartingale that begins
at 1, under any policy and however it is decided when data end; so it ever reaches 1/α with probability at
most α.

The first batch cannot be predicted from what came before. There every signature with unknown probabilities
is predicted freely, by its own mixture, and a choice that departs leaves the rest of its signature to one. So
data without batches are tested, too, as a single first batch: all these distributions are free at once, which
costs (k−1)/2·log n for each that was met with k outcomes, where batches cost (d/2)·log n for d parameters
together.

*Choices that are said to be equal.* The departure "choice c is not what its signature says" predicts the
outcomes of c by the Krichevsky–Trofimov mixture of c alone, and everything else as the model's own
predictions do. Only choices that were taken are kept: a model has millions of others, about which the data
say nothing. The mixture's weights count them all the same, so they follow from the model.

KT of a choice depends on its counts alone, so it is brought up to date by what a batch adds:

    Δ log KT = Σ_o log Γ(n_o + Δ_o + ½) − log Γ(n_o + ½)  −  log Γ(N + Δ + w/2) + log Γ(N + w/2).

All arguments are halves of integers, and small ones are looked up. `spread` sums absolute values (log Γ is
above −1 everywhere), of which rounding makes less than a part in 10¹¹.

*Parameters that change between two batches.* With M how much better the model's own predictions did than the
truth up to the end of a batch j, and N the same for predictions that begin anew there, M^λ·N is a
supermartingale for λ in [0, 1] whatever the truth is (Jensen's inequality). Its smallest value over all
parameters,

    exp( λ·log q(past) + log q_j(since) − max_θ [ λ·ℓ_past(θ) + ℓ_since(θ) ] ),

is evidence that the parameters since j are not those before. λ = 1 pays (d/2)·log n for the past's
parameters; λ = 1/16 pays a sixteenth of it, and does where the past is long. Candidates are numbered, k has
the weight 1/(k(k+1)), half for each λ. Those that are left out, because they promise little or lie close to
another, only lower the sum.

Numerators are rounded down, the denominator up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaln

from tightrope.data.counts import Counts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.best_fit import BestFit, log_chances_of, refit
from tightrope.monitoring.departures import free_prediction
from tightrope.monitoring.e_process import FIRST_CHANGE, SHARES, EProcess, log_sum, log_weight
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel
from tightrope.statistics.outcomes import Outcomes

GROWTH = 1.4
"""Estimates are renewed, and evidence is looked at, when events have grown by this factor, and in the end."""


NEGLIGIBLE = -4.0
"""Where all choices together have less evidence than this, a logarithm, they are left out of the sum."""


class BatchTest(EProcess):
    """The evidence against a model, batch by batch of `counts`."""

    def __init__(self, model: ParametricMDP, counts: Counts):
        super().__init__(model)
        self.choices = ChoiceEvidence(self.outcomes, counts)
        self.changes = Changes(self.fit)
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
            self.own[is_free] = self._free(pooled.astype(np.float64))[is_free]
            self.own_size[is_free] = np.abs(self.own[is_free])
            self.choices.begin(transition, count, self.log_chance, is_free)
        else:
            self.choices.add(transition, count, self.log_chance)
        self.changes.add(seen)
        self.pooled += pooled
        self.seen += seen
        self.events += int(count.sum())

    def begin_change(self) -> None:
        """Let a change of the parameters begin here."""
        if self.events >= FIRST_CHANGE:
            self.changes.begin(self.events, self._total, self.seen, self.point, self.log_chance)

    def log_evidence(self, briefly: bool = False) -> float:
        """log E now, rounded down; `briefly` leaves out what is much work and next to no evidence."""
        if self.events == 0:
            return 0.0
        surplus = self.surplus()
        expressions = self.log_weight("expression") + log_sum(self.expression_departures())
        drifts = [math.log(SHARES["drift"]) + log_e for log_e, _ in self._weigh()]
        return log_sum(np.array([surplus + expressions, self._ties(surplus, briefly), *drifts]))

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
        result = self._free(self.pooled) - self.own - SPARE * self.own_size
        return np.where(self.outcomes.width > 1, result, -math.inf)

    def free_of_signatures(self) -> FloatArray:
        """The logarithm of the free prediction of each signature."""
        return self._free(self.pooled)

    def strongest_change(self) -> tuple[float, Change] | None:
        """The change with the most evidence, and the logarithm of what it has by itself."""
        result = [(log_e - change.log_weight, change) for log_e, change in self._weigh()]
        return max(result, key=lambda each: each[0], default=None)

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
        result: FloatArray = self.seen + self.past * min(1.0, TEMPERED / max(float(self.past.sum()), 1.0))
        return result

    def promise(self, log_chance: FloatArray) -> float:
        """About an upper bound on the logarithm of its part of the sum, from predictions that fit well."""
        explained = float((self.tie * self.past + self.seen) @ log_chance)
        return self.tie * self.before + self.own - explained + self.log_weight

    def log_evidence(self, fit: BestFit, start: FloatArray) -> float:
        """The logarithm of its evidence, rounded down; `start` is near the best fit."""
        weight = self.tie * self.past + self.seen
        most = fit.upper(weight, fit.search(weight, start))
        return self.tie * self.before + self.own - SPARE * self.size - most - 1e-9


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
        inside, result = log_chances_of(self.fit, points[:, 0])
        for number, candidate in enumerate(due):
            candidate.estimated_at = float(candidate.seen.sum())
            if inside[number]:
                candidate.point, candidate.log_chance = points[number, 0], result[number]

    def weigh_candidates(self, log_chance: FloatArray, start: FloatArray) -> list[tuple[float, Change]]:
        """log(w·E) of the candidates that promise something."""
        return [
            (change.log_weight + change.log_evidence(self.fit, start), change)
            for change in self.candidates
            if change.seen.any() and change.promise(log_chance) > PROMISING
        ]

    def _thin(self, event: int, log_chance: FloatArray) -> None:
        retained: list[Change] = []
        for change in reversed(self.candidates):
            if retained and event - change.event < SPACING * (event - retained[-1].event):
                if len(retained) > 1 and change.promise(log_chance) > retained[-1].promise(log_chance):
                    retained[-1] = change
                continue
            retained.append(change)
        self.candidates = retained[::-1]
