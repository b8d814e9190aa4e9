"""Steps in Python: episodes as people write them down, running environments and recorded datasets.

A step is (state, action, next state). A state, or an observation of an environment, is one of the model's own
states, where the model was built in Python from such, or the values of the model's variables: a mapping by
name, or a sequence in the order of their declaration. A bare number is not taken for the model's internal
number of a state, unless the user says `states="index"`: environments number states in their own way.

An action is its name, or the number of the choice within its state; an environment's action number k stands
for the k-th of `actions`, by default the model's action names in their order.

Episodes in an iterable are taken to be whole and to stand in the order in which they happened. A Gymnasium
environment is stepped under a policy fixed in advance, so its design is `TRAJECTORIES`; a recorded Minari
dataset does not say how its actions were chosen and is `ADAPTIVE`. Of a truncated episode the transitions
seen are counted.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsInt, TypedDict, TypeGuard, Unpack

import numpy as np

from tightrope.data.columns import StateForm, StateNames, form_of
from tightrope.data.counts import Counts
from tightrope.data.design import (
    ENDS,
    ORDER,
    SamplingDesign,
    SamplingKind,
    absorbing_states,
    can_repeat_choice,
)
from tightrope.data.episode_log import EpisodeLog, KeptEvents, recent_counts
from tightrope.data.model_index import ModelIndex
from tightrope.data.read_options import LogReadOptions
from tightrope.data.simulator import DEFAULT_CAP
from tightrope.errors import InputError, describe
from tightrope.io.table.frames import load_minari as load_minari
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.states import find_choice
from tightrope.model.structure import UNLABELLED, Structure, Structured, plain
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.verdict import Assumed


def count_episodes(
    episodes: object, model: Structured, options: LogReadOptions
) -> tuple[Counts, KeptEvents | None]:
    """One batch position per step, in the order in which the episodes come; and what is kept of them."""
    if not isinstance(episodes, Iterable) or isinstance(episodes, str | bytes):
        raise InputError(
            f"data of the type {type(episodes).__name__} cannot be read",
            hint="give paths or patterns, a table (pandas, polars, pyarrow) or an iterable of episodes",
        )
    if options.columns or options.maps or options.skip_invalid:
        raise InputError("columns, maps and skip_invalid are for files and tables, not for episodes")
    form = {StateNames.INDEX: StateForm.INDEX, StateNames.VARIABLES: StateForm.VARIABLES}
    names = options.state_names
    reader = ObservationMap(model.structure, states=None if names is None else form.get(names))
    parts = [reader.transitions(episode, f"episode {number}") for number, episode in enumerate(episodes)]
    if not parts:
        raise InputError("there are no episodes: the iterable is empty")
    log = EpisodeLog.of_parts(parts, model.structure, model.hash())
    design = SamplingDesign(
        SamplingKind.ADAPTIVE,
        by_episodes=options.counts_episodes,
        order=Assumed.stated(ORDER, "episodes are given in the order in which they happened"),
        ends=Assumed.stated(ENDS, "episodes are given whole: no step is missing at their ends"),
    )
    whole = log.counts(model, design)
    return (whole, None) if options.recent is None else recent_counts(log, options.recent, whole, model)


ConvertObservation = Callable[[Any], object]


class SeenWords(TypedDict, total=False):
    """What observations and actions of an environment mean."""

    convert_obs: ConvertObservation | None
    actions: Sequence[str] | None
    states: StateForm | str | None


class ObservationMap:
    """The states and choices of one model, as one environment calls them."""

    def __init__(
        self,
        structure: Structure,
        convert_obs: ConvertObservation | None = None,
        actions: Sequence[str] | None = None,
        states: StateForm | str | None = None,
    ):
        self.structure = structure
        self.conversion = "`convert_obs`"
        """How users say what an observation means, for messages."""
        self.form = form_of(states, StateForm)
        self.index = ModelIndex(structure)
        self.convert_obs = convert_obs
        names = [name for name in structure.action_names if name != UNLABELLED]
        self.actions = tuple(actions) if actions is not None else tuple(names)
        unknown = [name for name in self.actions if name not in structure.action_names]
        if unknown:
            raise InputError(
                f"the model has no action '{unknown[0]}'",
                hint=f"its actions are {', '.join(names) or 'unnamed'}",
            )
        self._number = {name: number for number, name in enumerate(self.actions)}

    def state(self, observation: object, where: str) -> int:
        """The state that an observation shows; `where` goes into the error when it shows none."""
        shown = plain(self.convert_obs(observation) if self.convert_obs is not None else observation)
        own = self.structure.state_names
        if self.form is StateForm.INDEX:
            return self._by_index(shown, where)
        if own is not None and self.form is None:
            state = own.find(shown)
            if state < 0 and not self.structure.valuations and isinstance(shown, tuple) and len(shown) == 1:
                state = own.find(shown[0])
            if state >= 0:
                return state
            if not self._gives_variables(shown):
                raise InputError(
                    f"{where}: the observation {shown!r} is none of the model's named states: "
                    f"{own.listing()}",
                    hint=f"turn observations into states with {self.conversion}",
                )
        return self._by_variables(shown, where)

    def _gives_variables(self, shown: object) -> bool:
        """Whether an observation that is no own state may still be the values of variables."""
        own = self.structure.state_names
        if not self.structure.valuations or own is None:
            return False
        return isinstance(shown, Mapping) or (isinstance(shown, tuple) and not own.has_sequences)

    def _by_index(self, shown: object, where: str) -> int:
        states = self.structure.states
        if isinstance(shown, tuple) and len(shown) == 1:
            shown = shown[0]
        if _is_whole(shown) and 0 <= int(shown) < states:
            return int(shown)
        raise InputError(
            f"{where}: the observation {shown!r} is not a state's index; they are 0..{states - 1}"
        )

    def _by_variables(self, shown: object, where: str) -> int:
        names = tuple(self.structure.valuations)
        if _is_whole(shown):
            variables = f" Its variables go by name or as a sequence: ({', '.join(names)})" if names else ""
            raise InputError(
                f"{where}: the observation {shown} does not say which state it is: the model numbers its "
                f"states in its own order, and an environment in another.{variables}",
                hint='where it is the model\'s index of the state, say `states="index"`; '
                f"else turn it into a state with {self.conversion}",
            )
        values: list[object] = [shown.get(name) for name in names] if isinstance(shown, Mapping) else []
        if isinstance(shown, Sequence) and len(shown) == len(names):
            values = list(shown)
        whole = [int(value) for value in values if _is_whole(value)]
        if not names or len(whole) < len(names):
            wanted = f"whole numbers for the variables {', '.join(names)}" if names else "a state"
            raise InputError(
                f"{where}: the observation {shown!r} does not give {wanted}",
                hint=f"turn observations into states with {self.conversion}",
            )
        columns = {name: np.array([value]) for name, value in zip(names, whole, strict=True)}
        state = int(self.index.state_index.states(columns)[0])
        if state < 0:
            text = ",".join(f"{name}={value}" for name, value in zip(names, whole, strict=True))
            raise InputError(f"{where}: ({text}) is not a reachable state of the model")
        return state

    def environment_action(self, choice: int) -> int:
        """The number under which the environment knows a choice's action."""
        name = self.structure.action_name(choice)
        if name not in self._number:
            raise InputError(
                f"the environment has no number for {self.structure.choice_name(choice)}",
                hint='list the names of its actions in order with `actions="up,down,…"`',
            )
        return self._number[name]

    def choice(self, state: int, action: object, where: str) -> int:
        """The choice that an environment's action number takes in a state."""
        structure = self.structure
        first, last = int(structure.choice_start[state]), int(structure.choice_start[state + 1])
        if not _is_whole(action) or not 0 <= int(action) < max(len(self.actions), 1):
            raise InputError(f"{where}: the action {action} is none of 0..{len(self.actions) - 1}")
        if not self.actions and last - first == 1:
            return first
        name = self.actions[int(action)] if self.actions else UNLABELLED
        matching = [c for c in range(first, last) if structure.action_name(c) == name]
        if len(matching) == 1:
            return matching[0]
        problem = "is not enabled in" if not matching else "is ambiguous in"
        raise InputError(f"{where}: the action '{name}' {problem} state {structure.state_name(state)}")

    def transition(self, choice: int, next_state: int, where: str) -> int:
        """The transition that leads from a choice to a state."""
        structure = self.structure
        first, last = int(structure.transition_start[choice]), int(structure.transition_start[choice + 1])
        places = np.flatnonzero(structure.successor[first:last] == next_state)
        if len(places):
            return first + int(places[0])
        raise InputError(
            f"{where}: the model has no transition of {structure.choice_name(choice)} to state "
            f"{structure.state_name(next_state)}",
            hint="data that the model excludes are evidence of a wrong model; they are not noise",
        )

    def transitions(self, episode: Sequence[object] | OffsetArray, name: str) -> OffsetArray:
        """The transitions of an episode, which may also give these by their index; `name` is for errors."""
        if not isinstance(episode, Sequence | np.ndarray):
            raise InputError(
                f"{name} is {describe(episode)}, not a sequence of steps",
                hint="a step is (state, action, next state)",
            )
        if len(episode) == 0:
            return np.empty(0, dtype=np.int64)
        steps = np.asarray(episode) if not isinstance(episode[0], Sequence) else None
        if steps is not None and steps.ndim == 1 and np.issubdtype(steps.dtype, np.integer):
            transition = steps.astype(np.int64)
        else:
            each = (self._transition_of(step, f"{name}, step {i}") for i, step in enumerate(episode))
            transition = np.array(list(each))
        if self.structure.draws_start:
            transition = self._with_start(transition, name)
        self._check(transition, name)
        return transition

    def _with_start(self, transition: OffsetArray, name: str) -> OffsetArray:
        """The draw of the first state before an episode that does not show it."""
        structure = self.structure
        if not 0 <= int(transition[0]) < structure.transitions:
            return transition
        first = int(structure.choice_state[structure.transition_choice[int(transition[0])]])
        if first == structure.initial:
            return transition
        draw = self.transition(int(structure.choice_start[structure.initial]), first, f"{name}, start")
        return np.concatenate([np.array([draw], dtype=np.int64), transition])

    def _transition_of(self, step: Any, where: str) -> int:
        try:
            state_shown, action, next_shown = step
        except (TypeError, ValueError):
            raise InputError(
                f"{where}: {step!r} is not a step",
                hint="a step is (state, action, next state); an episode may also list transitions by index",
            ) from None
        state = self.state(state_shown, where)
        choice = find_choice(self.structure, state, action, where)
        return self.transition(choice, self.state(next_shown, where), where)

    def _check(self, transition: OffsetArray, name: str) -> None:
        """Each step begins where the one before ended, the first in the initial state."""
        structure = self.structure
        wrong = np.flatnonzero((transition < 0) | (transition >= structure.transitions))
        if len(wrong):
            raise InputError(
                f"{name}, step {wrong[0]}: there is no transition {transition[wrong[0]]}; "
                f"they are 0..{structure.transitions - 1}"
            )
        source = structure.choice_state[structure.transition_choice[transition]]
        before = np.r_[structure.initial, structure.successor[transition[:-1]]]
        wrong = np.flatnonzero(source != before)
        if len(wrong):
            step = int(wrong[0])
            raise InputError(
                f"{name}, step {step} begins in state {structure.state_name(int(source[step]))}, "
                f"but the state was {structure.state_name(int(before[step]))}"
            )


def _is_whole(value: object) -> TypeGuard[SupportsInt]:
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return True
    return isinstance(value, float | np.floating) and float(value).is_integer()


def load_named(spec: str, option: str) -> Callable[..., object]:
    """The function that `module:name` names; modules of the current directory are found too."""
    module_name, colon, name = spec.partition(":")
    if not colon or not module_name or not name:
        raise InputError(
            f"{option} {spec!r} is not of the form module:name", hint="such as my_envs:make_rover"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: object = importlib.import_module(module_name)
        for part in name.split("."):
            value = getattr(value, part)
    except ImportError as error:
        raise InputError(f"{option} {spec}: cannot import {module_name}: {error}") from error
    except AttributeError as error:
        raise InputError(f"{option} {spec}: module {module_name} has no {name}") from error
    if not callable(value):
        raise InputError(f"{option} {spec}: {name} cannot be called")
    return value


def make_environment(spec: str) -> Any:
    """The Gymnasium environment that the factory `module:name` makes."""
    try:
        gymnasium = importlib.import_module("gymnasium")
    except ImportError as error:
        raise InputError(
            "Gymnasium environments need the package 'gymnasium', which is not installed",
            hint="pip install 'tightrope[gym]'",
        ) from error
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
        model: Structured,
        stop: BoolArray | None = None,
        cap: int = DEFAULT_CAP,
        **seen: Unpack[SeenWords],
    ):
        absorbing = absorbing_states(model.structure)
        self.stopping: BoolArray = absorbing if stop is None else absorbing | stop
        self.cap = cap
        self._environment = environment
        self._shown = ObservationMap(model.structure, **seen)

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
    model: Structured,
    episodes: int,
    seed: int,
    *,
    policy: PolicyGiven | None = None,
    stop: BoolArray | None = None,
    cap: int = DEFAULT_CAP,
    **seen: Unpack[SeenWords],
) -> Counts:
    """Step an environment for a number of episodes and count the model's transitions.

    When an episode ends: `SteppedEnvironment`. What an observation means, and `states`: `observations`.
    """
    structure = model.structure
    stepped = SteppedEnvironment(environment, model, stop, cap, **seen)
    own_policy = as_policy(model, policy) or Policy.uniform(structure)
    # A child of the seed: environments seed numpy's generator with the number itself, and a policy that
    # draws the same numbers as the environment would choose by the outcome.
    random = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])

    def choose(state: int, step: int) -> int:
        return own_policy.draw(state, step, random)

    parts = [stepped.episode(number, choose, None if number else seed) for number in range(episodes)]
    repeats = can_repeat_choice(structure, stepped.stopping, cap)
    design = SamplingDesign(SamplingKind.TRAJECTORIES, repeats=repeats, planned=episodes)
    return EpisodeLog.of_parts(parts, structure, model.hash()).counts(model, design)


def count_minari(dataset: Any, model: Structured, **seen: Unpack[SeenWords]) -> Counts:
    """Count the transitions of a Minari dataset (anything with `iterate_episodes`)."""
    structure = model.structure
    shown = ObservationMap(structure, **seen)
    shown.conversion = "convert_obs (count_minari in Python)"
    parts = []
    for episodes, record in enumerate(dataset.iterate_episodes()):
        visited = [
            shown.state(_entry(record.observations, i), f"episode {episodes}, observation {i}")
            for i in range(len(record.actions) + 1)
        ]
        steps = np.empty(len(record.actions), dtype=np.int64)
        for i, action in enumerate(record.actions):
            where = f"episode {episodes}, step {i}"
            steps[i] = shown.transition(shown.choice(visited[i], action, where), visited[i + 1], where)
        parts.append(steps)
    design = SamplingDesign(SamplingKind.ADAPTIVE, by_episodes=False)
    return EpisodeLog.of_parts(parts, structure, model.hash()).counts(model, design)


def _entry(observations: Any, i: int) -> object:
    """The i-th observation; Minari keeps dictionary observations as a dictionary of arrays."""
    if isinstance(observations, dict):
        return {name: _entry(values, i) for name, values in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_entry(values, i) for values in observations)
    return observations[i]
