"""Every cell in its own process, under limits that can only hit that cell.

A watchdog reads the process's memory and the clock some twenty times a second and kills the process (with
whatever it started) when one of them is over its limit. The clock starts anew when building begins; loading
and warming up before that have the same limit for themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tightrope.benchmarks.cell_data import is_prepared
from tightrope.benchmarks.cells import Cell, CellLimits
from tightrope.benchmarks.machine import machine, resident_memory, versions
from tightrope.benchmarks.records import OK, Record, Status

INTERVAL = 0.05
"""Seconds between two looks of the watchdog."""

REFINING = 0.95
"""The part of the time limit after which the solver stops refining and answers with what it has verified."""

FIRST_TIMED_PHASE = "build"
CHILD = (sys.executable, "-m", "tightrope.benchmarks.cell_process")


@dataclass
class _Ending:
    """How a process ended, as far as we know."""

    status: Status = "error"
    message: str | None = None
    phase: str = "start"
    seconds: float = 0.0
    peak_memory: int = 0
    result: dict[str, object] = field(default_factory=dict)


def run_cell(
    cell: Cell, limits: CellLimits, directory: str, command: tuple[str, ...] | None = None
) -> Record:
    """The record of a cell, whatever happens to it. Runs wherever an engine puts it.

    A machine that does not see the campaign's directory makes the shared files for itself. `command` is what
    is run instead of `cell_process`.
    """
    shared = Path(directory)
    if shared.is_dir():
        return _run_within(cell, limits, shared, command or CHILD)
    with tempfile.TemporaryDirectory(prefix="tightrope-") as private:
        return _run_within(cell, limits, Path(private), command or CHILD)


def _run_within(cell: Cell, limits: CellLimits, directory: Path, command: tuple[str, ...]) -> Record:
    ending = _Ending(status=OK)
    if not is_prepared(directory, cell):
        ending = _run_task("prepare", cell, limits, directory, command)
    if ending.status == OK:
        ending = _run_task("measure", cell, limits, directory, command)
    return _record(cell, limits, ending)


def _run_task(
    task: str, cell: Cell, limits: CellLimits, directory: Path, command: tuple[str, ...]
) -> _Ending:
    """Run a task in its own process until it answers, ends or is killed."""
    order = {
        "task": task,
        "instance": cell.instance,
        "method": cell.method,
        "seed": cell.seed,
        "episodes": cell.protocol.episodes,
        "delta": cell.protocol.delta,
        "directory": str(directory),
        "seconds": limits.seconds * REFINING,
        "memory": limits.memory,
    }
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(json.dumps(order).encode())
            ending = _watch(process, limits)
        finally:
            _kill(process)
            if process.stdout is not None:
                process.stdout.close()
        if ending.message is None and ending.status != OK:
            ending.status, ending.message = _explain(process.returncode, errors)
    return ending


def _watch(process: subprocess.Popen[bytes], limits: CellLimits) -> _Ending:
    assert process.stdout is not None
    ending = _Ending()
    begin = time.monotonic()
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            ready = selector.select(INTERVAL)
            if ready:
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    process.wait()
                    break
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    if _hear(ending, json.loads(line)):
                        begin = time.monotonic()
            held = resident_memory(str(process.pid)) or 0
            ending.peak_memory = max(ending.peak_memory, held)
            ending.seconds = time.monotonic() - begin
            if held > limits.memory:
                ending.status, ending.message = "out-of-memory", f"more than {limits.memory >> 20} MiB"
                break
            if ending.seconds > limits.seconds and not ending.result:
                ending.status, ending.message = "time-out", f"more than {limits.seconds:g} s"
                break
    return ending


def _hear(ending: _Ending, line: dict[str, object]) -> bool:
    """Take in a line of the process; whether the clock starts anew with it."""
    if "phase" in line:
        ending.phase = str(line["phase"])
        return ending.phase == FIRST_TIMED_PHASE
    if isinstance(result := line.get("result"), dict):
        ending.status, ending.result = OK, result
    elif (status := line.get("status")) in ("out-of-memory", "refused", "error"):
        ending.status, ending.message = status, str(line["message"])
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started, and collect it."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _explain(code: int, errors: IO[bytes]) -> tuple[Status, str]:
    """A process that ended without a word: the kernel kills with 9 where memory runs out."""
    if code == -signal.SIGKILL:
        return "out-of-memory", "killed by the system"
    if code < 0:
        return "error", f"ended by signal {signal.Signals(-code).name}"
    errors.seek(0)
    last = errors.read().decode("utf-8", "replace").strip().splitlines()
    return "error", f"ended with exit code {code}" + (f": {last[-1][:300]}" if last else "")


def _record(cell: Cell, limits: CellLimits, ending: _Ending) -> Record:
    values = dict(ending.result)
    if ending.status != OK:
        values = {"seconds": {"total": round(ending.seconds, 3)}, "peak_memory": ending.peak_memory}
    message = ending.message
    if message is not None and ending.status in ("time-out", "out-of-memory"):
        message = f"{message} ({ending.phase})"
    return Record(
        cell=cell,
        limits=limits,
        status=ending.status,
        message=message,
        values=values,
        machine=machine(),
        versions=versions(),
    )
