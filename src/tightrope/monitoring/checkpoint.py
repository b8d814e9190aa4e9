"""A monitor on disk: what it has learned, and which rows it has read.

The file takes the place of the one before in one step, so that a process that is killed at any moment leaves
a whole one; started again, the monitor goes on after the rows that the file knows and comes to the same
evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tightrope.errors import InputError, Location
from tightrope.io.stored_arrays import DAMAGE, load_arrays, save_arrays
from tightrope.monitoring.monitor import Monitor
from tightrope.monitoring.promise import PromiseWatch

FORMAT = "tightrope monitor 3"


def save_monitor(
    path: Path, monitor: Monitor, read: Mapping[str, int], promise: PromiseWatch | None = None
) -> None:
    """Write what a monitor knows, and a watch on returns; `read` are the rows seen of each file."""
    head = {"format": FORMAT, "model": monitor.model.hash(), "alpha": monitor.alpha, "read": dict(read)}
    save_arrays(path, head, {**monitor.state(), **({} if promise is None else promise.state())})


def load_monitor(path: Path, monitor: Monitor, promise: PromiseWatch | None = None) -> dict[str, int]:
    """Let a fresh monitor, and a watch on returns, go on from a file; the rows read of each file."""
    place, known = Location(str(path)), "name another file"
    try:
        head, state = load_arrays(path)
    except DAMAGE as error:
        raise InputError("this is no checkpoint of a monitor", place, known) from error
    if head.get("format") != FORMAT or not head.keys() >= {"model", "alpha", "read"}:
        raise InputError("this is no checkpoint of a monitor", place, known)
    for name, mine in (("model", monitor.model.hash()), ("alpha", monitor.alpha)):
        if head[name] != mine:
            raise InputError(
                f"the checkpoint is of another {name}: {head[name]}, not {mine}",
                place,
                "watch with the same model, constants, domain and alpha, or name another file",
            )
    if promise is None and "returns_promise" in state:
        raise InputError("the checkpoint is of a watch on returns as well", place, "give the same --result")
    try:
        if promise is not None:
            promise.restore(state)
        monitor.restore(state)
        read = {str(file): int(rows) for file, rows in head["read"].items()}
        if any(rows < 0 for rows in read.values()):
            raise ValueError("a file of which less than nothing was read")
    except InputError as error:
        raise InputError(error.message, place, error.hint or known) from error
    except DAMAGE as error:
        raise InputError("the checkpoint is damaged: it does not fit its model", place, known) from error
    return read
