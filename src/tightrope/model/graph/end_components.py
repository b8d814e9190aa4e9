"""Maximal end components: sets of states, with choices, in which a play can be kept for ever and reach
everything.

Two readings of nature:

* it joins (`nature_stays`): a choice keeps to X if *some* distribution does, and every possible transition
  inside X can be used. These are all the sets in which agent and nature together can stay;
* it does not: a choice keeps to X if *all* its possible transitions do, and only certain transitions
  connect. In these sets the agent alone can reach every state from every other with probability 1,
  whatever nature does. Where nature can cut nothing (constant support) the two agree.

Decompose into components, drop what leaves them (with all that then has to leave), and repeat until
nothing leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.graph.components import strongly_connected_components
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.unit_sums import SUM_UNIT, add, distil


@dataclass(frozen=True, eq=False)
class EndComponents:
    """`component[s]` numbers them (−1: in none); `internal[c]`: the choice keeps to its state's component."""

    component: IndexArray
    internal: BoolArray
    count: int


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
    usable = np.empty(structure.transitions, np.bool_)
    queue = np.empty(structure.states, np.int32)
    while True:
        _usable(
            structure.choice_start,
            structure.transition_start,
            structure.successor,
            connects,
            inside,
            alive,
            usable,
        )
        found = strongly_connected_components(support, usable=usable, expand=inside)
        removed = _drop(
            structure.choice_start,
            structure.transition_start,
            structure.successor,
            support.lower,
            support.upper,
            support.possible,
            *support.predecessors,
            structure.transition_choice,
            structure.choice_state,
            nature_stays,
            found.component,
            inside,
            alive,
            queue,
        )
        if not removed:
            break
    used = np.unique(found.component[inside])
    number = np.full(len(found), -1, np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    component = np.where(inside, number[found.component], np.int32(-1)).astype(np.int32)
    alive &= inside[structure.choice_state]
    return EndComponents(component, alive, len(used))


@kernel
def _usable(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    connects: BoolArray,
    inside: BoolArray,
    alive: BoolArray,
    usable: BoolArray,
) -> None:
    for s in range(len(inside)):
        for c in range(choice_start[s], choice_start[s + 1]):
            keep = inside[s] and alive[c]
            for t in range(transition_start[c], transition_start[c + 1]):
                usable[t] = keep and connects[t] and inside[successor[t]]


@kernel
def _keeps(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    possible: BoolArray,
    nature_stays: bool,
    component: IndexArray,
    inside: BoolArray,
    home: int,
) -> bool:
    leaves = False
    for t in range(first, last):
        s = successor[t]
        if possible[t] and not (inside[s] and component[s] == home):
            leaves = True
            if lower[t] > 0.0 or not nature_stays:
                return False
    if not leaves:
        return True
    mass, exact = 0.0, True
    for t in range(first, last):
        s = successor[t]
        if possible[t] and inside[s] and component[s] == home:
            mass, exact = add(mass, exact, upper[t])
    if exact or abs(mass - 1.0) > (last - first + 2) * SUM_UNIT:
        return mass >= 1.0
    terms, size = np.empty(last - first), 0
    for t in range(first, last):
        s = successor[t]
        if possible[t] and inside[s] and component[s] == home:
            terms[size] = upper[t]
            size += 1
    return distil(-1.0, terms, size) >= 0.0


@kernel
def _drop(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    possible: BoolArray,
    predecessor_start: OffsetArray,
    predecessor: IndexArray,
    transition_choice: IndexArray,
    choice_state: IndexArray,
    nature_stays: bool,
    component: IndexArray,
    inside: BoolArray,
    alive: BoolArray,
    queue: IndexArray,
) -> bool:
    """Drop choices that leave their component, states without choices, and so on. Whether anything went."""
    size = 0
    removed = False
    for s in range(len(inside)):
        if not inside[s]:
            continue
        left = 0
        for c in range(choice_start[s], choice_start[s + 1]):
            if not alive[c]:
                continue
            if _keeps(
                transition_start[c],
                transition_start[c + 1],
                successor,
                lower,
                upper,
                possible,
                nature_stays,
                component,
                inside,
                component[s],
            ):
                left += 1
            else:
                alive[c] = False
                removed = True
        if left == 0:
            inside[s] = False
            removed = True
            queue[size] = s
            size += 1
    while size > 0:
        size -= 1
        gone = queue[size]
        for i in range(predecessor_start[gone], predecessor_start[gone + 1]):
            c = transition_choice[predecessor[i]]
            s = choice_state[c]
            if not inside[s] or not alive[c]:
                continue
            if _keeps(
                transition_start[c],
                transition_start[c + 1],
                successor,
                lower,
                upper,
                possible,
                nature_stays,
                component,
                inside,
                component[s],
            ):
                continue
            alive[c] = False
            left = 0
            for other in range(choice_start[s], choice_start[s + 1]):
                left += alive[other]
            if left == 0:
                inside[s] = False
                queue[size] = s
                size += 1
    return removed
