"""Rows until a planted departure is found, against an oracle that looks once and for that departure alone.

    python benchmarks/doctor_power.py            all cases, about ten minutes
    python benchmarks/doctor_power.py --smoke    a little of one, seconds

The oracle is a likelihood-ratio test (`doctor_cases.py`); the examination tests everything it tests, at the
same α = 0.01. Each case: rows at which 80 % of logs raise an alarm, divided by the oracle's, at any time
(`anytime`) and where the number of episodes was planned (`planned`), and how often the largest finding of an
alarm is what was planted. Goals: anytime 6, planned 2.2, units 5, named in 90 %.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from doctor_cases import Case, column, second_order, seen_before, unit
from tightrope.monitoring.examination import examine

ALPHA, POWER, GROWTH = 0.01, 0.8, 1.25
CASES: dict[str, tuple[Case, int, int]] = {
    "second-4": (second_order(4, 0.3), 200, 16),
    "second-6": (second_order(6, 0.4), 150, 16),
    "second-10": (second_order(10, 0.5), 300, 14),
    "seen": (seen_before(0.1), 400, 17),
    "column": (column(0.12), 150, 16),
    "unit": (unit(2.0), 800, 19),
    "unit-cut": (unit(2.0, ends=False), 800, 19),
}
"""Each with the fewest rows and how many numbers of rows are tried."""


def measure(case: Case, least: int, sizes: int, repetitions: int) -> dict[str, Any]:
    rows = [int(least * GROWTH**place) for place in range(sizes)]
    found = {name: np.zeros(sizes) for name in ("oracle", "anytime", "planned")}
    alarms = named = 0
    for repetition in range(repetitions):
        for place, number in enumerate(rows):
            log = case.draw(number, np.random.default_rng([repetition, place]))
            found["oracle"][place] += case.oracle(log) < ALPHA
            for name in ("anytime", "planned"):
                result = examine(case.model, log, alpha=ALPHA, planned=name == "planned")
                found[name][place] += result.alarm
                if result.alarm and name == "anytime":
                    alarms += 1
                    named += result.findings[0].feature == case.feature
    needed = {name: until(np.array(rows), values / repetitions) for name, values in found.items()}
    return {
        "case": case.name,
        "repetitions": repetitions,
        "oracle_rows": needed["oracle"],
        "anytime": needed["anytime"] / needed["oracle"],
        "planned": needed["planned"] / needed["oracle"],
        "named": named / max(alarms, 1),
    }


def until(rows: np.ndarray, power: np.ndarray) -> float:
    """The rows at which the power is reached, between those that were tried."""
    best = np.maximum.accumulate(power)
    place = int(np.argmax(best >= POWER))
    if best[place] < POWER:
        return math.inf
    if place == 0 or best[place] == best[place - 1]:
        return float(rows[place])
    return float(np.exp(np.interp(POWER, best[place - 1 : place + 1], np.log(rows[place - 1 : place + 1]))))


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows until a planted departure is found.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--only", action="append", choices=sorted(CASES))
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/doctor_power.jsonl"))
    given = parser.parse_args()
    names = given.only or (["column"] if given.smoke else list(CASES))
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with given.output.open("a", encoding="utf-8") as file:
        for name in names:
            case, least, sizes = CASES[name]
            if given.smoke:
                least, sizes = 1_000, 7
            row = measure(case, least, sizes, 2 if given.smoke else given.repetitions)
            words = (
                f"{row['case']}: oracle {row['oracle_rows']:,.0f} rows, anytime {row['anytime']:.1f} times"
            )
            print(f"{words}, planned {row['planned']:.1f} times, named first {row['named']:.0%}", flush=True)
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
