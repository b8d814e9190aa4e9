"""Long-run averages: a policy for one, and what it is worth with confidence 1 − δ.

On the hull of the learned sets averages have certified bounds for every nature (`tightrope.logic.long_run`).
The policy is the one that looks best against nature; its interval is then bounded anew, on the model that it
leaves: nature against it gives one end, nature for it the other. Which transitions are possible matters to
averages: none may vanish, by the sets, by the domain, or by an assumption.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.errors import CannotCertify, InputError
from tightrope.io.results import Interval
from tightrope.learning.answers import OtherQuestions
from tightrope.learning.options import LearnOptions
from tightrope.learning.outcomes import Unobserved
from tightrope.learning.pipeline import Pipeline
from tightrope.learning.products import support_is_open
from tightrope.logic.long_run import average_policy, bound_average, read_average
from tightrope.logic.solving import Directions, under
from tightrope.logic.values import BoundedValue
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve


class LongRunAverages(OtherQuestions):
    """The reduction of long-run averages, `R=? [ S ]` or `S=? [ a ]`: the solve is their own."""

    about = "long-run averages"

    def apply(self, problem: Problem) -> Problem:
        """The problem as it is: the sets are those of any question about the model."""
        find_reward(problem.query)
        return problem

    def refuse(self, chain: Pipeline) -> None:
        """Averages are those of policies that take one choice per state."""
        given = chain.policy
        if chain.evaluation is not None or (
            given is not None and (not given.is_deterministic or given.steps is not None)
        ):
            raise InputError(
                "long-run averages are asked of policies that take one choice per state",
                hint="leave `policy` out",
            )

    def answer(self, chain: Pipeline, hull: IntervalMDP, options: LearnOptions) -> dict[str, Any]:
        """The policy for the average, and its interval over the hull."""
        given, model, precision = chain.policy, chain.model, options.precision
        reward, directions = find_reward(chain.problem.query)
        hull = _supported(hull, model, chain.problem.text)

        def solved(part: MDP | IntervalMDP, objective: Objective) -> Solution:
            seconds, threads = options.seconds, options.threads
            return solve(part, objective, precision=precision / 4, seconds=seconds, threads=threads)

        choice = (
            average_policy(hull, reward, directions, precision, solved) if given is None else given.choice
        )
        steered, earned = under(hull, choice), reward[choice]
        ends = [
            bound_average(steered, earned, (nature, nature), precision, solved)
            for nature in (Direction.MIN, Direction.MAX)
        ]
        agent = directions[0]
        best = bound_average(hull, reward, (agent, agent), precision, solved)
        at, maximises = model.initial, agent is Direction.MAX
        interval = Interval(float(ends[0].bounds.lower[at]), float(ends[1].bounds.upper[at]))
        interval = interval.within(float(reward.min()), float(reward.max()))
        is_close = all(_is_close(one, at, precision, reward) for one in (*ends, best))
        return {
            "interval": interval,
            "guarantee": interval.lower if maximises else interval.upper,
            "optimistic": float((best.bounds.upper if maximises else best.bounds.lower)[at]),
            "policy": given or chain.made(Policy.of_choices(model.structure, choice)),
            "limit": None if is_close else "the averages were not found closely enough",
            "outcomes": chain.observation if isinstance(chain.observation, Unobserved) else None,
        }


def find_reward(query: Query) -> tuple[FloatArray, Directions]:
    """The reward per choice whose average is asked for, and who wants what of it."""
    if query.kind is not QueryKind.LONG_RUN:
        raise query.error("a long-run average is wanted here: R=? [ S ] or S=? [ … ]", query.position)
    position = query.operator.position
    if query.is_threshold:
        raise query.error("learning needs a value to optimise, not a threshold", position)
    reward, directions = read_average(query)
    if isinstance(reward, ParametricReward):
        raise query.error("averages of rewards with parameters are not learned about", position)
    return reward.per_choice(query.structure), directions


def _supported(hull: IntervalMDP, model: ParametricMDP, text: str) -> IntervalMDP:
    """The hull, none of whose transitions may vanish."""
    vanishing = (hull.lower <= 0) & (hull.upper > 0)
    if vanishing.any():
        raise CannotCertify(support_is_open(text, model, int(np.argmax(vanishing))))
    return hull


def _is_close(average: BoundedValue, at: int, precision: float, reward: FloatArray) -> bool:
    size = max(1.0, float(np.abs(reward).max(initial=0.0)))
    width = float(average.bounds.upper[at] - average.bounds.lower[at])
    return average.missed is None and width <= 8 * precision * size
