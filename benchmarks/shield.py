"""Whether shields hold what they promise, for agents of every kind, and what rivals do on the same logs.

    python benchmarks/shield.py                         9 models, 300 logs each
    python benchmarks/shield.py --logs 20 --episodes 2000
    python benchmarks/shield.py --smoke                 a small model, seconds

δ = 0.1. Every log gives a shield, and every agent runs under it in the true model: one that takes random
choices, one that takes the most expensive allowed choice, one that stays where it is whenever it can, and a
tabular Q-learner that maximises another reward (drawn once per model). A pair of log and agent misses where
the mean return of its episodes is more than 3.3 standard errors on the wrong side of the promise.

Rivals on the same logs: a shield from the observed frequencies alone, with the same slack and its own
promise, and one that allows choices within a factor λ of the best robust value, held against the first
shield's promise. `--samples` also asks how many more episodes intervals without ties need for the same
promise and the Q-learner's return.

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
from typing import Any

import numpy as np
import numpy.typing as npt

import tightrope as tr
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import RewardStructure
from tightrope.problem import Problem
from tightrope.shield import Shield

DELTA, SLACK, LAMBDA = 0.1, 0.05, 0.95
STANDARD_ERRORS = 3.3
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

AGENTS = ("random", "expensive", "waiting", "q-learner")
Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class World:
    """A model at its true point, how episodes are scored, and the other reward of the Q-learner."""

    model: ParametricMDP
    truth: MDP
    objective: Objective
    cap: int
    other: Floats
    cumulative: Floats
    table: Wholes
    """The choices of every state, −1 where it has fewer."""

    @property
    def problem(self) -> Problem:
        return Problem(self.model, self.objective)

    @property
    def ends(self) -> npt.NDArray[np.bool_]:
        s = self.truth.structure
        stays = np.logical_and.reduceat(
            s.successor == s.choice_state[s.transition_choice], s.transition_start[:-1]
        )
        absorbing = np.logical_and.reduceat(stays, s.choice_start[:-1])
        return find_decided_states(self.objective, s.states) | absorbing

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
    shares = np.concatenate([[0.0], np.cumsum(truth.probability)])
    inside = shares[1:] - shares[s.transition_start[:-1]][s.transition_choice]
    inside[s.transition_start[1:] - 1] = 1.0
    width = int(np.diff(s.choice_start).max())
    place = s.choice_start[:-1, None] + np.arange(width)
    table = np.where(place < s.choice_start[1:, None], place, -1)
    other = np.random.default_rng(7).random(s.choices)
    return World(
        model,
        truth,
        objective,
        instance.episode_cap,
        other,
        s.transition_choice + inside,
        table.astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class Guard:
    """What restricts an agent: prices, fallback, the slack and the patience of an episode."""

    price: Floats
    fallback: Wholes
    settled: npt.NDArray[np.bool_]
    ranking: Wholes
    slack: float
    patience: float
    promise: float

    @staticmethod
    def of(shield: Shield) -> Guard:
        table, patience = shield.table, shield.patience_of_episode
        return Guard(
            table.price[0],
            table.fallback[0],
            table.settled[0],
            table.ranking,
            shield.initial_slack,
            np.inf if patience is None else float(patience),
            shield.fresh().promise,
        )


def play(
    here: World,
    guard: Guard,
    agent: str,
    episodes: int,
    seed: int,
    q: Floats | None = None,
    learns: bool = False,
) -> tuple[Floats, Floats]:
    """What each episode returned, and its other reward; all episodes go on side by side. With `learns` the
    table `q` of the Q-learner is updated."""
    s, rng, objective = here.truth.structure, np.random.default_rng(seed), here.objective
    ends, target = here.ends, objective.target
    reward = np.zeros(s.choices)
    if objective.reward is not None:
        assert isinstance(objective.reward, RewardStructure)
        reward = np.asarray(objective.reward.per_choice(s))
    stay = np.zeros(s.choices)
    loops = s.successor == s.choice_state[s.transition_choice]
    np.add.at(stay, s.transition_choice[loops], here.truth.probability[loops])
    state = np.full(episodes, s.initial, np.int64)
    slack, patience = np.full(episodes, guard.slack), np.full(episodes, guard.patience)
    committed = np.zeros(episodes, np.bool_)
    earned, other = np.zeros(episodes), np.zeros(episodes)
    active = np.flatnonzero(~ends[state])
    for _ in range(max(here.cap, 20_000)):
        if not len(active):
            break
        at = state[active]
        choices = here.table[at]
        price = np.where(choices >= 0, guard.price[choices], np.inf)
        price[guard.settled[at]] = np.where(choices[guard.settled[at]] >= 0, 0.0, np.inf)
        allowed = price <= slack[active, None]
        alone = committed[active] | ~allowed.any(axis=1)
        committed[active] = alone
        draw = rng.random(choices.shape)
        score = {
            "random": draw,
            "expensive": price + 1e-9 * draw,
            "waiting": stay[choices] + 1e-3 * draw,
        }.get(agent)
        if score is None:
            assert q is not None
            greedy = rng.random(len(active)) >= (0.2 if learns else 0.0)
            score = np.where(greedy[:, None], q[choices] + 1e-9 * draw, draw)
        pick = np.where(allowed, score, -np.inf).argmax(axis=1)
        rows = np.arange(len(active))
        choice = np.where(alone, guard.fallback[at], choices[rows, pick])
        paid = np.where(alone, 0.0, price[rows, pick])
        slack[active] = np.maximum(slack[active] - np.where(np.isfinite(paid), paid, 0.0), 0.0)
        transition = np.searchsorted(here.cumulative, choice + rng.random(len(active)), side="right")
        after = s.successor[transition].astype(np.int64)
        earned[active] += reward[choice]
        other[active] += here.other[choice]
        if learns:
            assert q is not None
            behind = here.table[after]
            best = np.where(behind >= 0, q[behind], -np.inf).max(axis=1)
            best[ends[after]] = 0.0
            np.add.at(
                q, choice, 0.1 * (here.other[choice] + 0.95 * best - q[choice]) / max(1, len(active) // 50)
            )
        patience[active] -= guard.ranking[after] >= guard.ranking[at]
        committed[active] |= patience[active] < 0
        state[active] = after
        active = active[~ends[after]]
    if objective.kind is ObjectiveKind.UNTIL:
        assert target is not None
        earned = target[state].astype(np.float64)
    elif objective.terminal is not None and target is not None:
        earned += np.where(target[state], objective.terminal[state], 0.0)
    return 1.0 - earned if objective.complement else earned, other


def learner(here: World, guard: Guard, seed: int, rounds: int = 20) -> Floats:
    """The table of a Q-learner that was trained under a guard."""
    q = np.zeros(here.truth.structure.choices)
    for number in range(rounds):
        play(here, guard, "q-learner", 200, seed + number, q, True)
    return q


def within(here: World, result: tr.LearningResult, guard: Guard, factor: float) -> Guard:
    """The rival that allows choices within a factor of the best robust value."""
    shield = result.shield(slack=0.0)
    s, value = here.truth.structure, shield.table.value[0]
    sign = 1.0 if shield.table.facts.maximises else -1.0
    after = value[s.choice_state] - sign * shield.table.price[0]
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

    def add(self, here: World, promise: float, returns: Floats, other: Floats) -> None:
        least = (here.objective.agent.name == "MAX") != here.objective.complement
        mean, error = float(returns.mean()), float(returns.std() / np.sqrt(len(returns)))
        gap = promise - mean if least else mean - promise
        self.logs += 1
        self.misses += gap > STANDARD_ERRORS * error + 1e-9
        self.promise += promise
        self.happened += mean
        self.other += float(other.mean())


def measure(name: str, logs: int, size: int, episodes: int) -> list[Row]:
    """All guards and agents on the logs of a model."""
    here, rows = world(name), dict[tuple[str, str], Row]()
    for seed in range(1, logs + 1):
        counts = here.log(size, seed)
        result = tr.learn(here.problem, counts, delta=DELTA, effort="quick")
        assert isinstance(result, tr.LearningResult)
        slack = SLACK * max(
            1.0 if here.objective.kind is ObjectiveKind.UNTIL else abs(result.guarantee), 1e-3
        )
        if result.contradiction is not None or not np.isfinite(result.guarantee):
            continue
        guard = Guard.of(result.shield(slack=slack))
        guards = {
            "shield": guard,
            "estimated": estimated(here, counts, slack),
            "relative": within(here, result, guard, LAMBDA),
        }
        for kind, each in guards.items():
            for agent in AGENTS:
                q = learner(here, each, 1000 * seed) if agent == "q-learner" else None
                returns, other = play(here, each, agent, episodes, seed, q)
                row = rows.setdefault((kind, agent), Row(name, kind, agent))
                row.add(here, each.promise, returns, other)
    return list(rows.values())


def samples(name: str, size: int, episodes: int, most: int = 64) -> dict[str, Any]:
    """How many more episodes intervals without ties need for the same promise and the Q-learner's return."""
    here = world(name)

    def outcome(sets: str, count: int, promise: float | None) -> tuple[float, float]:
        result = tr.learn(here.problem, here.log(count, 1), delta=DELTA, sets=sets)
        assert isinstance(result, tr.LearningResult)
        sign = 1.0 if here.objective.agent.name == "MAX" else -1.0
        slack = SLACK if promise is None else sign * (result.guarantee - promise)
        if not slack >= 0:
            return float("nan"), result.guarantee
        guard = Guard.of(result.shield(slack=slack))
        q = learner(here, guard, 5000, 60)
        return float(play(here, guard, "q-learner", episodes, 1, q)[1].mean()), guard.promise

    reached, promise = outcome("rectangular", size, None)
    factor = 1
    while factor <= most:
        other, _ = outcome("untied", factor * size, promise)
        if other >= 0.98 * reached:
            break
        factor *= 2
    found = factor if factor <= most else None
    return {
        "model": name,
        "episodes": size,
        "promise": promise,
        "return": reached,
        "factor": found,
        "most": most,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="one log of a small model")
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--episodes", type=int, default=20_000, help="of every agent under every shield")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument(
        "--samples", nargs="*", default=[], help="models whose numbers of samples are compared"
    )
    parser.add_argument("--json", type=Path, default=Path("bench-results/shield.json"))
    asked = parser.parse_args()
    if asked.smoke:
        asked.logs, asked.episodes, asked.models = 2, 300, ["rover(3,3)"]
    begin, rows = time.perf_counter(), list[Row]()
    print(f"δ = {DELTA}, {asked.logs} logs, {asked.episodes} episodes, slack {SLACK}, λ = {LAMBDA}")
    print(f"{'model':16}{'guard':11}{'agent':11}{'misses':>10}{'promise':>10}{'happened':>10}{'other':>9}")
    for name in asked.models:
        for row in measure(name, asked.logs, MODELS.get(name, 300), asked.episodes):
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
    compared = [samples(name, 200, min(asked.episodes, 4000)) for name in asked.samples]
    for one in compared:
        times = one["factor"] or f"more than {one['most']}"
        print(f"{one['model']}: intervals without ties need {times} times the episodes")
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    content = {"delta": DELTA, "rows": [vars(row) for row in rows], "totals": totals, "samples": compared}
    asked.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{time.perf_counter() - begin:.0f} s; rows in {asked.json}")
    return 0 if totals["shield"]["rate"] <= DELTA else 1


if __name__ == "__main__":
    sys.exit(main())
