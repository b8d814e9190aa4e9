"""What counting makes of the events of a log: counts in batches, costs, and which rows were counted."""

from __future__ import annotations

from typing import Any

from tightrope.data.columns import COST
from tightrope.data.costs import CostTally
from tightrope.data.counts import BatchCounter
from tightrope.data.fold import EventBatch, Fold, Observer, Watch, fold_part
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.provenance import RowTally


class CountTally:
    """Counts per transition in batches, exact sums of costs, and the rows of every table."""

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan
        self.counter = BatchCounter(plan.structure.transitions)
        self.costs = CostTally() if COST in plan.columns[0].roles else None
        self.rows = [RowTally() for _ in plan.tables]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plan": None}

    def update(self, batch: EventBatch) -> None:
        batch = batch.counted
        if not len(batch):
            return
        self.counter.add(batch.transition, batch.batch)
        if self.costs is not None:
            self.costs.add(batch.transition, batch.cost)
        first = int(batch.table[0])
        if (batch.table == first).all():
            self._see(batch, first)
            return
        for table in range(int(batch.table.min()), int(batch.table.max()) + 1):
            self._see(batch[batch.table == table], table)

    def _see(self, batch: EventBatch, table: int) -> None:
        self.plan.see(self.rows[table], batch.rows, batch.transition, table, batch.since_start)

    def merge(self, later: CountTally) -> None:
        self.counter.merge(later.counter)
        if self.costs is not None and later.costs is not None:
            self.costs.merge(later.costs.sums())
        for mine, others in zip(self.rows, later.rows, strict=True):
            mine.merge(others)

    def finish(self) -> None:
        """Nothing waits here."""


def observers_of(plan: ReadPlan, is_later: bool, by_name: bool) -> tuple[Observer, ...]:
    """What takes the events of a log, or of a part with rows before it: counts first."""
    is_ordered = plan.boundaries is None and not by_name
    return CountTally(plan), *(make(is_later, is_ordered) for make in plan.observers)


def count_part(plan: ReadPlan, part: Part, watch: Watch | None = None, by_name: bool = False) -> Fold:
    """Count one part."""
    observers = observers_of(plan, True, by_name)
    return fold_part(
        Fold(plan, observers, by_name=by_name, first=part.first or 0, is_first=False), part, watch
    )
