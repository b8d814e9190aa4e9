"""When an episode ends: the objective is decided, or nothing can happen any more.

The protocol: an episode ends as soon as the objective is decided (a target reached or a forbidden state
entered), in an absorbing state (all choices are certain self-loops), or at a cap on its length. Where
it ends depends on the state alone, so what was seen before remains a run of the true model.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray


def absorbing_states(structure: Structure) -> BoolArray:
    """States all of whose choices lead back to them for certain."""
    leaves = structure.successor != structure.choice_state[structure.transition_choice]
    result: BoolArray = np.ones(structure.states, dtype=np.bool_)
    result[structure.choice_state[structure.transition_choice[leaves]]] = False
    return result


def find_decided_states(objective: Objective, states: int) -> BoolArray:
    """States in which nothing that follows changes the objective's value.

    With a lower step bound reaching the target early decides nothing, but leaving the allowed
    states always does.
    """
    decided: BoolArray = np.zeros(states, dtype=np.bool_)
    if objective.kind is ObjectiveKind.UNTIL:
        if objective.allowed is not None:
            decided |= ~objective.allowed
        if objective.target is not None and objective.lower_steps == 0:
            decided |= objective.target
    elif objective.kind is ObjectiveKind.REACH_REWARD and objective.target is not None:
        decided |= objective.target
    return decided


def deciding_steps(objective: Objective) -> int | None:
    """The number of steps after which the objective is decided in any case, if there is one."""
    return 1 if objective.kind is ObjectiveKind.NEXT else objective.upper_steps


def can_repeat_choice(structure: Structure, stop: BoolArray, cap: int) -> bool:
    """Whether an episode can take the same choice twice: a cycle through states that do not stop it.

    Looks at the structure only, so it may say yes where a probability of 0 forbids it.
    """
    if cap <= 1:
        return False
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    source = structure.choice_state[structure.transition_choice]
    inside = ~stop[source] & ~stop[structure.successor]
    source, target = source[inside], structure.successor[inside]
    if np.any(source == target):
        return True
    edges = csr_array(
        (np.ones(len(source), dtype=np.bool_), (source, target)), shape=(structure.states, structure.states)
    )
    components, _ = connected_components(edges, directed=True, connection="strong")
    return bool(components < structure.states)


def has_levels(structure: Structure) -> bool:
    """Whether every step leads from one level of the model to the next, as where a variable counts steps.

    Then two states that a step leads between are that far apart on every way. States that nothing leaves end
    an episode, and their steps do not count.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    source = structure.choice_state[structure.transition_choice]
    inside = ~absorbing_states(structure)[source]
    source, target = source[inside], structure.successor[inside]
    if np.any(source == target):
        return False
    edges = csr_array(
        (np.ones(len(source), dtype=np.bool_), (source, target)), shape=(structure.states, structure.states)
    )
    order, before = breadth_first_order(edges, structure.initial, directed=True)
    level: OffsetArray = np.full(structure.states, -1, dtype=np.int64)
    level[structure.initial] = 0
    for state in order[1:].tolist():
        level[state] = level[before[state]] + 1
    seen = level[source] >= 0
    return bool(np.all(level[target[seen]] == level[source[seen]] + 1))
