"""The counts of a table of counts: one row per counted transition, with a batch number or without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.data.column_names import BATCH, COUNT
from tightrope.data.counts import Counts
from tightrope.data.design import ENDS, ORDER, SamplingDesign, SamplingKind
from tightrope.data.follow import no_notes
from tightrope.data.intake import Intake
from tightrope.data.log_counts import LogCounts, ReadProgress, describe_missing, explain
from tightrope.data.read_options import COMPLETE, ReadOptions
from tightrope.data.read_plan import ReadPlan
from tightrope.errors import InputError, Location
from tightrope.io.table.columns import whole_numbers
from tightrope.io.table.data_table import DataTable
from tightrope.io.table.problems import Problem, mark
from tightrope.numerics.arrays import OffsetArray
from tightrope.verdict import Assumed, Kept

LARGEST_TOTAL = 2.0**62
"""Counts must not add up to more than an int64 holds."""

MOST_BATCHES = 1 << 20
"""More batches than any file of ours has."""


def count_table(
    plan: ReadPlan, stated: SamplingDesign | None, asked: ReadOptions, watch: ReadProgress
) -> LogCounts:
    """Add up one table; batch numbers order the batches in time."""
    try:
        found = _count_table(plan, watch)
        return replace(found, order=_order(plan, asked), ends=_ends(plan, found, asked))
    except InputError as error:
        raise explain(plan, error) from error.__cause__


def _count_table(plan: ReadPlan, watch: ReadProgress) -> LogCounts:
    table, columns, decoder = plan.tables[0], plan.columns[0], plan.decoder(0)
    intake = Intake(table, decoder, plan.skip)
    parts: list[tuple[OffsetArray, OffsetArray, OffsetArray]] = []
    total = 0.0
    read = 0
    for chunk in table.chunks(columns.names, intake.ragged if plan.skip else None):
        rows = decoder.decode(chunk)
        intake.rows += chunk.rows
        count = whole_numbers(
            chunk.columns[columns.roles[COUNT]], columns.roles[COUNT], table.path, rows.problems
        )
        mark(rows.problems, count < 0, Problem.NEGATIVE_COUNT)
        batch = np.zeros(chunk.rows, dtype=np.int64)
        if BATCH in columns.roles:
            name = columns.roles[BATCH]
            batch = whole_numbers(chunk.columns[name], name, table.path, rows.problems)
            mark(rows.problems, batch < 0, Problem.NEGATIVE_BATCH)
        transition = plan.index.transitions(rows.state, rows.taken, rows.next_state, rows.problems)
        kept = intake.admit(rows, chunk)
        parts.append((transition[kept], count[kept], batch[kept]))
        total += float(parts[-1][1].astype(np.float64).sum())
        watch.add(chunk.rows, max(0, chunk.bytes_read - read))
        read = chunk.bytes_read
    if total > LARGEST_TOTAL:
        raise InputError(f"the counts add up to {total:.3g}, which is more than 2^62", Location(table.path))
    transition, count, batch = (_join([part[i] for part in parts]) for i in range(3))
    batched = BATCH in columns.roles
    counts = Counts.from_table(
        transition,
        count,
        plan.structure.transition_start,
        SamplingDesign(SamplingKind.ADAPTIVE),
        "",
        batch if batched else None,
        batches=_read_stated_batches(table, batch) if batched else None,
    )
    missing = describe_missing(intake.dropped, no_notes(), 0)
    return LogCounts(counts.transition, counts.batches, intake.rows, intake.dropped, None, missing)


def _order(plan: ReadPlan, asked: ReadOptions) -> Assumed:
    if BATCH not in plan.columns[0].roles:
        return Assumed(ORDER, Kept.UNKNOWN, "a table of counts without a column batch has no order")
    if asked.order is not None:
        return Assumed(ORDER, Kept.STATED, f"--order {asked.order}: batches are numbered as they came")
    return Assumed(ORDER, Kept.STATED, "the column batch numbers batches in the order in which they came")


def _ends(plan: ReadPlan, found: LogCounts, asked: ReadOptions) -> Assumed:
    if plan.absorbing[plan.structure.successor[found.count > 0]].all():
        return Assumed(ENDS, Kept.YES, "what is counted leads to states that nothing leaves")
    if asked.ends == COMPLETE:
        return Assumed(ENDS, Kept.STATED, "--ends complete: what is counted is all that was seen")
    why = "a table of counts does not say how episodes ended; --ends complete states that it counts all rows"
    return Assumed(ENDS, Kept.UNKNOWN, why)


def _join(parts: list[OffsetArray]) -> OffsetArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _read_stated_batches(table: DataTable, batch: OffsetArray) -> int | None:
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
