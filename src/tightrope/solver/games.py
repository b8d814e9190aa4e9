"""Games whose idle end components depend on what nature cuts: strategy iteration by one-player solves.

Owners and opponents of progress (see `equations`) then sit on different sides, agent and nature. Fixing the
opponent's strategy gives a bound on the opponent's side and a one-player problem, which `quotient` treats exactly;
fixing the owners' answer to it gives the bound on theirs, again with one player. Improve the opponent's strategy
where that is strictly better, until the two bounds meet (Hoffman and Karp's scheme: finitely many strategies,
each better than the last). Every step yields valid bounds; the last ones are returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.blocks import Meter
from tightrope.solver.equations import Equations
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.kernel import Kernel
from tightrope.solver.solution import Status, width
from tightrope.solver.system import Block, Rows

MOST_ROUNDS = 200


class Bounds(Protocol):
    """What a one-player solve returns, as far as it matters here."""

    @property
    def lower(self) -> FloatArray: ...
    @property
    def upper(self) -> FloatArray: ...
    @property
    def policy(self) -> OffsetArray: ...
    @property
    def ranking(self) -> OffsetArray: ...


OnePlayer = Callable[[Kernel, Equations, float, bool, Meter], Bounds]


@dataclass(frozen=True, eq=False)
class Played:
    lower: FloatArray
    upper: FloatArray


def play(
    kernel: Kernel, equations: Equations, precision: float, relative: bool, meter: Meter, one_player: OnePlayer
) -> Played:
    """Bounds of the game's value; within `precision` unless the meter says why not."""
    structure, system = equations.system.structure, equations.system
    fine = precision / 4
    estimate = _estimate(kernel, equations)
    answer = kernel.answer(estimate, system.nature_maximises)
    policy = _best_choices(kernel, equations, estimate)
    lower = np.full(structure.states, system.floor)
    upper = np.full(structure.states, system.ceiling)
    for _ in range(MOST_ROUNDS):
        if equations.agent_owns:
            against = one_player(IntervalKernel.plain(structure, answer), equations, fine, relative, meter)
            owned = one_player(kernel, equations.with_policy(against.policy), fine, relative, meter)
        else:
            against = one_player(kernel, equations.with_policy(policy), fine, relative, meter)
            tilted = _tilted(equations, against, precision)
            reply = kernel.answer(tilted, system.nature_maximises)
            owned = one_player(IntervalKernel.plain(structure, reply), equations, fine, relative, meter)
        if equations.owners_maximise:
            upper, lower = np.minimum(upper, against.upper), np.maximum(lower, owned.lower)
            known = against.upper
        else:
            lower, upper = np.maximum(lower, against.lower), np.minimum(upper, owned.upper)
            known = against.lower
        if width(lower, upper, relative, system.signed).max(initial=0.0) <= precision or meter.exhausted():
            return Played(lower, upper)
        if equations.agent_owns:
            improved = _improved_answer(kernel, equations, answer, known)
            if improved is None:
                break
            answer = improved
        else:
            better = _improved_policy(kernel, equations, policy, known)
            if better is None:
                break
            policy = better
    meter.stopped = meter.stopped or Status.PRECISION_LIMIT
    return Played(lower, upper)


def _estimate(kernel: Kernel, equations: Equations) -> FloatArray:
    """Some sweeps of value iteration: a first idea of the value."""
    states = np.flatnonzero(~equations.fixed).astype(np.int32)
    block = Block.of_states(states)
    rows = Rows.room_for(equations.system.structure, block)
    values = equations.value.copy()
    for _ in range(30):
        kernel.sweep(equations.system, block, values, np.zeros(len(block)), rows)
    return values


def _tilted(equations: Equations, solved: Bounds, precision: float) -> FloatArray:
    """Values tilted by the ranking, a little: an optimal answer to them makes progress where several are as good."""
    values = solved.lower if equations.owners_maximise else solved.upper
    tilt = 1e-2 * precision * solved.ranking / (1.0 + solved.ranking.max(initial=0))
    result: FloatArray = values * (1 - tilt if equations.owners_maximise else 1 + tilt)
    return result


def _best_choices(kernel: Kernel, equations: Equations, values: FloatArray) -> OffsetArray:
    system, structure = equations.system, equations.system.structure
    each = kernel.safe_choices(system, values, not system.agent_maximises)
    return _best_of(equations, each, structure.choice_start)


def _best_of(equations: Equations, each: FloatArray, start: OffsetArray) -> OffsetArray:
    system = equations.system
    nothing = -np.inf if system.agent_maximises else np.inf
    each = np.where(system.enabled, each, nothing)
    best = (np.maximum if system.agent_maximises else np.minimum).reduceat(each, start[:-1])
    state = system.structure.choice_state
    chosen = np.flatnonzero(system.enabled & (each == best[state]))[::-1]
    policy = np.full(system.structure.states, -1, np.int64)
    policy[state[chosen]] = chosen
    return policy


def _improved_answer(
    kernel: Kernel, equations: Equations, answer: FloatArray, values: FloatArray
) -> FloatArray | None:
    """Nature's answer where it is strictly better than the one it gave; None where nothing is."""
    structure, system = equations.system.structure, equations.system
    best = kernel.answer(values, system.nature_maximises)
    gain = _mean(equations, best, values) - _mean(equations, answer, values)
    if not system.nature_maximises:
        gain = -gain
    scale = np.abs(_mean(equations, answer, values))
    better = (gain > 1e-12 * np.where(np.isfinite(scale), scale, 1.0)) & ~np.isnan(gain)
    if not better.any():
        return None
    taken: FloatArray = np.where(np.repeat(better, np.diff(structure.transition_start)), best, answer)
    return taken


def _mean(equations: Equations, probability: FloatArray, values: FloatArray) -> FloatArray:
    structure = equations.system.structure
    terms = np.zeros(structure.transitions)
    np.multiply(probability, values[structure.successor], out=terms, where=probability > 0)
    return np.add.reduceat(terms, structure.transition_start[:-1])


def _improved_policy(
    kernel: Kernel, equations: Equations, policy: OffsetArray, values: FloatArray
) -> OffsetArray | None:
    system, structure = equations.system, equations.system.structure
    each = kernel.safe_choices(system, values, not system.agent_maximises)
    best = _best_of(equations, each, structure.choice_start)
    gain = each[best] - each[policy] if system.agent_maximises else each[policy] - each[best]
    better = (gain > 1e-12 * np.where(np.isfinite(each[policy]), np.abs(each[policy]), 1.0)) & ~np.isnan(gain)
    if not better.any():
        return None
    return np.where(better, best, policy)
