"""How wide the answer about a chain is, beside the model's part and the outcomes' alone, each with all of δ.

    python benchmarks/outcome_widths.py                    40 systems at δ = 0.001 and 0.05, and tennis sets
    python benchmarks/outcome_widths.py --systems 4        fewer (--first 40: others)
    python benchmarks/outcome_widths.py --coverage 2000    how often intervals miss, instead
    python benchmarks/outcome_widths.py --smoke            a few of each, seconds

Random chains without choices, every second one with one to three parameters that many states share, the
others saturated: every distribution is free. Logs are simulated at a random point; a probability of reaching,
of reaching in time, or a reward of the first steps is asked for. *Tennis*: 388 sets of about 22,000 points
with one parameter for the server's and one for the receiver's points; how wide is the probability of winning
a set. *Coverage*: at δ = 0.1 a small chain whose model is right, and one whose states the model ties wrongly;
a miss is a true value outside of what is claimed. Under the wrong model the outcomes must hold all the same;
how often the contradiction is found is printed beside it.

Prints a line per system and the means. Leaves with status 1 where a ratio to the better of both parts is
above 1.06 (1.10 at 0.05), or a miss rate is above δ beyond doubt.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import tightrope as tr
from tightrope.learning.outcomes import ObservedOutcomes, observe
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.intervals import clopper_pearson
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser

LIMITS = {0.001: 1.06, 0.05: 1.10}
COVERAGE_DELTA = 0.1


@dataclass(frozen=True)
class System:
    """A model, a question, the truth and how much is seen of it."""

    name: str
    problem: tr.Problem
    counts: tr.Counts


def system(seed: int) -> System:
    """Number `seed` of the random chains."""
    random = np.random.default_rng(seed)
    states, saturated = int(random.integers(5, 11)), bool(seed % 2)
    goal, lost = states - 2, states - 1
    width = 2 if saturated else int(random.integers(1, 4))
    names = [f"p{i}" for i in range(width)]
    parameters = None if saturated else tr.Parameters.box(**dict.fromkeys(names, ("0.1", "0.9")))
    symbols = () if parameters is None else parameters.symbols()
    rows: list[tuple[int, str, dict[int, object]]] = []
    for s in range(states - 2):
        ahead, back = min(s + 1, goal), int(random.integers(0, s + 1))
        if saturated:
            others = {ahead, back, lost} if random.random() < 0.6 else {ahead, lost}
            rows.append((s, "", dict.fromkeys(sorted(others), tr.free)))
        else:
            p = symbols[int(random.integers(width))]
            other = lost if random.random() < 0.5 or back == ahead else back
            rows.append((s, "", {ahead: p, other: 1 - p}))
    rows += [(goal, "", {goal: 1}), (lost, "", {lost: 1})]
    rewards = {"steps": [1.0] * (states - 2) + [0.0, 0.0]}
    labels = {"goal": [goal], "end": [goal, lost]}
    model = tr.build_from_rows(rows, parameters, labels=labels, state_rewards=rewards)
    kind = int(random.integers(4))
    text = [
        'P=? [ F "goal" ]',
        'P=? [ F "goal" ]',
        f'P=? [ F<={2 * states} "goal" ]',
        'R{"steps"}=? [ C<=10 ]',
    ]
    problem = tr.Problem(model, text[kind])
    truth = model.instantiate(point_of(model, random))
    episodes = int(random.integers(100, 1500))
    counts = tr.Simulator(truth, model_hash=model.hash(), threads=1).episodes(episodes, seed=seed)
    kinds = "free" if saturated else f"{width} parameters"
    return System(f"{kinds}, {states} states, {episodes} episodes, {text[kind]}", problem, counts)


def point_of(model: tr.ParametricMDP, random: np.random.Generator) -> dict[str, Fraction]:
    """A point of the domain that is not near its faces."""
    coordinates = Coordinates.of(model.expressions, model.parameters)
    search = LikelihoodMaximiser.of(coordinates, coordinates.functions(model.expressions))
    middle, (faces, bounds) = search.start, search.faces
    way = random.standard_normal(len(middle))
    rise = faces @ way
    reach = float(np.min(((bounds - faces @ middle) / rise)[rise > 0]))
    free = middle + 0.6 * random.random() * reach * way
    exact = [round(float(x) * 4096) / 4096 for x in free]
    at = [polynomial.evaluate(list(map(Fraction, exact))) for polynomial in coordinates.substitution]
    return dict(zip(model.parameters.names, at, strict=True))


def compare(one: System, delta: float) -> tuple[float, float, float, float]:
    """(model, outcomes, both, the share of δ for outcomes)."""
    alone = tr.learn(one.problem, one.counts, delta=delta, outcomes="none").interval.width
    seen = observe(one.problem, one.counts, delta)
    assert isinstance(seen, ObservedOutcomes), seen
    both = tr.learn(one.problem, one.counts, delta=delta)
    return alone, seen.interval.width, both.interval.width, both.ledger.of_outcomes / delta


def widths(systems: int, first: int = 0) -> bool:
    """Compare random systems; whether all of them keep to the limits."""
    fine = True
    for delta, limit in LIMITS.items():
        ratios = []
        for seed in range(first, first + systems):
            begin = time.perf_counter()
            one = system(seed)
            model, outcomes, both, share = compare(one, delta)
            ratios.append(both / max(min(model, outcomes), 1e-12))
            print(
                f"{delta:<6g} {one.name:58s} model {model:.4f}, outcomes {outcomes:.4f}, both {both:.4f}: "
                f"{ratios[-1]:.3f} (share {share:.1f}, {time.perf_counter() - begin:.1f} s)",
                flush=True,
            )
        mean, most = float(np.mean(ratios)), max(ratios)
        over = sum(ratio > limit for ratio in ratios)
        fine &= not over
        print(f"δ = {delta:g}: mean {mean:.3f}, largest {most:.3f}, {over} of {systems} above {limit}")
    return fine


def tennis() -> tr.ParametricMDP:
    """A set: games by points, server and receiver in turn, a tie-break as one more game at 6:6."""
    parameters = tr.Parameters.box(serve=("0.4", "0.8"), take=("0.2", "0.6"))
    serve, take = parameters.symbols()
    number: dict[tuple[int, ...], int] = {}
    rows: list[tuple[int, str, dict[int, object]]] = []

    def name(state: tuple[int, ...]) -> int:
        return number.setdefault(state, len(number))

    won, lost = (1, 0), (0, 1)
    name((0, 0, 0, 0))
    queue = [(0, 0, 0, 0)]
    done = set(queue)
    while queue:
        games, others, points, against = queue.pop(0)
        p = serve if (games + others) % 2 == 0 else take
        following = {}
        for mine in (True, False):
            a, b = points + mine, against + (not mine)
            state: tuple[int, ...]
            if max(a, b) >= 4 and abs(a - b) >= 2:
                g, h = games + (a > b), others + (b > a)
                over = (max(g, h) == 6 and abs(g - h) >= 2) or max(g, h) == 7
                state = (won if g > h else lost) if over else (g, h, 0, 0)
            else:
                a, b = (3, 3) if a == b == 4 else (a, b)
                state = (games, others, a, b)
            following[name(state)] = p if mine else 1 - p
            if len(state) == 4 and state not in done:
                done.add(state)
                queue.append(state)
        rows.append((number[games, others, points, against], "", following))
    rows += [(number[won], "", {number[won]: 1}), (number[lost], "", {number[lost]: 1})]
    labels = {"won": [number[won]]}
    return tr.build_from_rows(rows, parameters, labels=labels)


def sets_of_tennis() -> None:
    """388 sets at δ = 0.001 and 0.05."""
    model = tennis()
    truth = model.instantiate(serve=0.62, take=0.4)
    counts = tr.Simulator(truth, model_hash=model.hash(), threads=1).episodes(388, seed=1)
    problem = tr.Problem(model, 'P=? [ F "won" ]')
    value = float(tr.solve(tr.Problem(truth, problem.text)).lower[model.initial])
    for delta in LIMITS:
        for kind in ("rectangular", "coupled"):
            alone = tr.learn(problem, counts, delta=delta, outcomes="none", sets=kind).interval.width
            seen = observe(problem, counts, delta)
            both = tr.learn(problem, counts, delta=delta, sets=kind)
            print(
                f"tennis, {counts.steps:,} points, {kind}, δ = {delta:g}: model {alone:.4f}, outcomes "
                f"{seen.interval.width:.4f}, both {both.interval.width:.4f}, truth {value:.4f}"
                f" (share {both.ledger.of_outcomes / delta:.1f})",
                flush=True,
            )


def tied(right: bool) -> tr.ParametricMDP:
    """Two steps to the goal, the second one back where it fails; the wrong model ties them."""
    parameters = tr.Parameters.box(p=("0.05", "0.95"), q=("0.05", "0.95"))
    p, q = parameters.symbols()
    rows = [(0, "", {1: p, 3: 1 - p}), (1, "", {2: q, 0: 1 - q} if right else {2: p, 0: 1 - p})]
    rows += [(2, "", {2: 1}), (3, "", {3: 1})]
    return tr.build_from_rows(rows, parameters, labels={"goal": [2]})


def coverage(replications: int) -> bool:
    """How often a claimed interval misses the truth; whether that may be at most δ."""
    fine, value = True, 0.9 * 0.3 / (1 - 0.9 * 0.7)
    for right in (True, False):
        model, actual = tied(right), tied(True)
        truth = actual.instantiate(p=0.9, q=0.3)
        problem = tr.Problem(model, 'P=? [ F "goal" ]')
        missed = outcomes = found = claimed = 0
        for seed in range(replications):
            own = tr.Simulator(truth, model_hash=model.hash(), threads=1)
            result = tr.learn(problem, own.episodes(150, seed=seed), delta=COVERAGE_DELTA)
            seen = result.outcomes
            assert isinstance(seen, ObservedOutcomes)
            outcomes += value not in seen.interval
            is_claim = result.verdict.word.value != "contradicted"
            claimed += is_claim
            missed += is_claim and value not in result.interval
            found += seen.contradiction is not None
        for what, wrong in (("claimed and wrong", missed), ("outcomes wrong", outcomes)):
            least = float(clopper_pearson(np.array([wrong]), np.array([replications]), 0.002)[0][0])
            fine &= least <= COVERAGE_DELTA
            print(
                f"the model is {'right' if right else 'wrong'}: {what} {wrong / replications:.4f} of "
                f"{replications:,} (δ = {COVERAGE_DELTA:g}), contradictions {found / replications:.3f}, "
                f"refuted in any way {1 - claimed / replications:.3f}",
                flush=True,
            )
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--coverage", type=int, default=0)
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    if given.smoke:
        sys.exit(0 if widths(2) and coverage(4) else 1)
    if given.coverage:
        sys.exit(0 if coverage(given.coverage) else 1)
    fine = widths(given.systems, given.first)
    sets_of_tennis()
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
