"""Counts from a running Gymnasium environment, and from recorded Minari datasets.

Both are optional: `pip install 'tightrope[gym]'` and `'tightrope[minari]'`. An environment is stepped under
a policy fixed in advance, so its design is `TRAJECTORIES`; a recorded dataset does not say how its actions
were chosen and is `ADAPTIVE`. An episode that is truncated has not terminated: the transitions seen are
counted, and none is added for its end.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tightrope.data.batches import BatchAccumulator, batch_ends
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.observations import ConvertObservation, ObservationMap
from tightrope.data.reading import Model
from tightrope.data.simulator import DEFAULT_CAP
from tightrope.data.state_form import StateForm
from tightrope.data.stopping import absorbing_states, can_repeat_choice
from tightrope.errors import InputError
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.numerics.arrays import BoolArray, OffsetArray


def load_named(spec: str, option: str) -> Callable[..., Any]:
    """The function that `module:name` names; modules of the current directory are found too."""
    module_name, colon, name = spec.partition(":")
    if not colon or not module_name or not name:
        raise InputError(
            f"{option} {spec!r} is not of the form module:name", hint="such as my_envs:make_rover"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module_name)
        for part in name.split("."):
            value = getattr(value, part)
    except ImportError as error:
        raise InputError(f"{option} {spec}: cannot import {module_name}: {error}") from error
    except AttributeError as error:
        raise InputError(f"{option} {spec}: module {module_name} has no {name}") from error
    if not callable(value):
        raise InputError(f"{option} {spec}: {name} cannot be called")
    loaded: Callable[..., Any] = value
    return loaded


def make_environment(spec: str) -> Any:
    """The Gymnasium environment that the factory `module:name` makes."""
    gymnasium = _optional("gymnasium", "gym", "Gymnasium environments")
    environment = load_named(spec, "`env`")()
    if not isinstance(environment, gymnasium.Env):
        kind = type(environment).__name__
        raise InputError(f"`env` {spec}: the factory made a {kind}, not a gymnasium.Env")
    return environment


class SteppedEnvironment:
    """An environment seen through a model: its episodes as transitions of the model.

    `environment` is a `gymnasium.Env`. An episode ends when the environment says so, in the states of
    `stop`, in the model's absorbing states, or after `cap` steps.
    """

    def __init__(
        self,
        environment: Any,
        model: Model,
        stop: BoolArray | None = None,
        cap: int = DEFAULT_CAP,
        convert_obs: ConvertObservation | None = None,
        actions: Sequence[str] | None = None,
        states: StateForm | str | None = None,
    ):
        absorbing = absorbing_states(model.structure)
        self.stopping: BoolArray = absorbing if stop is None else absorbing | stop
        self.cap = cap
        self._environment = environment
        self._shown = ObservationMap(model.structure, convert_obs, actions, states)

    def episode(self, number: int, choose: Callable[[int, int], int], seed: int | None = None) -> OffsetArray:
        """One episode: `choose` gives the choice in a state at a step; `seed` is for the environment."""
        environment, shown = self._environment, self._shown
        observation, _ = environment.reset(seed=seed)
        state = shown.state(observation, f"episode {number}, start")
        seen: list[int] = []
        ended = False
        while not ended and not self.stopping[state] and len(seen) < self.cap:
            where = f"episode {number}, step {len(seen)}"
            choice = choose(state, len(seen))
            observation, _, terminated, truncated, _ = environment.step(shown.environment_action(choice))
            state = shown.state(observation, where)
            seen.append(shown.transition(choice, state, where))
            ended = bool(terminated or truncated)
        return np.array(seen, dtype=np.int64)


def count_environment(
    environment: Any,
    model: Model,
    episodes: int,
    seed: int,
    *,
    policy: PolicyGiven | None = None,
    stop: BoolArray | None = None,
    cap: int = DEFAULT_CAP,
    convert_obs: ConvertObservation | None = None,
    actions: Sequence[str] | None = None,
    states: StateForm | str | None = None,
) -> Counts:
    """Step an environment for a number of episodes and count the model's transitions.

    When an episode ends: `SteppedEnvironment`. What an observation means, and `states`: `observations`.
    """
    structure = model.structure
    stepped = SteppedEnvironment(environment, model, stop, cap, convert_obs, actions, states)
    taken = as_policy(model, policy) or Policy.uniform(structure)
    # A child of the seed: environments seed numpy's generator with the number itself, and a policy that
    # draws the same numbers as the environment would choose by the outcome.
    random = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])

    def choose(state: int, step: int) -> int:
        return taken.draw(state, step, random)

    accumulator = BatchAccumulator(structure.transitions)
    steps = 0
    for episode in range(episodes):
        seen = stepped.episode(episode, choose, seed if episode == 0 else None)
        accumulator.add(seen, np.full(len(seen), episode, dtype=np.int64))
        steps += len(seen)
    repeats = can_repeat_choice(structure, stepped.stopping, cap)
    design = SamplingDesign(SamplingKind.TRAJECTORIES, episodes, steps, repeats, planned=episodes)
    batches = accumulator.finish(len(batch_ends(episodes)))
    return Counts.from_batches(batches, structure.transition_start, design, model.hash())


def load_minari(name: str) -> Any:
    """A Minari dataset that is on this machine, by its name."""
    minari = _optional("minari", "minari", "Minari datasets")
    try:
        return minari.load_dataset(name)
    except (FileNotFoundError, ValueError) as error:
        raise InputError(f"cannot load the Minari dataset '{name}': {error}") from error


def count_minari(
    dataset: Any,
    model: Model,
    *,
    convert_obs: ConvertObservation | None = None,
    actions: Sequence[str] | None = None,
    states: StateForm | str | None = None,
) -> Counts:
    """Count the transitions of a Minari dataset (anything with `iterate_episodes`)."""
    structure = model.structure
    shown = ObservationMap(structure, convert_obs, actions, states)
    shown.conversion = "convert_obs (count_minari in Python)"
    accumulator = BatchAccumulator(structure.transitions)
    steps = episodes = 0
    for record in dataset.iterate_episodes():
        visited = [
            shown.state(_entry(record.observations, i), f"episode {episodes}, observation {i}")
            for i in range(len(record.actions) + 1)
        ]
        seen = np.empty(len(record.actions), dtype=np.int64)
        for i, action in enumerate(record.actions):
            where = f"episode {episodes}, step {i}"
            seen[i] = shown.transition(shown.choice(visited[i], action, where), visited[i + 1], where)
        accumulator.add(seen, np.arange(steps, steps + len(seen), dtype=np.int64))
        steps += len(seen)
        episodes += 1
    design = SamplingDesign(SamplingKind.ADAPTIVE, episodes, steps)
    return Counts.from_batches(accumulator.finish(), structure.transition_start, design, model.hash())


def _entry(observations: Any, i: int) -> Any:
    """The i-th observation; Minari keeps dictionary observations as a dictionary of arrays."""
    if isinstance(observations, dict):
        return {name: _entry(values, i) for name, values in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_entry(values, i) for values in observations)
    return observations[i]


def _optional(module: str, extra: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{what} need the package '{module}', which is not installed",
            hint=f"pip install 'tightrope[{extra}]'",
        ) from error
