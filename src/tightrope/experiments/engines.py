"""Where cells run: on this machine, or on the workers of a Dask cluster; through joblib either way.

Every cell is a process of its own wherever it runs (`isolation`), so the local engine needs threads only to
wait for them. Records come back one by one as cells end, in any order. When a Dask worker dies its cells die
with it and Dask runs them again elsewhere; only the coordinating process writes records, so none is lost or
doubled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tightrope.errors import InputError
from tightrope.experiments.cells import Cell, CellLimits
from tightrope.experiments.isolation import run_cell
from tightrope.experiments.records import Record

LOCAL, DASK = "local", "dask"
CONNECT_SECONDS = 20
INSTALL = "install the extra: pip install 'tightrope[distributed]'"


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

    def run(self, cells: Sequence[Cell], limits: CellLimits, directory: str) -> Iterator[Record]:
        """The records of the cells, in the order in which they end."""
        joblib = _require("joblib")
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
            yield from work(tasks)

    @contextmanager
    def _backend(self, joblib: Any) -> Iterator[int]:
        if self.kind == LOCAL:
            with joblib.parallel_config(backend="threading"):
                yield self.parallel
            return
        distributed = _require("distributed")
        with (
            _client(distributed, self) as client,
            joblib.parallel_config(backend=_cluster_backend(client)),
        ):
            yield -1


def parse_engine(text: str, jobs: int | None = None) -> Engine:
    """`local`, `dask`, or `dask://HOST:PORT` for a scheduler that is already running."""
    if text in (LOCAL, DASK):
        return Engine(text, None, jobs)
    match = re.fullmatch(r"dask://([^/:\s]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})/?", text)
    if match is None or not 0 < int(match[2]) < 1 << 16:
        raise InputError(
            f"--engine: '{text}' is not an engine",
            hint="there are local, dask (workers on this machine) and dask://HOST:PORT (a running scheduler)",
        )
    if jobs is not None:
        raise InputError(
            "--jobs does not go with a running scheduler: its workers decide how many cells run at once"
        )
    return Engine(DASK, f"tcp://{match[1]}:{match[2]}")


def _cluster_backend(client: Any) -> Any:
    """joblib's Dask backend, but never for one job: joblib would run that here instead of on the worker."""
    backend = import_module("joblib._dask").DaskDistributedBackend

    def effective_n_jobs(self: Any, n_jobs: int) -> int:
        return max(2, int(backend.effective_n_jobs(self, n_jobs)))

    return type("ClusterBackend", (backend,), {"effective_n_jobs": effective_n_jobs})(client=client)


@contextmanager
def _client(distributed: Any, engine: Engine) -> Iterator[Any]:
    if engine.address is not None:
        try:
            client = distributed.Client(engine.address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise InputError(f"no Dask scheduler answers at {engine.address}: {error}") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            except TimeoutError:
                raise InputError(
                    f"the Dask scheduler at {engine.address} has no workers",
                    hint=f"start some: dask worker {engine.address} --nthreads 1",
                ) from None
            yield client
        return
    with (
        distributed.LocalCluster(
            n_workers=engine.parallel, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _require(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise InputError(f"campaigns need the package {package}", hint=INSTALL) from None
