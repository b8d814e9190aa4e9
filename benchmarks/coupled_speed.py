"""Width and time of coupled intervals beside expression-wise and rectangular ones, with the goals they must
meet.

    python benchmarks/coupled_speed.py                     the instances that have goals, and larger ones
    python benchmarks/coupled_speed.py --smoke             two small ones
    python benchmarks/coupled_speed.py 'glider(51,47)'     some by name

Counts come from `--episodes` simulated trajectories under the uniform policy; what is evaluated is the policy
that is optimal at the true point, over the polytope and over the likelihood region. Columns: widths of the
certified interval over the three kinds of sets; how the coupled search ended, its gap (the share of the width
that no instantiation accounts for) and cells; CPU seconds of one core for the coupled part alone and, before
it, for both rectangular solves. Compiled code is loaded on a small instance first. Prints a table, writes it
as JSON, and leaves with status 1 where a goal is missed or an interval is not inside the rectangular one. A
goal for the width counts as met where the interval is exact: no sound one is narrower.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tightrope.ambiguity.sets import expression, rectangular
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.coupled.result import CoupledStatus
from tightrope.coupled.value import CoupledLimits, bound_coupled_value, rectangular_solutions
from tightrope.data.simulator import Simulator
from tightrope.regions.registry import build_region, region_kind
from tightrope.solver.solve import solve

DELTA = 0.001
REGIONS = ("polytope", "likelihood")


@dataclass(frozen=True)
class Goal:
    """None where nothing is asked; `seconds` are those of the coupled part, `relative` is width / value."""

    seconds: float | None = None
    of_rectangular: float | None = None
    of_expression: float | None = None
    relative: float | None = None
    exact: bool = False

    def missed(self, row: dict[str, object]) -> list[str]:
        def number(key: str) -> float:
            return float(str(row[key]))

        found = []
        if self.seconds is not None and number("seconds") > self.seconds:
            found.append(f"over {self.seconds:g} s")
        if self.exact and row["status"] != CoupledStatus.EXACT.name:
            found.append("not exact")
        if number("gap") > 0.02:
            found.append("gap over 2 %")
        if row["status"] != CoupledStatus.EXACT.name:
            found += self.too_wide(row)
        return found

    def too_wide(self, row: dict[str, object]) -> list[str]:
        """Widths above what was hoped for; no fault of an exact interval, as no sound one is narrower."""
        hopes = (
            ("of_rectangular", self.of_rectangular, "of rectangular"),
            ("of_expression", self.of_expression, "of expression-wise"),
            ("relative", self.relative, "relative width"),
        )
        return [
            f"over {hope:g} {words}"
            for key, hope, words in hopes
            if hope is not None and float(str(row[key])) > hope
        ]


GOALS = {
    ("aircraft(50,10)", "polytope"): Goal(2.0, of_rectangular=0.6),
    ("aircraft(100,20)", "polytope"): Goal(5.0, of_rectangular=0.6),
    ("aircraft(200,40)", "polytope"): Goal(30.0, of_rectangular=0.6),
    ("aircraft(50,10)", "likelihood"): Goal(relative=0.01),
    ("aircraft(100,20)", "likelihood"): Goal(relative=0.01),
    ("aircraft(200,40)", "likelihood"): Goal(relative=0.01),
    ("glider(21,17)", "polytope"): Goal(of_expression=0.8),
    ("glider(51,47)", "polytope"): Goal(of_expression=0.8),
    ("betting(20)", "polytope"): Goal(exact=True),
    ("engagement(50)", "polytope"): Goal(exact=True),
    ("rover(10,10)", "polytope"): Goal(exact=True),
}
LARGE = (*dict.fromkeys(name for name, _ in GOALS), "rover(50,50)", "parallel(10)")
SMALL = ("glider(11,9)", "aircraft(20,10)")


def measure(name: str, regions: tuple[str, ...], episodes: int, seconds: float) -> list[dict[str, object]]:
    """One row a region."""
    instance = parse_bench(name)
    model = load(instance)
    objective = question(instance, model.structure).objective
    truth = model.instantiate(instance.truth)
    policy = solve(truth, objective).policy
    simulator = Simulator(truth, cap=instance.episode_cap, model_hash=model.hash(), threads=1)
    counts = simulator.episodes(episodes, seed=1)
    rows = []
    for region_name in regions:
        region = build_region(region_kind(region_name), model, counts, DELTA)
        sets = rectangular(region, model)
        wide = rectangular_solutions(expression(region, model), objective, policy, 1e-9)
        begin = time.process_time()
        solutions = rectangular_solutions(sets, objective, policy, 1e-9)
        middle = time.process_time()
        limits = CoupledLimits(seconds=seconds)
        value = bound_coupled_value(sets, objective, policy, rectangular=solutions, limits=limits)
        end = time.process_time()
        expression_width = float(wide[1].upper[model.initial] - wide[0].lower[model.initial])
        rectangular_width = value.rectangular_upper - value.rectangular_lower
        row: dict[str, object] = {
            "instance": name,
            "region": region_name,
            "states": model.states,
            "coordinates": region.coordinates.size,
            "expression": expression_width,
            "rectangular": rectangular_width,
            "coupled": value.width,
            "of_expression": value.width / expression_width,
            "of_rectangular": value.width / rectangular_width,
            "relative": value.width / max(abs(value.lower), abs(value.upper)),
            "lower": value.lower,
            "upper": value.upper,
            "status": value.status.name,
            "rectangular_lost_nothing": value.rectangular_lost_nothing,
            "gap": value.gap,
            "cells": len(value.cells),
            "rectangular_seconds": round(middle - begin, 3),
            "seconds": round(end - middle, 3),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        goal = GOALS.get((name, region_name), Goal())
        row["missed"], row["too_wide"] = goal.missed(row), goal.too_wide(row)
        if not value.rectangular_lower <= value.lower <= value.upper <= value.rectangular_upper:
            row["missed"] = ["outside the rectangular interval"]
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Width and time of coupled intervals.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME(ARGS)", help="instances; by default those with goals"
    )
    parser.add_argument("--smoke", action="store_true", help="two small instances, polytope only")
    parser.add_argument("--episodes", type=int, default=None, help="trajectories; 100,000 by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of one search")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/coupled_speed.json"))
    options = parser.parse_args()
    episodes = options.episodes or (2_000 if options.smoke else 100_000)
    regions = REGIONS[:1] if options.smoke else REGIONS
    for name in SMALL:
        measure(name, REGIONS[:1], 200, options.seconds)
    print(
        f"{'instance':<18}{'region':<11}{'expression':>12}{'rectangular':>12}{'coupled':>12}{'of rect.':>9}"
        f"{'status':>13}{'gap':>9}{'cells':>6}{'rect. s':>8}{'coupled s':>10}"
    )
    rows = []
    for name in options.names or (SMALL if options.smoke else LARGE):
        for row in measure(name, regions, episodes, options.seconds):
            rows.append(row)
            missed, wide = row["missed"], row["too_wide"]
            assert isinstance(missed, list) and isinstance(wide, list)
            if wide and not missed:
                missed = [f"{'; '.join(wide)}, but exact"]
            print(
                f"{name:<18}{row['region']:<11}{row['expression']:>12.5g}{row['rectangular']:>12.5g}"
                f"{row['coupled']:>12.5g}{row['of_rectangular']:>9.3f}{row['status']:>13}{row['gap']:>9.1e}"
                f"{row['cells']:>6}{row['rectangular_seconds']:>8.2f}{row['seconds']:>10.2f}  "
                + "; ".join(missed),
                flush=True,
            )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"delta": DELTA, "episodes": episodes, "rows": rows}
    options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {options.output}")
    sys.exit(1 if any(row["missed"] for row in rows) else 0)


if __name__ == "__main__":
    main()
