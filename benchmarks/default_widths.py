"""How wide the intervals of `learn` are without options, beside every method that can be chosen.

    python benchmarks/default_widths.py                            24 instances, 3 seeds, two δ, three amounts
    python benchmarks/default_widths.py --smoke                    one small instance, in seconds
    python benchmarks/default_widths.py --bars                     the instances with goals, 20,000 episodes
    python benchmarks/default_widths.py --pump 3                   a fleet of pumps, cost over 90 steps
    python benchmarks/default_widths.py --robust 10                rover(10,10): the guarantee, so many seeds
    python benchmarks/default_widths.py --coverage 2000            misses of each ingredient at δ = 0.1
    python benchmarks/default_widths.py --oracle 3                 rover(10,10): bets that know
    python benchmarks/default_widths.py --rules 2                  other shares of δ, small instances
    python benchmarks/default_widths.py --few 2                    joint regions of few expressions
    python benchmarks/default_widths.py 'betting(25)' --seeds 41   some by name, or by seed
    python benchmarks/default_widths.py --records R --part 2/6     a sixth of the rows that R lacks
    python benchmarks/default_widths.py --records R --merge        the table of what R has, without measuring

Uniform trajectories. The policy is the one that is optimal at the true point; it was fixed before the data,
and these say so (as `sample --bet-on` does). Widths are given over z, the width that the normal approximation
at the true point has (no method that holds for sure reaches it), guarantees as distances from the best value
over the same with one end. Leaves with status 1 where the default is wider than 1.06 times the best single
method, where an instance misses its goal in the mean over seeds, where it takes longer than 10 CPU s and 3
times the default of version 0.2 (likelihood, rectangular), or where a miss is too many.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import norm

import tightrope as tr
from slab_widths import data_of
from tightrope.ambiguity.sets import rectangular
from tightrope.benchmarks.suite import parse_bench
from tightrope.coupled.taylor import ValueGradient
from tightrope.coupled.value import bound_coupled_value
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingKind, find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.learning import bet_policy, pipeline
from tightrope.learning import options as choosing
from tightrope.learning.bet_policy import PolicyBets, why_no_bets
from tightrope.learning.learn import learn
from tightrope.model.policy import Policy
from tightrope.numerics.rounding import down
from tightrope.problem import Problem
from tightrope.regions import joint
from tightrope.regions.joint import split
from tightrope.regions.region import RegionOptions, RegionTask
from tightrope.regions.registry import build_region, region_kind
from tightrope.regions.slab import SLAB
from tightrope.solver.solve import solve
from tightrope.statistics.bets import WIDER_SHARE, Ends, Levels, place_bets
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import IntervalMethod, event_intervals
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential
from tightrope.statistics.priors import Prior

GOALS = {
    "betting(25)": 1.26,
    "aircraft(20,10)": 1.32,
    "engagement(50)": 1.31,
    "rover(10,10)": 1.17,
    "glider(11,9)": 1.25,
    "parallel(5)": 1.26,
}
OTHERS = (
    "betting(8)", "betting(15)", "betting(50)", "aircraft(8,4)", "aircraft(12,6)", "aircraft(20,5)",
    "engagement(8)", "engagement(20)", "engagement(30)", "rover(4,4)", "rover(6,6)", "rover(8,8)",
    "glider(5,5)", "glider(7,7)", "glider(9,9)", "parallel(2)", "parallel(3)", "parallel(4)",
)  # fmt: skip
SEEDS = (41, 42, 43)
OLD = "likelihood, rectangular"
METHODS: dict[str, dict[str, Any]] = {
    "polytope, rectangular": {"region": "polytope", "sets": "rectangular"},
    OLD: {"region": "likelihood", "sets": "rectangular"},
    "likelihood, coupled": {"region": "likelihood", "sets": "coupled"},
    "slab, coupled": {"region": "slab", "sets": "coupled"},
    "default": {},
}
MOST_LOSS, MOST_TIMES, LEAST_SECONDS = 1.06, 3.0, 10.0
PUMP = """mdp
const double a; const double b; const double c; const double d; const double e; const double f;
module pump
  s : [0..3] init 0;
  [run] s=0 -> a:(s'=1) + 1-a:(s'=0);
  [run] s=1 -> b:(s'=2) + c:(s'=3) + 1-b-c:(s'=1);
  [slow] s=1 -> b/2:(s'=2) + 1-b/2:(s'=1);
  [service] s=1 -> e:(s'=0) + 1-e:(s'=1);
  [run] s=2 -> d:(s'=3) + 1-d:(s'=2);
  [service] s=2 -> f:(s'=0) + 1-f:(s'=2);
  [repair] s=3 -> 1:(s'=0);
endmodule
rewards "cost"
  [slow] true : 1;
  [service] s=1 : 1.5;
  [service] s=2 : 2.5;
  [repair] true : 12;
endrewards
"""
PUMP_DOMAIN = "0.01<=a<=0.5, 0.01<=b<=0.4, 0.001<=c<=0.3, 0.01<=d<=0.6, 0.1<=e<=0.95, 0.1<=f<=0.95"
PUMP_TRUTH = [Fraction(text) for text in ("0.12", "0.15", "0.04", "0.25", "0.7", "0.5")]


def normal_widths(
    problem: Problem, counts: Counts, policy: Policy, delta: float, truth: Any
) -> tuple[float, float]:
    """The widths of the interval, and of its one-sided half, by the normal approximation at the truth."""
    model: Any = problem.model
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    maximiser = LikelihoodMaximiser.of(coordinates, functions)
    t = np.array([float(truth[i]) for i in coordinates.free])
    x, jacobian = maximiser.lifted(t), maximiser.jacobian(t)
    gradient = ValueGradient.of(model, problem.objective, policy, functions)
    assert gradient is not None
    along: Any = gradient.at(x) @ jacobian
    probability = functions.linear @ x + functions.constant
    seen = np.bincount(model.expression, counts.transition, len(probability))
    used = ~model.expressions.is_constant & (probability > 0.0)
    slope = (functions.linear @ jacobian)[used]
    information = (slope * (seen[used] / probability[used] ** 2)[:, None]).T @ slope
    deviation = math.sqrt(float(along @ np.linalg.pinv(information, hermitian=True) @ along))
    return 2.0 * float(norm.isf(delta / 2)) * deviation, float(norm.isf(delta)) * deviation


def measure(
    name: str, seed: int, episodes: int, delta: float, given: bool = True
) -> dict[str, tuple[float, ...]]:
    """(width over z, distance over the one-sided limit, seconds of processor) by method; of the default
    alone where no policy is given."""
    problem, counts, best = data_of(name, seed, episodes)
    counts = replace(counts, design=replace(counts.design, bet_on=(best.policy.digest,)))
    value = float(best.lower[problem.model.initial])
    both, one = normal_widths(problem, counts, best.policy, delta, parse_bench(f"bench:{name}").truth)
    result = {}
    for method, options in METHODS.items() if given else [("default", METHODS["default"])]:
        begin = time.process_time()
        policy = best.policy if given else None
        learned = learn(problem, counts, delta=delta, policy=policy, **options)
        width = learned.value.interval.width / both if learned.value is not None else math.nan
        distance = abs(value - learned.guarantee) / one
        result[method] = width, distance, time.process_time() - begin
    return result


Row = tuple[str, int, int, float]
"""(instance, seed, episodes, δ)."""


class Records:
    """Rows that were measured, kept in a file, a line each, so that a table may be made in parts."""

    def __init__(self, path: Path | None, part: tuple[int, int] = (1, 1), merging: bool = False):
        self.path, self.part, self.merging, self.number = path, part, merging, 0
        self.rows: dict[Row, dict[str, tuple[float, ...]]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                *row, values = json.loads(line)
                self.rows[tuple(row)] = {name: tuple(each) for name, each in values.items()}

    def get(self, row: Row) -> dict[str, tuple[float, ...]] | None:
        """What is known of it, or is measured now; None where another part has it, or nobody measures."""
        own, self.number = self.number % self.part[1] == self.part[0] - 1, self.number + 1
        if row not in self.rows and own and not self.merging:
            self.rows[row] = measure(*row)
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([*row, self.rows[row]]) + "\n")
        return self.rows.get(row)


def compare(
    names: tuple[str, ...],
    seeds: tuple[int, ...],
    amounts: tuple[int, ...],
    deltas: tuple[float, ...],
    records: Records,
) -> int:
    """The table of rows of which all seeds are known; how many are missed."""
    missed = shown = 0
    print(
        f"{'instance':<16} {'δ':>6} {'episodes':>8} "
        + " ".join(f"{m:>22}" for m in METHODS)
        + "   of the best"
    )
    for name in names:
        for delta in deltas:
            for episodes in amounts:
                every = [records.get((name, seed, episodes, delta)) for seed in seeds]
                rows = [row for row in every if row is not None]
                if len(rows) < len(every) and not (records.merging and rows):
                    continue
                shown += 1
                mean = {m: np.mean([row[m] for row in rows], axis=0) for m in METHODS}
                single = min(float(mean[m][0]) for m in METHODS if m != "default")
                width, _, seconds = mean["default"]
                goal = GOALS.get(name) if (episodes, delta) == (20_000, 0.001) else None
                slow = len(METHODS) > 3 and seconds > max(LEAST_SECONDS, MOST_TIMES * float(mean[OLD][2]))
                wide = width > MOST_LOSS * single or (goal is not None and width > goal)
                missed += bool(wide or slow)
                cells = " ".join(
                    f"{mean[m][0]:>7.3f} {mean[m][1]:>6.3f} {mean[m][2]:>5.1f} s" for m in METHODS
                )
                few = f" ({len(rows)} of {len(every)} seeds)" if len(rows) < len(every) else ""
                note = (
                    f"{width / single:6.3f}{few}"
                    + (f"  goal {goal}" if goal else "")
                    + (" wide" if wide else "")
                )
                print(
                    f"{name:<16} {delta:>6g} {episodes:>8,} {cells}  {note}{' slow' if slow else ''}",
                    flush=True,
                )
    print(f"{shown} rows, {missed} missed")
    return missed


def pump(seeds: int, raw: bool) -> int:
    """A fleet of pumps: the distance of the guarantee from the best value, by method."""
    path = Path(tempfile.mkdtemp()) / "pump.prism"
    path.write_text(PUMP)
    model: Any = tr.load(str(path), domain=PUMP_DOMAIN)
    problem = Problem(model, 'R{"cost"}min=? [ C<=90 ]')
    truth = model.instantiate(PUMP_TRUTH)
    best = float(solve(truth, problem.objective).lower[model.initial])
    methods = {"tied": {"sets": "tied"}, **METHODS}
    distance: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(1, seeds + 1):
        counts = Simulator(truth, None, None, 90, model.hash()).episodes(600, seed)
        if raw:  # as a log of which nothing is stated
            counts = replace(counts, design=replace(counts.design, kind=SamplingKind.ADAPTIVE, planned=None))
        for name, options in methods.items():
            distance[name].append(learn(problem, counts, delta=0.001, **options).guarantee - best)
    mean = {name: float(np.mean(each)) for name, each in distance.items()}
    single = min(mean[name] for name in methods if name != "default")
    print("raw log" if raw else "planned", {name: round(value, 3) for name, value in mean.items()})
    own = mean["default"]
    print(f"  default: {own / single:.3f} of the best single method, {own / mean[OLD]:.3f} of before")
    return int(mean["default"] > 1.02 * single or mean["default"] > 0.6 * mean[OLD])


def robust(seeds: int) -> int:
    """The guarantee of rover(10,10)'s robust policy over its one-sided limit."""
    found = [
        measure("rover(10,10)", seed, 20_000, 0.001, given=False)["default"][1]
        for seed in range(51, 51 + seeds)
    ]
    print(f"rover(10,10), robust: {np.mean(found):.3f} of its one-sided limit, {seeds} seeds (goal 1.25)")
    return int(np.mean(found) > 1.25)


def oracle(seeds: int) -> int:
    """The same for a betting strategy that knows the optimal policy before the data: no rule that searches
    for a policy can be expected to bet better. The region, the split of δ and the coupled
    bound are the default's.
    """
    found = []
    for seed in range(51, 51 + seeds):
        problem, counts, best = data_of("rover(10,10)", seed, 20_000)
        model: Any = problem.model
        truth = parse_bench("bench:rover(10,10)").truth
        _, limit = normal_widths(problem, counts, best.policy, 0.001, truth)
        bets = PolicyBets(model, problem.objective, best.policy, counts.design)
        bets.ends = Ends.LOWER if problem.objective.maximises else Ends.UPPER
        bets.guard_share = WIDER_SHARE
        options = RegionOptions(interval=IntervalMethod.BETA_BINOMIAL)
        region = build_region(
            region_kind("joint"), model, counts, 0.001, options, Outcomes.of(model), None, bets
        )
        value = bound_coupled_value(rectangular(region, model), problem.objective, best.policy)
        end = value.lower if problem.objective.maximises else value.upper
        found.append(abs(float(best.lower[model.initial]) - end) / limit)
        print(f"  seed {seed}: {found[-1]:.3f}", flush=True)
    print(f"rover(10,10), bets that know the best policy: {np.mean(found):.3f} of the one-sided limit")
    return 0


SMALL = ("betting(8)", "aircraft(8,4)", "rover(4,4)", "glider(5,5)", "parallel(2)", "engagement(8)")
SLABS: tuple[tuple[float, float | None], ...] = (
    (0.9, None),
    (0.5, None),
    (0.9, 0.1),
    (0.9, 0.25),
    (0.9, 0.3),
)
"""The slab's share of δ beside intervals, and the base region's of that; None: today's."""
LIKELIHOODS = (0.6, 0.1, 0.5, 0.9)
"""The likelihood's share where nothing may be bet on; the first is today's."""


def rules(seeds: int) -> int:
    """Widths (a given policy's, and the guarantee's distance without one) with other shares of δ, over the
    default's; and the distances that sets beside intervals and a likelihood leave."""
    levels = Levels.of

    def learn_with(share: float, guard: float, bets: bool, given: bool) -> float:
        cut = down((1.0 - share) * (1.0 - 1e-15))

        def split_so(delta: float, bets: bool) -> tuple[float, float]:
            return down(cut * delta), down(share * delta)

        why = why_no_bets if bets else lambda *about: "bets are left out"
        with (
            patch.object(joint, "split", split_so),
            patch.object(pipeline, "split", split_so),
            patch.object(pipeline, "why_no_bets", why),
            patch.object(bet_policy, "why_no_bets", why),
            patch.object(Levels, "of", lambda *of: levels(*of[:3], guard or of[3])),
        ):
            effort = {} if bets else {"effort": "quick"}
            result = learn(problem, counts, delta=0.001, policy=best.policy if given else None, **effort)
        if result.value is not None:
            return float(result.value.interval.width)
        return abs(float(best.lower[problem.model.initial]) - result.guarantee)

    for name in SMALL:
        for episodes in (300, 3000):
            rows = []
            for seed in range(41, 41 + seeds):
                problem, counts, best = data_of(name, seed, episodes)
                counts = replace(counts, design=replace(counts.design, bet_on=(best.policy.digest,)))
                row = [[learn_with(*one, True, given) for one in SLABS] for given in (True, False)]
                row.append([learn_with(share, 0.0, False, False) for share in LIKELIHOODS])
                rows.append([[each / own[0] for each in own[1:]] for own in row])
            for label, *each in zip(("given", "found", "no bets"), *rows, strict=True):
                mean = np.exp(np.log(np.array(each)).mean(axis=0))
                print(f"{name:<14} {episodes:>6,} {label:<8}", *(f"{one:.3f}" for one in mean), flush=True)
    return 0


System = tuple[list[tuple[int, str, dict[int, Any]]], str]
"""Rows of states 0, 1, … and a property; "goal" is the last state but one, "lost" the last."""


def retries(p: Any) -> System:
    return [(s, "", {3: p, s + 1 if s < 2 else 4: 1 - p}) for s in range(3)], 'Pmax=? [ F "goal" ]'


def two_events(p: Any) -> System:
    rows = [
        (0, "a", {1: p, 0: 1 - p}), (0, "b", {1: p / 2, 3: 1 - p / 2}), (1, "a", {2: p / 2, 3: 1 - p / 2}),
        (1, "b", {2: p, 0: 1 - p}),
    ]  # fmt: skip
    return rows, 'Pmin=? [ F "goal" ]'


def ways(*coins: Any) -> System:
    """One coin of several is tossed, twice at most: the value depends on the best alone."""
    last = 3
    rows = [
        (s, f"way{i}", {2: p, 1 if s == 0 else last: 1 - p}) for s in range(2) for i, p in enumerate(coins)
    ]
    return rows, 'Pmax=? [ F "goal" ]'


def relay(*coins: Any) -> System:
    """All coins have to show heads; after the other choice the previous one is tossed again."""
    end, rows = len(coins), list[tuple[int, str, dict[int, Any]]]()
    for s, p in enumerate(coins):
        other = coins[(s + 1) % end]
        rows += [(s, "a", {s + 1: p, end + 1: 1 - p}), (s, "b", {s + 1: other, max(s - 1, 0): 1 - other})]
    return rows, 'Pmin=? [ F "goal" ]'


def work(*coins: Any) -> System:
    """Steps until every coin has shown heads."""
    return [(s, "", {s + 1: p, s: 1 - p}) for s, p in enumerate(coins)], 'Rmin=? [ F "goal" ]'


def mixed(p: Any, q: Any) -> System:
    """Both expressions have both parameters, as a rover's."""
    low, high = Fraction(4, 5) * p + Fraction(1, 5) * q, Fraction(3, 10) * p + Fraction(7, 10) * q
    rows = [(s, "l", {s + 1: low, 5: 1 - low}) for s in range(4)]
    rows += [(s, "h", {s + 1: high, 5 if s % 2 else s: 1 - high}) for s in range(4)]
    return sorted(rows, key=lambda row: row[:2]), 'Pmax=? [ F "goal" ]'


FEW: dict[str, tuple[Callable[..., System], tuple[str, ...]]] = {
    "one coin": (retries, ("0.4",)),
    "one, two events": (two_events, ("0.6",)),
    "two ways": (ways, ("0.7", "0.75")),
    "three ways": (ways, ("0.5", "0.6", "0.3")),
    "relay of two": (relay, ("0.8", "0.7")),
    "relay of three": (relay, ("0.8", "0.7", "0.9")),
    "work of three": (work, ("0.8", "0.3", "0.6")),
    "two, mixed": (mixed, ("0.9", "0.8")),
}
FEW_DATA = "raw log", "planned", "generative"


def few(seeds: int, names: Sequence[str]) -> int:
    """Small models, by which rule: over the polytope's, what a joint region gives with nine tenths of δ, and
    with half, for its slab: the guarantee's distance without a policy, and a given policy's width."""
    print(f"{'system':<16} {'data':<10} {'δ':>6} {'episodes':>8}  found .9 .5   given .9 .5   CPU s, .9")
    for name in names or FEW:
        system, truth = FEW[name]
        parameters = tr.Parameters.box(**{f"p{i}": ("0.05", "0.95") for i in range(len(truth))})
        rows, text = system(*parameters.symbols())
        goal = 1 + max(row[0] for row in rows)
        rows = [*rows, (goal, "", {goal: 1}), (goal + 1, "", {goal + 1: 1})]
        steps = [1.0] * goal + [0.0, 0.0]
        model: Any = tr.build_from_rows(rows, parameters, labels={"goal": [goal]}, state_rewards={"n": steps})
        problem, plain = Problem(model, text), model.instantiate([Fraction(one) for one in truth])
        best = solve(plain, problem.objective)
        stop = find_decided_states(problem.objective, model.states)
        simulator = Simulator(plain, None, stop, 1000, model.hash(), threads=1)
        for data, delta, episodes in product(FEW_DATA, (0.1, 0.001), (100, 300, 3000)):
            every = list[list[tuple[float, float, float]]]()
            for seed in range(41, 41 + seeds):
                counts = (simulator.generative if data == "generative" else simulator.episodes)(
                    episodes, seed
                )
                design = replace(counts.design, bet_on=(best.policy.digest,))
                if data == "raw log":
                    design = replace(design, kind=SamplingKind.ADAPTIVE, planned=None)
                counts = replace(counts, design=design)
                value = float(best.lower[model.initial])
                every.append(
                    [of_few(problem, counts, delta, best.policy, value, one) for one in (0, 0.9, 0.5)]
                )
            found, given, seconds = np.moveaxis(np.array(every), 2, 0)
            ratios = [np.exp(np.log(one[:, 1:] / one[:, :1]).mean(axis=0)) for one in (found, given)]
            cells = "   ".join(" ".join(f"{one:.2f}" for one in each) for each in ratios)
            spent = " ".join(f"{one:.2f}" for one in seconds.mean(axis=0)[:2])
            print(f"{name:<16} {data:<10} {delta:>6g} {episodes:>8,}  {cells}   {spent}", flush=True)
    return 0


def of_few(
    problem: Problem, counts: Counts, delta: float, policy: Policy, best: float, share: float
) -> tuple[float, float, float]:
    """(the guarantee's distance, the policy's width, CPU seconds) where the slab has a share; 0: none."""

    def split_so(delta: float, bets: bool) -> tuple[float, float]:
        return down((1.0 - share) * (1.0 - 1e-15) * delta), down(share * delta)

    begin = time.process_time()
    with (
        patch.object(choosing, "MANY_EXPRESSIONS", 1 if share else math.inf),
        patch.object(joint, "split", split_so),
        patch.object(pipeline, "split", split_so),
    ):
        guarantee = learn(problem, counts, delta=delta).guarantee
        value = learn(problem, counts, delta=delta, policy=policy).value
    assert value is not None
    return abs(best - guarantee), float(value.interval.width), 0.5 * (time.process_time() - begin)


def coverage(replications: int, tied: bool) -> int:
    """Misses of the statements behind a joint region at δ = 0.1, on a small model with bounded steps, of the
    rows that enclose its slab, and of likelihoods with priors, all of δ theirs. Where policies are `tied`
    there are several betting strategies; otherwise half of the data have no plan."""
    delta, parameters = 0.1, tr.Parameters.box(p=("0.05", "0.9"), q=("0.05", "0.9"))
    p, q = parameters.symbols()
    rows = [
        (0, "a", {1: p, 0: 1 - p}), (0, "b", {1: q, 0: 1 - q}), (1, "a", {2: p * q, 0: 1 - p * q}),
        (1, "b", {2: q / 2, 1: 1 - q / 2}), (2, "", {2: 1}),
    ]  # fmt: skip
    model: Any = tr.build_from_rows(rows, parameters, labels={"end": [2]})
    problem = Problem(model, 'Pmax=? [ F<=6 "end" ]')
    truth = [Fraction("0.5"), Fraction("0.5")] if tied else [Fraction("0.3"), Fraction("0.6")]
    plain = model.instantiate(truth)
    outcomes = Outcomes.of(model)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    maximiser = LikelihoodMaximiser.of(coordinates, functions)
    t = np.array([float(value) for value in truth])
    f = functions.linear @ maximiser.lifted(t) + functions.constant
    of_events, rest = split(delta, bets=True)
    priors = {
        "good prior": ((50, 50), (50, 50)) if tied else ((30, 70), (60, 40)),
        "far prior": ((1, 40), (1, 40)),
        "wild prior": ((9e4, 1), (1, 9e4)),
    }
    misses = dict.fromkeys(("intervals", "guard", "bets", "any", "rows", *priors), 0)
    held = taken = several = 0
    simulator = Simulator(plain, None, None, 6, model.hash(), threads=1)
    for seed in range(replications):
        counts = simulator.episodes(300 if tied else 60, 1000 + seed)
        if seed % 2 and not tied:  # nothing planned: pilots and scales are mixed
            counts = replace(counts, design=replace(counts.design, kind=SamplingKind.ADAPTIVE, planned=None))
        intervals = event_intervals(model, counts, of_events, IntervalMethod.BETA_BINOMIAL)
        low, high = intervals.expression_bounds()
        bets = PolicyBets(model, problem.objective, None, counts.design, both=True)
        bets.guard_share = WIDER_SHARE
        levels = Levels.of(rest, bets.ends, len(coordinates.free), WIDER_SHARE)
        evidence = prequential(outcomes, counts, levels.guard)
        slab = place_bets(outcomes, counts, bets, levels)
        several += slab.strategies > 1
        outside = bool(np.any((f < low - 1e-12) | (f > high + 1e-12)))
        with np.errstate(divide="ignore"):
            unlikely = float(evidence.weight @ np.log(np.maximum(f, 1e-300))) < evidence.threshold
        rich = False
        for side in slab.sides:
            wealth = [one.log_wealth(outcomes, f) for one in slab.wagers[side]]
            total = np.logaddexp.reduce(
                [math.log(s.weight) + w for s, w in zip(slab.every, wealth, strict=True)]
            )
            rich = rich or bool(total >= slab.price[side])
        for name, missed in (("intervals", outside), ("guard", unlikely), ("bets", rich)):
            misses[name] += missed
        misses["any"] += outside or unlikely or rich
        region = SLAB.build(RegionTask(model, counts, rest, gradient=bets))
        x = maximiser.lifted(t)
        cut = region.emptiness.is_empty or bool(np.any(region.system.excess(x) > 1e-12))
        misses["rows"] += cut
        held += cut and not (unlikely or rich)
        made = () if region.slab is None else region.slab.rows
        taken += any(row.guard > 0.0 for stage in made for row in stage)
        for name, (of_p, of_q) in priors.items():
            stated = Prior("p", *of_p), Prior("q", *of_q)
            evidence = prequential(outcomes, counts, delta, None, stated)
            misses[name] += float(evidence.weight @ np.log(f.clip(1e-300))) < evidence.threshold
    allowed = {"intervals": of_events, "guard": 0.25 * rest, "bets": 0.75 * rest, "any": delta}
    allowed |= dict.fromkeys(priors, delta) | {"rows": rest}
    for name, count in misses.items():
        rate = count / replications
        print(f"{name:<10} {count:>5} of {replications} missed, {rate:.4f}, allowed {allowed[name]:.4f}")
    print(
        f"rows with evidence in {taken} of {replications}; {held} cut off a truth that guard and bets leave; "
        f"several betting strategies in {several}"
    )
    return held + sum(count > allowed[name] * replications for name, count in misses.items())


def main() -> int:
    parser = argparse.ArgumentParser(description="Widths of what learn does without options.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--bars", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--pump", type=int)
    parser.add_argument("--robust", type=int)
    parser.add_argument("--coverage", type=int)
    parser.add_argument("--oracle", type=int)
    parser.add_argument("--rules", type=int)
    parser.add_argument("--few", type=int)
    parser.add_argument("--records", type=Path)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("--episodes", type=int, nargs="*")
    parser.add_argument("--deltas", type=float, nargs="*")
    options = parser.parse_args()
    if options.rules:
        return rules(options.rules)
    if options.few:
        return few(options.few, options.names)
    if options.coverage or options.robust or options.pump or options.oracle:
        missed = sum(coverage(options.coverage, tied) for tied in (False, True)) if options.coverage else 0
        missed += oracle(options.oracle) if options.oracle else 0
        missed += robust(options.robust) if options.robust else 0
        missed += pump(options.pump, False) + pump(options.pump, True) if options.pump else 0
        return int(missed > 0)
    first, number = map(int, options.part.split("/"))
    records = Records(options.records, (first, number), options.merge)
    if options.smoke:
        for method in ("polytope, rectangular", "likelihood, coupled"):
            del METHODS[method]
        return int(compare(("betting(4)",), (41,), (300,), (0.05,), records) > 0)
    names = tuple(options.names) or ((*GOALS, *OTHERS) if not options.bars else tuple(GOALS))
    plain = options.bars or options.names
    amounts = tuple(options.episodes or ((20_000,) if plain else (20_000, 3_000, 300)))
    deltas = tuple(options.deltas or ((0.001,) if plain else (0.001, 0.05)))
    return int(compare(names, tuple(options.seeds), amounts, deltas, records) > 0)


if __name__ == "__main__":
    sys.exit(main())
