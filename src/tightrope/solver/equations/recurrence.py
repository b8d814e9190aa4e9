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

from tightrope.model.graph.support import Support, can_stay, must_enter
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
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
    structure = support.structure
    size = structure.states
    found = np.zeros(size, np.bool_)
    rank = np.zeros(size, np.int64)
    witness = np.full(size, -1, np.int64)
    if not rewarded.any():
        return Endless(found, rank, witness)
    queue = np.empty(size, np.int32)
    layer = 0
    while True:
        inside = np.ones(size, np.bool_)
        while True:
            close = found.copy()
            order = np.zeros(size, np.int64)
            _approach(
                structure.choice_start,
                structure.transition_start,
                structure.successor,
                support.lower,
                support.upper,
                support.possible,
                *support.predecessors,
                structure.transition_choice,
                structure.choice_state,
                choices,
                rewarded,
                agent_maximises,
                nature_maximises,
                found,
                inside,
                close,
                order,
                witness,
                queue,
            )
            if np.array_equal(close, inside):
                break
            inside = close
        new = inside & ~found
        if not new.any():
            return Endless(found, rank, witness)
        rank[new] = layer * (size + 1) + order[new]
        layer += 1
        found = inside


@kernel
def _is_good(
    first: int,
    last: int,
    successor: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    possible: BoolArray,
    rewarded: bool,
    nature_maximises: bool,
    found: BoolArray,
    inside: BoolArray,
    close: BoolArray,
) -> bool:
    if nature_maximises:
        near = rewarded
        for t in range(first, last):
            if possible[t] and found[successor[t]]:
                return True
            near |= possible[t] and close[successor[t]] and inside[successor[t]]
        return near and can_stay(first, last, successor, lower, upper, possible, inside)
    if must_enter(first, last, successor, lower, upper, possible, found):
        return True
    for t in range(first, last):
        if possible[t] and not inside[successor[t]]:
            return False
    return rewarded or must_enter(first, last, successor, lower, upper, possible, close)


@kernel
def _approach(
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
    choices: BoolArray,
    rewarded: BoolArray,
    agent_maximises: bool,
    nature_maximises: bool,
    found: BoolArray,
    inside: BoolArray,
    close: BoolArray,
    order: OffsetArray,
    witness: OffsetArray,
    queue: IndexArray,
) -> None:
    """Grow `close` from `found` to the innermost fixpoint; `order` counts the additions from 1."""
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
            if _is_good(
                transition_start[c],
                transition_start[c + 1],
                successor,
                lower,
                upper,
                possible,
                rewarded[c],
                nature_maximises,
                found,
                inside,
                close,
            ):
                if some < 0:
                    some = c
            else:
                every = False
        if not ((agent_maximises and some >= 0) or (not agent_maximises and every)):
            continue
        close[s] = True
        witness[s] = some
        added += 1
        order[s] = added
        for i in range(predecessor_start[s], predecessor_start[s + 1]):
            before = choice_state[transition_choice[predecessor[i]]]
            if inside[before] and not close[before] and not waiting[before]:
                waiting[before] = True
                queue[(head + size) % capacity] = before
                size += 1
