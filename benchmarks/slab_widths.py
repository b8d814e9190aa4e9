"""How wide the certified interval of a policy is over a slab, and over the likelihood region beside it.

    python benchmarks/slab_widths.py                               nine instances, seeds 1 to 5
    python benchmarks/slab_widths.py --smoke                       one small instance, in seconds
    python benchmarks/slab_widths.py 'betting(50)'                 some by name
    python benchmarks/slab_widths.py --robust --seeds 11 20        no given policy: the robust one's guarantee

10^5 uniform trajectories, δ = 0.001; the policy is the one that is optimal at the true point, fixed without
the data; coupled sets. The figure is (upper − lower)/V*, and beside it the CPU seconds of `learn` over those
over the likelihood region, everything compiled. With `--robust` no policy is given, the slab bets on the
guarantee, and the figure is the guarantee's distance from V*: its mean over all seeds relative to that over
the likelihood region, and the worst of single seeds.

Rows are appended to a file (bench-results/slab_widths.jsonl) as they come, and cells that are in it already
are not measured again. Leaves with status 1 where an instance misses its goal in the mean over all seeds or
costs more than three times as much, or where a guarantee is farther from V* by more than 3 % than without
bets.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from functools import lru_cache
from pathlib import Path

from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.counts import Counts
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.learning.learn import learn
from tightrope.problem import Problem
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve

DELTA = 0.001
GOALS = {
    "betting(50)": 0.0525,
    "betting(100)": 0.0645,
    "aircraft(50,10)": 0.00405,
    "aircraft(100,20)": 0.0035,
    "engagement(50)": 0.0585,
    "rover(10,10)": 0.0193,
    "rover(50,50)": 0.0112,
    "glider(21,17)": 0.00125,
    "parallel(5)": 0.019,
}
ROBUST_GOALS = dict.fromkeys(("betting", "aircraft", "engagement", "glider", "parallel"), 0.85)
"""Of the mean distance over the likelihood region, by family."""

MOST_LOSS = 1.03
MOST_COST = 3.0
"""CPU seconds over slabs may be so many times those over likelihood regions."""

REGIONS = ("likelihood", "slab")
SMALL = {
    "betting": "betting(8)",
    "aircraft": "aircraft(8,4)",
    "engagement": "engagement(8)",
    "glider": "glider(5,5)",
    "parallel": "parallel(3)",
    "rover": "rover(4,4)",
}
"""By family, an instance that compiles what the others need."""

Row = dict[str, object]


@lru_cache(maxsize=1)
def data_of(name: str, seed: int, episodes: int) -> tuple[Problem, Counts, Solution]:
    """The problem, data, and what is optimal at the true point."""
    instance = parse_bench(f"bench:{name}")
    model = load(instance)
    objective = question(instance, model.structure).objective
    truth = model.instantiate(instance.truth)
    stop = find_decided_states(objective, model.states)
    counts = Simulator(truth, None, stop, instance.episode_cap, model.hash()).episodes(episodes, seed)
    return Problem(model, objective), counts, solve(truth, objective)


@lru_cache(maxsize=64)
def compile_for(name: str, region: str) -> None:
    """Learn once from few data, so that no cell pays for compiling."""
    problem, counts, _ = data_of(name, 0, 200)
    learn(problem, counts, delta=DELTA, region=region, sets="coupled")


def measure(name: str, seed: int, region: str, episodes: int, robust: bool) -> Row:
    """One cell; `robust` leaves the policy out, so that the slab bets on the robust one."""
    family = name.partition("(")[0]
    compile_for(SMALL.get(family, name), region)
    problem, counts, best = data_of(name, seed, episodes)
    optimum = float(best.lower[problem.model.initial])
    begin = time.process_time()
    policy = None if robust else best.policy
    result = learn(problem, counts, delta=DELTA, region=region, sets="coupled", policy=policy)
    row: Row = {"instance": name, "seed": seed, "region": region, "episodes": episodes, "robust": robust}
    row["distance"] = abs(optimum - result.guarantee) / abs(optimum)
    if result.value is not None:
        interval = result.value.interval
        row["gap"] = (interval.upper - interval.lower) / abs(optimum)
        row["covered"] = interval.lower <= optimum <= interval.upper
        row["status"] = result.value.coupled.status.value if result.value.coupled else "rectangular"
    row["cpu_seconds"] = time.process_time() - begin
    row["seconds"] = dict(result.seconds)
    return row


def key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("instance", "seed", "region", "episodes", "robust"))


def table(rows: list[Row], names: list[str]) -> list[str]:
    """Means over seeds, and the goals that are missed."""
    missed = []
    print(
        f"{'instance':<18} {'seeds':>5} {'likelihood':>10} {'slab':>10} {'ratio':>6} {'goal':>8} {'CPU':>6}"
    )
    for name in names:
        cells = {
            region: [r for r in rows if r["instance"] == name and r["region"] == region] for region in REGIONS
        }
        both = sorted({r["seed"] for r in cells["slab"]} & {r["seed"] for r in cells["likelihood"]}, key=str)
        if not both:
            continue
        mean = {
            region: sum(float(str(r["gap"])) for r in cells[region] if r["seed"] in both) / len(both)
            for region in REGIONS
        }
        cpu = [
            sum(float(str(r["cpu_seconds"])) for r in cells[region] if r["seed"] in both)
            for region in REGIONS
        ]
        goal = GOALS.get(name)
        costly = cpu[1] > MOST_COST * cpu[0] and goal is not None
        missed += [name] if costly or (goal is not None and mean["slab"] > goal) else []
        ratio = mean["slab"] / mean["likelihood"]
        shown = f"{goal:>8.5f}" if goal is not None else f"{'–':>8}"
        print(
            f"{name:<18} {len(both):>5} {mean['likelihood']:>10.5f} {mean['slab']:>10.5f} {ratio:>6.3f}"
            f" {shown} {cpu[1] / max(cpu[0], 1e-9):>5.2f}x{'  missed' if name in missed else ''}"
        )
    return missed


def robust_table(rows: list[Row], names: list[str]) -> list[str]:
    """Mean distances from V* over seeds, the worst of single seeds, and the goals that are missed."""
    missed = []
    print(
        f"{'instance':<18} {'seeds':>5} {'likelihood':>10} {'slab':>10} {'ratio':>6} {'worst':>6} {'CPU':>6}"
    )
    for name in names:
        found = {
            region: {r["seed"]: r for r in rows if r["instance"] == name and r["region"] == region}
            for region in REGIONS
        }
        both = sorted(found["slab"].keys() & found["likelihood"].keys(), key=str)
        if not both:
            continue
        plain, slab = ([float(str(found[r][s]["distance"])) for s in both] for r in REGIONS)
        cpu = [sum(float(str(found[r][s]["cpu_seconds"])) for s in both) for r in REGIONS]
        ratio, worst = sum(slab) / sum(plain), max(b / a for a, b in zip(plain, slab, strict=True))
        if ratio > ROBUST_GOALS.get(name.partition("(")[0], MOST_LOSS) or worst > MOST_LOSS:
            missed.append(name)
        means = [sum(column) / len(both) for column in (plain, slab)]
        print(
            f"{name:<18} {len(both):>5} {means[0]:>10.5f} {means[1]:>10.5f} {ratio:>6.3f} {worst:>6.3f}"
            f" {cpu[1] / max(cpu[0], 1e-9):>5.2f}x{'  missed' if name in missed else ''}"
        )
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description="Widths over slabs.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--robust", action="store_true", help="no given policy: the robust one is bet on")
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 5), metavar=("FIRST", "LAST"))
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/slab_widths.jsonl"))
    options = parser.parse_args()
    names = options.names or (["betting(8)"] if options.smoke else list(GOALS))
    first, last = (1, 1) if options.smoke else options.seeds
    episodes = 3000 if options.smoke else 100_000
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    rows: list[Row] = [json.loads(line) for line in lines]
    known = {key(row) for row in rows}
    for seed in range(first, last + 1):
        for name in names:
            for region in REGIONS:
                if (name, seed, region, episodes, options.robust) in known:
                    continue
                row = measure(name, seed, region, episodes, options.robust)
                rows.append(row)
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    chosen = [row for row in rows if row["robust"] is options.robust and row["episodes"] == episodes]
    return 1 if (robust_table if options.robust else table)(chosen, names) else 0


if __name__ == "__main__":
    sys.exit(main())
