"""What a certificate of values may claim about a small problem: its value in exact rationals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from adversary.archive import Forgery
from exact_reference import INFINITE, TinyModel, brute_force, vertices
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure


@dataclass(frozen=True, eq=False)
class Question:
    """A small game with its objective, read in exact numbers."""

    model: TinyModel
    objective: Objective
    initial: int

    def value(self, weights: list[list[Fraction]] | None = None) -> Fraction:
        """At the initial state, as the question asks for it; `weights` fixes a policy."""
        found = self.values(weights)[self.initial]
        return 1 - found if self.objective.complement else found

    def values(self, weights: list[list[Fraction]] | None = None) -> list[Fraction]:
        objective, states = self.objective, self.model.states
        goal = [Fraction(0)] * states
        if objective.target is not None:
            goal = [Fraction(int(inside)) for inside in objective.target]
        if objective.kind is ObjectiveKind.NEXT:
            return self._step(goal, weights)
        if objective.kind is ObjectiveKind.CUMULATIVE:
            earned = [Fraction(0)] * states
            for _ in range(objective.upper_steps or 0):
                earned = self._step(earned, weights)
            return earned
        if objective.upper_steps is None:
            found = brute_force(self.model, replace(objective, lower_steps=0), weights=weights)
        else:
            found = goal
            for _ in range(objective.upper_steps - objective.lower_steps):
                found = [
                    Fraction(1) if goal[s] else x if self._open(s) else Fraction(0)
                    for s, x in enumerate(self._step(found, weights))
                ]
        for _ in range(objective.lower_steps):
            stepped = self._step(found, weights)
            found = [x if self._open(s) else Fraction(0) for s, x in enumerate(stepped)]
        return found

    def _open(self, state: int) -> bool:
        return self.objective.allowed is None or bool(self.objective.allowed[state])

    def _step(self, values: list[Fraction], weights: list[list[Fraction]] | None) -> list[Fraction]:
        """One backup: nature's optimum at every choice, then the agent's or the policy's mean."""
        objective = self.objective
        agent = max if objective.agent is Direction.MAX else min
        nature = max if objective.nature is Direction.MAX else min
        reward = (
            np.zeros(len(self.model.structure.transition_start) - 1)
            if objective.reward is None
            else objective.reward.per_choice(self.model.structure)
        )
        result, number = [], 0
        for s, choices in enumerate(self.model.choices):
            backed = []
            for choice in choices:
                best = nature(sum((p * values[t] for t, p in row), Fraction(0)) for row in vertices(choice))
                backed.append(Fraction(float(reward[number])) + best)
                number += 1
            if weights is None:
                result.append(agent(backed))
            else:
                result.append(sum((w * x for w, x in zip(weights[s], backed, strict=True)), Fraction(0)))
        return result


def objective_of(forgery: Forgery) -> Objective:
    """What a file asks."""
    node = forgery["problem.objective"]
    held = {
        name: forgery.arrays.get(f"problem.objective.{name}")
        for name in ("reward", "target", "allowed", "terminal")
    }
    reward = held.pop("reward")
    return Objective(
        ObjectiveKind[node["kind"]],
        Direction[node["agent"]],
        Direction[node["nature"] if node["nature"] in ("MAX", "MIN") else "MAX"],
        reward=None if reward is None else RewardStructure(choice=reward),
        lower_steps=node["lower_steps"],
        upper_steps=node["upper_steps"],
        discount=node["discount"],
        complement=node["complement"],
        **held,
    )


def is_allowed(lower: float, upper: float, truth: Fraction) -> bool:
    """Whether an interval contains the truth, ∞ included; nothing is rounded."""
    if truth >= INFINITE:
        return bool(np.isinf(upper)) and upper > 0
    below = lower != np.inf and (lower == -np.inf or Fraction(lower) <= truth)
    return below and (upper == np.inf or Fraction(upper) >= truth)
