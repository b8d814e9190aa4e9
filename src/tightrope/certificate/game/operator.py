"""One backup of a vector, on the safe side: Φ_c(x) = r(c) + γ·opt_{p ∈ P(c)} p·x, and the agent's part.

In rationals it is the backup itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.certificate.game.nature import Boxes, Vector, rows_of
from tightrope.certificate.numbers import RATIONAL, Arithmetic, Numbers
from tightrope.certificate.problem import Objective, Problem
from tightrope.numerics.arrays import FloatArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Game:
    """An objective over boxes. The agent mixes his choices by `weight`, or is free and has a `witness`.

    `state`: the numbers of the states whose choices these are; all of them, or some.
    """

    n: Arithmetic
    objective: Objective
    state: OffsetArray
    choice_start: OffsetArray
    boxes: Boxes
    reward: Numbers
    weight: FloatArray | None = None
    witness: OffsetArray | None = None

    @staticmethod
    def of(problem: Problem, boxes: Boxes) -> Game:
        """The game in which the agent is free."""
        n, objective, graph = boxes.n, problem.objective, problem.graph
        reward = n.zeros(graph.choices) if objective.reward is None else n.array(objective.reward)
        return Game(n, objective, np.arange(graph.states), graph.choice_start, boxes, reward)

    def of_policy(self, choice: OffsetArray) -> Game:
        """The game of a policy: its choices are all there are."""
        states = np.arange(len(choice) + 1)
        boxes = self.boxes.only(choice)
        return replace(
            self, choice_start=states, boxes=boxes, reward=self.reward[choice], witness=states[:-1]
        )

    def exactly(self, at: OffsetArray) -> Game:
        """The same at some of these states, in rationals."""
        start, choices = rows_of(self.choice_start, at)
        weight = None if self.weight is None else self.weight[choices]
        witness = None if self.witness is None else (self.witness - self.choice_start[:-1])[at] + start[:-1]
        boxes, reward = self.boxes.exactly(choices), RATIONAL.array(self.reward[choices])
        part = replace(self, n=RATIONAL, state=self.state[at], choice_start=start, boxes=boxes)
        return replace(part, reward=reward, weight=weight, witness=witness)

    @property
    def used(self) -> OffsetArray | slice:
        """The states whose numbers are asked for."""
        return np.union1d(self.state, self.boxes.successor) if self.n.exact else slice(None)

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    def nature_owns(self, owner: str) -> bool:
        """Whether nature, where she has a say at all, is on the owners' side."""
        return self.objective.nature == owner

    def agent_owns(self, owner: str) -> bool:
        """Whether it is the agent's witness that counts."""
        return self.weight is None and self.objective.agent == owner

    def choices(self, values: Vector, upward: bool) -> Vector:
        """Φ_c(values) for every choice: not below it if `upward`, not above it otherwise."""
        maximise = upward if self.objective.nature == "ANY" else self.objective.nature == "MAX"
        found = self.boxes.bound(values, maximise, upward)
        if self.objective.discount is None and not np.any(self.reward != 0):
            return found.within(self.n, upward)
        discount = 1 if self.objective.discount is None else self.n.array([self.objective.discount])[0]
        scaled = discount * found.number
        value = self.reward + scaled
        rounded = (self.reward != 0) | (discount != 1)
        slack = np.where(rounded, self.n.error(4, abs(self.reward) + abs(scaled)), 0)
        return Vector(value + slack if upward else value - slack, found.infinite).within(self.n, upward)

    def owners_choice(self, per_choice: Vector, owner: str, upward: bool) -> Vector:
        """What states come to where `owner` wants the bound: the agent's witness alone where he is one."""
        if self.agent_owns(owner):
            assert self.witness is not None
            return per_choice.take(self.witness)
        return self.best(per_choice, upward)

    def best(self, per_choice: Vector, upward: bool) -> Vector:
        """What states come to: the agent's optimum, or his mixture."""
        if self.weight is not None:
            return self.mix(per_choice, upward)
        starts = self.choice_start[:-1]
        if len(starts) == len(per_choice.number):
            return per_choice
        number, infinite, most = per_choice.number, per_choice.infinite, self.objective.agent == "MAX"
        hidden = number.min() if most else np.where(infinite, number.min(), number).max()
        optimum, reached = (np.maximum, np.logical_or) if most else (np.minimum, np.logical_and)
        best = optimum.reduceat(np.where(infinite, hidden, number), starts)
        return Vector(best, reached.reduceat(infinite, starts))

    def mix(self, per_choice: Vector, upward: bool) -> Vector:
        """Σ weight·value / Σ weight over the choices of positive weight; exact where there is only one."""
        assert self.weight is not None
        n, starts = self.n, self.choice_start[:-1]
        used, weight = self.weight > 0, n.array(self.weight)
        value = np.where(used & ~per_choice.infinite, per_choice.number, 0)
        count = np.add.reduceat(used.astype(np.int64), starts)
        total = np.add.reduceat(weight, starts)
        mean = np.add.reduceat(weight * value, starts) / total
        size = np.add.reduceat(weight * abs(value), starts) / total
        slack = n.error(2 * np.diff(self.choice_start) + 8, size + abs(mean))
        mean = mean + slack if upward else mean - slack
        mean = np.where(count == 1, np.add.reduceat(value, starts), mean)
        if upward:  # it is within its range
            mean = np.minimum(mean, np.maximum.reduceat(np.where(used, value, value.min()), starts))
        else:
            mean = np.maximum(mean, np.minimum.reduceat(np.where(used, value, value.max()), starts))
        return Vector(mean, np.logical_or.reduceat(used & per_choice.infinite, starts)).within(n, upward)
