"""Where cells run: on this machine, or on the workers of a Dask cluster; through joblib either way.

Every cell is a process wherever it runs (`isolation`), so the local engine needs threads only to
wait for them. Records come back one by one as cells end, in any order. When a Dask worker dies its cells die
with it and Dask runs them again elsewhere; only the coordinating process writes records, so none is lost or
doubled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tightrope.benchmarks.cells import Cell, CellLimits
from tightrope.benchmarks.isolation import run_cell
from tightrope.benchmarks.records import Record
from tightrope.data.cluster import LOCAL, Place, connect, parse_place, require, require_answer
from tightrope.errors import CannotCertify, InputError


@dataclass(frozen=True)
class Engine:
    """`kind` is local or dask; a Dask engine without an address starts workers on this machine."""

    kind: str
    address: str | None = None
    jobs: int | None = None
    command: tuple[str, ...] | None = None
    """What runs a cell, where it is not `cell_process`."""

    @property
    def parallel(self) -> int:
        """Cells at once on this machine: one for two cores, for times should be undisturbed."""
        return self.jobs if self.jobs is not None else max(1, len(os.sched_getaffinity(0)) // 2)

    def require_answer(self) -> None:
        """Refuse a scheduler that is not there."""
        if self.address is not None:
            require_answer(self.address)

    def run(self, cells: Sequence[Cell], limits: CellLimits, directory: str) -> Iterator[Record]:
        """The records of the cells, in the order in which they end."""
        joblib = require("joblib")
        if not cells:
            return
        with self._backend(joblib) as jobs:
            work = joblib.Parallel(
                n_jobs=jobs,
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch="2*n_jobs" if self.kind == LOCAL else "all",  # workers may join later
            )
            tasks = (joblib.delayed(run_cell)(cell, limits, directory, self.command) for cell in cells)
            with _explain_lost_scheduler():
                yield from work(tasks)

    @contextmanager
    def _backend(self, joblib: Any) -> Iterator[int]:
        if self.kind == LOCAL:
            with joblib.parallel_config(backend="threading"):
                yield self.parallel
            return
        with (
            connect(Place(self.kind, self.address), self.parallel) as client,
            joblib.parallel_config(backend=_cluster_backend(client)),
        ):
            yield -1


@contextmanager
def _explain_lost_scheduler() -> Iterator[None]:
    """Say in our words that the scheduler of a cluster went away."""
    try:
        yield
    except Exception as error:
        if "scheduler-connection-lost" not in str(error):
            raise
        raise CannotCertify(
            "the Dask scheduler went away; the records so far are kept, and the same command goes on"
        ) from None


def parse_engine(text: str, jobs: int | None = None, scheduler: str | None = None) -> Engine:
    """`local`, `dask`, or `dask` with the address of a scheduler that is already running."""
    place = parse_place(text, scheduler)
    if place.address is not None and jobs is not None:
        raise InputError(
            "--jobs does not go with a running scheduler: its workers decide how many cells run at once"
        )
    return Engine(place.kind, place.address, jobs)


def _cluster_backend(client: Any) -> Any:
    """joblib's Dask backend, but never for one job: joblib would run that here instead of on the worker."""
    backend = import_module("joblib._dask").DaskDistributedBackend

    def effective_n_jobs(self: Any, n_jobs: int) -> int:
        return max(2, int(backend.effective_n_jobs(self, n_jobs)))

    return type("ClusterBackend", (backend,), {"effective_n_jobs": effective_n_jobs})(client=client)
