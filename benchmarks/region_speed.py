"""Building regions with all their expression bounds: CPU seconds on one core.

    python benchmarks/region_speed.py            the large instances
    python benchmarks/region_speed.py --smoke    small ones, in seconds

From the counts of 10^5 uniform trajectories (simulated, not timed) to the polytope region and the bounds of
every expression, split into tying, intervals, region and bounds; tables that belong to the model (signatures,
complements) are built once before, timed as `model_tables`. The likelihood region with its bounds is timed
beside it. Goals: rover(125,125) and aircraft(200,40) below 1 s; parallel(20), which is lifted, below 60 s,
where the paper's implementation times out at two hours.

Prints a table and writes the rows as JSON (default: bench-results/region_speed.json). Leaves with status 1
where a goal is missed or the truth is not in the region.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import load, parse_bench
from tightrope.data.counts import Counts
from tightrope.data.simulator import Simulator
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.regions.bounds import expression_bounds
from tightrope.regions.event_polytope import polytope_region
from tightrope.regions.likelihood import LIKELIHOOD
from tightrope.regions.region import RegionTask
from tightrope.statistics.estimates import event_intervals
from tightrope.statistics.outcomes import Outcomes

GOALS = {"rover(125,125)": 1.0, "aircraft(200,40)": 1.0, "parallel(20)": 60.0}
SMOKE = {"rover(10,10)": 1.0, "aircraft(20,10)": 1.0, "glider(11,9)": 1.0}
DELTA = 0.001
STOPPING_LABELS = ("collision", "goal", "crash", "target", "done")

Row = dict[str, object]


def simulate(instance: Instance, model: ParametricMDP, episodes: int, seed: int) -> Counts:
    """Uniform trajectories that end where the objective is decided."""
    stop = np.zeros(model.states, dtype=np.bool_)
    for label in STOPPING_LABELS:
        if label in model.structure.labels:
            stop |= model.structure.labels[label]
    truth = model.instantiate(instance.truth)
    simulator = Simulator(truth, stop=stop, cap=instance.episode_cap, model_hash=model.hash())
    return simulator.episodes(episodes, seed)


def measure(name: str, goal: float, episodes: int) -> Row:
    instance = parse_bench(f"bench:{name}")
    model = load(instance)
    counts = simulate(instance, model, episodes, 1)
    marks = [time.process_time()]
    _ = model.signatures, model.expressions.complement
    marks.append(time.process_time())
    _ = Outcomes.of(model)
    marks.append(time.process_time())
    intervals = event_intervals(model, counts, DELTA)
    marks.append(time.process_time())
    region = polytope_region(intervals)
    marks.append(time.process_time())
    lower, upper = expression_bounds(region, model.expressions, within=intervals.expression_bounds())
    marks.append(time.process_time())
    names = ("model_tables", "tying", "intervals", "region", "bounds")
    seconds = {part: end - start for part, start, end in zip(names, marks[:-1], marks[1:], strict=True)}
    total = marks[-1] - marks[1]
    started = time.process_time()
    expression_bounds(LIKELIHOOD.build(RegionTask(model, counts, DELTA)), model.expressions)
    likelihood_seconds = time.process_time() - started
    inside = region.contains(instance.truth)
    return {
        "instance": name,
        "expressions": len(model.expressions.nonconstant),
        "coordinates": region.coordinates.size,
        "vertices": 0 if region.vertices is None else len(region.vertices),
        "mean_width": float((upper - lower)[model.expressions.nonconstant].mean()),
        "seconds": seconds,
        "total_seconds": total,
        "likelihood_seconds": likelihood_seconds,
        "goal": goal,
        "truth_inside": inside,
        "ok": total < goal and inside,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of region building.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/region_speed.json"))
    options = parser.parse_args()
    goals, episodes = (SMOKE, 2000) if options.smoke else (GOALS, 100_000)
    rows = []
    head = f"{'instance':<18} {'|Λ_unk|':>8} {'dim':>3} {'vertices':>8} {'CPU s':>7} {'goal':>6}"
    print(f"{head} {'likelihood':>10}  parts")
    for name, goal in goals.items():
        row = measure(name, goal, episodes)
        rows.append(row)
        seconds = row["seconds"]
        assert isinstance(seconds, dict)
        parts = ", ".join(f"{part} {value:.3f}" for part, value in seconds.items())
        print(
            f"{name:<18} {row['expressions']:>8} {row['coordinates']:>3} {row['vertices']:>8} "
            f"{row['total_seconds']:>7.3f} {goal:>6g} {row['likelihood_seconds']:>10.2f}  {parts}"
        )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"rows": rows}, indent=1), encoding="utf-8")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
