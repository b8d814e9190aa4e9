"""How wide each region leaves the expressions: a table region × family.

    python benchmarks/region_widths.py            six families, three seeds
    python benchmarks/region_widths.py --smoke    small instances, in seconds

10^5 uniform trajectories, δ = 0.001. The figure is the mean width of the non-constant expressions' bounds
relative to the paper's polytope (Clopper–Pearson at δ/|Λ_unk|), averaged over seeds, with CPU seconds for
region and bounds. "valid" says whether the ledger's assumption holds for trajectories; the polytope of
Clopper–Pearson intervals is nominal there.

Prints a table and writes the rows as JSON (default: bench-results/region_widths.json). Leaves with status 1
where the likelihood region is not below half of the paper's polytope on the first three instances.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from region_speed import simulate
from tightrope.benchmarks.suite import load, parse_bench
from tightrope.data.counts import Counts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.regions.bounds import expression_bounds
from tightrope.regions.region import Region, RegionOptions
from tightrope.regions.registry import build_region
from tightrope.statistics.estimates import Budget, IntervalMethod, event_intervals
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.outcomes import Outcomes

DELTA = 0.001
FAMILIES = (
    "aircraft(100,20)",
    "betting(100)",
    "glider(51,47)",
    "engagement(100)",
    "rover(50,50)",
    "parallel(10)",
)
HALVED = FAMILIES[:3]
SMOKE = ("aircraft(20,10)", "betting(25)", "glider(11,9)")

Build = Callable[[ParametricMDP, Counts, Outcomes], Region]
Row = dict[str, object]


def kind(which: str, chosen: RegionOptions | None = None) -> Build:
    return lambda model, counts, outcomes: build_region(which, model, counts, DELTA, chosen)


REGIONS: dict[str, Build] = {
    "polytope, paper": kind("polytope", RegionOptions(budget=Budget.PAPER)),
    "polytope, tied": kind("polytope"),
    "polytope, time-uniform": kind("polytope", RegionOptions(interval=IntervalMethod.BETA_BINOMIAL)),
    "l1": kind("l1"),
    "ellipsoid": kind("ellipsoid"),
    "ellipsoid, published": kind("ellipsoid", RegionOptions(ellipsoid=EllipsoidVersion.PAPER)),
    "likelihood": kind("likelihood"),
}


def measure(name: str, seeds: int, episodes: int) -> list[Row]:
    instance = parse_bench(f"bench:{name}")
    model = load(instance)
    outcomes = Outcomes.of(model)
    index = model.expressions.nonconstant
    totals: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    covered: dict[str, int] = {}
    valid: dict[str, bool] = {}
    for seed in range(1, seeds + 1):
        counts = simulate(instance, model, episodes, seed)
        lower, upper = event_intervals(model, counts, DELTA, budget=Budget.PAPER).expression_bounds()
        totals.setdefault("tied intervals", []).append(float((upper - lower)[index].mean()))
        for label, build in REGIONS.items():
            started = time.process_time()
            region = build(model, counts, outcomes)
            lower, upper = expression_bounds(region, model.expressions)
            seconds[label] = seconds.get(label, 0.0) + time.process_time() - started
            totals.setdefault(label, []).append(float((upper - lower)[index].mean()))
            covered[label] = covered.get(label, 0) + region.contains(instance.truth)
            valid[label] = region.ledger.holds
    reference = totals["polytope, paper"]
    return [
        {
            "instance": name,
            "region": label,
            "relative_width": sum(w / r for w, r in zip(widths, reference, strict=True)) / seeds,
            "mean_width": sum(widths) / seeds,
            "seconds": seconds.get(label, 0.0) / seeds,
            "covered": covered.get(label, seeds),
            "seeds": seeds,
            "valid_for_trajectories": valid.get(label, False),
        }
        for label, widths in totals.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Widths of regions.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/region_widths.json"))
    options = parser.parse_args()
    names = SMOKE if options.smoke else FAMILIES
    seeds, episodes = (1, 20_000) if options.smoke else (options.seeds, 100_000)
    table = {name: measure(name, seeds, episodes) for name in names}
    print(
        f"{'region':<24} {'valid':>5}"
        + "".join(f" {name:>18}" for name in names)
        + "   (relative width | CPU s)"
    )
    for i, first in enumerate(table[names[0]]):
        cells = "".join(
            f" {table[name][i]['relative_width']:>9.3f} |{table[name][i]['seconds']:>6.2f}s" for name in names
        )
        print(f"{first['region']:<24} {'yes' if first['valid_for_trajectories'] else 'no':>5}{cells}")
    rows = [row for name in names for row in table[name]]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"delta": DELTA, "rows": rows}, indent=1), encoding="utf-8")
    halved = [row for row in rows if row["region"] == "likelihood" and row["instance"] in HALVED]
    return 0 if all(float(str(row["relative_width"])) < 0.5 for row in halved) else 1


if __name__ == "__main__":
    sys.exit(main())
