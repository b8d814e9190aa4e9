"""Strongly connected components in reverse topological order: Tarjan's algorithm without recursion.

Components are numbered as they are completed, so every edge leads to a component with the same or a
smaller number, and solving them in the order 0, 1, 2, … meets only successors that are solved. Within a
component states come in the order in which the depth-first search leaves them: successors tend to come
first, which suits Gauss–Seidel sweeps. Linear time; 24 bytes per state beside the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel


@dataclass(frozen=True, eq=False)
class Components:
    """`component[s]`; `order[start[k]:start[k+1]]` are the states of component k; `cyclic[k]`: it has an
    edge inside.
    """

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
    """Components of the graph of possible transitions, or of the `usable` ones among them.

    States outside `expand` count as sinks: what they lead to is not looked at.
    """
    found = _components(support, usable, expand, stop_at_cycle=False)
    assert found is not None
    return found


def acyclic_components(
    support: Support, *, usable: BoolArray | None = None, expand: BoolArray | None = None
) -> Components | None:
    """The same where no component has an edge inside; None otherwise, as soon as that is known."""
    return _components(support, usable, expand, stop_at_cycle=True)


def _components(
    support: Support, usable: BoolArray | None, expand: BoolArray | None, *, stop_at_cycle: bool
) -> Components | None:
    structure = support.structure
    edges = support.possible if usable is None else usable
    opened = read_only(np.ones(structure.states, np.bool_) if expand is None else expand)
    component = np.full(structure.states, -1, np.int32)
    left = np.empty(structure.states, np.int32)
    count = _tarjan(support.state_start, structure.successor, edges, opened, stop_at_cycle, component, left)
    if count < 0:
        return None
    start = np.zeros(count + 1, np.int64)
    order = np.empty(structure.states, np.int32)
    _group(component, left, start, order)
    cyclic = np.zeros(count, np.bool_)
    if not stop_at_cycle:
        _mark_cyclic(support.state_start, structure.successor, edges, opened, component, cyclic)
    return Components(component, start, order, cyclic)


@kernel
def _tarjan(
    state_start: OffsetArray,
    successor: IndexArray,
    edges: BoolArray,
    opened: BoolArray,
    stop_at_cycle: bool,
    component: IndexArray,
    left: IndexArray,
) -> int:
    """Fill `component` and `left` (states in the order the search leaves them); return the number of
    components, or −1 at the first cycle if the search is to stop there.
    """
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
                if edges[t]:
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
def _group(component: IndexArray, left: IndexArray, start: OffsetArray, order: IndexArray) -> None:
    for s in range(len(component)):
        start[component[s] + 1] += 1
    for k in range(len(start) - 1):
        start[k + 1] += start[k]
    cursor = start[:-1].copy()
    for i in range(len(left)):
        k = component[left[i]]
        order[cursor[k]] = left[i]
        cursor[k] += 1


@kernel
def _mark_cyclic(
    state_start: OffsetArray,
    successor: IndexArray,
    edges: BoolArray,
    opened: BoolArray,
    component: IndexArray,
    cyclic: BoolArray,
) -> None:
    for s in range(len(component)):
        if not opened[s]:
            continue
        k = component[s]
        if cyclic[k]:
            continue
        for t in range(state_start[s], state_start[s + 1]):
            if edges[t] and component[successor[t]] == k:
                cyclic[k] = True
                break
