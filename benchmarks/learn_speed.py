"""Seconds and memory from counts to a certified robust policy, beside the paper's figures.

    python benchmarks/learn_speed.py             the paper's largest instances
    python benchmarks/learn_speed.py --smoke     small ones, seconds
    python benchmarks/learn_speed.py --only 'rover(125,125)' rectangular/polytope+certificate
    python benchmarks/learn_speed.py --threads   the largest one with one thread and with two

Counts (10^5 uniform trajectories) are drawn once and written to a file. Every method then runs in a process
of its own, which builds the model, reads the counts, and learns: the robust policy with both ends of its
interval, the optimistic policy, and the interval of the policy that is optimal in the true model, as the
paper's tables have it. Protocol of the paper: δ = 0.001, Clopper–Pearson at δ/|Λ_unk|. Compilation is paid
before the clock starts.

The seconds are everything after the counts are there: statistics, region, sets and all five solves, in
wall-clock and CPU seconds. Methods that end in "+certificate" also make the certificate and write its file,
which counts as well; the policy that is optimal in the true model is left out then, as in the goal. A process
of its own verifies the file. GiB is the largest memory of the process, model included. The paper's seconds
are totals of its own tables (build and solve of one policy's interval) on its own machine; TO is two hours.

Then the intervals that are known from the paper and a prototype (BENCHMARKS): tied and parameter-wise ones of
betting(50) and betting(100), tied ones of parallel(20), averaged over seeds. Leaves with status 1 where they
are missed, or a limit of seconds or memory is.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tightrope.ambiguity.sets import SetsKind
from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.data.counts import Counts
from tightrope.data.design import find_decided_states
from tightrope.data.reading import read_data
from tightrope.data.simulator import Simulator
from tightrope.data.writing import write_counts
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.learning.result import CLOSE, LearningResult
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.problem import Problem
from tightrope.regions.registry import region_kind
from tightrope.solver.solve import solve
from tightrope.statistics.estimates import Budget, IntervalMethod
from tightrope_campaigns.published import results_of

DELTA = 0.001
EPISODES = 100_000
FASTER_WITH_TWO = 1.6
MOST_MEMORY = 4.0
"""GiB."""


@dataclass(frozen=True)
class Run:
    """One instance with its methods (sets/region)."""

    instance: str
    methods: tuple[str, ...]


RUNS = (
    Run("betting(100)", ("tied", "parameter/polytope", "expression/polytope", "rectangular/likelihood")),
    Run("glider(71,67)", ("expression/polytope", "rectangular/polytope", "rectangular/ellipsoid")),
    Run("parallel(20)", ("tied", "parameter/polytope", "expression/polytope", "rectangular/polytope")),
    Run("aircraft(200,40)", ("expression/polytope", "rectangular/polytope", "rectangular/likelihood")),
    Run(
        "rover(125,125)",
        (
            "tied",
            "expression/polytope",
            "rectangular/polytope",
            "rectangular/ellipsoid",
            "rectangular/likelihood",
            "expression/polytope+certificate",
            "rectangular/polytope+certificate",
        ),
    ),
)
SMOKE = (
    Run("betting(8)", ("parameter/polytope",)),
    Run("glider(4,4)", ("rectangular/likelihood+certificate",)),
)

WITH_CERTIFICATE = "+certificate"

LIMITS = {
    ("rover(125,125)", "expression/polytope+certificate"): 15.0,
    ("rover(125,125)", "rectangular/polytope+certificate"): 15.0,
    ("glider(71,67)", "rectangular/polytope"): 10.0,
}
"""CPU seconds that learning, certificate included where it is made, may take, counts given."""

MOST_VERIFY = 15.0
"""CPU seconds that `verify` may take."""

KNOWN = {
    ("betting(50)", "tied", 8): ((14.3, 14.9), (64.0, 66.9)),
    ("betting(50)", "parameter/polytope", 8): ((25.3, 25.9), (28.1, 28.7)),
    ("betting(100)", "tied", 8): ((16.1, 17.3), (160.0, 164.0)),
    ("betting(100)", "parameter/polytope", 8): ((41.0, 42.4), (46.9, 48.4)),
    ("parallel(20)", "tied", 2): ((12.9, 13.3), (108.0, 111.5)),
}
"""(instance, method, seeds): where the mean lower and the mean upper end must lie. The ranges of betting are
those of a few seeds of a prototype; parallel's is around the paper's [13, 110] and its [13.1, 109.7]."""


SMALL = {"betting": "8", "glider": "5,5", "parallel": "3", "aircraft": "8,4", "rover": "4,4"}
"""Arguments of an instance that is learned first, so that everything is compiled."""


@dataclass(frozen=True, eq=False)
class World:
    """A built instance, its true model, and the policy that is optimal there."""

    instance: Instance
    model: ParametricMDP
    truth: MDP
    objective: Objective
    policy: Policy
    optimum: float

    @property
    def problem(self) -> Problem:
        return Problem(self.model, self.objective)

    @staticmethod
    def of(name: str) -> World:
        instance = parse_bench(name)
        model = load(instance)
        objective = question(instance, model.structure).objective
        truth = model.instantiate(instance.truth)
        best = solve(truth, objective)
        value = float(best.lower[model.initial])
        return World(instance, model, truth, objective, best.policy, value)

    def counts(self, episodes: int, seed: int = 1) -> Counts:
        stop = find_decided_states(self.objective, self.model.states)
        simulator = Simulator(self.truth, None, stop, self.instance.episode_cap, self.model.hash())
        return simulator.episodes(episodes, seed)


def options_of(method: str) -> LearnOptions:
    """The paper's protocol with the sets and the region that `method` names."""
    sets, _, region = method.removesuffix(WITH_CERTIFICATE).partition("/")
    return LearnOptions(
        sets=SetsKind(sets),
        region=region_kind(region) if region else None,
        interval=IntervalMethod.CLOPPER_PEARSON,
        budget=Budget.PAPER,
        threads=1,
    )


def measure(name: str, method: str, data: Path, warm: bool) -> dict[str, object]:
    """What the process of one method measures."""
    certifies = method.endswith(WITH_CERTIFICATE)
    if warm:
        family = name.partition("(")[0]
        small = World.of(f"{family}({SMALL[family]})")
        _learned(small, small.counts(500), method, data.with_name("small.cert"))
    begin = time.perf_counter()
    world = World.of(name)
    built = time.perf_counter()
    counts = read_data(data, world.model).counts
    read, cpu = time.perf_counter(), time.process_time()
    file = data.with_name("learned.cert")
    result = _learned(world, counts, method, file)
    wall, cpu = time.perf_counter() - read, time.process_time() - cpu
    interval = (result.value or result.robust).interval
    certificate = {"bytes": file.stat().st_size, **_verified(file)} if certifies else None
    return {
        "instance": name,
        "method": method,
        "build": built - begin,
        "read": read - built,
        "phases": dict(result.seconds),
        "wall": wall,
        "cpu": cpu,
        "certificate": certificate,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "lower": interval.lower,
        "upper": interval.upper,
        "robust": [result.robust.interval.lower, result.robust.interval.upper],
        "optimum": world.optimum,
        "relative_gap": interval.width / world.optimum,
        "status": result.status,
        "empty": result.contradiction is not None,
        "notes": list(result.notes),
    }


def _learned(world: World, counts: Counts, method: str, file: Path) -> LearningResult:
    """What is timed: learning, and the certificate where the method has one."""
    certifies = method.endswith(WITH_CERTIFICATE)
    result = learn(
        world.problem,
        counts,
        delta=DELTA,
        **options_of(method).words,
        policy=None if certifies else world.policy,
    )
    if certifies:
        as_file(certificate_of(result, counts)).save(file)
    return result


def _verified(file: Path) -> dict[str, float | bool]:
    """`tightrope verify` in a process of its own: CPU seconds, verdict."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import sys; from tightrope.cli.app import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, "verify", str(file), "--json"], capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"valid": done.returncode == 0, "verify_cpu": spent}


def published(name: str, method: str) -> str:
    """The paper's total seconds, or TO; the tables differ, so the least and the largest."""
    plain = method.removesuffix(WITH_CERTIFICATE)
    found = [r for r in results_of(parse_bench(name)) if r.method == plain]
    if not found:
        return "–"
    seconds = [
        r.seconds if r.seconds is not None else r.build_seconds + r.solve_seconds
        for r in found
        if r.seconds is not None or (r.build_seconds is not None and r.solve_seconds is not None)
    ]
    if not seconds:
        return "TO" if any(r.timed_out for r in found) else "–"
    low, high = min(seconds), max(seconds)
    return f"{low}" if low == high else f"{low}–{high}"


def problems_of(row: dict[str, Any]) -> list[str]:
    """What a row misses of what must show."""
    key = (row["instance"], row["method"])
    found = []
    if key in LIMITS and row["cpu"] > LIMITS[key]:
        found.append(f"{row['cpu']:.1f} CPU seconds, not within {LIMITS[key]:g}")
    if row["peak_gib"] > MOST_MEMORY:
        found.append(f"{row['peak_gib']:.1f} GiB, not within {MOST_MEMORY:g}")
    proof = row["certificate"]
    if proof is not None and not proof["valid"]:
        found.append("the certificate does not prove its claim")
    if proof is not None and proof["verify_cpu"] > MOST_VERIFY:
        found.append(f"verified in {proof['verify_cpu']:.1f} CPU seconds, not within {MOST_VERIFY:g}")
    if row["status"] != CLOSE:
        found.append(str(row["status"]))
    if row["empty"]:
        found.append("the region is empty")
    return found


def _measure_apart(name: str, method: str, data: Path, smoke: bool) -> dict[str, Any]:
    """In a process of its own."""
    command = [sys.executable, __file__, "--measure", name, method, str(data)]
    done = subprocess.run([*command, *(["--smoke"] if smoke else [])], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name} {method}: {done.stdout}{done.stderr}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def run_all(runs: tuple[Run, ...], smoke: bool) -> list[dict[str, Any]]:
    rows = []
    print(
        f"{'instance':17}{'method':34}{'stat':>6}{'region':>7}{'sets':>6}{'solve':>7}{'wall':>7}{'CPU':>7}"
        f"{'GiB':>5}  {'interval of the policy':37}paper s"
    )
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            data = Path(folder) / "counts.parquet"
            world = World.of(run.instance)
            counts = world.counts(1000 if smoke else EPISODES)
            write_counts(data, counts, world.model.structure)
            del world, counts
            for method in run.methods:
                if smoke and run is not runs[0]:  # memory is then not that of the run alone
                    row = measure(run.instance, method, data, warm=False)
                else:
                    row = _measure_apart(run.instance, method, data, smoke)
                row["paper_seconds"] = published(run.instance, method)
                row["problems"] = problems_of(row)
                rows.append(row)
                phase = row["phases"]
                interval = f"[{row['lower']:.6g}, {row['upper']:.6g}] of {row['optimum']:.5g}"
                print(
                    f"{run.instance:17}{method:34}{phase['statistics']:6.1f}{phase['region']:7.1f}"
                    f"{phase['sets']:6.1f}{phase['solve']:7.1f}{row['wall']:7.1f}{row['cpu']:7.1f}"
                    f"{row['peak_gib']:5.1f}  {interval:37}{row['paper_seconds']}"
                    + _proof(row["certificate"])
                    + "".join(f"  MISSED: {problem}" for problem in row["problems"]),
                    flush=True,
                )
    return rows


def _proof(certificate: dict[str, Any] | None) -> str:
    if certificate is None:
        return ""
    return f"  {certificate['bytes'] / 1e6:.1f} MB, verified in {certificate['verify_cpu']:.1f} CPU s"


def compare_intervals() -> list[dict[str, Any]]:
    """The intervals of the true-optimal policy, averaged over seeds, beside where they are known to lie."""
    rows = []
    print("\nmean interval of the true-optimal policy over seeds, and where its ends must lie")
    for (name, method, seeds), (low, high) in KNOWN.items():
        world = World.of(name)
        ends: list[tuple[float, float]] = []
        for seed in range(1, seeds + 1):
            counts = world.counts(EPISODES, seed)
            options = options_of(method)
            result = learn(world.problem, counts, delta=DELTA, **options.words, policy=world.policy)
            assert result.value is not None
            ends.append((result.value.interval.lower, result.value.interval.upper))
        mean = [sum(e[i] for e in ends) / seeds for i in (0, 1)]
        fits = low[0] <= mean[0] <= low[1] and high[0] <= mean[1] <= high[1]
        problems = [] if fits else ["the mean interval is not where it is known to lie"]
        rows.append(
            {"instance": name, "method": method, "intervals": ends, "mean": mean, "problems": problems}
        )
        print(
            f"{name:17}{method:24}[{mean[0]:.4g}, {mean[1]:.4g}] over {seeds} seeds; "
            f"[{low[0]:g}–{low[1]:g}, {high[0]:g}–{high[1]:g}]{'' if fits else '  MISSED'}",
            flush=True,
        )
    return rows


def compare_threads(name: str, method: str, episodes: int) -> bool:
    """Wall seconds of `learn` with one and with two threads, the best of three in turns after one of each;
    whether two give the same bits every time and are `FASTER_WITH_TWO` times as fast.
    """
    world = World.of(name)
    counts = world.counts(episodes)
    best: dict[int, float] = {1: float("inf"), 2: float("inf")}
    found: dict[int, set[bytes]] = {1: set(), 2: set()}
    for turn in range(4):
        for threads in best:
            options = replace(options_of(method), threads=threads)
            begin = time.perf_counter()
            result = learn(world.problem, counts, delta=DELTA, **options.words)
            spent = time.perf_counter() - begin
            if turn > 0:  # the first one prepares the model
                best[threads] = min(best[threads], spent)
            ends = (*result.robust.solutions, result.optimistic)
            found[threads].add(b"".join(end.lower.tobytes() + end.upper.tobytes() for end in ends))
    same, ratio = all(len(bits) == 1 for bits in found.values()), best[1] / best[2]
    seconds = f"1 thread {best[1]:.3f} s, 2 threads {best[2]:.3f} s: {ratio:.2f}×"
    print(f"{name} {method} {seconds}, same bits: {same}")
    return same and ratio >= FASTER_WITH_TWO


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small instances")
    parser.add_argument("--only", nargs="+", metavar="INSTANCE [METHOD…]", help="one instance, some methods")
    parser.add_argument("--threads", action="store_true", help="one thread beside two, in wall seconds")
    parser.add_argument("--measure", nargs=3, metavar=("INSTANCE", "METHOD", "DATA"), help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, default=Path("bench-results/learn_speed.json"))
    asked = parser.parse_args()
    if asked.measure:
        name, method, data = asked.measure
        print(json.dumps(measure(name, method, Path(data), warm=not asked.smoke)))
        return 0
    if asked.threads:
        name, episodes = ("glider(4,4)", 1000) if asked.smoke else ("rover(125,125)", EPISODES)
        return int(not compare_threads(name, "expression/polytope", episodes) and not asked.smoke)
    runs = SMOKE if asked.smoke else RUNS
    if asked.only:
        chosen = [run for run in RUNS if run.instance == asked.only[0]]
        methods = tuple(asked.only[1:]) or (chosen[0].methods if chosen else ("expression/polytope",))
        runs = (Run(asked.only[0], methods),)
    rows = run_all(runs, asked.smoke)
    if not asked.smoke and not asked.only:
        rows += compare_intervals()
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"rows in {asked.json}")
    return 1 if any(row["problems"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
