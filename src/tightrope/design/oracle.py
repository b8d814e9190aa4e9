"""Oracles of designs: the policy that collects the most of a reward per choice in an episode.

An oracle maps rewards to an `Answer`: the policy with its occupancy, its reward, and a rounded-up bound for
every policy. Others maximise per unit of cost (Dinkelbach 1967) or bound the probability of bad states, at
the estimate. No guarantee uses them. Derivation: docs/planning.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import splu

from tightrope.design.episodes import EpisodeArrays, Episodes, Way, take
from tightrope.errors import CannotCertify, InputError, Location
from tightrope.model.policy import Policy
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.text import reading

_SPARE = 1e-9
"""Relative: more than the rounding of sums of positive terms of any length that fits in memory."""

_MOST_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Atom:
    """A way to collect an episode: draw one of the policies by its share; an episode costs `cost`."""

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
    choice = structure.choice_start[:-1].copy()
    _pass_backward(episodes.arrays, episodes.order, reward, value, choice)
    atom = atom_of(episodes, Policy.of_choices(structure, choice))
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


def _by_steps(table: FloatArray, choice_start: OffsetArray) -> TimeVaryingChoices:
    """Runs of equal decisions per state."""
    changed = np.ones(table.shape, np.bool_)
    changed[1:] = table[1:] != table[:-1]
    state, step = np.nonzero(changed.T)
    choice = choice_start[state] + table[step, state]
    start = np.searchsorted(state, np.arange(table.shape[1] + 1))
    return TimeVaryingChoices(start.astype(np.int64), step.astype(np.int64), choice.astype(np.int64))


class _Equations:
    """Policy iteration on a model in which every episode ends."""

    def __init__(self, episodes: Episodes):
        self.episodes = episodes
        self._duration: FloatArray | None = None

    def answer(self, reward: FloatArray) -> Answer:
        structure = self.episodes.structure
        choice, value, excess = self._improve(reward)
        upper = float(value[structure.initial])
        if excess > 0.0:
            upper += excess * float(self._durations()[structure.initial])
        return _answer(atom_of(self.episodes, Policy.of_choices(structure, choice)), reward, upper)

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
        episodes, structure = self.episodes, self.episodes.structure
        choice = structure.choice_start[:-1].copy()
        value = np.zeros(structure.states)
        excess, least = np.inf, 1e-13 * float(np.abs(reward).max(initial=0.0))
        for _ in range(_MOST_ROUNDS):
            weight = np.zeros(structure.choices)
            weight[choice] = 1.0
            matrix, inner = episodes.matrix(weight)
            system = (eye_array(len(inner)) - matrix).tocsc()
            value[inner] = splu(system).solve(reward[choice[inner]])
            excess = _improve_choices(episodes.arrays, reward, value, choice, 1e-12)
            if excess <= least + 1e-12 * float(np.abs(value).max(initial=0.0)):
                break
        return choice, value, max(excess, 0.0)


@kernel
def _best_of(arrays: EpisodeArrays, reward: FloatArray, value: FloatArray, state: int) -> tuple[float, int]:
    """The most that a choice of the state brings with these values to follow, and the choice."""
    choice_start, transition_start, successor, expression, probability, _ = arrays
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
    arrays: EpisodeArrays, order: IndexArray, reward: FloatArray, value: FloatArray, policy: OffsetArray
) -> None:
    for i in range(len(order)):
        s = order[i]
        if not arrays.stop[s]:
            value[s], policy[s] = _best_of(arrays, reward, value, s)


@kernel
def _sweep_backward(arrays: EpisodeArrays, reward: FloatArray, table: IndexArray) -> FloatArray:
    """Values of the first step; table[h, s] is the number, within the state, of the choice at step h."""
    states = len(arrays.stop)
    value = np.zeros(states)
    before = np.zeros(states)
    for h in range(len(table) - 1, -1, -1):
        for s in range(states):
            if not arrays.stop[s]:
                before[s], best = _best_of(arrays, reward, value, s)
                table[h, s] = best - arrays.choice_start[s]
        value, before = before, value
    return value


@kernel
def _follow_table(arrays: EpisodeArrays, table: IndexArray, initial: int, result: FloatArray) -> None:
    states = len(arrays.stop)
    mass = np.zeros(states)
    following = np.zeros(states)
    mass[initial] = 1.0
    for h in range(len(table)):
        following[:] = 0.0
        for s in range(states):
            if not arrays.stop[s] and mass[s] > 0.0:
                take(arrays, arrays.choice_start[s] + table[h, s], mass[s], following, result)
        mass, following = following, mass


@kernel
def _improve_choices(
    arrays: EpisodeArrays, reward: FloatArray, value: FloatArray, policy: OffsetArray, margin: float
) -> float:
    """Take choices that are better by more than the margin, relatively; the most any backup gains."""
    most = 0.0
    for s in range(len(arrays.stop)):
        if arrays.stop[s]:
            continue
        best, chosen = _best_of(arrays, reward, value, s)
        gain = best - value[s]
        most = max(most, gain)
        if gain > margin * abs(best):
            policy[s] = chosen
    return most


ROUNDS = 30
CLOSE = 1e-5
"""Relative: how near the rate is to the best when rounds end."""

WORDS = ("episode", "step")


@dataclass(frozen=True)
class Cost:
    """What an episode, a step, and steps of single actions cost.

    >>> Cost.parse("episode=1,step=0.01").step
    0.01
    """

    episode: float = 1.0
    step: float = 0.0
    actions: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        prices = (self.episode, self.step, *(price for _, price in self.actions))
        if not all(math.isfinite(price) and price >= 0.0 for price in prices):
            raise InputError("prices must be numbers, and none may be negative")
        if self.episode == 0.0 and not any(price > 0.0 for price in prices):
            raise InputError("all prices are 0", hint="give a price, such as episode=1 or step=0.01")

    @staticmethod
    def parse(given: str) -> Cost:
        """From "episode=1,step=0.01", or a JSON file {"episode": 1, "step": 0.01, "actions": {"up": 0.5}}."""
        if given.endswith(".json"):
            return _read(Path(given))
        prices: dict[str, float] = {}
        for part in given.split(","):
            word, equals, number = (piece.strip() for piece in part.partition("="))
            try:
                price = float(number)
            except ValueError:
                price = math.nan
            if word not in WORDS or not equals or math.isnan(price):
                raise InputError(
                    f"the cost '{part.strip()}' is not understood",
                    hint="write 'episode=1,step=0.01', or name a JSON file with prices per action",
                )
            if word in prices:
                raise InputError(f"the price of {'an' if word == 'episode' else 'a'} {word} is given twice")
            prices[word] = price
        return Cost(prices.get("episode", 0.0), prices.get("step", 0.0))

    @property
    def is_by_episode(self) -> bool:
        """Whether only the number of episodes matters."""
        return self.step == 0.0 and not any(price > 0.0 for _, price in self.actions)

    @property
    def text(self) -> str:
        parts = [("episode", self.episode), ("step", self.step), *self.actions]
        return ", ".join(f"{name} {price:.10g}" for name, price in parts if price > 0.0)

    def per_choice(self, structure: Structure) -> FloatArray:
        """What a step of every choice costs; a named action costs its own price instead of a step's."""
        price = np.full(len(structure.action_names), self.step)
        for name, own in self.actions:
            if name not in structure.action_names:
                raise InputError(
                    f"the cost names the action '{name}', which the model does not have",
                    hint=f"its actions are {', '.join(structure.action_names)}",
                )
            price[structure.action_names.index(name)] = own
        return price[structure.action_of_choice]


def price_oracle(ask: Oracle, cost: Cost, structure: Structure) -> Oracle:
    """The oracle whose answers collect most per unit of cost."""
    if cost.is_by_episode:
        return lambda reward: _scale(ask(reward), cost.episode)
    price = cost.per_choice(structure)
    cheapest = cost.episode + float(
        price[structure.choice_start[structure.initial] : structure.choice_start[structure.initial + 1]].min()
    )
    if not cheapest > 0.0:
        raise InputError(
            "an episode may have no cost, so the cost of data would be 0",
            hint="give a price for every episode: episode=1",
        )

    def ask_per_price(reward: FloatArray) -> Answer:
        rate, upper = 0.0, math.inf
        best: Answer | None = None
        for _ in range(ROUNDS):
            answer = ask(reward - rate * price)
            spent = cost.episode + float(answer.atom.occupancy @ price)
            reached = float(answer.atom.occupancy @ reward) / spent
            upper = min(upper, rate + max(answer.upper - rate * cost.episode, 0.0) / cheapest)
            if best is None or reached > best.value:
                best = Answer(replace(answer.atom, cost=spent), reached, upper)
            if upper <= best.value * (1.0 + CLOSE) or reached <= rate:
                break
            rate = best.value
        assert best is not None
        return Answer(best.atom, best.value, max(upper, best.value))

    return ask_per_price


def _scale(answer: Answer, cost: float) -> Answer:
    return Answer(replace(answer.atom, cost=cost), answer.value / cost, answer.upper / cost)


def _read(path: Path) -> Cost:
    place = Location(str(path))
    with reading(path) as file:
        try:
            content = json.load(file)
        except ValueError as error:
            raise InputError(f"this is not JSON: {error}", place) from error
    hint = 'such a file reads {"episode": 1, "step": 0.01, "actions": {"up": 0.5}}'
    if not isinstance(content, dict) or not set(content) <= {*WORDS, "actions"}:
        raise InputError("this is not a file of prices", place, hint)
    actions = content.get("actions", {})
    if not isinstance(actions, dict):
        raise InputError("'actions' is not an object of prices per action", place, hint)
    prices = [*(content.get(word, 0.0) for word in WORDS), *actions.values()]
    numbers = [price for price in prices if isinstance(price, int | float) and not isinstance(price, bool)]
    if len(numbers) < len(prices) or not all(0.0 <= price < math.inf for price in numbers):
        raise InputError("a price is a number that is not negative", place, hint)
    return Cost(float(prices[0]), float(prices[1]), tuple((name, float(p)) for name, p in actions.items()))


BOUND_ROUNDS = 40
CLOSE_TO_BOUND = 1e-5
"""Relative to what is collected: when the multiplier is good enough."""

_TIE = 1e-7
"""Of the reward: how much of it the safer of two policies may lack, all episode long."""


class NoPolicyKeepsBound(InputError):
    """At the estimate every policy is more dangerous than is allowed."""


def entering(structure: Structure, probability: FloatArray, states: BoolArray) -> FloatArray:
    """How likely each choice leads into the states from outside, one number per choice."""
    inside = states[structure.successor] & ~states[structure.choice_state[structure.transition_choice]]
    weights = probability * inside
    entered = np.bincount(structure.transition_choice, weights=weights, minlength=structure.choices)
    return entered.astype(np.float64)


def careful(ask: Oracle, bad: FloatArray) -> Oracle:
    """The same oracle, with ties broken towards the policy that is least likely to end badly."""

    def ask_carefully(reward: FloatArray) -> Answer:
        scale = float(np.abs(reward).max(initial=0.0))
        if scale == 0.0:
            scale = 1.0
        answer = ask(reward - _TIE * scale * bad)
        value = float(answer.atom.occupancy @ reward)
        return Answer(answer.atom, value, max(answer.upper + _TIE * scale, value))

    return ask_carefully


@dataclass(frozen=True, eq=False)
class Bounded:
    """An oracle whose answers keep Σ occupancy·bad ≤ `most`."""

    ask: Oracle
    bad: FloatArray
    most: float

    def safest(self) -> Atom:
        """The policy that is least likely to end badly, at the estimate."""
        return self.ask(-self.bad).atom

    def __call__(self, reward: FloatArray) -> Answer:
        """The most of the reward within the bound; `NoPolicyKeepsBound` where none keeps it."""
        bold = self.ask(reward)
        if self._risk(bold.atom) <= self.most:
            return bold
        safe = self.safest()
        if self._risk(safe) > self.most:
            raise NoPolicyKeepsBound(
                f"every policy ends badly with probability {self._risk(safe):.4g} at least, more than the "
                f"{self.most:.4g} that is allowed",
                hint="allow more with `at_most`",
            )
        daring, upper = bold.atom, bold.upper
        for _ in range(BOUND_ROUNDS):
            gained = float(daring.occupancy @ reward) - float(safe.occupancy @ reward)
            slope = max(gained, 0.0) / max(self._risk(daring) - self._risk(safe), 1e-300)
            answer = self.ask(reward - slope * self.bad)
            upper = min(upper, answer.upper + slope * self.most)
            mixed = self._mix(safe, daring)
            reached = float(mixed.occupancy @ reward)
            line = float(safe.occupancy @ reward) - slope * self._risk(safe)
            better = float(answer.atom.occupancy @ reward) - slope * self._risk(answer.atom)
            if upper - reached <= CLOSE_TO_BOUND * abs(reached) or better <= line + 1e-12 * abs(line):
                break
            if self._risk(answer.atom) <= self.most:
                safe = answer.atom
            else:
                daring = answer.atom
        mixed = self._mix(safe, daring)
        value = float(mixed.occupancy @ reward)
        return Answer(mixed, value, max(upper, value))

    def _risk(self, atom: Atom) -> float:
        return float(atom.occupancy @ self.bad)

    def _mix(self, safe: Atom, daring: Atom) -> Atom:
        """The two, drawn per episode in the shares that just keep the bound."""
        low, high = self._risk(safe), self._risk(daring)
        share = 0.0 if high <= low else min(max((self.most - low) / (high - low), 0.0), 1.0)
        if share == 0.0:
            return safe
        parts = (
            *((share * part, policy) for part, policy in daring.parts),
            *(((1.0 - share) * part, policy) for part, policy in safe.parts),
        )
        occupancy = share * daring.occupancy + (1.0 - share) * safe.occupancy
        return replace(safe, parts=parts, occupancy=occupancy)
