"""Counting past one machine: a Dask scheduler's address and client, and the parts of a log on its workers.

`--engine local` is this machine, `--engine dask` starts workers on it, and `--engine dask --scheduler
HOST:PORT` (or `--engine dask://HOST:PORT`) uses the workers of a scheduler that is already running. Whether
a scheduler answers at an address is looked at first, because Dask's client would wait long, or for ever: a
scheduler greets whoever connects.

A part of a log is counted by whichever worker is free (`tightrope.data.partial_counts`); the partial counts
are joined here in the order of the log, so the result does not depend on which worker did what, on how many
there are, or on one that dies: Dask counts its parts again elsewhere. Workers open files by the same
addresses, so files lie where all of them can read. Batches are cut at numbers of rows, so a part must know
how many rows stand before it: Parquet says so; text files are first counted for their rows alone.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

from tightrope.data.partial_counts import Partial, Watch, count_part
from tightrope.data.read_plan import Part, ReadPlan
from tightrope.errors import CannotCertify, InputError, check_type
from tightrope.io.table.data_table import DataTable
from tightrope.late import dataclass

LOCAL, DASK = "local", "dask"
ANSWER_SECONDS = 3.0
"""How long a machine may take to answer at all."""

CONNECT_SECONDS = 10
"""How long a scheduler may take to greet, and its first worker to be there."""

INSTALL = "install the extra: pip install 'tightrope[distributed]'"
ENGINES = (
    'there are local, dask (workers on this machine), and dask with `scheduler="HOST:PORT"`, or '
    "dask://HOST:PORT (a running scheduler)"
)
_HOST_PORT = re.compile(r"(?:tcp://|dask://)?([^/:\s]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})/?")


@dataclass(frozen=True)
class Place:
    """Where work runs: `kind` is local or dask; without an `address` Dask's workers start on this machine."""

    kind: str = LOCAL
    address: str | None = None


def parse_place(engine: str, scheduler: str | None = None) -> Place:
    """What `engine` and `scheduler` say.

    >>> parse_place("dask", "cluster.example:8786")
    Place(kind='dask', address='tcp://cluster.example:8786')
    """
    check_type("engine", engine, str, "the name of an engine")
    if engine not in (LOCAL, DASK):
        if not engine.startswith("dask://") or (address := _address(engine)) is None:
            raise InputError(f"`engine`: '{engine}' is not an engine", hint=ENGINES)
        if scheduler is not None:
            raise InputError(f'`scheduler="{scheduler}"` and `engine="{engine}"` each name a scheduler')
        return Place(DASK, address)
    if scheduler is None:
        return Place(engine)
    if engine != DASK:
        raise InputError(
            '`scheduler` goes with `engine="dask"`', hint=f'`engine="dask"` `scheduler="{scheduler}"`'
        )
    if (address := _address(scheduler)) is None:
        raise InputError(
            f"`scheduler`: '{scheduler}' is not the address of a scheduler",
            hint="it is HOST:PORT, such as cluster.example:8786",
        )
    return Place(DASK, address)


def _address(text: str) -> str | None:
    match = _HOST_PORT.fullmatch(text)
    return f"tcp://{match[1]}:{match[2]}" if match and 0 < int(match[2]) < 1 << 16 else None


@contextmanager
def connect(place: Place, workers: int) -> Iterator[Any]:
    """A client of the scheduler, with at least one worker; where it has no address, `workers` start here."""
    distributed = require("distributed")
    if place.address is None:
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    require_answer(place.address)
    try:
        client = distributed.Client(place.address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {place.address}: {error}",
            hint="something else may be listening there; 'dask scheduler' prints its address",
        ) from None
    with _quiet(), client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise InputError(
                f"the Dask scheduler at {place.address} has no workers",
                hint=f"start some: dask worker {place.address} --nthreads 1",
            ) from None
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's client from logging tracebacks about a scheduler that goes away: we say so ourselves."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def require_answer(address: str) -> None:
    """Refuse an address at which nobody greets as a scheduler does."""
    match = _HOST_PORT.fullmatch(address)
    assert match is not None
    try:
        with socket.create_connection((match[1].strip("[]"), int(match[2])), ANSWER_SECONDS) as connection:
            connection.settimeout(CONNECT_SECONDS)
            reason = None if connection.recv(1) else "it hangs up"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason is not None:
        raise InputError(
            f"no Dask scheduler answers at {address}: {reason}",
            hint="is it running, and is this its address? 'dask scheduler' starts one and prints it",
        )


def require(package: str) -> Any:
    """A package of the extra `distributed`."""
    try:
        return import_module(package)
    except ImportError:
        raise InputError(f"this needs the package {package}", hint=INSTALL) from None


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
