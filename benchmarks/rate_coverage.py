"""How often the intervals of rates, and the bounds on values behind them, contain the truth.

A farm of four machines fails and is repaired at unknown rates. Every replication watches it episode after
episode and looks after 1, 2, 5, 10 and 20 of them: a miss at any look is a miss, as the statement is about
all times at once. With δ = 0.05 at most one replication in twenty may miss.

Then a ring of six states whose nine distinct rates share two parameters: the same for the likelihood region
(a miss: the true parameters lie outside of it), and the widths of all rates beside those of intervals.

    python benchmarks/rate_coverage.py                 # 1,000 replications
    python benchmarks/rate_coverage.py --smoke         # 20
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

import tightrope as tr
from tightrope.data.exposure import TimedRows, read_exposure, simulate_times
from tightrope.model.continuous import ParametricCTMC
from tightrope.prism.load import load_prism_text
from tightrope.regions.rate_box import estimate_jointly, likelihood_of, region_of_rates, threshold
from tightrope.statistics.rates import RateClasses, estimate_rates, middles_of

FARM = """
ctmc
const int N = 4; const double lam; const double mu;
module farm
  up : [0..N] init N;
  [fail] up>0 -> lam*up : (up'=up-1);
  [repair] up<N -> mu : (up'=up+1);
endmodule
label "down" = up=0;
"""
TRUTH = {"lam": 0.3, "mu": 1.0}
ASKED = 'P=? [ F<=10 "down" ]'
RING = """
ctmc
const double a; const double b;
module ring
  s : [0..5];
  [] true -> a*(1+mod(s,3)) + b*(1+mod(2*s,5)) : (s'=mod(s+1,6)) + a + b*(s+1) : (s'=mod(s+2,6));
endmodule
"""
RING_TRUTH = {"a": 0.5, "b": 0.3}
LOOKS = (1, 2, 5, 10, 20)
TIME = 10.0


def table_of(rows: TimedRows, model: ParametricCTMC, episodes: int) -> pa.Table:
    return rows.table().filter(pa.array(rows.episode < episodes))


def measure(replications: int, delta: float, values: int) -> dict[str, object]:
    """The share of replications that miss; values are bounded at the last look, of the first ones."""
    model = load_prism_text(FARM, box="lam=0.01:10,mu=0.01:10")
    chain = model.instantiate(**TRUTH)
    exact = tr.solve(chain, ASKED).bounds
    assert exact is not None
    missed_rates = missed_values = 0
    widths = []
    for seed in range(replications):
        rows = simulate_times(chain, max(LOOKS), seed, TIME, 10**6)
        missed = False
        for episodes in LOOKS:
            seen = read_exposure(table_of(rows, model, episodes), model.structure)
            found = estimate_rates(model, seen.jumps, seen.waited, delta)
            for base, low, high in zip(found.classes.base, found.lower, found.upper, strict=True):
                true = float(base.evaluate(tuple(TRUTH.values())))
                missed |= not low <= true <= high
        missed_rates += missed
        if seed < values:
            result = tr.learn(tr.Problem(model, ASKED), table_of(rows, model, max(LOOKS)), delta=delta)
            assert result.value is not None
            missed_values += not (result.value.lower <= exact[1] and exact[0] <= result.value.upper)
            widths.append(result.value.upper - result.value.lower)
    return {
        "replications": replications,
        "delta": delta,
        "missed_rates": missed_rates / replications,
        "replications_of_values": values,
        "missed_values": missed_values / max(1, values),
        "mean_width": float(np.mean(widths)) if widths else None,
    }


def measure_jointly(replications: int, delta: float, bounded: int) -> dict[str, object]:
    """The share of replications that the likelihood region misses; widths at the last look, of the first."""
    model = load_prism_text(RING, box="a=0.01:10,b=0.01:10")
    chain = model.instantiate(**RING_TRUTH)
    truth = np.array([list(RING_TRUTH.values())])
    classes = RateClasses.of(model)
    middle = middles_of(model, classes)
    missed_region = missed_rates = 0
    widths: list[tuple[float, float]] = []
    jumps = []
    for seed in range(replications):
        rows = simulate_times(chain, max(LOOKS), seed, TIME, 10**6)
        missed = False
        for episodes in LOOKS:
            seen = read_exposure(table_of(rows, model, episodes), model.structure)
            likelihood, chosen = likelihood_of(model, classes, seen.jumps, seen.waited)
            level, _ = threshold(likelihood, middle[chosen], delta)
            missed |= bool(likelihood.at(truth)[0] < level)
        missed_region += missed
        jumps.append(int(seen.jumps.sum()))
        if seed < bounded:
            apart = estimate_rates(model, seen.jumps, seen.waited, delta)
            polytope = region_of_rates(apart, model.parameters)
            _, region = estimate_jointly(model, seen.jumps, seen.waited, delta)
            (low, high), (least, most) = (each.bounds(model.expressions) for each in (polytope, region))
            true = chain.exact.to_float()
            missed_rates += not ((least <= true) & (true <= most)).all()
            widths.append((float((high - low).mean()), float((most - least).mean())))
    apart_width, joint_width = (float(np.mean([pair[side] for pair in widths])) for side in (0, 1))
    return {
        "region": "likelihood",
        "replications": replications,
        "delta": delta,
        "rates": len(classes),
        "parameters": len(model.parameters),
        "mean_jumps": float(np.mean(jumps)),
        "missed_region": missed_region / replications,
        "replications_of_bounds": bounded,
        "missed_bounds": missed_rates / bounded,
        "mean_width_of_intervals": apart_width,
        "mean_width_of_likelihood": joint_width,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    joint = measure_jointly(20, 0.05, 3) if given.smoke else measure_jointly(1000, 0.05, 100)
    print(json.dumps(joint), flush=True)
    row = measure(20, 0.05, 5) if given.smoke else measure(1000, 0.05, 1000)
    print(json.dumps(row))
    if given.output is not None:
        given.output.write_text(f"{json.dumps(row)}\n{json.dumps(joint)}\n")


if __name__ == "__main__":
    main()
