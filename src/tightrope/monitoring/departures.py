"""Ways in which data can depart from a model, each predicted by its own distribution.

For any prediction q given the past, q(data)/p_θ*(data) is a non-negative martingale under the true θ*,
whatever policy collects the data. A departure k predicts the outcomes of one part freely, by the
Krichevsky–Trofimov mixture, and everything else as the model does: log q_k = Σ_c L_c − L_k + KT_k. Parts are
signatures (wrong expressions) and choices that share a distribution or a probability (broken ties); weights
follow from the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.statistics.outcomes import Outcomes

SPARE = 1e-11
"""Relative to the absolute values of what is summed: many times the rounding of all sums."""


def free_prediction(seen: FloatArray, part: IndexArray, parts: int, width: OffsetArray) -> FloatArray:
    """KT of each part, rounded down: `seen` per outcome, of which `part` says whose it is."""
    terms = gammaln(seen + 0.5) - gammaln(0.5)
    total = np.bincount(part, weights=seen, minlength=parts)
    size = np.bincount(part, weights=np.abs(terms), minlength=parts)
    begin, end = gammaln(0.5 * width), gammaln(total + 0.5 * width)
    value = np.bincount(part, weights=terms, minlength=parts) + (begin - end)
    spread = size + np.abs(end) + np.abs(begin)
    result: FloatArray = np.minimum(value - SPARE * (spread + 1.0), 0.0)
    return result


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of a model that may depart from it: outcome o belongs to part[o]; `total` counts those left out,
    too."""

    part: IndexArray
    width: OffsetArray
    multiplicity: FloatArray
    expression: IndexArray
    outcome: OffsetArray
    choice: OffsetArray
    total: int

    def __len__(self) -> int:
        return len(self.width)

    @staticmethod
    def signatures(outcomes: Outcomes, chosen: BoolArray | None = None) -> Parts:
        """One part per distribution that choices of the model have, where more than one thing can happen."""
        wide = outcomes.width > 1 if chosen is None else chosen
        part = np.where(wide, np.cumsum(wide) - 1, -1)[outcomes.signature]
        own = outcomes.multiplicity.astype(np.float64), outcomes.expression
        about = outcomes.width[wide], outcomes.model.signatures.example[wide].astype(np.int64)
        return Parts._of(part, own, outcomes.of_transition, *about, int(wide.sum()))

    @staticmethod
    def choices(outcomes: Outcomes, visited: BoolArray | None = None) -> Parts:
        """One part per (visited) choice that shares its distribution, or a probability among successors."""
        model = outcomes.model
        owner = model.signatures.of_choice
        length = np.diff(model.transition_start)
        tied = (np.bincount(owner)[owner] > 1) | (length > outcomes.width[owner])
        tied &= length > 1
        own = np.flatnonzero(tied if visited is None else tied & visited)
        number = np.full(model.choices, -1, dtype=np.int64)
        number[own] = np.arange(len(own))
        part, every = np.repeat(number, length), np.arange(model.transitions)
        each = np.ones(len(every)), outcomes.expression[outcomes.of_transition]
        return Parts._of(part, each, every, length[own], own.astype(np.int64), int(tied.sum()))

    @staticmethod
    def _of(
        part: OffsetArray,
        each: tuple[FloatArray, IndexArray],
        place_of: AnyArray,
        width: OffsetArray,
        choice: OffsetArray,
        total: int,
    ) -> Parts:
        """Those of outcomes that have a part."""
        own = part >= 0
        place = np.where(own, np.cumsum(own) - 1, -1)[place_of]
        return Parts(part[own].astype(np.int32), width, each[0][own], each[1][own], place, choice, total)


class PartEvidence:
    """How well each part is predicted freely, and by the model: logarithms, both rounded down."""

    def __init__(self, parts: Parts):
        self.parts = parts
        self.seen = np.zeros(len(parts.part))
        self.model = np.zeros(len(parts))
        self.model_size = np.zeros(len(parts))
        self._free = np.zeros(len(parts))
        self._stale = np.zeros(len(parts), dtype=np.bool_)

    def add(self, transition: OffsetArray, count: OffsetArray, log_chance: FloatArray) -> None:
        """Count transitions, predicted with these logarithms of the probability per expression."""
        place = self.parts.outcome[transition]
        retained = place >= 0
        place, number = place[retained], count[retained].astype(np.float64)
        np.add.at(self.seen, place, number)
        term = number * log_chance[self.parts.expression[place]]
        owner = self.parts.part[place]
        np.add.at(self.model, owner, term)
        np.add.at(self.model_size, owner, np.abs(term))
        self._stale[owner] = True

    def free(self) -> FloatArray:
        """The log of the free prediction of each part, equal successors equally likely; rounded down."""
        stale = np.flatnonzero(self._stale)
        if len(stale):
            chosen = np.flatnonzero(self._stale[self.parts.part])
            renumbered = np.searchsorted(stale, self.parts.part[chosen]).astype(np.int32)
            free = free_prediction(self.seen[chosen], renumbered, len(stale), self.parts.width[stale])
            uniform = self.seen[chosen] * np.log(self.parts.multiplicity[chosen])
            alike = np.bincount(renumbered, weights=uniform, minlength=len(stale))
            self._free[stale] = free - alike * (1.0 + SPARE)
            self._stale[:] = False
        return self._free

    def gains(self) -> FloatArray:
        """A lower bound on log of (free prediction / the model's own) of each part."""
        return self.free() - self.model - SPARE * self.model_size

    def log_weight(self, share: float) -> float:
        """The logarithm of the weight of one part, where all share so much."""
        return math.log(share / max(self.parts.total, 1))

    def over(self, fitted: FloatArray) -> FloatArray:
        """What each part gains over probabilities of the expressions, about."""
        logs = self.seen * np.log(np.maximum(fitted[self.parts.expression], 1e-300))
        result: FloatArray = self.free() - np.bincount(self.parts.part, logs, len(self.parts))
        return result

    KEPT = ("seen", "model", "model_size")

    def restore(self, state: Mapping[str, AnyArray], prefix: str) -> None:
        put_back(self, self.KEPT, state, prefix)
        owner = self.parts.part[self.seen > 0.0]
        self._stale[:] = False
        self._stale[owner] = True


def held(owner: object, names: Sequence[str], prefix: str = "") -> dict[str, AnyArray]:
    """Attributes as arrays, for `put_back`: arithmetic goes on to the last bit."""
    return {f"{prefix}{name}": np.array(getattr(owner, name)) for name in names}


def put_back(owner: object, names: Sequence[str], state: Mapping[str, AnyArray], prefix: str = "") -> None:
    for name in names:
        value = np.array(state[f"{prefix}{name}"])
        setattr(owner, name, value if value.ndim else value.item())


def log_sum(terms: FloatArray) -> float:
    """log Σ exp, rounded down; terms that are next to nothing are left out."""
    largest = float(terms.max(initial=-math.inf))
    if not math.isfinite(largest):
        return math.inf if largest == math.inf else -math.inf
    total = largest + math.log(float(np.exp(terms[terms >= largest - 40.0] - largest).sum()))
    return total - 1e-9 - 4e-16 * abs(total)


def mean(log_e: FloatArray) -> float:
    """The logarithm of the average, rounded down."""
    return log_sum(log_e.ravel()) - math.log(log_e.size)


def hedged(log_e: FloatArray, share: float) -> FloatArray:
    """log Π (1 − share + share·E) over units, of which no two move at the same event."""
    if share == 1.0:
        return np.asarray(log_e.sum(axis=0))
    result: FloatArray = np.logaddexp(math.log1p(-share), log_e + math.log(share)).sum(axis=0)
    return result


def bet_on_all(log_e: FloatArray, size: int) -> float:
    """½ Π(1 − 1/S + E/S) + ½ Π(½ + E/2) over S units."""
    return mean(np.array([hedged(log_e, 0.5), hedged(log_e, 1.0 / max(size, 1))]))
