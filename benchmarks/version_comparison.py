"""Two versions of an agent, compared after every run: how many runs it takes to prove a difference.

    python benchmarks/version_comparison.py            300 simulations per row, seconds
    python benchmarks/version_comparison.py --smoke    a few simulations

Success probabilities before and after; pairs of runs arrive one by one.

`fixed`: the pairs of a two-sided z-test at 0.05 with power 0.9 for a difference of 10 points from the same
`before`: the sample to choose before the size of the difference is known. `runs`: the mean number of pairs
until `compare --before --after` proves a difference at 0.05 or stops, which it does after 1.3 times the fixed
sample (`most_pairs`). `longest`: the most pairs. `power`: how often a difference was proved. `same power`:
the size of the fixed test with that power. `unlimited`, `unlimited longest`: without a stop, up to ten times
the fixed sample. `false`: how often equal versions were ever called different within these.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import norm

from tightrope.fleet.versions import first_proof, most_pairs

DELTA, POWER, LARGEST = 0.05, 0.9, 10
ROWS = [(before, round(before - gap, 2)) for before in (0.55, 0.7, 0.9) for gap in (0.1, 0.2)]


def fixed_sample(before: float, after: float, power: float) -> float:
    """Pairs of a two-sided z-test."""
    level = float(norm.ppf(1.0 - 0.5 * DELTA) + norm.ppf(power))
    variance = before * (1.0 - before) + after * (1.0 - after)
    return level**2 * variance / (before - after) ** 2


def lengths(before: float, after: float, most: int, simulations: int) -> list[int | None]:
    """The number of pairs until a difference is proved, of each simulation."""
    result = []
    for seed in range(simulations):
        rng = np.random.default_rng([3, seed, round(100 * before), round(100 * after)])
        difference = (rng.random(most) < after).astype(float) - (rng.random(most) < before)
        result.append(first_proof(difference, difference, DELTA))
    return result


def run(before: float, after: float, simulations: int) -> dict[str, object]:
    fixed, cap = fixed_sample(before, before - 0.1, POWER), most_pairs(before, DELTA)
    most = int(LARGEST * fixed)
    times = [most if one is None else one for one in lengths(before, after, most, simulations)]
    power = float(np.mean([one <= cap for one in times]))
    equal = lengths(before, before, most, simulations)
    return {
        "before": before,
        "after": after,
        "fixed": round(fixed),
        "runs": round(float(np.mean([min(one, cap) for one in times])), 1),
        "longest": min(max(times), cap),
        "longest/fixed": round(min(max(times), cap) / fixed, 3),
        "power": round(power, 3),
        "same power": round(fixed_sample(before, after, min(power, 0.999))),
        "unlimited": round(float(np.mean(times)), 1),
        "unlimited longest": max(times),
        "false": round(float(np.mean([one is not None for one in equal])), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    rows = []
    for before, after in ROWS:
        rows.append(run(before, after, 5 if chosen.smoke else chosen.simulations))
        print(json.dumps(rows[-1]), flush=True)
    if chosen.output is not None:
        chosen.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
