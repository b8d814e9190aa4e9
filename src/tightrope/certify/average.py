"""The certificate of a long-run average: a gain and a bias for every state, on each side.

For a maximiser (a minimiser is one of the negated reward). From above: the gain is what the quotient's upper
bound says, constant on end components; the bias is that of the components. Choices that leave a component,
or belong to none, satisfy the second inequality once C·w is added to the bias, w(s) ≥ 1 + p·w being the
largest number of such choices on average, and C large enough. From below likewise, for one policy: it walks
to a component in which it stops, and there takes the choices that are best for the bias; w counts its steps.
Where rounding leaves an inequality open, ε·(1 + w) is added to the gain (taken from it, below) until the
checker's own backups confirm it: a certificate never claims more than it proves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.certificate.laws import boxes_of
from tightrope.certificate.numbers import FLOAT64
from tightrope.certificate.problem import Certificate, Claim, ValueHints
from tightrope.certificate.problem import Problem as Certified
from tightrope.certificate.theorem import prove
from tightrope.certify.solved import to_claim, to_words
from tightrope.errors import CannotCertify
from tightrope.logic.accepting import towards
from tightrope.logic.long_run import Gains, Quotient, Reached, expectation, gains_of, reached_averages
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy, policy_of
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.solution import Solution

LARGEST_SLACK = 1e-6
Solve = Callable[[MDP | IntervalMDP, Objective, Policy | None], Solution]


def average_certificate(
    problem: Certified,
    model: MDP | IntervalMDP,
    precision: float,
    solve: Solve,
    about: Mapping[str, Any] | None = None,
) -> Certificate:
    """The certificate of an average; `model` is what is solved, over the states of the problem."""
    asked = problem.objective
    assert asked.reward is not None
    flipped = asked.agent == "MIN"
    nature = Direction["MAX" if asked.nature == "ANY" else asked.nature]
    reward = -asked.reward if flipped else asked.reward
    found = _Search(model, reward, nature.opposite if flipped else nature, precision, solve)
    choice = found.policy()
    sides = (found.from_below(choice), found.from_above())
    if flipped:
        sides = (sides[1].negated(), sides[0].negated())
    boxes, _ = boxes_of(problem, FLOAT64)
    scale = max(1.0, float(np.abs(reward).max(initial=0.0)))
    hints = ValueHints(witness=choice)
    free = Claim("value", "free", 0.0, 0.0)
    for side, upward in zip(sides, (False, True), strict=True):
        for slack in (0.0, *(scale * 10.0**power for power in range(-16, 0))):
            hints = side.hints(hints, slack, upward)
            checks, _ = prove(problem, boxes, free, hints, upward)
            if all(check.passed for check in checks):
                break
            if slack > LARGEST_SLACK * scale:
                raise CannotCertify(
                    "no certificate is written: the bounds of the average are too uneven to be proved as "
                    "vectors"
                )
    assert hints.lower is not None and hints.upper is not None
    initial = problem.graph.initial
    claim = to_claim("value", (float(hints.lower[initial]), float(hints.upper[initial])), None, asked)
    return Certificate(problem, (claim,), (hints,), about=to_words(about or {}))


@dataclass(frozen=True, eq=False)
class _Side:
    """A gain and a bias, and what is added to the gain for every unit of slack."""

    gain: FloatArray
    bias: FloatArray
    room: FloatArray

    def negated(self) -> _Side:
        return _Side(-self.gain, -self.bias, -self.room)

    def hints(self, hints: ValueHints, slack: float, upward: bool) -> ValueHints:
        gain = self.gain + slack * self.room
        if upward:
            return replace(hints, upper=gain, upper_bias=self.bias)
        return replace(hints, lower=gain, lower_bias=self.bias)


class _Search:
    """Averages of a maximiser: components, what they are worth, what it is worth to reach them."""

    def __init__(
        self,
        model: MDP | IntervalMDP,
        reward: FloatArray,
        nature: Direction,
        precision: float,
        solve: Solve,
    ):
        self.model, self.reward, self.nature, self.solve = model, reward, nature, solve

        def plainly(one: MDP | IntervalMDP, objective: Objective) -> Solution:
            return solve(one, objective, None)

        self.gains: Gains = gains_of(model, reward, nature, precision, plainly)
        self.quotient = Quotient.of(model, self.gains.components)
        self.reached: Reached = reached_averages(self.quotient, self.gains, nature, plainly)

    def _gain(self, share: FloatArray | None) -> FloatArray:
        """On the states of the model, from probabilities of winning on the quotient."""
        reached, node = self.reached, self.quotient.node
        if share is None:
            return np.full(self.model.states, reached.floor)
        return (reached.floor + (reached.largest - reached.floor) * share)[node]

    def from_above(self) -> _Side:
        above = self.reached.above
        stopping = self.quotient.stopping(np.ones(self.quotient.components))
        steps = self.solve(stopping, self.quotient.walking(), None).upper[self.quotient.node]
        if not np.isfinite(steps).all():
            raise CannotCertify("no certificate is written: plays take too long to come to rest")
        gain = self._gain(None if above is None else above.fixpoint_upper)
        return _Side(gain, self.gains.bias + self._margin(gain, 1) * steps, 1 + steps)

    def from_below(self, choice: OffsetArray) -> _Side:
        below, structure = self.reached.below, self.model.structure
        stopped = self._stops()
        ones = RewardStructure(choice=np.ones(structure.choices))
        walking = Objective(
            ObjectiveKind.REACH_REWARD, Direction.MAX, Direction.MAX, target=stopped, reward=ones
        )
        steps = self.solve(self.model, walking, policy_of(structure, choice, None)).upper
        if not np.isfinite(steps).all():
            raise CannotCertify("no certificate is written: plays take too long to come to rest")
        gain = self._gain(None if below is None else below.fixpoint_lower)
        return _Side(gain, self.gains.bias - self._margin(gain, -1) * steps, -1 - steps)

    def _margin(self, gain: FloatArray, sign: int) -> float:
        """By how much one step can miss the second inequality, whatever it leads to; a little more."""
        spread = float(np.ptp(self.gains.bias))
        owner = self.model.structure.choice_state
        missed = float((sign * (self.reward - gain[owner])).max()) + spread
        return max(0.0, missed) * 1.01 + 2.0**-20

    def _stops(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """States of components in which the policy of the lower bound stays."""
        inside = self.gains.components.component >= 0
        below = self.reached.below
        if below is None:
            return inside
        stops: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.quotient.choice[below.choice] < 0
        return inside & stops[self.quotient.node]

    def policy(self) -> OffsetArray:
        """The policy of the lower bound: walk, stop, and then what is best for the bias."""
        structure, components = self.model.structure, self.gains.components
        stopped, internal = self._stops(), components.internal
        worth = self.reward + expectation(self.model, self.nature)(self.gains.bias)
        worth = np.where(internal, worth, -np.inf)
        best = np.lexsort((-worth, structure.choice_state))
        choice = best[structure.choice_start[:-1]].astype(np.int64)
        below = self.reached.below
        if below is None:
            return choice
        taken = self.quotient.choice[below.choice]
        leaving = taken[taken >= 0]
        door = structure.choice_state[leaving]
        is_door = np.zeros(structure.states, np.bool_)
        is_door[door] = True
        walk, _ = towards(structure, is_door & (components.component >= 0), internal)
        inside = (components.component >= 0) & ~stopped
        choice[inside] = walk[inside]
        choice[door] = leaving
        return choice
