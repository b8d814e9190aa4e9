"""What paths of a model can bring at most and at least, whatever the probabilities are.

Both are bounds over the graph alone: sums of rewards along any path to a target that takes only choices of a
policy. Where some path can go on for ever and collect ever more, the bound is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.model.policy import Policy
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Extremes:
    """The least and the most that a path from each state to the target collects; ±∞ where there is no end."""

    least: FloatArray
    most: FloatArray


def can_reach(structure: Structure, target: BoolArray, allowed: BoolArray) -> BoolArray:
    """States from which some path leads to the target through allowed states."""
    source = structure.choice_state[structure.transition_choice]
    found: BoolArray = target.copy()
    while True:
        more = found.copy()
        more[source[found[structure.successor] & allowed[source]]] = True
        if np.array_equal(more, found):
            return found
        found = more


def extreme_rests(
    structure: Structure, policy: Policy, target: BoolArray, worth: FloatArray, reward: FloatArray
) -> Extremes:
    """Bounds on what is still to come under a policy, which must be able to reach the target everywhere.

    `worth` is the value of target states.
    """
    if policy.steps is not None:
        followed = np.zeros(structure.choices, dtype=np.bool_)
        followed[policy.steps.choice] = True
    else:
        followed = policy.probability > 0.0
    kept = followed[structure.transition_choice]
    choice = structure.transition_choice[kept]
    source, successor = structure.choice_state[choice], structure.successor[kept]
    _refuse_traps(structure, target, source, successor)
    gain = reward[choice]
    found = []
    for sign in (-1.0, 1.0):
        value = np.where(target, sign * worth, -np.inf)
        rises: BoolArray = np.ones(structure.states, dtype=np.bool_)
        for _ in range(structure.states + 1):
            further = np.full(structure.states, -np.inf)
            np.maximum.at(further, source, sign * gain + value[successor])
            further[target] = sign * worth[target]
            rises = further != value
            value = further
            if not rises.any():
                break
        if rises.any():  # longer than any path without a cycle, and still growing
            value[_leads_to(structure, rises, source, successor)] = np.inf
        found.append(sign * value)
    return Extremes(found[0], found[1])


def _refuse_traps(structure: Structure, target: BoolArray, source: IndexArray, successor: IndexArray) -> None:
    """Where the target may never be reached, the reward until then is infinite."""
    reached: BoolArray = np.zeros(structure.states, dtype=np.bool_)
    reached[structure.initial] = True
    while True:
        more = reached.copy()
        more[successor[reached[source] & ~target[source]]] = True
        if np.array_equal(more, reached):
            break
        reached = more
    trapped = np.flatnonzero(reached & ~_leads_to(structure, target, source, successor))
    if len(trapped):
        raise InputError(
            f"from state {structure.state_name(int(trapped[0]))} the target is never reached under the "
            "policy, so that returns may be infinite and cannot be watched",
            hint="watch a probability, or the reward of the first steps",
        )


def _leads_to(structure: Structure, goal: BoolArray, source: IndexArray, successor: IndexArray) -> BoolArray:
    found: BoolArray = goal.copy()
    while True:
        more = found.copy()
        more[source[found[successor]]] = True
        if np.array_equal(more, found):
            return found
        found = more
