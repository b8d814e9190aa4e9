"""Objectives that look a finite number of steps ahead: as many safe backups as there are steps.

Each backup rounds both bounds to their safe side, so nothing is left to verify. Nature, like the agent,
may decide anew in every step.

    P [ allowed U^[a,b] target ]   b − a backups with the target absorbing, then a in which it counts no
    longer P [ X target ]                 one backup of the target's indicator R [ C<=k ]
    k backups of 0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.kernel import Backups
from tightrope.solver.meter import Meter
from tightrope.solver.system import System


@dataclass(frozen=True, eq=False)
class Horizon:
    """Bounds after all steps, and the agent's first decision."""

    lower: FloatArray
    upper: FloatArray
    policy: OffsetArray


def look_ahead(
    kernel: Backups,
    system: System,
    objective: Objective,
    weights: FloatArray | None,
    meter: Meter,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> Horizon:
    """Backups of the steps that are counted; `start` are the bounds after the last (from the unbounded
    problem).

    `weights` are the probabilities of a randomised policy, per choice."""
    states = system.structure.states
    if objective.kind is ObjectiveKind.CUMULATIVE:
        assert objective.upper_steps is not None
        zero = np.zeros(states)
        return _steps(kernel, system, weights, meter, zero, zero, objective.upper_steps, None, 0.0, None)
    assert objective.target is not None
    goal = objective.target.astype(np.float64)
    if objective.kind is ObjectiveKind.NEXT:
        return _steps(kernel, system, weights, meter, goal, goal, 1, None, 0.0, None)
    allowed = objective.allowed if objective.allowed is not None else np.ones(states, np.bool_)
    if start is not None:
        result = Horizon(start[0], start[1], system.structure.choice_start[:-1].copy())
    else:
        assert objective.upper_steps is not None
        last = objective.upper_steps - objective.lower_steps
        result = _steps(kernel, system, weights, meter, goal, goal, last, objective.target, 1.0, ~allowed)
    if objective.lower_steps:
        result = _steps(
            kernel,
            system,
            weights,
            meter,
            result.lower,
            result.upper,
            objective.lower_steps,
            None,
            0.0,
            ~allowed,
        )
    return result


def _steps(
    kernel: Backups,
    system: System,
    weights: FloatArray | None,
    meter: Meter,
    lower: FloatArray,
    upper: FloatArray,
    steps: int,
    held: BoolArray | None,
    held_value: float,
    barred: BoolArray | None,
) -> Horizon:
    """`steps` backups; afterwards `barred` states are 0 and `held` states `held_value`, after each of
    them.
    """
    policy = _first_choices(system)
    for _ in range(steps):
        if meter.exhausted():
            wide = np.full(len(lower), system.ceiling)
            return Horizon(np.full(len(lower), system.floor), wide, policy)
        low, high = kernel.safe_choices(system, lower, False), kernel.safe_choices(system, upper, True)
        meter.iterations += 1
        new_lower, first_low = _over_choices(system, low, weights, False)
        new_upper, first_high = _over_choices(system, high, weights, True)
        if steps and weights is None:
            policy = first_low if system.agent_maximises else first_high
        for values in (new_lower, new_upper):
            if barred is not None:
                values[barred] = 0.0
            if held is not None:
                values[held] = held_value
        if np.array_equal(new_lower, lower) and np.array_equal(new_upper, upper):
            break  # a fixpoint: further steps change nothing
        lower, upper = new_lower, new_upper
    return Horizon(lower, upper, policy)


def _over_choices(
    system: System, each: FloatArray, weights: FloatArray | None, upward: bool
) -> tuple[FloatArray, OffsetArray]:
    """The agent's optimum over the choices of each state, or its weighted sum rounded outward."""
    structure = system.structure
    start = structure.choice_start[:-1]
    if weights is not None:
        return weighted(each, weights, start, np.diff(structure.choice_start), upward), start.copy()
    nothing = -np.inf if system.agent_maximises else np.inf
    each = np.where(system.enabled, each, nothing)
    best = (np.maximum if system.agent_maximises else np.minimum).reduceat(each, start)
    chosen = np.flatnonzero(system.enabled & (each == best[structure.choice_state]))[::-1]
    policy = start.copy()
    policy[structure.choice_state[chosen]] = chosen
    return best, policy


def weighted(
    each: FloatArray, weights: FloatArray, start: OffsetArray, count: OffsetArray, upward: bool
) -> FloatArray:
    """Σ weights·each over the choices of every state, rounded outward, within the range of what is summed."""
    used = weights > 0
    terms = np.zeros(len(each))
    np.multiply(weights, each, out=terms, where=used)
    total = np.add.reduceat(terms, start)
    error = np.where(np.isfinite(total), (count + 6) * 2.0**-52 * np.add.reduceat(np.abs(terms), start), 0.0)
    smallest = np.minimum.reduceat(np.where(used, each, np.inf), start)
    largest = np.maximum.reduceat(np.where(used, each, -np.inf), start)
    result: FloatArray = np.minimum(total + error, largest) if upward else np.maximum(total - error, smallest)
    return np.where(smallest == largest, smallest, result)


def _first_choices(system: System) -> OffsetArray:
    policy: OffsetArray = system.structure.choice_start[:-1].copy()
    enabled = np.flatnonzero(system.enabled)[::-1]
    policy[system.structure.choice_state[enabled]] = enabled
    return policy
