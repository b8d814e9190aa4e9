"""How often intervals from observed costs miss the truth, at any time and under adaptive sampling.

    python benchmarks/cost_coverage.py            1000 replications and more, minutes
    python benchmarks/cost_coverage.py --smoke    few replications, seconds

δ = 0.05. *Streams*: three kinds of steps cost h, 2h + 1 and 3h on average; which comes next depends on the
costs before (adaptive), and the stream is stopped at the moment when the truth looks worst, known to nobody
but this script. A miss is a truth that is excluded at any of 2000 moments; the interval of the library at the
worst moment must say the same. Costs are bounded (two-point, uniform, rare and large, narrow) or have a known
standard deviation (normal, uniform, Student's t with three degrees of freedom). The normal approximation,
looked at all the time, shows what stopping does to an interval for a fixed number of costs. *End to end*: an
inventory with unknown demand and holding cost, a policy that follows the costs it sees, `learn` with both; a
miss is true parameters outside the region or a true value outside the interval of the learned policy.

Prints a table and writes its rows as JSON. Leaves with status 1 where the 99.9 % lower confidence bound of a
miss rate exceeds δ, or the normal approximation does not fail.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tightrope as tr
from tightrope.numerics.cost_intervals import SCALES, Group, Spread, interval
from tightrope.prism.load import load_prism_text
from tightrope.statistics.intervals import clopper_pearson

DELTA = 0.05
TRUTH = 0.25
SLOPES = np.array([1.0, 2.0, 3.0]) / 3.0
SHIFTS = np.array([0.0, 1.0, 0.0])
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
    groups = []
    for k in range(3):
        own = [Fraction(value) for value in cost[kind == k].tolist()]
        slope, shift = Fraction(k + 1, 3), Fraction(int(SHIFTS[k]))
        groups.append(
            Group(slope, shift, len(own), sum(own, Fraction(0)), sum((x * x for x in own), Fraction(0)))
        )
    low, high = interval(groups, spread, Fraction(DELTA), (Fraction(0), Fraction(3, 2)))
    return not low <= Fraction(3, 4) <= high


def streams(noise: str, replications: int, steps: int) -> list[dict[str, Any]]:
    """Misses of the confidence sequence, and of a normal approximation that is looked at all the time."""
    spread = Spread(reach=Fraction(3)) if noise in BOUNDED else Spread(deviation=Fraction(1))
    missed = fooled = 0
    for number in range(replications):
        random = np.random.default_rng([7, number, sum(noise.encode())])
        kind, cost = stream(noise, steps, random)
        at, worst = watched(spread, kind, cost)
        excludes = library_excludes(spread, kind[:at], cost[:at])
        if excludes != (worst > 0) and abs(worst) > 1e-6:
            raise SystemExit(
                f"{noise}, replication {number}: the interval and its definition disagree ({worst})"
            )
        missed += excludes
        error = cost - SLOPES[kind] * 3 * TRUTH - SHIFTS[kind]
        n = np.arange(1, steps + 1)
        mean = np.cumsum(error) / n
        deviation = np.sqrt(np.maximum(np.cumsum(error**2) / n - mean**2, 1e-12))
        fooled += bool(np.any(np.abs(mean[30:]) > 1.96 * deviation[30:] / np.sqrt(n[30:])))
    assumed = "range" if noise in BOUNDED else "deviation"
    return [
        row_of(f"stream, {noise}", f"confidence sequence, {assumed}", missed, replications, True),
        row_of(f"stream, {noise}", "normal approximation", fooled, replications, False),
    ]


def end_to_end(noise: str, replications: int, episodes: int) -> dict[str, Any]:
    """Misses of `learn` with demand and holding cost unknown, under a policy that follows the costs."""
    model = load_prism_text(SHOP, "shop.prism", box="d=0.2:0.6,h=0.05:0.5")
    problem = model.problem('R{"cost"}min=? [ F "end" ]')
    words: dict[str, Any] = {"cost_range": (0, 2)} if noise == "two-point" else {"cost_sd": 1.0}
    values: dict[bytes, tuple[float, float]] = {}
    missed = 0
    for number in range(replications):
        log = adaptive_log(model, noise, episodes, np.random.default_rng([11, number, len(noise)]))
        result = tr.learn(problem, log, delta=DELTA, region="polytope", sets="expression", **words)
        assert result.region is not None
        key = result.policy.probability.tobytes()
        if key not in values:
            there = tr.solve(problem.at(d=0.4, h=TRUTH), policy=result.policy).at_initial_states
            values[key] = float(there.lower), float(there.upper)
        low, high = values[key]
        inside = result.interval.lower <= high and low <= result.interval.upper
        missed += not (inside and result.verdict is None and result.region.contains([0.4, TRUTH]))
    return row_of(f"inventory, {noise}", f"learn, {next(iter(words))}", missed, replications, True)


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


def row_of(case: str, method: str, misses: int, replications: int, claimed: bool) -> dict[str, Any]:
    lower = float(clopper_pearson(np.array([misses]), np.array([replications]), 0.002)[0][0])
    return {
        "case": case,
        "method": method,
        "misses": misses,
        "replications": replications,
        "miss_rate": misses / replications,
        "claimed": claimed,
        "ok": not claimed or lower <= DELTA,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage of intervals from observed costs.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/cost_coverage.json"))
    options = parser.parse_args()
    replications, steps = (4, 200) if options.smoke else (options.replications, 2000)
    noises = ("two-point", "normal") if options.smoke else (*BOUNDED, *BY_DEVIATION)
    started = time.process_time()
    rows = [row for noise in noises for row in streams(noise, replications, steps)]
    for noise in ("two-point", "normal"):
        rows.append(end_to_end(noise, 2 if options.smoke else replications // 2, 20 if options.smoke else 60))
    print(f"{'case':<24} {'method':<34} {'missed':>8}  claims δ = {DELTA}")
    for row in rows:
        mark = ("yes" if row["ok"] else "FAILED") if row["claimed"] else "no"
        print(f"{row['case']:<24} {row['method']:<34} {row['miss_rate']:>8.4f}  {mark}")
    print(f"{time.process_time() - started:.0f} CPU seconds")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"delta": DELTA, "rows": rows}, indent=1), encoding="utf-8")
    fooled = options.smoke or all(row["miss_rate"] > DELTA for row in rows if not row["claimed"])
    return 0 if fooled and all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
