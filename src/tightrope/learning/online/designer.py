"""Designed exploration of an online run: re-designed whenever the episodes have grown by half.

Everything that a design depends on is in the data and the last update's policies, so a run that goes on
after an interruption designs what it would have designed. Between two designs the policy stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.ambiguity.sets import Sets
from tightrope.data.counts import Counts
from tightrope.data.stopping import find_decided_states
from tightrope.design.design import Design
from tightrope.design.directions import Directions
from tightrope.design.oracle import Oracle, best_episodes
from tightrope.design.priced import Cost, price_oracle
from tightrope.design.safe import Bounded, careful, entering
from tightrope.design.stage import FEWEST, Question, Stage
from tightrope.io.policy import Policy
from tightrope.learning.online.exploration import Explore
from tightrope.learning.online.safety import Explored, Safety, bad_states
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.problem import Problem
from tightrope.statistics.outcomes import Outcomes

REDESIGN = 1.5
"""Times as many episodes call for a new design. Doubling needs a tenth more of them, each look a third more
time, measured on rover(10,10)."""


@dataclass(frozen=True, eq=False)
class Designer:
    """Designs stages for a learner: what exploration is for, what data cost, what is to be avoided."""

    question: Question
    cost: Cost
    lost: BoolArray
    safety: Safety | None

    @staticmethod
    def of(problem: Problem, delta: float, coupled: bool, asked: Explore) -> Designer:
        """For a learner's question; an episode ends where the objective is decided, or at the cap."""
        model, objective = problem.model, problem.objective
        assert isinstance(model, ParametricMDP)
        stop = find_decided_states(objective, model.states)
        safety = None
        if asked.avoid is not None and asked.at_most is not None:
            safety = Safety.of(model, asked.avoid, asked.at_most, stop)
            stop = stop | safety.bad
        asked.price.per_choice(model.structure)
        radius = math.sqrt(2.0 * (math.log(1.0 / delta) + 3.0 + len(model.parameters.names)))
        question = Question(model, objective, stop, asked.cap, coupled, radius)
        lost = safety.bad if safety is not None else bad_states(objective, model.states)
        return Designer(question, asked.price, lost, safety)

    def design(
        self, counts: Counts, robust: Policy, optimistic: Policy, sets: Callable[[], Sets]
    ) -> Explored:
        """The next stage: as many episodes as there are. `sets` are those of the present region."""
        stage = Stage.after(self.question, by_expression(self.question.model, counts))
        criterion = stage.criterion(robust, optimistic)
        followed = stage.episodes.occupancy(robust)
        per_episode = self.cost_of(followed)
        amount = max(counts.design.episodes or 0, FEWEST) * per_episode
        if self.safety is None:
            found = stage.design(criterion, amount, self.oracle(stage))
            explored = Explored(found, found.policy)
        else:
            explored = self.keep_safe(sets(), stage, lambda ask: stage.design(criterion, amount, ask))
        if explored.design is None or not isinstance(criterion, Directions):
            return explored
        matrix = stage.past + amount / per_episode * stage.information.of_visits(followed)
        return replace(explored, greedy=criterion.value(matrix) / max(explored.design.value, 1e-300))

    def oracle(self, stage: Stage, bound: float | None = None) -> Oracle:
        """Who collects most per cost at the estimate, careful where that is free; where something is to be
        avoided, with at most the given probability of it (the one that was asked for by default)."""
        structure = self.question.model.structure
        probability = stage.information.probability[self.question.model.expression]
        bad = entering(structure, probability, self.lost)
        ask: Oracle = careful(best_episodes(stage.episodes), bad)
        if self.safety is not None:
            ask = Bounded(ask, bad, self.safety.most if bound is None else bound)
        return price_oracle(ask, self.cost, structure)

    def keep_safe(self, sets: Sets, stage: Stage, designed: Callable[[Oracle], Design]) -> Explored:
        """The best exploration that is certified over the sets; `CannotCertify` where there is none."""
        assert self.safety is not None
        return self.safety.explore(
            sets, lambda bound: designed(self.oracle(stage, bound)), stage.episodes.occupancy
        )

    def cost_of(self, occupancy: FloatArray) -> float:
        """What an episode costs."""
        price = self.cost.per_choice(self.question.model.structure)
        return self.cost.episode + float(occupancy @ price)


def by_expression(model: ParametricMDP, counts: Counts) -> FloatArray:
    """How often outcomes of each expression were seen."""
    outcomes = Outcomes.of(model)
    size = len(model.expressions)
    seen = np.bincount(outcomes.expression, weights=outcomes.pooled(counts), minlength=size)
    return seen.astype(np.float64)
