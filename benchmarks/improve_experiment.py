"""How many episodes it takes to prove 80 % of the possible improvement over a baseline, by four ways:

* rectangular: the robust policy's interval and the baseline's, apart, over rectangular sets;
* separate: the same over coupled sets;
* difference: `tightrope.improve`, one parameter vector for both policies;
* slab: the same with bets along the gradient of the difference.

    python benchmarks/improve_experiment.py [--smoke] [--instances aircraft(20,10) …] [--seeds 1 2 3]

The table can be made in parts: `--instances`, `--baselines`, `--ways` and `--seeds` pick cells, `--record`
appends each to a file as a line of JSON, and `--merge FILE …` prints the table of all of them and what it
misses (of cells that are there twice the last one counts). `--around N` begins at N episodes instead of 10,
and goes down where these are enough.

Data come from the uniform policy. Baselines: uniform, soft (the optimum with 20 % random moves), centre (the
optimum at the domain's centre). *Soft* flatters every way: making it greedy keeps much of the gain without
data. δ = 0.05. Where a way proves it from the first 10 episodes on, 10 are counted; where not by 2^20, that.

`--logged` is what is proved over what was done by a policy that nobody knows, from 300 episodes; what its
certificate holds, and where the policy is known, beside it.

`--coverage` counts how often the true parameters are outside of the slab that bets on the difference, at
δ = 0.05 and, so that there is something to see, at δ = 0.5.

`--rivals` is what others prove from as many episodes: an A/B test (half of them under each policy, bounds on
returns), importance sampling (HCPI: one log of the uniform policy, weighted returns), and SPIBB, which claims
its estimate and proves nothing; the same with counts pooled over choices that share their parameters, and the
bound that goes with it (two successors at a time, so that no union over subsets of successors is paid for).

`--claims` counts false improvement: the baseline is the optimum at the truth, and what is claimed to be
better than it, beside the plug-in rule, which takes the best policy at the estimate at its word; and what is
claimed over a log of that best policy, where nobody knows that it was the one.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

import tightrope as tr
from tightrope.certify.certify import certificate_of_difference
from tightrope.coupled.synthesis import Optimum
from tightrope.learning.differences import Differences, differences
from tightrope.learning.options import LearnOptions
from tightrope.learning.outcomes import Unobserved, observe

INSTANCES = (
    "aircraft(20,10)",
    "betting(25)",
    "engagement(50)",
    "rover(10,10)",
    "glider(11,9)",
    "parallel(5)",
)
SHARE, DELTA, MOST = 0.8, 0.05, 2**20
FLOORS = {
    "aircraft(20,10)": 0.0503,
    "betting(25)": 3.31,
    "parallel(5)": 1.51,
    "rover(10,10)": 0.272,
    "glider(11,9)": 4.49,
    "engagement(50)": 5.45,
}
"""Certified improvement over the soft baseline at 3,000 episodes, seed 1, that is to be reached."""

POSITIVE = ("aircraft(20,10)", "betting(25)", "parallel(5)")
"""Where 300 episodes are to prove an improvement over what was done."""


class Setting:
    """An instance, its truth, and what can be gained over each baseline."""

    def __init__(self, name: str):
        self.bench = tr.benchmark(name)
        self.model, self.truth = self.bench.model, self.bench.at_truth
        self.best = tr.solve(self.truth).policy
        self.simulator = tr.Simulator(self.truth.model, model_hash=self.model.hash())
        uniform = tr.Policy.uniform(self.model)
        soft = tr.Policy(self.model, 0.8 * self.best.probability + 0.2 * uniform.probability)
        parameters = self.model.parameters
        centre = [(low + high) / 2 for low, high in zip(parameters.lower, parameters.upper, strict=True)]
        self.baselines = {"uniform": uniform, "soft": soft}
        if parameters.contains(centre):
            at_centre = tr.solve(self.bench.problem.at(centre)).policy
            if at_centre != self.best:
                self.baselines["centre"] = at_centre

    def possible(self, baseline: tr.Policy) -> float:
        """What the optimum gains at the truth."""
        return self.sign * (self.value(self.best) - self.value(baseline))

    @property
    def sign(self) -> float:
        return 1.0 if self.bench.problem.maximises else -1.0

    def apart(self, one: Any, other: Any) -> float:
        """What the intervals of two policies' returns prove apart."""
        if isinstance(one, Unobserved) or isinstance(other, Unobserved):
            return -math.inf
        if self.sign > 0:
            return float(one.interval.lower - other.interval.upper)
        return float(other.interval.lower - one.interval.upper)

    def value(self, policy: tr.Policy) -> float:
        solution = tr.solve(self.truth, policy=policy)
        return float(solution.lower[self.model.initial])

    def share(self, way: str, baseline: tr.Policy, most: float, seed: int) -> Callable[[int], float]:
        """The share of what is possible that is proved, by the number of episodes."""
        return lambda episodes: self.gain(way, baseline, episodes, seed) / most

    def gain(self, way: str, baseline: tr.Policy, episodes: int, seed: int) -> float:
        """The improvement that is proved."""
        data = self.simulator.episodes(episodes, seed=seed)
        if way in ("difference", "slab"):
            region = "likelihood" if way == "difference" else "slab"
            return tr.improve(
                self.bench.problem, data, baseline=baseline, delta=DELTA, region=region
            ).improvement
        sets = "rectangular" if way == "rectangular" else "coupled"
        result = tr.learn(
            self.bench.problem, data, delta=DELTA, sets=sets, region="likelihood", policy=baseline
        )
        if self.sign > 0:
            return result.interval.lower - result.value.interval.upper
        return result.value.interval.lower - result.interval.upper


def episodes_for(share: Callable[[int], float], most: int = MOST, around: int = 10) -> float:
    """The number of episodes from which on a share is reached, on a grid of doublings of 10, interpolated;
    it is looked for around a number."""
    number = 10 * 2 ** max(round(math.log2(around / 10)), 0)
    if (now := share(number)) < SHARE:
        while now < SHARE:
            number, before = 2 * number, now
            if number >= most:
                return float(most)
            now = share(number)
    else:
        before = now
        while number > 10 and (before := share(number // 2)) >= SHARE:
            number, now = number // 2, before
        if number == 10:
            return 10.0
    return number / 2 * 2 ** ((SHARE - before) / (now - before))


Cell = tuple[str, str, str]
"""An instance, a baseline, and a way; each has the numbers of its seeds."""


def experiment(
    options: argparse.Namespace, ways: list[str], up_to: int = MOST
) -> dict[Cell, dict[int, float]]:
    """The cells that are asked for."""
    cells: dict[Cell, dict[int, float]] = {}
    for name in options.instances:
        setting = Setting(name)
        for label, baseline in setting.baselines.items():
            most = setting.possible(baseline)
            if most <= 1e-9 or label not in options.baselines:
                continue
            for way in ways:
                for seed in options.seeds:
                    begin = time.process_time()
                    number = episodes_for(setting.share(way, baseline, most, seed), up_to, options.around)
                    cells.setdefault((name, label, way), {})[seed] = number
                    spent = time.process_time() - begin
                    print(
                        f"{name} {label} {way} seed {seed}: {number:,.0f}, {spent:.0f} CPU s", file=sys.stderr
                    )
                    if options.record is not None:
                        with options.record.open("a") as file:
                            line = {"instance": name, "baseline": label, "way": way, "seed": seed}
                            file.write(json.dumps({**line, "episodes": number}) + "\n")
    return cells


def merged(files: list[Path]) -> dict[Cell, dict[int, float]]:
    """The cells of several records."""
    cells: dict[Cell, dict[int, float]] = {}
    for line in (line for file in files for line in file.read_text().splitlines()):
        one = json.loads(line)
        cells.setdefault((one["instance"], one["baseline"], one["way"]), {})[one["seed"]] = one["episodes"]
    return cells


def table(cells: dict[Cell, dict[int, float]], ways: list[str]) -> list[str]:
    """Print medians over the seeds that a row's ways have in common; the goals that are missed."""
    ratios: dict[tuple[str, str], list[float]] = {}
    print(f"{'instance':18}{'baseline':10}" + "".join(f"{way:>14}" for way in ways) + "  seeds")
    for name, label in dict.fromkeys(cell[:2] for cell in cells):
        known = {way: cells[name, label, way] for way in ways if (name, label, way) in cells}
        seeds = set.intersection(*(set(one) for one in known.values()))
        numbers = {way: median(one[seed] for seed in seeds or one) for way, one in known.items()}
        row = "".join(f"{numbers[way]:14,.0f}" if way in numbers else f"{'-':>14}" for way in ways)
        print(f"{name:18}{label:10}{row}  {' '.join(map(str, sorted(seeds)))}", flush=True)
        for one, other in (
            ("rectangular", "difference"),
            ("separate", "difference"),
            ("difference", "slab"),
        ):
            if one in numbers and other in numbers:
                ratios.setdefault((f"{one}/{other}", label), []).append(numbers[one] / numbers[other])
    missed = []
    for (what, label), values in ratios.items():
        mean = geometric_mean(values)
        print(f"{what} {label}: geometric mean {mean:.2f}, least {min(values):.2f}")
        goal = {("rectangular/difference", "soft"): 50.0, ("rectangular/difference", "uniform"): 5.0}
        goal |= {("difference/slab", label): 1.2}
        if mean < goal.get((what, label), 0.0):
            missed.append(f"{what} {label}: {mean:.2f} instead of {goal[what, label]:g}")
        least = {"separate/difference": 1.0, "difference/slab": 0.8}.get(what, 0.0)
        if min(values) < least:
            missed.append(f"{what} {label}: {min(values):.2f} on an instance")
    return missed


def floors(instances: list[str]) -> list[str]:
    """What is proved at 3,000 episodes over the soft baseline."""
    missed = []
    for name in instances:
        setting = Setting(name)
        begin = time.process_time()
        gain = setting.gain("difference", setting.baselines["soft"], 3000, 1)
        spent = time.process_time() - begin
        print(f"{name:18}{gain:10.4f} (at least {FLOORS[name]}), {spent:.1f} CPU s", flush=True)
        if gain < FLOORS[name]:
            missed.append(f"{name}: {gain:.4f} instead of {FLOORS[name]}")
    return missed


def coverage(instances: list[str], replications: int, episodes: int = 300) -> list[str]:
    """How often the truth is outside of a slab that bets on what is gained over the uniform policy."""
    missed = []
    for name in instances:
        setting = Setting(name)
        for delta in (DELTA, 0.5):
            outside = 0
            for seed in range(replications):
                data = setting.simulator.episodes(episodes, seed=5000 + seed)
                chosen = LearnOptions.of("improve", {"region": "slab"})
                uniform = setting.baselines["uniform"]
                known = differences(setting.bench.problem, data, uniform, delta, chosen, None)
                region = known.prepared.region
                x = region.coordinates.lift(np.array([[float(one) for one in setting.bench.truth.values()]]))[
                    0
                ]
                system = region.system
                inside = np.all(system.matrix @ x <= system.bound + 1e-9 * (1.0 + np.abs(system.bound)))
                inside &= np.all((system.lower - 1e-9 <= x) & (x <= system.upper + 1e-9))
                outside += known.prepared.contradiction is not None or not inside
            print(f"{name:18}outside {outside} of {replications} at delta {delta:g}", flush=True)
            if outside > delta * replications + 3 * math.sqrt(delta * (1 - delta) * replications):
                missed.append(f"{name}: {outside} of {replications} slabs at {delta:g} miss the truth")
    return missed


def logged(instances: list[str], seeds: list[int], episodes: int = 300) -> list[str]:
    """What is proved over what was done, whoever did it; beside it, where the policy is known."""
    missed = []
    for name in instances:
        setting = Setting(name)
        uniform = setting.baselines["uniform"]
        for seed in seeds:
            data = setting.simulator.episodes(episodes, seed=seed)
            results = [
                tr.improve(setting.bench.problem, data, baseline=one, delta=DELTA)
                for one in ("logged", uniform)
            ]
            gains, most = [one.improvement for one in results], setting.possible(uniform)
            apart = certificate_of_difference(results[0]).claims[-1] if gains[0] > 0.0 else None
            held = 0.0 if apart is None else apart.lower if setting.sign > 0 else -apart.upper
            print(
                f"{name:18}{gains[0]:10.4f}, certificate {held:.4f}, known {gains[1]:.4f}, "
                f"possible {most:.4f}",
                flush=True,
            )
            if gains[0] <= 0.0 and name in POSITIVE:
                missed.append(f"{name}: nothing is proved over what was done")
            if max(*gains, held) > most:
                missed.append(f"{name}: more is claimed than is possible")
    return missed


def pooled(setting: Setting, table: Differences, data: Any, few: int = 30) -> tuple[float, float]:
    """Parametric SPIBB: (what it claims, what its bound leaves of that).

    Choices that share a distribution share their counts. With n of them outcome probabilities are known up to
    e = √(log(2m/δ)/2n), one for each of m outcomes (a choice of k successors is k − 1 choices of two). By the
    simulation lemma a value is off by at most (span of the values)·e·(steps of an episode), for either
    policy. Spans and steps are those at the truth, which flatters it.
    """
    structure, own = setting.model.structure, setting.model.signatures.of_choice
    visits = np.bincount(own, data.visits)[own]
    uniform, best = setting.baselines["uniform"].probability, table.optimum_over().at(table.estimate())[1]
    rare = np.where(visits < few, best.probability, 0.0)
    seldom = np.add.reduceat(rare, structure.choice_start[:-1])[structure.choice_state] > 0.0
    mixed = tr.Policy(setting.model, np.where(seldom, uniform, best.probability))
    x, lost = table.estimate(), 0.0
    claim = setting.sign * (table.value_at(mixed, x) - table.value_at(setting.baselines["uniform"], x))
    unknown = np.add.reduceat(
        ~setting.model.expressions.is_constant[setting.model.expression], structure.transition_start[:-1]
    )
    _, first = np.unique(own, return_index=True)
    outcomes = int(np.maximum(unknown[first] - 1, 0).sum())
    for policy in (mixed, setting.baselines["uniform"]):
        log = tr.Simulator(setting.truth.model, policy=policy, model_hash=setting.model.hash()).episodes(
            200, seed=9
        )
        value = tr.solve(setting.truth, policy=policy).lower
        met = (log.visits > 0) & (unknown > 1)
        error = np.sqrt(np.log(2 * outcomes / DELTA) / (2.0 * np.maximum(visits[met], 1)))
        lost += float(np.ptp(value[np.isfinite(value)])) * float(error @ log.visits[met]) / 200
    return claim, claim - lost


def rivals(instances: list[str], episodes: int = 3000, seed: int = 1) -> list[str]:
    """What each way proves that the best policy gains over the uniform one, from 3,000 episodes."""
    missed = []
    for name in instances:
        setting = Setting(name)
        problem, uniform, best = setting.bench.problem, setting.baselines["uniform"], setting.best
        data = setting.simulator.episodes(episodes, seed=seed)
        halves = [
            tr.Simulator(setting.truth.model, policy=one, model_hash=setting.model.hash()).episodes(
                episodes // 2, seed=seed
            )
            for one in (best, uniform)
        ]
        own = tr.compare(problem, data, best, uniform, delta=DELTA)
        tested = setting.apart(
            observe(problem, halves[0], DELTA / 2, policy=best, behaviour=best),
            observe(problem, halves[1], DELTA / 2, policy=uniform, behaviour=uniform),
        )
        weighed = setting.apart(
            observe(problem, data, DELTA / 2, policy=best, behaviour=uniform),
            observe(problem, data, DELTA / 2, policy=uniform, behaviour=uniform),
        )
        table = differences(problem, data, uniform, DELTA, LearnOptions.of("improve", {}), None)
        mixed = dict(table.candidates())["the baseline below 30 visits, else the best"]
        x = table.estimate()
        guessed = setting.sign * (table.value_at(mixed, x) - table.value_at(uniform, x))
        tied, bounded = pooled(setting, table, data)
        gains = {"difference": own.improvement, "A/B": tested, "HCPI": weighed, "parametric SPIBB": bounded}
        print(
            f"{name:18}"
            + ", ".join(f"{way} {gain:.4g}" for way, gain in gains.items())
            + f"; SPIBB claims {guessed:.4g}, parametric {tied:.4g}; true {setting.possible(uniform):.4g}",
            flush=True,
        )
        if own.improvement < max(gains.values()):
            missed.append(f"{name}: a rival proves more")
    return missed


def claims(instances: list[str], replications: int, episodes: int = 100) -> list[str]:
    """False improvement where the baseline is the best policy; beside the plug-in rule."""
    missed = []
    for name in instances:
        setting = Setting(name)
        proved = plugged = blind = 0
        acting = tr.Simulator(setting.truth.model, policy=setting.best, model_hash=setting.model.hash())
        for seed in range(replications):
            data = setting.simulator.episodes(episodes, seed=1000 + seed)
            result = tr.improve(setting.bench.problem, data, baseline=setting.best, delta=DELTA)
            proved += result.improvement > 0.0
            plugged += plug_in(setting, data)
            done = acting.episodes(episodes, seed=1000 + seed)
            result = tr.improve(setting.bench.problem, done, baseline="logged", delta=DELTA)
            blind += result.improvement > 0.0
        print(
            f"{name:18}claimed {proved} of {replications}, the plug-in rule {plugged}, "
            f"over what the best policy did {blind}",
            flush=True,
        )
        if max(proved, blind) > DELTA * replications + 3 * math.sqrt(DELTA * replications):
            missed.append(f"{name}: {proved} of {replications} claims of an improvement are false")
    return missed


def plug_in(setting: Setting, data: Any) -> bool:
    """Whether the best policy at the estimate is thought to be better than the baseline there."""
    table = differences(
        setting.bench.problem, data, setting.best, DELTA, LearnOptions.of("improve", {}), None
    )
    if table.prepared.contradiction is not None:
        return False
    optimum = Optimum(table.prepared.sets, table.objective, 1e-6, table.prepared.sets.region)
    x = table.estimate()
    value, _ = optimum.at(x)
    gain = setting.sign * (value - table.value_at(setting.best, x))
    return bool(gain > 1e-4 * max(1.0, abs(value)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", nargs="*", default=list(INSTANCES))
    parser.add_argument("--ways", nargs="*", default=["rectangular", "separate", "difference", "slab"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--baselines", nargs="*", default=["uniform", "soft", "centre"])
    parser.add_argument("--around", type=int, default=10, metavar="EPISODES", help="where to begin to look")
    parser.add_argument("--record", type=Path, metavar="FILE", help="append every cell to a file")
    parser.add_argument("--merge", type=Path, nargs="*", metavar="FILE", help="only the table of such files")
    parser.add_argument("--coverage", type=int, default=0, metavar="REPLICATIONS")
    parser.add_argument("--claims", type=int, default=0, metavar="REPLICATIONS")
    parser.add_argument("--rivals", action="store_true", help="only what others prove from 3,000 episodes")
    parser.add_argument("--logged", action="store_true", help="only what is proved over what was done")
    parser.add_argument("--floors", action="store_true", help="only what is proved at 3,000 episodes")
    parser.add_argument("--smoke", action="store_true", help="one small instance and one seed")
    options = parser.parse_args(arguments)
    np.seterr(all="ignore")
    if options.smoke:
        options.instances, options.seeds, options.around = ["betting(5)"], [1], 2560
    if options.claims:
        missed = claims(options.instances, options.claims)
    elif options.coverage:
        missed = coverage(options.instances, options.coverage)
    elif options.rivals:
        missed = rivals(options.instances)
    elif options.logged:
        missed = logged(options.instances, options.seeds)
    elif options.floors:
        missed = floors(options.instances)
    elif options.merge:
        missed = table(merged(options.merge), options.ways)
    else:
        cells = experiment(options, options.ways, 2**15 if options.smoke else MOST)
        missed = table(cells, options.ways)
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
