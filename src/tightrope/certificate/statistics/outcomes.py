"""What was seen, counted again from batches: outcomes of choices.

An *outcome* of a choice is a group of m transitions with one expression f; it has the probability m·f.
Choices with the same outcomes draw from one distribution, so their counts are added up, outcome by outcome.
Counts are at most 2⁵⁰ together (the door sees to that): sums of them are exact, also in doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tightrope.certificate.problem import Problem
from tightrope.certificate.region.polynomials import Terms, add

if TYPE_CHECKING:
    from tightrope.certificate.evidence import Data
    from tightrope.certificate.statistics.statements import Setting

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
        transition_start, expression_of = problem.graph.transition_start, problem.expression
        assert expression_of is not None
        length = np.diff(transition_start)
        of_choice = np.zeros(len(length), dtype=np.int64)
        number: dict[bytes, int] = {}
        rows: list[tuple[Ints, Ints]] = []
        seen: list[Ints] = []
        for k in np.flatnonzero(np.bincount(length)).tolist():
            choices = np.flatnonzero(length == k)
            table = transition_start[choices][:, None] + np.arange(k)
            hits, table = counts[table], expression_of[table]
            same = _number_rows(table)
            first = np.zeros(int(same.max()) + 1, dtype=np.int64)
            first[same] = np.arange(len(same))
            pooled = np.stack([np.bincount(same, hits[:, j], len(first)) for j in range(k)], axis=1)
            place = np.zeros(len(first), dtype=np.int64)
            for i, row in enumerate(table[first]):
                distinct, where, times = np.unique(row, return_inverse=True, return_counts=True)
                shown = np.bincount(where, pooled[i]).astype(np.int64)
                name = distinct.tobytes() + times.tobytes()
                place[i] = number.setdefault(name, len(rows))
                if place[i] == len(rows):
                    rows.append((distinct, times))
                    seen.append(shown)
                else:
                    seen[place[i]] = seen[place[i]] + shown
            of_choice[choices] = place[same]
        start = np.concatenate([[0], np.cumsum([len(row) for row, _ in rows])]).astype(np.int64)
        expression, multiplicity = (np.concatenate([row[i] for row in rows]).astype(np.int64) for i in (0, 1))
        return Outcomes(start, expression, multiplicity, np.concatenate(seen), of_choice)

    def of_transition(self, problem: Problem) -> Ints:
        """The outcome that every transition belongs to."""
        assert problem.expression is not None and problem.polynomial is not None
        radix = len(problem.polynomial)
        group = np.repeat(self.of_choice, np.diff(problem.graph.transition_start))
        key = self.owner * radix + self.expression  # rises
        return np.searchsorted(key, group * radix + problem.expression)

    def unbalanced(self, about: Setting) -> list[int] | None:
        """The expressions of a choice whose probabilities do not sum to 1 as functions, if any."""
        for a, b in pairwise(self.start.tolist()):
            total: Terms = {}
            for e, m in zip(self.expression[a:b].tolist(), self.multiplicity[a:b].tolist(), strict=True):
                total = add(total, about.polynomials[e], m)
            if about.space.complement(total):
                return list(self.expression[a:b].tolist())
        return None


def _number_rows(table: Ints) -> Ints:
    """A number for every row, the same for equal rows."""
    number = np.zeros(len(table), dtype=np.int64)
    radix = int(table.max(initial=0)) + 1
    for column in table.T:
        number = number * radix + column
        number = np.searchsorted(np.unique(number), number)
    return number
