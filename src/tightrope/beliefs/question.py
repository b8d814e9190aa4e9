"""A question about a partially observable model in integers, the input of belief computations.

Decided states are removed: for probabilities targets, states neither target nor allowed, and states from
which no policy reaches a target; for rewards the targets. A transition to one of them *stops*, with success
(a target) or without. So every question is: earn rewards, and success at the end, until the play stops.

Step bounds are counted in the state, which a controller knows. Discounting stops the play at every step with
probability 1 − discount. Probabilities are integers over one denominator per observation and action, so
beliefs are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import ParametricReward, Structure
from tightrope.numerics.arrays import BoolArray, IndexArray

MOST_STATES = 200_000
"""States, times steps where these are counted, beyond which a question is refused."""


@dataclass(frozen=True)
class Row:
    """An action in a state, over the denominator `total`: successors, success, and a stop with the rest."""

    successor: tuple[int, ...]
    weight: tuple[int, ...]
    success: int
    total: int
    reward: Fraction


@dataclass(frozen=True, eq=False)
class Question:
    """`look[s]` is what state s looks like, `rows[s][k]` what its k-th action does. `looks` are pairs of
    observation and number of steps, where these are counted, up to `last_step`. `first` is where a play
    begins (−1: it is decided there, with `decided`)."""

    pomdp: POMDP
    objective: Objective
    look: tuple[int, ...]
    rows: tuple[tuple[Row, ...], ...]
    looks: tuple[tuple[int, int], ...]
    first: int
    decided: float
    last_step: int

    @property
    def maximises(self) -> bool:
        return self.objective.agent is Direction.MAX

    @property
    def earns(self) -> bool:
        """Whether rewards are asked for, and not a probability."""
        return self.objective.is_reward

    @property
    def must_reach(self) -> bool:
        """Whether missing the target counts as infinitely much."""
        return self.objective.kind is ObjectiveKind.REACH_REWARD

    def actions_of(self, look: int) -> int:
        return len(self.pomdp.actions[self.looks[look][0]])


def question_of(pomdp: POMDP, objective: Objective, point: Sequence[Fraction] = ()) -> Question:
    """The question in integers at a point; refused where a play is not decided by what is summed up here."""
    model = pomdp.model
    if isinstance(model, MDP):
        free = 0
    else:
        free = model.transitions if isinstance(model, IntervalMDP) else len(model.parameters.names)
    if free != len(point):
        raise InputError(
            "beliefs are computed in models without intervals and parameters",
            hint="evaluate a controller, `policy`; or give parameters values where the model is loaded, as "
            "constants",
        )
    kind = objective.kind
    if objective.terminal is not None:
        raise InputError("terminal rewards are not supported for partially observable models")
    own, states = model.structure, model.states
    chance = _chances(model, point)
    reward = _rewards(objective, own.choices, own.choice_state)
    target = np.zeros(states, np.bool_) if objective.target is None else np.asarray(objective.target)
    allowed = np.ones(states, np.bool_) if objective.allowed is None else np.asarray(objective.allowed)
    lower, upper = objective.lower_steps, objective.upper_steps
    if kind is ObjectiveKind.NEXT:
        lower, upper = 1, 1
    last = upper if upper is not None else lower
    if states * (last + 1) > MOST_STATES:
        raise InputError(
            f"{states:,} states and {last:,} steps: more than {MOST_STATES:,} pairs",
            hint="ask for fewer steps",
        )
    hopeless = np.zeros(states, np.bool_)
    if kind in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT):
        hopeless = _hopeless(own, np.array([value > 0 for value in chance]), target, allowed)
    keep = Fraction(1) if objective.discount is None else Fraction(objective.discount)

    def outcome(state: int, step: int) -> bool | None:
        """Whether a play that is here has succeeded; None where it goes on."""
        if kind in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT):
            if target[state] and step >= lower:
                return True
            over = upper is not None and step >= upper
            return False if over or hopeless[state] or not allowed[state] else None
        if kind is ObjectiveKind.REACH_REWARD:
            return True if target[state] else None
        return False if kind is ObjectiveKind.CUMULATIVE and step >= last else None

    number: dict[tuple[int, int], int] = {}
    queue: list[tuple[int, int]] = []
    first, decided = -1, 0.0
    begin = outcome(own.initial, 0)
    if begin is None:
        first = number.setdefault((own.initial, 0), 0)
        queue.append((own.initial, 0))
    else:
        decided = float(begin) if not objective.is_reward else 0.0
    raw: list[list[tuple[dict[int, Fraction], Fraction, Fraction]]] = []
    for state, step in queue:
        after = min(step + 1, last)
        mine = []
        for choice in pomdp.aligned[own.choice_start[state] : own.choice_start[state + 1]].tolist():
            going: dict[int, Fraction] = {}
            success = Fraction(0)
            for t in range(int(own.transition_start[choice]), int(own.transition_start[choice + 1])):
                if chance[t] == 0:
                    continue
                there = (int(own.successor[t]), after)
                ended = outcome(*there)
                if ended is None:
                    if there not in number:
                        number[there] = len(queue)
                        queue.append(there)
                    place = number[there]
                    going[place] = going.get(place, Fraction(0)) + keep * chance[t]
                elif ended:
                    success += chance[t]
            mine.append((going, success, reward[choice]))
        raw.append(mine)
    seen = pomdp.observation.tolist()
    pairs: dict[tuple[int, int], int] = {}
    look = tuple(pairs.setdefault((seen[state], step), len(pairs)) for state, step in queue)
    return Question(pomdp, objective, look, _in_integers(raw, look), tuple(pairs), first, decided, last)


def is_interval(pomdp: POMDP) -> bool:
    return isinstance(pomdp.model, IntervalMDP)


def model_at(model: ParametricMDP | IntervalMDP | MDP, point: Sequence[Fraction]) -> MDP:
    """The model with doubles: at parameters, or with a probability per transition where it has intervals."""
    if isinstance(model, IntervalMDP):
        return MDP(model.structure, np.array([float(value) for value in point]))
    return model.instantiate(point) if isinstance(model, ParametricMDP) else model


def _chances(model: ParametricMDP | IntervalMDP | MDP, point: Sequence[Fraction]) -> list[Fraction]:
    """The probability of every transition. Rows of doubles are divided by their sums."""
    if isinstance(model, IntervalMDP):
        return list(point)
    if isinstance(model, ParametricMDP):
        exact = model.expressions.exact_values(point).to_fractions()
        return [exact[e] for e in model.expression.tolist()]
    chance = [Fraction(value) for value in model.probability.tolist()]
    start = model.structure.transition_start.tolist()
    for begin, end in pairwise(start):
        total = sum(chance[begin:end])
        if total != 1:
            chance[begin:end] = [value / total for value in chance[begin:end]]
    return chance


def _in_integers(
    raw: list[list[tuple[dict[int, Fraction], Fraction, Fraction]]], look: tuple[int, ...]
) -> tuple[tuple[Row, ...], ...]:
    total: dict[tuple[int, int], int] = {}
    for seen, mine in zip(look, raw, strict=True):
        for k, (going, success, _) in enumerate(mine):
            bottoms = [value.denominator for value in going.values()]
            total[seen, k] = math.lcm(total.get((seen, k), 1), success.denominator, *bottoms)
    rows = []
    for seen, mine in zip(look, raw, strict=True):
        own = []
        for k, (going, success, reward) in enumerate(mine):
            bottom = total[seen, k]
            weight = tuple(int(value * bottom) for value in going.values())
            own.append(Row(tuple(going), weight, int(success * bottom), bottom, reward))
        rows.append(tuple(own))
    return tuple(rows)


def _rewards(objective: Objective, choices: int, owner: IndexArray) -> list[Fraction]:
    earned = objective.reward
    if earned is None:
        return [Fraction(0)] * choices
    if isinstance(earned, ParametricReward):
        raise InputError("rewards with parameters cannot be used with partially observable models")
    total = [Fraction(0)] * choices
    if earned.choice is not None:
        total = [Fraction(value) for value in earned.choice.tolist()]
    if earned.state is not None:
        state = [Fraction(value) for value in earned.state.tolist()]
        total = [value + state[s] for value, s in zip(total, owner.tolist(), strict=True)]
    if min(total) < 0:
        raise InputError("negative rewards cannot be used with partially observable models")
    return total


def _hopeless(own: Structure, possible: BoolArray, target: BoolArray, allowed: BoolArray) -> BoolArray:
    """States from which no policy reaches a target through allowed states, by possible transitions."""
    reaches = target.copy()
    source = own.choice_state[own.transition_choice]
    possible = possible & allowed[source]
    while True:
        more = np.zeros(own.states, np.bool_)
        more[source[possible & reaches[own.successor]]] = True
        if not (more & ~reaches).any():
            return ~reaches
        reaches |= more
