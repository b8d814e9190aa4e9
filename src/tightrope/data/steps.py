"""One episode as people write it down: steps (state, action, next state), for many steps the same model.

A state is one of the model's own states, or its variables' values (a mapping by name, or a sequence in the
model's order), or its index where `states="index"` says so. An action is its name, or the number of the
choice within its state (`tightrope.model.states`). `count_episodes` counts any iterable of such episodes,
which are taken to be whole and to stand in the order in which they happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tightrope.data.batches import BatchAccumulator, batch_ends
from tightrope.data.counts import Counts
from tightrope.data.design import ENDS, ORDER, SamplingDesign, SamplingKind
from tightrope.data.observations import ObservationMap
from tightrope.data.read_options import ReadOptions
from tightrope.data.recent import Kept as KeptEvents
from tightrope.data.recent import RecentEvents
from tightrope.data.state_form import StateForm, StateNames
from tightrope.errors import InputError, describe
from tightrope.model.states import find_choice
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray
from tightrope.verdict import Assumed, Kept


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


def count_episodes(
    episodes: Any, structure: Structure, model_hash: str, asked: ReadOptions
) -> tuple[Counts, KeptEvents | None]:
    """One batch position per step, in the order in which the episodes come; and what is kept of them."""
    if not isinstance(episodes, Iterable) or isinstance(episodes, str | bytes):
        raise InputError(
            f"data of the type {type(episodes).__name__} cannot be read",
            hint="give paths or patterns, a table (pandas, polars, pyarrow) or an iterable of episodes",
        )
    if asked.columns or asked.maps or asked.skip_invalid:
        raise InputError("columns, maps and skip_invalid go with files and tables, not with episodes")
    form = {StateNames.INDEX: StateForm.INDEX, StateNames.VARIABLES: StateForm.VARIABLES}
    names = asked.state_names
    reader = StepReader(structure, None if names is None else form.get(names))
    accumulator = BatchAccumulator(structure.transitions)
    recent = None if asked.recent is None else RecentEvents(asked.recent, structure.transitions)
    number = steps = 0
    stated = asked.stated_design
    kind = stated.kind if isinstance(stated, SamplingDesign) else stated
    by_episodes = asked.planned_episodes is not None or kind is SamplingKind.TRAJECTORIES
    for number, episode in enumerate(episodes, start=1):
        found = reader.transitions(episode, f"episode {number - 1}")
        place = np.full(len(found), number - 1) if by_episodes else np.arange(steps, steps + len(found))
        accumulator.add(found, place.astype(np.int64))
        steps += len(found)
        if recent is not None:
            recent.add(found)
    if number == 0:
        raise InputError("there are no episodes: the iterable is empty")
    design = SamplingDesign(
        SamplingKind.ADAPTIVE,
        number,
        steps,
        by_episodes=by_episodes,
        order=Assumed(ORDER, Kept.STATED, "episodes are given in the order in which they happened"),
        ends=Assumed(ENDS, Kept.STATED, "episodes are given whole: no step is missing at their ends"),
    )
    batches = accumulator.finish(len(batch_ends(number)) if by_episodes else None)
    whole = Counts.from_batches(batches, structure.transition_start, design, model_hash)
    return (whole, None) if recent is None else recent.finish(whole)
