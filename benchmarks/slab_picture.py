"""The picture of `docs/statistics.md`: slab, guard, likelihood region and ∇V in the plane of two parameters.

    python benchmarks/slab_picture.py                        writes docs/images/slab.png
    python benchmarks/slab_picture.py -o FILE --episodes N   elsewhere, from other data

The model is betting(20), whose win probability grows with p and with q times the money at stake. δ = 0.001;
the policy is the one that is optimal at the true point.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull

from tightrope.coupled.gradient import ValueGradient
from tightrope.data.simulator import Simulator
from tightrope.data.stopping import decided_states
from tightrope.learning.bet_policy import BetPolicy
from tightrope.region.build import likelihood_region, slab_region
from tightrope.solver.solve import solve
from tightrope.statistics.slab import Levels
from tightrope.studies.suite import load, parse_bench, question

DELTA = 0.001


def main() -> int:
    parser = argparse.ArgumentParser(description="Picture of a slab.")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images/slab.png"))
    parser.add_argument("--instance", default="betting(20)")
    parser.add_argument("--episodes", type=int, default=3000)
    options = parser.parse_args()
    instance = parse_bench(f"bench:{options.instance}")
    model = load(instance)
    objective = question(instance, model.structure).objective
    truth = model.instantiate(instance.truth)
    policy = solve(truth, objective).policy
    stop = decided_states(objective, model.states)
    counts = Simulator(truth, None, stop, instance.episode_cap, model.hash()).episodes(options.episodes, 1)
    plain = likelihood_region(model, counts, DELTA)
    guard = likelihood_region(model, counts, Levels.of(DELTA).guard)
    slab = slab_region(model, counts, DELTA, BetPolicy(model, objective, policy))
    value = ValueGradient.of(model, objective, policy, slab.coordinates.functions(model.expressions))
    centre = slab.coordinates.lift(np.array([[float(v) for v in instance.truth]]))[0]
    along = None if value is None else value.at(centre)
    figure, axes = plt.subplots(figsize=(6.4, 4.2), dpi=150)
    shown = (
        (guard, "#8a93a0", "guard, δ/10"),
        (plain, "#0b63b0", "likelihood region, δ"),
        (slab, "#b3003c", "slab"),
    )
    for region, colour, label in shown:
        points = region.vertices
        assert points is not None and points.shape[1] == 2, "a picture needs two parameters"
        order = ConvexHull(points).vertices
        axes.fill(*points[order].T, facecolor=colour, alpha=0.18)
        axes.plot(*points[np.append(order, order[0])].T, color=colour, label=label)
    low, high = guard.bounding_box
    if along is not None:
        page = along * (high - low)  # the gradient as it looks on a page scaled to the guard
        tip = centre + 0.2 * (high - low) * page / np.linalg.norm(page)
        axes.annotate("", tip, centre, arrowprops={"arrowstyle": "->"})
        axes.text(*tip, " ∇V", va="center")
    axes.plot(*centre, marker="o", color="black", linestyle="none", label="true parameters")
    names = model.parameters.names
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    figure.tight_layout()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
