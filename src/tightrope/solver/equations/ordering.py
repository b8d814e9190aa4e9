"""The order in which a system is solved.

Strongly connected components come in reverse topological order; acyclic parts become passes, and small
components are merged. Groups of a block are swept breadth first from the exits its values come from, unless
the model's own numbering leads there already; the distance also estimates rewards. Acyclic systems are
ordered by the longest path to the end; `order_structure` serves all objectives, sets and policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from tightrope.model.graph.components import Components, Edges
from tightrope.model.graph.support import GraphArrays, Support, sort_by
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import (
    BoolArray,
    FloatArray,
    IndexArray,
    OffsetArray,
    offsets,
    read_only,
    stretches,
)
from tightrope.numerics.jit import kernel
from tightrope.numerics.record import remember
from tightrope.solver.equations.system import Block, BlockArrays, find_loops

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

MIDDLING_COMPONENT = 256
"""Average of the cyclic components up to which those of ordinary models are merged to `MERGED_IN_SMALL_ONES`
states: blocks of 256 take Python longer than the kernels."""


@dataclass(frozen=True, eq=False)
class HostPortion:
    """States solved together, in order; `is_cyclic`: not in one pass; `is_connected`: one component."""

    block: Block
    is_cyclic: bool
    is_connected: bool
    is_large: bool = False
    levels: AcyclicLevels | None = None
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
    every: list[HostPortion], structure: Structure, usable: BoolArray
) -> list[list[HostPortion]]:
    """Portions that do not depend on each other together, in an order in which successors come first."""
    place = np.full(structure.states, -1, np.int32)
    for i, portion in enumerate(every):
        place[portion.block.member] = i
    level = np.zeros(len(every), np.int32)
    edges = Edges(structure.transition_start[structure.choice_start], structure.successor, usable)
    for i, portion in enumerate(every):
        level[i] = 1 + _highest_below(edges, portion.block.member, place, level, i)
    levels: list[list[HostPortion]] = [[] for _ in range(int(level.max(initial=-1)) + 1)]
    for i, portion in enumerate(every):
        levels[level[i]].append(portion)
    return levels


@kernel
def _highest_below(edges: Edges, member: IndexArray, place: IndexArray, level: IndexArray, own: int) -> int:
    """The highest level of a portion that this one leads to, −1 if to none."""
    state_start, successor, usable = edges
    highest = -1
    for s in member:
        for t in range(state_start[s], state_start[s + 1]):
            to = place[successor[t]]
            if usable[t] and to >= 0 and to != own:
                highest = max(highest, level[to])
    return highest


def _merge(components: Components, merged: int) -> OffsetArray:
    """Neighbouring components joined up to a size: (first, last, whether cyclic); passes stay passes."""
    start, cyclic = components.start, components.cyclic
    average = np.diff(start)[cyclic].mean()
    is_middling = merged >= MERGED_IN_PLAIN_ONES and average <= MIDDLING_COMPONENT
    most = merged if average <= SMALL_COMPONENT else MERGED_IN_SMALL_ONES if is_middling else MERGED_STATES
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
    return Block(offsets(np.bincount(number)), member)


ALMOST = 0.9
"""Part of the groups for which the order of states must agree with that of distances."""


@dataclass(frozen=True, eq=False)
class Layers:
    """A block by growing `distance` of its groups, roughly if by states; those without an exit last."""

    block: Block
    distance: IndexArray


def layers(
    support: Support, block: Block, values: FloatArray, place: IndexArray, only_positive: bool
) -> Layers:
    """The block's groups by distance to an exit, perhaps a positive one; `place` is −1 before and after."""
    groups = len(block)
    size = np.diff(block.group_start)
    place[block.member] = np.repeat(np.arange(groups, dtype=np.int32), size)
    order, distance = np.empty(groups, np.int32), np.full(groups, -1, np.int32)
    room = place, order, distance
    later, earlier = _breadth_first(support.arrays, block.arrays, values, only_positive, room)
    place[block.member] = -1
    lead = block.member[block.group_start[:-1]]
    follows_states = max(later, earlier) >= ALMOST * (later + earlier)
    if follows_states:
        order = np.argsort(-lead if later > earlier else lead, kind="stable").astype(np.int32)
    distance = distance[order]
    ordered = size[order]
    start = offsets(ordered)
    member = block.member[stretches(block.group_start[order], ordered)]
    if follows_states:
        return Layers(Block(start, member), distance)
    visit = np.argsort(member[start[:-1]])[::-1].astype(np.int32)
    return Layers(Block(start, member, visit), distance)


@kernel
def _breadth_first(
    graph: GraphArrays,
    block: BlockArrays,
    values: FloatArray,
    only_positive: bool,
    room: tuple[IndexArray, IndexArray, IndexArray],
) -> tuple[int, int]:
    """Fill order and distance, in `room` behind the place; how many groups a later state leads out, how many
    an earlier."""
    group_start, member, _, _ = block
    place, order, distance = room
    choice_start, rows, predecessor_start, predecessor, transition_choice, choice_state = graph
    transition_start, successor, possible = rows.transition_start, rows.successor, rows.possible
    groups = len(distance)
    count, later, earlier = 0, 0, 0
    for g in range(groups):
        for m in range(group_start[g], group_start[g + 1]):
            s = member[m]
            for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
                u = successor[t]
                if place[u] < 0 and possible[t] and (not only_positive or values[u] > 0.0):
                    distance[g] = 1
                    break
            if distance[g] > 0:
                break
        if distance[g] > 0:
            order[count] = g
            count += 1
    done = 0
    while done < count:
        g = order[done]
        done += 1
        for m in range(group_start[g], group_start[g + 1]):
            s = member[m]
            for i in range(predecessor_start[s], predecessor_start[s + 1]):
                before = place[choice_state[transition_choice[predecessor[i]]]]
                if before >= 0 and distance[before] < 0:
                    distance[before] = distance[g] + 1
                    order[count] = before
                    count += 1
                    if member[group_start[g]] > member[group_start[before]]:
                        later += 1
                    else:
                        earlier += 1
    last = distance[order[count - 1]] + 1 if count > 0 else 1
    for g in range(groups):
        if distance[g] < 0:
            distance[g] = last
            order[count] = g
            count += 1
    return later, earlier


@dataclass(frozen=True, eq=False)
class AcyclicLevels:
    """States, successors first; level k is `states[start[k]:start[k + 1]]`."""

    states: IndexArray
    start: OffsetArray


@dataclass(frozen=True, eq=False)
class AcyclicOrder:
    """The levels of states that are not `settled`, and every state's place, successors first."""

    settled: BoolArray
    levels: AcyclicLevels
    ranking: OffsetArray
    narrowed: list[AcyclicOrder] = field(default_factory=list)
    """The last answer of `without`: the same states are settled in one solve after the other."""

    def without(self, settled: BoolArray) -> AcyclicOrder:
        """The same order where more states are settled."""
        for known in (self, *self.narrowed):
            if np.array_equal(known.settled, settled):
                return known
        self.narrowed[:] = [self._narrow(settled)]
        return self.narrowed[0]

    def _narrow(self, settled: BoolArray) -> AcyclicOrder:
        skipped = settled[self.levels.states]
        kept = offsets(~skipped)[self.levels.start]
        start = kept[np.concatenate([[True], np.diff(kept) > 0])]
        return AcyclicOrder(settled.copy(), AcyclicLevels(self.levels.states[~skipped], start), self.ranking)


def order_acyclic(
    structure: Structure, find_usable: Callable[[], BoolArray], settled: BoolArray
) -> AcyclicOrder | None:
    """An order for the usable transitions of states that are not settled; None as soon as a cycle is met."""
    every = order_structure(structure)
    if every is not None and not np.any(every.settled & ~settled):
        return every.without(settled)
    return _order(structure, find_usable(), settled)


@remember
def order_structure(structure: Structure) -> AcyclicOrder | None:
    """An order for all transitions there are, states that only loop being settled."""
    usable = np.ones(1, np.bool_)
    return _order(structure, usable, find_loops(structure, usable))


def _order(structure: Structure, usable: BoolArray, settled: BoolArray) -> AcyclicOrder | None:
    state_start = structure.transition_start[structure.choice_start]
    level = np.where(settled, np.int32(0), np.int32(_UNSEEN))
    highest = _measure(state_start, structure.successor, read_only(usable), level)
    if highest < 0:
        return None
    start, states = sort_by(level, np.ones(len(level), np.bool_), highest + 1)
    ranking = np.empty(len(level), np.int64)
    ranking[states] = np.arange(len(level))
    return AcyclicOrder(settled, AcyclicLevels(states[start[1] :], start[1:] - start[1]), ranking)


def level_states(structure: Structure, usable: BoolArray, states: IndexArray) -> AcyclicLevels:
    """Some states without cycles among them by levels; those of other states are 0."""
    level = np.zeros(structure.states, np.int32)
    level[states] = _UNSEEN
    state_start = structure.transition_start[structure.choice_start]
    _measure(state_start, structure.successor, read_only(usable), level)
    own = level[states]
    return AcyclicLevels(states[np.argsort(own, kind="stable")], offsets(np.bincount(own)[1:]))


@remember
def cut_levels(levels: AcyclicLevels, structure: Structure, workers: int, least: int) -> OffsetArray:
    """Stages that workers go through in step: a row each, worker w has `states[row[w]:row[w + 1]]`.

    A level is cut into parts with about as many transitions. Levels with fewer than `least` per worker go to
    the first one, several in a row in one stage."""
    state_start = structure.transition_start[structure.choice_start]
    cuts = np.empty((len(levels.start), workers + 1), np.int64)
    stages = _cut(state_start, levels.states, levels.start, workers, least, cuts)
    return cuts[:stages]


_UNSEEN, _OPEN = -1, -2


@kernel
def _measure(state_start: OffsetArray, successor: IndexArray, usable: BoolArray, level: IndexArray) -> int:
    """The level of every state without one; the highest, −1 at a cycle. One entry: all are usable."""
    states, all_usable = len(level), len(usable) == 1
    path = np.empty(states, np.int32)  # the search's own stack
    cursor = np.empty(states, np.int64)  # the next transition of the state at that depth
    above = np.empty(states, np.int32)  # the highest level below the state at that depth
    highest = 0
    for root in range(states):
        if level[root] != _UNSEEN:
            continue
        depth = 0
        level[root] = _OPEN
        path[0], cursor[0], above[0] = root, state_start[root], 0
        while depth >= 0:
            s = path[depth]
            t, end, longest = cursor[depth], state_start[s + 1], above[depth]
            following = -1
            while t < end:
                if all_usable or usable[t]:
                    to = successor[t]
                    reached = level[to]
                    if reached < 0:
                        if reached == _OPEN:
                            return -1
                        following = to
                        break
                    longest = max(longest, reached)
                t += 1
            if following >= 0:
                cursor[depth], above[depth] = t, longest  # looked at again when its level is known
                depth += 1
                level[following] = _OPEN
                path[depth], cursor[depth], above[depth] = following, state_start[following], 0
            else:
                level[s] = longest + 1
                highest = max(highest, longest + 1)
                depth -= 1
    return highest


@kernel
def _cut(
    state_start: OffsetArray,
    states: IndexArray,
    start: OffsetArray,
    workers: int,
    least: int,
    cuts: OffsetArray,
) -> int:
    """See `cut_levels`; the number of stages."""
    stages, begin = 0, 0  # levels from `begin` on have no stage yet
    for k in range(len(start) - 1):
        first, last = start[k], start[k + 1]
        work = 0
        for i in range(first, last):
            work += state_start[states[i] + 1] - state_start[states[i]]
        if work < least * workers:
            continue
        if begin < first:
            cuts[stages, 0] = begin
            cuts[stages, 1:] = first
            stages += 1
        cuts[stages, 0] = first
        cuts[stages, workers] = last
        done, worker = 0, 1
        for i in range(first, last):
            done += state_start[states[i] + 1] - state_start[states[i]]
            while worker < workers and done * workers >= work * worker:
                cuts[stages, worker] = i + 1
                worker += 1
        stages += 1
        begin = last
    if begin < len(states):
        cuts[stages, 0] = begin
        cuts[stages, 1:] = len(states)
        stages += 1
    return stages
