"""How many sojourns it takes to find that a rate is not constant, and how often constant rates raise alarms.

A machine works for a time and is repaired. *Power*: the time it works is Weibull, the repair exponential.
The oracle knows that only the shape of the first can be wrong and looks once: the likelihood ratio test of
shape 1 at α. Beside it the test that `learn` makes, which knows nothing and may look at any time, at the same
α; for each the number of sojourns with which 9 of 10 logs show it. *False alarms*: constant rates, with logs
that are cut off, with several exits and with columns that say nothing.

    python benchmarks/rate_doctor.py                 # 200 logs per size, 10,000 constant ones
    python benchmarks/rate_doctor.py --smoke         # 6 and 20
"""

from __future__ import annotations

import argparse
import json
from math import gamma

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.stats import chi2

import tightrope as tr
from tightrope.data.exposure import read_exposure
from tightrope.monitoring.rate_fit import examine_rates

PARAMETERS = tr.Parameters.box(lam=(0.01, 100), mu=(0.01, 100), nu=(0.01, 100))
LAM, MU, NU = PARAMETERS.symbols()
MACHINE = tr.build_ctmc_from_rows([(0, {1: LAM}), (1, {0: MU})], PARAMETERS)
RACE = tr.build_ctmc_from_rows([(0, {1: LAM, 2: MU}), (1, {0: NU, 2: LAM}), (2, {0: NU})], PARAMETERS)
EPISODES = 10
POWER = 0.9


def weibull_log(rng: np.random.Generator, sojourns: int, shape: float) -> tuple[pa.Table, np.ndarray]:
    """So many sojourns of each state, in ten episodes; and those of the first state alone."""
    each = max(1, sojourns // EPISODES)
    works = rng.weibull(shape, (EPISODES, each)) / gamma(1 + 1 / shape)
    lasts = np.stack([works, rng.exponential(0.5, (EPISODES, each))], axis=2).reshape(EPISODES, -1)
    time = np.concatenate([np.zeros((EPISODES, 1)), np.cumsum(lasts, axis=1)], axis=1)
    state = np.tile(np.arange(2 * each + 1) % 2, EPISODES)
    episode = np.repeat(np.arange(EPISODES), 2 * each + 1)
    table = pa.table({"episode": episode, "time": time.ravel(), "state": state})
    return table, works.ravel()


def oracle_finds(lasts: np.ndarray, alpha: float) -> bool:
    """The likelihood ratio test of shape 1, at one look."""
    logs, n = np.log(lasts), len(lasts)

    def slope(shape: float) -> float:
        powers = lasts**shape
        return float(1 / shape + logs.mean() - (powers @ logs) / powers.sum())

    shape = brentq(slope, 0.05, 20)
    log_scale = np.log((lasts**shape).mean()) / shape
    weibull = n * (np.log(shape) - shape * log_scale) + (shape - 1) * logs.sum() - n
    constant = -n * np.log(lasts.mean()) - n
    return bool(2 * (weibull - constant) >= chi2.ppf(1 - alpha, 1))


def test_finds(table: pa.Table, alpha: float) -> bool:
    exposure = read_exposure(table, MACHINE, ends="complete")
    result = examine_rates(MACHINE, exposure, alpha=alpha)
    return result.alarm and result.findings[0].feature == "since-entry"


def needed(shape: float, alpha: float, logs: int, oracle: bool) -> int:
    """The first of a row of sizes with which the share of logs that show it is large enough."""
    size = 20.0
    while size < 20_000:
        found = 0
        for number in range(logs):
            table, lasts = weibull_log(np.random.default_rng([number, int(size)]), int(size), shape)
            found += oracle_finds(lasts, alpha) if oracle else test_finds(table, alpha)
        if found >= POWER * logs:
            return int(size)
        size *= 1.25
    return -1


def constant_log(rng: np.random.Generator, number: int) -> tuple[tr.ParametricCTMC, pa.Table]:
    """A log of constant rates, cut off at a time, with two columns that say nothing."""
    model = (MACHINE, RACE)[number % 2]
    point = {name: float(np.exp(rng.normal())) for name in ("lam", "mu", "nu")}
    rows = tr.simulate_times(model.instantiate(**point), int(rng.integers(2, 20)), number, 15.0)
    table = rows.table()
    table = table.append_column("shift", pa.array(rng.choice(["early", "late"], len(table))))
    load = rng.normal(size=len(table))
    return model, table.append_column("load", pa.array(load))


def false_alarms(logs: int, alpha: float) -> int:
    alarms = 0
    for number in range(logs):
        model, table = constant_log(np.random.default_rng([number, 7]), number)
        alarms += examine_rates(model, read_exposure(table, model), alpha=alpha).alarm
    return alarms


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="a small run")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--constant", type=int, default=10_000)
    parser.add_argument("--alpha", type=float, default=0.01)
    arguments = parser.parse_args()
    logs, constant = (6, 20) if arguments.smoke else (arguments.logs, arguments.constant)
    rows = []
    for shape in (1.5,) if arguments.smoke else (0.7, 1.5, 2.0):
        alone = needed(shape, arguments.alpha, logs, oracle=True)
        anytime = needed(shape, arguments.alpha, logs, oracle=False)
        rows.append({"shape": shape, "oracle": alone, "test": anytime, "ratio": anytime / alone})
    alarms = false_alarms(constant, arguments.alpha)
    print(json.dumps({"alpha": arguments.alpha, "weibull": rows, "constant": constant, "alarms": alarms}))


if __name__ == "__main__":
    main()
