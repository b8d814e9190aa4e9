"""Work past one machine: the address of a Dask scheduler, and a client of it, or a refusal within seconds.

`--engine local` is this machine, `--engine dask` starts workers on it, and `--engine dask --scheduler
HOST:PORT` (or `--engine dask://HOST:PORT`) uses the workers of a scheduler that is already running. Whether
a scheduler answers at an address is looked at first, because Dask's client would wait long, or for ever: a
scheduler greets whoever connects.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tightrope.errors import InputError, check_type

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
