"""Policies that change with the step: what fits, and the game of such a policy at every step.

A row (step, state, choice) of a claim's `earlier` says: up to that step, and including it, the state takes
this choice, unless a later row of the state says so of an even earlier step; after all of them it takes its
`choice`. Steps fall from row to row, and strictly for every state: going backwards is reading on.

The value of a bounded number of steps is a backup for each, of the choice that is taken there; where only a
lower bound on the steps is given, `choice` is the policy from then on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tightrope.certificate.game.operator import Game
from tightrope.certificate.problem import Problem
from tightrope.numerics.arrays import OffsetArray


def misfit_of_steps(problem: Problem, earlier: OffsetArray) -> str | None:
    """Why the choices of earlier steps do not fit the problem."""
    step, state, choice = earlier.T
    steps = problem.objective.steps or problem.objective.lower_steps
    start = problem.graph.choice_start
    if np.any(step >= steps) or np.any(state >= problem.graph.states):
        return "the policy changes at a step or in a state that is not there"
    if np.any(choice < start[state]) or np.any(choice >= start[state + 1]):
        return "the policy picks a choice that its state does not have"
    order = np.lexsort((-step, state))
    same = np.diff(state[order]) == 0
    if np.any(np.diff(step) > 0) or np.any(same & (np.diff(step[order]) >= 0)):
        return "the policy's steps do not fall"
    return None


def games_by_step(game: Game, choice: OffsetArray, earlier: OffsetArray) -> Callable[[int], Game]:
    """The game of the policy at a step, to be asked for from the last step to the first."""
    current, falling, place, fixed = choice.copy(), -earlier[:, 0], 0, game.of_policy(choice)

    def at(step: int) -> Game:
        nonlocal place, fixed
        end = int(np.searchsorted(falling, -step, side="right"))
        if end > place:
            current[earlier[place:end, 1]] = earlier[place:end, 2]
            place, fixed = end, game.of_policy(current)
        return fixed

    return at
