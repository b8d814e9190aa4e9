"""In which order, and in which portions, a system is solved.

Strongly connected components in reverse topological order, so that a block finds its successors solved.
Acyclic stretches become passes. A model with very many small components has neighbours in that order
merged into one block: sweeps run in the same order and the overhead a block costs is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightrope.model.graph.components import Components
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.levels import Levels
from tightrope.solver.equations.system import Block

MANY_COMPONENTS = 64
MERGED_STATES = 256
"""States up to which neighbouring components are merged."""

SMALL_COMPONENT = 64
MERGED_IN_SMALL_ONES = 4096
"""The same where cyclic components have no more than `SMALL_COMPONENT` states on average: what a block costs
beside its sweeps would otherwise be most of the work.
"""

MERGED_IN_PLAIN_ONES = 16_384
"""The same for ordinary models, whose components are swept one after the other within a block."""


@dataclass(frozen=True, eq=False)
class HostPortion:
    """States to be solved together, in order; `is_cyclic` says whether one pass is not enough,
    `is_connected` that they are one component.
    """

    block: Block
    is_cyclic: bool
    is_connected: bool
    is_large: bool = False
    levels: Levels | None = None
    """Those of the states, where they are known."""


def portions(
    components: Components, leader: IndexArray, skip: BoolArray, merged: int = MERGED_IN_SMALL_ONES
) -> Iterator[HostPortion]:
    """Portions of the states in the order of `components`; those in `skip` are left out. Small components are
    merged up to `merged` states.

    Groups (equal `leader`) lie within one component, or the component graph was made with them joined."""
    cyclic = np.flatnonzero(components.cyclic)
    start = components.start
    stretches: list[tuple[int, int, bool]] = []
    if len(cyclic) <= MANY_COMPONENTS:
        position = 0
        for k in cyclic:
            if start[k] > position:
                stretches.append((position, int(start[k]), False))
            stretches.append((int(start[k]), int(start[k + 1]), True))
            position = int(start[k + 1])
        if position < len(components.order):
            stretches.append((position, len(components.order), False))
    else:
        stretches = [(a, b, bool(kind)) for a, b, kind in _merge(components, merged).tolist()]
    for first, last, is_cyclic in stretches:
        states = components.order[first:last]
        connected = is_cyclic and components.component[states[0]] == components.component[states[-1]]
        states = states[~skip[states]]
        if len(states) == 0:
            continue
        block = _groups(states, leader)
        if is_cyclic and not connected:
            of_group = components.component[block.member[block.group_start[:-1]]]
            ends = np.append(np.flatnonzero(np.diff(of_group)) + 1, len(of_group))
            block = replace(block, parts=ends)
        yield HostPortion(block, is_cyclic, connected)


def level_portions(
    found: list[HostPortion], structure: Structure, usable: BoolArray
) -> list[list[HostPortion]]:
    """Portions that do not depend on each other together, in an order in which successors come first."""
    place = np.full(structure.states, -1, np.int32)
    for i, portion in enumerate(found):
        place[portion.block.member] = i
    level = np.zeros(len(found), np.int32)
    for i, portion in enumerate(found):
        level[i] = _level(structure, usable, portion.block.member, place, level, i)
    levels: list[list[HostPortion]] = [[] for _ in range(int(level.max(initial=-1)) + 1)]
    for i, portion in enumerate(found):
        levels[level[i]].append(portion)
    return levels


def _level(
    structure: Structure,
    usable: BoolArray,
    member: IndexArray,
    place: IndexArray,
    level: IndexArray,
    own: int,
) -> int:
    start = structure.transition_start, structure.choice_start
    return int(_highest_below(*start, structure.successor, usable, member, place, level, own)) + 1


@kernel
def _highest_below(
    transition_start: OffsetArray,
    choice_start: OffsetArray,
    successor: IndexArray,
    usable: BoolArray,
    member: IndexArray,
    place: IndexArray,
    level: IndexArray,
    own: int,
) -> int:
    """The highest level of a portion that this one leads to, −1 if to none."""
    highest = -1
    for s in member:
        for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
            to = place[successor[t]]
            if usable[t] and to >= 0 and to != own:
                highest = max(highest, level[to])
    return highest


def _merge(components: Components, merged: int) -> OffsetArray:
    """Neighbouring components joined up to a size, as rows (first, last, whether cyclic); stretches without a
    cycle stay passes.
    """
    start, cyclic = components.start, components.cyclic
    is_small = np.diff(start)[cyclic].mean() <= SMALL_COMPONENT
    most = merged if is_small else MERGED_STATES
    stretches = np.empty((len(cyclic), 3), np.int64)
    return stretches[: _merge_into(start, cyclic, most, stretches)]


@kernel
def _merge_into(start: OffsetArray, cyclic: BoolArray, most: int, stretches: OffsetArray) -> int:
    count, a = 0, 0
    while a < len(cyclic):
        b = a + 1
        while b < len(cyclic) and cyclic[b] == cyclic[a]:
            b += 1
        first, last, is_cyclic = start[a], start[b], cyclic[a]
        is_small = last - first < most
        if count > 0 and is_small and stretches[count - 1, 1] - stretches[count - 1, 0] < most:
            stretches[count - 1, 1] = last
            stretches[count - 1, 2] = stretches[count - 1, 2] or is_cyclic
        elif is_cyclic and not is_small:  # cut into pieces of at least `most` states, the last may be smaller
            k = a
            while k < b:
                end = k + 1
                while end < b and start[end] < start[k] + most:
                    end += 1
                stretches[count, 0], stretches[count, 1], stretches[count, 2] = start[k], start[end], 1
                count += 1
                k = end
        else:
            stretches[count, 0], stretches[count, 1], stretches[count, 2] = first, last, is_cyclic
            count += 1
        a = b
    return count


def _groups(states: IndexArray, leader: IndexArray) -> Block:
    """Groups in the order in which their first member comes."""
    lead = leader[states]
    if np.array_equal(lead, states):
        return Block.of_states(np.ascontiguousarray(states))
    _, first, inverse = np.unique(lead, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    number = rank[inverse]
    member = states[np.argsort(number, kind="stable")]
    sizes = np.bincount(number)
    return Block(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]), member)
