"""Which policy collects the most of a reward per choice in an episode: what a design asks, over and over.

An oracle maps rewards (of either sign: prices and bounds enter as negative ones) to an `Answer`: the policy
with its occupancy, what it collects, and an upper bound on what any policy collects.

* Acyclic models: one backward pass is exact up to rounding.
* Under a cap of H steps: H sweeps, the policy depends on the step, exact up to rounding.
* Cyclic models in which every episode ends: policy iteration by sparse LU. With V the values of the last
  policy, ε = max (T·V − V)⁺ and U ≥ 1 + P_c·U for every choice c (the longest expected duration, found the
  same way), V + ε·U is not improved by any backup, so V + ε·U bounds every policy's value.

Upper bounds are raised by what rounding may amount to. They certify designs, which decide what to collect;
no guarantee about the unknown model rests on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tightrope.design.episodes import EpisodeArrays, Episodes, Way, take
from tightrope.errors import CannotCertify
from tightrope.io.policy import Policy
from tightrope.model.step_choices import StepChoices
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel

_SPARE = 1e-9
"""Relative: more than the rounding of sums of positive terms of any length that fits in memory."""

_MOST_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Atom:
    """A way to collect an episode: draw one of the policies by their shares (mostly there is one).

    `occupancy` is that of an episode, `cost` what one costs.
    """

    parts: tuple[tuple[float, Policy], ...]
    occupancy: FloatArray
    cost: float = 1.0

    @property
    def steps(self) -> float:
        """The expected length of an episode."""
        return float(self.occupancy.sum())


@dataclass(frozen=True, eq=False)
class Answer:
    """`value` is what the atom collects per unit of cost, `upper` bounds what anything allowed collects."""

    atom: Atom
    value: float
    upper: float


Oracle: TypeAlias = Callable[[FloatArray], Answer]
"""From a reward per choice of the model to who collects most of it."""


def best_episodes(episodes: Episodes) -> Oracle:
    """The oracle without bounds or prices: the most of the reward in an episode."""
    longest = _Equations(episodes) if episodes.way is Way.EQUATIONS else None

    def ask(reward: FloatArray) -> Answer:
        if episodes.way is Way.PASS:
            return _one_pass(episodes, reward)
        if episodes.way is Way.SWEEPS:
            return _sweeps(episodes, reward)
        assert longest is not None
        return longest.answer(reward)

    return ask


def atom_of(episodes: Episodes, policy: Policy) -> Atom:
    """Episodes under one given policy."""
    return Atom(((1.0, policy),), episodes.occupancy(policy))


def _answer(atom: Atom, reward: FloatArray, upper: float) -> Answer:
    value = float(atom.occupancy @ reward)
    return Answer(atom, value, max(upper, value) + _SPARE * float(atom.occupancy @ np.abs(reward)))


def _one_pass(episodes: Episodes, reward: FloatArray) -> Answer:
    structure = episodes.structure
    value = np.zeros(structure.states)
    taken = structure.choice_start[:-1].copy()
    _pass_backward(episodes.arrays, episodes.order, reward, value, taken)
    atom = atom_of(episodes, Policy.of_choices(structure, taken))
    return _answer(atom, reward, float(value[structure.initial]))


def _sweeps(episodes: Episodes, reward: FloatArray) -> Answer:
    structure = episodes.structure
    assert episodes.cap is not None
    small = np.int16 if int(np.diff(structure.choice_start).max()) < 2**15 else np.int32
    table = np.zeros((episodes.cap, structure.states), small)
    value = _sweep_backward(episodes.arrays, reward, table)
    occupancy = np.zeros(structure.choices)
    _follow_table(episodes.arrays, table, structure.initial, occupancy)
    policy = Policy(structure, _by_steps(table, structure.choice_start))
    return _answer(Atom(((1.0, policy),), occupancy), reward, float(value[structure.initial]))


def _by_steps(table: FloatArray, choice_start: OffsetArray) -> StepChoices:
    """Runs of equal decisions per state."""
    changed = np.ones(table.shape, np.bool_)
    changed[1:] = table[1:] != table[:-1]
    state, step = np.nonzero(changed.T)
    choice = choice_start[state] + table[step, state]
    start = np.searchsorted(state, np.arange(table.shape[1] + 1))
    return StepChoices(start.astype(np.int64), step.astype(np.int64), choice.astype(np.int64))


class _Equations:
    """Policy iteration on a model in which every episode ends."""

    def __init__(self, episodes: Episodes):
        self.episodes = episodes
        self._duration: FloatArray | None = None

    def answer(self, reward: FloatArray) -> Answer:
        structure = self.episodes.structure
        taken, value, excess = self._improve(reward)
        upper = float(value[structure.initial])
        if excess > 0.0:
            upper += excess * float(self._durations()[structure.initial])
        return _answer(atom_of(self.episodes, Policy.of_choices(structure, taken)), reward, upper)

    def _durations(self) -> FloatArray:
        """U ≥ 1 + P_c·U for every choice: the longest expected durations, scaled up by their own residual."""
        if self._duration is None:
            _, value, excess = self._improve(np.ones(self.episodes.structure.choices))
            if not excess < 0.5:
                raise CannotCertify("the longest expected duration of an episode is beyond float64")
            self._duration = value / (1.0 - excess) * (1.0 + _SPARE)
        return self._duration

    def _improve(self, reward: FloatArray) -> tuple[OffsetArray, FloatArray, float]:
        """(choices, their values, by how much a backup could improve any of these at most)."""
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        episodes, structure = self.episodes, self.episodes.structure
        taken = structure.choice_start[:-1].copy()
        value = np.zeros(structure.states)
        excess, least = np.inf, 1e-13 * float(np.abs(reward).max(initial=0.0))
        for _ in range(_MOST_ROUNDS):
            weight = np.zeros(structure.choices)
            weight[taken] = 1.0
            matrix, inner = episodes.matrix(weight)
            system = (eye_array(len(inner)) - matrix).tocsc()
            value[inner] = splu(system).solve(reward[taken[inner]])
            excess = _improve_choices(episodes.arrays, reward, value, taken, 1e-12)
            if excess <= least + 1e-12 * float(np.abs(value).max(initial=0.0)):
                break
        return taken, value, max(excess, 0.0)


@kernel
def _best_of(
    choice_start: OffsetArray,
    transition_start: OffsetArray,
    successor: IndexArray,
    expression: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    value: FloatArray,
    state: int,
) -> tuple[float, int]:
    """The most that a choice of the state brings with these values to follow, and the choice."""
    best, chosen = -np.inf, choice_start[state]
    for c in range(choice_start[state], choice_start[state + 1]):
        total = reward[c]
        for t in range(transition_start[c], transition_start[c + 1]):
            total += probability[expression[t]] * value[successor[t]]
        if total > best:
            best, chosen = total, c
    return best, chosen


@kernel
def _pass_backward(
    arrays: EpisodeArrays,
    order: IndexArray,
    reward: FloatArray,
    value: FloatArray,
    taken: OffsetArray,
) -> None:
    choice_start, transition_start, successor, expression, probability, stop = arrays
    for i in range(len(order)):
        s = order[i]
        if stop[s]:
            continue
        value[s], taken[s] = _best_of(
            choice_start, transition_start, successor, expression, probability, reward, value, s
        )


@kernel
def _sweep_backward(
    arrays: EpisodeArrays,
    reward: FloatArray,
    table: IndexArray,
) -> FloatArray:
    """Values of the first step; table[h, s] is the number, within the state, of the choice at step h."""
    choice_start, transition_start, successor, expression, probability, stop = arrays
    states = len(stop)
    value = np.zeros(states)
    before = np.zeros(states)
    for h in range(len(table) - 1, -1, -1):
        for s in range(states):
            if stop[s]:
                continue
            before[s], best = _best_of(
                choice_start, transition_start, successor, expression, probability, reward, value, s
            )
            table[h, s] = best - choice_start[s]
        value, before = before, value
    return value


@kernel
def _follow_table(
    arrays: EpisodeArrays,
    table: IndexArray,
    initial: int,
    result: FloatArray,
) -> None:
    choice_start, transition_start, successor, expression, probability, stop = arrays
    states = len(stop)
    mass = np.zeros(states)
    following = np.zeros(states)
    mass[initial] = 1.0
    for h in range(len(table)):
        following[:] = 0.0
        for s in range(states):
            if stop[s] or mass[s] <= 0.0:
                continue
            c = choice_start[s] + table[h, s]
            take(transition_start, successor, expression, probability, c, mass[s], following, result)
        mass, following = following, mass


@kernel
def _improve_choices(
    arrays: EpisodeArrays,
    reward: FloatArray,
    value: FloatArray,
    taken: OffsetArray,
    margin: float,
) -> float:
    """Take better choices where they are better by more than the margin, relatively; the most any backup
    gains.
    """
    choice_start, transition_start, successor, expression, probability, stop = arrays
    most = 0.0
    for s in range(len(stop)):
        if stop[s]:
            continue
        best, chosen = _best_of(
            choice_start, transition_start, successor, expression, probability, reward, value, s
        )
        gain = best - value[s]
        most = max(most, gain)
        if gain > margin * abs(best):
            taken[s] = chosen
    return most
