"""One episode as people write it down: steps (state, action, next state), for many steps the same model.

A state is one of the model's own states, or its variables' values (a mapping by name, or a sequence in the
model's order), or its index where `states="index"` says so. An
action is its name, or the number of the choice within its state (`tightrope.model.find_state`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightrope.data.observations import ObservationMap
from tightrope.data.state_form import StateForm
from tightrope.errors import InputError, describe
from tightrope.model.find_state import find_choice
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray


class StepReader:
    """Finds the transitions of steps; built once for a structure."""

    def __init__(self, structure: Structure, states: StateForm | str | None = None):
        self.structure = structure
        self._shown = ObservationMap(structure, states=states)

    def transitions(self, episode: Sequence[Any] | OffsetArray, name: str) -> OffsetArray:
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
            found = steps.astype(np.int64)
        else:
            found = np.array([self._transition(step, f"{name}, step {i}") for i, step in enumerate(episode)])
        self._check(found, name)
        return found

    def _transition(self, step: Any, where: str) -> int:
        try:
            state_shown, action, next_shown = step
        except (TypeError, ValueError):
            raise InputError(
                f"{where}: {step!r} is no step",
                hint="a step is (state, action, next state); an episode may also list transitions by index",
            ) from None
        state = self._shown.state(state_shown, where)
        choice = find_choice(self.structure, state, action, where)
        return self._shown.transition(choice, self._shown.state(next_shown, where), where)

    def _check(self, found: OffsetArray, name: str) -> None:
        """Each step begins where the one before ended, the first in the initial state."""
        structure = self.structure
        wrong = np.flatnonzero((found < 0) | (found >= structure.transitions))
        if len(wrong):
            raise InputError(
                f"{name}, step {wrong[0]}: there is no transition {found[wrong[0]]}; "
                f"they are 0..{structure.transitions - 1}"
            )
        source = structure.choice_state[structure.transition_choice[found]]
        before = np.r_[structure.initial, structure.successor[found[:-1]]]
        wrong = np.flatnonzero(source != before)
        if len(wrong):
            step = int(wrong[0])
            raise InputError(
                f"{name}, step {step} begins in state {structure.state_name(int(source[step]))}, "
                f"but the state was {structure.state_name(int(before[step]))}"
            )
