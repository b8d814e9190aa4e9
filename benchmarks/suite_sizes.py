"""Sizes, build time and peak memory of every case study, each in a process of its own.

    python benchmarks/suite_sizes.py                       all 24 instances
    python benchmarks/suite_sizes.py --quick               those up to 50,000 transitions
    python benchmarks/suite_sizes.py 'rover(125,125)'      only these

Prints a table and writes the same rows as JSON. Leaves with status 1 where a size or an optimum is
not the recorded one. Times are those of one build, compilation of kernels included where the cache
of compiled code is cold; memory is the peak of the whole process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from tightrope.experiments.instance import Instance
from tightrope.experiments.suite import listed, load, parse_bench

QUICK = 50_000
LIMITS = {"rover(125,125)": (30.0, 3 * 1024), "parallel(20)": (30.0, None)}
"""Seconds and MiB that an instance may take to build."""


def measure(instance: Instance) -> dict[str, object]:
    """Build one instance here and say what came out."""
    wall, cpu = time.perf_counter(), time.process_time()
    model = load(instance)
    return {
        "instance": instance.name,
        "states": model.states,
        "choices": model.choices,
        "transitions": model.transitions,
        "expressions": len(model.expressions),
        "unproved_ranges": len(model.unproved),
        "build_seconds": round(time.perf_counter() - wall, 3),
        "build_cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def measure_apart(instance: Instance) -> dict[str, object]:
    """The same in a fresh process, so that memory and imports are this instance's own."""
    command = [sys.executable, __file__, "--here", instance.name]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        sys.exit(f"{instance.name} failed:\n{finished.stderr}")
    row: dict[str, object] = json.loads(finished.stdout)
    return row


def faults(instance: Instance, row: dict[str, object]) -> list[str]:
    """What is not as recorded."""
    found = []
    if instance.sizes is not None:
        for quantity in ("states", "transitions", "expressions"):
            expected = getattr(instance.sizes, quantity)
            if row[quantity] != expected:
                found.append(f"{quantity} {row[quantity]}, not {expected}")
    return found


def remarks(instance: Instance, row: dict[str, object]) -> list[str]:
    """Where a build went over its limits; timings depend on the machine, so this is no fault."""
    seconds, memory = LIMITS.get(instance.name, (None, None))
    found = []
    if seconds is not None and float(str(row["build_seconds"])) > seconds:
        found.append(f"over {seconds:g} s")
    if memory is not None and int(str(row["peak_mib"])) > memory:
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
    instances = [parse_bench(name) for name in options.names] or list(listed())
    if options.here:
        print(json.dumps(measure(instances[0])))
        return
    if options.quick:
        instances = [i for i in instances if i.sizes is not None and i.sizes.transitions <= QUICK]

    print(
        f"{'instance':<16}{'|S|':>9}{'choices':>10}{'|T|':>9}{'|Λ|':>8}{'build s':>9}{'cpu s':>8}{'MiB':>7}"
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
            f"{row['peak_mib']:>7}  {'; '.join([*wrong, *remarks(instance, row)])}",
            flush=True,
        )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"written to {options.output}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
