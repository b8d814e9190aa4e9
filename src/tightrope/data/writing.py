"""Counts and trajectories as data files that `tightrope.data.reading` reads back to the same counts.

| file | columns |
|---|---|
| counts | `batch, state, choice, action, next_state, count`: one row per batch and seen transition |
| transitions | `episode, step, state, choice, action, next_state`: one row per step; `cost` where asked for |

States are given by index, or by the model's variables (`x, y, …` and `x_next, y_next, …`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from tightrope.data import columns as col
from tightrope.data.columns import StateForm
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.simulator import Trajectories
from tightrope.errors import InputError
from tightrope.io.table.data_table import COUNTS, TRANSITIONS, Metadata, structure_hash, write_table
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import AnyArray, OffsetArray

BATCHING = "episodes"
"""How the simulator's batches are cut; written into the metadata."""

NOTHING = np.empty(0, dtype=np.int64)
"""Rows that begin a file: they say what its columns are."""


def write_counts(
    path: str | Path,
    counts: Counts,
    structure: Structure,
    *,
    states: StateForm = StateForm.INDEX,
    extra: Metadata | None = None,
) -> None:
    """Write a table of counts; `extra` is kept in the metadata beside the design and the model's hash."""
    form = _RowWriter(structure, states)
    metadata = {**_metadata(COUNTS, counts.model_hash, counts.design, structure), **(extra or {})}
    if counts.batches is not None:
        metadata["batches"] = len(counts.batches)
    numbered = enumerate(chain([(NOTHING, NOTHING)], counts.in_batches), start=-1)
    chunks = (
        {
            **({} if counts.batches is None else {col.BATCH: np.full(len(count), number)}),
            **form.columns(transition),
            col.COUNT: count,
        }
        for number, (transition, count) in numbered
    )
    write_table(path, chunks, metadata, form.names)


def write_trajectories(
    path: str | Path,
    blocks: Iterable[Trajectories],
    counts: Counts,
    structure: Structure,
    *,
    states: StateForm = StateForm.INDEX,
    extra: Metadata | None = None,
    costs: Callable[[OffsetArray], AnyArray] | None = None,
) -> None:
    """Write recorded steps; `counts` are the counts of the same episodes, whose design the file carries.

    `costs` gives the cost of each step, in their order, where there shall be a column for it.
    """
    form = _RowWriter(structure, states)
    if costs is not None and col.COST in form.columns(NOTHING):
        raise InputError(
            f"the model has a variable '{col.COST}', which is what the column of costs is called"
        )
    own = _metadata(TRANSITIONS, counts.model_hash, counts.design, structure)
    metadata = {**own, "batching": BATCHING, **(extra or {})}
    chunks = (
        {
            col.EPISODE: block.episode,
            col.STEP: block.step,
            **form.columns(block.transition),
            **({} if costs is None else {col.COST: costs(block.transition)}),
        }
        for block in chain([Trajectories(NOTHING, NOTHING, NOTHING)], blocks)
    )
    write_table(path, chunks, metadata, form.names)


def write_log(path: str | Path, log: EpisodeLog, structure: Structure, design: SamplingDesign) -> None:
    """Write the rows of a log in their order, with the columns that it has; states by the model's variables
    where these can be columns, else by index."""
    by_index = not structure.valuations or _clash(structure)
    form = _RowWriter(structure, StateForm.INDEX if by_index else StateForm.VARIABLES)
    step = np.zeros(len(log), np.int64)
    for row, before in enumerate(log.previous.tolist()):
        step[row] = step[before] + 1 if before >= 0 else 0
    columns: dict[str, AnyArray] = {
        col.EPISODE: log.episode,
        col.STEP: step,
        **form.columns(log.transition.astype(np.int64)),
    }
    if log.time is not None:
        columns[col.TIME] = log.time
    names = dict(form.names)
    for name, column in log.columns.items():
        if name not in columns:
            names[name] = (*column.labels, "")
            columns[name] = np.where(column.code < 0, len(column.labels), column.code)
    own = replace(design, episodes=log.episodes, steps=len(log))
    write_table(path, [columns], _metadata(TRANSITIONS, log.model_hash, own, structure), names)


def _metadata(rows: str, model: str, design: SamplingDesign, structure: Structure) -> dict[str, object]:
    own = structure_hash(structure)
    return {"rows": rows, "model": model, "structure": own, "design": design.to_json()}


def _clash(structure: Structure) -> list[str]:
    """The variables that are called like other columns."""
    columns = (*structure.valuations, *col.RESERVED)
    return [name for name in structure.valuations if name in col.RESERVED or name + col.NEXT in columns]


class _RowWriter:
    """The columns that say which transition a row is."""

    def __init__(self, structure: Structure, states: StateForm):
        self.structure = structure
        self.states = states
        self.names = {col.ACTION: structure.action_names}
        variables = tuple(structure.valuations)
        if states is StateForm.VARIABLES:
            if not variables:
                raise InputError("the model has no variables: states can be written by index only")
            if clash := _clash(structure):
                raise InputError(
                    f"the model's variable '{clash[0]}' clashes with a column's name: write states by index"
                )

    def columns(self, transition: OffsetArray) -> dict[str, AnyArray]:
        structure = self.structure
        choice = structure.transition_choice[transition]
        state = structure.choice_state[choice]
        next_state = structure.successor[transition]
        local = choice - structure.choice_start[state]
        action = structure.action_of_choice[choice]
        if self.states is StateForm.INDEX:
            return {col.STATE: state, col.CHOICE: local, col.ACTION: action, col.NEXT_STATE: next_state}
        before = {name: column[state] for name, column in structure.valuations.items()}
        after = {name + col.NEXT: column[next_state] for name, column in structure.valuations.items()}
        return {**before, col.CHOICE: local, col.ACTION: action, **after}
