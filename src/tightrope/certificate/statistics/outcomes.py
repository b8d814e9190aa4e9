"""What was seen, counted again from batches: outcomes of choices.

An *outcome* of a choice is a group of m transitions with one expression f; it has the probability m·f.
Choices with the same outcomes draw from one distribution, so their counts are added up, outcome by outcome.
Counts are at most 2⁵⁰ together (the door sees to that): sums of them are exact, also in doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tightrope.certificate.budget import spend
from tightrope.certificate.problem import Problem

if TYPE_CHECKING:
    from tightrope.certificate.evidence import Data

Ints = npt.NDArray[np.int64]


def totals(data: Data, labels: Ints, size: int, first: int = 0, last: int | None = None) -> Ints:
    """How often each label was seen in the batches from `first` to before `last`; labels are transitions'."""
    ends = data.batch_start[first], data.batch_start[data.batches if last is None else last]
    seen, count = data.batch_transition[ends[0] : ends[1]], data.batch_count[ends[0] : ends[1]]
    return np.bincount(labels[seen], count, size).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcome o of group owner[o] has probability multiplicity[o]·f, f = expression[o], and was seen[o].

    Outcomes of group k are start[k] to start[k+1]; `visits` are those of groups, `of_choice` the group of
    every choice.
    """

    start: Ints
    expression: Ints
    multiplicity: Ints
    seen: Ints
    of_choice: Ints

    @property
    def owner(self) -> Ints:
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def visits(self) -> Ints:
        return np.add.reduceat(self.seen, self.start[:-1])

    @staticmethod
    def of(problem: Problem, counts: Ints) -> Outcomes:
        graph, expression_of = problem.graph, problem.expression
        assert expression_of is not None
        choice = np.repeat(np.arange(graph.choices), np.diff(graph.transition_start))
        order = np.lexsort((expression_of, choice))
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (np.diff(choice) != 0) | (np.diff(expression_of[order]) != 0)
        first = np.flatnonzero(new)
        expression, seen = expression_of[order[first]], np.add.reduceat(counts[order], first)
        multiplicity = np.diff(np.append(first, len(order)))
        start = np.searchsorted(choice[first], np.arange(graph.choices + 1))
        of_choice, groups, parts = np.zeros(graph.choices, dtype=np.int64), 0, []
        for k in np.unique(np.diff(start)).tolist():
            choices = np.flatnonzero(np.diff(start) == k)
            spend("outcomes of choices", 1000 + len(start) // 8 + 10 * k * len(choices))
            table = start[choices][:, None] + np.arange(k)
            same = _number_rows(np.concatenate([expression[table], multiplicity[table]], axis=1))
            one = np.zeros(int(same.max()) + 1, dtype=np.int64)
            one[same] = np.arange(len(same))
            pooled = np.zeros((len(one), k), dtype=np.int64)
            np.add.at(pooled, same, seen[table])
            of_choice[choices], groups = groups + same, groups + len(one)
            own = table[one].reshape(-1)
            parts.append((np.full(len(one), k), expression[own], multiplicity[own], pooled.reshape(-1)))
        width, named, times, pooled = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Outcomes(np.concatenate([[0], np.cumsum(width)]), named, times, pooled, of_choice)


def _number_rows(table: Ints) -> Ints:
    """A number for every row, the same for equal rows."""
    number = np.zeros(len(table), dtype=np.int64)
    radix = int(table.max(initial=0)) + 1
    for column in table.T:
        number = number * radix + column
        number = np.searchsorted(np.unique(number), number)
    return number
