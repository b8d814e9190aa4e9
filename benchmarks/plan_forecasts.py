"""How good the forecasts of `tightrope plan` are: episodes that were needed beside those that were forecast.

    python benchmarks/plan_forecasts.py                      all six families, pilots of 100, 571 and 2000
    python benchmarks/plan_forecasts.py 'rover(10,10)'       some by name; --seeds, --pilots, --ways, --shares
    python benchmarks/plan_forecasts.py --again              forecasts made anew for the rows that there are
    python benchmarks/plan_forecasts.py --times              how long a plan takes, up to rover(125,125)
    python benchmarks/plan_forecasts.py --table              the tables of docs/results/planning.md
    python benchmarks/plan_forecasts.py --smoke              one small cell, in seconds

δ = 0.001, likelihood region, rectangular sets. From a pilot of uniform episodes `plan` forecasts how many
more episodes a third and an eighth of the present gap take. Then episodes are collected, under the true
parameters, in stages that double the data, with the policy planned anew (designed), the robust policy of the
moment, or uniformly, until the certified gap is as small as was asked for: the first end of a batch where it
is, interpolated towards the one before (both axes logarithmic). Cells of more than `MOST` episodes are left
out, and counted.

Rows are appended to bench-results/plan_forecasts.jsonl as they come, and cells that are in it are not
measured again. Leaves with status 1 where fewer than 90 % of the forecasts are within a factor of 1.5, or the
printed range covers fewer than 90 %.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from tightrope.data.collection import append_episodes
from tightrope.data.counts import batch_ends
from tightrope.data.design import find_decided_states
from tightrope.loading import Benchmark

DELTA = 0.001
SEEDS = (1, 2, 3)
PILOTS = (100, 571, 2000)
SHARES = (1 / 3, 1 / 8)
WAYS = ("designed", "robust", "uniform")
INSTANCES = (
    "aircraft(20,10)",
    "betting(50)",
    "engagement(50)",
    "glider(21,17)",
    "parallel(10)",
    "rover(10,10)",
)
TIMED = {"rover(125,125)": 60.0, "rover(50,50)": 10.0, **dict.fromkeys(INSTANCES, 10.0)}
"""Seconds that a plan may take."""

MOST = 1_000_000
WITHIN = 1.5
GOAL = 0.9
FILE = Path("bench-results/plan_forecasts.jsonl")
OPTIONS: dict[str, Any] = {"delta": DELTA, "region": "likelihood", "sets": "rectangular"}


@cache
def instance(name: str) -> Benchmark:
    return tr.benchmark(name)


def simulator(name: str, policy: tr.Policy | None = None) -> tr.Simulator:
    bench = instance(name)
    stop = find_decided_states(bench.problem.objective, bench.model.states)
    return tr.Simulator(
        bench.at_truth.model, policy, stop, bench.episode_cap, model_hash=bench.model.hash(), threads=1
    )


def planned(name: str, counts: tr.Counts, **aim: Any) -> tr.Plan:
    bench = instance(name)
    return tr.plan(bench.problem, counts, within_cap=bench.episode_cap, threads=1, **aim, **OPTIONS)


def learned(name: str, counts: tr.Counts) -> tr.LearningResult:
    return tr.learn(instance(name).problem, counts, threads=1, **OPTIONS)


def needed(name: str, pilot: tr.Counts, gap: float, way: str, seed: int) -> float:
    """More episodes until the certified gap; infinite beyond `MOST`."""
    counts = pilot
    begin = so_far = int(pilot.design.episodes or 0)
    before = math.nan
    while so_far - begin < MOST:
        policy, width = _policy(name, counts, gap, way)
        before = width if width is not None else before
        ends = batch_ends(4 * so_far)
        ends = ends[(ends > so_far) & (ends <= 2 * so_far)].tolist()
        ahead = simulator(name, policy)
        widths = {so_far: before}

        def width_at(
            end: int, ahead: tr.Simulator = ahead, counts: tr.Counts = counts, start: int = so_far
        ) -> float:
            return learned(name, append_episodes(counts, ahead, end - start, seed)).robust.interval.width

        widths[ends[-1]] = width_at(ends[-1])
        if widths[ends[-1]] <= gap:
            return _crossing(widths, [so_far, *ends], gap, width_at) - begin
        counts = append_episodes(counts, ahead, ends[-1] - so_far, seed)
        before, so_far = widths[ends[-1]], ends[-1]
    return math.inf


def _policy(name: str, counts: tr.Counts, gap: float, way: str) -> tuple[tr.Policy | None, float | None]:
    """What to collect the next stage with, and the present gap where it is found on the way."""
    if way == "uniform":
        return None, None
    if way == "robust":
        result = learned(name, counts)
        return result.robust.policy, result.robust.interval.width
    found = planned(name, counts, gap=gap)
    return (None if found.exploration is None else found.policy), found.gap_now


def _crossing(widths: dict[int, float], ends: list[int], gap: float, width_at: Any) -> float:
    """Where the gap is crossed: bisection over ends of batches, then between the last two."""
    low, high = 0, len(ends) - 1
    while high - low > 1:
        middle = (low + high) // 2
        widths[ends[middle]] = width_at(ends[middle])
        low, high = (low, middle) if widths[ends[middle]] <= gap else (middle, high)
    above, below = widths[ends[low]], widths[ends[high]]
    if not math.isfinite(above) or above <= below:
        return float(ends[high])
    share = math.log(above / gap) / math.log(above / below)
    return float(math.exp(math.log(ends[low]) * (1 - share) + math.log(ends[high]) * share))


def forecast_again(rows: list[dict[str, Any]], file: Path) -> None:
    """The forecasts of this version beside what was needed."""
    known: dict[tuple[Any, ...], tr.Plan] = {}
    for row in rows:
        cell = row["instance"], row["pilot"], row["seed"], row["gap"]
        if cell not in known:
            known[cell] = planned(cell[0], simulator(cell[0]).episodes(cell[1], cell[2]), gap=cell[3])
        if row["needed"] is None:
            continue
        made = next(one for one in known[cell].strategies if one.name == row["way"])
        row |= {"forecast": made.episodes, "low": made.low, "high": made.high}
    lines = [json.dumps({k: _plain(v) for k, v in row.items()}) + "\n" for row in rows]
    file.write_text("".join(lines), encoding="utf-8")


def measure(
    cell: tuple[str, int, int, float], ways: list[str], rows: list[dict[str, Any]], file: Path
) -> None:
    """Those ways of one cell that are not measured yet."""
    name, pilot, seed, share = cell
    key = {"instance": name, "pilot": pilot, "seed": seed, "share": round(share, 4)}
    missing = [
        way
        for way in ways
        if not any(all(row[k] == v for k, v in {**key, "way": way}.items()) for row in rows)
    ]
    if not missing:
        return
    data = simulator(name).episodes(pilot, seed)
    now = learned(name, data).robust.interval.width
    gap = share * now
    found = planned(name, data, gap=gap) if 1e-9 < now < math.inf else None
    found = found if found is not None and found.strategies else None
    for way in missing:
        strategy = None if found is None else next(one for one in found.strategies if one.name == way)
        row: dict[str, Any] = {**key, "way": way, "gap_now": now, "gap": gap}
        if strategy is None:
            row |= {"forecast": None, "low": None, "high": None, "needed": None}
        else:
            skip = not strategy.episodes < MOST
            came = math.inf if skip else needed(name, data, gap, way, seed + 1000)
            row |= {"forecast": strategy.episodes, "low": strategy.low, "high": strategy.high}
            row["needed"] = came if math.isfinite(came) else None
        rows.append(row)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({k: _plain(v) for k, v in row.items()}) + "\n")
        print(json.dumps({k: _plain(v) for k, v in row.items()}), flush=True)


def _plain(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def judged(rows: list[dict[str, Any]]) -> list[tuple[str, int, float, float, float, float, float]]:
    """Per instance and over all: forecasts, median of needed/forecast, its 10 % and 90 %, shares."""
    result = []
    groups = [*dict.fromkeys(row["instance"] for row in rows), "all"]
    for group in [*groups, *(f"pilot {n}" for n in PILOTS), *WAYS]:
        mine = [
            row
            for row in rows
            if row["needed"] is not None
            and group in ("all", row["instance"], f"pilot {row['pilot']}", row["way"])
        ]
        if not mine:
            continue
        ratio = np.array([row["needed"] / max(row["forecast"], 1.0) for row in mine])
        inside = np.mean([row["low"] <= row["needed"] <= row["high"] for row in mine])
        within = np.mean((ratio <= WITHIN) & (ratio >= 1 / WITHIN))
        low, middle, high = np.quantile(ratio, (0.1, 0.5, 0.9))
        result.append(
            (group, len(mine), float(middle), float(low), float(high), float(within), float(inside))
        )
    return result


def show(rows: list[dict[str, Any]]) -> bool:
    print("| | forecasts | needed / forecast | 10–90 % | within × 1.5 | inside the range |")
    print("|---|---|---|---|---|---|")
    fine = False
    for name, count, middle, low, high, within, inside in judged(rows):
        print(f"| {name} | {count} | {middle:.2f} | {low:.2f}–{high:.2f} | {within:.0%} | {inside:.0%} |")
        if name == "all":
            fine = within >= GOAL and inside >= GOAL
    left = sum(row["needed"] is None for row in rows)
    print(f"\n{left} cells without a number: more than {MOST:,} episodes, or no finite gap from the pilot")
    return fine


def times(names: list[str]) -> bool:
    fine = True
    for name in names or list(TIMED):
        data = simulator(name).episodes(571, 1)
        seconds = []
        for _ in range(2):  # the first one may compile
            wall, cpu = time.perf_counter(), time.process_time()
            found = planned(name, data, gap="5%")
            seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
        wall, cpu = seconds[-1]
        goal = TIMED.get(name, 10.0)
        fine &= min(wall, cpu) <= goal
        made = found.exploration
        solves = "" if made is None else f", {made.solves} solves, within {made.optimality:.2%}"
        print(f"{name:16} {wall:6.2f} s, {cpu:6.2f} s of CPU (goal {goal:g} s){solves}", flush=True)
    return fine


def read(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [{k: math.inf if v == "inf" else v for k, v in row.items()} for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("instances", nargs="*", help="such as 'rover(10,10)'")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--pilots", nargs="*", type=int, default=list(PILOTS))
    parser.add_argument("--shares", nargs="*", type=float, default=list(SHARES))
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    asked = parser.parse_args()
    if asked.times:
        return 0 if times(asked.instances) else 1
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    rows = read(asked.out)
    if asked.smoke:
        measure(("aircraft(3,2)", 100, 1, 0.7), ["uniform"], rows, asked.out)
        show(rows)
        return 0
    if asked.again:
        forecast_again(rows, asked.out)
    elif not asked.table:
        for share in asked.shares:
            for seed in asked.seeds:
                for name in asked.instances or INSTANCES:
                    for pilot in asked.pilots:
                        measure((name, pilot, seed, share), asked.ways, rows, asked.out)
    return 0 if show(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
