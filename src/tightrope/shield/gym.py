"""Gymnasium: models as environments, and shields around environments (`pip install 'tightrope[gym]'`).

The action number k stands for the k-th action name of the model, the unlabelled one left out; in a state with
a single choice every number takes it. An action that a state does not have leaves the state unchanged.

>>> import tightrope as tr
>>> tr.gym.ModelEnv(tr.benchmark("betting(5)").model, at={"p": 0.5, "q": 0}).reset(seed=1)[0]
0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat, SupportsInt

import numpy as np

from tightrope.data.design import absorbing_states
from tightrope.errors import InputError
from tightrope.model.mdp import MDP
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.states import show_state
from tightrope.model.structure import UNLABELLED, Structure
from tightrope.numerics.arrays import BoolArray
from tightrope.shield import Shield

try:
    from gymnasium import Env, Wrapper
    from gymnasium.spaces import Discrete
except ImportError as error:
    raise InputError("Gymnasium is not installed", hint="pip install 'tightrope[gym]'") from error

Info = dict[str, Any]
StateOf = Callable[[object], object]


def _numbers(structure: Structure) -> dict[str, int]:
    """The number of each action."""
    names = [name for name in structure.action_names if name != UNLABELLED]
    return dict(zip(names, range(len(names)), strict=True))


class ModelEnv(Env[int, int]):
    """A model as an environment: observations are state indices, episodes end in absorbing states.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {1: 1}), (0, "wait", {0: 1}), (1, "", {1: 1})])
    >>> env = tr.gym.ModelEnv(model)
    >>> env.reset(seed=1)[0], env.action_masks().tolist(), env.step(0)[:3]
    (0, [True, True], (1, 0.0, True))
    """

    def __init__(self, model: MDP | ParametricMDP, at: Point | None = None, *, reward: str | None = None):
        known = model.instantiate({} if at is None else at) if isinstance(model, ParametricMDP) else model
        if not isinstance(known, MDP):
            raise InputError("an environment needs one probability for every transition", hint="give a point")
        self.structure, self.probability = known.structure, known.probability
        rewards = self.structure.rewards
        if reward is not None and reward not in rewards:
            raise InputError(f"the model has no rewards '{reward}'", hint=f"it has {', '.join(rewards)}")
        earned = rewards.get(next(iter(rewards), "") if reward is None else reward)
        self.earned = np.zeros(known.choices) if earned is None else earned.per_choice(self.structure)
        self.numbers, self.state = _numbers(self.structure), self.structure.initial_states[0]
        self.absorbing = absorbing_states(self.structure)
        self.actions = range(max(len(self.numbers), 1))
        self.observation_space: Any = Discrete(known.states)
        self.action_space: Any = Discrete(len(self.actions))

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
        return np.isin(self.actions, list(self._choices()))

    def state_of(self, observation: int) -> object:
        """The state as shields and policies call it."""
        return show_state(self.structure, int(observation))

    def _choices(self) -> dict[int, int]:
        """The choices of the state by the numbers of their actions."""
        first, last = self.structure.choice_start[self.state : self.state + 2].tolist()
        if last - first == 1:
            return {number: int(first) for number in self.actions}
        return {self.numbers.get(self.structure.action_name(c), 0): c for c in range(first, last)}


class ShieldWrapper(Wrapper[object, SupportsInt, Any, Any]):
    """An environment in which every agent keeps the guaranteed bound of a shield.

    `state_of` turns an observation into a state. A forbidden action is replaced by the fallback, or raises
    (`forbidden="raise"`). `info["shield"]` has the next prices, the slack, the present bound, and the action.
    """

    def __init__(
        self, env: Env[Any, Any], shield: Shield, state_of: StateOf | None = None, forbidden: str = "fallback"
    ):
        super().__init__(env)
        if not isinstance(env.action_space, Discrete):
            raise InputError(f"shields need numbered actions, and this environment has {env.action_space}")
        if forbidden not in ("fallback", "raise"):
            raise InputError(f"`forbidden` is {forbidden!r}, not 'fallback' or 'raise'")
        self.shield, self.forbidden, self.numbers = shield.fresh(), forbidden, _numbers(shield.table.base)
        own: StateOf = getattr(env.unwrapped, "state_of", lambda observation: observation)
        self.state_of, self.actions = state_of or own, range(int(env.action_space.n))
        if len(self.numbers) > len(self.actions):
            raise InputError(f"the model has {len(self.numbers)} actions, not {len(self.actions)}")
        self.state, self.allowed = object(), dict[int, str | int]()

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[object, Info]:
        """Begin an episode with the whole slack."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.shield.start()
        return observation, self._arrive(observation, info)

    def step(self, action: SupportsInt) -> tuple[object, SupportsFloat, bool, bool, Info]:
        """Take an action that the shield allows, or what replaces it."""
        number = int(action)
        if number not in self.allowed and self.forbidden == "fallback":
            name = self.shield.fallback(self.state)
            number = self._number(name)
        else:
            name = self.allowed.get(number, dict(enumerate(self.numbers)).get(number, number))
        self.shield.take(self.state, name)
        observation, reward, ends, stops, info = self.env.step(number)
        facts = {"taken": number, "replaced": number != int(action)}
        return observation, reward, ends, stops, self._arrive(observation, info, **facts)

    def action_masks(self) -> BoolArray:
        """Which actions the shield allows, as MaskablePPO of sb3-contrib asks for them."""
        return np.isin(self.actions, list(self.allowed))

    def _number(self, name: str | int) -> int:
        return self.numbers.get(str(name), name if isinstance(name, int) else 0)

    def _arrive(self, observation: object, info: Info, **facts: object) -> Info:
        self.state = self.state_of(observation)
        prices = self.shield.allowed(self.state)
        self.allowed = {self._number(name): name for name in prices}
        if UNLABELLED in prices:
            self.allowed = dict.fromkeys(self.actions, UNLABELLED)
        facts["prices"] = {number: prices[name] for number, name in self.allowed.items()}
        facts |= {"slack": self.shield.slack, "promise": self.shield.promise}
        return {**info, "shield": facts}
