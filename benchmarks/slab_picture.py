"""The picture of `docs/statistics.md`: slab, guard, likelihood region and ∇V in the plane of two parameters.

    python benchmarks/slab_picture.py                        writes docs/images/slab.png
    python benchmarks/slab_picture.py -o FILE --episodes N   elsewhere, from other data

The model has two unknown coins, both of which must show heads: V = p·q, and its gradient lies across both
axes. δ = 0.001.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull

from tightrope.data.simulator import Simulator
from tightrope.learning.bet_policy import PolicyBets
from tightrope.model.builder import build_from_rows
from tightrope.model.parameters import Parameters
from tightrope.problem import Problem
from tightrope.regions.likelihood import LIKELIHOOD
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import RegionOptions, RegionTask
from tightrope.regions.slab import SLAB
from tightrope.solver.solve import solve
from tightrope.statistics.bets import Levels

DELTA = 0.001
TRUTH = (Fraction(3, 5), Fraction(7, 10))


def regions(episodes: int) -> tuple[Polytope, Polytope, Polytope, np.ndarray]:
    """Guard, likelihood region and slab, and the gradient at the true point."""
    parameters = Parameters.box(p=(0, 1), q=(0, 1))
    p, q = parameters.symbols()
    rows = [
        (0, "first", {1: p, 3: 1 - p}),
        (1, "second", {2: q, 3: 1 - q}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = build_from_rows(rows, parameters, labels={"heads": [2]})
    objective = Problem(model, 'Pmax=? [ F "heads" ]').objective
    truth = model.instantiate(TRUTH)
    stop = np.array([False, False, True, True])
    counts = Simulator(truth, None, stop, 10, model.hash()).episodes(episodes, 4)
    gradient = PolicyBets(model, objective, solve(truth, objective).policy)
    guard = LIKELIHOOD.build(RegionTask(model, counts, Levels.of(DELTA).guard, RegionOptions(excess=0.002)))
    plain = LIKELIHOOD.build(RegionTask(model, counts, DELTA, RegionOptions(excess=0.002)))
    slab = SLAB.build(RegionTask(model, counts, DELTA, RegionOptions(excess=0.002), gradient=gradient))
    along = gradient(np.array([float(value) for value in TRUTH]), 1.0)
    assert along is not None
    return guard, plain, slab, along[0]


def main() -> int:
    parser = argparse.ArgumentParser(description="Picture of a slab.")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images/slab.png"))
    parser.add_argument("--episodes", type=int, default=3000)
    options = parser.parse_args()
    guard, plain, slab, along = regions(options.episodes)
    figure, axes = plt.subplots(figsize=(6.4, 5.4), dpi=150)
    shown = (
        (guard, "#8a93a0", "guard, δ/10"),
        (plain, "#0b63b0", "likelihood region, δ"),
        (slab, "#b3003c", "slab, δ"),
    )
    for region, colour, label in shown:
        points = region.vertices
        assert points is not None
        order = ConvexHull(points).vertices
        axes.fill(*points[order].T, facecolor=colour, alpha=0.15)
        axes.plot(*points[np.append(order, order[0])].T, color=colour, label=label)
    centre = np.array([float(value) for value in TRUTH])
    low, high = guard.bounding_box
    tip = centre + 0.22 * float((high - low).min()) * along / np.linalg.norm(along)
    axes.annotate("", tip, centre, arrowprops={"arrowstyle": "->", "shrinkA": 0})
    axes.text(*tip, "∇V", va="bottom", ha="left")
    axes.plot(*centre, marker="o", color="black", linestyle="none", label="true parameters")
    axes.set_aspect("equal")
    axes.set_xlabel("p")
    axes.set_ylabel("q")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
