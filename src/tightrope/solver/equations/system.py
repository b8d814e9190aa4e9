"""The fixpoint equations x = Φ(x) that an objective becomes, and the blocks in which they are solved.

x(s) = opt_c [ reward(c) + discount(c) · opt_{p ∈ P(c)} p·x ] on every state that is not a boundary state.
States of an end component in which a player could idle for ever without reward share one value: they form
a *group* with one equation, in which choices that only idle are left out (see
`tightrope.solver.equations.reduction`).

Constant support by assumption: lower bounds of 0 raised, so that nature can cut no transition.

A fixpoint system together with what decides which of its solutions is meant.

Three kinds of undiscounted equations, and one discounted:

REACH   probabilities. The value is the least solution; those who maximise own the question of progress:
they have to stop idling.
REWARD  reward until a boundary state is met, ∞ if it is missed with positive probability. Those who
        minimise own progress: idling for ever without cost is no way to reach the target.
TOTAL   reward for ever. The least solution; those who maximise own progress.
DISCOUNTED  one solution; nobody gains by idling.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel

NORMAL, CLOSED, EXIT = 0, 1, 2
"""Modes of a choice: as it stands; left out; nature, being able to idle, picks its best way out of the
group.
"""

ChoiceModes = npt.NDArray[np.int8]
NO_BOUNDS: FloatArray = np.empty(0)


class SystemArrays(NamedTuple):
    """What compiled loops read of a `System`."""

    reward: FloatArray
    discount: FloatArray
    mode: ChoiceModes
    leader: IndexArray
    agent_maximises: bool
    nature_maximises: bool
    floor: float
    ceiling: float
    slack: float


@dataclass(frozen=True, eq=False)
class System:
    """Equations for one objective on one structure.

    * `reward`, `discount`: one per choice; empty arrays stand for 0 and 1.
    * `enabled[c]` False: the choice is not the agent's to take (a fixed policy).
    * `leader[s]`: the state whose group s belongs to; itself unless collapsed.
    * `floor ≤ x ≤ ceiling` is known of every value.
    * `slack`: how much a single backup is to be widened, relatively, so that bounds found with one
      player's strategy fixed leave room for the rounding of the check without it.
    * `unit`: 0, or, where values may cancel, the size of the rewards they are made of: a relative
      precision is then relative to the largest of it and all values.
    """

    structure: Structure
    reward: FloatArray
    discount: FloatArray
    agent_maximises: bool
    nature_maximises: bool
    enabled: BoolArray
    mode: ChoiceModes
    leader: IndexArray
    floor: float
    ceiling: float
    unit: float
    slack: float = 0.0

    @cached_property
    def arrays(self) -> SystemArrays:
        return SystemArrays(
            read_only(self.reward),
            self.discount,
            self.mode,
            self.leader,
            bool(self.agent_maximises),
            bool(self.nature_maximises),
            float(self.floor),
            float(self.ceiling),
            float(self.slack),
        )

    @cached_property
    def smallest_reward(self) -> float:
        """∞ where there are no rewards."""
        return float(self.reward.min(initial=np.inf))

    @cached_property
    def has_exits(self) -> bool:
        return bool(np.any(self.mode == EXIT))

    def with_groups(self, leader: IndexArray, mode: ChoiceModes) -> System:
        return replace(self, leader=leader, mode=mode)


class BlockArrays(NamedTuple):
    """What compiled loops read of a `Block`."""

    group_start: OffsetArray
    member: IndexArray
    visit: IndexArray
    backwards: bool


@dataclass(frozen=True, eq=False)
class Block:
    """Groups of states to be solved together: group g is `member[group_start[g]:group_start[g+1]]`.

    Sweeps under frozen choices go through the groups in order. Robust ones follow `visit`, a permutation of
    the groups that suits the memory of the model better (empty: in order), from its end if `backwards`.
    `parts` are the ends of stretches of groups of which none leads to a later one (empty: there is one).
    """

    group_start: OffsetArray
    member: IndexArray
    visit: IndexArray = field(default_factory=lambda: np.zeros(0, np.int32))
    backwards: bool = False
    parts: OffsetArray = field(default_factory=lambda: np.zeros(0, np.int64))

    @staticmethod
    def of_states(states: IndexArray) -> Block:
        return Block(np.arange(len(states) + 1, dtype=np.int64), states)

    def __len__(self) -> int:
        return len(self.group_start) - 1

    @cached_property
    def arrays(self) -> BlockArrays:
        return BlockArrays(self.group_start, self.member, self.visit, self.backwards)


class Rows(NamedTuple):
    """The equations of a block with the agent's and nature's choices frozen: one sparse row per group.

    Group g reads x = reward[g] + self_weight[g]·x + Σ weight[i]·x(column[i]), i in row_start[g]..row_end[g].
    Entries may have weight 0. Where pivot[g] ≥ 0 they are all that is possible, in nature's order, and
    the answer stays nature's best as long as no entry before that place is worse for it than the one there,
    and none behind it better. `low` and `room` hold each entry's lower bound and what is above it, from
    which nature's answer is computed anew without the model; they are empty where that is not wanted.
    """

    row_start: OffsetArray
    row_end: OffsetArray
    column: IndexArray
    weight: FloatArray
    self_weight: FloatArray
    reward: FloatArray
    choice: OffsetArray
    pivot: OffsetArray
    low: FloatArray = NO_BOUNDS
    room: FloatArray = NO_BOUNDS

    @staticmethod
    def room_for(longest_choice: OffsetArray, block: Block, *, with_bounds: bool) -> Rows:
        """Rows with place for the longest choice of every group (`longest_choices` of the structure)."""
        size = np.maximum.reduceat(longest_choice[block.member], block.group_start[:-1])
        row_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(size, dtype=np.int64)])
        groups, total = len(block), int(row_start[-1])
        return Rows(
            row_start,
            row_start[:-1].copy(),
            np.empty(total, np.int32),
            np.empty(total),
            np.zeros(groups),
            np.zeros(groups),
            np.full(groups, -1, np.int64),
            np.full(groups, -1, np.int64),
            np.empty(total if with_bounds else 0),
            np.empty(total if with_bounds else 0),
        )


def longest_choices(structure: Structure) -> OffsetArray:
    """For every state the number of transitions of its longest choice."""
    result: OffsetArray = np.maximum.reduceat(
        np.diff(structure.transition_start), structure.choice_start[:-1]
    )
    return result


def assume_support(model: MDP | IntervalMDP, smallest: float) -> MDP | IntervalMDP:
    """The model in which every transition with a positive upper bound has at least probability
    min(smallest, upper).
    """
    if not 0 < smallest < 1:
        raise InputError(f"the smallest probability assumed is {smallest}, not within (0, 1)")
    if isinstance(model, MDP):
        return model
    raised = np.where((model.lower == 0) & (model.upper > 0), np.minimum(smallest, model.upper), model.lower)
    total = np.add.reduceat(raised, model.transition_start[:-1])
    over = np.flatnonzero(total > 1 + 1e-12)
    if len(over):
        choice = int(over[0])
        raise InputError(
            f"{model.structure.choice_name(choice)}: with at least {smallest} for every transition "
            f"the lower bounds sum to {total[choice]:.6g} > 1",
            hint="assume a smaller probability",
        )
    return IntervalMDP(model.structure, raised, model.upper)


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
