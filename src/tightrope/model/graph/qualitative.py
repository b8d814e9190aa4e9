"""States that reach a target with probability positive, one, or less than one, for each pair of players.

The agent (choices) and nature (distributions) each take part in the attempt (opt is "some") or oppose it
("every"). Two fixpoints over worklists, in linear time for constant support:

    attract(X, Y)  least X ∪ { s ∈ Y : opt_c opt_p  p(X) > 0 }      over the choices that are still `open`
    settle(Y)      greatest { s ∈ Y : opt_c opt_p  p(Y) = 1 }       closing the choices that cannot keep to Y

`attract` numbers states: each reaches a smaller number with positive probability against every opposition,
the ranking of certificates. `attract_in_passes` runs first if nature has no options. `positive` is one
attraction. `almost_sure` is νY.μX: the greatest Y from all of which the target is reached within Y with
positive probability. Both players have finitely many pure options (nature: vertices), so almost surely means
value 1. `avoiding` lists the rest by layers: in layer k every answer of those who attempt enters a smaller
layer with positive probability or stays in layers ≤ k surely. By induction, the target is missed with
positive probability.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.graph.support import (
    ForwardArrays,
    GraphArrays,
    GraphEngine,
    Joins,
    Ranked,
    Support,
    can_enter,
    can_stay,
    must_enter,
    must_stay,
    queue_up,
)
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.jit import kernel


def positive(
    support: Support,
    target: BoolArray,
    joins: Joins,
    *,
    within: BoolArray | None = None,
    choices: BoolArray | None = None,
) -> Ranked:
    """States that reach `target` through `within` with positive probability."""
    structure, drawn = support.structure, Ranked.begin(target.copy())
    within, choices = _all(within, structure.states), _all(choices, structure.choices)
    engine_of(support).attract(support.usable, joins, within, choices, drawn)
    return drawn


def almost_sure(
    support: Support,
    target: BoolArray,
    joins: Joins,
    *,
    within: BoolArray | None = None,
    choices: BoolArray | None = None,
) -> Ranked:
    """States that reach `target` through `within` with probability 1."""
    structure, engine = support.structure, engine_of(support)
    inside = _all(within, structure.states) | target
    open_choice = _all(choices, structure.choices).copy()
    while True:
        if not inside.all():  # all states together are left by nobody
            engine.settle(support.usable, joins, target, inside, open_choice)
        drawn = Ranked.begin(target.copy())
        engine.attract(support.usable, joins, inside, open_choice, drawn)
        if np.array_equal(drawn.states, inside):
            return drawn
        inside = drawn.states


def surely_drawn(support: Support, target: BoolArray, some: BoolArray, choices: BoolArray) -> BoolArray:
    """`almost_sure` in a chain with one of `choices` per state; `some` reach it with positive probability."""
    missed = Ranked.begin(~some)
    engine_of(support).attract(support.usable, (True, True), some & ~target, choices, missed)
    return ~missed.states


def avoiding(
    support: Support, missed: BoolArray, joins: Joins, *, choices: BoolArray | None = None
) -> Ranked:
    """Layers of `missed`, the complement of an `almost_sure` set computed for the same players."""
    structure, avoids = support.structure, (not joins[0], not joins[1])
    open_choice = _all(choices, structure.choices)
    sunk, layer, witness = Ranked.begin(np.zeros(structure.states, np.bool_))
    if not missed.any():
        return Ranked(sunk, layer, witness)
    depth = 0
    while True:
        inside = missed.copy()
        layers = Ranked(sunk, layer, witness)
        engine_of(support).keep_or_sink(support.usable, avoids, open_choice, inside, layers)
        new = inside & ~sunk
        if not new.any():
            assert np.array_equal(sunk, missed), "the layers exhaust the complement of an almost-sure set"
            return Ranked(sunk, layer, witness)
        layer[new] = depth
        depth += 1
        sunk = inside


class _HostEngine:
    """The fixpoints on a support's own arrays."""

    def __init__(self, support: Support):
        self.support = support

    def attract(
        self, usable: BoolArray | None, joins: Joins, within: BoolArray, choices: BoolArray, ranked: Ranked
    ) -> int:
        support, (agent, nature) = self.support, joins
        drawn, is_all = 0, False
        if nature or support.is_constant:  # who is against it can cut nothing
            drawn, is_all = attract_in_passes(support.forward, within, choices, agent, ranked)
        return drawn if is_all else attract(support.arrays, within, choices, agent, nature, ranked, drawn)

    def settle(
        self, usable: BoolArray | None, joins: Joins, exempt: BoolArray, within: BoolArray, choices: BoolArray
    ) -> int:
        agent, nature = joins
        nature = nature and not self.support.is_constant  # who can cut nothing has nothing to join with
        return settle(self.support.arrays, exempt, agent, nature, within, choices)

    def keep_or_sink(
        self, usable: BoolArray | None, avoids: Joins, choices: BoolArray, inside: BoolArray, layers: Ranked
    ) -> None:
        _keep_or_sink(self.support.arrays, choices, *avoids, layers.states, inside, layers.witness)


def engine_of(support: Support) -> GraphEngine:
    """Where the fixpoints of a support are computed."""
    return support.engine or _HostEngine(support)


def _all(mask: BoolArray | None, size: int) -> BoolArray:
    return np.ones(size, np.bool_) if mask is None else mask


@kernel
def _keep_or_sink(
    graph: GraphArrays,
    open_choice: BoolArray,
    agent_avoids: bool,
    nature_avoids: bool,
    sunk: BoolArray,
    inside: BoolArray,
    witness: OffsetArray,
) -> None:
    """Greatest subset of `inside` where the avoiders may enter `sunk` or surely stay inside."""
    choice_start, rows, predecessor_start, predecessor, transition_choice, choice_state = graph
    queue, waiting = np.empty(len(inside), np.int32), inside & ~sunk
    size = queue_up(waiting, queue)
    while size > 0:
        size -= 1
        s = queue[size]
        waiting[s] = False
        good_all, good_some = True, False
        for c in range(choice_start[s], choice_start[s + 1]):
            if not open_choice[c]:
                continue
            if nature_avoids:
                good = can_stay(rows, c, inside, True) or can_enter(rows, c, sunk)
            else:
                good = must_enter(rows, c, sunk) or must_stay(rows, c, inside, True)
            if good:
                if agent_avoids and not good_some:
                    witness[s] = c
                good_some = True
            else:
                good_all = False
        if (agent_avoids and not good_some) or (not agent_avoids and not good_all):
            inside[s] = False
            for i in range(predecessor_start[s], predecessor_start[s + 1]):
                before = choice_state[transition_choice[predecessor[i]]]
                if inside[before] and not waiting[before] and not sunk[before]:
                    waiting[before] = True
                    queue[size] = before
                    size += 1


MOST_PASSES = 32
"""Passes through all states before a worklist does the rest."""


@kernel
def attract_in_passes(
    graph: ForwardArrays, within: BoolArray, open_choice: BoolArray, agent_joins: bool, ranked: Ranked
) -> tuple[int, bool]:
    """`attract` for one possible transition, in passes: how many were added, and whether that is all."""
    choice_start, transition_start, successor, possible = graph
    drawn, rank, witness = ranked
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
    ranked: Ranked,
    already: int,
) -> int:
    """Extend `ranked` in place, ranks counting up from 1; how many were added, `already` included."""
    choice_start, rows, predecessor_start, predecessor, transition_choice, choice_state = graph
    drawn, rank, witness = ranked
    queue = np.empty(len(within), np.int32)
    pending = np.zeros(len(within), np.int32)
    hit = np.zeros(len(open_choice), np.bool_)
    for s in range(len(within)):
        if within[s] and not agent_joins and not drawn[s]:
            for c in range(choice_start[s], choice_start[s + 1]):
                pending[s] += open_choice[c]
    seeds = size = queue_up(drawn, queue)
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
            if not nature_joins and rows.least[t] <= 0.0 and not must_enter(rows, c, drawn):
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
    """Shrink `within` in place and close choices; `exempt` states need no way to stay. How many went."""
    choice_start, rows, predecessor_start, predecessor, transition_choice, choice_state = graph
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
            keeps = can_stay(rows, c, within, True) if nature_joins else must_stay(rows, c, within, True)
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
            if nature_joins and rows.least[t] <= 0.0 and can_stay(rows, c, within, True):
                continue
            open_choice[c] = False
            pending[s] -= 1
            if pending[s] == 0 or not agent_joins:
                within[s] = False
                queue[size] = s
                size += 1
    return size
