"""How often intervals from observed costs miss the truth, at any time and under adaptive sampling.

    python benchmarks/cost_coverage.py            1000 replications of each case, minutes
    python benchmarks/cost_coverage.py --smoke    few replications, seconds
    python benchmarks/cost_coverage.py --chunks 2    two chunks more of what is not in the output yet

δ = 0.05. *Streams*: three kinds of steps cost h, 2h + 1 and 3h on average; which comes next depends on the
costs before (adaptive), and the stream is stopped at the moment when the truth looks worst, known to nobody
but this script. A miss is a truth that is excluded at any of 2000 moments, by the definition; the interval of
the library at the worst moment must say the same. Costs are bounded (two-point, uniform, rare and large,
narrow) or have a known standard deviation (normal, uniform, Student's t with three degrees of freedom). The
normal approximation, looked at all the time, shows what stopping does to an interval for a fixed number of
costs. *End to end*: an inventory with unknown demand and holding cost, a policy that follows the costs it
sees, `learn` with both; a miss is true parameters outside the region or a true value outside the interval of
the learned policy.

Chunks of replications are appended to a file of JSON lines, and those that are in it are not run again.
Prints a table of all. Leaves with status 1 where the 99.9 % lower confidence bound of a
miss rate exceeds δ, or the normal approximation does not fail.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tightrope as tr
from tightrope.data.costs import CostSums
from tightrope.prism.load import load_prism_text
from tightrope.statistics.costs import SCALES, Group, Spread, interval
from tightrope.statistics.intervals import clopper_pearson

DELTA = 0.05
TRUTH = 0.25
SLOPES = np.array([1.0, 2.0, 3.0]) / 3.0
SHIFTS = np.array([0.0, 1.0, 0.0])
CHUNK = 250
LOOKED_AT = 10
"""Every tenth stream, and all in which the truth is nearly excluded, are given to the library as well."""

TOP = 3.0
"""Costs of bounded streams lie within [0, 3]; an event is 3h, so that slopes are at most 1."""

SHOP = """
mdp
const double d;
const double h;
module shop
  stock : [0..2] init 1;
  day : [0..4] init 0;
  [order] day<4 & stock<2 -> d : (day'=day+1) + 1-d : (stock'=stock+1) & (day'=day+1);
  [wait]  day<4 -> d : (stock'=max(stock-1,0)) & (day'=day+1) + 1-d : (day'=day+1);
  [] day=4 -> true;
endmodule
rewards "cost"
  day<4 : h*stock;
  [order] true : 1/2;
  [wait] stock=0 : 2*d;
endrewards
label "end" = day=4;
"""


def draw(noise: str, mean: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Costs with these means."""
    size = len(mean)
    if noise == "two-point":
        return np.where(random.random(size) < mean / TOP, TOP, 0.0)
    if noise == "rare":
        rare = random.random(size) < 0.02
        low = (mean - 0.02 * TOP) / 0.98
        return np.where(rare, TOP, low)
    if noise == "narrow":
        return mean + 0.02 * (2 * random.random(size) - 1)
    if noise == "uniform":
        return mean + np.minimum(mean, TOP - mean) * (2 * random.random(size) - 1)
    if noise == "normal":
        return mean + random.standard_normal(size)
    if noise == "wide uniform":
        return mean + np.sqrt(3) * (2 * random.random(size) - 1)
    return mean + random.standard_t(3, size) / np.sqrt(3)


BOUNDED = ("two-point", "uniform", "rare", "narrow")
BY_DEVIATION = ("normal", "wide uniform", "student t")


def stream(noise: str, steps: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(kind, cost) of every step: after a dear step comes a kind that says much, after a cheap one any."""
    q = 3 * TRUTH
    costs = np.stack(
        [draw(noise, np.full(steps, s * q + b), random) for s, b in zip(SLOPES, SHIFTS, strict=True)]
    )
    kind = np.empty(steps, dtype=np.int64)
    other = random.integers(0, 3, size=steps)
    dear = False
    for t in range(steps):
        kind[t] = 2 if dear else other[t]
        dear = costs[kind[t], t] > SLOPES[kind[t]] * q + SHIFTS[kind[t]]
    return kind, costs[kind, np.arange(steps)]


def watched(spread: Spread, kind: np.ndarray, cost: np.ndarray) -> tuple[int, float]:
    """When the truth looks worst, and by how much its largest exponent then exceeds its level."""
    error = cost - SLOPES[kind] * 3 * TRUTH - SHIFTS[kind]
    worst, at = -np.inf, 0
    for scale in range(SCALES):
        step, squared, fixed = terms_of(spread, scale)
        level = np.log(2 * (scale + 1) * (scale + 2) / DELTA)
        for sign in (1.0, -1.0):
            path = np.cumsum(sign * step[kind] * error - squared[kind] * error**2 - fixed[kind]) - level
            if path.max() > worst:
                worst, at = float(path.max()), int(path.argmax()) + 1
    return at, worst


def terms_of(spread: Spread, scale: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(λ·α, c, d) of the three kinds."""
    each = [spread.terms(Fraction(k, 3), scale) for k in (1, 2, 3)]
    first, second, third = (np.array([float(terms[i]) for terms in each]) for i in range(3))
    return first, second, third


def library_excludes(spread: Spread, kind: np.ndarray, cost: np.ndarray) -> bool:
    """Whether the interval of the library leaves out the truth."""
    sums = CostSums.observed(kind, cost).of
    groups = [Group(Fraction(k + 1, 3), Fraction(int(SHIFTS[k])), *sums[k]) for k in sorted(sums)]
    low, high = interval(groups, spread, Fraction(DELTA), (Fraction(0), Fraction(3, 2)))
    return not low <= Fraction(3, 4) <= high


def streams(noise: str, numbers: range, steps: int) -> list[dict[str, Any]]:
    """Misses of the confidence sequence, and of a normal approximation that is looked at all the time."""
    spread = Spread(reach=Fraction(3)) if noise in BOUNDED else Spread(deviation=Fraction(1))
    missed = fooled = 0
    for number in numbers:
        random = np.random.default_rng([7, number, sum(noise.encode())])
        kind, cost = stream(noise, steps, random)
        at, worst = watched(spread, kind, cost)
        if number % LOOKED_AT == 0 or worst > -0.5:
            excludes = library_excludes(spread, kind[:at], cost[:at])
            if excludes != (worst > 0) and abs(worst) > 1e-6:
                raise SystemExit(f"{noise}, replication {number}: interval and definition disagree ({worst})")
        missed += worst > 0
        error = cost - SLOPES[kind] * 3 * TRUTH - SHIFTS[kind]
        n = np.arange(1, steps + 1)
        mean = np.cumsum(error) / n
        deviation = np.sqrt(np.maximum(np.cumsum(error**2) / n - mean**2, 1e-12))
        fooled += bool(np.any(np.abs(mean[30:]) > 1.96 * deviation[30:] / np.sqrt(n[30:])))
    assumed = "range" if noise in BOUNDED else "deviation"
    case = {"case": f"stream, {noise}", "first": numbers[0], "replications": len(numbers)}
    return [
        {**case, "method": f"confidence sequence, {assumed}", "misses": missed, "claimed": True},
        {**case, "method": "normal approximation", "misses": fooled, "claimed": False},
    ]


def end_to_end(noise: str, numbers: range, episodes: int) -> list[dict[str, Any]]:
    """Misses of `learn` with demand and holding cost unknown, under a policy that follows the costs."""
    model = load_prism_text(SHOP, "shop.prism", box="d=0.2:0.6,h=0.05:0.5")
    problem = model.problem('R{"cost"}min=? [ F "end" ]')
    words: dict[str, Any] = {"cost_range": (0, 2)} if noise == "two-point" else {"cost_sd": 1.0}
    values: dict[bytes, tuple[float, float]] = {}
    missed = 0
    for number in numbers:
        log = adaptive_log(model, noise, episodes, np.random.default_rng([11, number, len(noise)]))
        result = tr.learn(problem, log, delta=DELTA, region="polytope", sets="expression", **words)
        assert result.region is not None
        key = result.policy.probability.tobytes()
        if key not in values:
            there = tr.solve(problem.at(d=0.4, h=TRUTH), policy=result.policy).at_initial_states
            values[key] = float(there.lower), float(there.upper)
        low, high = values[key]
        inside = result.interval.lower <= high and low <= result.interval.upper
        missed += not (inside and result.contradiction is None and result.region.contains([0.4, TRUTH]))
    case = {"case": f"inventory, {noise}", "first": numbers[0], "replications": len(numbers)}
    return [{**case, "method": f"learn, {next(iter(words))}", "misses": missed, "claimed": True}]


def adaptive_log(model: Any, noise: str, episodes: int, random: np.random.Generator) -> pd.DataFrame:
    """Episodes that order after cheap days and wait after dear ones."""
    rows = []
    for episode in range(episodes):
        stock, cheap = 1, True
        for day in range(4):
            order = cheap and stock < 2
            mean = TRUTH * stock + (0.5 if order else 0.0) + (0.8 if stock == 0 and not order else 0.0)
            cost = (
                random.choice([0.0, 2.0], p=[1 - mean / 2, mean / 2])
                if noise == "two-point"
                else (mean + random.standard_normal())
            )
            demand = random.random() < 0.4
            after = stock + (0 if demand else 1) if order else max(stock - 1, 0) if demand else stock
            action = "order" if order else "wait"
            rows.append((episode, day, stock, day, action, after, day + 1, cost))
            stock, cheap = after, cost < 0.7
    columns = ["episode", "step", "stock", "day", "action", "stock_next", "day_next", "cost"]
    return pd.DataFrame(rows, columns=columns)


def chunks(smoke: bool, replications: int) -> list[tuple[str, range, Any]]:
    """(case, numbers of replications, how to run it), small enough to be stopped between any two."""
    size = 4 if smoke else CHUNK
    noises = ("two-point", "normal") if smoke else (*BOUNDED, *BY_DEVIATION)
    found: list[tuple[str, range, Any]] = []
    for first in range(0, size if smoke else replications, size):
        numbers = range(first, first + size)
        for noise in noises:
            found.append(
                (f"stream, {noise}", numbers, partial(streams, noise, numbers, 200 if smoke else 2000))
            )
        for noise in ("two-point", "normal"):
            how = partial(end_to_end, noise, numbers[:2] if smoke else numbers, 20 if smoke else 60)
            found.append((f"inventory, {noise}", numbers, how))
    return found


def summed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All chunks of a case and method together."""
    total: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        known = total.setdefault((row["case"], row["method"]), {**row, "misses": 0, "replications": 0})
        known["misses"] += row["misses"]
        known["replications"] += row["replications"]
    for row in total.values():
        counted = np.array([row["misses"]]), np.array([row["replications"]])
        row["miss_rate"] = row["misses"] / row["replications"]
        row["ok"] = not row["claimed"] or float(clopper_pearson(*counted, 0.002)[0][0]) <= DELTA
    return list(total.values())


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage of intervals from observed costs.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--chunks", type=int, help="run at most so many chunks that are not there yet")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/cost_coverage.jsonl"))
    options = parser.parse_args()
    started = time.process_time()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    rows = [json.loads(line) for line in lines]
    there = {(row["case"], row["first"]) for row in rows}
    missing = [one for one in chunks(options.smoke, options.replications) if (one[0], one[1][0]) not in there]
    for _, _, run in missing[: options.chunks]:
        found = run()
        rows += found
        with options.output.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in found)
    print(f"{'case':<24} {'method':<34} {'missed':>8} {'of':>6}  claims δ = {DELTA}")
    table = summed(rows)
    for row in table:
        mark = ("yes" if row["ok"] else "FAILED") if row["claimed"] else "no"
        print(
            f"{row['case']:<24} {row['method']:<34} {row['miss_rate']:>8.4f} {row['replications']:>6}  {mark}"
        )
    print(f"{time.process_time() - started:.0f} CPU seconds")
    fooled = options.smoke or all(row["miss_rate"] > DELTA for row in table if not row["claimed"])
    return 0 if fooled and all(row["ok"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
