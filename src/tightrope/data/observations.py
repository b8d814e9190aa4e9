"""From what an environment shows to states and choices of the model.

An observation is one of the model's own states, where the model was built in Python from such
(`tightrope.model.structure`), or the values of the model's variables: a mapping by name, or a sequence in
the order of their declaration. Anything else goes through `convert_obs` first, which must return
one of these.

A bare number is not taken for the model's internal number of a state: environments number their states in
their own way, and a wrong reading would look as good as the right one. Whoever means the internal number says
`states="index"`.

An environment's action number k stands for the k-th of `actions`, by default the model's action names in
their order (the unlabelled one left out).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tightrope.data.locate import ModelIndex
from tightrope.data.state_form import StateForm, state_form
from tightrope.errors import InputError
from tightrope.model.structure import UNLABELLED, Structure, plain

ConvertObservation = Callable[[Any], Any]


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
        self.form = state_form(states)
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

    def state(self, observation: Any, where: str) -> int:
        """The state that an observation shows; `where` goes into the error when it shows none."""
        shown = plain(self.convert_obs(observation) if self.convert_obs is not None else observation)
        own = self.structure.own_states
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
                    f"{where}: the observation {shown!r} is none of the model's own states: {own.listing()}",
                    hint=f"turn observations into states with {self.conversion}",
                )
        return self._by_variables(shown, where)

    def _gives_variables(self, shown: Any) -> bool:
        """Whether an observation that is no own state may still be the values of variables."""
        own = self.structure.own_states
        if not self.structure.valuations or own is None:
            return False
        return isinstance(shown, Mapping) or (isinstance(shown, tuple) and not own.has_sequences)

    def _by_index(self, shown: Any, where: str) -> int:
        states = self.structure.states
        if isinstance(shown, tuple) and len(shown) == 1:
            shown = shown[0]
        if _is_whole(shown) and 0 <= int(shown) < states:
            return int(shown)
        raise InputError(f"{where}: the observation {shown!r} is no state's index; they are 0..{states - 1}")

    def _by_variables(self, shown: Any, where: str) -> int:
        names = tuple(self.structure.valuations)
        if _is_whole(shown):
            variables = f" Its variables go by name or as a sequence: ({', '.join(names)})" if names else ""
            raise InputError(
                f"{where}: the observation {shown} does not say which state it is: the model numbers its "
                f"states in its own order, and an environment in another.{variables}",
                hint='where it is the model\'s index of the state, say `states="index"`; '
                f"else turn it into a state with {self.conversion}",
            )
        if isinstance(shown, Mapping):
            values: list[Any] = [shown.get(name) for name in names]
        elif isinstance(shown, Sequence) and len(shown) == len(names):
            values = list(shown)
        else:
            values = []
        if not names or not values or not all(_is_whole(value) for value in values):
            wanted = f"whole numbers for the variables {', '.join(names)}" if names else "a state"
            raise InputError(
                f"{where}: the observation {shown!r} does not give {wanted}",
                hint=f"turn observations into states with {self.conversion}",
            )
        columns = {name: np.array([int(value)]) for name, value in zip(names, values, strict=True)}
        state = int(self.index.state_index.states(columns)[0])
        if state < 0:
            text = ",".join(f"{name}={int(value)}" for name, value in zip(names, values, strict=True))
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

    def choice(self, state: int, action: Any, where: str) -> int:
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
        found = np.flatnonzero(structure.successor[first:last] == next_state)
        if len(found):
            return first + int(found[0])
        raise InputError(
            f"{where}: the model has no transition of {structure.choice_name(choice)} to state "
            f"{structure.state_name(next_state)}",
            hint="data that the model excludes are evidence of a wrong model, not of noise",
        )


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return True
    return isinstance(value, float | np.floating) and float(value).is_integer()
