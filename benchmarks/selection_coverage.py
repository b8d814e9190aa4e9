"""How often the answer on an amended model holds, where the model was chosen by looking at the log.

    python benchmarks/selection_coverage.py                2,000 logs of each system, δ = 0.1
    python benchmarks/selection_coverage.py --smoke        a few

Three small chains do what their model cannot say: the next step depends on the state before, on whether a
state was seen before, or on the number of steps so far. Of each, logs of 150 episodes are drawn. `doctor`
chooses an amendment and answers on it, `halves`: on the episodes that it was not chosen on, `e-values`: on
all, at δ/K. A row counts the logs for which an amendment was found that leaves no alarm, and of these the
intervals that miss the truth; `unpaid` are intervals from all data at δ, chosen and learned on the same log.
Leaves with status 1 where a way that is paid for misses more often than δ by three standard errors.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import tightrope as tr

DELTA = 0.1
OPTIONS: dict[str, Any] = {"delta": DELTA, "sets": "tied", "outcomes": "none", "seconds": 900.0}
WAYS: dict[str, dict[str, Any]] = {
    "halves": {"select_on": 0.5},
    "e-values": {"select_by": "e-values"},
    "unpaid": {},
}
SYSTEMS: dict[str, tuple[Callable[[list[int]], float], float]] = {
    "the state before": (lambda path: 0.85 if path[-2:-1] == [2] else 0.3, 0.7 / 3 / (1 - 0.15 / 3)),
    "seen before": (lambda path: 0.85 if 1 in path[:-1] else 0.3, 0.7 / 3 / (1 - 0.7 / 3)),
    "steps so far": (lambda path: 0.3 if len(path) == 1 else 0.85, 0.7 / 3 / (1 - 0.15 / 3)),
}
"""The probability of state 1 after state 0 by the path so far, and that of the end before state 1 is met."""


@cache
def problem() -> tr.Problem:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [
        (0, "go", {1: p, 2: 1 - p}),
        (1, "go", {0: "2/3", 2: "1/3"}),
        (2, "go", {0: "1/3", 1: "1/3", 3: "1/3"}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"met": [1], "end": [3]})
    return tr.Problem(model, 'P=? [ !"met" U "end" ]')


def draw(law: Callable[[list[int]], float], episodes: int, seed: int) -> list[list[tuple[int, str, int]]]:
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(episodes):
        path, steps = [0], []
        while path[-1] != 3:
            chance = rng.random()
            if path[-1] == 0:
                following = 1 if chance < law(path) else 2
            elif path[-1] == 1:
                following = 0 if chance < 2 / 3 else 2
            else:
                following = (0, 1, 3)[int(3 * chance)]
            steps.append((path[-1], "go", following))
            path.append(following)
        result.append(steps)
    return result


def measure(name: str, way: str, logs: int, episodes: int) -> tuple[int, int, float]:
    """Logs that were mended, those of them whose interval misses the truth, and the mean width."""
    law, truth = SYSTEMS[name]
    mended = missed = 0
    width = 0.0
    for seed in range(logs):
        data = tr.read_data(draw(law, episodes, seed), problem().model)
        try:
            found = tr.doctor(
                problem(),
                data,
                delta=DELTA,
                amend="auto",
                seed=seed,
                sets="tied",
                outcomes="none",
                **WAYS[way],
            ).amended
        except tr.CannotCertify:  # nothing was found that an amendment removes
            continue
        assert found is not None and found.result is not None
        if found.examination.alarm:
            continue
        mended += 1
        interval = found.result.interval
        missed += not interval.lower <= truth <= interval.upper
        width += interval.width
    return mended, missed, width / max(mended, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--episodes", type=int, default=150)
    parser.add_argument("--ways", nargs="+", choices=sorted(WAYS), default=list(WAYS))
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    logs, episodes = (1, 70) if options.smoke else (options.logs, options.episodes)
    print(
        f"{'system':18} {'way':9} {'logs':>6} {'mended':>7} {'missed':>7} {'share':>6} {'width':>6} seconds"
    )
    too_many = 0
    for name in SYSTEMS:
        for way in options.ways:
            begin = time.perf_counter()
            mended, missed, width = measure(name, way, logs, episodes)
            share = missed / max(mended, 1)
            spent = time.perf_counter() - begin
            print(
                f"{name:18} {way:9} {logs:6} {mended:7} {missed:7} {share:6.3f} {width:6.3f} {spent:7.1f}",
                flush=True,
            )
            limit = DELTA + 3 * (DELTA * (1 - DELTA) / max(mended, 1)) ** 0.5
            too_many += way != "unpaid" and share > limit
    return int(too_many > 0)


if __name__ == "__main__":
    sys.exit(main())
