"""How often the value interval over a slab misses the true value, in every regime that it claims.

    python benchmarks/slab_coverage.py                       2000 replications per regime
    python benchmarks/slab_coverage.py --smoke               a few, in seconds
    python benchmarks/slab_coverage.py planned products      some by name
    python benchmarks/slab_coverage.py --regions             whether the truth leaves the region: faster

δ = 0.1. A replication draws fresh data from a small model, learns over the slab and compares the interval of
a given policy with its true value. Regimes:

* planned: the data that were planned; early: half of them; past: twice as many;
* lucky: looked at after every third batch, and a miss anywhere counts (stopping when it suits is no worse);
* adaptive: the next episode's choice depends on what was seen, and chases the rarer outcome;
* products: a model with a product of parameters; rare: outcomes of probability 1/50, whose bets are cut down;
* online: nothing planned, bets of several sizes, looked at as in lucky.

An interval can miss only where the region misses the true parameters. `--regions` counts that: the guard's
evidence and the bettors' wealth at the truth, at the end or (lucky, online) after every batch.

Rows are appended to bench-results/slab_coverage.jsonl as replications come, a line per regime and hundred;
those that are there already are not drawn again. A regime fails where even the 99.9 % lower confidence bound
of its miss rate exceeds δ; the misses themselves are printed beside it. Leaves with status 1 where one fails.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import beta

from tightrope.data.batches import Batches, batch_ends
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.learning.bet_policy import BetPolicy
from tightrope.learning.learn import learn
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism_text
from tightrope.problem import Problem
from tightrope.solver.solve import solve
from tightrope.statistics.bets import Wagers
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Predictions, prequential
from tightrope.statistics.slab import Levels, place_bets

DELTA = 0.1
EPISODES = 300
BLOCK = 100

TWO = """mdp
const double p; const double q;
module walk
  s : [0..3];
  [a] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [b] s=0 -> q : (s'=1) + 1-q : (s'=2);
  [a] s=1 -> q : (s'=3) + 1-q : (s'=2);
  [b] s=1 -> p*q : (s'=3) + 1-p*q : (s'=2);
  [] s>=2 -> true;
endmodule
label "goal" = s=3;
"""
PLAIN = TWO.replace("p*q", "0.5*p")


@dataclass(frozen=True)
class Regime:
    """What is drawn: the model, its true point, how much of the plan comes, and when it is looked at."""

    model: str
    truth: tuple[float, float]
    amount: float = 1.0
    adaptive: bool = False
    looks: bool = False
    planned: bool = True


REGIMES = {
    "planned": Regime(PLAIN, (0.6, 0.3)),
    "early": Regime(PLAIN, (0.6, 0.3), amount=0.5),
    "past": Regime(PLAIN, (0.6, 0.3), amount=2.0),
    "lucky": Regime(PLAIN, (0.6, 0.3), looks=True),
    "adaptive": Regime(PLAIN, (0.6, 0.3), adaptive=True),
    "products": Regime(TWO, (0.6, 0.3), adaptive=True),
    "rare": Regime(PLAIN, (0.02, 0.02)),
    "online": Regime(PLAIN, (0.6, 0.3), adaptive=True, looks=True, planned=False),
}


@cache
def parts(text: str) -> tuple[ParametricMDP, Problem]:
    model = load_prism_text(text, domain="0.001<=p<=0.999, 0.001<=q<=0.999")
    assert isinstance(model, ParametricMDP)
    return model, Problem(model, 'Pmax=? [ F "goal" ]')


def episodes(regime: Regime, total: int, draw: np.random.Generator) -> list[list[int]]:
    """Episodes as lists of transitions; an adaptive explorer prefers the choice that has won less often."""
    model, _ = parts(regime.model)
    structure = model.structure
    chance = model.instantiate([Fraction(str(value)) for value in regime.truth]).probability
    won = np.zeros(structure.choices)
    found = []
    for _ in range(total):
        state, steps = structure.initial, []
        while True:
            first, last = structure.choice_start[state : state + 2].tolist()
            if last - first < 2:
                break
            choice = int(draw.integers(first, last))
            if regime.adaptive and draw.random() < 0.8:
                choice = first + int(np.argmin(won[first:last]))
            begin, end = structure.transition_start[choice : choice + 2].tolist()
            transition = begin + int(draw.choice(end - begin, p=chance[begin:end]))
            won[choice] += transition == begin
            steps.append(transition)
            state = int(structure.successor[transition])
        found.append(steps)
    return found


def counts_of(regime: Regime, found: list[list[int]]) -> Counts:
    model, _ = parts(regime.model)
    begin, batches = 0, []
    for end in batch_ends(len(found)).tolist():
        seen = np.array([t for steps in found[begin:end] for t in steps], dtype=np.int64)
        batches.append(np.unique(seen, return_counts=True))
        begin = end
    steps = sum(map(len, found))
    plan = EPISODES if regime.planned else None
    design = SamplingDesign(SamplingKind.ADAPTIVE, len(found), steps, planned=plan)
    return Counts.from_batches(
        Batches.from_parts(batches), model.structure.transition_start, design, model.hash()
    )


@cache
def truth_of(regime: Regime) -> tuple[object, float]:
    """The policy that is evaluated, fixed without data, and its true value."""
    model, problem = parts(regime.model)
    truth = model.instantiate([Fraction(str(value)) for value in regime.truth])
    best = solve(truth, problem.objective, precision=1e-12)
    return best.policy, float(best.lower[model.initial])


def misses(name: str, seed: int) -> bool:
    """Whether an interval of replication `seed` misses the true value at any look."""
    regime = REGIMES[name]
    _, problem = parts(regime.model)
    policy, value = truth_of(regime)
    total = int(regime.amount * EPISODES)
    found = episodes(regime, total, np.random.default_rng([seed, sorted(REGIMES).index(name)]))
    looks = batch_ends(total)[11::3].tolist() if regime.looks else [total]
    for look in dict.fromkeys([*looks, total]):
        counts = counts_of(regime, found[:look])
        result = learn(problem, counts, delta=DELTA, region="slab", sets="coupled", policy=policy)
        assert result.ledger.holds and result.value is not None
        interval = result.value.interval
        if not interval.lower - 1e-9 <= value <= interval.upper + 1e-9:
            return True
    return False


def region_misses(name: str, seed: int) -> bool:
    """Whether the true parameters leave the slab or its guard at any look of replication `seed`."""
    regime = REGIMES[name]
    model, problem = parts(regime.model)
    policy, _ = truth_of(regime)
    total = int(regime.amount * EPISODES)
    found = episodes(regime, total, np.random.default_rng([seed, sorted(REGIMES).index(name)]))
    counts = counts_of(regime, found)
    outcomes, levels = Outcomes.of(model), Levels.of(DELTA)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    maximiser = LikelihoodMaximiser.of(coordinates, functions)
    x = coordinates.lift(np.array([regime.truth]))[0]
    chance = functions.linear @ x + functions.constant
    slab = place_bets(outcomes, counts, maximiser, BetPolicy(model, problem.objective, policy), levels)
    ends = batch_ends(total)
    known = Predictions()
    for look in range(11, len(ends) + 1) if regime.looks else [len(ends)]:
        now = counts_of(regime, found[: int(ends[look - 1])])
        evidence = prequential(coordinates, functions, outcomes, now, levels.guard, known)
        used = evidence.weight > 0
        if float(evidence.weight[used] @ np.log(chance[used])) < evidence.threshold:
            return True
    weight = np.log([scale.weight for scale in slab.every])
    batches = outcomes.pooled_batches(counts)
    for side, price in zip(slab.wagers, slab.price, strict=True):
        wealth = np.zeros(len(slab.every))
        for number in range(len(slab.plan.placed)):
            for batch in slab.plan.part(number):
                for j, wagers in enumerate(side):
                    once = Wagers((wagers.bets[number],), (batches[batch],))
                    wealth[j] += once.log_wealth(outcomes, chance)
                last = batch == len(batches) - 1
                if (regime.looks or last) and np.logaddexp.reduce(weight + wealth) >= price:
                    return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage of slabs.")
    parser.add_argument("names", nargs="*", metavar="REGIME")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--regions", action="store_true")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/slab_coverage.jsonl"))
    options = parser.parse_args()
    names = options.names or list(REGIMES)
    tried = region_misses if options.regions else misses
    what = "region" if options.regions else "interval"
    if options.smoke:
        wrong = {name: sum(tried(name, seed) for seed in range(3)) for name in names}
        print(json.dumps(wrong))
        return 1 if sum(wrong.values()) > 8 else 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    rows = [row for row in map(json.loads, lines) if row["what"] == what]
    known = {(row["regime"], row["block"]): row["misses"] for row in rows}
    for block in range(options.replications // BLOCK):
        for name in names:
            if (name, block) not in known:
                wrong_here = sum(tried(name, block * BLOCK + i) for i in range(BLOCK))
                known[name, block] = wrong_here
                with options.output.open("a", encoding="utf-8") as file:
                    row = {"what": what, "regime": name, "block": block, "misses": wrong_here}
                    file.write(json.dumps(row) + "\n")
    failed = False
    for name in names:
        found = [count for (regime, _), count in known.items() if regime == name]
        total, missed = BLOCK * len(found), sum(found)
        least = float(beta.ppf(0.001, missed, total - missed + 1)) if missed else 0.0
        failed |= least > DELTA
        print(f"{name:<10} {missed:>4} of {total:>5} missed: {missed / max(total, 1):.4f} (δ = {DELTA:g})")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
