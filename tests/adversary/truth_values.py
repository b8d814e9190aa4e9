"""What a certificate of values may claim about a small problem: its value in exact rationals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from adversary.archive import Forgery
from exact_reference import INFINITE, TinyModel, brute_force, vertices
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure

Weights = Sequence[Sequence[Fraction]]


class BySteps(tuple[Any, ...]):
    """The weights of a policy at every step; the last ones are those of all later steps."""

    def at(self, step: int) -> Weights:
        weights: Weights = self[min(step, len(self) - 1)]
        return weights


@dataclass(frozen=True, eq=False)
class Question:
    """A small game with its objective, read in exact numbers."""

    model: TinyModel
    objective: Objective
    initial: int
    passing: tuple[int, ...] = ()
    """States in the middle of a step."""

    def value(self, weights: Weights | BySteps | None = None) -> Fraction:
        """At the initial state, as the question asks for it; `weights` fixes a policy."""
        found = self.values(weights)[self.initial]
        return 1 - found if self.objective.complement else found

    def values(self, weights: Weights | BySteps | None = None) -> list[Fraction]:
        objective, states = self.objective, self.model.states

        def at(step: int) -> Weights | None:
            return weights.at(step) if isinstance(weights, BySteps) else weights

        goal = [Fraction(0)] * states
        if objective.target is not None:
            goal = [Fraction(int(inside)) for inside in objective.target]
        if objective.kind is ObjectiveKind.NEXT:
            return self._step(goal, at(0))
        if objective.kind is ObjectiveKind.CUMULATIVE:
            earned = [Fraction(0)] * states
            for step in reversed(range(objective.upper_steps or 0)):
                earned = self._step(earned, at(step))
            return earned
        if objective.upper_steps is None:
            tail, rest = replace(objective, lower_steps=0), at(objective.lower_steps)
            found = brute_force(self.model, tail, weights=None if rest is None else [list(r) for r in rest])
        else:
            found = goal
            for step in reversed(range(objective.lower_steps, objective.upper_steps)):
                found = [
                    Fraction(1) if goal[s] else x if self._open(s) else Fraction(0)
                    for s, x in enumerate(self._step(found, at(step)))
                ]
        for step in reversed(range(objective.lower_steps)):
            stepped = self._step(found, at(step))
            found = [x if self._open(s) else Fraction(0) for s, x in enumerate(stepped)]
        return found

    def _open(self, state: int) -> bool:
        return self.objective.allowed is None or bool(self.objective.allowed[state])

    def _step(self, values: list[Fraction], weights: Weights | None) -> list[Fraction]:
        """One backup: nature's optimum at every choice, then the agent's or the policy's mean. In the middle
        of a step she comes to an optimum first, at the only choice there is."""
        objective, values = self.objective, list(values)
        agent = max if objective.agent is Direction.MAX else min
        nature = max if objective.nature is Direction.MAX else min
        for s in self.passing:
            drawn = vertices(self.model.choices[s][0])
            values[s] = nature(sum((p * values[t] for t, p in row), Fraction(0)) for row in drawn)
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
