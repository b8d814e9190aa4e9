"""From an objective to fixpoint equations: boundary states, rewards, directions and the meaning of "for
ever".

Refused, with the reason: rewards that are negative where a play might go on for ever. A negative reward
until a target is fine if every play reaches the target (all policies, all of nature's answers): then the
equations have one solution. A total reward of both signs is one until the states that earn nothing any more,
if every play comes to them. Terminal rewards may have any sign, discounted rewards too.

End components in which a player could idle for ever without reward, collapsed to one value each.

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

from tightrope.errors import InputError
from tightrope.model.graph.components import EndComponents, backward_reachable, maximal_end_components
from tightrope.model.graph.qualitative import almost_sure
from tightrope.model.graph.support import Support
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.solver.equations.system import CLOSED, EXIT, NORMAL, Equations, Meaning, System


def equations_of(
    objective: Objective, structure: Structure, support: Support, enabled: BoolArray
) -> Equations:
    """The equations of an objective without a step bound."""
    nothing = np.zeros(0)
    fixed, value = np.zeros(structure.states, np.bool_), np.zeros(structure.states)
    if objective.kind is ObjectiveKind.UNTIL:
        assert objective.target is not None
        fixed = objective.target if objective.allowed is None else objective.target | ~objective.allowed
        value = objective.target.astype(np.float64)
        return Equations(
            _system(objective, structure, enabled, nothing, nothing, 0.0, 1.0, 0.0),
            fixed.copy(),
            value,
            Meaning.REACH,
        )
    assert objective.reward is not None
    reward = objective.reward.per_choice(structure)
    if objective.kind is ObjectiveKind.REACH_REWARD:
        assert objective.target is not None
        fixed = objective.target.copy()
        if objective.terminal is not None:
            value = np.where(fixed, objective.terminal, 0.0)
        signed = bool(reward.min(initial=0.0) < 0)
        signed = signed and _has_negative(structure, reward, enabled & ~fixed[structure.choice_state])
        if signed:
            _require_absorption(support, fixed, enabled)
        floor = -np.inf if signed else min(0.0, float(value.min(initial=0.0)))
        unit = _size(reward, value) if floor < 0 else 0.0
        system = _system(objective, structure, enabled, reward, nothing, floor, np.inf, unit)
        return Equations(system, fixed, value, Meaning.REWARD)
    if objective.kind is ObjectiveKind.TOTAL:
        if _has_negative(structure, reward, enabled):
            fixed = _quiet_states(support, reward, enabled)
            _require_end(support, fixed, enabled)
            unit = _size(reward, value)
            system = _system(objective, structure, enabled, reward, nothing, -np.inf, np.inf, unit)
            return Equations(system, fixed, value, Meaning.REWARD)
        system = _system(objective, structure, enabled, reward, nothing, 0.0, np.inf, 0.0)
        return Equations(system, fixed, value, Meaning.TOTAL)
    assert objective.discount is not None
    discount = np.full(structure.choices, objective.discount)
    largest = float(np.abs(reward).max(initial=0.0)) / (1.0 - objective.discount) * (1 + 1e-9)
    signed = _has_negative(structure, reward, enabled)
    floor = -largest if signed else 0.0
    unit = _size(reward, value) if signed else 0.0
    system = _system(objective, structure, enabled, reward, discount, floor, largest, unit)
    return Equations(system, fixed, value, Meaning.DISCOUNTED)


def horizon_system(objective: Objective, structure: Structure, enabled: BoolArray) -> System:
    """The system whose backups a step-bounded objective repeats."""
    if objective.reward is None:
        return _system(objective, structure, enabled, np.zeros(0), np.zeros(0), 0.0, 1.0, 0.0)
    reward = objective.reward.per_choice(structure)
    last = np.zeros(0) if objective.terminal is None else objective.terminal
    signed = _has_negative(structure, reward, enabled) or bool(last.min(initial=0.0) < 0)
    unit = _size(reward, last) if signed else 0.0
    return _system(objective, structure, enabled, reward, np.zeros(0), -np.inf, np.inf, unit)


def _system(
    objective: Objective,
    structure: Structure,
    enabled: BoolArray,
    reward: FloatArray,
    discount: FloatArray,
    floor: float,
    ceiling: float,
    unit: float,
) -> System:
    return System(
        structure=structure,
        reward=reward,
        discount=discount,
        agent_maximises=objective.agent is Direction.MAX,
        nature_maximises=objective.nature is Direction.MAX,
        enabled=enabled,
        mode=np.full(structure.choices, np.int8(NORMAL))
        if enabled.all()
        else np.where(enabled, np.int8(NORMAL), np.int8(CLOSED)),
        leader=np.arange(structure.states, dtype=np.int32),
        floor=floor,
        ceiling=ceiling,
        unit=unit,
    )


def _has_negative(structure: Structure, reward: FloatArray, counted: BoolArray) -> bool:
    return bool(reward.min(initial=0.0) < 0) and bool(np.any(reward[counted] < 0))


def _size(reward: FloatArray, terminal: FloatArray) -> float:
    return float(max(np.abs(reward).max(initial=0.0), np.abs(terminal).max(initial=0.0)))


def _quiet_states(support: Support, reward: FloatArray, enabled: BoolArray) -> BoolArray:
    """The states from which nothing is ever earned or lost, whoever decides what."""
    structure = support.structure
    earning = np.zeros(structure.states, np.bool_)
    earning[structure.choice_state[enabled & (reward != 0)]] = True
    return ~backward_reachable(support, earning)


def _require_end(support: Support, quiet: BoolArray, enabled: BoolArray) -> None:
    """Then the total is a finite sum almost surely: the reward until a quiet state."""
    sure = almost_sure(support, quiet, agent_reaches=False, nature_reaches=False, choices=enabled).states
    if not sure.all():
        state = support.structure.state_name(int(np.argmin(sure)))
        raise InputError(
            "a total reward of both signs is defined where every policy comes to states that earn nothing "
            f"any more, but from state {state} rewards may go on for ever",
            hint="use a `discount` factor, or a reward until a target: R=? [ F … ]",
        )


def _require_absorption(support: Support, target: BoolArray, enabled: BoolArray) -> None:
    sure = almost_sure(support, target, agent_reaches=False, nature_reaches=False, choices=enabled).states
    if not sure.all():
        state = support.structure.state_name(int(np.argmin(sure)))
        raise InputError(
            f"negative rewards need a target that every policy reaches, but from state {state} "
            "it can be missed",
            hint="rule out in the model that it is missed, or ask for the discounted total: R=? [ C ] "
            "with a `discount` factor",
        )


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
