"""Sizes, optimum, times and peak memory of every case study, each in a process of its own.

    python benchmarks/suite_sizes.py                       all 24 instances
    python benchmarks/suite_sizes.py --quick               those up to 50,000 transitions
    python benchmarks/suite_sizes.py 'rover(125,125)'      only these

Prints a table and writes the same rows as JSON. Leaves with status 1 where a size or an optimum is
not the recorded one. Compilation of kernels is included where the cache of compiled code is cold;
memory is the peak of the whole process after the build, and after the solve at the true point.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances, load, parse_bench, question
from tightrope.solver.solve import solve

QUICK = 50_000
LIMITS = {"rover(125,125)": (30.0, 3 * 1024), "parallel(20)": (30.0, None)}
"""Seconds and MiB that an instance may take to build."""


def measure(instance: Instance) -> dict[str, object]:
    """Build one instance here and say what came out."""
    wall, cpu = time.perf_counter(), time.process_time()
    model = load(instance)
    built_wall, built_cpu = time.perf_counter() - wall, time.process_time() - cpu
    build_mib = _peak_mib()
    wall, cpu = time.perf_counter(), time.process_time()
    solution = solve(model.instantiate(instance.truth), question(instance, model.structure).objective)
    return {
        "instance": instance.name,
        "states": model.states,
        "choices": model.choices,
        "transitions": model.transitions,
        "expressions": len(model.expressions),
        "unproved_ranges": len(model.unproved),
        "build_seconds": round(built_wall, 3),
        "build_cpu_seconds": round(built_cpu, 3),
        "build_peak_mib": build_mib,
        "solve_seconds": round(time.perf_counter() - wall, 3),
        "solve_cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_mib": _peak_mib(),
        "lower": float(solution.lower[model.initial]),
        "upper": float(solution.upper[model.initial]),
        "status": solution.status.name,
    }


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measure_apart(instance: Instance) -> dict[str, object]:
    """The same in a fresh process, so that memory and imports are this instance's own."""
    command = [sys.executable, __file__, "--here", instance.name]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        sys.exit(f"{instance.name} failed:\n{finished.stderr}")
    # The last line: numerical libraries may have written complaints of their own before it.
    row: dict[str, object] = json.loads(finished.stdout.splitlines()[-1])
    return row


def faults(instance: Instance, row: dict[str, object]) -> list[str]:
    """What is not as recorded."""
    found = []
    if instance.sizes is not None:
        for quantity in ("states", "transitions", "expressions"):
            expected = getattr(instance.sizes, quantity)
            if row[quantity] != expected:
                found.append(f"{quantity} {row[quantity]}, not {expected}")
    if row["status"] != "CERTIFIED":
        found.append(f"the solve ended with {row['status']}")
    if instance.optimum is not None:
        low, high = float(str(row["lower"])), float(str(row["upper"]))
        optimum, slack = float(instance.optimum), instance.optimum_tolerance
        if not low - slack <= optimum <= high + slack:
            found.append(f"optimum in [{low}, {high}], not {optimum}")
    return found


def remarks(instance: Instance, row: dict[str, object]) -> list[str]:
    """Where a build went over its limits; timings depend on the machine, so this is no fault."""
    seconds, memory = LIMITS.get(instance.name, (None, None))
    found = []
    if seconds is not None and float(str(row["build_seconds"])) > seconds:
        found.append(f"over {seconds:g} s")
    if memory is not None and int(str(row["build_peak_mib"])) > memory:
        found.append(f"over {memory} MiB")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Sizes and build times of the case studies.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME(ARGS)", help="instances; all listed ones by default"
    )
    parser.add_argument("--quick", action="store_true", help=f"only instances up to {QUICK} transitions")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/suite_sizes.json"))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    instances = [parse_bench(name) for name in options.names] or list(list_instances())
    if options.here:
        print(json.dumps(measure(instances[0])))
        return
    if options.quick:
        instances = [i for i in instances if i.sizes is not None and i.sizes.transitions <= QUICK]

    print(
        f"{'instance':<16}{'|S|':>9}{'choices':>10}{'|T|':>9}{'|Λ|':>8}"
        f"{'build s':>9}{'cpu s':>8}{'MiB':>7}{'solve s':>9}{'cpu s':>8}{'MiB':>7}{'optimum':>11}"
    )
    rows, failed = [], False
    for instance in instances:
        row = measure_apart(instance)
        wrong = faults(instance, row)
        failed = failed or bool(wrong)
        rows.append({**row, "faults": wrong})
        print(
            f"{instance.name:<16}{row['states']:>9}{row['choices']:>10}{row['transitions']:>9}"
            f"{row['expressions']:>8}{row['build_seconds']:>9.2f}{row['build_cpu_seconds']:>8.2f}"
            f"{row['build_peak_mib']:>7}{row['solve_seconds']:>9.2f}{row['solve_cpu_seconds']:>8.2f}"
            f"{row['peak_mib']:>7}{row['lower']:>11.5f}  {'; '.join([*wrong, *remarks(instance, row)])}",
            flush=True,
        )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"written to {options.output}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
