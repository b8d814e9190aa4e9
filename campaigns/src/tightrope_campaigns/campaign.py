"""A campaign: cells, limits, an engine and a directory whose records say what has been done already.

Every cell runs in its own process, under limits that can only hit that cell. A watchdog reads the process's
memory and the clock some twenty times a second and kills the process (with whatever it started) when one of
them is over its limit. The clock starts anew when building begins; loading and warming up before that have
the same limit for themselves.

Cells run on this machine or on the workers of a Dask cluster, through joblib either way. The local engine
needs threads only to wait for processes. Records come back one by one as cells end, in any order. When a
Dask worker dies its cells die with it and Dask runs them again elsewhere. Only the coordinating process
writes, so no record is lost or doubled, and an interrupted campaign goes on with the cells that have no
record. Learning curves run in local processes, one record per run.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.dask_engine import connect, require_scheduler
from tightrope.data.engines import LOCAL, SPARK, Place, parse_place, require
from tightrope.errors import CannotCertify, InputError
from tightrope.numerics.machine import cores
from tightrope.problem import Problem
from tightrope_campaigns.cells import ONLINE_METHODS, Cell, CellLimits, OnlineCell
from tightrope_campaigns.measurement import is_prepared
from tightrope_campaigns.records import (
    FILE_NAME,
    OK,
    ONLINE_FILE,
    OnlineFile,
    OnlineRecord,
    Record,
    RecordFile,
    Status,
    claim_campaign,
    machine,
    resident_memory,
    thin,
    versions,
)

INTERVAL = 0.05
"""Seconds between two looks of the watchdog."""

REFINING = 0.95
"""The part of the time limit after which the solver stops refining and answers with what it has verified."""

FIRST_TIMED_PHASE = "build"
CHILD = (sys.executable, "-m", "tightrope_campaigns.cell_process")


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
        return self.jobs if self.jobs is not None else max(1, cores() // 2)

    def require_answer(self) -> None:
        """Refuse a scheduler that is not there."""
        if self.address is not None:
            require_scheduler(self.address)

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
    if place.kind == SPARK:
        raise InputError("--engine spark reads logs; cells run on this machine, or by Dask")
    if place.address is not None and jobs is not None:
        raise InputError(
            "--jobs cannot be used with a running scheduler: its workers decide how many cells run at once"
        )
    return Engine(place.kind, place.address, jobs)


def _cluster_backend(client: Any) -> Any:
    """joblib's Dask backend, but never for one job: joblib would run that here instead of on the worker."""
    backend = import_module("joblib._dask").DaskDistributedBackend

    def effective_n_jobs(self: Any, n_jobs: int) -> int:
        return max(2, int(backend.effective_n_jobs(self, n_jobs)))

    return type("ClusterBackend", (backend,), {"effective_n_jobs": effective_n_jobs})(client=client)


Progress = Callable[[Record, int, int], None]
"""Called with every new record, how many cells are done and how many there are."""


@dataclass(frozen=True)
class Campaign:
    """What is to be run, and where its records go."""

    cells: Sequence[Cell]
    limits: CellLimits
    engine: Engine
    directory: Path

    def run(self, progress: Progress | None = None) -> list[Record]:
        """Run what is not settled yet; the records of all cells, in the order of the cells.

        An interrupted campaign goes on where it stopped. A cell that timed out or ran out of memory is run
        again under larger limits only, one that ended in an error always.
        """
        if not (self.directory / FILE_NAME).exists():
            self.engine.require_answer()  # before anything is written; a campaign may also be finished
        claim_campaign(self.directory)
        total = len(self.cells)
        with RecordFile(self.directory / FILE_NAME) as file:
            waiting = file.open_cells(self.cells, self.limits)
            done, expected = total - len(waiting), set(waiting)
            for record in self.engine.run(waiting, self.limits, str(self.directory.resolve())):
                expected.remove(record.cell)
                done += 1
                if progress is not None:  # shown first: writing may fail
                    progress(record, done, total)
                file.append(record)
            return [file.records[cell] for cell in self.cells]


CurveProgress = Callable[[OnlineRecord, int, int], None]


def run_online_campaign(
    cells: Sequence[OnlineCell],
    directory: Path,
    jobs: int | None = None,
    progress: CurveProgress | None = None,
) -> list[OnlineRecord]:
    """Run what has no record yet; the records of all cells, in their order."""
    claim_campaign(directory)
    with OnlineFile(directory / ONLINE_FILE) as file:
        waiting = [cell for cell in cells if cell not in file.records]
        done = len(cells) - len(waiting)
        for record in _run_curves(waiting, jobs or cores()):
            done += 1
            if progress is not None:  # shown first: writing may fail
                progress(record, done, len(cells))
            file.append(record)
        return [file.records[cell] for cell in cells]


def _run_curves(cells: Sequence[OnlineCell], jobs: int) -> Iterator[OnlineRecord]:
    if jobs == 1:
        yield from map(run_online_cell, cells)
        return
    try:
        joblib: Any = import_module("joblib")
    except ImportError:
        raise InputError(
            "several jobs need the package joblib", hint="pip install 'tightrope[distributed]', or --jobs 1"
        ) from None
    work = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from work(joblib.delayed(run_online_cell)(cell) for cell in cells)


def run_online_cell(cell: OnlineCell) -> OnlineRecord:
    """One run from beginning to end, in this process."""
    from tightrope.data.design import find_decided_states
    from tightrope.data.simulator import Simulator
    from tightrope.design.exploration import online
    from tightrope.learning.online.run import OnlineRun, SimulatedEpisodes, Truth
    from tightrope.learning.pipeline import parametric
    from tightrope.learning.result import CLOSE

    instance = cell.problem
    problem, optimum = _load_learning_instance(cell.instance)
    model, objective = parametric(problem), problem.objective
    sets, region = ONLINE_METHODS[cell.method]
    online(problem, delta=cell.delta, region=region, sets=sets).update()  # compiles
    begin = time.process_time()
    mdp = model.instantiate(instance.truth)
    stop = find_decided_states(objective, model.states)
    simulator = Simulator(mdp, None, stop, instance.episode_cap, model.hash(), threads=1)
    learner = online(problem, delta=cell.delta, region=region, sets=sets, explore="optimistic")
    run = OnlineRun(learner, SimulatedEpisodes(simulator, cell.seed), cell.episodes, Truth(mdp, objective))
    records = list(run.records())
    assert learner.ledger is not None
    facts = {
        "optimum": optimum,
        "maximises": objective.maximises,
        "updates": len(records),
        "broken": sum(record["holds"] is False for record in records),
        "uncertified": sum(record["status"] != CLOSE for record in records),
        "fallbacks": sum(record["fallback"] for record in records),
        "assumption": learner.ledger.assumption.value,
        "holds": learner.ledger.holds,
        "cpu_seconds": round(time.process_time() - begin, 3),
        "slowest_update": max(record["seconds"] for record in records[1:]),
        "machine": machine(),
        "versions": versions(),
    }
    return OnlineRecord(cell, thin(records), facts)


@lru_cache(maxsize=2)
def _load_learning_instance(name: str) -> tuple[Problem, float]:
    """The model with its question, and the optimum at the true point."""
    from tightrope.solver.solve import solve

    instance = parse_bench(name)
    model = load(instance)
    problem = Problem(model, question(instance, model.structure))
    solution = solve(model.instantiate(instance.truth), problem.objective, precision=1e-9)
    initial = model.initial
    return problem, float(0.5 * (solution.lower[initial] + solution.upper[initial]))
