"""Where the iteration on a block starts: values next to it, and for rewards what the way there may cost.

A guess decides how long a solve takes and nothing else.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.meter import Meter
from tightrope.solver.system import Block, System


def first_guess(
    equations: Equations,
    system: System,
    block: Block,
    values: FloatArray,
    distance: IndexArray,
    meter: Meter,
) -> FloatArray:
    """One value a group: what lies around the block, and for rewards what `distance` steps may cost, or
    values that were given (`Meter.start`) where they are finite.
    """
    guess = np.full(len(block), _around(system, block, values, meter.place))
    if equations.meaning is Meaning.REWARD and system.unit == 0:
        guess += distance * _step(system, block)
    given = meter.start
    if given is not None and len(given) == len(values):
        of_groups = given[block.member[block.group_start[:-1]]]
        guess = np.where(np.isfinite(of_groups), of_groups, guess)
    bounded: FloatArray = np.clip(guess, system.floor, system.ceiling)
    return bounded


def _around(system: System, block: Block, values: FloatArray, place: IndexArray) -> float:
    """The smallest finite value next to the block, 0 where there is none."""
    structure = system.structure
    place[block.member] = 0
    found = _smallest_around(
        structure.choice_start,
        structure.transition_start,
        structure.successor,
        block.member,
        place,
        values,
    )
    place[block.member] = -1
    return found if np.isfinite(found) else 0.0


def _step(system: System, block: Block) -> float:
    """Twice the mean reward of the block's choices: a guess at what it costs to come one step closer."""
    structure, reward = system.structure, system.reward
    first = structure.choice_start[block.member]
    length = structure.choice_start[block.member + 1] - first
    place = np.cumsum(length) - length  # of the block's choices alone: blocks are many
    choice = np.repeat(first - place, length) + np.arange(int(length.sum()))
    return 2.0 * float(reward[choice].mean())


@kernel
def _smallest_around(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    member: IndexArray,
    place: IndexArray,
    values: FloatArray,
) -> float:
    """The smallest value of a successor outside the block, whose states have place ≥ 0; inf without one."""
    smallest = np.inf
    for s in member:
        for t in range(transition_start[choice_start[s]], transition_start[choice_start[s + 1]]):
            if place[successor[t]] < 0:
                smallest = min(smallest, values[successor[t]])
    return smallest
