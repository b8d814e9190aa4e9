"""Units that differ: how often each of the three answers of `learn --unit` misses, and how wide it is.

    python benchmarks/fleet_coverage.py                4 populations, fleets of 5, 20, 100; 300 logs
    python benchmarks/fleet_coverage.py --only wide --units 100    one population, one size
    python benchmarks/fleet_coverage.py --smoke        a few logs, seconds

Each unit has a success probability from the population and 30 runs. `most`: the share 0.9 of units (0.5 in
fleets of 5, 0.8 in fleets of 20) keeps the bound, misses counted over logs; `next`: the share of new units
below the bound, averaged over logs, against 1 − the stated probability; `average`: the mean of the population
is in the interval. Beside them, all at δ = 0.1:

* `pooled`: the interval of one probability for all runs, which is what `learn` without units promises.
* `mixed`: the normal quantile of a linear mixed model with a random intercept for each unit, and
  `mixed_average` the interval of its mean. Needs statsmodels, and is left out without it.
* `scenario`: the hull of all units' intervals, for the share that the scenario bound gives it
  (`scenario_share`; arXiv 2408.03093), with 100 units.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

import tightrope as tr
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.episode_log import EpisodeLog, LogColumn
from tightrope.fleet import Fleet, learn_fleet
from tightrope.fleet.tolerance import MISS, support_risk
from tightrope.statistics.intervals import beta_binomial, clopper_pearson

try:
    from statsmodels.regression.mixed_linear_model import MixedLM
except ImportError:
    MixedLM = None

Floats = npt.NDArray[np.float64]
DELTA, RUNS = 0.1, 30
SHARES = {5: 0.5, 20: 0.8, 100: 0.9}
PARAMETERS = tr.Parameters.box(p=(0, 1))
MODEL = tr.build_from_rows(
    [
        (0, "run", {1: PARAMETERS.symbols()[0], 2: 1 - PARAMETERS.symbols()[0]}),
        (1, "", {1: 1}),
        (2, "", {2: 1}),
    ],
    PARAMETERS,
    labels={"success": [1]},
)
PROBLEM = MODEL.problem('Pmax=? [ F "success" ]')
POPULATIONS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "narrow": lambda rng, size: rng.beta(180.0, 20.0, size),
    "wide": lambda rng, size: rng.beta(6.0, 2.0, size),
    "clusters": lambda rng, size: np.where(rng.random(size) < 0.8, 0.95, 0.55),
    "tail": lambda rng, size: 1.0 - np.minimum(0.02 * (1.0 + rng.pareto(1.5, size)), 1.0),
}


def log_of(value: Floats, rng: np.random.Generator, planned: bool) -> Counts:
    """Runs of all units, one step each."""
    units = len(value)
    success = rng.random((units, RUNS)) < value[:, None]
    transition = np.where(success, 0, 1).reshape(-1).astype(np.int64)
    log = EpisodeLog.of_episodes(
        transition, np.arange(len(transition)), len(transition), MODEL.structure, MODEL.hash()
    )
    code = np.repeat(np.arange(units), RUNS).astype(np.int32)
    column = LogColumn(code, tuple(f"unit {number:03}" for number in range(units)))
    log = EpisodeLog(
        log.transition, log.previous, log.episode, log.over, log.model_hash, columns={"unit": column}
    )
    kind = SamplingKind.TRAJECTORIES if planned else SamplingKind.ADAPTIVE
    design = SamplingDesign(kind, repeats=False, planned=len(transition) if planned else None)
    return log.counts(MODEL, design)


def rivals(counts: Counts, share: float) -> dict[str, tuple[float, float]]:
    """What others promise: (bound, the share of units that is to keep it)."""
    log = counts.log
    assert log is not None
    successes = np.bincount(np.arange(counts.steps) // RUNS, log().transition == 0).astype(np.int64)
    units, trials = len(successes), np.full(len(successes), RUNS)
    pooled = clopper_pearson(successes.sum()[None], np.array([units * RUNS]), DELTA)[0][0]
    result = {"pooled": (float(pooled), share)}
    if units >= 100:
        low, high = beta_binomial(successes, trials, MISS)
        support = len({int(np.argmin(low)), int(np.argmax(high))})
        kept = 1.0 - support_risk(units, support, DELTA) / (1.0 - MISS)
        result["scenario"] = (float(low.min()), max(kept, 0.0))
    return result


def mixed(counts: Counts) -> tuple[float, float, float]:
    """Mean, its standard error, and the standard deviation of units, by a linear mixed model (REML)."""
    log = counts.log
    assert log is not None
    success = (log().transition == 0).astype(np.float64)
    model = MixedLM(success, np.ones((len(success), 1)), groups=np.arange(len(success)) // RUNS)
    with warnings.catch_warnings(action="ignore"):
        fit = model.fit()
    return float(fit.fe_params[0]), float(fit.bse_fe[0]), math.sqrt(max(float(fit.cov_re[0, 0]), 0.0))


def run(name: str, units: int, logs: int, planned: bool) -> dict[str, object]:
    draw, share = POPULATIONS[name], SHARES[units]
    sample = np.sort(draw(np.random.default_rng(0), 1_000_000))
    mean = float(sample.mean())
    row: dict[str, object] = {"population": name, "units": units, "planned": planned, "logs": logs}
    missed: dict[str, list[float]] = {}
    bounds: dict[str, list[float]] = {}
    for seed in range(logs):
        rng = np.random.default_rng([1, units, seed])
        counts = log_of(draw(rng, units), rng, planned)
        fleet: Fleet = learn_fleet(PROBLEM, counts, "unit", delta=DELTA, share=share)
        below = {
            key: np.searchsorted(sample, bound, side="left") / len(sample)
            for key, bound in (
                ("most", -math.inf if fleet.most.bounds is None else fleet.most.bounds.lower),
                ("next", -math.inf if fleet.next_unit.bounds is None else fleet.next_unit.bounds.lower),
            )
        }
        average = fleet.average.bounds
        assert average is not None and fleet.next_unit.bounds is not None
        missed.setdefault("most", []).append(float(below["most"] > 1.0 - share))
        missed.setdefault("next", []).append(float(below["next"]))
        missed.setdefault("average", []).append(float(not average.lower <= mean <= average.upper))
        bounds.setdefault("most", []).append(
            math.nan if fleet.most.bounds is None else fleet.most.bounds.lower
        )
        bounds.setdefault("next", []).append(fleet.next_unit.bounds.lower)
        bounds.setdefault("average", []).append(average.width)
        for key, (bound, kept) in rivals(counts, share).items():
            under = np.searchsorted(sample, bound, side="left") / len(sample)
            missed.setdefault(key, []).append(float(under > 1.0 - kept))
            bounds.setdefault(key, []).append(bound)
            if key == "scenario":
                bounds.setdefault("scenario_share", []).append(kept)
        if MixedLM is not None and not planned:
            middle, error, spread = mixed(counts)
            bound = middle + float(norm.ppf(1.0 - share)) * spread
            under = np.searchsorted(sample, bound, side="left") / len(sample)
            half = float(norm.ppf(1.0 - 0.5 * DELTA)) * error
            missed.setdefault("mixed", []).append(float(under > 1.0 - share))
            bounds.setdefault("mixed", []).append(bound)
            missed.setdefault("mixed_average", []).append(float(abs(middle - mean) > half))
            bounds.setdefault("mixed_average", []).append(2.0 * half)
    row["true_quantile"] = float(sample[int((1.0 - share) * len(sample))])
    row["missed"] = {key: round(float(np.mean(value)), 4) for key, value in missed.items()}
    row["bound"] = {key: round(float(np.nanmean(value)), 4) for key, value in bounds.items() if value}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(POPULATIONS), nargs="*")
    parser.add_argument("--units", choices=list(SHARES), type=int, nargs="*")
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    logs = 6 if chosen.smoke else chosen.logs
    rows = []
    for name in chosen.only or POPULATIONS:
        for units in chosen.units or SHARES:
            for planned in (False, True):
                rows.append(run(name, units, logs, planned))
                print(json.dumps(rows[-1]), flush=True)
    if chosen.output is not None:
        chosen.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
