"""Solving interval models: certified bounds from tightrope beside the values of Storm's robust check, in
one run.

    python benchmarks/solve_speed.py            grids of 0.4M and 1.8M transitions and betting(100) with
                                                both, then rooms of 10k to 10M transitions and the large case
                                                studies alone
    python benchmarks/solve_speed.py --smoke    the same on small instances, in seconds
    python benchmarks/solve_speed.py --threads  grids of 1.8M transitions with one and two threads, in wall
                                                seconds: for a machine with two idle cores
    python benchmarks/solve_speed.py --document docs/results
                                                docs/results/solving.md and its plot, from recorded rows

Both tools get the same model, Storm by a DRN file, and the same relative precision, 1e-6; building and
reading is not counted. Both use one thread. Storm stops where its iterates stop moving, tightrope where its
bounds are verified for every state. Every solve is a process of its own, after a tiny solve to warm up;
seconds are its CPU seconds, the better of two runs. Where two tools are compared they take turns, five
processes each, and each has its best: a shared machine is fast in one minute and slow in the next. `bytes`
is the most memory that a further solve held beyond the model, per transition.

Prints a table and writes the rows as JSON (default: bench-results/solve_speed.json). Leaves with status 1
where a goal is missed: 3 times as fast as Storm and in agreement with it, case studies at their true point
within 3 s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure

BOTH = ("grid-P(150)", "grid-R(150)", "grid-P(300)", "grid-R(300)", "betting(100)")
CURVE = tuple(f"rooms-R({n})" for n in (1, 13, 130, 1300))
POINTS = ("betting(135)@", "aircraft(200,40)@", "rover(125,125)@")
SMOKE = (("grid-P(12)", "grid-R(12)", "betting(5)"), ("rooms-R(2)",), ("rover(10,10)@",))

FASTER_THAN_STORM = 3.0
FASTER_WITH_TWO = 1.6
SECONDS_AT_A_POINT = 3.0
PRECISION = 1e-6
TURNS = 5
AGREEMENT = 1e-5  # Storm does not stop on a proof
BLOCKED = 0.05
SLIP = 0.2
ROOM = 20

PLAIN_MODELS = "<!-- plain models: begin -->"
"""Where the part of docs/results/solving.md begins that `plain_models.py` writes; it is kept."""

Row = dict[str, object]
Problem = tuple[IntervalMDP | MDP, Objective, str]


def grid(height: int, width: int, event: str, rooms: int | None = None) -> Problem:
    """Walk on a grid: the move wanted, with 5 % each one of the others or none; every probability off by
    up to 5 %.

    P: reach the far corner around forbidden cells; R: the number of steps to it."""
    states = height * width
    x, y = np.divmod(np.arange(states), height)
    steps = ((0, 1), (0, -1), (1, 0), (-1, 0), (0, 0))
    to = np.stack(
        [np.clip(x + dx, 0, width - 1) * height + np.clip(y + dy, 0, height - 1) for dy, dx in steps], axis=1
    )
    if rooms is not None:  # doors every so many columns: no way back
        to[x % rooms == 0, 1] = np.flatnonzero(x % rooms == 0)
    chance = np.full((4, 5), SLIP / 4)
    np.fill_diagonal(chance, 1 - SLIP)
    successor = np.repeat(to, 4, axis=0)
    probability = np.tile(chance, (states, 1))
    order = np.argsort(successor, axis=1, kind="stable")
    successor = np.take_along_axis(successor, order, 1)
    probability = np.take_along_axis(probability, order, 1)
    first = np.ones(successor.shape, np.bool_)
    first[:, 1:] = successor[:, 1:] != successor[:, :-1]
    merged = np.bincount(np.cumsum(first.ravel()) - 1, weights=probability.ravel())
    goal = np.arange(states) == states - 1
    blocked = np.random.default_rng(0).random(states) < BLOCKED
    blocked[[0, -1]] = False
    structure = Structure(
        choice_start=4 * np.arange(states + 1),
        transition_start=np.concatenate([[0], np.cumsum(first.sum(axis=1))]),
        successor=successor[first].astype(np.int32),
        labels={"init": np.arange(states) == 0, "goal": goal, "blocked": blocked},
        rewards={"steps": RewardStructure(state=np.ones(states))},
    )
    lower = np.maximum(merged - 0.05, 0.01 * merged)
    model = IntervalMDP(structure, lower, np.minimum(merged + 0.05, 1.0))
    if event == "P":
        objective = Objective(
            ObjectiveKind.UNTIL, Direction.MAX, Direction.MIN, target=goal, allowed=~blocked
        )
        return model, objective, 'Pmax=? [ !"blocked" U "goal" ]'
    objective = Objective(
        ObjectiveKind.REACH_REWARD,
        Direction.MIN,
        Direction.MAX,
        target=goal,
        reward=structure.rewards["steps"],
    )
    return model, objective, 'Rmin=? [ F "goal" ]'


def case_study(name: str, at_point: bool) -> Problem:
    """A case study at its true point, or as an interval model around it."""
    from tightrope.benchmarks.suite import load, parse_bench, question

    instance = parse_bench(f"bench:{name}")
    parametric = load(instance)
    asked = question(instance, parametric.structure)
    point = parametric.instantiate(instance.truth)
    if at_point:
        return point, asked.objective, ""
    unknown = ~parametric.expressions.is_constant[parametric.expression]
    reach = np.where(unknown, 0.02, 0.0)
    probability = point.probability
    bounds = np.maximum(probability - reach, 0.0), np.minimum(probability + reach, 1.0)
    structure = point.structure
    labels = dict(structure.labels) | {"init": np.arange(structure.states) == structure.initial}
    assert asked.objective.target is not None
    labels["goal"] = asked.objective.target
    named = Structure(
        structure.choice_start,
        structure.transition_start,
        structure.successor,
        (structure.initial,),
        labels=labels,
        rewards=structure.rewards,
    )
    return IntervalMDP(named, *bounds), asked.objective, 'Rmax=? [ F "goal" ]'


def problem(name: str) -> Problem:
    size = int(name[name.index("(") + 1 : -1]) if "-" in name else 0
    if name.startswith("grid-"):
        return grid(size, size, name[5])
    if name.startswith("rooms-"):
        return grid(ROOM, ROOM * size, name[6], ROOM)
    return case_study(name.removesuffix("@"), name.endswith("@"))


def with_tightrope(name: str) -> Row:
    from tightrope.solver import solve

    for warm in ("grid-P(6)", "grid-R(6)", "betting(2)@"):
        solve(*problem(warm)[:2], threads=1)
    model, objective, _ = problem(name)
    seconds, solution = [], None
    for _ in range(2):
        begin = time.process_time()
        solution = solve(model, objective, precision=PRECISION, threads=1)
        seconds.append(time.process_time() - begin)
    tracemalloc.start()
    solve(model, objective, precision=PRECISION, threads=1)
    held = tracemalloc.get_traced_memory()[1]
    assert solution is not None and solution.is_certified, solution
    return {
        "transitions": model.transitions,
        "seconds": min(seconds),
        "lower": float(solution.lower[model.initial]),
        "upper": float(solution.upper[model.initial]),
        "iterations": solution.iterations,
        "bytes": round(held / model.transitions, 1),
    }


def with_storm(name: str) -> Row:
    import stormpy

    from tightrope.io.drn.write import write_drn

    model, _, text = problem(name)
    assert isinstance(model, IntervalMDP)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.drn"
        write_drn(model, path)
        built = stormpy.build_model_from_drn[stormpy.Interval](str(path))
    asked = stormpy.parse_properties(text)[0]
    seconds, value = [], 0.0
    for _ in range(2):
        begin = time.process_time()
        found = stormpy.model_checking(
            built, asked, uncertainty_resolution_mode=stormpy.UncertaintyResolutionMode.ROBUST
        )
        seconds.append(time.process_time() - begin)
        value = found.get_value(model.initial)
    return {"transitions": model.transitions, "seconds": min(seconds), "value": value}


TOOLS = {"tightrope": with_tightrope, "storm": with_storm}


def apart(tool: str, name: str) -> Row:
    """One measurement in a process of its own."""
    finished = subprocess.run(
        [sys.executable, __file__, "--here", tool, name], capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        sys.exit(f"{tool} failed on {name}:\n{finished.stderr}")
    row: Row = {"tool": tool, "instance": name}
    row.update(json.loads(finished.stdout.splitlines()[-1]))
    return row


def mostly_here(tool: str, name: str) -> Row:
    """For smoke runs: the first instance in processes of its own, the others in this one."""
    if name == SMOKE[0][0]:
        return apart(tool, name)
    return {"tool": tool, "instance": name, **TOOLS[tool](name)}


def compare(
    both: tuple[str, ...],
    curve: tuple[str, ...],
    points: tuple[str, ...],
    measure: Callable[[str, str], Row] = apart,
) -> list[Row]:
    rows = []
    for name in (*both, *curve, *points):
        turns = TURNS if name in both and measure is apart else 1
        runs = [
            [measure(tool, name) for tool in TOOLS if tool == "tightrope" or name in both]
            for _ in range(turns)
        ]
        ours, *others = (min(of_tool, key=seconds_of) for of_tool in zip(*runs, strict=True))
        rows.append(ours)
        for storm in others:
            ours["times_as_fast"] = round(seconds_of(storm) / seconds_of(ours), 1)
            rows.append(storm)
        show(rows[-2:] if name in both else rows[-1:])
    return rows


def seconds_of(row: Row) -> float:
    return float(str(row["seconds"]))


def show(rows: list[Row]) -> None:
    for row in rows:
        value = f"[{row['lower']:.9g}, {row['upper']:.9g}]" if "lower" in row else f"{row['value']:.9g}"
        ratio = f"{row['times_as_fast']}×" if "times_as_fast" in row else ""
        print(
            f"{row['instance']:<18} {row['tool']:<10} {row['transitions']:>11,} {row['seconds']:>9.3f} "
            f"{row.get('bytes', ''):>7} {ratio:>7}  {value}",
            flush=True,
        )


def compare_threads(names: tuple[str, ...]) -> bool:
    """Wall seconds with one and with two threads, the best of three in turns; whether two threads give the
    same bits every time and are `FASTER_WITH_TWO` times as fast.
    """
    from tightrope.solver import solve

    fine = True
    for name in names:
        model, objective, _ = problem(name)
        best, found = {1: np.inf, 2: np.inf}, []
        for _ in range(3):
            for threads in best:
                begin = time.perf_counter()
                solution = solve(model, objective, precision=PRECISION, threads=threads)
                best[threads] = min(best[threads], time.perf_counter() - begin)
                if threads == 2:
                    found.append(solution)
        same = all(np.array_equal(found[0].lower, other.lower) for other in found[1:])
        ratio = best[1] / best[2]
        print(
            f"{name:<18} 1 thread {best[1]:.3f} s, 2 threads {best[2]:.3f} s: {ratio:.2f}×, same bits: {same}"
        )
        fine = fine and same and found[0].is_certified and ratio >= FASTER_WITH_TWO
    return fine


def missed(rows: list[Row]) -> list[str]:
    found = []
    for row in rows:
        if float(str(row.get("times_as_fast", FASTER_THAN_STORM))) < FASTER_THAN_STORM:
            found.append(f"{row['instance']}: only {row['times_as_fast']} times as fast as Storm")
        if str(row["instance"]).endswith("@") and seconds_of(row) > SECONDS_AT_A_POINT:
            found.append(f"{row['instance']}: {row['seconds']} s")
    for ours, storm in pairwise(rows):
        value = float(str(storm.get("value", "nan")))
        if value < float(str(ours.get("lower", 0))) * (1 - AGREEMENT) or value > float(
            str(ours.get("upper", 0))
        ) * (1 + AGREEMENT):
            found.append(f"{ours['instance']}: Storm's value lies outside the bounds")
    return found


def document(rows: list[Row], folder: Path) -> None:
    """docs/results/solving.md and the plot in it, from recorded rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curve = [row for row in rows if str(row["instance"]).startswith("rooms-")]
    sizes = np.array([float(str(row["transitions"])) for row in curve])
    seconds = np.array([float(str(row["seconds"])) for row in curve])
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.loglog(sizes, seconds, "o-", label="tightrope, certified to 1e-6")
    axes.loglog(sizes, seconds[-1] * sizes / sizes[-1], "--", color="grey", label="linear")
    axes.set_xlabel("transitions")
    axes.set_ylabel("CPU time of the solve (s)")
    axes.legend()
    (folder / "images").mkdir(exist_ok=True)
    figure.savefig(folder / "images" / "solving.png", dpi=110)
    lines = [
        "# How long solving takes",
        "",
        "`python benchmarks/solve_speed.py --document docs/results` wrote this part from its last run. Both",
        "tools solve the same interval models at relative precision 1e-6; the table shows CPU seconds of the",
        "solve alone. Storm stops when its iterates stop moving, tightrope when it has verified both bounds",
        "for every state. The tools ran in turn, in five processes each, and the best run counts.",
        "",
        "`bytes` is the memory of a solve beyond the model, per transition. Names that end in `@` are case",
        "studies at their true point. `rooms` are many small grids that are entered one after the other.",
        "",
        "| instance | tool | transitions | CPU s | bytes | times as fast | value |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        value = f"[{row['lower']:.9g}, {row['upper']:.9g}]" if "lower" in row else f"{row['value']:.9g}"
        lines.append(
            f"| {row['instance']} | {row['tool']} | {row['transitions']:,} | {row['seconds']:.3f} | "
            f"{row.get('bytes', '')} | {row.get('times_as_fast', '')} | {value} |"
        )
    lines += ["", "![CPU time of a solve against the number of transitions](images/solving.png)", ""]
    page = folder / "solving.md"
    before, mark, plain = (page.read_text(encoding="utf-8") if page.exists() else "").partition(PLAIN_MODELS)
    page.write_text("\n".join(lines) + (f"\n{mark}{plain}" if before and mark else ""), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small instances; goals are not judged")
    parser.add_argument("--json", type=Path, default=Path("bench-results/solve_speed.json"))
    parser.add_argument("--document", type=Path, metavar="DOCS", help="write the page, run nothing")
    parser.add_argument("--here", nargs=2, metavar=("TOOL", "NAME"), help=argparse.SUPPRESS)
    parser.add_argument("--threads", action="store_true", help="one thread beside two, in wall seconds")
    options = parser.parse_args()
    if options.threads:
        names = SMOKE[0][:2] if options.smoke else BOTH[2:4]
        if not compare_threads(names) and not options.smoke:
            sys.exit("two threads are less than 1.6 times as fast as one, or differ from run to run")
        return
    if options.here:
        print(json.dumps(TOOLS[options.here[0]](options.here[1])))
        return
    if options.document:
        document(json.loads(options.json.read_text(encoding="utf-8")), options.document)
        return
    print(f"{'instance':<18} {'tool':<10} {'|T|':>11} {'CPU s':>9} {'bytes':>7} {'':>7}  value")
    rows = compare(*SMOKE, mostly_here) if options.smoke else compare(BOTH, CURVE, POINTS)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if not options.smoke and (faults := missed(rows)):
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
