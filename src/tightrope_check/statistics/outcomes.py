"""The observed outcomes of choices, counted again from batches.

An *outcome* of a choice is a group of m transitions with one expression f; it has the probability m·f. Counts
of choices with the same outcomes, which draw from one distribution, are added up. The reader limits the total
to 2⁵⁰, so that sums are exact, also in doubles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope_check.arrays import OffsetArray
from tightrope_check.budget import spend
from tightrope_check.nature import Graph


@dataclass(frozen=True, eq=False)
class ChoiceKinds:
    """The expressions at every choice, each once, with how many transitions have it: those of choice c are
    start[c] to start[c+1]. Choices with the same ones are of one kind."""

    start: OffsetArray
    expression: OffsetArray
    multiplicity: OffsetArray
    of_transition: OffsetArray
    """The place among these of every transition's."""

    of_choice: OffsetArray
    """The kind of every choice: by how many expressions, then in the order of these and of multiplicities."""

    @staticmethod
    def of(graph: Graph, expression_of: OffsetArray) -> ChoiceKinds:
        choice = np.repeat(np.arange(graph.choices), np.diff(graph.transition_start))
        radix = int(expression_of.max()) + 1
        pairs = np.unique(choice * radix + expression_of, return_inverse=True, return_counts=True)
        (owner, expression), multiplicity = np.divmod(pairs[0], radix), pairs[2]
        start = np.searchsorted(owner, np.arange(graph.choices + 1))
        kinds, widths = _rank(np.diff(start)), np.sort(np.diff(start))
        spend("outcomes of choices", 2000 * int(widths[:-1].max(initial=0)))
        for entries in (expression, multiplicity):
            rows, place, radix = np.arange(graph.choices), 0, int(entries.max()) + 1
            while len(rows := rows[start[rows] + place < start[rows + 1]]) > 1:
                below = int(kinds[rows].min())  # kinds of fewer expressions come before
                kinds[rows] = below + _rank((kinds[rows] - below) * radix + entries[start[rows] + place])
                place += 1
        return ChoiceKinds(start, expression, multiplicity, pairs[1].reshape(-1), kinds)


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
    def of(kinds: ChoiceKinds, counts: OffsetArray) -> SeenOutcomes:
        start, expression, multiplicity = kinds.start, kinds.expression, kinds.multiplicity
        spend("outcomes of choices", 1000 + 40 * len(expression))
        seen, of_choice = np.bincount(kinds.of_transition, counts).astype(np.int64), kinds.of_choice
        width = np.zeros(int(of_choice.max()) + 1, dtype=np.int64)
        width[of_choice] = np.diff(start)
        first = np.concatenate([[0], np.cumsum(width)])
        place = np.repeat(first[of_choice] - start[:-1], np.diff(start)) + np.arange(len(expression))
        pooled, one = np.bincount(place, seen).astype(np.int64), np.unique(place, return_index=True)[1]
        return SeenOutcomes(first, expression[one], multiplicity[one], pooled, of_choice)


def _rank(codes: OffsetArray) -> OffsetArray:
    """The number of smaller codes, each counted once."""
    most = int(codes.max()) + 1
    if most > 64 * len(codes) + 1024:
        return np.unique(codes, return_inverse=True)[1].reshape(-1)
    present = np.zeros(most, dtype=np.int64)
    present[codes] = 1
    return (np.cumsum(present) - 1)[codes]
