"""How often the value interval over a slab misses the true value, in every regime that it claims.

    python benchmarks/slab_coverage.py                       2000 replications per regime
    python benchmarks/slab_coverage.py --smoke               a few, in seconds
    python benchmarks/slab_coverage.py planned products      some by name

δ = 0.1. A replication draws fresh data from a small model, builds the slab and compares the interval of a
policy, coupled sets, with its true value. Regimes:

* planned: the data that were planned; early: half of them; past: twice as many;
* lucky: looked at after every third batch, and a miss anywhere counts (stopping when it suits is no worse);
* adaptive: the next episode's choice depends on what was seen, and chases the rarer outcome;
* products: a model with a product of parameters; rare: outcomes of probability 1/50, whose bets are cut down;
* robust: no policy is given, and the guarantee of the one that is found counts, one bettor;
* online: the same while data grow, nothing planned, bets of several sizes, looked at after every batch.

An interval can miss only where the true parameters are outside the region: where the guard's evidence or a
bettor's wealth speaks against them. How often they are is counted, too, and the interval is computed at
every look at which they are; in every fifth replication it is computed at the last look in any case, and must
not miss where they are inside.

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

from tightrope.coupled import coupled_policy, coupled_value
from tightrope.data.batches import Batches, batch_ends
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.learning.bet_policy import BetPolicy
from tightrope.learning.options import COUPLED_GAP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.prism.load import load_prism_text
from tightrope.problem import Problem
from tightrope.region.build import slab_region
from tightrope.solver.solve import solve
from tightrope.statistics.bets import Wagers
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Evidence, Predictions, prequential
from tightrope.statistics.slab import Levels, Slab, place_bets
from tightrope.uncertainty.sets import rectangular

DELTA = 0.1
EPISODES = 300
BLOCK = 100
EVERY = 5
FIRST_LOOK = 11
"""A batch: bets begin with the tenth."""

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
    """What is drawn: the model, its true point, how much of the plan comes, and when it is looked at.

    `every` is how many batches lie between looks, 0 where there is one look, at the end. `given` says that
    the interval of a given policy counts, otherwise the guarantee of the policy that is found does.
    """

    model: str
    truth: tuple[float, float]
    amount: float = 1.0
    adaptive: bool = False
    every: int = 0
    planned: bool = True
    given: bool = True


REGIMES = {
    "planned": Regime(PLAIN, (0.6, 0.3)),
    "early": Regime(PLAIN, (0.6, 0.3), amount=0.5),
    "past": Regime(PLAIN, (0.6, 0.3), amount=2.0),
    "lucky": Regime(PLAIN, (0.6, 0.3), every=3),
    "adaptive": Regime(PLAIN, (0.6, 0.3), adaptive=True),
    "products": Regime(TWO, (0.6, 0.3), adaptive=True),
    "rare": Regime(PLAIN, (0.02, 0.02)),
    "robust": Regime(PLAIN, (0.6, 0.3), given=False),
    "online": Regime(PLAIN, (0.6, 0.3), adaptive=True, every=1, planned=False, given=False),
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
    chance = model.instantiate([Fraction(str(value)) for value in regime.truth]).probability.tolist()
    choices, begins = structure.choice_start.tolist(), structure.transition_start.tolist()
    successor = structure.successor.tolist()
    won = [0] * structure.choices
    numbers = iter(draw.random(6 * total).tolist())
    found = []
    for _ in range(total):
        state, steps = structure.initial, []
        while choices[state + 1] - choices[state] == 2:
            first = choices[state]
            picked, chase, outcome = next(numbers), next(numbers), next(numbers)
            choice = first + (picked < 0.5)
            if regime.adaptive and chase < 0.8:
                choice = first + (won[first + 1] < won[first])
            transition = begins[choice] + (outcome >= chance[begins[choice]])
            won[choice] += transition == begins[choice]
            steps.append(transition)
            state = successor[transition]
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


class Setting:
    """What follows from a regime alone: computed once."""

    def __init__(self, regime: Regime):
        self.regime = regime
        self.model, self.problem = parts(regime.model)
        self.objective = self.problem.objective
        self.truth = self.model.instantiate([Fraction(str(value)) for value in regime.truth])
        best = solve(self.truth, self.objective, precision=1e-12)
        self.policy, self.value = best.policy, float(best.lower[self.model.initial])
        self.outcomes = Outcomes.of(self.model)
        self.coordinates = Coordinates.of(self.model.expressions, self.model.parameters)
        self.functions = self.coordinates.functions(self.model.expressions)
        self.maximiser = LikelihoodMaximiser.of(self.coordinates, self.functions)
        x = self.coordinates.lift(np.array([regime.truth]))[0]
        self.chance = self.functions.linear @ x + self.functions.constant
        self._gradient = BetPolicy(self.model, self.objective, self.policy)

    @property
    def gradient(self) -> BetPolicy:
        """A policy that is still to be found is looked for afresh in every replication."""
        return self._gradient if self.regime.given else BetPolicy(self.model, self.objective)

    def fits(self, evidence: Evidence) -> bool:
        """Whether the guard's evidence allows the true parameters."""
        used = evidence.weight > 0
        return float(evidence.weight[used] @ np.log(self.chance[used])) >= evidence.threshold

    def wealth(self, slab: Slab, batches: list[OffsetArray]) -> FloatArray:
        """By side, the log-wealth against the true parameters less its price, after each batch."""
        weight = np.log([scale.weight for scale in slab.every])
        found = np.full((2, len(batches)), -np.inf)
        for side in slab.sides:
            total = np.zeros(len(slab.every))
            for number in range(len(slab.plan.placed)):
                for batch in slab.plan.part(number):
                    for j, wagers in enumerate(slab.wagers[side]):
                        once = Wagers((wagers.bets[number],), (batches[batch],))
                        total[j] += once.log_wealth(self.outcomes, self.chance)
                    found[side, batch] = np.logaddexp.reduce(weight + total) - slab.price[side]
        return found

    def interval_misses(self, counts: Counts) -> bool:
        """Whether the interval over the slab of counts misses the true value, as `learn` computes it."""
        region = slab_region(self.model, counts, DELTA, self.gradient, outcomes=self.outcomes)
        assert region.ledger.holds
        if region.emptiness.is_empty:
            return True
        sets = rectangular(region, self.model)
        if self.regime.given:
            found = coupled_value(sets, self.objective, self.policy, gap=COUPLED_GAP)
            return not found.lower - 1e-9 <= self.value <= found.upper + 1e-9
        robust = coupled_policy(sets, self.objective, gap=COUPLED_GAP)
        attained = solve(self.truth, self.objective, policy=robust.policy, precision=1e-12)
        return robust.guarantee > float(attained.upper[self.model.initial]) + 1e-9


setting = cache(Setting)


def replicate(name: str, seed: int) -> tuple[bool, bool]:
    """Whether an interval misses, and whether the true parameters are outside the region, at any look."""
    now = setting(REGIMES[name])
    regime = now.regime
    total = int(regime.amount * EPISODES)
    found = episodes(regime, total, np.random.default_rng([seed, sorted(REGIMES).index(name)]))
    ends = batch_ends(total).tolist()
    counts = counts_of(regime, found)
    gradient = now.gradient
    levels = Levels.of(DELTA, gradient.ends, len(now.coordinates.free))
    slab = place_bets(now.outcomes, counts, now.maximiser, gradient, levels)
    against = now.wealth(slab, now.outcomes.pooled_batches(counts))
    last = len(ends) - 1
    known, missed, outside = Predictions(), False, False
    for look in [*(range(FIRST_LOOK, last, regime.every) if regime.every else ()), last]:
        seen = counts_of(regime, found[: ends[look]])
        evidence = prequential(now.coordinates, now.functions, now.outcomes, seen, levels.guard, known)
        left = not now.fits(evidence) or bool(np.any(against[:, look] >= 0.0))
        outside |= left
        if left or (look == last and seed % EVERY == 0):
            misses = now.interval_misses(seen)
            assert left or not misses, "an interval misses although the true parameters are in the region"
            missed |= misses
    return missed, outside


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage of slabs.")
    parser.add_argument("names", nargs="*", metavar="REGIME")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/slab_coverage.jsonl"))
    options = parser.parse_args()
    names = options.names or list(REGIMES)
    if options.smoke:
        wrong = {name: sum(replicate(name, seed)[0] for seed in range(3)) for name in names}
        print(json.dumps(wrong))
        return 1 if sum(wrong.values()) > 8 else 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    known = {(row["regime"], row["block"]): row for row in map(json.loads, lines)}
    for block in range(options.replications // BLOCK):
        for name in names:
            if (name, block) not in known:
                pairs = [replicate(name, block * BLOCK + i) for i in range(BLOCK)]
                missed, outside = (sum(column) for column in zip(*pairs, strict=True))
                row = {"regime": name, "block": block, "misses": missed, "outside": outside}
                known[name, block] = row
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    failed = False
    for name in names:
        rows = [row for (regime, _), row in known.items() if regime == name]
        total, missed = BLOCK * len(rows), sum(row["misses"] for row in rows)
        outside = sum(row["outside"] for row in rows)
        least = float(beta.ppf(0.001, missed, total - missed + 1)) if missed else 0.0
        failed |= least > DELTA
        rates = [count / max(total, 1) for count in (missed, outside)]
        print(
            f"{name:<10} {missed:>4} of {total:>5} intervals missed: {rates[0]:.4f} (δ = {DELTA:g}); "
            f"parameters outside: {rates[1]:.4f}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
