"""What paths of a model can bring at most and at least, whatever the probabilities are.

Both are bounds over the graph alone: sums of rewards along any path to a target that takes only choices of a
policy. Where some path can go on for ever and collect ever more, the bound is infinite.

*What each episode of a log returned under a policy, as far as it shows; what does not show counts as best.*
A promise speaks of the expected return of a policy from the initial state on. Of the episodes in a log some
follow the policy until the objective is decided: their return is what it is. An episode that leaves the
policy, or is cut off, returns what it has so far and the best that any path could still bring. That is sound
whatever makes it leave, as long as it is decided without knowing the future: continued under the policy it
could not have returned more, so that the expectation is at least the policy's. Dropping such episodes would
not be sound: those that a random explorer happens not to leave are the short ones. Episodes that begin in
another state than the initial one are passed over, which is decided before anything happens in them.

For a promise that returns are at least m "best" is the largest, for one that they are at most m the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.policy_choices import TimeVaryingChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel


@dataclass(frozen=True, eq=False)
class Extremes:
    """The least and the most that a path from each state to the target collects; ±∞ where there is no end."""

    least: FloatArray
    most: FloatArray


def can_reach(structure: Structure, target: BoolArray, allowed: BoolArray) -> BoolArray:
    """States from which some path leads to the target through allowed states."""
    source = structure.choice_state[structure.transition_choice]
    result: BoolArray = target.copy()
    while True:
        more = result.copy()
        more[source[result[structure.successor] & allowed[source]]] = True
        if np.array_equal(more, result):
            return result
        result = more


def extreme_rests(
    structure: Structure, policy: Policy, target: BoolArray, worth: FloatArray, reward: FloatArray
) -> Extremes:
    """Bounds on what is still to come under a policy, which must be able to reach the target everywhere.

    `worth` is the value of target states.
    """
    if policy.steps is not None:
        followed = np.zeros(structure.choices, dtype=np.bool_)
        followed[policy.steps.choice] = True
    else:
        followed = policy.probability > 0.0
    retained = followed[structure.transition_choice]
    choice = structure.transition_choice[retained]
    source, successor = structure.choice_state[choice], structure.successor[retained]
    _refuse_traps(structure, target, source, successor)
    gain = reward[choice]
    result = []
    for sign in (-1.0, 1.0):
        value = np.where(target, sign * worth, -np.inf)
        rises: BoolArray = np.ones(structure.states, dtype=np.bool_)
        for _ in range(structure.states + 1):
            further = np.full(structure.states, -np.inf)
            np.maximum.at(further, source, sign * gain + value[successor])
            further[target] = sign * worth[target]
            rises = further != value
            value = further
            if not rises.any():
                break
        if rises.any():  # longer than any path without a cycle, and still growing
            value[_leads_to(structure, rises, source, successor)] = np.inf
        result.append(sign * value)
    return Extremes(result[0], result[1])


def _refuse_traps(structure: Structure, target: BoolArray, source: IndexArray, successor: IndexArray) -> None:
    """Where the target may never be reached, the reward until then is infinite."""
    reached: BoolArray = np.zeros(structure.states, dtype=np.bool_)
    reached[structure.initial] = True
    while True:
        more = reached.copy()
        more[successor[reached[source] & ~target[source]]] = True
        if np.array_equal(more, reached):
            break
        reached = more
    trapped = np.flatnonzero(reached & ~_leads_to(structure, target, source, successor))
    if len(trapped):
        raise InputError(
            f"from state {structure.state_name(int(trapped[0]))} the target is never reached under the "
            "policy, so that returns may be infinite and cannot be watched",
            hint="watch a probability, or the reward of the first steps",
        )


def _leads_to(structure: Structure, goal: BoolArray, source: IndexArray, successor: IndexArray) -> BoolArray:
    result: BoolArray = goal.copy()
    while True:
        more = result.copy()
        more[source[result[successor]]] = True
        if np.array_equal(more, result):
            return result
        result = more


SHOWN, LEFT, CUT, ELSEWHERE = range(4)
"""How an episode ended: decided, off the policy, cut off, or not begun in the initial state."""

_OPEN, _STATE, _STEP, _SUM, _CARRIED = range(5)
_NEVER = 2**62


@dataclass(frozen=True, eq=False)
class Scoring:
    """How episodes are scored: `lowest` and `highest` is what returns lie between, ∞ included.

    `rest` is the best that can follow per state, `reward` what a choice brings; `decided` is what an episode
    is worth as soon as a state is entered between `first` and `last` steps, NaN where it goes on, and `ended`
    what it is worth (besides rewards) when `last` is over.
    """

    structure: Structure
    policy: Policy
    rest: FloatArray
    reward: FloatArray
    decided: FloatArray
    early: FloatArray
    first: int
    last: int
    lowest: float
    highest: float

    @staticmethod
    def of(structure: Structure, objective: Objective, policy: Policy, least: bool) -> Scoring:
        """`least`: what does not show counts as large as it can be, else as small."""
        kind = objective.kind
        states, choices = structure.states, structure.choices
        target = np.zeros(states, dtype=np.bool_) if objective.target is None else objective.target
        nothing = np.full(states, np.nan)
        if kind in (ObjectiveKind.TOTAL, ObjectiveKind.DISCOUNTED):
            raise InputError(
                f"an {kind.value} never shows in full within an episode, so that returns cannot be watched",
                hint="ask for a reward until a target or of the first steps, or for a probability",
            )
        last = _NEVER if objective.upper_steps is None else objective.upper_steps
        if kind in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT):
            first = 1 if kind is ObjectiveKind.NEXT else objective.lower_steps
            last = 1 if kind is ObjectiveKind.NEXT else last
            allowed = np.ones(states, dtype=np.bool_) if objective.allowed is None else objective.allowed
            may = can_reach(structure, target, allowed)
            early = np.where(may & allowed, np.nan, 0.0)
            decided = np.where(target, 1.0, early)
            rest = np.where(may, 1.0, 0.0) if least else np.zeros(states)
            return Scoring(structure, policy, rest, np.zeros(choices), decided, early, first, last, 0.0, 1.0)
        assert objective.reward is not None
        reward = objective.reward.per_choice(structure)
        if kind is ObjectiveKind.CUMULATIVE:
            low, high = float(last * min(reward.min(), 0.0)), float(last * max(reward.max(), 0.0))
            rest = np.full(states, high if least else low)
            return Scoring(structure, policy, rest, reward, nothing, nothing, 0, last, low, high)
        worth = np.zeros(states) if objective.terminal is None else np.asarray(objective.terminal)
        ends = extreme_rests(structure, policy, target, worth, reward)
        decided = np.where(target, worth, np.nan)
        rest = ends.most if least else ends.least
        initial = structure.initial
        low, high = float(ends.least[initial]), float(ends.most[initial])
        return Scoring(structure, policy, rest, reward, decided, decided, 0, _NEVER, low, high)


class EpisodeReturns:
    """Follows the events of a log and hands out what episodes returned, as they end."""

    def __init__(self, scoring: Scoring):
        self.scoring = scoring
        self.carry = np.zeros(_CARRIED)
        structure, policy = scoring.structure, scoring.policy
        runs = policy.steps
        followed = np.ones(structure.choices, dtype=np.bool_)
        if runs is None:
            followed = policy.probability > 0.0
            runs = TimeVaryingChoices.constant(np.full(structure.states, -1, dtype=np.int64))
        source = structure.choice_state[structure.transition_choice]
        self._model = (
            structure.transition_choice.astype(np.int64),
            source.astype(np.int64),
            structure.successor.astype(np.int64),
        )
        self._policy = (followed, runs.start, runs.step, runs.choice)
        self._worth = (scoring.reward, scoring.decided, scoring.early, scoring.rest)

    @property
    def state(self) -> int:
        """Where the episode is that goes on."""
        return int(self.carry[_STATE])

    def add(self, transition: OffsetArray, begins: BoolArray) -> tuple[FloatArray, OffsetArray]:
        """Events in order, and which of them begin an episode: returns, and how each episode ended."""
        value, ending = np.empty(2 * len(transition) + 1), np.empty(2 * len(transition) + 1, dtype=np.int64)
        limits = (self.scoring.structure.initial, self.scoring.first, self.scoring.last)
        result = _follow(
            self._model,
            self._policy,
            self._worth,
            limits,
            (np.ascontiguousarray(transition, dtype=np.int64), np.ascontiguousarray(begins)),
            self.carry,
            (value, ending),
        )
        return value[:result], ending[:result]

    def interrupt(self) -> tuple[FloatArray, OffsetArray]:
        """The model does not know how the episode goes on: it is cut off."""
        if self.carry[_OPEN] == 0.0:
            return np.empty(0), np.empty(0, dtype=np.int64)
        self.carry[_OPEN] = 0.0
        best = self.carry[_SUM] + self.scoring.rest[int(self.carry[_STATE])]
        return np.array([best]), np.array([CUT])


@kernel
def _follow(
    model: tuple[OffsetArray, OffsetArray, OffsetArray],
    policy: tuple[BoolArray, OffsetArray, OffsetArray, OffsetArray],
    worth: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    limits: tuple[int, int, int],
    events: tuple[OffsetArray, BoolArray],
    carry: FloatArray,
    result: tuple[FloatArray, OffsetArray],
) -> int:
    choice_of, source_of, successor_of = model
    followed, run_start, run_step, run_choice = policy
    reward, decided, early, rest = worth
    initial, first, last = limits
    transition, begins = events
    value, ending = result
    number = 0
    is_open, state, step, total = carry[_OPEN] != 0.0, int(carry[_STATE]), int(carry[_STEP]), carry[_SUM]
    for i in range(len(transition)):
        choice, source = choice_of[transition[i]], source_of[transition[i]]
        goes_on = is_open and source == state
        if is_open and (not goes_on or (begins[i] and source == initial)):
            value[number], ending[number] = total + rest[state], CUT
            number += 1
            is_open = goes_on = False
        if begins[i] and not goes_on:
            if source != initial:
                value[number], ending[number] = 0.0, ELSEWHERE
                number += 1
                continue
            is_open, state, step, total = True, source, 0, 0.0
            worth_now = decided[state] if first <= 0 else early[state]
            if not np.isnan(worth_now) or last <= 0:
                value[number] = 0.0 if np.isnan(worth_now) else worth_now
                ending[number] = SHOWN
                number += 1
                is_open = False
        if not is_open:
            continue
        used = followed[choice]
        run = run_start[source + 1] - 1
        while run_step[run] > step:
            run -= 1
        if run_choice[run] >= 0:
            used = run_choice[run] == choice
        if not used:
            value[number], ending[number] = total + rest[source], LEFT
            number += 1
            is_open = False
            continue
        total += reward[choice]
        step += 1
        state = successor_of[transition[i]]
        worth_now = decided[state] if first <= step else early[state]
        if not np.isnan(worth_now) or step >= last:
            value[number] = total + (0.0 if np.isnan(worth_now) else worth_now)
            ending[number] = SHOWN
            number += 1
            is_open = False
    carry[_OPEN], carry[_STATE], carry[_STEP], carry[_SUM] = (1.0 if is_open else 0.0), state, step, total
    return number
