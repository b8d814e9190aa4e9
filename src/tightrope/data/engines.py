"""Where the parts of a log are read: by threads, or by the workers of Dask or Spark.

An engine runs one function over the parts and returns results in the order of the parts, so these do not
depend on the engine or its workers. Workers open files by the same addresses.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from tightrope.errors import InputError, check_type
from tightrope.io.log_words import LOCAL as LOCAL

DASK, SPARK = "dask", "spark"
EXTRAS = {DASK: "distributed", SPARK: "spark"}
ANSWER_SECONDS = 3.0
"""How long a machine may take to answer at all."""

CONNECT_SECONDS = 10
"""How long a scheduler may take to greet, and its first worker to be there."""

ENGINES = (
    "there are local, dask and spark (workers on this machine), and both of these with "
    '`scheduler="HOST:PORT"`, or as dask://HOST:PORT and spark://HOST:PORT (a running scheduler)'
)
_HOST_PORT = re.compile(r"(?:[a-z]+://)?([^/:\s]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})/?")
_MASTER = re.compile(r"local(-cluster)?(\[[\w*, ]+\])?|yarn|(k8s|sc)://\S+")
"""What Spark takes beside the address of a master."""


@dataclass(frozen=True)
class Place:
    """Where work runs: `kind` is the engine; without an `address` its workers start on this machine."""

    kind: str = LOCAL
    address: str | None = None


def parse_place(engine: str, scheduler: str | None = None) -> Place:
    """What `engine` and `scheduler` say.

    >>> parse_place("dask", "cluster.example:8786")
    Place(kind='dask', address='tcp://cluster.example:8786')
    """
    check_type("engine", engine, str, "the name of an engine")
    kind, mark, _ = engine.partition("://")
    if kind not in (LOCAL, *EXTRAS) or (mark and (kind == LOCAL or _address(kind, engine) is None)):
        raise InputError(f"`engine`: '{engine}' is not an engine", hint=ENGINES)
    if mark and scheduler is not None:
        raise InputError(f'`scheduler="{scheduler}"` and `engine="{engine}"` each name a scheduler')
    named = engine if mark else scheduler
    if named is None:
        return Place(kind)
    if kind == LOCAL:
        hint = f'`engine="dask"` `scheduler="{named}"`'
        raise InputError('`scheduler` requires `engine="dask"` or `engine="spark"`', hint=hint)
    if (address := _address(kind, named)) is None:
        raise InputError(
            f"`scheduler`: '{named}' is not the address of a scheduler",
            hint="it is HOST:PORT, such as cluster.example:8786",
        )
    return Place(kind, address)


def _address(kind: str, text: str) -> str | None:
    if kind == SPARK and _MASTER.fullmatch(text):
        return text
    match = _HOST_PORT.fullmatch(text)
    scheme = "tcp" if kind == DASK else kind
    return f"{scheme}://{match[1]}:{match[2]}" if match and 0 < int(match[2]) < 1 << 16 else None


def require_answer(address: str, what: str, start: str, greets: bool) -> None:
    """Refuse an address at which nothing answers; of a scheduler that `greets`, one that stays silent."""
    match = _HOST_PORT.fullmatch(address)
    assert match is not None
    try:
        with socket.create_connection((match[1].strip("[]"), int(match[2])), ANSWER_SECONDS) as connection:
            connection.settimeout(CONNECT_SECONDS)
            reason = None if not greets or connection.recv(1) else "it hangs up"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason is not None:
        raise InputError(
            f"no {what} answers at {address}: {reason}",
            hint=f"is it running, and is this its address? {start} starts one and prints it",
        )


def require(package: str, extra: str = EXTRAS[DASK]) -> ModuleType:
    """A package of an extra."""
    try:
        return import_module(package)
    except ImportError:
        hint = f"install the extra: pip install 'tightrope[{extra}]'"
        raise InputError(f"this needs the package {package}", hint=hint) from None


def seen_by_worker(error: InputError) -> InputError:
    """An error that a worker met, with what to do where it cannot open a file."""
    if not error.message.startswith("the file cannot be read"):
        return error
    shared = "workers open files by the same path: put them on a shared file system or in an object store"
    return InputError(f"on a worker: {error.message}", error.location, shared)
