"""One cell, measured: from counts to the certified interval of the true-optimal policy.

`build` is everything between the counts and the uncertain model (statistics, region, sets), `solve` the
two ends of the policy's interval; CPU seconds of all threads are recorded beside those of the clock.
Before it starts the same method has run once on a tiny instance of the same family: compiling kernels, or
loading compiled ones, is not what the tables compare.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tightrope.ambiguity.sets import SetsKind
from tightrope.benchmarks.cell_data import (
    Truth,
    counts_path,
    read_cell_counts,
    read_truth,
    simulate,
    solve_truth,
    truth_path,
)
from tightrope.benchmarks.cells import Cell
from tightrope.benchmarks.families import FAMILIES
from tightrope.benchmarks.machine import peak_memory
from tightrope.benchmarks.suite import instance_of, load, question
from tightrope.data.counts import Counts
from tightrope.learning.bet_policy import BetPolicy
from tightrope.learning.coupled import Coupler
from tightrope.learning.options import decide
from tightrope.learning.policies import PolicySolver
from tightrope.learning.stages import Stages
from tightrope.learning.value_directions import cut_along_values
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.regions.region import RegionKind
from tightrope.solver.solution import Solution

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
    objective = question(cell.problem, model.structure).objective
    progress("build")
    deadline = time.perf_counter() + seconds
    cpu_begin = time.process_time()
    stages = Stages(model, counts, cell.protocol.delta, options)
    decisions = decide(model, counts, options)
    if decisions.region is RegionKind.SLAB:
        stages.gradient = BetPolicy(model, objective, truth.policy, counts.design)
    prepared = stages.prepare(decisions)
    progress("solve")
    begin, cpu_built = time.perf_counter(), time.process_time()
    solver = PolicySolver(prepared.sets, objective, options, deadline, lambda what: None)
    value = solver.evaluate(truth.policy)
    if decisions.sets is SetsKind.COUPLED and prepared.contradiction is None:
        along = cut_along_values(prepared, objective, [truth.policy])
        if along is not None:
            solver = PolicySolver(along.sets, objective, options, deadline, lambda what: None)
            value = solver.evaluate(truth.policy)
        value = Coupler(solver, options.coupled_gap).evaluated(value)
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
