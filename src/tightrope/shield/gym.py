"""Gymnasium: models as environments, and shields around environments (`pip install 'tightrope[gym]'`).

Actions that are named by numbers have these; the others follow in the order of the model. Choices without a
name of their own are numbered by their place; where a state has one such choice alone, every number takes it.
An action that a state does not have leaves the state unchanged.

>>> import tightrope as tr
>>> model = tr.build_from_rows([(0, "go", {1: 1}), (0, "wait", {0: 1}), (1, "", {1: 1})])
>>> env = tr.gym.ModelEnv(model)
>>> env.reset(seed=1)[0], env.action_masks().tolist(), env.step(0)[:3]
(0, [True, True], (1, 0.0, True))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat, SupportsInt, TypeVar

import numpy as np

from tightrope.data.design import absorbing_states
from tightrope.errors import InputError
from tightrope.model.mdp import MDP
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.states import show_state
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.rules.states import name_choices
from tightrope.shield import Shield

try:
    from gymnasium import Env, Wrapper
    from gymnasium.spaces import Discrete
except ImportError as error:
    raise InputError("Gymnasium is not installed", hint="pip install 'tightrope[gym]'") from error

Info = dict[str, object]
StateOf = Callable[[object], object]
T = TypeVar("T")


def _numbers(structure: Structure) -> OffsetArray:
    """The number of each choice; −1 for the only choice of a state, if it is unnamed."""
    names, place = name_choices(structure)
    number = {name: int(name) for name in names if name.isdecimal() and str(int(name)) == name}
    words = [name for name in names if name and name not in number]
    number |= {name: k for k, name in enumerate(words, start=max(number.values(), default=-1) + 1)}
    return np.array([number.get(name, -1) for name in names], np.int64)[place]


def _by_number(numbers: OffsetArray, choices: Mapping[int, T], actions: range) -> dict[int, T]:
    """What is known of the choices of a state, by the numbers of their actions."""
    known = {int(numbers[choice]): one for choice, one in choices.items()}
    return dict.fromkeys(actions, known[-1]) if -1 in known else known


class ModelEnv(Env[int, int]):
    """A model as an environment: observations are state indices, episodes end in absorbing states."""

    def __init__(self, model: MDP | ParametricMDP, at: Point | None = None, *, reward: str | None = None):
        known = model.instantiate({} if at is None else at) if isinstance(model, ParametricMDP) else model
        if not isinstance(known, MDP):
            raise InputError("an environment needs one probability for every transition", hint="give a point")
        self.structure, self.probability = known.structure, known.probability
        rewards = self.structure.rewards
        name = next(iter(rewards), None) if reward is None else reward
        if name is not None and name not in rewards:
            raise InputError(f"the model has no rewards '{name}'", hint=f"it has {', '.join(rewards)}")
        self.earned = np.zeros(known.choices) if name is None else rewards[name].per_choice(self.structure)
        self.numbers, self.state = _numbers(self.structure), self.structure.initial_states[0]
        self.absorbing = absorbing_states(self.structure)
        self.observation_space: Any = Discrete(known.states)
        self.action_space: Any = Discrete(max(int(self.numbers.max()) + 1, 1))

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[int, Info]:
        """Begin an episode in an initial state."""
        super().reset(seed=seed)
        self.state = int(self.np_random.choice(self.structure.initial_states))
        return self.state, {"action_mask": self.action_masks()}

    def step(self, action: int) -> tuple[int, float, bool, bool, Info]:
        """Take an action."""
        choice, reward = self._choices().get(int(action)), 0.0
        if choice is not None:
            first, last = self.structure.transition_start[choice : choice + 2].tolist()
            shares, reward = self.probability[first:last], float(self.earned[choice])
            place = self.np_random.choice(last - first, p=shares / shares.sum())
            self.state = int(self.structure.successor[first + place])
        ends = bool(self.absorbing[self.state])
        return self.state, reward, ends, False, {"action_mask": self.action_masks()}

    def action_masks(self) -> BoolArray:
        """Which actions the state has."""
        return np.isin(range(self.action_space.n), list(self._choices()))

    def state_of(self, observation: int) -> object:
        """The state as shields and policies call it."""
        return show_state(self.structure, int(observation))

    def _choices(self) -> dict[int, int]:
        choices = range(*self.structure.choice_start[self.state : self.state + 2].tolist())
        return _by_number(self.numbers, dict(zip(choices, choices, strict=True)), range(self.action_space.n))


class ShieldWrapper(Wrapper[object, SupportsInt, object, object]):
    """An environment in which every agent keeps the guaranteed bound of a shield.

    `state_of` turns an observation into a state. A forbidden action is replaced by the fallback, or raises
    (`forbidden="raise"`). `info["shield"]` has the next prices, the slack, the present bound, and the action.
    """

    def __init__(
        self, env: Env[Any, Any], shield: Shield, state_of: StateOf | None = None, forbidden: str = "fallback"
    ):
        super().__init__(env)
        space, self.shield, self.numbers = env.action_space, shield.fresh(), _numbers(shield.table.structure)
        if not isinstance(space, Discrete) or space.start != 0:
            raise InputError(f"shields need numbered actions, from 0 on, and this environment has {space}")
        if forbidden not in ("fallback", "raise"):
            raise InputError(f"`forbidden` is {forbidden!r}, not 'fallback' or 'raise'")
        if self.numbers.max() >= space.n:
            raise InputError(f"the model has {self.numbers.max() + 1} actions, not {space.n}")
        own: StateOf = getattr(env.unwrapped, "state_of", lambda observation: observation)
        self.state_of, self.forbidden, self.actions = state_of or own, forbidden, range(int(space.n))
        self.state, self.named, self.prices = object(), dict[int, str | int](), dict[int, float]()

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[object, Info]:
        """Begin an episode with the whole slack."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.shield.start()
        return observation, self._arrive(observation, info)

    def step(self, action: SupportsInt) -> tuple[object, SupportsFloat, bool, bool, Info]:
        """Take an action that the shield allows, or what replaces it."""
        number = int(action)
        if number not in self.prices and self.forbidden == "fallback":
            fallback = self.shield.fallback(self.state)
            number = next(own for own, name in self.named.items() if name == fallback)
        self.shield.take(self.state, self.named.get(number, f"action {number}"))
        observation, reward, ends, stops, info = self.env.step(number)
        facts = {"taken": number, "replaced": number != int(action)}
        return observation, reward, ends, stops, self._arrive(observation, info, **facts)

    def action_masks(self) -> BoolArray:
        """Which actions the shield allows, as MaskablePPO of sb3-contrib asks for them."""
        return np.isin(self.actions, list(self.prices))

    def _arrive(self, observation: object, info: Info, **facts: object) -> Info:
        self.state = self.state_of(observation)
        prices = self.shield.allowed(self.state)
        self.named = _by_number(self.numbers, self.shield.choices, self.actions)
        self.prices = {number: prices[name] for number, name in self.named.items() if name in prices}
        facts |= {"prices": self.prices, "slack": self.shield.slack, "promise": self.shield.promise}
        return {**info, "shield": facts}
