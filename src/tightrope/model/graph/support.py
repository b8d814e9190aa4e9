"""Possible and certain transitions of a choice, and sets that nature can reach or avoid.

Nature picks p with lower ≤ p ≤ upper and Σp = 1. For a set X of states:

* p(X) > 0 is possible iff some *possible* transition leads into X: its upper bound is positive and the other
  lower bounds sum to less than 1;
* p(X) > 0 is unavoidable iff a lower bound into X is positive, or the upper bounds outside X sum to less than
  1 (`must_enter`); a transition is *certain* iff it is unavoidable alone;
* p(X) = 1 is possible iff p(not X) > 0 is avoidable (`can_stay`), unavoidable iff all possible transitions
  lead into X.

Every comparison of a sum with 1 is exact: [0, 1−2⁻⁵³] beside [0, 1] leaves 2⁻⁵³. The bounds of a whole row
may miss 1 by rounding (0.1 + 0.2 + 0.7); the row is then that distribution. The rules cover this: if all
upper bounds sum to less than 1, so do those of every subset; lower bounds above 1 leave nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import inlined, kernel
from tightrope.numerics.rounding import SUM_UNIT, add, distil

Joins = tuple[bool, bool]
"""Whether the agent and nature take part in an attempt; who does not opposes it."""


class Ranked(NamedTuple):
    """`states`; `rank` orders them; `witness[s]` is a choice of the agent, −1 where none is meant."""

    states: BoolArray
    rank: IndexArray
    witness: OffsetArray

    @staticmethod
    def begin(states: BoolArray) -> Ranked:
        """All at rank 0, without a choice."""
        return Ranked(states, np.zeros(len(states), np.int32), np.full(len(states), -1, np.int64))


class GraphEngine(Protocol):
    """The fixpoints of `qualitative` somewhere; arrays are changed in place. `usable`: see `Support`."""

    def attract(
        self, usable: BoolArray | None, joins: Joins, within: BoolArray, choices: BoolArray, ranked: Ranked
    ) -> int:
        """Extend `ranked` by what is drawn through `within`; how many were added."""

    def settle(
        self, usable: BoolArray | None, joins: Joins, exempt: BoolArray, within: BoolArray, choices: BoolArray
    ) -> int:
        """Shrink `within` and close choices; `exempt` states need no way to stay. How many went."""

    def keep_or_sink(
        self, usable: BoolArray | None, avoids: Joins, choices: BoolArray, inside: BoolArray, layers: Ranked
    ) -> None:
        """Greatest subset of `inside` where who avoids enters the states of `layers` or stays inside surely,
        with witnesses."""


class RowArrays(NamedTuple):
    """The distributions of choices: less to hand on in loops than all of a graph."""

    transition_start: OffsetArray
    successor: IndexArray
    least: FloatArray
    most: FloatArray
    possible: BoolArray


class GraphArrays(NamedTuple):
    """What loops over the graph take: choices, their rows, possible transitions into each state."""

    choice_start: OffsetArray
    rows: RowArrays
    predecessor_start: OffsetArray
    predecessor: IndexArray
    transition_choice: IndexArray
    choice_state: IndexArray


class ForwardArrays(NamedTuple):
    """What loops take that only ask where transitions lead."""

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    possible: BoolArray


@dataclass(frozen=True, eq=False)
class Support:
    """The graph under nature's bounds; `usable` overrides what is possible, `engine` runs the fixpoints."""

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    usable: BoolArray | None = None
    engine: GraphEngine | None = None

    def __post_init__(self) -> None:
        lower = read_only(self.lower)
        upper = lower if self.upper is self.lower else read_only(self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @staticmethod
    def of(model: MDP | IntervalMDP) -> Support:
        if isinstance(model, MDP):
            return Support(model.structure, model.probability, model.probability)
        return Support(model.structure, model.lower, model.upper)

    @cached_property
    def _masks(self) -> tuple[BoolArray, BoolArray]:
        if self.usable is not None:
            return self.usable, self.usable & (self.lower > 0)
        possible = np.empty(self.structure.transitions, np.bool_)
        if self.lower is self.upper:
            np.greater(self.upper, 0, out=possible)
            return possible, possible
        certain = np.empty(self.structure.transitions, np.bool_)
        _masks(self.structure.transition_start, self.lower, self.upper, possible, certain)
        return possible, certain

    @property
    def possible(self) -> BoolArray:
        """Transitions that nature can give positive probability."""
        return self._masks[0]

    @property
    def certain(self) -> BoolArray:
        """Transitions that nature cannot cut."""
        return self._masks[1]

    @cached_property
    def is_constant(self) -> bool:
        """Whether nature can cut nothing: the graph is that of an ordinary MDP."""
        return self.certain is self.possible or bool(np.array_equal(self.certain, self.possible))

    @cached_property
    def state_start(self) -> OffsetArray:
        """The first transition of every state (and the end): a state's transitions are contiguous."""
        return self.structure.transition_start[self.structure.choice_start]

    @cached_property
    def predecessors(self) -> tuple[OffsetArray, IndexArray]:
        """(start[S+1], transition): the possible transitions into every state, by index."""
        return sort_by(self.structure.successor, self.possible, self.structure.states)

    @property
    def forward(self) -> ForwardArrays:
        s = self.structure
        return ForwardArrays(s.choice_start, s.transition_start, s.successor, self.possible)

    @cached_property
    def arrays(self) -> GraphArrays:
        s = self.structure
        rows = RowArrays(s.transition_start, s.successor, self.lower, self.upper, self.possible)
        return GraphArrays(s.choice_start, rows, *self.predecessors, s.transition_choice, s.choice_state)


@kernel
def _masks(
    transition_start: OffsetArray,
    lower: FloatArray,
    upper: FloatArray,
    possible: BoolArray,
    certain: BoolArray,
) -> None:
    for c in range(len(transition_start) - 1):
        first, last = transition_start[c], transition_start[c + 1]
        if last - first == 1:
            possible[first] = certain[first] = upper[first] > 0.0
            continue
        tolerance = (last - first + 2) * SUM_UNIT
        low, high, exact = 0.0, 0.0, True
        for t in range(first, last):
            high += upper[t]
            low, exact = add(low, exact, lower[t])
        leaves = low < 1.0
        if not exact and abs(low - 1.0) <= tolerance:
            leaves = not _reach_one(first, last, lower, -1)
        for t in range(first, last):
            possible[t] = upper[t] > 0.0 and (lower[t] > 0.0 or leaves)
            certain[t] = possible[t] and lower[t] > 0.0
            if possible[t] and not certain[t]:
                others = high - upper[t]
                if abs(others - 1.0) <= tolerance:
                    certain[t] = not _reach_one(first, last, upper, t)
                else:
                    certain[t] = others < 1.0


@kernel
def _reach_one(first: int, last: int, bound: FloatArray, without: int) -> bool:
    """Whether the bounds of a choice, but for that of `without`, sum to at least 1."""
    total, exact = 0.0, True
    for t in range(first, last):
        if t != without:
            total, exact = add(total, exact, bound[t])
    if exact or abs(total - 1.0) > (last - first + 2) * SUM_UNIT:
        return total >= 1.0
    terms, size = np.empty(last - first), 0
    for t in range(first, last):
        if t != without:
            terms[size] = bound[t]
            size += 1
    return distil(-1.0, terms, size) >= 0.0


def sort_by(key: IndexArray, counts: BoolArray, keys: int) -> tuple[OffsetArray, IndexArray]:
    """Where the places of each key 0..keys − 1 begin, and the places that count by their keys, in order."""
    start: OffsetArray = np.zeros(keys + 1, np.int64)
    order: IndexArray = np.empty(int(np.count_nonzero(counts)), np.int32)
    _sort_by(read_only(key), read_only(counts), start, order)
    return start, order


@kernel
def _sort_by(key: IndexArray, counts: BoolArray, start: OffsetArray, order: IndexArray) -> None:
    for i in range(len(key)):
        if counts[i]:
            start[key[i] + 1] += 1
    for k in range(len(start) - 1):
        start[k + 1] += start[k]
    cursor = start[:-1].copy()
    for i in range(len(key)):
        if counts[i]:
            k = key[i]
            order[cursor[k]] = i
            cursor[k] += 1


@kernel
def queue_up(states: BoolArray, queue: IndexArray) -> int:
    """Put states of a mask into a queue; how many."""
    size = 0
    for s in range(len(states)):
        if states[s]:
            queue[size] = s
            size += 1
    return size


@inlined
def can_enter(rows: RowArrays, c: int, inside: BoolArray) -> bool:
    """Whether some p at choice c gives `inside` positive probability."""
    successor, possible, enters = rows.successor, rows.possible, False
    for t in range(rows.transition_start[c], rows.transition_start[c + 1]):
        if possible[t] and inside[successor[t]]:
            enters = True
            break
    return enters


@kernel
def must_enter(rows: RowArrays, c: int, inside: BoolArray) -> bool:
    """Whether every p at the choice gives `inside` positive probability."""
    successor, upper, possible = rows.successor, rows.most, rows.possible
    first, last = rows.transition_start[c], rows.transition_start[c + 1]
    outside, exact = 0.0, True
    enters = False
    for t in range(first, last):
        if not possible[t]:
            continue
        if inside[successor[t]]:
            enters = True
            if rows.least[t] > 0.0:
                return True
        else:
            outside, exact = add(outside, exact, upper[t])
    if not enters or exact or abs(outside - 1.0) > (last - first + 2) * SUM_UNIT:
        return enters and outside < 1.0
    return not _hold_one(rows, c, inside, False)


@inlined
def must_stay(rows: RowArrays, c: int, group: IndexArray | BoolArray, home: int) -> bool:
    """Whether every p at the choice gives the states with `group` = `home` probability 1."""
    successor, possible, stays = rows.successor, rows.possible, True
    for t in range(rows.transition_start[c], rows.transition_start[c + 1]):
        if possible[t] and group[successor[t]] != home:
            stays = False
            break
    return stays


@kernel
def can_stay(rows: RowArrays, c: int, group: IndexArray | BoolArray, home: int) -> bool:
    """Whether some p at the choice gives the states with `group` = `home` probability 1; see `must_stay`."""
    successor, upper, possible = rows.successor, rows.most, rows.possible
    first, last = rows.transition_start[c], rows.transition_start[c + 1]
    leaves = False
    for t in range(first, last):
        if possible[t] and group[successor[t]] != home:
            leaves = True
            if rows.least[t] > 0.0:
                return False
    if not leaves:
        return True
    mass, exact = 0.0, True
    for t in range(first, last):
        if possible[t] and group[successor[t]] == home:
            mass, exact = add(mass, exact, upper[t])
    if exact or abs(mass - 1.0) > (last - first + 2) * SUM_UNIT:
        return mass >= 1.0
    return _hold_one(rows, c, group, home)


@kernel
def _hold_one(rows: RowArrays, c: int, group: IndexArray | BoolArray, home: int) -> bool:
    """Whether the upper bounds of the possible transitions into the group sum to at least 1."""
    first, last = rows.transition_start[c], rows.transition_start[c + 1]
    terms, size = np.empty(last - first), 0
    for t in range(first, last):
        if rows.possible[t] and group[rows.successor[t]] == home:
            terms[size] = rows.most[t]
            size += 1
    return distil(-1.0, terms, size) >= 0.0
