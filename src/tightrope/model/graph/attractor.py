"""Two fixpoints everything qualitative is made of: who can be drawn into a set, and who can stay in one.

The agent (choices) and nature (distributions) each either take part in the attempt or oppose it.

    attract(X, Y)  least X ∪ { s ∈ Y : opt_c opt_p  p(X) > 0 }      over the choices that are still `open`
    settle(Y)      greatest { s ∈ Y : opt_c opt_p  p(Y) = 1 }       closing the choices that cannot keep to Y

opt is "some" for a player who takes part and "every" for one who opposes. Both run over a worklist of
states and look at a choice's row again only if nature may cut the transition in question, so constant
support costs linear time. `attract` numbers states as it draws them: whoever is drawn reaches a smaller
number with positive probability against every opposition, which is the ranking certificates speak of.
"""

from __future__ import annotations

from tightrope.model.graph.support import can_stay, must_enter
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel


@kernel
def attract(
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
    within: BoolArray,
    open_choice: BoolArray,
    agent_joins: bool,
    nature_joins: bool,
    drawn: BoolArray,
    rank: IndexArray,
    witness: OffsetArray,
    queue: IndexArray,
    pending: IndexArray,
    hit: BoolArray,
) -> int:
    """Extend `drawn` in place; `rank` counts up from 1 (0 for those drawn at the start), `witness` is the
    agent's choice.

    `queue`, `pending` (int32[S]) and `hit` (bool[C], all False) are scratch. Returns how many were added."""
    size = 0
    for s in range(len(within)):
        pending[s] = 0
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
            if (
                not nature_joins
                and lower[t] <= 0.0
                and not must_enter(
                    transition_start[c], transition_start[c + 1], successor, lower, upper, possible, drawn
                )
            ):
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
            rank[s] = size - seeds
    return size - seeds


@kernel
def settle(
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
    exempt: BoolArray,
    agent_joins: bool,
    nature_joins: bool,
    within: BoolArray,
    open_choice: BoolArray,
    queue: IndexArray,
    pending: IndexArray,
) -> int:
    """Shrink `within` in place and close choices; `exempt` states are in no need of a way to stay.

    `queue` and `pending` (int32[S]) are scratch. Returns how many states were removed."""
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
            keeps = True
            if nature_joins:
                keeps = can_stay(first, last, successor, lower, upper, possible, within)
            else:
                for t in range(first, last):
                    if possible[t] and not within[successor[t]]:
                        keeps = False
                        break
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
            if (
                nature_joins
                and lower[t] <= 0.0
                and can_stay(
                    transition_start[c], transition_start[c + 1], successor, lower, upper, possible, within
                )
            ):
                continue
            open_choice[c] = False
            pending[s] -= 1
            if pending[s] == 0 or not agent_joins:
                within[s] = False
                queue[size] = s
                size += 1
    return size
