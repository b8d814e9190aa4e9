"""A real Dask scheduler on loopback with two workers that can be killed, and what is no scheduler."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import distributed


@contextmanager
def started(*arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextmanager
def scheduler(directory: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A scheduler on loopback, and its address."""
    log = directory / "scheduler.log"
    arguments = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with started("distributed.cli.dask_scheduler", *arguments, log=log) as process:
        yield process, _address(log)


@contextmanager
def worker(address: str, directory: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of one thread."""
    scratch = ("--local-directory", str(directory))
    options = (address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *scratch)
    with started("distributed.cli.dask_worker", *options, log=directory / f"{name}.log") as process:
        yield process


class Cluster(NamedTuple):
    """The address of a scheduler, its process, and those of its two workers."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    with (
        scheduler(directory) as (process, address),
        worker(address, directory, "worker1") as first,
        worker(address, directory, "worker2") as second,
    ):
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield Cluster(address, process, [first, second])


def _address(log: Path) -> str:
    for _ in range(600):
        for line in log.read_text().splitlines():
            if "Scheduler at:" in line:
                return line.rpartition("Scheduler at:")[2].strip()
        time.sleep(0.05)
    raise TimeoutError(log.read_text())


@contextmanager
def mute_listener() -> Iterator[int]:
    """A port at which somebody listens and says nothing: no scheduler."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]
