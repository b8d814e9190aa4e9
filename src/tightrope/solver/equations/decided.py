"""What the graph alone decides: values 0, 1 and ∞, exactly, with the ranks and choices that show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.graph.qualitative import Ranked, almost_sure, avoiding, positive, surely_drawn
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.equations.equations import Equations, Meaning
from tightrope.solver.equations.recurrence import endless_reward


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
