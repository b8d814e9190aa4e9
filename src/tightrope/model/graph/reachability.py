"""States on paths from, and on paths to, a set: breadth-first search over possible transitions."""

from __future__ import annotations

import numpy as np

from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel


def forward_reachable(support: Support, source: BoolArray, *, through: BoolArray | None = None) -> BoolArray:
    """States on a path from `source`; only states in `through` (all, if None) are left again."""
    structure = support.structure
    found = source.copy()
    opened = read_only(np.ones(structure.states, np.bool_) if through is None else through)
    _forward(support.state_start, structure.successor, support.possible, opened, found)
    return found


def backward_reachable(support: Support, target: BoolArray, *, through: BoolArray | None = None) -> BoolArray:
    """States with a path to `target` whose states before the target lie in `through` (all, if None)."""
    structure = support.structure
    found = target.copy()
    opened = read_only(np.ones(structure.states, np.bool_) if through is None else through)
    start, transition = support.predecessors
    _backward(start, transition, structure.transition_choice, structure.choice_state, opened, found)
    return found


@kernel
def _forward(
    state_start: OffsetArray, successor: IndexArray, possible: BoolArray, opened: BoolArray, found: BoolArray
) -> None:
    queue = np.empty(len(found), np.int32)
    size = 0
    for s in range(len(found)):
        if found[s]:
            queue[size] = s
            size += 1
    while size > 0:
        size -= 1
        s = queue[size]
        if not opened[s]:
            continue
        for t in range(state_start[s], state_start[s + 1]):
            if possible[t] and not found[successor[t]]:
                found[successor[t]] = True
                queue[size] = successor[t]
                size += 1


@kernel
def _backward(
    start: OffsetArray,
    transition: IndexArray,
    transition_choice: IndexArray,
    choice_state: IndexArray,
    opened: BoolArray,
    found: BoolArray,
) -> None:
    queue = np.empty(len(found), np.int32)
    size = 0
    for s in range(len(found)):
        if found[s]:
            queue[size] = s
            size += 1
    while size > 0:
        size -= 1
        s = queue[size]
        for i in range(start[s], start[s + 1]):
            before = choice_state[transition_choice[transition[i]]]
            if opened[before] and not found[before]:
                found[before] = True
                queue[size] = before
                size += 1
