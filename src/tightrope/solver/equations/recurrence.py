"""States whose total reward is infinite: with positive probability, reward is earned again and again.

The players who maximise want to pass choices with a reward infinitely often, with positive probability.
Layer by layer,

    μZ. νY. μX.  { s : every answer p has  p(Z) > 0,  or  p(Y) = 1 and (reward now or p(X ∪ Z) > 0) }

"every answer" ranging over those who minimise, the others choosing. In the innermost fixpoint a reward
comes closer with positive probability for ever, unless the play moves into a smaller layer; by induction
on layers the total is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.graph.qualitative import Ranked
from tightrope.model.graph.support import (
    GraphArrays,
    Support,
    can_enter,
    can_stay,
    must_enter,
    must_stay,
)
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.jit import kernel


@dataclass(frozen=True, eq=False)
class Endless:
    """`states`; `rank[s]` = layer · (number of states + 1) + rank within the layer; `witness[s]` a choice
    of a maximising agent.
    """

    states: BoolArray
    rank: OffsetArray
    witness: OffsetArray


def endless_reward(
    support: Support,
    rewarded: BoolArray,
    choices: BoolArray,
    *,
    agent_maximises: bool,
    nature_maximises: bool,
) -> Endless:
    size = support.structure.states
    found = np.zeros(size, np.bool_)
    rank = np.zeros(size, np.int64)
    witness = np.full(size, -1, np.int64)
    if not rewarded.any():
        return Endless(found, rank, witness)
    layer = 0
    while True:
        inside = np.ones(size, np.bool_)
        while True:
            close = Ranked(found.copy(), np.zeros(size, np.int32), witness)
            _approach(
                support.arrays, choices, rewarded, agent_maximises, nature_maximises, found, inside, close
            )
            if np.array_equal(close.states, inside):
                break
            inside = close.states
        new = inside & ~found
        if not new.any():
            return Endless(found, rank, witness)
        rank[new] = layer * (size + 1) + close.rank[new]
        layer += 1
        found = inside


@kernel
def _approach(
    graph: GraphArrays,
    choices: BoolArray,
    rewarded: BoolArray,
    agent_maximises: bool,
    nature_maximises: bool,
    found: BoolArray,
    inside: BoolArray,
    ranked: Ranked,
) -> None:
    """Grow `ranked` from `found` to the innermost fixpoint; ranks count the additions from 1."""
    choice_start, transition_start, successor, lower, upper, possible = graph[:6]
    predecessor_start, predecessor, transition_choice, choice_state = graph[6:]
    close, rank, witness = ranked
    queue = np.empty(len(inside), np.int32)
    size = 0
    waiting = np.zeros(len(inside), np.bool_)
    for s in range(len(inside)):
        if inside[s] and not found[s]:
            queue[size] = s
            waiting[s] = True
            size += 1
    added = 0
    head = 0
    capacity = len(inside)
    while size > 0:
        s = queue[head]
        head = (head + 1) % capacity
        size -= 1
        waiting[s] = False
        every, some = True, -1
        for c in range(choice_start[s], choice_start[s + 1]):
            if not choices[c]:
                continue
            first, last = transition_start[c], transition_start[c + 1]
            if nature_maximises:
                good = can_enter(first, last, successor, possible, found) or (
                    (rewarded[c] or can_enter(first, last, successor, possible, close))
                    and can_stay(first, last, successor, lower, upper, possible, inside, True)
                )
            else:
                good = must_enter(first, last, successor, lower, upper, possible, found) or (
                    must_stay(first, last, successor, possible, inside, True)
                    and (rewarded[c] or must_enter(first, last, successor, lower, upper, possible, close))
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
