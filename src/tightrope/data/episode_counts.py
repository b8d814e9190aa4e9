"""Counts from episodes in Python: any iterable of lists of steps (state, action, next state)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tightrope.data.accumulator import BatchAccumulator
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.read_options import ReadOptions
from tightrope.data.recent import Kept
from tightrope.data.recent_events import RecentEvents
from tightrope.data.state_form import StateForm, StateNames
from tightrope.data.steps import StepReader
from tightrope.errors import InputError
from tightrope.model.structure import Structure


def count_episodes(
    episodes: Any, structure: Structure, model_hash: str, asked: ReadOptions
) -> tuple[Counts, Kept | None]:
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
    for number, episode in enumerate(episodes, start=1):
        found = reader.transitions(episode, f"episode {number - 1}")
        accumulator.add(found, np.arange(steps, steps + len(found), dtype=np.int64))
        steps += len(found)
        if recent is not None:
            recent.add(found)
    if number == 0:
        raise InputError("there are no episodes: the iterable is empty")
    design = SamplingDesign(SamplingKind.ADAPTIVE, number, steps)
    whole = Counts.from_batches(accumulator.finish(), structure.transition_start, design, model_hash)
    return (whole, None) if recent is None else recent.finish(whole)
