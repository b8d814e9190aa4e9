"""How often the value interval over a slab misses the true value, in every regime that it claims.

    python benchmarks/slab_coverage.py                       2000 replications per regime
    python benchmarks/slab_coverage.py --smoke               a few, in seconds
    python benchmarks/slab_coverage.py products online       some streams by name

δ = 0.1. A replication draws fresh data from a small model, builds the slab and compares the interval of a
policy, coupled sets, with its true value. Regimes:

* planned: the data that were planned; early: half of them; past: twice as many;
* lucky: looked at after every batch, and a miss anywhere counts (stopping when it suits is no worse);
* adaptive: the next episode's choice depends on what was seen, and chases the rarer outcome;
* products: a model with a product of parameters; rare: outcomes of probability 1/50, whose bets are cut down;
* robust: no policy is given, and the guarantee of the one that is found counts, one betting strategy;
* online: the same while data grow, nothing planned, bets of several sizes, looked at after every batch.

The first four are looks at the same stream of data, which costs a quarter of drawing each anew.

An interval can miss only where the true parameters are outside the region: where the base region or a betting
strategy excludes them. The script counts how often, and computes the interval at every such interim analysis;
in one of 25 replications it computes the last interval anyway, which must not miss where they are inside.

Rows are appended to bench-results/slab_coverage.jsonl as replications come, a line per stream and hundred;
those that are there already are not drawn again. A regime fails where even the 99.9 % lower confidence bound
of its miss rate exceeds δ; the misses themselves are printed beside it. Leaves with status 1 where one fails.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import beta

from tightrope.ambiguity.sets import rectangular
from tightrope.coupled.synthesis import find_coupled_policy
from tightrope.coupled.value import bound_coupled_value
from tightrope.data.counts import Batches, Counts, batch_ends
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.learning.options import COUPLED_GAP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.prism.load import load_prism_text
from tightrope.problem import Problem
from tightrope.regions.region import RegionTask
from tightrope.regions.slab import SLAB
from tightrope.solver.solve import solve
from tightrope.statistics.bets import Ends, Levels, Predictions, Slab, Wagers, place_bets
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential

DELTA = 0.1
PLAN = 293
"""Episodes; as all looks an end of a batch."""

BLOCK = 100
EVERY = 25
FIRST_LOOK = 11
"""A batch: bets begin with the tenth, and before that the guard says next to nothing."""

PLAIN = """mdp
const double p; const double q;
module walk
  s : [0..3];
  [a] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [b] s=0 -> q : (s'=1) + 1-q : (s'=2);
  [a] s=1 -> q : (s'=3) + 1-q : (s'=2);
  [b] s=1 -> 0.5*p : (s'=3) + 1-0.5*p : (s'=2);
  [] s>=2 -> true;
endmodule
label "goal" = s=3;
"""
PRODUCTS = PLAIN.replace("0.5*p", "0.5*q").replace("s=1 -> q : (s'=3) + 1-q", "s=1 -> p*q : (s'=3) + 1-p*q")


@dataclass(frozen=True)
class Stream:
    """What is drawn: the model, its true point, how many episodes, and in which regimes they are looked at.

    `looks` are the episodes after which a regime looks, None for all ends of batches up to the plan. `given`
    says that the interval of a given policy counts, otherwise the guarantee of the policy that is found does.
    """

    model: str
    truth: tuple[float, float]
    looks: tuple[tuple[str, int | None], ...]
    episodes: int = PLAN
    adaptive: bool = False
    planned: bool = True
    given: bool = True


EARLY, PAST = 151, 571
STREAMS = {
    "planned": Stream(
        PLAIN,
        (0.6, 0.3),
        (("planned", PLAN), ("early", EARLY), ("past", PAST), ("lucky", None)),
        episodes=PAST,
    ),
    "adaptive": Stream(PLAIN, (0.6, 0.3), (("adaptive", PLAN),), adaptive=True),
    "products": Stream(PRODUCTS, (0.6, 0.3), (("products", PLAN),), adaptive=True),
    "rare": Stream(PLAIN, (0.02, 0.02), (("rare", PLAN),)),
    "robust": Stream(PLAIN, (0.6, 0.3), (("robust", PLAN),), given=False),
    "online": Stream(PLAIN, (0.6, 0.3), (("online", None),), adaptive=True, planned=False, given=False),
}


@cache
def parts(text: str) -> tuple[ParametricMDP, Problem]:
    model = load_prism_text(text, domain="0.001<=p<=0.999, 0.001<=q<=0.999")
    assert isinstance(model, ParametricMDP)
    return model, Problem(model, 'Pmax=? [ F "goal" ]')


def episodes(stream: Stream, total: int, draw: np.random.Generator) -> list[list[int]]:
    """Episodes as lists of transitions; an adaptive explorer prefers the choice that has won less often."""
    model, _ = parts(stream.model)
    structure = model.structure
    chance = model.instantiate([Fraction(str(value)) for value in stream.truth]).probability.tolist()
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
            if stream.adaptive and chase < 0.8:
                choice = first + (won[first + 1] < won[first])
            transition = begins[choice] + (outcome >= chance[begins[choice]])
            won[choice] += transition == begins[choice]
            steps.append(transition)
            state = successor[transition]
        found.append(steps)
    return found


def counts_of(stream: Stream, found: list[list[int]]) -> Counts:
    model, _ = parts(stream.model)
    begin, batches = 0, []
    for end in batch_ends(len(found)).tolist():
        seen = np.array([t for steps in found[begin:end] for t in steps], dtype=np.int64)
        batches.append(np.unique(seen, return_counts=True))
        begin = end
    steps = sum(map(len, found))
    plan = PLAN if stream.planned else None
    design = SamplingDesign(
        SamplingKind.ADAPTIVE, len(found), steps, planned=plan, anytime=not stream.planned
    )
    return Counts.from_batches(
        Batches.from_parts(batches), model.structure.transition_start, design, model.hash()
    )


class DenseGradient:
    """∂V/∂x of the given policy, or of the best one at x, by dense algebra: four policies on four states.

    The same as `tightrope.learning.bet_policy` finds up to rounding, in a tenth of the time.
    """

    words = "dense"

    def __init__(self, setting: Setting):
        self.functions, model = setting.functions, setting.model
        structure = model.structure
        self.ends = Ends.BOTH if setting.stream.given else Ends.LOWER
        self.guard_share = None
        goal = np.isin(np.arange(structure.states), np.flatnonzero(setting.objective.target))
        begins, self.options = structure.choice_start, []
        policies = product(*(range(begins[s], begins[s + 1]) for s in range(structure.states)))
        fixed = setting.policy.choice
        for policy in [tuple(fixed.tolist())] if setting.stream.given else policies:
            rows = [
                (state, int(model.expression[t]), int(structure.successor[t]))
                for state, choice in enumerate(policy)
                if begins[state + 1] - begins[state] > 1
                for t in range(structure.transition_start[choice], structure.transition_start[choice + 1])
            ]
            self.options.append(np.array(rows).T)
        self.goal, self.initial = goal.astype(np.float64), structure.initial

    def __call__(self, x: FloatArray, share: float | None, nearby: object = None) -> list[FloatArray] | None:
        chance = self.functions.linear @ x + self.functions.constant
        best = None
        for state, expression, successor in self.options:
            matrix = np.eye(len(self.goal))
            np.subtract.at(matrix, (state, successor), chance[expression])
            value = np.linalg.solve(matrix, self.goal)
            if best is None or value[self.initial] > best[0]:
                visits = np.linalg.solve(matrix.T, np.eye(len(self.goal))[self.initial])
                slopes = np.bincount(expression, visits[state] * value[successor], len(chance))
                best = value[self.initial], slopes @ self.functions.linear
        assert best is not None
        return [best[1]]


class Setting:
    """What follows from a stream alone: computed once."""

    def __init__(self, stream: Stream):
        self.stream = stream
        self.model, self.problem = parts(stream.model)
        self.objective = self.problem.objective
        self.truth = self.model.instantiate([Fraction(str(value)) for value in stream.truth])
        best = solve(self.truth, self.objective, precision=1e-12)
        self.policy, self.value = best.policy, float(best.lower[self.model.initial])
        self.outcomes = Outcomes.of(self.model)
        self.coordinates = Coordinates.of(self.model.expressions, self.model.parameters)
        self.functions = self.coordinates.functions(self.model.expressions)
        self.maximiser = LikelihoodMaximiser.of(self.coordinates, self.functions)
        x = self.coordinates.lift(np.array([stream.truth]))[0]
        self.chance = self.functions.linear @ x + self.functions.constant
        self.gradient = DenseGradient(self)

    def guarded(self, counts: Counts, level: float) -> list[bool]:
        """After each batch, whether the guard's evidence allows the true parameters."""
        assert counts.batches is not None
        known = Predictions()
        last = prequential(self.outcomes, counts, level, known)
        with np.errstate(divide="ignore"):
            logarithm = np.where(self.chance < 1.0, np.log(self.chance), 0.0)
        batches = known.pooled_batches(self.outcomes, counts)
        true = np.array([self.outcomes.by_expression(seen) @ logarithm for seen in batches])
        if self.stream.planned:  # the pilot is the same at all looks
            spent = math.log(1.0 / level)
            score = np.array([known.scores.get(b, 0.0) for b in range(last.batches)])
            ahead = np.cumsum(np.where(np.arange(last.batches) >= last.pilot, true - score, 0.0))
            at_end = true[last.pilot :].sum() >= last.threshold
            return [*(ahead[:-1] >= -spent).tolist(), bool(at_end)]
        found = [True] * FIRST_LOOK
        for look in range(FIRST_LOOK + 1, last.batches + 1):
            parts = [*counts.batches][:look]
            seen = Counts.from_batches(
                Batches.from_parts(parts), counts.transition_start, counts.design, counts.model_hash
            )
            now = prequential(self.outcomes, seen, level, known)
            found.append(bool(true[now.pilot : look].sum() >= now.threshold))
        return found

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
        region = SLAB.build(RegionTask(self.model, counts, DELTA, gradient=self.gradient))
        assert region.ledger.holds
        if region.emptiness.is_empty:
            return True
        sets = rectangular(region, self.model)
        if self.stream.given:
            found = bound_coupled_value(sets, self.objective, self.policy, gap=COUPLED_GAP)
            return not found.lower - 1e-9 <= self.value <= found.upper + 1e-9
        robust = find_coupled_policy(sets, self.objective, gap=COUPLED_GAP)
        attained = solve(self.truth, self.objective, policy=robust.policy, precision=1e-12)
        return robust.guarantee > float(attained.upper[self.model.initial]) + 1e-9


setting = cache(Setting)


def replicate(name: str, seed: int) -> dict[str, tuple[bool, bool]]:
    """By regime, whether an interval misses and whether the true parameters are outside the region, at any of
    its looks.
    """
    now = setting(STREAMS[name])
    stream = now.stream
    found = episodes(stream, stream.episodes, np.random.default_rng([seed, sorted(STREAMS).index(name)]))
    ends = batch_ends(stream.episodes).tolist()
    counts = counts_of(stream, found)
    gradient = now.gradient
    levels = Levels.of(DELTA, gradient.ends, len(now.coordinates.free))
    slab = place_bets(now.outcomes, counts, gradient, levels)
    against = now.wealth(slab, now.outcomes.pooled_batches(counts))
    outside = ~np.array(now.guarded(counts, levels.guard)) | np.any(against >= 0.0, axis=0)
    known: dict[int, bool] = {}
    results = {}
    for regime, at in stream.looks:
        looks = [ends.index(at)] if at is not None else range(FIRST_LOOK, ends.index(PLAN) + 1)
        for look in looks:
            if look not in known and (outside[look] or (look == looks[-1] and seed % EVERY == 0)):
                known[look] = now.interval_misses(counts_of(stream, found[: ends[look]]))
                assert outside[look] or not known[look], "a miss with the true parameters in the region"
        results[regime] = (any(known.get(look, False) for look in looks), bool(np.any(outside[looks])))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage of slabs.")
    parser.add_argument("names", nargs="*", metavar="STREAM")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/slab_coverage.jsonl"))
    options = parser.parse_args()
    names = options.names or list(STREAMS)
    if options.smoke:
        tried = [(name, replicate(name, seed)) for name in names for seed in range(3)]
        wrong = {name: sum(found[name][0] for one, found in tried if one == name) for name in names}
        print(json.dumps(wrong))
        return 1 if sum(wrong.values()) > 8 else 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.exists() else []
    known = {(row["stream"], row["block"]): row for row in map(json.loads, lines)}
    for block in range(options.replications // BLOCK):
        for name in names:
            if (name, block) not in known:
                found = [replicate(name, block * BLOCK + i) for i in range(BLOCK)]
                row = {"stream": name, "block": block}
                for regime in found[0]:
                    row[regime] = [sum(one[regime][k] for one in found) for k in range(2)]
                known[name, block] = row
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    failed = False
    for regime in (regime for name in names for regime, _ in STREAMS[name].looks):
        rows = [row[regime] for row in known.values() if regime in row]
        total, (missed, outside) = BLOCK * len(rows), (sum(column) for column in zip(*rows, strict=True))
        least = float(beta.ppf(0.001, missed, total - missed + 1)) if missed else 0.0
        failed |= least > DELTA
        print(
            f"{regime:<10} {missed:>4} of {total:>5} intervals missed: {missed / total:.4f} (δ = {DELTA:g}); "
            f"parameters outside: {outside / total:.4f}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
