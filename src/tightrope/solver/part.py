"""Bounds on the value of a model from an explored part of it, for the initial states.

Until the first visit of the unexplored states W a play of the part is one of the model, so for all policies
and natures P(target before W) ≤ P(allowed U target) ≤ P(target or an allowed state of W). Without negative
rewards, the reward until a target is at least that until the target or W, and at most that of the part in
which W never leads to the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.prism.explore.search import ModelPart
from tightrope.problem import Problem
from tightrope.solver.solution import OPEN, Solution, SolveOptions, Status, widest
from tightrope.solver.solve import SolverWords, Workspace, limits_of, solve, truth_of

PART_ITERATIONS = 2000
"""Most iterations that are spent on a part: the whole model may be needed all the same."""


@dataclass(eq=False)
class PartSolver:
    """Says of parts of a model whether they are enough, and keeps the solution of the one that was."""

    ask: Callable[[ParametricMDP], Problem | None]
    """The question about a part; None where it is about a whole domain."""
    options: SolveOptions
    workspace: Workspace
    solution: Solution | None = None

    def __call__(self, part: ModelPart) -> bool:
        problem = self.ask(part.model)
        if problem is None or not problem.query.is_plain or not is_enclosed(problem.objective, part):
            return False
        objective = problem.objective
        below, above = enclosing(objective, part.waiting)
        low = self._solve(problem, below)
        enclosed = None
        if objective.kind is ObjectiveKind.UNTIL:  # no probability exceeds 1
            enclosed = self._between(
                problem, low, np.full(part.model.states, float(not objective.complement))
            )
        if enclosed is None or not self._is_enough(problem, enclosed):
            high = self._solve(problem, above)
            enclosed = self._between(problem, low, high.lower if objective.complement else high.upper)
        if self._is_enough(problem, enclosed):
            self.solution = enclosed
        return self.solution is not None

    def _solve(self, problem: Problem, objective: Objective) -> Solution:
        assert isinstance(problem.model, MDP)
        limits: SolverWords = {**limits_of(self.options), "iterations": PART_ITERATIONS}
        return solve(problem.model, objective, workspace=self.workspace, **limits)

    def _between(self, problem: Problem, solution: Solution, other: FloatArray) -> Solution:
        """The solution with the other end of the bounds, and what that says of the threshold."""
        lower, upper = solution.lower, solution.upper
        if problem.objective.complement:
            lower = np.minimum(lower, other)
        else:
            upper = np.maximum(upper, other)
        gap = widest(lower, upper, solution.relative, solution.unit)
        status = Status.CERTIFIED if gap <= solution.precision else Status.ITERATION_LIMIT
        enclosed = replace(solution, lower=lower, upper=upper, gap=gap, status=status)
        truth = truth_of(problem.query, enclosed) if problem.query.is_threshold else None
        return replace(enclosed, truth=truth)

    def _is_enough(self, problem: Problem, solution: Solution) -> bool:
        if problem.query.is_threshold:
            return solution.truth != OPEN
        return solution.is_initial_certified


def is_enclosed(objective: Objective, part: ModelPart) -> bool:
    """Whether the part says something about the whole."""
    if objective.lower_steps > 0:
        return False
    if objective.kind is ObjectiveKind.REACH_REWARD:
        return objective.terminal is None and part.earns_nothing_negative
    return objective.kind is ObjectiveKind.UNTIL


def enclosing(objective: Objective, waiting: BoolArray) -> tuple[Objective, Objective]:
    """The questions below and above: waiting states end with the least value, or with the largest."""
    assert objective.target is not None
    if objective.kind is ObjectiveKind.REACH_REWARD:
        return replace(objective, target=objective.target | waiting), objective
    allowed = np.ones(len(waiting), np.bool_) if objective.allowed is None else objective.allowed
    return (
        replace(objective, allowed=allowed & ~waiting),
        replace(objective, target=objective.target | (waiting & allowed)),
    )
