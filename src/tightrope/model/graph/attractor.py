"""Two fixpoints everything qualitative is made of: who can be drawn into a set, and who can stay in one.

The agent (choices) and nature (distributions) each either take part in the attempt or oppose it.

    attract(X, Y)  least X ∪ { s ∈ Y : opt_c opt_p  p(X) > 0 }      over the choices that are still `open`
    settle(Y)      greatest { s ∈ Y : opt_c opt_p  p(Y) = 1 }       closing the choices that cannot keep to Y

opt is "some" for a player who takes part and "every" for one who opposes. Both run over a worklist of
states and look at a choice's row again only if nature may cut the transition in question, so constant
support costs linear time. `attract` numbers states as it draws them: whoever is drawn reaches a smaller
number with positive probability against every opposition, which is the ranking certificates speak of.

Where nature has nothing to say, `attract_in_passes` goes before: states are mostly numbered as they were
found, so a few passes through them, back and forth, draw most of what there is to be drawn, and read memory
in order where a worklist jumps about in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.model.graph.support import ForwardArrays, GraphArrays, can_stay, must_enter, must_stay
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

MOST_PASSES = 32
"""Passes through all states before a worklist does the rest."""


class Ranked(NamedTuple):
    """`states`; `rank` orders them; `witness[s]` is a choice of the agent, −1 where none is meant."""

    states: BoolArray
    rank: IndexArray
    witness: OffsetArray

    @staticmethod
    def begin(states: BoolArray) -> Ranked:
        """All at rank 0, without a choice."""
        return Ranked(states, np.zeros(len(states), np.int32), np.full(len(states), -1, np.int64))


@kernel
def attract_in_passes(
    graph: ForwardArrays, within: BoolArray, open_choice: BoolArray, agent_joins: bool, found: Ranked
) -> tuple[int, bool]:
    """`attract` where a possible transition into the set is all that is needed, as far as passes through the
    states go: how many were added, and whether that is all.
    """
    choice_start, transition_start, successor, possible = graph
    drawn, rank, witness = found
    states = len(within)
    left = 0
    for s in range(states):
        left += within[s] and not drawn[s]
    added = 0
    for number in range(MOST_PASSES):
        if left == 0:
            return added, True
        before = added
        for i in range(states):
            s = states - 1 - i if number % 2 == 0 else i
            if drawn[s] or not within[s]:
                continue
            through = -1
            for c in range(choice_start[s], choice_start[s + 1]):
                if not open_choice[c]:
                    continue
                enters = False
                for t in range(np.uint64(transition_start[c]), np.uint64(transition_start[c + 1])):
                    if drawn[successor[t]] and possible[t]:
                        enters = True
                        break
                if enters:
                    through = c
                else:
                    through = through if agent_joins else -1
                if enters == agent_joins:
                    break
            if through >= 0:
                added += 1
                drawn[s], witness[s], rank[s] = True, through, added
        left -= added - before
        if added == before:
            return added, True
    return added, False


@kernel
def attract(
    graph: GraphArrays,
    within: BoolArray,
    open_choice: BoolArray,
    agent_joins: bool,
    nature_joins: bool,
    found: Ranked,
    already: int,
) -> int:
    """Extend `found` in place; its ranks count up from 1 (0 for those drawn at the start), the witness is the
    agent's choice. Returns how many were added, with those that were `already`, in ranks up to that number.
    """
    choice_start, transition_start, successor, lower, upper, possible = graph[:6]
    predecessor_start, predecessor, transition_choice, choice_state = graph[6:]
    drawn, rank, witness = found
    queue = np.empty(len(within), np.int32)
    pending = np.zeros(len(within), np.int32)
    hit = np.zeros(len(open_choice), np.bool_)
    size = 0
    for s in range(len(within)):
        if drawn[s]:
            queue[size] = s
            size += 1
        elif within[s] and not agent_joins:
            for c in range(choice_start[s], choice_start[s + 1]):
                pending[s] += open_choice[c]
    seeds = size
    done = 0
    while done < size:
        into = queue[done]
        done += 1
        for i in range(predecessor_start[into], predecessor_start[into + 1]):
            t = predecessor[i]
            c = transition_choice[t]
            s = choice_state[c]
            if drawn[s] or not within[s] or not open_choice[c] or hit[c]:
                continue
            if not nature_joins and lower[t] <= 0.0:
                first, last = transition_start[c], transition_start[c + 1]
                if not must_enter(first, last, successor, lower, upper, possible, drawn):
                    continue
            hit[c] = True
            if not agent_joins:
                pending[s] -= 1
                if pending[s] > 0:
                    continue
            drawn[s] = True
            witness[s] = c
            queue[size] = s
            size += 1
            rank[s] = size - seeds + already
    return size - seeds + already


@kernel
def settle(
    graph: GraphArrays,
    exempt: BoolArray,
    agent_joins: bool,
    nature_joins: bool,
    within: BoolArray,
    open_choice: BoolArray,
) -> int:
    """Shrink `within` in place and close choices; `exempt` states need no way to stay. Returns how many
    states were removed.
    """
    choice_start, transition_start, successor, lower, upper, possible = graph[:6]
    predecessor_start, predecessor, transition_choice, choice_state = graph[6:]
    queue = np.empty(len(within), np.int32)
    pending = np.empty(len(within), np.int32)
    size = 0
    for s in range(len(within)):
        if not within[s] or exempt[s]:
            continue
        pending[s] = 0
        closed = 0
        for c in range(choice_start[s], choice_start[s + 1]):
            if not open_choice[c]:
                continue
            first, last = transition_start[c], transition_start[c + 1]
            if nature_joins:
                keeps = can_stay(first, last, successor, lower, upper, possible, within, True)
            else:
                keeps = must_stay(first, last, successor, possible, within, True)
            if keeps:
                pending[s] += 1
            else:
                open_choice[c] = False
                closed += 1
        if pending[s] == 0 or (not agent_joins and closed > 0):
            pending[s] = -1  # to be removed once all have been looked at
            queue[size] = s
            size += 1
    for i in range(size):
        within[queue[i]] = False
    done = 0
    while done < size:
        gone = queue[done]
        done += 1
        for i in range(predecessor_start[gone], predecessor_start[gone + 1]):
            t = predecessor[i]
            c = transition_choice[t]
            s = choice_state[c]
            if not within[s] or exempt[s] or not open_choice[c]:
                continue
            if nature_joins and lower[t] <= 0.0:
                first, last = transition_start[c], transition_start[c + 1]
                if can_stay(first, last, successor, lower, upper, possible, within, True):
                    continue
            open_choice[c] = False
            pending[s] -= 1
            if pending[s] == 0 or not agent_joins:
                within[s] = False
                queue[size] = s
                size += 1
    return size
