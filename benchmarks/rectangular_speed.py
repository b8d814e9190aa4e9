"""Seconds from counts to certified bounds over expression-wise and rectangular sets, a phase at a time.

    python benchmarks/rectangular_speed.py                        the large instances
    python benchmarks/rectangular_speed.py --smoke                two small ones
    python benchmarks/rectangular_speed.py 'rover(50,50)' --region likelihood

Each instance runs in a process of its own, on counts of `--episodes` simulated trajectories. Phases:
statistics (event intervals), region, sets (projection and kernel), robust and optimistic solve. Compiled
code is loaded on a small instance first, so that no phase pays for it. Times are CPU seconds of one core.
Prints a table and writes the same rows as JSON. Leaves with status 1 where a solve is not certified, or
where the rectangular interval is not inside the expression-wise one.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from tightrope.ambiguity.sets import expression, rectangular
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.simulator import Simulator
from tightrope.model.objective import Direction
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.event_polytope import polytope_region
from tightrope.regions.region import RegionKind
from tightrope.regions.registry import build_region, own_kinds, region_kind
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.solve import operator_of, solve
from tightrope.statistics.estimates import event_intervals
from tightrope.statistics.outcomes import Outcomes

LARGE = ("rover(125,125)", "glider(71,67)", "aircraft(200,40)", "parallel(20)")
SMALL = ("glider(11,9)", "aircraft(20,10)")
GOALS = {"rover(125,125)": 15.0, "glider(71,67)": 10.0}
"""Seconds from counts to both bounds, rectangular."""

PHASES = ("statistics", "region", "sets", "robust", "optimistic")
DELTA = 0.001


def measure(instance: Instance, region_kind: RegionKind, episodes: int) -> list[dict[str, object]]:
    """One row for each kind of sets."""
    model = load(instance)
    simulator = Simulator(
        model.instantiate(instance.truth), cap=instance.episode_cap, model_hash=model.hash(), threads=1
    )
    counts = simulator.episodes(episodes, seed=1)
    del simulator
    objective = question(instance, model.structure).objective
    rows = []
    for name, make in (("expression", expression), ("rectangular", rectangular)):
        seconds = {}
        clock = time.process_time()

        def lap(phase: str, seconds: dict[str, float] = seconds) -> None:
            nonlocal clock
            now = time.process_time()
            seconds[phase], clock = round(now - clock, 3), now

        _ = Outcomes.of(model)
        intervals = event_intervals(model, counts, DELTA)
        lap("statistics")
        if region_kind.value == "polytope":
            region = polytope_region(intervals)
        else:
            region = build_region(region_kind, model, counts, DELTA)
        lap("region")
        within = intervals.expression_bounds() if region_kind.value == "polytope" else None
        kernel = operator_of(make(region, model, within))
        lap("sets")
        robust = solve(kernel, replace(objective, nature=Direction.MIN))
        lap("robust")
        optimistic = solve(kernel, replace(objective, nature=Direction.MAX))
        lap("optimistic")
        vertices = region.vertices
        rows.append(
            {
                "instance": instance.name,
                "region": region_kind.value,
                "sets": name,
                "coordinates": region.coordinates.size,
                "vertices": None if vertices is None else len(vertices),
                "vertices_met": vertices_met(kernel, robust.fixpoint_lower),
                "seconds": seconds,
                "total": round(sum(seconds.values()), 3),
                "lower": float(robust.lower[model.initial]),
                "upper": float(optimistic.upper[model.initial]),
                "statuses": [robust.status.name, optimistic.status.name],
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    return rows


def vertices_met(kernel: BellmanOperator, values: FloatArray) -> int | None:
    """Vertices that nature looks at to answer the robust bound, or next to one; None for intervals."""
    if not isinstance(kernel, RectangularOperator):
        return None
    workspace = kernel.open_workspace()
    kernel.answer(values, False, workspace)
    return workspace.vertices_met


def measure_apart(name: str, region: str, episodes: int) -> list[dict[str, object]]:
    command = [sys.executable, __file__, "--here", name, "--region", region, "--episodes", str(episodes)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        sys.exit(f"{name} failed:\n{finished.stderr}")
    rows: list[dict[str, object]] = json.loads(finished.stdout.splitlines()[-1])
    return rows


def faults(wide: dict[str, object], tight: dict[str, object]) -> list[str]:
    """What must not be: solves without certificate, rectangular bounds outside the expression-wise ones."""
    found = []
    for row in (wide, tight):
        if row["statuses"] != ["CERTIFIED", "CERTIFIED"]:
            found.append(f"{row['sets']}: {row['statuses']}")
    margin = 1e-5 * abs(float(str(wide["upper"])))
    if float(str(tight["lower"])) < float(str(wide["lower"])) - margin:
        found.append("the rectangular lower bound is below the expression-wise one")
    if float(str(tight["upper"])) > float(str(wide["upper"])) + margin:
        found.append("the rectangular upper bound is above the expression-wise one")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of expression-wise and rectangular sets.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME(ARGS)", help="instances; four large ones by default"
    )
    parser.add_argument("--smoke", action="store_true", help="two small instances")
    parser.add_argument("--region", default="polytope", choices=[kind.value for kind in own_kinds()])
    parser.add_argument("--episodes", type=int, default=None, help="trajectories; 100,000 by default")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/rectangular_speed.json"))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    episodes = options.episodes or (2_000 if options.smoke else 100_000)
    kind = region_kind(options.region)
    if options.here:
        if episodes > 2_000:  # kernels are loaded before anything is timed
            measure(parse_bench(SMALL[0]), kind, 200)
            measure(parse_bench(SMALL[1]), kind, 200)
        print(json.dumps(measure(parse_bench(options.names[0]), kind, episodes)))
        return
    print(
        f"{'instance':<18}{'sets':<13}"
        + "".join(f"{phase:>12}" for phase in PHASES)
        + f"{'total':>9}{'MiB':>7}{'lower':>13}{'upper':>13}"
    )
    rows, failed = [], False
    for name in options.names or (SMALL if options.smoke else LARGE):
        pair = measure_apart(name, options.region, episodes)
        wrong = faults(*pair)
        failed = failed or bool(wrong)
        for row in pair:
            rows.append({**row, "faults": wrong})
            spent = row["seconds"]
            assert isinstance(spent, dict)
            goal = GOALS.get(name)
            late = [f"over {goal:g} s"] if goal is not None and float(str(row["total"])) > goal else []
            print(
                f"{name:<18}{row['sets']:<13}"
                + "".join(f"{spent[phase]:>12.2f}" for phase in PHASES)
                + f"{row['total']:>9.2f}{row['peak_mib']:>7}{row['lower']:>13.6f}{row['upper']:>13.6f}"
                + f"  {'; '.join([*wrong, *late])}",
                flush=True,
            )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"delta": DELTA, "episodes": episodes, "region": options.region, "rows": rows}
    options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {options.output}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
