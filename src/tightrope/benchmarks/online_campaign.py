"""A campaign of learning curves: cells on local processes through joblib, one record a run.

Only the coordinating process writes. An interrupted campaign goes on with the cells that have no record.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tightrope.benchmarks.campaign import claim_campaign
from tightrope.benchmarks.machine import machine, versions
from tightrope.benchmarks.online_cells import (
    ONLINE_FILE,
    ONLINE_METHODS,
    OnlineCell,
    OnlineFile,
    OnlineRecord,
    thin,
)
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.errors import InputError
from tightrope.problem import Problem

Progress = Callable[[OnlineRecord, int, int], None]


def run_online_campaign(
    cells: Sequence[OnlineCell], directory: Path, jobs: int | None = None, progress: Progress | None = None
) -> list[OnlineRecord]:
    """Run what has no record yet; the records of all cells, in their order."""
    claim_campaign(directory)
    with OnlineFile(directory / ONLINE_FILE) as file:
        waiting = [cell for cell in cells if cell not in file.records]
        done = len(cells) - len(waiting)
        for record in _run(waiting, jobs or len(os.sched_getaffinity(0))):
            done += 1
            if progress is not None:  # shown first: writing may fail
                progress(record, done, len(cells))
            file.append(record)
        return [file.records[cell] for cell in cells]


def _run(cells: Sequence[OnlineCell], jobs: int) -> Iterator[OnlineRecord]:
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
    from tightrope.data.simulator import Simulator
    from tightrope.data.stopping import find_decided_states
    from tightrope.design.exploration import online
    from tightrope.learning.learn import parametric
    from tightrope.learning.online.run import OnlineRun, SimulatedEpisodes, Truth
    from tightrope.learning.policies import maximises
    from tightrope.learning.result import CLOSE

    instance = cell.problem
    problem, optimum = _load(cell.instance)
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
        "maximises": maximises(objective),
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
def _load(name: str) -> tuple[Problem, float]:
    """The model with its question, and the optimum at the true point."""
    from tightrope.solver.solve import solve

    instance = parse_bench(name)
    model = load(instance)
    problem = Problem(model, question(instance, model.structure))
    solution = solve(model.instantiate(instance.truth), problem.objective, precision=1e-9)
    initial = model.initial
    return problem, float(0.5 * (solution.lower[initial] + solution.upper[initial]))
