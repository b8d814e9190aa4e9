"""How often the certified interval of the robust policy misses its true value, from data to policy.

    python benchmarks/end_to_end_coverage.py            1000 replications of rover(10,10)
    python benchmarks/end_to_end_coverage.py --smoke    few replications of rover(4,4), seconds

δ = 0.05. Every replication draws fresh data, learns with each region, and asks the true model what the
synthesised policy is worth there. Data come in two designs: trajectories under the uniform policy, for the
methods that claim them, and a fixed number of draws of every choice, for all. A region fails where even the
99.9 % lower confidence bound of its miss rate exceeds δ. An empty region counts as a miss of the region, but
the interval reported then (of tied sets) is checked like any other.

Prints a table and writes the rows as JSON (default: bench-results/end_to_end_coverage.json). Leaves with
status 1 where a region fails.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from scipy.stats import beta

from tightrope.ambiguity.sets import SetsKind
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.counts import Counts
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.learning.options import LearnOptions
from tightrope.learning.pipeline import Pipeline
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.problem import Problem
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import region_kind
from tightrope.solver.solve import solve
from tightrope.statistics.estimates import IntervalMethod

DELTA = 0.05
TRAJECTORIES, FIXED = "trajectories", "fixed draws"
EXPRESSION = SetsKind.EXPRESSION


@dataclass(frozen=True)
class Method:
    """A name, the options, and the designs that its ledger claims."""

    name: str
    options: LearnOptions
    designs: tuple[str, ...]


def method(
    name: str, region: RegionKind | None, interval: IntervalMethod, sets: SetsKind, *designs: str
) -> Method:
    return Method(name, LearnOptions(region=region, sets=sets, interval=interval), designs)


CP, BETA = IntervalMethod.CLOPPER_PEARSON, IntervalMethod.BETA_BINOMIAL
METHODS = (
    method("tied, time-uniform", None, BETA, SetsKind.TIED, TRAJECTORIES, FIXED),
    method("polytope, time-uniform", region_kind("polytope"), BETA, EXPRESSION, TRAJECTORIES, FIXED),
    method("polytope, clopper-pearson", region_kind("polytope"), CP, EXPRESSION, FIXED),
    method("l1", region_kind("l1"), CP, EXPRESSION, FIXED),
    method("ellipsoid", region_kind("ellipsoid"), BETA, EXPRESSION, TRAJECTORIES, FIXED),
    method("likelihood", region_kind("likelihood"), BETA, SetsKind.RECTANGULAR, TRAJECTORIES, FIXED),
)


@dataclass(frozen=True, eq=False)
class World:
    """The model at its true point, and the designs of a replication."""

    model: ParametricMDP
    truth: MDP
    objective: Objective
    cap: int

    @property
    def problem(self) -> Problem:
        return Problem(self.model, self.objective)

    def data(self, seed: int, episodes: int, draws: int) -> Iterator[tuple[str, Counts]]:
        stop = find_decided_states(self.objective, self.model.states)
        simulator = Simulator(self.truth, None, stop, self.cap, self.model.hash(), threads=1)
        yield TRAJECTORIES, simulator.episodes(episodes, seed)
        yield FIXED, simulator.generative(draws, seed)


@cache
def world(name: str) -> World:
    instance = parse_bench(name)
    model = load(instance)
    objective = question(instance, model.structure).objective
    return World(model, model.instantiate(instance.truth), objective, instance.episode_cap)


Outcome = tuple[str, str, bool, bool, float]
"""(method, design, interval missed, region empty, width of the interval)."""


def replicate(name: str, seed: int, episodes: int, draws: int) -> list[Outcome]:
    """One data set a design, every method on it."""
    here = world(name)
    outcomes: list[Outcome] = []
    for design, counts in here.data(seed, episodes, draws):
        for tried in METHODS:
            if design not in tried.designs:
                continue
            learner = Pipeline.start(here.problem, counts, DELTA, options=tried.options)
            result = learner.result(replace(tried.options))
            assert result.ledger.holds, (tried.name, design)
            value = solve(here.truth, here.objective, policy=result.robust.policy)
            low, high = float(value.lower[here.model.initial]), float(value.upper[here.model.initial])
            interval = result.robust.interval
            missed = high < interval.lower or low > interval.upper
            outcomes.append((tried.name, design, missed, result.contradiction is not None, interval.width))
    return outcomes


def run(name: str, replications: int, episodes: int, draws: int, processes: int) -> list[dict[str, object]]:
    seeds = range(1, replications + 1)
    found: list[Outcome] = []
    if processes == 1:
        for seed in seeds:
            found += replicate(name, seed, episodes, draws)
    else:
        with ProcessPoolExecutor(processes) as pool:
            jobs = [pool.submit(replicate, name, seed, episodes, draws) for seed in seeds]
            for job in jobs:
                found += job.result()
    rows: list[dict[str, object]] = []
    for tried in METHODS:
        for design in tried.designs:
            own = [o for o in found if o[:2] == (tried.name, design)]
            misses = sum(o[2] for o in own)
            rate = float(beta.ppf(0.001, misses, len(own) - misses + 1)) if misses else 0.0
            rows.append(
                {
                    "method": tried.name,
                    "design": design,
                    "replications": len(own),
                    "misses": misses,
                    "coverage": 1.0 - misses / len(own),
                    "empty": sum(o[3] for o in own),
                    "mean_width": sum(o[4] for o in own) / len(own),
                    "holds": rate <= DELTA,
                }
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="few replications of a small model")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, default=Path("bench-results/end_to_end_coverage.json"))
    asked = parser.parse_args()
    begin = time.perf_counter()
    if asked.smoke:
        name, replications, episodes, draws, processes = "rover(4,4)", 3, 200, 2, 1
    else:
        name, replications, episodes, draws = "rover(10,10)", asked.replications, 300, 1
        processes = asked.processes
    rows = run(name, replications, episodes, draws, processes)
    print(
        f"{name}, δ = {DELTA}, {replications} times {episodes} trajectories, or {draws} draws of every choice"
    )
    print(f"{'region':28}{'design':14}{'coverage':>9}{'misses':>8}{'empty':>7}{'width':>9}")
    for row in rows:
        print(
            f"{row['method']:28}{row['design']:14}{row['coverage']:9.4f}{row['misses']:8}{row['empty']:7}"
            f"{row['mean_width']:9.4f}{'' if row['holds'] else '  FAILS'}"
        )
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    content = {"model": name, "delta": DELTA, "episodes": episodes, "draws": draws, "rows": rows}
    asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{time.perf_counter() - begin:.0f} s; rows in {asked.json}")
    return 0 if all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
