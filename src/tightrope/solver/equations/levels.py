"""Systems without cycles: their states by the longest way to the end, successors first.

A depth-first search measures the longest way of every state; states of equal length form a level and do not
depend on each other. Within a level they come by number, which suits the memory of the model.

Most models without cycles have none whatever nature and the agent do, but for states that only loop. Their
order is found once (`order_structure`) and serves all objectives, sets and policies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel
from tightrope.numerics.remember import remember


@dataclass(frozen=True, eq=False)
class Levels:
    """States, successors first; level k is `states[start[k]:start[k + 1]]`."""

    states: IndexArray
    start: OffsetArray


@dataclass(frozen=True, eq=False)
class AcyclicOrder:
    """The levels of the states that are not `settled`, and the place of every state in an order in which
    successors come first.
    """

    settled: BoolArray
    levels: Levels
    ranking: OffsetArray
    narrowed: list[AcyclicOrder] = field(default_factory=list)
    """The last answer of `without`: the same states are settled in one solve after the other."""

    def without(self, settled: BoolArray) -> AcyclicOrder:
        """The same order where more states are settled."""
        for known in (self, *self.narrowed):
            if np.array_equal(known.settled, settled):
                return known
        self.narrowed[:] = [self._narrow(settled)]
        return self.narrowed[0]

    def _narrow(self, settled: BoolArray) -> AcyclicOrder:
        skipped = settled[self.levels.states]
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(~skipped)])[self.levels.start]
        start = kept[np.concatenate([[True], np.diff(kept) > 0])]
        return AcyclicOrder(settled.copy(), Levels(self.levels.states[~skipped], start), self.ranking)


def order_acyclic(
    structure: Structure, find_usable: Callable[[], BoolArray], settled: BoolArray
) -> AcyclicOrder | None:
    """An order for the usable transitions of the states that are not settled; None, as soon as that is known,
    where these have a cycle.
    """
    every = order_structure(structure)
    if every is not None and not np.any(every.settled & ~settled):
        return every.without(settled)
    return _order(structure, find_usable(), settled)


@remember
def order_structure(structure: Structure) -> AcyclicOrder | None:
    """An order for all transitions there are, states that only loop being settled."""
    state_start = structure.transition_start[structure.choice_start]
    loops = np.empty(structure.states, np.bool_)
    _only_loops(state_start, structure.successor, loops)
    usable = np.ones(1, np.bool_)
    return _order(structure, usable, loops)


def _order(structure: Structure, usable: BoolArray, settled: BoolArray) -> AcyclicOrder | None:
    state_start = structure.transition_start[structure.choice_start]
    level = np.where(settled, np.int32(0), np.int32(_UNSEEN))
    highest = _measure(state_start, structure.successor, read_only(usable), level)
    if highest < 0:
        return None
    start = np.zeros(highest + 2, np.int64)
    states, ranking = np.empty(len(level), np.int32), np.empty(len(level), np.int64)
    _sort(level, start, states, ranking)
    return AcyclicOrder(settled, Levels(states[start[1] :], start[1:] - start[1]), ranking)


def level_states(structure: Structure, usable: BoolArray, states: IndexArray) -> Levels:
    """Some states without cycles among them, given successors first, by levels."""
    level = np.zeros(structure.states, np.int32)
    starts = structure.transition_start, structure.choice_start
    count = int(_raise_levels(*starts, structure.successor, usable, states, level))
    start = np.zeros(count + 1, np.int64)
    ordered = np.empty_like(states)
    _sort_some(states, level, start, ordered)
    return Levels(ordered, start)


@remember
def cut_levels(levels: Levels, structure: Structure, workers: int, least: int) -> OffsetArray:
    """Stages that workers go through in step: a row each, worker w has `states[row[w]:row[w + 1]]`.

    A level is cut into parts with about as many transitions. Levels with fewer than `least` per worker go to
    the first one, several in a row in one stage."""
    state_start = structure.transition_start[structure.choice_start]
    cuts = np.empty((len(levels.start), workers + 1), np.int64)
    stages = _cut(state_start, levels.states, levels.start, workers, least, cuts)
    return cuts[:stages]


_UNSEEN, _OPEN = -1, -2


@kernel
def _measure(state_start: OffsetArray, successor: IndexArray, usable: BoolArray, level: IndexArray) -> int:
    """The level of every state that has none yet; the highest one, −1 at a cycle. All transitions are usable
    where the mask has one entry only.
    """
    states, all_usable = len(level), len(usable) == 1
    path = np.empty(states, np.int32)  # the search's own stack
    cursor = np.empty(states, np.int64)  # the next transition of the state at that depth
    above = np.empty(states, np.int32)  # the highest level below the state at that depth
    highest = 0
    for root in range(states):
        if level[root] != _UNSEEN:
            continue
        depth = 0
        level[root] = _OPEN
        path[0], cursor[0], above[0] = root, state_start[root], 0
        while depth >= 0:
            s = path[depth]
            t, end, longest = cursor[depth], state_start[s + 1], above[depth]
            following = -1
            while t < end:
                if all_usable or usable[t]:
                    to = successor[t]
                    reached = level[to]
                    if reached < 0:
                        if reached == _OPEN:
                            return -1
                        following = to
                        break
                    longest = max(longest, reached)
                t += 1
            if following >= 0:
                cursor[depth], above[depth] = t, longest  # looked at again when its level is known
                depth += 1
                level[following] = _OPEN
                path[depth], cursor[depth], above[depth] = following, state_start[following], 0
            else:
                level[s] = longest + 1
                highest = max(highest, longest + 1)
                depth -= 1
    return highest


@kernel
def _only_loops(state_start: OffsetArray, successor: IndexArray, loops: BoolArray) -> None:
    for s in range(len(loops)):
        loops[s] = True
        for t in range(state_start[s], state_start[s + 1]):
            if successor[t] != s:
                loops[s] = False
                break


@kernel
def _sort(level: IndexArray, start: OffsetArray, states: IndexArray, ranking: OffsetArray) -> None:
    """Sort all states by counting."""
    for s in range(len(level)):
        start[level[s] + 1] += 1
    for k in range(1, len(start)):
        start[k] += start[k - 1]
    place = start[:-1].copy()
    for s in range(len(level)):
        at = place[level[s]]
        place[level[s]] += 1
        states[at], ranking[s] = s, at


@kernel
def _raise_levels(
    transition_start: OffsetArray,
    choice_start: OffsetArray,
    successor: IndexArray,
    usable: BoolArray,
    states: IndexArray,
    level: IndexArray,
) -> int:
    """Levels from 1 on; what is not among the states has 0."""
    highest = 0
    for s in states:
        above = 0
        for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
            if usable[t]:
                above = max(above, level[successor[t]])
        level[s] = above + 1
        highest = max(highest, above + 1)
    return highest


@kernel
def _sort_some(states: IndexArray, level: IndexArray, start: OffsetArray, ordered: IndexArray) -> None:
    """Sort by counting, from level 1 on."""
    for s in states:
        start[level[s]] += 1
    for k in range(1, len(start)):
        start[k] += start[k - 1]
    place = start[:-1].copy()
    for s in states:
        ordered[place[level[s] - 1]] = s
        place[level[s] - 1] += 1


@kernel
def _cut(
    state_start: OffsetArray,
    states: IndexArray,
    start: OffsetArray,
    workers: int,
    least: int,
    cuts: OffsetArray,
) -> int:
    """See `cut_levels`; the number of stages."""
    stages, begin = 0, 0  # levels from `begin` on have no stage yet
    for k in range(len(start) - 1):
        first, last = start[k], start[k + 1]
        work = 0
        for i in range(first, last):
            work += state_start[states[i] + 1] - state_start[states[i]]
        if work < least * workers:
            continue
        if begin < first:
            cuts[stages, 0] = begin
            cuts[stages, 1:] = first
            stages += 1
        cuts[stages, 0] = first
        cuts[stages, workers] = last
        done, worker = 0, 1
        for i in range(first, last):
            done += state_start[states[i] + 1] - state_start[states[i]]
            while worker < workers and done * workers >= work * worker:
                cuts[stages, worker] = i + 1
                worker += 1
        stages += 1
        begin = last
    if begin < len(states):
        cuts[stages, 0] = begin
        cuts[stages, 1:] = len(states)
        stages += 1
    return stages
