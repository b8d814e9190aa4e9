"""What the graph alone decides: values 0, 1 and ∞, exactly, with the ranks and choices that show it.

States whose total reward is infinite: with positive probability, reward is earned again and again.

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

from tightrope.model.graph.qualitative import Ranked, almost_sure, avoiding, positive, surely_drawn
from tightrope.model.graph.support import (
    GraphArrays,
    Support,
    can_enter,
    can_stay,
    must_enter,
    must_stay,
)
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations.system import Equations, Meaning


@dataclass(frozen=True, eq=False)
class Decision:
    """`states` have exactly `value`; where it is ∞, `layer` and `witness` show it (see `Solution`).

    `progress` ranks the states from which those who own progress make it, where that has been found out."""

    states: BoolArray
    value: FloatArray
    layer: OffsetArray
    witness: OffsetArray
    progress: Ranked | None = None


def decide(support: Support, equations: Equations) -> Decision:
    """The states whose value follows from the graph."""
    system = equations.system
    size = system.structure.states
    layer, witness = (np.broadcast_to(np.int64(none), size) for none in (0, -1))  # of no memory
    value = np.zeros(size)
    undecided = ~equations.fixed
    if equations.meaning is Meaning.DISCOUNTED:
        if system.unit > 0:
            return Decision(np.zeros(size, np.bool_), value, layer, witness)
        some = _find_ever_rewarded(support, equations, system.enabled & (system.reward > 0))
        return Decision(~some, value, layer, witness)
    if equations.meaning is Meaning.REACH:
        target = equations.fixed & (equations.value > 0)
        reaches = {"agent_reaches": system.agent_maximises, "nature_reaches": system.nature_maximises}
        ranked = positive(support, target, within=undecided, choices=system.enabled, **reaches)
        some = ranked.states
        if some.all():  # nothing else can happen to a play: it cannot miss the target for ever
            sure = some
        elif support.is_constant and equations.agent_has_no_choice:
            sure = surely_drawn(support, target, some, system.enabled)
        else:
            within = undecided & some
            sure = almost_sure(support, target, within=within, choices=system.enabled, **reaches).states
        value[sure] = 1.0
        return Decision(undecided & (~some | sure), value, layer, witness, ranked)
    if equations.meaning is Meaning.REWARD:
        reaches = {"agent_reaches": not system.agent_maximises, "nature_reaches": not system.nature_maximises}
        ranked = almost_sure(support, equations.fixed, within=undecided, choices=system.enabled, **reaches)
        missed = avoiding(support, ~ranked.states, choices=system.enabled, **reaches)
        value[missed.states] = np.inf
        known = missed.states | _free_of_charge(support, equations)
        return Decision(known, value, missed.rank.astype(np.int64), missed.witness, ranked)
    rewarded = system.enabled & (system.reward > 0)
    endless = endless_reward(
        support,
        rewarded,
        system.enabled,
        agent_maximises=system.agent_maximises,
        nature_maximises=system.nature_maximises,
    )
    value[endless.states] = np.inf
    some = _find_ever_rewarded(support, equations, rewarded)
    return Decision(endless.states | ~some, value, endless.rank, endless.witness)


def _free_of_charge(support: Support, equations: Equations) -> BoolArray:
    """States from which a target of value 0 is reached almost surely without any reward on the way."""
    system, structure = equations.system, equations.system.structure
    if system.unit > 0 or (len(system.reward) and system.smallest_reward > 0):
        return np.zeros(structure.states, np.bool_)
    costly = system.enabled & (system.reward > 0)
    free = system.enabled & ~costly
    if not free.any():
        return np.zeros(structure.states, np.bool_)
    within = ~equations.fixed
    if system.agent_maximises:
        within &= np.add.reduceat(costly.astype(np.int32), structure.choice_start[:-1]) == 0
    target = equations.fixed & (equations.value == 0)
    return (
        almost_sure(
            support,
            target,
            agent_reaches=not system.agent_maximises,
            nature_reaches=not system.nature_maximises,
            within=within,
            choices=free,
        ).states
        & ~equations.fixed
    )


def _find_ever_rewarded(support: Support, equations: Equations, rewarded: BoolArray) -> BoolArray:
    """States whose total reward is positive: a reward now, or with positive probability later."""
    system, structure = equations.system, equations.system.structure
    per_state = np.add.reduceat(rewarded.astype(np.int64), structure.choice_start[:-1])
    if system.agent_maximises:
        now = per_state > 0
        choices = system.enabled
    else:
        unrewarded = system.enabled & ~rewarded
        now = np.add.reduceat(unrewarded.astype(np.int64), structure.choice_start[:-1]) == 0
        choices = unrewarded  # a choice with a reward is no way to avoid one
    return positive(
        support,
        now,
        agent_reaches=system.agent_maximises,
        nature_reaches=system.nature_maximises,
        choices=choices,
    ).states


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
