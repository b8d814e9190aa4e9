"""A fixpoint system together with what decides which of its solutions is meant.

Three kinds of undiscounted equations, and one discounted:

REACH   probabilities. The value is the least solution; those who maximise own the question of progress:
they have to stop idling.
REWARD  reward until a boundary state is met, ∞ if it is missed with positive probability. Those who
        minimise own progress: idling for ever without cost is no way to reach the target.
TOTAL   reward for ever. The least solution; those who maximise own progress.
DISCOUNTED  one solution; nobody gains by idling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import CLOSED, NORMAL, System


class Meaning(Enum):
    REACH = "reach"
    REWARD = "reward"
    TOTAL = "total"
    DISCOUNTED = "discounted"


@dataclass(frozen=True, eq=False)
class Sinks:
    """States that only loop, and their values."""

    states: OffsetArray
    value: FloatArray


@dataclass(frozen=True, eq=False)
class Equations:
    """`fixed` boundary states and their `value` (0 elsewhere), the system for the others, and its meaning."""

    system: System
    fixed: BoolArray
    value: FloatArray
    meaning: Meaning

    @property
    def owners_maximise(self) -> bool:
        return self.meaning is not Meaning.REWARD

    @property
    def agent_owns(self) -> bool:
        return self.system.agent_maximises == self.owners_maximise

    @property
    def nature_owns(self) -> bool:
        return self.system.nature_maximises == self.owners_maximise

    @property
    def can_idle(self) -> bool:
        return self.meaning is not Meaning.DISCOUNTED

    @cached_property
    def agent_has_no_choice(self) -> bool:
        """Whether at most one choice of every state that is not fixed is the agent's to take."""
        structure, enabled = self.system.structure, self.system.enabled
        if structure.is_chain:
            return True
        open_choices = np.add.reduceat(enabled.astype(np.int32), structure.choice_start[:-1])
        return bool(np.all(self.fixed | (open_choices <= 1)))

    def with_policy(self, policy: OffsetArray) -> Equations:
        """The same equations with one choice per state."""
        enabled = np.zeros(self.system.structure.choices, np.bool_)
        enabled[policy] = True
        mode = np.where(enabled, NORMAL, CLOSED).astype(np.int8)
        return replace(self, system=replace(self.system, enabled=enabled, mode=mode))

    def value_loops(self, loops: BoolArray) -> Sinks:
        """The values of states that only loop, which need no equation where nothing is discounted."""
        states = np.flatnonzero(loops & ~self.fixed)
        if self.meaning is Meaning.REACH:
            return Sinks(states, np.zeros(len(states)))
        if self.meaning is Meaning.REWARD:
            return Sinks(states, np.full(len(states), np.inf))
        structure, system = self.system.structure, self.system
        best = np.maximum if system.agent_maximises else np.minimum
        nothing = -np.inf if system.agent_maximises else np.inf
        each = best.reduceat(np.where(system.enabled, system.reward, nothing), structure.choice_start[:-1])
        return Sinks(states, np.where(each[states] > 0, np.inf, 0.0))


def find_loops(support: Support, enabled: BoolArray) -> BoolArray:
    """States without a way out through enabled choices."""
    structure = support.structure
    loops = np.empty(structure.states, np.bool_)
    starts = structure.choice_start, structure.transition_start
    _only_loops(*starts, structure.successor, support.possible, read_only(enabled), loops)
    return loops


@kernel
def _only_loops(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    possible: BoolArray,
    enabled: BoolArray,
    loops: BoolArray,
) -> None:
    for s in range(len(loops)):
        loops[s] = True
        for c in range(choice_start[s], choice_start[s + 1]):
            if not enabled[c]:
                continue
            for t in range(transition_start[c], transition_start[c + 1]):
                if possible[t] and successor[t] != s:
                    loops[s] = False
                    break
            if not loops[s]:
                break
