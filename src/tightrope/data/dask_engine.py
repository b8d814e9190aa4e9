"""Dask: a scheduler's client, and the parts of a log on its workers.

An address is tried first, because Dask's client would wait for ever: a scheduler greets whoever connects.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tightrope.data.engines import CONNECT_SECONDS, Place, require, require_answer, seen_by_worker
from tightrope.data.read_plan import Part, ReadPlan, State, Work
from tightrope.errors import CannotCertify, InputError


@dataclass(frozen=True)
class DaskEngine:
    """Reads parts on the workers of a client."""

    client: Any

    def run(self, work: Work[State], plan: ReadPlan, parts: Sequence[Part]) -> Iterator[State]:
        shared = self.client.scatter(plan, broadcast=True, hash=False)
        tasks = [self.client.submit(work, shared, part, pure=False) for part in parts]
        for number, task in enumerate(tasks):
            state: State = _result(task.result)
            tasks[number] = None  # lets the worker forget it
            yield state


@contextmanager
def opened(place: Place) -> Iterator[DaskEngine]:
    """The engine of a scheduler."""
    with connect(place, os.cpu_count() or 1) as client:
        yield DaskEngine(client)


@contextmanager
def connect(place: Place, workers: int) -> Iterator[Any]:
    """A client of the scheduler, with at least one worker; where it has no address, `workers` start here."""
    distributed = require("distributed")
    if place.address is None:
        own = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with (
            distributed.LocalCluster(**own) as here,
            distributed.Client(here, set_as_default=False) as client,
        ):
            yield client
        return
    require_scheduler(place.address)
    try:
        client = distributed.Client(place.address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {place.address}: {error}",
            hint="something else may be listening there; 'dask scheduler' prints its address",
        ) from None
    logger = logging.getLogger("distributed.client")  # its tracebacks of a lost scheduler are not shown
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with client:
            try:
                client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            except TimeoutError:
                hint = f"start some: dask worker {place.address} --nthreads 1"
                raise InputError(f"the Dask scheduler at {place.address} has no workers", hint=hint) from None
            yield client
    finally:
        logger.setLevel(level)


def require_scheduler(address: str) -> None:
    """Refuse an address at which no scheduler greets."""
    require_answer(address, "Dask scheduler", "'dask scheduler'", greets=True)


def _result(result: Callable[[], State]) -> State:
    distributed = require("distributed")
    try:
        return result()
    except distributed.KilledWorker as error:
        raise CannotCertify(
            f"the workers that counted a part of the log died, one after the other: {error}. "
            "They may need more memory."
        ) from None
    except distributed.CancelledError:
        raise CannotCertify("the Dask scheduler went away while the log was counted") from None
    except InputError as error:
        raise seen_by_worker(error) from None
    except (RuntimeError, ImportError, AttributeError) as error:  # Dask's words for code that is not there
        raise InputError(
            f"the Dask cluster cannot run what it is sent: {str(error).splitlines()[0]}",
            hint="its scheduler and workers need the same tightrope, and the same Python, as this machine",
        ) from error
