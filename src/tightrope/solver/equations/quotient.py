"""End components in which a player could idle for ever without reward, collapsed to one value each.

In such a component x = Φ(x) has spurious solutions: everyone may wait for everyone. The players who idle
to no avail (the *owners*: those who maximise a probability or a total reward, those who minimise a reward
that stops at a target) have to leave. If owners can reach every state of the component from every other
almost surely, its states have the same value, that of the best way out. So they form a group with one
equation. Of its choices, those that only idle are closed; where nature is an owner and could idle at a
choice, its value is that of its best successor outside: moving an ever so small mass there, again and
again, leaves by it almost surely.

This is exact when the owners are all who decide, or when nature cannot cut anything. In a game where
nature can cut, only components that the agent controls alone (`nature_stays=False`) are collapsed, and
`is_exact` says whether others remain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.graph.components import EndComponents, maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray
from tightrope.solver.equations.system import CLOSED, EXIT, NORMAL, System


@dataclass(frozen=True, eq=False)
class Quotient:
    """The system with its idle components collapsed; `is_exact` is False where a game keeps some that
    could not be.
    """

    system: System
    is_exact: bool


def collapse(
    support: Support, system: System, undecided: BoolArray, agent_owns: bool, nature_owns: bool
) -> Quotient:
    """Collapse the idle end components among the `undecided` states."""
    idle = system.enabled.copy()
    if len(system.reward):
        idle &= system.reward == 0
    together = maximal_end_components(support, within=undecided, choices=idle)
    if together.count == 0 or not (agent_owns or nature_owns):
        return Quotient(system, True)  # without owners the graph has decided all such components
    if support.is_constant or (agent_owns and nature_owns):
        return Quotient(_group(support, system, together, nature_owns and not support.is_constant), True)
    if not agent_owns:
        return Quotient(system, False)
    alone = maximal_end_components(support, within=undecided, choices=idle, nature_stays=False)
    same = np.array_equal(alone.internal, together.internal) and alone.count == together.count
    grouped = _group(support, system, alone, False) if alone.count else system
    return Quotient(grouped, same)


def _group(support: Support, system: System, found: EndComponents, nature_leaves: bool) -> System:
    structure = system.structure
    leader = np.arange(structure.states, dtype=np.int32)
    members = np.flatnonzero(found.component >= 0)
    first = np.full(found.count, -1, np.int64)
    first[found.component[members[::-1]]] = members[::-1]
    leader[members] = first[found.component[members]]
    mode = np.where(system.enabled, NORMAL, CLOSED).astype(np.int8)
    mode[found.internal] = EXIT if nature_leaves else CLOSED
    return system.with_groups(leader, mode)
