"""How wide the likelihood region is along a policy's value, by the share of the plan that its pilot takes.

    python benchmarks/pilot_shares.py                          four instances, seeds 51 to 53
    python benchmarks/pilot_shares.py 'rover(10,10)' --seeds 61 65
    python benchmarks/pilot_shares.py --smoke                  one small instance, in seconds

10^5 uniform trajectories, δ = 0.001; the value is that of the policy that is optimal at the true point. A
share is fixed by the plan; *mixed* is the rule where nothing was planned: pilots of 0, 10, 20, … batches are
mixed. Printed are mean widths relative to the one among these that covers at most a tenth, and how many times
fewer episodes the same width takes, the square of the inverse.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import math
import sys
from dataclasses import replace

import numpy as np

from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingKind, find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.learning.bet_policy import PolicyBets
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.likelihood import LIKELIHOOD, cut_along, wants_value_cuts
from tightrope.regions.region import RegionTask
from tightrope.solver.solve import solve
from tightrope.statistics import prequential
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes

DELTA = 0.001
NAMES = ("betting(50)", "aircraft(50,10)", "glider(21,17)", "rover(10,10)")
SHARES = (0.05, 0.1, 0.2, 0.3)


def widths(name: str, seed: int, episodes: int) -> list[float]:
    """The region's width along the value for every share, for mixed pilots, and for one pilot in tens."""
    instance = parse_bench(f"bench:{name}")
    model = load(instance)
    objective = question(instance, model.structure).objective
    truth = model.instantiate(instance.truth)
    stop = find_decided_states(objective, model.states)
    counts = Simulator(truth, None, stop, instance.episode_cap, model.hash()).episodes(episodes, seed)
    gradient = PolicyBets(model, objective, solve(truth, objective).policy)
    design = replace(counts.design, kind=SamplingKind.ADAPTIVE)
    planned, open_ended = (
        replace(counts, design=design),
        replace(counts, design=replace(design, planned=None)),
    )
    usual, found = prequential.PILOT_SHARE, []
    for share, data in (*((share, planned) for share in SHARES), (usual, open_ended)):
        prequential.PILOT_SHARE = share
        found.append(width_along(gradient, data))
    prequential.PILOT_SHARE, mix = usual, prequential._mix
    prequential._mix = alone
    found.append(width_along(gradient, open_ended))
    prequential._mix = mix
    return found


def alone(
    first: int, usual: int, excess: FloatArray, visits: FloatArray, delta: float
) -> tuple[FloatArray, float]:
    """In the place of the mixture: the pilot that covers at most a tenth, and its price."""
    shares = np.zeros((first + len(visits) - 1) // prequential.PILOT_STEP + 1)
    shares[usual] = 1.0
    return shares, math.log((usual + 1.0) * (usual + 2.0))


def width_along(gradient: PolicyBets, counts: Counts) -> float:
    """Over the likelihood region, along the gradient at its estimate."""
    region = LIKELIHOOD.build(RegionTask(gradient.model, counts, DELTA))
    assert region.evidence is not None
    functions = gradient.functions
    direction = gradient(
        LikelihoodMaximiser.of(region.coordinates, functions).lifted(region.evidence.estimate), 1.0
    )
    assert direction is not None
    if wants_value_cuts(region):
        region = cut_along(region, Outcomes.of(gradient.model), np.array(direction))
    low, high = region.support(np.array(direction))
    return float(high[0] - low[0])


def main() -> int:
    parser = argparse.ArgumentParser(description="Widths by the share of the pilot.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--seeds", type=int, nargs=2, default=(51, 53), metavar=("FIRST", "LAST"))
    options = parser.parse_args()
    names = options.names or (["betting(8)"] if options.smoke else list(NAMES))
    first, last = (1, 1) if options.smoke else options.seeds
    episodes = 3000 if options.smoke else 100_000
    print(f"{'instance':<18}" + "".join(f"{share:>7.0%}" for share in SHARES) + "  mixed   episodes")
    for name in names:
        mean = np.mean([widths(name, seed, episodes) for seed in range(first, last + 1)], axis=0)
        of_tens = mean[:-1] / mean[-1]
        fewer = " ".join(f"{one**-2:.2f}" for one in of_tens)
        print(f"{name:<18}" + "".join(f"{one:>7.3f}" for one in of_tens) + f"   {fewer}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
