"""The fixpoint equations x = Φ(x) of an objective, and the blocks in which they are solved.

x(s) = opt_c [ reward(c) + discount(c) · opt_{p ∈ P(c)} p·x ] off the boundary. REACH and TOTAL mean the least
solution, and those who maximise must make progress; for REWARD, infinite where the target is missed, those
who minimise must. End components in which a player could idle are collapsed where that is exact (`is_exact`).
Values 0, 1 and ∞ are decided by the graph. Negative rewards are refused where a play might go on for ever.
Proofs: docs/proofs/values.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.graph.components import EndComponents, backward_reachable, maximal_end_components
from tightrope.model.graph.qualitative import almost_sure, avoiding, positive, surely_drawn
from tightrope.model.graph.support import (
    GraphArrays,
    Ranked,
    Support,
    can_enter,
    can_stay,
    must_enter,
    must_stay,
    queue_up,
)
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, offsets, read_only
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
    * `enabled[c]` False: the agent may not take the choice (a fixed policy).
    * `leader[s]`: the state whose group s belongs to; itself unless collapsed.
    * `floor ≤ x ≤ ceiling` for every value.
    * `slack`: relative widening of a single backup, so that bounds found with one player's strategy fixed
      leave room for the rounding of the check without it.
    * `unit`: 0, or the size of the rewards where values may cancel; precision is then relative to the largest
      of it and all values.
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

    @staticmethod
    def of(
        structure: Structure,
        maximise: tuple[bool, bool],
        enabled: BoolArray,
        reward: FloatArray = NO_BOUNDS,
        discount: FloatArray = NO_BOUNDS,
        limits: tuple[float, float] = (-np.inf, np.inf),
        unit: float = 0.0,
    ) -> System:
        """Nothing is collapsed; `maximise`: the agent, and nature."""
        mode = np.full(structure.choices, np.int8(NORMAL))
        mode[~enabled] = CLOSED
        leader = np.arange(structure.states, dtype=np.int32)
        return System(structure, reward, discount, *maximise, enabled, mode, leader, *limits, unit)

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
        row_start = offsets(size)
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
    return np.maximum.reduceat(np.diff(structure.transition_start), structure.choice_start[:-1])


def assume_support(model: MDP | IntervalMDP, smallest: float) -> MDP | IntervalMDP:
    """The model whose possible transitions have at least probability `smallest`; refused where refuted."""
    if not 0 < smallest < 1:
        raise InputError(f"the smallest probability assumed is {smallest}, not within (0, 1)")
    if isinstance(model, MDP):
        return model
    unsure = (model.lower == 0) & (model.upper > 0)
    if len(refuted := np.flatnonzero(unsure & (model.upper < smallest))):
        name = model.structure.choice_name(int(model.structure.transition_choice[refuted[0]]))
        raise InputError(
            f"{name}: a transition has at most probability {model.upper[refuted[0]]:.6g}, which refutes that "
            f"all have at least {smallest:g}",
            hint="assume a smaller probability",
        )
    raised = np.where(unsure, smallest, model.lower)
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
        best, _ = best_choices(self.system, self.system.reward)
        return Sinks(states, np.where(best[states] > 0, np.inf, 0.0))


def agent_has_no_choice(system: System, settled: BoolArray) -> bool:
    """Whether at most one choice of every state that is not settled is the agent's to take."""
    structure = system.structure
    if structure.is_chain:
        return True
    open_choices = np.add.reduceat(system.enabled.astype(np.int32), structure.choice_start[:-1])
    return bool(np.all(settled | (open_choices <= 1)))


def find_loops(structure: Structure, usable: BoolArray) -> BoolArray:
    """States without a way out through `usable` transitions (one entry: all are)."""
    loops = np.empty(structure.states, np.bool_)
    state_start = structure.transition_start[structure.choice_start]
    _only_loops(state_start, structure.successor, read_only(usable), loops)
    return loops


@kernel
def _only_loops(state_start: OffsetArray, successor: IndexArray, usable: BoolArray, loops: BoolArray) -> None:
    all_usable = len(usable) == 1
    for s in range(len(loops)):
        loops[s] = True
        for t in range(state_start[s], state_start[s + 1]):
            if successor[t] != s and (all_usable or usable[t]):
                loops[s] = False
                break


def equations_of(
    objective: Objective, structure: Structure, support: Support, enabled: BoolArray
) -> Equations:
    """The equations of an objective without a step bound."""
    fixed, value = np.zeros(structure.states, np.bool_), np.zeros(structure.states)
    system_of = partial(System.of, structure, _directions(objective), enabled)
    if objective.kind is ObjectiveKind.UNTIL:
        assert objective.target is not None
        fixed = objective.target if objective.allowed is None else objective.target | ~objective.allowed
        value = objective.target.astype(np.float64)
        return Equations(system_of(limits=(0.0, 1.0)), fixed.copy(), value, Meaning.REACH)
    assert objective.reward is not None
    reward = objective.reward.per_choice(structure)
    if objective.kind is ObjectiveKind.REACH_REWARD:
        assert objective.target is not None
        fixed = objective.target.copy()
        if objective.terminal is not None:
            value = np.where(fixed, objective.terminal, 0.0)
        signed = bool(reward.min(initial=0.0) < 0)
        signed = signed and _has_negative(structure, reward, enabled & ~fixed[structure.choice_state])
        if signed:
            _require_sure(support, fixed, enabled, *_MISSED)
        floor = -np.inf if signed else min(0.0, float(value.min(initial=0.0)))
        unit = _size(reward, value) if floor < 0 else 0.0
        system = system_of(reward, limits=(floor, np.inf), unit=unit)
        return Equations(system, fixed, value, Meaning.REWARD)
    if objective.kind is ObjectiveKind.TOTAL:
        if _has_negative(structure, reward, enabled):
            fixed = _quiet_states(support, reward, enabled)
            _require_sure(support, fixed, enabled, *_ENDLESS)
            return Equations(system_of(reward, unit=_size(reward, value)), fixed, value, Meaning.REWARD)
        return Equations(system_of(reward, limits=(0.0, np.inf)), fixed, value, Meaning.TOTAL)
    assert objective.discount is not None
    discount = np.full(structure.choices, objective.discount)
    largest = float(np.abs(reward).max(initial=0.0)) / (1.0 - objective.discount) * (1 + 1e-9)
    signed = _has_negative(structure, reward, enabled)
    limits, unit = (-largest if signed else 0.0, largest), _size(reward, value) if signed else 0.0
    return Equations(system_of(reward, discount, limits, unit), fixed, value, Meaning.DISCOUNTED)


def horizon_system(objective: Objective, structure: Structure, enabled: BoolArray) -> System:
    """The system whose backups a step-bounded objective repeats."""
    directions = _directions(objective)
    if objective.reward is None:
        return System.of(structure, directions, enabled, limits=(0.0, 1.0))
    reward = objective.reward.per_choice(structure)
    last = np.zeros(0) if objective.terminal is None else objective.terminal
    signed = _has_negative(structure, reward, enabled) or bool(last.min(initial=0.0) < 0)
    unit = _size(reward, last) if signed else 0.0
    return System.of(structure, directions, enabled, reward, unit=unit)


def _directions(objective: Objective) -> tuple[bool, bool]:
    return objective.agent is Direction.MAX, objective.nature is Direction.MAX


def first_choices(structure: Structure, mask: BoolArray) -> OffsetArray:
    """The first choice of every state that is in the mask, −1 where there is none."""
    first = np.full(structure.states, -1, np.int64)
    chosen = np.flatnonzero(mask)[::-1]
    first[structure.choice_state[chosen]] = chosen
    return first


def best_choices(system: System, each: FloatArray) -> tuple[FloatArray, OffsetArray]:
    """The agent's optimum over the enabled choices of every state, and the first choice that attains it."""
    structure = system.structure
    if structure.is_chain and system.enabled.all():
        return each, np.arange(structure.states, dtype=np.int64)
    best, first = np.empty(structure.states), np.empty(structure.states, np.int64)
    _best_choices(structure.choice_start, each, system.enabled, system.agent_maximises, best, first)
    return best, first


@kernel
def _best_choices(
    choice_start: OffsetArray,
    each: FloatArray,
    enabled: BoolArray,
    maximises: bool,
    best: FloatArray,
    first: OffsetArray,
) -> None:
    for s in range(len(best)):
        value, choice = -np.inf if maximises else np.inf, -1
        for c in range(choice_start[s], choice_start[s + 1]):
            if enabled[c] and (choice < 0 or (each[c] > value if maximises else each[c] < value)):
                value, choice = each[c], c
        best[s], first[s] = value, choice


def _has_negative(structure: Structure, reward: FloatArray, counted: BoolArray) -> bool:
    return bool(reward.min(initial=0.0) < 0) and bool(np.any(reward[counted] < 0))


def _size(reward: FloatArray, terminal: FloatArray) -> float:
    return float(max(np.abs(reward).max(initial=0.0), np.abs(terminal).max(initial=0.0)))


def _quiet_states(support: Support, reward: FloatArray, enabled: BoolArray) -> BoolArray:
    """The states from which nothing is ever earned or lost, whoever decides what."""
    structure = support.structure
    earning = np.zeros(structure.states, np.bool_)
    earning[structure.choice_state[enabled & (reward != 0)]] = True
    return ~backward_reachable(support, earning)


def _require_sure(support: Support, ends: BoolArray, enabled: BoolArray, message: str, hint: str) -> None:
    """Refuse plays that may never meet `ends`; the message is about a state from which one begins."""
    sure = almost_sure(support, ends, (False, False), choices=enabled).states
    if not sure.all():
        raise InputError(message.format(support.structure.state_name(int(np.argmin(sure)))), hint=hint)


_ENDLESS = (
    "a total reward with both signs needs rewards that end under every policy, but from state {} rewards may "
    "go on forever",
    "use a `discount` factor, or a reward until a target: R=? [ F … ]",
)
"""Otherwise the total is a finite sum almost surely: the reward until a quiet state."""

_MISSED = (
    "negative rewards need a target that every policy reaches, but from state {} it can be missed",
    "rule out in the model that it is missed, or ask for the discounted total: R=? [ C ] with a `discount` "
    "factor",
)


@dataclass(frozen=True, eq=False)
class Quotient:
    """The system with its idle components collapsed; `is_exact`: no others remain."""

    system: System
    is_exact: bool


def collapse(
    support: Support, system: System, undecided: BoolArray, agent_owns: bool, nature_owns: bool
) -> Quotient:
    """Collapse the idle end components among the `undecided` states."""
    idle = system.enabled.copy()
    if len(system.reward):
        idle &= system.reward == 0
    together = maximal_end_components(support, within=undecided, choices=idle)
    if together.count == 0 or not (agent_owns or nature_owns):
        return Quotient(system, True)  # without owners the graph has decided all such components
    if support.is_constant or (agent_owns and nature_owns):
        return Quotient(_group(support, system, together, nature_owns and not support.is_constant), True)
    if not agent_owns:
        return Quotient(system, False)
    alone = maximal_end_components(support, within=undecided, choices=idle, nature_stays=False)
    same = np.array_equal(alone.internal, together.internal) and alone.count == together.count
    grouped = _group(support, system, alone, False) if alone.count else system
    return Quotient(grouped, same)


def _group(support: Support, system: System, components: EndComponents, nature_leaves: bool) -> System:
    structure = system.structure
    leader = np.arange(structure.states, dtype=np.int32)
    members = np.flatnonzero(components.component >= 0)
    first = np.full(components.count, -1, np.int64)
    first[components.component[members[::-1]]] = members[::-1]
    leader[members] = first[components.component[members]]
    mode = np.where(system.enabled, NORMAL, CLOSED).astype(np.int8)
    mode[components.internal] = EXIT if nature_leaves else CLOSED
    return replace(system, leader=leader, mode=mode)


@dataclass(frozen=True, eq=False)
class Decision:
    """`states` have exactly `value`; where it is ∞, `layer` and `witness` show it (see `Solution`).

    `progress` ranks the states from which those who own progress make it, where that has been found out."""

    states: BoolArray
    value: FloatArray
    layer: OffsetArray
    witness: OffsetArray
    progress: Ranked | None = None


def decide(support: Support, equations: Equations) -> Decision:
    """The states whose value follows from the graph."""
    system = equations.system
    size = system.structure.states
    layer, witness = (np.broadcast_to(np.int64(none), size) for none in (0, -1))  # of no memory
    value = np.zeros(size)
    undecided = ~equations.fixed
    if equations.meaning is Meaning.DISCOUNTED:
        if system.unit > 0:
            return Decision(np.zeros(size, np.bool_), value, layer, witness)
        some = _find_ever_rewarded(support, equations, system.enabled & (system.reward > 0))
        return Decision(~some, value, layer, witness)
    if equations.meaning is Meaning.REACH:
        target = equations.fixed & (equations.value > 0)
        reaches = (system.agent_maximises, system.nature_maximises)
        ranked = positive(support, target, reaches, within=undecided, choices=system.enabled)
        some = ranked.states
        if some.all():  # nothing else can happen to a play: it cannot miss the target for ever
            sure = some
        elif support.is_constant and agent_has_no_choice(system, equations.fixed):
            sure = surely_drawn(support, target, some, system.enabled)
        else:
            within = undecided & some
            sure = almost_sure(support, target, reaches, within=within, choices=system.enabled).states
        value[sure] = 1.0
        return Decision(undecided & (~some | sure), value, layer, witness, ranked)
    if equations.meaning is Meaning.REWARD:
        reaches = (not system.agent_maximises, not system.nature_maximises)
        ranked = almost_sure(support, equations.fixed, reaches, within=undecided, choices=system.enabled)
        missed = avoiding(support, ~ranked.states, reaches, choices=system.enabled)
        value[missed.states] = np.inf
        known = missed.states | _free_of_charge(support, equations)
        return Decision(known, value, missed.rank.astype(np.int64), missed.witness, ranked)
    rewarded = system.enabled & (system.reward > 0)
    endless = endless_reward(
        support, rewarded, system.enabled, (system.agent_maximises, system.nature_maximises)
    )
    value[endless.states] = np.inf
    some = _find_ever_rewarded(support, equations, rewarded)
    return Decision(endless.states | ~some, value, endless.rank, endless.witness)


def _free_of_charge(support: Support, equations: Equations) -> BoolArray:
    """States from which a target of value 0 is reached almost surely without any reward on the way."""
    system, structure = equations.system, equations.system.structure
    if system.unit > 0 or (len(system.reward) and system.smallest_reward > 0):
        return np.zeros(structure.states, np.bool_)
    costly = system.enabled & (system.reward > 0)
    free = system.enabled & ~costly
    if not free.any():
        return np.zeros(structure.states, np.bool_)
    within = ~equations.fixed
    if system.agent_maximises:
        within &= np.add.reduceat(costly.astype(np.int32), structure.choice_start[:-1]) == 0
    target = equations.fixed & (equations.value == 0)
    reaches = (not system.agent_maximises, not system.nature_maximises)
    return almost_sure(support, target, reaches, within=within, choices=free).states & ~equations.fixed


def _find_ever_rewarded(support: Support, equations: Equations, rewarded: BoolArray) -> BoolArray:
    """States whose total reward is positive: a reward now, or with positive probability later."""
    system, structure = equations.system, equations.system.structure
    per_state = np.add.reduceat(rewarded.astype(np.int64), structure.choice_start[:-1])
    if system.agent_maximises:
        now = per_state > 0
        choices = system.enabled
    else:
        unrewarded = system.enabled & ~rewarded
        now = np.add.reduceat(unrewarded.astype(np.int64), structure.choice_start[:-1]) == 0
        choices = unrewarded  # a choice with a reward is no way to avoid one
    return positive(support, now, (system.agent_maximises, system.nature_maximises), choices=choices).states


@dataclass(frozen=True, eq=False)
class Endless:
    """`rank[s]` = layer · (states + 1) + rank within the layer; `witness[s]`: a maximising agent's choice."""

    states: BoolArray
    rank: OffsetArray
    witness: OffsetArray


def endless_reward(
    support: Support, rewarded: BoolArray, choices: BoolArray, maximise: tuple[bool, bool]
) -> Endless:
    """`maximise`: the agent, and nature."""
    size = support.structure.states
    inner = np.zeros(size, np.bool_)
    rank = np.zeros(size, np.int64)
    witness = np.full(size, -1, np.int64)
    if not rewarded.any():
        return Endless(inner, rank, witness)
    layer = 0
    while True:
        inside = np.ones(size, np.bool_)
        while True:
            close = Ranked(inner.copy(), np.zeros(size, np.int32), witness)
            _approach(support.arrays, choices, rewarded, *maximise, inner, inside, close)
            if np.array_equal(close.states, inside):
                break
            inside = close.states
        new = inside & ~inner
        if not new.any():
            return Endless(inner, rank, witness)
        rank[new] = layer * (size + 1) + close.rank[new]
        layer += 1
        inner = inside


@kernel
def _approach(
    graph: GraphArrays,
    choices: BoolArray,
    rewarded: BoolArray,
    agent_maximises: bool,
    nature_maximises: bool,
    inner: BoolArray,
    inside: BoolArray,
    ranked: Ranked,
) -> None:
    """Grow `ranked` from `inner` to the innermost fixpoint; ranks count the additions from 1."""
    choice_start, rows, predecessor_start, predecessor, transition_choice, choice_state = graph
    close, rank, witness = ranked
    waiting, capacity = inside & ~inner, len(inside)
    queue = np.empty(capacity, np.int32)
    head, size, added = 0, queue_up(waiting, queue), 0
    while size > 0:
        s = queue[head]
        head = (head + 1) % capacity
        size -= 1
        waiting[s] = False
        every, some = True, -1
        for c in range(choice_start[s], choice_start[s + 1]):
            if not choices[c]:
                continue
            if nature_maximises:
                good = can_enter(rows, c, inner) or (
                    (rewarded[c] or can_enter(rows, c, close)) and can_stay(rows, c, inside, True)
                )
            else:
                good = must_enter(rows, c, inner) or (
                    must_stay(rows, c, inside, True) and (rewarded[c] or must_enter(rows, c, close))
                )
            if good:
                if some < 0:
                    some = c
            else:
                every = False
        if not ((agent_maximises and some >= 0) or (not agent_maximises and every)):
            continue
        close[s] = True
        witness[s] = some
        added += 1
        rank[s] = added
        for i in range(predecessor_start[s], predecessor_start[s + 1]):
            before = choice_state[transition_choice[predecessor[i]]]
            if inside[before] and not close[before] and not waiting[before]:
                waiting[before] = True
                queue[(head + size) % capacity] = before
                size += 1
