"""The CUDA backend: how close sweeps come to the memory's speed, and solves beside the CPU's.

    python benchmarks/gpu_speed.py              on a GPU: sweeps over 2·10^8 transitions, then solves of
                                                10^6 to 2·10^8, with the CPU beside them up to 10^8
    python benchmarks/gpu_speed.py --sweeps     only the first part; --solves: only the second
    python benchmarks/gpu_speed.py --suite      the case studies up to 2·10^6 transitions, at their true
                                                points and with intervals, beside the CPU's solver
    python benchmarks/gpu_speed.py --smoke      everything on small instances; without a GPU on the emulated
                                                device, where the figures mean nothing

Bytes of a sweep: indices, numbers of bounds, one vector of values read and one written, and the choices
taken, each counted once. Bandwidth is measured on the same device by a copy of 4 GB, bytes read plus bytes
written. Seconds of a solve are wall seconds from the model in the host's memory to verified bounds for all
states, with the policy; `again` is a further solve of the model that lies on the device. Kernels are compiled
before, on a small model. The CPU's solver runs on one core.

Prints tables and writes the rows as JSON (default: bench-results/gpu_speed.json). Leaves with status 1 where
a goal is missed: 60 % of the copy's bandwidth for intervals, 30 % for polygons, certified bounds that agree.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gpu_models
from gpu_models import interval_trips, polygon_trips
from tightrope.benchmarks.suite import list_instances, load, question
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.cuda.backend import CudaBlock
from tightrope.solver.cuda.device import Device, open_device
from tightrope.solver.cuda.kernel import CudaOperator
from tightrope.solver.equations.system import equations_of
from tightrope.solver.solve import Workspace, solve

INTERVAL_GOAL, POLYGON_GOAL = 0.60, 0.30
SIZES = (1_000_000, 10_000_000, 100_000_000, 200_000_000)
LARGEST_ON_CPU = 100_000_000
SUITE = 2_000_000

Row = dict[str, Any]


def has_gpu() -> bool:
    return importlib.util.find_spec("cupy") is not None


def synchronize(device: Device) -> None:
    device.download(device.xp.zeros(1))


def copy_speed(device: Device, size: int) -> float:
    """Bytes read and written a second."""
    a, b = device.xp.ones(size // 8), device.xp.zeros(size // 8)
    best = np.inf
    for _ in range(8):
        synchronize(device)
        begin = time.perf_counter()
        b[...] = a
        synchronize(device)
        best = min(best, time.perf_counter() - begin)
    return 2 * size / best


def timed_sweeps(block: CudaBlock, frozen: bool, repeats: int) -> float:
    """Seconds of one sweep, over many that follow each other."""
    states = block.kernel.structure.states
    vector = block.state_vector(np.random.default_rng(0).random(states))
    block.sweep(vector, None, 1.0, frozen=False, measure=True)
    while block.model.expanded():
        block.sweep(vector, None, 1.0, frozen=False, measure=True)
    best = np.inf
    for _ in range(3):
        synchronize(block.device)
        begin = time.perf_counter()
        for _ in range(repeats):
            block.sweep(vector, None, 1.0, frozen=frozen, measure=False)
            vector = vector.back
        synchronize(block.device)
        best = min(best, (time.perf_counter() - begin) / repeats)
    return best


def sweep_rows(device: Device, transitions: int, speed: float) -> list[Row]:
    """One row for each kind of model."""
    rows = []
    for name in ("2 successors", "3 successors", "4 successors", "polygon"):
        if name == "polygon":
            host, objective = polygon_trips(transitions)
        else:
            model, objective = interval_trips(transitions, int(name[0]))
            host = IntervalOperator.of(model)
        kernel = CudaOperator(host, device)
        structure = host.structure
        enabled = np.ones(structure.choices, np.bool_)
        equations = equations_of(objective, structure, kernel.support, enabled)
        block = CudaBlock(kernel, equations.system, ~equations.fixed)
        block.lean = "true"  # as a solve finds out: one reward, nothing infinite
        repeats = 50 if transitions > 10**6 else 2
        seconds = timed_sweeps(block, False, repeats)
        frozen = timed_sweeps(block, True, repeats)
        moved = kernel.model.layout.bytes + structure.states * (8 + 8 + 4)
        if name == "polygon":
            moved += 4 * structure.choices  # where each choice was last optimal
        rows.append(
            {
                "model": name,
                "transitions": structure.transitions,
                "microseconds": round(seconds * 1e6, 1),
                "frozen_microseconds": round(frozen * 1e6, 1),
                "bytes": moved,
                "transitions_a_second": structure.transitions / seconds,
                "of_copy": round(moved / seconds / speed, 3),
                "goal": POLYGON_GOAL if name == "polygon" else INTERVAL_GOAL,
                "distinct": kernel.model.layout.distinct,
            }
        )
        del kernel, block
    return rows


def solve_row(name: str, transitions: int, with_cpu: bool) -> Row:
    """The same model on the device, again there, and on the CPU."""
    model, objective = interval_trips(transitions, 3)
    kernel = IntervalOperator.of(model)
    workspace = Workspace(name)
    begin = time.perf_counter()
    there = solve(kernel, objective, workspace=workspace)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    solve(kernel, objective, workspace=workspace)
    again = time.perf_counter() - begin
    row: Row = {
        "transitions": model.transitions,
        "states": model.states,
        "seconds": round(first, 3),
        "again": round(again, 3),
        "iterations": there.iterations,
        "gap": there.gap,
        "status": there.status.name,
    }
    if with_cpu:
        begin = time.perf_counter()
        here = solve(kernel, objective, threads=1)
        row["cpu_seconds"] = round(time.perf_counter() - begin, 3)
        row["cpu_iterations"] = here.iterations
        row["ratio"] = round(row["cpu_seconds"] / row["seconds"], 1)
        row["agree"] = bool(np.all(there.lower <= here.upper) and np.all(here.lower <= there.upper))
    return row


def suite_rows(name: str, most: int) -> list[Row]:
    """Every case study on the device and on the CPU: a point, and intervals around it with both natures."""
    rows = []
    for instance in list_instances():
        model = load(instance)
        if model.transitions > most:
            continue
        objective = question(instance, model.structure).objective
        point = model.instantiate(instance.truth)
        reach = np.where(model.expressions.is_constant[model.expression], 0.0, 0.02)
        bounds = np.maximum(point.probability - reach, 0.0), np.minimum(point.probability + reach, 1.0)
        interval = IntervalMDP(model.structure, *bounds)
        for subject, nature in ((point, None), (interval, Direction.MIN), (interval, Direction.MAX)):
            asked = objective if nature is None else replace(objective, nature=nature)
            begin = time.perf_counter()
            there = solve(subject, asked, device=name)
            middle = time.perf_counter()
            here = solve(subject, asked, threads=1)
            rows.append(
                {
                    "instance": instance.name,
                    "nature": "point" if nature is None else nature.value,
                    "transitions": model.transitions,
                    "seconds": round(middle - begin, 3),
                    "cpu_seconds": round(time.perf_counter() - middle, 3),
                    "status": there.status.name,
                    "agree": there.status is here.status
                    and bool(np.all(there.lower <= here.upper) and np.all(here.lower <= there.upper)),
                    "iterations": there.iterations,
                }
            )
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--sweeps", action="store_true")
    parser.add_argument("--solves", action="store_true")
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("--largest-on-cpu", type=int, default=LARGEST_ON_CPU)
    parser.add_argument("--emulated", action="store_true", help="not on the GPU, even if there is one")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/gpu_speed.json"))
    options = parser.parse_args()
    if not has_gpu() and not options.smoke:
        print("no CuPy here: nothing to measure (--smoke runs on the emulated device)")
        return 0
    if options.smoke:
        gpu_models.STATION = 12
    name = "cuda" if has_gpu() and not options.emulated else "cuda-emulated"
    device = open_device(name)
    both = not (options.sweeps or options.solves or options.suite)
    results: dict[str, Any] = {"device": getattr(device, "name", name)}
    if both or options.sweeps:
        speed = copy_speed(device, 2**20 if options.smoke else 2**32)
        results["copy_bytes_a_second"] = speed
        print(f"{results['device']}: a copy moves {speed / 1e12:.2f} TB/s")
        results["sweeps"] = sweep_rows(device, 3_000 if options.smoke else 200_000_000, speed)
        for row in results["sweeps"]:
            print(
                f"{row['model']:13s} {row['transitions']:.3g} transitions  {row['microseconds']:9.1f} us"
                f" (frozen {row['frozen_microseconds']:.1f})  {row['transitions_a_second']:.3g} a second"
                f"  {row['of_copy']:.1%} of the copy, goal {row['goal']:.0%}"
            )
    if both or options.solves:
        solve(*interval_trips(7_000 if options.smoke else 900_000, 3), device=name)
        if not options.smoke:
            solve(*interval_trips(7_000, 3))
        results["solves"] = []
        for size in (7_000,) if options.smoke else SIZES:
            row = solve_row(name, size, size <= options.largest_on_cpu)
            results["solves"].append(row)
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if options.suite:
        results["suite"] = suite_rows(name, 5_000 if options.smoke else SUITE)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    slow = [row["model"] for row in results.get("sweeps", []) if row["of_copy"] < row["goal"]]
    wrong = [
        row["transitions"]
        for row in (*results.get("solves", []), *results.get("suite", []))
        if row["status"] != "CERTIFIED" or not row.get("agree", True)
    ]
    if wrong or (slow and not options.smoke):
        print(f"goals missed: sweeps {slow}, solves {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
