"""Where the iteration on a block starts: values next to it, and for rewards what the way there may cost.

A guess decides how long a solve takes and nothing else.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.system import Block, System


def first_guess(
    equations: Equations,
    system: System,
    block: Block,
    smallest: float,
    distance: IndexArray,
    given: FloatArray | None,
) -> FloatArray:
    """One value a group: the `smallest` around the block, and for rewards what `distance` steps may cost, or
    values that were `given` for all states (`Meter.start`) where they are finite.
    """
    guess = np.full(len(block), smallest)
    if equations.meaning is Meaning.REWARD and system.unit == 0:
        guess += distance * _step(system, block)
    if given is not None and len(given) == system.structure.states:
        of_groups = given[block.member[block.group_start[:-1]]]
        guess = np.where(np.isfinite(of_groups), of_groups, guess)
    bounded: FloatArray = np.clip(guess, system.floor, system.ceiling)
    return bounded


def _step(system: System, block: Block) -> float:
    """Twice the mean reward of the block's choices: a guess at what it costs to come one step closer."""
    structure, reward = system.structure, system.reward
    first = structure.choice_start[block.member]
    length = structure.choice_start[block.member + 1] - first
    place = np.cumsum(length) - length  # of the block's choices alone: blocks are many
    choice = np.repeat(first - place, length) + np.arange(int(length.sum()))
    return 2.0 * float(reward[choice].mean())
