"""How many episodes designed exploration needs for a certified gap, beside robust and optimistic exploration.

    python benchmarks/plan_experiment.py                      six instances, seeds 1 to 5
    python benchmarks/plan_experiment.py 'rover(10,10)'       some by name; --seeds 1 2 3 others
    python benchmarks/plan_experiment.py --draws              planned draws of single choices, made
    python benchmarks/plan_experiment.py --coverage 1000      do guarantees of designed data hold?
    python benchmarks/plan_experiment.py --table              the tables of docs/results/planning.md
    python benchmarks/plan_experiment.py --smoke              one small instance, in seconds

δ = 0.001, likelihood region, rectangular sets. All ways begin with the same pilot of uniform episodes,
which counts, look where batches end, and stop when the robust policy's certified interval is as narrow as
the gap; where that was is interpolated between the last two looks (both axes logarithmic), since looks lie
a quarter apart. `by steps` is a design for which steps cost and episodes do not; it is what steps are
compared with. `safe` keeps the certified probability of a crash within a bound. Rows are appended to a file
(bench-results/plan_experiment.jsonl) as they come, and cells that are in it are not measured again. Leaves
with status 1 where an instance misses its goal.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import itertools
import json
import math
import sys
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from tightrope.data.collection import PlannedDraws
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.design.exploration import Explore
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.run import OnlineRun, SimulatedEpisodes, Truth
from tightrope.solver.solve import solve

DELTA = 0.001
SEEDS = (1, 2, 3, 4, 5)
BY_STEPS = "by steps"
WAYS = ("designed", BY_STEPS, "robust", "optimistic")
SAFE = "safe"
COVERAGE_DELTA, COVERAGE_EPISODES, COVERAGE_TRUTH = 0.05, 30, (0.6, 0.45)
KEPT = 0.8
"""Of the saving, with a bound on crashes."""


@dataclass(frozen=True)
class Case:
    """A gap to reach after a pilot, the goals for episodes and steps (factors), and where to give up."""

    name: str
    gap: float
    pilot: int
    episodes: float = 0.0
    steps: float | None = None
    most: int = 200_000
    at_most: float | None = None

    @property
    def ways(self) -> tuple[str, ...]:
        """`by steps` where steps have a goal, `safe` where something is to be avoided."""
        ways = WAYS if self.steps is not None else tuple(way for way in WAYS if way != BY_STEPS)
        return (*ways, SAFE) if self.at_most is not None else ways

    def key(self, way: str, seed: int) -> tuple[Any, ...]:
        return (self.name, way, seed, self.gap, self.pilot)


CASES = (
    Case("rover(10,10)", 0.02, 100, 1.8, 1.5),
    Case("rover(50,50)", 0.05, 100, 3.0, 2.5),
    Case("glider(21,17)", 0.6, 100, 3.5, 1.7),
    Case("betting(50)", 5.0, 571, 1.15),
    Case("engagement(50)", 10.0, 2172, 2.0),
    Case("aircraft(20,10)", 0.1, 100, 0.97),
    Case("rover(10,10)", 0.03, 571, at_most=0.36),
)
"""Robust exploration of betting begins only when there are data; a pilot of engagement is what finite
bounds take; the last one is about safety, which needs enough data to certify a policy.
"""


@dataclass(frozen=True)
class DrawCase:
    """A gap to reach by draws of single choices, after a pilot of episodes."""

    name: str
    gap: float
    pilot: int = 571


DRAW_CASES = (
    DrawCase("rover(10,10)", 0.03),
    DrawCase("aircraft(20,10)", 0.05),
    DrawCase("glider(21,17)", 0.4),
)
SMOKE = (Case("rover(10,10)", 0.12, 100, at_most=0.9),)
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class World:
    """A benchmark at its true point."""

    problem: tr.Problem
    simulator: Simulator
    cap: int


@cache
def world(name: str) -> World:
    bench = tr.benchmark(name)
    model = bench.model
    stop = find_decided_states(bench.problem.objective, model.states)
    truth = Simulator(bench.at_truth.model, None, stop, bench.episode_cap, model.hash(), threads=1)
    return World(bench.problem, truth, bench.episode_cap)


def explore(way: str, cap: int, at_most: float | None) -> Explore:
    if way == SAFE:
        return Explore("designed", cap=cap, avoid='"crash"', at_most=at_most)
    return Explore("designed", cap=cap, cost="step=1") if way == BY_STEPS else Explore(way, cap=cap)


def measure(case: Case, way: str, seed: int) -> Row:
    """One run until the gap is reached."""
    begin = time.process_time()
    found = world(case.name)
    pilot = found.simulator.episodes(case.pilot, seed)
    learner = tr.online(
        found.problem,
        delta=DELTA,
        explore=explore(way, found.cap, case.at_most),
        until_gap=case.gap,
        data=pilot,
        region="likelihood",
        sets="rectangular",
    )
    learner.data.by_choice, learner.data.by_batch = False, True
    looks: list[Row] = []
    certified: list[float] = []
    for record in OnlineRun(learner, SimulatedEpisodes(found.simulator, seed), case.most).records():
        looks.append(record)
        if learner.last_design is not None and learner.last_design.certified is not None:
            certified.append(learner.last_design.certified)
    episodes, steps = crossing(looks, case.gap)
    row: Row = {"instance": case.name, "way": way, "seed": seed, "gap": case.gap, "pilot": case.pilot}
    row |= {"episodes": episodes, "steps": steps, "reached": looks[-1]["reached"], "looks": len(looks)}
    if way in (SAFE, "designed", "robust") and "crash" in learner.model.structure.labels:
        row["crashes"] = crash_rate(learner, pilot)
    if certified:
        row["certified"], row["at_most"] = max(certified), case.at_most
    design = learner.last_design
    if design is not None and design.design is not None:
        row["optimality"], row["greedy"] = design.design.optimality, design.greedy
    return row | {"cpu_seconds": round(time.process_time() - begin, 1)}


def crossing(looks: list[Row], gap: float) -> tuple[float, float]:
    """Episodes and steps at which the gap was met, interpolated between two looks."""
    last = looks[-1]
    if len(looks) < 2 or not last["reached"] or not math.isfinite(float(looks[-2]["gap"])):
        return float(last["episode"]), float(last["steps"])
    before = looks[-2]
    share = math.log(float(before["gap"]) / gap) / math.log(float(before["gap"]) / float(last["gap"]))

    def between(key: str) -> float:
        return float(before[key]) * (float(last[key]) / max(float(before[key]), 1.0)) ** share

    return round(between("episode"), 1), round(between("steps"), 1)


def crash_rate(learner: OnlineLearner, pilot: tr.Counts) -> float:
    """The share of episodes after the pilot that crashed."""
    model = learner.model
    added = learner.data.counts().transition - pilot.transition
    bad = model.structure.labels["crash"]
    entered = bad[model.successor] & ~bad[model.structure.choice_state[model.structure.transition_choice]]
    return float(added[entered].sum()) / max(learner.episodes - (pilot.design.episodes or 0), 1)


def known_rows(path: Path) -> dict[tuple[Any, ...], Row]:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return {tuple(row[name] for name in ("instance", "way", "seed", "gap", "pilot")): row for row in rows}


def mean(rows: list[Row], what: str) -> float:
    """The geometric mean over seeds; runs that gave up count as where they did."""
    return math.exp(float(np.mean([math.log(row[what]) for row in rows])))


def summary(case: Case, rows: dict[tuple[Any, ...], Row], seeds: list[int]) -> Row | None:
    """Means by way, and factors against the better of robust and optimistic exploration."""
    common = [seed for seed in seeds if all(case.key(way, seed) in rows for way in case.ways)]
    if not common:
        return None
    of = {way: [rows[case.key(way, seed)] for seed in common] for way in case.ways}
    episodes = {way: mean(found, "episodes") for way, found in of.items()}
    steps = {way: mean(found, "steps") for way, found in of.items()}
    best = min(("robust", "optimistic"), key=lambda way: episodes[way])
    shortest = min(steps["robust"], steps["optimistic"])
    said: Row = {"instance": case.name, "gap": case.gap, "seeds": len(common)}
    said |= {"best": best, "episodes": episodes, "steps": steps}
    said["factor"] = episodes[best] / episodes["designed"]
    said["steps_factor"] = shortest / min(steps.get(BY_STEPS, math.inf), steps["designed"])
    said["reached"] = all(row["reached"] for found in of.values() for row in found)
    said["met"] = said["factor"] >= case.episodes and (
        case.steps is None or said["steps_factor"] >= case.steps
    )
    if of.get(SAFE):
        kept = (episodes[best] - episodes[SAFE]) / max(episodes[best] - episodes["designed"], 1e-9)
        said["safe"] = {
            "at_most": case.at_most,
            "certified": max(row["certified"] for row in of[SAFE]),
            "crashes": max(row["crashes"] for row in of[SAFE]),
            "crashes_designed": float(np.mean([row["crashes"] for row in of["designed"]])),
            "kept": kept,
        }
        fits = all(row["crashes"] <= row["certified"] for row in of[SAFE])
        said["met"] = said["met"] and fits and (kept >= KEPT)
    return said


def print_table(found: list[Row]) -> None:
    """The tables of docs/results/planning.md: episodes, with steps in brackets."""
    columns = ("instance", "gap", "seeds", *WAYS, "fewer episodes", "fewer steps")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in found:
        cells = [_cell(row, way) for way in WAYS]
        factors = f"{row['factor']:.2f} | {row['steps_factor']:.2f}"
        begin = f"`{row['instance']}` | {row['gap']:g} | {row['seeds']}"
        print(f"| {begin} | {' | '.join(cells)} | {factors} |")
    for row in found:
        if "safe" in row:
            safe = row["safe"]
            print(
                f"\n`{row['instance']}`, crashes certified at most {safe['at_most']:g}: "
                f"{row['episodes'][SAFE]:,.0f} episodes, certified {safe['certified']:.3f} at most, crashed "
                f"{safe['crashes']:.3f} at most (unbounded design {safe['crashes_designed']:.3f}), "
                f"{100 * safe['kept']:.0f} % of the saving kept"
            )


def print_draws(rows: list[Row]) -> None:
    """Asked for and certified, medians over seeds."""
    print("| instance | gap asked | now | draws | certified | as many even ones | even forecast |")
    print("|---|---|---|---|---|---|---|")
    for name, mine in itertools.groupby(rows, key=lambda row: row["instance"]):
        of = list(mine)
        keys = ("gap_now", "draws", "certified_designed", "certified_even", "even_forecast")
        now, draws, came, even, expected = (float(np.median([row[key] for row in of])) for key in keys)
        asked = f"`{name}` | {of[0]['gap']:g} | {now:.3g} | {draws:,.0f}"
        print(f"| {asked} | {came:.3g} | {even:.3g} | {expected:,.0f} |")


def _cell(row: Row, way: str) -> str:
    return f"{row['episodes'][way]:,.0f} ({row['steps'][way]:,.0f})" if way in row["steps"] else "–"


def draw(case: DrawCase, seed: int) -> Row:
    """The gap that was asked for, what `learn` certifies once the planned draws are made, and from as many
    draws of every signature alike.
    """
    found = world(case.name)
    assert isinstance(found.problem.model, tr.ParametricMDP)
    model = found.problem.model
    pilot = found.simulator.episodes(case.pilot, seed)
    options: dict[str, Any] = {"delta": DELTA, "region": "likelihood", "sets": "rectangular", "threads": 1}
    plan = tr.plan(found.problem, pilot, gap=case.gap, generative=True, within_cap=found.cap, **options)
    assert plan.draws is not None
    told = plan.draws.draws > 0  # a tenth of the draws is spread evenly, so these are all that tell anything
    even = np.where(told, math.ceil(plan.next_episodes / told.sum()), 0)
    row: Row = {"instance": case.name, "way": "draws", "seed": seed, "gap": case.gap, "pilot": case.pilot}
    row |= {"gap_now": plan.gap_now, "draws": plan.next_episodes}
    row["even_forecast"] = next(one.episodes for one in plan.strategies if one.name == "even")
    for name, draws in (("designed", plan.draws.draws), ("even", even)):
        table = PlannedDraws(model, draws.astype(np.int64), plan.draws.planned_from)
        made = found.simulator.generative(table.per_choice, seed + 1000)
        made = replace(made, design=replace(made.design, planned_from=table.planned_from))
        row[f"certified_{name}"] = tr.learn(found.problem, pilot + made, **options).robust.interval.width
    return row


def coverage(replications: int, first: int = 0) -> Row:
    """Runs of designed exploration on a small model at δ = 0.05: in how many an interval of any update misses
    what it bounds, the robust policy's value or the best one there is.
    """
    parameters = tr.Parameters.box(p=(0.05, 0.95), q=(0.05, 0.95))
    p, q = parameters.symbols()
    rows = [
        (0, "a", {1: p, 2: 1 - p}),
        (0, "b", {1: q, 2: 1 - q}),
        (1, "a", {3: q, 4: 1 - q}),
        (1, "b", {3: p, 4: 1 - p}),
        (2, "a", {3: p, 4: 1 - p}),
        (2, "b", {4: 1}),
        (3, "", {3: 1}),
        (4, "", {4: 1}),
    ]
    problem = tr.build_from_rows(rows, parameters, labels={"goal": [3]}).problem('Pmax=? [ F "goal" ]')
    model, objective = problem.model, problem.objective
    assert isinstance(model, tr.ParametricMDP)
    plain = model.instantiate(COVERAGE_TRUTH)
    stop = find_decided_states(objective, model.states)
    simulator = Simulator(plain, None, stop, 100, model.hash(), threads=1)
    best = float(solve(plain, objective, precision=1e-9).lower[model.initial])
    truth, missed, updates = Truth(plain, objective), 0, 0
    for seed in range(first, first + replications):
        misses, looks = _misses(problem, simulator, truth, best, seed)
        missed, updates = missed + misses, updates + looks
    found: Row = {"replications": replications, "missed": missed, "delta": COVERAGE_DELTA}
    return found | {"updates": updates, "episodes": COVERAGE_EPISODES}


def _misses(
    problem: tr.Problem, simulator: Simulator, truth: Truth, best: float, seed: int
) -> tuple[bool, int]:
    """Whether any update of one run of the learner says what is not so, and how many updates there were."""
    learner = tr.online(
        problem,
        delta=COVERAGE_DELTA,
        explore=Explore("designed", cap=100),
        until_gap=1e-6,  # so that every update has an interval; never reached
        region="likelihood",
        sets="rectangular",
    )
    run = OnlineRun(learner, SimulatedEpisodes(simulator, seed), COVERAGE_EPISODES)
    missed, looks = False, 0
    for _ in run.records():
        update = learner.last_update
        assert update is not None and update.interval is not None
        value = truth.performance(update.robust_policy)
        assert value is not None
        inside = update.interval.lower <= value.upper and value.lower <= update.interval.upper
        missed |= not inside or update.optimistic < best or update.guarantee > value.upper
        looks += 1
    return missed, looks


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("instances", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--draws", action="store_true")
    parser.add_argument("--coverage", type=int, metavar="N")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/plan_experiment.jsonl"))
    asked = parser.parse_args()
    if asked.coverage is not None:
        found = coverage(asked.coverage)
        print(json.dumps(found))
        return int(found["missed"] > found["delta"] * found["replications"])
    if asked.draws:
        print_draws([draw(case, seed) for case in DRAW_CASES for seed in asked.seeds])
        return 0
    cases = SMOKE if asked.smoke else CASES
    seeds = [1] if asked.smoke else asked.seeds
    wanted = [case for case in cases if not asked.instances or case.name in asked.instances]
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    rows = known_rows(asked.output)
    for seed, case in itertools.product([] if asked.table else seeds, wanted):
        for way in case.ways:
            if case.key(way, seed) not in rows:
                row = measure(case, way, seed)
                rows[case.key(way, seed)] = row
                with asked.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    said = [one for case in wanted if (one := summary(case, rows, seeds)) is not None]
    print_table(said)
    return int(not asked.table and not all(one["met"] for one in said))


if __name__ == "__main__":
    sys.exit(main())
