"""A model's graph and what is asked of it as plain arrays, and ways through graphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

NEVER = 1e150
"""The value of a state from which a reward without end is collected."""


@dataclass(frozen=True, eq=False)
class GraphQuestion:
    """A model's graph and what is asked of it. `kind` and all else as in `tightrope.model.objective`."""

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: Any
    initial: int
    kind: str
    maximises: bool
    complement: bool
    lower_steps: int = 0
    upper_steps: int | None = None
    discount: float | None = None
    reward: FloatArray | None = None
    target: BoolArray | None = None
    allowed: BoolArray | None = None
    terminal: FloatArray | None = None

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    @cached_property
    def owner(self) -> OffsetArray:
        """The state of every choice."""
        return np.repeat(np.arange(self.states), np.diff(self.choice_start))

    @cached_property
    def origin(self) -> OffsetArray:
        """The state of every transition."""
        return np.repeat(self.owner, np.diff(self.transition_start))

    @cached_property
    def earned(self) -> FloatArray:
        return np.zeros(len(self.owner)) if self.reward is None else self.reward

    @property
    def rate(self) -> float:
        return 1.0 if self.discount is None else self.discount

    @property
    def is_bounded(self) -> bool:
        """Whether the best policy has a choice for every step, of which there are finitely many."""
        return self.upper_steps is not None and self.kind != "NEXT"

    @cached_property
    def fixed(self) -> BoolArray:
        """Where a value is known whatever is done: before any backup that a bound on the steps asks for."""
        if self.kind == "UNTIL" and self.target is not None:
            return self.target if self.allowed is None else self.target | ~self.allowed
        if self.kind == "REACH_REWARD" and self.target is not None:
            return self.target
        return np.zeros(self.states, dtype=np.bool_)

    @cached_property
    def value(self) -> FloatArray:
        """On `fixed`."""
        if self.kind == "UNTIL" and self.target is not None:
            return self.target.astype(np.float64)
        if self.kind == "REACH_REWARD" and self.terminal is not None:
            return np.where(self.fixed, self.terminal, 0.0)
        return np.zeros(self.states)

    @property
    def ends(self) -> OffsetArray:
        """The states that a play is to reach."""
        return np.flatnonzero(self.fixed & (self.value > 0.0) if self.kind == "UNTIL" else self.fixed)

    @cached_property
    def decided(self) -> tuple[BoolArray, FloatArray]:
        """States whose value no policy changes, with these values."""
        return self.known(self.origin, self.successor, self.owner[self.earned > 0.0])

    def known(self, origin: Any, successor: Any, earning: OffsetArray) -> tuple[BoolArray, FloatArray]:
        """The same where only these transitions are left, and these states earn something."""
        fixed, value = self.fixed, self.value
        if self.kind == "DISCOUNTED":
            return fixed, value
        open_ended = ~fixed[origin]
        ends = earning if self.kind == "TOTAL" else self.ends
        back = find_reached(self.states, successor[open_ended], origin[open_ended], ends)
        if self.kind != "REACH_REWARD":
            return fixed | ~back, value
        return fixed | ~back, np.where(back | fixed, value, NEVER)

    @cached_property
    def layers(self) -> OffsetArray | None:
        """For every state the longest way to a decided one; None where there are cycles."""
        held = self.decided[0]
        moves = ~held[self.origin]
        return layers_of(self.states, self.origin[moves], self.successor[moves])

    def backup(self, probability: FloatArray, values: FloatArray) -> FloatArray:
        """r + P·V of every choice."""
        terms = np.add.reduceat(probability * values[self.successor], self.transition_start[:-1])
        return self.earned + self.rate * terms


def spread(start: OffsetArray, groups: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    """(the members of these groups, where each group starts among them)."""
    length = start[groups + 1] - start[groups]
    begin = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    return np.arange(int(begin[-1])) + np.repeat(start[groups] - begin[:-1], length), begin


def find_reached(states: int, origin: Any, successor: Any, begin: OffsetArray) -> BoolArray:
    """The states on a way along these transitions from where one begins."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    rows = np.concatenate([origin, np.full(len(begin), states)])
    columns = np.concatenate([successor, begin])
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(states + 1, states + 1))
    reached = np.zeros(states + 1, dtype=np.bool_)
    reached[breadth_first_order(graph, states, return_predecessors=False)] = True
    return reached[:-1]


def layers_of(states: int, origin: Any, successor: Any) -> OffsetArray | None:
    """The length of the longest way from each state along these transitions; None where one has no end."""
    left, layer = np.bincount(origin, minlength=states), np.zeros(states, dtype=np.int64)
    back = np.argsort(successor, kind="stable")
    origin, start = origin[back], np.searchsorted(successor[back], np.arange(states + 1))
    ended, number, done = np.flatnonzero(left == 0), 0, 0
    while len(ended):
        layer[ended] = number
        number, done = number + 1, done + len(ended)
        before = origin[spread(start, ended)[0]]
        np.subtract.at(left, before, 1)
        ended = np.unique(before[left[before] == 0])
    return layer if done == states else None
