"""Games whose idle end components depend on nature's cuts: strategy iteration by one-player solves.

A strategy of the owners of progress that makes progress against every opposition leaves a one-player problem
without idle components, whose value is a bound on the owners' side; strict improvement keeps that property.
The opponent's best answer to that value, fixed, leaves a one-player problem whose value is the other bound.
Every step yields valid bounds; the tightest are returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tightrope.model.graph.qualitative import almost_sure, positive
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import Backups
from tightrope.solver.equations.system import Equations, Meaning, best_choices
from tightrope.solver.iteration.backend import Backend
from tightrope.solver.solution import Fixpoint, Progress, SolveOptions, Status, widest

MOST_ROUNDS = 200

SLACK = 2.0**-43
"""Relative room left at every backup for the rounding of the final check."""


OnePlayer = Callable[[Backend, Equations, SolveOptions, Progress], Fixpoint]


def play(
    backend: Backend, equations: Equations, goal: SolveOptions, progress: Progress, one_player: OnePlayer
) -> tuple[FloatArray, FloatArray, Status | None]:
    """Bounds of the game's value, and why they are wider than `goal` asks for, where limits are not why."""
    structure, system, kernel = equations.system.structure, equations.system, backend.backups
    equations = replace(equations, system=replace(system, slack=SLACK))
    fine, half = goal.within(goal.precision * 1e-3), goal.within(goal.precision / 2)
    policy, answer = _first_strategies(kernel, equations)
    lower = np.full(structure.states, system.floor)
    upper = np.full(structure.states, system.ceiling)
    for _ in range(MOST_ROUNDS):
        if equations.agent_owns:
            owned = one_player(backend, equations.with_policy(policy), fine, progress)
            values = owned.lower if equations.owners_maximise else owned.upper
            reply = kernel.answer(values, system.nature_maximises)
            against = one_player(_fix_nature(backend, reply), equations, half, progress)
        else:
            owned = one_player(_fix_nature(backend, answer), equations, fine, progress)
            values = owned.lower if equations.owners_maximise else owned.upper
            _, choices = best_choices(system, kernel.safe_choices(system, values, equations.owners_maximise))
            against = one_player(backend, equations.with_policy(choices), half, progress)
        if equations.owners_maximise:
            lower, upper = np.maximum(lower, owned.lower), np.minimum(upper, against.upper)
        else:
            lower, upper = np.maximum(lower, against.lower), np.minimum(upper, owned.upper)
        gap = widest(lower, upper, goal.relative, system.unit)
        if gap <= goal.precision or progress.is_exhausted:
            return lower, upper, None
        if equations.agent_owns:
            better = _improve_policy(kernel, equations, policy, values, 10 * fine.precision)
            if better is None:
                break
            policy = better
        else:
            improved = _improve_answer(kernel, equations, answer, values, 10 * fine.precision)
            if improved is None:
                break
            answer = improved
    return lower, upper, Status.PRECISION_LIMIT


def _fix_nature(backend: Backend, answer: FloatArray) -> Backend:
    """The model with nature's answer fixed, in the same place."""
    return backend.beside(IntervalOperator.plain(backend.kernel.structure, answer))


def _first_strategies(kernel: Backups, equations: Equations) -> tuple[OffsetArray, FloatArray]:
    """A policy and an answer of nature; the owners' one makes progress wherever that can be had."""
    system, structure = equations.system, equations.system.structure
    support = Support(structure, kernel.lower, kernel.upper)
    reaches = (equations.agent_owns, equations.nature_owns)
    within = ~equations.fixed
    if equations.meaning is Meaning.REWARD:
        drawn = almost_sure(support, equations.fixed, reaches, within=within, choices=system.enabled)
    else:
        target = equations.fixed & (equations.value > 0)
        if equations.meaning is Meaning.TOTAL:
            earns = system.enabled & (system.reward > 0)
            target = np.logical_or.reduceat(earns, structure.choice_start[:-1])
        drawn = positive(support, target, reaches, within=within, choices=system.enabled)
    _, policy = best_choices(system, system.reward if len(system.reward) else np.zeros(structure.choices))
    policy = np.where(drawn.witness >= 0, drawn.witness, policy)
    distance = np.where(drawn.states, drawn.rank, np.iinfo(np.int32).max).astype(np.float64)
    return policy, kernel.answer(distance, False)


def _improve_answer(
    kernel: Backups, equations: Equations, answer: FloatArray, values: FloatArray, tolerance: float
) -> FloatArray | None:
    """Nature's answer where it is strictly better than the one it gave; None where nothing is."""
    structure, system = equations.system.structure, equations.system
    best = kernel.answer(values, system.nature_maximises)
    old = _mean(equations, answer, values)
    better = _exceeds(_mean(equations, best, values), old, system.nature_maximises, tolerance)
    if not better.any():
        return None
    return np.where(np.repeat(better, np.diff(structure.transition_start)), best, answer)


def _improve_policy(
    kernel: Backups, equations: Equations, policy: OffsetArray, values: FloatArray, tolerance: float
) -> OffsetArray | None:
    """The agent's choice where it is strictly better than the one it made; None where nothing is."""
    each = kernel.safe_choices(equations.system, values, not equations.system.agent_maximises)
    _, best = best_choices(equations.system, each)
    better = _exceeds(each[best], each[policy], equations.system.agent_maximises, tolerance)
    if not better.any():
        return None
    return np.where(better, best, policy)


def _exceeds(new: FloatArray, old: FloatArray, maximise: bool, tolerance: float) -> BoolArray:
    """Where `new` is better than `old` by more than `tolerance`, relatively."""
    ahead, behind = (new, old) if maximise else (old, new)
    margin = tolerance * np.where(np.isfinite(old), np.abs(old), 0.0)
    result: BoolArray = (ahead != behind) & (ahead > behind + margin)
    return result


def _mean(equations: Equations, probability: FloatArray, values: FloatArray) -> FloatArray:
    structure = equations.system.structure
    terms = np.zeros(structure.transitions)
    np.multiply(probability, values[structure.successor], out=terms, where=probability > 0)
    return np.add.reduceat(terms, structure.transition_start[:-1])
