"""The outcomes of each signature, and how often each was seen.

Choices with the same signature draw from the same distribution, so their counts are pooled first. Within a
signature, m successors with the same expression f form one outcome of probability m·f (the paper removes this
case by an intermediate state).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.model.mdp import MDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, offsets
from tightrope.numerics.record import Record, remember
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser


@dataclass(frozen=True, eq=False, repr=False)
class Outcomes(Record):
    """Outcome o has probability multiplicity[o]·f, f = expression[o]; those of a signature lie together."""

    model: ParametricMDP
    start: OffsetArray
    signature: IndexArray
    expression: IndexArray
    multiplicity: IndexArray
    of_transition: IndexArray

    @staticmethod
    @remember
    def of(model: ParametricMDP) -> Outcomes:
        """Group the slots of every signature by expression."""
        signatures = model.signatures
        length = np.diff(signatures.start)
        owner = np.repeat(np.arange(len(signatures)), length)
        key = owner * np.int64(len(model.expressions)) + signatures.expression
        distinct, slot_outcome, multiplicity = np.unique(key, return_inverse=True, return_counts=True)
        signature = (distinct // len(model.expressions)).astype(np.int32)
        start = np.searchsorted(signature, np.arange(len(signatures) + 1)).astype(np.int64)
        of_transition = signatures.spread(model.transition_start, slot_outcome.astype(np.int32))
        return Outcomes(
            model,
            start,
            signature,
            (distinct % len(model.expressions)).astype(np.int32),
            multiplicity.astype(np.int32),
            of_transition,
        )

    def __len__(self) -> int:
        return len(self.expression)

    @property
    def coordinates(self) -> Coordinates:
        """Coordinates in which the model's expressions are affine."""
        return Coordinates.of(self.model.expressions, self.model.parameters)

    @property
    def functions(self) -> AffineFunctions:
        """The expressions, as functions of the coordinates."""
        return self.coordinates.functions(self.model.expressions)

    @property
    def maximiser(self) -> LikelihoodMaximiser:
        return LikelihoodMaximiser.of(self.coordinates, self.functions)

    def estimate(self, counts: Counts) -> FloatArray:
        """The free parameters that fit all counts best, smoothed."""
        return self.maximiser.estimate(self.by_expression(self.pooled(counts)) * self.informative)

    def by_expression(self, seen: OffsetArray) -> FloatArray:
        """How often each expression was seen, given how often each outcome was."""
        size = len(self.model.expressions)
        return np.bincount(self.expression, weights=seen, minlength=size).astype(np.float64)

    @property
    def informative(self) -> BoolArray:
        """The expressions that are not constant."""
        return ~self.model.expressions.is_constant

    @cached_property
    def width(self) -> OffsetArray:
        """The number of outcomes of each signature."""
        return np.diff(self.start)

    def pooled(self, counts: Counts) -> OffsetArray:
        """How often each outcome was seen."""
        self.check(counts)
        return self._sum(self.of_transition, counts.transition)

    def pooled_batches(self, counts: Counts) -> list[OffsetArray]:
        """How often each outcome was seen in each batch, in time order; one batch where there are none."""
        self.check(counts)
        if counts.batches is None:
            return [self.pooled(counts)]
        return [self.pooled_part(seen, count) for seen, count in counts.batches]

    def pooled_part(self, transition: OffsetArray, count: OffsetArray) -> OffsetArray:
        """How often each outcome was seen, where `transition` was `count` times."""
        return self._sum(self.of_transition[transition], count)

    def visits(self, seen: OffsetArray) -> OffsetArray:
        """How often each signature was visited, given how often each outcome was seen."""
        total = offsets(seen)
        result: OffsetArray = total[self.start[1:]] - total[self.start[:-1]]
        return result

    def example_choice(self, outcome: int) -> int:
        """Some choice in which this outcome can be seen."""
        return int(self.model.signatures.example[self.signature[outcome]])

    def check(self, counts: Counts) -> None:
        """Refuse data that count the transitions of another model."""
        check_counts(self.model, counts)

    def _sum(self, outcome: IndexArray, count: OffsetArray) -> OffsetArray:
        """Sums of counts per outcome, in integers (float64 weights are exact below 2⁵³)."""
        if int(count.sum()) < 2**53:
            total = np.bincount(outcome, weights=count, minlength=len(self))
            return total.astype(np.int64)
        result = np.zeros(len(self), dtype=np.int64)
        np.add.at(result, outcome, count)
        return result

    def fitted(self, counts: Counts) -> MDP:
        """The model at the parameters that fit counts best; free distributions at their frequencies."""
        model, table = self.model, self.model.expressions
        weight, chance = self.by_expression(self.pooled(counts)), np.full(len(table), np.nan)
        constant, corner = table.is_constant, np.array([model.parameters.lower], dtype=np.float64)
        chance[constant] = table.values_many(corner)[0, constant]
        for one in model.parameters.free:
            rows = [model.expressions.index_of(each) for each in one.probabilities]
            seen = np.array([0.0 if row is None else weight[row] for row in rows]) + 1e-3
            for row, share in zip(rows, seen / seen.sum(), strict=True):
                if row is not None:
                    chance[row] = share
        if np.isnan(chance).any():
            fitted = self.functions.at(self.maximiser.lifted(self.estimate(counts)))
            chance = np.where(np.isnan(chance), fitted, chance)
        probability = np.clip(chance, 0.0, 1.0)[model.expression]
        total = np.add.reduceat(probability, model.transition_start[:-1])
        return MDP(model.structure, probability / total[model.structure.transition_choice])


def check_counts(model: ParametricMDP, counts: Counts) -> None:
    """Refuse data that count the transitions of another model."""
    if len(counts.transition) != model.transitions:
        raise InputError(
            f"the data count {len(counts.transition)} transitions, the model has {model.transitions}",
            hint="build the model with the constants and the domain that the data were collected with",
        )
