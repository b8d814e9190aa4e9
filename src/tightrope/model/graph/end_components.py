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
from tightrope.model.graph.support import GraphArrays, Support, can_stay, must_stay
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel


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
    nature_stays = nature_stays and not support.is_constant  # who can cut nothing has nothing to join with
    usable = np.empty(structure.transitions, np.bool_)
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
        component = np.where(inside, found.component, np.int32(-1))
        removed = _drop(support.arrays, nature_stays, component, inside, alive)
        if not removed:
            break
    used = np.unique(component[inside])
    number = np.full(len(found), -1, np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    alive &= inside[structure.choice_state]
    return EndComponents(np.where(inside, number[component], np.int32(-1)), alive, len(used))


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
def _drop(
    graph: GraphArrays,
    nature_stays: bool,
    component: IndexArray,
    inside: BoolArray,
    alive: BoolArray,
) -> bool:
    """Drop choices that leave their component, states without choices, and so on; `component` is −1 outside
    of `inside`. Whether anything went.
    """
    choice_start, transition_start, successor, lower, upper, possible = graph[:6]
    predecessor_start, predecessor, transition_choice, choice_state = graph[6:]
    queue = np.empty(len(inside), np.int32)
    size = 0
    removed = False
    for s in range(len(inside)):
        if not inside[s]:
            continue
        left = 0
        for c in range(choice_start[s], choice_start[s + 1]):
            if not alive[c]:
                continue
            first, last, home = transition_start[c], transition_start[c + 1], component[s]
            if nature_stays:
                keeps = can_stay(first, last, successor, lower, upper, possible, component, home)
            else:
                keeps = must_stay(first, last, successor, possible, component, home)
            if keeps:
                left += 1
            else:
                alive[c] = False
                removed = True
        if left == 0:
            inside[s], component[s] = False, -1
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
            first, last, home = transition_start[c], transition_start[c + 1], component[s]
            if nature_stays:
                keeps = can_stay(first, last, successor, lower, upper, possible, component, home)
            else:
                keeps = must_stay(first, last, successor, possible, component, home)
            if keeps:
                continue
            alive[c] = False
            left = 0
            for other in range(choice_start[s], choice_start[s + 1]):
                left += alive[other]
            if left == 0:
                inside[s], component[s] = False, -1
                queue[size] = s
                size += 1
    return removed
