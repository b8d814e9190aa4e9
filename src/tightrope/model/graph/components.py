"""Strongly connected components, maximal end components and branching time (CTL) on a model's graph.

*Strongly connected components* (Tarjan, without recursion) come in reverse topological order: every edge
leads to the same or a smaller number. States of a component come in the order in which the search leaves
them, which suits Gauss–Seidel sweeps. Linear time; 24 bytes per state beside the result.

*Maximal end components* are state sets with choices in which a play can stay and reach everything. With
`nature_stays` a choice stays in X if some distribution does, and possible transitions connect. Without it all
possible transitions stay, and only certain ones connect: the agent alone reaches every state from every other
with probability 1. Both agree if the support is constant.

*Branching time* is exact over all paths of possible transitions. `E [ a U b ]` is a backward search from b
through a, `E [ G a ]` one from the cycles of the graph of a, `E [ a W b ]` their union; A is dual.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tightrope.model.graph.support import (
    ForwardArrays,
    GraphArrays,
    Support,
    can_stay,
    must_stay,
    queue_up,
    sort_by,
)
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel


class Edges(NamedTuple):
    """Edges from state s: to neighbour[start[s]:start[s+1]], as far as they are usable."""

    start: OffsetArray
    neighbour: IndexArray
    usable: BoolArray


@dataclass(frozen=True, eq=False)
class Components:
    """States of component k: `order[start[k]:start[k+1]]`; `cyclic[k]`: it has an edge inside."""

    component: IndexArray
    start: OffsetArray
    order: IndexArray
    cyclic: BoolArray

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def is_acyclic(self) -> bool:
        return not bool(self.cyclic.any())


def strongly_connected_components(
    support: Support, *, usable: BoolArray | None = None, expand: BoolArray | None = None
) -> Components:
    """Components over `usable` transitions; states outside `expand` are sinks."""
    components = _components(support, usable, expand, stop_at_cycle=False)
    assert components is not None
    return components


def acyclic_components(support: Support, *, expand: BoolArray | None = None) -> Components | None:
    """The same where no component has an edge inside; None otherwise, as soon as that is known."""
    return _components(support, None, expand, stop_at_cycle=True)


def _components(
    support: Support, usable: BoolArray | None, expand: BoolArray | None, *, stop_at_cycle: bool
) -> Components | None:
    structure = support.structure
    edges = Edges(support.state_start, structure.successor, support.possible if usable is None else usable)
    opened = read_only(np.ones(structure.states, np.bool_) if expand is None else expand)
    component = np.full(structure.states, -1, np.int32)
    left = np.empty(structure.states, np.int32)
    count = _tarjan(edges, opened, stop_at_cycle, component, left)
    if count < 0:
        return None
    start, place = sort_by(component[left], np.ones(structure.states, np.bool_), count)
    cyclic = np.zeros(count, np.bool_)
    if not stop_at_cycle:
        _mark_cyclic(edges, opened, component, cyclic)
    return Components(component, start, left[place], cyclic)


@kernel
def _tarjan(
    edges: Edges, opened: BoolArray, stop_at_cycle: bool, component: IndexArray, left: IndexArray
) -> int:
    """Fill `component` and `left`, the order of leaving; how many components, −1 at a cycle to stop at."""
    state_start, successor, usable = edges
    states = len(state_start) - 1
    link = np.zeros(states, np.int32)  # 0: not met; else smallest index reached so far, from 1
    stack = np.empty(states, np.int32)  # states without a component yet
    path = np.empty(states, np.int32)  # the search's own stack
    cursor = np.empty(states, np.int64)  # next edge of the state at that depth
    index = np.empty(states, np.int32)  # index of the state at that depth
    met = 0
    waiting = 0
    finished = 0
    count = 0
    for root in range(states):
        if link[root] != 0:
            continue
        depth = 0
        met += 1
        link[root] = met
        path[0], cursor[0], index[0] = root, state_start[root], met
        stack[waiting] = root
        waiting += 1
        while depth >= 0:
            s = path[depth]
            t = cursor[depth]
            end = state_start[s + 1] if opened[s] else state_start[s]
            descended = False
            while t < end:
                if usable[t]:
                    successor_state = successor[t]
                    if link[successor_state] == 0:
                        cursor[depth] = t + 1
                        depth += 1
                        met += 1
                        link[successor_state] = met
                        path[depth] = successor_state
                        cursor[depth] = state_start[successor_state]
                        index[depth] = met
                        stack[waiting] = successor_state
                        waiting += 1
                        descended = True
                        break
                    if component[successor_state] < 0:
                        if stop_at_cycle:
                            return -1
                        link[s] = min(link[s], link[successor_state])
                t += 1
            if descended:
                continue
            left[finished] = s
            finished += 1
            if link[s] == index[depth]:
                while True:
                    waiting -= 1
                    member = stack[waiting]
                    component[member] = count
                    if member == s:
                        break
                count += 1
            elif link[s] < link[path[depth - 1]]:
                link[path[depth - 1]] = link[s]
            depth -= 1
    return count


@kernel
def _mark_cyclic(edges: Edges, opened: BoolArray, component: IndexArray, cyclic: BoolArray) -> None:
    state_start, successor, usable = edges
    for s in range(len(component)):
        if not opened[s]:
            continue
        k = component[s]
        if cyclic[k]:
            continue
        for t in range(state_start[s], state_start[s + 1]):
            if usable[t] and component[successor[t]] == k:
                cyclic[k] = True
                break


@dataclass(frozen=True, eq=False)
class EndComponents:
    """`component[s]` numbers them (−1: in none); `internal[c]`: the choice keeps to its state's component."""

    component: IndexArray
    internal: BoolArray
    count: int

    @property
    def members(self) -> list[OffsetArray]:
        """The states of every component."""
        order = np.argsort(self.component, kind="stable")
        ends = np.searchsorted(self.component[order], np.arange(self.count + 1))
        return [order[begin:end] for begin, end in pairwise(ends)]


def maximal_end_components(
    support: Support,
    *,
    within: BoolArray | None = None,
    choices: BoolArray | None = None,
    nature_stays: bool = True,
) -> EndComponents:
    """Maximal end components among the states `within`, using only `choices`."""
    structure = support.structure
    inside = np.ones(structure.states, np.bool_) if within is None else within.copy()
    alive = np.ones(structure.choices, np.bool_) if choices is None else choices.copy()
    connects = support.possible if nature_stays else support.certain
    nature_stays = nature_stays and not support.is_constant  # who can cut nothing has nothing to join with
    usable = np.empty(structure.transitions, np.bool_)
    starts = structure.choice_start, structure.transition_start
    graph = ForwardArrays(*starts, structure.successor, connects)
    while True:
        _usable(graph, inside, alive, usable)
        components = strongly_connected_components(support, usable=usable, expand=inside)
        component = np.where(inside, components.component, np.int32(-1))
        removed = _drop(support.arrays, nature_stays, component, inside, alive)
        if not removed:
            break
    used = np.unique(component[inside])
    number = np.full(len(components), -1, np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    alive &= inside[structure.choice_state]
    return EndComponents(np.where(inside, number[component], np.int32(-1)), alive, len(used))


@kernel
def _usable(graph: ForwardArrays, inside: BoolArray, alive: BoolArray, usable: BoolArray) -> None:
    choice_start, transition_start, successor, connects = graph
    for s in range(len(inside)):
        for c in range(choice_start[s], choice_start[s + 1]):
            keep = inside[s] and alive[c]
            for t in range(transition_start[c], transition_start[c + 1]):
                usable[t] = keep and connects[t] and inside[successor[t]]


@kernel
def _drop(
    graph: GraphArrays, nature_stays: bool, component: IndexArray, inside: BoolArray, alive: BoolArray
) -> bool:
    """Drop choices that leave their component, then states without choices; whether anything went."""
    choice_start, rows, predecessor_start, predecessor, transition_choice, choice_state = graph
    queue, waiting = np.empty(len(inside), np.int32), inside.copy()
    size, removed = queue_up(inside, queue), False
    while size > 0:
        size -= 1
        s = queue[size]
        waiting[s] = False
        left = 0
        for c in range(choice_start[s], choice_start[s + 1]):
            if not alive[c]:
                continue
            if nature_stays:
                keeps = can_stay(rows, c, component, component[s])
            else:
                keeps = must_stay(rows, c, component, component[s])
            alive[c] = keeps
            left += keeps
            removed |= not keeps
        if left == 0:
            inside[s], component[s], removed = False, -1, True
            for i in range(predecessor_start[s], predecessor_start[s + 1]):
                before = choice_state[transition_choice[predecessor[i]]]
                if inside[before] and not waiting[before]:
                    waiting[before] = True
                    queue[size] = before
                    size += 1
    return removed


def forward_reachable(support: Support, source: BoolArray, *, through: BoolArray | None = None) -> BoolArray:
    """States on a path from `source`; only states in `through` (all, if None) are left again."""
    every = np.ones(len(source), np.bool_)
    edges = Edges(support.state_start, support.structure.successor, support.possible)
    return _reach(edges, every if through is None else through, every, source)


def backward_reachable(support: Support, target: BoolArray, *, through: BoolArray | None = None) -> BoolArray:
    """States with a path to `target` whose states before the target lie in `through` (all, if None)."""
    structure, every = support.structure, np.ones(len(target), np.bool_)
    start, transition = support.predecessors
    before = structure.choice_state[structure.transition_choice[transition]]
    edges = Edges(start, before, np.ones(len(transition), np.bool_))
    return _reach(edges, every, every if through is None else through, target)


def _reach(edges: Edges, leaves: BoolArray, enters: BoolArray, source: BoolArray) -> BoolArray:
    reached, edges = source.copy(), edges._replace(usable=read_only(edges.usable))
    _spread(edges, read_only(leaves), read_only(enters), reached)
    return reached


@kernel
def _spread(edges: Edges, leaves: BoolArray, enters: BoolArray, reached: BoolArray) -> None:
    start, neighbour, usable = edges
    queue = np.empty(len(reached), np.int32)
    size = queue_up(reached, queue)
    while size > 0:
        size -= 1
        s = queue[size]
        if not leaves[s]:
            continue
        for i in range(start[s], start[s + 1]):
            other = neighbour[i]
            if usable[i] and enters[other] and not reached[other]:
                reached[other] = True
                queue[size] = other
                size += 1


def some_next(support: Support, target: BoolArray) -> BoolArray:
    """E [ X target ]"""
    structure = support.structure
    leads = support.possible & target[structure.successor]
    states = np.zeros(structure.states, np.bool_)
    states[structure.choice_state[structure.transition_choice[leads]]] = True
    return states


def some_always(support: Support, allowed: BoolArray) -> BoolArray:
    """E [ G allowed ]"""
    structure = support.structure
    source = structure.choice_state[structure.transition_choice]
    inside = support.possible & allowed[source] & allowed[structure.successor]
    components = strongly_connected_components(support, usable=inside, expand=allowed)
    return backward_reachable(support, allowed & components.cyclic[components.component], through=allowed)
