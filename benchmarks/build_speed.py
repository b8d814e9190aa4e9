"""Building parametric models from PRISM files: tightrope beside Storm, in one run.

    python benchmarks/build_speed.py            about 0.5M and 1M transitions with both, larger ones alone
    python benchmarks/build_speed.py --smoke    the same on small instances, in seconds

Every build is a process of its own that first builds a tiny model, so that imports and the loading
of compiled kernels are not counted, then reads and builds the instance. Seconds are CPU seconds of
that process; Storm builds with `stormpy.build_model[stormpy.RationalFunction]`, all labels and
rewards. Memory is the peak of the process beyond what it held before, divided by the transitions.

Prints a table and writes the rows as JSON (default: bench-results/build_speed.json). Leaves with
status 1 where a goal is missed: 10 times as fast as Storm, a million transitions a second on models
of a million transitions and more, 200 bytes a transition.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BOTH = ("betting(100)", "aircraft(100,20)", "betting(146)", "aircraft(130,25)")
ALONE = ("rover(50,50)", "rover(75,75)", "aircraft(200,40)", "rover(125,125)", "parallel(20)")
SMOKE_BOTH = ("betting(25)",)
SMOKE_ALONE = ("rover(10,10)",)
TINY = "parallel(2)"

FASTER_THAN_STORM = 10.0
TRANSITIONS_A_SECOND = 1_000_000
BYTES_A_TRANSITION = 200

Row = dict[str, object]


def build_with_tightrope(name: str) -> tuple[int, int]:
    from tightrope.benchmarks.suite import load, parse_bench

    model = load(parse_bench(f"bench:{name}"))
    return model.states, model.transitions


def build_with_storm(name: str) -> tuple[int, int]:
    import stormpy

    from tightrope.benchmarks.suite import parse_bench

    instance = parse_bench(f"bench:{name}")
    program = stormpy.parse_prism_program(str(instance.path), simplify=False)
    given = ",".join(f"{constant}={value}" for constant, value in instance.constants.items())
    program, _ = stormpy.instantiate_constants(program, given)
    model = stormpy.build_model[stormpy.RationalFunction](program)
    return model.nr_states, model.nr_transitions


BUILDERS = {"tightrope": build_with_tightrope, "storm": build_with_storm}


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(tool: str, name: str) -> Row:
    """Build here, after a tiny build to warm up."""
    build = BUILDERS[tool]
    build(TINY)
    before, wall, cpu = peak_bytes(), time.perf_counter(), time.process_time()
    states, transitions = build(name)
    return {
        "tool": tool,
        "instance": name,
        "states": states,
        "transitions": transitions,
        "cpu_seconds": round(time.process_time() - cpu, 4),
        "wall_seconds": round(time.perf_counter() - wall, 4),
        "bytes_a_transition": round((peak_bytes() - before) / transitions, 1),
    }


def measure_apart(tool: str, name: str) -> Row:
    """The same in a process of its own."""
    with tempfile.TemporaryFile("w+") as answer:
        command = [sys.executable, __file__, "--here", tool, name]
        finished = subprocess.run(command, stdout=answer, stderr=subprocess.PIPE, text=True, check=False)
        if finished.returncode != 0:
            sys.exit(f"{tool} failed on {name}:\n{finished.stderr}")
        answer.seek(0)
        row: Row = json.loads(answer.read().splitlines()[-1])
    row["transitions_a_second"] = round(float(str(row["transitions"])) / float(str(row["cpu_seconds"])))
    return row


def compare(both: tuple[str, ...], alone: tuple[str, ...]) -> list[Row]:
    """All rows; those of tightrope say how many times as fast as Storm they were."""
    rows = []
    for name in (*both, *alone):
        ours = measure_apart("tightrope", name)
        rows.append(ours)
        if name in both:
            storm = measure_apart("storm", name)
            if (ours["states"], ours["transitions"]) != (storm["states"], storm["transitions"]):
                sys.exit(f"{name}: tightrope and Storm do not build the same model")
            ours["times_as_fast"] = round(
                float(str(storm["cpu_seconds"])) / float(str(ours["cpu_seconds"])), 1
            )
            rows.append(storm)
        show(rows[-2:] if name in both else rows[-1:])
    return rows


def show(rows: list[Row]) -> None:
    for row in rows:
        ratio = f"{row['times_as_fast']:>8}×" if "times_as_fast" in row else ""
        print(
            f"{row['instance']:<18} {row['tool']:<10} {row['transitions']:>10,} {row['cpu_seconds']:>10.2f}"
            f" {row['transitions_a_second']:>12,} {row['bytes_a_transition']:>8} {ratio}",
            flush=True,
        )


def missed(rows: list[Row]) -> list[str]:
    """Which goals these rows do not reach."""
    found = []
    for row in rows:
        if row["tool"] != "tightrope":
            continue
        name = row["instance"]
        if float(str(row.get("times_as_fast", FASTER_THAN_STORM))) < FASTER_THAN_STORM:
            found.append(f"{name}: only {row['times_as_fast']} times as fast as Storm")
        large = int(str(row["transitions"])) >= 1_000_000
        if large and int(str(row["transitions_a_second"])) < TRANSITIONS_A_SECOND:
            found.append(f"{name}: only {row['transitions_a_second']:,} transitions a second")
        if float(str(row["bytes_a_transition"])) > BYTES_A_TRANSITION:
            found.append(f"{name}: {row['bytes_a_transition']} bytes a transition")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small instances; goals are not judged")
    parser.add_argument("--json", type=Path, default=Path("bench-results/build_speed.json"))
    parser.add_argument("--here", nargs=2, metavar=("TOOL", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(*options.here)))
        return
    print(f"{'instance':<18} {'tool':<10} {'|T|':>10} {'CPU s':>10} {'|T| a s':>12} {'B a |T|':>8}")
    rows = compare(SMOKE_BOTH, SMOKE_ALONE) if options.smoke else compare(BOTH, ALONE)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if not options.smoke and (faults := missed(rows)):
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
