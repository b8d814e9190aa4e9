"""What the cells of one instance share, made once: the simulated counts, and the optimum of the true model.

Both are functions of the instance (and the seed), so a cell that finds them may use them whoever made them.
They are written atomically under the campaign's directory; a lock that dies with its holder keeps two
processes from doing the same work at once.

| file | holds |
|---|---|
| `data/betting-50-seed1-100000.parquet` | counts, as `tightrope sample` writes them |
| `data/betting-50-truth.npz` | the policy that is optimal at the true point, and bounds on its value there |
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tightrope.benchmarks.cells import Cell
from tightrope.benchmarks.suite import load, question
from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.io.atomic import atomic_write_bytes
from tightrope.io.policy import Policy
from tightrope.model.parametric_mdp import ParametricMDP


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
    from tightrope.data.simulator import Simulator
    from tightrope.data.stopping import find_decided_states

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
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
