"""What is asked of a model: a path event's probability or an accumulated reward, and who decides.

The agent picks choices, nature picks probabilities within the sets; each maximises or minimises.
An objective speaks of states by bitmaps, so it belongs to one structure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from tightrope.errors import InputError, check_type
from tightrope.model.structure import END, ParametricReward, RewardStructure, Structure, frozen_array
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray
from tightrope.numerics.record import Facts, Record


class Direction(Enum):
    """Whether a player maximises or minimises.

    >>> Direction.MAX.opposite.value
    'min'
    """

    MAX = "max"
    MIN = "min"

    @property
    def opposite(self) -> Direction:
        return Direction.MIN if self is Direction.MAX else Direction.MAX


class ObjectiveKind(Enum):
    """What is computed.

    >>> ObjectiveKind.CUMULATIVE.value
    'expected reward of the first steps'
    """

    UNTIL = "probability of allowed U target"
    NEXT = "probability of target at the next step"
    REACH_REWARD = "expected reward until target"
    CUMULATIVE = "expected reward of the first steps"
    TOTAL = "expected total reward"
    DISCOUNTED = "expected discounted reward"


_NEEDS_TARGET = {ObjectiveKind.UNTIL, ObjectiveKind.NEXT, ObjectiveKind.REACH_REWARD}
_NEEDS_REWARD = {
    ObjectiveKind.REACH_REWARD,
    ObjectiveKind.CUMULATIVE,
    ObjectiveKind.TOTAL,
    ObjectiveKind.DISCOUNTED,
}


@dataclass(frozen=True, eq=False, repr=False)
class Objective(Record):
    """A question about one value. Fields that a kind does not use stay at their defaults.

    * `allowed`: the states before the target of UNTIL; None means every state.
    * `lower_steps ≤ steps ≤ upper_steps` bounds UNTIL; CUMULATIVE sums `upper_steps` steps.
    * `terminal`: the value of a target state of REACH_REWARD, and of the last state of CUMULATIVE.
    * `complement`: the reported value is 1 − the value here, as for `Pmax [ G a ]` and `Pmin [ F !a ]`.

    >>> import tightrope as tr
    >>> objective = tr.load("bench:betting(5)").problem('Rmax=? [ F "done" ]').objective
    >>> objective.kind.value, objective.agent.value
    ('expected reward until target', 'max')
    """

    kind: ObjectiveKind
    agent: Direction
    nature: Direction
    target: BoolArray | None = None
    allowed: BoolArray | None = None
    lower_steps: int = 0
    upper_steps: int | None = None
    reward: RewardStructure | None = None
    terminal: FloatArray | None = None
    discount: float | None = None
    complement: bool = False
    is_temporal: bool = False  # the target, on a product, stands for what satisfies a temporal formula

    def __post_init__(self) -> None:
        check_type("kind", self.kind, ObjectiveKind, "an ObjectiveKind; `model.problem` takes text")
        for name in ("target", "allowed", "terminal"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, frozen_array(array))
        if self.kind in _NEEDS_TARGET and self.target is None:
            raise InputError(f"an objective of kind '{self.kind.value}' needs target states")
        if self.kind in _NEEDS_REWARD and self.reward is None:
            raise InputError(f"an objective of kind '{self.kind.value}' needs a reward structure")
        if self.kind is ObjectiveKind.CUMULATIVE and self.upper_steps is None:
            raise InputError("a cumulative reward needs a number of steps: C<=k")
        if (self.kind is ObjectiveKind.DISCOUNTED) != (self.discount is not None):
            raise InputError("a discount factor belongs to discounted rewards, and they need one")
        if self.discount is not None and not 0 < self.discount < 1:
            raise InputError(f"the discount factor is {self.discount}, not within (0, 1)")
        if self.lower_steps < 0 or (self.upper_steps is not None and self.upper_steps < self.lower_steps):
            raise InputError(f"the step bound [{self.lower_steps}, {self.upper_steps}] is empty")

    def _title_(self) -> str:
        return f"Objective: {self.kind.value}"

    def _facts_(self) -> Facts:
        facts = [("directions", f"the agent {self.agent.value}, nature {self.nature.value}")]
        for name, states in (("target", self.target), ("allowed", self.allowed)):
            if states is not None:
                facts.append((name, f"{np.count_nonzero(states):,} of {len(states):,} states"))
        if self.lower_steps or self.upper_steps is not None:
            upper = "" if self.upper_steps is None else str(self.upper_steps)
            facts.append(("steps", f"{self.lower_steps}..{upper}"))
        if self.discount is not None:
            facts.append(("discount", f"{self.discount:g}"))
        return facts + ([("complement", "the value reported is 1 − this")] if self.complement else [])

    def on(self, structure: Structure) -> Objective:
        """The same question where rewards that depend on parameters are numbers: those of the structure."""
        if not isinstance(self.reward, ParametricReward):
            return self
        reward = structure.rewards.get(self.reward.name)
        return self if reward is None else replace(self, reward=reward)

    def after_draw(self, structure: Structure) -> Objective:
        """The same question from the states that `start` draws from, which earns nothing; one step more."""
        drawn, reward = np.arange(structure.states) == structure.initial, self.reward
        draw, counts_it = int(structure.choice_start[structure.initial]), self.discount is not None
        if isinstance(reward, ParametricReward):
            counts_it |= any(reward.expressions.polynomial(int(reward.expression[draw])).terms.values())
        elif reward is not None and (earned := reward.per_choice(structure))[draw]:
            reward = replace(reward, state=None, choice=np.where(drawn[structure.choice_state], 0.0, earned))
        if counts_it:
            raise InputError(
                "the draw of a first state is no step, and discounts or rewards with parameters count it",
                hint='let one state be initial, or earn nothing in the state labelled "start"',
            )
        after = self.moved(lambda held, inner: np.where(drawn, inner, held), reward)
        if self.kind is ObjectiveKind.NEXT:
            return replace(after, kind=ObjectiveKind.UNTIL, lower_steps=2, upper_steps=2)
        lower = self.lower_steps + (self.lower_steps > 0)
        upper = None if self.upper_steps is None else self.upper_steps + 1
        return replace(after, lower_steps=lower, upper_steps=upper)

    def after_elsewhere(self, structure: Structure, text: str | None = None) -> Objective:
        """The same question where what was never seen counts as the worst, for whichever end of an interval.

        Rows lead to two states for that: nature picks the one in which the target is missed for ever, or the
        one that is a target. Between them lies whatever may happen elsewhere: a probability is in [0, 1], and
        a reward until the target in [0, ∞], where no reward is negative. In such models nothing holds at the
        end of episodes, whatever values stand for it, but what a property's `text` says of its label.
        """
        if structure.elsewhere is None:
            return self
        missed, reached = structure.elsewhere
        rewarded = self.reward is not None and (
            self.kind is not ObjectiveKind.REACH_REWARD
            or self.terminal is not None
            or isinstance(self.reward, ParametricReward)
            or bool(np.any(self.reward.per_choice(structure) < 0.0))
        )
        if rewarded:
            raise InputError(
                "rewards after an outcome that was never seen (elsewhere) have no bound",
                hint="ask for a probability, or for rewards R=? [ F … ] that are not negative; without the "
                'outcomes to "elsewhere_missed" and "elsewhere_reached" the model claims that there are none',
            )
        gone = missed.copy()
        for name, members in structure.labels.items():
            unnamed = text is not None and f'"{name}"' not in text
            if unnamed and name.rstrip("_") == END and structure.is_closed(members):
                gone |= members
        target = None if self.target is None else (self.target & ~gone) | reached
        allowed = None if self.allowed is None else (self.allowed & ~missed) | reached
        return replace(self, target=target, allowed=allowed)

    def moved(self, move: Callable[[AnyArray, bool], AnyArray], reward: RewardStructure | None) -> Objective:
        """Return the question about other states, with another `reward`. `move` takes what there is by state,
        and what states in the middle of a step have of it: they are no targets, allowed, and worth 0.
        """
        target, allowed, terminal = (
            None if held is None else move(held, inner)
            for held, inner in ((self.target, False), (self.allowed, True), (self.terminal, False))
        )
        return replace(self, target=target, allowed=allowed, terminal=terminal, reward=reward)

    @property
    def is_reward(self) -> bool:
        return self.kind in _NEEDS_REWARD

    @property
    def range(self) -> tuple[float, float]:
        """Between what values lie whatever the probabilities are."""
        return (-math.inf, math.inf) if self.is_reward else (0.0, 1.0)

    @property
    def maximises(self) -> bool:
        """Whether the agent wants the reported value to be large."""
        return (self.agent is Direction.MAX) != self.complement

    @property
    def depends_on_step(self) -> bool:
        """Whether the best policy is not a choice per state: it must know how many steps were taken."""
        return self.kind is not ObjectiveKind.NEXT and (self.is_bounded or self.lower_steps > 0)

    @property
    def is_bounded(self) -> bool:
        """Whether the number of steps that count is finite."""
        return self.kind is ObjectiveKind.NEXT or self.upper_steps is not None
