"""Counts from a data file, streamed: whatever the file's size, memory holds one chunk of it.

`read_counts` takes CSV and Parquet files with one row a transition, or with one row a counted
transition. The columns are described in `tightrope.data.row_columns`.

Files that `tightrope sample` has written say how they were sampled and for which model; what they say is
checked against what they hold. Any other file counts as `ADAPTIVE` (see `tightrope.data.design`), unless the
caller knows better. Rows of such a file are batched by their number, which no outcome can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from tightrope.data.accumulator import BatchAccumulator
from tightrope.data.batches import batch_ends
from tightrope.data.chain import ChainCheck
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.intake import Intake
from tightrope.data.locate import ModelIndex
from tightrope.data.row_columns import BATCH, COUNT, STEP, RowColumns, find_columns
from tightrope.errors import InputError, Location
from tightrope.formats.data_columns import whole_numbers
from tightrope.formats.data_metadata import Metadata, structure_hash
from tightrope.formats.data_problems import Problem, ProblemCodes, mark
from tightrope.formats.data_table import DataTable, open_table
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray

LARGEST_TOTAL = 2.0**62
"""Counts must not add up to more than an int64 holds."""

MOST_BATCHES = 1 << 20
"""More batches than any file of ours has."""


class Model(Protocol):
    """Any model: parametric, interval or plain."""

    @property
    def structure(self) -> Structure: ...

    def hash(self) -> str: ...


@dataclass(frozen=True)
class Reading:
    """Counts, the number of rows they come from, and how many rows were dropped for which reason."""

    counts: Counts
    rows: int
    dropped: Mapping[str, int]
    metadata: Metadata | None


def read_counts(
    path: str | Path, model: Model, *, skip_invalid: bool = False, design: SamplingDesign | None = None
) -> Reading:
    """Read a data file for a model.

    A row that the model cannot explain is an `InputError` naming file, row and values; with `skip_invalid`
    it is dropped and counted in `Reading.dropped`. `design` overrides what the file says about its sampling.
    """
    table = open_table(path)
    structure = model.structure
    columns = find_columns(table, structure)
    if table.metadata is not None and columns.by_index:
        _check_structure(table, structure)
    index = ModelIndex(structure)
    read = _read_table if COUNT in table.columns else _read_rows
    counts, intake = read(table, columns, index, model.hash(), skip_invalid)
    if intake.rows == 0 and not intake.dropped and table.metadata is None:
        raise InputError("the file has a header but no rows", Location(table.path))
    counts = _with_design(counts, table, intake, design)
    return Reading(counts, intake.rows, dict(intake.dropped), table.metadata)


def _read_rows(
    table: DataTable, columns: RowColumns, index: ModelIndex, model_hash: str, skip: bool
) -> tuple[Counts, Intake]:
    """One row a transition."""
    structure = index.structure
    chain = ChainCheck(table)
    numbers = (STEP,) if chain.has_steps else ()
    intake = Intake(table, columns, structure, numbers, skip, chain)
    by_episodes = (table.metadata or {}).get("batching") == "episodes" and chain.has_episodes
    accumulator = BatchAccumulator(structure.transitions)
    for chunk in table.chunks((*columns.names, *chain.names), intake.ragged if skip else None):
        problems: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        state, taken, next_state = columns.decode(chunk, index, table.path, problems)
        transition = index.transitions(state, taken, next_state, problems)
        episode = chain.check(chunk, state, next_state, problems)
        position = episode if by_episodes else np.arange(chunk.rows, dtype=np.int64) + (chunk.first_row - 1)
        kept = intake.admit(chunk, problems, state, next_state)
        if kept is not None:
            transition, position = transition[kept], position[kept]
        accumulator.add(transition, position)
    design = _stated_design(table)
    batches = accumulator.finish(_batches_of_episodes(design) if by_episodes else None)
    steps = int(batches.count.sum())
    if design is None:
        episodes = chain.episodes if chain.follows_episodes else None
        design = SamplingDesign(SamplingKind.ADAPTIVE, episodes, steps)
    return Counts.from_batches(batches, structure.transition_start, design, model_hash), intake


def _read_table(
    table: DataTable, columns: RowColumns, index: ModelIndex, model_hash: str, skip: bool
) -> tuple[Counts, Intake]:
    """One row a counted transition, with a batch number or without."""
    structure = index.structure
    batched = BATCH in table.columns
    numbers = (COUNT, BATCH) if batched else (COUNT,)
    intake = Intake(table, columns, structure, numbers, skip)
    parts: list[tuple[OffsetArray, OffsetArray, OffsetArray]] = []
    total = 0.0
    for chunk in table.chunks((*columns.names, *numbers), intake.ragged if skip else None):
        problems: ProblemCodes = np.zeros(chunk.rows, dtype=np.int8)
        count = whole_numbers(chunk.columns[COUNT], COUNT, table.path, problems)
        mark(problems, count < 0, Problem.NEGATIVE_COUNT)
        batch = np.zeros(chunk.rows, dtype=np.int64)
        if batched:
            batch = whole_numbers(chunk.columns[BATCH], BATCH, table.path, problems)
            mark(problems, batch < 0, Problem.NEGATIVE_BATCH)
        state, taken, next_state = columns.decode(chunk, index, table.path, problems)
        transition = index.transitions(state, taken, next_state, problems)
        kept = intake.admit(chunk, problems, state, next_state)
        part = (transition, count, batch)
        parts.append(part if kept is None else (transition[kept], count[kept], batch[kept]))
        total += float(parts[-1][1].astype(np.float64).sum())
    if total > LARGEST_TOTAL:
        raise InputError(f"the counts add up to {total:.3g}, which is more than 2^62", Location(table.path))
    transition, count, batch = (_joined([part[i] for part in parts]) for i in range(3))
    design = _stated_design(table) or SamplingDesign(SamplingKind.ADAPTIVE, None, int(count.sum()))
    counts = Counts.from_table(
        transition,
        count,
        structure.transition_start,
        design,
        model_hash,
        batch if batched else None,
        batches=_stated_batches(table, batch) if batched else None,
    )
    return counts, intake


def _joined(parts: list[OffsetArray]) -> OffsetArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _with_design(counts: Counts, table: DataTable, intake: Intake, design: SamplingDesign | None) -> Counts:
    """The counts under the design that holds for them, after checking the file against its own word."""
    stated = _stated_design(table)
    if stated is not None and not intake.dropped and counts.steps != stated.steps:
        raise InputError(
            f"the file was written with {stated.steps} steps, but holds {counts.steps}",
            Location(table.path),
            "it was cut off or edited after it was written",
        )
    held = counts.design
    if intake.dropped:
        held = SamplingDesign(SamplingKind.ADAPTIVE, held.episodes, counts.steps)
    if design is not None:
        held = design
    return Counts(counts.transition, counts.transition_start, held, counts.model_hash, counts.batches)


def _check_structure(table: DataTable, structure: Structure) -> None:
    """States by index mean something only for the model they were numbered in."""
    written_for = (table.metadata or {}).get("structure")
    if written_for is not None and written_for != structure_hash(structure):
        source = (table.metadata or {}).get("source")
        raise InputError(
            "the file was sampled from a different model" + (f" ({source})" if source else ""),
            Location(table.path),
            "use the same model and constants, or sample with states given by variables",
        )


def _stated_design(table: DataTable) -> SamplingDesign | None:
    fields = (table.metadata or {}).get("design")
    if not isinstance(fields, dict):
        return None
    try:
        return SamplingDesign.from_json(fields)
    except InputError as error:
        raise InputError(error.message, Location(table.path), error.hint) from None


def _batches_of_episodes(design: SamplingDesign | None) -> int | None:
    return len(batch_ends(design.episodes)) if design is not None and design.episodes is not None else None


def _stated_batches(table: DataTable, batch: OffsetArray) -> int | None:
    """How many batches the file says it has; the numbers in it must lie below."""
    stated = (table.metadata or {}).get("batches")
    if stated is None:
        return None
    if not isinstance(stated, int) or not int(batch.max(initial=-1)) < stated <= MOST_BATCHES:
        raise InputError(
            f"the file's metadata speak of {stated} batches, its rows of number {batch.max(initial=-1)}",
            Location(table.path),
        )
    return stated
