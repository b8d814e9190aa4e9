"""What was seen of the outcomes of choices, counted again from batches.

An *outcome* of a choice is a group of m transitions with one expression f; it has the probability m·f.
Choices with the same outcomes draw from one distribution, so their counts are added up, outcome by outcome.
Counts are at most 2⁵⁰ together (the door sees to that): sums of them are exact, also in doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.certificate.budget import spend
from tightrope.certificate.problem import CertifiedProblem
from tightrope.numerics.arrays import OffsetArray


@dataclass(frozen=True, eq=False)
class SeenOutcomes:
    """Outcome o of group owner[o] has probability multiplicity[o]·f, f = expression[o], and was seen[o].

    Outcomes of group k are start[k] to start[k+1]; `visits` are those of groups, `of_choice` the group of
    every choice.
    """

    start: OffsetArray
    expression: OffsetArray
    multiplicity: OffsetArray
    seen: OffsetArray
    of_choice: OffsetArray

    @property
    def owner(self) -> OffsetArray:
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def visits(self) -> OffsetArray:
        return np.add.reduceat(self.seen, self.start[:-1])

    @staticmethod
    def of(problem: CertifiedProblem, counts: OffsetArray) -> SeenOutcomes:
        graph, expression_of = problem.graph, problem.expression
        assert expression_of is not None
        choice = np.repeat(np.arange(graph.choices), np.diff(graph.transition_start))
        radix = int(expression_of.max()) + 1
        pairs = np.unique(choice * radix + expression_of, return_inverse=True, return_counts=True)
        (owner, expression), multiplicity = np.divmod(pairs[0], radix), pairs[2]
        seen = np.bincount(pairs[1].reshape(-1), counts).astype(np.int64)
        start = np.searchsorted(owner, np.arange(graph.choices + 1))
        spend("outcomes of choices", 1000 + 40 * len(expression))
        listed, times = expression.tolist(), multiplicity.tolist()
        keys = [(*listed[a:b], *times[a:b]) for a, b in pairwise(start.tolist())]
        groups = {key: i for i, key in enumerate(sorted(set(keys), key=lambda one: (len(one), one)))}
        of_choice, width = np.array([groups[key] for key in keys]), [len(key) // 2 for key in groups]
        first = np.concatenate([[0], np.cumsum(width)])
        place = np.repeat(first[of_choice] - start[:-1], np.diff(start)) + np.arange(len(expression))
        pooled, one = np.bincount(place, seen).astype(np.int64), np.unique(place, return_index=True)[1]
        return SeenOutcomes(first, expression[one], multiplicity[one], pooled, of_choice)
