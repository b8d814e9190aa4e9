"""The design of the next stage of exploration, from all that was seen so far.

A stage is planned for as many episodes as there are already: the data double, then comes the next design.
What is minimised is the width of what matters, to first order at the smoothed estimate θ̂:

* the robust policy's directions, weight 1: the gap itself;
* the optimistic policy's, ½: without it the distance between guarantee and optimum stops falling;
* those of the policies that are best at θ̂ ± √K·I⁻¹c/‖c‖_{I⁻¹}, ¼ each, c the gradient of the robust policy's
  value: the robust policy of tomorrow may be one of them.

Where no policy's value has a gradient (an infinite guarantee so far) all directions count alike. Between
equal policies the one is taken that is least likely to end an episode badly: it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.design.design import Design, design
from tightrope.design.directions import Criterion, Directions, EveryDirection, find_directions
from tightrope.design.episodes import Episodes
from tightrope.design.information import Information
from tightrope.design.oracle import Oracle, best_episodes
from tightrope.io.policy import Policy
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.solver.solve import solve
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser

OPTIMISTIC_WEIGHT = 0.5
NEARBY_WEIGHT = 0.25
FEWEST = 16
"""Episodes that a stage is planned for at least."""


@dataclass(frozen=True, eq=False)
class Question:
    """What exploration is for, and what an episode is: where it ends, after how many steps at the latest.

    `coupled` says that nature picks once for a whole run; `radius` is √K of the region, roughly.
    """

    model: ParametricMDP
    objective: Objective
    stop: BoolArray
    cap: int | None
    coupled: bool
    radius: float


@dataclass(frozen=True, eq=False)
class Stage:
    """What is known when a stage is designed."""

    question: Question
    information: Information
    episodes: Episodes
    past: FloatArray

    @staticmethod
    def after(question: Question, seen: FloatArray) -> Stage:
        """After outcomes counted by expression."""
        model = question.model
        coordinates = Coordinates.of(model.expressions, model.parameters)
        maximiser = LikelihoodMaximiser.of(coordinates, coordinates.functions(model.expressions))
        weight = seen * ~model.expressions.is_constant
        information = Information.at(model, maximiser.estimate(weight))
        past = information.of_counts(weight) + information.smoothing
        episodes = Episodes.of(information, question.stop, question.cap)
        return Stage(question, information, episodes, past)

    def criterion(self, robust: Policy, optimistic: Policy) -> Criterion:
        """What the stage is to make small."""
        parts = [(1.0, self._directions(robust)), (OPTIMISTIC_WEIGHT, self._directions(optimistic))]
        parts += [(NEARBY_WEIGHT, self._directions(policy)) for policy in self._nearby(robust)]
        known = [(weight, part) for weight, part in parts if part is not None and len(part)]
        return Directions.together(*known) if known else EveryDirection(self.information.size)

    def design(self, criterion: Criterion, amount: float, oracle: Oracle | None = None) -> Design:
        """The exploration that makes the criterion smallest after `amount` more episodes (or money)."""
        ask = oracle or best_episodes(self.episodes)
        return design(self.information, criterion, self.past, amount, ask)

    def _directions(self, policy: Policy) -> Directions | None:
        question = self.question
        return find_directions(self.information, question.objective, policy, coupled=question.coupled)

    def _nearby(self, robust: Policy) -> Sequence[Policy]:
        """The best policies at two points of the region, far apart in what the robust policy depends on."""
        question, information = self.question, self.information
        found = find_directions(information, question.objective, robust, coupled=True)
        if found is None or not len(found):
            return ()
        along = np.linalg.solve(self.past, found.vector[0])
        length = float(np.sqrt(max(found.vector[0] @ along, 0.0)))
        if not length > 0.0:
            return ()
        policies = []
        for sign in (1.0, -1.0):
            step = sign * question.radius / length * along
            point = information.point + 0.999 * information.room(step) * step
            policies.append(_best_at(question, Information.at(question.model, point)))
        return policies


def _best_at(question: Question, information: Information) -> Policy:
    plain = MDP(question.model.structure, information.probability[question.model.expression])
    return solve(plain, question.objective, precision=1e-4).policy.at(0)
