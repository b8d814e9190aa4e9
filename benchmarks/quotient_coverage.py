"""How often what is learned of quotients misses the truth: two stations that race for a channel.

    python benchmarks/quotient_coverage.py            1000 replications, minutes
    python benchmarks/quotient_coverage.py --smoke    few replications, seconds

δ = 0.05. The model of the tutorial, to two frames: north is first with probability north/(north+south), or
2·north/(2·north+south) if it hurries, as often as it may. Every replication simulates one log of rounds and
learns from it with each region. A miss is a true rate vector outside the region, a true probability outside
its bounds, or a true value of the learned policy outside the certified interval. As few rounds as here leave
the rates nearly open; only their quotients are learned, which is the case in point.

Chunks of replications are appended to a file of JSON lines, and those that are in it are not run again.
Leaves with status 1 where the 99.9 % lower confidence bound of a miss rate exceeds δ.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from tightrope.prism.load import load_prism_text
from tightrope.statistics.intervals import clopper_pearson

DELTA = 0.05
CHUNK = 100
ROUNDS = 60
TRUTH = {"north": 0.3, "south": 0.2}
REGIONS = {"polytope": "expression", "likelihood": "expression", "ellipsoid": "rectangular", "tied": "tied"}
"""The sets that go with each region; tied intervals have none."""

CHANNEL = """
mdp
const double north;
const double south;
module channel
  sent : [0..2] init 0;
  lost : [0..2] init 0;
  left : [0..1] init 1;
  [wait]  sent<2 & lost<2 -> north/(north+south) : (sent'=sent+1) + south/(north+south) : (lost'=lost+1);
  [hurry] sent<2 & lost<2 & left>0 ->
      2*north/(2*north+south) : (sent'=sent+1) & (left'=left-1)
    + south/(2*north+south) : (lost'=lost+1) & (left'=left-1);
  [rest]  sent=2 | lost=2 -> true;
endmodule
label "in_time" = sent=2;
"""


class Race:
    """The model, its truth, and the true values of policies as they are met."""

    def __init__(self) -> None:
        model = load_prism_text(CHANNEL, "channel.prism", box="north=0.05:1,south=0.05:1")
        assert isinstance(model, tr.ParametricMDP)
        self.model, self.problem = model, model.problem('Pmax=? [ F "in_time" ]')
        self.true = model.instantiate(TRUTH)
        self.simulator = tr.Simulator(self.true, model_hash=model.hash())
        self.values: dict[bytes, tuple[float, float]] = {}

    def misses(self, region: str, log: Any) -> bool:
        """Whether anything that is learned from the log excludes the truth."""
        named = None if region == "tied" else region
        result = tr.learn(self.problem, log, delta=DELTA, region=named, sets=REGIONS[region])
        if result.contradiction is not None:
            return True
        probability, sets = self.true.probability, result.sets
        inside = bool(((sets.lower <= probability) & (probability <= sets.upper)).all())
        if result.region is not None:
            inside &= result.region.contains(list(TRUTH.values()))
        low, high = self.value(result.policy)
        return not (inside and result.interval.lower <= high and low <= result.interval.upper)

    def value(self, policy: tr.Policy) -> tuple[float, float]:
        key = policy.probability.tobytes()
        if key not in self.values:
            there = tr.solve(self.problem.at(**TRUTH), policy=policy).at_initial_states
            self.values[key] = float(there.lower), float(there.upper)
        return self.values[key]


def run_chunk(race: Race, numbers: range) -> list[dict[str, Any]]:
    """Misses of every region, all from the same logs."""
    missed = dict.fromkeys(REGIONS, 0)
    for number in numbers:
        log = race.simulator.episodes(ROUNDS, seed=number)
        for region in REGIONS:
            missed[region] += race.misses(region, log)
    return [
        {"region": region, "first": numbers[0], "replications": len(numbers), "misses": misses}
        for region, misses in missed.items()
    ]


def summed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All chunks of a region together."""
    total = {region: {"region": region, "replications": 0, "misses": 0} for region in REGIONS}
    for row in rows:
        for name in ("replications", "misses"):
            total[row["region"]][name] += row[name]
    for row in total.values():
        counted = np.array([row["misses"]]), np.array([row["replications"]])
        row["miss_rate"] = row["misses"] / max(row["replications"], 1)
        row["ok"] = float(clopper_pearson(*counted, 0.002)[0][0]) <= DELTA
    return list(total.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="few replications")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/quotient_coverage.jsonl"))
    options = parser.parse_args()
    started, race = time.process_time(), Race()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    rows = [json.loads(line) for line in lines]
    there, size = {row["first"] for row in rows}, 3 if options.smoke else CHUNK
    for first in range(0, size if options.smoke else options.replications, size):
        if first not in there:
            found = run_chunk(race, range(first, first + size))
            rows += found
            with options.output.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in found)
    table = summed(rows)
    print(f"{'region':<12} {'missed':>8} {'of':>6}  claims δ = {DELTA}")
    for row in table:
        mark = "yes" if row["ok"] else "FAILED"
        print(f"{row['region']:<12} {row['miss_rate']:>8.4f} {row['replications']:>6}  {mark}")
    print(f"{time.process_time() - started:.0f} CPU seconds")
    return 0 if all(row["ok"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
