"""How narrow and how quick answers are where hundreds of probabilities are unknown.

    python benchmarks/many_parameters.py               chains of 81 and 109 free parameters, a table, coverage
    python benchmarks/many_parameters.py --smoke       small ones, seconds
    python benchmarks/many_parameters.py --part table  one part: chains, shared, along, dozen, table,
                                                       sets, coverage or priors

*Chains*: 25 and 34 free rows of three to five successors, 15,000 events of episodes; the width of the
probability of reaching a goal, over that of Clopper and Pearson's interval of the episodes' outcomes, with
the seconds of processor to load and to answer. *Shared*: the same of 24 parameters that the rows of 40 states
share, each expression of two of them, and of a policy that is given beside a log of uniform choices; what the
model gives alone, and what the normal approximation at the truth would give (no sure method does). *Along*:
of the latter model with ten and a hundred times the events, and a policy that was planned to be bet on, the
width along the value beside that of the sets and of outcomes; and how often the statements behind it miss at
δ = 0.1 on a small model of 13 parameters, with and without a plan. *Dozen*: eight to twelve parameters, the
default's distance from the best value beside that of every region, of coupled sets, and misses. *Table*: a
random model of 700 states with 25 actions and eight successors each, every transition unknown, a million
events of a uniform policy; the interval of the policy that is optimal at the truth, beside that of single
transitions (Clopper and Pearson, a union bound) and that of importance weights with bets, each with all of δ.
*Sets*: where the policy is not given, the guarantee of the robust policy of a smaller table over intervals of
single transitions, beside sets that hold a choice's whole distribution (prototypes in plain floating point:
Kullback–Leibler with a Dirichlet mixture, which holds at all times, Weissman's ℓ1 ball, and the empirical
Bernstein bound of Maurer and Pontil on the next value, which holds only of values that were fixed before the
data, and so of no policy that these chose), and beside a policy that the first half of the log chose and the
second half vouches for. *Coverage*: at δ = 0.1 how often intervals of episodes that are put together from
steps miss, where the log was collected by another policy and stopped when that looked well. *Priors*: how
often likelihood regions with a prior far from the truth miss it, stopped when that looks well, and how wide
intervals are with good priors and bad ones.

Leaves with status 1 where a chain is wider than 1.3 times its outcomes, the table's interval wider than half
of that of transitions or than that of weights, where sets of choices close more than a quarter of the
distance that intervals leave while half of the log closes less than they do, or where a miss rate is above δ
beyond doubt.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import gammaln

import tightrope as tr
from default_widths import normal_widths
from tightrope.coupled.ball import range_over_ball
from tightrope.coupled.chain import chain_of
from tightrope.data.design import SamplingKind
from tightrope.learning.coupling import GradientBound
from tightrope.learning.options import LearnOptions
from tightrope.learning.pipeline import Pipeline, Serves
from tightrope.monitoring.episode_scores import PathRules, Queues
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.intervals import clopper_pearson
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import prequential
from tightrope.statistics.priors import Prior
from tightrope.statistics.returns import Tally, frequency_interval, mean_interval

DELTA, COVERAGE_DELTA = 0.001, 0.1
QUESTION = 'Pmax=? [ F "goal" ]'


def chain(widths: list[int], seed: int) -> tuple[tr.ParametricMDP, tr.MDP]:
    """States with so many successors each, a few ahead or back, and the end; the model and its truth."""
    random, states = np.random.default_rng(seed), len(widths)
    free, numbers = [], []
    for s, width in enumerate(widths):
        near = [t % states for t in range(s - 2, s + 3) if t != s]
        inside = random.choice(near, size=width - 1, replace=False).tolist()
        successors = [*inside, states + int(random.random() < 0.5)]
        weights = random.dirichlet(np.full(width, 2.0))
        parts = np.maximum((weights * 2**20).astype(int), 1)
        parts[int(parts.argmax())] += 2**20 - parts.sum()
        free.append((s, "go", dict.fromkeys(successors, tr.free)))
        numbers.append((s, "go", {t: f"{p}/{2**20}" for t, p in zip(successors, parts, strict=True)}))
    ends = [(states, "", {states: 1}), (states + 1, "", {states + 1: 1})]
    labels = {"goal": [states]}
    model = tr.build_from_rows([*free, *ends], labels=labels)
    return model, tr.build_from_rows([*numbers, *ends], labels=labels).instantiate()


def chains(smoke: bool) -> bool:
    good = True
    sizes = {81: [5] * 8 + [4] * 15 + [3] * 2, 109: [5] * 10 + [4] * 21 + [3] * 3}
    for number, widths in ({18: [4] * 6} if smoke else sizes).items():
        events = 1500 if smoke else 15_000
        model, truth = chain(np.random.default_rng(number).permutation(widths).tolist(), number)
        simulator = tr.Simulator(truth, model_hash=model.hash())
        length = simulator.episodes(300, seed=1).steps / 300
        counts = simulator.episodes(round(events / length), seed=2)
        log = counts.log()
        source = truth.structure.choice_state[truth.structure.transition_choice[log.transition]]
        listed = [[] for _ in range(log.episodes)]
        for e, s, t in zip(log.episode, source, truth.structure.successor[log.transition], strict=True):
            listed[e].append((int(s), "go", int(t)))
        begin = time.process_time()
        again = chain(np.random.default_rng(number).permutation(widths).tolist(), number)[0]
        read = tr.read_data(listed, again)
        loaded = time.process_time() - begin
        problem = model.problem(QUESTION)
        begin = time.process_time()
        result = tr.learn(problem, counts, delta=DELTA)
        answered = time.process_time() - begin
        won = sum(path[-1][2] == len(widths) for path in listed)
        low, high = clopper_pearson(np.array([won]), np.array([len(listed)]), DELTA)
        outcomes = float(high[0] - low[0])
        model_part = tr.learn(problem, counts, delta=DELTA, outcomes="none").interval.width
        raw = tr.learn(problem, read, delta=DELTA).interval.width
        ratio = result.interval.width / outcomes
        print(
            f"chain of {len(model.parameters)} parameters, {counts.steps:,} events: loaded in "
            f"{loaded:.1f} s, answered in {answered:.1f} s; width {result.interval.width:.4f}, "
            f"{ratio:.2f} of outcomes ({outcomes:.4f}); no plan stated: {raw / outcomes:.2f}; "
            f"the model alone: {model_part / outcomes:.2f}"
        )
        good &= ratio <= 1.3
    return good


def shared_model(
    actions: int, size: int = 24, rows_in_all: int = 40, scale: int = 1
) -> tuple[tr.ParametricMDP, dict[str, Fraction]]:
    """24 parameters; each row leads to the goal, to the end and on, by sums of two parameters, in so many
    times as many steps for a smaller scale."""
    random, states = np.random.default_rng(24), rows_in_all // actions
    truth = {f"p{i}": Fraction(int(random.integers(50, 500)), 1000) for i in range(size)}
    parameters = tr.Parameters.box(**dict.fromkeys(truth, ("0.02", "0.6")))
    p, rows = parameters.symbols(), []
    for s in range(states):
        for action in range(actions):
            i, j, k = random.choice(size, size=3, replace=False)
            goal, end = scale * (p[i] + p[k]) / 20, scale * (p[j] + p[k]) / 30
            onward = (s + 1 + 3 * action) % states
            rows.append((s, f"a{action}", {states: goal, states + 1: end, onward: 1 - goal - end}))
    rows += [(states, "", {states: 1}), (states + 1, "", {states + 1: 1})]
    initial = dict.fromkeys(range(states), f"1/{states}")
    return tr.build_from_rows(rows, parameters, labels={"goal": [states]}, initial=initial), truth


def shared(smoke: bool) -> bool:
    """Parameters that rows share: what episodes tell, and what the model does."""
    good = True
    for actions in (1,) if smoke else (1, 2):
        model, values = shared_model(actions)
        problem, truth = model.problem(QUESTION), model.instantiate(**values)
        simulator = tr.Simulator(truth, model_hash=model.hash())
        length = simulator.episodes(300, seed=1).steps / 300
        counts = simulator.episodes(round((1500 if smoke else 15_000) / length), seed=2)
        first = tr.Policy(
            model, [float(model.structure.action_name(c) != "a1") for c in range(model.choices)]
        )
        given = {} if actions == 1 else {"policy": first}
        begin = time.process_time()
        result = tr.learn(problem, counts, delta=DELTA, **given)
        seconds = time.process_time() - begin
        own = (result.value or result).interval
        alone = tr.learn(problem, counts, delta=DELTA, outcomes="none", **given)
        seen = result.outcomes
        low, high = clopper_pearson(np.array([seen.successes]), np.array([seen.episodes]), DELTA)
        outcomes = float(high[0] - low[0])
        limit = normal_widths(problem, counts, first, DELTA, list(values.values()))[0]
        whole = (alone.value or alone).interval.width
        print(
            f"{len(values)} shared parameters, {len(model.expressions.nonconstant)} expressions, "
            f"{actions} action{'s' * (actions > 1)}, {counts.steps:,} events: {seconds:.1f} s, width "
            f"{own.width:.4f}, {own.width / outcomes:.2f} of the outcomes of {seen.episodes} episodes "
            f"({seen.policy}); the model alone: {whole / outcomes:.2f}, the limit: {limit / outcomes:.2f}"
        )
        wide = actions == 1 and own.width > 1.3 * outcomes  # no fixed number of episodes is put together
        good &= not wide and (smoke or seconds <= 10.0)
    return good


def along(smoke: bool) -> bool:
    """Confidence that is spent along the value of a policy of which it was planned."""
    good = True
    for times in () if smoke else (1, 10, 100):
        model, values = shared_model(2)
        problem, truth = model.problem(QUESTION), model.instantiate(**values)
        simulator = tr.Simulator(truth, model_hash=model.hash())
        length = simulator.episodes(300, seed=1).steps / 300
        counts = simulator.episodes(round(15_000 * times / length), seed=2)
        first = tr.Policy(
            model, [float(model.structure.action_name(c) != "a1") for c in range(model.choices)]
        )
        counts = replace(counts, design=replace(counts.design, bet_on=(first.digest,)))
        limit = normal_widths(problem, counts, first, DELTA, list(values.values()))[0]
        begin, asked = time.process_time(), {"delta": DELTA, "policy": first}
        own = tr.learn(problem, counts, **asked)
        seconds = time.process_time() - begin
        alone = tr.learn(problem, counts, outcomes="none", **asked)
        sets = tr.learn(problem, counts, outcomes="none", region="polytope", **asked)
        best = float(tr.solve(truth.problem(QUESTION)).lower[model.initial])
        widths = [one.value.interval.width / limit for one in (own, alone, sets)]
        print(
            f"{len(values)} shared parameters, {counts.steps:,} events: {seconds:.1f} s; widths over the "
            f"normal limit: default {widths[0]:.2f}, outcomes {own.outcomes.interval.width / limit:.2f}, "
            f"the model alone {widths[1]:.2f}, its sets {widths[2]:.2f}; guarantees without a policy, best "
            f"value {best:.3f}: {alone.guarantee:.3f}, sets {sets.guarantee:.3f}"
        )
        good &= widths[1] <= 1.05 * widths[2] and (times < 100 or widths[0] <= 2.0)
    return along_coverage(6 if smoke else 2000, 13, 1) and good


def dozen(smoke: bool) -> bool:
    """Eight to twelve parameters: default settings beside every region that can be chosen, and, on one row of
    each size, beside coupled sets over it that may take a minute."""
    good, ratios = True, list[float]()
    for size in (8,) if smoke else (8, 10, 12):
        model, values = shared_model(2, size, 2 * size, 5)
        problem, truth = model.problem(QUESTION), model.instantiate(**values)
        simulator = tr.Simulator(truth, model_hash=model.hash())
        best = float(tr.solve(truth.problem(QUESTION)).lower[model.initial])
        for episodes in (300,) if smoke else (300, 3000, 20_000):
            for seed, delta in ((81, 0.001),) if smoke else ((81, 0.001), (82, 0.001), (83, 0.05)):
                counts = simulator.episodes(episodes, seed=seed)
                asked = {"delta": delta, "outcomes": "none"}
                begin = time.process_time()
                own = best - tr.learn(problem, counts, **asked).guarantee
                seconds = time.process_time() - begin
                names = ("polytope", "likelihood", "slab", "joint")
                found = {one: tr.learn(problem, counts, region=one, effort="quick", **asked) for one in names}
                if episodes == 3000 and seed == 81:
                    for one in ("slab", "joint"):
                        found[f"coupled {one}"] = tr.learn(
                            problem, counts, region=one, sets="coupled", **asked
                        )
                distance = {name: best - one.guarantee for name, one in found.items()}
                ratios.append(own / min(distance.values()))
                print(
                    f"{size} parameters, {episodes:,} episodes, δ = {delta}, seed {seed}: {seconds:.1f} s, "
                    f"guaranteed {own:.4f} below the best value, {ratios[-1]:.3f} of the best single; "
                    + ", ".join(f"{name} {one:.4f}" for name, one in distance.items()),
                    flush=True,
                )
                good &= ratios[-1] <= 1.06 and (smoke or seconds <= 10.0)
    print(f"geometric mean {np.exp(np.log(ratios).mean()):.3f}, largest {max(ratios):.3f}")
    return along_coverage(6 if smoke else 2000, 9, 2) and good


def along_coverage(replications: int, size: int, actions: int) -> bool:
    """Misses of the likelihood, the bets and the ranges of values at δ = 0.1. In a joint region this is all
    of δ, and the intervals have a part; beside intervals it is the part of the rest."""
    model, values = shared_model(actions, size, 8 * actions, 5)
    problem, truth = model.problem(QUESTION), model.instantiate(**values)
    delta = COVERAGE_DELTA if size <= 12 else 2 * COVERAGE_DELTA
    simulator = tr.Simulator(truth, model_hash=model.hash(), threads=1)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    x = np.array([float(one) for one in values.values()])
    f = functions.constant + functions.linear @ x
    misses, ranges = dict.fromkeys(("ball", "bets", "ranges"), 0), 0
    options = LearnOptions(outcomes="none")
    for seed in range(replications):
        counts = simulator.episodes(400, seed=1000 + seed)
        if seed % 2:
            counts = replace(counts, design=replace(counts.design, kind=SamplingKind.ADAPTIVE, planned=None))
        chain = Pipeline.start(problem, counts, delta, options=options, serves=Serves.REFINED)
        seen = GradientBound.of(chain, chain.prepare(chain.decide(options), sets_only=True))
        assert seen.ball is not None and seen.slab is not None
        place = np.linalg.solve(seen.ball.axes, x - seen.ball.centre)
        outside = np.any(f < seen.ball.low - 1e-12) or np.any(f > seen.ball.high + 1e-12)
        misses["ball"] += bool(outside or np.linalg.norm(place) > seen.ball.radius * (1.0 + 1e-9))
        rich = False
        for side in seen.slab.sides:
            wealth = [one.log_wealth(chain.outcomes, f) for one in seen.slab.wagers[side]]
            weight = np.log([one.weight for one in seen.slab.every])
            rich |= bool(np.logaddexp.reduce(weight + wealth) >= seen.slab.price[side])
        misses["bets"] += rich
        if seed % 10 < 2:
            policy = seen.policies[0]
            value = float(tr.solve(truth.problem(QUESTION), policy=policy.probability).lower[model.initial])
            made = chain_of(model, problem.objective, policy)
            ends = range_over_ball(made, seen.functions, seen.ball, seen.slab, chain.outcomes)
            if ends is not None:
                ranges += 1
                misses["ranges"] += not ends[0] <= value <= ends[1]
    print(
        f"along the value, {size} parameters, δ = {COVERAGE_DELTA}: of {replications} replications the ball "
        f"missed {misses['ball']}, the bets {misses['bets']}, of {ranges} ranges {misses['ranges']} missed"
    )
    return misses["ball"] + misses["bets"] <= COVERAGE_DELTA * replications and not misses["ranges"]


def table_model(states: int, actions: int, width: int, seed: int) -> tr.ParametricMDP:
    """Each choice leads to a few states, to the goal and to the end; the first state is drawn evenly."""
    random = np.random.default_rng(seed)
    rows: list[tuple[int, str, dict[int, object]]] = []
    for s in range(states):
        for a in range(actions):
            inside = random.choice(states, size=width - 2, replace=False).tolist()
            parts = np.maximum((random.dirichlet(np.ones(width)) * 2**20).astype(int), 1)
            parts[int(parts.argmax())] += 2**20 - parts.sum()
            chances = [f"{p}/{2**20}" for p in parts.tolist()]
            rows.append((s, f"a{a}", dict(zip([*inside, states, states + 1], chances, strict=True))))
    rows += [(states, "", {states: 1}), (states + 1, "", {states + 1: 1})]
    initial = dict.fromkeys(range(states), f"1/{states}")
    return tr.build_from_rows(rows, initial=initial, labels={"goal": [states]})


def table(smoke: bool) -> bool:
    states, actions, events = (60, 4, 8000) if smoke else (700, 25, 1_000_000)
    begin = time.process_time()
    model = table_model(states, actions, 8, 1)
    built = time.process_time() - begin
    truth, problem = model.instantiate(), model.problem(QUESTION)
    best = tr.solve(truth.problem(QUESTION))
    value = float(best.lower[truth.initial])
    simulator = tr.Simulator(truth, model_hash=model.hash())
    length = simulator.episodes(2000, seed=1).steps / 2000
    counts = simulator.episodes(round(events / length), seed=2)
    begin = time.process_time()
    result = tr.learn(problem, counts, delta=DELTA, sets="untied", policy=best.policy)
    seconds = time.process_time() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    plain = {"delta": DELTA, "sets": "untied", "policy": best.policy, "outcomes": "none"}
    union = tr.learn(problem, counts, interval="clopper-pearson", **plain).value.interval
    low, high = weighed(truth, counts, best.policy)
    own = result.value.interval
    print(
        f"table of {states} states, {actions} actions, {model.transitions:,} transitions, "
        f"{counts.steps:,} events (built in {built:.0f} s): learned in {seconds:.0f} s, {memory:.2f} GiB\n"
        f"  the optimal policy, worth {value:.4f}: {own} ({result.outcomes.text})\n"
        f"  {own.width / union.width:.3f} of transitions alone {union}, "
        f"{own.width / (high - low):.3f} of importance weights [{low:.4f}, {high:.4f}]"
    )
    return own.width <= 0.5 * union.width and own.width <= high - low and value in own


def weighed(truth: tr.MDP, counts: tr.Counts, policy: tr.Policy) -> tuple[float, float]:
    """The interval of importance weights: a path counts where the policy took all of its choices."""
    log, structure = counts.log(), truth.structure
    choice = structure.transition_choice[log.transition]
    number = np.diff(structure.choice_start)[structure.choice_state[choice]]
    weight = np.ones(log.episodes)
    np.multiply.at(weight, log.episode, policy.probability[choice] * number)
    goal = int(np.flatnonzero(structure.labels["goal"])[0])
    won = np.zeros(log.episodes)
    won[log.episode[structure.successor[log.transition] == goal]] = 1.0
    return mean_interval(Tally.of(weight * won), Tally.of(weight * (1.0 - won)), (0.0, 1.0), DELTA, None)


def sets(smoke: bool) -> bool:
    """Guarantees of policies that the data choose."""
    states, actions, width, good = (20, 3, 8, True) if smoke else (100, 5, 8, True)
    model = table_model(states, actions, width, 1)
    truth, problem = model.instantiate(), model.problem(QUESTION)
    value = float(tr.solve(truth.problem(QUESTION)).lower[truth.initial])
    simulator = tr.Simulator(truth, model_hash=model.hash())
    length, choices = simulator.episodes(2000, seed=1).steps / 2000, states * actions
    for visits in (60,) if smoke else (60, 300, 1500):
        half = round(visits * choices / length / 2)
        first, second = simulator.episodes(half, seed=2), simulator.episodes(half, seed=3)
        both = first + second
        own = tr.learn(problem, both, delta=DELTA, sets="untied", interval="beta-binomial").guarantee
        seen = both.transition[: choices * width].reshape(choices, width).astype(float)
        successor = truth.structure.successor[: choices * width].reshape(choices, width)
        ball = {name: iterate(inner, successor, states, actions) for name, inner in balls(seen).items()}
        estimate = (first.transition + 1.0) / np.repeat(
            np.add.reduceat(first.transition + 1.0, truth.structure.transition_start[:-1]),
            np.diff(truth.structure.transition_start),
        )
        fixed = np.diff(truth.structure.transition_start)[truth.structure.transition_choice] != width
        guess = tr.MDP(truth.structure, np.where(fixed, truth.probability, estimate))
        policy = tr.solve(guess.problem(QUESTION)).policy
        vouched = tr.learn(problem, second, delta=DELTA, sets="untied", policy=policy).value.interval.lower
        print(
            f"table of {states} states, {actions} actions, about {visits:,} visits of a choice; guarantees "
            f"of {value:.3f}: intervals {own:.3f}, "
            + ", ".join(f"{name} {each:.3f}" for name, each in ball.items())
            + f", half of the log chooses and half vouches {vouched:.3f}"
        )
        left = (value - ball["KL"]) / (value - own)
        good &= left >= 0.75 or vouched > ball["KL"]
    return good


def iterate(inner: Any, successor: np.ndarray, states: int, actions: int) -> float:
    """The mean value of the robust policy over sets that an inner problem stands for."""
    values = np.append(np.zeros(states), [1.0, 0.0])
    for _ in range(300):
        new = inner(values[successor]).reshape(states, actions).max(axis=1)
        change, values[:states] = float(np.abs(new - values[:states]).max()), new
        if change < 1e-5:
            break
    return float(values[:states].mean())


def balls(seen: np.ndarray) -> dict[str, Any]:
    """Nature's least p·x over ℓ1 and Kullback–Leibler balls around the shares that were seen, all choices
    together at δ; x are the values of the successors, [choices, successors].
    """
    number, (choices, width) = seen.sum(axis=1), seen.shape
    share = seen / np.maximum(number, 1.0)[:, None]
    price = np.log(choices / DELTA)
    radius = np.minimum(np.sqrt(2.0 * (np.log(2.0**width - 2.0) + price) / np.maximum(number, 1.0)), 2.0)
    met = seen > 0.0
    best = np.where(met, seen * np.log(np.where(met, share, 1.0)), 0.0).sum(axis=1)
    mixture = gammaln(seen + 0.5).sum(axis=1) - gammaln(number + width / 2)
    mixture += gammaln(width / 2) - width * gammaln(0.5)
    level = np.minimum(mixture - price, best)  # { p : Σ n log p ≥ log mixture − log(choices/δ) }, by Ville

    def l1(x: np.ndarray) -> np.ndarray:
        order = np.argsort(-x, axis=1)
        p, y = np.take_along_axis(share, order, 1), np.take_along_axis(x, order, 1)
        taken = np.clip(radius[:, None] / 2 - (np.cumsum(p, axis=1) - p), 0.0, p)
        return (p * y).sum(axis=1) - (taken * (y - y[:, -1:])).sum(axis=1)

    def kl(x: np.ndarray) -> np.ndarray:
        least = x.min(
            axis=1
        )  # the optimum has p ∝ n/(x − ν) for some ν ≤ least, or mass on unseen successors
        span = np.maximum(x.max(axis=1) - least, 1e-12)

        def at(below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            weight = np.where(met, seen / np.maximum(x - (least - below)[:, None], 1e-300), 0.0)
            p = weight / weight.sum(axis=1, keepdims=True)
            return p, np.where(met, seen * np.log(np.where(met, p, 1.0)), 0.0).sum(axis=1)

        low, high = np.full(choices, -40.0), np.full(choices, 25.0)
        for _ in range(60):
            middle = (low + high) / 2
            inside = at(span * np.exp(middle))[1] >= level
            high, low = np.where(inside, middle, high), np.where(inside, low, middle)
        value = (at(span * np.exp(high))[0] * x).sum(axis=1)
        p, likelihood = at(np.zeros(choices))
        unseen = (x.min(axis=1) < np.where(met, x, np.inf).min(axis=1)) & (likelihood >= level)
        moved = 1.0 - np.exp((level - likelihood) / np.maximum(number, 1.0))
        value = np.where(unseen, moved * least + (1.0 - moved) * (p * x).sum(axis=1), value)
        return np.where(number == 0.0, least, value)

    def bernstein(x: np.ndarray) -> np.ndarray:
        level, middle = np.log(2.0 * choices / DELTA), (share * x).sum(axis=1)
        spread = number * ((share * x**2).sum(axis=1) - middle**2).clip(0.0) / np.maximum(number - 1.0, 1.0)
        off = np.sqrt(2.0 * spread * level / np.maximum(number, 1.0)) + 7.0 * level / (
            3.0 * np.maximum(number - 1.0, 1.0)
        )
        return np.maximum(middle - off, x.min(axis=1))

    return {"KL": kl, "ℓ1": l1, "Bernstein (of fixed values)": bernstein}


def coverage(replications: int) -> bool:
    """A log of another policy, which goes on while the first action looks worse than it is."""
    three = dict.fromkeys((0, 1, 2), tr.free)
    rows = [(0, "a", three), (0, "b", three), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, labels={"goal": [1]})
    problem = model.problem(QUESTION)
    policy = tr.Policy(model, [0.7, 0.3, 1.0, 1.0])
    chances = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    inner = (policy.probability[:2, None] * chances).sum(axis=0)
    value = float(inner[1] / (inner[1] + inner[2]))
    rules = PathRules.of(model.structure, problem.objective, policy.probability > 0.0)
    wrong = lucky = 0
    for seed in range(replications):
        random = np.random.default_rng(seed)
        paths, seen = [], np.zeros(3)
        while len(paths) < 20 or (len(paths) < 150 and seen[1] <= 0.6 * (seen[1] + seen[2])):
            state, path = 0, []
            while state == 0:
                action = int(random.random() < (0.2 if seen[1] > seen[2] else 0.8))
                state = int(random.choice(3, p=chances[action]))
                path.append((0, "ab"[action], state))
                seen[state] += action == 0
            paths.append(path)
        counts = tr.read_data(paths, model).counts
        queues = Queues.of(model, counts)
        assert queues is not None
        log = queues.episodes(rules, policy.probability, np.arange(model.choices))
        scores = rules.score(log, np.ones(model.choices))
        low, high, _ = frequency_interval(
            int(scores.low.sum()), int((scores.high == 0.0).sum()), len(log), COVERAGE_DELTA, False
        )
        wrong += not low <= value <= high
        lucky += len(log)
    rate = wrong / replications
    print(
        f"coverage: {rate:.4f} of {replications} intervals of {lucky / replications:.0f} episodes miss "
        f"(δ = {COVERAGE_DELTA})"
    )
    return rate <= COVERAGE_DELTA + 3.0 * np.sqrt(COVERAGE_DELTA / replications)


def coins() -> tr.ParametricMDP:
    """Two coins in a row, and a third one that decides between both."""
    parameters = tr.Parameters.box(**dict.fromkeys("pqr", ("0.01", "0.99")))
    p, q, r = parameters.symbols()
    rows = [(0, "", {1: r, 2: 1 - r}), (1, "", {3: p, 4: 1 - p}), (2, "", {3: q, 4: 1 - q})]
    ends = [(3, "", {3: 1}), (4, "", {4: 1})]
    return tr.build_from_rows([*rows, *ends], parameters, labels={"goal": [3]})


def priors(replications: int) -> bool:
    """Far from the truth of 0.8, 0.3 and 0.6; every replication looks after 20, 30, … 90 episodes."""
    model, far = coins(), (Prior("p", 2.0, 40.0), Prior("q", 40.0, 2.0), Prior("r", 1.0, 30.0))
    truth = model.instantiate(p=0.8, q=0.3, r=0.6)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions, outcomes = coordinates.functions(model.expressions), Outcomes.of(model)
    log_f = np.log(functions.linear @ np.array([0.8, 0.3, 0.6]) + functions.constant)
    simulator, misses = tr.Simulator(truth, model_hash=model.hash()), {"far": 0, "none": 0}
    for seed in range(replications):
        for name, stated in (("far", far), ("none", ())):
            missed = False
            for episodes in (20, 40, 90):
                counts = simulator.episodes(episodes, seed=seed)
                seen = prequential(outcomes, counts, COVERAGE_DELTA, None, stated)
                missed |= float(seen.weight @ log_f) < seen.threshold
            misses[name] += missed
    rate = {name: number / replications for name, number in misses.items()}
    counts, problem = simulator.episodes(500, seed=1), model.problem(QUESTION)
    good = {"p": (160.0, 40.0), "q": (60.0, 140.0), "r": (120.0, 80.0)}
    bad = {one.parameter: (one.a, one.b) for one in far}
    common = {"delta": DELTA, "region": "likelihood", "outcomes": "none"}
    plain = tr.learn(problem, counts, **common).interval.width
    widths = [tr.learn(problem, counts, prior=one, **common).interval.width / plain for one in (good, bad)]
    print(
        f"priors: {rate['far']:.4f} of {replications} regions with a prior far off miss, {rate['none']:.4f} "
        f"without (δ = {COVERAGE_DELTA}); width {widths[0]:.2f} with a good prior of 200 draws, "
        f"{widths[1]:.2f} with one far off"
    )
    return rate["far"] <= COVERAGE_DELTA + 3.0 * np.sqrt(COVERAGE_DELTA / replications) and widths[0] < 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument(
        "--part", choices=("chains", "shared", "along", "dozen", "table", "sets", "coverage", "priors")
    )
    arguments = parser.parse_args()
    smoke = arguments.smoke
    parts = {
        "chains": lambda: chains(smoke),
        "shared": lambda: shared(smoke),
        "along": lambda: along(smoke),
        "dozen": lambda: dozen(smoke),
        "table": lambda: table(smoke),
        "sets": lambda: sets(smoke),
        "coverage": lambda: coverage(12 if smoke else 2000),
        "priors": lambda: priors(4 if smoke else 2000),
    }
    results = [part() for name, part in parts.items() if arguments.part in (None, name)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
