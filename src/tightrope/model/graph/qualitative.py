"""States whose probability of reaching a target is positive, one, or less than one, whoever decides.

With the players of `attractor`: `positive` is one attraction; `almost_sure` is the greatest Y such that
the target can be reached within Y with positive probability from all of Y while staying in Y surely
(νY.μX, as for stochastic games: both players have finitely many pure options, nature's being the vertices
of its sets, so "almost surely" is "with value 1"). `avoiding` lists the rest layer by layer, from the
point of view of those who avoid: in layer k every answer of those who want to reach either enters a
smaller layer with positive probability or keeps the play in layers ≤ k surely. By induction on k, the
target is missed with positive probability.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.graph.attractor import Ranked, attract, attract_in_passes, settle
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


def positive(
    support: Support,
    target: BoolArray,
    *,
    agent_reaches: bool,
    nature_reaches: bool,
    within: BoolArray | None = None,
    choices: BoolArray | None = None,
) -> Ranked:
    """States that reach `target` through `within` with positive probability."""
    structure, found = support.structure, Ranked.begin(target.copy())
    within, choices = _all(within, structure.states), _all(choices, structure.choices)
    attract_into(support, within, choices, agent_reaches, nature_reaches, found)
    return found


def almost_sure(
    support: Support,
    target: BoolArray,
    *,
    agent_reaches: bool,
    nature_reaches: bool,
    within: BoolArray | None = None,
    choices: BoolArray | None = None,
) -> Ranked:
    """States that reach `target` through `within` with probability 1."""
    structure = support.structure
    inside = _all(within, structure.states) | target
    open_choice = _all(choices, structure.choices).copy()
    while True:
        if not inside.all():  # all states together are left by nobody
            _settle(support, target, agent_reaches, nature_reaches, inside, open_choice)
        drawn = Ranked.begin(target.copy())
        attract_into(support, inside, open_choice, agent_reaches, nature_reaches, drawn)
        if np.array_equal(drawn.states, inside):
            return drawn
        inside = drawn.states


def surely_drawn(support: Support, target: BoolArray, some: BoolArray, choices: BoolArray) -> BoolArray:
    """`almost_sure` in a Markov chain, of which `some` reach the target with positive probability, through
    each other: whoever meets no state that misses it for certain. One choice per state is among `choices`.
    """
    missed = Ranked.begin(~some)
    attract_into(support, some & ~target, choices, True, True, missed)
    return ~missed.states


def avoiding(
    support: Support,
    missed: BoolArray,
    *,
    agent_reaches: bool,
    nature_reaches: bool,
    choices: BoolArray | None = None,
) -> Ranked:
    """Layers of `missed`, the complement of an `almost_sure` set computed for the same players."""
    structure = support.structure
    open_choice = _all(choices, structure.choices)
    found, layer, witness = Ranked.begin(np.zeros(structure.states, np.bool_))
    if not missed.any():
        return Ranked(found, layer, witness)
    depth = 0
    while True:
        inside = missed.copy()
        _keep_or_sink_on(support, open_choice, not agent_reaches, not nature_reaches, found, inside, witness)
        new = inside & ~found
        if not new.any():
            assert np.array_equal(found, missed), "the layers exhaust the complement of an almost-sure set"
            return Ranked(found, layer, witness)
        layer[new] = depth
        depth += 1
        found = inside


def attract_into(
    support: Support, within: BoolArray, choices: BoolArray, agent: bool, nature: bool, found: Ranked
) -> int:
    """`attractor.attract` on a support, or its engine's."""
    if support.engine is not None:
        return support.engine.attract(support.kept, within, choices, agent, nature, *found)
    drawn, is_all = 0, False
    if nature or support.is_constant:  # who is against it can cut nothing
        drawn, is_all = attract_in_passes(support.forward, within, choices, agent, found)
    return drawn if is_all else attract(support.arrays, within, choices, agent, nature, found, drawn)


def _settle(
    support: Support, exempt: BoolArray, agent: bool, nature: bool, within: BoolArray, choices: BoolArray
) -> int:
    if support.engine is not None:
        return support.engine.settle(support.kept, exempt, agent, nature, within, choices)
    nature = nature and not support.is_constant  # who can cut nothing has nothing to join with
    return settle(support.arrays, exempt, agent, nature, within, choices)


def _keep_or_sink_on(
    support: Support,
    choices: BoolArray,
    agent: bool,
    nature: bool,
    found: BoolArray,
    inside: BoolArray,
    witness: OffsetArray,
) -> None:
    if support.engine is not None:
        support.engine.keep_or_sink(support.kept, choices, agent, nature, found, inside, witness)
        return
    _keep_or_sink(support.arrays, choices, agent, nature, found, inside, witness)


def _all(mask: BoolArray | None, size: int) -> BoolArray:
    return np.ones(size, np.bool_) if mask is None else mask


@kernel
def _keep_or_sink(
    graph: GraphArrays,
    open_choice: BoolArray,
    agent_avoids: bool,
    nature_avoids: bool,
    found: BoolArray,
    inside: BoolArray,
    witness: OffsetArray,
) -> None:
    """Greatest subset of `inside` where the avoiders enter `found` with positive probability or stay
    inside surely.
    """
    choice_start, transition_start, successor, lower, upper, possible = graph[:6]
    predecessor_start, predecessor, transition_choice, choice_state = graph[6:]
    queue = np.empty(len(inside), np.int32)
    size = 0
    for s in range(len(inside)):
        if inside[s] and not found[s]:
            queue[size] = s
            size += 1
    waiting = inside.copy()
    while size > 0:
        size -= 1
        s = queue[size]
        waiting[s] = False
        if not inside[s] or found[s]:
            continue
        good_all, good_some = True, False
        for c in range(choice_start[s], choice_start[s + 1]):
            if not open_choice[c]:
                continue
            first, last = transition_start[c], transition_start[c + 1]
            if nature_avoids:
                good = can_stay(first, last, successor, lower, upper, possible, inside, True) or can_enter(
                    first, last, successor, possible, found
                )
            else:
                good = must_enter(first, last, successor, lower, upper, possible, found) or must_stay(
                    first, last, successor, possible, inside, True
                )
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
                if inside[before] and not waiting[before] and not found[before]:
                    waiting[before] = True
                    queue[size] = before
                    size += 1
