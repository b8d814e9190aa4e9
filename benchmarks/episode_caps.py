"""How much the length at which episodes are cut off decides the width of an interval.

    python benchmarks/episode_caps.py [--smoke]

The paper does not state its cap. Expression-wise sets of Clopper-Pearson intervals (its method) and of
intervals that hold at any time, from 100,000 episodes of the uniform policy, seed 1, at δ = 0.001: the gap of
the optimal policy's value, by the cap. Episodes of the other families end by themselves.
"""

from __future__ import annotations

import argparse

import tightrope as tr
from tightrope.data.design import find_decided_states

CAPS = {"glider(21,17)": (50, 100, 200, 1000), "engagement(100)": (100, 1000, 10_000)}


def gaps(name: str, cap: int, episodes: int) -> list[float]:
    """The gap of the paper's method, and of what holds at any time."""
    bench = tr.benchmark(name)
    best = tr.solve(bench.at_truth)
    stop = find_decided_states(bench.problem.objective, bench.model.states)
    simulator = tr.Simulator(bench.at_truth.model, stop=stop, model_hash=bench.model.hash(), cap=cap)
    data = simulator.episodes(episodes, seed=1)
    common = {"sets": "expression", "region": "polytope", "policy": best.policy, "outcomes": "none"}
    ways = ({"interval": "clopper-pearson", "budget": "paper"}, {"interval": "beta-binomial"})
    return [
        tr.learn(bench.problem, data, delta=0.001, **common, **way).value.interval.width
        / float(best.lower[bench.model.initial])
        for way in ways
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one small instance, two caps")
    smoke = parser.parse_args().smoke
    for name, caps in {"glider(3,3)": (3, 30)}.items() if smoke else CAPS.items():
        for cap in caps:
            nominal, anytime = gaps(name, cap, 1000 if smoke else 100_000)
            print(f"{name:18}cap {cap:6,}  its method {nominal:.4f}  any time {anytime:.4f}", flush=True)


if __name__ == "__main__":
    main()
