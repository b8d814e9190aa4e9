"""One cell, measured: from counts to the certified interval of a policy.

The policy is the one that is optimal in the true model. `build` is everything between the counts and the
uncertain model (statistics, region, sets), `solve` the two ends of the policy's interval; CPU seconds of all
threads are recorded beside those of the clock. Before it starts the same method has run once on a tiny
instance of the same family: compiling kernels, or loading compiled ones, is not what the tables compare.

The cells of one instance share the simulated counts and the optimum of the true model, made once. Both are
functions of the instance (and the seed), so a cell that finds them may use them whoever made them. They are
written atomically under the campaign's directory; a lock that dies with its holder keeps two processes from
doing the same work at once.

| file | holds |
|---|---|
| `data/betting-50-seed1-100000.parquet` | counts, as `tightrope sample` writes them |
| `data/betting-50-truth.npz` | the policy that is optimal at the true point, and bounds on its value there |
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tightrope.atomic import atomic_write_bytes
from tightrope.benchmarks.families import FAMILIES
from tightrope.benchmarks.suite import instance_of, load, question
from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.learning.pipeline import DeltaSplit, Pipeline
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.machine import lock
from tightrope.problem import Problem
from tightrope.solver.solution import Solution
from tightrope_campaigns.cells import Cell
from tightrope_campaigns.records import peak_memory


@dataclass(frozen=True, eq=False)
class Truth:
    """The optimal policy of the true model, a choice per state, and verified bounds on its value."""

    policy: Policy
    lower: float
    upper: float
    model_hash: str

    @property
    def optimum(self) -> float:
        """V*, as a number to divide by."""
        return (self.lower + self.upper) / 2


def counts_path(directory: Path, cell: Cell) -> Path:
    return directory / "data" / f"{_stem(cell)}-seed{cell.seed}-{cell.protocol.episodes}.parquet"


def truth_path(directory: Path, cell: Cell) -> Path:
    return directory / "data" / f"{_stem(cell)}-truth.npz"


def is_prepared(directory: Path, cell: Cell) -> bool:
    return counts_path(directory, cell).is_file() and truth_path(directory, cell).is_file()


def prepare(directory: Path, cell: Cell) -> None:
    """Simulate and solve the true model, where that has not been done yet."""
    (directory / "data").mkdir(parents=True, exist_ok=True)
    with _lock(counts_path(directory, cell).with_suffix(".lock")):
        if is_prepared(directory, cell):
            return
        model = load(cell.problem)
        if not truth_path(directory, cell).is_file():
            write_truth(truth_path(directory, cell), solve_truth(cell, model))
        if not counts_path(directory, cell).is_file():
            _write_counts(counts_path(directory, cell), cell, model)


def simulate(cell: Cell, model: ParametricMDP, episodes: int | None = None) -> Counts:
    """The counts of a cell: trajectories at the true point under the uniform policy."""
    from tightrope.data.design import find_decided_states
    from tightrope.data.simulator import Simulator

    instance = cell.problem
    stop = find_decided_states(question(instance, model.structure).objective, model.states)
    mdp = model.instantiate(instance.truth)
    simulator = Simulator(mdp, None, stop, instance.episode_cap, model.hash())
    return simulator.episodes(episodes or cell.protocol.episodes, cell.seed)


def solve_truth(cell: Cell, model: ParametricMDP) -> Truth:
    """The optimal policy at the true point."""
    from tightrope.solver.solve import solve

    instance = cell.problem
    solution = solve(model.instantiate(instance.truth), question(instance, model.structure).objective)
    lower, upper = solution.lower[model.initial], solution.upper[model.initial]
    return Truth(solution.policy, float(lower), float(upper), model.hash())


def read_cell_counts(path: Path, model: ParametricMDP) -> Counts:
    """The counts of a cell; data of another version of the model are refused."""
    from tightrope.data.reading import read_data

    reading = read_data(path, model)
    _check_hash(path, str((reading.metadata or {}).get("model")), model)
    return reading.counts


def write_truth(path: Path, truth: Truth) -> None:
    with atomic_write_bytes(path) as file:
        np.savez(
            file,
            policy=truth.policy.choice,
            bounds=np.array([truth.lower, truth.upper]),
            model=np.array(truth.model_hash),
        )


def read_truth(path: Path, model: ParametricMDP) -> Truth:
    with np.load(path) as stored:
        lower, upper = stored["bounds"].tolist()
        model_hash, choice = str(stored["model"]), stored["policy"].astype(np.int64)
    _check_hash(path, model_hash, model)
    return Truth(Policy.of_choices(model.structure, choice), lower, upper, model_hash)


def _write_counts(path: Path, cell: Cell, model: ParametricMDP) -> None:
    from tightrope.data.writing import write_counts

    instance = cell.problem
    extra = {
        "source": f"bench:{instance.name}",
        "seed": cell.seed,
        "policy": "uniform",
        "cap": instance.episode_cap,
        "property": instance.property_text,
        "at": instance.truth_text,
    }
    write_counts(path, simulate(cell, model), model.structure, extra=extra)


def _check_hash(path: Path, stored: str, model: ParametricMDP) -> None:
    if stored != model.hash():
        raise InputError(
            f"{path.name} was made with another version of the model",
            hint=f"remove {path.parent.name}/{path.name} and run the campaign again",
        )


def _stem(cell: Cell) -> str:
    instance = cell.problem
    return "-".join([instance.family, *map(str, instance.arguments)])


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Only one process is inside; the file system lets go of the lock when its holder dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


WARM_UP_EPISODES = 2000

TINY: dict[str, tuple[int, ...]] = {
    "aircraft": (4, 2),
    "betting": (3,),
    "engagement": (3,),
    "rover": (3, 3),
    "glider": (4, 4),
    "parallel": (2,),
}
"""The instance of each family that warms up."""

Fields = dict[str, object]
Progress = Callable[[str], None]


def measure(directory: Path, cell: Cell, seconds: float, progress: Progress) -> Fields:
    """Everything a record says about a cell that went well."""
    progress("warm-up")
    warm_up(cell)
    progress("load")
    begin = time.perf_counter()
    model = load(cell.problem)
    load_seconds = time.perf_counter() - begin
    counts = read_cell_counts(counts_path(directory, cell), model)
    truth = read_truth(truth_path(directory, cell), model)
    fields = measure_certified_interval(cell, model, counts, truth, seconds, progress)
    fields["seconds"] = {"load": round(load_seconds, 6), **_mapping(fields["seconds"])}
    fields["peak_memory"] = peak_memory()
    return fields


def measure_certified_interval(
    cell: Cell, model: ParametricMDP, counts: Counts, truth: Truth, seconds: float, progress: Progress
) -> Fields:
    """Build and solve, each timed; the solver stops refining a little before `seconds` are over."""
    options = cell.way.options(seconds)
    problem = Problem(model, question(cell.problem, model.structure))
    progress("build")
    deadline = time.perf_counter() + seconds
    cpu_begin = time.process_time()
    chain = Pipeline(problem, counts, DeltaSplit(cell.protocol.delta), options=options, policy=truth.policy)
    decisions = chain.decide(options)
    prepared = chain.prepare(decisions)
    progress("solve")
    begin, cpu_built = time.perf_counter(), time.process_time()
    value = chain.couple(chain.solve(prepared, options, deadline, alone=True), decisions).value
    assert value is not None
    solve_seconds = time.perf_counter() - begin
    cpu = {"build": cpu_built - cpu_begin, "solve": time.process_time() - cpu_built}
    interval = value.interval
    return {
        "lower": interval.lower,
        "upper": interval.upper,
        "optimum": truth.optimum,
        "relative_gap": interval.width / truth.optimum,
        "covers": interval.lower <= truth.upper and truth.lower <= interval.upper,
        "certified": all(_is_close(end, model.initial) for end in value.solutions) and not value.stopped,
        "solver": [solution.status.name.lower() for solution in value.solutions],
        "empty": prepared.contradiction is not None,
        "relaxation": prepared.sets.relaxation.value,
        "assumption": prepared.sets.ledger.assumption.value,
        "holds": prepared.sets.ledger.holds,
        "steps": counts.steps,
        "cpu_seconds": {k: round(v, 6) for k, v in cpu.items()},
        "seconds": {
            **{k: round(v, 6) for k, v in prepared.seconds.items()},
            "solve": round(solve_seconds, 6),
        },
    }


def _is_close(solution: Solution, initial: int) -> bool:
    """Whether the bounds are as close as was asked where it matters: at the initial state."""
    lower, upper = float(solution.lower[initial]), float(solution.upper[initial])
    return lower == upper or upper - lower <= solution.precision * max(abs(lower), abs(upper)) < math.inf


def warm_up(cell: Cell) -> None:
    """The same method on a tiny instance of the family, so that every kernel it needs is there."""
    family = cell.problem.family
    tiny = replace(cell, instance=instance_of(FAMILIES[family], TINY[family]).name)
    model = load(tiny.problem)
    counts = simulate(tiny, model, WARM_UP_EPISODES)
    measure_certified_interval(tiny, model, counts, solve_truth(tiny, model), 60.0, lambda what: None)


def _mapping(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value
