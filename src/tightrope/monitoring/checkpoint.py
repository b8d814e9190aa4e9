"""A monitor on disk: what it has learned, and which rows it has read.

The file takes the place of the one before in one step, so that a process that is killed at any moment leaves
a whole one; started again, the monitor goes on after the rows that the file knows and comes to the same
evidence.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.formats.atomic import atomic_write_bytes
from tightrope.monitoring.monitor import Monitor
from tightrope.monitoring.promise import PromiseWatch

FORMAT = "tightrope monitor 3"


def save_monitor(
    path: Path, monitor: Monitor, read: Mapping[str, int], promise: PromiseWatch | None = None
) -> None:
    """Write what a monitor knows, and a watch on returns; `read` are the rows seen of each file."""
    head = {"format": FORMAT, "model": monitor.model.hash(), "alpha": monitor.alpha, "read": dict(read)}
    with atomic_write_bytes(path) as file:
        state = {**monitor.state(), **({} if promise is None else promise.state())}
        np.savez(file, head=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8), **state)


def load_monitor(path: Path, monitor: Monitor, promise: PromiseWatch | None = None) -> dict[str, int]:
    """Let a fresh monitor, and a watch on returns, go on from a file; the rows read of each file."""
    place = Location(str(path))
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            head = json.loads(file["head"].tobytes())
            state = {name: file[name] for name in file.files if name != "head"}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError("this is no checkpoint of a monitor", place, "name another file") from error
    if head.get("format") != FORMAT:
        raise InputError("this is no checkpoint of a monitor", place, "name another file")
    for name, mine in (("model", monitor.model.hash()), ("alpha", monitor.alpha)):
        if head[name] != mine:
            raise InputError(
                f"the checkpoint is of another {name}: {head[name]}, not {mine}",
                place,
                "watch with the same model, constants, domain and alpha, or name another file",
            )
    if promise is not None:
        promise.restore(state)
    elif "returns_promise" in state:
        raise InputError("the checkpoint is of a watch on returns as well", place, "give the same --result")
    monitor.restore(state)
    return {str(file): int(rows) for file, rows in head["read"].items()}
