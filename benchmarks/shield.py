"""Whether shields hold what they promise, for agents of every kind, and what rivals do on the same logs.

    python benchmarks/shield.py                         9 models, 300 logs each
    python benchmarks/shield.py --logs 20
    python benchmarks/shield.py --smoke                 a small model, seconds
    python benchmarks/shield.py --logs 0 --samples 'rover(4,4)' 'betting(5)' --seeds 5
    python benchmarks/shield.py --logs 0 --speed        a million states; rover(125,125)

δ = 0.1. Every log gives a shield, and every agent runs under it in the true model: one that takes random
choices, one that takes the most expensive allowed choice, one that stays where it is whenever it can, and a
tabular Q-learner that maximises another reward (drawn once per model). What an agent returns is computed, not
simulated: backwards, on the product of the model with the slack in 128 shares. Prices are rounded up to
shares, so each agent does only what the shield allows. After as many steps as its patience it follows the
fallback policy. A pair of log and agent misses where the return is on the
wrong side of the promise.

Rivals on the same logs: a shield from the observed frequencies alone, with the same slack and its own
promise, and one that allows choices within a factor λ of the best robust value, held against the first
shield's promise. `--samples` also asks how many more episodes intervals without ties need for the same
promise and the Q-learner's return. `--speed` prints the CPU time of `allowed` and `take` together, in a chain
with two choices per state, and of `result.shield`.

Prints a table and writes the rows as JSON (default: bench-results/shield.json). Leaves with status 1 where
shields miss more often than δ.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

import tightrope as tr
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import RewardStructure, Structure
from tightrope.problem import Problem
from tightrope.shield import Shield

DELTA, SLACK, LAMBDA = 0.1, 0.05, 0.95
LEVELS = 128
DISCOUNT = 0.95
"""Of the other reward, for the Q-learner and in the table."""

MODELS = {
    "rover(4,4)": 300,
    "rover(6,6)": 300,
    "aircraft(6,3)": 300,
    "aircraft(10,5)": 300,
    "betting(5)": 300,
    "betting(10)": 300,
    "engagement(5)": 300,
    "glider(5,5)": 300,
    "parallel(5)": 300,
}
"""Models, and the episodes of a log."""

LARGE = "rover(125,125)", 2000
"""The model whose shield is timed, and the episodes of its log."""

AGENTS = ("random", "expensive", "waiting", "q-learner")
Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]
Graph: TypeAlias = tuple[Wholes, Wholes, Wholes, Floats, npt.NDArray[np.bool_], int]


@dataclass(frozen=True, eq=False)
class World:
    """A model at its true point, how episodes are scored, and the other reward of the Q-learner."""

    model: ParametricMDP
    truth: MDP
    objective: Objective
    cap: int
    ends: npt.NDArray[np.bool_]
    reward: Floats
    end: Floats
    """What an episode returns at its end."""
    stay: Floats
    """The probability that a choice changes nothing."""
    other: Floats

    @property
    def problem(self) -> Problem:
        return Problem(self.model, self.objective)

    @property
    def graph(self) -> Graph:
        s = self.truth.structure
        starts = s.choice_start.astype(np.int64), s.transition_start.astype(np.int64)
        return *starts, s.successor.astype(np.int64), self.truth.probability, self.ends, int(s.initial)

    def log(self, episodes: int, seed: int) -> tr.Counts:
        stop = find_decided_states(self.objective, self.model.states)
        simulator = Simulator(self.truth, None, stop, self.cap, self.model.hash(), threads=1)
        return simulator.episodes(episodes, seed)


@cache
def world(name: str) -> World:
    instance = parse_bench(name)
    model = load(instance)
    objective, truth = question(instance, model.structure).objective, model.instantiate(instance.truth)
    s = truth.structure
    loops = s.successor == s.choice_state[s.transition_choice]
    absorbing = np.logical_and.reduceat(
        np.logical_and.reduceat(loops, s.transition_start[:-1]), s.choice_start[:-1]
    )
    reward, end, stay = np.zeros(s.choices), np.zeros(s.states), np.zeros(s.choices)
    np.add.at(stay, s.transition_choice[loops], truth.probability[loops])
    if objective.reward is not None:
        assert isinstance(objective.reward, RewardStructure)
        reward = np.asarray(objective.reward.per_choice(s), np.float64)
    if objective.target is not None:
        given = objective.terminal if objective.kind is not ObjectiveKind.UNTIL else np.ones(s.states)
        end = end if given is None else np.where(objective.target, given, 0.0)
    other = np.random.default_rng(7).random(s.choices)
    ends = find_decided_states(objective, s.states) | absorbing
    return World(model, truth, objective, instance.episode_cap, ends, reward, end, stay, other)


@dataclass(frozen=True, eq=False)
class Guard:
    """What restricts an agent: prices, fallback, the slack and the patience of an episode."""

    price: Floats
    fallback: Wholes
    settled: npt.NDArray[np.bool_]
    slack: float
    patience: float
    promise: float

    @staticmethod
    def of(shield: Shield) -> Guard:
        table, patience = shield.table, shield.patience_of_episode
        return Guard(
            table.price,
            table.fallback.choice,
            table.ranking < 0,
            shield.initial_slack,
            np.inf if patience is None else float(patience),
            shield.fresh().promise,
        )

    def levels(self, here: World) -> Wholes:
        """What every choice costs in shares 1/LEVELS of the slack, rounded up; more than all where it is
        forbidden. An agent that counts in these shares never spends more than the shield allows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.ceil(self.price / self.slack * LEVELS * (1 + 1e-12))
        free = (self.price == 0) | self.settled[here.truth.structure.choice_state]
        return np.where(free, 0, np.where(shares <= LEVELS, shares, LEVELS + 1)).astype(np.int64)


@njit
def choose(score: Floats, cost: Wholes, first: int, last: int, level: int) -> int:
    """The allowed choice of the largest score, −1 where none is allowed."""
    best = -1
    for c in range(first, last):
        if cost[c] <= level and (best < 0 or score[c] > score[best]):
            best = c
    return best


@njit
def reach(graph: Graph, cost: Wholes, score: Floats, is_random: bool) -> tuple[Wholes, Wholes]:
    """The nodes (state, level) that an agent meets, and the choice at each: −2 for a uniform draw."""
    choice_start, transition_start, successor, _, ends, initial = graph
    states = len(ends)
    pick = np.full((states, LEVELS + 1), -3, np.int64)
    stack = np.empty(states * (LEVELS + 1), np.int64)
    stack[0] = initial * (LEVELS + 1) + LEVELS
    pick[initial, LEVELS] = -1
    number, size = 0, 1
    while number < size:
        state, level = stack[number] // (LEVELS + 1), stack[number] % (LEVELS + 1)
        number += 1
        if ends[state]:
            continue
        chosen = choose(score, cost, choice_start[state], choice_start[state + 1], level)
        pick[state, level] = -2 if is_random and chosen >= 0 else chosen
        for c in range(choice_start[state], choice_start[state + 1]):
            if cost[c] > level or (not is_random and c != chosen):
                continue
            for t in range(transition_start[c], transition_start[c + 1]):
                after = successor[t]
                if pick[after, level - cost[c]] == -3:
                    pick[after, level - cost[c]] = -1
                    stack[size] = after * (LEVELS + 1) + level - cost[c]
                    size += 1
    return stack[:size], pick


@njit
def evaluate(
    graph: Graph,
    cost: Wholes,
    nodes: Wholes,
    pick: Wholes,
    reward: Floats,
    last_value: Floats,
    discount: float,
    sweeps: float,
) -> Floats:
    """The expected returns of an agent that acts for `sweeps` steps, then follows the fallback policy, whose
    returns are `last_value`: backwards over all nodes, until nothing changes."""
    choice_start, transition_start, successor, probability, ends, _ = graph
    states = len(ends)
    value = np.repeat(last_value, LEVELS + 1).reshape(states, LEVELS + 1)
    later = value.copy()
    done = 0.0
    while done < sweeps:
        change = 0.0
        for node in nodes:
            state, level = node // (LEVELS + 1), node % (LEVELS + 1)
            chosen = pick[state, level]
            if ends[state] or chosen == -1:
                continue
            first = choice_start[state] if chosen == -2 else chosen
            last = choice_start[state + 1] if chosen == -2 else chosen + 1
            total, number = 0.0, 0
            for c in range(first, last):
                if cost[c] > level:
                    continue
                number += 1
                total += reward[c]
                for t in range(transition_start[c], transition_start[c + 1]):
                    total += discount * probability[t] * later[successor[t], level - cost[c]]
            value[state, level] = total / number
            change = max(change, abs(total / number - later[state, level]))
        value, later = later, value
        done += 1.0
        if change < 1e-13:
            break
    return later


@njit
def learn_q(
    graph: Graph, cost: Wholes, fallback: Wholes, reward: Floats, episodes: int, most: int, seed: int
) -> Floats:
    """The table of a Q-learner that explores in a fifth of its steps, all of them under the shield."""
    choice_start, transition_start, successor, probability, ends, initial = graph
    np.random.seed(seed)
    q = np.zeros(len(reward))
    for _ in range(episodes):
        state, level = initial, LEVELS
        for _ in range(most):
            if ends[state]:
                break
            first, last = choice_start[state], choice_start[state + 1]
            c = choose(q, cost, first, last, level)
            if c >= 0 and np.random.random() < 0.2:
                c = first + np.random.randint(last - first)
                while cost[c] > level:
                    c = first + np.random.randint(last - first)
            level = -1 if c < 0 else level - cost[c]
            c = fallback[state] if c < 0 else c
            t, draw = transition_start[c], np.random.random()
            while t < transition_start[c + 1] - 1 and draw >= probability[t]:
                draw -= probability[t]
                t += 1
            state = successor[t]
            best = 0.0
            if not ends[state]:
                best = q[choice_start[state] : choice_start[state + 1]].max()
            q[c] += 0.1 * (reward[c] + DISCOUNT * best - q[c])
    return q


def returns(here: World, guard: Guard, agent: str, seed: int, episodes: int = 4000) -> tuple[float, float]:
    """What an agent returns in the true model, of the question and of the other reward."""
    cost, graph = guard.levels(here), here.graph
    score = {"expensive": np.where(np.isfinite(guard.price), guard.price, 0.0), "waiting": here.stay}.get(
        agent
    )
    if agent == "q-learner":
        score = learn_q(graph, cost, guard.fallback, here.other, episodes, 200, seed)
    nodes, pick = reach(graph, cost, here.other if score is None else score, agent == "random")
    values = []
    for reward, discount in ((here.reward, 1.0), (here.other, DISCOUNT)):
        last = follow(here, guard.fallback, reward, discount)
        most = min(guard.patience, 1e5) if discount == 1 else 150.0
        found = evaluate(graph, cost, nodes, pick, reward, last, discount, most)
        values.append(float(found[here.truth.structure.initial, LEVELS]))
    return 1.0 - values[0] if here.objective.complement else values[0], values[1]


def follow(here: World, fallback: Wholes, reward: Floats, discount: float) -> Floats:
    """What the fallback policy returns from every state."""
    nodes = np.arange(here.truth.states) * (LEVELS + 1) + LEVELS
    pick = np.repeat(fallback, LEVELS + 1).reshape(-1, LEVELS + 1)
    end = here.end * (discount == 1)
    costs = np.zeros(len(reward), np.int64)
    return evaluate(here.graph, costs, nodes, pick, reward, end, discount, 1e5)[:, LEVELS]


def within(here: World, result: tr.LearningResult, guard: Guard, factor: float) -> Guard:
    """The rival that allows choices within a factor of the best robust value."""
    shield = result.shield(slack=0.0)
    s, value = here.truth.structure, shield.table.value
    sign = 1.0 if shield.table.facts.maximises else -1.0
    after = value[s.choice_state] - sign * shield.table.price
    best = value[s.choice_state]
    keeps = after >= factor * best if sign > 0 else after * factor <= best
    return replace(guard, price=np.where(keeps, 0.0, np.inf), slack=0.0)


def estimated(here: World, counts: tr.Counts, slack: float) -> Guard:
    """The rival from observed frequencies; choices that were never seen are taken as uniform."""
    s = here.model.structure
    visits = np.add.reduceat(counts.transition, s.transition_start[:-1])
    width = np.diff(s.transition_start)
    share = counts.transition / np.maximum(visits, 1)[s.transition_choice]
    share = np.where(visits[s.transition_choice] > 0, share, 1.0 / width[s.transition_choice])
    return Guard.of(Shield.of(tr.solve(MDP(s, share), here.objective), slack=slack))


@dataclass
class Row:
    """What came out for one model, guard and agent."""

    model: str
    guard: str
    agent: str
    logs: int = 0
    misses: int = 0
    promise: float = 0.0
    happened: float = 0.0
    other: float = 0.0

    def add(self, here: World, promise: float, happened: float, other: float) -> None:
        least = (here.objective.agent.name == "MAX") != here.objective.complement
        self.logs += 1
        self.misses += (promise - happened if least else happened - promise) > 1e-9 * max(1.0, abs(promise))
        self.promise += promise
        self.happened += happened
        self.other += other


def learn(here: World, counts: tr.Counts, **words: Any) -> tr.LearningResult:
    result = tr.learn(here.problem, counts, delta=DELTA, **words)
    assert isinstance(result, tr.LearningResult)
    return result


def measure(name: str, logs: int, size: int) -> list[Row]:
    """All guards and agents on the logs of a model."""
    here, rows = world(name), dict[tuple[str, str], Row]()
    for seed in range(1, logs + 1):
        counts = here.log(size, seed)
        result = learn(here, counts, region="likelihood", sets="rectangular")
        if result.contradiction is not None or not np.isfinite(result.guarantee):
            continue
        slack = SLACK * (1.0 if here.objective.kind is ObjectiveKind.UNTIL else abs(result.guarantee))
        guard = Guard.of(result.shield(slack=slack))
        guards = {
            "shield": guard,
            "estimated": estimated(here, counts, slack),
            "relative": within(here, result, guard, LAMBDA),
        }
        for kind, each in guards.items():
            for agent in AGENTS:
                row = rows.setdefault((kind, agent), Row(name, kind, agent))
                row.add(here, each.promise, *returns(here, each, agent, seed))
    return list(rows.values())


@dataclass(frozen=True)
class Comparison:
    """How many times the episodes intervals without ties need for the promise and the Q-learner's return that
    parametric sets reach with `episodes`; None where `most` times as many do not suffice."""

    model: str
    seed: int
    episodes: int
    promise: float
    reached: float
    factor: int | None
    most: int


def compare(name: str, size: int, seed: int, most: int) -> Comparison:
    """Doubles the episodes of the intervals without ties until they reach the same."""
    here = world(name)
    least = here.objective.agent.name == "MAX"
    result = learn(here, here.log(size, seed), region="likelihood", sets="rectangular")
    slack = SLACK * (1.0 if here.objective.kind is ObjectiveKind.UNTIL else abs(result.guarantee))
    guard = Guard.of(result.shield(slack=slack))
    reached, factor = returns(here, guard, "q-learner", seed)[1], 1
    while factor <= most:
        other = learn(here, here.log(factor * size, seed), sets="untied")
        left = (other.guarantee - guard.promise) * (1.0 if least else -1.0)
        if left >= 0:
            bounded = Guard.of(other.shield(slack=left))
            if returns(here, bounded, "q-learner", seed)[1] >= 0.98 * reached:
                break
        factor *= 2
    found = factor if factor <= most else None
    return Comparison(name, seed, size, guard.promise, reached, found, most)


@dataclass(frozen=True)
class Speed:
    """CPU time: microseconds of a step, the median of ten runs and the slowest; seconds to make a shield."""

    states: int
    step: float
    slowest: float
    model: str
    size: int
    first: float
    again: float


def measure_speed(states: int, name: str, episodes: int) -> Speed:
    """Steps along a chain, where each action may crash, and the shield of a model from its result."""
    here = np.arange(states)
    after, crash = np.minimum(here + 1, states - 2), np.full(states, states - 1)
    successor = np.stack([after, crash, after, crash], 1)
    successor[-2:] = here[-2:, None]
    risk = 1e-3 / states
    structure = Structure(
        choice_start=2 * np.arange(states + 1),
        transition_start=2 * np.arange(2 * states + 1),
        successor=successor.ravel().astype(np.int32),
        action=np.tile(np.arange(2, dtype=np.int32), states),
        action_names=("safe", "fast"),
        labels={"goal": here == states - 2},
    )
    model = MDP(structure, np.tile([1 - risk, risk, 1 - 2 * risk, 2 * risk], states))
    shield = Shield.of(tr.solve(model, 'Pmax=? [ F "goal" ]'), slack=0.01)
    runs, steps = [], min(20_000, states // 20)
    for run in range(10):
        shield.start()
        begin = time.process_time()
        for state in range(run * steps, (run + 1) * steps):
            allowed = shield.allowed(state)
            shield.take(state, "fast" if "fast" in allowed else "safe")
        runs.append((time.process_time() - begin) / steps * 1e6)
    bench = tr.benchmark(name)
    data = Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(episodes, seed=1)
    result = tr.learn(bench.problem, data, delta=DELTA, sets="tied")
    made = []
    for _ in range(3):
        begin = time.process_time()
        result.shield(slack=SLACK)
        made.append(time.process_time() - begin)
    return Speed(states, float(np.median(runs)), max(runs), name, bench.model.states, made[0], made[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="one log of a small model")
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--samples", nargs="*", default=[], help="models whose samples are compared")
    parser.add_argument("--seeds", type=int, default=5, help="logs of that comparison")
    parser.add_argument("--most", type=int, default=64, help="times the episodes that are tried there")
    parser.add_argument("--speed", action="store_true", help="time steps and the making of a shield")
    parser.add_argument("--json", type=Path, default=Path("bench-results/shield.json"))
    asked = parser.parse_args()
    if asked.smoke:
        asked.logs, asked.models = 2, ["rover(3,3)"]
    begin, rows = time.perf_counter(), list[Row]()
    print(f"δ = {DELTA}, {asked.logs} logs, slack {SLACK}, λ = {LAMBDA}")
    print(f"{'model':16}{'guard':11}{'agent':11}{'misses':>10}{'promise':>10}{'happened':>10}{'other':>9}")
    for name in asked.models:
        for row in measure(name, asked.logs, MODELS.get(name, 300)):
            rows.append(row)
            shown = [f"{value / row.logs:10.4f}" for value in (row.promise, row.happened)]
            print(
                f"{row.model:16}{row.guard:11}{row.agent:11}{row.misses:5}/{row.logs:4}{''.join(shown)}"
                f"{row.other / row.logs:9.3f}",
                flush=True,
            )
    totals = {}
    for kind in ("shield", "estimated", "relative"):
        own = [row for row in rows if row.guard == kind]
        misses, pairs = sum(row.misses for row in own), sum(row.logs for row in own)
        totals[kind] = {"misses": misses, "pairs": pairs, "rate": misses / max(pairs, 1)}
        print(f"{kind}: {misses} of {pairs} pairs miss ({misses / max(pairs, 1):.3f})")
    compared = list[Comparison]()
    for name in asked.samples:
        for seed in range(1, asked.seeds + 1):
            compared.append(compare(name, MODELS.get(name, 300) * 2 // 3, seed, asked.most))
            one = compared[-1]
            times = str(one.factor) if one.factor is not None else f"more than {one.most}"
            print(f"{name}, seed {seed}: without ties {times} times {one.episodes} episodes", flush=True)
    speed = None
    if asked.speed:
        speed = measure_speed(2_000, "rover(5,5)", 50) if asked.smoke else measure_speed(10**6, *LARGE)
        print(
            f"allowed + take, {speed.states:,} states: {speed.step:.1f} µs (slowest run {speed.slowest:.1f})"
        )
        print(f"shield of {speed.model}, {speed.size:,} states, from its result: {speed.first:.2f} s,")
        print(f"then {speed.again:.2f} s (the first time includes loading compiled code)")
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "delta": DELTA,
        "rows": [vars(row) for row in rows],
        "totals": totals,
        "samples": [vars(one) for one in compared],
        "speed": None if speed is None else vars(speed),
    }
    asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{time.perf_counter() - begin:.0f} s; rows in {asked.json}")
    return 0 if totals["shield"]["rate"] <= DELTA else 1


if __name__ == "__main__":
    sys.exit(main())
