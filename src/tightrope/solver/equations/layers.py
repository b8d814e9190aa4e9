"""In which order the groups of a block are swept: breadth first from where its values come.

How far a Gauss–Seidel sweep carries new values depends on the order. Probabilities come from exits of
positive value, rewards are counted from any exit, so groups are taken in the order of their distance to
such an exit: plays that move towards it meet, one sweep later, values that are all but final. The distance
also says roughly what a reward until the exit will be, which is where a minimising agent had better start:
from above, where every choice it prefers is one that makes progress, and not from 0, where the unknown
looks cheap.

States are often numbered so that the way to an exit leads up, or down, almost everywhere. Then their order
carries them as far, and sweeps go through the model's memory in one direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.graph.support import GraphArrays, Support
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import Block

ALMOST = 0.9
"""Part of the groups for which the order of states must agree with that of distances."""


@dataclass(frozen=True, eq=False)
class Layers:
    """A block in an order of growing `distance` (one per group), roughly if it is that of its states; groups
    without a way out then come last.
    """

    block: Block
    distance: IndexArray


def layers(
    support: Support, block: Block, values: FloatArray, place: IndexArray, only_positive: bool
) -> Layers:
    """The block's groups by distance to an exit, one of positive value if `only_positive`.

    `place` is −1 on all states, before and after."""
    groups = len(block)
    size = np.diff(block.group_start)
    place[block.member] = np.repeat(np.arange(groups, dtype=np.int32), size)
    order, distance = np.empty(groups, np.int32), np.full(groups, -1, np.int32)
    later, earlier = _breadth_first(
        support.arrays,
        block.group_start,
        block.member,
        values,
        only_positive,
        place,
        order,
        distance,
    )
    place[block.member] = -1
    lead = block.member[block.group_start[:-1]]
    follows_states = max(later, earlier) >= ALMOST * (later + earlier)
    if follows_states:
        order = np.argsort(-lead if later > earlier else lead, kind="stable").astype(np.int32)
    distance = distance[order]
    ordered = size[order]
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(ordered)])
    at = np.arange(len(block.member)) + np.repeat(block.group_start[order] - start[:-1], ordered)
    member = block.member[at]
    if follows_states:
        return Layers(Block(start, member), distance)
    visit = np.argsort(member[start[:-1]])[::-1].astype(np.int32)
    return Layers(Block(start, member, visit), distance)


@kernel
def _breadth_first(
    graph: GraphArrays,
    group_start: OffsetArray,
    member: IndexArray,
    values: FloatArray,
    only_positive: bool,
    place: IndexArray,
    order: IndexArray,
    distance: IndexArray,
) -> tuple[int, int]:
    """Fill `order` and `distance`; returns for how many groups the one that leads them out, by its first
    state, has the larger number, and for how many the smaller.
    """
    choice_start, transition_start, successor, _, _, possible = graph[:6]
    predecessor_start, predecessor, transition_choice, choice_state = graph[6:]
    groups = len(distance)
    found, later, earlier = 0, 0, 0
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
            order[found] = g
            found += 1
    done = 0
    while done < found:
        g = order[done]
        done += 1
        for m in range(group_start[g], group_start[g + 1]):
            s = member[m]
            for i in range(predecessor_start[s], predecessor_start[s + 1]):
                before = place[choice_state[transition_choice[predecessor[i]]]]
                if before >= 0 and distance[before] < 0:
                    distance[before] = distance[g] + 1
                    order[found] = before
                    found += 1
                    if member[group_start[g]] > member[group_start[before]]:
                        later += 1
                    else:
                        earlier += 1
    last = distance[order[found - 1]] + 1 if found > 0 else 1
    for g in range(groups):
        if distance[g] < 0:
            distance[g] = last
            order[found] = g
            found += 1
    return later, earlier
