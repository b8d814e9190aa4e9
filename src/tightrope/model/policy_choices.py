"""Choices of time-varying and finite-memory policies.

Time-varying: state s takes `choice[j]` from step `step[j]` until its next run begins, the last one for ever,
for j in start[s]..start[s+1]−1. The first run begins at step 0. Finite memory: in state `state[i]` with
memory `memory[i]` the choice is `choice[i]`, and the memory becomes `following[i]`. A play begins with memory
0. Rows are those that a play can reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.errors import InputError
from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure, freeze
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import Record


def check_choices(structure: Structure, state: OffsetArray, choice: OffsetArray) -> None:
    """Refuse choices that are none of their states."""
    low, high = structure.choice_start[state], structure.choice_start[state + 1]
    wrong = np.flatnonzero((choice < low) | (choice >= high))
    if len(wrong):
        first = wrong[0]
        raise InputError(
            f"the policy takes choice {choice[first]} in state {structure.state_name(int(state[first]))}, "
            f"whose choices are {low[first]}..{high[first] - 1}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TimeVaryingChoices(Record):
    """One choice (its index in the model) per state and step.

    >>> TimeVaryingChoices.constant(np.array([0, 2])).horizon
    0
    """

    start: OffsetArray
    step: OffsetArray
    choice: OffsetArray

    def __post_init__(self) -> None:
        freeze(self, np.int64, "start", "step", "choice")
        inner = np.ones(len(self.step), np.bool_)
        inner[self.start[:-1]] = False
        at = np.flatnonzero(inner)
        if np.any(np.diff(self.start) < 1) or np.any(self.step[self.start[:-1]] != 0):
            raise InputError("a policy by steps has no choice for the first step of some state")
        if np.any(self.step[at] <= self.step[at - 1]):
            raise InputError("the steps of a policy by steps are not in increasing order")

    @staticmethod
    def constant(choice: OffsetArray) -> TimeVaryingChoices:
        """Return choices that are `choice` at every step, one per state."""
        return TimeVaryingChoices(np.arange(len(choice) + 1), np.zeros(len(choice), np.int64), choice)

    @property
    def states(self) -> int:
        return len(self.start) - 1

    @cached_property
    def horizon(self) -> int:
        """From this step on nothing changes."""
        return int(self.step.max(initial=0))

    @property
    def first(self) -> OffsetArray:
        """The choices at step 0."""
        return self.choice[self.start[:-1]]

    def at(self, step: int) -> OffsetArray:
        """Return the choice of every state at `step`."""
        begun = np.add.reduceat((self.step <= step).astype(np.int64), self.start[:-1])
        return self.choice[self.start[:-1] + begun - 1]

    def choice_at(self, state: int, step: int) -> int:
        """Return the choice of `state` (an index) at `step`."""
        first, last = self.start[state : state + 2].tolist()
        return int(self.choice[first + int(np.searchsorted(self.step[first:last], step, side="right")) - 1])

    def backwards(self, steps: int) -> Iterator[OffsetArray]:
        """The choices at the steps `steps` − 1, …, 1, 0; each is valid until the next is asked for."""
        if steps <= 0:
            return
        current = self.at(steps - 1).copy()
        later = np.flatnonzero((self.step > 0) & (self.step < steps))
        later = later[np.argsort(self.step[later], kind="stable")]
        owner = np.repeat(np.arange(self.states), np.diff(self.start))
        ends = np.searchsorted(self.step[later], np.arange(steps + 1))
        for step in range(steps - 1, -1, -1):
            yield current
            begins = later[ends[step] : ends[step + 1]]
            current[owner[begins]] = self.choice[begins - 1]

    def refuse_for(self, structure: Structure) -> None:
        """Raise an error if the policy does not fit this model."""
        if self.states != structure.states:
            raise InputError(f"the policy names choices for {self.states} of {structure.states} states")
        check_choices(structure, np.repeat(np.arange(self.states), np.diff(self.start)), self.choice)


class TimeVaryingRecorder:
    """Collects decisions from the last step to the first, as backups find them."""

    def __init__(self, last: OffsetArray, step: int):
        """`last` is what is done from `step` on."""
        self.current, self.step = last.copy(), step
        self._state: list[OffsetArray] = []
        self._step: list[OffsetArray] = []
        self._choice: list[OffsetArray] = []

    def before(self, choice: OffsetArray) -> None:
        """What is done one step earlier."""
        changed = np.flatnonzero(choice != self.current)
        self._state.append(changed)
        self._step.append(np.full(len(changed), self.step))
        self._choice.append(self.current[changed])
        self.current[changed] = choice[changed]
        self.step -= 1

    def result(self) -> TimeVaryingChoices:
        """The whole; what was done at the earliest step recorded is done at all before it."""
        states = np.arange(len(self.current))
        state = np.concatenate([states, *self._state])
        step = np.concatenate([np.zeros(len(states), np.int64), *self._step])
        choice = np.concatenate([self.current, *self._choice])
        order = np.lexsort((step, state))
        start = np.searchsorted(state[order], np.arange(len(states) + 1))
        return TimeVaryingChoices(start, step[order], choice[order])


@dataclass(frozen=True, eq=False, repr=False)
class FiniteMemoryChoices(Record):
    """In `state[i]` with `memory[i]` take `choice[i]` and remember `following[i]`; a play begins with 0.

    >>> import tightrope as tr
    >>> rows = [(0, "left", {1: 1}), (0, "right", {2: 1}), (1, "", {0: 1}), (2, "", {0: 1})]
    >>> model = tr.build_from_rows(rows, labels={"a": [1], "b": [2]})
    >>> choices = tr.FiniteMemoryChoices([0, 1, 0, 2], [0, 1, 1, 0], [0, 2, 1, 3], [1, 1, 0, 0])
    >>> turns = tr.Policy(model, choices)
    >>> turns.act(0, memory=0), turns.next_memory(0, 0), turns.act(0, memory=1)
    ('left', 1, 'right')
    """

    state: OffsetArray
    memory: OffsetArray
    choice: OffsetArray
    following: OffsetArray

    def __post_init__(self) -> None:
        freeze(self, np.int64, "state", "memory", "choice", "following")
        lengths = {len(column) for column in self.columns}
        if len(lengths) > 1 or lengths == {0}:
            raise InputError(
                "finite-memory policies have as many states as memories, choices and next memories"
            )
        if self.state.min() < 0 or self.memory.min() < 0:
            raise InputError("a row of the finite-memory policy has a negative state or memory")
        if self.following.min() < 0 or self.following.max() >= self.memories:
            raise InputError("the finite-memory policy moves to a memory that has no row")
        if len(np.unique(self.state * self.memories + self.memory)) < len(self.state):
            raise InputError("the finite-memory policy has two rows for one state and memory")

    @property
    def columns(self) -> tuple[OffsetArray, OffsetArray, OffsetArray, OffsetArray]:
        return self.state, self.memory, self.choice, self.following

    @cached_property
    def memories(self) -> int:
        """How many different things are remembered."""
        return int(self.memory.max()) + 1

    def find(self, state: int, memory: int) -> int:
        """Return the row of `state` (an index) and `memory`; −1 if it is unreachable."""
        rows = np.flatnonzero((self.state == state) & (self.memory == memory))
        return int(rows[0]) if len(rows) else -1

    def refuse_for(self, structure: Structure) -> None:
        """Raise an error if the policy does not fit this model."""
        if self.state.max() >= structure.states:
            raise InputError("the finite-memory policy has a row for a state that the model does not have")
        check_choices(structure, self.state, self.choice)
        if self.find(structure.initial, 0) < 0:
            raise InputError("the finite-memory policy has no row for the initial state with memory 0")

    def restrict_to_reached(self, support: Support) -> FiniteMemoryChoices:
        """The rows that a play can reach; memories are numbered anew, 0 stays first."""
        structure, width = support.structure, self.memories
        row = {key: number for number, key in enumerate((self.state * width + self.memory).tolist())}
        first = row[structure.initial * width]
        order, seen = [first], {first}
        start, successor, possible = structure.transition_start, structure.successor, support.possible
        for number in order:
            choice, following = int(self.choice[number]), int(self.following[number])
            for transition in range(int(start[choice]), int(start[choice + 1])):
                if possible[transition]:
                    behind = row[int(successor[transition]) * width + following]
                    if behind not in seen:
                        seen.add(behind)
                        order.append(behind)
        reached = np.array(order)
        used = np.unique(np.concatenate([[0], self.memory[reached], self.following[reached]]))
        return FiniteMemoryChoices(
            self.state[reached],
            np.searchsorted(used, self.memory[reached]),
            self.choice[reached],
            np.searchsorted(used, self.following[reached]),
        )
