"""Counting on the workers of a Dask cluster: the same map and the same sum as on one machine.

A part of a log is counted by whichever worker is free (`tightrope.data.counting`); the partial counts are
joined here in the order of the log, so the result does not depend on which worker did what, on how many
there are, or on one that dies: Dask counts its parts again elsewhere. Workers open files by the same
addresses, so files lie where all of them can read: on a shared file system or in an object store.

Batches are cut at numbers of rows, so a part must know how many rows stand before it. Parquet says so; text
files are first counted for their rows alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tightrope.data.cluster import LOCAL, Place, connect
from tightrope.data.counting import Watch, count_part
from tightrope.data.partial import Partial
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.errors import CannotCertify, InputError
from tightrope.io.table.data_table import DataTable


@dataclass(frozen=True)
class DaskCounting:
    """Counts parts on the workers of a client."""

    client: Any

    def partials(self, plan: ReadPlan, watch: Watch) -> Iterator[Partial]:
        """The partial counts of all parts, in their order."""
        sent = replace(plan, tables=tuple(_anywhere(table) for table in plan.tables), counting=None)
        shared = self.client.scatter(sent, broadcast=True, hash=False)
        parts = plan.parts()
        first = self._first_rows(shared, parts)
        tasks = [
            self.client.submit(count_part, shared, part, before, pure=False)
            for part, before in zip(parts, first, strict=True)
        ]
        for number, task in enumerate(tasks):
            partial: Partial = _result(task)
            tasks[number] = None  # lets the worker forget it
            watch(partial.rows, _bytes(plan.tables[parts[number].table], partial.rows))
            yield partial

    def _first_rows(self, shared: Any, parts: Sequence[Part]) -> list[int]:
        """How many rows of the log stand before each part."""
        counted = [
            part.rows if part.rows is not None else self.client.submit(count_rows, shared, part, pure=False)
            for part in parts
        ]
        first, total = [], 0
        for rows in counted:
            first.append(total)
            total += rows if isinstance(rows, int) else _result(rows)
        return first


@contextmanager
def counting_at(place: Place) -> Iterator[DaskCounting | None]:
    """What counts at a place, as long as the block lasts; None for this process."""
    if place.kind == LOCAL:
        yield None
        return
    with connect(place, os.cpu_count() or 1) as client:
        yield DaskCounting(client)


def count_rows(plan: ReadPlan, part: Part) -> int:
    """How many rows a part has, those that cannot be read included."""
    table, columns = plan.tables[part.table], plan.columns[part.table]
    ragged: list[None] = []
    skips = plan.skip and not columns.from_next_row
    chunks = table.chunks(columns.names[:1], (lambda: ragged.append(None)) if skips else None, part.groups)
    return sum(chunk.rows for chunk in chunks) + len(ragged)


def _result(task: Any) -> Any:
    from distributed import CancelledError, KilledWorker

    try:
        return task.result()
    except KilledWorker as error:
        raise CannotCertify(
            f"the workers that counted a part of the log died, one after the other: {error}. "
            "They may need more memory."
        ) from None
    except CancelledError:
        raise CannotCertify("the Dask scheduler went away while the log was counted") from None
    except InputError as error:
        if not error.message.startswith("the file cannot be read"):
            raise
        shared = "workers open files by the same path: put them on a shared file system or in an object store"
        raise InputError(f"on a worker: {error.message}", error.location, shared) from None
    except (RuntimeError, ImportError, AttributeError) as error:  # Dask's words for code that is not there
        raise InputError(
            f"the Dask cluster cannot run what it is sent: {str(error).splitlines()[0]}",
            hint="its scheduler and workers need the same tightrope, and the same Python, as this machine",
        ) from error


def _anywhere(table: DataTable) -> DataTable:
    """The table by an address that does not depend on where a process runs."""
    file = getattr(table, "file", None)
    if file is None or file.is_remote:
        return table
    opened: Any = table
    moved: DataTable = replace(opened, file=replace(file, path=os.path.abspath(file.path)))
    return moved


def _bytes(table: DataTable, rows: int) -> int:
    """About how many bytes so many rows of a table take."""
    if table.bytes is None:
        return 0
    total = sum(table.group_rows) if table.group_rows else rows
    return table.bytes * rows // max(total, 1)
